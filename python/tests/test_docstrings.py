"""Every example in a docstring runs, and every public name has a docstring."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import caterva
import numpy as np
import pytest
from caterva import _array, _functions, _view
from support import NUMPY_2, needs_plugins, needs_program

OWNERS = (caterva.Array, caterva.View, caterva.Group, caterva.Tree)


def _tests() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found = finder.find(caterva, "caterva", module=False)
    for name in caterva.__all__:
        value = getattr(caterva, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            found += finder.find(value, f"caterva.{name}", module=False)
    for owner in OWNERS:
        for name in dir(owner):
            if not name.startswith("_"):
                found += finder.find(
                    getattr(owner, name), f"{owner.__name__}.{name}", module=False
                )
    return [test for test in found if test.examples]


def _case(test: doctest.DocTest) -> Any:
    text = "".join(example.source for example in test.examples)
    runs_it = any(f"caterva.{name}" in text for name in ("tune(", "convert(", "from_n", "to_"))
    asks = any(f"to_{name}" in text for name in ("hdf5", "netcdf", "tiff"))
    return pytest.param(test, marks=[needs_program] * runs_it + [needs_plugins] * asks)


@pytest.mark.skipif(not NUMPY_2, reason="the examples show items as NumPy 2 prints them")
@pytest.mark.parametrize("test", [_case(test) for test in _tests()], ids=lambda test: test.name)
def test_examples_run(test: doctest.DocTest) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    test.globs = {"caterva": caterva, "np": np}
    runner.run(test)
    assert runner.failures == 0, f"see above: {test.name}"


def _public() -> list[tuple[str, Any]]:
    names = [(f"caterva.{n}", getattr(caterva, n)) for n in caterva.__all__ if n[0] != "_"]
    for owner in OWNERS:
        names += [
            (f"{owner.__name__}.{n}", getattr(owner, n)) for n in dir(owner) if n[0] != "_"
        ]
    return [(name, value) for name, value in names if not isinstance(value, str)]


@pytest.mark.parametrize(
    ("name", "value"), _public(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_has_a_docstring(name: str, value: Any) -> None:
    assert (value.__doc__ or "").strip(), name


def test_modules_have_docstrings() -> None:
    for module in (_array, _functions, _view):
        assert module.__doc__
