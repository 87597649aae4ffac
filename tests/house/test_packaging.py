"""Recipes, package metadata and the bill of materials agree with the sources: version, licence,
addresses, options of the build, libraries. scripts/recipes tries the recipes."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("CATERVA_HELPER_DIR", ROOT / "build/release/tests")).parent
VERSION = re.search(r'VERSION_STRING "(.*)"', (ROOT / "include/caterva.h").read_text()).group(1)
PYPROJECT = (ROOT / "pyproject.toml").read_text()
URL = re.search(r'^Homepage = "(.*)"', PYPROJECT, re.M).group(1)
RECIPES = {name: (ROOT / "packaging" / path).read_text() for name, path in {
    "conda": "conda/recipe.yaml", "vcpkg": "vcpkg/caterva/vcpkg.json",
    "vcpkg build": "vcpkg/caterva/portfile.cmake", "homebrew": "homebrew/caterva.rb",
    "conan": "conan/conanfile.py", "conan sources": "conan/conandata.yml"}.items()}
# What each calls the libraries, in the order of scripts/bootstrap.
LIBRARIES = {
    "conda": ("c-blosc2 >=3.3", "xxhash", "libpng", "jansson", "libcurl"),
    "vcpkg": ('"blosc2"', '"xxhash"', '"libpng"', '"jansson"', '"curl"'),
    "homebrew": ('"c-blosc2"', '"xxhash"', '"libpng"', '"jansson"', '"curl"'),
    "conan": ("c-blosc2/[>=3.3", "xxhash/", "libpng/", "jansson/", "libcurl/"),
}


class Recipes(unittest.TestCase):
    def test_the_version(self):
        for name, pattern in {"conda": r'version: "(.*)"', "vcpkg": r'"version": "(.*)"',
                              "homebrew": r"/caterva-([\d.]+)\.tar\.gz",
                              "conan sources": r"/caterva-([\d.]+)\.tar\.gz"}.items():
            self.assertEqual(re.search(pattern, RECIPES[name]).group(1), VERSION, name)
        for page in (ROOT / "man").glob("*.1"):
            self.assertIn(f'"Caterva {VERSION}"', page.read_text().split("\n")[0], page.name)

    def test_licence_and_address(self):
        for name in ("conda", "vcpkg", "homebrew", "conan"):
            self.assertIn("BSD-3-Clause", RECIPES[name], name)
            self.assertIn(URL, RECIPES[name], name)
        for file, words in {"debian/control": "Homepage: " + URL,
                            "debian/copyright": "Source: " + URL,
                            "tools/sbom.py": 'URL = "%s"' % URL}.items():
            self.assertIn(words, (ROOT / file).read_text(), file)
        self.assertRegex(PYPROJECT, r'(?m)^license = "BSD-3-Clause AND ')

    def test_the_libraries(self):
        for name, words in LIBRARIES.items():
            for word in words:
                self.assertIn(word, RECIPES[name], name)

    def test_the_options_of_the_build_exist(self):
        cmake = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt",
                                                      *ROOT.glob("cmake/*.cmake"),
                                                      ROOT / "python/CMakeLists.txt"])
        options = set(re.findall(r"\bCATERVA_[A-Z]+(?:_[A-Z0-9]+)*\b", "".join(RECIPES.values())))
        self.assertGreater(len(options), 1)
        for option in options:
            self.assertRegex(cmake, r"option\(%s\b" % option)

    def test_checksums_are_those_of_a_release(self):
        """Until there is one they are zeros, and scripts/release writes them."""
        self.assertIn("0" * 64, RECIPES["conda"])


class BillOfMaterials(unittest.TestCase):
    def bill(self):
        out = subprocess.run([sys.executable, ROOT / "tools/sbom.py", BUILD], capture_output=True,
                             text=True, check=True, env=dict(os.environ, SOURCE_DATE_EPOCH="86400"))
        return out.stdout

    def test_it_is_complete(self):
        bill = json.loads(self.bill())
        packages = {package["name"]: package for package in bill["packages"]}
        cache = (BUILD / "CMakeCache.txt").read_text()
        expected = {"caterva", "c-blosc2", "xxhash"}
        if "CATERVA_REMOTE:BOOL=ON" in cache and "CURL_INCLUDE_DIR:PATH=/" in cache:
            expected |= {"curl"}
        if "CATERVA_CLI:BOOL=ON" in cache:
            expected |= {"libpng", "jansson", "zlib"}
        self.assertLessEqual(expected, set(packages))
        self.assertEqual(packages["caterva"]["versionInfo"], VERSION)
        for package in packages.values():
            self.assertRegex(package["versionInfo"], r"^\d+\.\d+", package["name"])
        # The version of C-Blosc2 is the one that the program names.
        if (BUILD / "bin/caterva").exists():
            out = subprocess.run([BUILD / "bin/caterva", "--version"], capture_output=True,
                                 text=True).stdout
            self.assertIn("C-Blosc2 " + packages["c-blosc2"]["versionInfo"], out)
            self.assertIn("lz4 in c-blosc2", packages)
        names = {package["SPDXID"] for package in packages.values()} | {"SPDXRef-DOCUMENT"}
        for relation in bill["relationships"]:
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, names)
        related = {relation[end] for relation in bill["relationships"]
                   for end in ("spdxElementId", "relatedSpdxElement")}
        self.assertEqual(related, names)

    def test_it_is_the_same_each_time(self):
        first = self.bill()
        self.assertEqual(first, self.bill())
        self.assertEqual(json.loads(first)["creationInfo"]["created"], "1970-01-02T00:00:00Z")

    def test_every_library_has_its_licence_in_the_wheel(self):
        sys.path.insert(0, str(ROOT / "tools"))
        import sbom
        texts = {path.stem.lower() for path in (ROOT / "python/licenses").glob("*.txt")}
        self.assertLessEqual({name for name in (*sbom.LIBRARIES, *sbom.CODECS)
                              if name not in ("curl", "blosclz")}, texts)  # curl is not contained


if __name__ == "__main__":
    unittest.main()
