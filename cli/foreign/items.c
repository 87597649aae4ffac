/* Room: cli/foreign. Boxes cut into runs: items that follow each other in the file. Runs are visited
 * in the order of the file, so that packed bytes are decoded once. In Fortran order a run is
 * transposed in scratch memory; in C order its items follow each other in the box, too. */
#include "foreign/items.h"

#include "formats/strided.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SCRATCH ((int64_t)16 << 20)

/* A walk over the runs of a box. Axes are in the order of the file, the slowest one first. */
typedef struct runs {
    int ndim;
    int64_t item_size;
    int64_t counts[CATERVA_MAX_DIMS];
    int64_t file_strides[CATERVA_MAX_DIMS], box_strides[CATERVA_MAX_DIMS]; /* bytes */
    int64_t first;                                                         /* file position */
    bool is_plain; /* runs need no transposition */
    int axis;      /* a run has `piece` entries of this axis, and all of the faster ones */
    int64_t piece; /* the last run of a line may have fewer */
    int64_t entry; /* bytes of one of these entries */
    int64_t index[CATERVA_MAX_DIMS];
    bool done;
    /* The current run: */
    int64_t position, box_offset;
    size_t size;
    strided_copy copy; /* from the file to the box */
} runs;

static void begin(runs *r, int64_t position, const foreign_node *array, const int64_t *start,
                  const int64_t *stop)
{
    int64_t stride = array->item_size, box_strides[CATERVA_MAX_DIMS] = {0};
    *r = (runs){.ndim = array->ndim, .item_size = stride, .first = position};
    for (int d = array->ndim - 1; d >= 0; d--) {
        box_strides[d] = stride;
        stride *= stop[d] - start[d];
    }
    stride = array->item_size;
    r->is_plain = !array->first_axis_fastest || array->ndim < 2;
    r->piece = 1;
    r->entry = stride;
    bool joins = true;
    for (int i = array->ndim - 1; i >= 0; i--) {
        int d = array->first_axis_fastest ? array->ndim - 1 - i : i;
        r->counts[i] = stop[d] - start[d];
        r->box_strides[i] = box_strides[d];
        r->file_strides[i] = stride;
        r->first += start[d] * stride;
        if (joins) {
            int64_t most = r->is_plain ? r->counts[i] : MAX_SCRATCH / stride;
            r->axis = i;
            r->entry = stride;
            r->piece = most < 1 ? 1 : most < r->counts[i] ? most : r->counts[i];
            joins = r->piece == array->shape[d];
        }
        stride *= array->shape[d];
    }
}

/* Moves to the next run; false after the last. */
static bool next(runs *r)
{
    if (r->done) return false;
    int64_t n = r->piece;
    if (r->ndim > 0 && r->counts[r->axis] - r->index[r->axis] < n)
        n = r->counts[r->axis] - r->index[r->axis];
    r->position = r->first;
    r->box_offset = 0;
    r->size = (size_t)(n * r->entry);
    r->copy = (strided_copy){.ndim = r->ndim - r->axis, .item_size = r->item_size};
    for (int i = 0; i < r->ndim; i++) {
        r->position += r->index[i] * r->file_strides[i];
        r->box_offset += r->index[i] * r->box_strides[i];
        if (i < r->axis) continue;
        r->copy.counts[i - r->axis] = i == r->axis ? n : r->counts[i];
        r->copy.src_strides[i - r->axis] = r->file_strides[i];
        r->copy.dst_strides[i - r->axis] = r->box_strides[i];
    }
    r->done = true;
    for (int i = r->ndim ? r->axis : -1; i >= 0 && r->done; i--) {
        r->index[i] += i == r->axis ? r->piece : 1;
        r->done = r->index[i] >= r->counts[i];
        if (r->done) r->index[i] = 0;
    }
    return true;
}

/* Allocates memory for one run; NULL if none is needed. */
static cli_exit make_scratch(const runs *r, uint8_t **out)
{
    *out = NULL;
    if (!r->is_plain) *out = cli_alloc((size_t)(r->piece * r->entry));
    return r->is_plain || *out ? CLI_OK : CLI_IO;
}

cli_exit items_read(packed *from, int64_t position, const foreign_node *array,
                    const int64_t *start, const int64_t *stop, void *dst)
{
    runs r;
    uint8_t *scratch;
    begin(&r, position, array, start, stop);
    cli_exit code = make_scratch(&r, &scratch);
    while (code == CLI_OK && next(&r)) {
        uint8_t *to = (uint8_t *)dst + r.box_offset;
        code = packed_read(from, scratch ? scratch : to, r.size, r.position);
        if (code == CLI_OK && scratch) strided_copy_run(&r.copy, scratch, to);
    }
    free(scratch);
    return code;
}

cli_exit items_write(items_put *put, void *to, int64_t position, const foreign_node *array,
                     const int64_t *start, const int64_t *stop, const void *src)
{
    runs r;
    uint8_t *scratch;
    begin(&r, position, array, start, stop);
    cli_exit code = make_scratch(&r, &scratch);
    while (code == CLI_OK && next(&r)) {
        const uint8_t *from = (const uint8_t *)src + r.box_offset;
        strided_copy back = r.copy;
        memcpy(back.src_strides, r.copy.dst_strides, sizeof back.src_strides);
        memcpy(back.dst_strides, r.copy.src_strides, sizeof back.dst_strides);
        if (scratch) strided_copy_run(&back, from, scratch);
        code = put(to, scratch ? scratch : from, r.size, r.position);
    }
    free(scratch);
    return code;
}

cli_exit items_size(const char *path, const foreign_node *array, int64_t *out)
{
    bool empty = false;
    *out = array->item_size;
    for (int d = 0; d < array->ndim; d++) empty |= array->shape[d] == 0;
    for (int d = 0; d < array->ndim && !empty; d++) {
        if (*out > INT64_MAX / array->shape[d])
            return cli_fail(CLI_UNSUPPORTED, "%s: the items of %s need more than 2^63 bytes",
                            path, array->key);
        *out *= array->shape[d];
    }
    if (empty) *out = 0;
    return CLI_OK;
}
