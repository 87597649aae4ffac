#!/usr/bin/env python3
"""The reference of the C library as Markdown, a page for each public header.

    reference.py FOLDER    writes the pages into a folder

The headers are the source: a comment in front of a declaration is its text, a
comment followed by an empty line is a paragraph, `/* ---- Title ---- */` is a
heading. Comments inside structs and enums stay where they are.
"""

import itertools
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = [ROOT / "include" / ("caterva%s.h" % topic)
           for topic in ("", "_upkeep", "_tree", "_jobs", "_remote", "_store", "_value")]

EXPORT = "CATERVA_API "
TITLE = re.compile(r"/\* ---- (.*?) -+ \*/\Z")


def escaped(text):
    """Text whose stars and angles, outside of code, Markdown shall leave alone."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def prose(comment):
    """The text of a comment: its lines without stars, paragraphs and lists kept, other
    indented lines as they are."""
    lines = [re.sub(r"\A\s*\*? ?", "", line).rstrip()
             for line in comment[2:-2].strip().splitlines()]
    kinds, item = [], False
    for line in lines:
        item = line.startswith("- ") or (item and line.startswith("  "))
        kinds.append(line.startswith("  ") and not item)
    out = []
    for indented, group in itertools.groupby(zip(kinds, lines), lambda pair: pair[0]):
        text = "\n".join(line for _, line in group)
        out.append("```\n%s\n```" % textwrap.dedent(text) if indented else escaped(text))
    return "\n".join(out)


def bare(declaration):
    """A declaration without the macro that exports it, lines still aligned."""
    if not declaration.startswith(EXPORT):
        return declaration
    first, *rest = declaration.splitlines()
    return "\n".join([first[len(EXPORT):]] + [line[len(EXPORT):] for line in rest])


def name_of(declaration):
    """What a declaration declares; None for what has no entry of its own."""
    function = re.match(r"CATERVA_API [^(]*?\*?(\w+)\(", declaration)
    typedef = re.match(r"typedef (?:enum|struct) (\w+)", declaration)
    struct = re.match(r"struct (\w+) \{", declaration)
    for match in (function, typedef, struct):
        if match:
            return match.group(1)
    return None


def blocks(text):
    """The header's comments and declarations, each with whether an empty line
    follows. A declaration ends with `;` or, a macro, with its line, outside of
    braces."""
    lines = iter(text.splitlines())
    for line in lines:
        if not line:
            yield "", True
            continue
        block = [line]
        if line.startswith("/*"):
            while not block[-1].endswith("*/"):
                block.append(next(lines))
        elif not line.startswith("#"):
            while not (re.search(r";( +/\*.*\*/)?\Z", block[-1])
                       and sum(b.count("{") - b.count("}") for b in block) == 0):
                block.append(next(lines))
        yield "\n".join(block), False


def body(text):
    """The header without its guards: from the first macro of the version or the first
    heading on, and the introduction in front of it."""
    introduction = text[:text.index("#ifndef CATERVA_")].strip()
    start = re.search(r"^(#define CATERVA_VERSION_MAJOR|/\* ---- )", text, re.M).start()
    end = text.index("#ifdef __cplusplus\n}")
    return introduction, text[start:end]


def entry(comment, code):
    names, labels = [], []
    for declaration in code:
        name = name_of(declaration)
        if name and name not in names:
            names.append(name)
            if declaration.startswith(EXPORT) or "{" in declaration:
                labels.append(name)
    out = "".join("(%s)=\n" % name for name in labels)
    out += "### %s\n\n" % ", ".join("`%s`" % n for n in names) if names else ""
    out += "```c\n%s\n```\n\n" % "\n".join(map(bare, code))
    return out + (prose(comment) + "\n\n" if comment else "")


def page(name, text):
    """The page of one header."""
    introduction, rest = body(text)
    out = ["# %s\n\n" % name, prose(introduction), "\n\n"]
    comment, code = None, []

    def flush():
        nonlocal comment, code
        if code:
            out.append(entry(comment, code))
        elif comment:
            out.append(prose(comment) + "\n\n")
        comment, code = None, []

    for block, empty in blocks(rest):
        title = TITLE.match(block)
        if empty:
            flush()
        elif title:
            flush()
            out.append("## %s\n\n" % title.group(1))
        elif block.startswith("/*"):
            flush()
            comment = block
        else:
            code.append(block)
    flush()
    return "".join(out).rstrip() + "\n"


def pages():
    """The Markdown of each page by its file name."""
    return {header.stem + ".md": page(header.name, header.read_text(encoding="utf-8"))
            for header in HEADERS}


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
