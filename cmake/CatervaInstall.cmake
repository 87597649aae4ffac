# What `cmake --install` puts where, and how others find it.
#
# The installed library must find its C-Blosc2 again:
#   system, root  where it is; by rpath when the loader does not look there
#   bootstrap     build/deps may be gone tomorrow, so a private copy goes to
#                 LIBDIR/caterva, where no other program looks; a package that
#                 must stand alone asks for that with CATERVA_PRIVATE_BLOSC2

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Caterva")
set(private_dir "${CMAKE_INSTALL_LIBDIR}/caterva")
set(origin "$ORIGIN")
if(APPLE)
    set(origin "@loader_path")
endif()

# ---- C-Blosc2 ----------------------------------------------------------------

# For users of the static library: where C-Blosc2 is (CMake), what to link
# (pkg-config). An own libblosc2.a is self-contained but for the system's.
set(pc_public "")
set(pc_private ".private")
set(pc_requires "")
set(pc_libs "-lm -pthread")
set(library_rpath "")
set(config_blosc2 "${Blosc2_LIBRARY}")
set(licences XXHASH) # of what the installed files contain
set(private_blosc2 "${CATERVA_PRIVATE_BLOSC2}")
if(Blosc2_ORIGIN STREQUAL "bootstrap")
    set(private_blosc2 ON)
endif()
if(NOT private_blosc2
   AND NOT Blosc2_LIBRARY_DIR IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    set(library_rpath "${Blosc2_LIBRARY_DIR}")
endif()
if(NOT private_blosc2 AND Blosc2_ORIGIN STREQUAL "system")
    set(pc_requires "blosc2 >= 3.3")
    set(config_blosc2 "") # pkg-config knows it where the library is used, too
elseif(NOT private_blosc2)
    set(blosc2_dir "${Blosc2_LIBRARY_DIR}")
    set(pc_libs "-L${blosc2_dir} -Wl,-rpath,${blosc2_dir} -lblosc2 -ldl -lm -pthread")
else()
    set(library_rpath "${origin}/caterva")
    set(config_blosc2 "\${PACKAGE_PREFIX_DIR}/${private_dir}/libblosc2.a")
    set(pc_libs "-L\${libdir}/caterva -lblosc2 -ldl -lm -pthread")
    # Under the name that the loader asks for; not as libblosc2.so, which a
    # linker would prefer to the archive.
    file(GLOB blosc2_runtime "${Blosc2_LIBRARY_DIR}/libblosc2.so.[0-9]*"
                             "${Blosc2_LIBRARY_DIR}/libblosc2.[0-9]*.dylib")
    if(TARGET caterva_shared OR TARGET caterva)
        install(FILES ${blosc2_runtime} DESTINATION "${private_dir}")
    endif()
    if(TARGET caterva_static)
        install(FILES "${Blosc2_LIBRARY_DIR}/libblosc2.a" DESTINATION "${private_dir}")
    endif()
    list(APPEND licences BITSHUFFLE C-BLOSC2 FASTLZ LZ4 ZFP ZLIB ZSTD)
endif()
foreach(name IN LISTS licences)
    install(FILES "${PROJECT_SOURCE_DIR}/python/licenses/${name}.txt"
            DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME "LICENSE.${name}.txt")
endforeach()

# ---- Files -------------------------------------------------------------------

file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
if(TARGET caterva_shared)
    set_target_properties(caterva_shared PROPERTIES INSTALL_RPATH "${library_rpath}")
    install(TARGETS caterva_shared EXPORT CatervaTargets
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(EXPORT CatervaTargets NAMESPACE Caterva:: DESTINATION "${package_dir}")
else() # what links the static library needs all that it needs
    set(pc_public " ${pc_libs}")
    set(pc_libs "")
    set(pc_private "")
endif()
string(REPLACE "${origin}" "${origin}/${bin_to_lib}" cli_rpath "${library_rpath}")
if(TARGET caterva_shared)
    list(PREPEND cli_rpath "${origin}/${bin_to_lib}")
endif()
if(TARGET caterva_static)
    install(TARGETS caterva_static EXPORT CatervaStaticTargets
            ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(EXPORT CatervaStaticTargets NAMESPACE Caterva:: DESTINATION "${package_dir}")
endif()
if(TARGET caterva)
    set_target_properties(caterva PROPERTIES INSTALL_RPATH "${cli_rpath}")
    install(TARGETS caterva RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
get_property(plugins GLOBAL PROPERTY caterva_plugins)
foreach(plugin IN LISTS plugins)
    set_target_properties(${plugin} PROPERTIES INSTALL_RPATH "${origin}/..")
    install(TARGETS ${plugin} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/caterva")
endforeach()

file(GLOB public_headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/*.h")
install(FILES ${public_headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
file(GLOB man_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.1")
if(TARGET caterva AND man_pages)
    install(FILES ${man_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()

# Completions are printed by the program, which a cross build cannot run without an emulator.
if(TARGET caterva AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(completions "${PROJECT_BINARY_DIR}/completions")
    file(MAKE_DIRECTORY "${completions}")
    foreach(shell bash zsh fish)
        add_custom_command(OUTPUT "${completions}/${shell}" DEPENDS caterva VERBATIM
                           COMMAND caterva completion ${shell} > "${completions}/${shell}")
    endforeach()
    add_custom_target(caterva_completions ALL
        DEPENDS "${completions}/bash" "${completions}/zsh" "${completions}/fish")
    set(share "${CMAKE_INSTALL_DATADIR}")
    install(FILES "${completions}/bash" DESTINATION "${share}/bash-completion/completions"
            RENAME caterva)
    install(FILES "${completions}/zsh" DESTINATION "${share}/zsh/site-functions" RENAME _caterva)
    install(FILES "${completions}/fish" DESTINATION "${share}/fish/vendor_completions.d"
            RENAME caterva.fish)
endif()

# `cmake --build BUILD --target uninstall` deletes what the last installation from here wrote.
if(NOT TARGET uninstall)
    add_custom_target(uninstall
        COMMAND "${CMAKE_COMMAND}" -P "${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake"
        WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" VERBATIM)
endif()

# ---- pkg-config --------------------------------------------------------------

# Relocatable: the prefix is found from where the .pc file lies.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
                                "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
file(RELATIVE_PATH pc_libdir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH pc_includedir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file(cmake/caterva.pc.in caterva.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/caterva.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# ---- find_package(Caterva) ---------------------------------------------------

configure_package_config_file(cmake/CatervaConfig.cmake.in CatervaConfig.cmake
    INSTALL_DESTINATION "${package_dir}"
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/CatervaConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion) # 0.x promises no more
install(FILES "${PROJECT_BINARY_DIR}/CatervaConfig.cmake"
              "${PROJECT_BINARY_DIR}/CatervaConfigVersion.cmake"
        DESTINATION "${package_dir}")

# For uninstall.cmake. It is last, just before CMake writes the list of files: a failed
# installation leaves both as they were.
install(CODE [=[
if(NOT CMAKE_INSTALL_COMPONENT)
    file(WRITE "${CMAKE_CURRENT_LIST_DIR}/install_place.txt"
         "$ENV{DESTDIR}\n${CMAKE_INSTALL_PREFIX}")
endif()
]=])
