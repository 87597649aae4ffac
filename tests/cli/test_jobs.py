"""jobs and put --part: one array written by several runs at once, merged by another."""

import json
import os
import subprocess

from tool_cli import CLI, Case, environment, main, run


class Jobs(Case):
    def setUp(self):
        super().setUp()
        self.array = self.path("a.b2nd")
        self.ok("create", self.array, "--shape", "10,10", "--chunks", "4,4", "--blocks", "2,4",
                "--dtype", "<i4", "--fill", "7")

    def begin(self, *options):
        return self.text("jobs", "begin", self.array, *options).strip()

    def put(self, job, where, value, token):
        self.ok("put", self.array, where, "--fill", value, "--part", job, "-o",
                self.path(token))

    def items(self, where):
        return [int(word) for word in self.text("get", self.array, where).split()]

    def test_parts(self):
        job = self.begin()
        self.assertRegex(job, r"\A[0-9a-f]{32}\Z")
        writers = [subprocess.Popen([CLI, "put", self.array, f"{i}:{i + 3},1:9", "--fill",
                                     str(i), "--part", job[:6], "-o", self.path(f"t{i}")],
                                    env=environment()) for i in (0, 3, 6)]
        self.assertEqual([w.wait() for w in writers], [0, 0, 0])
        self.assertEqual(self.items("0,:"), [7] * 10)  # until they are merged
        found = json.loads(self.text("jobs", "list", self.array, "--json"))["jobs"]
        self.assertEqual([(j["id"], j["parts"], j["live"]) for j in found], [(job, 3, False)])
        self.assertIn(job, self.text("info", self.array))
        self.assertEqual(json.loads(self.text("info", "--json", self.array))["jobs"], [job])
        self.ok("jobs", "merge", self.array, *(self.path(f"t{i}") for i in (0, 3, 6)))
        for i in range(10):
            self.assertEqual(self.items(f"{i},:"),
                             [7] + [i // 3 * 3 if i < 9 else 7] * 8 + [7])
        self.assertEqual(self.text("jobs", "list", self.array), "")
        self.assertEqual(self.names(), ["a.b2nd", "t0", "t3", "t6"])
        self.ok("verify", self.array)

    def test_overlap(self):
        job = self.begin()
        self.put(job, "0:5,0:5", 1, "t1")
        self.put(job, "4:8,4:8", 2, "t2")
        tokens = self.path("t1"), self.path("t2")
        err = self.fails(3, "jobs", "merge", self.array, *tokens)
        self.assertIn("wrote the same items of chunk 4", err)
        self.assertEqual(self.items("4,4"), [7])
        self.ok("jobs", "merge", self.array, "--last", *tokens)
        self.assertEqual(self.items("4,3:6"), [1, 2, 2])

    def test_growth(self):
        job = self.begin("--shape", "13,10")
        self.put(job, "10:13,:", 3, "t")
        self.assertEqual(json.loads(self.text("info", "--json", self.array))["shape"], [10, 10])
        self.ok("jobs", "merge", self.array, self.path("t"))
        self.assertEqual(self.items("9:11,0"), [7, 3])

    def test_discard(self):
        job = self.begin()
        self.put(job, "0:5,0:5", 1, "t")
        self.fails(1, "jobs", "delete", self.array, "xyz")
        self.ok("jobs", "delete", self.array, job)
        self.assertFalse(os.path.exists(f"{self.array}.parts"))
        self.fails(3, "jobs", "merge", self.array, self.path("t"))
        self.fails(1, "put", self.array, "0,0", "--fill", "1", "--part", job)

    def test_parts_that_stay(self):
        """As with parts of another user: the merge succeeds and warns of them."""
        job, other = self.begin(), self.begin()
        self.put(job, "0:5,0:5", 1, "t")
        listed = json.loads(self.text("jobs", "list", self.array, "--json"))["jobs"]
        folder = next(j["folder"] for j in listed if j["id"] == job)
        os.makedirs(f"{folder}/others/inner")
        status, out, err = run("jobs", "merge", self.array, self.path("t"))
        self.assertEqual((status, out), (0, b""))
        self.assertRegex(err, rf"\Acaterva: warning: [^\n]+ job {job} is merged, but 1 of its "
                              r"parts, [^\n]+, could not be deleted; [^\n]+\n\Z")
        self.assertEqual(self.items("4:6,0"), [1, 7])
        self.put(other, "8:10,0:5", 2, "u")
        self.ok("jobs", "merge", self.array, self.path("u"))  # without a second warning
        self.assertIn(f"{job}  ", self.text("jobs", "list", self.array))
        os.rmdir(f"{os.path.dirname(folder)}/.gone-{job}/others/inner")
        self.ok("jobs", "delete", self.array, job)
        self.assertFalse(os.path.exists(f"{self.array}.parts"))

    def test_what_does_not_fit(self):
        job, other = self.begin(), self.begin()
        self.put(job, "0:5,0:5", 1, "t")
        self.put(other, "5:9,0:5", 1, "u")
        message = self.fails(3, "jobs", "merge", self.array, self.path("t"), self.path("u"))
        self.assertIn("another job", message)
        self.ok("put", self.array, "0,0", "--fill", "9")
        message = self.fails(3, "jobs", "merge", self.array, self.path("t"))
        self.assertIn("changed since the job began", message)
        self.ok("create", self.array, "--shape", "10,10", "--dtype", "<f4", "--force")
        self.fails(3, "jobs", "merge", self.array, self.path("t"))

    def test_arrays_of_trees(self):
        tree, archive = self.path("t.b2d"), self.path("t.b2z")
        self.array = f"{tree}::/g/x"
        self.ok("create", self.array, "--shape", "10,10", "--dtype", "<i4", "--fill", "7")
        job = self.begin()
        self.assertRegex(job, r"\A[0-9a-f]{32}\Z")
        self.assertIn(job, self.text("jobs", "list", self.array))
        self.assertIn(job, self.text("jobs", "list", f"{tree}/g/x.b2nd"))
        self.assertIn(job, self.text("info", self.array))
        self.assertEqual(self.text("ls", "-r", tree).split(), ["g/", "g/x"])
        self.put(job, "0:2,:", 3, "t")
        self.ok("pack", tree, archive)
        self.ok("jobs", "merge", self.array, self.path("t"))
        self.assertEqual(self.items("1:3,0"), [3, 7])
        self.ok("jobs", "delete", self.array, self.begin())
        self.assertEqual(os.listdir(f"{tree}/g"), ["x.b2nd"])
        self.array = f"{archive}::/g/x"
        self.assertEqual(self.items("1:3,0"), [7, 7])
        before = self.names()
        self.assertIn("archive", self.fails(2, "jobs", "begin", self.array))
        self.assertEqual(self.text("jobs", "list", self.array), "")
        self.assertEqual(self.names(), before)

    def test_mistakes(self):
        self.fails(2, "jobs", "what", self.array)
        self.fails(2, "jobs", "merge", self.array)
        self.fails(2, "put", self.array, "0,0", "--fill", "1", "-o", self.path("t"))
        self.fails(2, "jobs", "begin", self.array, "--shape", "10")
        self.fails(2, "jobs", "begin", self.array, "--shape", "9,10")
        self.path("t").write_bytes(b"no token")
        self.fails(4, "jobs", "merge", self.array, self.path("t"))


if __name__ == "__main__":
    main()
