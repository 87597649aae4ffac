"""python-blosc2 in the sequence tests: reads an array of ours, and appends to it, overwrites it
and resizes it, compared with a State of tool_sequence.

Operations that C-Blosc2 is known to do wrong are left out: see tool_python."""

import blosc2
import msgpack
import numpy as np

import tool_sequence as model
from tool_python import whole


def need(condition, sentence):
    if not condition:
        raise AssertionError("python-blosc2: " + sentence)


class Guest:
    def __init__(self, spec, path):
        self.spec = spec
        self.path = path

    def open(self, mode="r"):
        """blosc2.open supports only the b2nd metalayer; files with the old one are opened in
        memory."""
        if self.spec.kind == "b2nd":
            return blosc2.open(self.path, mode=mode)
        return blosc2.ndarray_from_cframe(blosc2.open(self.path, mode="r").to_cframe(), copy=True)

    def items(self, array):
        """All items, as raw bytes."""
        return np.ascontiguousarray(whole(array)).view(f"V{self.spec.dtype.itemsize}").reshape(
            array.shape)

    def check(self, state):
        array = self.open()
        need(array.shape == state.items.shape, f"shape {array.shape}, not {state.items.shape}")
        need((array.chunks, array.blocks) == (self.spec.chunks, self.spec.blocks),
             f"partition {array.chunks} {array.blocks}")
        need(self.items(array).tobytes() == state.items.tobytes(), "reads other items")
        attributes = dict(array.schunk.vlmeta.getall())
        attributes.pop("_caterva", None)
        need(attributes == {k: msgpack.unpackb(v) for k, v in state.attributes.items()},
             f"attributes {attributes}")
        if self.spec.meta:
            need(array.schunk.meta["user"] == msgpack.unpackb(state.meta), "metalayer")

    # ---- Changes: (state, rng) -> the state after it ---------------------------

    def changes(self, state, rng):
        """The operations that it supports here, in this order."""
        if self.spec.kind == "caterva" or self.spec.whole_chunks_only or state.items.ndim == 0:
            return [self.python_sets_attribute] if self.spec.kind == "b2nd" else []
        return [self.python_overwrites, self.python_grows, self.python_appends,
                self.python_sets_attribute, self.python_shrinks]

    def data(self, shape, rng):
        return model.contents(self.spec, shape, rng)

    def python_overwrites(self, state, rng):
        array = self.open("a")
        items = state.items.copy()
        for _ in range(3):
            box = model.random_box(items.shape, rng)
            items[box] = data = self.data(items[box].shape, rng)
            if data.size > 0:
                array[box] = data.view(self.spec.dtype)
        return model.with_items(state, items)

    def grown(self, state, shape):
        """Resizes; new items must be zeros or our fill."""
        array = self.open("a")
        array.resize(shape)
        got = self.items(self.open())
        kept = tuple(slice(0, n) for n in state.items.shape)
        need(got[kept].tobytes() == state.items.tobytes(), "loses items when it grows")
        new = np.ones(shape, bool)
        new[kept] = False
        for item in np.unique(got[new]):
            need(item.tobytes() in (bytes(got.itemsize), self.spec.fill_item),
                 f"grown items hold {item.tobytes()[:40]!r}")
        return model.with_items(state, got)

    def python_grows(self, state, rng):
        shape = tuple(n + int(rng.integers(0, 4)) * (i < 3)
                      for i, n in enumerate(state.items.shape))
        if not model.may_have_shape(self.spec, shape):
            shape = state.items.shape
        return self.grown(state, shape)

    def python_appends(self, state, rng):
        old = state.items.shape[0]
        n = int(rng.integers(1, 2 * self.spec.chunks[0] + 1))
        if not model.may_have_shape(self.spec, (old + n, *state.items.shape[1:])):
            n = 0
        state = self.grown(state, (old + n, *state.items.shape[1:]))
        items = state.items.copy()
        items[old:] = data = self.data(items[old:].shape, rng)
        if data.size > 0:
            array = self.open("a")
            array[old:] = data.view(self.spec.dtype)
        return model.with_items(state, items)

    def python_shrinks(self, state, rng):
        shape = tuple(min(n, max(1, n - int(rng.integers(0, 4)))) for n in state.items.shape)
        array = self.open("a")
        array.resize(shape)
        return model.with_items(state, state.items[tuple(slice(0, n) for n in shape)].copy())

    def python_sets_attribute(self, state, rng):
        value = {"set by": "python", "list": [1, None, int(rng.integers(100))]}
        array = self.open("a")  # the attributes do not hold a reference to it
        array.schunk.vlmeta["note"] = value
        return model.dataclasses.replace(
            state, attributes={**state.attributes, "note": msgpack.packb(value)})
