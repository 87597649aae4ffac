#!/usr/bin/env python3
"""Makes one table of the rows that the benchmark programs wrote with --json.

    report.py [--json OUT] FILE...

A row that is in several files was run several times: its times and its ratio are
the medians, and the smallest and largest ratio are shown beside it. Ratios are the
rival's time divided by ours: above 1 we are faster. A time with ~ was extrapolated
from a sample. bench/results/c-blosc2.json is such an OUT.
"""

import argparse
import json
import statistics
from pathlib import Path


def merged(results):
    """Joins rows of the same program and name, in the order of the first file."""
    found = {}
    for program, result in results:
        for row in result["rows"]:
            found.setdefault((program, row["name"], row["rival"]), []).append(row)
    rows = []
    for (program, *_), same in found.items():
        ratios = [row["ratio"] for row in same]
        rows.append({**same[0], "program": program, "runs": len(same),
                     "ours": statistics.median(row["ours"] for row in same),
                     "theirs": statistics.median(row["theirs"] for row in same),
                     "ratio": statistics.median(ratios),
                     "ratio_min": min(ratios), "ratio_max": max(ratios)})
    return rows


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cells(row):
    bar = number(row["bar"]) if row["bar"] else ""
    spread = f"{number(row['ratio_min'])} .. {number(row['ratio_max'])}" if row["runs"] > 1 else ""
    verdict = "short" if row["bar"] and row["ratio"] < row["bar"] else row["note"]
    return [row["name"], number(row["ours"]), number(row["theirs"]) + "~" * row["estimated"],
            row["unit"], row["rival"], number(row["ratio"]), spread, bar, verdict]


TITLES = ["row", "caterva", "rival's", "unit", "rival", "ratio", "spread", "bar", ""]


def print_text(rows):
    lines = [TITLES] + [cells(row) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(TITLES))]
    program = None
    for line, row in zip(lines, [None] + rows):
        if row and row["program"] != program:
            program = row["program"]
            print(f"\n{program}")
        aligned = [line[0].ljust(widths[0])]
        aligned += [text.rjust(width) for text, width in zip(line[1:], widths[1:])]
        print("  ".join(aligned).rstrip())


def markdown(rows):
    program, lines = None, []
    for row in rows:
        if row["program"] != program:
            program = row["program"]
            lines += ["", f"## {program}", "", "| " + " | ".join(TITLES) + " |",
                      "|---|---:|---:|---|---|---:|---|---:|---|"]
        lines.append("| " + " | ".join(cells(row)) + " |")
    return lines + [""]


def print_conclusion(rows):
    with_bar = [row for row in rows if row["bar"]]
    short = [row for row in with_bar if row["ratio"] < row["bar"]]
    print(f"\n{len(rows)} rows, {len(with_bar) - len(short)} of {len(with_bar)} bars reached")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    results = [(path.name.split(".")[0], json.loads(path.read_text())) for path in args.files]
    rows = merged(results)
    print_text(rows)
    print_conclusion(rows)
    if args.json:
        versions = {key: results[0][1][key] for key in ("caterva", "blosc2")}
        Path(args.json).write_text(json.dumps({"schema": 1, **versions, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
