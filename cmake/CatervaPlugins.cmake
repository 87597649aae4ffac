# Plug-ins of the command line, one for each file plugins/<name>.c: readers and writers of formats
# that need a library of their own. A plug-in is built if its library is found; with
# -DCATERVA_PLUGINS=OFF none is.

option(CATERVA_PLUGINS "Build the plug-ins of the command line whose libraries are found" ON)

set(plugin_folder "lib/caterva")
target_compile_definitions(caterva PRIVATE
    "CATERVA_PLUGINS_BESIDE=\"../${plugin_folder}\", \"../${CMAKE_INSTALL_LIBDIR}/caterva\"")
if(NOT CATERVA_PLUGINS)
    return()
endif()

function(caterva_plugin name)
    add_library(plugin_${name} MODULE "${PROJECT_SOURCE_DIR}/plugins/${name}.c")
    set_target_properties(plugin_${name} PROPERTIES
        PREFIX "" OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${plugin_folder}")
    target_include_directories(plugin_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cli")
    target_link_libraries(plugin_${name} PRIVATE caterva ${caterva_library} ${ARGN})
    caterva_flags(plugin_${name})
endfunction()
