"""The rows of a comparison as tables: one line per rival, one column per read."""


def seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1 or unit == "us":
            return f"{value * factor:.3g} {unit}"


def ratio(row):
    digits = 0 if row["ratio"] >= 100 else 1 if row["ratio"] >= 10 else 2
    return f"{row['ratio']:.{digits}f}x" + "~" * row["estimated"]


def tables(rows):
    """Yields a title and lines of cells for each kind of data and chunk shape."""
    def setting_of(row):
        return row["data"], row["chunk"], row.get("fits", False)

    for setting in dict.fromkeys(map(setting_of, rows)):
        here = [row for row in rows if setting_of(row) == setting]
        names = list(dict.fromkeys(row["read"] for row in here if row["read"] != "create"))
        lines = [["rival", "T"] + names + ["create"]]
        for rival, threads in dict.fromkeys(
                (row["rival"], row["threads"]) for row in here):
            cells = {row["read"]: row for row in here
                     if row["rival"] == rival and row["threads"] == threads}
            lines.append([rival, str(threads)] + [
                f"{seconds(cells[name]['theirs'])} {ratio(cells[name])}" if name in cells else ""
                for name in names + ["create"]])
        ours = {}
        for row in here:  # the best turn against any rival, with the same threads
            key = row["read"], row["threads"]
            ours[key] = min(row["ours"], ours.get(key, row["ours"]))
        for threads in sorted({row["threads"] for row in here}):
            lines.append(["caterva (best)", str(threads)] + [
                seconds(ours[name, threads]) if (name, threads) in ours else ""
                for name in names + ["create"]])
        fits = ", all of it in caches of 64 MiB" if setting[2] else ""
        yield f"{setting[0]}, chunks of {setting[1]}^3{fits}", lines


def print_table(rows):
    for title, lines in tables(rows):
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        print(f"\n{title}")
        for line in lines:
            print("  ".join([line[0].ljust(widths[0])] +
                            [text.rjust(width) for text, width in zip(line[1:], widths[1:])]))


def markdown(rows):
    lines = []
    for title, cells in tables(rows):
        lines += ["", f"### {title}", ""]
        for i, line in enumerate(cells):
            lines.append("| " + " | ".join(line) + " |")
            if i == 0:
                lines.append("|---|" + "---:|" * (len(line) - 1))
    return lines + [""]


def selections(rows):
    """One line per selection, one column per file and number of threads."""
    settings = list(dict.fromkeys((r["data"], r["block"], r["threads"]) for r in rows))
    heads = [f"{data}, {block}^3, {threads} T" for data, block, threads in settings]
    lines = ["", "| selection | " + " | ".join(heads) + " |",
             "|---|" + "---:|" * len(settings)]
    for name in dict.fromkeys(row["selection"] for row in rows):
        cells = [next(f"{seconds(row['ours'])} {row['ratio']:.2f}x" for row in rows
                      if (row["data"], row["block"], row["threads"]) == setting
                      and row["selection"] == name) for setting in settings]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines + [""]
