/* Room: engine/plan. Marks of written items: made by plans and selections, joined, compared.
 * Nobody's data are seen here, and no file. */
#include "engine/plan/marks.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/plan/select_plan.h"

#include <stdlib.h>
#include <string.h>

void cv_marks_init(cv_marks *marks, const cv_grid *grid)
{
    *marks = (cv_marks){.grid = *grid};
}

static void free_blocks(const cv_marks *marks, cv_marked_chunk *chunk)
{
    for (int64_t b = 0; chunk->marks && b < marks->grid.n_blocks; b++)
        cv_mark_free(&chunk->marks[b]);
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

/* ---- The table -------------------------------------------------------------------- */

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

/* The chunk's entry, made when missing: nothing of it is marked then. */
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
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): they have room for one more */
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

/* ---- Marking blocks ------------------------------------------------------------------ */

cv_status cv_marking_open(cv_marking *m, cv_marks *marks, int64_t chunk, cv_error *err)
{
    *m = (cv_marking){.marks = marks, .place = {.grid = &marks->grid}};
    return get(marks, chunk, &m->chunk, err);
}

void cv_marking_enter(cv_marking *m, int64_t block)
{
    m->mark = &m->chunk->marks[block];
    (void)cv_block_valid(&m->marks->grid, m->chunk->chunk, block, m->place.valid);
    m->chunk->n_open += m->mark->kind == CV_MARK_ALL;
}

void cv_marking_leave(cv_marking *m) { m->chunk->n_open -= m->mark->kind == CV_MARK_ALL; }

void cv_marking_close(cv_marking *m)
{
    if (m->chunk->n_open == 0) free_blocks(m->marks, m->chunk);
}

/* ---- Marking chunks ------------------------------------------------------------------ */

cv_status cv_marks_add_chunk(cv_marks *marks, int64_t chunk, cv_error *err)
{
    cv_marked_chunk *entry;
    CV_TRY(get(marks, chunk, &entry, err));
    entry->n_open = 0;
    free_blocks(marks, entry);
    return CV_OK;
}

/* The box of the job inside one of its blocks. */
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
    cv_status status = cv_marking_open(&m, marks, job->chunk, err);
    for (int64_t j = 0; j < job->n_blocks && status == CV_OK && m.chunk->marks; j++) {
        cv_block_job block;
        int32_t box[2 * CV_MAX_DIMS];
        cv_plan_block(plan, job, j, &block);
        box_of_job(&marks->grid, job, block.block, box);
        cv_marking_enter(&m, block.block);
        if (block.covers)
            cv_mark_all(m.mark);
        else
            status = cv_mark_add_box(m.mark, &m.place, box, err);
        cv_marking_leave(&m);
    }
    if (status == CV_OK) cv_marking_close(&m);
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

/* ---- Marking selections --------------------------------------------------------------- */

cv_grid cv_marks_grid(const cv_marks *marks)
{
    cv_grid grid = marks->grid;
    for (int d = 0; d < grid.ndim; d++) grid.item_strides[d] /= grid.item_size;
    grid.block_bytes /= grid.item_size;
    grid.item_size = 1;
    return grid;
}

/* Copies a byte that stands for any item to the place of each selected one. */
static void copy_byte(void *context, const cv_part *part)
{
    static const uint8_t one = 1;
    cv_part_copy(part, CV_IN_BUFFER, &one, context);
}

/* A mask may have no item in a chunk: it is opened at the first. */
static cv_status add_selected(cv_marks *marks, const cv_select_plan *plan,
                              const cv_select_chunk *chunk, uint8_t *bytes, cv_error *err)
{
    cv_marking m = {.marks = NULL};
    cv_status status = CV_OK;
    for (int64_t j = 0; j < chunk->n_blocks && status == CV_OK; j++) {
        cv_select_block block;
        plan->ops->block(plan, chunk, j, &block);
        if (!block.wanted) continue;
        if (!m.marks) CV_TRY(cv_marking_open(&m, marks, chunk->chunk, err));
        if (!m.chunk->marks) break;
        memset(bytes, 0, (size_t)plan->grid->block_bytes);
        plan->ops->parts(plan, chunk, j, copy_byte, bytes);
        cv_marking_enter(&m, block.block);
        status = cv_mark_add_bytes(m.mark, &m.place, bytes, err);
        cv_marking_leave(&m);
    }
    if (status == CV_OK && m.marks) cv_marking_close(&m);
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

/* ---- Asking ------------------------------------------------------------------------- */

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
