"""Conan 2: the library, and the command line if it is asked for."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir
from conan.tools.gnu import PkgConfigDeps

required_conan_version = ">=2.0"


class Caterva(ConanFile):
    name = "caterva"
    description = "n-dimensional compressed arrays in Blosc2 frames"
    license = "BSD-3-Clause"
    author = "Caterva developers"
    url = "https://github.com/caterva/caterva"
    homepage = "https://github.com/caterva/caterva"
    topics = ("arrays", "blosc2", "compression")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_cli": [True, False],
               "with_remote": [True, False], "with_serve": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_cli": False, "with_remote": True,
                       "with_serve": False, "libmicrohttpd/*:with_https": False}
    implements = ["auto_shared_fpic"]
    languages = "C"

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        self.requires("c-blosc2/[>=3.3 <4]")
        self.requires("xxhash/[>=0.8 <0.9]", headers=True, libs=False, visible=False)
        if self.options.with_remote:  # loaded when a URL is opened
            self.requires("libcurl/[>=7.68 <9]", headers=True, libs=False)
        if self.options.with_cli:
            self.requires("libpng/[>=1.6 <2]", visible=False)
            self.requires("jansson/[>=2.10 <3]", visible=False)
            self.requires("zstd/[>=1.4 <2]", visible=False)
            if self.options.with_serve:
                self.requires("libmicrohttpd/[>=0.9.75 <2]", visible=False)

    def validate(self):
        if self.settings.os == "Windows":
            raise ConanInvalidConfiguration("This recipe was not tried on Windows: there use "
                                            "CMake and mingw-w64, as docs/install.md says")

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.18]")
        if not self.conf.get("tools.gnu:pkg_config", check_type=str):
            self.tool_requires("pkgconf/[>=2.1 <3]")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.variables["BUILD_TESTING"] = False
        toolchain.variables["CATERVA_CLI"] = self.options.with_cli
        toolchain.variables["CATERVA_SERVE"] = self.options.with_serve
        toolchain.variables["CATERVA_REMOTE"] = self.options.with_remote
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()  # by which C-Blosc2 is found

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for folder in ("lib/cmake", "lib/pkgconfig", "share/doc"):
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.libs = ["caterva"]
        self.cpp_info.set_property("cmake_file_name", "Caterva")
        self.cpp_info.set_property("cmake_target_name", "Caterva::caterva")
        self.cpp_info.set_property("pkg_config_name", "caterva")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m", "pthread", "dl"]
