"""Values of attributes as msgpack, with the conventions of python-blosc2.

Beside msgpack's own types, values are tuples (a list that begins with ``"__tuple__"``), complex
numbers, sets and NumPy arrays (extensions 44, 45 and 46). NumPy scalars are stored as arrays
without axes, which keep their dtype, except for str and bytes. Other extensions are returned as
`Extension`: nothing from a file is ever executed.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

_COMPLEX, _SET, _ARRAY = 44, 45, 46
_MAX_DEPTH = 100


@dataclass(frozen=True)
class Extension:
    """A value of a type that this package does not know."""

    code: int
    data: bytes


# ---- Writing ----------------------------------------------------------------------------


def _sized(small: tuple[int, int], codes: tuple[int, ...], n: int, widest: int = 4) -> bytes:
    """Return the head of a value with a length; `small` is (code, limit) of the short form."""
    code, limit = small
    if n < limit:
        return bytes([code | n])
    widths = {1: (1, ">BB"), 2: (2, ">BH"), 4: (4, ">BI")}
    sizes = (1, 2, 4)[3 - len(codes) :]
    for code, size in zip(codes, sizes, strict=True):
        if n < 1 << 8 * size:
            return struct.pack(widths[size][1], code, n)
    raise ValueError(f"a value of {n} parts is too long for msgpack")


def _integer(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack(">b" if value < 0 else ">B", value)
    if value >= 0:
        for code, form, bits in (
            (0xCC, "B", 8),
            (0xCD, "H", 16),
            (0xCE, "I", 32),
            (0xCF, "Q", 64),
        ):
            if value < 1 << bits:
                return struct.pack(">B" + form, code, value)
    else:
        for code, form, bits in (
            (0xD0, "b", 7),
            (0xD1, "h", 15),
            (0xD2, "i", 31),
            (0xD3, "q", 63),
        ):
            if value >= -(1 << bits):
                return struct.pack(">B" + form, code, value)
    raise OverflowError(f"{value} does not fit the 64 bits of msgpack's integers")


def _extension(code: int, data: bytes) -> bytes:
    short = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}.get(len(data))
    if short is not None:
        return bytes([short, code]) + data
    return _sized((0, 0), (0xC7, 0xC8, 0xC9), len(data)) + bytes([code]) + data


def _array(value: np.ndarray[Any, Any]) -> bytes:
    if value.dtype.hasobject:
        raise TypeError("an attribute cannot hold an array of Python objects")
    dtype: dict[str, Any] = {"str": value.dtype.str}
    if value.dtype.names is not None:
        dtype = {"descr": value.dtype.descr}
    payload = {"dtype": dtype, "shape": list(value.shape), "data": value.tobytes()}
    return _extension(_ARRAY, _pack(payload))


def _sequence(values: list[Any]) -> bytes:
    head = _sized((0x90, 16), (0xDC, 0xDD), len(values))
    return head + b"".join(map(_pack, values))


def _key(value: Any) -> Any:
    """Check that readers can hash a value: they make every set a mutable one."""
    if isinstance(value, frozenset):
        raise TypeError("an attribute cannot hold a set in a set, or as a key")
    if isinstance(value, tuple):
        for item in value:
            _key(item)
    return value


def _pack(value: Any) -> bytes:
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.kind in "SU" else np.asarray(value)
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return _integer(value)
        case float():
            return struct.pack(">Bd", 0xCB, value)
        case str():
            data = value.encode()
            return _sized((0xA0, 32), (0xD9, 0xDA, 0xDB), len(data)) + data
        case bytes() | bytearray() | memoryview():
            return _sized((0, 0), (0xC4, 0xC5, 0xC6), len(bytes(value))) + bytes(value)
        case list():
            return _sequence(value)
        case tuple():
            return _sequence(["__tuple__", *value])
        case dict():
            head = _sized((0x80, 16), (0xDE, 0xDF), len(value))
            return head + b"".join(_pack(_key(k)) + _pack(v) for k, v in value.items())
        case complex():
            return _extension(_COMPLEX, struct.pack(">dd", value.real, value.imag))
        case set() | frozenset():
            return _extension(_SET, _pack([_key(item) for item in value]))
        case np.ndarray():
            return _array(value)
        case Extension():
            return _extension(value.code, value.data)
    raise TypeError(f"an attribute cannot hold a value of type {type(value).__name__}")


def pack(value: Any) -> bytes:
    """Encode a value; TypeError or ValueError if no reader could decode it."""
    try:
        packed = _pack(value)
        unpack(packed)
    except RecursionError:
        raise ValueError("an attribute cannot hold a value that is nested so deep") from None
    except ValueError as error:
        raise ValueError(f"an attribute cannot hold the value: {error}") from error
    return packed


# ---- Reading ----------------------------------------------------------------------------


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0

    def take(self, n: int) -> bytes:
        part = self.data[self.at : self.at + n]
        if len(part) < n:
            raise ValueError(f"msgpack ends at byte {len(self.data)}, in the middle of a value")
        self.at += n
        return part

    def number(self, form: str) -> Any:
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def values(self, n: int) -> list[Any]:
        if n > len(self.data) - self.at:  # each takes at least one byte
            raise ValueError(f"msgpack claims {n} values at byte {self.at}")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ValueError("msgpack is nested too deep")
        values = [self.value() for _ in range(n)]
        self.depth -= 1
        return values

    def sequence(self, n: int) -> Any:
        values = self.values(n)
        if values and isinstance(values[0], str) and values[0] == "__tuple__":
            return tuple(values[1:])
        return values

    def mapping(self, n: int) -> dict[Any, Any]:
        flat = self.values(2 * n)
        try:
            return dict(zip(flat[::2], flat[1::2], strict=True))
        except TypeError as error:
            raise ValueError(f"msgpack has a key that cannot be in a dict: {error}") from error

    def extension(self, n: int) -> Any:
        code = self.number("b")
        return _decode_extension(code, self.take(n))

    def value(self) -> Any:
        code = self.take(1)[0]
        if code < 0x80:
            return code
        if code < 0x90:
            return self.mapping(code & 15)
        if code < 0xA0:
            return self.sequence(code & 15)
        if code < 0xC0:
            return self.take(code & 31).decode()
        if code >= 0xE0:
            return code - 256
        return self.long(code)

    def long(self, code: int) -> Any:
        if code in _CONSTANTS:
            return _CONSTANTS[code]
        if code in _NUMBERS:
            return self.number(_NUMBERS[code])
        if 0xD4 <= code <= 0xD8:
            return self.extension(1 << (code - 0xD4))
        if code not in _SIZED:
            raise ValueError(f"msgpack has no type {code:#x}, at byte {self.at - 1}")
        method, form = _SIZED[code]
        n = self.number(form)
        if method == "str":
            return self.take(n).decode()
        if method == "bin":
            return self.take(n)
        return getattr(self, method)(n)


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q",
    0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q",
}  # fmt: skip
_SIZED = {
    0xC4: ("bin", "B"), 0xC5: ("bin", "H"), 0xC6: ("bin", "I"),
    0xC7: ("extension", "B"), 0xC8: ("extension", "H"), 0xC9: ("extension", "I"),
    0xD9: ("str", "B"), 0xDA: ("str", "H"), 0xDB: ("str", "I"),
    0xDC: ("sequence", "H"), 0xDD: ("sequence", "I"),
    0xDE: ("mapping", "H"), 0xDF: ("mapping", "I"),
}  # fmt: skip


def _field(described: Any) -> tuple[Any, ...]:
    """Convert a field of a dtype's description, whose tuples may have become lists."""
    name, spec, *shape = described
    if isinstance(spec, list):
        spec = [_field(inner) for inner in spec]
    return (name, spec, *(tuple(n) for n in shape))


def _decode_array(payload: Any) -> Any:
    """Return an array, or a scalar if it has no axes."""
    described = payload["dtype"]
    if "str" in described:
        dtype = np.dtype(described["str"])
    else:
        dtype = np.dtype([_field(field) for field in described["descr"]])
    shape = tuple(payload["shape"])
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(payload["data"]):
        raise ValueError(f"an array of shape {shape} and dtype {dtype} does not fit its bytes")
    return np.frombuffer(payload["data"], dtype).reshape(shape)[() if shape == () else ...]


def _decode_extension(code: int, data: bytes) -> Any:
    try:
        if code == _COMPLEX:
            return complex(*struct.unpack(">dd", data))
        if code == _SET:
            return set(unpack(data))
        if code == _ARRAY:
            return _decode_array(unpack(data))
    except (KeyError, TypeError, struct.error, SyntaxError):
        pass
    return Extension(code, data)


def unpack(data: bytes) -> Any:
    """Decode msgpack; ValueError if it is not valid."""
    reader = _Reader(bytes(data))
    value = reader.value()
    if reader.at != len(reader.data):
        raise ValueError(f"msgpack ends at byte {reader.at} of {len(reader.data)}")
    return value
