# Plug-ins of the command line, one for each file plugins/<name>.c or folder plugins/<name>: readers
# and writers of formats that need a library of their own. A plug-in is built if its library is found; with
# -DCATERVA_PLUGINS=OFF, and without the shared library, none is.

option(CATERVA_PLUGINS "Build the plug-ins of the command line whose libraries are found" ON)

set(plugin_folder "lib/caterva")
target_compile_definitions(caterva PRIVATE
    "CATERVA_PLUGINS_BESIDE=\"../${plugin_folder}\", \"../${CMAKE_INSTALL_LIBDIR}/caterva\"")
if(NOT CATERVA_PLUGINS OR NOT TARGET caterva_shared) # program and plug-in share one libcaterva
    return()
endif()

function(caterva_plugin name)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/${name}.c"
                                        "${PROJECT_SOURCE_DIR}/plugins/${name}/*.c")
    add_library(plugin_${name} MODULE ${sources})
    set_target_properties(plugin_${name} PROPERTIES
        PREFIX "" SUFFIX .so OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${plugin_folder}")
    target_include_directories(plugin_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cli")
    target_link_libraries(plugin_${name} PRIVATE caterva ${caterva_library} ${ARGN})
    caterva_flags(plugin_${name})
    set_property(GLOBAL APPEND PROPERTY caterva_plugins plugin_${name})
endfunction()

find_package(PkgConfig QUIET)

# HDF5, with its library of dimension scales. Debian has a pkg-config file of the serial build.
if(PKG_CONFIG_FOUND)
    pkg_search_module(HDF5 QUIET hdf5-serial hdf5)
endif()
find_library(HDF5_HL_LIBRARY NAMES hdf5_serial_hl hdf5_hl HINTS ${HDF5_LIBRARY_DIRS})
find_package(ZLIB QUIET)
if(HDF5_FOUND AND HDF5_HL_LIBRARY AND ZLIB_FOUND)
    caterva_plugin(hdf5 "${HDF5_HL_LIBRARY}" ${HDF5_LINK_LIBRARIES} ZLIB::ZLIB Threads::Threads)
    target_include_directories(plugin_hdf5 SYSTEM PRIVATE ${HDF5_INCLUDE_DIRS})
endif()

if(PKG_CONFIG_FOUND)
    pkg_search_module(NETCDF QUIET netcdf)
endif()
if(NETCDF_FOUND)
    caterva_plugin(netcdf ${NETCDF_LINK_LIBRARIES})
    target_include_directories(plugin_netcdf SYSTEM PRIVATE ${NETCDF_INCLUDE_DIRS})
endif()

# TIFF: 4.5 has options of files, among them handlers of errors.
find_package(TIFF 4.5 QUIET)
if(TIFF_FOUND)
    caterva_plugin(tiff TIFF::TIFF m)
endif()
