"""Publishing Zarr arrays and groups: each file becomes an object, the metadata of the root last."""

import json
import subprocess
import unittest

import numpy as np

from test_publish import ACCESS, CLI, SECRET, Case, Reply


def files(folder):
    return {"/" + str(p.relative_to(folder)): p.read_bytes()
            for p in folder.rglob("*") if p.is_file()}


class Zarr(Case):
    def setUp(self):
        self.array, self.tree = self.folder / "a.zarr", self.folder / "t.zarr"
        source = self.folder / "t.b2d"
        if self.array.exists():
            return
        for words in (["convert", self.small, self.array], ["convert", self.small, f"{source}::/x"],
                      ["convert", self.tiny[0], f"{source}::/g/y z"],
                      ["attr", "set", f"{source}::/g", "title", '"a group"'],
                      ["pack", source, self.tree, "--zarr"]):
            subprocess.run([CLI, *map(str, words)], check=True)

    def sent(self, server):
        return [r.path for r in server.requests if r.method == "PUT"]

    def test_objects(self):
        for path in (self.array, self.tree):
            for slash in ("", "/"):
                server = self.serve()
                result = self.goes(server, path, server.url("/bucket/it.zarr" + slash))
                expected = {"/bucket/it.zarr" + n.replace(" ", "%20"): b
                            for n, b in files(path).items()}
                self.assertEqual(server.objects, expected)
                self.assertEqual(result["bytes"], sum(map(len, expected.values())))
                sent = self.sent(server)
                self.assertEqual(len(sent), len(expected))
                self.assertEqual(sent[-1], "/bucket/it.zarr/zarr.json")
                first_meta = next(i for i, p in enumerate(sent) if p.endswith("zarr.json"))
                self.assertTrue(all(p.endswith("zarr.json") for p in sent[first_meta:]), sent)

    def test_reads_back(self):
        server = self.serve()
        self.goes(server, self.tree, server.url("/t.zarr"))
        self.goes(server, self.array, server.url("/a.zarr"))
        subprocess.run([CLI, "convert", server.url("/a.zarr"), self.folder / "back.npy", "-f"],
                       check=True)
        subprocess.run([CLI, "convert", self.small, self.folder / "was.npy", "-f"], check=True)
        np.testing.assert_array_equal(np.load(self.folder / "back.npy"),
                                      np.load(self.folder / "was.npy"))
        self.assertEqual(json.loads(server.objects["/t.zarr/g/zarr.json"])["attributes"],
                         {"title": "a group"})

    def test_the_same_again(self):
        server = self.serve()
        first = self.goes(server, self.tree, server.url("/t.zarr"))
        server.forget()
        again = self.goes(server, self.tree, server.url("/t.zarr"))
        self.assertEqual((first["was_there"], again["was_there"]), (False, True))
        self.assertEqual(self.sent(server), [])

    def test_what_is_there_stays(self):
        server = self.serve()
        self.goes(server, self.array, server.url("/a.zarr"))
        before = dict(server.objects)
        other = self.folder / "other.zarr"
        subprocess.run([CLI, "convert", self.other, other, "-f"], check=True)
        self.refused("an object exists there already", server, other, server.url("/a.zarr"))
        self.assertEqual(server.objects, before)
        self.goes(server, other, server.url("/a.zarr"), "--force")
        self.assertEqual(server.objects, {"/a.zarr" + n: b for n, b in files(other).items()})

    def test_a_change_of_one_byte_is_seen(self):
        """Objects with the same size, and the same index, are compared with the seal."""
        server = self.serve()
        one, two = self.folder / "one.zarr", self.folder / "two.zarr"
        for path, value in ((one, 3), (two, 4)):
            items = np.zeros((8, 8), "i4")
            items[1, 1] = value
            np.save(self.folder / "v.npy", items)
            subprocess.run([CLI, "convert", self.folder / "v.npy", path, "-f", "--blocks", "4,8"],
                           check=True)
        shards = [(p / "c" / "0" / "0").read_bytes() for p in (one, two)]
        self.assertEqual(len(shards[0]), len(shards[1]))
        self.assertEqual(shards[0][-36:], shards[1][-36:])
        self.goes(server, one, server.url("/v.zarr"))
        self.refused("an object exists there already", server, two, server.url("/v.zarr"))

    def test_damage_is_not_sent(self):
        for path, name in ((self.array, "zarr.json"), (self.tree, "g/y z/c/0"),
                           (self.tree, "x/zarr.json")):
            file = path / name
            data = file.read_bytes()
            at = len(data) // 2
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            server = self.serve()
            done = self.publish(server, path, server.url("/a.zarr"))
            file.write_bytes(data)
            self.assertEqual(done.returncode, 4, (name, done.stderr))
            self.assertEqual(server.requests, [])

    def test_a_failure_has_no_root(self):
        server = self.serve()
        n = len(files(self.tree))
        for fails in range(n):
            server.objects.clear()
            server.forget()
            puts = []

            def respond(request, puts=puts, fails=fails):
                if request.method != "PUT":
                    return None
                puts.append(request.path)
                return Reply(status=403) if len(puts) == fails + 1 else None

            server.script = respond
            done = self.publish(server, self.tree, server.url("/t.zarr"))
            self.assertEqual(done.returncode, 3)
            self.assertNotIn("/t.zarr/zarr.json", server.objects)
            self.assertEqual(len(server.objects), fails)
            server.script = None
            self.goes(server, self.tree, server.url("/t.zarr"))
            self.assertEqual(len(server.objects), n)

    def test_copies(self):
        """--zarr publishes what repack and pack would make, and leaves nothing beside the source."""
        source, alone = self.folder / "t.b2d", self.folder / "alone"
        alone.mkdir(exist_ok=True)
        packed = alone / "t.b2z"
        subprocess.run([CLI, "pack", source, packed, "-f"], check=True)
        (alone / "a.b2nd").write_bytes(self.small.read_bytes())
        for path, like in ((alone / "a.b2nd", self.array), (source, self.tree),
                           (packed, self.tree), (self.array, self.array)):
            server = self.serve()
            before = sorted(p.name for p in path.parent.iterdir())
            self.goes(server, path, server.url("/it.zarr"), "--zarr")
            self.assertEqual(server.objects, {"/it.zarr" + n.replace(" ", "%20"): b
                                              for n, b in files(like).items()})
            self.assertEqual(sorted(p.name for p in path.parent.iterdir()), before)
        server = self.serve()
        self.goes(server, f"{source}::/x", server.url("/x.zarr"), "--zarr")
        self.assertEqual({n[len("/x.zarr"):]: b for n, b in server.objects.items()},
                         files(self.tree / "x"))
        server.script = lambda request: Reply(status=403) if request.method == "PUT" else None
        before = sorted(p.name for p in alone.iterdir())
        self.refused("403", server, packed, server.url("/y.zarr"), "--zarr")
        self.assertEqual(sorted(p.name for p in alone.iterdir()), before)

    def test_s3(self):
        server = self.serve()
        self.goes(server, self.tree, "s3://bucket/t.zarr", AWS_ACCESS_KEY_ID=ACCESS,
                  AWS_SECRET_ACCESS_KEY=SECRET)
        self.assertEqual(len(server.objects), len(files(self.tree)))

    def test_refused(self):
        server = self.serve()
        for words in (["--if-match", '"x"'], ["--read-url", server.url("/b")]):
            done = self.publish(server, self.array, server.url("/a.zarr"), *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("are for one object", done.stderr)
        self.assertEqual(server.requests, [])


if __name__ == "__main__":
    unittest.main()
