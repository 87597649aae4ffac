"""Files with several arrays become Zarr hierarchies: what xarray and zarr-python read in them."""

import numpy as np

from tool_cli import main, run
from tool_foreign import ForeignCase, need, need_plugin

need_plugin("netcdf")
need_plugin("hdf5")
h5py, xarray, zarr = need("h5py", "xarray", "zarr")

OURS = ("_unlimited_dims",)  # attributes of docs/conventions.md, which NetCDF has otherwise


def data_set():
    """Packed, missing, text, bool and time items, a growing dimension, typed attributes."""
    rng = np.random.default_rng(1)
    t2m = rng.normal(280, 5, (10, 20, 30)).round(2)
    t2m[0, 0, :5] = np.nan
    return xarray.Dataset(
        {"t2m": (("time", "lat", "lon"), t2m, {"units": "K"}, {
            "dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}),
         "p": (("time", "lat"), rng.random((10, 20)), {}, {"_FillValue": 1e20}),
         "n": ("lat", np.arange(20, dtype="i4"), {"flag_values": np.array([1, 2], "i4")}),
         "flag": ((), np.int8(3)),
         "name": ("lon", np.array(["a%d" % i for i in range(30)], dtype=object)),
         "land": ("lat", np.arange(20) % 2 == 0)},
        {"time": np.datetime64("2020-01-01", "ns") + np.arange(10) * np.timedelta64(6, "h"),
         "lat": np.linspace(-90, 90, 20), "lon": np.arange(30) * 12.0},
        {"title": "run", "n": 5, "list": [1, 2, 3]})


def without_ours(ds):
    for each in (ds, *ds.variables.values()):
        for name in OURS:
            each.attrs.pop(name, None)
    return ds


class Hierarchies(ForeignCase):
    def same_data_sets(self, nc, store):
        with xarray.open_dataset(nc) as a, xarray.open_zarr(store, consolidated=True) as b:
            xarray.testing.assert_identical(without_ours(a.load()), without_ours(b.load()))

    def test_netcdf(self):
        ds = data_set()
        for name, words in (("new", {"unlimited_dims": ["time"]}),
                            ("old", {"format": "NETCDF3_64BIT"})):
            nc, out = self.path(name + ".nc"), self.path(name + ".zarr")
            ds.to_netcdf(nc, **words)
            self.ok("convert", nc, out, "--verify")
            self.same_data_sets(nc, out)
            self.ok("convert", out, self.path("back.nc"), "-f")
            with xarray.open_dataset(nc) as a, xarray.open_dataset(self.path("back.nc")) as b:
                xarray.testing.assert_identical(a.load(), b.load())

    def test_one_variable_is_a_group(self):
        xarray.Dataset({"data": ("x", [1.5, 2])}).to_netcdf(self.path("one.nc"))
        self.ok("convert", self.path("one.nc"), self.path("one.zarr"))
        self.same_data_sets(self.path("one.nc"), self.path("one.zarr"))
        self.ok("convert", f"{self.path('one.nc')}::/data", self.path("array.zarr"))
        self.assertEqual(zarr.open_array(self.path("array.zarr"))[...].tolist(), [1.5, 2])

    def test_missing_complex_numbers(self):
        x = np.array([1 + 2j, np.nan, 3 - 4j], "c8")
        ds = xarray.Dataset({"x": ("n", x, {}, {"_FillValue": np.complex64(-9 + 0.5j)})})
        for version in (2, 3):
            store = self.path("x%d.zarr" % version)
            ds.to_zarr(store, zarr_format=version)
            self.ok("convert", store, self.path("x.b2d"), "-f")
            self.ok("convert", self.path("x.b2d"), self.path("back.zarr"), "-f")
            with xarray.open_zarr(self.path("back.zarr")) as back:
                self.assertEqual(back.x.encoding["_FillValue"], -9 + 0.5j)
                np.testing.assert_array_equal(back.x, x)
        tree = f"{self.path('x.b2d')}::/x"
        z = '{"$array": {"dtype": "<c16", "shape": [2], "data": [[1, -0.5], [0, 2]]}}'
        self.ok("attr", "set", tree, "z", z)
        self.ok("convert", tree, self.path("one.zarr"))
        self.assertEqual(zarr.open_array(self.path("one.zarr")).attrs["z"],
                         [[1.0, -0.5], [0.0, 2.0]])

    def test_trees_and_groups(self):
        with h5py.File(self.path("g.h5"), "w") as file:
            file["a/b/x"] = np.arange(12.0).reshape(3, 4)
            file["a/b"].attrs["title"] = "inner"
            file["a/y"] = np.int16(7)
        self.ok("convert", self.path("g.h5"), self.path("g.b2d"))
        for n, source in enumerate(("g.h5", "g.b2d")):
            out = self.path("g%d.zarr" % n)
            self.ok("convert", self.path(source), out)
            group = zarr.open_group(out, mode="r")
            self.assertEqual(group["a/b/x"][...].tolist(), np.arange(12.0).reshape(3, 4).tolist())
            self.assertEqual((group["a/b"].attrs["title"], int(group["a/y"][()])), ("inner", 7))
        self.ok("convert", f"{self.path('g.h5')}::/a/b", self.path("part.zarr"))
        self.assertEqual(list(zarr.open_group(self.path("part.zarr"), mode="r")), ["x"])

    def test_damage_beside_arrays_of_others(self):
        """An array of ours is checked as elsewhere if a hierarchy has arrays of others, too."""
        store, items = self.path("mixed.zarr"), np.arange(4096, dtype="i4").reshape(64, 64)
        group = zarr.create_group(store)
        group.create_array("theirs", data=items, chunks=(16, 16))
        np.save(self.path("x.npy"), items)
        self.ok("convert", self.path("x.npy"), f"{store}/ours", "--to", "zarr", "--blocks", "16,16")
        text = self.ok("get", f"{store}::/ours")
        self.assertEqual(text, self.ok("get", f"{store}::/theirs"))
        self.ok("convert", store, self.path("good.b2d"))
        shard = f"{store}/ours/c/0/0"
        with open(shard, "rb") as file:
            good = file.read()
        found = 0
        for at in range(len(good) // 2, len(good), len(good) // 50):
            bad = bytearray(good)
            bad[at] ^= 16
            with open(shard, "wb") as file:
                file.write(bad)
            status, out, _ = run("get", f"{store}::/ours")
            found += status == 4
            self.assertTrue(status == 4 or out == text, f"byte {at}: {status}")
        self.assertGreater(found, 10)

    def test_back_to_trees(self):
        """A hierarchy of ours, a tree or a group in one becomes a tree, with all attributes."""
        ds = data_set()
        del ds.attrs["list"]  # JSON, in which groups of Zarr have their attributes, has no int64
        ds.to_netcdf(self.path("in.nc"), unlimited_dims=["time"])
        with h5py.File(self.path("in.nc"), "r+") as file:
            file["g/x"] = np.arange(4)
            file["g"].attrs["title"] = "inner"
        self.ok("convert", self.path("in.nc"), self.path("a.b2d"))
        self.ok("convert", self.path("a.b2d"), self.path("a.zarr"))
        for source, out in (("a.zarr", "b.b2z"), ("a.zarr", "b.b2d"), ("a.b2d", "c.b2z")):
            self.ok("convert", self.path(source), self.path(out))
            self.ok("diff", self.path("a.b2d"), self.path(out))
            self.ok("verify", self.path(out))
        self.ok("convert", f"{self.path('a.zarr')}::/g", self.path("g.b2z"))
        self.ok("convert", f"{self.path('a.b2d')}::/g", self.path("g.zarr"))
        for name in ("g.b2z", "g.zarr"):
            self.ok("diff", f"{self.path('a.b2d')}::/g", self.path(name))
        self.assertIn("-f replaces", run("convert", self.path("a.zarr"), self.path("b.b2z"))[2])
        left = [p.name for p in self.path(".").iterdir() if p.name.startswith(".")]
        self.assertEqual(left, [])

    def test_several_arrays_without_groups(self):
        np.savez(self.path("two.npz"), a=np.arange(3), b=np.ones((2, 2)))
        np.savez(self.path("one.npz"), a=np.arange(3))
        self.ok("convert", self.path("two.npz"), self.path("two.zarr"))
        self.assertEqual(sorted(zarr.open_group(self.path("two.zarr"), mode="r")), ["a", "b"])
        self.ok("convert", self.path("one.npz"), self.path("one.zarr"))
        self.assertEqual(zarr.open_array(self.path("one.zarr"))[...].tolist(), [0, 1, 2])

    def test_items_without_a_name_in_zarr(self):
        with h5py.File(self.path("v.h5"), "w") as file:
            file["x"] = np.arange(3)
            file["gap"] = np.zeros(2, np.dtype("i1,f8", align=True))
        status, _, err = run("convert", self.path("v.h5"), self.path("v.zarr"))
        self.assertEqual((status, list(zarr.open_group(self.path("v.zarr"), mode="r"))), (0, ["x"]), err)
        self.assertRegex(err, r"\Acaterva: warning: [^\n]*/gap: [^\n]+\n\Z")
        status, _, err = run("convert", self.path("v.h5"), self.path("w.zarr"), "--strict")
        self.assertEqual(status, 5, err)
        self.assertFalse(self.path("w.zarr").exists())

    def test_existing_output(self):
        xarray.Dataset({"t": ("x", [1.5, 2])}).to_netcdf(self.path("in.nc"))
        self.ok("convert", self.path("in.nc"), self.path("o.zarr"))
        self.assertIn("-f replaces", run("convert", self.path("in.nc"), self.path("o.zarr"))[2])
        xarray.Dataset({"t": ("x", [3.5])}).to_netcdf(self.path("other.nc"))
        self.ok("convert", self.path("other.nc"), self.path("o.zarr"), "-f")
        self.same_data_sets(self.path("other.nc"), self.path("o.zarr"))
        self.path("o.zarr/mine.txt").write_text("precious")
        self.refused("convert", self.path("in.nc"), self.path("o.zarr"), "-f")
        self.assertTrue(self.path("o.zarr/mine.txt").exists())
        self.assertEqual(sorted(p.name for p in self.path(".").iterdir()),
                         ["in.nc", "o.zarr", "other.nc"])


if __name__ == "__main__":
    main()
