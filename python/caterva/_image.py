"""Images of items: PNG files with the pixels that ``caterva view --png`` writes."""

from __future__ import annotations

import importlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._plans import AnyArray

if TYPE_CHECKING:
    from ._readable import Readable

# Anchor colours of well-known colormaps; other colours are interpolated.
_MAPS = {
    "gray": "000000 ffffff",
    "viridis": "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
    "magma": "000004 1d1147 51127c 832681 b73779 e75263 fc8961 fec488 fcfdbf",
    "inferno": "000004 210c4a 57106e 8a226a bc3754 e45a31 f98e09 f9cb35 fcffa4",
    "plasma": "0d0887 4c02a1 7e03a8 aa2395 cc4778 e66c5c f89540 fdc527 f0f921",
    "turbo": "30123b 4145ab 4675ed 39a2fc 1bcfd4 24eca6 61fc6c a4fc3b d1e834 f3c63a fe9b2d "
    "f36315 d93806 b11901 7a0402",
    "hot": "0b0000 ff0000 ffff00 ffffff",
    "coolwarm": "3b4cc0 5977e3 7b9ff9 9ebeff c0d4f5 dddcdc f2cbb7 f7ac8e ee8468 d65244 b40426",
}
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES = {1: 0, 3: 2, 4: 6}  # PNG's colour types by number of channels


class Image:
    """An image, which notebooks display.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> a = caterva.asarray(np.arange(600).reshape(20, 30))
    >>> image = a.view_image()
    >>> image
    <caterva.Image 30 x 20, gray>
    >>> image.save("a.png")
    >>> image.png[:4]
    b'\\x89PNG'
    """

    __slots__ = ("pixels",)

    def __init__(self, pixels: AnyArray) -> None:
        self.pixels = pixels
        """uint8, shaped (rows, columns) or (rows, columns, 3 or 4)."""

    @property
    def png(self) -> bytes:
        """The image as bytes of a PNG file."""
        height, width = self.pixels.shape[:2]
        channels = self.pixels.size // (height * width)
        rows = np.zeros((height, 1 + width * channels), np.uint8)  # the first byte: no filter
        rows[:, 1:] = self.pixels.reshape(height, -1)
        header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
        return b"".join(
            (
                _SIGNATURE,
                _part(b"IHDR", header),
                _part(b"IDAT", zlib.compress(rows.tobytes(), 6)),
                _part(b"IEND", b""),
            )
        )

    def save(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Write the image to a PNG file."""
        with open(path, "wb") as file:
            file.write(self.png)

    def pil(self) -> Any:
        """Return the image as a ``PIL.Image.Image``; needs Pillow."""
        return importlib.import_module("PIL.Image").fromarray(self.pixels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.pixels, dtype) if copy else np.asarray(self.pixels, dtype)

    def _repr_png_(self) -> bytes:
        return self.png

    def __repr__(self) -> str:
        height, width = self.pixels.shape[:2]
        kind = {2: "gray"}.get(self.pixels.ndim) or ("RGB", "RGBA")[self.pixels.shape[2] - 3]
        return f"<caterva.Image {width} x {height}, {kind}>"


def _part(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


# ---- Pixels ---------------------------------------------------------------------------


def _table(name: str) -> AnyArray:
    """Return 256 colours, interpolated between evenly spaced anchors."""
    if name not in _MAPS:
        raise ValueError(f"there is no colormap {name!r}; the colormaps are {', '.join(_MAPS)}")
    anchors = np.array([list(bytes.fromhex(c)) for c in _MAPS[name].split()], np.float64)
    place = np.arange(256) / 255 * (len(anchors) - 1)
    left = np.minimum(place.astype(int), len(anchors) - 2)
    low, high = anchors[left], anchors[left + 1]
    colors: AnyArray = (low + (high - low) * (place - left)[:, None] + 0.5).astype(np.uint8)
    return colors[:, 0] if name == "gray" else colors


def _limits(numbers: AnyArray, known: AnyArray) -> tuple[float, float]:
    """Return the smallest and largest finite number, made different if they are equal."""
    if not known.any():
        low, high = 0.0, 0.0
    else:
        low = float(numbers.min(where=known, initial=np.inf))
        high = float(numbers.max(where=known, initial=-np.inf))
    return low, high if high > low else float(np.nextafter(low + 1, np.inf))


def _steps(numbers: AnyArray, known: AnyArray, low: float, high: float) -> AnyArray:
    """Map numbers from `low` to `high` to 0 to 255."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Halves, so that the difference of two large doubles does not overflow.
        part = (numbers / 2 - low / 2) / (high / 2 - low / 2)
        steps = np.clip(part, 0, 1) * 255 + 0.5
    return np.where(known, steps, 0).astype(np.uint8)


def pixels_of(
    items: AnyArray, colors: bool, cmap: str, limits: tuple[float, float] | None
) -> AnyArray:
    """Return the pixels of items. Items that are not finite are black."""
    table = None if colors else _table(cmap)
    numbers = items.astype(np.float64)
    known = np.isfinite(numbers)
    if limits is None:
        limits = (0, 255) if colors and items.dtype == np.uint8 else _limits(numbers, known)
    elif not limits[0] < limits[1]:
        raise ValueError(f"limits are (low, high) with low < high, not {limits}")
    steps = _steps(numbers, known, *limits)
    if table is None:
        return steps
    pixels: AnyArray = table[steps]
    pixels[~known] = 0
    return pixels


def view_image(
    self: Readable,
    sel: Any = ...,
    *,
    cmap: str = "gray",
    limits: tuple[float, float] | None = None,
    rgb: bool | None = None,
    max_size: int | None = 2048,
) -> Image:
    """Make an image of a selection with two axes, rows and columns.

    Parameters
    ----------
    sel
        Ints and slices, as for `view`.
    cmap
        ``gray``, ``viridis``, ``magma``, ``inferno``, ``plasma``, ``turbo``, ``hot`` or
        ``coolwarm``.
    limits
        Numbers of the first and the last colour. None: the smallest and largest item.
    rgb
        Whether a last axis of 3 or 4 items is red, green, blue and opacity. None: if the items
        are uint8.
    max_size
        Maximum number of rows and columns. Larger selections are read with a step. None: no
        maximum.

    Returns
    -------
    Image
        Notebooks display it; it has ``png``, ``save(path)`` and ``pil()``.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> a = caterva.asarray(np.arange(6000.0).reshape(10, 20, 30))
    >>> a.view_image(np.s_[4, ::-1], cmap="viridis")
    <caterva.Image 30 x 20, RGB>
    """
    part = self.view[sel]
    has_channels = part.ndim == 3 and part.shape[2] in (3, 4)
    colors = has_channels and (part.dtype == np.uint8 if rgb is None else rgb)
    if rgb and not colors:
        raise ValueError(f"rgb takes shapes (rows, columns, 3 or 4), not {part.shape}")
    if part.ndim != (3 if colors else 2) or 0 in part.shape:
        raise ValueError(
            f"an image has rows and columns, but the selection has shape {part.shape}: "
            "select two axes, as in a.view_image(np.s_[10])"
        )
    if part.dtype.kind not in "biufV" or part.dtype.names is not None:
        raise TypeError(f"items of dtype {part.dtype} have no image")
    if max_size is not None:
        part = part.view[tuple(slice(None, None, -(-n // max_size)) for n in part.shape[:2])]
    return Image(pixels_of(part[...], bool(colors), cmap, limits))
