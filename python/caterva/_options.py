"""Options as users write them, converted to the numbers that the extension takes."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from . import _caterva, _dtypes, _indexing, _msgpack
from ._errors import Status, make

if TYPE_CHECKING:
    from ._plans import Casting
    from ._remote import Remote

Durability: TypeAlias = Literal["full", "ordered", "none"]
Layout: TypeAlias = Literal["contiguous", "sparse"]
Engine: TypeAlias = Literal[
    "program", "h5py", "zarr", "tifffile", "astropy", "cfgrib", "mrcfile", "pydicom"
]
Filter: TypeAlias = str | int | tuple[str | int, int]
Progress: TypeAlias = Callable[[int, int], object]
Listener: TypeAlias = Progress | Literal["tqdm"] | None
Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

DURABILITIES: tuple[Durability, ...] = ("full", "ordered", "none")
LAYOUTS: tuple[Layout, ...] = ("contiguous", "sparse")
CASTINGS = ("same_kind", "safe", "unsafe")
METALAYERS = ("b2nd", "caterva", "none")

NONE = -1  # CATERVA_NONE: none of something for which 0 means the library's default
NO_FILTER = BLOSCLZ = 256  # they are 0 in Blosc2 frames
MEMORY = "mem:"

FILL_ZEROS, FILL_UNINIT, FILL_NAN, FILL_VALUE = range(1, 5)


class _Shared(TypedDict, total=False):
    """Options that all open arrays share."""

    threads: int
    durability: Durability
    dirty_budget: int
    cache_bytes: int
    read_ahead: bool
    compact_percent: int


class Handle(_Shared, total=False):
    """Options of an open array."""

    progress: Listener


class Storage(Handle, total=False):
    """Options of new arrays."""

    chunks: Sequence[int] | int | None
    blocks: Sequence[int] | int | None
    codec: str | int | None
    level: int | None
    filters: str | Iterable[Filter] | None
    dictionary: bool
    layout: Layout
    metalayers: Mapping[str, Any] | None
    metalayer: Literal["b2nd", "caterva"]
    dims: Sequence[str | None] | None
    overwrite: bool


class Opening(Handle, total=False):
    """Options of opening an existing array."""

    offset: int
    unchecked: bool
    keep_bytes: int
    end_zarr: bool


class Either(Storage, Opening, total=False):
    """Options of `open`, which opens or creates."""

    fill_value: Any


class Loading(Opening, total=False):
    """Options of `load`."""

    remote: Remote | Mapping[str, Any] | None
    storage_options: Mapping[str, Any] | None


class Saving(Storage, total=False):
    """Options of `save`."""

    dtype: npt.DTypeLike | None
    fill_value: Any


class Copying(Saving, total=False):
    """Options of copies."""

    casting: Casting
    memory: int
    for_remote: bool
    zarr: bool


class Converting(TypedDict, total=False):
    """Options of `convert`."""

    overwrite: bool
    strict: bool
    verify: bool
    resume: bool
    keep_chunks: bool
    dtype: npt.DTypeLike | None
    chunks: Sequence[int] | None
    blocks: Sequence[int] | None
    codec: str | None
    level: int | None
    filters: str | Sequence[str] | None
    memory: int | None
    threads: int
    engine: Engine | None
    progress: Listener


class Members(_Shared, total=False):
    """Options of the arrays that a tree opens."""

    unchecked: bool
    keep_bytes: int


def number_of(word: str, words: Sequence[str], what: str) -> int:
    """Return the index of a word in a list of allowed words."""
    if word in words:
        return words.index(word)
    raise ValueError(f"{what} is one of {', '.join(words)}, not {word!r}")


def url_of(path: Path | None) -> str:
    """Return the library's URL of a path; None is memory. Bytes of a file name that are not
    text become surrogates, as by `os.fsdecode`."""
    if path is None:
        return MEMORY
    url = os.fsdecode(path)
    if "\0" in url:
        raise ValueError(f"embedded null byte in the path {url!r}")
    if not url:
        raise make(Status.ENOTFOUND, 0, -1, "the path is empty", url)
    return url


def shape_of(shape: Any, what: str = "shape") -> tuple[int, ...]:
    """Return a shape as a tuple; an int is a shape with one axis."""
    try:
        lengths: tuple[int, ...] = (operator.index(shape),)
    except TypeError:
        if isinstance(shape, str | bytes) or not isinstance(shape, Iterable):
            raise TypeError(f"{what} is an int or a sequence of ints, not {shape!r}") from None
        lengths = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in lengths):
        raise ValueError(f"{what} {lengths} has a negative length")
    return lengths


def flag_of(value: Any, what: str) -> int:
    """Return 1 or 0 for True or False."""
    if isinstance(value, bool | np.bool_ | int) and value in (0, 1):
        return int(value)
    raise TypeError(f"{what} is True or False, not {value!r}")


def names_of(dims: Any) -> tuple[str | None, ...]:
    """Return names of dimensions as a tuple."""
    if isinstance(dims, str):
        raise TypeError(f"dims are one name for each axis, not the str {dims!r}")
    names = tuple(dims)
    for name in names:
        if not (name is None or isinstance(name, str)):
            raise TypeError(f"a dimension's name is a str or None, not {name!r}")
    return names


# ---- Codecs and filters ---------------------------------------------------------------


def _numbered(spec: Filter, number: Callable[[str], int], what: str) -> tuple[int, int]:
    """Return number and meta of ``"name"``, ``"name:meta"``, a number, or a pair."""
    if isinstance(spec, tuple):
        return _numbered(spec[0], number, what)[0], operator.index(spec[1])
    if not isinstance(spec, str):
        return operator.index(spec) or BLOSCLZ, 0
    name, _, meta = spec.partition(":")
    found = number(name)
    if found < 0:
        raise ValueError(f"there is no {what} {name!r}")
    return found, int(meta) if meta else 0


def codec_options(
    codec: str | int | None,
    level: int | None,
    filters: str | Iterable[Filter] | None,
    dictionary: bool,
) -> dict[str, Any]:
    """Return the options of compression; the library chooses where an argument is None."""
    out: dict[str, Any] = {}
    if codec is not None:
        number, meta = _numbered(codec, _caterva.codec_number, "codec")
        out["codec"] = number
        out["codec_meta"] = meta & 255 if -128 <= meta < 0 else meta
    if level is not None:
        number = operator.index(level)
        if not 0 <= number <= 9:
            raise ValueError(f"compression level {number} is not in 0..9")
        out["level"] = number or NONE
    if filters is not None:
        if isinstance(filters, str):
            filters = [f for f in filters.split(",") if f and f != "none"]
        pairs = [_numbered(f, _caterva.filter_number, "filter") for f in filters]
        out["filters"] = [n for n, _ in pairs] or [NO_FILTER]
        out["filters_meta"] = [m for _, m in pairs]
    if flag_of(dictionary, "dictionary"):
        out["use_dict"] = 1
    return out


# ---- Progress -------------------------------------------------------------------------


def progress_of(progress: Listener) -> Progress | None:
    """Return the progress function; ``"tqdm"`` draws a bar."""
    if progress is None:
        return None
    if progress == "tqdm":
        from ._progress import Bar

        return Bar()
    if not callable(progress):
        raise TypeError(
            f"progress is a function (done, total), 'tqdm' or None, not {progress!r}"
        )
    return progress


# ---- Handles --------------------------------------------------------------------------


def _int_of(value: Any, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is an int, not {value!r}") from None


def handle_options(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of every open array from `options` and return them converted."""
    out: dict[str, Any] = {}
    for name in ("threads", "dirty_budget", "cache_bytes", "compact_percent"):
        if options.get(name) is not None:
            out[name] = _int_of(options[name], name)
        options.pop(name, None)
    durability = options.pop("durability", "full")
    out["durability"] = number_of(durability, DURABILITIES, "durability")
    out["no_read_ahead"] = 1 - flag_of(options.pop("read_ahead", True), "read_ahead")
    return out


def _refuse_rest(options: dict[str, Any]) -> None:
    if options:
        raise TypeError(f"there is no option {', '.join(sorted(options))}")


def open_options(writing: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Return all options of opening."""
    options = dict(options)
    out = handle_options(options) | {"mode": int(writing)}
    out["offset"] = _int_of(options.pop("offset", 0), "offset")
    out["unchecked"] = flag_of(options.pop("unchecked", False), "unchecked")
    out["keep_bytes"] = _int_of(options.pop("keep_bytes", 0), "keep_bytes")
    out["end_zarr"] = flag_of(options.pop("end_zarr", False), "end_zarr")
    _refuse_rest(options)
    return out


def _metalayers(
    given: Mapping[str, Any] | None, dtype: np.dtype[Any]
) -> list[tuple[str, bytes]]:
    layers = [
        (name, value if isinstance(value, bytes) else _msgpack.pack(value))
        for name, value in (given or {}).items()
    ]
    if _dtypes.is_foreign(dtype):
        layers.append((_dtypes.ML_DTYPE, _msgpack.pack(dtype.name)))
    return layers


def fill_options(fill_value: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the options for the fill value."""
    if fill_value is None:
        return {}
    item = _indexing.item_of(fill_value, dtype)
    raw = item.tobytes()
    if not any(raw):
        return {"fill": FILL_ZEROS}
    usual = np.array(np.nan, dtype).tobytes() if dtype.kind == "f" else None
    if dtype.itemsize in (4, 8) and raw == usual:  # a NaN of other bits is a value
        return {"fill": FILL_NAN}
    return {"fill": FILL_VALUE, "fill_value": raw}


def partition_options(options: dict[str, Any], ndim: int) -> dict[str, Any]:
    """Return the given chunk and block shapes; an int is a length for all axes."""
    out = {}
    for name in ("chunks", "blocks"):
        given = options.pop(name, None)
        if given is None or given is True:
            continue
        lengths = shape_of(given, name)
        if isinstance(given, SupportsIndex):
            lengths *= ndim
        if len(lengths) != ndim:
            raise ValueError(f"{name} {lengths} has {len(lengths)} axes, the array {ndim}")
        out[name] = lengths
    return out


def storage_options(
    shape: tuple[int, ...], dtype: np.dtype[Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Return all options of creating except the fill value."""
    options = dict(options)
    out = handle_options(options) | partition_options(options, len(shape))
    out |= codec_options(
        options.pop("codec", None),
        options.pop("level", None),
        options.pop("filters", None),
        options.pop("dictionary", False),
    )
    out["shape"] = shape
    out["dtype"] = _dtypes.text_of(dtype)
    if "layout" in options:
        out["layout"] = 1 + number_of(options.pop("layout"), LAYOUTS, "layout")
    if "metalayer" in options:
        word = options.pop("metalayer")
        out["metalayer"] = 1 + number_of(word, METALAYERS[:2], "metalayer")
    out["metalayers"] = _metalayers(options.pop("metalayers", None), dtype)
    out["overwrite"] = flag_of(options.pop("overwrite", False), "overwrite")
    _refuse_rest(options)
    return out
