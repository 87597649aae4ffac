"""repair of trees: in place and into a new tree, what is kept and what is reported as lost."""

import json
import shutil
import struct
import zipfile

import blosc2
import numpy as np

from test_repair import Made
from tool_cli import main, run, some

SOUND = "undamaged, nothing to repair"


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def journal(path, file):
    """A complete commit that is not applied yet: `file` is to be renamed to `path`."""
    def text(value):
        return b"\xc6" + struct.pack(">I", len(value) + 1) + value.encode() + b"\0"
    body = (b"\xaecaterva-commit" + b"\xce\0\0\0\1" * 2 + text(path) + b"\xa4file\xc2"
            + text(file))
    return body + b"\xce" + struct.pack(">I", crc32c(body))


class TreeRepair(Made):
    def setUp(self):
        """Two arrays of six chunks in a group with attributes, and a small one."""
        super().setUp()
        self.array = self.make()
        self.tree = self.path("t.b2d")
        self.ok("create", f"{self.tree}::/small", "--shape", "4", "--dtype", "<i8")
        (self.tree / "g").mkdir()
        for name in ("x", "y"):
            shutil.copy(self.array, self.tree / "g" / f"{name}.b2nd")
        self.ok("attr", "set", f"{self.tree}::/g", "title", '"a run"')
        self.x, self.y = (self.tree / "g" / f"{name}.b2nd" for name in "xy")
        self.archive = self.path("t.b2z")
        self.ok("pack", self.tree, self.archive)
        self.good = self.files()

    def files(self):
        """Without the file of the locks on Windows."""
        return {p: p.read_bytes() for p in self.tree.rglob("*")
                if p.is_file() and p.name != ".caterva.lock"}

    def repaired(self, status, *arguments):
        """The lines and the JSON object of a repair; the first run is done on a copy."""
        code, out, err = run("repair", *arguments)
        self.assertEqual((code, err), (status, ""), out)
        return out.decode().splitlines()

    def outcomes(self, status, *arguments):
        code, out, err = run("repair", "--json", *arguments)
        self.assertEqual((code, err), (status, ""), out)
        facts = json.loads(out)
        return facts, {m["key"]: m["outcome"] for m in facts["members"]}

    def damage_to(self, path, chunk):
        before = path.read_bytes()
        shutil.copy(path, self.path("probe.b2nd"))
        at = self.damage(self.path("probe.b2nd"), chunk)
        path.write_bytes(self.path("probe.b2nd").read_bytes())
        self.assertNotEqual(path.read_bytes(), before)
        return at

    def member(self, name):
        """Position and size of a member's bytes in the archive."""
        with zipfile.ZipFile(self.archive) as archive:
            info = archive.getinfo(name)
        return info.header_offset + 30 + len(name), info.file_size

    # ---- What cannot be opened -------------------------------------------------------

    def test_a_member_that_needs_a_newer_library_is_never_ok(self):
        """A flipped bit may make the header of a frame or an array announce something
        unknown."""
        for at, bit in ((25, 4), (25, 64), (26, 2), (27, 8), (85, 16)):
            with self.subTest(at=at, bit=bit):
                data = bytearray(self.good[self.x])
                data[at] ^= bit
                self.x.write_bytes(data)
                archive = self.path("bad.b2z")
                self.ok("pack", "-f", self.tree, archive)
                for tree in (self.tree, archive):
                    code, out, _ = run("verify", tree)
                    lines = [x for x in out.decode().splitlines() if "::/g/x: " in x]
                    self.assertEqual((code, len(lines)), (5, 2), out)
                    self.assertIn(": damaged, ", lines[1])
                    self.assertEqual(run("verify", f"{tree}::/g/x")[0], 5)
                    code, out, _ = run("verify", "--short", tree)
                    self.assertEqual((code, out.decode().count("unread ")), (5, 1))
        self.x.write_bytes(self.good[self.x])
        self.assertEqual(run("verify", self.tree)[0], 0)

    def test_objects_of_others_stay_as_they_are(self):
        for name, meta in (("list.b2f", {"vlarray": {"version": 1}}),
                           ("lazy.b2nd", {"LazyArray": {"version": 1}})):
            blosc2.SChunk(chunksize=8, data=bytes(16), contiguous=True, meta=meta,
                          urlpath=str(self.tree / "g" / name))
        code, out, _ = run("verify", self.tree)
        self.assertEqual((code, out.count(b": ok, vlarray"), out.count(b": ok, LazyArray")),
                         (0, 1, 1), out)
        self.assertEqual(self.repaired(0, self.tree)[-1], f"{self.tree}: {SOUND}")

    def test_what_nobody_knows_is_named_and_copied(self):
        """The header announces it, and there is no copy of the header."""
        data = bytearray(self.good[self.x].replace(b"cv-head\1", b"no-head\1"))
        data[26] ^= 2
        self.x.write_bytes(data)
        out = self.path("new.b2d")
        for arguments in ((self.tree, "-o", out), (self.tree,)):
            lines = self.repaired(1, *arguments)
            self.assertIn(f"{arguments[0]}::/g/x: frame header: unknown frame type 2: "
                          "lost in part", lines)
        self.assertEqual((out / "g" / "x.b2nd").read_bytes(), data)
        self.assertEqual(run("verify", out)[0], 5)

    # ---- In place ------------------------------------------------------------------

    def test_sound(self):
        self.assertEqual(self.text("repair", self.tree), f"{self.tree}: {SOUND}\n")
        facts, outcomes = self.outcomes(0, self.tree)
        self.assertEqual(set(outcomes.values()), {"sound"})
        self.assertEqual(sorted(outcomes), ["/", "/g/__vlmeta__", "/g/x", "/g/y", "/small"])
        self.assertTrue(facts["complete"] and not facts["settled"])
        self.assertEqual(self.files(), self.good)

    def test_header_and_chunk(self):
        self.change(self.x, 0, bytes(100))
        at = self.damage_to(self.y, 3)
        bad = self.y.read_bytes()
        lines = self.repaired(1, self.tree)
        self.assertIn(f"{self.tree}::/g/x: repaired, nothing is lost", lines)
        self.assertTrue(any(line.startswith(f"{self.tree}::/g/y: chunk 3 (1,1) at byte {at} ")
                            for line in lines), lines)
        self.assertIn(f"{self.tree}::/g/y: 1 of 6 chunks lost; it is unchanged, the rest is in "
                      f"{self.tree}/g/y.b2nd.repaired", lines)
        self.assertEqual(lines[-1], f"{self.tree}: 5 members, 2 damaged, 1 lost in part, 0 lost")
        self.assertEqual(self.x.read_bytes(), self.good[self.x])
        self.assertEqual(self.y.read_bytes(), bad)
        self.holds(self.tree / "g" / "y.b2nd.repaired", self.expected(0, (1, 1)))
        status, _, err = run("repair", self.tree)
        self.assertEqual(status, 3)
        self.assertIn("y.b2nd.repaired exists already", err)
        facts, outcomes = self.outcomes(1, self.tree, "-f", "--fill", "-7")
        self.assertEqual(outcomes["/g/y"], "partly")
        member = next(m for m in facts["members"] if m["key"] == "/g/y")
        self.assertEqual((member["lost_chunks"], member["damages"][0]["index"],
                          member["beside"]), (1, [1, 1], "g/y.b2nd.repaired"))
        self.holds(self.tree / "g" / "y.b2nd.repaired", self.expected(-7, (1, 1)))

    def test_a_new_file_takes_its_place_when_nothing_is_lost(self):
        """The index is damaged: chunks are found by the names that the seal lists."""
        where = json.loads(self.text("info", self.x, "--json"))
        stored = json.loads(self.text("info", self.x, "--json", "--chunks"))["chunks"]
        end = max(c["position"] + c["stored_bytes"] for c in stored)
        data = bytearray(self.x.read_bytes())
        index = data.rfind(b"\x9e\xa8b2frame\x00")  # the header's copy, before the index
        self.assertGreater(index, end, where)
        size = int.from_bytes(data[11:15], "big") if data[10] == 0xd2 else 0
        data[index + size + 40:index + size + 48] = b"\xff" * 8
        self.x.write_bytes(data)
        status, out, err = run("verify", self.x)
        self.assertNotEqual(status, 0)
        lines = self.repaired(0, self.tree)
        self.assertIn(f"{self.tree}::/g/x: repaired, nothing is lost", lines)
        self.assertEqual(lines[-1], f"{self.tree}: 5 members, 1 damaged, nothing is lost")
        self.holds(self.x, self.values)
        self.assertEqual(set(self.files()), set(self.good))
        self.assertEqual(self.text("attr", "get", self.x, "unit"), '"K"\n')

    def test_what_is_lost_is_named_and_stays(self):
        vlmeta = self.tree / "g" / "__vlmeta__.b2f"
        self.x.write_bytes(b"no frame at all")
        vlmeta.write_bytes(vlmeta.read_bytes()[:60])
        (self.tree / "notes.txt").write_text("a user's")
        before = self.files()
        lines = self.repaired(1, self.tree)
        self.assertTrue(lines[-1].endswith("6 members, 2 damaged, 0 lost in part, 2 lost"), lines)
        for key in ("/g/x", "/g/__vlmeta__"):
            self.assertTrue(any(line.startswith(f"{self.tree}::{key}: ") and
                                line.endswith(": lost") for line in lines), lines)
        self.assertEqual(self.files(), before)

    def test_attributes_that_are_damaged_are_lost(self):
        """A flipped bit in their header: attributes that cannot be read are reported, and the
        new tree has an empty group."""
        vlmeta = self.tree / "g" / "__vlmeta__.b2f"
        good, out, told = vlmeta.read_bytes(), self.path("o.b2d"), 0
        cases = some([(at, 0x40) for at in range(120)], sanitized=6) + [(49, 1), (58, 2)]
        for at, bit in cases:
            data = bytearray(good)
            data[at] ^= bit
            vlmeta.write_bytes(data)
            code, text, _ = run("verify", self.tree)
            listed = run("attr", "list", f"{self.tree}::/g")[0]
            self.assertEqual(code, 1, (at, bit, text))
            if listed == 0:  # tested by test_archive_damage.py
                continue
            told += 1
            with self.subTest(at=at, bit=bit):
                self.assertEqual(self.outcomes(1, self.tree)[1]["/g/__vlmeta__"], "lost")
                self.assertEqual(vlmeta.read_bytes(), data)
                self.assertEqual(self.outcomes(1, self.tree, "-o", out)[1]["/g/__vlmeta__"],
                                 "lost")
                self.ok("verify", out)
                self.assertEqual(self.text("attr", "list", f"{out}::/g"), "")
            shutil.rmtree(out, ignore_errors=True)
        self.assertGreater(told, len(cases) // 6)

    def test_commits(self):
        """A complete commit is applied; an unreadable journal is renamed."""
        self.y.rename(self.tree / "g" / ".y.b2nd.tmp-1")
        (self.tree / ".caterva-commit").write_bytes(journal("g/y.b2nd", ".y.b2nd.tmp-1"))
        self.assertEqual(self.text("repair", self.tree),
                         f"{self.tree}: an interrupted commit was completed\n"
                         f"{self.tree}: {SOUND}\n")
        self.assertEqual(self.files(), self.good)
        (self.tree / ".caterva-commit").write_bytes(b"torn")
        self.fails(4, "ls", self.tree)
        out = self.path("o.b2d")
        lines = self.repaired(1, self.tree, "-o", out)
        self.assertIn(".caterva-commit", lines[0])
        self.ok("diff", out, self.archive)
        self.assertTrue((self.tree / ".caterva-commit").exists())
        self.repaired(1, self.tree)
        self.assertEqual((self.tree / ".caterva-commit.damaged").read_bytes(), b"torn")
        self.assertFalse((self.tree / ".caterva-commit").exists())
        self.ok("diff", self.tree, self.archive)

    def test_embed(self):
        embed = self.tree / "embed.b2e"
        embed.unlink()
        self.fails(5, "ls", self.tree)
        lines = self.repaired(0, self.tree)
        self.assertEqual(lines[0], f"{self.tree}: embed.b2e did not exist: nothing is lost")
        self.assertEqual(self.files(), self.good)
        embed.write_bytes(b"nothing")
        lines = self.repaired(1, self.tree)
        self.assertTrue(lines[0].startswith(f"{self.tree}: ") and lines[0].endswith(": lost"))
        self.assertEqual((self.tree / "embed.b2e.damaged").read_bytes(), b"nothing")
        self.assertEqual(embed.read_bytes(), self.good[embed])
        (self.tree / "embed.b2e.damaged").unlink()
        self.ok("diff", self.tree, self.archive)

    # ---- Into a new tree -----------------------------------------------------------

    def test_into_a_new_tree(self):
        self.change(self.x, 0, bytes(100))
        self.damage_to(self.y, 0)
        bad = self.files()
        for name in ("o.b2d", "o.b2z"):
            out = self.path(name)
            facts, outcomes = self.outcomes(1, self.tree, "-o", out)
            self.assertEqual(outcomes, {"/": "sound", "/g/__vlmeta__": "sound", "/small": "sound",
                                        "/g/x": "whole", "/g/y": "partly"})
            self.assertEqual((facts["whole_members"], facts["partly_members"],
                              facts["lost_members"], facts["output"]), (1, 1, 0, str(out)))
            self.assertEqual(run("verify", out)[0], 0)
            np.save(self.path("y.npy"), self.expected(0, (0, 0)))
            self.ok("diff", f"{out}::/g/x", self.path("a.npy"))
            self.ok("diff", f"{out}::/g/y", self.path("y.npy"))
            self.assertEqual(self.text("attr", "get", f"{out}::/g", "title"), '"a run"\n')
            self.assertEqual(self.text("attr", "get", f"{out}::/g/x", "unit"), '"K"\n')
            with blosc2.TreeStore(str(out), mode="r") as store:
                np.testing.assert_array_equal(store["/g/x"][...], self.values)
            self.fails(3, "repair", self.tree, "-o", out)
        self.repaired(1, self.tree, "-f", "-o", self.path("o.b2z"))
        self.fails(3, "repair", self.tree, "-f", "-o", self.path("o.b2d"))
        self.fails(3, "repair", self.tree, "-o", self.tree)
        self.assertEqual(self.files(), bad)
        self.assertEqual([n for n in self.names() if n.startswith(".")], [])

    def test_archive(self):
        out = self.path("o.b2z")
        self.assertIn("-o OUT", self.fails(2, "repair", self.archive))
        self.assertEqual(set(self.outcomes(0, self.archive, "-o", out)[1].values()), {"sound"})
        self.assertEqual(out.read_bytes(), self.archive.read_bytes())
        at, _ = self.member("g/x.b2nd")
        self.change(self.archive, at, bytes(100))
        _, outcomes = self.outcomes(0, self.archive, "-f", "-o", out)
        self.assertEqual([k for k, v in outcomes.items() if v != "sound"], ["/g/x"])
        self.ok("diff", out, self.tree)
        at, _ = self.member("g/__vlmeta__.b2f")
        self.change(self.archive, at, bytes(100))
        _, outcomes = self.outcomes(1, self.archive, "-f", "-o", out)
        self.assertEqual(outcomes["/g/__vlmeta__"], "lost")
        self.assertEqual(self.text("attr", "list", f"{out}::/g"), "")
        self.ok("diff", "--no-attributes", out, self.tree)

    def test_a_checksum_alone_is_wrong(self):
        """Without other checksums something is lost, but nothing of a sealed array."""
        data = bytearray(self.archive.read_bytes())
        for name in (b"g/x.b2nd", b"small.b2nd"):
            data[data.rfind(name) - 30] ^= 1  # in the directory's record
        self.archive.write_bytes(data)
        _, outcomes = self.outcomes(0, self.archive, "-o", self.path("o.b2d"))
        self.assertEqual((outcomes["/g/x"], outcomes["/small"]), ("whole", "whole"))
        self.ok("diff", self.path("o.b2d"), self.tree)

    def test_directory_and_headers_that_contradict_each_other(self):
        """Directory and headers differ in how a member is stored, its sizes, its checksum or
        the lengths in its header: all its bytes can be read, and none is lost. (Names:
        test_archive_damage.py.)"""
        self.assertEqual(len(self.good), 5)
        whole, out, seen = self.archive.read_bytes(), self.path("o.b2d"), 0
        for mark, size, fields, name in ((b"PK\1\2", 46, (8, 10, 16, 20, 27), 28),
                                         (b"PK\3\4", 30, (0, 6, 8, 14, 18, 25, 26, 28), 26)):
            at = whole.find(mark)
            while at >= 0:
                for field in fields:
                    data = bytearray(whole)
                    data[at + field] ^= 8 if field == size - 36 else 1
                    self.archive.write_bytes(data)
                    with self.subTest(mark=mark, at=at, field=field):
                        text = self.text("repair", self.archive, "-o", out)
                        self.assertTrue("contradicted each other" in text or
                                        "bytes packed, but " in text, text)
                        self.ok("diff", out, self.tree)
                        self.ok("verify", out)
                        seen += 1
                    shutil.rmtree(out, ignore_errors=True)
                at = whole.find(mark, at + 1)
        self.assertEqual(seen, 13 * len(self.good))

    def test_names_that_collide(self):
        """A flipped bit gives one array the name of another: the header has the right one."""
        data = bytearray(self.archive.read_bytes())
        for name, other in ((b"g/x.b2nd", b"g/y.b2nd"), (b"g/y.b2nd", b"g/x.b2nd")):
            bad = bytearray(data)
            at = data.rfind(name)
            bad[at:at + len(name)] = other
            self.archive.write_bytes(bad)
            out = self.path(other.decode()[2:] + ".b2d")
            lines = self.repaired(1, self.archive, "-o", out)
            self.assertIn(f"different names: {name.decode()}, which was used, and "
                          f"{other.decode()}: lost in part", lines[0])
            self.ok("diff", out, self.tree)

    def test_a_journal_in_an_archive_is_nobodys(self):
        with zipfile.ZipFile(self.archive, "a") as archive:
            archive.writestr(".caterva-commit", b"torn")
        for command, out in (("unpack", self.path("u.b2d")), ("repair", self.path("r.b2d"))):
            self.ok(command, self.archive, *["-o"] * (command == "repair"), out)
            self.assertFalse((out / ".caterva-commit").exists())
            self.ok("diff", out, self.tree)

    def test_archives_that_were_cut(self):
        """Each complete member is found, wherever the archive was cut."""
        whole = self.archive.read_bytes()
        with zipfile.ZipFile(self.archive) as archive:
            ends = {i.filename: i.header_offset + 30 + len(i.filename) + i.file_size
                    for i in archive.infolist()}
        start = min(ends.values())
        for end in [len(whole) - 1, len(whole) - 30, max(ends.values()),
                    *range(start, len(whole) - 100, 700)]:
            self.archive.write_bytes(whole[:end])
            out = self.path(f"o{end}.b2d")
            status, text, err = run("repair", self.archive, "-o", out)
            self.assertIn(status, (0, 1), (end, err))
            kept = [name for name, stop in ends.items() if stop <= end]
            self.assertTrue(text.decode().splitlines()[-1].endswith(f"the repaired tree is {out}"))
            for name in kept:
                self.assertEqual((out / name).read_bytes(), (self.tree / name).read_bytes(), name)
            self.assertEqual(status == 0, set(ends) == set(kept), end)
            self.ok("ls", "-r", out)
        self.archive.write_bytes(whole[:20])
        self.fails(4, "repair", self.archive, "-o", self.path("none.b2d"))
        self.archive.write_bytes(b"")
        self.fails(4, "repair", self.archive, "-o", self.path("none.b2d"))
        self.assertFalse(self.path("none.b2d").exists())


if __name__ == "__main__":
    main()
