/* Room: engine/plan. Marks, bytes <-> struct: believed as far as they fit the grid. */
#include "engine/plan/marks_bytes.h"

#include "base/arith.h"
#include "format/msgpack.h"

static const char magic[5] = {'c', 'v', 'm', 'k', 1};

/* ---- Writing ------------------------------------------------------------------------ */

static void write_mark(cv_writer *w, const cv_grid *grid, const cv_mark *mark)
{
    if (mark->kind == CV_MARK_ITEMS) cv_write_bytes(w, mark->bits, cv_mark_bits_size(grid));
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

/* ---- Reading ------------------------------------------------------------------------ */

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
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at, "a box [%d, %d) of axis %d", box[d],
                           box[ndim + d], d);
    }
    CV_TRY(cv_reader_check(r, err));
    return cv_mark_add_box(m->mark, place, box, err);
}

static cv_status read_bits(cv_reader *r, cv_marking *m, cv_error *err)
{
    const uint8_t *bits = cv_read_bytes(r, cv_mark_bits_size(m->place.grid), "the items");
    CV_TRY(cv_reader_check(r, err));
    return cv_mark_add_bits(m->mark, &m->place, bits, err);
}

static cv_status read_mark(cv_reader *r, cv_marking *m, cv_mark_kind kind, cv_error *err)
{
    switch (kind) {
    case CV_MARK_BOX: return read_box(r, m, err);
    case CV_MARK_ITEMS: return read_bits(r, m, err);
    case CV_MARK_ALL: cv_mark_all(m->mark); break;
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
            cv_reader_fail(r, CATERVA_ECORRUPT, r->at, "blocks [%lld, %lld) of %lld",
                           (long long)b, (long long)end, (long long)grid->n_blocks);
        CV_TRY(cv_reader_check(r, err));
        for (; b < end; b++) {
            bool exists = cv_block_valid(grid, m->chunk->chunk, b, shape);
            if (!exists && (run & 3) != CV_MARK_NONE)
                cv_reader_fail(r, CATERVA_ECORRUPT, r->at,
                               "block %lld of chunk %lld has no items", (long long)b,
                               (long long)m->chunk->chunk);
            CV_TRY(cv_reader_check(r, err));
            cv_marking_enter(m, b);
            cv_status status = read_mark(r, m, (cv_mark_kind)(run & 3), err);
            cv_marking_leave(m);
            CV_TRY(status);
        }
    }
    return CV_OK;
}

cv_status cv_marks_read(cv_marks *marks, const uint8_t *bytes, size_t size, cv_error *err)
{
    cv_reader r = cv_reader_open(bytes, size, -1, "what a part says of its items");
    int64_t next = 0, most = marks->grid.n_chunks;
    cv_expect(&r, magic, sizeof magic, "the magic");
    uint64_t n = cv_read_varint(&r, (uint64_t)most, "the number of chunks");
    for (uint64_t i = 0; i < n && r.status == CV_OK; i++) {
        cv_marking m;
        next += (int64_t)cv_read_varint(&r, (uint64_t)most, "a chunk's number");
        if (next >= most)
            cv_reader_fail(&r, CATERVA_ECORRUPT, r.at, "chunk %lld of %lld", (long long)next,
                           (long long)most);
        CV_TRY(cv_reader_check(&r, err));
        CV_TRY(cv_marking_open(&m, marks, next++, err));
        CV_TRY(read_blocks(&r, &m, err));
        cv_marking_close(&m);
    }
    return cv_reader_finish(&r, err);
}
