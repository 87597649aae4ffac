"""Converting files of other formats: by the program, or by Python packages that read them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any, SupportsIndex, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from . import _options, _program
from ._array import Array
from ._errors import Error, Status, UnsupportedError, make
from ._filling import incomplete
from ._functions import open as open_any
from ._functions import save
from ._group import Group
from ._hdf5 import read_hdf5
from ._options import Converting, Engine, Path
from ._places import is_remote, place_of, split_url
from ._readers import (
    RESERVED,
    Attrs,
    Contents,
    Variable,
    boxes,
    logged,
    read_dicom,
    read_fits,
    read_mrc,
    read_tiff,
    read_zarr,
)
from ._shown import shown
from ._tree import Tree
from ._trees import open_tree
from ._view import View

Source: TypeAlias = Path | Array | View | Group | npt.NDArray[Any]

_MAGICS = (
    (128, b"DICM", "dicom"),  # behind 128 bytes that can be those of a TIFF file
    (0, b"\x89HDF\r\n\x1a\n", "hdf5"),
    (512, b"\x89HDF\r\n\x1a\n", "hdf5"),
    (0, b"CDF", "netcdf"),
    *((0, magic, "tiff") for magic in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (0, b"NRRD000", "nrrd"),
    (344, b"n+1\0", "nifti"),
    (344, b"ni1\0", "nifti"),
    (4, b"n+2\0", "nifti"),
    (4, b"ni2\0", "nifti"),
    (0, b"SIMPLE  =", "fits"),
    (0, b"GRIB", "grib"),
    (208, b"MAP ", "mrc"),
)
_SUFFIXES = {  # where the first bytes say nothing
    "nifti": (".nii.gz", ".hdr.gz", ".img.gz"),
    "npz": (".npz",),
    "nrrd": (".nhdr",),
    "fits": (
        ".fits",
        ".fit",
        ".fts",
        ".fits.gz",
        ".fit.gz",
        ".fts.gz",
        ".fits.fz",
        ".fits.bz2",
    ),
    "grib": (".grib", ".grib1", ".grib2", ".grb", ".grb1", ".grb2"),
    "mrc": (".mrc", ".mrcs", ".ccp4", ".mrc.gz", ".mrc.bz2", ".map.gz", ".map.bz2"),
    "dicom": (".dcm",),
    "zarr": (".zarr",),
}
_TARGETS = {  # what `to_hdf5` and the others refuse: names of another format
    "caterva": (".b2nd", ".b2d", ".b2z"),
    "hdf5": (".h5", ".hdf5", ".he5"),
    "netcdf": (".nc", ".nc4", ".cdf"),
    "nifti": (".nii", ".nii.gz", ".hdr", ".img"),
    "npz": (".npz",),
    "nrrd": (".nrrd", ".nhdr"),
    "tiff": (".tif", ".tiff", ".btf"),
    "zarr": (".zarr",),
}
_ENGINES: dict[str, Engine] = {
    "fits": "astropy",
    "grib": "cfgrib",
    "mrc": "mrcfile",
    "dicom": "pydicom",
}
READERS: dict[str, Callable[[contextlib.ExitStack, str], Contents]] = {
    "h5py": read_hdf5,
    "zarr": read_zarr,
    "tifffile": read_tiff,
    "astropy": read_fits,
    "mrcfile": read_mrc,
    "pydicom": read_dicom,
}
_PLUGINS: dict[str, Engine] = {"hdf5": "h5py", "tiff": "tifffile"}  # read without the plug-in
_DIRECT = (".b2nd", ".b2d", ".b2z", ".zarr")
_TITLES = {
    "caterva": "Caterva",
    "hdf5": "HDF5",
    "netcdf": "NetCDF",
    "tiff": "TIFF",
    "nifti": "NIfTI",
    "nrrd": "NRRD",
    "npz": "npz",
    "zarr": "Zarr",
    "fits": "FITS",
    "grib": "GRIB",
    "mrc": "MRC",
    "dicom": "DICOM",
}


_LACKS = re.compile(  # what packages say of codecs that they lack, and zarr of sharded bytes
    "missing dependenc|requires the|not registered|required filter|can't open directory|"
    "not (available|installed|supported|implemented)|unsupported|unknown codec|unhashable type",
    re.IGNORECASE,
)


class LossWarning(UserWarning):
    """Something of the source is not in the target: one sentence for each thing."""


# ---- What to read, and how ----------------------------------------------------------------


def format_of(place: str) -> str | None:
    """Return the format of a file or folder: "hdf5", "fits", ...; None if unknown."""
    path = split_url(place)[0]
    lower = path.rstrip("/").lower()
    named = next((form for form, ends in _SUFFIXES.items() if lower.endswith(ends)), None)
    if is_remote(path):
        return "zarr" if named is None and ".zarr/" in lower else named
    if os.path.isdir(path):
        inside = set(os.listdir(path))
        if inside & {"zarr.json", ".zgroup", ".zarray"}:
            return "zarr"
        return "dicom" if _has_dicom(path) else None
    try:
        with open(path, "rb") as file:
            head = file.read(520)
    except OSError:
        return None
    for at, magic, name in _MAGICS:
        if head[at : at + len(magic)] == magic:
            return name
    return named


def _has_dicom(folder: str) -> bool:
    """Whether one of the first thousand files is of DICOM."""
    tried = 0
    for at, _, names in os.walk(folder):
        for name in sorted(names):
            tried += 1
            if tried > 1000:
                return False
            with contextlib.suppress(OSError), open(os.path.join(at, name), "rb") as file:
                if file.read(132)[128:] == b"DICM":
                    return True
    return False


def _has_plugin(name: str) -> bool:
    folder = os.environ.get("CATERVA_PLUGINS") or os.path.join(
        os.path.dirname(__file__), "plugins"
    )
    return os.path.exists(os.path.join(folder, f"{name}.so"))


def engine_of(place: str, form: str | None) -> Engine:
    """Choose what reads a source."""
    path = split_url(place)[0]
    if form in _ENGINES:
        return _ENGINES[form]
    if form == "zarr" and is_remote(path):
        return "zarr"
    if form == "tiff" and ".ome." in path.lower():
        with contextlib.suppress(ImportError):
            import tifffile  # noqa: F401  # type: ignore[import-untyped]
            import zarr  # noqa: F401

            return "tifffile"
    if form in _PLUGINS and not _has_plugin(form):
        return _PLUGINS[form]
    return "program"


@contextlib.contextmanager
def _blaming(place: str) -> Iterator[None]:
    """Turn the exceptions of the packages that read a source into this package's."""
    path = split_url(place)[0]
    try:
        yield
    except (Error, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = error.filename or shown(path)
            raise
        message = str(error) or type(error).__name__
        lacks = isinstance(error, NotImplementedError | ImportError) or _LACKS.search(message)
        status = Status.EUNSUPPORTED if lacks else Status.ECORRUPT
        raise make(status, 0, -1, f"{shown(path)}: {message}", path) from error


# ---- Writing what a reader describes ------------------------------------------------------


def _chunks_for(v: Variable, options: dict[str, Any]) -> dict[str, Any]:
    """Let chunks be whole chunks of the source, if these are neither small nor large."""
    shape = tuple(v.items.shape)
    if not v.chunks or 0 in shape or {"chunks", "blocks"} & options.keys():
        return options
    chunks = [min(c, n) for c, n in zip(v.chunks, shape, strict=True)]
    size = int(np.prod(chunks, dtype=np.int64)) * v.items.dtype.itemsize
    if size > 1 << 26:
        return options
    for axis in reversed(range(len(shape))):
        times = max(1, min((1 << 22) // max(1, size), -(-shape[axis] // chunks[axis])))
        chunks[axis] = min(shape[axis], chunks[axis] * times)
        size *= times
    return options | {"chunks": chunks}


class _Steps:
    """Progress over all arrays, in bytes."""

    def __init__(
        self, progress: _options.Progress | None, total: int, place: str, target: str
    ) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self.place, self.target = place, target

    def add(self, size: int) -> None:
        self._done += size
        stops = self._progress is not None and self._progress(self._done, self._total)
        if stops and self._done < self._total:
            message = "the progress function stopped the conversion"
            raise make(Status.ESTOPPED, 0, -1, message, self.place)


def _set_attributes(owner: Array | Group, attrs: Attrs, key: str, found: Contents) -> None:
    """Set attributes; those that cannot be stored are losses."""
    for name, value in attrs.items():
        if name in RESERVED and (name != "dims" or isinstance(owner, Array)):
            found.lose(key, f"the attribute {name}, whose name is reserved")
            continue
        with found.leaving_out(key, f"its attribute {name}"):
            owner.attrs[name] = value


def _read(v: Variable, box: Any, steps: _Steps) -> npt.NDArray[Any]:
    with _blaming(steps.place):  # () would return a scalar, without byte order
        return np.asarray(v.items[box or ...])


def _fill(array: Array, v: Variable, steps: _Steps) -> None:
    chunks = (
        array.chunks
        if v.chunks is None
        else tuple(c if c % s == 0 else s for c, s in zip(array.chunks, v.chunks, strict=True))
    )
    for box in boxes(array.shape, chunks, array.itemsize):
        items = _read(v, box, steps)
        array[box or ...] = items
        steps.add(items.nbytes)


def _compare(array: Array, v: Variable, steps: _Steps, key: str) -> None:
    for box in boxes(array.shape, array.chunks, array.itemsize):
        items = np.asarray(_read(v, box, steps), array.dtype)
        stored = np.asarray(array[box or ...], array.dtype)
        if stored.tobytes() != items.tobytes():
            message = f"{steps.target}: /{key} differs from the source in {box}"
            raise make(Status.ECORRUPT, 0, -1, message, steps.target)


def _words(v: Variable, options: dict[str, Any]) -> dict[str, Any]:
    return {"dims": None if not v.dims or not any(v.dims) else v.dims} | _chunks_for(v, options)


def _dtype_of(v: Variable, dtype: npt.DTypeLike | None) -> np.dtype[Any]:
    if dtype is None:
        own: np.dtype[Any] = np.dtype(v.items.dtype)
        return own
    v.attrs = {k: a for k, a in v.attrs.items() if k != "_FillValue"}
    v.fill_value = None
    return np.dtype(dtype)


def _check_losses(found: Contents, place: str, strict: bool) -> None:
    if strict and found.losses:
        path, losses = shown(split_url(place)[0]), found.losses
        message = f"{path}: {'; '.join(losses[:8])}; strict: {len(losses)} of such losses"
        raise make(Status.EUNSUPPORTED, 0, -1, message, place)


def _write_array(
    found: Contents,
    path: str,
    dtype: Any,
    options: dict[str, Any],
    steps: _Steps,
    flags: dict[str, bool],
) -> None:
    key, v = _one(found, steps.place)
    array = incomplete(
        v.items.shape, _dtype_of(v, dtype), path, v.fill_value, _words(v, options)
    )
    try:
        _fill(array, v, steps)
        _set_attributes(array, v.attrs, key, found)
        _check_losses(found, steps.place, flags["strict"])
        array.close()
    finally:
        array.discard()
    if flags["verify"]:
        with open_any(path) as array:
            _compare(array, v, steps, key)


def _create(
    tree: Tree, key: str, v: Variable, options: dict[str, Any], found: Contents
) -> Array | None:
    """Create the array of a tree, or report why the tree cannot have it."""

    def create(words: dict[str, Any]) -> Array:
        return tree.create_array(
            key, v.items.shape, v.items.dtype, fill_value=v.fill_value, **_words(v, words)
        )

    try:
        return create(options)
    except (TypeError, ValueError, NotImplementedError):
        is_possible = False
        with found.leaving_out(key):
            create({}).discard()
            is_possible = True
        if is_possible:  # without the options
            raise
    return None


def _write_tree(
    found: Contents, path: str, options: dict[str, Any], steps: _Steps, flags: dict[str, bool]
) -> None:
    with open_tree(path, "x", durability="none") as tree:
        for key, attrs in found.groups.items():
            with found.leaving_out(key):
                group = tree.create_group(key) if key else tree
                _set_attributes(group, attrs, key, found)
        failures: list[UnsupportedError] = []
        for key, v in found.arrays.items():
            array = _create(tree, key, v, options, found)
            if array is None:
                continue
            try:
                _fill(array, v, steps)
            except UnsupportedError as error:
                array.discard()
                failures.append(error)
                found.lose(key, f"its items: {error.__cause__ or error}")
                continue
            _set_attributes(array, v.attrs, key, found)
            tree.commit()
            if flags["verify"]:
                _compare(array, v, steps, key)
            array.close()
        if failures and len(failures) == len(found.arrays):
            raise failures[0]
    _check_losses(found, steps.place, flags["strict"])


def _write_grib(place: str, path: str) -> list[str]:
    """Write the data sets of a GRIB file, of which cfgrib makes one for each kind of level.
    Returns what cfgrib leaves out."""
    from ._readers import need

    cfgrib = need("cfgrib", "cfgrib", place)
    to_caterva = need("caterva.xarray", "xarray", place).to_caterva
    losses: list[str] = []
    with logged("cfgrib", losses):
        sets = cfgrib.open_datasets(place, backend_kwargs={"indexpath": ""})
    names: list[str] = []
    for ds in sets:
        kinds = {str(v.attrs.get("GRIB_typeOfLevel", "data")) for v in ds.data_vars.values()}
        name = "_".join(sorted(kinds))
        names.append(name if name not in names else f"{name}_{len(names)}")
    for ds, name in zip(sets, names, strict=True):
        words = {"group": name} if len(sets) > 1 else {}
        to_caterva(ds, path, mode="w" if ds is sets[0] else "a", **words)
    return losses


def _part(found: Contents, key: str | None, place: str) -> Contents:
    """Return the array or group with a key."""
    name = (key or "/").strip("/")
    if not name:
        return found
    about = (f"/{name}:", f"/{name}/")
    losses = [s for s in found.losses if not s.startswith("/") or s.startswith(about)]
    if name in found.arrays:
        return Contents({name.rpartition("/")[2]: found.arrays[name]}, {"": {}}, losses)
    below = name + "/"
    part = Contents(
        {k[len(below) :]: v for k, v in found.arrays.items() if k.startswith(below)},
        {k[len(below) :]: v for k, v in found.groups.items() if (k + "/").startswith(below)},
        losses,
    )
    if part.arrays or name in found.groups:
        return part
    for loss in losses:
        if loss.startswith(about[0]):
            raise make(Status.EUNSUPPORTED, 0, -1, f"{shown(place)}: {loss}", place)
    raise make(Status.ENOTFOUND, 0, -1, f"{shown(place)} has no array or group /{name}", place)


def _is_tree(found: Contents, target: str) -> bool:
    if target.endswith((".b2d", ".b2z")):
        return True
    if target.endswith(".zarr"):
        is_one = len(found.arrays) == 1 and not any(found.groups)
        return not (is_one and "data" in found.arrays)
    return False


def _one(found: Contents, place: str) -> tuple[str, Variable]:
    if len(found.arrays) == 1:
        return next(iter(found.arrays.items()))
    names = ", ".join(f"/{k}" for k in list(found.arrays)[:8])
    message = f"{shown(place)} has {len(found.arrays)} arrays"
    if names:
        message += f" ({names}): name one as FILE::/NAME, or convert them to a .b2z"
    raise make(Status.EINVAL, 0, -1, message, place)


@contextlib.contextmanager
def _beside(target: str) -> Iterator[str]:
    """Create a hidden folder beside the target, and delete it at the end."""
    folder, name = os.path.split(target.rstrip("/"))
    try:
        beside = tempfile.TemporaryDirectory(prefix=f".{name[:200]}.tmp-", dir=folder)
    except OSError as error:  # which names the hidden folder
        status = Status.ENOTFOUND if error.errno == errno.ENOENT else Status.EIO
        message = f"cannot create {shown(target)}: {error.strerror}"
        raise make(status, error.errno or 0, -1, message, target) from None
    with beside as hidden:
        yield hidden


def _install(inner: str, target: str, overwrite: bool) -> None:
    """Give a finished tree its name, or pack it."""
    if target.endswith(".b2d") and overwrite and os.path.lexists(target):
        _program.run(["convert", "--force", "--", inner, target], target)
        return
    if target.endswith(".b2d"):
        os.rename(inner, target)
        return
    with open_tree(inner) as tree:
        tree.pack(target, overwrite=overwrite, zarr=target.endswith(".zarr"))


def _by_package(
    engine: Engine,
    place: str,
    target: str,
    dtype: npt.DTypeLike | None,
    options: dict[str, Any],
    flags: dict[str, bool],
    progress: _options.Progress | None,
    to: str | None,
) -> list[str]:
    path, key = split_url(place)
    overwrite, strict = flags["overwrite"], flags["strict"]
    direct = to is None and target.endswith(_DIRECT)
    more = ["-f"] * overwrite + ["--strict"] * strict + ["--to", to or ""] * (to is not None)
    with contextlib.ExitStack() as stack:
        hidden = stack.enter_context(_beside(target))
        inner = os.path.join(hidden, "tree.b2d")
        if engine == "cfgrib":
            with _blaming(place):
                losses = _write_grib(path, inner)
            _check_losses(Contents(losses=losses), place, strict)
            if key is not None or not (direct and not target.endswith(".b2nd")):
                words = ["convert", *more, "--", f"{inner}::{key or '/'}", target]
                return losses + _program.run(words, target)
            _install(inner, target, overwrite)
            return losses
        with _blaming(place):
            found = READERS[engine](stack, path)
        found = _part(found, key, place)
        _check_losses(found, place, strict)
        sizes = (
            int(np.prod(v.items.shape, dtype=np.int64)) * v.items.dtype.itemsize
            for v in found.arrays.values()
        )
        steps = _Steps(progress, sum(sizes), place, target)
        if direct and not _is_tree(found, target):
            outer = target if not target.endswith(".zarr") else os.path.join(hidden, "a.b2nd")
            whole = options | {"overwrite": overwrite} if outer == target else options
            _write_array(found, outer, dtype, whole, steps, flags)
            if outer != target:
                with open_any(outer) as array:
                    array.copy(target, zarr=True, overwrite=overwrite).close()
        elif direct:
            if dtype is not None:
                raise TypeError("dtype is for one array: name it as FILE::/NAME")
            _write_tree(found, inner, options, steps, flags)
            _install(inner, target, overwrite)
        else:
            if len(found.arrays) == 1 and not any(found.groups):
                inner = os.path.join(hidden, "array.b2nd")
                _write_array(found, inner, dtype, {}, steps, flags)
            else:
                _write_tree(found, inner, {}, steps, flags)
            return found.losses + _program.run(["convert", *more, "--", inner, target], target)
        return found.losses


def plan(place: str, engine: Engine) -> list[str]:
    """Return a line for each array that a package reads: name, shape and dtype."""
    path, key = split_url(place)
    if engine not in READERS:
        message = f"{shown(place)}: what {engine} reads is only known after it was read"
        raise make(Status.EUNSUPPORTED, 0, -1, message, place)
    with contextlib.ExitStack() as stack, _blaming(place):
        found = _part(READERS[engine](stack, path), key, place)
        return [f"{k}  {v.items.shape} {v.items.dtype}" for k, v in found.arrays.items()]


# ---- The program --------------------------------------------------------------------------


def _arguments(options: dict[str, Any], dtype: npt.DTypeLike | None) -> list[str]:
    words = []
    for name in ("chunks", "blocks"):
        if options.get(name) is not None:
            words += [f"--{name}", ",".join(map(str, options[name]))]
    for name in ("codec", "level", "threads"):
        if options.get(name) is not None:
            words += [f"--{name}", str(options[name])]
    if options.get("filters") is not None:
        given = options["filters"]
        text = given if isinstance(given, str) else ",".join(map(str, given))
        words += ["--filters", text or "none"]
    if dtype is not None:
        words += ["--astype", np.dtype(dtype).str]
    return words


# ---- Conversions --------------------------------------------------------------------------


@contextlib.contextmanager
def _source(source: Any) -> Iterator[str]:
    """Return the place of a source; arrays in memory and views are stored in a file first."""
    if isinstance(source, Tree | Group):
        tree = source.tree
        if tree.writable:
            tree.commit()
        yield tree.path if source.name == "/" else f"{tree.path}::{source.name}"
    elif isinstance(source, Array) and source.path is not None and not source.writable:
        yield source.path
    elif isinstance(source, Array | View | np.ndarray):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "data.b2nd")
            save(path, source, durability="none")
            yield path
    else:
        yield place_of(source)


def _check_places(place: str, target: str, overwrite: bool) -> None:
    path = split_url(place)[0]
    if not is_remote(path) and not os.path.lexists(path):
        hint = ": a key begins with a slash, FILE::/NAME" if "::" in path else ""
        raise make(Status.ENOTFOUND, 2, -1, f"{shown(path)} does not exist{hint}", path)
    if is_remote(target):
        message = f"{shown(target)} is a URL: convert to a file, and publish that"
        raise make(Status.EUNSUPPORTED, 0, -1, message, target)
    if os.path.lexists(target) and not overwrite:
        message = f"{shown(target)} exists already: overwrite=True replaces it"
        raise make(Status.EEXIST, 17, -1, message, target)


def convert(source: Source, target: Path, **options: Unpack[Converting]) -> None:
    """Convert a file between Caterva and HDF5, NetCDF, Zarr, NIfTI, NRRD, TIFF, npz and others.

    The names decide the formats, as for ``caterva convert``, which this runs. Items, dtypes,
    dimensions, attributes, units, spacing and affines travel as docs/conventions.md describes.
    FITS, GRIB, MRC, DICOM, OME-TIFF, Zarr behind URLs and Zarr with codecs that the program
    lacks are read by Python packages, chunk by chunk; so are HDF5 and TIFF if the program has
    no plug-in for them.

    Parameters
    ----------
    source
        A path; ``"in.h5::/group/name"`` is one array or group of a file; a folder of DICOM
        files; the URL of a Zarr store; or an open `Array`, `View`, `Tree`, `Group` or NumPy
        array. Uncommitted changes of a tree are committed first.
    target
        ``.b2nd``: one array. ``.b2z`` or ``.b2d``: all groups and arrays. ``.zarr``: a Zarr
        array or hierarchy. ``.h5``, ``.nc``, ``.nii.gz``, ``.nrrd``, ``.tif``, ``.npz``,
        ``.npy`` and others: a file of that format. It appears when it is complete.
    overwrite
        Replace an existing target.
    strict
        Fail if the target would lack something, before anything is written where possible.
        Otherwise each such thing is a `LossWarning`.
    verify
        Read the target again and compare every item.
    resume
        Keep the unfinished target as ``target.partial...`` after an interruption, and go on
        with it in the next call. Not for formats that Python packages read.
    keep_chunks
        To HDF5: move the compressed chunks; readers need the Blosc2 filter (hdf5plugin).
    dtype
        Convert the items of one array.
    chunks, blocks, codec, level, filters
        Of the new array, or arrays, as in `create`.
    memory
        Maximum size in bytes of the items in transfer; None is 256 MiB. Python packages take 64
        MiB and what they need to read one of their chunks.
    threads
        Maximum number of threads; 0 is all cores.
    engine
        What reads the source: ``"program"`` or the name of a package; None chooses.
    progress
        Function ``(done, total)``, called with decoded bytes in this thread, or ``"tqdm"``;
        returning a true value stops the call. `total` can grow if there are several arrays.
        After a stop, or Ctrl-C, the target does not exist, or it is complete.

    Raises
    ------
    FileNotFoundError
        If the source, its key or the folder of the target does not exist.
    FileExistsError
        If the target exists and `overwrite` is False.
    NotImplementedError
        If the source has no known format or an unsupported feature, if what reads it is not
        installed (the message names the package), or with `strict`.
    CorruptError
        If the source is damaged, or `verify` finds a difference.
    ValueError
        If several arrays would become one, or options contradict each other.

    Notes
    -----
    May be called from any thread. KeyboardInterrupt stops it. After any exception the target is
    as before, and nothing half-made is left, except with `resume`; or it is complete, if the
    last report of `progress` raised.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> np.savez("two.npz", t=np.arange(6.0).reshape(2, 3), n=[1, 2])
    >>> caterva.convert("two.npz", "two.b2z", overwrite=True)
    >>> caterva.open("two.b2z::/t")[1]
    array([3., 4., 5.])
    >>> caterva.convert("two.b2z::/t", "t.npy", overwrite=True)
    """
    run(source, target, options)


_FLAGS = ("overwrite", "strict", "verify", "resume", "keep_chunks")


def run(
    source: Source,
    target: Path,
    options: Converting,
    formats: tuple[str, ...] = (),
    to: str | None = None,
    depth: int = 3,
) -> None:
    """Convert; the source must have one of the formats, and the target gets the format `to`.
    Warnings are about the caller `depth` frames above."""
    asked: dict[str, Any] = {**options}
    flags = {k: bool(_options.flag_of(asked.pop(k, False), k)) for k in _FLAGS}
    report = _options.progress_of(asked.pop("progress", None))
    dtype, memory = asked.pop("dtype", None), asked.pop("memory", None)
    if memory is not None and _options._int_of(memory, "memory") < 1:
        raise ValueError(f"memory is a number of bytes, not {memory}")
    engine = asked.pop("engine", None)
    asked = {k: v for k, v in asked.items() if v is not None}
    if unknown := asked.keys() - Converting.__annotations__.keys():
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
    for name in ("chunks", "blocks"):
        if name in asked:
            if isinstance(asked[name], SupportsIndex):
                raise TypeError(f"{name} are a length for each axis, not {asked[name]!r}")
            asked[name] = _options.shape_of(asked[name], name)
    place_to = place_of(target)
    if to is None and "." not in os.path.basename(place_to.rstrip("/")):
        message = (
            f"{shown(place_to)}: the end of the name says what it becomes: .b2nd, .b2z, .h5"
        )
        raise make(Status.EINVAL, 0, -1, message, place_to)
    named = next((f for f, ends in _TARGETS.items() if place_to.rstrip("/").endswith(ends)), to)
    if to is not None and named is not None and named != to:
        titles = f"a file of {_TITLES[named]}, not of {_TITLES[to]}"
        message = f"{shown(place_to)} has the name of {titles}"
        raise make(Status.EINVAL, 0, -1, message, place_to)
    with _source(source) as place:
        _check_places(place, place_to, flags["overwrite"])
        form = format_of(place)
        if formats and form not in formats:
            what = "has no known format" if form is None else f"is a file of {_TITLES[form]}"
            message = f"{shown(place)} {what}, not of {_TITLES[formats[0]]}"
            raise make(Status.EINVAL, 0, -1, message, place)
        chosen = engine or engine_of(place, form)
        if chosen not in (*READERS, "cfgrib", "program"):
            raise ValueError(f"there is no engine {engine!r}")
        words = [f"--{k.replace('_', '-')}" for k, v in flags.items() if v and k != "overwrite"]
        words += ["--force"] * flags["overwrite"] + _arguments(asked, dtype)
        words += [] if memory is None else ["--memory", str(memory)]
        words += [] if to is None else ["--to", to]
        if chosen != "program":
            if flags["resume"]:
                raise make(Status.EINVAL, 0, -1, f"{chosen} cannot resume", place)
            losses = _by_package(chosen, place, place_to, dtype, asked, flags, report, to)
        elif form == "zarr" and engine is None and not flags["resume"]:
            losses = _zarr(place, place_to, words, dtype, asked, flags, report, to)
        else:
            line = ["convert", *words, "--", place, place_to]
            losses = _program.run(line, place, report, place_to)
    for loss in losses:
        warnings.warn(loss, LossWarning, stacklevel=depth)


def _zarr(
    place: str,
    target: str,
    words: list[str],
    dtype: Any,
    options: dict[str, Any],
    flags: dict[str, bool],
    progress: _options.Progress | None,
    to: str | None,
) -> list[str]:
    """Convert a local Zarr store; zarr-python, if installed, reads what the program cannot."""
    strict = words if flags["strict"] else [*words, "--strict"]
    try:
        return _program.run(["convert", *strict, "--", place, target], place, progress, target)
    except UnsupportedError:
        with contextlib.suppress(ImportError):
            import zarr  # noqa: F401

            return _by_package("zarr", place, target, dtype, options, flags, progress, to)
    return _program.run(["convert", *words, "--", place, target], place, progress, target)
