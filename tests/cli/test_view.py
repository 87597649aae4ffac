"""view: decoded PNG files, characters, and colours on a pseudo-terminal."""

import os
import pty
import re
import struct
import subprocess
import zlib

import blosc2
import numpy as np

from tool_cli import CLI, Case, environment, main, run


def read_png(data):
    """Decodes a PNG without interlacing to an array of rows, with the standard library only."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == \
            zlib.crc32(kind + content)
        head = struct.unpack(">IIBBBBB", content) if kind == b"IHDR" else head
        body += content if kind == b"IDAT" else b""
        at += 12 + size
    width, height, bits, kind = head[:4]
    depth = {0: 1, 2: 3, 6: 4}[kind]
    assert bits == 8
    raw = np.frombuffer(zlib.decompress(body), "u1").reshape(height, 1 + width * depth)
    rows = np.zeros((height, width * depth), int)
    for y in range(height):
        above = rows[y - 1] if y else 0 * rows[0]
        rows[y] = unfilter(raw[y, 0], raw[y, 1:].astype(int), above, depth)
    return rows.reshape(height, width, depth)


def unfilter(kind, line, above, depth):
    out = np.zeros_like(line)
    for x, value in enumerate(line):
        a = out[x - depth] if x >= depth else 0
        b = above[x]
        c = above[x - depth] if x >= depth else 0
        p = a + b - c
        paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        out[x] = (value + [0, a, b, (a + b) // 2, paeth][kind]) % 256
    return out


def on_terminal(*arguments, **changes):
    """Output of a run whose stdout is a terminal of 24 x 80."""
    leader, follower = pty.openpty()
    child = subprocess.Popen([CLI, *map(str, arguments)], stdout=follower, stderr=follower,
                             stdin=subprocess.DEVNULL,
                             env=environment(TERM="xterm-256color", **changes))
    os.close(follower)
    out = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(leader)
    assert child.wait() == 0, out
    return out.decode().replace("\r\n", "\n")


class View(Case):
    def store(self, values):
        path = self.path("a.b2nd")
        blosc2.asarray(np.asarray(values), urlpath=str(path), mode="w")
        return path

    def png(self, path, *arguments):
        out = self.path("out.png")
        self.ok("view", path, *arguments, "--png", out, "-f")
        return read_png(out.read_bytes())

    def test_png_gray(self):
        values = np.arange(256, dtype="u1").reshape(16, 16)
        pixels = self.png(self.store(values))
        np.testing.assert_array_equal(pixels[..., 0], values)

    def test_png_of_every_kind_of_number(self):
        steps = np.array([[0, 51], [102, 255]])
        for dtype in ("<i2", ">u8", "<f4", ">f8", "<f2", "<c16", "<i8"):
            pixels = self.png(self.store(steps.astype(dtype)))
            np.testing.assert_array_equal(pixels[..., 0], steps, dtype)
        pixels = self.png(self.store(np.array([[True, False]])))
        np.testing.assert_array_equal(pixels[..., 0], [[255, 0]])

    def test_transposed(self):
        values = np.arange(7 * 300, dtype="f4").reshape(7, 300)
        path = self.store(values)
        for selection in ([], ["::-1,5:200:3"], ["3"]):
            want = self.png(path, *selection)
            got = self.png(path, *selection, "--transpose", "--memory", "4KiB")
            np.testing.assert_array_equal(got, want.transpose(1, 0, 2))
        colours = np.arange(60, dtype="u1").reshape(4, 5, 3)
        np.testing.assert_array_equal(self.png(self.store(colours), "--transpose"),
                                      colours.transpose(1, 0, 2))

    def test_png_range_and_what_is_not_finite(self):
        path = self.store([[-5.0, 0.0, 5.0, 50.0, np.nan, np.inf, -np.inf]])
        pixels = self.png(path, "--range=-5,5", "--cmap", "gray")
        np.testing.assert_array_equal(pixels[0, :, 0], [0, 128, 255, 255, 0, 0, 0])
        self.assertEqual(self.png(self.store([[np.nan]])).tolist(), [[[0]]])
        self.assertEqual(self.png(self.store([[7, 7]])).tolist(), [[[0], [0]]])

    def test_png_in_colour(self):
        ends = {"viridis": (0x440154, 0xfde725), "magma": (0x000004, 0xfcfdbf),
                "inferno": (0x000004, 0xfcffa4), "plasma": (0x0d0887, 0xf0f921),
                "turbo": (0x30123b, 0x7a0402), "hot": (0x0b0000, 0xffffff),
                "coolwarm": (0x3b4cc0, 0xb40426)}
        path = self.store(np.linspace(0, 1, 300).reshape(3, 100))
        for name, colours in ends.items():
            pixels = self.png(path, "--cmap", name)
            for place, colour in zip(((0, 0), (-1, -1)), colours):
                self.assertEqual(tuple(pixels[place]), tuple(colour.to_bytes(3, "big")), name)
        self.assertIn("'jet'", self.fails(2, "view", path, "--cmap", "jet"))

    def test_selection_and_slabs(self):
        values = np.random.default_rng(2).integers(0, 256, (5, 40, 50)).astype("u1")
        path = self.store(values)
        for sel in ("2", ":,7,:", "...,3", "4,::-1,::3"):
            want = values[eval(f"np.s_[{sel}]")]
            pixels = self.png(path, sel, "--range", "0,255", "--memory", "4096")
            np.testing.assert_array_equal(pixels[..., 0], want, sel)
        self.assertIn("(5, 40, 50)", self.fails(2, "view", path))
        pixels = self.png(path, "0,0", "--range", "0,255")  # one row
        np.testing.assert_array_equal(pixels[..., 0], values[0, 0][None])
        self.assertIn("the shape ()", self.fails(2, "view", path, "0,0,0"))
        self.assertIn("empty", self.fails(2, "view", path, "0,0:0"))
        self.fails(5, "view", self.store([[b"a"]]))
        for bad in ("5", "5,1", "1,x", "nan,1"):
            self.fails(2, "view", self.store([[1]]), f"--range={bad}")

    def test_characters(self):
        values = np.repeat(np.arange(10.0)[None], 2, axis=0)
        self.assertEqual(self.text("view", self.store(values)), " .:-=+*#%@\n")
        values[:, 3] = np.nan
        self.assertEqual(self.text("view", self.store(values)), " .:?=+*#%@\n")
        wide = self.text("view", self.store(np.zeros((300, 400)))).splitlines()
        self.assertEqual((len(wide), {len(line) for line in wide}), (30, {80}))

    def test_colours_of_their_own(self):
        values = np.random.default_rng(4).integers(0, 256, (9, 7, 3)).astype("u1")
        np.testing.assert_array_equal(self.png(self.store(values)), values)
        np.testing.assert_array_equal(self.png(self.store(values), "::2,::-1,::-1"),
                                      values[::2, ::-1, ::-1])
        opaque = np.dstack([values, np.full((9, 7), 255, "u1")])
        np.testing.assert_array_equal(self.png(self.store(opaque), "--memory", "4096"), opaque)
        path = self.store(values)
        self.assertIn("(9, 7, 3)", self.fails(2, "view", path, "--rgb", "no"))
        self.assertIn("--rgb", self.fails(2, "view", path, "--rgb", "what"))
        self.assertIn("(9, 7)", self.fails(2, "view", path, ":,:,0", "--rgb", "yes"))
        floats = self.store(values.astype("<f4") / 255)
        self.assertIn("(9, 7, 3)", self.fails(2, "view", floats))
        np.testing.assert_array_equal(self.png(floats, "--rgb", "yes", "--range", "0,1"), values)
        self.assertEqual(self.text("view", self.store(np.array([[[255] * 3, [0] * 3]], "u1"))),
                         "@ \n")

    def test_colours_in_the_terminal(self):
        pixels = np.array([[[255, 0, 0, 255]], [[0, 0, 255, 128]]], "u1")
        drawn = on_terminal("view", self.store(pixels), COLORTERM="truecolor")
        self.assertEqual(drawn, "\033[0m\033[38;2;255;0;0m\033[48;2;0;0;128m\u2580\033[0m\n")

    def test_a_large_selection_is_sampled(self):
        rows = np.arange(6000, dtype="<u2")
        path = self.store(np.tile(rows[:, None], (1, 6000)))
        status, out, err = run("view", path)
        self.assertEqual((status, err), (0, "caterva: sampled: one of 75 rows and one of 37 "
                                         "columns of 6000 x 6000\n"))
        lines = out.decode().splitlines()
        self.assertEqual((len(lines), {len(line) for line in lines}), (40, {80}))
        ramp = " .:-=+*#%@"
        places = [ramp.index(line[0]) for line in lines]
        self.assertEqual((places, places[0], places[-1]), (sorted(places), 0, 9))
        self.assertEqual({len(set(line)) for line in lines}, {1})
        status, out, err = run("view", path, "::-2,:2796") # 8.4 million items: all of them
        self.assertEqual((status, err), (0, ""))
        thin = self.path("thin.b2nd")
        self.ok("create", thin, "--shape", "3,9999999", "--dtype", "u1")
        self.assertEqual(run("view", thin)[2], "caterva: sampled: one of 1 rows and one of "
                         "62499 columns of 3 x 9999999\n")

    def test_terminal(self):
        path = self.store([[0, 255], [255, 0], [0, 255]])
        true = on_terminal("view", path, COLORTERM="truecolor")
        black, white = "{};2;0;0;0m", "{};2;255;255;255m"
        self.assertEqual(true.splitlines()[0], "".join(
            f"\033[0m\033[{u.format(38)}\033[{low.format(48)}\u2580"
            for u, low in ((black, white), (white, black))) + "\033[0m")
        self.assertEqual(true.count("\n"), 2)
        coarse = on_terminal("view", path)
        self.assertIn("\033[38;5;16m\033[48;5;231m\u2580", coarse)
        self.assertNotIn("\033", on_terminal("view", path, NO_COLOR="1"))

    def test_grays_of_256_colours(self):
        levels = np.arange(256, dtype="u1")
        table = {16: 0, **{232 + i: 8 + 10 * i for i in range(24)}, 231: 255}
        drawn = ""
        for part in levels.reshape(4, 64):
            drawn += on_terminal("view", self.store(part[None]), "--range", "0,255",
                                 "--cmap", "gray")
        chosen = [int(n) for n in re.findall(r"38;5;(\d+)m", drawn)]
        self.assertEqual((len(chosen), set(chosen)), (256, set(table)))
        for level, number in zip(levels.tolist(), chosen):
            nearest = min(abs(level - gray) for gray in table.values())
            self.assertEqual(abs(level - table[number]), nearest, level)


if __name__ == "__main__":
    main()
