"""Files by other writers (C-Blosc2, python-blosc2, the original Caterva): the items of each are
those of its manifest, and files that are not n-d arrays are refused with a message. The folder
is optional: `data` in `shared` beside the checkout.

usage: test_data_folder.py [--tool PATH]"""

import hashlib
import json
import os
import sys
import tempfile

from tool_driver import Helper, HelperError, skip

SOURCE = os.environ.get("CATERVA_SOURCE_DIR",
                        os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
FOLDER = os.path.join(SOURCE, "..", "shared", "data")
NO_ARRAYS = ["varchunks-lz4-3.0.0.b2frame", "trees/lazy.b2nd", "trees/embed.b2e",
             "trees/minimal_embed_b2tree.b2e"]
PLAIN = "frame_simple-zstd.b2frame"


def check_file(helper, name, expected):
    """Messages about what is wrong with one file; none if it is right."""
    info, (data,) = helper.read(os.path.join(FOLDER, name))
    stored = info["dtype_stored"]
    opaque = f"|V{expected['typesize']}"
    seen = {"shape": info["shape"], "chunks": info["chunks"], "blocks": info["blocks"],
            "dtype": stored if stored is not None else "-", "typesize": info["item_size"],
            "attributes": len(info["attributes"]), "sha256": hashlib.sha256(data).hexdigest()}
    wrong = [f"{name}: {key} is {seen[key]}, the manifest says {value}"
             for key, value in expected.items() if seen[key] != value]
    disagrees = name == "example_day_month_temp.b2nd"
    if bool(info["disagrees"]) != disagrees:
        wrong.append(f"{name}: a dtype that {'dis' if disagrees else ''}agrees is not noticed")
    if (disagrees or stored is None) and info["dtype"] != opaque:
        wrong.append(f"{name}: items are {info['dtype']}, not {opaque}")
    if info["damages"] != 0:
        wrong.append(f"{name}: verify finds {info['damages']} damages")
    return wrong


def check_refusal(helper, name):
    try:
        helper.read(os.path.join(FOLDER, name))
    except HelperError as error:
        if error.status in ("CATERVA_EUNSUPPORTED", "CATERVA_ECORRUPT") and error.message:
            print(f"{name}: {error}")
            return []
        return [f"{name}: refused as {error}"]
    return [f"{name} is no n-d array, but was read as one"]


def check_plain(helper):
    """A frame without the array's metalayer is read as a 1-d array of its items."""
    import blosc2

    path = os.path.join(FOLDER, PLAIN)
    schunk = blosc2.open(path, mode="r")
    data = b"".join(schunk.decompress_chunk(i) for i in range(schunk.nchunks))
    info, (ours,) = helper.read(path)
    wrong = [] if ours == data else [f"{PLAIN}: other items"]
    if info["shape"] != [len(data) // schunk.typesize] or info["damages"] != 0:
        wrong.append(f"{PLAIN}: {info}")
    return wrong


def main():
    manifest = os.path.join(FOLDER, "manifest.json")
    if not os.path.exists(manifest):
        skip("there is no folder shared/data beside the checkout")
    with open(manifest) as file:
        expected = json.load(file)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="caterva-data-") as folder:
        helper = Helper(folder)
        for name, about in expected.items():
            wrong += check_file(helper, name, about)
        for name in NO_ARRAYS:
            wrong += check_refusal(helper, name)
        wrong += check_plain(helper)
        helper.close()
    print("\n".join(wrong) or f"{len(expected)} files read right, {len(NO_ARRAYS)} refused")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
