#!/usr/bin/env python3
"""The bill of materials of a build, as SPDX 2.3 in JSON: Caterva, and the libraries that it was
built with, with the versions that their headers name.

    sbom.py BUILD_DIR >caterva.spdx.json

The libraries are those that CMakeLists.txt looks for; the least version of C-Blosc2 is that of
scripts/bootstrap. Codecs of C-Blosc2 are listed with the versions that its library names. The
output depends on the build and on SOURCE_DATE_EPOCH only."""

import ctypes
import datetime
import hashlib
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
URL = "https://github.com/caterva/caterva"

# name: variable of CMake's cache, header below it, macros of the version, licence, home, relation.
# PNG, Jansson and zlib are the command line's.
LIBRARIES = {
    "c-blosc2": ("Blosc2_INCLUDE_DIR", "blosc2.h", r'BLOSC2_VERSION_STRING +"([\d.]+)',
                 "BSD-3-Clause", "https://github.com/Blosc/c-blosc2", "DEPENDS_ON"),
    "xxhash": ("XXHASH_INCLUDE_DIR", "xxhash.h", r"XXH_VERSION_(?:MAJOR|MINOR|RELEASE) +(\d+)",
               "BSD-2-Clause", "https://github.com/Cyan4973/xxHash", "CONTAINS"),
    "curl": ("CURL_INCLUDE_DIR", "curl/curlver.h", r'LIBCURL_VERSION +"([\d.]+)', "curl",
             "https://curl.se", "OPTIONAL_DEPENDENCY_OF"),
    "libpng": ("PNG_PNG_INCLUDE_DIR", "png.h", r'PNG_LIBPNG_VER_STRING +"([\d.]+)', "libpng-2.0",
               "http://www.libpng.org/pub/png/libpng.html", "DEPENDS_ON"),
    "jansson": ("JANSSON_INCLUDE_DIR", "jansson.h", r'JANSSON_VERSION +"([\d.]+)', "MIT",
                "https://github.com/akheron/jansson", "DEPENDS_ON"),
    "zlib": ("ZLIB_INCLUDE_DIR", "zlib.h", r'ZLIB_VERSION +"([\d.]+)', "Zlib", "https://zlib.net",
             "DEPENDS_ON"),
}
CODECS = {"blosclz": "BSD-3-Clause AND MIT", "lz4": "BSD-2-Clause", "zlib": "Zlib",
          "zstd": "BSD-3-Clause"}


def cache_of(build):
    text = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.M))


def version_of(header, macros):
    text = header.read_text(encoding="utf-8", errors="replace")
    return ".".join(re.findall(r"#\s*define +" + macros, text)[:3])


def codecs_of(library):
    """Name and version of each codec that this C-Blosc2 holds; empty if it cannot be loaded."""
    try:
        blosc2 = ctypes.CDLL(library)
    except OSError:
        return {}
    found = {}
    for name in CODECS:
        about, version = ctypes.c_char_p(), ctypes.c_char_p()
        if blosc2.blosc2_get_complib_info(name.encode(), ctypes.byref(about),
                                          ctypes.byref(version)) >= 0:
            found[name] = re.match(r"[\w.]+", version.value.decode()).group()
    return found


def package(name, version, license, home, **more):
    return {"name": name, "SPDXID": "SPDXRef-" + re.sub(r"[^\w.-]", "-", name),
            "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "homepage": home,
            "licenseConcluded": license, "licenseDeclared": license, "copyrightText": "NOASSERTION",
            **more}


def bill(build):
    cache = cache_of(build)
    version = cache["CMAKE_PROJECT_VERSION"]
    packages = [package("caterva", version, "BSD-3-Clause", URL, primaryPackagePurpose="LIBRARY",
                        supplier="Organization: Caterva developers",
                        copyrightText="Copyright (c) 2026, the Caterva developers",
                        downloadLocation="git+%s@v%s" % (URL, version))]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-caterva")]
    least = re.search(r"BLOSC2_NEEDED=([\d.]+)", (ROOT / "scripts/bootstrap").read_text()).group(1)
    for name, (variable, header, macros, license, home, relation) in LIBRARIES.items():
        folder = cache.get(variable, "")
        if not folder or folder.endswith("-NOTFOUND"):
            continue  # of a part that this build leaves out
        found = package(name, version_of(Path(folder, header), macros), license, home)
        if name == "c-blosc2":
            found["comment"] = "%s or newer is needed" % least
        packages.append(found)
        ends = ("SPDXRef-caterva", found["SPDXID"])
        first, second = ends[::-1] if relation.endswith("_OF") else ends
        relations.append((first, relation, second))
    for name, codec_version in codecs_of(cache["Blosc2_LIBRARY"]).items():
        packages.append(package("%s in c-blosc2" % name, codec_version, CODECS[name],
                                "https://github.com/Blosc/c-blosc2"))
        relations.append(("SPDXRef-c-blosc2", "CONTAINS", packages[-1]["SPDXID"]))
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                                             datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "caterva-%s" % version,
        "documentNamespace": "%s/spdx/caterva-%s-%s" % (URL, version, digest[:16]),
        "creationInfo": {"created": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Organization: Caterva developers", "Tool: tools/sbom.py"]},
        "packages": packages,
        "relationships": [{"spdxElementId": first, "relationshipType": kind,
                           "relatedSpdxElement": second} for first, kind, second in relations]}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sbom.py BUILD_DIR")
    json.dump(bill(Path(sys.argv[1])), sys.stdout, indent=1)
    print()
