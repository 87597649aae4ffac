"""Zarr arrays of this library behind URLs, on the scripted server."""

import subprocess
import unittest

import numpy as np

from tool_remote_case import CLI, Case


class Zarr(Case):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        subprocess.run([CLI, "repack", self.folder / "a.b2nd", self.folder / "a.zarr", "--zarr",
                        "-f"], check=True)
        for path in (self.folder / "a.zarr").rglob("*"):
            if path.is_file():
                self.server.objects["/" + str(path.relative_to(self.folder))] = path.read_bytes()
        self.url = self.server.url("/a.zarr")

    def run_cli(self, *arguments):
        done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_reads_as_any_array(self):
        for url in (self.url, self.url + "/"):
            self.server.requests.clear()
            status, text = self.run_cli("info", url)
            self.assertEqual(status, 0, text)
            self.assertIn("40 x 60 x 50", text)
            self.assertLessEqual(len(self.server.requests), 4)
            status, text = self.run_cli("get", url, "3:9,4", "-o", self.folder / "part.npy", "-f")
            self.assertEqual(status, 0, text)
            np.testing.assert_array_equal(np.load(self.folder / "part.npy"), self.items[3:9, 4])
        self.assertEqual(self.run_cli("verify", self.url)[0], 0)

    def test_damage(self):
        path = next(p for p in self.server.objects if p.startswith("/a.zarr/c/"))
        data = bytearray(self.server.objects[path])
        data[-30] ^= 4
        self.server.objects[path] = bytes(data)
        status, text = self.run_cli("verify", self.url)
        self.assertNotEqual(status, 0)
        self.assertIn(f"at byte {len(data) - 30}", text)

    def test_what_is_no_array_of_zarr(self):
        for meta in (b'{"zarr_format": 3, "node_type": "group"}', b"[1]", b"{"):
            self.server.objects["/a.zarr/zarr.json"] = meta
            status, text = self.run_cli("info", self.url)
            self.assertNotEqual(status, 0)
            self.assertIn("is no Zarr array of version 3", text)
        del self.server.objects["/a.zarr/zarr.json"]
        status, text = self.run_cli("info", self.url)
        self.assertNotEqual(status, 0)


if __name__ == "__main__":
    unittest.main()
