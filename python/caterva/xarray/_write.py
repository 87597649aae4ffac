# mypy: allow-untyped-calls
"""Writing variables to a group of a tree."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from xarray import Variable, conventions
from xarray.backends.common import ArrayWriter, _encode_variable_name
from xarray.backends.locks import get_dask_scheduler

from .. import _caterva
from .._array import Array
from .._errors import StaleError
from .._group import Group
from .._places import split_url
from .._tree import Tree
from . import _fit, _items
from ._store import DIMENSIONS, FILTERS, UNLIMITED, CatervaStore, as_attribute

_OWN_WORDS = ("chunks", "blocks", "codec", "level", "filters", "dictionary")
_DROPPED = ("source", "original_shape", "preferred_chunks", "unlimited_dims", "char_dim_name")
_VALID = (*_OWN_WORDS, FILTERS, "chunksizes", "dtype", "_FillValue", *_DROPPED)
_GROWS_BY = 256  # length of an unlimited dimension for which chunks are chosen, at least


# ---- Writing items -----------------------------------------------------------------------


class Pending(NamedTuple):
    """Items of a Dask array, to be computed later, and where in the array they go."""

    items: Any
    key: str
    place: tuple[slice, ...]

    def add_to(self, writer: Writer, tree: Tree) -> None:
        """Add the items to the writer; StaleError if the array has become smaller."""
        array = tree._array(self.key)
        ends = [axis.stop for axis in self.place]
        if array.ndim != len(ends) or any(
            n > m for n, m in zip(ends, array.shape, strict=True)
        ):
            raise StaleError(
                f"{self.key} of {tree.path} has shape {array.shape}, but was larger when the "
                "data set was saved with compute=False"
            )
        writer.add(self.items, array, self.place)


class Writer(ArrayWriter):
    """Writes items in memory at once, and items of Dask arrays in `sync`.

    Dask's threads write into the arrays directly. Each worker of a process pool or cluster
    writes parts of its own, which are merged at the end.
    """

    def take(self) -> list[Pending]:
        """Remove and return what was recorded, to be written by another writer."""
        recorded = zip(self.sources, self.targets, self.regions, strict=True)
        pending = []
        for source, target, region in recorded:
            key, place = split_url(target.path)[1], region or map(slice, target.shape)
            pending.append(Pending(source, str(key), tuple(place)))
        self.sources, self.targets, self.regions = [], [], []
        return pending

    def sync(self, compute: bool = True, chunkmanager_store_kwargs: Any = None) -> Any:
        """Compute and write what was recorded."""
        if get_dask_scheduler() in (None, "threaded") or not self.sources:
            return super().sync(compute, chunkmanager_store_kwargs)
        _write_parts(self.sources, self.targets, self.regions)
        self.take()
        return None


def _write_parts(
    sources: Sequence[Any], targets: Sequence[Array], regions: Sequence[Any]
) -> None:
    """Let the workers compute and write all items in one run; if one of them fails, nothing is
    merged."""
    from dask.base import compute, optimize
    from dask.delayed import Delayed

    from ..dask import known, tokens_graph

    jobs = []
    try:
        lists = []
        for x, target, region in zip(optimize(*sources), targets, regions, strict=True):
            jobs.append(target.job())
            start = tuple(axis.start or 0 for axis in region or ()) or (0,) * x.ndim
            graph, last = tokens_graph(known(x), jobs[-1], start)
            lists.append(Delayed(last, graph, None, last[0]))
        tokens = compute(*lists, optimize_graph=False)
    except BaseException:
        for job in jobs:
            with contextlib.suppress(Exception):
                job.delete()
        raise
    for job, given in zip(jobs, tokens, strict=True):
        job.merge(given)


# ---- Options of new arrays -------------------------------------------------------------------


def _storage_of(
    variable: Variable, check: bool, unlimited: Iterable[Hashable]
) -> dict[str, Any]:
    """Return the options of the array, from the variable's encoding."""
    encoding = dict(variable.encoding)
    if check and (wrong := [k for k in encoding if k not in _VALID]):
        raise ValueError(
            f"unexpected encoding parameters for 'caterva': {wrong!r}. Valid encodings are: "
            f"{', '.join((*_OWN_WORDS, 'dtype', '_FillValue'))}"
        )
    words = {k: encoding[k] for k in _OWN_WORDS if encoding.get(k) is not None}
    if not check and not ("codec" in encoding and "level" in encoding):
        words = {}  # the encoding is from another format
    elif encoding.get(FILTERS) is not None:
        words.setdefault("filters", encoding[FILTERS])
    if encoding.get("chunksizes") is not None:  # NetCDF's word for chunks
        words.setdefault("chunks", tuple(encoding["chunksizes"]))
    moved = not check and encoding.get("original_shape", variable.shape) != variable.shape
    if moved or not variable.dims:
        words.pop("chunks", None)
        words.pop("blocks", None)
    growing = [dim in unlimited for dim in variable.dims]
    if "chunks" not in words and any(growing):
        words |= _growing_partition(variable, growing)
    return words


def _growing_partition(variable: Variable, growing: list[bool]) -> dict[str, Any]:
    """Choose chunks for the size that the array will grow to."""
    shape = tuple(
        max(n, _GROWS_BY) if grows else n
        for n, grows in zip(variable.shape, growing, strict=True)
    )
    chunks, blocks = _caterva.choose_partition(shape, variable.dtype.itemsize, None, None)
    return {"chunks": chunks, "blocks": blocks}


def _fill_of(variable: Variable) -> Any:
    """Return the fill value of the array: the CF fill value of numbers, or None."""
    fill = variable.attrs.get("_FillValue")
    if fill is None or variable.dtype.kind not in "iufc" or np.ndim(fill):
        return None
    return fill if np.can_cast(np.asarray(fill).dtype, variable.dtype, "same_kind") else None


# ---- The store -------------------------------------------------------------------------------


class Writing(CatervaStore):
    """A group of a tree that is open for writing.

    Parameters
    ----------
    group
        The group to write to.
    mode
        ``w``: variables replace existing ones. ``a``: the same, but dimensions keep their
        lengths. ``r+``: only existing variables.
    append_dim
        The dimension along which existing variables grow.
    region
        Slices of dimensions: the part of the arrays that is written.
    path
        Name of the tree in messages; None is its path.
    """

    __slots__ = ("_append_dim", "_mode", "_path", "_region")

    def __init__(
        self,
        group: Group,
        mode: str = "a",
        append_dim: Hashable | None = None,
        region: Mapping[Hashable, slice] | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(group)
        self._path = group.tree.path if path is None else path
        self._mode = mode
        self._append_dim = append_dim
        self._region = region

    # ---- Called by xarray ----------------------------------------------------------

    def encode(self, variables: Any, attributes: Any) -> Any:
        """Encode variables and attributes for storage."""
        encoded, attributes = super().encode(
            {k: _items.unbound(v) for k, v in variables.items()}, attributes
        )
        return {k: _items.encode(v, k) for k, v in encoded.items()}, attributes

    def encode_attribute(self, a: Any) -> Any:
        """Convert an attribute's value to one that can be stored."""
        return as_attribute(a)

    def set_attribute(self, k: str, v: Any) -> None:
        """Set an attribute of the group."""
        if k == UNLIMITED:
            raise ValueError(f"the attribute {k!r} is reserved for unlimited dimensions")
        self.group.attrs[k] = v

    def set_dimension(self, dim: Any, length: int, is_unlimited: bool = False) -> None:
        """Record an unlimited dimension in the group; arrays have the others."""
        if is_unlimited:
            known = list(self.group.attrs.get(UNLIMITED, ()))
            self.group.attrs[UNLIMITED] = [*known, dim] if dim not in known else known

    def get_dimensions(self) -> Any:
        """Return the dimensions of existing arrays that are not replaced."""
        return {} if self._mode == "w" else super().get_dimensions()

    def store(
        self,
        variables: Any,
        attributes: Any,
        check_encoding_set: Any = frozenset(),
        writer: Any = None,
        unlimited_dims: Any = None,
    ) -> None:
        """Write variables and attributes."""
        unlimited_dims = unlimited_dims or set()
        own = writer is None
        writer = Writer() if writer is None else writer
        there = set() if self._mode == "w" else set(self._members())
        old = {k for k in variables if _encode_variable_name(k) in there}
        self._check(variables, old)
        self._check_growth(there - set(map(_encode_variable_name, old)))
        kept = old if self._region is not None or self._append_dim is not None else set()
        _check_attributes({k: v for k, v in variables.items() if k not in kept})
        encoded, attributes = self.encode(
            {k: v for k, v in variables.items() if k not in kept}, attributes
        )
        if self._mode != "r+":
            self.set_attributes(attributes)
        self._set_lengths(encoded, unlimited_dims)
        for name, variable in self._as_stored({k: variables[k] for k in kept}).items():
            self._write_into(_encode_variable_name(name), variable, writer)
        for name, variable in encoded.items():
            check = name in check_encoding_set
            self._write_new(
                _encode_variable_name(name), variable, check, unlimited_dims, writer
            )
        if own:
            writer.sync()

    def _check(self, variables: Any, old: set[Any]) -> None:
        new = [k for k in variables if k not in old]
        if self._mode == "r+" and new:
            raise ValueError(
                f"variables {new!r} are not in {self._path}, and mode 'r+' creates none: "
                "use mode 'a'"
            )
        if self._append_dim is not None and self._append_dim not in self.get_dimensions():
            raise ValueError(
                f"append_dim={self._append_dim!r} is not a dimension of {self._path}, "
                f"which has {dict(self.get_dimensions())}"
            )

    def _check_growth(self, others: set[str]) -> None:
        """Refuse an append that would leave stored variables shorter than their dimension."""
        if self._append_dim is None:
            return
        short = [k for k in sorted(others) if self._append_dim in self.open_variable(k).dims]
        if short:
            raise ValueError(
                f"variables {short!r} of {self._path} have the dimension "
                f"{self._append_dim!r}, but the data set to append does not have them: all "
                "variables grow along it together"
            )

    def _set_lengths(self, encoded: Any, unlimited: Any) -> None:
        """Check that dimensions keep their lengths, except the one that grows."""
        grows = self._append_dim
        variables = {k: v for k, v in encoded.items() if grows is None or grows not in v.dims}
        self.set_dimensions(variables, unlimited_dims=unlimited)

    # ---- New arrays ------------------------------------------------------------------

    def _write_new(
        self, name: str, variable: Variable, check: bool, unlimited: Any, writer: Writer
    ) -> None:
        _check_name(name)
        if self._append_dim in variable.dims:
            raise ValueError(
                f"variable {name!r} is new, and cannot be appended along {self._append_dim!r}"
            )
        words = _storage_of(variable, check, unlimited)
        array = self.group.create_array(
            name,
            variable.shape,
            variable.dtype,
            fill_value=_fill_of(variable),
            dims=cast(tuple[str, ...], variable.dims),
            overwrite=True,
            **words,
        )
        _set_attributes(array, name, _typed(variable))
        if math.prod(variable.shape):
            writer.add(variable.data, array)

    # ---- Existing arrays ---------------------------------------------------------------

    def _as_stored(self, variables: dict[Any, Variable]) -> dict[Any, Variable]:
        """Encode variables as the existing ones of the same names are encoded; ValueError for
        items that these cannot hold."""
        stored = {k: self.open_variable(_encode_variable_name(k)) for k in variables}
        spans = {k: True for k, v in variables.items() if v.dtype.kind == "m"}
        decoded, _, _ = conventions.decode_cf_variables(
            dict(stored), {}, decode_timedelta=spans or None
        )
        fitted = {}
        for name, variable in variables.items():
            there = decoded[name]
            given = _aligned(name, variable, there.dims)
            encoded = _fit.Fitting(name, given, stored[name], there).variable(given)
            fitted[name] = _aligned(name, encoded, stored[name].dims)
        return fitted

    def _write_into(self, name: str, variable: Variable, writer: Writer) -> None:
        array = self._array(name)
        place = self._place(name, array, variable)
        if variable.dtype.kind in "US" and variable.dtype.itemsize > array.itemsize:
            array = self._widened(name, array, variable.dtype)
        if self._append_dim in variable.dims:
            axis = variable.dims.index(self._append_dim)
            shape = list(array.shape)
            shape[axis] += variable.shape[axis]
            array.resize(shape)
        if math.prod(variable.shape):
            writer.add(variable.data, array, place)

    def _place(self, name: str, array: Array, variable: Variable) -> tuple[slice, ...]:
        """Return where in the array the variable goes; ValueError if it does not fit."""
        place = []
        for dim, there, length in zip(variable.dims, array.shape, variable.shape, strict=True):
            region = (self._region or {}).get(dim, slice(None))
            if dim == self._append_dim:
                place.append(slice(there, there + length))
                continue
            start, stop, _ = region.indices(there)
            if stop - start != length:
                raise ValueError(
                    f"Unable to update size for existing dimension {dim!r} of variable "
                    f"{name!r} ({length} != {max(0, stop - start)})"
                )
            place.append(slice(start, stop))
        return tuple(place)

    def _widened(self, name: str, array: Array, dtype: np.dtype[Any]) -> Array:
        """Replace the array by one with room for longer texts."""
        items = array[...].astype(dtype)
        attributes = {key: array.attrs.raw(key) for key in array.attrs}
        wider = self.group.create_array(
            name, data=items, overwrite=True, chunks=array.chunks if array.ndim else None
        )
        for key, value in attributes.items():
            wider.attrs.set_raw(key, value)
        return wider


def _typed(variable: Variable) -> dict[Any, Any]:
    """Convert attributes that stand for items to the items' dtype, as CF requires."""
    attributes = dict(variable.attrs)
    for key in ("_FillValue", "missing_value"):
        value = attributes.get(key)
        if isinstance(value, int | float) and variable.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                typed = np.array(value).astype(variable.dtype)[()]
            if typed == value or value != value:
                attributes[key] = typed
    return attributes


def _set_attributes(array: Array, name: str, attributes: Mapping[Any, Any]) -> None:
    for key, value in attributes.items():
        if key in DIMENSIONS:
            raise ValueError(
                f"variable {name!r} has an attribute {key!r}, which is reserved for dimensions"
            )
        try:
            array.attrs[key] = as_attribute(value)
        except TypeError as error:
            raise TypeError(f"attribute {key!r} of variable {name!r}: {error}") from None
        except ValueError as error:
            error.add_note(f"attribute {key!r} of variable {name!r}")
            raise


def _check_attributes(variables: Mapping[Any, Variable]) -> None:
    """Refuse attributes that would make readers misinterpret the items."""
    for name, variable in variables.items():
        is_bytes = variable.dtype.kind == "S" or _items.kind_of(variable) == "bytes"
        for key in (_items.MARK, "_Encoding"):
            if key in variable.attrs and not (key == "_Encoding" and is_bytes):
                raise ValueError(
                    f"variable {name!r} has an attribute {key!r}, "
                    "which is reserved for text variables"
                )


def _check_name(name: str) -> None:
    if "/" in name:
        raise ValueError(f"variable {name!r} has a slash in its name, which is for groups")
    if name.startswith("."):
        raise ValueError(f"variable {name!r} has a name that begins with a dot: it is hidden")
    if name.startswith("__vlmeta__"):
        raise ValueError(f"variable {name!r} has a name that is reserved for attributes")


def _aligned(name: Any, variable: Variable, dims: tuple[Any, ...]) -> Variable:
    """Return the variable with its axes in the stored order."""
    if set(dims) != set(variable.dims):
        raise ValueError(
            f"variable {name!r} is stored with the dimensions {dims}, not {variable.dims}"
        )
    return variable.transpose(*dims)
