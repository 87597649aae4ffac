"""Names of files, keys, metalayers and fields that contain terminal control bytes or are not
text. None of these bytes reaches the terminal, and names that other programs could not read are
refused."""

import json
import os
import subprocess

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main

EVIL = b"a\x1b[31m\xff\xc2\x9b2J\x07"
SHOWN = r"a\x1b[31m\xff\xc2\x9b2J\x07"


class Names(Case):
    def run_bytes(self, *arguments):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in arguments]
        done = subprocess.run([CLI.encode(), *words], capture_output=True, env=environment(),
                              cwd=self.folder)
        for stream in (done.stdout, done.stderr):
            text = stream.decode()  # all of it is valid
            bad = [c for c in text if ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0]
            self.assertEqual(bad, [], arguments)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_file_names(self):
        name = EVIL + b".b2nd"
        path = os.fsencode(self.folder) + b"/" + name
        blosc2.asarray(np.arange(12.).reshape(3, 4), urlpath=str(self.path("x.b2nd")))
        os.rename(self.path("x.b2nd"), path)
        for command, status in ((["info", name], 0), (["verify", name], 0), (["seal", name], 0),
                                (["stats", name], 0), (["compact", name], 0),
                                (["info", "--short", name], 0), (["verify", "--short", name], 0),
                                (["bench", name], 0), (["info", name, "--json"], 0),
                                (["diff", name, b"no" + name], 3), (["repair", name], 0),
                                (["tune", name, "--read", "0", "--time", "1ms"], 0),
                                (["get", b"no" + name], 3), (["get", name, b"\x1b[2J"], 2),
                                (["attr", "get", name, EVIL], 1), (["view", name, "0,0,0"], 2),
                                (["convert", name, EVIL], 2), ([EVIL], 2), (["info", b"--" + EVIL], 2),
                                (["create", EVIL + b".npy", "--shape", "2", "--dtype", EVIL], 2),
                                (["get", name, b"@" + EVIL], 3),
                                (["get", name, "--astype", EVIL], 2),
                                (["convert", name, "o.b2nd", "--codec", EVIL], 2),
                                (["completion", EVIL], 2)):
            got, out, err = self.run_bytes(*command)
            self.assertEqual(got, status, (command, err))
            self.assertTrue(SHOWN in out + err or command[-1] == b"\x1b[2J" or command[0] == "view"
                            or "--json" in command, (command, out, err))

    def damage(self, name):
        path = self.path("v.b2nd")
        blosc2.asarray(np.random.default_rng(0).random(9000), urlpath=str(path), mode="w")
        self.ok("seal", path)
        data = bytearray(path.read_bytes())
        data[30000] ^= 1
        with open(os.fsencode(self.folder) + b"/" + name, "wb") as file:
            file.write(data)

    def test_damage(self):
        self.damage(EVIL)
        for command, status in ((["verify", EVIL], 1), (["get", EVIL], 4),
                                (["get", EVIL, "--skip-damaged", "-o", "o.npy"], 1),
                                (["repair", EVIL], 1)):
            got, out, err = self.run_bytes(*command)
            self.assertEqual(got, status, (command, err))
            self.assertIn(SHOWN, out + err)

    def test_fields_and_keys_of_others(self):
        path = self.path("f.b2nd")
        values = np.zeros(3, [("\x1b[31m", "<i4"), ("b\x9b", "S4")])
        values["b\x9b"] = b"\x1b[2J"
        array = blosc2.asarray(values, urlpath=str(path), meta={"m\x1bm": b"1"})
        array.schunk.vlmeta["k\x1b\x9b"] = "v\x1b\x9b"
        np.save(self.path("f.npy"), values)
        for command in (["info", path], ["info", path, "--json"], ["get", path], ["stats", path],
                        ["attr", "list", path], ["attr", "list", path, "--json"],
                        ["diff", path, "f.npy"], ["append", path, "f.npy"],
                        ["view", path], ["put", path, "0", "--fill", "1"]):
            self.run_bytes(*command)
        facts = json.loads(self.text("info", path, "--json"))
        self.assertEqual(facts["attributes"], {"k\x1b\x9b": "v\x1b\x9b"})

    def test_a_key_that_is_no_text_is_refused(self):
        path = self.path("a.b2nd")
        array = blosc2.asarray(np.arange(3), urlpath=str(path))
        array.schunk.vlmeta["good"] = 1
        before = path.read_bytes()
        got, _, err = self.run_bytes("attr", "set", path, b"k\xff", "1")
        self.assertEqual(got, 2)
        self.assertIn(r"""the attribute name "k\xff" is not UTF-8""", err)
        self.assertEqual(path.read_bytes(), before)
        self.ok("attr", "set", path, "\u00e9", "1")
        array = blosc2.open(str(path))
        self.assertEqual({k: array.schunk.vlmeta[k] for k in array.schunk.vlmeta},
                         {"good": 1, "\u00e9": 1})
        got, _, err = self.run_bytes("create", "b.b2nd", "--shape", "2", "--dtype",
                                     b"[('\xff', '<i4')]")
        self.assertEqual((got, self.names()), (2, ["a.b2nd"]))


if __name__ == "__main__":
    main()
