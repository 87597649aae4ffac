/* Room: jobs. Marks of written items: made from plans and selections, joined, compared, and
 * converted to bytes. Does not access items or files. */
#include "jobs/marks.h"

#include "base/arith.h"
#include "engine/items/copy.h"
#include "format/msgpack.h"

#include <stdlib.h>
#include <string.h>

/* ---- Marks of one block: a box while writes join to one, else bits ----------------- */

static void mark_free(cv_mark *mark)
{
    cv_free(mark->box);
    cv_free(mark->bits);
    *mark = (cv_mark){CV_MARK_NONE, NULL, NULL};
}

bool cv_block_valid(const cv_grid *grid, int64_t chunk, int64_t block, int64_t *shape)
{
    int64_t at[CV_MAX_DIMS], in[CV_MAX_DIMS];
    cv_grid_chunk_index(grid, chunk, at);
    cv_grid_block_index(grid, block, in);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t start = at[d] * grid->chunk_shape[d];
        int64_t items = cv_min_i64(grid->chunk_shape[d], grid->shape[d] - start);
        shape[d] = cv_min_i64(grid->block_shape[d], items - in[d] * grid->block_shape[d]);
        if (shape[d] <= 0) return false;
    }
    return true;
}

static int64_t block_items(const cv_grid *grid)
{
    return grid->block_bytes / grid->item_size;
}

static size_t mark_bits_size(const cv_grid *grid)
{
    return (size_t)(block_items(grid) + 7) / 8;
}

static bool get_bit(const uint8_t *bits, int64_t i) { return bits[i / 8] >> i % 8 & 1; }

static void set_bit(uint8_t *bits, int64_t i) { bits[i / 8] |= (uint8_t)(1u << i % 8); }

/* Called for each line of a box along the last axis, with its first item and its length. */
typedef void (*line_fn)(void *context, int64_t first, int64_t n);

static void each_line(const cv_grid *grid, const int32_t *box, line_fn line, void *context)
{
    int ndim = grid->ndim, last = ndim - 1;
    int64_t at[CV_MAX_DIMS];
    for (int d = 0; d < ndim; d++) at[d] = box[d];
    int64_t length = ndim == 0 ? 1 : box[ndim + last] - box[last];
    while (true) {
        int64_t first = 0;
        for (int d = 0; d < ndim; d++)
            first += at[d] * (grid->item_strides[d] / grid->item_size);
        line(context, first, length);
        int d = last - 1;
        while (d >= 0 && ++at[d] == box[ndim + d]) {
            at[d] = box[d];
            d--;
        }
        if (d < 0) return;
    }
}

static void set_line(void *context, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++) set_bit(context, i);
}

static void set_box_bits(const cv_grid *grid, const int32_t *box, uint8_t *bits)
{
    each_line(grid, box, set_line, bits);
}

/* Sets `box` to the block's items that are inside the array. */
static void whole_box(const cv_grid *grid, const int64_t *valid, int32_t *box)
{
    for (int d = 0; d < grid->ndim; d++) {
        box[d] = 0;
        box[grid->ndim + d] = (int32_t)valid[d];
    }
}

/* A search for a bit of value `wanted` in a box. */
typedef struct meeting {
    const uint8_t *bits;
    bool wanted;
    bool found;
} meeting;

static void find_in_line(void *context, int64_t first, int64_t n)
{
    meeting *m = context;
    for (int64_t i = first; i < first + n && !m->found; i++)
        m->found = get_bit(m->bits, i) == m->wanted;
}

static bool has_bit(const cv_grid *grid, const int32_t *box, const uint8_t *bits, bool wanted)
{
    meeting m = {bits, wanted, false};
    each_line(grid, box, find_in_line, &m);
    return m.found;
}

/* Sets the mark to ALL. The functions below do so when every item is marked. */
static void mark_all(cv_mark *mark)
{
    mark_free(mark);
    mark->kind = CV_MARK_ALL;
}

static cv_status to_bits(cv_mark *mark, const cv_grid *grid, cv_error *err)
{
    if (mark->kind == CV_MARK_ITEMS) return CV_OK;
    uint8_t *bits = cv_calloc(1, mark_bits_size(grid));
    if (!bits) return cv_fail_memory(err, mark_bits_size(grid), "marks");
    if (mark->kind == CV_MARK_BOX) set_box_bits(grid, mark->box, bits);
    cv_free(mark->box); /* the mark has no bits here */
    mark->box = NULL;
    mark->bits = bits;
    mark->kind = CV_MARK_ITEMS;
    return CV_OK;
}

static bool is_inside(int ndim, const int32_t *box, const int32_t *other)
{
    for (int d = 0; d < ndim; d++)
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all are set */
        if (box[d] < other[d] || box[ndim + d] > other[ndim + d]) return false;
    return true;
}

/* Extends `old` to the union of both boxes and returns true if this union is a box: if they differ
 * on one axis only, without a gap, or if one contains the other. */
static bool join_boxes(int ndim, const int32_t *box, int32_t *old)
{
    int differs = -1;
    if (is_inside(ndim, box, old)) return true;
    if (is_inside(ndim, old, box)) {
        memcpy(old, box, (size_t)ndim * 2 * sizeof box[0]);
        return true;
    }
    for (int d = 0; d < ndim; d++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all are set */
        if (box[d] == old[d] && box[ndim + d] == old[ndim + d]) continue;
        if (differs >= 0 || box[d] > old[ndim + d] || old[d] > box[ndim + d]) return false;
        differs = d;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one axis differs */
    old[differs] = (int32_t)cv_min_i64(old[differs], box[differs]);
    old[ndim + differs] = (int32_t)cv_max_i64(old[ndim + differs], box[ndim + differs]);
    return true;
}

static cv_status set_box(cv_mark *mark, int ndim, const int32_t *box, cv_error *err)
{
    size_t size = (size_t)ndim * 2 * sizeof box[0];
    mark->box = cv_malloc(size);
    if (!mark->box) return cv_fail_memory(err, size, "marks");
    memcpy(mark->box, box, size);
    mark->kind = CV_MARK_BOX;
    return CV_OK;
}

static void settle(cv_mark *mark, const cv_mark_place *place)
{
    int32_t whole[2 * CV_MAX_DIMS];
    const cv_grid *grid = place->grid;
    whole_box(grid, place->valid, whole);
    if (mark->kind == CV_MARK_BOX ? is_inside(grid->ndim, whole, mark->box)
                                  : !has_bit(grid, whole, mark->bits, false))
        mark_all(mark);
}

static cv_status mark_add_box(cv_mark *mark, const cv_mark_place *place, const int32_t *box,
                              cv_error *err)
{
    const cv_grid *grid = place->grid;
    if (mark->kind == CV_MARK_ALL) return CV_OK;
    if (mark->kind == CV_MARK_NONE) CV_TRY(set_box(mark, grid->ndim, box, err));
    if (mark->kind != CV_MARK_BOX || !join_boxes(grid->ndim, box, mark->box)) {
        CV_TRY(to_bits(mark, grid, err));
        set_box_bits(grid, box, mark->bits);
    }
    settle(mark, place);
    return CV_OK;
}

/* Marks the items whose byte is not 0. */
static cv_status mark_add_bytes(cv_mark *mark, const cv_mark_place *place,
                                const uint8_t *bytes, cv_error *err)
{
    if (mark->kind == CV_MARK_ALL) return CV_OK;
    CV_TRY(to_bits(mark, place->grid, err));
    for (int64_t i = 0, n = block_items(place->grid); i < n; i++)
        if (bytes[i]) set_bit(mark->bits, i);
    settle(mark, place);
    return CV_OK;
}

typedef struct copying {
    const uint8_t *src;
    uint8_t *dst;
} copying;

static void copy_bits(void *context, int64_t first, int64_t n)
{
    const copying *c = context;
    for (int64_t i = first; i < first + n; i++)
        if (get_bit(c->src, i)) set_bit(c->dst, i);
}

/* Marks the items whose bit is set in a file. The caller has checked the size. Skips padding. */
static cv_status mark_add_bits(cv_mark *mark, const cv_mark_place *place, const uint8_t *bits,
                               cv_error *err)
{
    int32_t whole[2 * CV_MAX_DIMS];
    whole_box(place->grid, place->valid, whole);
    CV_TRY(to_bits(mark, place->grid, err));
    copying c = {bits, mark->bits};
    each_line(place->grid, whole, copy_bits, &c);
    settle(mark, place);
    return CV_OK;
}

static bool boxes_meet(int ndim, const int32_t *a, const int32_t *b)
{
    for (int d = 0; d < ndim; d++)
        if (a[d] >= b[ndim + d] || b[d] >= a[ndim + d]) return false;
    return true;
}

bool cv_marks_meet(const cv_grid *grid, const cv_mark *a, const cv_mark *b)
{
    if (a->kind == CV_MARK_NONE || b->kind == CV_MARK_NONE) return false;
    if (a->kind == CV_MARK_ALL || b->kind == CV_MARK_ALL) return true;
    if (a->kind == CV_MARK_BOX && b->kind == CV_MARK_BOX)
        return boxes_meet(grid->ndim, a->box, b->box);
    if (a->kind == CV_MARK_BOX) return cv_marks_meet(grid, b, a);
    if (b->kind == CV_MARK_BOX) return has_bit(grid, b->box, a->bits, true);
    for (size_t i = 0; i < mark_bits_size(grid); i++)
        if (a->bits[i] & b->bits[i]) return true;
    return false;
}

static void copy_items(const cv_grid *grid, const uint8_t *bits, const uint8_t *src,
                       uint8_t *dst)
{
    size_t size = (size_t)grid->item_size;
    for (int64_t i = 0, n = block_items(grid); i < n; i++)
        if (get_bit(bits, i)) memcpy(dst + (size_t)i * size, src + (size_t)i * size, size);
}

static void copy_marked_box(const cv_grid *grid, const int32_t *box, const uint8_t *src,
                            uint8_t *dst)
{
    int64_t shape[CV_MAX_DIMS], pos = 0;
    for (int d = 0; d < grid->ndim; d++) {
        shape[d] = box[grid->ndim + d] - box[d];
        pos += box[d] * grid->item_strides[d];
    }
    cv_copy_box(grid->ndim, shape, grid->item_size,
                (cv_strided){(uint8_t *)src + pos, grid->item_strides},
                (cv_strided){dst + pos, grid->item_strides});
}

void cv_mark_copy(const cv_grid *grid, const cv_mark *mark, const uint8_t *src, uint8_t *dst)
{
    if (mark->kind == CV_MARK_ALL) memcpy(dst, src, (size_t)grid->block_bytes);
    if (mark->kind == CV_MARK_BOX) copy_marked_box(grid, mark->box, src, dst);
    if (mark->kind == CV_MARK_ITEMS) copy_items(grid, mark->bits, src, dst);
}

typedef struct comparing {
    int64_t item_size;
    const uint8_t *a, *b;
    bool differ;
} comparing;

static void compare_line(void *context, int64_t first, int64_t n)
{
    comparing *c = context;
    int64_t pos = first * c->item_size;
    size_t size = (size_t)(n * c->item_size);
    c->differ = c->differ || memcmp(c->a + pos, c->b + pos, size) != 0;
}

bool cv_block_same(const cv_mark_place *place, const uint8_t *a, const uint8_t *b)
{
    int32_t whole[2 * CV_MAX_DIMS];
    comparing c = {place->grid->item_size, a, b, false};
    whole_box(place->grid, place->valid, whole);
    each_line(place->grid, whole, compare_line, &c);
    return !c.differ;
}

/* ---- Marks of chunks --------------------------------------------------------------- */

/* Access to the blocks of a chunk: `*mark` may be changed between enter and leave, which count open
 * blocks. A chunk that was written whole has no marks. */
typedef struct cv_marking {
    cv_marks *marks;
    cv_marked_chunk *chunk;
    cv_mark *mark;
    cv_mark_place place;
} cv_marking;

void cv_marks_init(cv_marks *marks, const cv_grid *grid)
{
    *marks = (cv_marks){.grid = *grid};
}

static void free_blocks(const cv_marks *marks, cv_marked_chunk *chunk)
{
    for (int64_t b = 0; chunk->marks && b < marks->grid.n_blocks; b++)
        mark_free(&chunk->marks[b]);
    cv_free(chunk->marks);
    chunk->marks = NULL;
}

void cv_marks_clear(cv_marks *marks)
{
    for (int64_t i = 0; i < marks->n; i++) free_blocks(marks, &marks->chunks[i]);
    cv_free(marks->chunks);
    cv_free(marks->table);
    cv_marks_init(marks, &(cv_grid){.ndim = 0});
}

/* ---- The table --------------------------------------------------------------------- */

static size_t slot_of(const cv_marks *marks, int64_t chunk)
{
    size_t slot = (size_t)((uint64_t)chunk * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    while (true) {
        slot &= marks->n_slots - 1;
        int64_t at = marks->table[slot];
        if (at == 0 || marks->chunks[at - 1].chunk == chunk) return slot;
        slot++;
    }
}

static cv_status set_table(cv_marks *marks, size_t n_slots, cv_error *err)
{
    int64_t *table = cv_calloc(n_slots, sizeof table[0]);
    if (!table) return cv_fail_memory(err, n_slots * sizeof table[0], "marks");
    cv_free(marks->table);
    marks->table = table;
    marks->n_slots = n_slots;
    for (int64_t i = 0; i < marks->n; i++)
        table[slot_of(marks, marks->chunks[i].chunk)] = i + 1;
    return CV_OK;
}

const cv_marked_chunk *cv_marks_find(const cv_marks *marks, int64_t chunk)
{
    if (marks->n_slots == 0) return NULL;
    int64_t at = marks->table[slot_of(marks, chunk)];
    return at == 0 ? NULL : &marks->chunks[at - 1];
}

static cv_status grow(cv_marks *marks, cv_error *err)
{
    int64_t max = marks->max ? marks->max * 2 : 16;
    size_t size = (size_t)max * sizeof marks->chunks[0];
    cv_marked_chunk *chunks =
        cv_realloc(marks->chunks, (size_t)marks->n * sizeof chunks[0], size);
    if (!chunks) return cv_fail_memory(err, size, "marks");
    marks->chunks = chunks;
    marks->max = max;
    return set_table(marks, (size_t)max * 2, err);
}

/* Returns the chunk's entry. Creates the entry with empty marks if it is missing. */
static cv_status get(cv_marks *marks, int64_t chunk, cv_marked_chunk **out, cv_error *err)
{
    *out = (cv_marked_chunk *)cv_marks_find(marks, chunk);
    if (*out) return CV_OK;
    if (marks->n == marks->max) CV_TRY(grow(marks, err));
    size_t n_blocks = (size_t)marks->grid.n_blocks;
    cv_marked_chunk entry = {.chunk = chunk, .marks = cv_calloc(n_blocks, sizeof(cv_mark))};
    if (!entry.marks) return cv_fail_memory(err, n_blocks * sizeof(cv_mark), "marks");
    int64_t shape[CV_MAX_DIMS];
    for (int64_t b = 0; b < marks->grid.n_blocks; b++)
        entry.n_open += cv_block_valid(&marks->grid, chunk, b, shape);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): grow has allocated the list */
    marks->chunks[marks->n] = entry;
    *out = &marks->chunks[marks->n++];
    marks->table[slot_of(marks, chunk)] = marks->n;
    return CV_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const cv_marked_chunk *)a)->chunk, y = ((const cv_marked_chunk *)b)->chunk;
    return (x > y) - (x < y);
}

cv_status cv_marks_sort(cv_marks *marks, cv_error *err)
{
    if (marks->n == 0) return CV_OK;
    qsort(marks->chunks, (size_t)marks->n, sizeof marks->chunks[0], by_number);
    return set_table(marks, marks->n_slots, err);
}

static cv_status marking_open(cv_marking *m, cv_marks *marks, int64_t chunk, cv_error *err)
{
    *m = (cv_marking){.marks = marks, .place = {.grid = &marks->grid}};
    return get(marks, chunk, &m->chunk, err);
}

static void marking_enter(cv_marking *m, int64_t block)
{
    m->mark = &m->chunk->marks[block];
    (void)cv_block_valid(&m->marks->grid, m->chunk->chunk, block, m->place.valid);
    m->chunk->n_open += m->mark->kind == CV_MARK_ALL;
}

static void marking_leave(cv_marking *m) { m->chunk->n_open -= m->mark->kind == CV_MARK_ALL; }

static void marking_close(cv_marking *m)
{
    if (m->chunk->n_open == 0) free_blocks(m->marks, m->chunk);
}

cv_status cv_marks_add_chunk(cv_marks *marks, int64_t chunk, cv_error *err)
{
    cv_marked_chunk *entry;
    CV_TRY(get(marks, chunk, &entry, err));
    entry->n_open = 0;
    free_blocks(marks, entry);
    return CV_OK;
}

static void box_of_job(const cv_grid *grid, const cv_chunk_job *job, int64_t block,
                       int32_t *box)
{
    int64_t in[CV_MAX_DIMS];
    cv_grid_block_index(grid, block, in);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t start = in[d] * grid->block_shape[d];
        int64_t end = start + grid->block_shape[d];
        box[d] = (int32_t)(cv_max_i64(job->lo[d], start) - start);
        box[grid->ndim + d] = (int32_t)(cv_min_i64(job->hi[d], end) - start);
    }
}

static cv_status add_job(cv_marks *marks, const cv_plan *plan, const cv_chunk_job *job,
                         cv_error *err)
{
    cv_marking m;
    cv_status status = marking_open(&m, marks, job->chunk, err);
    for (int64_t j = 0; j < job->n_blocks && status == CV_OK && m.chunk->marks; j++) {
        cv_block_job block;
        int32_t box[2 * CV_MAX_DIMS];
        cv_plan_block(plan, job, j, &block);
        box_of_job(&marks->grid, job, block.block, box);
        marking_enter(&m, block.block);
        if (block.covers)
            mark_all(m.mark);
        else
            status = mark_add_box(m.mark, &m.place, box, err);
        marking_leave(&m);
    }
    if (status == CV_OK) marking_close(&m);
    return status;
}

cv_status cv_marks_add_box(cv_marks *marks, const cv_plan *plan, cv_error *err)
{
    for (int64_t k = 0; k < plan->n_chunks; k++) {
        cv_chunk_job job;
        cv_plan_chunk(plan, k, &job);
        if (cv_chunk_job_covers(plan, &job))
            CV_TRY(cv_marks_add_chunk(marks, job.chunk, err));
        else
            CV_TRY(add_job(marks, plan, &job, err));
    }
    return CV_OK;
}

/* ---- Marking selections ------------------------------------------------------------ */

cv_grid cv_marks_grid(const cv_marks *marks)
{
    cv_grid grid = marks->grid;
    for (int d = 0; d < grid.ndim; d++) grid.item_strides[d] /= grid.item_size;
    grid.block_bytes /= grid.item_size;
    grid.item_size = 1;
    return grid;
}

/* Copies one byte to each selected item. */
static void copy_byte(void *context, const cv_part *part)
{
    static const uint8_t one = 1;
    cv_part_copy(part, CV_IN_BUFFER, &one, context);
}

/* Marks the selected items of a chunk. If a mask selects none, the chunk gets no entry. */
static cv_status add_selected(cv_marks *marks, const cv_select_plan *plan,
                              const cv_select_chunk *chunk, uint8_t *bytes, cv_error *err)
{
    cv_marking m = {.marks = NULL};
    cv_status status = CV_OK;
    for (int64_t j = 0; j < chunk->n_blocks && status == CV_OK; j++) {
        cv_select_block block;
        plan->ops->block(plan, chunk, j, &block);
        if (!block.wanted) continue;
        if (!m.marks) CV_TRY(marking_open(&m, marks, chunk->chunk, err));
        if (!m.chunk->marks) break;
        memset(bytes, 0, (size_t)plan->grid->block_bytes);
        plan->ops->parts(plan, chunk, j, copy_byte, bytes);
        marking_enter(&m, block.block);
        status = mark_add_bytes(m.mark, &m.place, bytes, err);
        marking_leave(&m);
    }
    if (status == CV_OK && m.marks) marking_close(&m);
    return status;
}

cv_status cv_marks_add_selection(cv_marks *marks, const cv_selection *selection,
                                 cv_error *err)
{
    static const int64_t nowhere[CV_MAX_DIMS + 1] = {0};
    cv_select_plan plan;
    cv_buffer bytes = {0};
    cv_status status = cv_select_plan_init(&plan, selection, nowhere, NULL, err);
    if (status == CV_OK)
        status = cv_buffer_resize(&bytes, (size_t)selection->grid->block_bytes, err);
    for (int64_t k = 0; status == CV_OK && k < plan.n_chunks; k++) {
        cv_select_chunk chunk;
        plan.ops->chunk(&plan, k, &chunk);
        status = add_selected(marks, &plan, &chunk, bytes.data, err);
    }
    cv_select_plan_free(&plan);
    cv_buffer_free(&bytes);
    return status;
}

void cv_marks_box(const cv_marks *marks, int64_t *first, int64_t *n)
{
    int64_t at[CV_MAX_DIMS], last[CV_MAX_DIMS];
    int ndim = marks->grid.ndim;
    for (int d = 0; d < ndim; d++) n[d] = first[d] = last[d] = 0;
    for (int64_t i = 0; i < marks->n; i++) {
        cv_grid_chunk_index(&marks->grid, marks->chunks[i].chunk, at);
        for (int d = 0; d < ndim; d++) {
            first[d] = i == 0 ? at[d] : cv_min_i64(first[d], at[d]);
            last[d] = i == 0 ? at[d] : cv_max_i64(last[d], at[d]);
        }
    }
    for (int d = 0; d < ndim && marks->n > 0; d++) n[d] = last[d] - first[d] + 1;
}

cv_mark cv_mark_of(const cv_marks *marks, const cv_marked_chunk *chunk, int64_t number,
                   int64_t block)
{
    int64_t valid[CV_MAX_DIMS];
    cv_mark all = {CV_MARK_ALL, NULL, NULL}, none = {CV_MARK_NONE, NULL, NULL};
    if (chunk && chunk->marks) return chunk->marks[block];
    return cv_block_valid(&marks->grid, number, block, valid) ? all : none;
}

/* ---- Marks as bytes: accepted only if they fit the grid ---------------------------- */

static const char magic[5] = {'c', 'v', 'm', 'k', 1};

static void write_mark(cv_writer *w, const cv_grid *grid, const cv_mark *mark)
{
    if (mark->kind == CV_MARK_ITEMS) cv_write_bytes(w, mark->bits, mark_bits_size(grid));
    for (int i = 0; mark->kind == CV_MARK_BOX && i < 2 * grid->ndim; i++)
        cv_write_varint(w, (uint64_t)mark->box[i]);
}

static void write_blocks(cv_writer *w, const cv_grid *grid, const cv_mark *marks)
{
    for (int64_t b = 0, end; b < grid->n_blocks && w->status == CV_OK; b = end) {
        end = b + 1;
        while (end < grid->n_blocks && marks[end].kind == marks[b].kind) end++;
        cv_write_varint(w, (uint64_t)(end - b) << 2 | marks[b].kind);
        for (int64_t i = b; i < end; i++) write_mark(w, grid, &marks[i]);
    }
}

cv_status cv_marks_write(const cv_marks *marks, cv_buffer *out, cv_error *err)
{
    uint64_t n = 0;
    int64_t next = 0;
    cv_writer w = cv_writer_open(out, err);
    for (int64_t i = 0; i < marks->n; i++) n += marks->chunks[i].marks != NULL;
    cv_write_bytes(&w, magic, sizeof magic);
    cv_write_varint(&w, n);
    for (int64_t i = 0; i < marks->n && w.status == CV_OK; i++) {
        const cv_marked_chunk *c = &marks->chunks[i];
        if (!c->marks) continue;
        cv_write_varint(&w, (uint64_t)(c->chunk - next));
        next = c->chunk + 1;
        write_blocks(&w, &marks->grid, c->marks);
    }
    return w.status;
}

static cv_status read_box(cv_reader *r, cv_marking *m, cv_error *err)
{
    int32_t box[2 * CV_MAX_DIMS];
    const cv_mark_place *place = &m->place;
    int ndim = place->grid->ndim;
    for (int d = 0; d < ndim; d++)
        box[d] = (int32_t)cv_read_varint(r, (uint64_t)place->valid[d], "a box");
    for (int d = 0; d < ndim; d++) {
        box[ndim + d] = (int32_t)cv_read_varint(r, (uint64_t)place->valid[d], "a box");
        if (box[d] >= box[ndim + d])
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at, "the box [%d, %d) on axis %d is empty",
                           box[d], box[ndim + d], d);
    }
    CV_TRY(cv_reader_check(r, err));
    return mark_add_box(m->mark, place, box, err);
}

static cv_status read_bits(cv_reader *r, cv_marking *m, cv_error *err)
{
    const uint8_t *bits = cv_read_bytes(r, mark_bits_size(m->place.grid), "the items");
    CV_TRY(cv_reader_check(r, err));
    return mark_add_bits(m->mark, &m->place, bits, err);
}

static cv_status read_mark(cv_reader *r, cv_marking *m, cv_mark_kind kind, cv_error *err)
{
    switch (kind) {
    case CV_MARK_BOX: return read_box(r, m, err);
    case CV_MARK_ITEMS: return read_bits(r, m, err);
    case CV_MARK_ALL: mark_all(m->mark); break;
    default: break;
    }
    return CV_OK;
}

static cv_status read_blocks(cv_reader *r, cv_marking *m, cv_error *err)
{
    const cv_grid *grid = m->place.grid;
    int64_t shape[CV_MAX_DIMS];
    for (int64_t b = 0; b < grid->n_blocks;) {
        uint64_t run =
            cv_read_varint(r, (uint64_t)grid->n_blocks << 2 | 3, "a run of blocks");
        int64_t end = b + (int64_t)(run >> 2);
        if (end == b || end > grid->n_blocks)
            cv_reader_fail(
                r, CATERVA_ECORRUPT, r->at,
                "the run of blocks [%lld, %lld) is empty or exceeds the %lld blocks",
                (long long)b, (long long)end, (long long)grid->n_blocks);
        CV_TRY(cv_reader_check(r, err));
        for (; b < end; b++) {
            bool exists = cv_block_valid(grid, m->chunk->chunk, b, shape);
            if (!exists && (run & 3) != CV_MARK_NONE)
                cv_reader_fail(r, CATERVA_ECORRUPT, r->at,
                               "block %lld of chunk %lld has no items", (long long)b,
                               (long long)m->chunk->chunk);
            CV_TRY(cv_reader_check(r, err));
            marking_enter(m, b);
            cv_status status = read_mark(r, m, (cv_mark_kind)(run & 3), err);
            marking_leave(m);
            CV_TRY(status);
        }
    }
    return CV_OK;
}

cv_status cv_marks_read(cv_marks *marks, const uint8_t *bytes, size_t size, cv_error *err)
{
    cv_reader r = cv_reader_open(bytes, size, -1, "the marks of a part");
    int64_t next = 0, most = marks->grid.n_chunks;
    cv_expect(&r, magic, sizeof magic, "the magic");
    uint64_t n = cv_read_varint(&r, (uint64_t)most, "the number of chunks");
    for (uint64_t i = 0; i < n && r.status == CV_OK; i++) {
        cv_marking m;
        next += (int64_t)cv_read_varint(&r, (uint64_t)most, "a chunk's number");
        if (next >= most)
            cv_reader_fail(&r, CATERVA_ECORRUPT, r.at,
                           "chunk %lld does not exist: there are %lld", (long long)next,
                           (long long)most);
        CV_TRY(cv_reader_check(&r, err));
        CV_TRY(marking_open(&m, marks, next++, err));
        CV_TRY(read_blocks(&r, &m, err));
        marking_close(&m);
    }
    return cv_reader_finish(&r, err);
}
