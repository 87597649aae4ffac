# Finds C-Blosc2 and makes the imported target Blosc2::blosc2. In this order:
#
#   1. -DBlosc2_ROOT=PREFIX    taken as it is, nothing else is looked at
#   2. the system's            where pkg-config finds one that is new enough
#   3. build/deps/blosc2       where scripts/bootstrap unpacks the binaries that
#                              python-blosc2 ships
#
# Sets Blosc2_FOUND, Blosc2_VERSION, Blosc2_LIBRARY, Blosc2_LIBRARY_DIR,
# Blosc2_INCLUDE_DIR and Blosc2_ORIGIN: root, system or bootstrap. Stops with a
# sentence when there is none, or only one that is too old.

set(Blosc2_ADVICE "Run scripts/bootstrap, which fetches one into build/deps, \
or configure with -DBlosc2_ROOT=PREFIX, where PREFIX/include/blosc2.h is.")

# Looks in the given folders and nowhere else.
macro(_blosc2_look_in)
    unset(Blosc2_INCLUDE_DIR CACHE)
    unset(Blosc2_LIBRARY CACHE)
    find_path(Blosc2_INCLUDE_DIR blosc2.h PATHS ${ARGN} PATH_SUFFIXES include NO_DEFAULT_PATH)
    find_library(Blosc2_LIBRARY blosc2 PATHS ${ARGN}
                 PATH_SUFFIXES lib lib64 "lib/${CMAKE_LIBRARY_ARCHITECTURE}" NO_DEFAULT_PATH)
endmacro()

get_filename_component(_blosc2_bootstrapped "${CMAKE_CURRENT_LIST_DIR}/../build/deps/blosc2"
                       ABSOLUTE)
set(Blosc2_ORIGIN "")
if(Blosc2_ROOT)
    set(Blosc2_ORIGIN root)
    _blosc2_look_in("${Blosc2_ROOT}")
    if(NOT Blosc2_INCLUDE_DIR OR NOT Blosc2_LIBRARY)
        message(FATAL_ERROR "There is no C-Blosc2 in Blosc2_ROOT=${Blosc2_ROOT}: "
                            "it has no include/blosc2.h or no lib/libblosc2. ${Blosc2_ADVICE}")
    endif()
else()
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(_blosc2_pc QUIET "blosc2>=${Blosc2_FIND_VERSION}")
    endif()
    if(_blosc2_pc_FOUND)
        set(Blosc2_ORIGIN system)
        _blosc2_look_in("${_blosc2_pc_INCLUDEDIR}" "${_blosc2_pc_LIBDIR}"
                        "${_blosc2_pc_PREFIX}")
    elseif(EXISTS "${_blosc2_bootstrapped}/include/blosc2.h")
        set(Blosc2_ORIGIN bootstrap)
        _blosc2_look_in("${_blosc2_bootstrapped}")
    endif()
endif()

if(NOT Blosc2_INCLUDE_DIR OR NOT Blosc2_LIBRARY)
    message(FATAL_ERROR "C-Blosc2 ${Blosc2_FIND_VERSION} or newer is missing. ${Blosc2_ADVICE}")
endif()

file(STRINGS "${Blosc2_INCLUDE_DIR}/blosc2.h" _blosc2_line
     REGEX "^#define BLOSC2_VERSION_STRING +\"")
string(REGEX REPLACE ".*\"([0-9]+\\.[0-9]+\\.[0-9]+).*" "\\1" Blosc2_VERSION "${_blosc2_line}")
if(Blosc2_VERSION VERSION_LESS Blosc2_FIND_VERSION)
    message(FATAL_ERROR "C-Blosc2 in ${Blosc2_INCLUDE_DIR} is version ${Blosc2_VERSION}, "
                        "Caterva needs ${Blosc2_FIND_VERSION} or newer. ${Blosc2_ADVICE}")
endif()

get_filename_component(Blosc2_LIBRARY_DIR "${Blosc2_LIBRARY}" DIRECTORY)
set(Blosc2_FOUND TRUE)
mark_as_advanced(Blosc2_INCLUDE_DIR Blosc2_LIBRARY)
if(NOT TARGET Blosc2::blosc2)
    add_library(Blosc2::blosc2 UNKNOWN IMPORTED)
    set_target_properties(Blosc2::blosc2 PROPERTIES
        IMPORTED_LOCATION "${Blosc2_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${Blosc2_INCLUDE_DIR}")
    if(Blosc2_ORIGIN STREQUAL "system" AND Blosc2_LIBRARY MATCHES "\\.a$")
        set_target_properties(Blosc2::blosc2 PROPERTIES
            INTERFACE_LINK_LIBRARIES "${_blosc2_pc_STATIC_LDFLAGS}") # its codecs
    endif()
    message(STATUS "C-Blosc2 ${Blosc2_VERSION} (${Blosc2_ORIGIN}): ${Blosc2_LIBRARY}")
endif()
