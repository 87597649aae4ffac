"""Storing Dask arrays with many workers at once.

Each task writes a part of its own, which need not be aligned with the chunks. The client merges
the parts, and one commit makes them visible. Works with threads, processes and ``distributed``,
if workers reach the file by the client's path::

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
from ._functions import create, is_there
from ._functions import open as open_array
from ._jobs import Job, Merged, Overlap, flat_tokens
from ._options import Handle, Path, Storage
from ._places import place_of

if TYPE_CHECKING:
    Region: TypeAlias = Sequence[slice] | slice | None

__all__ = ["store"]

FAN = 16  # lists of tokens that one task joins


# ---- Tasks -------------------------------------------------------------------------------


def write_part(job: Job, box: tuple[slice, ...], items: Any) -> bytes:
    """Write one block of the Dask array as a part; return its token."""
    try:
        part = job.part()
    except NotFoundError:
        if not is_there(place_of(job.path)):
            raise
        message = f"the job at {job.path} has ended: a delayed store can be computed only once"
        raise refusal(Status.ENOTFOUND, message, job.path) from None
    with part:
        part[box] = np.asarray(items)
    return part.token


def join_tokens(tokens: list[Any]) -> list[bytes]:
    """Join the results of several tasks into one list of tokens."""
    return list(flat_tokens(tokens))


def merge_at(path: str, overlap: Overlap, tokens: list[Any]) -> Merged:
    """Merge and commit in a task, for a store that the client does not wait for."""
    with open_array(path, "r+") as array:
        return array.merge(tokens, overlap=overlap)


def read_box(path: str, box: tuple[slice, ...], merged: Any) -> Any:
    """Read a box of what was stored; `merged` makes the task wait for the merge."""
    with open_array(path) as array:
        return array[box]


# ---- The target -----------------------------------------------------------------------------


def boxes_of(chunks: tuple[tuple[int, ...], ...], start: tuple[int, ...]) -> dict[Any, Any]:
    """Return the box of each block, by the block's number."""
    edges = [
        [int(n) for n in np.cumsum((at, *lengths))]
        for at, lengths in zip(start, chunks, strict=True)
    ]
    return {
        number: tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, number, strict=True))
        for number in np.ndindex(*(len(lengths) for lengths in chunks))
    }


def start_of(region: Region, shape: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
    """Return where the region begins; its shape must be `lengths`."""
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
    """Return the axis that grows, given by number or name."""
    if not isinstance(append_dim, str):
        if not -array.ndim <= append_dim < array.ndim:
            raise np.exceptions.AxisError(append_dim, array.ndim)
        return append_dim % array.ndim
    if append_dim not in array.dims:
        raise ValueError(f"{append_dim!r} is not one of the dimensions {array.dims}")
    return array.dims.index(append_dim)


def growth(
    x: da.Array, array: Array, append_dim: int | str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where appended items begin, and the array's shape with them."""
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


def opened_at(place: Path, options: dict[str, Any]) -> Array:
    """Open an existing array for writing."""
    if new := options.keys() - Handle.__annotations__.keys():
        raise TypeError(
            f"{os.fsdecode(place)} exists, and {', '.join(sorted(new))} can only be given for "
            "a new array: leave out, or replace what exists with overwrite=True"
        )
    array: Any = open_array(place, "r+", **options)
    if not isinstance(array, Array):
        array.tree.close()
        raise TypeError(f"{array.path} is a tree: name the array in it, as {array.path}::/name")
    return array


def target_of(x: da.Array, place: Path, anew: bool, options: dict[str, Any]) -> Array:
    """Open the array at a path for writing; create it if it does not exist."""
    if not options.get("overwrite") and is_there(place_of(place)):
        return opened_at(place, {k: v for k, v in options.items() if k != "overwrite"})
    if not anew:
        message = f"there is no array at {os.fsdecode(place)} to store a region in"
        raise refusal(Status.ENOTFOUND, message, place_of(place))
    return create(x.shape, x.dtype, place, **options)


# ---- The graph -----------------------------------------------------------------------------


def part_layer(x: da.Array, job: Job, start: tuple[int, ...], name: str) -> dict[Any, Any]:
    """Make a task for each block."""
    held = f"{name}-job"
    boxes = boxes_of(x.chunks, start)
    layer: dict[Any, Any] = {held: job}
    for i, (number, box) in enumerate(boxes.items()):
        layer[name, i] = (write_part, held, box, (x.name, *number))
    return layer


def tree_layer(parts: str, n: int, name: str) -> tuple[dict[Any, Any], Any]:
    """Make the tasks that join the tokens of `n` parts; also return the key of the last one."""
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
    """Return the graph of all parts, and the key of the list of their tokens."""
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
    """Return the graph with one more layer."""
    return HighLevelGraph(
        dict(graph.layers) | {name: layer}, dict(graph.dependencies) | {name: {on}}
    )


def stored_later(
    x: da.Array, path: str, start: tuple[int, ...], graph: HighLevelGraph, last: Any
) -> da.Array:
    """Return a Dask array of the stored items; its blocks are read after the merge."""
    name = f"caterva-stored-{tokenize(last)}"
    layer = {
        (name, *number): (read_box, path, box, last)
        for number, box in boxes_of(x.chunks, start).items()
    }
    on = last if isinstance(last, str) else last[0]
    return da.Array(extend(graph, name, layer, on), name, x.chunks, dtype=x.dtype)


def stored_now(x: da.Array, path: str, start: tuple[int, ...]) -> da.Array:
    """Return a Dask array of the stored items; its blocks are read on access."""
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
    """Return x as a Dask array with known block shapes, optimized as for its `compute`."""
    if not isinstance(x, da.Array):
        x = da.asarray(x)
    if any(np.isnan(n) for lengths in x.chunks for n in lengths):
        raise ValueError("the array has blocks of unknown shape: call its compute_chunk_sizes")
    (optimized,) = optimize(x)
    return optimized  # type: ignore[no-any-return]


def run(
    x: da.Array, job: Job, start: tuple[int, ...], overlap: Overlap, how: dict[str, Any]
) -> None:
    """Compute the parts and merge their tokens."""
    graph, last = tokens_graph(x, job, start)
    (tokens,) = compute_now(Delayed(last, graph, None, last[0]), optimize_graph=False, **how)
    job.merge(tokens, overlap=overlap)


def undo(array: Array, job: Job, shape: tuple[int, ...]) -> None:
    """Delete the job of a store that failed, and undo its changes of the array, whose shape was
    `shape`."""
    with contextlib.suppress(Exception):
        if job._tried:  # the merge was begun: pending changes are incomplete
            array.rollback()
        elif array.shape != shape:
            array.resize(shape)
    with contextlib.suppress(Exception):
        job.delete()


def store_now(
    x: da.Array, array: Array, start: tuple[int, ...], shape: Any, overlap: Overlap, how: Any
) -> str:
    """Write, merge and commit, or leave the array as it was; return the array's path."""
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
    """Return a graph that writes, merges and commits, with a job that outlives the handle."""
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
    """Store a Dask array with all workers at once, completely or not at all.

    The blocks need not be aligned with the chunks of the array. A failure also drops pending
    changes of an open array if the merge had begun.

    Parameters
    ----------
    x
        The Dask array.
    array
        An array that is open for writing, or a path. If nothing exists at the path, or with
        ``overwrite=True``, an array of x's shape and dtype is created.
    region
        Slices of the array to write x to; None is the whole array.
    compute
        False: return a Delayed that writes, merges and commits when it is computed, which can
        be done once. A new array, or the growth, is committed immediately. `array` must be a
        path. If computing fails, the parts that were written stay: `caterva.jobs` lists the job
        and `Job.delete` deletes it.
    return_stored
        Return the stored items as a Dask array.
    append_dim
        Axis, by number or name, that grows by x's length; x is written behind existing items.
    overlap
        As in `Array.merge`.
    compute_kwargs
        Arguments for Dask's compute, such as ``{"scheduler": "processes"}``.
    **options
        If `array` is a path: options of `create`; for an existing array, those of the open
        array.

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
            raise ValueError(
                "compute=False takes a path, and an array in memory cannot be written by tasks"
            )
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
            raise ValueError("give a region or append_dim, not both")
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
