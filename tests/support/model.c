#include "model.h"

#include "buffer.h"
#include "info.h"
#include "random.h"

/* cmocka declares a print_error too */
#define print_error blosc2_print_error
#include <b2nd.h>
#include <blosc2.h>
#undef print_error

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 40, COLUMNS = 30, CHUNK_ROWS = 16, CHUNK_COLUMNS = 12, MOST_ROWS = 90 };

/* One operation on the model and, unless `array` is NULL, on the array. */
typedef struct step {
    rng random;
    model *m;
    caterva_array *array;
    caterva_error *err;
} step;

typedef caterva_status operation(step *s);

/* ---- The model ----------------------------------------------------------- */

static size_t size_of(const int64_t shape[2])
{
    return (size_t)(shape[0] * shape[1]) * sizeof(int32_t);
}

static int32_t *random_items(rng *r, int64_t n)
{
    int32_t *items = check_alloc((size_t)n * sizeof *items);
    int32_t base = (int32_t)rng_between(r, 0, 1 << 20);
    bool noisy = rng_one_in(r, 2);
    for (int64_t i = 0; i < n; i++)
        items[i] = noisy ? (int32_t)rng_next(r) : base + (int32_t)i;
    return items;
}

model model_begin(const char *kind)
{
    rng r = rng_from_seed((uint64_t)kind[0] * 131 + (uint64_t)kind[1]);
    model m = {.shape = {ROWS, COLUMNS}, .note_size = 0};
    m.items = random_items(&r, ROWS * COLUMNS);
    return m;
}

void model_free(model *m)
{
    free(m->items);
    m->items = NULL;
}

bool model_equal(const model *a, const model *b)
{
    return memcmp(a->shape, b->shape, sizeof a->shape) == 0 && a->note_size == b->note_size &&
           memcmp(a->note, b->note, a->note_size) == 0 &&
           memcmp(a->items, b->items, size_of(a->shape)) == 0;
}

static bool same_shape(const model *a, const model *b)
{
    return memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

bool model_is_mixture(const model *m, const model *a, const model *b)
{
    if (!same_shape(m, a) && !same_shape(m, b)) return false;
    if (!same_shape(a, b)) return true; /* one's shape with the other's items */
    for (int64_t i = 0; i < m->shape[0] * m->shape[1]; i++)
        if (m->items[i] != a->items[i] && m->items[i] != b->items[i]) return false;
    return true;
}

/* Moves the rows from `from` on by `shift`; if that is negative, they replace the rows before them.
 * New rows are zero. */
static void reshape(model *m, int64_t rows, int64_t columns, int64_t from, int64_t shift)
{
    int64_t shape[2] = {rows, columns};
    int32_t *items = check_alloc(size_of(shape));
    memset(items, 0, size_of(shape));
    for (int64_t row = 0; row < m->shape[0]; row++) {
        int64_t to = row < from ? row : row + shift;
        if (to >= rows || (row < from && row >= from + shift)) continue;
        int64_t n = columns < m->shape[1] ? columns : m->shape[1];
        memcpy(items + to * columns, m->items + row * m->shape[1], (size_t)n * sizeof *items);
    }
    free(m->items);
    m->items = items;
    memcpy(m->shape, shape, sizeof shape);
}

static void put_box(model *m, const int64_t *start, const int64_t *stop, const int32_t *src)
{
    int64_t width = stop[1] - start[1];
    for (int64_t row = start[0]; row < stop[0]; row++, src += width)
        memcpy(m->items + row * m->shape[1] + start[1], src, (size_t)width * sizeof *src);
}

/* ---- Operations ---------------------------------------------------------- */

static caterva_status write_box(step *s, const int64_t *start, const int64_t *stop)
{
    int64_t n = (stop[0] - start[0]) * (stop[1] - start[1]);
    int32_t *items = random_items(&s->random, n);
    put_box(s->m, start, stop, items);
    caterva_status status = CATERVA_OK;
    if (s->array) status = caterva_write(s->array, start, stop, items, (size_t)n * 4, s->err);
    free(items);
    return status;
}

static caterva_status unaligned(step *s)
{
    int64_t start[2], stop[2];
    for (int d = 0; d < 2; d++) {
        start[d] = rng_between(&s->random, 0, s->m->shape[d] - 1);
        stop[d] = rng_between(&s->random, start[d] + 1, s->m->shape[d]);
    }
    return write_box(s, start, stop);
}

static caterva_status aligned(step *s)
{
    static const int64_t chunk[2] = {CHUNK_ROWS, CHUNK_COLUMNS};
    int64_t start[2], stop[2];
    for (int d = 0; d < 2; d++) {
        int64_t n = (s->m->shape[d] + chunk[d] - 1) / chunk[d];
        int64_t first = rng_between(&s->random, 0, n - 1);
        start[d] = first * chunk[d];
        stop[d] = rng_between(&s->random, first + 1, n) * chunk[d];
        if (stop[d] > s->m->shape[d]) stop[d] = s->m->shape[d];
    }
    return write_box(s, start, stop);
}

static caterva_status resize_to(step *s, int64_t rows, int64_t columns)
{
    int64_t shape[2] = {rows, columns};
    reshape(s->m, rows, columns, s->m->shape[0], 0);
    return s->array ? caterva_resize(s->array, shape, s->err) : CATERVA_OK;
}

static caterva_status resize(step *s)
{
    int64_t rows = rng_between(&s->random, 1, MOST_ROWS);
    int64_t columns = rng_between(&s->random, 1, 2 * COLUMNS);
    caterva_status status = resize_to(s, rows, columns);
    return status == CATERVA_OK ? unaligned(s) : status;
}

static caterva_status insert_rows(step *s, int64_t at, int64_t n)
{
    int64_t start[2] = {at, 0}, stop[2] = {at + n, s->m->shape[1]};
    int32_t *items = random_items(&s->random, n * s->m->shape[1]);
    reshape(s->m, s->m->shape[0] + n, s->m->shape[1], at, n);
    put_box(s->m, start, stop, items);
    caterva_status status = CATERVA_OK;
    size_t size = (size_t)(n * s->m->shape[1]) * 4;
    if (s->array && at + n == s->m->shape[0])
        status = caterva_append(s->array, 0, n, PLAIN(items, size), s->err);
    else if (s->array)
        status = caterva_insert(s->array, 0, at, n, PLAIN(items, size), s->err);
    free(items);
    return status;
}

static caterva_status remove_rows(step *s)
{
    int64_t rows = s->m->shape[0];
    bool whole_chunks = rows > 2 * CHUNK_ROWS && rng_one_in(&s->random, 2);
    int64_t start = whole_chunks ? CHUNK_ROWS : rng_between(&s->random, 0, rows - 2);
    int64_t n = whole_chunks ? CHUNK_ROWS : rng_between(&s->random, 1, rows - 1 - start);
    reshape(s->m, rows - n, s->m->shape[1], start + n, -n);
    return s->array ? caterva_remove(s->array, 0, start, start + n, s->err) : CATERVA_OK;
}

/* Shrinks the array to one row of chunks if it has become too large. */
static caterva_status keep_small(step *s)
{
    return s->m->shape[0] > MOST_ROWS ? resize_to(s, CHUNK_ROWS, COLUMNS) : CATERVA_OK;
}

static caterva_status append(step *s)
{
    caterva_status status = keep_small(s);
    if (status != CATERVA_OK) return status;
    return insert_rows(s, s->m->shape[0], rng_between(&s->random, 1, 20));
}

static caterva_status insert(step *s)
{
    caterva_status status = keep_small(s);
    if (status != CATERVA_OK) return status;
    bool whole_chunks = rng_one_in(&s->random, 2);
    int64_t at = whole_chunks ? CHUNK_ROWS : rng_between(&s->random, 0, s->m->shape[0] - 1);
    if (at > s->m->shape[0]) at = s->m->shape[0];
    return insert_rows(s, at, whole_chunks ? CHUNK_ROWS : rng_between(&s->random, 1, 9));
}

static caterva_status take_away(step *s)
{
    if (s->m->shape[0] < CHUNK_ROWS) return insert_rows(s, 0, 3 * CHUNK_ROWS);
    return remove_rows(s);
}

static caterva_status set_note(step *s)
{
    if (s->m->note_size > 0 && rng_one_in(&s->random, 3)) {
        s->m->note_size = 0;
        return s->array ? caterva_attr_delete(s->array, "note", s->err) : CATERVA_OK;
    }
    s->m->note_size = (size_t)rng_between(&s->random, 1, MODEL_NOTE);
    rng_fill(&s->random, s->m->note, s->m->note_size);
    if (!s->array) return CATERVA_OK;
    return caterva_attr_set(s->array, "note", s->m->note, s->m->note_size, s->err);
}

static caterva_status mixed(step *s)
{
    static operation *const all[] = {append, aligned,   unaligned, resize,
                                     insert, take_away, set_note};
    caterva_status status = CATERVA_OK;
    for (int i = rng_int(&s->random, 1, 3); i > 0 && status == CATERVA_OK; i--)
        status = all[rng_int(&s->random, 0, 6)](s);
    return status;
}

static const struct kind {
    const char *name;
    operation *run;
} kinds[] = {
    {"append", append},       {"aligned", aligned}, {"unaligned", unaligned},
    {"resize", resize},       {"insert", insert},   {"remove", take_away},
    {"attributes", set_note}, {"compact", aligned}, /* the test also compacts the file */
    {"mixed", mixed},
};

static operation *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) return kinds[i].run;
    return NULL;
}

bool model_knows(const char *kind) { return find_kind(kind) != NULL; }

caterva_status model_step(model *m, const char *kind, int i, caterva_array *array,
                          caterva_error *err)
{
    step s = {.random = rng_from_seed((uint64_t)i * 1000003 + (uint64_t)kind[0]),
              .m = m,
              .array = array,
              .err = err};
    return find_kind(kind)(&s);
}

/* ---- Files --------------------------------------------------------------- */

caterva_status model_create(const model *m, const char *path, caterva_layout layout,
                            caterva_error *err)
{
    static const int32_t chunks[2] = {CHUNK_ROWS, CHUNK_COLUMNS}, blocks[2] = {5, 7};
    static const int64_t origin[2] = {0, 0};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = m->shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<i4";
    options.layout = layout;
    options.threads = 1;
    caterva_array *array;
    caterva_status status = caterva_create(path, &options, &array, err);
    if (status != CATERVA_OK) return status;
    status = caterva_write(array, origin, m->shape, m->items, size_of(m->shape), err);
    if (status == CATERVA_OK) return caterva_close(array, err);
    caterva_discard(array);
    return status;
}

static caterva_status load_from(caterva_array *array, model *out, caterva_error *err)
{
    static const int64_t origin[2] = {0, 0};
    const caterva_info *info = info_of(array);
    memcpy(out->shape, info->shape, sizeof out->shape);
    out->items = check_alloc(size_of(out->shape));
    caterva_status status =
        caterva_read(array, origin, out->shape, out->items, size_of(out->shape), err);
    if (status != CATERVA_OK) return status;
    void *note;
    status = caterva_attr_get(array, "note", &note, &out->note_size, err);
    if (status == CATERVA_ENOTFOUND) return CATERVA_OK;
    if (status == CATERVA_OK && out->note_size <= MODEL_NOTE)
        memcpy(out->note, note, out->note_size);
    if (status == CATERVA_OK) caterva_free(note);
    return status;
}

model_fault model_load(model *out, const char *path, char why[256])
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_array *array;
    *out = (model){.items = NULL};
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    if (caterva_open(path, &options, &array, &err) != CATERVA_OK) {
        snprintf(why, 256, "%s", err.message);
        return MODEL_NO_OPEN;
    }
    caterva_status status = load_from(array, out, &err);
    caterva_discard(array);
    snprintf(why, 256, "%s", err.message);
    return status == CATERVA_OK ? MODEL_OK : MODEL_NO_READ;
}

static int load_note_b2nd(b2nd_array_t *array, model *out)
{
    uint8_t *note;
    int32_t size;
    if (blosc2_vlmeta_exists(array->sc, "note") < 0) return 0;
    if (blosc2_vlmeta_get(array->sc, "note", &note, &size) < 0) return -1;
    out->note_size = (size_t)size;
    if (size <= MODEL_NOTE) memcpy(out->note, note, (size_t)size);
    free(note);
    return 0;
}

model_fault model_load_b2nd(model *out, const char *path, char why[256])
{
    b2nd_array_t *array;
    *out = (model){.items = NULL};
    int result = b2nd_open(path, &array);
    snprintf(why, 256, "b2nd_open: %d", result);
    if (result < 0) return MODEL_NO_OPEN;
    memcpy(out->shape, array->shape, sizeof out->shape);
    out->items = check_alloc(size_of(out->shape));
    result = b2nd_to_cbuffer(array, out->items, (int64_t)size_of(out->shape));
    if (result >= 0) result = load_note_b2nd(array, out);
    b2nd_free(array);
    snprintf(why, 256, "b2nd_to_cbuffer: %d", result);
    return result < 0 ? MODEL_NO_READ : MODEL_OK;
}
