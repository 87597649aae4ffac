#!/usr/bin/env python3
"""Draws the pictures of the manual: docs/pictures/*.svg.

    pictures.py [FOLDER]    into this folder instead of docs/pictures

The charts show figures of bench/results. Every picture has a background of its own, so that it is
legible on light and dark pages, and names no font but sans-serif."""

import json
import math
import statistics
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"

PAPER, EDGE, INK, GRAY, PALE = "#ffffff", "#d0d7de", "#1f2328", "#59636e", "#eef1f4"
BLUE, BLUE_PALE, GREEN, GREEN_PALE, AMBER, AMBER_PALE = (
    "#1f6feb", "#dbe9fd", "#1a7f37", "#d3f0da", "#9a6700", "#fbe9b7")
DEAD = "#e4e4e4"


class Picture:
    def __init__(self, name, width, height, title):
        self.name, self.width, self.height = name, width, height
        self.parts = ["<title>%s</title>" % escape(title),
                      '<defs>%s<pattern id="dead" width="6" height="6" patternUnits="userSpaceOnUse">'
                      '<rect width="6" height="6" fill="%s"/><path d="M0 6L6 0" stroke="#b8b8b8"/>'
                      "</pattern></defs>" % ("".join(self.marker(c) for c in (GRAY, BLUE, GREEN, AMBER)), DEAD)]
        self.rect(0.5, 0.5, width - 1, height - 1, PAPER, EDGE, radius=8)

    @staticmethod
    def marker(color):
        return ('<marker id="to%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>' % (color[1:], color))

    def rect(self, x, y, w, h, fill="none", stroke="none", width=1, radius=0):
        self.parts.append('<rect x="%g" y="%g" width="%g" height="%g" rx="%g" fill="%s" stroke="%s" '
                          'stroke-width="%g"/>' % (x, y, w, h, radius, fill, stroke, width))

    def line(self, points, stroke=GRAY, width=1.5, arrow=False, dash=""):
        path = "M" + "L".join("%g %g" % point for point in points)
        self.parts.append('<path d="%s" fill="none" stroke="%s" stroke-width="%g"%s%s/>' % (
            path, stroke, width, ' marker-end="url(#to%s)"' % stroke[1:] if arrow else "",
            ' stroke-dasharray="%s"' % dash if dash else ""))

    def curve(self, x0, y0, x1, y1, bend, stroke):
        self.parts.append('<path d="M%g %gC%g %g %g %g %g %g" fill="none" stroke="%s" stroke-width="1.8" '
                          'marker-end="url(#to%s)"/>' % (x0, y0, x0, y0 + bend, x1, y1 + bend, x1, y1,
                                                         stroke, stroke[1:]))

    def text(self, x, y, words, size=14, fill=INK, anchor="start", bold=False):
        for i, line in enumerate(words.split("\n")):
            self.parts.append('<text x="%g" y="%g" font-size="%g" fill="%s" text-anchor="%s"%s>%s</text>' % (
                x, y + i * size * 1.35, size, fill, anchor, ' font-weight="bold"' if bold else "",
                escape(line)))

    def boxed(self, x, y, w, h, words, fill, stroke, ink=INK, size=13):
        self.rect(x, y, w, h, fill, stroke)
        if words:
            self.text(x + w / 2, y + h / 2 + size * 0.36, words, size, ink, "middle")

    def write(self, folder):
        body = "\n".join(self.parts)
        (folder / (self.name + ".svg")).write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
            'font-family="sans-serif">\n%s\n</svg>\n' % (self.width, self.height, self.width, self.height, body),
            encoding="utf-8")


def array():
    """An array is cut into chunks, a chunk into blocks; a slice touches some blocks."""
    p = Picture("array", 860, 420, "An array is cut into chunks, and each chunk into blocks. A read of one "
                "row decodes only the blocks that the row touches: 12 of 72.")
    x0, y0, bw, bh, nx, ny, rows, columns = 40, 78, 31, 38, 4, 3, 2, 3
    cw, ch = bw * nx, bh * ny
    p.text(x0, 40, "An array of 6 chunks", 17, bold=True)
    p.text(x0, 62, "each of 4 x 3 blocks of 10 x 10 items", 14, GRAY)
    touched = 1  # the row of blocks that the slice lies in
    for r in range(rows * ny):
        for c in range(columns * nx):
            hit = r == touched
            p.rect(x0 + c * bw, y0 + r * bh, bw, bh, BLUE_PALE if hit else PAPER, "#c3cad2", 0.8)
    for r in range(rows):
        for c in range(columns):
            p.rect(x0 + c * cw, y0 + r * ch, cw, ch, "none", INK, 2)
    y = y0 + touched * bh + 27
    p.rect(x0, y - 3, columns * cw, 6, BLUE)
    p.text(x0 + columns * cw + 14, y + 5, "a[17]", 16, BLUE, bold=True)
    p.text(x0, y0 + rows * ch + 30, "The row touches 12 of 72 blocks.\nOnly these are decoded, in parallel.", 14)

    fx, fy, fw = 500, 78, 320
    p.text(fx, 40, "The file", 17, bold=True)
    p.text(fx, 62, "compressed chunks and their index", 14, GRAY)
    widths = [("", 14), ("0", 42), ("1", 50), ("2", 44), ("3", 40), ("4", 52), ("5", 40), ("", 38)]
    at, second = fx, 0
    for label, width in widths:
        hit = label in ("0", "1", "2") and label
        p.boxed(at, fy, width, 34, label, BLUE_PALE if hit else PALE, GRAY, BLUE if hit else GRAY)
        if label == "1":
            second = at
        at += width
    p.text(fx + 7, fy + 52, "header", 12, GRAY, "middle")
    p.text(fx + fw, fy + 52, "index, attributes", 12, GRAY, "end")

    zy = 188
    p.line([(second, fy + 34), (fx, zy)], GRAY, 1, dash="4 3")
    p.line([(second + 50, fy + 34), (fx + fw, zy)], GRAY, 1, dash="4 3")
    at = fx
    for i, width in enumerate([30, 25, 22, 27, 24, 26, 20, 29, 23, 25, 24, 21, 24]):
        hit = 5 <= i <= 8
        p.rect(at, zy, width, 34, BLUE if hit else PALE, GRAY)
        at += width
    p.text(fx, zy + 52, "chunk 1: header, 12 compressed blocks.\nThe read fetches and decodes 4 of them.", 14)
    p.line([(fx + 30 + 25 + 22 + 27 + 24 + 48, zy + 90), (fx + 176, zy + 116)], BLUE, 1.8, arrow=True)
    p.boxed(fx, zy + 122, fw, 30, "one row of items, in your memory", BLUE, BLUE, PAPER, 14)
    p.text(fx, zy + 174, "A write encodes the blocks that it changes,\nand copies the other blocks of the chunk.", 14, GRAY)
    return p


def commit():
    """The steps of a commit as states of the file."""
    p = Picture("commit", 860, 470, "A commit writes new chunks and a new tail after the committed state, "
                "syncs, writes the header, and syncs again. The old chunk and the old tail are dead then.")
    x0, h = 250, 34

    def file(y, header, b, tail, new, new_tail):
        at = x0
        kinds = {"old": (BLUE_PALE, BLUE, INK), "new": (GREEN_PALE, GREEN, INK), "dead": ("url(#dead)", "#a0a0a0", "#6b6b6b")}
        places = {}
        for key, label, width, kind in (("header", "header", 70, header), ("a", "A", 60, "old"), ("b", "B", 60, b),
                                        ("c", "C", 60, "old"), ("tail", "index, trailer", 104, tail),
                                        ("b2", "B'", 60, new), ("tail2", "index', trailer'", 120, new_tail)):
            places[key] = at
            if kind:
                fill, stroke, ink = kinds[kind]
                p.boxed(at, y, width, h, label, fill, stroke, ink)
            at += width
        return places

    p.text(30, 40, "A commit, as the file sees it", 17, bold=True)
    steps = (("Before", "the last committed state", ("old", "old", "old", None, None)),
             ("1  Write", "new chunks and a new tail,\nthen a sync", ("old", "old", "old", "new", "new")),
             ("2  Header", "one write of one sector:\nthis is the commit", ("new", "old", "old", "new", "new")),
             ("3  Sync", "what was replaced is dead,\nand reused by later commits", ("new", "dead", "dead", "new", "new")))
    for i, (title, words, kinds) in enumerate(steps):
        y = 72 + i * 92
        p.text(30, y + 14, title, 15, bold=True)
        p.text(30, y + 33, words, 13, GRAY)
        places = file(y, *kinds)
        color = GREEN if kinds[0] == "new" else BLUE
        target = places["tail2" if kinds[0] == "new" else "tail"] + 40
        p.curve(places["header"] + 35, y + h, target, y + h + 1, 30, color)
    p.text(30, 438, "A crash before step 2 leaves the old state, a crash after it the new one.\n"
           "Readers that have the old state open keep it.", 13)
    return p


def remote():
    """The round trips of the first point of an array behind a URL."""
    p = Picture("remote", 860, 430, "Reading one point of an array behind a URL takes three round trips: the end of "
                "the file, the layout of one chunk, and one block.")
    left, right, top = 150, 470, 84
    p.text(30, 40, "One point of an array behind a URL: three round trips", 17, bold=True)
    for x, name in ((left, "your program"), (right, "web server or S3")):
        p.boxed(x - 75, top - 24, 150, 30, name, PALE, GRAY, INK, 14)
        p.line([(x, top + 6), (x, 348)], GRAY, 1.2, dash="5 4")
    steps = (("1  open: the last 64 KiB", "index, attributes, checksums", BLUE),
             ("2  the layout of one chunk", "where its blocks begin", AMBER),
             ("3  one block", "20 KB, decoded and cached", GREEN))
    for i, (ask, answer, color) in enumerate(steps):
        y = top + 34 + i * 84
        p.line([(left + 4, y), (right - 4, y + 12)], color, 1.8, arrow=True)
        p.text((left + right) / 2, y - 5, ask, 14, color, "middle", bold=True)
        p.line([(right - 4, y + 22), (left + 4, y + 44)], color, 1.8, arrow=True)
        p.text((left + right) / 2, y + 56, answer, 13, GRAY, "middle")

    fx, fy, fw = 575, 118, 250
    p.text(fx, fy - 20, "The object, 160 MB", 14, bold=True)
    p.rect(fx, fy, fw, 36, PALE, GRAY)
    for k in range(1, 10):
        p.line([(fx + k * 22, fy), (fx + k * 22, fy + 36)], "#c3cad2", 1)
    p.rect(fx + 220, fy, 30, 36, BLUE, BLUE)
    p.rect(fx + 88, fy, 4, 36, AMBER, AMBER)
    p.rect(fx + 98, fy, 3, 36, GREEN, GREEN)
    for y, color, words in ((fy + 66, BLUE, "the end: index and seal"), (fy + 90, AMBER, "the start of chunk 4"),
                            (fy + 114, GREEN, "one block of chunk 4")):
        p.rect(fx, y - 11, 12, 12, color)
        p.text(fx + 20, y, words, 13)
    p.text(fx, fy + 158, "A box takes two round trips:\nall layouts that it needs, together,\nthen all blocks.", 13, GRAY)
    p.text(30, 380, "caterva repack --for-remote puts all layouts near the end of the file.\nThey come with the "
           "opening, so a point takes two round trips in all, and each further box one.", 13)
    return p


def seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return "%.3g %s" % (value * factor, unit)


def bars(name, title, subtitle, note, groups, colors, low, high):
    """Groups of horizontal bars on a logarithmic axis: [(label, [(name, seconds)])]."""
    row, gap, left, right = 19, 20, 210, 700
    height = 138 + sum(row * len(values) + gap for _, values in groups)
    p = Picture(name, 860, height, title + ". " + "; ".join(
        "%s: %s" % (label.replace("\n", " "), ", ".join("%s %s" % (n, seconds(v)) for n, v in values))
        for label, values in groups))
    p.text(30, 38, title, 17, bold=True)
    p.text(30, 60, subtitle, 13, GRAY)
    scale = lambda v: left + (right - left) * (math.log10(v) - low) / (high - low)
    top, bottom = 78, height - 58
    for power in range(low, high + 1):
        x = scale(10.0**power)
        p.line([(x, top), (x, bottom)], "#dde2e7", 1)
        p.text(x, bottom + 16, seconds(10.0**power), 12, GRAY, "middle")
    y = top + 8
    for label, values in groups:
        lines = label.count("\n") + 1
        p.text(30, y + row * len(values) / 2 + 5 - (lines - 1) * 9, label, 14)
        for key, value in values:
            color = colors[key]
            p.rect(left, y + 2, scale(value) - left, row - 5, color, radius=2)
            p.text(scale(value) + 7, y + row - 6, "%s  %s" % (seconds(value), key), 12.5,
                   BLUE if key == "Caterva" else GRAY, bold=key == "Caterva")
            y += row
        y += gap
    p.text(30, height - 14, note, 12, GRAY)
    return p


def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def reads():
    result = load("rivals.json")
    rows = [row for row in result["rows"] if row["data"] == "noisy" and row["chunk"] == 128 and row["threads"] == 1]
    names = {"blosc2": "python-blosc2", "tensorstore blosc": "TensorStore", "hdf5 blosc": "HDF5 with Blosc",
             "zarr blosc": "Zarr"}
    groups = []
    for read, label in (("point", "one item"), ("box 50^3", "a box of 50 x 50 x 50"),
                        ("plane 1", "one plane"), ("full", "the whole array")):
        here = {row["rival"]: row for row in rows if row["read"] == read and row["rival"] in names}
        ours = statistics.median(row["ours"] for row in here.values())
        groups.append((label, [("Caterva", ours)] + [(names[key], here[key]["theirs"]) for key in names]))
    colors = {"Caterva": BLUE, **{name: "#a9b4c0" for name in names.values()}}
    return bars("reads", "Reads of a compressed array, from Python",
                "384 x 384 x 384 float32, noisy, in chunks of 128 x 128 x 128, LZ4 with shuffle, one thread, no cache",
                "Logarithmic scale. bench/results/rivals.json; %s." % result["machine"], groups, colors, -5, 0)


def writes():
    result = load("c-blosc2.json")
    rows = {row["name"]: row for row in result["rows"] if row["program"] == "bench_write"}
    groups = []
    for name, label in (("lz4, file of 1024 MiB, point, durable", "one item\nof a 1 GiB file"),
                        ("lz4, 2 bits noise, 32^3 blocks, 1 T, point", "one item\nof 216 MiB"),
                        ("lz4, 2 bits noise, 32^3 blocks, 1 T, plane 0", "one plane\nof 216 MiB"),
                        ("lz4, 1000 appends of a plane, committed each", "append of a plane"),
                        ("lz4, 2 bits noise, 32^3 blocks, 1 T, create", "creation\nof 216 MiB")):
        row = rows[name]
        groups.append((label, [("Caterva", row["ours"] / 1e6), ("C-Blosc2", row["theirs"] / 1e6)]))
    return bars("writes", "Changes, each with a commit",
                "float32, LZ4 with shuffle, one thread. First group: Caterva syncs twice; C-Blosc2 never syncs.",
                "Logarithmic scale. bench/results/c-blosc2.json; %s." % result["machine"],
                groups, {"Caterva": BLUE, "C-Blosc2": "#a9b4c0"}, -4, 0)


def main(arguments):
    folder = Path(arguments[0]) if arguments else ROOT / "docs/pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (array, commit, remote, reads, writes):
        draw().write(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
