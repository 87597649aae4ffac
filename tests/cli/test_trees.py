"""ls, tree, and the reporting commands on arrays in trees."""

import json
import os
import shutil
import zipfile

import numpy as np

from tool_cli import DATA, WINDOWS, Case, main, run, some

TREES = DATA / "trees"


class Trees(Case):
    def setUp(self):
        super().setUp()
        if not TREES.exists():
            self.skipTest(f"there is no {TREES}")
        self.tree = self.path("tree.b2z")
        shutil.copy(TREES / "tree.b2z", self.tree)
        with zipfile.ZipFile(self.tree) as archive:
            archive.extractall(self.path("tree.b2d"))

    def test_ls(self):
        for name in ("tree.b2z", "tree.b2d"):
            tree = self.path(name)
            self.assertEqual(self.text("ls", tree).split(),
                             ["empty/", "model/", "raw/", "s0", "tbl", "time"])
            self.assertEqual(self.text("ls", f"{tree}::/model").split(), ["lat", "lon", "temp"])
            self.assertEqual(self.text("ls", f"{tree}::"), self.text("ls", tree))
            self.assertEqual(self.text("ls", f"{tree}::/empty"), "")
        lines = self.text("ls", "-lr", self.tree).splitlines()
        self.assertEqual(lines[4].split(), ["array", "24,10,20", "float32", "3.1", "KiB",
                                            "model/temp"])
        self.assertEqual([line.split()[0] for line in lines[6:8]], ["batcharray", "vlarray"])
        both = self.text("ls", self.tree, f"{self.tree}::/raw")
        self.assertEqual(both.split("\n\n")[1], f"{self.tree}::/raw:\nbatch\nobj\nsc\n")

    def test_json(self):
        found = json.loads(self.text("ls", "-r", "--json", self.tree))
        entries = {e["key"]: e for e in found["entries"]}
        self.assertEqual((found["schema"], found["group"], len(entries)), (1, "/", 16))
        self.assertEqual(entries["/model/temp"], {
            "key": "/model/temp", "kind": "array", "kind_name": "array", "read_only": True,
            "embedded": False, "stored_bytes": 3125, "path": "model/temp.b2nd",
            "shape": [24, 10, 20], "dtype": "<f4"})
        self.assertEqual(entries["/tbl"]["kind_name"], "ctable")
        self.assertEqual(entries["/empty"]["kind"], "group")

    def test_tree(self):
        self.assertEqual(self.text("tree", f"{self.tree}::/model"), f"""{self.tree}::/model
├── lat  float64 (10)
├── lon  float64 (20)
└── temp  float32 (24, 10, 20)
""")
        lines = self.text("tree", self.tree).splitlines()
        self.assertEqual(lines[1:4], ["├── empty/", "├── model/", "│   ├── lat  float64 (10)"])
        self.assertEqual(lines[-4:], ["│   │   ├── x  int64 (1)", "│   │   └── y  float64 (1)",
                                      "│   └── _valid_rows  bool (1)", "└── time  int64 (24)"])

    def test_samples(self):
        """The contents of every sample."""
        for name, kinds in {
            "dict.b2z": {"/a": "array", "/d": "group", "/d/b": "array"},
            "cf.b2z": dict.fromkeys(["/lat", "/lon", "/t2m", "/time"], "array"),
            "embed.b2e": {"/g": "group", "/g/n2": "array", "/n1": "array"},
            "minimal_embed_b2tree.b2e": {},
            "xarray_blosc2.b2z": {
                **dict.fromkeys(["/_coord_crs", "/_coord_lat", "/_coord_lon",
                                 "/_coord_spatial_ref", "/_coord_time", "/t2m"], "array"),
                "/dataset.json": "deflated"},
        }.items():
            found = json.loads(self.text("ls", "-r", "--json", TREES / name))["entries"]
            self.assertEqual({e["key"]: e["kind_name"] for e in found}, kinds, name)
        shutil.copytree(self.path("tree.b2d"), self.path("odd.b2d"))
        for name in ("lazy.b2nd", "op.b2nd"):
            shutil.copy(TREES / name, self.path("odd.b2d") / name)
        found = json.loads(self.text("ls", "--json", self.path("odd.b2d")))["entries"]
        kinds = {e["key"]: (e["kind"], e["kind_name"]) for e in found}
        self.assertEqual(kinds["/lazy"], ("other", "lazyexpr"))
        self.assertEqual(kinds["/op"], ("array", "array"))

    def test_commands(self):
        """For an array of an archive their output is that for the file alone, except its
        name."""
        file = self.path("tree.b2d") / "model" / "temp.b2nd"
        for name in (f"{self.tree}::/model/temp", f"{self.path('tree.b2d')}::/model/temp"):
            for command in (["info"], ["info", "--json"], ["stats"], ["verify"], ["get"],
                            ["info", "--short"], ["verify", "--json"]):
                self.assertEqual(self.text(*command, name).replace(name, "FILE"),
                                 self.text(*command, file).replace(str(file), "FILE"))
            self.assertEqual(self.text("get", name, "0,:2,-1"), self.text("get", file, "0,:2,-1"))
            self.ok("convert", name, self.path("out.npy"), "-f")
            self.ok("convert", name, self.path("out.b2nd"), "-f")
            self.ok("diff", name, self.path("out.b2nd"))
            self.assertEqual(self.text("attr", "get", name, "units"), '"K"\n')
        name = f"{TREES / 'embed.b2e'}::/n1"
        self.assertEqual(self.text("get", name).split(), list("01234"))

    def test_columns_of_tables_are_read_only(self):
        name = f"{self.path('tree.b2d')}::/tbl/_cols/x"
        before = self.text("get", name)
        self.assertIn("is part of a ctable", self.fails(2, "put", name, "0", "--fill", "1"))
        self.assertEqual(self.text("get", name), before)
        self.ok("put", f"{self.path('tree.b2d')}::/model/lat", "0", "--fill", "1")

    def test_verify(self):
        """One line for every member: arrays and everything else in the tree."""
        lines = self.text("verify", "--short", self.tree).splitlines()
        self.assertEqual([line.split("::")[1] for line in lines],
                         ["/", "/__vlmeta__", "/empty/__vlmeta__", "/model/__vlmeta__",
                          "/model/lat", "/model/lon", "/model/temp", "/raw/batch", "/raw/obj",
                          "/raw/sc", "/s0", "/tbl/_cols/x", "/tbl/_cols/y",
                          "/tbl/_valid_rows", "/time"])
        self.assertEqual({line.split()[0] for line in lines}, {"ok"})
        file = self.path("tree.b2d") / "model" / "temp.b2nd"
        data = bytearray(file.read_bytes())
        data[300:2000] = b"\xff" * 1700
        file.write_bytes(data)
        (self.path("tree.b2d") / "s0.b2nd").write_bytes(b"no frame at all")
        (self.path("tree.b2d") / "model" / "__vlmeta__.b2f").write_bytes(b"none")
        status, out, _ = run("verify", self.path("tree.b2d"))
        self.assertEqual(status, 4)
        self.assertIn("::/model/temp: damaged", out.decode())
        self.assertIn("::/s0: damaged", out.decode())
        self.assertIn("::/model/__vlmeta__: damaged", out.decode())
        found = [json.loads(line) for line in
                 run("verify", "--json", self.path("tree.b2d"))[1].splitlines()]
        self.assertEqual({one["file"].split("::")[1] for one in found if not one["ok"]},
                         {"/model/temp", "/s0", "/model/__vlmeta__"})
        self.assertEqual(run("verify", f"{self.path('tree.b2d')}::/raw")[0], 0)

    def test_verify_names_keys_that_differ_only_in_case(self):
        with zipfile.ZipFile(self.path("case.b2z"), "w") as archive:
            for name in ("T", "t", "g/x", "G/y", "model"):
                archive.write(self.path("tree.b2d") / "time.b2nd", f"{name}.b2nd")
        for options in ((), ("--json",), ("--short",)):
            status, out, err = run("verify", *options, self.path("case.b2z"))
            self.assertEqual((status, len(out.splitlines())), (0, 5))
            self.assertEqual([line.split(": ", 3)[3].split(" differ ")[0]
                              for line in err.splitlines()],
                             ["/T and /t", "/G and /g"])
        self.assertEqual(run("verify", self.tree)[2], "")

    def test_verify_checksums(self):
        """A wrong byte of a member that is not a frame is found by the archive's checksum."""
        with zipfile.ZipFile(self.path("n.b2z"), "w") as archive:
            archive.write(self.path("tree.b2d") / "time.b2nd", "time.b2nd")
            archive.writestr("notes.txt", "some words")
        data = self.path("n.b2z").read_bytes()
        self.path("n.b2z").write_bytes(data.replace(b"some words", b"Some words", 1))
        status, out, _ = run("verify", self.path("n.b2z"))
        self.assertEqual(status, 1)
        self.assertIn("::/notes.txt: damaged", out.decode())
        self.assertEqual(run("verify", "--quick", self.path("n.b2z"))[0], 0)

    def test_verify_directory_and_headers_of_archives(self):
        """Every bit that describes a member, in the directory and in the header before it. An
        archive that is not sound is not published, either."""
        whole = self.tree.read_bytes()
        with zipfile.ZipFile(self.tree) as archive:
            n = len(archive.infolist())
        bad, cases = self.path("bad.b2z"), []
        for mark, size, fields, name in ((b"PK\1\2", 46, (8, 10, *range(16, 28), 42), 28),
                                         (b"PK\3\4", 30, (6, 8, *range(14, 26)), 26)):
            at = whole.find(mark)
            while at >= 0:
                length = int.from_bytes(whole[at + name:at + name + 2], "little")
                cases += [(at, field) for field in (*fields, size, size + length - 1)]
                at = whole.find(mark, at + 1)
        self.assertEqual(len(cases), n * (17 + 16))
        for at, field in some(cases, sanitized=5):
            data = bytearray(whole)
            data[at + field] ^= 1
            bad.write_bytes(data)
            code, out, _ = run("verify", "--quick", bad)
            with self.subTest(at=at, field=field):
                self.assertIn(code, (1, 4, 5), out)
        data = bytearray(whole)
        data[14] ^= 1  # the first member's checksum, in its header
        bad.write_bytes(data)
        self.assertIn("by the zip archive's directory", self.fails(
            4, "publish", bad, "http://127.0.0.1:1/x.b2z"))

    def test_verify_names_that_collide(self):
        """A flipped bit that gives a member the name of another one hides an array."""
        bad = self.path("bad.b2z")
        with zipfile.ZipFile(bad, "w") as archive:
            for name in ("x", "y"):
                array = self.path(f"{name}.b2nd")
                self.ok("create", array, "--shape", "4", "--dtype", "<i8")
                archive.write(array, f"{name}.b2nd")
        self.ok("verify", bad)
        data = bytearray(bad.read_bytes())
        data[data.find(b"PK\1\2") + 46] ^= 1
        bad.write_bytes(data)
        code, out, _ = run("verify", bad)
        self.assertEqual(code, 1, out)
        self.assertEqual(out.count(b"no member begins at byte 0"), 1, out)
        data[data.find(b"PK\1\2") + 46] ^= 3  # a name that no member has
        bad.write_bytes(data)
        self.assertEqual(run("verify", bad)[1].count(b"no member begins at byte 0"), 1)
        self.fails(4, "publish", bad, "http://127.0.0.1:1/x.b2z")

    def test_verify_says_what_it_does_not_look_at(self):
        other = self.path("other.b2z")
        with zipfile.ZipFile(self.tree) as old, zipfile.ZipFile(other, "w") as new:
            for i in old.infolist():
                new.writestr(i.filename, old.read(i), zipfile.ZIP_DEFLATED
                             if i.filename.endswith(".b2nd") else zipfile.ZIP_STORED)
        n = sum(name.endswith(".b2nd") for name in zipfile.ZipFile(other).namelist())
        self.assertGreater(n, 0)
        text = self.text("verify", other)
        self.assertEqual(text.count(": not checked, deflated, unsealed"), n, text)
        self.assertEqual(self.text("verify", "--short", other).count("skipped "), n)
        facts = [json.loads(x) for x in self.text("verify", "--json", other).splitlines()]
        self.assertEqual(sum(x.get("skipped", False) for x in facts), n)

    def test_info(self):
        """A tree as a whole, and each of its arrays in a line."""
        lines = self.text("info", self.tree).splitlines()
        self.assertEqual(lines[1].split(), "arrays 9 groups 4 others 3".split())
        self.assertIn("  dims      time 24, lat 10, lon 20", lines)
        self.assertIn('    "title": "sample"', lines)
        found = json.loads(self.text("info", "--json", f"{self.tree}::/model"))
        self.assertEqual((found["arrays"], found["dims"], found["attributes"]),
                         (3, {"time": 24, "lat": 10, "lon": 20}, {"source": "x"}))
        self.assertEqual(len(self.text("info", "--short", self.tree).splitlines()), 9)

    def test_diff(self):
        other = self.path("tree.b2d")
        self.assertEqual(self.text("diff", self.tree, other), "")
        self.ok("put", f"{other}::/model/lat", "0", "--fill", "1")
        shutil.rmtree(other / "raw")
        shutil.copy(other / "time.b2nd", other / "more.b2nd")
        status, out, _ = run("diff", self.tree, other)
        self.assertEqual(status, 1)
        lines = out.decode().splitlines()
        self.assertIn(f"{self.tree}::/raw/obj: does not exist in {other}", lines)
        self.assertIn(f"{other}::/more: does not exist in {self.tree}", lines)
        self.assertEqual(len([line for line in lines if "1 of 10 items differ" in line]), 1)
        self.assertEqual(len(lines), 6)
        self.assertEqual(run("diff", "-q", self.tree, other)[:2], (1, b""))
        self.ok("diff", f"{self.tree}::/model", f"{self.tree}::/model")
        self.fails(2, "diff", self.tree, f"{self.tree}::/time")

    def test_what_is_missing_or_cut_is_no_array(self):
        """The name says that it is a tree: the statuses are those of a missing or damaged
        tree."""
        cut, npy = self.path("cut.b2z"), self.path("a.npy")
        cut.write_bytes(self.tree.read_bytes()[:500])
        self.ok("get", f"{self.tree}::/time", "-o", npy)
        for code, sentence, other in (
                (3, "does not exist", self.path("none.b2z")),
                (3, "does not exist", self.path("none.b2d")),
                (3, "No such file", self.path("none")),
                (3, "127.0.0.1", "http://127.0.0.1:1/t.b2z"),
                (3, "/none does not exist", f"{self.tree}::/none"),
                (4, "has no end", cut),
                (2, "tree.b2z is a tree, ", npy),
                (2, "tree.b2z is a tree, ", f"{self.tree}::/time")):
            with self.subTest(other=other):
                self.assertIn(sentence, self.fails(code, "diff", other, self.tree))
                self.assertIn(sentence, self.fails(code, "diff", self.tree, other))
        for command in (["get"], ["info"], ["ls"], ["verify"], ["attr", "list"]):
            self.assertIn("has no end", self.fails(4, *command, cut))
        self.assertEqual(run("verify", "--short", cut)[:2],
                         (4, f"unread    {'-':24} {'-':9} {cut}\n".encode()))
        url = "http://127.0.0.1:1/x.b2z"
        self.assertIn("has no end", self.fails(4, "publish", cut, url))
        self.assertIn("is a NumPy file", self.fails(5, "publish", npy, url))

    def test_diff_of_attributes(self):
        """Attributes of the named group, of the groups in it, and of arrays."""
        other = self.path("tree.b2d")
        self.ok("attr", "set", f"{other}::/", "title", '"another"')
        self.ok("attr", "set", f"{other}::/model", "n", "1")
        self.ok("attr", "set", f"{other}::/model/lat", "units", '"m"')
        status, out, _ = run("diff", self.tree, other)
        self.assertEqual(status, 1)
        self.assertEqual(out.decode().splitlines(), [
            f"{self.tree} and {other}: the attribute 'title' differs: \"sample\" and "
            '"another"',
            f"{self.tree}::/model and {other}::/model: only the second has the attribute 'n'",
            f"{self.tree}::/model/lat and {other}::/model/lat: only the second has the "
            "attribute 'units'"])
        status, out, _ = run("diff", "--json", self.tree, other)
        found = [json.loads(line) for line in out.decode().splitlines()]
        self.assertEqual((status, found[0]), (1, {
            "schema": 1, "a": str(self.tree), "b": str(other), "equal": False,
            "attributes": [{"name": "title", "a": "sample", "b": "another"}]}))
        self.assertEqual([f["a"].split("::")[1] for f in found[1:] if not f["equal"]],
                         ["/model", "/model/lat"])
        status, out, _ = run("diff", f"{self.tree}::/model", f"{other}::/model", "-q")
        self.assertEqual((status, out), (1, b""))
        self.assertEqual(self.text("diff", "--no-attributes", self.tree, other), "")

    def test_attributes_of_groups(self):
        """Set, read and deleted as those of an array; those of an archive can only be read."""
        group = f"{self.path('tree.b2d')}::/model"
        self.assertEqual(self.text("attr", "list", f"{self.tree}::/model"), '"source": "x"\n')
        self.ok("attr", "set", group, "title", '"air"')
        self.ok("attr", "set", group, "straight_vertical_longitude_from_pole", "-45.0")
        self.ok("attr", "set", group, "_FillValue", "-1", "--dtype", "<i2")
        self.assertEqual(json.loads(self.text("attr", "list", "--json", group))["attributes"],
                         {"source": "x", "title": "air",
                          "straight_vertical_longitude_from_pole": -45.0,
                          "_FillValue": {"$array": {"dtype": "<i2", "shape": [], "data": [-1]}}})
        self.ok("attr", "delete", group, "source")
        self.fails(1, "attr", "get", group, "source")
        self.fails(1, "attr", "delete", group, "source")
        self.fails(2, "attr", "set", f"{self.tree}::/model", "x", "1")
        self.ok("attr", "set", self.path("tree.b2d"), "title", '"all"')
        self.ok("pack", self.path("tree.b2d"), self.path("p.b2z"))
        self.assertEqual(self.text("attr", "get", self.path("p.b2z"), "title"), '"all"\n')
        self.assertEqual(self.text("attr", "get", f"{self.path('p.b2z')}::/model", "title"),
                         '"air"\n')

    def test_coordinates(self):
        """--sel finds coordinates in archives, in the nearest group that has them."""
        cf = TREES / "cf.b2z"
        self.ok("unpack", cf, self.path("cf.b2d"))
        lat = self.text("get", f"{cf}::/lat").split()[1].rstrip(",]")
        for tree in (cf, self.path("cf.b2d")):
            self.assertEqual(self.text("get", f"{tree}::/t2m", "--sel", f"lat={lat}"),
                             self.text("get", f"{cf}::/t2m", ":,1"))

    def test_written_in_a_directory(self):
        """An array in a directory can be written; one in an archive cannot."""
        name = f"{self.path('tree.b2d')}::/model/lat"
        self.ok("convert", name, self.path("lat.npy"))
        self.ok("append", name, self.path("lat.npy"))
        self.assertEqual(json.loads(self.text("info", "--json", name))["shape"], [20])
        self.fails(2, "append", f"{self.tree}::/model/lat", self.path("lat.npy"))

    def test_pack(self):
        """A tree is created, packed, unpacked and changed: no other file is left."""
        self.ok("convert", f"{self.tree}::/model/lat", self.path("lat.npy"))
        new, packed, back = self.path("n.b2d"), self.path("n.b2z"), self.path("back.b2d")
        self.ok("convert", self.path("lat.npy"), f"{new}::/g/lat")
        self.ok("create", f"{new}::/zeros", "--shape", "3,4", "--dtype", "<f4")
        self.ok("pack", new, packed)
        self.fails(3, "pack", new, packed)
        self.ok("pack", "-f", new, packed)
        self.assertIn("lies inside the tree", self.fails(2, "pack", "-f", new, new / "zeros.b2nd"))
        self.assertEqual(self.text("ls", "-r", packed).split(), ["g/", "g/lat", "zeros"])
        self.assertEqual(self.text("get", f"{packed}::/g/lat"),
                         self.text("get", f"{self.tree}::/model/lat"))
        self.ok("unpack", packed, back)
        self.fails(3, "unpack", packed, back)
        self.ok("unpack", self.tree, self.path("all.b2d"))
        for file in sorted(self.path("tree.b2d").rglob("*.b2*")):
            if file.is_file():
                copy = self.path("all.b2d") / file.relative_to(self.path("tree.b2d"))
                self.assertEqual(copy.read_bytes(), file.read_bytes())
        self.fails(5, "unpack", TREES / "xarray_blosc2.b2z", self.path("x.b2d"))
        self.assertEqual([n for n in self.names() if n.startswith(".") or n == "x.b2d"], [])
        self.text("compact", f"{back}::/zeros")
        self.fails(2, "compact", f"{packed}::/zeros")
        self.assertEqual(self.fails(2, "create", f"{packed}::/y", "--shape", "3", "--dtype",
                                    "<f4").count("unpack"), 1)

    def test_refusals(self):
        for expected, words in ((5, ("get", self.tree)), (5, ("get", f"{self.tree}::/model")),
                                (3, ("get", f"{self.tree}::/none")), (3, ("ls", "none.b2z")),
                                (3, ("ls", f"{self.tree}::/none")),
                                (5, ("ls", TREES / "op.b2nd")), (5, ("get", f"{self.tree}::/tbl")),
                                (5, ("get", f"{self.tree}::/raw/batch")), (5, ("ls", self.folder)),
                                (2, ("get", f"{self.tree}::/model/../time"))):
            self.fails(expected, *words)
        self.assertIn("caterva ls", self.fails(5, "get", self.path("tree.b2d")))


class Names(Case):
    """Names under which no array of a directory is listed."""

    def made(self, *names):
        """An archive by other programs, with one array under each name."""
        array, archive = self.path("x.b2nd"), self.path("made.b2z")
        self.ok("create", "-f", array, "--shape", "3", "--dtype", "<i4", "--fill", "7")
        with zipfile.ZipFile(archive, "w") as made:
            for name in names:
                made.write(array, name)
        return archive

    def test_hidden_members(self):
        """Hidden names are not listed, in archives as in directories, and not copied; their
        damage is found all the same."""
        archive = self.made("g/.a.b2nd", ".caterva-commit", ".h/x.b2nd", "g/b.b2nd")
        other, directory = self.path("other.b2z"), self.path("back.b2d")
        self.assertEqual(self.text("ls", "-r", archive).split(), ["g/", "g/b"])
        self.fails(3, "get", f"{archive}::/g/.a")
        self.ok("pack", archive, other)
        self.ok("unpack", archive, directory)
        for tree in (other, directory):
            self.assertEqual(self.text("ls", "-r", tree).split(), ["g/", "g/b"])
        self.assertEqual(sorted(file.name for file in directory.rglob("*") if file.is_file()),
                         ["b.b2nd", "embed.b2e"])
        self.text("verify", archive)
        data = bytearray(archive.read_bytes())
        data[14] ^= 1  # the first member's checksum, in its header
        archive.write_bytes(data)
        self.assertEqual(run("verify", archive)[0], 1)

    def test_what_has_an_arrays_name_and_is_no_file(self):
        """A broken link, a link in a circle, and a pipe: listed, reported by verify, and not
        left out of an archive without a message."""
        tree, packed = self.path("t.b2d"), self.path("t.b2z")
        self.ok("create", f"{tree}::/g/a", "--shape", "3", "--dtype", "<i4", "--fill", "7")
        for make in (lambda place: place.symlink_to("unmounted.b2nd"),
                     lambda place: place.symlink_to(place.name), os.mkfifo):
            place = tree / "g" / "x.b2nd"
            make(place)
            (tree / "g" / "notes.txt").symlink_to("away")  # not an array's name: ignored
            self.assertEqual(self.text("ls", "-r", tree).split(), ["g/", "g/a", "g/x"])
            self.assertIn("cannot be read", self.fails(3, "get", f"{tree}::/g/x"))
            status, out, _ = run("verify", tree)
            self.assertEqual((status, out.count(b"/g/x: damaged")), (1, 1), out)
            self.assertIn("cannot be read", self.fails(3, "pack", tree, packed))
            self.assertFalse(packed.exists())
            status, out, _ = run("repair", tree)
            self.assertEqual(status, 1, out)
            with_group = f"{tree}::/g"
            self.ok("attr", "set", with_group, "n", "1")
            place.unlink()
            (tree / "g" / "notes.txt").unlink()
        self.ok("pack", tree, packed)

    def test_backslashes(self):
        """On Windows a backslash is a slash in paths: no key with it leads out of a tree."""
        tree, victim = self.path("a/b/t.b2d"), self.path("a/victim.b2nd")
        archive = self.made("x\\..\\..\\victim.b2nd", "ok.b2nd")
        tree.parent.mkdir(parents=True)
        victim.write_bytes(b"mine")
        np.savez(self.path("a.npz"), ok=np.arange(3))
        with zipfile.ZipFile(self.path("a.npz"), "a") as file:
            file.write(self.path("a.npz"), "no")
            file.writestr("x\\..\\..\\victim.npy", file.read("ok.npy"))
        inside = str(tree) + "::/g\\..\\..\\victim"
        create = ("create", "-f", inside, "--shape", "5", "--dtype", "<i4")
        for command in (create, ("convert", "-f", archive, tree), ("unpack", archive, tree),
                        ("convert", "-f", self.path("a.npz"), tree),
                        ("repair", archive, "-f", "-o", tree),
                        ("convert", "-f", archive, self.path("a/b/t.zarr")), ("get", inside),
                        ("attr", "set", inside, "k", "1"), ("jobs", "begin", inside)):
            if inside in command:
                self.ok("create", f"{tree}::/ok", "--shape", "2", "--dtype", "<i4")
            status, _, err = run(*command)
            if WINDOWS:
                self.assertRegex(err, "can have the name|Invalid argument|does not exist", command)
            self.assertEqual(sorted(p.name for p in self.path("a").iterdir()), ["b", "victim.b2nd"])
            self.assertEqual(victim.read_bytes(), b"mine", command)
            self.assertLessEqual({p.name for p in self.path("a/b").iterdir()}, {"t.b2d", "t.zarr"})
            shutil.rmtree(tree, ignore_errors=True)

    def test_folders_of_jobs(self):
        """A group that would be hidden in a directory is not unpacked; in an archive it can be
        read."""
        archive = self.made("g/x.b2nd.parts/y.b2nd")
        self.assertEqual(self.text("get", f"{archive}::/g/x.b2nd.parts/y"), "7 7 7\n")
        self.assertIn("x.b2nd.parts", self.fails(2, "unpack", archive, self.path("back.b2d")))
        self.assertEqual(self.names(), ["made.b2z", "x.b2nd"])
        self.assertIn("x.b2nd.parts", self.fails(
            2, "create", f"{self.path('t.b2d')}::/x.b2nd.parts/y", "--shape", "3", "--dtype",
            "<i4"))


if __name__ == "__main__":
    main()
