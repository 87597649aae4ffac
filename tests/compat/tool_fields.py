"""Typical arrays, the same in every run: how the library's defaults store them is compared with
python-blosc2's."""

import numpy as np


def _axes(shape):
    return np.ogrid[tuple(slice(n) for n in shape)]


def _waves(shape):
    return sum(np.sin(axis / (20 + 7 * d)) for d, axis in enumerate(_axes(shape))) / len(shape)


def _stored(values, dtype):
    """Values in [-1, 1] as items of a dtype: integers use 15 or 7 of their bits."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.ascontiguousarray(values, kind)
    return np.ascontiguousarray(np.round((values + 1) * (110 if kind.itemsize == 1 else 16000)),
                                kind)


def bench(shape, dtype, rng):
    """As in bench_partition: smooth along every axis, noise in the last bits."""
    kind = np.dtype(dtype)
    values = (_waves(shape) + 1) * (110 if kind.itemsize == 1 else 16000)
    if kind.kind != "f":
        noise = rng.integers(0, 4 if kind.itemsize == 1 else 32, shape)
        return (values.astype("i8") + noise).astype(kind)
    noise = rng.integers(0, 256 if kind.itemsize == 4 else 65536, shape)
    return (values.astype(kind) + noise / (512 if kind.itemsize == 4 else 131072)).astype(kind)


def smooth(shape, dtype, rng):
    return _stored(_waves(shape), dtype)


def noisy(shape, dtype, rng):
    """Noise of a thousandth, as of instruments."""
    return _stored((_waves(shape) * 0.9 + rng.normal(0, 1e-3, shape)).clip(-1, 1), dtype)


def walk(shape, dtype, rng):
    values = np.cumsum(rng.normal(0, 1, shape), axis=-1)
    return _stored(values / np.abs(values).max(), dtype)


def counts(shape, dtype, rng):
    return rng.poisson(3, shape).astype(dtype)


def mask(shape, dtype, rng):
    """Patches of one value."""
    return (_waves(shape) * len(shape) + rng.normal(0, 0.02, shape) > 0.3).astype(dtype)


def climate(shape, dtype, rng):
    """Temperatures: waves of many lengths, rounded to two decimals as archives do."""
    values = np.zeros(shape)
    for k in range(1, 25):
        phase, speed = rng.uniform(0, 2 * np.pi, len(shape)), rng.normal(0, k, len(shape))
        values += np.cos(sum(axis * (2 * np.pi * v / n) + p for axis, v, n, p
                             in zip(_axes(shape), speed, shape, phase))) / k
    if np.dtype(dtype).kind == "f":
        return np.round(280 + 8 * values, 2).astype(dtype)
    return _stored(values / np.abs(values).max(), dtype)


KINDS = (bench, smooth, noisy, walk, counts, mask, climate)
SMALL = ((30, 40), (100, 100), (200, 200), (40, 40, 40), (64, 64, 64), (100, 120, 90),
         (10, 90, 180), (721, 1440), (500, 700), (20000,), (100000,), (1000000,), (50000, 6),
         (8, 50000), (40, 8, 32, 32))
SMALL_BYTES = 8 << 20


def fields(kinds=KINDS, shapes=SMALL, dtypes=("f4", "f8", "i2", "u1", "i8")):
    """(name of the kind, array) of each combination, generated one by one."""
    for kind in kinds:
        for shape in shapes:
            for dtype in dtypes:
                rng = np.random.default_rng([len(kind.__name__), *shape])
                yield kind.__name__, kind(shape, dtype, rng)
