# Where `pip install .` takes C-Blosc2 from: what scripts/bootstrap unpacked, else what the
# python-blosc2 of the build's environment has. Both hold the static library, which the
# extension wants. -DBlosc2_ROOT= and the system's remain for where neither is there.

if(NOT Blosc2_ROOT AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/../build/deps/blosc2/include/blosc2.h")
    get_filename_component(Blosc2_ROOT "${CMAKE_CURRENT_LIST_DIR}/../build/deps/blosc2" ABSOLUTE)
endif()
if(NOT Blosc2_ROOT)
    find_package(Python QUIET COMPONENTS Interpreter)
    execute_process(
        COMMAND "${Python_EXECUTABLE}" -c
                "import importlib.util as u; print(u.find_spec('blosc2').submodule_search_locations[0])"
        OUTPUT_VARIABLE blosc2_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS "${blosc2_of_python}/include/blosc2.h")
        set(Blosc2_ROOT "${blosc2_of_python}")
    endif()
endif()
