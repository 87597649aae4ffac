/* Room: frame. Where new chunks go, and which index entries they change.
 *
 *   contiguous:  | committed state, free space | new chunks ... end ->
 *   directory:   new chunk files with numbers never used before
 *
 * Nothing is written where the committed state has bytes, so it stays whole
 * whatever happens; nor where an older state has some that a reader still sees. */
#include "frame/put.h"

#include "base/os_file.h"
#include "frame/layout.h"
#include "frame/txn.h"

#include <string.h>

/* ---- Tables ----
 *
 * Block tables of chunks that are at hand whole. A name of 0 means
 * that no table is known, so a table whose checksum is 0 is not used: its chunk
 * stays unverified, one in 2^32. */

cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err)
{
    size_t before = out->size;
    CV_TRY(cv_buffer_resize(out, before + cv_block_table_size(table->n), err));
    *name = cv_block_table_write(table, out->data + before);
    return CV_OK;
}

/* Memory for what a table of `n` blocks is made from. */
typedef struct parts {
    cv_block_range *ranges;
    uint32_t *sums;
} parts;

static cv_status new_parts(int64_t n, parts *out, cv_error *err)
{
    size_t size = (size_t)n * (sizeof(cv_block_range) + sizeof(uint32_t)) + 1;
    out->ranges = cv_malloc(size);
    out->sums = (uint32_t *)(out->ranges + n);
    return out->ranges ? CV_OK : cv_fail_memory(err, size, "a block table");
}

static cv_status make(const cv_chunk_header *header, const cv_chunk_expect *expect,
                      const uint8_t *chunk, cv_block_table *table, cv_block_range *ranges,
                      cv_error *err)
{
    bool listed = cv_block_starts_size(header) > 0;
    if (listed)
        CV_TRY(cv_block_starts_parse(header, chunk + CV_CHUNK_HEADER_SIZE, table->n, expect,
                                     ranges, err));
    cv_block_table_make(chunk, header, listed ? ranges : NULL, table);
    return CV_OK;
}

cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err)
{
    cv_chunk_expect expect = {
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = (int64_t)size,
    };
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(chunk, &expect, &header, err));
    cv_block_table table = {.n = cv_block_table_blocks(&header, grid->n_blocks)};
    parts memory;
    CV_TRY(new_parts(table.n, &memory, err));
    table.blocks = memory.sums;
    cv_status status = make(&header, &expect, chunk, &table, memory.ranges, err);
    if (status == CV_OK) status = cv_table_append(&table, out, name, err);
    cv_free(memory.ranges);
    return status;
}

/* ---- Pieces ----
 *
 * Writes a chunk out of pieces, part by part. What the pieces mean
 * is not known here.
 *
 *     pieces   | head | stored run ........ | new | stored run .... |
 *     parts    |       0       |       1        |       2       | 3 |
 *
 * A part is read, put together and written while it is in the cache; a buffer
 * for the whole chunk would send each byte to memory and back. Where the store
 * copies by itself, long stored runs do not pass through here at all. */

enum { PART_BYTES = 256 * 1024, PAGE_BYTES = 4096 };

/* Of a store that copies by itself, for which large is quick. */
enum { LARGE_PART_BYTES = 8192 * 1024, LEAST_COPY = 32 * 1024 };

static size_t count(const cv_buffer *list) { return list->size / sizeof(cv_piece); }

static bool continues(const cv_piece *last, const cv_piece *next)
{
    if (last->bytes) return next->bytes == last->bytes + last->size;
    return !next->bytes && next->store == last->store && next->object == last->object &&
           next->pos == last->pos + last->size;
}

cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err)
{
    if (piece.size == 0) return CV_OK;
    if (list->size > 0) {
        cv_piece *last = (cv_piece *)(void *)list->data + count(list) - 1;
        if (continues(last, &piece)) {
            last->size += piece.size;
            return CV_OK;
        }
    }
    return cv_buffer_append(list, &piece, sizeof piece, err);
}

static bool store_copies(const cv_pieces_job *job)
{
    return job->store->ops->copy && job->object == CV_FRAME_OBJECT;
}

static uint64_t part_bytes(const cv_pieces_job *job)
{
    return store_copies(job) ? LARGE_PART_BYTES : PART_BYTES;
}

/* Parts end with a page of the store, so that no page is written twice: the
 * first one is shorter by what stands before the job in its page. */
static uint64_t part_start(const cv_pieces_job *job, int64_t part)
{
    uint64_t start = (uint64_t)part * part_bytes(job);
    uint64_t before = job->pos % PAGE_BYTES;
    return start < before ? 0 : start - before;
}

int64_t cv_pieces_n_parts(const cv_pieces_job *job)
{
    uint64_t bytes = part_bytes(job);
    return (int64_t)((job->pos % PAGE_BYTES + job->size + bytes - 1) / bytes);
}

static cv_status take(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                      uint8_t *dst, size_t size, cv_error *err)
{
    cv_store *store = piece->store ? piece->store : job->store;
    if (!piece->bytes)
        return cv_store_read(store, piece->object, piece->pos + skip, dst, size, err);
    memcpy(dst, piece->bytes + skip, size);
    return CV_OK;
}

/* What is collected for the next write: stage->size bytes, to stand at `pos`. */
static cv_status write_stage(const cv_pieces_job *job, cv_buffer *stage, uint64_t pos,
                             cv_error *err)
{
    size_t size = stage->size;
    stage->size = 0;
    if (size == 0) return CV_OK;
    return cv_store_write(job->store, job->object, pos - size, stage->data, size, err);
}

/* Writes bytes [skip, skip + size) of a piece, which stand at `pos`: now, or with
 * what is collected. */
static cv_status add(const cv_pieces_job *job, const cv_piece *piece, uint64_t skip,
                     size_t size, uint64_t pos, cv_buffer *stage, cv_error *err)
{
    if (!piece->bytes && !piece->store && store_copies(job) && size >= LEAST_COPY) {
        CV_TRY(write_stage(job, stage, pos, err));
        return job->store->ops->copy(job->store, piece->pos + skip, pos, size, err);
    }
    for (size_t done = 0; done < size;) {
        size_t step = size - done < PART_BYTES ? size - done : PART_BYTES;
        if (stage->size + step > PART_BYTES) CV_TRY(write_stage(job, stage, pos + done, err));
        CV_TRY(cv_buffer_reserve(stage, stage->size + step, err));
        CV_TRY(take(job, piece, skip + done, stage->data + stage->size, step, err));
        stage->size += step;
        done += step;
    }
    return CV_OK;
}

cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err)
{
    uint64_t at = part_start(job, part), end = part_start(job, part + 1), piece_start = 0;
    if (end > job->size) end = job->size;
    stage->size = 0;
    const cv_piece *piece = (const cv_piece *)(const void *)job->list->data;
    for (; at < end; piece++) {
        uint64_t piece_end = piece_start + piece->size;
        if (piece_end > at) {
            size_t size = (size_t)((piece_end < end ? piece_end : end) - at);
            CV_TRY(add(job, piece, at - piece_start, size, job->pos + at, stage, err));
            at += size;
        }
        piece_start = piece_end;
    }
    return write_stage(job, stage, job->pos + end, err);
}

/* ---- Put ---- */

/* ---- The pending index -------------------------------------------------- */

/* The chunk file, put since the commit, that a second put makes useless; -1:
 * none. Takes it off the list. Called with the lock. */
static cv_object superseded_file(cv_txn *txn, int64_t offset)
{
    if (!txn->base->header.sparse || cv_offset_is_special(offset)) return -1;
    for (size_t i = 0; i < txn->n_new_files; i++) {
        if (txn->new_files[i] != offset) continue;
        txn->new_files[i] = txn->new_files[--txn->n_new_files];
        return offset;
    }
    return -1;
}

static cv_status set_entry(cv_txn *txn, int64_t chunk, int64_t offset, uint32_t name,
                           cv_error *err)
{
    cv_object useless = -1;
    int64_t old = 0;
    cv_mutex_lock(&txn->lock);
    cv_status status = cv_txn_own_index(txn, err);
    if (status == CV_OK) {
        old = cv_index_get(&txn->index, chunk);
        status = cv_index_set(&txn->index, chunk, offset, err);
        if (status == CV_OK) status = cv_index_set_name(&txn->index, chunk, name, err);
    }
    if (status == CV_OK) {
        useless = superseded_file(txn, old);
        if (!txn->base->header.sparse && !cv_offset_is_special(old))
            cv_holes_replaced(txn, txn->base->header.header_size + (uint64_t)old);
        txn->changed = true;
    }
    cv_mutex_unlock(&txn->lock);
    if (useless >= 0) cv_store_remove(txn->frame->store, useless, NULL);
    return status;
}

/* ---- Putting chunks ----------------------------------------------------- */

static cv_status remember_file(cv_txn *txn, int64_t number, cv_error *err)
{
    if (txn->n_new_files == txn->max_new_files) {
        size_t grown = txn->max_new_files ? txn->max_new_files * 2 : 64;
        cv_object *files = cv_realloc(txn->new_files, txn->n_new_files * sizeof files[0],
                                      grown * sizeof files[0]);
        if (!files) return cv_fail_memory(err, grown * sizeof files[0], "chunk files");
        txn->new_files = files;
        txn->max_new_files = grown;
    }
    txn->new_files[txn->n_new_files++] = number;
    return CV_OK;
}

/* Called with the lock. */
static void take_room(cv_txn *txn)
{
    if (txn->expected == 0) return;
    cv_store_take_room(txn->frame->store, txn->end, txn->expected);
    txn->expected = 0;
    txn->has_room = true;
}

void cv_txn_expect(cv_txn *txn, uint64_t size)
{
    cv_mutex_lock(&txn->lock);
    if (!txn->base->header.sparse) txn->expected = size;
    cv_mutex_unlock(&txn->lock);
}

/* Nothing was ever behind `end`, and what is left there is cut off at the latest by the close
 * or the next writer. */
void cv_txn_expect_end(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    cv_mutex_lock(&txn->lock);
    if (txn->has_room && cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) == CV_OK &&
        stored > txn->end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, txn->end, NULL);
    txn->expected = 0;
    txn->has_room = false;
    cv_mutex_unlock(&txn->lock);
}

/* What is to be put, and where it would be well placed. */
typedef struct room {
    size_t size;
    bool replaces; /* another chunk */
    bool is_like;  /* behind the end it gets a place of the same remainder as */
    uint64_t like; /* this one, by CV_CLONE_UNIT */
} room;

/* A hole that is large enough, or the place behind the end; there with slack for
 * a chunk that replaces another, since more of its kind will follow. Reuse is also
 * speed: bytes a file already has are much cheaper to write than new ones. */
static cv_status reserve_range(cv_txn *txn, const room *r, uint64_t *pos, cv_error *err)
{
    cv_extent at;
    bool found;
    CV_TRY(cv_holes_take(txn, r->size, &at, &found, err));
    if (found) {
        cv_layout_cache_forget(txn->frame->layouts, CV_FRAME_OBJECT, at.pos);
    } else {
        take_room(txn);
        if (r->is_like) txn->end += (r->like - txn->end) % CV_CLONE_UNIT;
        at = (cv_extent){txn->end, r->size + (r->replaces ? r->size / CV_SPACE_SLACK : 0)};
        txn->end += at.size;
    }
    if (at.pos + at.size > txn->chunks_end) txn->chunks_end = at.pos + at.size;
    cv_space_put(&txn->space, at.pos, at.size);
    *pos = at.pos;
    return CV_OK;
}

cv_status cv_txn_take_range(cv_txn *txn, size_t size, uint64_t *pos, cv_error *err)
{
    const room r = {.size = size};
    return reserve_range(txn, &r, pos, err);
}

/* A range of the frame, or a new chunk file. Called with the lock. */
static cv_status reserve(cv_txn *txn, room *r, cv_put *put, cv_error *err)
{
    if (txn->base->header.sparse) {
        if (txn->next_file > UINT32_MAX)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "all numbers of chunk files are used up: compact the array");
        put->object = put->offset = txn->next_file;
        CV_TRY(remember_file(txn, txn->next_file, err));
        txn->next_file++;
        return CV_OK;
    }
    const cv_index *index;
    CV_TRY(cv_txn_index(txn, &index, err));
    r->replaces = !cv_offset_is_special(cv_index_get(index, put->chunk));
    put->object = CV_FRAME_OBJECT;
    CV_TRY(reserve_range(txn, r, &put->pos, err));
    put->offset = (int64_t)(put->pos - txn->base->header.header_size);
    return CV_OK;
}

static cv_status begin(cv_txn *txn, int64_t chunk, room *r, cv_put *out, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    *out = (cv_put){.chunk = chunk};
    cv_mutex_lock(&txn->lock);
    cv_status status = reserve(txn, r, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

cv_status cv_txn_put_begin(cv_txn *txn, int64_t chunk, size_t size, cv_put *out,
                           cv_error *err)
{
    room r = {.size = size};
    return begin(txn, chunk, &r, out, err);
}

static void abandon(cv_txn *txn, const cv_put *put)
{
    bool sparse = txn->base->header.sparse;
    cv_mutex_lock(&txn->lock);
    if (sparse)
        (void)superseded_file(txn, put->object);
    else
        cv_holes_replaced(txn, put->pos);
    cv_mutex_unlock(&txn->lock);
    if (sparse) cv_store_remove(txn->frame->store, put->object, NULL);
}

cv_status cv_txn_put_end(cv_txn *txn, const cv_put *put, cv_status written, cv_error *err)
{
    cv_status status = written;
    if (status == CV_OK) status = set_entry(txn, put->chunk, put->offset, put->name, err);
    if (status != CV_OK) abandon(txn, put);
    return status;
}

static cv_status put_bytes(cv_txn *txn, int64_t chunk, const cv_buffer *bytes, uint32_t name,
                           cv_error *err)
{
    cv_put put;
    CV_TRY(cv_txn_put_begin(txn, chunk, bytes->size, &put, err));
    put.name = name;
    cv_status status =
        cv_store_write(txn->frame->store, put.object, put.pos, bytes->data, bytes->size, err);
    return cv_txn_put_end(txn, &put, status, err);
}

/* ---- Chunks that are stored somewhere else --------------------------------- */

/* Whether it is worth a gap of less than CV_CLONE_UNIT before the chunk. */
static bool may_clone(cv_txn *txn, const cv_stored_chunk *stored)
{
    enum { LEAST = 64 * CV_CLONE_UNIT };
    if (!stored->from || stored->object != CV_FRAME_OBJECT || stored->size < LEAST)
        return false;
    cv_mutex_lock(&txn->lock);
    if (!txn->knows_clones)
        txn->clones =
            !txn->base->header.sparse && cv_store_may_clone(txn->frame->store, stored->from);
    txn->knows_clones = true;
    bool may = txn->clones;
    cv_mutex_unlock(&txn->lock);
    return may;
}

static void clone_no_more(cv_txn *txn)
{
    cv_mutex_lock(&txn->lock);
    txn->clones = false;
    cv_mutex_unlock(&txn->lock);
}

/* Of the chunk the bytes [*start, *end), whole units of both files; none: to be written. What
 * lies in a hole that was found has another place within its unit, mostly. */
static void clone_middle(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored,
                         size_t *start, size_t *end)
{
    uint64_t before = (0 - stored->pos) % CV_CLONE_UNIT;
    uint64_t size = (stored->size - before) / CV_CLONE_UNIT * CV_CLONE_UNIT;
    *start = *end = 0;
    if ((put->pos - stored->pos) % CV_CLONE_UNIT != 0 || !may_clone(txn, stored)) return;
    if (!cv_store_clone(txn->frame->store, put->pos + before, stored->from,
                        stored->pos + before, size)) {
        clone_no_more(txn);
        return;
    }
    *start = (size_t)before;
    *end = (size_t)(before + size);
}

/* In several writes, as the bytes are borrowed. */
static cv_status write_stored(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored,
                              cv_error *err)
{
    cv_store *store = txn->frame->store;
    const cv_buffer *table = stored->table;
    size_t start, end;
    clone_middle(txn, put, stored, &start, &end);
    if (start > 0)
        CV_TRY(cv_store_write(store, put->object, put->pos, stored->bytes, start, err));
    if (end < stored->size)
        CV_TRY(cv_store_write(store, put->object, put->pos + end, stored->bytes + end,
                              stored->size - end, err));
    return cv_store_write(store, put->object, put->pos + stored->size, table->data,
                          table->size, err);
}

static bool share(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored, size_t size)
{
    return stored->from && stored->object != CV_FRAME_OBJECT &&
           cv_store_share(txn->frame->store, put->object, stored->from, stored->object, size);
}

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err)
{
    room r = {.size = stored->size + stored->table->size, .like = stored->pos};
    r.is_like = may_clone(txn, stored);
    cv_put put;
    CV_TRY(begin(txn, chunk, &r, &put, err));
    put.name = stored->name;
    bool shared = share(txn, &put, stored, r.size);
    cv_status status = shared ? CV_OK : write_stored(txn, &put, stored, err);
    return cv_txn_put_end(txn, &put, status, err);
}

cv_status cv_txn_put(cv_txn *txn, int64_t chunk, cv_buffer *encoded, cv_error *err)
{
    size_t size = encoded->size;
    uint32_t name;
    CV_TRY(cv_table_make(&txn->state->grid, encoded->data, size, encoded, &name, err));
    cv_status status = put_bytes(txn, chunk, encoded, name, err);
    encoded->size = size;
    return status;
}

cv_status cv_txn_put_special(cv_txn *txn, int64_t chunk, cv_ref_kind kind, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    return set_entry(txn, chunk, cv_offset_of_kind(kind), 0, err);
}

/* ---- Reshape ----
 *
 * What a change of shape does to the index: chunks keep their
 * bytes and get other numbers, or are dropped. No chunk is decoded. */

int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    int64_t index[CV_MAX_DIMS];
    int64_t number = 0;
    cv_grid_chunk_index(to, chunk, index);
    for (int d = 0; d < to->ndim; d++) {
        int64_t i = index[d];
        if (d == reshape->axis && i >= reshape->at) {
            i -= reshape->shift;
            if (i < reshape->at && reshape->shift > 0) return -1; /* in the gap */
        }
        if (i >= from->chunk_counts[d]) return -1;
        number += i * from->chunk_strides[d];
    }
    return number;
}

int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    int64_t index[CV_MAX_DIMS];
    int64_t number = 0;
    cv_grid_chunk_index(from, chunk, index);
    for (int d = 0; d < from->ndim; d++) {
        int64_t i = index[d];
        if (d == reshape->axis && i >= reshape->at) {
            i += reshape->shift;
            if (i < reshape->at) return -1; /* among the dropped */
        }
        if (i >= to->chunk_counts[d]) return -1;
        number += i * to->chunk_strides[d];
    }
    return number;
}

bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to)
{
    if (reshape->shift != 0) return false;
    for (int d = 1; d < to->ndim; d++)
        if (from->chunk_counts[d] != to->chunk_counts[d]) return false;
    return true;
}

enum { MOST_DROPPED = 4096 };

/* The old chunks that the new grid has no place for are dead. Where there are very many,
 * the next writer finds the others. */
static void drop_chunks(cv_txn *txn, const cv_index *old, const cv_reshape *reshape,
                        const cv_grid *to)
{
    const cv_grid *from = &txn->state->grid;
    bool keeps = cv_reshape_keeps_numbers(reshape, from, to);
    int64_t first = keeps ? to->n_chunks : 0;
    int left = MOST_DROPPED;
    for (int64_t i = first; i < old->n && left > 0; i++) {
        int64_t offset = cv_index_get(old, i);
        if (cv_offset_is_special(offset)) continue;
        if (!keeps && cv_reshape_target(reshape, from, to, i) >= 0) continue;
        cv_holes_replaced(txn, txn->base->header.header_size + (uint64_t)offset);
        left--;
    }
}

/* The index as it is, for drop_chunks; empty where nothing can be dropped. */
static cv_status keep_old(const cv_txn *txn, const cv_reshape *reshape, const cv_grid *to,
                          cv_index *out, cv_error *err)
{
    bool grows = to->n_chunks >= txn->index.n &&
                 cv_reshape_keeps_numbers(reshape, &txn->state->grid, to);
    *out = (cv_index){0};
    if (grows || !txn->index.pages || txn->base->header.sparse) return CV_OK;
    return cv_index_share(&txn->index, out, err);
}

static cv_status renumber(cv_index *index, const cv_reshape *reshape, const cv_grid *from,
                          const cv_grid *to, int64_t fill, cv_error *err)
{
    if (cv_reshape_keeps_numbers(reshape, from, to))
        return cv_index_resize(index, to->n_chunks, fill, err);
    cv_index moved;
    CV_TRY(cv_index_create(to->n_chunks, &moved, err));
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = cv_reshape_source(reshape, from, to, i);
        cv_index_page *page = moved.pages[i / CV_INDEX_PAGE];
        page->entries[i % CV_INDEX_PAGE] = source < 0 ? fill : cv_index_get(index, source);
        cv_page_set_name(page, i % CV_INDEX_PAGE,
                         source < 0 ? 0 : cv_index_name(index, source));
    }
    moved.strays = index->strays; /* go by entry: they keep their places */
    index->strays = NULL;
    cv_index_free(index);
    *index = moved;
    return CV_OK;
}

/* The shape changes in place, in a state that no reader has. */
static cv_status own_state(cv_txn *txn, cv_error *err)
{
    if (txn->state != txn->base) return CV_OK;
    cv_change nothing = {.set_attributes = false};
    cv_snapshot *state;
    CV_TRY(cv_snapshot_derive(txn->base, &nothing, &state, err));
    cv_snapshot_release(txn->state);
    txn->state = state;
    return CV_OK;
}

cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_index(txn, err));
    CV_TRY(own_state(txn, err));
    cv_new_shape change;
    cv_index old;
    CV_TRY(cv_new_shape_make(txn->state, reshape->shape, &change, err));
    cv_status status = keep_old(txn, reshape, &change.grid, &old, err);
    if (status == CV_OK)
        status = renumber(&txn->index, reshape, &txn->state->grid, &change.grid,
                          cv_offset_of_kind(fill), err);
    if (status == CV_OK) {
        drop_chunks(txn, &old, reshape, &change.grid);
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
        txn->adopt_next = 0; /* chunks have other numbers */
    }
    cv_index_free(&old);
    cv_buffer_free(&change.meta);
    return status;
}

static cv_status take_box(const cv_index *from, const cv_grid *grid, const int64_t *first,
                          const cv_grid *to, cv_index *out, cv_error *err)
{
    int64_t at[CV_MAX_DIMS];
    CV_TRY(cv_index_create(to->n_chunks, out, err));
    for (int64_t i = 0; i < to->n_chunks; i++) {
        int64_t source = 0;
        cv_grid_chunk_index(to, i, at);
        for (int d = 0; d < to->ndim; d++)
            source += (first[d] + at[d]) * grid->chunk_strides[d];
        cv_index_page *page = out->pages[i / CV_INDEX_PAGE];
        page->entries[i % CV_INDEX_PAGE] = cv_index_get(from, source);
        cv_page_set_name(page, i % CV_INDEX_PAGE, cv_index_name(from, source));
    }
    return CV_OK;
}

cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err)
{
    cv_new_shape change;
    cv_index box;
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_index(txn, err));
    CV_TRY(own_state(txn, err));
    CV_TRY(cv_new_shape_make(txn->state, shape, &change, err));
    cv_status status =
        take_box(&txn->index, &txn->state->grid, first, &change.grid, &box, err);
    if (status == CV_OK) {
        cv_index_free(&txn->index);
        txn->index = box;
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
    }
    cv_buffer_free(&change.meta);
    return status;
}
