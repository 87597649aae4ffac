"""Readers of other formats by Python packages, each imported when it is first needed.

A reader describes a file as groups, arrays and attributes in the form of docs/conventions.md.
Items are read later, chunk by chunk.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _boxes
from ._errors import CorruptError, NotFoundError, Status, UnsupportedError, make
from ._filling import SLAB_BYTES
from ._shown import shown
from ._sources import SPOKEN

Items: TypeAlias = npt.NDArray[Any]
Attrs: TypeAlias = dict[str, Any]

RESERVED = {  # attributes of arrays that have a meaning of their own
    "_caterva", "_caterva_convert", "attrs", "dims", "dimension_names", "_ARRAY_DIMENSIONS",
}  # fmt: skip


@dataclass
class Variable:
    """An array of a file: anything with shape, dtype and indexing by slices."""

    items: Any
    dims: Sequence[str | None] | None = None
    attrs: Attrs = field(default_factory=dict)
    chunks: tuple[int, ...] | None = None  # of the file, which are cheapest to read
    fill_value: Any = None


@dataclass
class Contents:
    """Arrays and groups by their keys, ``group/name``; the file itself is the group ``""``."""

    arrays: dict[str, Variable] = field(default_factory=dict)
    groups: dict[str, Attrs] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)  # of members that are left out

    def lose(self, key: str, what: str) -> None:
        """Add a sentence about what is left out of a member, or about all of it."""
        text = f"/{key}: {what}".encode("utf-8", "backslashreplace").decode()
        self.losses.append("".join(c if c >= " " else f"\\x{ord(c):02x}" for c in text))

    @contextmanager
    def leaving_out(self, key: str, part: str | None = None) -> Iterator[None]:
        """Leave out a member, or a part of it, if a package cannot read it."""
        try:
            yield
        except (MemoryError, CorruptError):
            raise
        except Exception as error:
            if part is None:
                self.failures.append(error)
            reason = str(error) or type(error).__name__
            self.lose(key, reason if part is None else f"{part}: {reason}")

    def complete(self) -> Contents:
        """Return the contents; if no array could be read, raise what the package raised."""
        if self.failures and not self.arrays:
            raise self.failures[0]
        return self

    def unique(self, name: str) -> str:
        """Return a name that no member has, with a number if necessary."""
        n, name = 1, name.replace("/", "_").lstrip(".") or "data"
        unique = name
        while unique in self.arrays or unique in self.groups:
            n += 1
            unique = f"{name}_{n}"
        return unique

    def add(self, name: str, variable: Variable) -> None:
        """Add an array; a number makes its name unique."""
        self.arrays[self.unique(name)] = variable


@dataclass
class Lazy:
    """An array whose items a function makes of those of another one, box by box."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[Any], Any]

    def __getitem__(self, box: Any) -> Items:
        return np.asarray(self.read(box), self.dtype)


def need(module: str, package: str, place: str) -> Any:
    """Import a module; UnsupportedError says what to install if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise
        message = f"{shown(place)} is read by {package}, which is not installed"
        message += f": pip install {package}"
        raise make(Status.EUNSUPPORTED, 0, -1, message, place) from None


def boxes(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> Iterator[Any]:
    """Iterate over slabs of whole chunks with at most 64 MiB."""
    budget = SLAB_BYTES // max(1, itemsize)
    slab = _boxes.slab_shape(tuple(shape), tuple(chunks), budget)
    return _boxes.iter_boxes(..., tuple(shape), slab)


_PYTHONS = (np.float64, np.int64, np.bool_, np.complex128)  # types of Python's numbers


def plain(value: Any) -> Any:
    """Return a value that an attribute can hold; NumPy's numbers keep their type."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OTU":
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "US" and value.ndim == 0:
            return value.item()
        is_python = value.ndim == 0 and value.dtype in _PYTHONS
        return value.item() if is_python else value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | str | bytes | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    return str(value)


# ---- Texts of any length ------------------------------------------------------------------


def texts(
    x: Any, shape: tuple[int, ...], chunks: tuple[int, ...], is_text: bool = True
) -> Variable:
    """Describe an array of str, or of bytes, of any length. It is read twice: the first time to
    find the longest one."""
    width = 1
    for box in boxes(shape, chunks, 64):
        for text in np.asarray(x[box], object).flat:
            width = max(width, len(text or ""))
    dtype = np.dtype(f"{'U' if is_text else 'S'}{width}")

    def read(box: Any) -> Any:
        found = np.asarray(x[box], object)
        return np.asarray([t or dtype.type() for t in found.flat], dtype).reshape(found.shape)

    attrs = {"_vlen": "text" if is_text else "bytes"}
    return Variable(Lazy(shape, dtype, read), attrs=attrs, chunks=chunks)


# ---- Zarr ---------------------------------------------------------------------------------


def read_zarr(stack: ExitStack, place: str) -> Contents:
    """Read Zarr, also behind URLs, by zarr-python: all its codecs."""
    zarr = need("zarr", "zarr", place)
    root = zarr.open(place, mode="r")
    found = Contents()
    if not hasattr(root, "members"):
        found.groups[""] = {}
        found.arrays["data"] = _checked(stack, place, _zarr_variable(root, "data", found))
        return found
    found.groups[""] = plain(dict(root.attrs))
    for key, node in root.members(max_depth=None):
        with found.leaving_out(key):
            if hasattr(node, "members"):
                found.groups[key] = plain(dict(node.attrs))
            else:
                inner = f"{place.rstrip('/')}/{key}"
                found.arrays[key] = _checked(stack, inner, _zarr_variable(node, key, found))
    return found


def _checked(stack: ExitStack, place: str, v: Variable) -> Variable:
    """Let this package read the items of an array of its own behind a URL: zarr-python does not
    know its checksums."""
    from ._functions import open as open_any

    if place.partition("://")[0] in SPOKEN:
        with suppress(UnsupportedError, NotFoundError):
            v.items = stack.enter_context(open_any(place))
    return v


def _zarr_variable(array: Any, key: str, found: Contents) -> Variable:
    attrs = plain(dict(array.attrs))
    dims = getattr(array.metadata, "dimension_names", None)
    given = attrs.get("_ARRAY_DIMENSIONS")  # if it is no list of names, it is a loss
    is_list = isinstance(given, list) and len(given) == array.ndim
    is_named = is_list and all(d is None or isinstance(d, str) for d in given)
    if is_named and (dims is None or list(dims) == given):
        dims = attrs.pop("_ARRAY_DIMENSIONS")
    chunks = getattr(array, "shards", None) or array.chunks
    if array.dtype.kind in "OT":
        text = texts(array, array.shape, chunks)
        return Variable(text.items, dims, attrs | text.attrs, chunks)
    fill = array.fill_value
    native = array.dtype.newbyteorder("=")
    is_old = array.metadata.zarr_format == 2 and "_ARRAY_DIMENSIONS" in array.attrs
    if "_FillValue" in attrs:
        attrs["_FillValue"] = _zarr_missing(attrs["_FillValue"], native)
    elif is_old and fill is not None and native.kind in "iufc":
        attrs["_FillValue"] = native.type(fill)
    return Variable(array, dims, attrs, chunks, fill)


def _zarr_missing(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the item of an attribute `_FillValue`: floats are base64 in xarray's stores."""
    import base64
    import struct

    def number(text: Any) -> Any:
        try:
            return struct.unpack("<d", base64.b64decode(text, validate=True))[0]
        except (TypeError, ValueError, struct.error):
            return float(text)

    try:
        if dtype.kind == "f":
            return dtype.type(number(value))
        if dtype.kind == "c":
            return dtype.type(complex(*map(number, value)))
        return dtype.type(value) if dtype.kind in "iub" else value
    except (TypeError, ValueError, OverflowError):
        return value


# ---- TIFF and OME-TIFF ----------------------------------------------------------------------


def read_tiff(stack: ExitStack, place: str) -> Contents:
    """Read TIFF, OME-TIFF and what else tifffile reads: series with axes, and pyramids."""
    tifffile = need("tifffile", "tifffile", place)
    zarr = need("zarr", "zarr", place)
    found = Contents(groups={"": {}})
    stack.enter_context(logged("tifffile", found.losses))
    file = stack.enter_context(tifffile.TiffFile(place))
    sizes = _ome_sizes(file.ome_metadata) if file.is_ome else []
    all_series = file.series
    for loss in found.losses:
        if re.search("invalid page offset|TiffTag 270 .*invalid value offset", loss):
            raise make(Status.ECORRUPT, 0, -1, f"{shown(place)} ends early: {loss}", place)
    for i, series in enumerate(all_series):
        name = "data" if len(all_series) == 1 else series.name or f"series{i}"
        with found.leaving_out(name):
            attrs = _tiff_attributes(file, series, sizes[i] if i < len(sizes) else {})
            for level, page in enumerate(series.levels):
                _check_pages(file, page, place, found.losses)
                array = zarr.open(series.aszarr(level=level), mode="r")
                if hasattr(array, "members"):
                    array = array["0"]
                dims = [{"S": "sample", "Q": None}.get(a, a.lower()) for a in page.axes]
                own = dict(attrs)
                if "spacing" in own:
                    ratio = [a / b for a, b in zip(series.shape, page.shape, strict=True)]
                    own["spacing"] = own["spacing"] * ratio
                chunks = tuple(map(min, array.chunks, array.shape))
                found.add(name if level == 0 else f"{name}_level{level}",
                          Variable(array, dims, own, chunks))  # fmt: skip
    return found.complete()


@contextmanager
def logged(name: str, losses: list[str]) -> Iterator[None]:
    """Add what a package only logs, such as damaged tags and pages that it skips, to losses."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if threading.get_ident() == thread:
                losses.append(f"{name}: {record.getMessage()}")

    thread = threading.get_ident()
    handler = Handler(logging.WARNING)
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _check_pages(file: Any, series: Any, place: str, losses: list[str]) -> None:
    """Refuse a file that ends early, whose pages tifffile would read as zeros."""
    missing = 0
    for n, page in enumerate(series.pages):
        if page is None:
            missing += 1
        elif any(
            at + size > file.filehandle.size
            for at, size in zip(page.dataoffsets, page.databytecounts, strict=True)
        ):
            message = f"{shown(place)} ends early: page {n} is behind its end"
            raise make(Status.ECORRUPT, 0, -1, message, place)
    if missing:
        losses.append(f"{missing} pages are not in the file: their items are zeros")


def _ome_sizes(text: str) -> list[dict[str, tuple[float, str]]]:
    """Return the physical sizes of the axes of each image, and their units."""
    from xml.etree import ElementTree

    found = []
    for pixels in ElementTree.fromstring(text).iter():
        if pixels.tag.rpartition("}")[2] != "Pixels":
            continue
        sizes = {}
        for axis, key, unit in (("X", "PhysicalSizeX", "µm"), ("Y", "PhysicalSizeY", "µm"),
                                ("Z", "PhysicalSizeZ", "µm"),
                                ("T", "TimeIncrement", "s")):  # fmt: skip
            if key in pixels.attrib:
                sizes[axis] = float(pixels.attrib[key]), pixels.get(f"{key}Unit", unit)
        found.append(sizes)
    return found


def _tiff_attributes(file: Any, series: Any, sizes: dict[str, tuple[float, str]]) -> Attrs:
    attrs: Attrs = {}
    page = series.keyframe
    if page.description:
        attrs["description"] = page.description
    imagej = file.imagej_metadata if series.kind == "imagej" else None
    sizes = dict(sizes)
    if imagej and not sizes:
        unit = str(imagej.get("unit", "pixel"))
        unit = {"\\u00B5m": "µm", "micron": "µm", "um": "µm"}.get(unit, unit)
        if "spacing" in imagej:
            sizes["Z"] = float(imagej["spacing"]), unit
        if "finterval" in imagej:
            sizes["T"] = float(imagej["finterval"]), "s"
        for axis, tag in (("X", "XResolution"), ("Y", "YResolution")):
            if tag in page.tags and page.tags[tag].value[0]:
                n, d = page.tags[tag].value
                sizes[axis] = d / n, unit
    if sizes:
        attrs["spacing"] = np.array([sizes.get(a, (math.nan, ""))[0] for a in series.axes])
        attrs["axis_units"] = [sizes.get(a, (math.nan, ""))[1] for a in series.axes]
    attrs["tiff"] = {
        tag.name: plain(tag.value)
        for tag in page.tags
        if tag.count <= 1024 and not _is_layout(tag.name)
    }
    return attrs


def _is_layout(name: str) -> bool:
    words = ("Offsets", "ByteCounts", "ImageWidth", "ImageLength", "ImageDescription", "Tile",
             "RowsPerStrip", "SubIFDs", "IFD", "JPEGTables")  # fmt: skip
    return any(word in name for word in words)


# ---- FITS ---------------------------------------------------------------------------------

_STRUCTURE = {
    "SIMPLE",
    "XTENSION",
    "BITPIX",
    "EXTEND",
    "PCOUNT",
    "GCOUNT",
    "TFIELDS",
    "END",
    "",
}


def read_fits(stack: ExitStack, place: str) -> Contents:
    """Read FITS by astropy: images as they are stored, tables as one array for each column."""
    fits = need("astropy.io.fits", "astropy", place)
    hdus = stack.enter_context(fits.open(place, mode="denywrite", do_not_scale_image_data=True))
    found = Contents(groups={"": {}})
    images = [hdu for hdu in hdus if hdu.is_image and hdu.header.get("NAXIS", 0) > 0]
    for i, hdu in enumerate(hdus):
        name = "data" if len(images) == 1 and hdu in images else hdu.name or f"hdu{i}"
        with found.leaving_out(name):
            hdu.verify("silentfix")
            if hdu.is_image and hdu not in images:
                found.groups[""] |= _header(hdu.header)
            elif hdu.is_image:
                found.add(name, _fits_image(hdu))
            elif hasattr(hdu, "columns"):
                _fits_table(found, hdu, found.unique(name))
            else:
                found.lose(name, f"an HDU of the type {type(hdu).__name__}")
    at = hdus[-1].fileinfo()
    at["file"].seek(at["datLoc"] + at["datSpan"])
    if at["file"].read(8) == b"XTENSION":
        message = f"{shown(place)} ends early, in the header of the HDU {len(hdus)}"
        raise make(Status.ECORRUPT, 0, -1, message, place)
    return found.complete()


def _header(header: Any) -> Attrs:
    """Return the cards of a header; the text of a card's comment is in `fits_comments`."""
    cards: Attrs = {}
    comments = {}
    for card in header.cards:
        key = card.keyword
        if (
            key in _STRUCTURE
            or (key.startswith("NAXIS") and key[5:].isdigit())
            or key == "NAXIS"
        ):
            continue
        if key in ("COMMENT", "HISTORY"):
            cards.setdefault(key, []).append(str(card.value))
            continue
        cards[key] = plain(card.value) if type(card.value).__name__ != "Undefined" else None
        if card.comment:
            comments[key] = card.comment
    return {"fits": cards} | ({"fits_comments": comments} if comments else {})


def _fits_image(hdu: Any) -> Variable:
    header = hdu.header
    shape = tuple(hdu.shape)
    axes = range(len(shape), 0, -1)  # FITS counts from the fastest axis
    stored = np.dtype(
        {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}[header["BITPIX"]]
    )
    zero, scale = header.get("BZERO", 0), header.get("BSCALE", 1)
    attrs = _header(header)
    half = 2 ** (8 * stored.itemsize - 1)
    dtype, shift = stored, 0
    if scale == 1 and stored.kind == "i" and zero == half:
        dtype, shift = np.dtype(stored.str.replace("i", "u")), half
    elif scale == 1 and stored == np.uint8 and zero == -128:
        dtype, shift = np.dtype("i1"), 128
    elif (zero, scale) != (0, 1):
        attrs |= {"scale_factor": float(scale), "add_offset": float(zero)}

    def read(box: Any) -> Items:
        items = np.asarray(hdu.section[box] if shape else hdu.data, stored)
        if not shift:
            return items
        bits = np.dtype(f"u{stored.itemsize}")  # adding half the range flips the highest bit
        flipped = items.astype(stored.newbyteorder("=")).view(bits) ^ bits.type(shift)
        return np.asarray(flipped).view(dtype.newbyteorder("="))

    blank = header.get("BLANK")
    if blank is not None and stored.kind in "iu":
        native = dtype.newbyteorder("=")
        attrs["_FillValue"] = native.type(blank + (shift if native.kind == "u" else -shift))
    if header.get("BUNIT"):
        attrs["units"] = str(header["BUNIT"])
    if any(f"CDELT{n}" in header for n in axes):
        attrs["spacing"] = np.array([float(header.get(f"CDELT{n}", 1)) for n in axes])
        attrs["axis_units"] = [str(header.get(f"CUNIT{n}", "")) for n in axes]
    names = [str(header.get(f"CTYPE{n}", "")).split("-")[0].strip() or None for n in axes]
    dims = names if len(set(names)) == len(names) and any(names) else None
    chunks = tuple(hdu.tile_shape) if hasattr(hdu, "tile_shape") else None
    return Variable(Lazy(shape, dtype, read), dims, attrs, chunks)


def _fits_table(found: Contents, hdu: Any, name: str) -> None:
    found.groups[name] = _header(hdu.header)
    for column in hdu.columns:
        key = f"{name}/{column.name.replace('/', '_')}"
        with found.leaving_out(key):
            if hdu.header["NAXIS2"] > 0:
                items = np.asarray(hdu.data[column.name])
            else:
                items = np.zeros(0, hdu.columns.dtype[column.name])
            if items.dtype.hasobject:
                found.lose(key, "a column of any length")
                continue
            dims = ["row", *[None] * (items.ndim - 1)]
            attrs = {"units": column.unit} if column.unit else {}
            found.arrays[key] = Variable(items, dims, attrs)


# ---- MRC ----------------------------------------------------------------------------------


def read_mrc(stack: ExitStack, place: str) -> Contents:
    """Read MRC and CCP4 maps by mrcfile: the voxel size is in angstrom."""
    mrcfile = need("mrcfile", "mrcfile", place)
    is_packed = place.endswith((".gz", ".bz2"))
    file = stack.enter_context((mrcfile.open if is_packed else mrcfile.mmap)(place, mode="r"))
    header = file.header
    attrs: Attrs = {"mrc": {
        name: plain(header[name][()] if header[name].ndim == 0 else header[name])
        for name in header.dtype.names
        if header[name].dtype.names is None and not name.startswith(("nx", "ny", "nz", "extra"))
    }}  # fmt: skip
    attrs["mrc"]["cella"] = [float(header.cella[a]) for a in "xyz"]
    attrs["mrc"]["cellb"] = [float(header.cellb[a]) for a in ("alpha", "beta", "gamma")]
    attrs["mrc"]["start"] = [int(header[a]) for a in ("nxstart", "nystart", "nzstart")]
    attrs["mrc"]["label"] = [str(text) for text in file.get_labels()]
    attrs["mrc"]["origin"] = [float(header.origin[a]) for a in "xyz"]
    if file.extended_header is not None and file.extended_header.nbytes:
        attrs["mrc_extended_header"] = file.extended_header.tobytes()
    order = [int(header[n]) for n in ("maps", "mapr", "mapc")]
    axes = ["?xyz"[n] for n in order] if sorted(order) == [1, 2, 3] else ["z", "y", "x"]
    if file.is_image_stack():
        dims = ["image", *axes[1:]]
    elif file.is_volume_stack():
        dims = ["volume", *axes]
    else:
        dims = axes[-file.data.ndim :]
    size = file.voxel_size
    spacing = [float(size[d]) if d in ("x", "y", "z") else math.nan for d in dims]
    if any(s > 0 for s in spacing):
        attrs["spacing"] = np.array(spacing)
        attrs["axis_units"] = ["angstrom" if d in ("x", "y", "z") else "" for d in dims]
    return Contents({"data": Variable(file.data, dims, attrs)}, {"": {}})


# ---- DICOM --------------------------------------------------------------------------------


def read_dicom(stack: ExitStack, place: str) -> Contents:
    """Read a file, or all series of a folder, by pydicom."""
    pydicom = need("pydicom", "pydicom", place)
    found = Contents(groups={"": {}})
    series: dict[Any, list[tuple[Any, str]]] = {}
    names = [place]
    if os.path.isdir(place):
        names = sorted(os.path.join(at, n) for at, _, files in os.walk(place) for n in files)
    for name in names:
        try:
            header = pydicom.dcmread(name, stop_before_pixels=True, force=False)
        except pydicom.errors.InvalidDicomError:
            if name == place:
                raise make(Status.ECORRUPT, 0, -1, "it is not a DICOM file", place) from None
            found.losses.append(f"{os.path.relpath(name, place)}: not a DICOM file")
            continue
        except Exception as error:
            if name == place:
                raise
            found.losses.append(f"{os.path.relpath(name, place)}: {error}")
            continue
        if "Rows" not in header:
            found.losses.append(f"{os.path.basename(name)}: no pixels")
            continue
        key = [header.get(k) for k in ("SeriesInstanceUID", "Rows", "Columns", "BitsAllocated",
               "PixelRepresentation", "SamplesPerPixel", "NumberOfFrames")]  # fmt: skip
        key.append(
            tuple(round(float(v), 3) for v in header.get("ImageOrientationPatient") or ())
        )
        series.setdefault(tuple(key), []).append((header, name))
    if not series:
        raise make(Status.ENOTFOUND, 0, -1, f"{shown(place)} has no DICOM images", place)
    for files in series.values():
        number = files[0][0].get("SeriesNumber")
        name = "data" if len(series) == 1 else f"series{'' if number is None else number}"
        with found.leaving_out(name):
            found.add(name, _dicom_series(pydicom, files, found.losses))
    return found.complete()


def _dicom_series(pydicom: Any, files: list[tuple[Any, str]], losses: list[str]) -> Variable:
    first = files[0][0]
    normal = _normal(first)
    if normal is not None and all("ImagePositionPatient" in h for h, _ in files):
        towards = normal
        files.sort(key=lambda f: float(np.dot(towards, _floats(f[0].ImagePositionPatient))))
        first = files[0][0]
    else:
        files.sort(key=lambda f: (int(f[0].get("InstanceNumber") or 0), f[1]))
        first = files[0][0]
        normal = None
    frames = int(first.get("NumberOfFrames") or 1)
    rows, columns = int(first.Rows), int(first.Columns)
    samples = int(first.get("SamplesPerPixel") or 1)
    pixels = importlib.import_module("pydicom.pixels")

    def plane(n: int) -> Items:
        path, frame = files[n // frames][1], n % frames
        try:
            return np.asarray(pixels.pixel_array(path, index=frame))
        except (ValueError, AttributeError):  # deflated files, faulty tables of offsets
            items = pydicom.dcmread(path).pixel_array
            return np.asarray(items[frame] if frames > 1 else items)

    def read(box: Any) -> Items:
        box = box if isinstance(box, tuple) else (box,)
        start, stop, _ = box[0].indices(n_planes)
        return np.stack([plane(n)[box[1:]] for n in range(start, stop)])

    n_planes = len(files) * frames
    shape = (n_planes, rows, columns) + ((samples,) if samples > 1 else ())
    dims = ["z" if frames == 1 else "frame", "y", "x"] + ["sample"] * (samples > 1)
    attrs = _dicom_headers([h for h, _ in files])
    attrs |= _dicom_geometry([h for h, _ in files], normal, len(shape), losses)
    slope, intercept = ({float(h.get(k, d)) for h, _ in files} for k, d in
                        (("RescaleSlope", 1), ("RescaleIntercept", 0)))  # fmt: skip
    if len(slope) == len(intercept) == 1 and (slope, intercept) != ({1.0}, {0.0}):
        attrs |= {"scale_factor": slope.pop(), "add_offset": intercept.pop()}
    dtype = plane(0).dtype
    return Variable(Lazy(shape, dtype, read), dims, attrs, (1, *shape[1:]))


def _floats(values: Any) -> Items:
    return np.array([float(v) for v in values])


def _normal(header: Any) -> Items | None:
    if not header.get("ImageOrientationPatient"):
        return None
    row, column = np.split(_floats(header.ImageOrientationPatient), 2)
    return np.cross(row, column)


def _dicom_geometry(
    headers: list[Any], normal: Items | None, ndim: int, losses: list[str]
) -> Attrs:
    """Return spacing, and the affine from indices (z, y, x) to the space of NIfTI, in mm."""
    first = headers[0]
    if not first.get("PixelSpacing"):
        return {}
    between_rows, between_columns = _floats(first.PixelSpacing)
    step, gap = (
        None,
        float(first.get("SpacingBetweenSlices") or first.get("SliceThickness") or 1),
    )
    if normal is not None:
        places = np.array([_floats(h.ImagePositionPatient) for h in headers])
        if len(places) > 1:
            steps = np.diff(places, axis=0)
            step = (places[-1] - places[0]) / (len(places) - 1)
            gap = float(np.linalg.norm(step))
            if np.abs(steps - step).max() > 0.01 * max(gap, 1e-3):
                losses.append("the slices are not equally spaced: `dicom_slices` has positions")
                step = None
        else:
            step = normal * gap
    spacing = np.array([gap, between_rows, between_columns] + [math.nan] * (ndim - 3))
    out: Attrs = {"spacing": spacing, "axis_units": ["mm"] * 3 + [""] * (ndim - 3)}
    if step is not None:
        row, column = np.split(_floats(first.ImageOrientationPatient), 2)
        affine = np.eye(4)
        affine[:3, 0] = step
        affine[:3, 1] = column * between_rows
        affine[:3, 2] = row * between_columns
        affine[:3, 3] = _floats(first.ImagePositionPatient)
        affine[:2] *= -1  # DICOM's x is to the left, and y to the back
        out["affine"] = affine
    return out


def _dicom_headers(headers: list[Any]) -> Attrs:
    """Return elements that all files share, and lists of those that differ."""
    shared, differing = {}, {}
    tables = [_dicom_elements(h) for h in headers]
    for name in dict.fromkeys(n for t in tables for n in t):
        values = [t.get(name) for t in tables]
        if all(v == values[0] for v in values):
            shared[name] = values[0]
        else:
            differing[name] = values
    return {"dicom": shared} | ({"dicom_slices": differing} if differing else {})


def _dicom_elements(dataset: Any) -> Attrs:
    out: Attrs = {}
    for element in dataset:
        name = element.keyword or f"({element.tag.group:04x},{element.tag.element:04x})"
        value = element.value
        if element.VR == "SQ":
            out[name] = [_dicom_elements(item) for item in value]
        elif isinstance(value, bytes):
            out[name] = value
        elif isinstance(value, int | float):  # IS and DS are int and float, too
            out[name] = int(value) if isinstance(value, int) else float(value)
        elif isinstance(value, str):
            out[name] = str(value)
        elif isinstance(value, Sequence):
            kind = {"IS": int, "DS": float}.get(element.VR)
            out[name] = [kind(v) for v in value] if kind else plain(list(value))
        else:
            out[name] = None if value is None else str(value)
    return out
