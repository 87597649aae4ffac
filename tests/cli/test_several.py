"""info and verify of several files: a failure of one does not stop the others, and the worst
status is returned."""

import json

import numpy as np

from tool_cli import Case, main, run


class Several(Case):
    def setUp(self):
        super().setUp()
        self.good = self.make("good.b2nd", np.arange(600, dtype="<i4").reshape(20, 30))
        self.other = self.make("other name.b2nd", np.ones(5, "<f8"))
        self.bad = self.make("bad.b2nd", np.random.default_rng(1).integers(
            0, 50, (100, 100)).astype("<i4"), chunks=(50, 100), blocks=(10, 100))
        self.missing = self.path("none.b2nd")
        data = bytearray(self.bad.read_bytes())
        where = json.loads(self.text("info", self.bad, "--json", "--chunks"))["chunks"][1]
        at = where["position"] + where["stored_bytes"] // 2
        data[at:at + 40] = bytes(b ^ 0xff for b in data[at:at + 40])
        self.bad.write_bytes(data)

    def make(self, name, values, **options):
        npy, path = self.path("x.npy"), self.path(name)
        np.save(npy, values)
        flags = [x for k, v in options.items() for x in (f"--{k}", ",".join(map(str, v)))]
        self.ok("convert", npy, path, *flags)
        return path

    def lines(self, expected, *arguments):
        status, out, err = run(*arguments)
        self.assertEqual(status, expected, err)
        return out.decode().splitlines(), err.splitlines()

    def test_info(self):
        one, two = self.text("info", self.good), self.text("info", self.other)
        self.assertEqual(self.text("info", self.good, self.other), one + "\n" + two)
        out, err = self.lines(3, "info", self.good, self.missing, self.other)
        self.assertEqual("\n".join(out) + "\n", one + "\n" + two)
        self.assertEqual(err, [f"caterva: {self.missing} does not exist"])

    def test_info_short(self):
        out, err = self.lines(3, "info", "--short", self.good, self.missing, self.other)
        self.assertEqual([line.split(None, 1)[0] for line in out], ["20,30", "-", "5"])
        at = out[0].index(str(self.folder))
        names = [str(self.good), str(self.missing), str(self.other)]
        self.assertEqual([line[at:] for line in out], names)
        self.assertRegex(out[0], r"^20,30 +int32 +\S+ [KM]?i?B +[\d.]+  zstd 2, shuffle +sealed ")
        self.assertEqual(out[1].split()[:6], ["-"] * 5 + ["unread"])
        self.assertEqual(len(err), 1)
        self.fails(2, "info", "--short", "--chunks", self.good)

    def test_json(self):
        out, _ = self.lines(3, "info", "--json", self.good, self.missing, self.other)
        self.assertEqual([json.loads(line)["file"] for line in out],
                         [str(self.good), str(self.other)])
        out, _ = self.lines(3, "verify", "--json", self.bad, self.missing, self.good)
        self.assertEqual([json.loads(line)["ok"] for line in out], [False, True])

    def test_verify(self):
        out, err = self.lines(1, "verify", self.bad, self.good, self.other)
        self.assertEqual(err, [])
        self.assertEqual(out[-2:], [self.text("verify", self.good)[:-1],
                                    self.text("verify", self.other)[:-1]])
        self.assertIn("chunk 1", out[0])

    def test_verify_short(self):
        out, err = self.lines(3, "verify", self.good, self.missing, self.bad, "--short")
        words = [line.split() for line in out]
        self.assertEqual(words[0], ["ok", "1", "chunk", "sealed", str(self.good)])
        self.assertEqual(words[1], ["unread", "-", "-", str(self.missing)])
        self.assertEqual(words[2], ["damaged", "1", "of", "2", "chunks", "sealed", str(self.bad)])
        at = out[0].index(str(self.good))
        self.assertEqual([line[at:] for line in out],
                         [str(self.good), str(self.missing), str(self.bad)])
        self.assertEqual(len(err), 1)

    def test_the_worst_counts(self):
        self.good.with_name("short.b2nd").write_bytes(b"no frame")
        short = self.path("short.b2nd")
        for files, worst in (([self.good, self.bad], 1), ([self.bad, self.missing], 3),
                             ([self.missing, short, self.bad], 4), ([self.good, self.other], 0)):
            self.lines(worst, "verify", *files)
            self.lines(worst, "verify", *files[::-1], "--short")

    def test_many_and_none(self):
        out, _ = self.lines(0, "info", "--short", *[self.good] * 300)
        self.assertEqual(len(set(out)), 1)
        self.assertEqual(len(out), 300)
        self.fails(2, "info")
        self.fails(2, "verify")


if __name__ == "__main__":
    main()
