"""Progress drawn as a bar, where tqdm is installed."""

from __future__ import annotations

from typing import Any


class Bar:
    """A progress function that draws with tqdm."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm  # type: ignore[import-untyped]

        self._make = tqdm
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._make(total=total, unit="B", unit_scale=True, unit_divisor=1024)
        if done < self._bar.n:
            self._bar.reset(total=total)
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()
            self._bar = None
