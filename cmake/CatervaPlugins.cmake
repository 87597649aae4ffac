# Plug-ins of the command line, one for each file plugins/<name>.c or folder plugins/<name>: readers
# and writers of formats that need a library of their own. A plug-in is built if its library is found; with
# -DCATERVA_PLUGINS=OFF, and without the shared library, none is.

option(CATERVA_PLUGINS "Build the plug-ins of the command line whose libraries are found" ON)

set(plugin_folder "lib/caterva")
if(SKBUILD) # the package contains them; its program contains the whole library
    set(plugin_program python_cli)
    set(plugin_library)
    set(plugin_python "../lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}")
    target_compile_definitions(python_cli PRIVATE
        "CATERVA_PLUGINS_BESIDE=\"${plugin_python}/site-packages/caterva/plugins\", \"${plugin_python}/dist-packages/caterva/plugins\"")
else()
    set(plugin_program caterva)
    set(plugin_library ${caterva_library})
    target_compile_definitions(caterva PRIVATE
        "CATERVA_PLUGINS_BESIDE=\"../${plugin_folder}\", \"../${CMAKE_INSTALL_LIBDIR}/caterva\"")
endif()
if(NOT CATERVA_PLUGINS OR NOT ((SKBUILD AND NOT WIN32) OR TARGET caterva_shared)) # program and plug-in share one libcaterva
    return()
endif()
set_target_properties(${plugin_program} PROPERTIES ENABLE_EXPORTS ON)

function(caterva_plugin name)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/${name}.c"
                                        "${PROJECT_SOURCE_DIR}/plugins/${name}/*.c")
    add_library(plugin_${name} MODULE ${sources})
    set_target_properties(plugin_${name} PROPERTIES
        PREFIX "" SUFFIX .so OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${plugin_folder}")
    target_include_directories(plugin_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cli"
                                                      "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(plugin_${name} PRIVATE ${plugin_program} ${plugin_library} ${ARGN})
    caterva_flags(plugin_${name})
    if(SKBUILD)
        install(TARGETS plugin_${name} LIBRARY DESTINATION caterva/plugins COMPONENT python)
    else()
        set_property(GLOBAL APPEND PROPERTY caterva_plugins plugin_${name})
    endif()
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
    caterva_plugin(netcdf ${NETCDF_LINK_LIBRARIES} ${CMAKE_DL_LIBS})
    target_include_directories(plugin_netcdf SYSTEM PRIVATE ${NETCDF_INCLUDE_DIRS})
endif()

# TIFF: 4.5 has options of files, among them handlers of errors.
find_package(TIFF 4.5 QUIET)
if(TIFF_FOUND)
    caterva_plugin(tiff TIFF::TIFF m)
endif()
