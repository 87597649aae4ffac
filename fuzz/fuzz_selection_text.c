/* Any text as a selection of the command line, for arrays of several shapes. An accepted
 * selection lies inside the array. */
#include "refusals.h"

#include "sources/index_file.h"
#include "sources/selection.h"

/* Reads no file: returns a mask of 7 items or a list of two, depending on the name. */
cli_exit index_file_load(const char *path, index_file *out)
{
    *out = (index_file){.ndim = 1, .shape = {7}, .n = 7};
    if (path[0] == 'm') {
        out->mask = fuzz_alloc(7);
        memset(out->mask, 1, 7);
        return CLI_OK;
    }
    if (path[0] == 'p') {
        *out = (index_file){.ndim = 3, .shape = {10, 7, 3}, .n = 210};
        out->mask = fuzz_alloc(210);
        memset(out->mask, 1, 210);
        return CLI_OK;
    }
    out->n = out->shape[0] = 2;
    out->indices = fuzz_alloc(2 * sizeof out->indices[0]);
    out->indices[0] = path[0] - 'a';
    out->indices[1] = -1;
    return CLI_OK;
}

void index_file_free(index_file *file)
{
    free(file->mask);
    free(file->indices);
}

void *cli_alloc(size_t size) { return fuzz_alloc(size); }

static void check_item(int d, int64_t item, int64_t length)
{
    FUZZ_NEED(item >= 0 && item < length, "axis %d takes item %lld of %lld", d,
              (long long)item, (long long)length);
}

static void check(const selection *sel, const int64_t *shape)
{
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        if (a->list) {
            for (int64_t i = 0; i < a->count; i++) check_item(d, a->list[i], shape[d]);
            continue;
        }
        FUZZ_NEED(a->count >= 0 && a->count <= shape[d], "axis %d has %lld items of %lld", d,
                  (long long)a->count, (long long)shape[d]);
        if (a->count == 0) continue;
        check_item(d, a->start, shape[d]);
        check_item(d, a->start + (a->count - 1) * a->step, shape[d]);
    }
    for (int64_t i = 0; sel->points && i < sel->n_points * sel->ndim; i++)
        check_item((int)(i % sel->ndim), sel->points[i], shape[i % sel->ndim]);
    int next = 0; /* axes of the result are in order, with new ones between them */
    FUZZ_NEED(sel->n_result >= 0 && sel->n_result <= CATERVA_MAX_DIMS, "%d axes",
              sel->n_result);
    for (int r = 0; r < sel->n_result; r++) {
        if (sel->result[r] < 0) continue;
        FUZZ_NEED(sel->result[r] >= next && sel->result[r] < sel->ndim,
                  "axis %d of the result is axis %d", r, sel->result[r]);
        next = sel->result[r] + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t shapes[][3] = {{10, 7, 3}, {1, 0, 5}, {INT64_MAX, 1, 2}};
    char *text = fuzz_alloc(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    for (int i = 0; i < 3; i++)
        for (int ndim = 0; ndim <= 3; ndim++) {
            selection sel;
            if (selection_parse(text, ndim, shapes[i], &sel) == CLI_OK) {
                check(&sel, shapes[i]);
                selection_free(&sel);
            }
        }
    free(text);
    return 0;
}
