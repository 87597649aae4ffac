"""Reads and writes in a dtype other than the array's, compared with NumPy's casts.

usage: test_convert.py [CASES [SEED]]

First NumPy's whole table of can_cast, then values: random arrays read and written through
random selections and buffers in every pair of types and byte orders."""

import sys
import time
import warnings

from tool_selections import Buffer, Refused, Tool, np, random_array, random_numbers, \
    random_selection, random_source, selected

CASES = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
SEED = int(sys.argv[2], 0) if len(sys.argv) > 2 else time.time_ns() % 2**32
TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
CASTINGS = ["same_kind", "safe", "unsafe"]  # as caterva_casting numbers them


def with_order(rng, name):
    return np.dtype(name).newbyteorder(rng.choice(["<", ">"]))


def check_table(rng, tool):
    """Every pair and casting: done or refused according to np.can_cast."""
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
                    assert "ECAST" in str(refused), refused


def check_unsupported(tool):
    for name in ["<V2", "|S4", "<M8[s]", "[('a','<i4')]"]:
        tool.ask("dtypes", "<i4", name, 2)
        tool.ask("array", 4, 1, 3, 2, 1, 1, data=bytes(12))
        for word, data in [("read", b""), ("write", bytes(64))]:
            try:
                tool.ask(word, "none", 64, 0, "c", data=data)
                raise AssertionError(f"{name} was converted")
            except Refused as refused:
                assert "EDTYPE" in str(refused), refused
    tool.ask("dtypes", "<i4", "<q9", 2)
    try:
        tool.ask("read", "none", 64, 0, "c")
        raise AssertionError("an invalid dtype was accepted")
    except Refused as refused:
        assert "EINVAL" in str(refused), refused


def check_limits(tool):
    """Floats out of range, which C leaves undefined: the nearest integer, and 0 for NaN."""
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


def read_as(tool, values, array_type, buffer_type, size):
    """The bytes of `values`, an array of `array_type`, read as `buffer_type`; if only buffers
    can have the type, of an array written from one."""
    if array_type == "bfloat16":
        tool.ask("dtypes", buffer_type, array_type, 2)
        tool.ask("array", size, 1, len(values), 8192, 1000, 1, data=bytes(len(values) * size))
        tool.ask("write", "none", values.nbytes, 0, "c", data=values.tobytes())
        tool.ask("dtypes", buffer_type, "-", 0)
        return tool.ask("whole")
    tool.ask("dtypes", array_type, buffer_type, 2)
    tool.ask("array", values.itemsize, 1, len(values), 8192, 1000, 1, data=values.tobytes())
    return tool.ask("read", "none", len(values) * size, 0, "c")


def quiet(bits, fraction_bits):
    """Signalling NaN become quiet, as processors do it: the rest of the payload is kept."""
    exponent = (bits >> fraction_bits) + 1  # of NaN all bits set: a carry
    width = 8 * bits.itemsize - 1 - fraction_bits
    nan = (exponent & ((1 << width) - 1) == 0) & (bits & ((1 << fraction_bits) - 1) != 0)
    return np.where(nan, bits | 1 << (fraction_bits - 1), bits)


def near_halves(rng, fraction_bits, bias, n):
    """Doubles exactly, just above and just below halfway between two 16-bit floats; random
    bits; and NaN."""
    step = 2.0 ** -fraction_bits
    exponents = rng.integers(-bias - fraction_bits - 3, bias + 2, n)
    ties = (1 + rng.integers(0, 1 << fraction_bits, n) * step + step / 2) * 2.0 ** exponents
    subnormal = rng.integers(0, 1 << (fraction_bits + 2), n) * 2.0 ** (-bias - fraction_bits)
    exact = np.concatenate([ties, subnormal])
    values = [exact, np.nextafter(exact, 0), np.nextafter(exact, np.inf),
              rng.integers(0, 1 << 64, n, np.uint64).view("f8"),
              rng.normal(0, 1, n).astype("f4").astype("f8")]
    values = np.concatenate(values)
    return np.where(rng.random(len(values)) < 0.5, values, -values).astype("<f8")


def check_float16(rng, tool):
    """Each of the 65,536 halves, and doubles that are hard to round."""
    halves = np.arange(1 << 16, dtype="<u2")
    for target, fraction_bits in (("<f4", 23), ("<f8", 52)):
        bits = target.replace("f", "u")
        got = np.frombuffer(read_as(tool, halves, "<f2", target, int(target[2])), bits)
        want = halves.view("<f2").astype(target).view(bits)
        assert (quiet(got, fraction_bits) == quiet(want, fraction_bits)).all(), target
        back = np.frombuffer(read_as(tool, got, target, "<f2", 2), "<u2")
        assert (back == quiet(halves, 10)).all(), f"{target} and back"
    assert read_as(tool, halves, "<f2", ">f2", 2) == halves.astype(">u2").tobytes()
    for source in ("<f4", "<f8"):
        with np.errstate(all="ignore"):
            values = near_halves(rng, 10, 15, 40000).astype(source)
            want = values.astype("<f2").view("<u2")
        got = np.frombuffer(read_as(tool, values, source, "<f2", 2), "<u2")
        nan = np.isnan(values)  # NumPy's payload depends on the processor
        assert (got[~nan] == want[~nan]).all(), f"{source} to float16"
        assert np.isnan(got[nan].view("<f2")).all(), f"{source} NaN"


def nearest_bfloat16(values):
    """Compares with both neighbours, which are exact in doubles; returns the bits of a value
    and of the neighbour nearer to 0 if that is closer."""
    size = np.abs(values)
    with np.errstate(all="ignore"):
        low = (size.astype("f4").view("u4") >> 16).astype("i8")
    low -= widen(low) > size  # float32 may have rounded up
    below, above = size - widen(low), widen(low + 1, 2.0**128) - size
    up = (above < below) | ((above == below) & (low & 1 == 1))
    return np.where(np.isinf(size), 0x7f80, low + up) | np.where(np.signbit(values), 0x8000, 0)


def widen(bits, infinite=np.inf):
    values = (bits.astype("u4") << 16).view("f4").astype("f8")
    return np.where(np.isinf(values), infinite, values)


def check_bfloat16(rng, tool):
    halves = np.arange(1 << 16, dtype="<u2")
    wide = np.frombuffer(read_as(tool, halves, "bfloat16", "<f4", 4), "<u4")
    assert (wide == quiet(halves.astype("<u4") << 16, 23)).all()
    assert (np.frombuffer(read_as(tool, wide, "<f4", "bfloat16", 2), "<u2") ==
            quiet(halves, 7)).all()
    values = near_halves(rng, 7, 127, 40000)
    values = values[~np.isnan(values)]
    for source in (values, rng.integers(-2**63, 2**63 - 1, 9000, "<i8"),
                   rng.integers(0, 2**64 - 1, 9000, "<u8"), rng.integers(-300, 300, 900, "<i2")):
        got = np.frombuffer(read_as(tool, source, source.dtype.str, "bfloat16", 2), "<u2")
        if source.dtype.kind == "f":
            assert (got == nearest_bfloat16(source)).all(), "float64 to bfloat16"
            continue
        for item, bits in zip(source.tolist(), got.tolist()):  # Python's exact integers
            around = [int(widen(np.array([bits + d]), 2.0**128)[0]) if bits & 0x7fff else 0
                      for d in (-1, 0, 1)]
            errors = [abs(item - v) for v in around]
            assert errors[1] <= min(errors), (item, around)
    table = [("?", True), ("i1", True), ("u1", True), ("<i2", False), ("<f2", False),
             ("<f4", False), ("<c8", False)]
    for other, is_safe in table:
        for a, b, good in ((other, "bfloat16", is_safe),
                           ("bfloat16", other, other in ("<f4", "<c8"))):
            tool.ask("dtypes", other, "bfloat16", 1)
            size = np.dtype(other).itemsize
            tool.ask("array", size, 1, 3, 2, 1, 1, data=bytes(3 * size))
            try:
                tool.ask("read" if a == other else "write", "none", 6, 0, "c",
                         data=b"" if a == other else bytes(6))
                assert good, f"{a} to {b} was done as a safe cast"
            except Refused as refused:
                assert not good and "ECAST" in str(refused), (a, b, refused)


def cast(values, dtype):
    """NumPy's cast where it is defined; for floats that do not fit an integer the nearest one,
    and 0 for NaN."""
    values = np.asarray(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # imaginary parts are dropped intentionally
        if values.dtype.kind not in "fc" or dtype.kind not in "iu":
            return values.astype(dtype)
        most = np.iinfo(dtype)
        real = values.real.astype("f8")
        high, low = real >= float(most.max), real <= float(most.min)
        inside = np.where(high | low | np.isnan(real), 0, real)
        return np.where(high, most.max, np.where(low, most.min, inside.astype(dtype))).astype(
            dtype)


def read_view(rng, tool, a, dtype):
    """The array with reversed axes, repeated twice, or both."""
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
    """One read or write of a selection of `a` as `dtype`."""
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


FIELDS = {"a": "a", "n.x": "n x", "n.text": "n text", "n": "n", "list": "list", "big": "big"}


def random_struct(rng):
    nested = np.dtype([("x", with_order(rng, "f4")), ("text", "S3")])
    fields = [("a", with_order(rng, "i2")), ("n", nested), ("list", "<u4", (2, 3)),
              ("big", with_order(rng, "f8"))]
    return np.dtype([fields[i] for i in rng.permutation(len(fields))])


def check_field(rng, tool, a, name):
    wanted = a
    for part in FIELDS[name].split():
        wanted = wanted[part]
    base = wanted.dtype if name != "list" else np.dtype(("<u4", (2, 3)))
    target = np.dtype("<f8") if name in ("a", "n.x") and rng.random() < 0.5 else base
    tool.ask("dtypes", a.dtype.str, target.str if target != base else "-", 0)
    tool.ask("field", name)
    words, index, shape = random_selection(rng, a)
    buffer = Buffer(rng, shape, np.dtype(f"V{target.itemsize}"))
    if name == "list":
        packed = np.ascontiguousarray(wanted).reshape(-1, 6).view("V24").reshape(a.shape)
    else:
        packed = np.ascontiguousarray(wanted.astype(target)).view(buffer.dtype)
    memory = tool.ask("read", *words, *buffer.words)
    buffer.view[...] = selected(packed.reshape(a.shape), index, shape)
    assert memory == buffer.memory.tobytes(), f"field {name} differs, buffer {buffer.words}"
    tool.ask("field", "-")


def refused(tool, status, *words, data=b""):
    try:
        tool.ask(*words, data=data)
    except Refused as error:
        assert status in str(error), error
        return
    raise AssertionError(f"{words} was done")


def check_fields(rng, tool, cases):
    """Single fields of structured items, as they are or as another number type."""
    for _ in range(cases):
        dtype = random_struct(rng)
        text = str(dtype.descr).replace(" ", "")
        tool.ask("dtypes", text, "-", 0)
        shape = [int(rng.integers(1, 9)) for _ in range(int(rng.integers(1, 4)))]
        chunks = [int(rng.integers(1, n + 3)) for n in shape]
        blocks = [int(rng.integers(1, c + 1)) for c in chunks]
        raw = rng.integers(0, 120, (*shape, dtype.itemsize), np.uint8)
        a = raw.view(dtype).reshape(shape)
        tool.ask("array", dtype.itemsize, len(shape), *shape, *chunks, *blocks,
                 int(rng.integers(0, 3)), data=a.tobytes())
        for name in FIELDS:
            check_field(rng, tool, a, name)
    tool.ask("dtypes", text, "-", 0)
    for name in ("no", "a.x", "n.", ".n", "n.no"):
        tool.ask("field", name)
        refused(tool, "ENOTFOUND", "read", "none", 1 << 16, 0, "c")
    tool.ask("field", "a")
    refused(tool, "EINVAL", "write", "none", 1 << 16, 0, "c", data=bytes(1 << 16))
    tool.ask("field", "n.text")
    tool.ask("dtypes", text, "<f4", 0)
    refused(tool, "EDTYPE", "read", "none", 1 << 16, 0, "c")
    tool.ask("field", "-")


def main():
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    tool = Tool()
    check_table(rng, tool)
    check_unsupported(tool)
    check_limits(tool)
    check_float16(rng, tool)
    check_bfloat16(rng, tool)
    check_fields(rng, tool, 150)
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
