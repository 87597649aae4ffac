/* Room: frame. Collects what stands before the first block of each chunk, and its block table,
 * in pieces of bounded memory. Where the tail goes is commit.c's matter: behind all that is
 * used of a new frame. */
#include "frame/put_layouts.h"

#include "format/seal.h"
#include "frame/layout_cache.h"
#include "frame/put.h"
#include "frame/sealed.h"

#include <assert.h>
#include <string.h>

enum { PIECE = 1 << 20 };

typedef struct putting {
    cv_txn *txn;
    cv_buffer bytes; /* not written yet, */
    uint64_t pos;    /* which belong there */
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

/* What a record has of a chunk, if it has room; else it stays zeros. */
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

/* That of a chunk that cannot be made out stays zeros: who reads the chunk hears of it. */
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
    p->footer.names = cv_sealed_names(&p->txn->index);
    cv_layouts_footer_write(&p->footer, footer);
    return cv_buffer_append(&p->bytes, footer, sizeof footer, err);
}

static cv_status put(putting *p, cv_error *err)
{
    const cv_index *index = &p->txn->index;
    CV_TRY(add_mark(p, err));
    for (int64_t i = 0; i < index->n; i++) {
        if (cv_index_name(index, i) == 0) continue;
        CV_TRY(add_record(p, i, err));
        if (p->bytes.size >= PIECE) CV_TRY(write_piece(p, err));
    }
    if (p->footer.n == 0) return CV_OK;
    CV_TRY(add_footer(p, err));
    CV_TRY(write_piece(p, err));
    p->txn->end = p->pos;
    if (p->txn->chunks_end < p->pos) p->txn->chunks_end = p->pos;
    return CV_OK;
}

cv_status cv_txn_put_layouts(cv_txn *txn, cv_error *err)
{
    const cv_grid *grid = &txn->state->grid;
    putting p = {.txn = txn, .pos = txn->end};
    assert(!txn->frame->store->published);
    p.footer.record_size = cv_layouts_record_size(grid->n_blocks);
    if (p.footer.record_size == 0 || txn->base->header.sparse) return CV_OK;
    if (grid->n_chunks == 0 || cv_layout_is_small(grid)) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, err));
    if (!txn->index.pages) return CV_OK;
    cv_status status = put(&p, err);
    cv_buffer_free(&p.bytes);
    return status;
}
