#!/usr/bin/env python3
"""The tables of bench/results as Markdown, for the site.

    results.py FOLDER    writes the pages into a folder

Each JSON file there is what a benchmark wrote with --json: to publish a new run, copy the file."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/rivals")]
import report  # noqa: E402
import table  # noqa: E402

ROWS = """`ratio` is the other side's time divided by Caterva's, so above 1 Caterva is faster. `spread` is the
smallest and largest ratio of several runs. `~` marks a time that was extrapolated from a sample. A `bar`
is the ratio that a row is meant to reach; rows that do not are marked `short`.
"""
CELLS = """A cell has the other library's time, and that time divided by Caterva's: **below 1 the other library is
faster**. `~` marks scans that ran out of time.
"""


def load(name):
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def markdown(lines):
    """A table of lines of cells, the first of them the head."""
    head, *rest = lines
    return ["| %s |" % " | ".join(line) for line in [head, ["---"] + ["---:"] * (len(head) - 1), *rest]]


def about(result):
    names = ", ".join(result.get("rivals", {}).values()) or result.get("rival", "")
    return "Caterva %s%s%s.\n" % (result["caterva"], " and " + names if names else "",
                                  "; " + result["machine"] if "machine" in result else "")


def named(rows, own):
    """Rows of named times as a table: seconds, and how many times as long as the first."""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["", *columns]]
    for title, row in rows.items():
        cells = ["%s%s" % (table.seconds(row[name]), "" if name.startswith(own) or name == "C" else
                           " " + table.ratio({"ratio": row[name] / row[columns[0]], "estimated": False}))
                 if name in row else ""
                 for name in columns]
        lines.append([title, *cells])
    return markdown(lines)


def c_blosc2():
    result = load("c-blosc2.json")
    return ["# C-Blosc2's n-d layer\n", "`make bench RUNS=5`; [what the rows measure](../index.md)\n",
            about(result), ROWS, *report.markdown(result["rows"])]


def rivals():
    out = ["# Other array stores\n", "`make bench-rivals`; [how it is measured](../rivals/index.md)\n", CELLS]
    for name, title in (("rivals.json", "All reads"), ("creation.json", "Creation"),
                        ("cached.json", "Reads with a cache of 64 MiB on both sides")):
        result = load(name)
        out += ["## %s\n" % title, about(result)]
        if name == "creation.json":
            out += markdown([["rival", "T", "data", "chunks", "rival's", "Caterva", "ratio"]] + [
                [row["rival"], str(row["threads"]), row["data"], "%d^3" % row["chunk"],
                 table.seconds(row["theirs"]), table.seconds(row["ours"]), "%.2f" % row["ratio"]]
                for row in result["rows"]]) + [""]
        else:
            out += table.markdown(result["rows"])
    return out


def selections():
    result = load("selections.json")
    return ["# Selections, beside python-blosc2\n", "`scripts/bench-rivals --selections`\n", about(result),
            "A cell has Caterva's time, and python-blosc2's time divided by it.\n",
            *table.selections(result["rows"])]


def python():
    packages, data_sets, cold = load("python.json"), load("datasets.json"), load("cold.json")
    size = lambda kib: "%.1f MiB" % (kib / 1024) if kib >= 1024 else "%.0f KiB" % kib
    return [
        "# The Python package\n",
        "A cell has the time, and that time divided by Caterva's.\n",
        "## Beside other packages\n", "`make bench-python`: %d^3 int32, in the caches that each has.\n"
        % packages["side"], *named(packages["rows"], "caterva"),
        "\n## Data sets with xarray\n", "`scripts/bench-python datasets`: 1 GB of float32.\n",
        *named({title: {name: value / 1e3 for name, value in row.items()}
                for title, row in data_sets.items()}, "caterva"),
        "\n## Files that are not in memory\n", "`scripts/bench-rivals --cold`: time and bytes from the disk.\n",
        *markdown([["read", "chunks", "Caterva", "HDF5 with Blosc"]] + [
            [row["read"], "%d^3" % row["chunk"],
             "%s, %s" % (table.seconds(row["ours"]), size(row["our_kib"])),
             "%s, %s" % (table.seconds(row["theirs"]), size(row["their_kib"]))] for row in cold["rows"]]), ""]


def defaults():
    out = ["# As installed\n", "`scripts/bench-rivals --as-installed`: each store with its defaults, from a "
           "NumPy array to a file and back.\n"]
    for kind, row in load("defaults.json")["rows"].items():
        steps = [step for step in next(iter(row["seconds"].values()))
                 if step in ("whole", "points") or step.startswith("plane")]
        lines = [["store", "create", "ratio", *(step.replace("points", "point") for step in steps)]]
        for name, seconds in row["seconds"].items():
            lines.append([name, "%.0f MB/s" % (row["bytes"] / 1e6 / seconds["create"]),
                          "%.2f" % (row["bytes"] / row["sizes"][name]),
                          *(table.seconds(seconds[step]) for step in steps)])
        out += ["## %s, %.0f MB\n" % (kind, row["bytes"] / 1e6), *markdown(lines), ""]
    return out


def pages():
    """The text of each page by its file name."""
    found = {"c-blosc2.md": c_blosc2, "rivals.md": rivals, "selections.md": selections, "python.md": python}
    if (RESULTS / "defaults.json").exists():
        found["defaults.md"] = defaults
    return {name: "\n".join(make()).rstrip() + "\n" for name, make in found.items()}


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
