"""Views of arrays, views of views, and several arrays as one, compared with NumPy.

usage: test_views.py [CASES [SEED]]

A view is changed several times (sliced with steps of either sign, indexed, transposed,
expanded, squeezed, joined with others), each time as NumPy's own view is; then it is read and
written through random selections into random strided buffers. After a write the array below it
is compared too."""

import sys
import time

from tool_selections import Buffer, Refused, Tool, np, random_array, \
    random_selection, random_slice, random_source, selected

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
SEED = int(sys.argv[2], 0) if len(sys.argv) > 2 else time.time_ns() % 2**32
VIEWS_PER_ARRAY, SELECTIONS_PER_VIEW = 6, 4


# ---- The same change of a view on both sides ---------------------------------


def sliced(rng, tool, v):
    n = int(rng.integers(0, v.ndim + 1))
    words, index = ["axes", n], []
    for d in range(n):
        if v.shape[d] > 0 and rng.random() < 0.2:
            at = int(rng.integers(-v.shape[d], v.shape[d]))
            words += ["i", at]
            index.append(at)
            continue
        piece, _ = random_slice(rng, v.shape[d])
        words += piece
        start, stop = [None if b == "o" else b for b in piece[1:3]]
        index.append(slice(start, stop, piece[3]))
    tool.ask("vselect", *words)
    return v[(*index, ...)]


def transposed(rng, tool, v):
    order = rng.permutation(v.ndim)
    if v.ndim == 0 or rng.random() < 0.2:
        tool.ask("vtranspose", 0)
        return v.transpose()
    tool.ask("vtranspose", v.ndim, *order)
    return v.transpose(order)


def expanded(rng, tool, v):
    if v.ndim >= 8:
        return v
    axis = int(rng.integers(0, v.ndim + 1))
    tool.ask("vexpand", axis)
    return np.expand_dims(v, axis)


def squeezed(rng, tool, v):
    ones = [d for d in range(v.ndim) if v.shape[d] == 1]
    if not ones:
        return v
    axis = int(rng.choice(ones))
    tool.ask("vsqueeze", axis)
    return np.squeeze(v, axis)


def changed(rng, tool, v, times):
    for _ in range(times):
        change = rng.choice([sliced, sliced, transposed, expanded, squeezed])
        v = change(rng, tool, v)
    return v


def joined(rng, tool, a):
    """Parts of one array that differ in the length of one axis only."""
    new = a.ndim == 0 or rng.random() < 0.4
    axis = int(rng.integers(0, a.ndim + 1 if new else a.ndim))
    n = int(rng.integers(1, 5))
    parts = []
    for _ in range(n):
        tool.ask("view")
        part = a
        if not new:
            piece, _ = random_slice(rng, a.shape[axis])
            start, stop = [None if b == "o" else b for b in piece[1:3]]
            index = [slice(None)] * axis + [slice(start, stop, piece[3])]
            tool.ask("vselect", "axes", axis + 1, *["a"] * axis, *piece)
            part = a[tuple(index)]
        parts.append(part)
    tool.ask("vjoin", n, axis, int(new))
    return np.stack(parts, axis) if new else np.concatenate(parts, axis)


# ---- Cases -------------------------------------------------------------------


def check_read(rng, tool, v, words, index, shape):
    buffer = Buffer(rng, shape, v.dtype)
    memory = tool.ask("vread", *words, *buffer.words)
    buffer.view[...] = selected(v, index, shape)
    assert memory == buffer.memory.tobytes(), f"read differs, buffer {buffer.words}"


def check_write(rng, tool, a, places, words, index, shape):
    """`places` is the view with each item's position in `a`."""
    buffer = random_source(rng, shape, a.dtype)
    tool.ask("vwrite", *words, *buffer.words, data=buffer.memory.tobytes())
    targets = selected(places, index, shape).ravel()
    flat = a.reshape(-1)
    for place, value in zip(targets, np.broadcast_to(buffer.view, shape).ravel()):
        flat[place] = value
    assert tool.ask("whole") == a.tobytes(), f"after a write, buffer {buffer.words}"


def run_view(rng, tool, a):
    """One view and several selections of it; the same words are applied to `places`."""
    places = np.arange(a.size).reshape(a.shape)
    join = rng.random() < 0.3
    if join:
        v = joined(rng, tool, places)
        v = changed(rng, tool, v, int(rng.integers(0, 4)))
        if rng.random() < 0.3 and v.ndim < 8:  # a join of joins
            tool.ask("vjoin", 1, 0, 1)
            v = v[None]
    else:
        tool.ask("view")
        v = changed(rng, tool, places, int(rng.integers(0, 6)))
    shape = tuple(map(int, tool.ask("vshape").decode().split()))
    assert shape == v.shape, (shape, v.shape)
    for _ in range(SELECTIONS_PER_VIEW):
        words, index, shape = random_selection(rng, v)
        if rng.random() < 0.35 and not join:
            check_write(rng, tool, a, v, words, index, shape)
        else:
            check_read(rng, tool, a.reshape(-1)[v], words, index, shape)
    tool.ask("vpop")


def check_several_arrays(rng, tool):
    """Arrays of different partitions joined into one."""
    arrays = []
    shape = [int(n) for n in rng.integers(1, 9, int(rng.integers(1, 4)))]
    axis = int(rng.integers(0, len(shape)))
    for slot in range(4):
        shape[axis] = int(rng.integers(1, 9))
        chunks = [int(rng.integers(1, n + 1)) for n in shape]
        blocks = [int(rng.integers(1, n + 1)) for n in chunks]
        a = rng.integers(0, 256, (*shape, 4), np.uint8).view("V4").reshape(shape)
        tool.ask("slot", slot)
        tool.ask("array", 4, len(shape), *shape, *chunks, *blocks, slot % 3, data=a.tobytes())
        tool.ask("view")
        arrays.append(a)
    tool.ask("vjoin", 4, axis, 0)
    v = changed(rng, tool, np.concatenate(arrays, axis), int(rng.integers(0, 4)))
    for _ in range(SELECTIONS_PER_VIEW):
        check_read(rng, tool, v, *random_selection(rng, v))
    try:
        tool.ask("vwrite", "none", v.nbytes, 0, "c", data=v.tobytes())
        raise AssertionError("a view of several arrays was written")
    except Refused as refused:
        assert "cannot be written" in str(refused), refused
    tool.ask("vpop")
    tool.ask("slot", 0)


def main():
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    tool = Tool()
    done = 0
    while done < CASES:
        tool.said.clear()
        try:
            if rng.random() < 0.1:
                check_several_arrays(rng, tool)
                done += SELECTIONS_PER_VIEW
                continue
            a, _ = random_array(rng, tool)
            for _ in range(VIEWS_PER_ARRAY):
                run_view(rng, tool, a)
                done += SELECTIONS_PER_VIEW
        except (AssertionError, Refused) as wrong:
            said = "\n".join(line[:400] for line in tool.said[-25:])
            sys.exit(f"case {done}\n{said}\n{wrong}")
    tool.close()
    print(f"{done} selections of views, all as NumPy's")


if __name__ == "__main__":
    main()
