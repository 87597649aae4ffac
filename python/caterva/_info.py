"""Descriptions of arrays, and reports of verify and repair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _caterva, _options
from ._errors import Status
from ._shown import names_shown, shown

CHUNK_KINDS = ("stored", "zeros", "nan", "value", "uninit")
_SIGNED = ("zfp-accuracy", "trunc-prec", "int-trunc")  # their meta may be negative
FOUND = ("standing", "copy", "older", "order")
OUTCOMES = ("sound", "whole", "partly", "lost")


def bytes_text(n: int) -> str:
    """Format a number of bytes with a binary unit."""
    size = float(n)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.1f} {unit}" if unit != "B" else f"{n} B"


def path_text(path: str | None) -> str:
    """Format a path for display; bytes that are not UTF-8 appear as \\xNN."""
    if path is None:
        return "in memory"
    return shown(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def dims_text(dims: tuple[str | None, ...]) -> str:
    """Format names of dimensions for display; "-" for an axis without a name."""
    return ", ".join("-" if name is None else name for name in dims)


def _name(number: int, name: Any, meta: int) -> str:
    text = str(name(number) or number)
    if text in _SIGNED and meta > 127:
        meta -= 256
    return f"{text}:{meta}" if meta else text


class Info:
    """Description of an array. Each part is an attribute; ``repr`` is a summary.

    Examples
    --------
    >>> import caterva
    >>> info = caterva.zeros((400, 300), "f4", chunks=(100, 300), codec="lz4").info
    >>> info.n_chunks, info.chunk_counts, info.codec, info.filters, info.pending
    (4, (4, 1), 'lz4', ('shuffle',), True)
    """

    def __init__(
        self,
        parts: dict[str, Any],
        dtype: np.dtype[Any],
        path: str | None,
        writable: bool,
        pending: bool,
    ) -> None:
        self.path = path
        self.offset: int = parts["offset"]
        self.writable = writable
        self.pending = pending
        self.durability: str = _options.DURABILITIES[parts["durability"]]
        self.commit_number: int = parts["commit_number"]
        self.dtype = dtype
        self.dtype_disagrees: bool = parts["dtype_disagrees"]
        raw = parts["fill_value"]
        self.fill_value: Any = np.frombuffer(raw or bytes(dtype.itemsize), dtype)[0]
        self.shape: tuple[int, ...] = parts["shape"]
        self.dims: tuple[str | None, ...] = parts["dims"]
        self.chunks: tuple[int, ...] = parts["chunks"]
        self.blocks: tuple[int, ...] = parts["blocks"]
        self.chunk_counts: tuple[int, ...] = parts["chunk_counts"]
        self.block_counts: tuple[int, ...] = parts["block_counts"]
        self.dtype_stored: str | None = parts["dtype_stored"]
        self.layout: str = _options.LAYOUTS[parts["layout"] - 1]
        self.metalayer: str = _options.METALAYERS[parts["metalayer"] - 1]
        self.in_memory: bool = parts["in_memory"]
        self.sealed: bool = parts["sealed"]
        self.codec = _name(parts["codec"], _caterva.codec_name, parts["codec_meta"])
        self.level: int = parts["level"]
        self.dictionary: bool = parts["use_dict"]
        self.filters = tuple(
            _name(number, _caterva.filter_name, meta)
            for number, meta in zip(parts["filters"], parts["filters_meta"], strict=True)
            if number
        )
        self.n_items: int = parts["n_items"]
        self.n_chunks: int = parts["n_chunks"]
        self.n_blocks: int = parts["n_blocks"]
        self.chunk_bytes: int = parts["chunk_bytes"]
        self.block_bytes: int = parts["block_bytes"]
        self.data_bytes: int = parts["data_bytes"]
        self.frame_bytes: int = parts["frame_bytes"]
        self.header_bytes: int = parts["header_bytes"]
        self.attributes: tuple[str, ...] = tuple(parts["attributes"])
        self.metalayers: tuple[str, ...] = tuple(parts["metalayers"])
        self.ratio = self.data_bytes / self.frame_bytes if self.frame_bytes else 0.0

    def __repr__(self) -> str:
        sealed = "sealed" if self.sealed else "not sealed"
        lines = [
            f"caterva.Array {path_text(self.path)}",
            f"  shape       {self.shape}  {self.dtype}  {bytes_text(self.data_bytes)}",
            f"  chunks      {self.chunks}  {self.n_chunks} of {bytes_text(self.chunk_bytes)}",
            f"  blocks      {self.blocks}  {self.n_blocks} in a chunk",
            f"  codec       {self.codec} {self.level}, {', '.join(self.filters) or 'plain'}",
            f"  stored      {bytes_text(self.frame_bytes)}, ratio {self.ratio:.2f}, "
            f"{self.layout}, {sealed}",
        ]
        if any(self.dims):
            lines.insert(2, f"  dims        {dims_text(self.dims)}")
        if self.pending:
            lines.append("  pending     changes that are not committed")
        if self.attributes:
            lines.append(f"  attributes  {names_shown(self.attributes)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class ChunkInfo:
    """A stored chunk; its items are [start, stop) of the array."""

    number: int
    index: tuple[int, ...]
    start: tuple[int, ...]
    stop: tuple[int, ...]
    _kind: int
    position: int
    stored_bytes: int
    memcpyed: bool

    @property
    def kind(self) -> str:
        """``stored``, or what all its items are: ``zeros``, ``nan``, ``value``, ``uninit``."""
        return CHUNK_KINDS[self._kind]


@dataclass(frozen=True)
class BlockInfo:
    """A block of a chunk: its items are [start, stop) of the array."""

    chunk: int
    number: int
    index: tuple[int, ...]
    start: tuple[int, ...]
    stop: tuple[int, ...]
    stored_bytes: int


@dataclass(frozen=True)
class Damage:
    """One damaged place; `chunk` is None if it is outside of chunks."""

    chunk: int | None
    index: tuple[int, ...]
    position: int | None
    code: Status
    message: str


class Outcome:
    """Base of reports: true if all is well; ``str`` lists what is not."""

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged or lost."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Member:
    """One member of a tree; the key ``/`` stands for the tree itself."""

    key: str
    kind_name: str
    """As of an `Entry`; also ``attributes``, ``tree``, ``frame`` and ``file``."""


@dataclass(frozen=True)
class Report(Outcome):
    """Result of verify; true if nothing is damaged."""

    checked_chunks: int
    damaged_chunks: int
    unverified_chunks: int
    damages: tuple[Damage, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages

    def __str__(self) -> str:
        if self.ok:
            return f"ok, {self.checked_chunks} chunks"
        return "\n".join(d.message for d in self.damages)


def damages_of(places: list[tuple[int, tuple[int, ...], int, int, str]]) -> tuple[Damage, ...]:
    """Convert the damaged places that the extension reports."""
    return tuple(
        Damage(
            None if chunk < 0 else chunk, index, None if at < 0 else at, Status(code), message
        )
        for chunk, index, at, code, message in places
    )


def make_report(checked: int, damaged: int, unverified: int, places: list[Any]) -> Report:
    """Make the report of verify."""
    return Report(checked, damaged, unverified, damages_of(places))


@dataclass(frozen=True)
class Verified(Member):
    """A damaged member of a tree."""

    sealed: bool
    """True if checksums cover its contents."""
    report: Report
    """As `Array.verify` gives it."""


@dataclass(frozen=True)
class TreeReport(Outcome):
    """Result of verify for a tree; true if nothing is damaged."""

    n_members: int
    """Members that were checked."""
    n_unsealed: int
    """Members without checksums, in which only what does not decode was detected."""
    n_skipped: int
    """Members whose bytes were not checked (compressed, encrypted, or elsewhere)."""
    members: tuple[Verified, ...]
    """The damaged members."""
    case_collisions: tuple[tuple[str, str], ...] = ()
    """Pairs of keys that differ only in case, which is not damage. A directory cannot have both
    where the file system ignores case, as on Windows and macOS."""

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.members

    def __str__(self) -> str:
        if self.ok:
            skipped = f", {self.n_skipped} not checked" if self.n_skipped else ""
            return f"ok, {self.n_members} members{skipped}"
        return "\n".join(
            f"{m.key}: {d.message}" for m in self.members for d in m.report.damages
        )


def tree_report_of(
    n: int,
    unsealed: int,
    skipped: int,
    members: list[tuple[Any, ...]],
    alike: list[tuple[str, str]],
) -> TreeReport:
    """Convert what the extension reports of verifying a tree."""
    damaged = (
        Verified(key, kind, sealed, make_report(*found)) for key, kind, sealed, found in members
    )
    return TreeReport(n, unsealed, skipped, tuple(damaged), tuple(alike))


@dataclass(frozen=True)
class Repair(Outcome):
    """Result of repairing an array; true if nothing is lost."""

    found: str
    complete: bool
    n_chunks: int
    lost_chunks: int
    unverified_chunks: int  # without checksums: damage is found only if decoding fails
    lost_attributes: int | None
    in_place: bool
    written: bool
    damages: tuple[Damage, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is lost."""
        return self.complete

    def __str__(self) -> str:
        found = f"{self.found} state, {self.lost_chunks} of {self.n_chunks} chunks lost"
        return "\n".join([found, *(d.message for d in self.damages)])


def repair_of(
    found: int,
    complete: bool,
    n_chunks: int,
    lost: int,
    unverified: int,
    attributes: int,
    in_place: bool,
    written: bool,
    places: list[Any],
) -> Repair:
    """Convert what the extension reports of repairing an array."""
    lost_attributes = None if attributes < 0 else attributes
    return Repair(
        FOUND[found],
        complete,
        n_chunks,
        lost,
        unverified,
        lost_attributes,
        in_place,
        written,
        damages_of(places),
    )


@dataclass(frozen=True)
class Repaired(Member):
    """Result of repairing one member of a tree."""

    outcome: str
    """``whole`` (nothing is lost), ``partly``, or ``lost`` (nothing can be recovered)."""
    reason: str | None
    beside: str | None
    """File in the tree with what was recovered of an array that is left unchanged."""
    array: Repair | None
    """Result for an array; None for other members."""


@dataclass(frozen=True)
class TreeRepair(Outcome):
    """Result of repairing a tree; true if nothing is lost."""

    complete: bool
    settled: bool
    """True if an unfinished commit was completed."""
    n_members: int
    """Members that were checked."""
    members: tuple[Repaired, ...]
    """The members that were not sound."""

    @property
    def ok(self) -> bool:
        """Whether nothing is lost."""
        return self.complete

    def __str__(self) -> str:
        words = (
            f"{m.key}: {m.outcome}" + (f", {m.reason}" if m.reason else "")
            for m in self.members
        )
        return "\n".join([f"{self.n_members} members looked at", *words])


def _repaired(
    key: str,
    kind: str,
    outcome: int,
    reason: str | None,
    beside: str | None,
    result: tuple[Any, ...],
    places: list[Any],
) -> Repaired:
    array = repair_of(*(*result, places)) if kind == "array" else None
    return Repaired(key, kind, OUTCOMES[outcome], reason, beside, array)


def tree_repair_of(
    complete: bool, settled: bool, n: int, members: list[tuple[Any, ...]]
) -> TreeRepair:
    """Convert what the extension reports of repairing a tree."""
    return TreeRepair(complete, settled, n, tuple(_repaired(*member) for member in members))


@dataclass(frozen=True)
class Space:
    """Number of stored chunks by kind, and live and dead bytes of a frame."""

    stored_chunks: int
    special_chunks: int
    live_bytes: int
    dead_bytes: int
    unverified_chunks: int
