/* Test support: random compression settings and contents. */
#include "pipelines.h"

#include <string.h>

pipeline random_pipeline(rng *r, int32_t item_size)
{
    static const int codecs[] = {CATERVA_CODEC_BLOSCLZ, CATERVA_CODEC_LZ4,
                                 CATERVA_CODEC_LZ4HC, CATERVA_CODEC_ZLIB, CATERVA_CODEC_ZSTD};
    static const int filters[][2] = {
        {CATERVA_FILTER_NONE, CATERVA_FILTER_NONE},
        {CATERVA_FILTER_SHUFFLE, CATERVA_FILTER_NONE},
        {CATERVA_FILTER_BITSHUFFLE, CATERVA_FILTER_NONE},
        {CATERVA_FILTER_DELTA, CATERVA_FILTER_NONE},
        {CATERVA_FILTER_DELTA, CATERVA_FILTER_SHUFFLE},
        {CATERVA_FILTER_SHUFFLE, CATERVA_FILTER_BYTEDELTA},
    };
    /* bytedelta needs the item size, which a chunk stores in one byte */
    int choice = rng_int(r, 0, item_size > 255 ? 4 : 5);
    pipeline p = {.codec = codecs[rng_int(r, 0, 4)], .level = rng_int(r, 0, 9)};
    memcpy(p.filters, filters[choice], sizeof(filters[choice]));
    if (p.filters[1] == CATERVA_FILTER_BYTEDELTA) p.filters_meta[1] = item_size;
    return p;
}

caterva_create_options options_for(const geometry *g, const pipeline *p)
{
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = g->ndim;
    options.shape = g->shape;
    options.chunk_shape = g->chunk_shape;
    options.block_shape = g->block_shape;
    options.item_size = g->item_size;
    options.codec = p->codec;
    options.level = p->level == 0 ? CATERVA_NONE : p->level;
    memcpy(options.filters, p->filters, sizeof(p->filters));
    if (options.filters[0] == 0) options.filters[0] = CATERVA_FILTER_NONE;
    memcpy(options.filters_meta, p->filters_meta, sizeof(p->filters_meta));
    return options;
}

static void fill_ramp(rng *r, uint8_t *bytes, size_t size, size_t item_size)
{
    uint8_t value = (uint8_t)rng_next(r);
    memset(bytes, 0, size);
    for (size_t at = 0; at < size; at += item_size) bytes[at] = value++;
}

static void fill_one_value(rng *r, uint8_t *bytes, size_t size, size_t item_size)
{
    rng_fill(r, bytes, size < item_size ? size : item_size);
    for (size_t at = item_size; at < size; at++) bytes[at] = bytes[at - item_size];
}

void random_data(rng *r, void *bytes, size_t size, int32_t item_size)
{
    int kind = rng_int(r, 0, 5);
    if (kind == 0)
        memset(bytes, 0, size);
    else if (kind == 1)
        fill_one_value(r, bytes, size, (size_t)item_size);
    else if (kind <= 3)
        fill_ramp(r, bytes, size, (size_t)item_size);
    else
        rng_fill(r, bytes, size);
}
