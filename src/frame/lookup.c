/* Room: frame. INTRO of frame/lookup */
#include "frame/lookup.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "codec/decode.h"
#include "format/chunk_header.h"
#include "format/seal.h"
#include "frame/sealed.h"
#include "store/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Chunk ref ----
 *
 * Entries of the index, judged when they are used: a place in the chunk area,
 * a chunk file, or a special kind. */

/* A special chunk is a negative offset with its kind in the top byte. The bits
 * are tested in this order, as C-Blosc2 does. */
#define SPECIAL_ZEROS ((uint64_t)0x81 << 56)
#define SPECIAL_NAN ((uint64_t)0x82 << 56)
#define SPECIAL_UNINIT ((uint64_t)0x84 << 56)

int64_t cv_offset_of_kind(cv_ref_kind kind)
{
    switch (kind) {
    case CV_REF_NAN: return (int64_t)SPECIAL_NAN;
    case CV_REF_UNINIT: return (int64_t)SPECIAL_UNINIT;
    default: return (int64_t)SPECIAL_ZEROS;
    }
}

static cv_status make_special(const cv_snapshot *s, int64_t offset, cv_chunk_ref *out,
                              cv_error *err)
{
    uint64_t bits = (uint64_t)offset >> 56;
    if (bits & 0x01)
        out->kind = CV_REF_ZEROS;
    else if (bits & 0x04)
        out->kind = CV_REF_UNINIT;
    else if (bits & 0x02)
        out->kind = CV_REF_NAN;
    else
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld has the unknown special kind 0x%02llx",
                       (long long)out->chunk, (unsigned long long)bits);
    if (out->kind == CV_REF_NAN && s->grid.item_size != 4 && s->grid.item_size != 8)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                       "chunk %lld is all NaN, but items have %d bytes",
                       (long long)out->chunk, s->grid.item_size);
    return CV_OK;
}

cv_status cv_chunk_ref_make(const cv_snapshot *s, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err)
{
    *out = (cv_chunk_ref){.chunk = chunk, .kind = CV_REF_STORED, .object = CV_FRAME_OBJECT};
    if (cv_offset_is_special(offset)) return make_special(s, offset, out, err);

    if (s->header.sparse) {
        if (offset > UINT32_MAX)
            return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                           "chunk %lld is said to be chunk file %lld", (long long)chunk,
                           (long long)offset);
        out->object = offset;
        return CV_OK;
    }
    if (offset > s->header.cbytes - CV_CHUNK_HEADER_SIZE)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
            "chunk %lld is said to begin at offset %lld of a chunk area of %lld bytes",
            (long long)chunk, (long long)offset, (long long)s->header.cbytes);
    out->pos = s->header.header_size + (uint64_t)offset;
    out->limit = (uint64_t)(s->header.cbytes - offset);
    return CV_OK;
}

static void set_table(const cv_index *index, cv_chunk_ref *ref)
{
    ref->name = cv_index_name(index, ref->chunk);
    if (ref->name != 0) ref->table_pos = cv_index_table_pos(index, ref->chunk);
}

cv_status cv_chunk_ref_find(const cv_snapshot *s, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err)
{
    CV_TRY(cv_chunk_ref_make(s, chunk, cv_index_get(index, chunk), out, err));
    set_table(index, out);
    return CV_OK;
}

cv_status cv_snapshot_check_room(const cv_snapshot *s, cv_store *store, int64_t n_stored,
                                 cv_error *err)
{
    enum { FEW_FILES = 1 << 20 }; /* to look for without listing the directory */
    int64_t room = s->header.cbytes / CV_CHUNK_HEADER_SIZE;
    if (s->header.sparse && n_stored > FEW_FILES) {
        cv_object *files;
        size_t n_files = 0;
        CV_TRY(cv_store_list(store, &files, &n_files, err));
        cv_free(files);
        room = (int64_t)n_files;
    } else if (s->header.sparse) {
        return CV_OK;
    }
    if (n_stored <= room) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->index_pos,
                   "the index names %lld stored chunks, there is room for %lld",
                   (long long)n_stored, (long long)room);
}

/* ---- Index read ----
 *
 * Reads the chunk index: an ordinary Blosc2 chunk of int64 offsets. The
 * first few entries are looked up one by one, then it is decoded whole, once per
 * committed state. Every entry is checked when it is used (chunk_ref.c), so that
 * opening costs nothing per chunk. */

/* ---- Decoding ----------------------------------------------------------- */

static cv_chunk_expect expect_index(const cv_snapshot *s)
{
    return (cv_chunk_expect){
        .chunk = -1,
        .pos = (int64_t)s->index_pos,
        .nbytes = s->grid.n_chunks * (int64_t)sizeof(int64_t),
        .item_size = sizeof(int64_t),
        .max_cbytes = (int64_t)s->index_size,
    };
}

/* Blocks that decode from their own streams. */
static bool blocks_stand_alone(const cv_chunk_header *header, const uint8_t *header_bytes)
{
    return header->special == CV_SPECIAL_NONE && !header->split &&
           cv_codec_access(header_bytes) == CV_ACCESS_BLOCK;
}

typedef struct decoding {
    const cv_snapshot *snapshot;
    const uint8_t *bytes; /* the encoded index */
    const cv_chunk_header *header;
    cv_index *out;
    cv_decoder *decoder;
    cv_buffer scratch;
    int64_t bytes_taken; /* by pages */
} decoding;

/* Entries of page `p`: all pages but the last are full. */
static int64_t page_entries(const decoding *d, int64_t p)
{
    return cv_min_i64(d->out->n - p * CV_INDEX_PAGE, CV_INDEX_PAGE);
}

/* The page that comes next is filled: from the file's byte order to ours, and into the
 * index. Distinct pages may take only so much more memory than the file has bytes. */
static cv_status take_page(decoding *d, cv_index_page *page, cv_error *err)
{
    enum { FREE_BYTES = 192 << 20, BYTES_PER_BYTE = 64 };
    int64_t n = page_entries(d, d->out->n_pages);
    for (int64_t i = 0; i < n; i++)
        page->entries[i] = (int64_t)cv_load_le64((const uint8_t *)&page->entries[i]);
    d->bytes_taken += cv_index_add_page(d->out, page, (int)n);
    int64_t size = (int64_t)d->snapshot->header.frame_size;
    if (d->bytes_taken / BYTES_PER_BYTE <= size + FREE_BYTES / BYTES_PER_BYTE) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)d->snapshot->index_pos,
                   "the index of %lld chunks in a frame of %lld bytes takes too much memory",
                   (long long)d->out->n, (long long)size);
}

/* What a decoder says of bytes, it says of nothing that has a name. */
static cv_status name_index(const decoding *d, cv_status status, cv_error *err)
{
    char reason[sizeof err->message];
    if (status != CATERVA_ECORRUPT || !err) return status;
    (void)snprintf(reason, sizeof reason, "%s", err->message);
    return cv_fail(err, status, (int64_t)d->snapshot->index_pos,
                   "the index chunk at byte %lld: %.180s", (long long)d->snapshot->index_pos,
                   reason);
}

static cv_status decode_at_once(const decoding *d, cv_error *err)
{
    const cv_chunk_header *h = d->header;
    return name_index(
        d, cv_decode_chunk(d->decoder, d->bytes, h->cbytes, d->scratch.data, h->nbytes, err),
        err);
}

static cv_status decode_piece(const decoding *d, int32_t at, int32_t size, cv_error *err)
{
    return name_index(d,
                      cv_decode_range(d->decoder, d->bytes, d->header->cbytes, at, size,
                                      d->scratch.data, err),
                      err);
}

/* Decodes as much at a time as the chunk's blocks want, all of it where that is little,
 * and cuts it into pages. */
static cv_status decode_cut(decoding *d, cv_error *err)
{
    enum { LITTLE = 32 << 20, STEP = 16 << 20 };
    const cv_chunk_header *h = d->header;
    bool at_once = h->nbytes <= LITTLE;
    int32_t step = at_once ? h->nbytes : STEP;
    if (!at_once && (h->block_size > LITTLE || cv_codec_access(d->bytes) == CV_ACCESS_CHUNK))
        return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)d->snapshot->index_pos,
                       "an index of %d bytes that can only be decoded at once", h->nbytes);
    CV_TRY(cv_buffer_resize(&d->scratch, (size_t)step, err));
    for (int32_t at = 0; at < h->nbytes; at += step) {
        int32_t size = h->nbytes - at < step ? h->nbytes - at : step;
        CV_TRY(at_once ? decode_at_once(d, err) : decode_piece(d, at, size, err));
        for (int32_t done = 0; done < size; done += CV_INDEX_PAGE_BYTES) {
            cv_index_page *page;
            int64_t n = page_entries(d, d->out->n_pages);
            CV_TRY(cv_index_new_page(n, &page, err));
            memcpy(page->entries, d->scratch.data + done, (size_t)n * sizeof(int64_t));
            CV_TRY(take_page(d, page, err));
        }
        if (at_once) break;
    }
    return CV_OK;
}

static cv_status decode_page(decoding *d, cv_block_range range, cv_error *err)
{
    cv_index_page *page;
    int64_t n = page_entries(d, d->out->n_pages);
    cv_packed_block block = {.chunk_header = d->bytes,
                             .streams = (uint8_t *)d->bytes + range.start,
                             .streams_size = range.end - range.start};
    CV_TRY(cv_index_new_page(n, &page, err));
    cv_status status = cv_decode_block(d->decoder, &block, page->entries,
                                       (int32_t)n * (int32_t)sizeof(int64_t), err);
    if (status == CV_OK) return take_page(d, page, err);
    cv_index_drop_page(page);
    return name_index(d, status, err);
}

/* Decodes block after block, each into its page. */
static cv_status decode_blocks(decoding *d, cv_error *err)
{
    cv_chunk_expect expect = expect_index(d->snapshot);
    int64_t n = cv_ceil_div(d->out->n, CV_INDEX_PAGE);
    CV_TRY(cv_buffer_resize(&d->scratch, (size_t)n * sizeof(cv_block_range), err));
    cv_block_range *ranges = (cv_block_range *)d->scratch.data;
    CV_TRY(cv_block_starts_parse(d->header, d->bytes + CV_CHUNK_HEADER_SIZE, n, &expect,
                                 ranges, err));
    for (int64_t p = 0; p < n; p++) CV_TRY(decode_page(d, ranges[p], err));
    return CV_OK;
}

static cv_status decode_pages(decoding *d, cv_error *err)
{
    cv_codec_spec spec = {.item_size = sizeof(int64_t)};
    CV_TRY(cv_decoder_create(&spec, &d->decoder, err));
    bool fits = d->header->block_size == CV_INDEX_PAGE_BYTES;
    return fits && blocks_stand_alone(d->header, d->bytes) ? decode_blocks(d, err)
                                                           : decode_cut(d, err);
}

static cv_status decode_entries(const cv_snapshot *s, const uint8_t *bytes,
                                const cv_chunk_header *header, cv_index *out, cv_error *err)
{
    CV_TRY(cv_index_begin(s->grid.n_chunks, out, err));
    decoding d = {.snapshot = s, .bytes = bytes, .header = header, .out = out};
    cv_status status = decode_pages(&d, err);
    cv_decoder_free(d.decoder);
    cv_buffer_free(&d.scratch);
    if (status != CV_OK) cv_index_free(out);
    return status;
}

static cv_status decode_index(const cv_snapshot *s, const uint8_t *bytes, cv_index *out,
                              cv_error *err)
{
    cv_chunk_expect expect = expect_index(s);
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(bytes, &expect, &header, err));
    switch (header.special) {
    case CV_SPECIAL_NONE: return decode_entries(s, bytes, &header, out, err);
    case CV_SPECIAL_VALUE:
        *out = (cv_index){.n = s->grid.n_chunks,
                          .same = (int64_t)cv_load_le64(bytes + CV_CHUNK_HEADER_SIZE)};
        return CV_OK;
    case CV_SPECIAL_ZEROS: *out = (cv_index){.n = s->grid.n_chunks}; return CV_OK;
    default:
        return cv_fail(err, CATERVA_ECORRUPT, expect.pos, "the chunk index has no values");
    }
}

/* The encoded index: borrowed from the store, or read into `buffer`. */
static cv_status read_encoded(const cv_snapshot *s, cv_store *store, cv_buffer *buffer,
                              const uint8_t **bytes, cv_error *err)
{
    size_t size = (size_t)s->index_size;
    *bytes = cv_store_view(store, CV_FRAME_OBJECT, s->index_pos, size);
    if (*bytes) return CV_OK;
    CV_TRY(cv_buffer_resize(buffer, size, err));
    *bytes = buffer->data;
    return cv_store_read(store, CV_FRAME_OBJECT, s->index_pos, buffer->data, size, err);
}

static cv_status load_checked(cv_snapshot *s, cv_store *store, const uint8_t *bytes,
                              cv_index *out, cv_error *err)
{
    const cv_seal_head *head;
    CV_TRY(cv_sealed_head(s, store, &head, err));
    if (head) CV_TRY(cv_sealed_check_index(s, head, bytes, err));
    CV_TRY(decode_index(s, bytes, out, err));
    if (!head) return CV_OK;
    cv_status status = cv_sealed_read_names(s, store, head, out, err);
    if (status != CV_OK) cv_index_free(out);
    return status;
}

/* From a far store what stands before the index comes along: the header's copy, and what says
 * whether there are layouts before that. */
static cv_status bring(const cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t size = s->index_size + s->footer.size, end = cv_layout_area_end(s), before = 0;
    if (cv_store_view(store, CV_FRAME_OBJECT, s->index_pos, (size_t)size)) return CV_OK;
    if (!s->header.sparse && end > s->header.header_size + CV_LAYOUTS_FOOTER)
        before = s->index_pos - end + CV_LAYOUTS_FOOTER;
    return cv_store_bring(store, s->index_pos - before, size + before, err);
}

static cv_status load_index(cv_snapshot *s, cv_store *store, cv_index *out, cv_error *err)
{
    if (s->index_size == 0) return CV_OK;
    CV_TRY(bring(s, store, err));
    cv_buffer buffer = {0};
    const uint8_t *bytes;
    cv_status status = read_encoded(s, store, &buffer, &bytes, err);
    if (status == CV_OK) status = load_checked(s, store, bytes, out, err);
    cv_buffer_free(&buffer);
    return status;
}

typedef struct loading {
    cv_snapshot *snapshot;
    cv_store *store;
} loading;

static cv_status load_again(void *context, cv_error *err)
{
    const loading *l = context;
    return load_index(l->snapshot, l->store, &l->snapshot->index, err);
}

static cv_status load_doubting(cv_snapshot *snapshot, cv_store *store, cv_error *err)
{
    loading l = {snapshot, store};
    const cv_doubted twice = {.store = store, .read = load_again, .context = &l};
    return cv_store_doubting(&twice, err);
}

cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err)
{
    cv_status status = CV_OK;
    if (!atomic_load_explicit(&snapshot->index_ready, memory_order_acquire)) {
        cv_mutex_lock(&snapshot->index_lock);
        if (!atomic_load_explicit(&snapshot->index_ready, memory_order_relaxed)) {
            status = load_doubting(snapshot, store, err);
            if (status == CV_OK)
                atomic_store_explicit(&snapshot->index_ready, true, memory_order_release);
        }
        cv_mutex_unlock(&snapshot->index_lock);
    }
    *out = &snapshot->index;
    return status;
}

/* ---- One entry ---------------------------------------------------------- */

/* Below so many chunks decoding all is as quick; above so many lookups too. */
enum { LARGE_INDEX = 16384, LOOKUPS = 8 };

typedef struct lookup {
    cv_snapshot *snapshot;
    cv_store *store;
    const cv_seal_head *head; /* NULL: nothing to check */
    cv_chunk_header header;
    uint8_t header_bytes[CV_CHUNK_HEADER_SIZE];
    cv_buffer starts;
    cv_buffer ranges;
    cv_buffer streams; /* one block's, behind room for the decoder's prefix */
    cv_buffer block;   /* decoded */
} lookup;

static cv_status read_index(const lookup *l, uint64_t at, void *dst, size_t size,
                            cv_error *err)
{
    return cv_store_read(l->store, CV_FRAME_OBJECT, l->snapshot->index_pos + at, dst, size,
                         err);
}

/* Reads the header; *possible: the index has blocks that stand for themselves, and
 * all tables stand behind their chunks. */
static cv_status open_lookup(lookup *l, bool *possible, cv_error *err)
{
    cv_chunk_expect expect = expect_index(l->snapshot);
    CV_TRY(cv_sealed_head(l->snapshot, l->store, &l->head, err));
    CV_TRY(read_index(l, 0, l->header_bytes, sizeof l->header_bytes, err));
    CV_TRY(cv_chunk_header_parse(l->header_bytes, &expect, &l->header, err));
    *possible = blocks_stand_alone(&l->header, l->header_bytes);
    if (l->head)
        *possible = *possible && l->head->n_strays == 0 &&
                    l->head->n_index_blocks * 4 == cv_block_starts_size(&l->header);
    return CV_OK;
}

/* Header and block starts are what the seal calls the index's head: ours have no
 * dictionary. */
static cv_status check_head(const lookup *l, cv_error *err)
{
    uint32_t crc = cv_crc32c(0, l->header_bytes, sizeof l->header_bytes);
    crc = cv_crc32c(crc, l->starts.data, l->starts.size);
    return crc == l->head->index_head ? CV_OK : cv_sealed_fail_index(l->snapshot, err);
}

static cv_status find_block(lookup *l, int64_t block, cv_block_range *range, cv_error *err)
{
    cv_chunk_expect expect = expect_index(l->snapshot);
    size_t size = (size_t)cv_block_starts_size(&l->header);
    int64_t n_blocks = (int64_t)(size / sizeof(int32_t));
    CV_TRY(cv_buffer_resize(&l->starts, size, err));
    CV_TRY(cv_buffer_resize(&l->ranges, (size_t)n_blocks * sizeof *range, err));
    CV_TRY(read_index(l, CV_CHUNK_HEADER_SIZE, l->starts.data, size, err));
    if (l->head) CV_TRY(check_head(l, err));
    cv_block_range *ranges = (cv_block_range *)l->ranges.data;
    CV_TRY(cv_block_starts_parse(&l->header, l->starts.data, n_blocks, &expect, ranges, err));
    *range = ranges[block];
    return CV_OK;
}

static cv_status decode_block(lookup *l, int64_t block, cv_block_range range, int32_t size,
                              cv_error *err)
{
    size_t streams = (size_t)(range.end - range.start);
    CV_TRY(cv_buffer_resize(&l->streams, CV_BLOCK_PREFIX + streams, err));
    CV_TRY(cv_buffer_resize(&l->block, (size_t)size, err));
    cv_packed_block packed = {.chunk_header = l->header_bytes,
                              .streams = l->streams.data + CV_BLOCK_PREFIX,
                              .streams_size = range.end - range.start,
                              .in_place = true};
    CV_TRY(read_index(l, (uint64_t)range.start, packed.streams, streams, err));
    if (l->head)
        CV_TRY(cv_sealed_check_part(l->snapshot, l->head->index_blocks[block], packed.streams,
                                    streams, err));
    cv_decoder *decoder;
    cv_codec_spec spec = {.item_size = sizeof(int64_t)};
    CV_TRY(cv_decoder_create(&spec, &decoder, err));
    cv_status status = cv_decode_block(decoder, &packed, l->block.data, size, err);
    cv_decoder_free(decoder);
    return status;
}

/* *found is false when the index must be decoded whole after all. */
static cv_status look_up(lookup *l, int64_t chunk, int64_t *out, uint32_t *name, bool *found,
                         cv_error *err)
{
    CV_TRY(open_lookup(l, found, err));
    if (!*found) return CV_OK;
    int64_t at = chunk * (int64_t)sizeof(int64_t);
    int64_t block = at / l->header.block_size;
    int64_t rest = l->header.nbytes - block * l->header.block_size;
    cv_block_range range;
    CV_TRY(find_block(l, block, &range, err));
    int32_t size = (int32_t)cv_min_i64(rest, l->header.block_size);
    CV_TRY(decode_block(l, block, range, size, err));
    *out = (int64_t)cv_load_le64(l->block.data + at % l->header.block_size);
    if (!l->head) return CV_OK;
    return cv_sealed_read_name(l->snapshot, l->store, l->head, chunk, name, err);
}

/* A lookup is several reads, one after the other. */
static bool worth_a_lookup(cv_snapshot *s, const cv_store *store)
{
    return !store->is_far && s->grid.n_chunks >= LARGE_INDEX &&
           !atomic_load_explicit(&s->index_ready, memory_order_acquire) &&
           atomic_fetch_add_explicit(&s->index_lookups, 1, memory_order_relaxed) < LOOKUPS;
}

cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err)
{
    if (worth_a_lookup(snapshot, store)) {
        lookup l = {.snapshot = snapshot, .store = store};
        int64_t offset;
        uint32_t name = 0;
        bool found;
        cv_status status = look_up(&l, chunk, &offset, &name, &found, err);
        cv_buffer_free(&l.starts);
        cv_buffer_free(&l.ranges);
        cv_buffer_free(&l.streams);
        cv_buffer_free(&l.block);
        if (status != CV_OK) return status;
        if (found) {
            status = cv_chunk_ref_make(snapshot, chunk, offset, out, err);
            out->name = name;
            return status;
        }
    }
    const cv_index *index;
    CV_TRY(cv_snapshot_index(snapshot, store, &index, err));
    return cv_chunk_ref_find(snapshot, index, chunk, out, err);
}
