"""n-dimensional arrays in compressed chunks, indexed as NumPy arrays.

`open`, `create` and `asarray` return an `Array`; `open_tree` opens a `Tree` of arrays in one
place. The modules `caterva.xarray`, `caterva.dask` and `caterva.mpi` are for these packages.
Exceptions derive from `Error` and from Python's own classes.

>>> import caterva, numpy as np
>>> with caterva.asarray(np.arange(24).reshape(4, 6), "cube.b2nd", overwrite=True) as a:
...     a[1:3, ::2] = 0
>>> caterva.open("cube.b2nd")[1]
array([ 0,  7,  0,  9,  0, 11])
"""

from . import _exit_warning as _exit_warning
from ._array import Array
from ._caterva import codec_version
from ._caterva import version as __version__
from ._convert import LossWarning, convert
from ._errors import (
    BusyError,
    CorruptError,
    DTypeError,
    Error,
    ExistsError,
    InvalidError,
    NotFoundError,
    OutOfMemoryError,
    RangeError,
    ReadOnlyError,
    RollbackError,
    StaleError,
    Status,
    StoppedError,
    StoreError,
    UnsupportedError,
)
from ._files import (
    cache,
    choose_partition,
    compact,
    delete,
    repair,
    seal,
    set_cache_limit,
)
from ._formats import (
    from_dicom,
    from_fits,
    from_grib,
    from_hdf5,
    from_mrc,
    from_netcdf,
    from_nifti,
    from_npz,
    from_nrrd,
    from_tiff,
    from_zarr,
    to_hdf5,
    to_netcdf,
    to_nifti,
    to_npz,
    to_nrrd,
    to_tiff,
    to_zarr,
)
from ._functions import (
    asarray,
    copy,
    create,
    empty,
    from_bytes,
    full,
    load,
    open,
    save,
    zeros,
)
from ._group import Entry, Group
from ._image import Image
from ._info import Info, Report, Space, TreeReport
from ._jobs import Job, JobInfo, Merged, Part, Target, jobs
from ._publish import Published, publish
from ._remote import Remote, Transfer, Transfers
from ._tree import Tree
from ._trees import open_tree
from ._tune import tune
from ._view import View, concat, stack

__all__ = [
    "Array",
    "BusyError",
    "CorruptError",
    "DTypeError",
    "Entry",
    "Error",
    "ExistsError",
    "Group",
    "Image",
    "Info",
    "InvalidError",
    "Job",
    "JobInfo",
    "LossWarning",
    "Merged",
    "NotFoundError",
    "OutOfMemoryError",
    "Part",
    "Published",
    "RangeError",
    "ReadOnlyError",
    "Remote",
    "Report",
    "RollbackError",
    "StaleError",
    "Space",
    "Status",
    "StoppedError",
    "StoreError",
    "Target",
    "Transfer",
    "Transfers",
    "Tree",
    "TreeReport",
    "UnsupportedError",
    "View",
    "__version__",
    "asarray",
    "cache",
    "choose_partition",
    "codec_version",
    "compact",
    "concat",
    "convert",
    "copy",
    "create",
    "delete",
    "empty",
    "from_bytes",
    "from_dicom",
    "from_fits",
    "from_grib",
    "from_hdf5",
    "from_mrc",
    "from_netcdf",
    "from_nifti",
    "from_npz",
    "from_nrrd",
    "from_tiff",
    "from_zarr",
    "full",
    "jobs",
    "load",
    "open",
    "open_tree",
    "publish",
    "repair",
    "save",
    "seal",
    "set_cache_limit",
    "stack",
    "to_hdf5",
    "to_netcdf",
    "to_nifti",
    "to_npz",
    "to_nrrd",
    "to_tiff",
    "to_zarr",
    "tune",
    "zeros",
]
