"""Dask arrays stored by many workers at once.

Each task writes a part of its own, aligned with the chunks or not; the client merges what
they wrote, and one commit makes all of it visible. Threads, processes and ``distributed``
alike; workers must reach the file by the path that the client has.

    caterva.dask.store(x, "stored.b2nd")
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

import dask.array as da
import numpy as np
from dask.base import compute as compute_now
from dask.base import optimize, tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from ._array import Array
from ._errors import NotFoundError, Status, refusal
from ._functions import create
from ._functions import open as open_array
from ._jobs import Job, Merged, Overlap, flat_tokens
from ._options import Handle, Path, Storage
from ._places import place_of, split_url

if TYPE_CHECKING:
    Region: TypeAlias = Sequence[slice] | slice | None

__all__ = ["store"]

FAN = 16  # lists of tokens that one task joins


# ---- What tasks do -----------------------------------------------------------------------


def write_part(job: Job, box: tuple[slice, ...], items: Any) -> bytes:
    """One block of the dask array, as a part; its token."""
    try:
        part = job.part()
    except NotFoundError:
        if not is_there(job.path):
            raise
        message = f"the job at {job.path} is over: what stores later is computed once"
        raise refusal(Status.ENOTFOUND, message, job.path) from None
    with part:
        part[box] = np.asarray(items)
    return part.token


def join_tokens(tokens: list[Any]) -> list[bytes]:
    """What some tasks of the tree gave, as one list."""
    return list(flat_tokens(tokens))


def merge_at(path: str, overlap: Overlap, tokens: list[Any]) -> Merged:
    """The end of a store whose client does not wait: merged and committed by a task."""
    with open_array(path, "r+") as array:
        return array.merge(tokens, overlap=overlap)


def read_box(path: str, box: tuple[slice, ...], merged: Any) -> Any:
    """What was stored, once it is."""
    with open_array(path) as array:
        return array[box]


# ---- Where it goes --------------------------------------------------------------------------


def boxes_of(chunks: tuple[tuple[int, ...], ...], start: tuple[int, ...]) -> dict[Any, Any]:
    """The box of each block, by the block's number."""
    edges = [
        [int(n) for n in np.cumsum((at, *lengths))]
        for at, lengths in zip(start, chunks, strict=True)
    ]
    return {
        number: tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, number, strict=True))
        for number in np.ndindex(*(len(lengths) for lengths in chunks))
    }


def start_of(region: Region, shape: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
    """Where the region begins, which must be as large as what is stored."""
    axes = (region,) if isinstance(region, slice) else tuple(region or ())
    axes += (slice(None),) * (len(shape) - len(axes))
    if len(axes) != len(shape) or not all(isinstance(axis, slice) for axis in axes):
        raise ValueError(
            f"a region is one slice for each of the {len(shape)} axes, not {region}"
        )
    ends = [axis.indices(n) for axis, n in zip(axes, shape, strict=True)]
    if any(step != 1 for _, _, step in ends):
        raise ValueError(f"the slices of a region have step 1: {region}")
    size = tuple(max(stop - start, 0) for start, stop, _ in ends)
    if size != lengths:
        raise ValueError(f"items of shape {lengths} do not fit a region of shape {size}")
    return tuple(start for start, _, _ in ends)


def axis_of(append_dim: int | str, array: Array) -> int:
    """The axis that grows, by number or by name."""
    if not isinstance(append_dim, str):
        if not -array.ndim <= append_dim < array.ndim:
            raise np.exceptions.AxisError(append_dim, array.ndim)
        return append_dim % array.ndim
    if append_dim not in array.dims:
        raise ValueError(f"{append_dim!r} is none of the dimensions {array.dims}")
    return array.dims.index(append_dim)


def growth(
    x: da.Array, array: Array, append_dim: int | str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where appended items begin, and the shape with them."""
    axis = axis_of(append_dim, array)
    n = array.shape[axis]
    lengths = tuple(n if d == axis else m for d, m in enumerate(array.shape))
    fits = x.ndim == array.ndim and all(
        d == axis or m == x.shape[d] for d, m in enumerate(lengths)
    )
    if not fits:
        raise ValueError(
            f"items of shape {x.shape} do not fit an array of shape {array.shape} along axis "
            f"{axis}"
        )
    shape = tuple(n + x.shape[d] if d == axis else m for d, m in enumerate(lengths))
    return tuple(n if d == axis else 0 for d in range(array.ndim)), shape


def is_there(place: Path) -> bool:
    """Whether something stands at a path, or in a tree."""
    whole = place_of(place)
    if split_url(whole)[1] is None or os.path.lexists(whole):
        return os.path.lexists(whole)
    try:
        open_array(place).close()
    except FileNotFoundError:
        return False
    return True


def opened_at(place: Path, options: dict[str, Any]) -> Array:
    """The array that is at a path, open for writing."""
    if new := options.keys() - Handle.__annotations__.keys():
        raise TypeError(
            f"{os.fsdecode(place)} is there already, and {', '.join(sorted(new))} is of new "
            "arrays: leave it out, or replace what is there with overwrite=True"
        )
    array: Any = open_array(place, "r+", **options)
    if not isinstance(array, Array):
        array.close()
        raise TypeError(f"{array.path} is a tree: name the array in it, as {array.path}::/name")
    return array


def target_of(x: da.Array, place: Path, anew: bool, options: dict[str, Any]) -> Array:
    """The array at a path, open for writing; a new one where there is none."""
    if not options.get("overwrite") and is_there(place):
        return opened_at(place, {k: v for k, v in options.items() if k != "overwrite"})
    if not anew:
        message = f"there is no array at {os.fsdecode(place)} to store a region in"
        raise refusal(Status.ENOTFOUND, message, place_of(place))
    return create(x.shape, x.dtype, place, **options)


# ---- The graph -----------------------------------------------------------------------------


def part_layer(x: da.Array, job: Job, start: tuple[int, ...], name: str) -> dict[Any, Any]:
    """A task for each block."""
    held = f"{name}-job"
    boxes = boxes_of(x.chunks, start)
    layer: dict[Any, Any] = {held: job}
    for i, (number, box) in enumerate(boxes.items()):
        layer[name, i] = (write_part, held, box, (x.name, *number))
    return layer


def tree_layer(parts: str, n: int, name: str) -> tuple[dict[Any, Any], Any]:
    """Tasks that join the tokens of `n` parts, and the key of the last one."""
    layer: dict[Any, Any] = {}
    keys: list[Any] = [(parts, i) for i in range(n)]
    level = 0
    while level == 0 or len(keys) > 1:
        groups = [keys[i : i + FAN] for i in range(0, len(keys), FAN)] or [[]]
        keys = [(name, level, i) for i in range(len(groups))]
        for key, group in zip(keys, groups, strict=True):
            layer[key] = (join_tokens, group)
        level += 1
    return layer, keys[0]


def tokens_graph(x: da.Array, job: Job, start: tuple[int, ...]) -> tuple[HighLevelGraph, Any]:
    """The graph of all parts, and the key of the list of their tokens."""
    mark = tokenize(x.name, bytes(job), start)
    parts, tree = f"caterva-part-{mark}", f"caterva-tokens-{mark}"
    layer = part_layer(x, job, start, parts)
    joined, last = tree_layer(parts, len(layer) - 1, tree)
    graph = HighLevelGraph(
        dict(x.dask.layers) | {parts: layer, tree: joined},
        dict(x.dask.dependencies) | {parts: set(x.__dask_layers__()), tree: {parts}},
    )
    return graph, last


def extend(graph: HighLevelGraph, name: str, layer: dict[Any, Any], on: str) -> HighLevelGraph:
    """The graph with one more layer."""
    return HighLevelGraph(
        dict(graph.layers) | {name: layer}, dict(graph.dependencies) | {name: {on}}
    )


def stored_later(
    x: da.Array, path: str, start: tuple[int, ...], graph: HighLevelGraph, last: Any
) -> da.Array:
    """What is stored, as an array whose blocks are read after the merge."""
    name = f"caterva-stored-{tokenize(last)}"
    layer = {
        (name, *number): (read_box, path, box, last)
        for number, box in boxes_of(x.chunks, start).items()
    }
    on = last if isinstance(last, str) else last[0]
    return da.Array(extend(graph, name, layer, on), name, x.chunks, dtype=x.dtype)


def stored_now(x: da.Array, path: str, start: tuple[int, ...]) -> da.Array:
    """What is stored, as an array whose blocks are read when they are wanted."""
    with open_array(path) as array:
        mark, dtype = tokenize(array, x.chunks, start), array.dtype
    name = f"caterva-stored-{mark}"
    layer = {
        (name, *number): (read_box, path, box, None)
        for number, box in boxes_of(x.chunks, start).items()
    }
    return da.Array(layer, name, x.chunks, dtype=dtype)


# ---- Storing ---------------------------------------------------------------------------------


def known(x: Any) -> da.Array:
    """A dask array whose blocks' shapes are known, optimized as its own compute does."""
    if not isinstance(x, da.Array):
        x = da.asarray(x)
    if any(np.isnan(n) for lengths in x.chunks for n in lengths):
        raise ValueError("the array has blocks of unknown shape: call its compute_chunk_sizes")
    (optimized,) = optimize(x)
    return optimized  # type: ignore[no-any-return]


def run(
    x: da.Array, job: Job, start: tuple[int, ...], overlap: Overlap, how: dict[str, Any]
) -> None:
    """Compute the parts, and merge their tokens."""
    graph, last = tokens_graph(x, job, start)
    (tokens,) = compute_now(Delayed(last, graph, None, last[0]), optimize_graph=False, **how)
    job.merge(tokens, overlap=overlap)


def undo(array: Array, job: Job, shape: tuple[int, ...]) -> None:
    """Remove the job of a store that failed, and what it has changed in the array, which had
    that shape."""
    with contextlib.suppress(Exception):
        if job._tried:  # to merge: what is pending is incomplete
            array.rollback()
        elif array.shape != shape:
            array.resize(shape)
    with contextlib.suppress(Exception):
        job.delete()


def store_now(
    x: da.Array, array: Array, start: tuple[int, ...], shape: Any, overlap: Overlap, how: Any
) -> str:
    """Write, merge and commit, or leave the array as it was; the array's path."""
    before, job = array.shape, None
    try:
        job = array.job(shape)
        run(x, job, start, overlap, how)
        array.commit()
    except BaseException:
        if job is not None:
            undo(array, job, before)
        raise
    return job.path


def defer(
    x: da.Array, array: Array, start: tuple[int, ...], shape: Any, overlap: Overlap
) -> tuple[HighLevelGraph, str]:
    """A job that outlives the handle, and the graph that writes, merges and commits."""
    if shape is not None:
        array.resize(shape)
    array.commit()
    job = array.job()
    path = job.path
    array.close()
    graph, last = tokens_graph(x, job, start)
    name = f"caterva-merged-{tokenize(last)}"
    return extend(graph, name, {name: (merge_at, path, overlap, last)}, last[0]), name


@overload
def store(
    x: da.Array, array: Array | Path, region: Region = None, *, compute: Literal[False],
    return_stored: Literal[False] = False, append_dim: int | str | None = None,
    overlap: Overlap = "error", compute_kwargs: dict[str, Any] | None = None,
    **options: Unpack[Storage],
) -> Delayed: ...  # fmt: skip
@overload
def store(
    x: da.Array, array: Array | Path, region: Region = None, *, compute: bool = True,
    return_stored: Literal[True], append_dim: int | str | None = None,
    overlap: Overlap = "error", compute_kwargs: dict[str, Any] | None = None,
    **options: Unpack[Storage],
) -> da.Array: ...  # fmt: skip
@overload
def store(
    x: da.Array, array: Array | Path, region: Region = None, *, compute: Literal[True] = True,
    return_stored: Literal[False] = False, append_dim: int | str | None = None,
    overlap: Overlap = "error", compute_kwargs: dict[str, Any] | None = None,
    **options: Unpack[Storage],
) -> None: ...  # fmt: skip
def store(
    x: da.Array,
    array: Array | Path,
    region: Region = None,
    *,
    compute: bool = True,
    return_stored: bool = False,
    append_dim: int | str | None = None,
    overlap: Overlap = "error",
    compute_kwargs: dict[str, Any] | None = None,
    **options: Unpack[Storage],
) -> Any:
    """Store a dask array by all workers at once: all of it, or, at a failure, nothing.

    Blocks may lie as they like: no chunk of the array is written by two tasks. A failure also
    drops what was pending in an open array if the parts were being merged or committed.

    Parameters
    ----------
    x
        What is stored.
    array
        An array that is open for writing, or a path; where nothing is at the path, or with
        ``overwrite=True``, an array of x's shape and dtype is made.
    region
        Slices where x goes; None is the whole array.
    compute
        False: a Delayed that writes, merges and commits when it is computed, once. A new array,
        or the growth, is committed at once. Needs a path. If computing it fails, the parts
        that were written stay: `caterva.jobs` lists the job, `Job.delete` deletes it.
    return_stored
        Return the stored items as a dask array.
    append_dim
        The axis, by number or name, that grows by x's length; x goes behind what is there.
    overlap
        As in `Array.merge`.
    compute_kwargs
        For dask, as ``{"scheduler": "processes"}``.
    **options
        As in `create`, where a path is given; of an array that is there, those of the handle.

    Returns
    -------
    None, Delayed or dask.array.Array

    Examples
    --------
    >>> import caterva, caterva.dask, dask.array as da
    >>> x = da.arange(24, chunks=5).reshape(4, 6)
    >>> caterva.dask.store(x, "stored.b2nd", overwrite=True)
    >>> caterva.dask.store(x[:1] * 2, "stored.b2nd", append_dim=0)
    >>> caterva.open("stored.b2nd")[3:]
    array([[18, 19, 20, 21, 22, 23],
           [ 0,  2,  4,  6,  8, 10]])
    """
    x = known(x)
    if isinstance(array, Array):
        if options:
            raise TypeError(f"an open array takes no option {', '.join(sorted(options))}")
        if not compute or array.path is None:
            raise ValueError("storing later, or from other processes, needs an array at a path")
        return _store(
            x, array, region, append_dim, overlap, (True, return_stored, compute_kwargs)
        )
    anew = region is None and append_dim is None
    opened = target_of(x, array, anew, dict(options))
    with opened:
        what = (compute, return_stored, compute_kwargs)
        return _store(x, opened, region, append_dim, overlap, what)


def _store(
    x: da.Array,
    array: Array,
    region: Region,
    append_dim: int | str | None,
    overlap: Overlap,
    what: tuple[bool, bool, dict[str, Any] | None],
) -> Any:
    compute, return_stored, how = what
    shape = None
    if append_dim is not None:
        if region is not None:
            raise ValueError("a region or append_dim is given, not both")
        start, shape = growth(x, array, append_dim)
    else:
        start = start_of(region, array.shape, x.shape)
    if not compute:
        graph, name = defer(x, array, start, shape, overlap)
        if return_stored:
            return stored_later(x, place_of(array.path), start, graph, name)
        return Delayed(name, graph)
    path = store_now(x, array, start, shape, overlap, how or {})
    return stored_now(x, path, start) if return_stored else None
