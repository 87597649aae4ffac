# The viewer of `caterva serve`, cli/server/viewer/, as a C file. It is bundled by esbuild if
# scripts/bootstrap has installed its packages in build/viewer (with npm, from package-lock.json);
# otherwise the list of assets is empty, and the command says so.

function(caterva_add_viewer target)
    set(folder "${PROJECT_SOURCE_DIR}/cli/server/viewer")
    set(packages "${PROJECT_SOURCE_DIR}/build/viewer/node_modules")
    set(out "${PROJECT_BINARY_DIR}/viewer_assets.c")
    find_program(NODE_PROGRAM node)
    if(NODE_PROGRAM AND EXISTS "${packages}/esbuild/bin/esbuild")
        file(GLOB sources CONFIGURE_DEPENDS "${folder}/*")
        add_custom_command(OUTPUT "${out}"
            COMMAND "${NODE_PROGRAM}" "${folder}/bundle.mjs" "${packages}" "${out}"
            DEPENDS ${sources} "${packages}/.package-lock.json"
            COMMENT "Bundling the viewer" VERBATIM)
    else()
        message(STATUS "Without Node and the packages of the viewer: serve has none")
        file(WRITE "${out}.new" "#include \"server/viewer.h\"\n\n"
            "const viewer_asset viewer_assets[] = {{0}};\nconst size_t viewer_n_assets = 0;\n")
        configure_file("${out}.new" "${out}" COPYONLY)
    endif()
    target_sources(${target} PRIVATE "${out}")
endfunction()
