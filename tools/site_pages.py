#!/usr/bin/env python3
"""Puts the pages of the site together: the manual, the examples, and what is generated.

    site_pages.py FOLDER    writes the sources that Sphinx reads; needs the built Python package

Links between pages of the repository become links between pages of the site. A link to another
file of the repository becomes a download. Names of C functions and of the Python package become
links to their entries in the references."""

import base64
import json
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import manual_pages  # noqa: E402
import python_reference  # noqa: E402
import reference  # noqa: E402
import results  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"(^```.*?^```$)", re.S | re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(r"(?<!\[)`(caterva_\w+)(\(\))?`(?!\])")
PYTHON_NAME = re.compile(r"(?<!\[)`(caterva\.[A-Za-z]\w*(?:\.[a-z]\w*)?)`(?!\])")

CONTENTS = {
    "Begin": ["install", "first-steps", "python", "python-recipes", "notebook", "xarray", "c",
              "examples", "command-line", "cookbook"],
    "Understand": ["concepts", "partitions", "performance", "reliability", "limits"],
    "Trees, writers, servers": ["trees", "many-writers", "remote"],
    "Other libraries and formats": ["converting", "migrating", "compared", "format", "zarr",
                                    "conventions"],
    "Reference": ["python/index", "reference/index", "man/index"],
    "Project": ["changelog", "contributing", "maintaining", "packaging", "security", "bench/index"],
}


def site_pages():
    """Where each page of the repository is in the site."""
    found = {path: path.name for path in ROOT.glob("docs/*.md")}
    found[ROOT / "docs/notebook.ipynb"] = "notebook.md"
    for name in ("CHANGELOG", "CONTRIBUTING", "MAINTAINING", "SECURITY"):
        found[ROOT / (name + ".md")] = name.lower() + ".md"
    found[ROOT / "packaging/README.md"] = "packaging.md"
    for path in ROOT.glob("examples/*/README.md"):
        found[path] = found[path.parent] = "examples/%s.md" % path.parent.name
    for path in ROOT.glob("bench/**/*.md"):
        inside = path.relative_to(ROOT).as_posix().replace("README", "index")
        found[path] = found[path.parent] = inside
    for header in reference.HEADERS:
        found[header] = "reference/%s.md" % header.stem
    found[ROOT / "README.md"] = "index.md"
    return found


PAGES = site_pages()
ENTRIES = {name for page in reference.pages().values()
           for name in re.findall(r"^\((caterva_\w+)\)=$", page, re.M)}


LISTS = {
    "examples.md": sorted("examples/%s" % p.name for p in ROOT.glob("examples/*")),
    "bench/index.md": ["results/index", "rivals/index"],
    "bench/results/index.md": [*(name[:-3] for name in results.pages()), "remote"],
}


def toctree(names, *options):
    return "```{toctree}\n%s\n%s\n```\n" % ("\n".join(":%s" % o for o in options), "\n".join(names))


def relative(target, page):
    return "../" * page.count("/") + target


def linked(text, source, page, folder):
    """A page's text with links of the site; `source` is its file, `page` its name in the site."""
    def link(match):
        path, hash_sign, anchor = match.group(1).partition("#")
        if "://" in path or not path or path.startswith("mailto:"):
            return match.group()
        target = (source.parent / path).resolve()
        if target in PAGES:
            return "](%s%s%s)" % (relative(PAGES[target], page), hash_sign, anchor)
        inside = target.relative_to(ROOT).as_posix()
        if inside.startswith("docs/"):
            return match.group()  # a picture
        if target.is_dir():
            raise ValueError("%s links to a folder: %s" % (source, path))
        (folder / "files" / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, folder / "files" / inside)
        return "](%s)" % relative("files/" + inside, page)

    def python_name(match):
        known = python_reference.is_documented(match.group(1))
        return "{py:obj}" + match.group() if known else match.group()

    def name(match):
        return "[%s](#%s)" % (match.group(), match.group(1)) if match.group(1) in ENTRIES else match.group()

    def lines_linked(part):
        return "\n".join(line if line.startswith("#") else
                         PYTHON_NAME.sub(python_name, NAME.sub(name, line))
                         for line in LINK.sub(link, part).split("\n"))

    parts = FENCE.split(text)
    parts[::2] = [lines_linked(part) for part in parts[::2]]
    return "".join(parts)


def notebook(path, folder):
    """A notebook as Markdown, with what its cells gave."""
    out = []
    for n, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source)
            continue
        out.append("```python\n%s\n```" % source)
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = "notebook-%d.png" % n
                (folder / name).write_bytes(base64.b64decode(data["image/png"]))
                out.append("![](%s)" % name)
            elif "text/html" in data:
                out.append("```{raw} html\n%s\n```" % "".join(data["text/html"]))
            else:
                text = output.get("text") or data["text/plain"]
                out.append("```text\n%s\n```" % "".join(text).rstrip())
    return "\n\n".join(out) + "\n"


def example(path):
    """The page of an example, with its program."""
    title = path.parent.name[3:].replace("-", " ").capitalize()
    out = ["# %s\n\n%s" % (title, path.read_text(encoding="utf-8"))]
    for program in sorted([*path.parent.glob("*.[ch]"), path.parent / "CMakeLists.txt"]):
        language = "c" if program.suffix in (".c", ".h") else "cmake"
        out.append("## %s\n\n```%s\n%s```\n" % (program.name, language, program.read_text(encoding="utf-8")))
    return "\n".join(out)


def group(folder, title, texts):
    """A folder of generated pages with an index."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = [Path(name).stem for name in texts]
    (folder / "index.md").write_text("# %s\n\n%s" % (title, toctree(names, "maxdepth: 1")), encoding="utf-8")


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = Path(arguments[0]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(ROOT / "docs/pictures", folder / "pictures")
    for source, page in PAGES.items():
        if source.is_dir() or source.suffix == ".h" or source == ROOT / "README.md":
            continue
        if source.suffix == ".ipynb":
            text = notebook(source, folder)
        else:
            text = example(source) if page.startswith("examples/") else source.read_text(encoding="utf-8")
        if page == "index.md":
            text += "\n" + "\n".join(toctree(names, "hidden:", "caption: " + caption)
                                     for caption, names in CONTENTS.items())
        elif page in LISTS:
            text += "\n" + toctree(LISTS[page], "hidden:")
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(linked(text, source, page, folder), encoding="utf-8")
    for name, text in results.pages().items():
        (folder / "bench/results" / name).write_text(text, encoding="utf-8")
    group(folder / "reference", "Reference of the C library", reference.pages())
    group(folder / "man", "Man pages", manual_pages.pages())
    (folder / "python").mkdir()
    for name, text in python_reference.pages().items():
        (folder / "python" / (name + ".rst")).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
