/* Room: frame. Checksums for chunks of other writers, as they are found: from then
 * on any change of their bytes is noticed. Whether they decode is not looked at. */
#include "frame/adopt.h"

#include "base/heap.h"
#include "frame/fetch.h"
#include "frame/layout_cache.h"
#include "frame/put.h"
#include "frame/tables.h"
#include "frame/txn_state.h"

#include <string.h>

/* A chunk that gets a table in the area. */
typedef struct newcomer {
    int64_t chunk;
    uint32_t name;
    cv_seal_stray stray; /* its `pos` is relative to the area */
} newcomer;

typedef struct adoption {
    cv_txn *txn;
    bool rewrite;
    cv_watch *watch;     /* or NULL */
    int64_t left;        /* bytes that may still be read */
    cv_buffer chunk;     /* bytes of one */
    cv_buffer table;     /* its table */
    cv_buffer found;     /* what stands behind it */
    cv_buffer area;      /* tables that are to be written */
    cv_buffer newcomers; /* their chunks */
} adoption;

static bool is_unfit(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED ||
           status == CATERVA_ENOTFOUND;
}

/* Does the table stand right behind the chunk already? */
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
    newcomer n = {ref->chunk, name, {cv_index_get(&a->txn->index, ref->chunk), a->area.size}};
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
    if (behind) return cv_index_set_name(&txn->index, ref->chunk, stored.name, err);
    if (!txn->base->header.sparse) return note_newcomer(a, ref, stored.name, err);
    return a->rewrite ? cv_txn_put_stored(txn, ref->chunk, &stored, err) : CV_OK;
}

/* *fits is false when the chunk must wait for the next time. */
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
    *fits = size <= a->left || a->left == CV_ADOPT_BYTES; /* one at least */
    if (*fits) status = cv_fetch_chunk(frame, layout, &a->chunk, &bytes, err);
    if (*fits && status == CV_OK) {
        a->left -= size;
        status = adopt_bytes(a, &ref, bytes, (size_t)size, err); /* may lie in the layout */
    }
    cv_layout_release(layout);
    return status;
}

/* Special chunks have nothing to check: a run of equal ones is passed in one go. */
static cv_status adopt_chunks(adoption *a, cv_error *err)
{
    cv_txn *txn = a->txn;
    while (txn->adopt_next < txn->index.n) {
        int64_t chunk = txn->adopt_next, entry = cv_index_get(&txn->index, chunk);
        bool special = cv_offset_is_special(entry), fits = true;
        int64_t next = special ? cv_index_next(&txn->index, chunk, entry) : chunk + 1;
        CV_TRY(cv_watch_tick(a->watch, 0, err));
        cv_watch_add(a->watch, (next - chunk) * txn->state->grid.chunk_bytes);
        if (!special && cv_index_name(&txn->index, chunk) == 0) {
            cv_error why = {0};
            cv_status status = adopt_chunk(a, chunk, &fits, &why);
            if (status != CV_OK && !is_unfit(status)) {
                if (err) *err = why;
                return status;
            }
        }
        if (!fits) return CV_OK;
        txn->adopt_next = next;
    }
    txn->adopted = true;
    return CV_OK;
}

/* Writes the area; only then its chunks are named. */
static cv_status write_area(adoption *a, cv_error *err)
{
    cv_txn *txn = a->txn;
    size_t n = a->newcomers.size / sizeof(newcomer);
    newcomer *list = (newcomer *)(void *)a->newcomers.data;
    if (n == 0) return CV_OK;
    cv_seal_stray *strays = cv_malloc(n * sizeof strays[0]);
    if (!strays) return cv_fail_memory(err, n * sizeof strays[0], "block tables");
    uint64_t pos = 0;
    cv_status status = cv_txn_take_range(txn, a->area.size, &pos, err);
    for (size_t i = 0; i < n; i++)
        strays[i] = (cv_seal_stray){list[i].stray.entry, pos + list[i].stray.pos};
    if (status == CV_OK)
        status = cv_store_write(txn->frame->store, CV_FRAME_OBJECT, pos, a->area.data,
                                a->area.size, err);
    if (status == CV_OK) status = cv_index_add_strays(&txn->index, strays, (int64_t)n, err);
    for (size_t i = 0; i < n && status == CV_OK; i++)
        status = cv_index_set_name(&txn->index, list[i].chunk, list[i].name, err);
    cv_free(strays);
    return status;
}

cv_status cv_adopt_some(cv_txn *txn, bool rewrite, cv_watch *watch, cv_error *err)
{
    adoption a = {.txn = txn, .rewrite = rewrite, .watch = watch, .left = CV_ADOPT_BYTES};
    if (txn->adopted || txn->state->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, err));
    int64_t first = txn->adopt_next;
    cv_status status = adopt_chunks(&a, err);
    if (status == CV_OK) status = write_area(&a, err);
    if (status != CV_OK) {
        txn->adopt_next = first;
        txn->adopted = false;
    }
    cv_buffer_free(&a.chunk);
    cv_buffer_free(&a.table);
    cv_buffer_free(&a.found);
    cv_buffer_free(&a.area);
    cv_buffer_free(&a.newcomers);
    return status;
}
