/* caterva_view_copy: random arrays concatenated, stacked, sliced, transposed, copied into new
 * arrays of random partitions within little memory. The copy must hold what the view reads,
 * also for C-Blosc2's b2nd; if all parts begin and end at chunk edges, the chunks must be the
 * sources' own bytes.
 *
 * usage: test_copy_views [COPIES [SEED]] */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_COPIES = 600, MAX_NDIM = 3, MAX_PARTS = 4, MAX_LENGTH = 20 };

static int64_t n_same; /* chunks with the sources' bytes */

typedef struct trial {
    rng *random;
    int ndim, axis, n, stack, aligned;
    int32_t chunk[MAX_NDIM], block[MAX_NDIM];
    caterva_array *arrays[MAX_PARTS];
    caterva_view *joined;
} trial;

/* ---- Sources ------------------------------------------------------------------- */

static caterva_array *make_array(const trial *t, const int64_t *shape, int stays_pending)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    caterva_array *array = NULL;
    int32_t fill = 77;
    int64_t n = 1, zeros[MAX_NDIM] = {0};
    options.ndim = t->ndim;
    options.shape = shape;
    options.chunk_shape = t->chunk;
    options.block_shape = t->block;
    options.dtype = "<i4";
    if (rng_one_in(t->random, 3)) {
        options.fill = CATERVA_FILL_VALUE;
        options.fill_value = &fill;
    }
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    for (int d = 0; d < t->ndim; d++) n *= shape[d];
    int32_t *items = check_alloc((size_t)n * sizeof items[0]);
    for (int64_t i = 0; i < n; i++) items[i] = rng_int(t->random, 0, 1000);
    int64_t stop[MAX_NDIM];
    for (int d = 0; d < t->ndim; d++) /* some chunks stay unwritten */
        stop[d] = rng_one_in(t->random, 4) ? rng_between(t->random, 0, shape[d]) : shape[d];
    CHECK_OK(caterva_write(array, zeros, stop, items, (size_t)n * sizeof items[0], &err),
             err);
    free(items);
    if (!stays_pending) CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

static void make_sources(trial *t)
{
    rng *r = t->random;
    int64_t shape[MAX_NDIM];
    t->stack = rng_one_in(r, 3);
    t->ndim = rng_int(r, 1, MAX_NDIM);
    t->axis = rng_int(r, 0, t->ndim - 1 + t->stack);
    t->n = rng_int(r, 1, MAX_PARTS);
    t->aligned = rng_one_in(r, 2);
    for (int d = 0; d < t->ndim; d++) {
        t->chunk[d] = rng_int(r, 1, 7);
        t->block[d] = rng_int(r, 1, t->chunk[d]);
        shape[d] = rng_between(r, 1, MAX_LENGTH);
    }
    for (int i = 0; i < t->n; i++) {
        if (!t->stack) shape[t->axis] = rng_between(r, 1, MAX_LENGTH);
        if (!t->stack && t->aligned) shape[t->axis] = t->chunk[t->axis] * rng_int(r, 1, 3);
        t->arrays[i] = make_array(t, shape, !t->aligned && rng_one_in(r, 4));
    }
}

static void join_sources(trial *t)
{
    caterva_error err;
    caterva_view *views[MAX_PARTS];
    for (int i = 0; i < t->n; i++)
        CHECK_OK(caterva_view_of(t->arrays[i], &views[i], &err), err);
    const caterva_view *const *list = (const caterva_view *const *)views;
    if (t->stack)
        CHECK_OK(caterva_view_stack(list, t->n, t->axis, &t->joined, &err), err);
    else
        CHECK_OK(caterva_view_concat(list, t->n, t->axis, &t->joined, &err), err);
    for (int i = 0; i < t->n; i++) caterva_view_free(views[i]);
}

/* Some views are changed once more: those are never moved whole. */
static void change_view(trial *t)
{
    caterva_error err;
    caterva_view *changed = NULL;
    caterva_axis axis = {.kind = CATERVA_AXIS_SLICE, .stop = CATERVA_AXIS_OMIT, .step = 1};
    if (rng_one_in(t->random, 2)) {
        CHECK_OK(caterva_view_transpose(t->joined, NULL, &changed, &err), err);
    } else {
        axis.start = rng_between(t->random, 0, caterva_view_shape(t->joined)[0] - 1);
        axis.step = rng_one_in(t->random, 2) ? -1 : rng_int(t->random, 1, 3);
        CHECK_OK(caterva_view_select(t->joined, &axis, 1, &changed, &err), err);
    }
    caterva_view_free(t->joined);
    t->joined = changed;
    t->aligned = 0;
}

/* ---- The copy and its judges ----------------------------------------------------- */

static int32_t *read_view(const caterva_view *view, size_t *size)
{
    caterva_error err;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    *size = sizeof(int32_t);
    for (int d = 0; d < caterva_view_ndim(view); d++)
        *size *= (size_t)caterva_view_shape(view)[d];
    int32_t *items = check_alloc(*size);
    buffer.data = items;
    buffer.size = *size;
    CHECK_OK(caterva_view_read(view, NULL, &buffer, &err), err);
    return items;
}

static void check_b2nd(caterva_array *copy, const int32_t *items, size_t size)
{
    caterva_error err;
    b2nd_array_t *theirs = NULL;
    void *frame;
    size_t frame_size;
    if (size == 0) return;
    int32_t *read = check_alloc(size);
    CHECK_OK(caterva_frame_copy(copy, &frame, &frame_size, &err), err);
    CHECK(b2nd_from_cframe(frame, (int64_t)frame_size, true, &theirs) >= 0, "b2nd");
    CHECK(b2nd_to_cbuffer(theirs, read, (int64_t)size) >= 0, "b2nd_to_cbuffer");
    CHECK(memcmp(read, items, size) == 0, "b2nd reads something else");
    b2nd_free(theirs);
    caterva_free(frame);
    free(read);
}

/* Every stored chunk of the copy equals one of some source, byte for byte. */
static void check_moved(const trial *t, caterva_array *copy)
{
    caterva_error err;
    size_t room = (size_t)info_of(copy)->chunk_bytes + 32, size, theirs;
    uint8_t *a = check_alloc(room), *b = check_alloc(room);
    for (int64_t k = 0; k < info_of(copy)->n_chunks; k++) {
        int found = 0;
        CHECK_OK(caterva_chunk_read_stored(copy, k, a, room, &size, &err), err);
        for (int i = 0; i < t->n && !found; i++) {
            int64_t n = info_of(t->arrays[i])->n_chunks;
            for (int64_t j = 0; j < n && !found; j++) {
                CHECK_OK(caterva_chunk_read_stored(t->arrays[i], j, b, room, &theirs, &err),
                         err);
                found = size == theirs && memcmp(a, b, size) == 0;
            }
        }
        CHECK(found, "chunk %lld of %d was encoded anew", (long long)k, t->n);
        n_same++;
    }
    free(a);
    free(b);
}

static int stop_at_once(void *context, int64_t done, int64_t total)
{
    (void)done, (void)total;
    return ++*(int *)context > 1;
}

static void copy_and_check(trial *t, const char *path)
{
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_array *copy = NULL;
    int32_t chunk[MAX_NDIM + 1];
    int calls = 0, moves = t->aligned;
    options.create = &create;
    options.memory = rng_int(t->random, 1, 4096);
    create.overwrite = 1;
    create.durability = CATERVA_DURABILITY_NONE;
    create.threads = rng_int(t->random, 1, 3);
    if (rng_one_in(t->random, 4)) {
        for (int d = 0; d < MAX_NDIM + 1; d++) chunk[d] = rng_int(t->random, 1, 9);
        create.chunk_shape = chunk;
        moves = 0;
    }
    options.progress = every_step(rng_one_in(t->random, 10) ? stop_at_once : NULL, &calls);
    size_t size;
    int32_t *items = read_view(t->joined, &size), *read = check_alloc(size);
    const char *url = rng_one_in(t->random, 2) ? "mem:" : path;
    caterva_status status = caterva_view_copy(t->joined, url, &options, &copy, &err);
    if (options.progress.report && status == CATERVA_ESTOPPED) {
        CHECK(strcmp(err.message, "stopped") == 0 && !copy, "%s", err.message);
    } else {
        CHECK_OK(status, err);
        const caterva_info *info = info_of(copy);
        int64_t zeros[MAX_NDIM + 1] = {0};
        CHECK_OK(caterva_read(copy, zeros, info->shape, read, size, &err), err);
        CHECK(memcmp(read, items, size) == 0, "the copy holds something else");
        if (moves) check_moved(t, copy);
        check_b2nd(copy, items, size);
        CHECK_OK(caterva_close(copy, &err), err);
    }
    free(items);
    free(read);
}

int main(int argc, char **argv)
{
    uint64_t copies = number_argument(argc, argv, 1, DEFAULT_COPIES);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    char path[SCRATCH_PATH];
    scratch_path(path, "copy.b2nd");
    blosc2_init();
    for (uint64_t i = 0; i < copies; i++) {
        trial t = {.random = &r};
        make_sources(&t);
        join_sources(&t);
        if (rng_one_in(&r, 4)) change_view(&t);
        copy_and_check(&t, path);
        caterva_view_free(t.joined);
        for (int k = 0; k < t.n; k++) caterva_discard(t.arrays[k]);
    }
    blosc2_destroy();
    CHECK(n_same > 0, "nothing was moved");
    printf("%llu copies, %lld chunks moved as they are\n", (unsigned long long)copies,
           (long long)n_same);
    return 0;
}
