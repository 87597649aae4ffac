"""Converting from and to formats by name; `convert` does the work."""

from __future__ import annotations

from typing import Any, Unpack

from ._convert import Source, run
from ._functions import open as open_any
from ._options import Converting, Path


def _from(formats: tuple[str, ...], source: Path, path: Path, options: Converting) -> Any:
    run(source, path, options, formats)
    return open_any(path)


def from_dicom(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a DICOM file or a folder of them, by pydicom, and open the result.

    Each series is an array with the axes z, y, x, sorted by position. `spacing` is in mm;
    `affine` maps indices of these axes to the space of NIfTI. Items are as stored, with
    `scale_factor` and `add_offset` of the rescale. Elements of the headers are the attribute
    `dicom`, those that differ between the slices `dicom_slices`.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.from_dicom("series/", "out.b2z")  # doctest: +SKIP
    """
    return _from(("dicom",), source, path, options)


def from_fits(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a FITS file, by astropy, and open the result.

    Images keep their stored items, with `scale_factor`, `add_offset` and `_FillValue`;
    unsigned integers are unsigned. `dims` are the CTYPEs, `spacing` the CDELTs, and the header
    is the attribute `fits`. Each column of a table is an array. Packed files (.gz) are in
    memory while they are read.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.from_fits("sky.fits", "out.b2z")  # doctest: +SKIP
    """
    return _from(("fits",), source, path, options)


def from_grib(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a GRIB file, by cfgrib, and open the result.

    Each kind of level with its own coordinates becomes a group, for `xarray.open_dataset` or
    `xarray.open_datatree`.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.from_grib("fields.grib", "out.b2z")  # doctest: +SKIP
    """
    return _from(("grib",), source, path, options)


def from_hdf5(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert an HDF5 file, and open the result.

    Groups, dimension scales, enumerations, fill values and attributes travel.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.to_hdf5(np.arange(6.0).reshape(2, 3), "t.h5", overwrite=True)
    >>> caterva.from_hdf5("t.h5::/data", "t.b2nd", overwrite=True)[1]
    array([3., 4., 5.])
    """
    return _from(("hdf5",), source, path, options)


def from_mrc(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert an MRC or CCP4 map, by mrcfile, and open the result.

    `dims` are z, y, x; `spacing` is in angstrom. The header is the attribute `mrc`.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.from_mrc("map.mrc", "out.b2z")  # doctest: +SKIP
    """
    return _from(("mrc",), source, path, options)


def from_netcdf(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a NetCDF file, classic or NetCDF-4, and open the result.

    Dimensions, coordinates and CF attributes travel; packed numbers stay packed, as
    `xarray.open_dataset` expects them.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> a = caterva.asarray([271.5, 272.0], dims=["time"])
    >>> caterva.to_netcdf(a, "a.nc", overwrite=True)
    >>> caterva.from_netcdf("a.nc", "a.b2z", overwrite=True)["data"].dims
    ('time',)
    """
    return _from(("netcdf", "hdf5"), source, path, options)


def from_nifti(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a NIfTI image, and open the result.

    The first axis is x, as in nibabel; `affine`, `spacing` and `axis_units` are attributes,
    and the header is the attribute `nifti`.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.to_nifti(np.zeros((4, 3, 2), "i2"), "a.nii.gz", overwrite=True)
    >>> caterva.from_nifti("a.nii.gz", "a.b2nd", overwrite=True).shape
    (4, 3, 2)
    """
    return _from(("nifti",), source, path, options)


def from_npz(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a NumPy archive, and open the result.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> np.savez("a.npz", x=np.arange(4))
    >>> caterva.from_npz("a.npz", "a.b2z", overwrite=True)["x"][1:]
    array([1, 2, 3])
    """
    return _from(("npz",), source, path, options)


def from_nrrd(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert an NRRD image, and open the result.

    The axes are those of pynrrd; `affine`, `spacing` and the fields of the header are
    attributes.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.to_nrrd(np.zeros((4, 3, 2), "i2"), "a.nrrd", overwrite=True)
    >>> caterva.from_nrrd("a.nrrd", "a.b2nd", overwrite=True).shape
    (4, 3, 2)
    """
    return _from(("nrrd",), source, path, options)


def from_tiff(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a TIFF, BigTIFF or OME-TIFF image, and open the result.

    Pages of one shape become one array with the axes of its description as `dims`; `spacing`
    and `axis_units` are attributes. tifffile reads OME-TIFF: all images, and the levels of
    pyramids as NAME_level1 and so on.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.to_tiff(np.zeros((5, 8, 9), "u2"), "a.tif", overwrite=True)
    >>> caterva.from_tiff("a.tif", "a.b2nd", overwrite=True).dims
    (None, 'y', 'x')
    """
    return _from(("tiff",), source, path, options)


def from_zarr(source: Path, path: Path, **options: Unpack[Converting]) -> Any:
    """Convert a Zarr store of version 2 or 3, and open the result.

    With zarr-python also stores behind URLs, and all of its codecs.

    `path` ends with ``.b2nd`` for one array, with ``.b2z`` or ``.b2d`` for all. The options and
    exceptions are those of `convert`; ValueError if the source has another format.

    Returns
    -------
    Array or Tree
        Open for reading.

    Examples
    --------
    >>> import caterva, numpy as np
    >>> caterva.to_zarr(np.arange(4), "z.zarr", overwrite=True)
    >>> caterva.from_zarr("z.zarr", "z.b2nd", overwrite=True)[1:]
    array([1, 2, 3])
    """
    return _from(("zarr",), source, path, options)


def to_hdf5(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write an HDF5 file from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_hdf5(caterva.zeros(3), "zeros.h5", overwrite=True)
    """
    run(source, path, options, to="hdf5")


def to_netcdf(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write a NetCDF-4 file from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_netcdf(caterva.zeros(3), "zeros.nc", overwrite=True)
    """
    run(source, path, options, to="netcdf")


def to_nifti(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write a NIfTI image from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_nifti(caterva.zeros((4, 3)), "zeros.nii", overwrite=True)
    """
    run(source, path, options, to="nifti")


def to_npz(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write a NumPy archive from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_npz(caterva.zeros(3), "zeros.npz", overwrite=True)
    """
    run(source, path, options, to="npz")


def to_nrrd(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write an NRRD image from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_nrrd(caterva.zeros(3), "zeros.nrrd", overwrite=True)
    """
    run(source, path, options, to="nrrd")


def to_tiff(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write a TIFF or BigTIFF image from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_tiff(caterva.zeros((4, 3)), "zeros.tif", overwrite=True)
    """
    run(source, path, options, to="tiff")


def to_zarr(source: Source, path: Path, **options: Unpack[Converting]) -> None:
    """Write a Zarr store of version 3 from an array, or from a tree or group.

    The options and exceptions are those of `convert`. What the format lacks is a `LossWarning`,
    or with ``strict=True`` an error.

    Examples
    --------
    >>> import caterva
    >>> caterva.to_zarr(caterva.zeros(3), "zeros.zarr", overwrite=True)
    """
    run(source, path, options, to="zarr")
