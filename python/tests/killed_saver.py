"""A process that appends to a data set until it is killed, and the data set expected then."""

from __future__ import annotations

import sys

import numpy as np
import xarray as xr

STEP = 3  # times in each append


def steps(start: int, stop: int) -> xr.Dataset:
    """The data set of some appends: six variables, and an attribute that counts the appends."""
    n = np.arange(start * STEP, stop * STEP)
    field = n[:, None, None] * 100.0 + np.arange(20.0).reshape(4, 5)
    return xr.Dataset(
        {
            "field": (("time", "y", "x"), field, {"units": "K"}),
            "turned": (("x", "time"), field[:, 0, :].T.astype("i4")),
            "flag": ("time", (n % 7).astype("i1")),
            "name": ("time", np.array([f"step {i}" for i in n], object)),
            "fixed": ("x", np.arange(5)),
        },
        {"time": n},
        {"appends": stop},
    )


def main(place: str) -> None:
    """Append until killed; report each append that has returned."""
    n = xr.open_dataset(place, engine="caterva").attrs["appends"]
    print(n, flush=True)
    while True:
        one = steps(n, n + 1)
        one.to_caterva(place, append_dim="time", durability="none")
        n += 1
        print(n, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
