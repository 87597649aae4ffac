"""On file systems without POSIX renames, such as FAT and shares, a file is replaced although its writer has
it open. wine is such a system for a copy of the library that does not recognise it."""

import shutil
from pathlib import Path
from unittest import mock

import numpy as np

import tool_cli
from tool_cli import CLI, WINDOWS, Case, main


class FileSystems(Case):
    def setUp(self):
        super().setUp()
        if not WINDOWS:
            self.skipTest("only Windows has such file systems")
        programs, copy = Path(CLI).parent, self.path("bin")
        shutil.copytree(programs, copy)
        library = (copy / "libcaterva.dll").read_bytes()
        self.assertIn(b"wine_get_version\0", library)
        (copy / "libcaterva.dll").write_bytes(
            library.replace(b"wine_get_version\0", b"wine_get_versioX\0"))
        script = copy / "caterva"
        script.write_text(script.read_text().replace(str(programs), str(copy)))
        patch = mock.patch.object(tool_cli, "CLI", str(script))
        patch.start()
        self.addCleanup(patch.stop)
        self.items = np.arange(600).reshape(60, 10)
        np.save(self.path("a.npy"), self.items)

    def items_of(self, path):
        self.ok("get", path, "-o", self.path("got.npy"), "-f")
        return np.load(self.path("got.npy"))

    def test_arrays(self):
        for name, layout in (("a.b2nd", []), ("s.b2nd", ["--sparse"])):
            path = self.path(name)
            for force in ([], ["-f"]):
                self.ok("convert", self.path("a.npy"), path, "--chunks", "7,10", *layout, *force)
            self.ok("put", path, "0:5", "--fill", "3")
            self.ok("put", path, "2:9", "--fill", "4")
            self.text("compact", path)
            expected = self.items.copy()
            expected[:5], expected[2:9] = 3, 4
            np.testing.assert_array_equal(self.items_of(path), expected)
            self.text("verify", path)

    def test_trees(self):
        tree, packed = self.path("t.b2d"), self.path("t.b2z")
        for n in (3, 4):
            self.ok("create", "-f", f"{tree}::/x", "--shape", n, "--dtype", "<i8", "--fill", n)
            self.ok("attr", "set", f"{tree}::/", "n", n)
            self.ok("pack", "-f", tree, packed)
        for path in (tree, packed):
            self.assertEqual(self.items_of(f"{path}::/x").tolist(), [4] * 4)
            self.assertEqual(self.text("attr", "get", f"{path}::/", "n"), "4\n")


if __name__ == "__main__":
    main()
