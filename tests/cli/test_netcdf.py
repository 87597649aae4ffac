"""NetCDF files there and back: what netCDF4, xarray and nccopy write, compared with NumPy."""

import struct
import subprocess

import blosc2
import numpy as np

from tool_cli import CLI, main, run
from tool_foreign import (ForeignCase, hostile_environment, items, need, need_plugin, random_of,
                          rounds)

need_plugin("netcdf")
need_plugin("hdf5")
netCDF4, xarray = need("netCDF4", "xarray")

CLASSIC = {"NETCDF3_CLASSIC": ["i1", "S1", "i2", "i4", "f4", "f8"],
           "NETCDF3_64BIT_OFFSET": ["i1", "S1", "i2", "i4", "f4", "f8"],
           "NETCDF3_64BIT_DATA": ["i1", "u1", "S1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]}
NEW = ["?", "i1", "u1", "<i2", ">i2", "u2", "i4", ">u4", "i8", "u8", "f4", ">f4", "f8", ">f8", "S5", "<c16", "M8[s]", "m8[ns]", "<U4"]


def random_file(rng, path, form):
    """Writes a file of random variables, and returns their items."""
    values = {}
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.title = "grün"
        lengths = {"time": rng.randrange(1, 5), "y": rng.randrange(1, 8), "x": rng.randrange(1, 8)}
        for name, length in lengths.items():
            file.createDimension(name, None if name == "time" else length)
        for n in range(6):
            dims = tuple(d for d in lengths if rng.random() < 0.6)
            dtype = rng.choice(CLASSIC[form])
            variable = file.createVariable("v%d" % n, dtype, dims)
            variable.set_auto_maskandscale(False)
            data = items(rng, tuple(lengths[d] for d in dims), dtype)
            variable[...] = data
            values["v%d" % n] = data, list(dims)
            variable.units = rng.choice(("K", "", "日本"))
            variable.number = np.dtype(rng.choice(CLASSIC[form][2:])).type(3)
            variable.many = np.arange(3, dtype="f4")
    return values


class Netcdf(ForeignCase):
    def there(self, path, *options):
        subprocess.run(["rm", "-rf", self.path("tree.b2d")], check=True)
        self.ok("convert", path, self.path("tree.b2d"), "--verify", *options)
        return self.path("tree.b2d")

    def same_files(self, a, b):
        with netCDF4.Dataset(a) as one, netCDF4.Dataset(b) as two:
            self.assertEqual(one.__dict__, two.__dict__)
            self.assertEqual(set(one.variables), set(two.variables))
            for name in one.variables:
                for file in (one, two):
                    file[name].set_auto_maskandscale(False)
                self.assertEqual(one[name].dtype, two[name].dtype, name)
                self.assertEqual(one[name].dimensions, two[name].dimensions, name)
                self.assertEqual(one[name][...].tobytes(), two[name][...].tobytes(), name)
                self.assertEqual(set(one[name].ncattrs()), set(two[name].ncattrs()))
                for key in one[name].ncattrs():
                    values = [np.asarray(f[name].getncattr(key)) for f in (one, two)]
                    self.assertEqual(values[0].dtype, values[1].dtype, (name, key))
                    np.testing.assert_array_equal(*values)
            for name, dim in one.dimensions.items():
                if name in two.dimensions: # netCDF alone keeps those that no variable has
                    self.assertEqual(dim.isunlimited(), two.dimensions[name].isunlimited())

    def test_classic(self):
        rng = random_of(self)
        for trial in range(rounds(25)):
            form = rng.choice(list(CLASSIC))
            with self.subTest(trial=trial, form=form):
                values = random_file(rng, self.path("a.nc"), form)
                used = {d for _, dims in values.values() for d in dims}
                if used != {"time", "x", "y"}:
                    continue # a warning tells that the others are lost
                tree = self.there(self.path("a.nc"))
                for name, (data, dims) in values.items():
                    self.same(tree / (name + ".b2nd"), data)
                    meta = self.attributes(tree / (name + ".b2nd"))
                    self.assertEqual(meta.get("dims", []), dims)
                self.ok("convert", tree, self.path("b.nc"), "-f")
                self.same_files(self.path("a.nc"), self.path("b.nc"))

    def test_xarray(self):
        """Data sets that xarray writes are identical when they return."""
        rng = random_of(self)
        for trial in range(rounds(10)):
            random = np.random.default_rng(rng.getrandbits(32))
            nt, nx = rng.randrange(1, 9), rng.randrange(1, 9)
            data = xarray.Dataset(
                {"t": (("time", "x"), random.random((nt, nx)).astype(rng.choice(("f4", "f8"))),
                       {"units": "K", "number": np.int16(3), "many": np.array([1.5, 2.5])}),
                 "word": (("x",), np.array([rng.choice(("a", "bcd", "", "grün")) for _ in range(nx)])),
                 "byte": (("x",), random.integers(97, 99, nx).astype("u1").view("S1")),
                 "flag": (("x",), random.integers(0, 2, nx).astype(bool)),
                 "packed": (("time",), np.array([1.0] * nt)), "one": ((), 5)},
                {"time": np.arange("2020-01", nt, dtype="M8[D]").astype("M8[ns]")
                 if nt == 0 else np.datetime64("2020-01-01", "ns") + np.arange(nt) * 10**14,
                 "x": np.arange(nx) * 2.0, "place": (("x",), np.arange(nx, dtype="i4"))},
                {"title": "grün", "n": 3})
            data["packed"].encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
            form = rng.choice(("NETCDF3_CLASSIC", "NETCDF3_64BIT", "NETCDF4"))
            if form != "NETCDF4":
                data = data.drop_vars("place").assign_attrs(n=np.int32(3))
                data["one"] = data["one"].astype("i4")
            data.to_netcdf(self.path("a.nc"), format=form, engine="netcdf4",
                           unlimited_dims=rng.choice(([], ["time"])))
            self.ok("convert", self.there(self.path("a.nc")), self.path("b.nc"), "-f")
            with xarray.open_dataset(self.path("a.nc"), engine="netcdf4") as one, \
                    xarray.open_dataset(self.path("b.nc"), engine="netcdf4") as two:
                with self.subTest(trial=trial, form=form):
                    xarray.testing.assert_identical(one.load(), two.load())
                    self.assertEqual(one.encoding["unlimited_dims"],
                                     two.encoding["unlimited_dims"])
                    for name in one.variables:
                        self.assertEqual(*[f[name].encoding.get("dtype") for f in (one, two)])

    def test_written_types(self):
        rng = random_of(self)
        for dtype in NEW:
            shape = rng.choice(((5,), (3, 3), ()))
            data = items(rng, shape, "u1").astype(dtype) if dtype != "<U4" else \
                np.full(shape, "grün", dtype)
            blosc2.asarray(data, urlpath=str(self.path("a.b2nd")), mode="w")
            self.ok("convert", self.path("a.b2nd"), self.path("a.nc"), "-f")
            with self.subTest(dtype=dtype), xarray.open_dataset(
                    self.path("a.nc"), engine="netcdf4", auto_complex=True,
                    mask_and_scale=True) as file:
                read = file["data"].values
                if data.dtype.kind == "S":
                    self.assertEqual(read.tolist(), data.tolist())
                else:
                    np.testing.assert_array_equal(read, data)

    def test_enumerations_and_groups(self):
        with netCDF4.Dataset(self.path("a.nc"), "w") as file:
            group = file.createGroup("a/b")
            file.createDimension("x", 3)
            file.createVariable("z", "f4", ("x",))[:] = [1, 2, 3]
            kind = group.createEnumType("i2", "kind", {"no": 0, "yes": 500})
            group.createVariable("e", kind, ("x",), fill_value=0)[:] = [0, 500, 0]
            group.note = "below"
        status, _, err = run("convert", self.path("a.nc"), self.path("a.b2z"))
        self.assertEqual(status, 0, err)
        self.ok("convert", self.path("a.b2z"), self.path("b.nc"))
        with netCDF4.Dataset(self.path("b.nc")) as file:
            self.assertEqual(file["a/b/e"].datatype.enum_dict, {"no": 0, "yes": 500})
            self.assertEqual(file["a/b/e"][:].tolist(), [None, 500, None])
            self.assertEqual(file["a/b"].note, "below")
            self.assertEqual((list(file.dimensions), list(file["a/b"].dimensions)), (["x"], []))

    def test_dimensions_of_groups(self):
        """A dimension stays in the group that has it, also if only groups below use it."""
        with netCDF4.Dataset(self.path("a.nc"), "w") as file:
            for name, length in (("x", 5), ("t", None), ("z", 3), ("own", 3)):
                file.createDimension(name, length)
            for name in "gh":
                file.createGroup(name).createVariable("v", "i4", ("t", "x"))[:2] = 1
            file["g"].createVariable("z", "i4", ("z",))[:] = 7
            file.createVariable("x", "f4", ("x",))[:] = 1
            again = file.createGroup("again") # with a dimension of the same name and length
            again.createDimension("x", 5)
            again.createVariable("x", "f4", ("x",))[:] = 2
            again.createVariable("a", "f4", ("x",))[:] = 3
            again.createDimension("z", 3)
            again.createVariable("b", "f4", ("z",))[:] = 4
            file.createVariable("own", "f4", ("z", "own"))[:] = 8
            file.createVariable("c", "S1", ("x",), fill_value=b"z")[:2] = b"a"
        tree = self.there(self.path("a.nc"))
        self.assertEqual(self.attributes(tree / "g/v.b2nd")["dims"], ["t", "x"])
        for name in ("b.nc", "b.h5"):
            self.ok("convert", tree, self.path(name))
            with netCDF4.Dataset(self.path(name)) as file:
                own = "own" if name == "b.nc" else "own_3" # a file of HDF5 has one name for one thing
                self.assertEqual({n: d.isunlimited() for n, d in file.dimensions.items()},
                                 {"x": False, "t": True, "z": False, own: False})
                self.assertEqual(file["own"].dimensions, ("z", own))
                self.assertEqual(file["own"][:].tolist(), [[8] * 3] * 3)
                self.assertEqual([list(file[g].dimensions) for g in ("g", "h", "again")],
                                 [[], [], ["x", "z"]])
                self.assertEqual(file["again/a"].get_dims()[0].group().name, "again")
                self.assertEqual(file["g/z"].dimensions, ("z",))
                self.assertEqual(file["c"].getncattr("_FillValue"), b"z")
            self.assertEqual(self.text("diff", self.path("a.nc"), self.path(name)), "")

    def test_a_growing_dimension_of_a_coordinate_with_two_axes(self):
        """All variables have the length that netCDF shows, and the dimension grows."""
        with netCDF4.Dataset(self.path("a.nc"), "w") as file:
            file.createDimension("e", None)
            file.createDimension("y", 3)
            file.createVariable("e", "i8", ("e", "y"))[:] = np.arange(6).reshape(2, 3)
            file.createVariable("v", "i4", ("e",))[:] = [7]
            file.createVariable("lat", "f8", ("e",))[:] = [1, 2, 3]
        tree = self.there(self.path("a.nc"))
        self.ok("convert", tree, self.path("b.nc"))
        with netCDF4.Dataset(self.path("a.nc")) as one, netCDF4.Dataset(self.path("b.nc")) as two:
            one.set_auto_mask(False)
            two.set_auto_mask(False)
            for name in ("e", "v", "lat"):
                found = blosc2.open(str(tree / f"{name}.b2nd"))[...]
                self.assertEqual(found.tolist(), one[name][:].tolist())
                self.assertEqual(found.tolist(), two[name][:].tolist())
            self.assertTrue(two.dimensions["e"].isunlimited())

    def test_dimensions_with_one_name(self):
        """Each group keeps its own: growing or not, with a coordinate or not, or with one that is lost."""
        with netCDF4.Dataset(self.path("a.nc"), "w") as file:
            file.createDimension("t", None)
            file.createDimension("x", 2)
            file.createVariable("v", "i4", ("t", "x"))[:2] = 1
            file.createVariable("x", file.createVLType("i4", "ragged"), ("x",))
            group = file.createGroup("g")
            group.createDimension("t", 3)
            for dims in (("t",), ("t", "x")):
                group.createVariable("t" if len(dims) == 1 else "w", "i4", dims)[:] = 2
        status, _, err = run("convert", self.path("a.nc"), self.path("a.b2d"))
        self.assertEqual(status, 0, err)
        for name in ("b.nc", "b.h5"):
            self.ok("convert", self.path("a.b2d"), self.path(name))
            with netCDF4.Dataset(self.path(name)) as file:
                self.assertEqual([{n: (len(d), d.isunlimited()) for n, d in g.dimensions.items()}
                                  for g in (file, file["g"])],
                                 [{"t": (2, True), "x": (2, False)}, {"t": (3, False)}])

    def test_reserved_names(self):
        for form in ("NETCDF3_CLASSIC", "NETCDF4"):
            with netCDF4.Dataset(self.path("a.nc"), "w", format=form) as file:
                file.createVariable("v", "i4").setncattr("_vlen", "mine")
                file.setncattr("_unlimited_dims", "mine")
            status, _, err = run("convert", self.path("a.nc"), self.path("a.b2d"), "-f")
            self.assertEqual(status, 0)
            for words in ("/v: the attribute _vlen, whose", "/: the attribute _unlimited_dims, whose"):
                self.assertIn(words, err)

    def test_dimensions_that_libnetcdf_cannot_write(self):
        """It says which kind of file can have them."""
        with netCDF4.Dataset(self.path("a.nc"), "w") as file:
            file.createDimension("time", 3)
            file.createDimension("s", None)
            file.createVariable("time", "f4", ("time",))[:] = 1
            file.createVariable("s", "f4", ("time", "s"))[:, :2] = 2
        tree = self.there(self.path("a.nc"))
        status, _, err = run("convert", tree, self.path("b.nc"))
        self.assertEqual((status, err.count("\n")), (5, 1), err)
        self.assertIn(".h5 can have them", err)
        self.ok("convert", tree, self.path("b.h5"))
        with netCDF4.Dataset(self.path("b.h5")) as file:
            self.assertEqual(file["s"][:].tolist(), [[2, 2]] * 3)

    def test_full_disk(self):
        """The sentence has the system's words, and libhdf5 does not crash at the exit."""
        data = np.random.default_rng(0).integers(0, 60000, (512, 1024)).astype("u2")
        blosc2.asarray(data, urlpath=str(self.path("a.b2nd")))
        limited = f'ulimit -f 100; exec "$0" convert "{self.path("a.b2nd")}" "{self.path("b.nc")}"'
        done = subprocess.run(["sh", "-c", limited, CLI], capture_output=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr.decode(), r"\Acaterva: [^\n]+: File too large\n\Z")
        self.assertEqual(self.names(), ["a.b2nd"])

    def test_what_is_lost(self):
        array = blosc2.asarray(np.arange(3, dtype="f2"), urlpath=str(self.path("a.b2nd")))
        array.schunk.vlmeta["map"] = {"a": 1}
        array.schunk.vlmeta["truth"] = True
        status, _, err = run("convert", self.path("a.b2nd"), self.path("a.nc"))
        self.assertEqual(status, 0, err)
        self.assertEqual(err.count("\n"), 3, err)
        for word in ("float32", " map ", " truth "):
            self.assertIn(word, err)
        err = run("convert", self.path("a.b2nd"), self.path("a.nc"), "--verify", "-f")[2]
        self.assertIn("another type or shape in the output, and is not compared", err)
        blosc2.asarray(np.zeros(3, [("a", ">i4")]), urlpath=str(self.path("s.b2nd")))
        self.refused("convert", self.path("s.b2nd"), self.path("s.nc"))
        self.assertEqual(self.names(), ["a.b2nd", "a.nc", "s.b2nd"])

    # ---- Hostile files ---------------------------------------------------------------------

    def test_more_axes_than_can_be_written(self):
        path = self.path("axes.nc")
        for form in ("NETCDF3_CLASSIC", "NETCDF4"):
            with netCDF4.Dataset(path, "w", format=form) as file:
                for n in range(17):
                    file.createDimension("d%d" % n, 1)
                for n in (15, 16, 17):
                    file.createVariable("v%d" % n, "i4", ["d%d" % i for i in range(n)])[...] = n
            status, _, err = run("convert", path, self.path("axes.b2z"), "-f")
            self.assertEqual(status, 0, err)
            self.assertRegex(err, "/v16: a (dataset|variable) of .*axes")
            self.assertRegex(err, "/v17: a (dataset|variable) of .*axes")
            self.assertEqual(self.ok("ls", self.path("axes.b2z")), b"v15\n")

    def make_small(self, version="NETCDF3_CLASSIC"):
        path = self.path("small.nc")
        with netCDF4.Dataset(path, "w", format=version) as file:
            file.createDimension("t", None)
            file.createDimension("x", 4)
            file.createVariable("t", "f8", ("t",))[:] = [1, 2, 3]
            file.createVariable("v", "i2", ("t", "x"))[:] = np.arange(12).reshape(3, 4)
            file["v"].units = "K"
            file.createVariable("c", "S1", ("x",))[:] = b"a"
            file.numbers = np.arange(3.0)
        return path.read_bytes()

    def test_mutations(self):
        rng = random_of(self)
        crashes = 0
        for version in ("NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4"):
            for data in self.mutated(rng, self.make_small(version), rounds(50)):
                self.path("m.nc").write_bytes(data)
                crashes += self.survives(rng, self.path("m.nc"))
        print("%d crashes of libhdf5" % crashes)

    def test_truncations(self):
        whole = self.make_small()
        for size in range(4, len(whole), 11):
            self.path("t.nc").write_bytes(whole[:size])
            self.refused("convert", self.path("t.nc"), self.path("t.b2z"),
                         **hostile_environment(self.folder))

    def test_a_terabyte_in_a_small_file(self):
        whole = self.make_small()
        at = whole.index(b"\0\0\0\1x\0\0\0") + 8
        self.path("t.nc").write_bytes(whole[:at] + struct.pack(">i", 1 << 30) + whole[at + 4:])
        self.refused("convert", self.path("t.nc"), self.path("t.b2z"))


if __name__ == "__main__":
    main()
