# How everything in this tree is compiled.

# Sanitizers of the `asan`, `tsan` and `fuzz` presets: the first report ends the
# program. The last one is Clang's: coverage for libFuzzer, whose main() only the
# targets of fuzz/ link.
function(caterva_sanitize target)
    if(CATERVA_SANITIZE STREQUAL "address")
        set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    elseif(CATERVA_SANITIZE STREQUAL "thread")
        set(flags -fsanitize=thread -fno-omit-frame-pointer)
    elseif(CATERVA_SANITIZE STREQUAL "fuzzer")
        set(flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
                  -fno-omit-frame-pointer)
    elseif(CATERVA_SANITIZE STREQUAL "")
        return()
    else()
        message(FATAL_ERROR "CATERVA_SANITIZE is '${CATERVA_SANITIZE}'; "
                            "it must be empty, address, thread or fuzzer.")
    endif()
    target_compile_options(${target} PRIVATE ${flags})
    # A static library hands the flag on, or its users would not link.
    target_link_options(${target} PUBLIC ${flags})
endfunction()

function(caterva_flags target)
    # Positions in files have 64 bits, also where addresses have 32.
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE _FILE_OFFSET_BITS=64)
    if(WIN32) # 10 with POSIX semantics of names; printf as in C11
        target_compile_definitions(${target} PRIVATE _WIN32_WINNT=0x0A00 NTDDI_VERSION=0x0A000006
                                                     __USE_MINGW_ANSI_STDIO=1)
    endif()
    if(APPLE) # its name of POSIX's member of struct stat
        target_compile_definitions(${target} PRIVATE st_mtim=st_mtimespec)
    endif()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    if(CATERVA_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # GCC loses track of initialisations among the sanitizer's calls.
        target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    if(MINGW) # its isnan converts in branches that are not taken
        target_compile_options(${target} PRIVATE -Wno-float-conversion)
    endif()
    if(MINGW AND CMAKE_C_COMPILER_ID STREQUAL "GNU") # which cannot follow its locks
        target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    if(CATERVA_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
    caterva_sanitize(${target})
endfunction()
