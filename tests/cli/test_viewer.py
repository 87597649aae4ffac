"""The pages of `caterva serve` in a headless Chromium: pixels are compared with NumPy's."""

import base64
import tempfile
import time
import unittest

import blosc2
import numpy as np

from test_serve import Server
from tool_browser import Browser, program
from tool_cli import WINDOWS, main

DONE = """new Promise((done, fail) => { const start = Date.now(); const wait = () => {
  const state = document.body?.dataset.state;
  if (state === "done" || state === "failed") done(document.getElementById("status").textContent);
  else if (Date.now() - start > 60000) fail(new Error("waited for a minute"));
  else setTimeout(wait, 20); }; wait(); })"""
LISTED = """new Promise((done, fail) => { const start = Date.now(); const wait = () => {
  const rows = [...document.querySelectorAll("td.preview")].map((cell) => cell.parentElement);
  const last = rows.find((row) => row.dataset.state !== "done");
  if (rows.length && !last) done(rows.length);
  else if (Date.now() - start > 60000) fail(new Error("waited for a minute"));
  else { last?.scrollIntoView(); setTimeout(wait, 20); } }; wait(); })"""
PIXELS = """(() => { const c = CANVAS; if (!c) return null;
  const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  let text = ""; for (const byte of d) text += String.fromCharCode(byte);
  return [c.width, c.height, btoa(text)]; })()"""


def gray(plane, lo, hi):
    """What the page paints: the index of the colour, as red, green and blue."""
    scaled = np.floor((plane.astype("f8") - lo) / (hi - lo) * 256)
    return np.clip(scaled, 0, 255).astype("u1")


@unittest.skipIf(program() is None, "there is no Chromium")
class Viewer(Server):
    def pixels(self, browser, canvas='document.getElementById("picture")'):
        found = browser.evaluate(PIXELS.replace("CANVAS", canvas))
        if found is None:
            return None
        width, height, text = found
        return np.frombuffer(base64.b64decode(text), "u1").reshape(height, width, 4)

    def change(self, browser, name, value, event="input"):
        browser.evaluate(f"""(() => {{ const e = document.getElementById("{name}");
            document.body.dataset.state = ""; e.value = {value!r};
            e.dispatchEvent(new Event("{event}")); }})()""")

    def open(self, path):
        profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # its processes end late
        self.addCleanup(profile.cleanup)
        browser = Browser(profile.name, self.url(path))
        self.addCleanup(browser.close)
        self.wait_for(browser, path)
        return browser

    def wait_for(self, browser, path):
        end = time.monotonic() + 60
        while browser.evaluate("location.pathname") != path:  # the page may not have begun
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def check(self, browser, plane, lo=None, hi=None):
        self.assertEqual(browser.evaluate(DONE), "")
        got = self.pixels(browser)
        lo = plane.min() if lo is None else lo
        hi = plane.max() if hi is None else hi
        for channel in range(3):
            np.testing.assert_array_equal(got[..., channel], gray(plane, lo, hi))
        np.testing.assert_array_equal(got[..., 3], 255)

    def test_slices(self):
        with self.serving("data"):
            if self.get("/view/x.zarr")[0] == 404:
                self.skipTest("the program was built without the viewer")
            browser = self.open("/view/x.zarr")
            self.check(browser, self.items[15])
            for index in (0, 3, 29):
                self.change(browser, "axis0", str(index))
                self.check(browser, self.items[index])
            self.change(browser, "rows", "0", "change")
            self.check(browser, self.items[:, 20])
            self.change(browser, "rows", "2", "change")
            self.check(browser, self.items[:, 20].T)
            browser.evaluate("""(() => { for (const [id, value] of [["low", 100], ["high", 500]]) {
                const e = document.getElementById(id); e.value = value;
                e.dispatchEvent(new Event("input")); }
                document.body.dataset.state = "done"; })()""")
            self.check(browser, self.items[:, 20].T, 100, 500)
            self.assertIn("zarrita", self.get("/viewer-licences.txt")[2].decode())

    def test_previews(self):
        rng = np.random.default_rng(3)
        big = rng.integers(0, 1000, (5, 500, 300)).astype("<i2")
        wide = rng.integers(0, 1000, (300, 8000)).astype("<f4")
        image = rng.integers(0, 256, (40, 60, 3)).astype("u1")
        odd = "b' %&" if WINDOWS else "<b> %&"
        for name, items, options in (
                ("big", big, {"chunks": (1, 500, 300), "blocks": (1, 250, 300)}),
                ("wide", wide, {"chunks": (300, 100), "blocks": (300, 100)}), ("image", image, {}),
                ("line", np.arange(100), {}), ("none", np.zeros((0, 3)), {}),
                ("words", np.array([["a", "b"]]), {}), ("bool", image[..., 0] > 99, {}),
                (odd, image[..., 0], {})):
            self.write(f"data/{name}.b2nd", items, **options)
        with self.serving("data"):
            if self.get("/view/x.zarr")[0] == 404:
                self.skipTest("the program was built without the viewer")
            browser = self.open("/")
            self.assertEqual(browser.evaluate(LISTED), 9)
            for name, plane in (("x", self.items[15]), ("big", big[2, ::6, ::6]),
                                ("wide", wide[::11, 3500:4500:11]), ("image", image[..., 1]),
                                ("bool", (image[..., 0] > 99).astype("u1")),
                                (odd, image[..., 0]), ("line", None), ("none", None),
                                ("words", None)):
                canvas = ("[...document.querySelectorAll('tr')].find((row) => row.innerText"
                          f".includes({name + '.zarr'!r})).querySelector('canvas')")
                found = self.pixels(browser, canvas)
                if plane is None:
                    self.assertIsNone(found, name)
                else:
                    np.testing.assert_array_equal(
                        found[..., 0], gray(plane, plane.min(), plane.max()), name)

    def test_parts_of_large_planes(self):
        plane = np.arange(64 * 3000).reshape(64, 3000) % 251
        self.write("data/wide.b2nd", plane, chunks=(64, 100), blocks=(2, 20))  # 4,800 blocks
        with self.serving("data"):
            if self.get("/view/x.zarr")[0] == 404:
                self.skipTest("the program was built without the viewer")
            browser = self.open("/view/wide.zarr")
            self.check(browser, plane[:, 1312:1688])
            self.change(browser, "from-columns", "0")
            self.check(browser, plane[:, :376])
            self.change(browser, "from-columns", "2624")
            self.check(browser, plane[:, 2624:])
            self.change(browser, "rows", "1", "change")
            self.check(browser, plane[:, 1312:1688].T)

    def test_groups(self):
        with blosc2.TreeStore(str(self.path("data/t.b2d")), mode="w") as tree:
            tree["/g/x y"] = self.items
            tree["/z"] = np.arange(5)
        with self.serving("data"):
            if self.get("/view/x.zarr")[0] == 404:
                self.skipTest("the program was built without the viewer")
            browser = self.open("/view/t.zarr")
            self.assertEqual(browser.evaluate(DONE), "")
            links = browser.evaluate("[...document.querySelectorAll('#members a')]"
                                     ".map((a) => a.getAttribute('href'))")
            links.sort()
            self.assertEqual(links, ["/view/t.zarr/g/x%20y", "/view/t.zarr/z"])
            browser.evaluate(f"location.href = '{links[0]}'")
            self.wait_for(browser, links[0])
            self.check(browser, self.items[15])

    def test_types_and_failures(self):
        for name, items in (("b", np.arange(100) % 7 > 3), ("i", np.arange(-50, 50, dtype=">i8")),
                            ("z", np.zeros((0, 3))), ("s", np.array(["a", "b"])),
                            ("struct", np.zeros(4, [("a", "<f4"), ("b", "<i2")]))):
            self.write(f"data/{name}.b2nd", items)
        with self.serving("data"):
            if self.get("/view/x.zarr")[0] == 404:
                self.skipTest("the program was built without the viewer")
            self.assertEqual(self.get("/view/none.zarr")[0], 404)
            browser = self.open("/view/b.zarr")
            self.check(browser, (np.arange(100) % 7 > 3)[None].astype("u1"))
            for name, plane in (("i", np.arange(-50, 50)[None]), ("z", None), ("s", None),
                                ("struct", None)):
                browser.evaluate(f"location.href = '/view/{name}.zarr'")
                self.wait_for(browser, f"/view/{name}.zarr")
                if plane is None:
                    self.assertIn("cannot be shown", browser.evaluate(DONE))
                else:
                    self.check(browser, plane)


del Server  # its subclasses are the tests

if __name__ == "__main__":
    main()
