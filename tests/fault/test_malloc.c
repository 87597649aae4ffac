/* The n-th allocation fails, for every n: an error, no crash, no leak, the stored array
 * unchanged, and the handle usable for another try. Only the library's own allocations fail,
 * not those of libblosc2 and the C library. */
#include "base/arith.h"
#include "crash.h"
#include "failing_heap.h"
#include "scratch.h"
#include "unseal.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- One life of an array ------------------------------------------------------------ */

enum { N = 400, CHUNK = 100, BLOCK = 25 };

typedef enum place { IN_MEMORY, IN_FILE, IN_DIRECTORY } place;

typedef struct life {
    place place;
    char path[SCRATCH_PATH];
    uint8_t *frame; /* of the array in memory */
    size_t frame_size;
    caterva_array *array;
    int32_t values[N];
} life;

static caterva_status open_it(life *l, caterva_error *err)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.threads = 1;
    if (l->place == IN_MEMORY)
        return caterva_frame_open(l->frame, l->frame_size, 1, &o, &l->array, err);
    return caterva_open(l->path, &o, &l->array, err);
}

static caterva_status read_it(life *l, caterva_error *err)
{
    int64_t start = 0, stop = N;
    return caterva_read(l->array, &start, &stop, l->values, sizeof l->values, err);
}

/* A mask, shuffled points, and points of two joined views: everything that a selection
 * allocates. */
static caterva_status read_selected(life *l, caterva_error *err)
{
    static int64_t points[N];
    static uint8_t mask[N];
    int32_t values[2 * N];
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer b = CATERVA_BUFFER_INIT;
    caterva_view *view = NULL, *pair = NULL;
    b.data = values;
    b.size = sizeof values;
    for (int i = 0; i < N; i++) {
        points[i] = i * 7 % N;
        mask[i] = i % 3 == 0;
    }
    s.points = points;
    s.n_points = N;
    s.mask = mask;
    s.mask_size = N;
    s.kind = CATERVA_SELECTION_MASK;
    CV_TRY(caterva_read_selection(l->array, &s, &b, err));
    s.kind = CATERVA_SELECTION_POINTS;
    CV_TRY(caterva_read_selection(l->array, &s, &b, err));
    caterva_status status = caterva_view_of(l->array, &view, err);
    const caterva_view *parts[2] = {view, view};
    if (status == CATERVA_OK) status = caterva_view_stack(parts, 2, 0, &pair, err);
    s.n_points = N / 2; /* of two axes: about half in each array */
    for (int i = 0; i < N; i += 2) points[i] = i / 2 % 2;
    if (status == CATERVA_OK) status = caterva_view_read(pair, &s, &b, err);
    for (int i = 0; status == CATERVA_OK && i < N / 2; i++)
        CHECK(values[i] == (int32_t)points[2 * i + 1], "point %d is %d", i, values[i]);
    caterva_view_free(pair);
    caterva_view_free(view);
    return status;
}

static caterva_status write_points(life *l, caterva_error *err)
{
    enum { FIRST = 201, COUNT = 97 };
    int64_t points[COUNT];
    int32_t values[COUNT];
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer b = CATERVA_BUFFER_INIT;
    for (int i = 0; i < COUNT; i++) {
        points[i] = FIRST + i * 5 % COUNT;
        values[i] = 1000 + (int32_t)points[i];
    }
    s.kind = CATERVA_SELECTION_POINTS;
    s.points = points;
    s.n_points = COUNT;
    b.data = values;
    b.size = sizeof values;
    return caterva_write_selection(l->array, &s, &b, err);
}

static caterva_status write_at(life *l, int64_t start, int64_t stop, caterva_error *err)
{
    int32_t values[N];
    for (int i = 0; i < N; i++) values[i] = 1000 + i;
    return caterva_write(l->array, &start, &stop, values + start,
                         (size_t)(stop - start) * sizeof values[0], err);
}

static caterva_status write_a_part(life *l, caterva_error *err)
{
    return write_at(l, 10, 130, err);
}

static caterva_status write_a_chunk(life *l, caterva_error *err)
{
    return write_at(l, 200, 300, err);
}

/* More than have keys of their own, so that some are in the map. */
static caterva_status set_attributes(life *l, caterva_error *err)
{
    char name[16];
    void *value;
    size_t size;
    for (uint8_t i = 0; i < 22; i++) {
        (void)snprintf(name, sizeof name, "a%d", i);
        CV_TRY(caterva_attr_set(l->array, name, &i, 1, err));
    }
    CV_TRY(caterva_attr_get(l->array, name, &value, &size, err));
    CHECK(size == 1 && *(uint8_t *)value == 21, "attribute %s differs", name);
    caterva_free(value);
    return CATERVA_OK;
}

static caterva_status commit_it(life *l, caterva_error *err)
{
    return caterva_commit(l->array, err);
}

static caterva_status verify_it(life *l, caterva_error *err)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    return caterva_verify(l->array, NULL, &result, err);
}

/* Copies with chunks moved, and with chunks encoded anew. */
static caterva_status copy_it(life *l, caterva_error *err)
{
    static const int32_t chunk = 60;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    create.threads = 1;
    options.create = &create;
    CV_TRY(caterva_copy(l->array, "mem:", &options, NULL, err));
    create.chunk_shape = &chunk;
    return caterva_copy(l->array, "mem:", &options, NULL, err);
}

/* Number of names in the scratch directory that have ".zarr" in them. */
static int count_zarr(void)
{
    char path[SCRATCH_PATH];
    int n = 0;
    DIR *dir = opendir(scratch_path(path, "."));
    CHECK(dir != NULL, "cannot list %s", path);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += strstr(entry->d_name, ".zarr") != NULL;
    closedir(dir);
    return n;
}

/* Makes a copy that is a Zarr array, too, verifies it and deletes it. */
static caterva_status zarr_it(life *l, caterva_error *err)
{
    char path[SCRATCH_PATH];
    caterva_array *array = NULL;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    if (l->place != IN_FILE) return CATERVA_OK; /* once is enough */
    create.threads = 1;
    create.overwrite = 1;
    create.durability = CATERVA_DURABILITY_NONE;
    options.create = &create;
    options.zarr = 1;
    CV_TRY(caterva_copy(l->array, scratch_path(path, "a.zarr"), &options, &array, err));
    caterva_status status = caterva_verify(array, NULL, &result, err);
    caterva_discard(array);
    CHECK(status != CATERVA_OK || result.damages == 0, "%lld damages",
          (long long)result.damages);
    CV_TRY(status);
    CV_TRY(caterva_delete(path, NULL, err));
    CHECK(count_zarr() == 0, "%d names are left", count_zarr());
    return CATERVA_OK;
}

/* As Zarr readers get it, block by block. */
static caterva_status present_it(caterva_array *array, caterva_error *err)
{
    char *text;
    void *bytes;
    size_t size;
    CV_TRY(caterva_zarr_metadata(array, &text, &size, err));
    caterva_free(text);
    for (int64_t i = 0; i < N / BLOCK; i += 11) {
        CV_TRY(caterva_zarr_chunk(array, &i, &bytes, &size, err));
        caterva_free(bytes);
    }
    return CATERVA_OK;
}

static caterva_status pack_it(life *l, caterva_error *err)
{
    void *frame;
    size_t size;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = 1;
    CV_TRY(caterva_frame_copy(l->array, &frame, &size, err));
    caterva_status status = caterva_frame_open(frame, size, 1, &o, &array, err);
    if (status == CATERVA_OK) {
        status = present_it(array, err);
        caterva_discard(array);
    }
    caterva_free(frame);
    return status;
}

typedef caterva_status step(life *l, caterva_error *err);
static step *const steps[] = {
    open_it, read_it, read_selected,  write_a_part, write_points, write_a_chunk, copy_it,
    zarr_it, pack_it, set_attributes, commit_it,    verify_it,    read_it};
enum { N_STEPS = sizeof steps / sizeof steps[0], COMMIT_STEP = 10 };

static bool is_new(int i) { return (i >= 10 && i < 130) || (i >= 200 && i < 300); }

/* Checks what another process finds; `committed`: whether the commit was acknowledged. */
static void check_stored(life *l, bool committed, long n)
{
    caterva_error err;
    caterva_array *array;
    int32_t values[N];
    int64_t start = 0, stop = N;
    if (l->place == IN_MEMORY) return;
    CHECK_OK(caterva_open(l->path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, &start, &stop, values, sizeof values, &err), err);
    caterva_discard(array);
    for (int i = 0; i < N; i++)
        CHECK(values[i] == (committed && is_new(i) ? 1000 + i : i),
              "allocation %ld: item %d is %d after %s commit", n, i, values[i],
              committed ? "the" : "no");
}

/* Repeats the failed step and continues. Failed writes are repeated whole, since the contents
 * of their box are undefined. */
static void live_on(life *l, int failed_step)
{
    caterva_error err;
    for (int i = failed_step; i < N_STEPS; i++) CHECK_OK(steps[i](l, &err), err);
    const caterva_info *info;
    CHECK_OK(caterva_info_get(l->array, &info, &err), err);
    CHECK(info->dtype != NULL, "no dtype");
    CHECK(info->n_attributes == 22, "%d attributes", info->n_attributes);
    caterva_info_release(info);
    for (int i = 0; i < N; i++)
        CHECK(l->values[i] == (is_new(i) ? 1000 + i : i), "item %d is %d", i, l->values[i]);
}

/* Returns false if there is no n-th allocation. */
static bool fail_at(life *l, long n)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_status status = CATERVA_OK;
    int at = 0;
    l->array = NULL;
    heap_arm(n);
    for (; at < N_STEPS; at++) {
        status = steps[at](l, &err);
        if (status != CATERVA_OK) break;
    }
    bool failed = heap_disarm();
    /* The records of dead space may fail silently: that costs space, and every item is
     * checked below. All other failures are errors, and only then is an error returned. */
    CHECK(failed || status == CATERVA_OK, "allocation %ld: step %d: %s", n, at, err.message);
    if (status != CATERVA_OK) {
        CHECK(status == CATERVA_ENOMEM && err.code == status && err.message[0],
              "allocation %ld: step %d: %s", n, at, caterva_status_name(status));
        check_stored(l, at > COMMIT_STEP, n);
        CHECK(count_zarr() <= 1, "allocation %ld: step %d: %d names are left", n, at,
              count_zarr()); /* a complete copy that could not be deleted */
        live_on(l, at);
    }
    check_stored(l, true, n);
    caterva_discard(l->array);
    CHECK(heap_live() == 0, "allocation %ld: step %d: %d leaks", n, at, heap_live());
    return failed;
}

static void make_it(life *l)
{
    caterva_error err;
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    caterva_create_options o = options_for(&g, &made_lz4);
    caterva_array *array;
    o.layout = l->place == IN_DIRECTORY ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    o.overwrite = 1;
    o.threads = 1;
    CHECK_OK(caterva_create(l->path, &o, &array, &err), err);
    CHECK_OK(made_write(array, 0, N, 0, 1, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void sweep(place where, const char *name)
{
    life l = {.place = where};
    scratch_path(l.path, name);
    bool failed = true;
    long n = 0;
    if (where == IN_MEMORY) l.frame = made_frame(N, CHUNK, BLOCK, &made_lz4, &l.frame_size);
    for (; failed; n++) {
        if (where != IN_MEMORY) make_it(&l);
        failed = fail_at(&l, n);
    }
    CHECK(n > 30, "only %ld allocations", n);
    printf("%s: %ld allocations failed\n", name, n - 1);
    free(l.frame);
}

static void an_array_in_memory(void **state)
{
    (void)state;
    sweep(IN_MEMORY, "memory");
}

static void an_array_in_a_file(void **state)
{
    (void)state;
    sweep(IN_FILE, "file");
}

static void an_array_in_a_directory(void **state)
{
    (void)state;
    sweep(IN_DIRECTORY, "directory");
}

/* ENOMEM is the only possible failure, and has a message. */
static void check_error(const char *what, long n, caterva_status status,
                        const caterva_error *err)
{
    if (status == CATERVA_OK) return;
    CHECK(status == CATERVA_ENOMEM && err->code == status && err->message[0],
          "%s, allocation %ld: %s, the error says %s: \"%s\"", what, n,
          caterva_status_name(status), caterva_status_name(err->code), err->message);
}

/* ---- Creating -------------------------------------------------------------------------- */

static caterva_status create_one(const char *url, caterva_layout layout, caterva_array **out,
                                 caterva_error *err)
{
    static const int32_t value = 7;
    geometry g = made_line(N, CHUNK, BLOCK, sizeof(int32_t));
    caterva_create_options o = options_for(&g, &made_lz4);
    o.layout = layout;
    o.threads = 1;
    o.fill = CATERVA_FILL_VALUE;
    o.fill_value = &value;
    CV_TRY(caterva_create(url, &o, out, err));
    CV_TRY(caterva_write(*out, (int64_t[]){5}, (int64_t[]){6}, &value, sizeof value, err));
    return caterva_commit(*out, err);
}

/* A failed creation leaves nothing at the path, or the complete array. */
static void creating(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    for (int kind = 0; kind < 3; kind++) {
        const char *url = kind == 0 ? "mem:" : scratch_path(path, kind == 1 ? "f" : "d");
        caterva_layout layout = kind == 2 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
        bool failed = true;
        for (long n = 0; failed; n++) {
            caterva_error err = {.code = CATERVA_OK};
            caterva_array *array = NULL, *other;
            heap_arm(n);
            caterva_status status = create_one(url, layout, &array, &err);
            failed = heap_disarm();
            bool created = status == CATERVA_OK; /* records of dead space failed */
            CHECK(created || failed, "allocation %ld: %s", n, caterva_status_name(status));
            check_error("creating", n, status, &err);
            caterva_discard(array);
            CHECK(heap_live() == 0, "creating, allocation %ld: %d leaks", n, heap_live());
            if (kind == 0) continue;
            status = caterva_open(path, NULL, &other, &err);
            CHECK(status == (created ? CATERVA_OK : CATERVA_ENOTFOUND), "allocation %ld: %s",
                  n, caterva_status_name(status));
            if (created) caterva_discard(other);
            scratch_remove(path);
        }
    }
}

/* ---- Repairing ------------------------------------------------------------------------- */

/* Overwrites the header with zeros, and with `chunk` damages a chunk. */
static void spoil(const char *path, bool chunk)
{
    size_t size;
    caterva_error err;
    caterva_array *array;
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_chunk_describe(array, 1, &info, &err), err);
    caterva_discard(array);
    uint8_t *bytes = scratch_load(path, &size);
    memset(bytes, 0, 100);
    if (chunk) memset(bytes + info.position, 0xff, 32);
    scratch_save(path, bytes, size);
    free(bytes);
}

/* Restores the header of the first commit in the file of a second one, except the frame size,
 * and removes the seal. */
static void tear(life *l)
{
    size_t size, old_size;
    caterva_error err;
    uint8_t *old = scratch_load(l->path, &old_size);
    CHECK_OK(open_it(l, &err), err);
    CHECK_OK(write_at(l, 0, N, &err), err);
    CHECK_OK(commit_it(l, &err), err);
    caterva_discard(l->array);
    uint8_t *bytes = scratch_load(l->path, &size);
    unseal(bytes, (size_t)cv_load_be64(bytes + 16));
    memcpy(bytes + 24, old + 24, 100);
    scratch_save(l->path, bytes, size);
    free(bytes);
    free(old);
}

/* A failed repair does not prevent the next one. */
static void repairing(void **state)
{
    (void)state;
    char path[SCRATCH_PATH], saved[SCRATCH_PATH];
    scratch_path(path, "damaged");
    scratch_path(saved, "damaged.repaired");
    for (int kind = 0; kind < 3; kind++) {
        life l = {.place = IN_FILE};
        bool chunk = kind == 1;
        memcpy(l.path, path, sizeof path);
        caterva_repair_options o = CATERVA_REPAIR_INIT;
        caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
        o.threads = 1;
        bool failed = true;
        for (long n = 0; failed; n++) {
            caterva_error err = {.code = CATERVA_OK};
            make_it(&l);
            if (kind == 2)
                tear(&l);
            else
                spoil(path, chunk);
            heap_arm(n);
            caterva_status status = caterva_repair(path, &o, &result, &err);
            failed = heap_disarm();
            CHECK(heap_live() == 0, "repairing, allocation %ld: %d leaks", n, heap_live());
            check_error("repairing", n, status, &err);
            if (status == CATERVA_OK && failed) { /* records of dead space */
                CHECK(result.written == chunk && result.in_place == !chunk,
                      "allocation %ld: a failure in silence", n);
                scratch_remove(saved);
                continue;
            }
            CHECK(status == (failed ? CATERVA_ENOMEM : CATERVA_OK), "allocation %ld: %s", n,
                  caterva_status_name(status));
        }
        CHECK(result.in_place == !chunk && result.written == chunk &&
                  result.lost_chunks == chunk,
              "kind %d: %lld chunks lost", kind, (long long)result.lost_chunks);
    }
}

/* A sound directory, one without its header, and one without its index. */
static void repairing_a_directory(void **state)
{
    (void)state;
    life l = {.place = IN_DIRECTORY};
    char frame[SCRATCH_PATH + 32], output[SCRATCH_PATH];
    scratch_path(l.path, "damaged-directory");
    scratch_path(output, "repaired-directory");
    snprintf(frame, sizeof frame, "%s/chunks.b2frame", l.path);
    caterva_repair_options o = CATERVA_REPAIR_INIT;
    o.threads = 1;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    o.output = output;
    o.overwrite = 1;
    for (int kind = 0; kind < 3; kind++) {
        bool failed = true;
        for (long n = 0; failed; n++) {
            caterva_error err = {.code = CATERVA_OK};
            size_t size;
            make_it(&l);
            uint8_t *bytes = scratch_load(frame, &size);
            size_t header = (size_t)bytes[14] | (size_t)bytes[13] << 8;
            if (kind == 1) memset(bytes, 0, header);
            if (kind == 2) memset(bytes + header, 0xff, 32);
            scratch_save(frame, bytes, size);
            free(bytes);
            heap_arm(n);
            caterva_status status = caterva_repair(l.path, &o, &result, &err);
            failed = heap_disarm();
            CHECK(heap_live() == 0, "a directory, allocation %ld: %d leaks", n, heap_live());
            CHECK(status == CATERVA_OK || failed, "allocation %ld: %s", n, err.message);
            check_error("a directory", n, status, &err);
        }
    }
}

/* ---- Sealing --------------------------------------------------------------------------- */

/* Removes the seal again, so that each try does all the work. */
static void drop_seal(const char *path)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    unseal(bytes, size);
    scratch_save(path, bytes, size);
    free(bytes);
}

static void sealing(void **state)
{
    (void)state;
    life l = {.place = IN_FILE};
    scratch_path(l.path, "unsealed");
    bool failed = true;
    for (long n = 0; failed; n++) {
        caterva_error err = {.code = CATERVA_OK};
        make_it(&l);
        drop_seal(l.path);
        heap_arm(n);
        caterva_status status = caterva_seal(l.path, NULL, &err);
        failed = heap_disarm();
        CHECK(heap_live() == 0, "sealing, allocation %ld: %d leaks", n, heap_live());
        CHECK(status == CATERVA_OK || failed, "allocation %ld: %s", n,
              caterva_status_name(status));
        check_error("sealing", n, status, &err);
        CHECK_OK(caterva_open(l.path, NULL, &l.array, &err), err);
        const caterva_info *info;
        CHECK_OK(caterva_info_get(l.array, &info, &err), err);
        CHECK(info->sealed == (status == CATERVA_OK), "allocation %ld: sealed %d after %s", n,
              info->sealed, caterva_status_name(status));
        caterva_info_release(info);
        CHECK_OK(read_it(&l, &err), err);
        for (int i = 0; i < N; i++) CHECK(l.values[i] == i, "item %d is %d", i, l.values[i]);
        caterva_discard(l.array);
    }
}

int main(void)
{
    heap_install();
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_in_memory),
        cmocka_unit_test(an_array_in_a_file),
        cmocka_unit_test(an_array_in_a_directory),
        cmocka_unit_test(creating),
        cmocka_unit_test(repairing),
        cmocka_unit_test(repairing_a_directory),
        cmocka_unit_test(sealing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
