"""HTML of arrays for notebooks: a table and a drawing of the chunks."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ._info import bytes_text, dims_text, path_text
from ._shown import names_shown

if TYPE_CHECKING:
    from ._array import Array
    from ._group import Group
    from ._info import Info

_LARGEST, _SMALLEST = 160, 24  # length of an axis, in pixels
_LINES = 24  # with more chunks only some edges are drawn
_SLANT = (0.5, 0.4)  # direction of the first of three axes: right and up

Point = tuple[float, float]


def _lengths(shape: Sequence[int]) -> list[float]:
    """Return drawn lengths of the axes; short ones stay visible."""
    longest = max(*shape, 1)
    return [max(_SMALLEST, _LARGEST * n / longest) for n in shape]


def _edges(n: int, chunk: int, length: float) -> list[float]:
    """Return positions of chunk edges along an axis; if there are many, some and both ends."""
    count = -(-n // chunk) if n else 0
    step = max(1, -(-count // _LINES)) * chunk
    return [*(length * at / n for at in range(0, n, step)), length]


def _line(a: Point, b: Point, outer: bool) -> str:
    width = 1.5 if outer else 0.6
    return (
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" '
        f'stroke-width="{width}"/>'
    )


def _face(
    corner: Point, across: Point, down: Point, columns: list[float], rows: list[float]
) -> Iterator[str]:
    """Draw a face from its corner along two directions, with its lines."""

    def at(x: float, y: float) -> Point:
        return (
            corner[0] + across[0] * x + down[0] * y,
            corner[1] + across[1] * x + down[1] * y,
        )

    width, height = columns[-1], rows[-1]
    outline = " ".join(
        f"{x:.1f},{y:.1f}"
        for x, y in (at(0, 0), at(width, 0), at(width, height), at(0, height))
    )
    yield f'<polygon points="{outline}" fill="#3a87ad" fill-opacity="0.25" stroke="none"/>'
    for x in columns:
        yield _line(at(x, 0), at(x, height), x in (columns[0], width))
    for y in rows:
        yield _line(at(0, y), at(width, y), y in (rows[0], height))


def _text(x: float, y: float, text: int, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" stroke="none">{text}</text>'


def drawing(shape: Sequence[int], chunks: Sequence[int]) -> str:
    """Draw the last three axes with chunk edges as an SVG; empty without axes."""
    if not shape:
        return ""
    shape, chunks = shape[-3:], chunks[-3:]
    *before, width = _lengths(shape)
    height = before[-1] if before else _SMALLEST
    columns = _edges(shape[-1], chunks[-1], width)
    rows = _edges(shape[-2], chunks[-2], height) if before else [0, height]
    left, right, up = 4, 0.0, 0.0
    parts: list[str] = []
    if len(shape) == 3:
        left, right, up = 48, before[0] * _SLANT[0], before[0] * _SLANT[1]
        deep = _edges(shape[0], chunks[0], before[0])
        back = (_SLANT[0], -_SLANT[1])
        parts += _face((left, 4 + up), (1, 0), back, columns, deep)
        parts += _face((left + width, 4 + up), back, (0, 1), deep, rows)
        parts.append(_text(left + right / 2 - 6, 4 + up / 2, shape[0], "end"))
    parts += _face((left, 4 + up), (1, 0), (0, 1), columns, rows)
    parts.append(_text(left + width / 2, up + height + 18, shape[-1]))
    if before:
        parts.append(
            _text(left + 6 + width + right, up / 2 + height / 2 + 4, shape[-2], "start")
        )
    size = f'width="{left + width + right + 70:.0f}" height="{height + up + 26:.0f}"'
    return (
        f'<svg {size} stroke="currentColor" fill="currentColor" font-size="11">'
        f"{''.join(parts)}</svg>"
    )


def _rows(info: Info) -> Iterator[tuple[str, str]]:
    yield "Shape", f"{info.shape}, {info.dtype}"
    if any(info.dims):
        yield "Dimensions", dims_text(info.dims)
    yield "Bytes", f"{bytes_text(info.data_bytes)}, stored {bytes_text(info.frame_bytes)}"
    if info.frame_bytes:
        yield "Ratio", f"{info.ratio:.2f}"
    yield "Chunks", f"{info.chunks}, {info.n_chunks} of {bytes_text(info.chunk_bytes)}"
    yield "Blocks", f"{info.blocks}, {info.n_blocks} in a chunk"
    yield "Codec", f"{info.codec} {info.level}, {', '.join(info.filters) or 'plain'}"
    if info.attributes:
        yield "Attributes", names_shown(info.attributes)


def html_of(array: Array) -> str:
    """Implement ``_repr_html_`` of arrays."""
    title = html.escape(path_text(array.path))
    if array.closed:
        return f"<b>caterva.Array</b> {title}, closed"
    info = array.info
    table = "".join(
        f"<tr><th style='text-align:left'>{name}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in _rows(info)
    )
    return (
        "<div style='display:flex;gap:2em;align-items:center;flex-wrap:wrap'>"
        f"<div><b>caterva.Array</b> {title}<table>{table}</table></div>"
        f"{drawing(info.shape, info.chunks)}</div>"
    )


# ---- Trees ---------------------------------------------------------------------------


def _members(group: Group) -> Iterator[str]:
    """Yield list items: groups can be unfolded, arrays take a line."""
    from ._group import Group

    for name in group:
        member = group[name]
        title = html.escape(name)
        if isinstance(member, Group):
            inside = f"<summary><b>{title}</b></summary>{_list(member)}"
            yield f"<li><details open>{inside}</details>"
            continue
        axes = ", ".join(
            str(n) if dim is None else f"{html.escape(dim)}: {n}"
            for dim, n in zip(member.dims, member.shape, strict=True)
        )
        yield f"<li>{title} <span>({axes}) {html.escape(str(member.dtype))}</span>"


def _list(group: Group) -> str:
    return f"<ul style='margin:0'>{''.join(_members(group))}</ul>"


def html_of_group(group: Group) -> str:
    """Implement ``_repr_html_`` of groups and trees."""
    title = html.escape(path_text(group.tree.path))
    if group.tree.closed:
        return f"<b>caterva.Tree</b> {title}, closed"
    kind = type(group).__name__
    key = "" if group.name == "/" else f"::{html.escape(group.name)}"
    return f"<div><b>caterva.{kind}</b> {title}{key}{_list(group)}</div>"
