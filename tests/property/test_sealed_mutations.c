/* Damage of sealed arrays is detected, or it hit nothing that matters. After a mutation an
 * array may fail to open or to read; what it returns must be right. In files and directories,
 * three codecs, 1 to 4 dimensions, with an attribute; and arrays of odd shapes, partitions,
 * item sizes and pipelines.
 *
 * usage: test_sealed_mutations [TRIALS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_TRIALS = 3000, MAX_FILES = 64, SECTOR = 512, HANG_SECONDS = 60, ODD = 40 };

static const char note[] = "\xd9\x20in degrees, from the north pole on";

/* One stored array: a file, or a directory of several. */
typedef struct sample {
    geometry g;
    uint8_t *values;
    size_t values_size;
    char path[SCRATCH_PATH];
    int n_files;
    char files[MAX_FILES][SCRATCH_PATH + 32];
    uint8_t *bytes[MAX_FILES];
    size_t sizes[MAX_FILES];
} sample;

/* ---- Samples ------------------------------------------------------------- */

static geometry geometry_of(int ndim)
{
    static const int64_t shapes[4][4] = {{3000}, {60, 50}, {15, 20, 10}, {6, 10, 5, 10}};
    static const int32_t chunks[4][4] = {{700}, {25, 30}, {8, 9, 10}, {4, 5, 3, 7}};
    static const int32_t blocks[4][4] = {{100}, {10, 10}, {4, 4, 5}, {2, 3, 3, 4}};
    geometry g = {.ndim = ndim, .item_size = 4};
    for (int d = 0; d < ndim; d++) {
        g.shape[d] = shapes[ndim - 1][d];
        g.chunk_shape[d] = chunks[ndim - 1][d];
        g.block_shape[d] = blocks[ndim - 1][d];
    }
    return g;
}

/* With items and a stored chunk, and not too many chunks for files of their own. */
static geometry odd_geometry(rng *r)
{
    enum { MOST_DIMS = 6, MOST_ITEMS = 3000, MOST_CHUNKS = 40 };
    for (;;) {
        geometry g = random_geometry(r, MOST_DIMS, MOST_ITEMS);
        box all = whole_box(&g);
        int64_t n_chunks = 1;
        for (int d = 0; d < g.ndim; d++)
            n_chunks *= (g.shape[d] + g.chunk_shape[d] - 1) / g.chunk_shape[d];
        if (box_items(&all, g.ndim) > 0 && n_chunks <= MOST_CHUNKS) return g;
    }
}

/* Noise that compresses somewhat; the first chunk of one item, the last of zeros. */
static void fill_values(rng *r, sample *s)
{
    size_t n = s->values_size / 4;
    memset(s->values, 0, s->values_size); /* sizes need not be multiples of 4 */
    for (size_t i = 0; i < n; i++) {
        uint32_t item = i < n / 5 ? 7 : i > n - n / 5 ? 0 : (uint32_t)rng_int(r, 0, 900);
        memcpy(s->values + 4 * i, &item, 4);
    }
}

static void load_file(sample *s, const char *path)
{
    int k = s->n_files++;
    CHECK(k < MAX_FILES, "more than %d files", k);
    snprintf(s->files[k], sizeof s->files[k], "%s", path);
    s->bytes[k] = scratch_load(path, &s->sizes[k]);
    CHECK(s->bytes[k] != NULL, "cannot read %s", path);
}

static void load_files(sample *s, caterva_layout layout)
{
    char path[SCRATCH_PATH + 32];
    if (layout == CATERVA_LAYOUT_CONTIGUOUS) {
        load_file(s, s->path);
        return;
    }
    snprintf(path, sizeof path, "%s/chunks.b2frame", s->path);
    load_file(s, path);
    for (int i = 0; i < MAX_FILES; i++) {
        snprintf(path, sizeof path, "%s/%08X.chunk", s->path, (unsigned)i);
        if (access(path, F_OK) == 0) load_file(s, path);
    }
}

/* Written in two commits, so that there is dead space and a spliced chunk. */
static sample *make_sample(rng *r, const pipeline *p, geometry g, caterva_layout layout)
{
    static int n_made;
    caterva_error err;
    caterva_array *array;
    sample *s = check_alloc(sizeof *s);
    memset(s, 0, sizeof *s);
    char name[32];
    snprintf(name, sizeof name, "sealed-%d-%d-%d", n_made++, p->codec, (int)layout);
    s->g = g;
    box all = whole_box(&s->g);
    s->values_size = box_size(&all, &s->g);
    s->values = check_alloc(s->values_size);
    fill_values(r, s);
    caterva_create_options o = options_for(&s->g, p);
    o.layout = layout;
    CHECK_OK(caterva_create(scratch_path(s->path, name), &o, &array, &err), err);
    CHECK_OK(caterva_write(array, all.start, all.stop, s->values, s->values_size, &err), err);
    CHECK_OK(caterva_attr_set(array, "note", note, sizeof note, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    size_t item_size = (size_t)s->g.item_size;
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS];
    for (int d = 0; d < s->g.ndim; d++) stop[d] = 1;
    memset(s->values, 0x5a, item_size);
    CHECK_OK(caterva_write(array, start, stop, s->values, item_size, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    load_files(s, layout);
    return s;
}

static void free_sample(sample *s)
{
    for (int i = 0; i < s->n_files; i++) free(s->bytes[i]);
    free(s->values);
    free(s);
}

/* ---- Damage -------------------------------------------------------------- */

/* Changes a few of the first or the last bytes, where most structure is. */
static void damage_end(rng *r, uint8_t *bytes, size_t size, bool tail)
{
    size_t span = size < 200 ? size : 200;
    for (int n = rng_int(r, 1, 4); n > 0; n--) {
        size_t at = (size_t)rng_between(r, 0, (int64_t)span - 1);
        bytes[tail ? size - 1 - at : at] = (uint8_t)rng_next(r);
    }
}

/* Whole sectors, as disks lose and misplace them. */
static void damage_sector(rng *r, uint8_t *bytes, size_t size, bool copy)
{
    int64_t last = (int64_t)((size - 1) / SECTOR);
    size_t to = (size_t)rng_between(r, 0, last) * SECTOR;
    size_t from = (size_t)rng_between(r, 0, last) * SECTOR;
    size_t n = size - to < SECTOR ? size - to : SECTOR;
    if (copy && size - from < n) n = size - from;
    if (copy)
        memmove(bytes + to, bytes + from, n);
    else
        memset(bytes + to, 0, n);
}

/* Returns the new size. */
static size_t damage(rng *r, uint8_t *bytes, size_t size)
{
    size_t at = (size_t)rng_between(r, 0, (int64_t)size - 1);
    switch (rng_int(r, 0, 6)) {
    case 0: bytes[at] ^= (uint8_t)(1 << rng_int(r, 0, 7)); break;
    case 1: bytes[at] = (uint8_t)rng_next(r); break;
    case 2: damage_sector(r, bytes, size, false); break;
    case 3: damage_sector(r, bytes, size, true); break;
    case 4: damage_end(r, bytes, size, false); break;
    case 5: damage_end(r, bytes, size, true); break;
    default: return at; /* cut */
    }
    return size;
}

/* ---- Reading ------------------------------------------------------------- */

typedef enum outcome { NOTICED, SAME, WRONG } outcome;

static outcome check_attribute(caterva_array *array)
{
    void *value = NULL;
    size_t size;
    caterva_error err;
    if (caterva_attr_get(array, "note", &value, &size, &err) != CATERVA_OK)
        return err.code == CATERVA_ENOTFOUND ? WRONG : NOTICED;
    bool equal = size == sizeof note && memcmp(value, note, size) == 0;
    caterva_free(value);
    return equal ? SAME : WRONG;
}

static outcome check_items(const sample *s, caterva_array *array)
{
    const caterva_info *info = info_of(array);
    if (info->ndim != s->g.ndim || info->item_size != s->g.item_size) return WRONG;
    for (int d = 0; d < info->ndim; d++)
        if (info->shape[d] != s->g.shape[d]) return WRONG;
    box all = whole_box(&s->g);
    uint8_t *got = check_alloc(s->values_size);
    caterva_status status =
        caterva_read(array, all.start, all.stop, got, s->values_size, NULL);
    bool equal = memcmp(got, s->values, s->values_size) == 0;
    free(got);
    return status != CATERVA_OK ? NOTICED : equal ? SAME : WRONG;
}

static outcome look(const sample *s)
{
    caterva_array *array;
    if (caterva_open(s->path, NULL, &array, NULL) != CATERVA_OK) return NOTICED;
    outcome items = check_items(s, array), attribute = check_attribute(array);
    caterva_discard(array);
    if (items == WRONG || attribute == WRONG) return WRONG;
    return items == NOTICED || attribute == NOTICED ? NOTICED : SAME;
}

/* Draws a file, weighted by its bytes. */
static int draw_file(rng *r, const sample *s)
{
    size_t total = 0;
    for (int i = 0; i < s->n_files; i++) total += s->sizes[i];
    int64_t at = rng_between(r, 0, (int64_t)total - 1);
    int k = 0;
    for (; at >= (int64_t)s->sizes[k]; k++) at -= (int64_t)s->sizes[k];
    return k;
}

static outcome try_once(rng *r, const sample *s)
{
    int k = draw_file(r, s);
    uint8_t *bytes = check_alloc(s->sizes[k]);
    memcpy(bytes, s->bytes[k], s->sizes[k]);
    size_t size = damage(r, bytes, s->sizes[k]);
    scratch_save(s->files[k], bytes, size);
    outcome result = look(s);
    scratch_save(s->files[k], s->bytes[k], s->sizes[k]);
    free(bytes);
    return result;
}

int main(int argc, char **argv)
{
    static const int codecs[] = {CATERVA_CODEC_LZ4, CATERVA_CODEC_ZLIB, CATERVA_CODEC_ZSTD};
    int trials = argc > 1 ? atoi(argv[1]) : DEFAULT_TRIALS;
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    sample *samples[24 + ODD];
    int n = 0, counts[3] = {0};
    for (int c = 0; c < 3; c++) {
        pipeline p = {.codec = codecs[c], .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}};
        for (int ndim = 1; ndim <= 4; ndim++) {
            samples[n++] = make_sample(&r, &p, geometry_of(ndim), CATERVA_LAYOUT_CONTIGUOUS);
            samples[n++] = make_sample(&r, &p, geometry_of(ndim), CATERVA_LAYOUT_SPARSE);
        }
    }
    for (int i = 0; i < ODD; i++) {
        geometry g = odd_geometry(&r);
        pipeline p = random_pipeline(&r, g.item_size);
        samples[n++] = make_sample(
            &r, &p, g, rng_one_in(&r, 3) ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS);
    }
    for (int i = 0; i < n; i++) CHECK(look(samples[i]) == SAME, "%s", samples[i]->path);
    for (int t = 0; t < trials; t++) {
        const sample *s = samples[t % n];
        alarm(HANG_SECONDS); /* a hang ends the program with a signal */
        outcome result = try_once(&r, s);
        counts[result]++;
        CHECK(result != WRONG, "trial %d, %s: wrong values or attributes, and no error", t,
              s->path);
    }
    printf("%d trials: %d noticed, %d hit nothing that counts\n", trials, counts[NOTICED],
           counts[SAME]);
    for (int i = 0; i < n; i++) free_sample(samples[i]);
    return counts[NOTICED] > trials / 2 ? 0 : 1;
}
