"""Files that others made, to a tree and back: equal for the library that made them, or every
difference is named by a sentence. The files are those of the test data in installed packages; in a long
run also those of source distributions and Debian packages, which it downloads."""

import collections
import gzip
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import numpy as np

from tool_cli import CLI, LONG, Case, main, run
from tool_foreign import need, need_plugin

need_plugin("hdf5")
need_plugin("netcdf")
h5py, netCDF4, nibabel, nrrd, hdf5plugin = need("h5py", "netCDF4", "nibabel", "nrrd", "hdf5plugin")

SDISTS = ("h5py netCDF4 h5netcdf zarr nibabel pynrrd tifffile xarray tables numcodecs").split()
DEBIAN = ("libncarg-data", "gmt-gshhg-low", "insighttoolkit5-examples")
ENDS = {".h5": "hdf5", ".hdf5": "hdf5", ".nc": "netcdf", ".cdf": "netcdf", ".grd": "netcdf",
        ".nii": "nifti", ".nii.gz": "nifti", ".hdr": "nifti", ".nrrd": "nrrd", ".nhdr": "nrrd",
        ".npy": "npy"}
OWN = {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_Netcdf4Dimid",
       "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}  # of HDF5 and netCDF
LARGEST = 8 << 20


def folders():
    """Where the files are: pairs of a package and a folder."""
    site = Path(sysconfig.get_paths()["purelib"])
    for name in ("h5py", "nibabel", "xarray", "netCDF4", "tables", "tifffile"):
        yield name, site / name
    if not LONG:
        return
    store = Path(CLI).parent.parent / "round-trips"
    store.mkdir(exist_ok=True)
    for name in SDISTS:
        target = store / name
        if not target.exists():
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary",
                            ":all:", "-d", target, name], check=False)
        for archive in target.glob("*.tar.gz"):
            if not (target / "unpacked").exists():
                with tarfile.open(archive) as opened:
                    opened.extractall(target / "unpacked", filter="data")
        yield name, target / "unpacked"
    for name in DEBIAN:
        target = store / name
        if not target.exists():
            target.mkdir()
            subprocess.run(["apt-get", "download", "-q", name], cwd=target, check=False)
        for archive in target.glob("*.deb"):
            if not (target / "unpacked").exists():
                subprocess.run(["dpkg", "-x", archive, target / "unpacked"], check=True)
        yield name, target / "unpacked"


def kind_of(path):
    for end, kind in ENDS.items():
        if path.name.lower().endswith(end):
            with open(path, "rb") as file:
                head = file.read(4)
            if kind in ("hdf5", "netcdf"):
                return "hdf5" if head == b"\x89HDF" and kind == "hdf5" else \
                    "netcdf" if head in (b"\x89HDF", b"CDF\1", b"CDF\2", b"CDF\5") else None
            return kind
    return None


def equal(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.names and b.dtype.names:
        return a.dtype.names == b.dtype.names and all(equal(a[n], b[n]) for n in a.dtype.names)
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return all(equal(x, y) if isinstance(x, np.ndarray) else x == y
                   for x, y in zip(a.ravel(), b.ravel()))
    return a.tobytes() == b.tobytes() if a.dtype == b.dtype else False


# ---- Judges: each yields (key, attribute or None, what differs) ------------------------------


def hdf5_objects(file):
    found = {"/": file}
    file.visititems(lambda name, thing: found.__setitem__("/" + name, thing))
    return found


def hdf5(a, b):
    with h5py.File(a) as one, h5py.File(b) as two:
        first, second = hdf5_objects(one), hdf5_objects(two)
        for key in sorted(first.keys() ^ second.keys()):
            yield key, None, "only one file has it"
        for key in sorted(first.keys() & second.keys()):
            x, y = first[key], second[key]
            if type(x) is not type(y):
                yield key, None, "is something else"
                continue
            for name in sorted((set(x.attrs) ^ set(y.attrs)) - OWN):
                yield key, name, "only one file has it"
            for name in sorted((set(x.attrs) & set(y.attrs)) - OWN):
                types = [h5py.h5a.open(t.id, name.encode()).dtype for t in (x, y)]
                if types[0] != types[1] or len({h5py.check_string_dtype(t) for t in types}) > 1:
                    yield key, name, "type"
                elif not (isinstance(x.attrs[name], h5py.Empty) or
                          equal(x.attrs[name], y.attrs[name])):
                    yield key, name, "value"
            if isinstance(x, h5py.Dataset):
                if x.dtype != y.dtype or x.shape != y.shape or x.maxshape != y.maxshape:
                    yield key, None, "dtype or shape"
                elif x.shape is not None and not equal(x[()], y[()]):
                    yield key, None, "items"
                elif [d.label for d in x.dims] != [d.label for d in y.dims]:
                    yield key, None, "labels"


def netcdf(a, b):
    with netCDF4.Dataset(a) as one, netCDF4.Dataset(b) as two:
        yield from netcdf_groups("", one, two)


def netcdf_groups(path, one, two):
    for name in sorted(set(one.dimensions) | set(two.dimensions)):
        found = [(len(g.dimensions[name]), g.dimensions[name].isunlimited())
                 if name in g.dimensions else None for g in (one, two)]
        if found[0] != found[1]:
            yield path + "/" + name, None, "dimension"
    for name in sorted(set(one.variables) ^ set(two.variables)):
        yield path + "/" + name, None, "only one file has it"
    yield from netcdf_attributes(path or "/", one, two)
    for name in sorted(set(one.variables) & set(two.variables)):
        key, x, y = path + "/" + name, one[name], two[name]
        for variable in (x, y):
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
        if str(x.datatype) != str(y.datatype) or x.dimensions != y.dimensions:
            yield key, None, "type or dimensions"
        elif not equal(x[...], y[...]):
            yield key, None, "items"
        yield from netcdf_attributes(key, x, y)
    for name in sorted(set(one.groups) | set(two.groups)):
        if name in one.groups and name in two.groups:
            yield from netcdf_groups(path + "/" + name, one[name], two[name])
        else:
            yield path + "/" + name, None, "only one file has it"


def netcdf_attributes(key, one, two):
    for name in sorted(set(one.ncattrs()) | set(two.ncattrs())):
        values = [t.getncattr(name) if name in t.ncattrs() else None for t in (one, two)]
        if type(values[0]) is not type(values[1]) or not equal(*values):
            yield key, name, "attribute"


def nifti(a, b):
    one, two = (nibabel.Nifti2Image.from_filename(p) if isinstance(nibabel.load(p),
                                                                  nibabel.Cifti2Image)
                else nibabel.load(p) for p in (a, b))
    if not equal(np.asanyarray(one.dataobj), np.asanyarray(two.dataobj)):
        yield "/", None, "items"
    if not np.allclose(one.affine, two.affine):
        yield "/", None, "affine"
    for name in one.header:
        if not equal(one.header[name], two.header[name]) and name not in ("magic", "vox_offset"):
            yield "/", name, "field"


def nrrd_files(a, b):
    (one, header), (two, other) = nrrd.read(str(a)), nrrd.read(str(b))
    if not equal(one, two):
        yield "/", None, "items"
    for name in set(header) - {"encoding", "data file", "endian", "type", "byte skip", "line skip"}:
        if name not in other or str(header[name]) != str(other[name]):
            yield "/", name, "field"


def npy(a, b):
    if not equal(np.load(a), np.load(b)):
        yield "/", None, "items"


JUDGES = {"hdf5": (hdf5, ".h5"), "netcdf": (netcdf, ".nc"), "nifti": (nifti, ".nii.gz"),
          "nrrd": (nrrd_files, ".nrrd"), "npy": (npy, ".npy")}


def is_named(key, attribute, warnings):
    """Whether a sentence is about the difference: about the object, or about one that it is in."""
    above = ["/"] if key == "/" else [key[:i] for i in range(1, len(key) + 1)
                                       if i == len(key) or key[i] == "/"]
    return any(f": {k}: " in line and (not attribute or attribute in line or "attributes" in line)
               for line in warnings.splitlines() for k in above)


class RoundTrips(Case):
    def there_and_back(self, path, kind):
        """Returns what became of a file: "identical", "named", or a reason."""
        judge, end = JUDGES[kind]
        plugins = {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH, "ASAN_OPTIONS": "detect_leaks=0"}
        tree, back = self.path("tree.b2d"), self.path("back" + end)
        shutil.rmtree(tree, ignore_errors=True)
        status, _, first = run("convert", path, tree, "--verify", **plugins)
        if status:
            self.assertIn(status, (3, 4, 5), (path, first))
            self.assertFalse(tree.exists())
            return "refused", [first.strip().splitlines()[-1].replace(str(path), "the file")]
        only = [n for n in tree.rglob("*.b2nd")]
        inside = "%s::/%s" % (tree, only[0].relative_to(tree).with_suffix("")) \
            if end not in (".h5", ".nc") and len(only) == 1 else tree
        status, _, second = run("convert", inside, back, "-f", **plugins)
        if status:
            self.assertIn(status, (3, 4, 5), (path, second))
            return "not written", [second.strip().splitlines()[-1].replace(str(back), "the file")]
        found = list(judge(path, back))
        silent = ["%s %s: %s" % (key, name or "", what) for key, name, what in found
                  if not is_named(key, name, first + second)]
        if silent:
            return "silent", silent
        reasons = (line.split(": ", 3)[-1] for line in (first + second).splitlines())
        return ("named", sorted(set(reasons))) if found else ("identical", [])

    def test_files(self):
        counts, reasons, silent, seen = collections.Counter(), collections.Counter(), [], set()
        for package, folder in folders():
            for path in sorted(folder.rglob("*")):
                if not path.is_file() or path.stat().st_size > LARGEST:
                    continue
                kind, content = kind_of(path), path.read_bytes()
                if not kind or content in seen:
                    continue
                seen.add(content)
                try:
                    what, why = self.there_and_back(path, kind)
                except (OSError, ValueError, KeyError, gzip.BadGzipFile,
                        nibabel.filebasedimages.ImageFileError, nrrd.NRRDError) as error:
                    what, why = "the judge refuses", [type(error).__name__]
                counts[package, kind, what] += 1
                for reason in why:
                    reasons[what, reason[:90]] += 1
                if what == "silent":
                    silent.append((str(path), why))
        for (package, kind, what), n in sorted(counts.items()):
            print("%-26s %-8s %-18s %4d" % (package, kind, what, n))
        for (what, reason), n in reasons.most_common(40):
            print("%4d %s: %s" % (n, what, reason))
        print("%d files, %d identical" % (counts.total(), sum(
            n for (_, _, what), n in counts.items() if what == "identical")), flush=True)
        self.assertEqual(silent, [])
        self.assertGreaterEqual(counts.total(), 200 if LONG else 5)


if __name__ == "__main__":
    main()
