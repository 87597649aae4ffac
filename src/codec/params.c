/* Room: codec. Makes libblosc2's parameters for a spec. */
#include "codec/params.h"
#include "base/thread.h"

#include <string.h>

void cv_codec_init(void)
{
    static cv_once once = CV_ONCE_INIT;
    cv_once_run(&once, blosc2_init);
}

blosc2_cparams cv_codec_cparams(const cv_codec_spec *spec)
{
    blosc2_cparams params = BLOSC2_CPARAMS_DEFAULTS;
    params.compcode = (uint8_t)spec->codec;
    params.compcode_meta = (uint8_t)spec->codec_meta;
    params.clevel = (uint8_t)spec->level;
    params.use_dict = spec->use_dict && cv_codec_makes_dict(spec->codec);
    params.typesize = spec->item_size;
    params.blocksize = spec->block_bytes;
    params.splitmode = spec->split_mode;
    params.nthreads = 1;
    memcpy(params.filters, spec->filters, CV_CODEC_FILTERS);
    memcpy(params.filters_meta, spec->filters_meta, CV_CODEC_FILTERS);
    return params;
}

cv_status cv_codec_prepare(const cv_codec_spec *spec, blosc2_schunk **geometry, cv_error *err)
{
    *geometry = NULL;
    cv_codec_init();
    if (!cv_codec_needs_geometry(spec)) return CV_OK;
    blosc2_cparams cparams = cv_codec_cparams(spec);
    blosc2_storage storage = {.cparams = &cparams};
    blosc2_schunk *schunk = blosc2_schunk_new(&storage);
    if (!schunk) return cv_fail_memory(err, sizeof *schunk, "a codec's geometry");
    /* blosc2_meta_add copies the content, although its parameter is not const. */
    uint8_t *content = (uint8_t *)spec->geometry;
    if (blosc2_meta_add(schunk, "b2nd", content, spec->geometry_size) < 0) {
        blosc2_schunk_free(schunk);
        return cv_fail_memory(err, (size_t)spec->geometry_size, "a codec's geometry");
    }
    *geometry = schunk;
    return CV_OK;
}
