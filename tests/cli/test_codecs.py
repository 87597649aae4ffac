"""Codecs and filters on the command line: unknown names, missing numbers and invalid
combinations are refused before a file is created; delta, which C-Blosc2 reads wrongly, is used
with a warning."""

import numpy as np

from tool_cli import Case, main, run

REFUSED = [
    ("--codec foo", "unknown 'foo'; choose from blosclz, lz4, lz4hc, zlib, zstd, ndlz"),
    ("--filters shuffle,foo:3", "unknown 'foo'; choose from none, shuffle, bitshuffle"),
    ("--codec ndlz", "ndlz needs a number, the edge of its cells: 4 or 8, not 0"),
    ("--codec ndlz:4", "ndlz takes items of 1 byte, these have 4"),
    ("--codec zfp-rate", "zfp-rate needs a number, 1 to 100 percent of the size, not 0"),
    ("--codec zfp-rate:101", "1 to 100 percent of the size, not 101"),
    ("--codec zfp-accuracy", "zfp-accuracy needs a number, the power of ten that is the tolerance: "
     "zfp-accuracy:-3 for 0.001"),
    ("--codec zfp-precision", "zfp-precision needs a number, the bits to keep of each value: "
     "zfp-precision:16"),
    ("--codec zfp-accuracy:-3 --blocks 3,20", "block shape[0] is 3"),
    ("--codec zfp-accuracy:-3 --filters shuffle", "filter shuffle produces other bytes"),
    ("--filters trunc-prec", "1 to 23 bits to keep or -1 to -22 to clear, not 0"),
    ("--filters trunc-prec:24", "1 to 23 bits to keep or -1 to -22 to clear, not 24"),
    ("--filters shuffle,trunc-prec:10", "trunc-prec, number 2, cannot follow shuffle"),
    ("--filters int-trunc:8", "takes integers in this machine's byte order"),
    ("--filters ndmean", "filter ndmean needs a number, the edge of its cells"),
    ("--filters ndcell", "filter ndcell needs a number, the edge of its cells"),
    ("--filters ndcell:200 --blocks 20,20", "needs blocks of at least 200 items to the power"),
    ("--filters ndcell:4,ndmean:4", "ndmean, number 2, cannot follow ndcell"),
    ("--filters shuffle,bitshuffle,delta", "delta works alone or with one other"),
    ("--filters trunc-prec:9,delta", "delta, number 2, cannot follow trunc-prec"),
    ("--filters bytedelta-old", "bytedelta-old is only for reading"),
]


class Codecs(Case):
    def check_refused(self, command, words, sentence):
        path = self.path("new.b2nd")
        status, out, err = run(*command, path, *words)
        self.assertEqual((status, out), (2, b""), (words, err))
        self.assertIn(sentence, err, words)
        self.assertFalse(path.exists(), words)

    def test_refused_before_a_file_is_made(self):
        source = self.path("source.npy")
        np.save(source, np.ones((40, 40), "<f4"))
        for text, sentence in REFUSED:
            words = text.split()
            self.check_refused(("create",), words + ["--shape", "40,40", "--dtype", "<f4"],
                               sentence)
            self.check_refused(("convert", source), words, sentence)

    def test_zero_is_a_tolerance(self):
        self.ok("create", self.path("zero.b2nd"), "--shape", "40,40", "--dtype", "<f4", "--codec",
                "zfp-accuracy:0")

    def test_refused_for_the_dtype(self):
        for dtype, words in ((">f4", "--filters trunc-prec:10"), ("<i4", "--codec zfp-rate:50"),
                             ("<i8", "--filters ndmean:4"), ("<c8", "--filters trunc-prec:9"),
                             (">i4", "--filters int-trunc:8"), ("<f8", "--codec ndlz:4")):
            self.check_refused(("create",), words.split() + ["--shape", "40,40", "--dtype",
                                                              dtype], "takes")

    def test_an_old_file_stays_when_the_new_one_is_refused(self):
        path = self.path("old.b2nd")
        self.ok("create", path, "--shape", "40,40", "--dtype", "<f4")
        before = path.read_bytes()
        self.fails(2, "create", path, "-f", "--shape", "40,40", "--dtype", "<f4", "--codec",
                   "ndlz")
        self.fails(2, "repack", path, path, "-f", "--filters", "shuffle,int-trunc:3")
        self.assertEqual(path.read_bytes(), before)

    def test_delta_is_done_with_a_warning(self):
        source, path = self.path("a.npy"), self.path("a.b2nd")
        np.save(source, np.arange(1000))
        for command in (("convert", source, path), ("repack", path, self.path("b.b2nd")),
                        ("create", self.path("c.b2nd"), "--shape", "9", "--dtype", "<i4")):
            status, _, err = run(*command, "--filters", "delta,shuffle")
            self.assertEqual(status, 0, err)
            self.assertRegex(err, r"\Acaterva: warning: [^\n]*delta[^\n]*C-Blosc2[^\n]*\n\Z")
        self.assertIn("remark   filter delta: C-Blosc2 reads", self.text("info", path))


if __name__ == "__main__":
    main()
