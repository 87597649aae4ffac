"""get --sel: items by names of dimensions and values of their coordinates, which are files next
to the array or in an enclosing group; compared with NumPy."""

import json
import random
import time

import blosc2
import numpy as np

from tool_cli import Case, main


class Coordinates(Case):
    def store(self, name, items, dims=None, **attributes):
        path = self.path(name + ".b2nd")
        path.parent.mkdir(exist_ok=True)
        array = blosc2.asarray(np.asarray(items), urlpath=str(path), mode="w")
        if dims:
            array.schunk.vlmeta["dims"] = dims
        for key, value in attributes.items():
            array.schunk.vlmeta[key] = value
        return path

    def selected(self, path, words, *more):
        out = self.path("out.npy")
        self.ok("get", path, "--sel", words, "-o", out, "--force", *more)
        return np.load(out)

    def expect(self, path, words, expected, *more):
        np.testing.assert_array_equal(self.selected(path, words, *more), expected, words)

    def refuse(self, path, words, expected, *more):
        self.assertIn(expected, self.fails(2, "get", path, "--sel", words, *more), words)

    def test_numbers(self):
        items = np.arange(5 * 4).reshape(5, 4)
        path = self.store("t", items, ["lat", "lon"])
        self.store("lat", np.array([60, 30, 0, -30, -60.5], "f4"), ["lat"])
        self.store("lon", np.array([0, 90, 180, 270], ">i2"), ["lon"])
        self.expect(path, "lat=30", items[1])
        self.expect(path, "lat=-60.5,lon=90", items[4, 1])
        self.expect(path, "lon=90:180", items[:, 1:3])
        self.expect(path, "lon=89.5:180.5", items[:, 1:3])
        self.expect(path, "lon=90.5:", items[:, 2:])
        self.expect(path, "lon=:-1", items[:, :0])
        self.expect(path, "lat=-30:30", items[1:4])
        self.expect(path, "lat=30:-30", items[1:4])
        self.expect(path, " lat = 0: , lon = 0 ", items[:3, 0])
        self.expect(path, "lat=44,lon=-1000", items[1, 0], "--nearest")
        self.expect(path, "lat=31:,lon=100", items[:1, 1], "--nearest")
        self.refuse(path, "lat=31", "lat=31: no item has this value; --nearest selects")
        self.refuse(path, "lon=180:90", "the first value is greater than the second")
        self.refuse(path, "lat=x", "expected a number")
        self.refuse(path, "lat=1e999", "expected a number")
        self.refuse(path, "lev=1", "unknown dimension 'lev': the array has (lat, lon)")
        self.refuse(path, "lat=0,lat=30", "names lat twice")
        self.refuse(path, "lat", "expected name=value at position 1")
        self.expect(path, "lat=0,", items[2])
        self.assertIn("SEL and --sel exclude each other", self.fails(2, "get", path, "0", "--sel", "lat=0"))
        self.assertIn("--nearest requires --sel", self.fails(2, "get", path, "--nearest"))

    def test_float32_is_found_by_its_decimals(self):
        values = np.array([0.1, 0.2, 0.3], "f4")
        path = self.store("v", np.arange(3), ["x"])
        self.store("x", values, ["x"])
        for i, text in enumerate(("0.1", "0.2", "0.3")):
            self.expect(path, f"x={text}", i)
        self.expect(path, "x=0.1:0.2", [0, 1])

    def test_coordinates_that_turn(self):
        path = self.store("v", np.arange(5), ["x"])
        self.store("x", [3, 4, 5, 4, 1], ["x"])
        self.expect(path, "x=5", 2)
        self.refuse(path, "x=3:5", "is not monotonic at item 3: only single values")
        self.refuse(path, "x=4", "2 items have this value, the first is 1")
        self.store("x", [1.0, np.nan, 3, 4, 5], ["x"])
        self.refuse(path, "x=3", "coordinate x is NaN at item 1")

    def test_times(self):
        days = np.arange("2019-12-30", "2020-03-10", dtype="M8[D]")
        at = {str(day): i for i, day in enumerate(days)}
        numbers = (days - np.datetime64("2000-01-01")).astype(int)
        path = self.store("v", np.arange(len(days)), ["time"])
        for coordinate, units in ((days, None), (days.astype("M8[s]"), None),
                                  (numbers, "days since 2000-01-01"),
                                  (numbers * 24.0, "hours since 2000-01-01 00:00:00"),
                                  (numbers * 1440 + 60, "minutes since 1999-12-31T23:00Z"),
                                  (numbers.astype("f4"), "days since 2000-1-1 0:0:0.0 UTC")):
            more = {"units": units, "calendar": "standard"} if units else {}
            self.store("time", coordinate, ["time"], **more)
            self.expect(path, "time=2020-01-31", at["2020-01-31"])
            self.expect(path, "time=2020-01-31T00:00:00.000Z", at["2020-01-31"])
            self.expect(path, "time=2020-02:2020-02", [i for d, i in at.items() if "-02-" in d])
            self.expect(path, "time=2020-01-30:2020-02-01", np.arange(3) + at["2020-01-30"])
            self.expect(path, "time=2020-01-30T00:2020-01-31T12:30",
                        np.arange(2) + at["2020-01-30"])
            self.expect(path, "time=:2019", [0, 1])
            self.expect(path, "time=2020-03-08T12:", [len(days) - 1])
            self.expect(path, "time=2020-02-10T13", at["2020-02-11"], "--nearest")
            self.refuse(path, "time=2020-02-10T13", "no item has this value")
            self.refuse(path, "time=2020-02-30", "expected a date")
            self.refuse(path, "time=18262", "expected a date")

    def test_calendars(self):
        path = self.store("v", np.arange(400), ["time"])
        for name, text, day in (("noleap", "2000-03-01", 59), ("all_leap", "2001-03-01", 426),
                                ("360_day", "2000-02-30", 59), ("standard", "2000-03-01", 60),
                                ("julian", "2000-03-01", 60), ("365_day", "2001-01-01", 365),
                                ("proleptic_gregorian", "2000-12-31", 365)):
            values = np.arange(400)
            if day >= 400:
                values += day - 399
            self.store("time", values, ["time"], units="days since 2000-01-01", calendar=name)
            self.expect(path, f"time={text}", day if day < 400 else 399)
        self.store("time", np.arange(400), ["time"], units="days since 2000-01-01",
                   calendar="noleap")
        self.refuse(path, "time=2000-02-29", "expected a date")
        # These ten days do not exist in the mixed calendar.
        self.store("time", np.arange(400), ["time"], units="days since 1582-10-04",
                   calendar="gregorian")
        self.expect(path, "time=1582-10-15", 1)
        self.refuse(path, "time=1582-10-10", "expected a date")
        for units in ("months since 2000-01-01", "days since yesterday"):
            self.store("time", np.arange(400), ["time"], units=units)
            self.assertIn("are not days", self.fails(5, "get", path, "--sel", "time=2000-01-01"))

    def test_groups(self):
        """The nearest enclosing group of a tree is used, and no other directory."""
        items = np.arange(6).reshape(2, 3)
        self.path("tree").mkdir()
        path = self.store("tree/g/v", items, ["y", "x"])
        self.store("tree/x", [10, 20, 30], ["x"])
        self.refuse(path, "x=20", "index 20 is out of range")
        self.path("tree/embed.b2e").write_bytes(b"")
        self.expect(path, "x=20", items[:, 1])
        self.store("tree/g/x", [1, 2, 20], ["x"])
        self.expect(path, "x=20", items[:, 2])
        self.store("tree/g/x", [1, 2, 20])  # not a coordinate: the axis has no name
        self.expect(path, "x=20", items[:, 1])
        self.store("tree/g/x", [1, 2], ["x"])
        self.refuse(path, "x=20", "has 2 items, but the axis x has 3")
        self.store("tree/g/x", np.array(["a", "b", "c"]), ["x"])
        self.assertIn("numbers or times", self.fails(5, "get", path, "--sel", "x=20"))

    def test_without_coordinates(self):
        items = np.arange(24).reshape(2, 3, 4)
        path = self.store("v", items, ["a", "b", None])
        self.expect(path, "b=1", items[:, 1])
        self.expect(path, "a=-1,b=::2", items[-1, ::2])
        self.expect(path, "b=[2,0]", items[:, [2, 0]])
        self.refuse(path, "b=x", "no coordinate of this name was found")
        self.refuse(path, "b=3", "out of range")
        path = self.store("w", items)
        self.refuse(path, "b=1", "has no dimension names")
        twice = self.store("twice", items, ["a", "a", "c"])
        self.refuse(twice, "a=1", "axes 0 and 1 both have the name 'a'")

    def test_results_keep_names(self):
        path = self.store("v", np.arange(24).reshape(2, 3, 4), ["a", "b", "c"])
        out = self.path("out.b2nd")
        for words, expected in (("b=1", ["a", "c"]), ("a=0:1,c=2", ["a", "b"])):
            self.ok("get", path, "--sel", words, "-o", out, "--force")
            self.assertEqual(json.loads(self.text("info", out, "--json"))["dims"], expected)
        self.ok("get", path, ":,None,1:,0", "-o", out, "--force")
        self.assertEqual(json.loads(self.text("info", out, "--json"))["dims"], ["a", None, "b"])
        self.assertIn("\n  dims     a, -, b\n", self.text("info", out))
        self.ok("attr", "delete", out, "dims")
        self.assertIsNone(json.loads(self.text("info", out, "--json"))["dims"])
        self.assertNotIn("dims", self.text("info", out))

    def test_random(self):
        """Increasing and decreasing values, ranges and single ones, compared with NumPy."""
        seed = int(time.time())
        print("seed", seed)
        r = random.Random(seed)
        for _ in range(15):
            n = r.randrange(1, 60)
            kind = r.choice(["<i4", ">f8", "<u2", "<f4", "<i8"])
            values = np.array(sorted(r.sample(range(0, 400), n)), kind)
            if r.randrange(2):
                values = values[::-1]
            path = self.store("v", np.arange(n), ["x"])
            self.store("x", values, ["x"])
            low, high = sorted((r.uniform(-10, 410), r.uniform(-10, 410)))
            inside = np.flatnonzero((values >= low) & (values <= high))
            self.expect(path, f"x={low!r}:{high!r}", inside)
            i = r.randrange(n)
            self.expect(path, f"x={values[i]}", i)
            near = np.abs(values.astype("f8") - low)
            self.expect(path, f"x={low!r}", int(near.argmin()), "--nearest")


if __name__ == "__main__":
    main()
