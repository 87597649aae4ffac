# Wings that a build may leave out, by -DCATERVA_REMOTE=OFF and the like. Their public functions
# remain: each returns CATERVA_EUNSUPPORTED and says which option left it out. They are made here
# from the wing's header, so that nothing has to be declared twice.

option(CATERVA_REMOTE "Read URLs (needs libcurl's header; libcurl itself is loaded at run time)" ON)
option(CATERVA_TREES "Trees of arrays: directories and archives" ON)
option(CATERVA_JOBS "Jobs of many writers" ON)

# libcurl is not linked: the library, and a wheel of it, load without it.
find_path(CURL_INCLUDE_DIR curl/curl.h)
if(CATERVA_REMOTE AND NOT CURL_INCLUDE_DIR)
    message(STATUS "curl/curl.h (libcurl4-openssl-dev) is missing: URLs are not read")
    set(CATERVA_REMOTE OFF)
endif()

# Writes `file`: the functions of `header` as they are in a build with `option` OFF.
function(caterva_write_left_out option header file)
    file(READ "${PROJECT_SOURCE_DIR}/include/${header}" text)
    string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
    string(REGEX MATCHALL "CATERVA_API [^;]*\\)\n*;" functions "${text}")
    set(code "/* Made by cmake/CatervaWings.cmake from ${header}. */\n#include \"array/wings.h\"\n"
             "#include <${header}>\n#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n")
    string(REGEX REPLACE "\\\\?;" ";" functions "${functions}")
    foreach(function IN LISTS functions)
        if(function MATCHES "^CATERVA_API caterva_status")
            list(APPEND code "${function}\n{\n    return cv_check_built(NULL, \"${option}\", err)@\n}\n")
        elseif(function)
            list(APPEND code "${function}\n{\n}\n")
        endif()
    endforeach()
    string(REPLACE ";" "" code "${code}")
    string(REPLACE "@" ";" code "${code}")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${code}" @ONLY)
endfunction()

# Takes the wing `room` out of the list `sources` unless its option is ON.
macro(caterva_wing option room header sources)
    if(${option})
        set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/wings.c" APPEND PROPERTY
            COMPILE_DEFINITIONS ${option})
    else()
        list(FILTER ${sources} EXCLUDE REGEX "/src/${room}/")
        caterva_write_left_out(${option} ${header} "${PROJECT_BINARY_DIR}/left_out_${room}.c")
        list(APPEND ${sources} "${PROJECT_BINARY_DIR}/left_out_${room}.c")
    endif()
endmacro()
