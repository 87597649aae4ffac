"""Packs a wheel of files that were built for another system, with the metadata of pyproject.toml.

usage: pack_wheel.py FOLDER TAG OUT     FOLDER has the wheel's files: caterva/, and scripts/ with
                                        programs; TAG is like cp311-abi3-win_amd64; prints the path

Equal files give equal wheels: times are 1980, or SOURCE_DATE_EPOCH."""

import base64
import hashlib
import os
import sys
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def metadata(project, version):
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}",
             f"Summary: {project['description']}",
             f"Keywords: {','.join(project['keywords'])}",
             *(f"Author: {author['name']}" for author in project["authors"]),
             f"License-Expression: {project['license']}"]
    lines += [f"License-File: {name}" for name in licenses()]
    lines += [f"Classifier: {name}" for name in project["classifiers"]]
    lines += [f"Project-URL: {name}, {url}" for name, url in project["urls"].items()]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    lines += ["Description-Content-Type: text/markdown", "",
              (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def licenses():
    return {"LICENSE": ROOT / "LICENSE",
            **{f"python/licenses/{path.name}": path
               for path in sorted((ROOT / "python/licenses").iterdir())}}


def entry_points(project, windows):
    groups = {"console_scripts": {"caterva": "caterva.__main__:main"}} if windows else {}
    groups |= project["entry-points"]
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in names.items())
                     for group, names in groups.items())


def contents(folder, tag, project, version):
    """Yields the names in the wheel, their bytes, and whether they are programs."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        if name.startswith("scripts/"):
            yield f"caterva-{version}.data/{name}", path.read_bytes(), True
        else:
            yield name, path.read_bytes(), False
    info = f"caterva-{version}.dist-info"
    yield f"{info}/METADATA", metadata(project, version).encode(), False
    yield f"{info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: caterva pack_wheel\n"
                            f"Root-Is-Purelib: false\nTag: {tag}\n").encode(), False
    yield f"{info}/entry_points.txt", entry_points(project, "win" in tag).encode(), False
    for name, path in licenses().items():
        yield f"{info}/licenses/{name}", path.read_bytes(), False


def main():
    folder, tag, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    header = (ROOT / "include/caterva.h").read_text()
    version = header.split('CATERVA_VERSION_STRING "')[1].split('"')[0]
    date = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)))[:6]
    path = out / f"caterva-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, runs=False):
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)

        for name, data, runs in contents(folder, tag, project, version):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, runs)
        name = f"caterva-{version}.dist-info/RECORD"
        add(name, "".join(record) + f"{name},,\n")
    print(path)


if __name__ == "__main__":
    main()
