# caterva.wasm: the readers of the library, and what wasm/caterva.mjs calls. It imports a clock,
# random bytes, and the reads of the host's stores.

add_executable(caterva_wasm "${PROJECT_SOURCE_DIR}/wasm/host.c")
set_target_properties(caterva_wasm PROPERTIES OUTPUT_NAME caterva SUFFIX .wasm)
target_link_libraries(caterva_wasm PRIVATE caterva_static Blosc2::blosc2)
foreach(codec zstd lz4 z zfp) # those of a static C-Blosc2
    find_library(CODEC_${codec} ${codec})
    if(CODEC_${codec})
        target_link_libraries(caterva_wasm PRIVATE "${CODEC_${codec}}")
    endif()
endforeach()
target_link_options(caterva_wasm PRIVATE -mexec-model=reactor -Wl,--strip-all
    -lwasi-emulated-mman -lwasi-emulated-process-clocks)
caterva_flags(caterva_wasm)
