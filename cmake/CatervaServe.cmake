# `caterva serve`: its HTTP server, if libmicrohttpd is there, and its viewer, cli/server/viewer/, as
# a C file. The viewer is bundled by esbuild if scripts/bootstrap has installed its packages in
# build/viewer (npm, from package-lock.json); nothing is downloaded here. Without these the command
# says what is missing.

option(CATERVA_SERVE "caterva serve, if libmicrohttpd is found" ON)

# `wanted` OFF: a program that is to need no other libraries.
function(caterva_add_serve target wanted)
    if(NOT CATERVA_SERVE)
        set(wanted OFF)
    endif()
    find_path(MICROHTTPD_INCLUDE_DIR microhttpd.h)
    find_library(MICROHTTPD_LIBRARY microhttpd)
    set(server http_none)
    if(wanted AND MICROHTTPD_INCLUDE_DIR AND MICROHTTPD_LIBRARY)
        set(server http)
        target_include_directories(${target} SYSTEM PRIVATE "${MICROHTTPD_INCLUDE_DIR}")
        target_link_libraries(${target} PRIVATE "${MICROHTTPD_LIBRARY}" $<$<BOOL:${WIN32}>:ws2_32>)
    elseif(wanted)
        message(STATUS "libmicrohttpd (microhttpd.h) is missing: caterva serve will say so")
    endif()
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cli/server/${server}.c")

    set(folder "${PROJECT_SOURCE_DIR}/cli/server/viewer")
    set(packages "${PROJECT_SOURCE_DIR}/build/viewer/node_modules")
    set(out "${CMAKE_CURRENT_BINARY_DIR}/viewer_assets.c")
    find_program(NODE_PROGRAM node)
    if(wanted AND NODE_PROGRAM AND EXISTS "${packages}/.package-lock.json")
        file(GLOB sources CONFIGURE_DEPENDS "${folder}/*")
        add_custom_command(OUTPUT "${out}"
            COMMAND "${NODE_PROGRAM}" "${folder}/bundle.mjs" "${packages}" "${out}"
            DEPENDS ${sources} "${packages}/.package-lock.json"
            COMMENT "Bundling the viewer" VERBATIM)
    else()
        if(wanted)
            message(STATUS "Node or the viewer's packages are missing: caterva serve has no viewer")
        endif()
        file(WRITE "${out}.new" "#include \"server/viewer.h\"\n\n"
            "const viewer_asset viewer_assets[] = {{0}};\nconst size_t viewer_n_assets = 0;\n")
        configure_file("${out}.new" "${out}" COPYONLY)
    endif()
    target_sources(${target} PRIVATE "${out}")
endfunction()
