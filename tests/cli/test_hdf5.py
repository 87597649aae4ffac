"""HDF5 files there and back: what h5py, hdf5plugin and netCDF4 write, compared with NumPy."""

import base64
import json
import lzma
import resource
import signal
import struct
import subprocess
import time

import blosc2
import numpy as np

from tool_cli import CLI, LONG, SANITIZED, environment, main, run
from tool_foreign import (ForeignCase, hostile_environment, items, need, need_plugin, random_of,
                          rounds)

need_plugin("hdf5")
h5py, hdf5plugin = need("h5py", "hdf5plugin")

DTYPES = ["i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4",
          "<f8", ">f8", "<c8", ">c16", "?", "S1", "S7", "V5",
          [("a", "<i2"), ("b", ">f8", (2, 3)), ("c", "S3")],
          {"names": ["x", "y"], "formats": ["u1", "<c16"], "offsets": [3, 8], "itemsize": 32},
          [("in", [("deep", "<f4"), ("flag", "?")]), ("last", "<u8", (2,))]]
NUMBERS = [d for d in DTYPES[:15]]
WORDS = ["", "a", "hello", "grün", "日本語", "x" * 40, "𝛼β"]


# A NetCDF-4 file in which libhdf5 1.10 loops for ever.
LOOP = lzma.decompress(base64.b85decode(
    "T>t<81poj4|NsC0{{Tdi1cYyTdv{93yJ7iA#LPfP4C<)@D$>qWvXSif0i}h`0<x4(w)9An6Xe=%x){eF1Cl$edvy2jUH"
    "oxbwAbr#F=q=m=M9<!czQ>6g8AM)#unz{TFki?pWqwj!(Br>n^RT|0j6V#h5kU|-V?W0%I*@WrgYvmJsWH0)GIfT$UD{"
    "iAhN_4w4MWhx=jfV)OgT&afSY|FtLy3px;*XF3&aPQ|2Cd6j8ARwljM;e?Qmba`Shc@;zqps!mCkW=SLp*<cxu>sRg_d"
    "AAjswtNvi%-cvDHKSFKE_+{c7sSdGlV#!)>zV2d6YDhglHfPSDe)dXmjyg%Srr=pPqBviS5dB?C?&KP!Zvqx+f`Wi?v7"
    "F!3uUx+4ERwFo(1-K0YfB3ma?nN(&6dC3g)Kf#!$#EtY%)(V28+qTr)yf2$~j_haRBPTjZTOt!^<VHw!UPY0aF0E4=*u"
    "aSLL4@AfKK8$1~Gxj_fl8wt(j{MdjMDobak+Xa#pSNwdHnhn+d?!84A(NZ(EK-j>V>(0MLZ&;A5E)!A=NKE*X>!HF0TO"
    "kQ~N%5Of%H?1VG`IqX(4xJ8o4F^ceJV)w9&}c11#6Cwl`K1n(4mZJvQx9<l^aK<;#|eb{lda~{|0IDc<Tq+?|m-T3#Rb"
    "X^4^vSjI7P+!*95MoF0MkYMPs7<s-l%wp3tZ+HOIQt{LU69T!vA<Vz+ZbW?2D4hO@+9B36~K+~R!6TXXkn$C$KtaOdN2"
    "zM9<C<NnptnqRmdXusx8g9b*Cs+EB4q|N^WCW~DQo2jl(6R^UuD6fky7f&Uo|ynts3n;}>wF|b68nl=Q1I6v4vw}j@b_"
    ")X%E!ohe?fuS8E7!&o+b5Om%lP!X__^nZw0}ri{t4th4x}YW)4ZM1>4_h46cR|fc*z61e%AH3%l+u6b}t;PzzR8b5}dp"
    "6FGj%zsPV&Lc3T~iOdjMMqYW^BPo_h;w_q{A5Yllsxsrjy%xfZn0e5^9+m*I+i+IJjf(aM{>d1DjCsXRam!Seo)o1!o|"
    "Z~rgv=6K4hI-z>4~u@M<=iK>tVI^v&HRH6eMR<Bv&%~mCbpVkLWZW-wBu<<`)Xm`h86Io_k05B+R_$vgpj9gJnzJgRr="
    "8Ojt>`o2WIGhZD$XXKlO~y^l!jW5A(Q0!6D_$r`8cF({K(@3V4k==MHFVpr?l;?`M|EAh*3{q;7>>#TaK;M`%xH0BBPX"
    "WL$v`z7r&e@iQR75>$bAVnk@R$ssW^rkVY"))


def filters(rng, dtype, chunks):
    """Keyword arguments of create_dataset, for chunked datasets."""
    is_number = np.dtype(dtype).kind in "iuf" and np.dtype(dtype).itemsize > 1
    known = [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True},
             {"compression": "lzf"}, {"fletcher32": True}, {"shuffle": True, "compression": "lzf"},
             dict(hdf5plugin.Blosc2(cname="zstd")), dict(hdf5plugin.Blosc2(cname="lz4", filters=2)),
             dict(hdf5plugin.Blosc(cname="lz4")), dict(hdf5plugin.Bitshuffle()),
             dict(hdf5plugin.LZ4()), dict(hdf5plugin.Zstd()),
             {"fletcher32": True, **hdf5plugin.Blosc2(cname="blosclz")}]
    if is_number and np.dtype(dtype).kind in "iu":
        known += [{"scaleoffset": 0}]
    if is_number and np.prod(chunks) >= 32 and h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        known += [{"compression": "szip"}]
    return rng.choice(known)


def random_set(rng, group, name):
    """Adds a dataset with random dtype, shape, layout and filters."""
    dtype = np.dtype(rng.choice(DTYPES))
    shape = tuple(rng.choice((0, 1, 3, 8, 17)) for _ in range(rng.randrange(4)))
    data = items(rng, shape, "u1" if dtype.kind == "b" else dtype)
    data = (data % 2).astype(bool) if dtype.kind == "b" else tidy(data)
    options = {}
    if shape and 0 not in shape and rng.random() < 0.7:
        options["chunks"] = tuple(rng.randrange(1, n + 1) for n in shape)
        options.update(filters(rng, dtype, options["chunks"]))
        if rng.random() < 0.3:
            options["maxshape"] = tuple(rng.choice((None, n, n + 5)) for n in shape)
    if dtype.kind in "iuf" and rng.random() < 0.3:
        options["fillvalue"] = 7
    made = group.create_dataset(name, shape, dtype, **options)
    if "fillvalue" in options and rng.random() < 0.5:
        return made # nothing is stored
    made[...] = data
    return made


def tidy(data):
    """Random bytes are no booleans, and bytes behind a structure's fields do not travel."""
    if data.dtype.names is None:
        return data
    out = np.zeros(data.shape, data.dtype)
    for name in data.dtype.names:
        field = data.dtype[name]
        base = field.base
        out[name] = data[name].view("u1") % 2 if base.kind == "b" else tidy(data[name])
    return out


def random_attributes(rng, attributes):
    for n in range(rng.randrange(6)):
        dtype = rng.choice(NUMBERS + ["?", "<c16"])
        value = rng.choice((
            rng.choice(WORDS), 3, -2.5, True, 1 + 2j, np.dtype(dtype).type(1),
            np.arange(rng.choice((1, 4))).astype(dtype), [rng.choice(WORDS) for _ in range(3)],
            np.array([[1, 2], [3, 4]], dtype), h5py.Empty(rng.choice(("f4", "<i8", "S5", "?"))),
            np.bytes_(rng.choice((b"abc", b"\xff\xfe", b"a"))), np.array([b"ab", b"c"], "S3"),
            np.array([[b"ab"], [b"c"]], "S4")), )
        attributes["attribute %d" % n] = value
    if rng.random() < 0.3:
        attributes.create("texts", np.array([["a", "grün"], ["", "b"]], object),
                          dtype=h5py.string_dtype())


def values_of(thing):
    """A dataset's items, or an attribute, in a form that can be compared."""
    value = thing[()] if isinstance(thing, h5py.Dataset) else thing
    if isinstance(value, h5py.Empty):
        return "empty"
    value = np.asarray(value)
    if value.dtype.kind == "O":
        return [v.decode(errors="surrogateescape") if isinstance(v, bytes) else v
                for v in value.ravel()], value.shape
    if value.dtype.kind == "U":
        return list(value.ravel()), value.shape
    return value.dtype, value.shape, tidy(value).tobytes()


class Hdf5(ForeignCase):
    def there(self, path, *options, plugins=False):
        """Converts a file to a tree, and returns the folder and the warnings. With the filters of
        hdf5plugin, which leak, leaks do not count."""
        variables = {"HDF5_PLUGIN_PATH": "/none"}
        if plugins:
            variables = {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH,
                         "ASAN_OPTIONS": "detect_leaks=0"}
        tree = self.path("tree.b2d")
        subprocess.run(["rm", "-rf", tree], check=True)
        status, out, err = run("convert", path, tree, "--verify", *options,
                               **variables)
        self.assertEqual((status, out), (0, b""), err)
        return tree, err

    def back(self, path, *options, plugins=False):
        """Converts a file to a tree and back; returns the path of the copy."""
        tree, _ = self.there(path, plugins=plugins)
        self.ok("convert", tree, self.path("back.h5"), "-f", "--verify", *options)
        return self.path("back.h5")

    def same_files(self, a, b):
        with h5py.File(a) as one, h5py.File(b) as two:
            names = []
            one.visit(names.append)
            others = []
            two.visit(others.append)
            self.assertEqual(sorted(names), sorted(others))
            for name in ["/", *names]:
                self.assertEqual(sorted(one[name].attrs), sorted(two[name].attrs), name)
                for key, value in one[name].attrs.items():
                    if key in ("DIMENSION_LIST", "REFERENCE_LIST"):
                        continue
                    self.assertEqual(values_of(value), values_of(two[name].attrs[key]), (name, key))
                    types = [h5py.h5a.open(f[name].id, key.encode()).get_type() for f in (one, two)]
                    self.assertTrue(types[0].equal(types[1]), (name, key))
                if isinstance(one[name], h5py.Dataset):
                    self.assertEqual(one[name].maxshape, two[name].maxshape, name)
                    self.assertEqual(one[name].is_scale, two[name].is_scale, name)
                    for a, b in zip(one[name].dims, two[name].dims):
                        self.assertEqual(a.label, b.label, name)
                        self.assertEqual([s.name for s in a.values()], [s.name for s in b.values()])
                    self.assertEqual(values_of(one[name]), values_of(two[name]), name)
                    kinds = [h5py.check_enum_dtype(f[name].dtype) for f in (one, two)]
                    self.assertEqual(*kinds)
                    kinds = [h5py.check_string_dtype(f[name].dtype) for f in (one, two)]
                    self.assertEqual(*kinds)

    def test_random_files(self):
        rng = random_of(self)
        for trial in range(rounds(15)):
            path = self.path("a.h5")
            with h5py.File(path, "w", libver=rng.choice((("earliest", "v108"), ("v110", "v110"))),
                           track_order=rng.random() < 0.5) as file:
                random_attributes(rng, file.attrs)
                for n in range(6):
                    group = file if n < 3 else file.require_group("g/h %d" % n)
                    random_attributes(rng, random_set(rng, group, "x%d" % n).attrs)
            with self.subTest(trial=trial):
                tree, _ = self.there(path, plugins=True)
                with h5py.File(path) as file:
                    for n in range(6):
                        name = "x%d" % n if n < 3 else "g/h %d/x%d" % (n, n)
                        read = blosc2.open(str(tree / (name + ".b2nd")))
                        self.assertEqual(read.dtype, file[name].dtype)
                        self.assertEqual(read.shape, file[name].shape)
                        self.assertEqual(tidy(np.asarray(read[()])).tobytes(),
                                         tidy(np.asarray(file[name][()], read.dtype)).tobytes())
                self.same_files(path, self.back(path, plugins=True))

    def test_axes(self):
        """Labels, scales, their names, and limits return as they were: h5py sees no difference."""
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            # Labels that are names of datasets, of this one too, are no scales.
            file["y"] = np.arange(1, 7).reshape(2, 3)
            file["y"].dims[0].label, file["y"].dims[1].label = "y", "x"
            file["x"] = np.arange(3.0)
            file["x"].dims[0].label = "x"
            file["s"] = np.arange(2.0)
            file["s"].make_scale("another name")
            file["t"] = np.ones((2, 3))
            file["t"].dims[0].attach_scale(file["s"])
            file["t"].dims[0].label = "a label"
            file["two"] = np.ones((2, 2))
            file["two"].make_scale("of two axes")
            for name, most in (("a", (None, 10)), ("b", (3, 5)), ("c", (None, None))):
                file.create_dataset(name, (3, 4), "f4", maxshape=most, chunks=(2, 4))[:] = 1
            file["a"].dims[0].label = "n"
            file.create_dataset("d", (3,), "f4", maxshape=(None,))
            file["d"].make_scale("d")
            for name, most in (("e", (3, 4)), ("f", (None, 4)), ("g", (9, 4))):
                file.create_dataset(name, (3, 4), "f4", maxshape=most, chunks=(2, 4))[:] = 1
                file[name].dims[0].attach_scale(file["d"])
        tree, err = self.there(path)
        self.assertEqual(err, "")
        self.assertEqual(self.attributes(tree / "y.b2nd")["dims"], ["y", "x"])
        self.assertEqual(self.attributes(tree / "a.b2nd")["_maxshape"], [None, 10])
        self.assertEqual(self.attributes(tree / "e.b2nd")["_maxshape"], [3, 4])
        self.assertNotIn("_maxshape", self.attributes(tree / "f.b2nd"))
        self.same_files(path, self.back(path))

    def test_scales_in_other_groups(self):
        """A tree knows dimensions by name: one that is not in a group above is a loss."""
        with h5py.File(self.path("s.h5"), "w") as file:
            for group, length in (("coords", 3), ("data", 3), ("c", 4), ("e", 5)):
                file[f"{group}/t"] = np.arange(length) * 10.0
                file[f"{group}/t"].make_scale("t")
            for name, scale in (("data/near", "data"), ("data/far", "coords"), ("x/a", "coords"),
                                ("x/b", "c"), ("e/inner/v", "e")):
                file[name] = np.zeros(len(file[scale]["t"]))
                file[name].dims[0].attach_scale(file[scale]["t"])
        status, _, err = run("convert", self.path("s.h5"), self.path("s.b2d"))
        self.assertEqual(status, 0, err)
        losses = sorted(line.split(": the scale of axis 0, which is elsewhere: ")
                        for line in err.splitlines() if "elsewhere" in line)
        self.assertEqual([(one.split()[-1], two) for one, two in losses],
                         [("/data/far", "/coords/t"), ("/x/a", "/coords/t"), ("/x/b", "/c/t")])
        info = {name: json.loads(self.ok("info", "--json", f"{self.path('s.b2d')}::/{name}"))
                for name in ("data/near", "data/far", "x/a", "x/b", "e/inner/v")}
        self.assertEqual([one.get("dims") for one in info.values()], [["t"], None, ["t"], None, ["t"]])
        self.assertNotEqual(run("convert", "--strict", self.path("s.h5"), self.path("t.b2d"))[0], 0)

    def test_dimensions_that_have_the_name_of_an_array(self):
        """The items stay under their name, and the dimension gets another one."""
        folder = self.path("a.b2d")
        array = blosc2.asarray(np.arange(1, 7).reshape(2, 3), urlpath=str(self.path("y.b2nd")))
        array.schunk.vlmeta["dims"] = ["y", "x"]
        self.ok("convert", self.path("y.b2nd"), folder)
        self.ok("convert", folder, self.path("a.h5"))
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual(file["y"][()].tolist(), [[1, 2, 3], [4, 5, 6]])
            self.assertEqual([d.values()[0].name for d in file["y"].dims], ["/y_2", "/x"])
        self.ok("convert", self.path("a.h5"), self.path("b.b2d"))
        self.assertEqual(self.attributes(self.path("b.b2d") / "y.b2nd")["dims"], ["y", "x"])

    def test_fill_values(self):
        """The attribute keeps its type and shape, also if they are not those of the items."""
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            for name, dtype, fill in (
                    ("a", "f2", np.int64(-9185995096174843832)), ("b", ">u2", np.int32(-5)),
                    ("c", ">u2", np.array([18], ">u2")), ("d", "f4", 1.5), ("e", "f8", 1.5),
                    ("f", "i8", np.int64(3)), ("g", "i2", np.array([1, 2], "i2")),
                    ("h", "S3", np.bytes_(b"abc")), ("i", "S3", np.bytes_(b"ab")),
                    ("j", "S1", np.bytes_(b"a"))):
                file[name] = np.zeros(3, dtype)
                file[name].attrs["_FillValue"] = fill
        self.same_files(path, self.back(path))

    def test_reserved_names(self):
        """Attributes whose names have a meaning in trees are left out by name, one by one."""
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(6.0)
            file["x"].dims[0].label = "t"
            file["x"].attrs["kept"] = 1
            for name in ("dims", "_vlen", "_null", "_caterva", "_types", "_enum", "_json", "_dtype"):
                file["x"].attrs[name] = "mine"
            for name in ("_unlimited_dims", "_caterva", "_dims"):
                file.attrs[name] = "mine"
        tree, err = self.there(path)
        for name in ("_unlimited_dims", "_caterva", "_dims"):
            self.assertIn("a.h5: /: the attribute %s, whose name is reserved\n" % name, err)
        for name in ("dims", "_vlen", "_null", "_caterva", "_types", "_enum", "_json", "_dtype"):
            self.assertIn("a.h5: /x: the attribute %s, whose name is reserved\n" % name, err)
        self.assertEqual(err.count("\n"), 11)
        self.assertEqual(self.attributes(tree / "x.b2nd"),
                         {"dims": ["t"], "kept": 1, "_labels": ["t"]})

    def test_what_is_left_out_is_said_by_ls_and_diff(self):
        sentence = ": /r: a dataset of references\n"
        for arrays in ("x", "xy"):
            for path in (self.path("a.h5"), self.path("b.h5")):
                with h5py.File(path, "w") as file:
                    for name in arrays:
                        file[name] = np.arange(3)
                    file["r"] = np.array([file["x"].ref], h5py.ref_dtype)
            status, out, err = run("diff", self.path("a.h5"), self.path("b.h5"))
            self.assertEqual((status, out, err.count(sentence)), (0, b"", 2), err)
            self.assertEqual(run("diff", "-q", self.path("a.h5"), self.path("b.h5")), (0, b"", ""))
            status, out, err = run("ls", self.path("a.h5"))
            self.assertEqual((status, out.decode(), err.count(sentence)),
                             (0, "".join(f"{n}\n" for n in arrays), 1), err)

    def test_later_versions(self):
        """What only a later libhdf5 can read is named, and all else is converted."""
        path = self.path("a.h5")
        with h5py.File(path, "w", libver="latest") as file:
            file["good"] = np.arange(3)
            file["good"].attrs["a"] = 1
            file["new"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
        status, _, err = run("convert", path, self.path("a.b2d"))
        self.assertEqual(status, 0, err)
        self.same(self.path("a.b2d") / "good.b2nd", np.arange(3))
        if err: # this libhdf5 is older than h5py's
            self.assertRegex(err, r"\A[^\n]*a.h5: /new: a dataset of a type or layout that HDF5 "
                                  r"[0-9.]+ does not know\n\Z")

    def test_one_long_text(self):
        """It widens all items, which needs neither much memory nor much room."""
        path, tree = self.path("a.h5"), self.path("a.b2d")
        with h5py.File(path, "w") as file:
            words = file.create_dataset("d", (2000,), h5py.string_dtype(), chunks=(1000,))
            words[:] = "abc"
            words[77] = "x" * 50000
        def limit():
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
        for source, out in ((path, tree), (tree, self.path("b.h5"))):
            subprocess.run([CLI, "convert", source, out, "--memory", "16MiB", "-T2"], check=True,
                           preexec_fn=limit, env=environment())
        self.assertLess(sum(p.stat().st_size for p in tree.iterdir()), 4 << 20)
        with h5py.File(path) as one, h5py.File(self.path("b.h5")) as two:
            self.assertTrue((one["d"][()] == two["d"][()]).all())

    def test_texts(self):
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            file["one"] = "grün"
            file["many"] = WORDS
            file["none"] = np.array([], object).astype(h5py.string_dtype())
            file["chunked"] = file.create_dataset("c", (5, 3), h5py.string_dtype(), chunks=(2, 2))
            file["c"][1:4, :2] = [["a", "bb"], ["", "ccc"], ["日本", "d"]]
            file["bytes"] = np.array([b"a", b"\xff\xfe"], object).astype(h5py.string_dtype("ascii"))
            file.create_dataset("fixed", (2,), h5py.string_dtype("utf-8", 9))
            file["fixed"][...] = np.array(["grün".encode(), b"x"], file["fixed"].dtype)
            file["fixed"].attrs["fixed"] = np.bytes_(b"text")
            file.create_dataset("large", (5, 20, 70), h5py.string_dtype(), chunks=(3, 10, 30))
            file["large"][...] = "é"
            del file["chunked"]
        tree, err = self.there(path)
        self.assertEqual(err, "")
        self.same(tree / "many.b2nd", np.array(WORDS))
        self.assertEqual(self.attributes(tree / "many.b2nd")["_vlen"], "text")
        self.same(tree / "bytes.b2nd", np.array([b"a", b"\xff\xfe"]))
        self.assertEqual(self.attributes(tree / "bytes.b2nd")["_vlen"], "bytes")
        self.same(tree / "fixed.b2nd", np.array(["grün".encode(), b"x"], "S9"))
        self.same(tree / "c.b2nd", np.array([["", "", ""], ["a", "bb", ""], ["", "ccc", ""],
                                            ["日本", "d", ""], ["", "", ""]]))
        self.same_files(path, self.back(path))
        self.same_files(path, self.back(path, "--keep-chunks")) # these are encoded anew

    def test_text_of_one_width_returns(self):
        words = np.array(["a", "grün"], "<U12")
        blosc2.asarray(words, urlpath=str(self.path("a.b2nd")))
        self.ok("convert", self.path("a.b2nd"), self.path("a.h5"))
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual(list(file["data"].asstr()[()]), ["a", "grün"])
        self.ok("convert", self.path("a.h5"), self.path("b.b2nd"))
        self.same(self.path("b.b2nd"), words)

    def test_unusual_types(self):
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            colours = h5py.enum_dtype({"RED": -1, "GREEN": 300}, ">i2")
            file.create_dataset("enum", data=[-1, 300, 300], dtype=colours)
            file.create_dataset("array", (4,), np.dtype(("<i4", (2, 3))))
            file["array"][...] = np.arange(24).reshape(4, 2, 3)
            times = np.array(["2020-01-01", "NaT"], "M8[s]")
            file["times"] = times.astype(h5py.opaque_dtype(times.dtype))
            file["empty"] = h5py.Empty("<f4")
            wide = h5py.h5t.STD_I32LE.copy()
            wide.set_size(3)
            h5py.h5d.create(file.id, b"int24", wide, h5py.h5s.create_simple((3,))).write(
                h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, -2, 8388607], "i4"))
            h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B16BE, h5py.h5s.create_simple((2,)))
        tree, err = self.there(path)
        self.assertRegex(err, r"\A[^\n]*: /array: the array type of its items[^\n]*\n\Z")
        self.assertEqual(self.attributes(tree / "enum.b2nd")["_enum"], {"RED": -1, "GREEN": 300})
        self.same(tree / "enum.b2nd", np.array([-1, 300, 300], ">i2"))
        self.same(tree / "array.b2nd", np.arange(24, dtype="<i4").reshape(4, 2, 3))
        self.same(tree / "times.b2nd", times)
        self.same(tree / "int24.b2nd", np.array([1, -2, 8388607], "<i4"))
        self.same(tree / "bits.b2nd", np.zeros(2, ">u2"))
        self.same(tree / "empty.b2nd", np.zeros(0, "<f4"))
        with h5py.File(self.back(path)) as file:
            self.assertEqual(h5py.check_enum_dtype(file["enum"].dtype), {"RED": -1, "GREEN": 300})
            self.assertEqual(file["enum"].dtype.base, np.dtype(">i2"))
            self.assertEqual(file["times"][()].tobytes(), times.tobytes())
            self.assertEqual(file["times"].dtype, times.dtype)
            self.assertEqual(file["empty"][()], h5py.Empty("<f4"))

    def test_matlab(self):
        """Files of MATLAB 7.3 begin with a block of 512 bytes."""
        path = self.path("a.mat")
        with h5py.File(path, "w", userblock_size=512) as file:
            file["x"] = np.arange(6.0).reshape(2, 3)
            file["x"].attrs["MATLAB_class"] = np.bytes_("double")
            file["y"] = np.arange(3.0)
            file["y"].make_scale("y")
            file["x"].dims[1].attach_scale(file["y"])
        with open(path, "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\x02IM")
        tree, _ = self.there(path)
        self.same(tree / "x.b2nd", np.arange(6.0).reshape(2, 3))
        self.assertEqual(self.attributes(tree / "x.b2nd"),
                         {"MATLAB_class": "double", "dims": [None, "y"],
                          "_types": {"MATLAB_class": "ascii 6"}})

    def test_what_is_left_out(self):
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            file["x"] = [1, 2]
            file["z/y"] = file["x"]
            file["soft"] = h5py.SoftLink("/x")
            file["outside"] = h5py.ExternalLink("other.h5", "/there")
            file["type"] = np.dtype("<i4")
            file["references"] = np.array([file["x"].ref], h5py.ref_dtype)
            file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
            file["z/up"] = file["/"]
            file["z/self"] = file["z"]
            file["x"].attrs["reference"] = file["x"].ref
            file.attrs["structure"] = np.zeros((), [("a", "i4")])
            layout = h5py.VirtualLayout((2,), "i8")
            layout[:] = h5py.VirtualSource(path, "x", (2,))
            file.create_virtual_dataset("virtual", layout)
            file.create_dataset("external", (4,), "u1", external=[("/etc/passwd", 0, 4)])
        tree, err = self.there(path)
        lost = sorted(line.split("a.h5: ", 1)[1].split(":", 1)[0] for line in err.splitlines())
        self.assertEqual(lost, sorted([
            "/", "/external", "/outside", "/ragged", "/references", "/soft", "/type", "/virtual",
            "/x", "/z/self", "/z/up", "/z/y"]))
        self.assertEqual(sorted(p.name for p in tree.glob("*.b2nd")), ["x.b2nd"])
        self.fails_with(5, "convert", path, self.path("strict.b2z"), "--strict")
        self.assertFalse(self.path("strict.b2z").exists())

    def fails_with(self, expected, *arguments, **kwargs):
        status, _, err = run(*arguments, **kwargs)
        self.assertEqual(status, expected, err)
        return err

    def test_python_values(self):
        """Values that HDF5 lacks are JSON there, and return."""
        values = {"map": {"a": [1, None], "b": {"c": 1.5}}, "none": None, "bytes": b"\0\xff",
                  "tuple": (1, "a"), "mixed": [1, "a"], "empty": [], "complex": 2 - 1j,
                  "texts": ["a", "ü"], "big": 2**63, "zero": "a\0b"}
        array = blosc2.asarray(np.arange(3), urlpath=str(self.path("a.b2nd")))
        for name, value in values.items():
            array.schunk.vlmeta[name] = value
        self.ok("convert", self.path("a.b2nd"), self.path("a.h5"))
        self.ok("convert", self.path("a.h5"), self.path("b.b2nd"))
        self.assertEqual(self.attributes(self.path("b.b2nd")),
                         self.attributes(self.path("a.b2nd")))

    # ---- Filter 32026 ----------------------------------------------------------------------

    def test_blosc2_chunks_move(self):
        """Chunks are the same bytes in the array, and in the HDF5 file that --keep-chunks makes."""
        rng = random_of(self)
        for trial in range(rounds(15)):
            shape = tuple(rng.randrange(20, 60) for _ in range(rng.randrange(1, 4)))
            chunks = tuple(rng.randrange(10, n + 1) for n in shape)
            data = items(rng, shape, rng.choice(["u1", "<i2", ">f4", "<f8", "<c16"]))
            first, second = self.path("a.h5"), self.path("b.h5")
            with h5py.File(first, "w") as file:
                file.create_dataset("x", data=data, chunks=chunks, **hdf5plugin.Blosc2(
                    cname=rng.choice(("zstd", "lz4", "zlib", "blosclz"))))
            with self.subTest(trial=trial, shape=shape, chunks=chunks):
                tree, _ = self.there(first)
                read = self.same(tree / "x.b2nd", data)
                self.assertEqual(read.chunks, chunks)
                self.ok("convert", tree, second, "-f", "--keep-chunks")
                with h5py.File(first) as one, h5py.File(second) as two:
                    self.assertEqual(two["x"][()].tobytes(), data.tobytes())
                    if two["x"].chunks is None: # it is small
                        continue
                    self.assertIn("32026", two["x"]._filters)
                    for n, place in enumerate(one["x"].iter_chunks()):
                        at = tuple(s.start for s in place)
                        inner = [blosc2.schunk_from_cframe(f.id.read_direct_chunk(at)[1]).get_chunk(0)
                                 for f in (one["x"], two["x"])]
                        self.assertEqual(read.schunk.get_chunk(n), inner[0])
                        self.assertEqual(*inner)

    def test_one_array_keeps_its_chunks(self):
        data = np.arange(40000.0).reshape(200, 200)
        blosc2.asarray(data, urlpath=str(self.path("a.b2nd")), chunks=(100, 50))
        self.ok("convert", self.path("a.b2nd"), self.path("a.h5"), "--keep-chunks", "--verify")
        with h5py.File(self.path("a.h5")) as file:
            self.assertEqual(file["data"].chunks, (100, 50))
            self.assertIn("32026", file["data"]._filters)
            self.assertEqual(file["data"][()].tobytes(), data.tobytes())

    def test_missing_filter(self):
        path = self.path("a.h5")
        for options, number in ((hdf5plugin.Bitshuffle(), "32008"), (hdf5plugin.LZ4(), "32004"),
                                (hdf5plugin.Blosc(), "32001"), (hdf5plugin.Zstd(), "32015")):
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=np.arange(1000), chunks=(100,), **options)
            err = self.refused("convert", path, self.path("x.b2nd"), HDF5_PLUGIN_PATH="/none")
            self.assertIn(number, err)
            self.assertIn("hdf5plugin", err)
            self.assertEqual(self.names(), ["a.h5"])

    # ---- Dimension scales ------------------------------------------------------------------

    def test_netcdf4(self):
        """What netCDF4 writes is read by netCDF4 in the copy."""
        netCDF4, = need("netCDF4")
        path = self.path("a.nc")
        with netCDF4.Dataset(path, "w") as file:
            for name, length in (("time", None), ("y", 3), ("x", 4), ("bare", 2), ("name", 5)):
                file.createDimension(name, length)
            file.createVariable("time", "f8", ("time",))[:] = [0, 1, 2]
            file["time"].units = "hours since 2020-01-01"
            packed = file.createVariable("t", "i2", ("time", "y", "x"), zlib=True, fill_value=-1)
            packed.set_auto_maskandscale(False)
            packed.scale_factor = np.float32(0.5)
            packed[:] = np.arange(36).reshape(3, 3, 4)
            file.createVariable("short", "f4", ("time", "bare"))[:2] = [[1, 2], [3, 4]]
            file.createVariable("y", "f4", ("y",))[:] = [1, 2, 3]
            file.createVariable("words", str, ("y",))[:] = np.array(["a", "", "grün"], object)
            file.createVariable("name", "f4", ("x",))[:] = 2  # not the coordinate of its name
            file.createVariable("other", "f4", ("name",))[:] = 1
            clouds = file.createEnumType("u1", "cloud_t", {"clear": 0, "stratus": 4})
            file.createVariable("cloud", clouds, ("x",), fill_value=0)[:] = [0, 4, 4, 0]
            below = file.createGroup("below")
            below.createDimension("z", 2)
            below.createVariable("w", "u8", ("z", "time"))[:] = [[1, 2, 3], [4, 5, 6]]
            below.title = "a group"
        tree, err = self.there(path)
        self.assertEqual(err, "")
        self.assertEqual(self.attributes(tree / "cloud.b2nd")["_type"], "/cloud_t")
        self.assertEqual(self.attributes(tree / "t.b2nd")["dims"], ["time", "y", "x"])
        self.assertEqual(set(self.attributes(tree / "t.b2nd")) - {"dims", "_caterva"},
                         {"_FillValue", "scale_factor"})
        fill = netCDF4.default_fillvals["f4"]
        self.same(tree / "short.b2nd", np.array([[1, 2], [3, 4], [fill, fill]], "<f4"))
        self.ok("convert", tree, self.path("b.h5"), "-f")
        with netCDF4.Dataset(path) as one, netCDF4.Dataset(self.path("b.h5")) as two:
            for a, b in ((one, two), (one["below"], two["below"])):
                self.assertEqual(set(a.variables), set(b.variables))
                self.assertEqual(a.__dict__, b.__dict__)
                for name, variable in a.variables.items():
                    copy = b[name]
                    variable.set_auto_maskandscale(False)
                    copy.set_auto_maskandscale(False)
                    self.assertEqual([d.replace("name", "name_5") for d in variable.dimensions],
                                     list(copy.dimensions))
                    self.assertEqual(variable.shape, copy.shape)
                    self.assertEqual(variable[:].tolist(), copy[:].tolist())
                    self.assertEqual(variable.__dict__, copy.__dict__)
            self.assertTrue(two.dimensions["time"].isunlimited())
            self.assertFalse(two.dimensions["x"].isunlimited())

    def test_xarray(self):
        xarray, _ = need("xarray", "h5netcdf")
        random = np.random.default_rng(1)
        data = xarray.Dataset(
            {"t": (("time", "x"), random.random((4, 3)), {"units": "K"}),
             "n": (("x",), ["a", "bc", "ü"]), "b": (("x",), [True, False, True])},
            {"time": np.array(["2020-01-01", "2020-01-02", "2020-01-04", "NaT"], "M8[ns]"),
             "x": [1.0, 2.0, 4.0], "lat": (("x",), [0.5, 0.25, 0.0])}, {"title": "grün"})
        data.to_netcdf(self.path("a.h5"), engine="h5netcdf", unlimited_dims=["time"])
        with xarray.open_dataset(self.path("a.h5"), engine="h5netcdf") as one, \
                xarray.open_dataset(self.back(self.path("a.h5")), engine="h5netcdf") as two:
            xarray.testing.assert_identical(one.load(), two.load())
            self.assertEqual(one.encoding["unlimited_dims"], two.encoding["unlimited_dims"])

    # ---- Hostile files ---------------------------------------------------------------------

    def make_small(self):
        path = self.path("small.h5")
        with h5py.File(path, "w", libver="v110") as file:
            file.attrs["text"] = "grün"
            file["a/plain"] = np.arange(10)
            file["words"] = ["a", "bb"]
            file["words"].attrs["numbers"] = np.arange(4, dtype=">f4")
            file.create_dataset("a/b/zip", data=np.arange(100), chunks=(30,), compression="gzip")
            file.create_dataset("two", data=np.ones((40, 40)), chunks=(20, 20),
                                **hdf5plugin.Blosc2(cname="lz4"))
            file.create_dataset("lzf", data=np.arange(100), chunks=(30,), compression="lzf")
            file["a/plain"].make_scale("s")
            file["s"] = np.zeros((2, 10), [("x", "i1"), ("y", "<c8")])
            file["s"].dims[1].attach_scale(file["a/plain"])
        return path.read_bytes()

    def limited(self, *arguments):
        """Runs with 4 GiB of address space, which sanitizers do not permit."""
        def limit():
            if not SANITIZED:
                resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, timeout=30,
                              env=environment(**hostile_environment(self.folder)),
                              preexec_fn=limit)
        return done.returncode, done.stderr.decode()

    def test_texts_of_any_length_with_lzf(self):
        """The filter's parameters do not have the size of their chunks."""
        words = WORDS * 10
        with h5py.File(self.path("a.h5"), "w") as file:
            file.create_dataset("w", data=words, dtype=h5py.string_dtype(), chunks=(9,),
                                compression="lzf")
        self.ok("convert", self.path("a.h5"), self.path("a.b2nd"), "--verify")
        self.assertEqual(blosc2.open(str(self.path("a.b2nd")))[:].tolist(), words)

    def test_encodings_of_the_user(self):
        """Texts of one width keep their type whatever their attribute _Encoding says."""
        with h5py.File(self.path("e.h5"), "w") as file:
            for name, dtype in (("f", h5py.string_dtype("utf-8", 8)), ("a", "S8"), ("v", h5py.string_dtype())):
                file[name] = np.array([b"ab"] * 2, dtype if name != "v" else object).astype(dtype)
                file[name].attrs["_Encoding"] = "utf-8"
        status, _, err = run("convert", self.path("e.h5"), self.path("e.b2d"))
        self.assertEqual((status, err.count("the attribute _Encoding, whose name is reserved")), (0, 2))
        self.ok("convert", self.path("e.b2d"), self.path("f.h5"))
        with h5py.File(self.path("e.h5")) as one, h5py.File(self.path("f.h5")) as two:
            for name in "fav":
                self.assertEqual(*(h5py.check_string_dtype(f[name].dtype) for f in (one, two)))
            self.assertEqual(two["v"].attrs["_Encoding"], "utf-8")

    def test_items_that_were_never_written(self):
        """They are zeros, and not what the memory holds, also if the file has no fill for them."""
        with h5py.File(self.path("u.h5"), "w") as file:
            for name, how in (("a", {}), ("b", {"chunks": (100,)})):
                layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                if how:
                    layout.set_chunk(how["chunks"])
                layout.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
                h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32,
                                h5py.h5s.create_simple((1000,)), layout)
        self.ok("convert", self.path("u.h5"), self.path("u.b2d"), "--verify")
        for name in "ab":
            self.same(self.path("u.b2d") / (name + ".b2nd"), np.zeros(1000, "<i4"))

    def test_few_chunks_of_many(self):
        """Chunks that are not stored take no time: 8 TB here, of which one chunk exists."""
        with h5py.File(self.path("s.h5"), "w") as file:
            data = file.create_dataset("d", (10**6, 10**6), "f8", chunks=(1000, 1000),
                                       compression="gzip", fillvalue=0.5)
            data[5, 5] = 1
        self.ok("convert", self.path("s.h5"), self.path("s.b2nd"))
        self.assertEqual(self.text("get", self.path("s.b2nd"), "4:7,5"), "0.5 1 0.5\n")
        self.assertEqual(self.text("get", self.path("s.b2nd"), "999999,999999"), "0.5\n")

    def test_chunks_beyond_the_memory(self):
        """They are decoded once."""
        values = np.arange(4 * 2000 * 2000, dtype="<f4").reshape(4, 2000, 2000)
        with h5py.File(self.path("c.h5"), "w") as file:
            file.create_dataset("d", data=values, chunks=(1, 2000, 2000), compression="gzip")
        self.ok("convert", self.path("c.h5"), self.path("c.b2nd"), "--memory", "1MiB", "--verify")
        self.same(self.path("c.b2nd"), values)

    def test_mutations(self):
        rng = random_of(self)
        whole = self.make_small()
        crashes = 0
        for data in self.mutated(rng, whole, rounds(100)):
            self.path("m.h5").write_bytes(data)
            crashes += self.survives(rng, self.path("m.h5"))
        print("%d crashes of libhdf5" % crashes)

    def test_a_loop(self):
        """libhdf5 loops on this file: a signal ends that, and after a while the program does so."""
        path = self.path("loop.nc")
        path.write_bytes(LOOP)
        child = subprocess.Popen([CLI, "convert", path, self.path("o.b2z")], env=environment(),
                                 stderr=subprocess.PIPE)
        time.sleep(2)
        if child.poll() is not None: # a libhdf5 without this fault
            self.assertEqual(child.returncode, 4, child.communicate()[1])
            return
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertEqual(self.names(), ["loop.nc"])
        if LONG:
            err = self.fails(4, "convert", path, self.path("o.b2z"))
            self.assertIn("libhdf5 does not end on it", err)

    def test_truncations(self):
        whole = self.make_small()
        path = self.path("t.h5")
        for size in range(8, len(whole), len(whole) // 40):
            path.write_bytes(whole[:size])
            self.refused("convert", path, self.path("t.b2z"))
        self.assertEqual(self.names(), ["small.h5", "t.h5"])

    def test_claims(self):
        """A small file that claims a terabyte: chunks that are not stored are the fill."""
        path = self.path("a.h5")
        with h5py.File(path, "w") as file:
            file.create_dataset("sparse", (1 << 40,), "u1", chunks=(1 << 20,), compression="gzip")
            file.create_dataset("words", (1 << 36,), h5py.string_dtype(), chunks=(1 << 24,))
        status, err = self.limited("info", path)
        self.assertEqual(status, 0, err)
        with h5py.File(path, "w") as file:
            file.create_dataset("plain", (1000,), "u1", data=np.arange(1000) % 256)
            place = file["plain"].id.get_offset()
        data = bytearray(path.read_bytes())
        at = data.index(struct.pack("<QQ", place, 1000)) + 8
        data[at:at + 8] = struct.pack("<Q", 1 << 40)
        data = bytes(data).replace(struct.pack("<QQ", 1000, 1000), struct.pack("<QQ", 1 << 40, 1 << 40))
        path.write_bytes(data)
        status, err = self.limited("convert", path, self.path("a.b2nd"))
        self.assertEqual(status, 4, err)
        self.assertRegex(err, r"\Acaterva: [^\n]+\n\Z")

    def test_many_groups(self):
        path = self.path("a.h5")
        with h5py.File(path, "w", libver="v110") as file:
            for n in range(2000):
                file.create_group("g%d/h" % n)
            file["x"] = 1
            at = file
            for n in range(60):
                at = at.create_group("d")
        status, err = self.limited("convert", str(path) + "::/x", self.path("x.b2nd"))
        self.assertEqual((status, err), (0, ""))


if __name__ == "__main__":
    main()
