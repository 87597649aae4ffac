# Toolchain of scripts/test-foreign: builds for another processor, C library or system.
#
#   -DCATERVA_FOREIGN=aarch64|s390x|musl|windows|windows-arm64|macos-arm64|macos-x86_64|wasm,
#                     or a wheel- of scripts/wheel-foreign
#   -DCATERVA_FOREIGN_ROOT=DIR   its libraries, as Debian packages unpack; for macOS, wheels,
#                                WebAssembly and Windows on arm64 also bin/, whose tools call zig
#
# What was built runs under qemu-user where this processor cannot run it, or under wine.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CATERVA_FOREIGN CATERVA_FOREIGN_ROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CATERVA_FOREIGN})
get_filename_component(_foreign "${CATERVA_FOREIGN_ROOT}" DIRECTORY)
set(CMAKE_FIND_ROOT_PATH "${CATERVA_FOREIGN_ROOT}" "${_foreign}/blosc2" "${_foreign}/static")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} "${CATERVA_FOREIGN_ROOT}/usr/lib/pkgconfig") # not this system's
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)

if(CATERVA_FOREIGN STREQUAL "aarch64" OR CATERVA_FOREIGN STREQUAL "s390x")
    set(_triple ${CATERVA_FOREIGN}-linux-gnu)
    set(CMAKE_C_COMPILER ${_triple}-gcc)
    set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CATERVA_FOREIGN} -L /usr/${_triple}
        -E "LD_LIBRARY_PATH=${CATERVA_FOREIGN_ROOT}/usr/lib/${_triple}:${CATERVA_FOREIGN_ROOT}/lib/${_triple}")
elseif(CATERVA_FOREIGN STREQUAL "musl")
    set(_triple x86_64-linux-musl)
    set(CMAKE_SYSTEM_PROCESSOR x86_64)
    set(CMAKE_C_COMPILER musl-gcc)
    # The kernel's headers are not among musl's; nothing of glibc's may be seen.
    set(CMAKE_C_FLAGS_INIT "-isystem ${CATERVA_FOREIGN_ROOT}/kernel")
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
elseif(CATERVA_FOREIGN STREQUAL "windows")
    set(_triple x86_64-w64-mingw32)
    set(CMAKE_SYSTEM_NAME Windows)
    set(CMAKE_SYSTEM_PROCESSOR x86_64)
    set(CMAKE_C_COMPILER ${_triple}-gcc-posix)
    set(CMAKE_RC_COMPILER ${_triple}-windres)
    set(CMAKE_CROSSCOMPILING_EMULATOR env WINEDEBUG=-all "WINEPREFIX=${_foreign}/prefix"
        "WINEPATH=Z:${_foreign}/blosc2/bin" /usr/lib/wine/wine64)
    # Programs need no DLLs of the compiler's.
    set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
    set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
    return()
elseif(CATERVA_FOREIGN STREQUAL "windows-arm64")
    set(CMAKE_SYSTEM_NAME Windows)
    set(CMAKE_SYSTEM_PROCESSOR arm64)
    set(CMAKE_C_COMPILER "${CATERVA_FOREIGN_ROOT}/bin/cc")
    set(CMAKE_RC_COMPILER "${CATERVA_FOREIGN_ROOT}/bin/rc")
    set(CMAKE_AR "${CATERVA_FOREIGN_ROOT}/bin/ar" CACHE FILEPATH "")
    set(CMAKE_RANLIB "${CATERVA_FOREIGN_ROOT}/bin/ranlib" CACHE FILEPATH "")
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
    return()
elseif(CATERVA_FOREIGN MATCHES "^macos-(arm64|x86_64)$")
    set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
    set(CMAKE_C_COMPILER "${CATERVA_FOREIGN_ROOT}/bin/cc")
    set(CMAKE_AR "${CATERVA_FOREIGN_ROOT}/bin/ar" CACHE FILEPATH "")
    set(CMAKE_RANLIB "${CATERVA_FOREIGN_ROOT}/bin/ranlib" CACHE FILEPATH "")
    file(GLOB _llvm /usr/lib/llvm-*/bin)
    find_program(CMAKE_INSTALL_NAME_TOOL llvm-install-name-tool PATHS ${_llvm})
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
    return()
elseif(CATERVA_FOREIGN MATCHES "^wheel-.*(aarch64|x86_64)$")
    set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
    set(CMAKE_C_COMPILER "${CATERVA_FOREIGN_ROOT}/bin/cc")
    set(CMAKE_AR "${CATERVA_FOREIGN_ROOT}/bin/ar" CACHE FILEPATH "")
    set(CMAKE_RANLIB "${CATERVA_FOREIGN_ROOT}/bin/ranlib" CACHE FILEPATH "")
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
    return()
elseif(CATERVA_FOREIGN STREQUAL "wasm")
    set(CMAKE_SYSTEM_NAME Generic) # which has no folders and names of libraries
    set(CMAKE_SYSTEM_PROCESSOR wasm32)
    set(CMAKE_PREFIX_PATH "${CATERVA_FOREIGN_ROOT}/usr")
    set(CMAKE_FIND_LIBRARY_PREFIXES lib)
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    set(CMAKE_C_COMPILER "${CATERVA_FOREIGN_ROOT}/bin/cc")
    set(CMAKE_AR "${CATERVA_FOREIGN_ROOT}/bin/ar" CACHE FILEPATH "")
    set(CMAKE_RANLIB "${CATERVA_FOREIGN_ROOT}/bin/ranlib" CACHE FILEPATH "")
    set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
    set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
    return()
else()
    message(FATAL_ERROR "CATERVA_FOREIGN is '${CATERVA_FOREIGN}'; it must be aarch64, s390x, "
                        "musl, windows, windows-arm64, macos-arm64, macos-x86_64 or wasm.")
endif()

set(CMAKE_LIBRARY_PATH /usr/lib/${_triple} /usr/lib)
# Its libraries lie where neither the linker nor the loader looks by itself.
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-Wl,-rpath-link,${CATERVA_FOREIGN_ROOT}/usr/lib/${_triple}:${CATERVA_FOREIGN_ROOT}/lib/${_triple}")
set(CMAKE_BUILD_RPATH "${CATERVA_FOREIGN_ROOT}/usr/lib/${_triple};${CATERVA_FOREIGN_ROOT}/usr/lib")
