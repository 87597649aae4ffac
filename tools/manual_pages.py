#!/usr/bin/env python3
"""The man pages of the command line as Markdown, a page for each.

    manual_pages.py FOLDER    writes the pages into a folder

Knows the requests and escapes that the pages in man/ use, and stops at any other."""

import re
import sys
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "man"
ESCAPES = {"\\-": "-", "\\&": "", "\\e": "\\", "\\(dq": '"', "\\(aq": "'", "\\(lq": "\u201c", "\\(rq": "\u201d"}


def plain(text):
    return re.sub(r"\\(?:\(..|.)", lambda match: ESCAPES[match.group()], text)


def marked(text, font):
    """Text in a font of Markdown, spaces outside of the marks."""
    before, words, after = re.fullmatch(r"(\s*)(.*?)(\s*)", text, re.S).groups()
    if not words:
        return text
    if font == "B":
        return "%s`%s`%s" % (before, words, after)
    words = re.sub(r"([\\*_<>\[\]`$])", r"\\\1", words)
    mark = "*" if font == "I" else ""
    return before + mark + words + mark + after


def words_of(arguments):
    """Arguments of a request: words, or texts in double quotes."""
    return [plain(re.sub(r"\\f[A-Z]", "", quoted or word)) for quoted, word in
            re.findall(r'"([^"]*)"|(\S+)', arguments)]


def inline(line):
    """A line of text, or of a request that sets fonts, as Markdown."""
    match = re.match(r"\.(BI|BR|IB|IR|RB|RI|B|I) (.*)", line)
    if not match:
        if line.startswith("."):
            raise ValueError("an unknown request: " + line)
        parts = re.split(r"\\fI(.*?)\\f[RP]", line)
        return "".join(marked(plain(part), "RI"[i % 2]) for i, part in enumerate(parts))
    fonts, arguments = match.groups()
    words = words_of(arguments)
    page = re.fullmatch(r"caterva(-\w+)?", words[0])
    if fonts == "BR" and page and len(words) > 1 and words[1].startswith("(1)"):
        return "[%s(1)](%s.md)%s" % (words[0], words[0], words[1][3:])
    if len(fonts) == 1:
        return marked(" ".join(words), fonts)
    parts = []
    for i, word in enumerate(words):
        font = fonts[i % 2]
        if parts and parts[-1][1] == font:
            parts[-1][0] += word
        else:
            parts.append([word, font])
    return "".join(marked(word, font) for word, font in parts)


def page(text):
    """The Markdown of one man page."""
    out, terms, verbatim = [], [], None
    lines = iter(line for line in text.splitlines() if not line.startswith('.\\"'))

    def add(text):
        """Text of the current paragraph, or of the definition of a term."""
        if not terms:
            out.append(text)
            return
        if not isinstance(terms[-1], list):
            terms.append([])
        terms[-1].append(text)

    def flush():
        if terms:
            body = terms.pop() if isinstance(terms[-1], list) else [""]
            out.append("\n" + "\\\n".join(terms))
            out.append(": " + "\n  ".join(body) + "\n")
            terms.clear()

    for line in lines:
        if verbatim is not None:
            if line == ".fi":
                out.append("```\n%s\n```\n" % "\n".join(verbatim))
                verbatim = None
            else:
                verbatim.append(plain(line))
        elif line.startswith(".TH "):
            out.append("# %s\n" % words_of(line[4:])[0].lower())
        elif line.startswith((".SH ", ".SS ")):
            flush()
            title = plain(line[4:]).strip('"')
            out.append("\n%s %s\n" % ("##" if line[2] == "H" else "###", title.capitalize()))
        elif line == ".PP":
            flush()
            out.append("")
        elif line.startswith(".IP "):
            flush()
            terms.append("**%s**" % line.split()[1])
        elif line == ".TP":
            flush()
            terms.append(inline(next(lines)))
        elif line == ".TQ":
            terms.append(inline(next(lines)))
        elif line == ".br":
            add("\\")
        elif line == ".nf":
            flush()
            out.append("")
            verbatim = []
        else:
            add(inline(line))
    flush()
    text = "\n".join(out)
    return re.sub(r"\n{3,}", "\n\n", text.replace("\n\\\n", "\\\n")) + "\n"


def pages():
    return {path.stem + ".md": page(path.read_text(encoding="utf-8"))
            for path in sorted(PAGES.glob("*.1"))}


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
