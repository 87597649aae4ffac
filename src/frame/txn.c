/* Room: frame. The changes of a writer between two commits: the positions of new chunks, the index
 * entries that they change, and the effect of a new shape on the index.
 *
 *   contiguous:  | committed state, free space | new chunks ... end ->
 *   directory:   new chunk files with numbers never used before
 *
 * Never writes where the committed state has bytes, nor where an older state has bytes that a
 * reader still needs. Does not know how a state is committed. */
#include "frame/txn.h"

#include "base/arith.h"
#include "format/dual.h"
#include "frame/index.h"
#include "frame/layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- The index ------------------------------------------------------------ */

static cv_status get_index(cv_txn *txn, const cv_index **out, cv_error *err)
{
    *out = &txn->index;
    if (txn->has_index) return CV_OK;
    return cv_snapshot_index(txn->base, txn->frame->store, out, err);
}

cv_status cv_txn_own_index(cv_txn *txn, cv_index **out, cv_error *err)
{
    *out = &txn->index;
    if (txn->has_index) return CV_OK;
    const cv_index *index;
    CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &index, err));
    CV_TRY(cv_index_share(index, &txn->index, err));
    txn->has_index = true;
    return CV_OK;
}

/* ---- Chunk files ------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err)
{
    *n_files = 0;
    size_t n_stored = 0;
    for (int64_t i = 0; i < n; i++) n_stored += !cv_offset_is_special(cv_index_get(index, i));
    size_t size = (n_stored + 1) * sizeof(int64_t);
    *files = cv_malloc(size);
    if (!*files) return cv_fail_memory(err, size, "a list of chunk files");
    for (int64_t i = 0; i < n; i++) {
        int64_t entry = cv_index_get(index, i);
        if (!cv_offset_is_special(entry)) (*files)[(*n_files)++] = entry;
    }
    qsort(*files, *n_files, sizeof **files, by_number);
    return CV_OK;
}

/* Sorts `files`, drops those in `named` (ascending), and returns the number of the rest. */
static size_t drop_named(int64_t *files, size_t n_files, const int64_t *named, size_t n_named)
{
    size_t left = 0;
    if (n_files == 0) return 0;
    qsort(files, n_files, sizeof files[0], by_number);
    for (size_t i = 0, k = 0; i < n_files; i++) {
        while (k < n_named && named[k] < files[i]) k++;
        if (k == n_named || named[k] != files[i]) files[left++] = files[i];
    }
    return left;
}

/* Adds files put since the commit: a chunk may lie outside a shape that has shrunk since. */
static cv_status add_put(const cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err)
{
    size_t item = sizeof **files, n = *n_files + txn->files.n_put;
    if (txn->files.n_put == 0) return CV_OK;
    int64_t *grown = cv_realloc(*files, *n_files * item, n * item);
    if (!grown) return cv_fail_memory(err, n * item, "a list of chunk files");
    memcpy(grown + *n_files, txn->files.put, txn->files.n_put * item);
    *files = grown;
    *n_files = n;
    return CV_OK;
}

cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err)
{
    const cv_index *old;
    int64_t *kept;
    size_t n_kept;
    if (!txn->has_index) return CV_OK;
    CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &old, err));
    CV_TRY(cv_files_named(old, txn->base->grid.n_chunks, files, n_files, err));
    CV_TRY(add_put(txn, files, n_files, err));
    CV_TRY(cv_files_named(&txn->index, txn->state->grid.n_chunks, &kept, &n_kept, err));
    *n_files = drop_named(*files, *n_files, kept, n_kept);
    cv_free(kept);
    return CV_OK;
}

/* Adds files that no state names. If out of memory, leaves them to the next writer. */
static void add_old(cv_txn *txn, const int64_t *files, size_t n_files)
{
    size_t n = txn->files.n_old + n_files;
    if (n_files == 0) return;
    cv_object *grown =
        cv_realloc(txn->files.old, txn->files.n_old * sizeof grown[0], n * sizeof grown[0]);
    if (!grown) return;
    memcpy(grown + txn->files.n_old, files, n_files * sizeof files[0]);
    txn->files.old = grown;
    txn->files.n_old = n;
}

void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state, const int64_t *files,
                         size_t n_files)
{
    cv_store *store = txn->frame->store;
    add_old(txn, files, n_files);
    if (txn->files.n_old == 0 || txn->frame->poisoned) return;
    if (cv_snapshot_has_older_readers(state, store)) return;
    for (size_t i = 0; i < txn->files.n_old; i++)
        cv_store_remove(store, txn->files.old[i], NULL);
    txn->files.n_old = 0;
}

/* Deletes files that no state names. Syncs the frame first, because an older header may name them.
 * Sets *n to the number of those that remain. */
static cv_status remove_left(cv_txn *txn, int64_t *files, size_t *n, cv_error *err)
{
    cv_store *store = txn->frame->store;
    if (*n == 0 || cv_snapshot_has_older_readers(txn->base, store)) return CV_OK;
    if (txn->frame->durability != CATERVA_DURABILITY_NONE)
        CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    size_t stay = 0;
    for (size_t i = 0; i < *n; i++)
        if (cv_store_remove(store, files[i], NULL) != CV_OK) files[stay++] = files[i];
    *n = stay;
    return CV_OK;
}

/* Chooses numbers above all files for new ones: with a reused number a reader could see the wrong
 * chunk. */
static void choose_next(cv_txn *txn, const int64_t *ascending, size_t n)
{
    if (n > 0 && ascending[n - 1] < INT64_MAX)
        txn->files.next = cv_max_i64(txn->files.next, ascending[n - 1] + 1);
}

/* For a writer that opens: deletes files that the committed index does not name, unless there are
 * older readers, and chooses the first new number. */
static cv_status begin_files(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    cv_snapshot *base = txn->base;
    if (!base->header.sparse || !store->published) return CV_OK;

    const cv_index none = {.same = cv_offset_of_kind(CV_REF_ZEROS)}, *index = &none;
    int64_t *named = NULL, *files = NULL;
    size_t n_named, n_files;
    cv_status status = CV_OK;
    if (base->grid.n_chunks > 0) status = cv_snapshot_index(base, store, &index, err);
    if (status == CV_OK)
        status = cv_files_named(index, base->grid.n_chunks, &named, &n_named, err);
    if (status == CV_OK) status = cv_store_list(store, &files, &n_files, err);
    if (status == CV_OK) choose_next(txn, named, n_named);
    if (status == CV_OK && n_files > 0) {
        n_files = drop_named(files, n_files, named, n_named);
        status = remove_left(txn, files, &n_files, err);
        choose_next(txn, files, n_files);
    }
    cv_free(named);
    cv_free(files);
    return status;
}

/* Returns the chunk file of the entry if it was put since the commit, or -1. Takes the file off the
 * list, because another put replaces it. Call with the lock. */
static cv_object superseded_file(cv_txn *txn, int64_t offset)
{
    if (!txn->base->header.sparse || cv_offset_is_special(offset)) return -1;
    for (size_t i = 0; i < txn->files.n_put; i++) {
        if (txn->files.put[i] != offset) continue;
        txn->files.put[i] = txn->files.put[--txn->files.n_put];
        return offset;
    }
    return -1;
}

static cv_status remember_file(cv_txn *txn, int64_t number, cv_error *err)
{
    size_t n = txn->files.n_put, size = sizeof txn->files.put[0];
    cv_object *files = cv_grow(txn->files.put, n, &txn->files.max_put, size);
    if (!files) return cv_fail_memory(err, n * size, "chunk files");
    txn->files.put = files;
    txn->files.put[txn->files.n_put++] = number;
    return CV_OK;
}

/* Ignores errors: readers ignore files that the index does not name. */
static void remove_new_files(cv_txn *txn)
{
    if (txn->frame->poisoned) return; /* the header on disk may name them */
    for (size_t i = 0; i < txn->files.n_put; i++)
        cv_store_remove(txn->frame->store, txn->files.put[i], NULL);
    txn->files.n_put = 0;
}

/* ---- Begin and end ---------------------------------------------------------- */

void cv_txn_reset(cv_txn *txn)
{
    cv_snapshot_release(txn->base);
    cv_snapshot_release(txn->state);
    txn->base = cv_frame_snapshot(txn->frame);
    txn->state = txn->base;
    cv_snapshot_retain(txn->state);
    cv_index_free(&txn->index);
    txn->has_index = false;
    txn->changed = false;
    txn->notes.adds_layouts = false;
    txn->files.n_put = 0;
    cv_allocator_reset(&txn->allocator, txn->base);
}

/* After a failed sync or header write, the new state may be on disk and use space that counts as
 * free. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err)
{
    if (!txn->frame->poisoned) return CV_OK;
    return cv_fail(
        err, CATERVA_EIO, -1,
        "a sync or a write of the header failed: the state on disk is unknown, reopen "
        "the array");
}

cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err)
{
    cv_txn *txn = cv_calloc(1, sizeof *txn);
    if (!txn) return cv_fail_memory(err, sizeof *txn, "a transaction");
    txn->frame = frame;
    cv_mutex_init(&txn->lock);
    cv_status status = cv_allocator_begin(&txn->allocator, frame, &txn->notes.n_commits, err);
    cv_txn_reset(txn);
    if (!frame->store->published) txn->notes.adopted = -1;
    if (txn->notes.n_commits < txn->base->footer.commit)
        txn->notes.n_commits = txn->base->footer.commit;
    if (status == CV_OK) status = begin_files(txn, err);
    if (status != CV_OK) {
        cv_txn_free(txn);
        return status;
    }
    *out = txn;
    return CV_OK;
}

static void give_back(cv_txn *txn)
{
    remove_new_files(txn);
    if (txn->changed) cv_allocator_cut_back(&txn->allocator);
}

void cv_txn_free(cv_txn *txn)
{
    if (!txn) return;
    if (txn->frame->store->published && txn->base) {
        give_back(txn);
        if (txn->allocator.owes_second) cv_second_trailer_write(&txn->allocator, txn->base);
    }
    cv_allocator_free(&txn->allocator);
    cv_snapshot_release(txn->base);
    cv_snapshot_release(txn->state);
    cv_index_free(&txn->index);
    cv_encoder_free(txn->notes.encoder);
    cv_buffer_free(&txn->notes.tail);
    cv_free(txn->files.put);
    cv_free(txn->files.old);
    cv_mutex_destroy(&txn->lock);
    cv_free(txn);
}

void cv_txn_rollback(cv_txn *txn)
{
    give_back(txn);
    cv_layout_cache_clear(txn->frame->layouts);
    cv_txn_reset(txn);
    txn->notes.adopted = txn->frame->store->published ? 0 : -1;
    cv_allocator_roll_back(&txn->allocator);
}

/* ---- The state as it is now ----------------------------------------------- */

bool cv_txn_pending(const cv_txn *txn)
{
    return txn->changed || !txn->frame->store->published;
}

cv_snapshot *cv_txn_snapshot(const cv_txn *txn) { return txn->state; }

/* Finds a chunk put since the commit. Its limit is the stored size, beyond which slack, or a chunk
 * that is being written, may extend. */
static cv_status find_put(cv_txn *txn, int64_t chunk, int64_t offset, cv_chunk_ref *out,
                          cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(txn->frame->store, CV_FRAME_OBJECT, &stored, err));
    *out = (cv_chunk_ref){
        .chunk = chunk,
        .kind = CV_REF_STORED,
        .object = CV_FRAME_OBJECT,
        .pos = txn->base->header.header_size + (uint64_t)offset,
        .name = cv_index_name(&txn->index, chunk),
    };
    out->limit = stored > out->pos ? stored - out->pos : 0;
    return CV_OK;
}

static cv_status find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    const cv_frame_header *h = &txn->base->header;
    const cv_index *index;
    CV_TRY(get_index(txn, &index, err));
    int64_t offset = cv_index_get(index, chunk);
    if (h->sparse || cv_offset_is_special(offset) || offset < h->cbytes)
        return cv_chunk_ref_find(txn->base, index, chunk, out, err);
    return find_put(txn, chunk, offset, out, err);
}

cv_status cv_txn_find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    cv_mutex_lock(&txn->lock);
    cv_status status = find(txn, chunk, out, err);
    cv_mutex_unlock(&txn->lock);
    return status;
}

cv_status cv_txn_change(cv_txn *txn, const cv_change *change, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    cv_snapshot *next;
    CV_TRY(cv_snapshot_derive(txn->state, change, &next, err));
    cv_snapshot_release(txn->state);
    txn->state = next;
    txn->changed = true;
    return CV_OK;
}

/* ---- Block tables ----
 *
 * For chunks in one buffer. Name 0 means "no table", so a table whose checksum is 0 is dropped: one
 * chunk in 2^32 stays unverified. */

cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err)
{
    size_t before = out->size;
    CV_TRY(cv_buffer_resize(out, before + cv_block_table_size(table->n), err));
    *name = cv_block_table_write(table, out->data + before);
    return CV_OK;
}

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

static cv_chunk_expect expect_of(const cv_grid *grid, size_t size)
{
    return (cv_chunk_expect){
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = (int64_t)size,
    };
}

cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err)
{
    cv_chunk_expect expect = expect_of(grid, size);
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

/* ---- Putting chunks ------------------------------------------------------- */

static cv_status set_entry(cv_txn *txn, int64_t chunk, int64_t offset, uint32_t name,
                           cv_error *err)
{
    cv_object useless = -1;
    int64_t old = 0;
    cv_mutex_lock(&txn->lock);
    cv_index *index;
    cv_status status = cv_txn_own_index(txn, &index, err);
    if (status == CV_OK) {
        old = cv_index_get(index, chunk);
        status = cv_index_set(index, chunk, offset, name, err);
    }
    if (status == CV_OK) {
        useless = superseded_file(txn, old);
        if (!txn->base->header.sparse && !cv_offset_is_special(old))
            cv_allocator_replaced(&txn->allocator,
                                  txn->base->header.header_size + (uint64_t)old);
        txn->changed = true;
    }
    cv_mutex_unlock(&txn->lock);
    if (useless >= 0) cv_store_remove(txn->frame->store, useless, NULL);
    return status;
}

/* Reserves a range of the frame, or a new chunk file. Call with the lock. */
static cv_status reserve(cv_txn *txn, cv_space_request *r, cv_put *put, cv_error *err)
{
    if (txn->base->header.sparse) {
        if (txn->files.next > UINT32_MAX)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "all numbers of chunk files are used up: compact the array");
        put->object = put->offset = txn->files.next;
        CV_TRY(remember_file(txn, txn->files.next, err));
        txn->files.next++;
        return CV_OK;
    }
    const cv_index *index;
    CV_TRY(get_index(txn, &index, err));
    r->replaces = !cv_offset_is_special(cv_index_get(index, put->chunk));
    put->object = CV_FRAME_OBJECT;
    CV_TRY(cv_allocator_take(&txn->allocator, r, &put->pos, err));
    put->offset = (int64_t)(put->pos - txn->base->header.header_size);
    return CV_OK;
}

static cv_status begin(cv_txn *txn, int64_t chunk, cv_space_request *r, cv_put *out,
                       cv_error *err)
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
    cv_space_request r = {.size = size};
    return begin(txn, chunk, &r, out, err);
}

static void abandon(cv_txn *txn, const cv_put *put)
{
    bool sparse = txn->base->header.sparse;
    cv_mutex_lock(&txn->lock);
    if (sparse)
        (void)superseded_file(txn, put->object);
    else
        cv_allocator_replaced(&txn->allocator, put->pos);
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
    cv_put put = {0};
    CV_TRY(cv_txn_put_begin(txn, chunk, bytes->size, &put, err));
    put.name = name;
    cv_status status =
        cv_store_write(txn->frame->store, put.object, put.pos, bytes->data, bytes->size, err);
    return cv_txn_put_end(txn, &put, status, err);
}

void cv_txn_expect(cv_txn *txn, uint64_t size)
{
    cv_mutex_lock(&txn->lock);
    if (!txn->base->header.sparse) cv_allocator_expect(&txn->allocator, size);
    cv_mutex_unlock(&txn->lock);
}

void cv_txn_expect_end(cv_txn *txn)
{
    cv_mutex_lock(&txn->lock);
    cv_allocator_expect_end(&txn->allocator);
    cv_mutex_unlock(&txn->lock);
}

/* ---- Chunks that are stored elsewhere --------------------------------------- */

static bool stores_clone(const cv_txn *txn, cv_store *from)
{
    cv_store *store = txn->frame->store;
    return !txn->base->header.sparse && store->ops->may_clone && store->ops == from->ops &&
           store->ops->may_clone(store, from);
}

/* Whether cloning is worth a gap of less than CV_CLONE_UNIT before the chunk. */
static bool may_clone(cv_txn *txn, const cv_stored_chunk *stored)
{
    enum { LEAST = 64 * CV_CLONE_UNIT };
    if (!stored->from || stored->object != CV_FRAME_OBJECT || stored->size < LEAST)
        return false;
    cv_mutex_lock(&txn->lock);
    if (txn->cloning == CV_CLONING_UNKNOWN)
        txn->cloning = stores_clone(txn, stored->from) ? CV_CLONING_YES : CV_CLONING_NO;
    bool may = txn->cloning == CV_CLONING_YES;
    cv_mutex_unlock(&txn->lock);
    return may;
}

static void clone_no_more(cv_txn *txn)
{
    cv_mutex_lock(&txn->lock);
    txn->cloning = CV_CLONING_NO;
    cv_mutex_unlock(&txn->lock);
}

/* Clones the bytes [*start, *end) of the chunk: whole units of both files, or nothing. Usually
 * nothing in a hole, whose offset within a unit mostly differs. */
static void clone_middle(cv_txn *txn, const cv_put *put, const cv_stored_chunk *stored,
                         size_t *start, size_t *end)
{
    uint64_t before = (0 - stored->pos) % CV_CLONE_UNIT;
    uint64_t size = (stored->size - before) / CV_CLONE_UNIT * CV_CLONE_UNIT;
    *start = *end = 0;
    if ((put->pos - stored->pos) % CV_CLONE_UNIT != 0 || !may_clone(txn, stored)) return;
    cv_store *store = txn->frame->store;
    if (!store->ops->clone(store, put->pos + before, stored->from, stored->pos + before,
                           size)) {
        clone_no_more(txn);
        return;
    }
    *start = (size_t)before;
    *end = (size_t)(before + size);
}

/* Writes the table, and the bytes that could not be cloned. In parts, because they are borrowed. */
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
    cv_store *store = txn->frame->store;
    return stored->from && stored->object != CV_FRAME_OBJECT && store->ops->share &&
           store->ops == stored->from->ops &&
           store->ops->share(store, put->object, stored->from, stored->object, size);
}

void cv_txn_set_dual(cv_txn *txn) { txn->is_dual = true; }

bool cv_txn_is_dual(const cv_txn *txn) { return txn->is_dual; }

/* Rewrites the chunk into `dual`, and makes a new table. */
static cv_status put_dual(cv_txn *txn, int64_t chunk, const uint8_t *bytes, size_t size,
                          cv_buffer *dual, cv_error *err)
{
    const cv_grid *grid = &txn->state->grid;
    cv_chunk_expect expect = expect_of(grid, size);
    cv_chunk_header header;
    parts memory;
    uint32_t name = 0;
    CV_TRY(cv_chunk_header_parse(bytes, &expect, &header, err));
    CV_TRY(new_parts(grid->n_blocks, &memory, err));
    bool listed = cv_block_starts_size(&header) > 0;
    cv_status status = CV_OK;
    dual->size = 0;
    if (listed)
        status = cv_block_starts_parse(&header, bytes + CV_CHUNK_HEADER_SIZE, grid->n_blocks,
                                       &expect, memory.ranges, err);
    if (status == CV_OK)
        status = cv_dual_write(bytes, &header, memory.ranges, grid, dual, err);
    if (status == CV_OK)
        status = cv_table_make(grid, dual->data, dual->size, dual, &name, err);
    if (status == CV_OK) status = put_bytes(txn, chunk, dual, name, err);
    cv_free(memory.ranges);
    return status;
}

static cv_status put_dual_alone(cv_txn *txn, int64_t chunk, const uint8_t *bytes, size_t size,
                                cv_error *err)
{
    cv_buffer dual = {0};
    cv_status status = put_dual(txn, chunk, bytes, size, &dual, err);
    cv_buffer_free(&dual);
    return status;
}

cv_status cv_txn_put_stored(cv_txn *txn, int64_t chunk, const cv_stored_chunk *stored,
                            cv_error *err)
{
    if (txn->is_dual && !stored->scratch)
        return put_dual_alone(txn, chunk, stored->bytes, stored->size, err);
    if (txn->is_dual)
        return put_dual(txn, chunk, stored->bytes, stored->size, stored->scratch, err);
    cv_space_request r = {.size = stored->size + stored->table->size, .like = stored->pos};
    r.is_like = may_clone(txn, stored);
    cv_put put;
    CV_TRY(begin(txn, chunk, &r, &put, err));
    put.name = stored->name;
    bool shared = share(txn, &put, stored, (size_t)r.size);
    cv_status status = shared ? CV_OK : write_stored(txn, &put, stored, err);
    return cv_txn_put_end(txn, &put, status, err);
}

cv_status cv_txn_put(cv_txn *txn, int64_t chunk, cv_buffer *encoded, cv_error *err)
{
    size_t size = encoded->size;
    uint32_t name = 0;
    if (txn->is_dual) return put_dual_alone(txn, chunk, encoded->data, size, err);
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

/* ---- Changing the shape ----
 *
 * Chunks keep their bytes, and get other numbers or are dropped. No chunk is decoded. */

/* The number in `to` of a chunk of `from` whose index from `at` on moves by `shift`; -1 if it
 * moves before `at` or out of `to`. */
static int64_t moved_chunk(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                           int64_t chunk, int64_t shift)
{
    int64_t index[CV_MAX_DIMS], number = 0;
    cv_grid_chunk_index(from, chunk, index);
    for (int d = 0; d < to->ndim; d++) {
        bool moves = d == reshape->axis && index[d] >= reshape->at;
        int64_t i = index[d] + (moves ? shift : 0);
        if ((moves && i < reshape->at) || i >= to->chunk_counts[d]) return -1;
        number += i * to->chunk_strides[d];
    }
    return number;
}

int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    return moved_chunk(reshape, to, from, chunk, -reshape->shift);
}

int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk)
{
    return moved_chunk(reshape, from, to, chunk, reshape->shift);
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

/* Frees chunks outside the new grid. If there are very many, leaves the rest to the next writer. */
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
        cv_allocator_replaced(&txn->allocator,
                              txn->base->header.header_size + (uint64_t)offset);
        left--;
    }
}

/* Copies the index for drop_chunks; empty if no chunk can be dropped. */
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
    moved.strays = index->strays; /* ordered by entry, which does not change */
    index->strays = NULL;
    cv_index_free(index);
    *index = moved;
    return CV_OK;
}

/* Makes the state private to the transaction, so that the shape can change in place. */
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
    cv_new_shape change;
    cv_index *index, old;
    CV_TRY(cv_txn_own_index(txn, &index, err));
    CV_TRY(own_state(txn, err));
    CV_TRY(cv_new_shape_make(txn->state, reshape->shape, &change, err));
    cv_status status = keep_old(txn, reshape, &change.grid, &old, err);
    if (status == CV_OK)
        status = renumber(index, reshape, &txn->state->grid, &change.grid,
                          cv_offset_of_kind(fill), err);
    if (status == CV_OK) {
        drop_chunks(txn, &old, reshape, &change.grid);
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
        if (txn->notes.adopted > 0) txn->notes.adopted = 0; /* chunks have new numbers */
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
    cv_index *index, box;
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(cv_txn_own_index(txn, &index, err));
    CV_TRY(own_state(txn, err));
    CV_TRY(cv_new_shape_make(txn->state, shape, &change, err));
    cv_status status = take_box(index, &txn->state->grid, first, &change.grid, &box, err);
    if (status == CV_OK) {
        cv_index_free(index);
        *index = box;
        cv_new_shape_apply(&change, txn->state);
        txn->changed = true;
    }
    cv_buffer_free(&change.meta);
    return status;
}
