/* Room: engine/write. What a Zarr shard has behind the frame, from the streams of all chunks. */
#include "engine/write/shard.h"

#include "base/arith.h"
#include "base/crc.h"
#include "engine/items/copy.h"
#include "format/dual.h"
#include "frame/fetch.h"
#include "frame/layout.h"
#include "frame/lookup.h"

#include <string.h>

enum { ENTRY = 16, SUM = 4 };
enum { MISSING = 0xff }; /* each byte of the entry of a missing block */

/* A repeated item whose buffer is written. */
typedef struct repeated {
    uint8_t *item;
    uint64_t pos;
    uint64_t size;
} repeated;

typedef struct making {
    const cv_shard *shard;
    const cv_grid *grid;
    uint64_t end; /* of the file so far */
    cv_buffer index;
    cv_buffer packed; /* a chunk */
    cv_buffer apart;  /* a buffer for behind the frame */
    uint8_t *item;    /* of the current block */
    uint8_t *fill;
    repeated last; /* many blocks have the same one */
    int codec;     /* that of the last chunk, as in its header */
} making;

/* ---- The grid of all blocks ----------------------------------------------------- */

static int64_t n_entries(const cv_grid *grid) { return grid->n_chunks * grid->n_blocks; }

static int64_t entry_of(const cv_grid *grid, int64_t chunk, int64_t block)
{
    int64_t c[CV_MAX_DIMS], b[CV_MAX_DIMS], entry = 0;
    cv_grid_chunk_index(grid, chunk, c);
    cv_grid_block_index(grid, block, b);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t n = grid->block_counts[d];
        entry = entry * grid->chunk_counts[d] * n + c[d] * n + b[d];
    }
    return entry;
}

static void set_entry(making *m, int64_t chunk, int64_t block, uint64_t pos, uint64_t size)
{
    uint8_t *entry = m->index.data + ENTRY * entry_of(m->grid, chunk, block);
    cv_store_le64(entry, pos);
    cv_store_le64(entry + 8, size);
}

/* ---- Buffers behind the frame ----------------------------------------------------- */

/* Passes on the buffer in m->apart, and sets its position. */
static cv_status put_apart(making *m, uint64_t *pos, cv_error *err)
{
    *pos = m->end;
    m->end += m->apart.size;
    return m->shard->take(m->shard->context, m->apart.data, m->apart.size, err);
}

/* Blocks of the fill are missing. The others share one buffer. */
static cv_status put_item(making *m, int64_t chunk, int64_t block, cv_error *err)
{
    size_t size = (size_t)m->grid->item_size;
    if (memcmp(m->item, m->fill, size) == 0) return CV_OK;
    if (m->last.size == 0 || memcmp(m->item, m->last.item, size) != 0) {
        m->apart.size = 0;
        CV_TRY(cv_dual_write_item(m->codec, m->item, m->grid->item_size, m->grid->block_bytes,
                                  &m->apart, err));
        CV_TRY(put_apart(m, &m->last.pos, err));
        memcpy(m->last.item, m->item, size);
        m->last.size = m->apart.size;
    }
    set_entry(m, chunk, block, m->last.pos, m->last.size);
    return CV_OK;
}

static cv_status put_item_chunk(making *m, int64_t chunk, cv_error *err)
{
    for (int64_t i = 0; i < m->grid->n_blocks; i++) CV_TRY(put_item(m, chunk, i, err));
    return CV_OK;
}

/* ---- Chunks ---------------------------------------------------------------------- */

static cv_status put_block(making *m, const cv_chunk_ref *ref, const cv_layout *layout,
                           const uint8_t *bytes, int64_t block, cv_error *err)
{
    const cv_block_range *range = layout->blocks ? &layout->blocks[block] : NULL;
    const cv_chunk_header *header = &layout->header;
    cv_dual_block found = cv_dual_look(bytes, header, range, m->grid->item_size, m->item);
    uint64_t pos;
    switch (found.kind) {
    case CV_DUAL_BUFFER:
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): such a block has a range */
        set_entry(m, ref->chunk, block, ref->pos + (uint64_t)range->start - CV_DUAL_HEAD,
                  found.size);
        return CV_OK;
    case CV_DUAL_ITEM: return put_item(m, ref->chunk, block, err);
    case CV_DUAL_APART:
        m->apart.size = 0;
        CV_TRY(cv_dual_write_block(bytes, header, range, block, &m->apart, err));
        CV_TRY(put_apart(m, &pos, err));
        set_entry(m, ref->chunk, block, pos, m->apart.size);
        return CV_OK;
    case CV_DUAL_NEITHER: break;
    }
    bool fits = cv_dual_fits(header);
    return cv_fail(err, fits ? CATERVA_ECORRUPT : CATERVA_EUNSUPPORTED, (int64_t)ref->pos,
                   fits ? "the streams of block %lld of chunk %lld at byte %llu are damaged"
                        : "Zarr readers cannot decode block %lld of chunk %lld at byte %llu",
                   (long long)block, (long long)ref->chunk, (unsigned long long)ref->pos);
}

/* Reads the bytes before the streams of all blocks, which are far fewer than the chunk. *all: each
 * block has its buffer in the chunk, and its entry is set. */
static cv_status put_heads(making *m, const cv_chunk_ref *ref, const cv_layout *layout,
                           bool *all, cv_error *err)
{
    uint8_t head[CV_DUAL_HEAD];
    const cv_block_range *range = layout->blocks;
    *all = m->shard->is_new && range && !layout->header.memcpyed &&
           cv_dual_fits(&layout->header);
    for (int64_t i = 0; i < m->grid->n_blocks && *all; i++, range++) {
        uint32_t size;
        *all = range->start >= CV_CHUNK_HEADER_SIZE + CV_DUAL_HEAD;
        if (!*all) break;
        uint64_t pos = ref->pos + (uint64_t)range->start - CV_DUAL_HEAD;
        CV_TRY(cv_store_read(m->shard->frame->store, CV_FRAME_OBJECT, pos, head, sizeof head,
                             err));
        *all = cv_dual_is_head(head, &layout->header, range->end - range->start, &size);
        if (*all) set_entry(m, ref->chunk, i, pos, size);
    }
    return CV_OK;
}

static cv_status put_blocks(making *m, const cv_chunk_ref *ref, const cv_layout *layout,
                            cv_error *err)
{
    bool all;
    const uint8_t *bytes;
    CV_TRY(put_heads(m, ref, layout, &all, err));
    if (all) return CV_OK;
    CV_TRY(cv_fetch_chunk(m->shard->frame, layout, &m->packed, &bytes, err));
    for (int64_t i = 0; i < m->grid->n_blocks; i++)
        CV_TRY(put_block(m, ref, layout, bytes, i, err));
    return CV_OK;
}

static cv_status put_stored(making *m, const cv_chunk_ref *ref, cv_error *err)
{
    cv_layout *layout;
    CV_TRY(cv_layout_get(m->shard->frame->layouts, m->shard->snapshot, ref, &layout, err));
    cv_status status = CV_OK;
    size_t size = (size_t)m->grid->item_size;
    switch (layout->header.special) {
    case CV_SPECIAL_NONE: status = put_blocks(m, ref, layout, err); break;
    case CV_SPECIAL_VALUE:
        memcpy(m->item, layout->item, size);
        status = put_item_chunk(m, ref->chunk, err);
        break;
    case CV_SPECIAL_NAN:
        memcpy(m->item, cv_nan_item(m->grid->item_size), size);
        status = put_item_chunk(m, ref->chunk, err);
        break;
    default:
        memset(m->item, 0, size);
        status = put_item_chunk(m, ref->chunk, err);
        break;
    }
    cv_layout_release(layout);
    return status;
}

static cv_status put_chunk(making *m, int64_t chunk, cv_error *err)
{
    cv_chunk_ref ref;
    CV_TRY(cv_snapshot_find(m->shard->snapshot, m->shard->frame->store, chunk, &ref, err));
    if (ref.kind == CV_REF_STORED) return put_stored(m, &ref, err);
    memset(m->item, 0, (size_t)m->grid->item_size);
    if (ref.kind == CV_REF_NAN)
        memcpy(m->item, cv_nan_item(m->grid->item_size), (size_t)m->grid->item_size);
    return put_item_chunk(m, chunk, err);
}

/* ---- The whole -------------------------------------------------------------------- */

static cv_status check_size(const cv_grid *grid, cv_error *err)
{
    enum { MOST = 1 << 27 }; /* an index of 2 GiB, which each reader would read */
    if (n_entries(grid) <= MOST) return CV_OK;
    return cv_fail(
        err, CATERVA_EUNSUPPORTED, -1,
        "an index of %lld blocks is too large for a Zarr array: choose larger blocks",
        (long long)n_entries(grid));
}

static cv_status begin(making *m, cv_error *err)
{
    size_t size = (size_t)m->grid->item_size, bytes = cv_size(ENTRY * n_entries(m->grid));
    CV_TRY(cv_buffer_resize(&m->index, bytes + SUM, err));
    memset(m->index.data, MISSING, bytes);
    m->item = cv_calloc(3, size);
    if (!m->item) return cv_fail_memory(err, 3 * size, "items");
    m->fill = m->item + size;
    m->last.item = m->fill + size;
    if (m->shard->fill) memcpy(m->fill, m->shard->fill, size);
    return CV_OK;
}

static cv_status make(making *m, cv_error *err)
{
    CV_TRY(check_size(m->grid, err));
    CV_TRY(begin(m, err));
    for (int64_t i = 0; i < m->grid->n_chunks; i++) {
        CV_TRY(put_chunk(m, i, err));
        CV_TRY(cv_watch_tick(m->shard->watch, 0, err));
    }
    size_t bytes = m->index.size - SUM;
    cv_store_le32(m->index.data + bytes, cv_crc32c(0, m->index.data, bytes));
    return m->shard->take(m->shard->context, m->index.data, m->index.size, err);
}

/* Repeated items have the array's codec, if Blosc 1 has it. */
static int codec_of(const cv_snapshot *snapshot)
{
    enum { LZ4 = 1 }; /* as in the header of a chunk */
    switch (snapshot->header.codec) {
    case CATERVA_CODEC_ZLIB: return 3;
    case CATERVA_CODEC_ZSTD: return 4;
    default: return LZ4;
    }
}

cv_status cv_shard_make(const cv_shard *shard, cv_error *err)
{
    making m = {.shard = shard,
                .grid = &shard->snapshot->grid,
                .end = shard->snapshot->header.frame_size,
                .codec = codec_of(shard->snapshot)};
    cv_status status = make(&m, err);
    cv_free(m.item);
    cv_buffer_free(&m.index);
    cv_buffer_free(&m.packed);
    cv_buffer_free(&m.apart);
    return status;
}

/* Whether the bytes are an index, not another list with a checksum, such as the table of a chunk. */
static bool is_index(const uint8_t *bytes, int64_t n, uint64_t file_size)
{
    for (int64_t i = 0; i < n; i++, bytes += ENTRY) {
        uint64_t start = cv_load_le64(bytes), size = cv_load_le64(bytes + 8);
        bool is_missing = start == UINT64_MAX && size == UINT64_MAX;
        if (!is_missing && (start > file_size || size > file_size - start)) return false;
    }
    return true;
}

cv_status cv_shard_find(const cv_frame *frame, const cv_snapshot *snapshot, bool *found,
                        cv_error *err)
{
    const cv_grid *grid = &snapshot->grid;
    uint64_t stored, size = ENTRY * (uint64_t)n_entries(grid) + SUM;
    cv_buffer index = {0};
    *found = false;
    if (snapshot->header.sparse) return CV_OK;
    CV_TRY(cv_store_size(frame->store, CV_FRAME_OBJECT, &stored, err));
    if (stored < snapshot->header.frame_size + size) return CV_OK;
    /* The checksum of no entries is four zeros, which many files end with. */
    if (size == SUM && stored != snapshot->header.frame_size + size) return CV_OK;
    CV_TRY(cv_buffer_resize(&index, cv_size((int64_t)size), err));
    cv_status status = cv_store_read(frame->store, CV_FRAME_OBJECT, stored - size, index.data,
                                     index.size, err);
    if (status == CV_OK)
        *found = cv_load_le32(index.data + size - SUM) ==
                     cv_crc32c(0, index.data, (size_t)size - SUM) &&
                 is_index(index.data, n_entries(grid), stored);
    cv_buffer_free(&index);
    return status;
}

/* ---- Checking --------------------------------------------------------------------- */

typedef struct checking {
    cv_store *store;
    uint64_t stored; /* the end of the file */
    uint64_t pos;    /* of the next byte that belongs there */
    uint64_t bad;    /* the first byte that differs, or `stored`; UINT64_MAX: none */
    cv_buffer found;
} checking;

static cv_status compare(void *context, const uint8_t *bytes, size_t size, cv_error *err)
{
    checking *c = context;
    uint64_t pos = c->pos, left = c->stored > pos ? c->stored - pos : 0;
    size_t there = left < size ? (size_t)left : size;
    c->pos += size;
    if (c->bad != UINT64_MAX) return CV_OK;
    CV_TRY(cv_buffer_resize(&c->found, there, err));
    if (there > 0)
        CV_TRY(cv_store_read(c->store, CV_FRAME_OBJECT, pos, c->found.data, there, err));
    for (size_t i = 0; i < there && c->bad == UINT64_MAX; i++)
        if (c->found.data[i] != bytes[i]) c->bad = pos + i;
    if (c->bad == UINT64_MAX && there < size) c->bad = c->stored;
    return CV_OK;
}

cv_status cv_shard_check(const cv_shard *shard, bool *ended, cv_error *err)
{
    uint64_t start = shard->snapshot->header.frame_size;
    checking c = {.store = shard->frame->store, .pos = start, .bad = UINT64_MAX};
    cv_shard again = *shard;
    again.take = compare;
    again.context = &c;
    CV_TRY(cv_store_size(c.store, CV_FRAME_OBJECT, &c.stored, err));
    cv_status status = cv_shard_make(&again, err);
    cv_buffer_free(&c.found);
    if (ended) {
        bool is_unlike = c.bad < start + ENTRY && c.bad < c.stored && c.stored != c.pos;
        /* chunks that no Zarr array has; or not as long as what belongs there, and no part of it */
        *ended = status == CATERVA_EUNSUPPORTED || (status == CV_OK && is_unlike);
        if (*ended) return CV_OK;
    }
    CV_TRY(status);
    if (c.bad == UINT64_MAX && c.stored == c.pos) return CV_OK;
    if (c.bad == UINT64_MAX)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)c.pos,
                       "%llu bytes are behind the index of the Zarr array",
                       (unsigned long long)(c.stored - c.pos));
    if (c.bad == c.stored)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)c.bad,
            "the file ends at byte %llu, in the blocks or the index of the Zarr array",
            (unsigned long long)c.bad);
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)c.bad,
                   "the blocks or the index of the Zarr array are damaged at byte %llu",
                   (unsigned long long)c.bad);
}
