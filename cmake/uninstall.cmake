# Deletes the files that the last `cmake --install` from this build wrote, and then those of
# their folders that are named after Caterva and empty. install_place.txt has the DESTDIR of
# that installation and, from the second line on, its prefix (CatervaInstall.cmake). Nothing is
# deleted unless it is certain which files these are.

cmake_minimum_required(VERSION 3.18)

if(NOT EXISTS install_manifest.txt)
    message(FATAL_ERROR "There is no install_manifest.txt: nothing was installed from this build.")
endif()
if(NOT EXISTS install_place.txt)
    message(FATAL_ERROR "There is no install_place.txt, which has the DESTDIR of the "
                        "installation: install again, then uninstall.")
endif()
file(READ install_place.txt place)
string(FIND "${place}" "\n" end)
string(SUBSTRING "${place}" 0 ${end} destdir)
math(EXPR end "${end} + 1")
string(SUBSTRING "${place}" ${end} -1 prefix)
if(prefix MATCHES "[;\n\r]")
    message(FATAL_ERROR "CMake's list of installed files is not usable, because the prefix "
                        "has a semicolon or a line break: ${prefix}. Delete the files "
                        "yourself.")
endif()
if(DEFINED ENV{DESTDIR} AND NOT "$ENV{DESTDIR}" STREQUAL "${destdir}")
    message(FATAL_ERROR "DESTDIR is '$ENV{DESTDIR}'. It was '${destdir}' when these files were "
                        "installed.")
endif()

# file(STRINGS) would cut lines at letters that are not ASCII. Lists are not cut in brackets.
file(READ install_manifest.txt files)
string(ASCII 1 opening)
string(ASCII 2 closing)
string(REPLACE "[" "${opening}" files "${files}")
string(REPLACE "]" "${closing}" files "${files}")
string(REPLACE "\n" ";" files "${files}")
foreach(action check delete)
    foreach(file IN LISTS files)
        string(REPLACE "${opening}" "[" file "${file}")
        string(REPLACE "${closing}" "]" file "${file}")
        set(path "${destdir}${file}")
        if(action STREQUAL "check")
            if(NOT IS_ABSOLUTE "${file}" OR (IS_DIRECTORY "${path}"
                                             AND NOT IS_SYMLINK "${path}"))
                message(FATAL_ERROR "install_manifest.txt names '${file}', which is no path of "
                                    "a file.")
            endif()
            continue()
        endif()
        if(EXISTS "${path}" OR IS_SYMLINK "${path}")
            message(STATUS "Deleting ${path}")
            file(REMOVE "${path}")
            if(EXISTS "${path}" OR IS_SYMLINK "${path}")
                message(FATAL_ERROR "${path} cannot be deleted.")
            endif()
        endif()
        get_filename_component(folder "${path}" DIRECTORY)
        if(folder MATCHES "/[Cc]aterva$") # rmdir deletes empty folders only
            execute_process(COMMAND rmdir "${folder}" RESULT_VARIABLE ignored ERROR_QUIET)
        endif()
    endforeach()
endforeach()
file(REMOVE install_manifest.txt install_place.txt)
