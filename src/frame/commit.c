/* Room: frame. The commit: the only way to change committed state.
 *
 *   1. new chunks are already in space that the committed state does not use; each commit
 *      also adds checksums to some chunks of other programs
 *   2. write the new tail behind all chunks: header copy, index, seal, trailer
 *   3. sync; check that the file still has its name
 *   4. write the header from its frame_size field to its end, in one write
 *   5. sync; check the name again: the commit is acknowledged
 *
 * A crash before 4 leaves the old state, one after 4 the new state; 4 is a single write inside one
 * sector for headers up to 512 bytes. A new frame is complete, under a temporary name, before 3,
 * and renamed instead of 4. A directory replaces chunks.b2frame by a rename instead of 4, and
 * deletes replaced chunk files when no older reader is left. After a failed sync or header write
 * the state on disk is unknown: the frame is poisoned and refuses further changes.
 *
 * A commit of several frames prepares each one up to 3, publishes all new headers together (which
 * commits them), and completes each one from 4 on. */
#include "frame/commit.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "format/seal.h"
#include "frame/fetch.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "frame/txn.h"

#include <assert.h>
#include <string.h>

/* ---- Checksums for chunks of other programs ----
 *
 * The checksums protect the chunks, as they were found, against later changes. Whether the chunks
 * decode is not checked. */

/* Maximum bytes of such chunks read by one commit. */
enum { CV_ADOPT_BYTES = 64 << 20 };

typedef struct newcomer {
    int64_t chunk;
    uint32_t name;
    cv_seal_stray stray; /* `pos` is relative to the area */
} newcomer;

typedef struct adoption {
    cv_txn *txn;
    cv_index *index; /* the transaction's */
    bool rewrite;
    cv_watch *watch;     /* or NULL */
    int64_t left;        /* bytes that may still be read */
    cv_buffer chunk;     /* bytes of one chunk */
    cv_buffer table;     /* its block table */
    cv_buffer found;     /* the bytes behind the chunk */
    cv_buffer area;      /* tables to be written */
    cv_buffer newcomers; /* the chunks of these tables */
} adoption;

/* Whether the table is already right behind the chunk. */
static cv_status is_behind(adoption *a, const cv_chunk_ref *ref, size_t size, bool *out,
                           cv_error *err)
{
    cv_store *store = a->txn->frame->store;
    uint64_t limit = ref->limit;
    *out = false;
    if (limit == 0) CV_TRY(cv_store_size(store, ref->object, &limit, err));
    if (limit < size + a->table.size) return CV_OK;
    CV_TRY(cv_buffer_resize(&a->found, a->table.size, err));
    CV_TRY(cv_store_read(store, ref->object, ref->pos + size, a->found.data, a->found.size,
                         err));
    *out = memcmp(a->found.data, a->table.data, a->found.size) == 0;
    return CV_OK;
}

static cv_status note_newcomer(adoption *a, const cv_chunk_ref *ref, uint32_t name,
                               cv_error *err)
{
    newcomer n = {ref->chunk, name, {cv_index_get(a->index, ref->chunk), a->area.size}};
    CV_TRY(cv_buffer_append(&a->newcomers, &n, sizeof n, err));
    return cv_buffer_append(&a->area, a->table.data, a->table.size, err);
}

static cv_status adopt_bytes(adoption *a, const cv_chunk_ref *ref, const uint8_t *bytes,
                             size_t size, cv_error *err)
{
    cv_txn *txn = a->txn;
    cv_stored_chunk stored = {.bytes = bytes, .size = size, .table = &a->table};
    bool behind;
    a->table.size = 0;
    CV_TRY(cv_table_make(&txn->state->grid, bytes, size, &a->table, &stored.name, err));
    CV_TRY(is_behind(a, ref, size, &behind, err));
    if (behind) return cv_index_set_name(a->index, ref->chunk, stored.name, err);
    if (!txn->base->header.sparse) return note_newcomer(a, ref, stored.name, err);
    return a->rewrite ? cv_txn_put_stored(txn, ref->chunk, &stored, err) : CV_OK;
}

/* Sets *fits to false if the chunk must wait for the next commit. */
static cv_status adopt_chunk(adoption *a, int64_t chunk, bool *fits, cv_error *err)
{
    cv_frame *frame = a->txn->frame;
    cv_chunk_ref ref;
    cv_layout *layout;
    const uint8_t *bytes;
    CV_TRY(cv_txn_find(a->txn, chunk, &ref, err));
    CV_TRY(cv_layout_get(frame->layouts, a->txn->state, &ref, &layout, err));
    int64_t size = layout->header.cbytes;
    cv_status status = CV_OK;
    *fits = size <= a->left || a->left == CV_ADOPT_BYTES; /* at least one chunk */
    if (*fits) status = cv_fetch_chunk(frame, layout, &a->chunk, &bytes, err);
    if (*fits && status == CV_OK) {
        a->left -= size;
        status = adopt_bytes(a, &ref, bytes, (size_t)size, err);
    }
    cv_layout_release(layout); /* may free `bytes` */
    return status;
}

/* Special chunks have nothing to check: a run of equal ones is skipped at once. */
static cv_status adopt_chunks(adoption *a, cv_error *err)
{
    cv_txn *txn = a->txn;
    while (txn->notes.adopted < a->index->n) {
        int64_t chunk = txn->notes.adopted, entry = cv_index_get(a->index, chunk);
        bool special = cv_offset_is_special(entry), fits = true;
        int64_t next = special ? cv_index_next(a->index, chunk, entry) : chunk + 1;
        CV_TRY(cv_watch_tick(a->watch, 0, err));
        cv_watch_add(a->watch, (next - chunk) * txn->state->grid.chunk_bytes);
        if (!special && cv_index_name(a->index, chunk) == 0) {
            cv_error why = {0};
            cv_status status = adopt_chunk(a, chunk, &fits, &why);
            if (status != CV_OK && status != CATERVA_ENOTFOUND && !cv_is_doubtful(status)) {
                if (err) *err = why;
                return status;
            }
        }
        if (!fits) return CV_OK;
        txn->notes.adopted = next;
    }
    txn->notes.adopted = -1;
    return CV_OK;
}

/* Writes the area, then sets the names of its chunks. */
static cv_status write_area(adoption *a, cv_error *err)
{
    cv_txn *txn = a->txn;
    size_t n = a->newcomers.size / sizeof(newcomer);
    newcomer *list = (newcomer *)(void *)a->newcomers.data;
    if (n == 0) return CV_OK;
    cv_seal_stray *strays = cv_malloc(n * sizeof strays[0]);
    if (!strays) return cv_fail_memory(err, n * sizeof strays[0], "block tables");
    uint64_t pos = 0;
    const cv_space_request request = {.size = a->area.size};
    cv_status status = cv_allocator_take(&txn->allocator, &request, &pos, err);
    for (size_t i = 0; i < n; i++)
        strays[i] = (cv_seal_stray){list[i].stray.entry, pos + list[i].stray.pos};
    if (status == CV_OK)
        status = cv_store_write(txn->frame->store, CV_FRAME_OBJECT, pos, a->area.data,
                                a->area.size, err);
    if (status == CV_OK) status = cv_index_add_strays(a->index, strays, (int64_t)n, err);
    for (size_t i = 0; i < n && status == CV_OK; i++)
        status = cv_index_set_name(a->index, list[i].chunk, list[i].name, err);
    cv_free(strays);
    return status;
}

/* Adds checksums to up to CV_ADOPT_BYTES of chunks in the transaction's index. Skips chunks that
 * cannot be parsed and, unless `rewrite`, those that need a new chunk file. */
static cv_status adopt_some(cv_txn *txn, bool rewrite, cv_watch *watch, cv_error *err)
{
    adoption a = {.txn = txn, .rewrite = rewrite, .watch = watch, .left = CV_ADOPT_BYTES};
    int64_t first = txn->notes.adopted;
    if (first < 0 || txn->state->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, &a.index, err));
    cv_status status = adopt_chunks(&a, err);
    if (status == CV_OK) status = write_area(&a, err);
    if (status != CV_OK) txn->notes.adopted = first;
    cv_buffer_free(&a.chunk);
    cv_buffer_free(&a.table);
    cv_buffer_free(&a.found);
    cv_buffer_free(&a.area);
    cv_buffer_free(&a.newcomers);
    return status;
}

/* ---- All layouts in one place ----
 *
 * The area contains, for each chunk, the bytes before its first block and its block table. It is
 * written in pieces of bounded size. */

enum { PIECE = 1 << 20 };

typedef struct putting {
    cv_txn *txn;
    const cv_index *index; /* the transaction's */
    cv_buffer bytes;       /* not written yet */
    uint64_t pos;          /* their position */
    cv_layouts_footer footer;
} putting;

static cv_status write_piece(putting *p, cv_error *err)
{
    size_t size = p->bytes.size;
    if (size == 0) return CV_OK;
    CV_TRY(cv_store_write(p->txn->frame->store, CV_FRAME_OBJECT, p->pos, p->bytes.data, size,
                          err));
    p->pos += size;
    p->bytes.size = 0;
    return CV_OK;
}

static cv_status fill_record(const putting *p, const cv_chunk_ref *ref,
                             const cv_layout *layout, uint8_t *record, cv_error *err)
{
    cv_store *store = p->txn->frame->store;
    int64_t n = p->txn->state->grid.n_blocks;
    cv_record_parts parts;
    cv_object object;
    uint64_t pos;
    size_t room = p->footer.record_size;
    memcpy(record, layout->header_bytes, CV_CHUNK_HEADER_SIZE);
    bool fits = cv_record_find_parts(record, room, n, &parts) &&
                parts.head_size == cv_layout_head_size(layout) &&
                parts.table_size == layout->table_size;
    memset(record, 0, CV_CHUNK_HEADER_SIZE);
    if (!fits) return CV_OK;
    CV_TRY(cv_store_read(store, ref->object, ref->pos, record, parts.head_size, err));
    cv_layout_find_table(layout, ref, &object, &pos);
    return cv_store_read(store, object, pos, record + parts.head_size, parts.table_size, err);
}

/* The record of a chunk that cannot be parsed stays zero: reading the chunk returns the error. */
static cv_status add_record(putting *p, int64_t chunk, cv_error *err)
{
    cv_txn *txn = p->txn;
    cv_chunk_ref ref;
    cv_layout *layout;
    size_t at = p->bytes.size;
    CV_TRY(cv_txn_find(txn, chunk, &ref, err));
    CV_TRY(cv_buffer_resize(&p->bytes, at + p->footer.record_size, err));
    memset(p->bytes.data + at, 0, p->footer.record_size);
    p->footer.n++;
    cv_error error = {0};
    cv_status status = cv_layout_get(txn->frame->layouts, txn->state, &ref, &layout, &error);
    if (status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED) return CV_OK;
    if (status != CV_OK && err) *err = error;
    CV_TRY(status);
    status = fill_record(p, &ref, layout, p->bytes.data + at, err);
    cv_layout_release(layout);
    return status;
}

static cv_status add_mark(putting *p, cv_error *err)
{
    uint8_t mark[CV_LAYOUTS_MARK];
    cv_layouts_mark_write(mark);
    return cv_buffer_append(&p->bytes, mark, sizeof mark, err);
}

static cv_status add_footer(putting *p, cv_error *err)
{
    uint8_t footer[CV_LAYOUTS_FOOTER];
    p->footer.names = cv_sealed_names(p->index);
    cv_layouts_footer_write(&p->footer, footer);
    return cv_buffer_append(&p->bytes, footer, sizeof footer, err);
}

static cv_status put(putting *p, cv_error *err)
{
    CV_TRY(add_mark(p, err));
    for (int64_t i = 0; i < p->index->n; i++) {
        if (cv_index_name(p->index, i) == 0) continue;
        CV_TRY(add_record(p, i, err));
        if (p->bytes.size >= PIECE) CV_TRY(write_piece(p, err));
    }
    if (p->footer.n == 0) return CV_OK;
    CV_TRY(add_footer(p, err));
    CV_TRY(write_piece(p, err));
    cv_allocator_extend(&p->txn->allocator, p->pos);
    return CV_OK;
}

/* Writes the layouts of all chunks right before the coming tail of a new contiguous frame. Writes
 * nothing if chunks are read whole anyway, or if a layout does not fit a record. */
static cv_status put_layouts(cv_txn *txn, cv_error *err)
{
    const cv_grid *grid = &txn->state->grid;
    putting p = {.txn = txn, .pos = txn->allocator.end};
    assert(!txn->frame->store->published);
    p.footer.record_size = cv_layouts_record_size(grid->n_blocks);
    if (p.footer.record_size == 0 || txn->base->header.sparse) return CV_OK;
    if (grid->n_chunks == 0 || cv_layout_is_small(grid)) return CV_OK;
    cv_index *index;
    CV_TRY(cv_txn_own_index(txn, &index, err));
    if (!index->pages) return CV_OK;
    p.index = index;
    cv_status status = put(&p, err);
    cv_buffer_free(&p.bytes);
    return status;
}

/* ---- The tail ----
 *
 * The bytes behind the chunks of a contiguous frame:
 *
 *   | chunks and dead space | header copy | index | seal | trailer |
 *
 * The copy counts as dead space (cbytes includes it), so readers do not rely on it. The seal covers
 * the rest (format/seal.h). In a directory's chunks.b2frame the copy is behind the end of the
 * frame. */

/* The tail of a commit, complete except for header copy and root, which depend on its position. */
typedef struct tail {
    cv_buffer bytes;
    uint64_t copy_size, index_size;
    size_t root; /* start of the bytes that the root covers: footer or trailer */
    cv_seal_footer footer;
} tail;

/* A frame without chunks has no index: the trailer follows the header. */
static cv_status append_index(cv_txn *txn, tail *t, cv_error *err)
{
    cv_buffer *out = &t->bytes;
    size_t origin = out->size;
    if (txn->state->grid.n_chunks == 0) return CV_OK;
    cv_index *index;
    CV_TRY(cv_txn_own_index(txn, &index, err));
    if (index->strays && index->strays->n > index->n)
        CV_TRY(cv_index_prune_strays(index, err));
    CV_TRY(cv_index_encode(index, &txn->notes.encoder, out, err));
    t->index_size = out->size - origin;
    t->footer.commit = txn->notes.n_commits + 1;
    CV_TRY(cv_sealed_append(index, origin, out, &t->footer, err));
    t->root = out->size - CV_SEAL_FOOTER;
    return CV_OK;
}

static cv_status build_tail(cv_txn *txn, tail *t, cv_error *err)
{
    const cv_buffer *trailer = &txn->state->trailer_bytes;
    *t = (tail){.bytes = t->bytes, .copy_size = cv_tail_copy_size(txn->state)};
    CV_TRY(cv_buffer_resize(&t->bytes, (size_t)t->copy_size, err));
    CV_TRY(append_index(txn, t, err));
    return cv_buffer_append(&t->bytes, trailer->data, trailer->size, err);
}

/* Completes the tail with its state's header. The commit's number is used up even if the commit
 * fails, because its header copy may stay in the file. */
static void seal_tail(cv_txn *txn, const cv_buffer *header, tail *t)
{
    cv_buffer *bytes = &t->bytes;
    txn->notes.n_commits++;
    if (t->copy_size > 0)
        cv_header_copy_write(txn->notes.n_commits, header->data, (uint32_t)header->size,
                             bytes->data);
    cv_seal_root_write(bytes->data + t->root, bytes->size - t->root, header->data,
                       header->size);
}

/* ---- The next state ---------------------------------------------------------- */

/* The commit's header write begins here. Magic and header length, which are before it, never
 * change. */
enum { HEADER_WRITE_START = 16 };

typedef struct cv_commit {
    cv_txn *txn;
    cv_snapshot *next;
    tail tail;
    int64_t cbytes;
    uint64_t tail_pos;  /* contiguous: position of the tail */
    int64_t *old_files; /* directory: files that the next state does not name */
    size_t n_old_files;
    bool fresh;          /* not published yet */
    bool syncs, settles; /* whether it syncs the tail, and the header */
} commit;

/* Adds the files' sizes to *sum. *complete is false if one does not exist. */
static cv_status add_files(const cv_txn *txn, const int64_t *files, size_t n, int64_t *sum,
                           bool *complete, cv_error *err)
{
    cv_error error = {0};
    for (size_t i = 0; i < n; i++) {
        uint64_t size = 0;
        cv_status status = cv_store_size(txn->frame->store, files[i], &size, &error);
        if (status == CATERVA_ENOTFOUND) *complete = false;
        if (status != CV_OK && status != CATERVA_ENOTFOUND) {
            if (err) *err = error;
            return status;
        }
        *sum += (int64_t)size;
    }
    return CV_OK;
}

/* Sums the sizes of the new state's chunk files, from the old sum and the changes. If the size of a
 * deleted file is unknown, sums all. */
static cv_status count_files(const commit *c, int64_t *cbytes, cv_error *err)
{
    const cv_txn *txn = c->txn;
    int64_t fresh = 0, old = 0;
    bool complete = true;
    CV_TRY(add_files(txn, txn->files.put, txn->files.n_put, &fresh, &complete, err));
    CV_TRY(add_files(txn, c->old_files, c->n_old_files, &old, &complete, err));
    *cbytes = txn->base->header.cbytes + fresh - old;
    if (complete) return CV_OK;

    int64_t *named;
    size_t n_named;
    CV_TRY(cv_files_named(&txn->index, txn->state->grid.n_chunks, &named, &n_named, err));
    *cbytes = 0;
    cv_status status = add_files(txn, named, n_named, cbytes, &complete, err);
    cv_free(named);
    return status;
}

/* cbytes as the format defines it: all bytes before the index, with dead space; or all chunk
 * files. */
static cv_status count_cbytes(commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    if (!txn->base->header.sparse) {
        c->cbytes =
            (int64_t)(c->tail_pos + c->tail.copy_size - txn->base->header.header_size);
        return CV_OK;
    }
    CV_TRY(cv_files_unnamed(c->txn, &c->old_files, &c->n_old_files, err));
    CV_TRY(count_files(c, &c->cbytes, err));
    /* C-Blosc2 refuses a directory with a file number above cbytes - 32, which a small one may
     * have. */
    for (int64_t i = 0; i < txn->index.n; i++)
        c->cbytes =
            cv_max_i64(c->cbytes, cv_index_get(&txn->index, i) + CV_CHUNK_HEADER_SIZE);
    return CV_OK;
}

static cv_status build_header(commit *c, uint64_t frame_size, cv_error *err)
{
    const cv_snapshot *old = c->txn->state;
    cv_frame_header header = old->header;
    header.frame_size = frame_size;
    header.cbytes = c->cbytes;
    header.encode_threads = 0; /* marks our frames, see docs/format.md */
    header.decode_threads = 0;
    CV_TRY(cv_frame_header_write(&header, &c->next->header_bytes, err));
    assert(header.header_size == old->header.header_size); /* its fields have fixed widths */
    return cv_snapshot_parse(c->next, err);
}

static cv_status take_tail(commit *c, cv_error *err)
{
    cv_snapshot *next = c->next;
    const cv_buffer *bytes = &c->tail.bytes;
    size_t size = c->txn->state->trailer_bytes.size;
    int64_t pos = (int64_t)(next->header.frame_size - size);
    next->index_pos = next->grid.n_chunks > 0 ? c->tail_pos + c->tail.copy_size : 0;
    next->index_size = c->tail.index_size;
    next->footer = c->tail.footer;
    next->seal = CV_SEAL_WHOLE;
    next->unchecked = c->txn->base->unchecked;
    CV_TRY(
        cv_buffer_append(&next->trailer_bytes, bytes->data + bytes->size - size, size, err));
    return cv_trailer_parse(next->trailer_bytes.data, size, pos, &next->trailer, err);
}

static cv_status build(commit *c, cv_error *err)
{
    const cv_frame_header *old = &c->txn->state->header;
    CV_TRY(build_tail(c->txn, &c->tail, err));
    c->tail_pos = old->header_size;
    if (!old->sparse)
        CV_TRY(cv_allocator_place_tail(&c->txn->allocator, c->txn->state, c->tail.bytes.size,
                                       &c->tail_pos, err));
    CV_TRY(count_cbytes(c, err));
    CV_TRY(build_header(c, c->tail_pos + c->tail.bytes.size, err));
    seal_tail(c->txn, &c->next->header_bytes, &c->tail);
    return take_tail(c, err);
}

/* ---- Writing it --------------------------------------------------------- */

static cv_status sync_object(commit *c, cv_object object, cv_error *err)
{
    cv_status status = cv_store_sync(c->txn->frame->store, object, err);
    if (status != CV_OK) c->txn->frame->poisoned = true;
    return status;
}

cv_status cv_commit_put_header(cv_store *store, const uint8_t *header, size_t size,
                               cv_error *err)
{
    return cv_store_write(store, CV_FRAME_OBJECT, HEADER_WRITE_START,
                          header + HEADER_WRITE_START, size - HEADER_WRITE_START, err);
}

static cv_status write_header(commit *c, cv_error *err)
{
    const cv_buffer *header = &c->next->header_bytes;
    cv_status status =
        cv_commit_put_header(c->txn->frame->store, header->data, header->size, err);
    if (status != CV_OK) c->txn->frame->poisoned = true;
    return status;
}

/* Gives a new frame its name. If publish fails but the name exists, a power cut may undo the
 * rename: poisons the frame. */
static cv_status publish_store(commit *c, bool durable, cv_error *err)
{
    cv_frame *frame = c->txn->frame;
    bool was_published = frame->store->published;
    cv_status status = cv_store_publish(frame->store, durable, err);
    if (status != CV_OK && frame->store->published && !was_published) frame->poisoned = true;
    return status;
}

/* Writes everything of a contiguous frame that no reader can see yet. */
static cv_status write_unseen(commit *c, cv_error *err)
{
    cv_frame *frame = c->txn->frame;
    const cv_buffer *header = &c->next->header_bytes;
    CV_TRY(cv_store_write(frame->store, CV_FRAME_OBJECT, c->tail_pos, c->tail.bytes.data,
                          c->tail.bytes.size, err));
    if (c->fresh) { /* no reader sees this frame: the order does not matter */
        CV_TRY(cv_store_write(frame->store, CV_FRAME_OBJECT, 0, header->data, header->size,
                              err));
        cv_second_trailer_write(&c->txn->allocator, c->next);
    }
    if (c->syncs) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));
    return c->fresh ? CV_OK : cv_store_check_name(frame->store, err);
}

static cv_status write_seen(commit *c, cv_error *err)
{
    if (c->fresh) return publish_store(c, c->settles, err);
    CV_TRY(write_header(c, err));
    if (c->settles) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));
    cv_second_trailer_write(&c->txn->allocator, c->next);
    return CV_OK;
}

static cv_status append_copy(const commit *c, cv_buffer *frame, cv_error *err)
{
    const cv_buffer *header = &c->next->header_bytes;
    size_t at = frame->size, size = (size_t)cv_header_copy_size((uint32_t)header->size);
    CV_TRY(cv_buffer_resize(frame, at + size, err));
    if (size > 0)
        cv_header_copy_write(c->txn->notes.n_commits, header->data, (uint32_t)header->size,
                             frame->data + at);
    return CV_OK;
}

static cv_status write_directory(commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    cv_store *store = txn->frame->store;
    bool durable = txn->frame->durability != CATERVA_DURABILITY_NONE;
    for (size_t i = 0; i < txn->files.n_put && durable; i++) {
        CV_TRY(cv_watch_tick(txn->notes.watch, 0, err));
        CV_TRY(sync_object(c, txn->files.put[i], err));
    }
    if (durable && txn->files.n_put > 0) CV_TRY(sync_object(c, CV_FRAME_OBJECT, err));

    cv_buffer frame = {0};
    cv_status status =
        cv_buffer_append(&frame, c->next->header_bytes.data, c->next->header_bytes.size, err);
    if (status == CV_OK)
        status = cv_buffer_append(&frame, c->tail.bytes.data, c->tail.bytes.size, err);
    if (status == CV_OK) status = append_copy(c, &frame, err);
    if (status == CV_OK)
        status = cv_store_replace(store, frame.data, frame.size, durable, err);
    cv_buffer_free(&frame);
    if (status == CV_OK && durable) status = sync_object(c, CV_FRAME_OBJECT, err);
    if (status == CV_OK && c->fresh) status = publish_store(c, durable, err);
    return status;
}

/* ---- The new snapshot --------------------------------------------------- */

/* Moves the transaction's index to the next snapshot, and makes that current. */
static void publish(commit *c)
{
    cv_txn *txn = c->txn;
    c->next->index = txn->index; /* empty only when there are no chunks */
    txn->index = (cv_index){0};
    txn->has_index = false;
    atomic_store_explicit(&c->next->index_ready, true, memory_order_release);

    cv_mutex_lock(&txn->frame->lock);
    cv_snapshot *old = txn->frame->current;
    txn->frame->current = c->next;
    cv_mutex_unlock(&txn->frame->lock);
    cv_snapshot_release(old);
    c->next = NULL;
}

/* Checks the name again after a sync, which may take long. If another process took the name
 * meanwhile, the commit is lost. Without a sync the check before the write suffices, because a
 * later change counts as one after the commit. */
static cv_status check_name_again(const commit *c, cv_error *err)
{
    cv_txn *txn = c->txn;
    if (!c->settles && !txn->base->header.sparse) return CV_OK;
    cv_status status = cv_store_check_name(txn->frame->store, err);
    if (status != CV_OK) txn->frame->poisoned = true;
    return status;
}

/* ---- The steps ---------------------------------------------------------- */

/* Begins a commit of the pending changes. */
static cv_status begin(cv_txn *txn, commit *c, cv_error *err)
{
    caterva_durability durability = txn->frame->durability;
    *c = (commit){.txn = txn,
                  .fresh = !txn->frame->store->published,
                  .syncs = durability != CATERVA_DURABILITY_NONE,
                  .settles = durability == CATERVA_DURABILITY_FULL};
    if (!c->fresh && txn->base->header.sparse)
        CV_TRY(cv_store_check_name(txn->frame->store, err)); /* before files are deleted */
    CV_TRY(adopt_some(txn, false, NULL, err));
    cv_files_remove_old(txn, txn->base, NULL, 0); /* their last readers may have advanced */
    if (c->fresh && txn->notes.adds_layouts) CV_TRY(put_layouts(txn, err));
    c->next = cv_snapshot_new();
    if (!c->next) return cv_fail_memory(err, sizeof *c->next, "a commit");
    c->tail.bytes = txn->notes.tail;
    txn->notes.tail = (cv_buffer){0};
    return build(c, err);
}

static cv_status complete(commit *c, cv_error *err)
{
    CV_TRY(check_name_again(c, err));
    cv_files_remove_old(c->txn, c->next, c->old_files, c->n_old_files);
    if (!c->txn->base->header.sparse)
        cv_allocator_committed(&c->txn->allocator, c->next,
                               (cv_extent){c->tail_pos, c->tail.bytes.size}, c->fresh);
    publish(c);
    cv_txn_reset(c->txn);
    return CV_OK;
}

static void end(commit *c)
{
    cv_snapshot_release(c->next);
    if (c->tail.bytes.data) { /* reused by the next commit */
        cv_buffer_free(&c->txn->notes.tail);
        c->txn->notes.tail = c->tail.bytes;
        c->txn->notes.tail.size = 0;
    }
    cv_free(c->old_files);
}

static cv_status write_all(commit *c, cv_error *err)
{
    if (c->txn->base->header.sparse) return write_directory(c, err);
    CV_TRY(write_unseen(c, err));
    return write_seen(c, err);
}

void cv_txn_set_watch(cv_txn *txn, cv_watch *watch) { txn->notes.watch = watch; }

void cv_txn_add_layouts(cv_txn *txn) { txn->notes.adds_layouts = true; }

cv_status cv_txn_commit(cv_txn *txn, cv_error *err)
{
    commit c;
    CV_TRY(cv_txn_check(txn, err));
    if (!cv_txn_pending(txn)) return CV_OK;
    cv_status status = begin(txn, &c, err);
    if (status == CV_OK) status = write_all(&c, err);
    if (status == CV_OK) status = complete(&c, err);
    end(&c);
    return status;
}

/* ---- Commits of several frames ------------------------------------------ */

cv_status cv_commit_prepare(cv_txn *txn, bool durable, cv_commit **out, cv_error *err)
{
    *out = NULL;
    CV_TRY(cv_txn_check(txn, err));
    if (!cv_txn_pending(txn)) return CV_OK;
    commit *c = cv_malloc(sizeof *c);
    if (!c) return cv_fail_memory(err, sizeof *c, "a commit");
    cv_status status = begin(txn, c, err);
    c->syncs = c->settles = durable;
    assert(!txn->base->header.sparse);
    if (status == CV_OK) status = write_unseen(c, err);
    if (status != CV_OK) {
        cv_commit_drop(c);
        return status;
    }
    *out = c;
    return CV_OK;
}

bool cv_commit_is_first(const cv_commit *c) { return c->fresh; }

const cv_snapshot *cv_commit_state(const cv_commit *c) { return c->next; }

const cv_snapshot *cv_commit_base(const cv_commit *c) { return c->txn->base; }

cv_status cv_commit_complete(cv_commit *c, cv_error *err)
{
    cv_status status = write_seen(c, err);
    if (status == CV_OK) status = complete(c, err);
    cv_commit_drop(c);
    return status;
}

void cv_commit_doubt(cv_commit *c) { c->txn->frame->poisoned = true; }

void cv_commit_drop(cv_commit *c)
{
    if (!c) return;
    end(c);
    cv_free(c);
}

/* Checks, before all chunks are listed, that the frame has room for them. A small number is not
 * checked: chunks may share a position, and are sealed, too. */
static cv_status check_room(cv_txn *txn, cv_error *err)
{
    enum { FEW_CHUNKS = 1 << 20 };
    if (txn->state->grid.n_chunks == 0) return CV_OK;
    cv_index *index;
    CV_TRY(cv_txn_own_index(txn, &index, err));
    int64_t n = cv_index_count_stored(index);
    if (n <= FEW_CHUNKS) return CV_OK;
    return cv_snapshot_check_room(txn->base, txn->frame->store, n, err);
}

cv_status cv_txn_seal(cv_txn *txn, cv_watch *watch, cv_error *err)
{
    CV_TRY(cv_txn_check(txn, err));
    CV_TRY(check_room(txn, err));
    txn->changed = txn->changed || txn->base->seal != CV_SEAL_WHOLE;
    txn->notes.adopted = 0;
    cv_watch_expect(watch, txn->state->grid.n_chunks * txn->state->grid.chunk_bytes);
    while (txn->notes.adopted >= 0 && txn->state->grid.n_chunks > 0)
        CV_TRY(adopt_some(txn, true, watch, err));
    txn->notes.watch = watch;
    cv_status status = cv_txn_commit(txn, err);
    txn->notes.watch = NULL;
    return status;
}

/* ---- Before the close ----
 *
 * A writer returns unused space:
 *
 *   | chunks | dead | tail | beyond the frame |    the tail moves down over dead
 *   | chunks | tail |                              space, the file is truncated
 *
 * The move is an ordinary commit, so a crash leaves the old or the new state. The tail moves only
 * if it does not overlap the committed one. The file is truncated last, when neither a header that
 * may be on disk nor a reader needs the bytes behind the frame. */

/* Minimum gain for moving the tail, which costs two syncs. */
enum { MIN_GAIN = 64 * 1024, MIN_PART = 16 };

/* ---- The end of the live chunks -------------------------------------------- */

typedef struct survey {
    cv_txn *txn;
    const cv_index *index;
    uint64_t end; /* behind everything measured so far */
} survey;

/* Gets the position of chunk `i`. False if it takes no space. */
static bool chunk_pos(const survey *s, int64_t i, uint64_t *pos)
{
    int64_t offset = cv_index_get(s->index, i);
    *pos = s->txn->base->header.header_size + (uint64_t)offset;
    return !cv_offset_is_special(offset);
}

static void find_last(survey *s)
{
    for (int64_t i = 0; i < s->txn->base->grid.n_chunks; i++) {
        uint64_t pos, size = 0;
        if (!chunk_pos(s, i, &pos)) continue;
        (void)cv_extents_has(&s->txn->allocator.space.ours, pos, &size);
        if (pos + size > s->end) s->end = pos + size;
    }
    const cv_strays *strays = s->index->strays; /* separate block tables */
    uint64_t table = cv_block_table_size(s->txn->base->grid.n_blocks);
    for (int64_t i = 0; strays && i < strays->n; i++) {
        uint64_t end = strays->items[i].pos + table;
        if (end > s->end) s->end = end;
    }
}

static cv_status measure_chunk(survey *s, int64_t i, cv_error *err)
{
    cv_txn *txn = s->txn;
    cv_chunk_ref ref;
    cv_layout *layout;
    CV_TRY(cv_chunk_ref_find(txn->base, s->index, i, &ref, err));
    CV_TRY(cv_layout_get(txn->frame->layouts, txn->base, &ref, &layout, err));
    uint64_t end = ref.pos + cv_layout_stored_size(layout, &ref);
    if (ref.name == 0) end += layout->table_size; /* a table to be adopted may be there */
    if (end > s->end) s->end = end;
    cv_layout_release(layout);
    return CV_OK;
}

static cv_status find_chunks_end(cv_txn *txn, uint64_t *end, cv_error *err)
{
    const cv_snapshot *base = txn->base;
    survey s = {.txn = txn, .end = base->header.header_size};
    if (base->grid.n_chunks > 0) {
        CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &s.index, err));
        find_last(&s);
    }
    /* A chunk is not larger than its items and some overhead. */
    uint64_t reach = 2 * (uint64_t)base->grid.chunk_bytes + 64 * 1024;
    for (int64_t i = 0; i < base->grid.n_chunks; i++) {
        uint64_t pos, size;
        if (!chunk_pos(&s, i, &pos) || pos + reach <= s.end) continue;
        if (!cv_extents_has(&txn->allocator.space.ours, pos, &size))
            CV_TRY(measure_chunk(&s, i, err));
    }
    *end = s.end;
    return CV_OK;
}

/* ---- Moving the tail ------------------------------------------------------ */

static cv_status measure_tail(cv_txn *txn, uint64_t *size, cv_error *err)
{
    tail t = {.bytes = {0}};
    cv_status status = build_tail(txn, &t, err);
    *size = t.bytes.size;
    cv_buffer_free(&t.bytes);
    return status;
}

/* Finds the position for the tail, behind the last live chunk; place->size is 0 if moving is not
 * worth it. Not worth it if the index was never read: then the handle changed nothing. */
static cv_status find_place(cv_txn *txn, uint64_t stored, cv_extent *place, cv_error *err)
{
    uint64_t end, size;
    cv_layout_area layouts;
    place->size = 0;
    if (!atomic_load(&txn->base->index_ready)) return CV_OK;
    CV_TRY(find_chunks_end(txn, &end, err));
    CV_TRY(cv_layout_area_find(txn->base, txn->frame->store, &layouts, err));
    if (layouts.size > 0) end = layouts.pos + layouts.size;
    if (end >= txn->allocator.tail_pos) return CV_OK;
    uint64_t gain = txn->allocator.tail_pos - end + stored - txn->base->header.frame_size;
    if (gain < MIN_GAIN && gain < stored / MIN_PART) return CV_OK;
    CV_TRY(measure_tail(txn, &size, err));
    end = cv_allocator_behind_front(&txn->allocator, txn->state, end, size);
    if (end + size <= txn->allocator.tail_pos) *place = (cv_extent){end, size};
    return CV_OK;
}

static cv_status move_tail(cv_txn *txn, cv_extent place, cv_error *err)
{
    if (!cv_allocator_move_tail(&txn->allocator, place)) return CV_OK;
    txn->changed = true;
    CV_TRY(cv_txn_commit(txn, err));
    if (txn->frame->durability != CATERVA_DURABILITY_ORDERED) return CV_OK;
    return cv_store_sync(txn->frame->store, CV_FRAME_OBJECT, err);
}

/* Truncates the file, unless a reader of the state before the move has come meanwhile. */
static cv_status cut(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    uint64_t size = txn->base->header.frame_size;
    if (stored <= size) return CV_OK;
    if (cv_snapshot_has_older_readers(txn->base, store)) return CV_OK;
    return cv_store_truncate(store, CV_FRAME_OBJECT, size, err);
}

static cv_status tidy_file(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    cv_extent place;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    place.size = 0; /* a reader of this state needs its tail */
    if (!cv_store_has_readers(store)) CV_TRY(find_place(txn, stored, &place, err));
    if (place.size == 0 && stored <= txn->base->header.frame_size) return CV_OK;

    /* Afterwards the committed header is on disk, and no older one. */
    if (txn->frame->durability != CATERVA_DURABILITY_NONE)
        CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    if (place.size > 0) CV_TRY(move_tail(txn, place, err));
    return cut(txn, err);
}

void cv_txn_tidy(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    if (cv_txn_pending(txn) || txn->frame->poisoned) return;
    if (cv_snapshot_has_older_readers(txn->base, store)) return;
    if (txn->base->header.sparse)
        cv_files_remove_old(txn, txn->base, NULL, 0);
    else if (!txn->allocator.follower)
        (void)tidy_file(txn, NULL);
}

bool cv_txn_dead(cv_txn *txn, uint64_t *dead, uint64_t *size)
{
    *size = txn->base->header.frame_size;
    if (txn->base->header.sparse || txn->changed || txn->frame->poisoned) return false;
    return cv_allocator_dead(&txn->allocator, dead);
}
