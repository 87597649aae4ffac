"""Output for people: descriptions, drawings in notebooks, images of items."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import xml.dom.minidom
import zlib
from pathlib import Path
from typing import Any

import caterva
import numpy as np
import pytest
from support import needs_program

# ---- Descriptions ---------------------------------------------------------------------


def test_info_tells_everything() -> None:
    a = caterva.create(
        (10, 20), ">f4", "a.b2nd", chunks=(5, 8), blocks=(2, 4), fill_value=7, level=3,
        filters=["delta", "bitshuffle"], durability="none",
    )  # fmt: skip
    assert a.info.pending and a.info.commit_number == 0 and a.info.durability == "none"
    a[0] = 1
    a.attrs["unit"] = "K"
    a.commit()
    info = a.info
    assert (info.shape, info.chunks, info.blocks) == ((10, 20), (5, 8), (2, 4))
    assert (info.chunk_counts, info.block_counts) == ((2, 3), (3, 2))
    assert (info.n_items, info.n_chunks, info.n_blocks) == (200, 6, 6)
    assert (info.dtype, info.dtype_stored, info.fill_value) == (np.dtype(">f4"), ">f4", 7)
    assert (info.codec, info.level, info.filters) == ("zstd", 3, ("delta", "bitshuffle"))
    assert (info.writable, info.pending, info.in_memory, info.offset) == (True, False, False, 0)
    assert info.attributes == ("unit",) and "b2nd" in info.metalayers
    assert info.commit_number > 0 and not info.dtype_disagrees
    assert info.data_bytes == 800 and info.frame_bytes == Path("a.b2nd").stat().st_size
    for word in ("a.b2nd", "(10, 20)", "(5, 8)", "zstd 3", "delta", "unit"):
        assert word in repr(info)
    assert "pending" not in repr(info)
    before = info.commit_number
    a[1] = 2
    assert a.info.pending and "pending" in repr(a.info)
    a.commit()
    assert a.info.commit_number > before
    assert caterva.open("a.b2nd").info.commit_number == a.info.commit_number


def test_space_counts_chunks_and_bytes() -> None:
    a = caterva.zeros((4, 100), "i8", "a.b2nd", chunks=(1, 100))
    for value in range(2):
        a[:2] = np.random.default_rng(value).integers(0, 1 << 60, (2, 100))
        a.commit()
    space = a.space()
    assert (space.stored_chunks, space.special_chunks) == (2, 2)
    assert space.dead_bytes > 0 and space.live_bytes > 1600
    a.compact()
    assert a.space().dead_bytes == 0


# ---- In notebooks ------------------------------------------------------------------------


def lines_of(text: str) -> int:
    """Check that the drawing is XML; return its number of lines."""
    (svg,) = re.findall("<svg.*?</svg>", text, re.S)
    document = xml.dom.minidom.parseString(svg)
    numbers = [float(n) for n in re.findall(r'[xy]\d?="(-?[\d.]+)"', svg)]
    width, height = (
        float(document.documentElement.getAttribute(n)) for n in ("width", "height")
    )
    assert min(numbers) >= -1 and max(numbers) <= max(width, height), "all is inside"
    return len(document.getElementsByTagName("line"))


@pytest.mark.parametrize(
    ("shape", "chunks", "lines"),
    [
        ((10,), (5,), 3 + 2),
        ((10, 20), (5, 8), 3 + 4),
        ((4, 10, 20), (2, 5, 8), (4 + 3) + (3 + 3) + (4 + 3)),
        ((9, 4, 10, 20), (1, 2, 5, 8), (4 + 3) + (3 + 3) + (4 + 3)),
    ],
)
def test_the_drawing_has_the_edges_of_chunks(shape: Any, chunks: Any, lines: int) -> None:
    text = caterva.zeros(shape, "i4", chunks=chunks)._repr_html_()
    assert lines_of(text) == lines
    for n in shape[-3:]:
        assert f">{n}</text>" in text
    assert str(shape) in text and "in memory" in text


def test_drawings_stay_small() -> None:
    text = caterva.zeros((10_000_000, 3, 100_000), "u1", chunks=(1000, 1, 1000))._repr_html_()
    assert lines_of(text) < 200 and len(text) < 30_000
    assert "<svg" not in caterva.zeros(())._repr_html_()
    lines_of(caterva.zeros((0, 3))._repr_html_())


def test_names_are_text_in_html() -> None:
    name, shown = "&.b2nd", "&amp;.b2nd"
    if os.sep == "/":
        name, shown = f"<b>{name}", f"&lt;b&gt;{shown}"
    a = caterva.zeros(3, path=name)
    a.attrs["<i>"] = 1
    text = a._repr_html_()
    assert name not in text.replace(shown, "") and shown in text and "&lt;i&gt;" in text
    a.close()
    assert "closed" in a._repr_html_()


# ---- Images -----------------------------------------------------------------------------


def pixels_of_png(png: bytes) -> np.ndarray[Any, Any]:
    """Decode an 8-bit PNG file with any filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, data, header = 8, b"", ()
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        part = png[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", png[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(kind + part)
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", part)
        data += part if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, color = header[:4]
    assert depth == 8
    n = {0: 1, 2: 3, 6: 4}[color]
    rows = np.frombuffer(zlib.decompress(data), "u1").reshape(height, 1 + width * n).astype(int)
    pixels = np.zeros((height, width * n), int)
    for y, row in enumerate(rows):
        above = pixels[y - 1] if y else np.zeros(width * n, int)
        for x in range(width * n):
            a = int(pixels[y, x - n]) if x >= n else 0
            b, c = int(above[x]), int(above[x - n]) if x >= n else 0
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            pixels[y, x] = (row[1 + x] + (0, a, b, (a + b) // 2, paeth)[row[0]]) % 256
    return pixels.reshape(height, width, n).astype("u1")


def picture_of_the_command_line(path: str, *options: str) -> np.ndarray[Any, Any]:
    command = [
        sys.executable,
        "-m",
        "caterva",
        "view",
        path,
        "--png",
        "out.png",
        "-f",
        *options,
    ]
    subprocess.run(command, check=True, timeout=60)
    return pixels_of_png(Path("out.png").read_bytes())


MAPS = ("gray", "viridis", "magma", "inferno", "plasma", "turbo", "hot", "coolwarm")


@needs_program
@pytest.mark.parametrize("cmap", MAPS)
def test_pictures_are_those_of_the_command_line(cmap: str) -> None:
    items = np.random.default_rng(2).normal(size=(13, 17))
    items[3, 4:7] = np.nan, np.inf, -np.inf
    caterva.save("a.b2nd", items)
    a = caterva.open("a.b2nd")
    for limits in (None, (-1.0, 0.5)):
        options = ["--cmap", cmap]
        if limits:
            options.append(f"--range={limits[0]},{limits[1]}")
        ours = pixels_of_png(a.view_image(cmap=cmap, limits=limits).png)
        assert np.array_equal(ours, picture_of_the_command_line("a.b2nd", *options))


@needs_program
@pytest.mark.parametrize("dtype", ["u1", "?", "i8", ">u2", "f4"])
@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_those_of_the_command_line(dtype: str, channels: int) -> None:
    items = np.random.default_rng(3).integers(0, 250, (5, 6, channels)).astype(dtype)
    caterva.save("a.b2nd", items)
    a = caterva.open("a.b2nd")
    image = a.view_image(rgb=True)
    theirs = picture_of_the_command_line("a.b2nd", "--rgb", "yes")
    assert np.array_equal(pixels_of_png(image.png), theirs)
    if dtype == "u1":
        assert np.array_equal(image.pixels, items)
        assert np.array_equal(a.view_image().pixels, items)


def test_images_are_what_they_say() -> None:
    a = caterva.asarray(np.arange(24).reshape(2, 3, 4))
    image = a.view_image(np.s_[1, :, ::-1])
    assert repr(image) == "<caterva.Image 4 x 3, gray>"
    assert image._repr_png_() == image.png
    image.save("a.png")
    assert Path("a.png").read_bytes() == image.png
    assert np.array_equal(np.asarray(image), pixels_of_png(image.png)[..., 0])
    assert image.pixels[0, 3] == 0 and image.pixels[2, 0] == 255
    assert np.array_equal(a.view[1].view_image().pixels, a.view_image(1).pixels)
    same = caterva.full((2, 2), 5).view_image()
    assert (same.pixels == 0).all()
    wide = caterva.zeros((3, 5000), "u1").view_image(max_size=1000)
    assert wide.pixels.shape == (3, 1000)
    assert caterva.zeros((3, 5000), "u1").view_image(max_size=None).pixels.shape == (3, 5000)


def test_what_has_no_picture() -> None:
    a = caterva.zeros((2, 3, 5))
    for call, error, text in (
        (lambda: a.view_image(), ValueError, r"\(2, 3, 5\)"),
        (lambda: a.view_image(0, rgb=True), ValueError, "rgb"),
        (lambda: a.view_image(0, cmap="grey"), ValueError, "viridis"),
        (lambda: a.view_image(0, limits=(1, 1)), ValueError, "low < high"),
        (lambda: caterva.zeros((2, 0)).view_image(), ValueError, r"\(2, 0\)"),
        (lambda: caterva.zeros((2, 2), "c8").view_image(), TypeError, "complex64"),
        (lambda: caterva.zeros((2, 2), "S3").view_image(), TypeError, "S3"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_as_pillow_has_them() -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    image = caterva.asarray(np.arange(12).reshape(3, 4)).view_image(cmap="hot")
    assert image.pil().size == (4, 3) and image.pil().mode == "RGB"


# ---- Names that are not UTF-8 ----------------------------------------------------------


def _renamed(path: str) -> None:
    """Rename an attribute in an unsealed file of python-blosc2 to a name that is not UTF-8."""
    raw = Path(path).read_bytes()
    assert raw.count(b"qqqq") == 1
    Path(path).write_bytes(raw.replace(b"qqqq", b"q\xffqq"))


def test_names_of_attributes_that_are_not_utf8() -> None:
    blosc2 = pytest.importorskip("blosc2")
    name = "q\udcffqq"
    foreign = blosc2.asarray(np.arange(3), urlpath="a.b2nd")
    foreign.schunk.vlmeta["qqqq"] = 7
    foreign.schunk.vlmeta["unit"] = "K"
    with caterva.open_tree("t.b2d", "w") as t:
        t.create_group("g").attrs["n"] = 1
    os.remove("t.b2d/g/__vlmeta__.b2f")
    bare = blosc2.SChunk(urlpath="t.b2d/g/__vlmeta__.b2f")
    bare.vlmeta["qqqq"] = 7
    _renamed("a.b2nd")
    _renamed("t.b2d/g/__vlmeta__.b2f")
    a = caterva.open("a.b2nd")
    assert dict(a.attrs) == {name: 7, "unit": "K"} and name in a.attrs
    assert a._describe_stored()[-1].keys() == {name, "unit"}
    group = caterva.open_tree("t.b2d")["g"]
    assert dict(group.attrs) == {name: 7} and "g\udcff" not in group.attrs
    for text in (repr(a.info), repr(a.attrs), a._repr_html_(), repr(group.attrs)):
        assert r"q\xffqq" in text
        text.encode()
    with caterva.open("a.b2nd", "r+") as a, caterva.open_tree("t.b2d", "r+") as t:
        for attrs in (a.attrs, t["g"].attrs):
            with pytest.raises(ValueError, match="UTF-8"):
                attrs["\udcfe"] = 1
            with pytest.raises(ValueError, match="null"):
                attrs["a\0b"]
