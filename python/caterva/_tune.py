"""Trying partitions and codecs on an array's data, by the command line program."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _boxes
from ._array import Array
from ._functions import open as open_array
from ._options import Path
from ._places import whole


@dataclass(frozen=True)
class Candidate:
    """A partition and codec, with the estimated size and read times of the whole array."""

    chunks: tuple[int, ...]
    blocks: tuple[int, ...]
    codec: str
    level: int
    filters: str
    by_chunk: bool  # the library chooses level and filters for each chunk
    dictionary: bool
    current: bool
    nbytes: int
    ratio: float
    seconds: tuple[float, ...]
    amplification: tuple[float, ...]

    @property
    def options(self) -> dict[str, Any]:
        """Options for `Array.copy` and `create` that make such an array."""
        names = ["chunks", "blocks", "codec", "dictionary"]
        if not self.by_chunk:
            names += ["level", "filters"]
        return {name: getattr(self, name) for name in names}


def _candidate(found: dict[str, Any]) -> Candidate:
    return Candidate(
        chunks=tuple(found["chunk_shape"]),
        blocks=tuple(found["block_shape"]),
        codec=found["codec"],
        level=found["level"],
        filters=found["filters"],
        by_chunk=found["by_chunk"],
        dictionary=found["dictionary"],
        current=found["current"],
        nbytes=found["bytes"],
        ratio=found["ratio"],
        seconds=tuple(read["seconds"] for read in found["reads"]),
        amplification=tuple(read["amplification"] for read in found["reads"]),
    )


def _text_of(read: Any, shape: tuple[int, ...]) -> str:
    """Write the bounding box of a selection as the command line takes it."""
    start, stop = _boxes.box_around(read, shape)
    return ",".join(f"{a}:{b}" for a, b in zip(start, stop, strict=True))


def _run(path: str, shape: tuple[int, ...], reads: Sequence[Any], words: list[str]) -> Any:
    import json
    import subprocess

    from .__main__ import find_program

    command = [str(find_program()), "tune", "--json", "--no-progress", *words]
    for read in reads:
        command += ["--read", _text_of(read, shape)]
    command += ["--", path]
    done = subprocess.run(
        command, capture_output=True, check=False, encoding="utf-8", errors="backslashreplace"
    )
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or f"tune ended with status {done.returncode}")
    return json.loads(done.stdout)


def tune(
    x: Array | Path,
    reads: Sequence[Any],
    *,
    prefer: Literal["balance", "size", "speed"] = "balance",
    seconds: float = 10,
    threads: int = 0,
) -> list[Candidate]:
    """Try partitions and codecs on a sample of an array, and time the given reads.

    Parameters
    ----------
    x
        The array, as of its last commit, or its path.
    reads
        Selections to optimise, one of each kind; their sizes count, not their positions.
    prefer
        What to rank by: size, read times, or both.
    seconds
        Stop after this time.
    threads
        Maximum number of threads; 0 is all cores.

    Returns
    -------
    list of Candidate
        The best first; ``x.copy(path, **candidate.options)`` makes such an array.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> a = caterva.asarray(np.arange(64000).reshape(40, 40, 40))
    >>> best = caterva.tune(a, [np.s_[0]], seconds=0.2)[0]
    >>> a.copy(**best.options).shape
    (40, 40, 40)
    """
    import tempfile

    if not reads:
        raise ValueError("reads is empty: give at least one selection to optimise")
    words = ["--prefer", prefer, "--time", f"{max(1, round(seconds * 1000))}ms"]
    words += ["--threads", str(operator.index(threads))]
    if not isinstance(x, Array):
        with open_array(x) as array:
            if not isinstance(array, Array):
                raise ValueError(f"{array.path} is a tree: name one of its arrays")
            shape = array.shape
        found = _run(whole(os.fsdecode(x)), shape, reads, words)
    elif x.path is not None:
        found = _run(x.path, x.shape, reads, words)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array.b2nd")
            x.copy(path, durability="none").close()
            found = _run(path, x.shape, reads, words)
    return [_candidate(each) for each in found["candidates"]]
