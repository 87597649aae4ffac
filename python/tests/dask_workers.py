"""Functions that the tests of dask run in other processes, which import this module by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np


def dying_part(job: object, box: tuple[slice, ...], items: np.ndarray, flag: str) -> bytes:
    """Write a part; the first process that does so dies with the part half written."""
    with job.part() as part:  # type: ignore[attr-defined]
        half = (slice(box[0].start, (box[0].start + box[0].stop) // 2), *box[1:])
        part[half] = items[: half[0].stop - half[0].start]
        if not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        part[box] = items
    return part.token
