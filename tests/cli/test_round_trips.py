"""Files that others made, to a tree and back: equal for the library that made them, or every
difference is named by a sentence. The files are those of the test data in installed packages;
scripts/round-trips downloads many more."""

import collections
import gzip
import os
import shutil
import sysconfig
from pathlib import Path

import numpy as np

from tool_cli import Case, main, run
from tool_foreign import need, need_plugin

need_plugin("hdf5")
need_plugin("netcdf")
nibabel, nrrd, hdf5plugin = need("nibabel", "nrrd", "hdf5plugin")
from tool_judges import equal, hdf5, is_named, netcdf  # noqa: E402

ENDS = {".h5": "hdf5", ".hdf5": "hdf5", ".nc": "netcdf", ".cdf": "netcdf", ".grd": "netcdf",
        ".nii": "nifti", ".nii.gz": "nifti", ".hdr": "nifti", ".nrrd": "nrrd", ".nhdr": "nrrd",
        ".npy": "npy"}
LARGEST = 8 << 20
DOWNLOADED = os.environ.get("CATERVA_ROUND_TRIPS")


def folders():
    """Where the files are: pairs of a package and a folder."""
    if DOWNLOADED:
        yield from ((folder.name, folder) for folder in sorted(Path(DOWNLOADED).iterdir()))
    site = Path(sysconfig.get_paths()["purelib"])
    for name in ("h5py", "nibabel", "xarray", "netCDF4", "tables", "tifffile"):
        yield name, site / name


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


# ---- Judges: each yields (key, attribute or None, what differs) ------------------------------


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
        silent = ["%s %s: %s" % (f[0], f[1] or "", f[2]) for f in found
                  if not is_named(f, first + second)]
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
        self.assertGreaterEqual(counts.total(), 200 if DOWNLOADED else 5)


if __name__ == "__main__":
    main()
