/* Any bytes as a sequence of operations on an array, compared with a naive n-d array after
 * each: what is read must equal what was written, through boxes, through selections of every
 * kind and through views. */
#include "picks.h"
#include <caterva_store.h>

enum { MAX_ITEMS = 2048, MAX_OPERATIONS = 24 };

typedef struct subject {
    fuzz_input *in;
    caterva_array *array;
    int ndim;
    int32_t item_size;
    int64_t shape[CATERVA_MAX_DIMS];
    uint8_t *now;                         /* the oracle, in C order */
    int64_t kept_shape[CATERVA_MAX_DIMS]; /* of the last commit */
    uint8_t *kept;
    uint8_t fill[16];
    uint8_t serial; /* every write has different bytes */
} subject;

static int64_t count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

static size_t array_size(const subject *s)
{
    return (size_t)(count(s->ndim, s->shape) * s->item_size);
}

static void need_ok(caterva_status status, const caterva_error *error, const char *what)
{
    FUZZ_NEED(status == CATERVA_OK, "%s: %s", what, error->message);
}

/* ---- The oracle --------------------------------------------------------- */

/* Steps a coordinate through a shape, last axis fastest; false at the end. */
static int step(int ndim, const int64_t *shape, int64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++at[d] < shape[d]) return 1;
        at[d] = 0;
    }
    return 0;
}

static size_t position(const subject *s, const int64_t *shape, const int64_t *at)
{
    int64_t n = 0;
    for (int d = 0; d < s->ndim; d++) n = n * shape[d] + at[d];
    return (size_t)(n * s->item_size);
}

/* Changes the shape of the oracle. Along `axis`, items from `from` on move to `to`; new items
 * hold the fill. */
static void reshape(subject *s, const int64_t *shape, int axis, int64_t from, int64_t to)
{
    size_t item = (size_t)s->item_size;
    uint8_t *next = fuzz_alloc((size_t)count(s->ndim, shape) * item);
    int64_t at[CATERVA_MAX_DIMS] = {0};
    for (int more = count(s->ndim, shape) > 0; more; more = step(s->ndim, shape, at)) {
        int64_t old[CATERVA_MAX_DIMS];
        int inside = 1;
        memcpy(old, at, sizeof old);
        if (axis >= 0) {
            if (at[axis] >= to)
                old[axis] = at[axis] - to + from;
            else if (at[axis] >= from)
                inside = 0;
        }
        for (int d = 0; d < s->ndim; d++) inside &= old[d] < s->shape[d];
        memcpy(next + position(s, shape, at),
               inside ? s->now + position(s, s->shape, old) : s->fill, item);
    }
    free(s->now);
    s->now = next;
    memcpy(s->shape, shape, sizeof s->shape);
}

/* ---- Operations --------------------------------------------------------- */

static void random_box(subject *s, int64_t *start, int64_t *stop, int64_t *extent)
{
    for (int d = 0; d < s->ndim; d++) {
        int64_t a = fuzz_between(s->in, 0, s->shape[d]),
                b = fuzz_between(s->in, 0, s->shape[d]);
        start[d] = a < b ? a : b;
        stop[d] = a < b ? b : a;
        extent[d] = stop[d] - start[d];
    }
}

/* Writes (or compares) the box item by item in the oracle. */
static void visit_box(subject *s, const int64_t *start, const int64_t *extent, uint8_t *items,
                      int write)
{
    size_t item = (size_t)s->item_size;
    int64_t at[CATERVA_MAX_DIMS] = {0};
    for (int more = count(s->ndim, extent) > 0; more; more = step(s->ndim, extent, at)) {
        int64_t place[CATERVA_MAX_DIMS] = {0};
        for (int d = 0; d < s->ndim; d++) place[d] = start[d] + at[d];
        uint8_t *ours = s->now + position(s, s->shape, place);
        uint8_t *theirs = items + position(s, extent, at);
        if (write)
            memcpy(ours, theirs, item);
        else
            FUZZ_NEED(memcmp(ours, theirs, item) == 0, "an item differs from the oracle");
    }
}

static uint8_t *new_items(subject *s, size_t size)
{
    uint8_t *items = fuzz_alloc(size);
    int kind = fuzz_byte(s->in) % 3;
    s->serial++;
    for (size_t i = 0; i < size; i++)
        items[i] = kind == 0 ? 0 : kind == 1 ? s->serial : (uint8_t)(s->serial + i * i);
    return items;
}

static void write_box(subject *s)
{
    caterva_error error;
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS], extent[CATERVA_MAX_DIMS];
    random_box(s, start, stop, extent);
    size_t size = (size_t)(count(s->ndim, extent) * s->item_size);
    uint8_t *items = new_items(s, size);
    need_ok(caterva_write(s->array, start, stop, items, size, &error), &error, "write");
    visit_box(s, start, extent, items, 1);
    free(items);
}

static void read_box(subject *s)
{
    caterva_error error;
    int64_t start[CATERVA_MAX_DIMS] = {0}, stop[CATERVA_MAX_DIMS], extent[CATERVA_MAX_DIMS];
    random_box(s, start, stop, extent);
    size_t size = (size_t)(count(s->ndim, extent) * s->item_size);
    uint8_t *items = fuzz_alloc(size);
    need_ok(caterva_read(s->array, start, stop, items, size, &error), &error, "read");
    visit_box(s, start, extent, items, 0);
    free(items);
}

static void read_all(subject *s)
{
    caterva_error error;
    int64_t zero[CATERVA_MAX_DIMS] = {0};
    uint8_t *items = fuzz_alloc(array_size(s));
    const caterva_info *info;
    need_ok(caterva_info_get(s->array, &info, &error), &error, "description");
    FUZZ_NEED(memcmp(info->shape, s->shape, (size_t)s->ndim * sizeof s->shape[0]) == 0,
              "the shape differs");
    caterva_info_release(info);
    need_ok(caterva_read(s->array, zero, s->shape, items, array_size(s), &error), &error,
            "read of all");
    FUZZ_NEED(memcmp(items, s->now, array_size(s)) == 0, "the array differs");
    free(items);
}

/* ---- Selections ----------------------------------------------------------- */

/* Memory for the items of a pick, in C order or in reverse. */
typedef struct memory {
    uint8_t *items; /* of the result, in C order */
    uint8_t *bytes; /* in the order of the buffer */
    int backwards;
    int64_t strides[PICK_MAX_DIMS];
    caterva_buffer buffer;
} memory;

static void memory_turn(const memory *m, const pick *p, size_t item, int to_buffer)
{
    for (int64_t i = 0; i < p->n; i++) {
        size_t place = (size_t)(m->backwards ? p->n - 1 - i : i) * item;
        if (to_buffer)
            memcpy(m->bytes + place, m->items + (size_t)i * item, item);
        else
            memcpy(m->items + (size_t)i * item, m->bytes + place, item);
    }
}

static void memory_make(subject *s, const pick *p, memory *m)
{
    size_t size = (size_t)(p->n * s->item_size);
    *m = (memory){.buffer = CATERVA_BUFFER_INIT};
    m->items = new_items(s, size);
    m->bytes = fuzz_alloc(size);
    m->backwards = fuzz_byte(s->in) % 2 && p->n > 0;
    m->buffer.data = m->bytes;
    m->buffer.size = size;
    m->buffer.ndim = p->ndim;
    m->buffer.shape = p->shape;
    if (m->backwards) {
        int64_t stride = -s->item_size;
        for (int d = p->ndim - 1; d >= 0; d--) {
            m->strides[d] = stride;
            stride *= p->shape[d];
        }
        m->buffer.strides = m->strides;
        m->buffer.data = m->bytes + size - (size_t)s->item_size;
    }
}

static void memory_free(memory *m)
{
    free(m->items);
    free(m->bytes);
}

/* If an item is selected repeatedly, the last value stays. */
static void accept(subject *s, const pick *p, const memory *m)
{
    size_t item = (size_t)s->item_size;
    for (int64_t i = 0; i < p->n; i++)
        memcpy(s->now + (size_t)p->items[i] * item, m->items + (size_t)i * item, item);
}

static void compare(const subject *s, const pick *p, const memory *m)
{
    size_t item = (size_t)s->item_size;
    for (int64_t i = 0; i < p->n; i++)
        FUZZ_NEED(memcmp(s->now + (size_t)p->items[i] * item, m->items + (size_t)i * item,
                         item) == 0,
                  "selected item %lld differs from the oracle", (long long)i);
}

static void select_items(subject *s)
{
    caterva_error error;
    pick p;
    memory m;
    int64_t shape[CATERVA_MAX_DIMS];
    int ndim, write = fuzz_byte(s->in) % 2;
    pick_any(s->in, s->ndim, s->shape, &p);
    memory_make(s, &p, &m);
    need_ok(caterva_selection_shape(s->array, &p.selection, &ndim, shape, &error), &error,
            "selection_shape");
    FUZZ_NEED(ndim == p.ndim && memcmp(shape, p.shape, (size_t)ndim * sizeof *shape) == 0,
              "the shape of the result differs");
    if (write) {
        memory_turn(&m, &p, (size_t)s->item_size, 1);
        need_ok(caterva_write_selection(s->array, &p.selection, &m.buffer, &error), &error,
                "write_selection");
        accept(s, &p, &m);
    } else {
        need_ok(caterva_read_selection(s->array, &p.selection, &m.buffer, &error), &error,
                "read_selection");
        memory_turn(&m, &p, (size_t)s->item_size, 0);
        compare(s, &p, &m);
    }
    memory_free(&m);
    pick_free(&p);
}

/* a[slices].T, read or written as a whole. */
static void go_through_a_view(subject *s)
{
    caterva_error error;
    caterva_view *all, *part, *turned;
    pick p;
    memory m;
    int write = fuzz_byte(s->in) % 2;
    pick_slices(s->in, s->ndim, s->shape, &p);
    need_ok(caterva_view_of(s->array, &all, &error), &error, "view_of");
    need_ok(caterva_view_select(all, p.axes, p.selection.n_axes, &part, &error), &error,
            "view_select");
    need_ok(caterva_view_transpose(part, NULL, &turned, &error), &error, "transpose");
    pick_transpose(&p);
    FUZZ_NEED(caterva_view_ndim(turned) == p.ndim &&
                  memcmp(caterva_view_shape(turned), p.shape,
                         (size_t)p.ndim * sizeof p.shape[0]) == 0,
              "the shape of the view differs");
    memory_make(s, &p, &m);
    if (write) {
        memory_turn(&m, &p, (size_t)s->item_size, 1);
        need_ok(caterva_view_write(turned, NULL, &m.buffer, &error), &error, "view_write");
        accept(s, &p, &m);
    } else {
        need_ok(caterva_view_read(turned, NULL, &m.buffer, &error), &error, "view_read");
        memory_turn(&m, &p, (size_t)s->item_size, 0);
        compare(s, &p, &m);
    }
    caterva_view_free(turned);
    caterva_view_free(part);
    caterva_view_free(all);
    memory_free(&m);
    pick_free(&p);
}

/* ---- Changes of shape, commits -------------------------------------------- */

static void resize(subject *s)
{
    caterva_error error;
    int64_t shape[CATERVA_MAX_DIMS] = {0}, room = MAX_ITEMS;
    for (int d = 0; d < s->ndim; d++) {
        shape[d] = fuzz_between(s->in, 0, 20);
        if (shape[d] > room) shape[d] = room;
        if (shape[d] > 0) room /= shape[d];
    }
    need_ok(caterva_resize(s->array, shape, &error), &error, "resize");
    reshape(s, shape, -1, 0, 0);
}

static void insert(subject *s)
{
    caterva_error error;
    if (s->ndim == 0) return;
    int axis = (int)fuzz_between(s->in, 0, s->ndim - 1);
    int64_t shape[CATERVA_MAX_DIMS], start[CATERVA_MAX_DIMS] = {0}, extent[CATERVA_MAX_DIMS];
    memcpy(shape, s->shape, sizeof shape);
    int64_t at = fuzz_between(s->in, 0, s->shape[axis]), n = fuzz_between(s->in, 0, 9);
    shape[axis] += n;
    if (count(s->ndim, shape) > 2 * MAX_ITEMS) return;
    memcpy(extent, s->shape, sizeof extent);
    extent[axis] = n;
    start[axis] = at;
    size_t size = (size_t)(count(s->ndim, extent) * s->item_size);
    uint8_t *items = fuzz_byte(s->in) % 3 ? new_items(s, size) : NULL;
    caterva_buffer src = CATERVA_BUFFER_INIT;
    src.data = items;
    src.size = size;
    need_ok(caterva_insert(s->array, axis, at, n, items ? &src : NULL, &error), &error,
            "insert");
    reshape(s, shape, axis, at, at + n);
    if (items) visit_box(s, start, extent, items, 1);
    free(items);
}

static void remove_items(subject *s)
{
    caterva_error error;
    if (s->ndim == 0) return;
    int axis = (int)fuzz_between(s->in, 0, s->ndim - 1);
    int64_t shape[CATERVA_MAX_DIMS];
    memcpy(shape, s->shape, sizeof shape);
    int64_t a = fuzz_between(s->in, 0, s->shape[axis]),
            b = fuzz_between(s->in, 0, s->shape[axis]);
    int64_t start = a < b ? a : b, stop = a < b ? b : a;
    shape[axis] -= stop - start;
    need_ok(caterva_remove(s->array, axis, start, stop, &error), &error, "remove");
    reshape(s, shape, axis, stop, start);
}

static void keep(subject *s)
{
    free(s->kept);
    s->kept = fuzz_alloc(array_size(s));
    memcpy(s->kept, s->now, array_size(s));
    memcpy(s->kept_shape, s->shape, sizeof s->shape);
}

static void commit(subject *s)
{
    caterva_error error;
    need_ok(caterva_commit(s->array, &error), &error, "commit");
    keep(s);
}

static void rollback(subject *s)
{
    caterva_error error;
    need_ok(caterva_rollback(s->array, &error), &error, "rollback");
    memcpy(s->shape, s->kept_shape, sizeof s->shape);
    free(s->now);
    s->now = fuzz_alloc(array_size(s));
    memcpy(s->now, s->kept, array_size(s));
}

/* Reopens from the bytes of the frame, as from a file. */
static void reopen(subject *s)
{
    caterva_error error;
    void *frame;
    size_t size;
    need_ok(caterva_frame_copy(s->array, &frame, &size, &error), &error, "to_frame");
    caterva_discard(s->array);
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = 1;
    need_ok(caterva_frame_open(frame, size, 1, &options, &s->array, &error), &error, "open");
    caterva_free(frame);
    keep(s);
}

static void operate(subject *s)
{
    switch (fuzz_byte(s->in) % 12) {
    case 0: write_box(s); break;
    case 1: read_box(s); break;
    case 2:
    case 3: select_items(s); break;
    case 4: go_through_a_view(s); break;
    case 5: insert(s); break;
    case 6: remove_items(s); break;
    case 7: commit(s); break;
    case 8: rollback(s); break;
    case 9: resize(s); break;
    default: reopen(s); break;
    }
    read_all(s);
}

/* ---- One input ---------------------------------------------------------- */

static void create(subject *s)
{
    static const int32_t sizes[] = {1, 2, 4, 8, 3, 16};
    static const int codecs[] = {CATERVA_CODEC_LZ4, CATERVA_CODEC_ZSTD,
                                 CATERVA_CODEC_BLOSCLZ};
    caterva_error error;
    int32_t chunk[CATERVA_MAX_DIMS], block[CATERVA_MAX_DIMS];
    caterva_create_options options = CATERVA_CREATE_INIT;
    s->ndim = (int)fuzz_between(s->in, 0, 3);
    s->item_size = sizes[fuzz_between(s->in, 0, 5)];
    for (int d = 0; d < s->ndim; d++) {
        s->shape[d] = fuzz_between(s->in, 0, 12);
        chunk[d] = (int32_t)fuzz_between(s->in, 1, 8);
        block[d] = (int32_t)fuzz_between(s->in, 1, chunk[d]);
    }
    options.ndim = s->ndim;
    options.shape = s->shape;
    options.chunk_shape = chunk;
    options.block_shape = block;
    options.item_size = s->item_size;
    options.threads = 1;
    options.codec = codecs[fuzz_between(s->in, 0, 2)];
    options.level = (int)fuzz_between(s->in, 0, 5);
    options.filters[5] = fuzz_byte(s->in) % 2 ? CATERVA_FILTER_SHUFFLE : CATERVA_FILTER_NONE;
    options.dirty_budget = fuzz_byte(s->in) % 2 ? 1 : 0;
    if (fuzz_byte(s->in) % 2) {
        options.fill = CATERVA_FILL_VALUE;
        memset(s->fill, 1 + fuzz_byte(s->in) % 3, sizeof s->fill);
        options.fill_value = s->fill;
    }
    need_ok(caterva_create("mem:", &options, &s->array, &error), &error, "create");
    s->now = fuzz_alloc(array_size(s));
    for (size_t i = 0; i < array_size(s); i += (size_t)s->item_size)
        memcpy(s->now + i, s->fill, (size_t)s->item_size);
    keep(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_input in = {bytes, size};
    subject s = {.in = &in};
    create(&s);
    for (int i = 0; i < MAX_OPERATIONS && in.size > 0; i++) operate(&s);
    caterva_discard(s.array);
    free(s.now);
    free(s.kept);
    return 0;
}
