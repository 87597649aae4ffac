"""Reads and writes in another dtype than the array's, against NumPy's casts.

usage: test_convert.py [CASES [SEED]]

First NumPy's whole table of can_cast, then values: random arrays read and written
through random selections and buffers in every pair of types and byte orders.
"""

import sys
import time
import warnings

from tool_selections import Buffer, Refused, Tool, np, random_array, random_numbers, \
    random_selection, random_source, selected

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
SEED = int(sys.argv[2], 0) if len(sys.argv) > 2 else time.time_ns() % 2**32
TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
CASTINGS = ["same_kind", "safe", "unsafe"]  # as caterva_casting numbers them


def with_order(rng, name):
    return np.dtype(name).newbyteorder(rng.choice(["<", ">"]))


def check_table(rng, tool):
    """Every pair and casting: done or refused as np.can_cast says."""
    for source in TYPES:
        for target in TYPES:
            for number, casting in enumerate(CASTINGS):
                a, b = with_order(rng, source), with_order(rng, target)
                tool.ask("dtypes", a.str, b.str, number)
                tool.ask("array", a.itemsize, 1, 3, 2, 1, 1, data=np.ones(3, a).tobytes())
                try:
                    got = np.frombuffer(tool.ask("read", "none", 3 * b.itemsize, 0, "c"), b)
                    assert np.can_cast(a, b, casting), f"{a} to {b} was done as {casting}"
                    assert (got == 1).all(), (a, b, got)
                except Refused as refused:
                    assert not np.can_cast(a, b, casting), f"{a} to {b}, {casting}: {refused}"
                    assert "EINVAL" in str(refused), refused


def check_unsupported(tool):
    for name in ["<f2", "|S4", "<M8[s]", "[('a','<i4')]"]:
        tool.ask("dtypes", "<i4", name, 2)
        tool.ask("array", 4, 1, 3, 2, 1, 1, data=bytes(12))
        for word, data in [("read", b""), ("write", bytes(64))]:
            try:
                tool.ask(word, "none", 64, 0, "c", data=data)
                raise AssertionError(f"{name} was converted")
            except Refused as refused:
                assert "EUNSUPPORTED" in str(refused), refused
    tool.ask("dtypes", "<i4", "<q9", 2)
    try:
        tool.ask("read", "none", 64, 0, "c")
        raise AssertionError("a dtype that is none was taken")
    except Refused as refused:
        assert "EINVAL" in str(refused), refused


def check_limits(tool):
    """What a float that does not fit becomes is ours to say: the nearest, NaN 0."""
    values = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 127.9, -128.9, 300, -0.9, 2.0**63,
                       -2.0**63, 2.0**64, 2.0**31, 2.0**53 + 1])
    for target in map(np.dtype, ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]):
        most = np.iinfo(target)
        want = [0 if np.isnan(v) else most.max if v >= most.max else most.min if v <= most.min
                else int(v) for v in values]
        tool.ask("dtypes", "<f8", target.newbyteorder("<").str, 2)
        tool.ask("array", 8, 1, len(values), 4, 3, 1, data=values.tobytes())
        got = np.frombuffer(tool.ask("read", "none", len(values) * target.itemsize, 0, "c"),
                            target)
        assert got.tolist() == want, (target, got.tolist(), want)


def cast(values, dtype):
    """NumPy's cast where it is defined; of floats that do not fit an integer the nearest,
    and of NaN 0."""
    values = np.asarray(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # imaginary parts are dropped on purpose
        if values.dtype.kind not in "fc" or dtype.kind not in "iu":
            return values.astype(dtype)
        most = np.iinfo(dtype)
        real = values.real.astype("f8")
        high, low = real >= float(most.max), real <= float(most.min)
        inside = np.where(high | low | np.isnan(real), 0, real)
        return np.where(high, most.max, np.where(low, most.min, inside.astype(dtype))).astype(
            dtype)


def read_view(rng, tool, a, dtype):
    """The array turned around, twice in a row, or both."""
    v = a
    tool.ask("view")
    if rng.random() < 0.5:
        tool.ask("view")
        tool.ask("vjoin", 2, 0, 1)
        v = np.stack([a, a])
    tool.ask("vtranspose", 0)
    words, index, shape = random_selection(rng, v.T)
    buffer = Buffer(rng, shape, dtype)
    memory = tool.ask("vread", *words, *buffer.words)
    tool.ask("vpop")
    buffer.view[...] = cast(selected(v.T, index, shape), dtype)
    assert memory == buffer.memory.tobytes(), f"a view differs, buffer {buffer.words}"


def run_case(rng, tool, a, dtype):
    """One read or write of a selection of `a` in `dtype`."""
    tool.ask("dtypes", a.dtype.str, dtype.str, 2)
    if rng.random() < 0.2:
        read_view(rng, tool, a, dtype)
        return
    words, index, shape = random_selection(rng, a)
    if rng.random() < 0.6:
        buffer = Buffer(rng, shape, dtype)
        memory = tool.ask("read", *words, *buffer.words)
        buffer.view[...] = cast(selected(a, index, shape), dtype)
        assert memory == buffer.memory.tobytes(), f"read differs, buffer {buffer.words}"
        return
    buffer = random_source(rng, shape, dtype)
    buffer.view[...] = random_numbers(rng, buffer.view.shape, dtype)
    tool.ask("write", *words, *buffer.words, data=buffer.memory.tobytes())
    places = selected(np.arange(a.size).reshape(a.shape), index, shape).ravel()
    values = cast(np.broadcast_to(buffer.view, shape), a.dtype).ravel()
    flat = a.reshape(-1)
    for place, value in zip(places, values):
        flat[place] = value
    tool.ask("dtypes", a.dtype.str, "-", 0)
    assert tool.ask("whole") == a.tobytes(), f"after a write, buffer {buffer.words}"


def main():
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    tool = Tool()
    check_table(rng, tool)
    check_unsupported(tool)
    check_limits(tool)
    done = 0
    while done < CASES:
        tool.said.clear()
        a_type = with_order(rng, rng.choice(TYPES))
        tool.ask("dtypes", a_type.str, "-", 0)
        a, _ = random_array(rng, tool, a_type)
        for _ in range(10):
            dtype = with_order(rng, rng.choice(TYPES))
            try:
                run_case(rng, tool, a, dtype)
            except (AssertionError, Refused) as wrong:
                said = "\n".join(line[:400] for line in tool.said[-6:])
                sys.exit(f"case {done}: {a.dtype.str} and {dtype.str}\n{said}\n{wrong}")
            done += 1
    tool.close()
    print(f"{done} selections in other dtypes, all as NumPy's")


if __name__ == "__main__":
    main()
