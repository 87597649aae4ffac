"""Archives with one flipped bit: in a name, in the end record, and in what makes other readers
refuse a member. verify reports the damage, and repair loses nothing that can be read, and
reports what it cannot."""

import io
import json
import shutil
import struct
import subprocess
import zipfile

from tool_cli import Case, main, run, some

UNIT = '"K"\n'
END = {"disk": 4, "disks": 6, "here": 8, "all": 10}


class Damage(Case):
    def setUp(self):
        """Two arrays in a group with attributes, and one outside."""
        super().setUp()
        self.tree, self.archive = self.path("t.b2d"), self.path("t.b2z")
        for key in ("g/temp", "g/wind", "top"):
            self.ok("create", f"{self.tree}::/{key}", "--shape", "4", "--dtype", "<i8")
        self.ok("attr", "set", f"{self.tree}::/g", "units", '"K"')
        self.ok("pack", self.tree, self.archive)
        self.whole = self.archive.read_bytes()
        with zipfile.ZipFile(self.archive) as archive:
            self.start = archive.start_dir
            self.infos = {i.filename: i for i in archive.infolist()}
        self.end = self.whole.rfind(b"PK\5\6")
        self.bad, self.out = self.path("bad.b2z"), self.path("out.b2d")

    def write(self, *changes):
        data = bytearray(self.whole)
        for at, new in changes:
            data[at:at + len(new)] = new
        self.bad.write_bytes(data)

    def flip(self, at, bit):
        self.write((at, bytes([self.whole[at] ^ 1 << bit])))

    def record(self, name):
        """Position of the directory's record of a member."""
        return self.whole.index(name.encode(), self.start) - 46

    def repaired(self, status):
        """The outcome of each member, and the reason."""
        shutil.rmtree(self.out, ignore_errors=True)
        code, out, err = run("repair", "--json", self.bad, "-o", self.out)
        self.assertEqual((code, err), (status, ""), out)
        facts = json.loads(out)
        self.assertEqual(facts["complete"], status == 0)
        return {m["key"]: (m["outcome"], m["reason"]) for m in facts["members"]}

    # ---- Names -----------------------------------------------------------------------

    def rename(self, name, new, in_header):
        at = self.infos[name].header_offset + 30 if in_header else self.record(name) + 46
        self.write((at, new.encode()))

    def test_names_that_contradict_each_other(self):
        """The name that makes sense is taken, from the directory or the header; the message has
        both."""
        for name, bad in (("g/__vlmeta__.b2f", "g/__vlmeua__.b2f"), ("g/temp.b2nd", "g/temp.b2ne"),
                          ("g/__vlmeta__.b2f", "f/__vlmeta__.b2f"), ("g/temp.b2nd", "w/temp.b2nd"),
                          ("embed.b2e", "embed.b2d"), ("g/temp.b2nd", "g/wind.b2nd"),
                          ("top.b2nd", "to/.b2nd")):
            for in_header in (False, True):
                with self.subTest(name=name, bad=bad, in_header=in_header):
                    self.rename(name, bad, in_header)
                    self.assertIn(run("verify", self.bad)[0], (1, 4))
                    members = self.repaired(1)
                    key = "/" if name == "embed.b2e" else "/" + name.rsplit(".", 1)[0]
                    outcome, reason = members.pop(key)
                    self.assertEqual(outcome, "partly")
                    self.assertIn(f"different names: {name}, which was used, and {bad}", reason)
                    self.assertEqual({m[0] for m in members.values()}, {"sound"})
                    self.ok("diff", self.out, self.tree)
                    self.assertEqual(self.text("attr", "get", f"{self.out}::/g", "units"), UNIT)
                    self.ok("verify", self.out)

    def test_names_that_are_as_good_as_each_other(self):
        """The directory's name is taken, since other programs use it."""
        for in_header in (False, True):
            self.rename("g/temp.b2nd", "g/tenp.b2nd", in_header)
            key, other = ("/g/temp", "tenp") if in_header else ("/g/tenp", "temp")
            outcome, reason = self.repaired(1)[key]
            self.assertEqual(outcome, "partly")
            self.assertIn(f"{key[1:]}.b2nd, which was used, and g/{other}.b2nd", reason)
            shutil.rmtree(self.out)
            text = run("repair", self.bad, "-o", self.out)[1].decode()
            self.assertIn("5 members, 1 damaged, 1 lost in part, 0 lost", text)
            self.ok("diff", f"{self.out}::{key}", f"{self.tree}::/g/temp")

    def test_a_name_that_nobody_may_have(self):
        """It is damaged in its header, and nothing else confirms the directory's name."""
        self.rename("top.b2nd", "top\0b2nd", True)
        self.assertEqual(self.repaired(1)["/top"][0], "partly")
        self.ok("diff", self.out, self.tree)

    # ---- The end ---------------------------------------------------------------------

    def test_every_bit_of_how_many_parts_there_are(self):
        for field, bit in some([(field, bit) for field in END for bit in range(16)], 1, 5):
            with self.subTest(field=field, bit=bit):
                self.flip(self.end + END[field] + bit // 8, bit % 8)
                self.assertIn("repair", self.fails(4, "ls", self.bad))
                outcome, reason = self.first()
                self.assertEqual(outcome, "whole", reason)
                self.ok("diff", self.out, self.tree)

    def first(self):
        """The first of the two lines of the tree itself: how it was opened. The other one is
        about embed.b2e."""
        shutil.rmtree(self.out, ignore_errors=True)
        facts = json.loads(self.text("repair", "--json", self.bad, "-o", self.out))
        return facts["members"][0]["outcome"], facts["members"][0]["reason"]

    def test_parts(self):
        """A consistent end record is trusted, unless the first member begins at the start of
        this file."""
        two = struct.pack("<HH", 1, 1)
        self.write((self.end + 4, two))
        self.assertIn("the archive is whole", self.fails(4, "ls", self.bad))
        self.assertEqual(self.first()[0], "whole")
        self.ok("diff", self.out, self.tree)
        self.write((self.end + 4, struct.pack("<HH", 2, 1)), (self.end + 8, b"\2"))
        self.fails(4, "ls", self.bad)
        self.write((self.end + 4, two), (self.infos["embed.b2e"].header_offset, b"none"),
                   (self.start + 42, b"\7"))
        self.assertIn("part 2 of several", self.fails(5, "ls", self.bad))
        self.assertIn("part 2 of several", self.fails(5, "repair", self.bad, "-o", self.path("n")))

    def test_parts_of_zip(self):
        """Files that Info-ZIP creates when it splits a tree."""
        if not shutil.which("zip"):
            self.skipTest("there is no zip")
        (self.tree / "noise").write_bytes(bytes(range(256)) * 1024)
        made = self.path("split.zip")
        subprocess.run(["zip", "-q", "-0", "-r", "-s", "64k", made, "."], cwd=self.tree, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertTrue(made.with_suffix(".z01").exists())
        last = self.path("last.b2z")
        shutil.copy(made, last)
        self.assertIn("of several", self.fails(5, "ls", last))

    def test_the_wide_end(self):
        """Zip64, which stores the same numbers a second time."""
        _, _, _, _, n, size, pos, _ = struct.unpack("<IHHHHIIH", self.whole[self.end:self.end + 22])
        wide = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, n, n, size, pos)
        locator = struct.pack("<IIQI", 0x07064b50, 0, self.end, 1)
        self.whole = self.whole[:self.end] + wide + locator + self.whole[self.end:]
        self.write()
        self.ok("verify", self.bad)
        for at in (16, 20, 24, 32, 56 + 4, 56 + 17):
            with self.subTest(at=at):
                self.flip(self.end + at, 4)
                self.assertIn("repair", self.fails(4, "ls", self.bad))
                self.assertEqual(self.first()[0], "whole")
                self.ok("diff", self.out, self.tree)

    # ---- What other readers refuse -------------------------------------------------------

    def test_flags_and_versions(self):
        """Everything that zipfile refuses is damage, and also two encodings of one name; verify
        accepts everything else."""
        fields = [(name, what, at) for name, info in self.infos.items()
                  for what, at in (("version", info.header_offset + 4),
                                   ("flags", info.header_offset + 6),
                                   ("version", self.record(name) + 6),
                                   ("flags", self.record(name) + 8))]
        cases = [(*field, bit) for field in fields for bit in range(16)]
        for name, what, at, bit in some(cases, sanitized=5):
            with self.subTest(name=name, what=what, at=at, bit=bit):
                self.flip(at + bit // 8, bit % 8)
                refused = bit in (0, 5, 6, 11, 13) if what == "flags" else bit > 5
                code, out, _ = run("verify", self.bad)
                self.assertIn(code, (1, 4) if refused else (0,), out)
                self.assertTrue(refused or self.is_fine(), "zipfile refuses it")
                if not refused or name not in ("g/__vlmeta__.b2f", "top.b2nd"):
                    continue
                member = self.repaired(0)["/" + name.rsplit(".", 1)[0]]
                self.assertEqual(member[0], "whole")
                self.assertIn("contradicted each other", member[1])
                self.ok("diff", self.out, self.tree)

    def test_the_encoding_of_a_name(self):
        """Without the flag other programs decode the member's name differently."""
        self.ok("create", f"{self.tree}::/größe", "--shape", "4", "--dtype", "<i8")
        self.archive.unlink()
        self.ok("pack", self.tree, self.archive)
        self.whole = self.archive.read_bytes()
        with zipfile.ZipFile(self.archive) as archive:
            self.start = archive.start_dir
            info = archive.getinfo("größe.b2nd")
        self.ok("verify", self.archive)
        for at in (info.header_offset + 6, self.record(info.filename) + 8):
            self.flip(at + 1, 3)
            code, out, _ = run("verify", self.bad)
            self.assertEqual(code, 1, out)
            self.assertRegex(out.decode(), "flags 0[08]00 by .* and 0[08]00")
            self.assertEqual(self.repaired(0)["/größe"][0], "whole")
            self.ok("diff", self.out, self.tree)

    def is_fine(self):
        try:
            return zipfile.ZipFile(self.bad).testzip() is None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
            return False

    def test_archives_of_others_are_no_damage(self):
        """In them flag bit 3, times and versions differ between header and directory."""
        class Stream(io.RawIOBase):
            def __init__(self, to):
                super().__init__()
                self.to = to

            def writable(self):
                return True

            def write(self, data):
                return self.to.write(data)
        with open(self.bad, "wb") as file, zipfile.ZipFile(Stream(file), "w") as archive:
            for name in self.infos:
                archive.write(self.tree / name, name)
        self.ok("verify", self.bad)
        if shutil.which("zip"):
            self.ok("create", f"{self.tree}::/größe", "--shape", "4", "--dtype", "<i8")
            for how in ("n", "UTF8"):  # names in their own encoding, and with the UTF-8 flag
                made = self.path(f"{how}.b2z")
                subprocess.run(["zip", "-q", "-0", f"-UN={how}", "-r", made, "."],
                               cwd=self.tree, check=True)
                self.ok("verify", made)
        self.write((self.infos["top.b2nd"].header_offset + 4, b"\x0a"),
                   (self.infos["top.b2nd"].header_offset + 10, b"\x11\x22\x33\x44"))
        self.ok("verify", self.bad)

    # ---- What verify says of attributes ----------------------------------------------

    def test_attributes_of_groups_are_sealed(self):
        for tree in (self.tree, self.archive):
            self.assertIn("::/g/__vlmeta__: ok, attributes, sealed\n", self.text("verify", tree))
            facts = [json.loads(x) for x in self.text("verify", "--json", tree).splitlines()]
            sealed = {f["file"].split("::")[1]: f["sealed"] for f in facts}
            self.assertEqual(sealed, {"/": False, "/g/__vlmeta__": True, "/g/temp": True,
                                      "/g/wind": True, "/top": True})
        file = self.tree / "g" / "__vlmeta__.b2f"
        data = bytearray(file.read_bytes())
        data[-20:] = data[-20:-17] + bytes(17)  # as python-blosc2 leaves it
        file.write_bytes(data)
        self.assertIn("::/g/__vlmeta__: ok, attributes, unsealed\n",
                      self.text("verify", self.tree))

    def test_headers_of_attributes(self):
        """Every wrong bit is damage; what the trailer's checksums confirm is kept and can be
        read."""
        file = self.tree / "g" / "__vlmeta__.b2f"
        good = file.read_bytes()
        bits, mended = some(range(0, 97 * 8, 5), sanitized=5), 0
        for bit in bits:
            data = bytearray(good)
            data[bit // 8] ^= 1 << bit % 8
            file.write_bytes(data)
            with self.subTest(bit=bit):
                code, out, _ = run("verify", self.tree)
                self.assertEqual(code, 1, out)
                self.assertIn(b"::/g/__vlmeta__: damaged, attributes, unsealed\n", out)
                if run("attr", "list", f"{self.tree}::/g")[0] != 0:
                    continue
                self.mend(file, good)
                mended += 1
        self.assertGreater(mended, len(bits) // 4)

    def mend(self, file, good):
        damaged = file.read_bytes()
        self.assertIn(b"checksum differs", run("verify", "--quick", self.tree)[1])
        shutil.rmtree(self.out, ignore_errors=True)
        for place in ((), ("-o", self.out)):
            facts = json.loads(self.text("repair", "--json", self.tree, *place))
            outcome = {m["key"]: (m["outcome"], m["reason"]) for m in facts["members"]}
            self.assertEqual(outcome["/g/__vlmeta__"],
                             ("whole", "the header is damaged: checksum differs"))
            made = self.out / "g" / file.name if place else file
            self.assertEqual(made.read_bytes(), good)
            file.write_bytes(damaged)


if __name__ == "__main__":
    main()
