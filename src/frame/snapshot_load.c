/* Room: frame. Loads one committed state of a frame from its store and checks it once:
 * header against file, trailer and index in their places. Later code trusts a snapshot. */
#include "frame/snapshot_load.h"

#include "base/arith.h"
#include "base/os.h"
#include "format/chunk_header.h"
#include "frame/far_header.h"
#include "frame/kinds.h"
#include "store/fallbacks.h"

#include <string.h>

enum { FIRST_READ = 4096 };

/* ---- Header ------------------------------------------------------------- */

/* A writer elsewhere may be putting a new header in place, and systems do not
 * promise that a read sees all of a write or nothing: what two reads in a row
 * agree on is taken for whole. Who holds the writer's lock need not ask. */
static cv_status settle_header(cv_snapshot *s, cv_store *store, cv_error *err)
{
    enum { TRIES = 100 };
    if (store->writable || store->in_memory || store->has_chunk_objects || store->is_pinned)
        return CV_OK;
    cv_buffer again = {0};
    cv_status status = cv_buffer_resize(&again, s->header_bytes.size, err);
    bool same = false;
    for (int i = 0; status == CV_OK && !same && i < TRIES; i++) {
        status = cv_store_read(store, CV_FRAME_OBJECT, 0, again.data, again.size, err);
        if (status != CV_OK) break;
        same = memcmp(again.data, s->header_bytes.data, again.size) == 0;
        memcpy(s->header_bytes.data, again.data, again.size);
    }
    cv_buffer_free(&again);
    return status;
}

/* The first bytes of the frame. A writer elsewhere that takes back what it has put cuts
 * the file after the look at its size: what is left is read then, and holds the header. */
static cv_status read_first(cv_snapshot *s, cv_store *store, uint64_t *stored, cv_error *err)
{
    for (;;) {
        cv_error error = {0};
        uint64_t had = *stored;
        size_t first = had < FIRST_READ ? (size_t)had : FIRST_READ;
        if (first == 0)
            return cv_fail(err, CATERVA_ECORRUPT, 0, "the file is empty, not a frame");
        CV_TRY(cv_buffer_resize(&s->header_bytes, first, err));
        cv_status status =
            cv_store_read(store, CV_FRAME_OBJECT, 0, s->header_bytes.data, first, &error);
        if (status == CATERVA_ECORRUPT)
            CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, stored, err));
        if (status == CATERVA_ECORRUPT && *stored < had) continue;
        if (status != CV_OK && err) *err = error;
        return status;
    }
}

static cv_status read_header(cv_snapshot *s, cv_store *store, uint64_t stored, cv_error *err)
{
    bool is_found = false;
    uint32_t header_size;
    if (stored > 0) CV_TRY(cv_far_header(store, stored, &s->header_bytes, &is_found, err));
    if (is_found) return CV_OK;
    CV_TRY(read_first(s, store, &stored, err));
    size_t first = s->header_bytes.size;
    CV_TRY(cv_frame_header_peek(s->header_bytes.data, first, &header_size, err));
    if (header_size > stored)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, inside the header of %u bytes",
                       (unsigned long long)stored, header_size);
    CV_TRY(cv_buffer_resize(&s->header_bytes, header_size, err));
    if (header_size > first)
        CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, first, s->header_bytes.data + first,
                             header_size - first, err));
    return settle_header(s, store, err);
}

/* ---- Trailer ------------------------------------------------------------ */

/* The last `size` bytes of the frame. */
static cv_status read_end(const cv_snapshot *s, cv_store *store, uint64_t size,
                          cv_buffer *out, cv_error *err)
{
    CV_TRY(cv_buffer_resize(out, (size_t)size, err));
    return cv_store_read(store, CV_FRAME_OBJECT, s->header.frame_size - size, out->data,
                         out->size, err);
}

/* Reads the end of the frame: trailer, and the seal's footer before it, should
 * there be one. Most often one read gets both. */
static cv_status read_tail(const cv_snapshot *s, cv_store *store, cv_buffer *tail,
                           uint32_t *trailer_size, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    uint64_t room = h->frame_size - h->header_size;
    if (room < CV_TRAILER_MIN)
        return cv_fail(err, CATERVA_ECORRUPT, h->header_size,
                       "the frame of %llu bytes has no room for a trailer",
                       (unsigned long long)h->frame_size);
    CV_TRY(read_end(s, store, room < FIRST_READ ? room : FIRST_READ, tail, err));

    uint64_t last_pos = h->frame_size - CV_TRAILER_TAIL;
    const uint8_t *last = tail->data + tail->size - CV_TRAILER_TAIL;
    CV_TRY(cv_trailer_peek(last, (int64_t)last_pos, trailer_size, err));
    if (*trailer_size > room)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)last_pos,
                       "a trailer of %u bytes in a frame with room for %llu", *trailer_size,
                       (unsigned long long)room);
    uint64_t wanted = (uint64_t)*trailer_size + CV_SEAL_FOOTER;
    if (wanted > room) wanted = room;
    return wanted > tail->size ? read_end(s, store, wanted, tail, err) : CV_OK;
}

/* Only frames with chunks have a footer. */
static cv_status check_root(cv_snapshot *s, const cv_buffer *tail, cv_error *err)
{
    size_t size = s->trailer.size;
    int64_t pos = (int64_t)(s->header.frame_size - size);
    bool has_footer = s->grid.n_chunks > 0 && s->trailer.fingerprint_type != 0;
    if (has_footer) {
        size += CV_SEAL_FOOTER;
        if (size > tail->size ||
            !cv_seal_footer_read(tail->data + tail->size - size, &s->footer))
            return cv_fail(err, CATERVA_ECORRUPT, pos,
                           "the seal before the trailer at byte %lld is damaged",
                           (long long)pos);
    }
    return cv_seal_root_check(tail->data + tail->size - size, size, &s->trailer,
                              s->header_bytes.data, &s->header, &s->seal, err);
}

static cv_status read_trailer(cv_snapshot *s, cv_store *store, cv_buffer *tail, cv_error *err)
{
    uint32_t size;
    CV_TRY(read_tail(s, store, tail, &size, err));
    const uint8_t *trailer = tail->data + tail->size - size;
    CV_TRY(cv_buffer_append(&s->trailer_bytes, trailer, size, err));
    CV_TRY(cv_trailer_parse(s->trailer_bytes.data, size,
                            (int64_t)(s->header.frame_size - size), &s->trailer, err));
    if (s->meta.plain && !s->any_kind)
        CV_TRY(cv_kind_check_attributes(s->trailer.attributes, s->trailer.n_attributes, err));
    cv_status status = check_root(s, tail, s->unchecked ? NULL : err);
    if (status != CV_OK) s->seal = CV_SEAL_NONE;
    if (s->seal == CV_SEAL_NONE) s->footer = (cv_seal_footer){0};
    if (s->seal != CV_SEAL_WHOLE) s->stamp = cv_store_stamp(store);
    if (s->seal == CV_SEAL_WHOLE && store->is_pinned) store->is_vouched = true;
    return s->unchecked ? CV_OK : status;
}

/* The index stands between chunk area and trailer; a directory's right behind
 * the header. Without chunks there is none. */
static cv_status place_index(cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    if (s->grid.n_chunks == 0) return CV_OK;

    uint64_t trailer_pos = h->frame_size - s->trailer.size;
    uint64_t pos = h->header_size;
    if (!h->sparse) pos += (uint64_t)h->cbytes; /* of 31 and 63 bits */
    if (pos > trailer_pos || trailer_pos - pos < CV_CHUNK_HEADER_SIZE ||
        trailer_pos - pos - CV_CHUNK_HEADER_SIZE < s->footer.size)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)h->header_size,
            "%lld bytes of chunks leave no room for the index before the trailer at "
            "byte %llu",
            (long long)h->cbytes, (unsigned long long)trailer_pos);
    s->index_pos = pos;
    s->index_size = trailer_pos - pos - s->footer.size;
    return CV_OK;
}

/* A file may grow by another process's commit between the look at its size and
 * the read of its header: a header that says more is believed after a second
 * look. */
static cv_status check_frame_size(const cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (s->header.frame_size > stored)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, the frame should have %llu: truncated",
                       (unsigned long long)stored, (unsigned long long)s->header.frame_size);
    return CV_OK;
}

static cv_status check_kind(const cv_snapshot *s, const cv_store *store, cv_error *err)
{
    if (s->header.sparse == store->has_chunk_objects) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   s->header.sparse ? "the index of a directory, but no directory"
                                    : "a contiguous frame in the place of a directory's");
}

static cv_status load_tail(cv_snapshot *s, cv_store *store, uint64_t stored, cv_error *err)
{
    if (s->header.frame_size > stored) CV_TRY(check_frame_size(s, store, err));
    CV_TRY(check_kind(s, store, err));
    cv_buffer tail = {0};
    cv_status status = read_trailer(s, store, &tail, err);
    cv_buffer_free(&tail);
    return status == CV_OK ? place_index(s, err) : status;
}

static cv_status load(cv_snapshot *s, cv_store *store, bool header_only, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    CV_TRY(read_header(s, store, stored, err));
    CV_TRY(cv_snapshot_parse(s, err));
    return header_only ? CV_OK : load_tail(s, store, stored, err);
}

/* ---- The whole state ------------------------------------------------------ */

/* What a load is asked for. */
typedef enum load_how { LOAD_WHOLE, LOAD_UNCHECKED, LOAD_ANY, LOAD_HEADER } load_how;

static cv_status load_once(cv_store *store, load_how how, cv_snapshot **out, cv_error *err)
{
    cv_snapshot *snapshot = cv_snapshot_new();
    if (!snapshot) return cv_fail_memory(err, sizeof *snapshot, "a snapshot");
    snapshot->unchecked = how == LOAD_UNCHECKED;
    snapshot->any_kind = how == LOAD_ANY;
    cv_status status = load(snapshot, store, how == LOAD_HEADER, err);
    if (status != CV_OK) {
        cv_snapshot_release(snapshot);
        return status;
    }
    if (how != LOAD_HEADER) cv_snapshot_note_reader(snapshot, store);
    *out = snapshot;
    return CV_OK;
}

/* A writer whose thread had to stop in the midst of a header's bytes leaves two reads in a
 * row the same mixture: seen once in 1,500 runs of six threads each on two processors. It
 * goes on after the others' turns of some milliseconds. Damage that stays is told after
 * 2^TRIES ms, and at once where nobody writes. */
static cv_status load_new(cv_store *store, load_how how, cv_snapshot **out, cv_error *err)
{
    enum { TRIES = 8, FIRST_WAIT_NS = 1000000 };
    cv_error why = {0};
    cv_status status = load_once(store, how, out, &why);
    bool is_over = !cv_store_may_have_writer(store);
    for (int i = 0; i < TRIES && status == CATERVA_ECORRUPT && !is_over; i++) {
        is_over = !cv_store_has_writer(store); /* then what is there now is whole */
        if (!is_over) cv_os_sleep_ns((uint64_t)FIRST_WAIT_NS << i);
        cv_store_read_anew(store);
        status = load_once(store, how, out, &why);
    }
    if (status != CV_OK && err) *err = why;
    return status;
}

typedef struct loading {
    cv_store *store;
    load_how how;
    cv_snapshot *out;
} loading;

static cv_status load_again(void *context, cv_error *err)
{
    loading *l = context;
    return load_new(l->store, l->how, &l->out, err);
}

static cv_status load_doubting(cv_store *store, load_how how, cv_snapshot **out,
                               cv_error *err)
{
    loading l = {.store = store, .how = how};
    const cv_doubted twice = {
        .store = store, .read = load_again, .context = &l, .begins = true};
    CV_TRY(cv_store_doubting(&twice, err));
    *out = l.out;
    return CV_OK;
}

cv_status cv_snapshot_load(cv_store *store, bool unchecked, cv_snapshot **out, cv_error *err)
{
    return load_doubting(store, unchecked ? LOAD_UNCHECKED : LOAD_WHOLE, out, err);
}

cv_status cv_snapshot_load_any(cv_store *store, cv_snapshot **out, cv_error *err)
{
    return load_doubting(store, LOAD_ANY, out, err);
}

cv_status cv_snapshot_load_kind(cv_store *store, char name[CV_KIND_NAME], cv_error *err)
{
    uint64_t stored;
    bool readable;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    cv_snapshot *s = cv_snapshot_new();
    if (!s) return cv_fail_memory(err, sizeof *s, "a snapshot");
    cv_status status = read_header(s, store, stored, err);
    if (status == CV_OK)
        status = cv_frame_header_parse(s->header_bytes.data, s->header_bytes.size, &s->header,
                                       err);
    if (status == CV_OK) cv_kind_name(&s->header, name, &readable);
    cv_snapshot_release(s);
    return status;
}

/* ---- Parts of a state, for repair ---------------------------------------- */

/* What repair knows of sizes and places holds for arrays only. */
static cv_status check_is_array(cv_snapshot *snapshot, cv_error *err)
{
    if (!snapshot->meta.plain) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "a Blosc2 frame without the b2nd or caterva metalayer can be read, but "
                   "not repaired");
}

cv_status cv_snapshot_load_header(cv_store *store, cv_snapshot **out, cv_error *err)
{
    cv_snapshot *snapshot = NULL;
    CV_TRY(load_new(store, LOAD_HEADER, &snapshot, err));
    cv_status status = check_is_array(snapshot, err);
    if (status == CV_OK)
        *out = snapshot;
    else
        cv_snapshot_release(snapshot);
    return status;
}

cv_status cv_snapshot_from_header(const uint8_t *header, size_t size, cv_snapshot **out,
                                  cv_error *err)
{
    cv_snapshot *snapshot = cv_snapshot_new();
    if (!snapshot) return cv_fail_memory(err, sizeof *snapshot, "a snapshot");
    cv_status status = cv_buffer_append(&snapshot->header_bytes, header, size, err);
    if (status == CV_OK) status = cv_snapshot_parse(snapshot, err);
    if (status == CV_OK) status = check_is_array(snapshot, err);
    if (status != CV_OK) {
        cv_snapshot_release(snapshot);
        return status;
    }
    *out = snapshot;
    return CV_OK;
}

cv_status cv_snapshot_load_tail(cv_snapshot *snapshot, cv_store *store, cv_error *err)
{
    uint64_t stored;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    return load_tail(snapshot, store, stored, err);
}

/* Its own header says how long the index is. */
cv_status cv_snapshot_find_index(cv_snapshot *s, cv_store *store, cv_error *err)
{
    uint64_t stored, pos = s->header.header_size;
    CV_TRY(check_kind(s, store, err));
    if (s->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (!s->header.sparse) pos += (uint64_t)s->header.cbytes; /* of 31 and 63 bits */
    if (pos >= stored || stored - pos < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)stored,
                       "the file ends at byte %llu, its index should begin at byte %llu",
                       (unsigned long long)stored, (unsigned long long)pos);
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, err));
    cv_chunk_expect expect = {
        .chunk = -1,
        .pos = (int64_t)pos,
        .nbytes = s->grid.n_chunks * (int64_t)sizeof(int64_t),
        .item_size = sizeof(int64_t),
        .max_cbytes = cv_min_i64((int64_t)(stored - pos), INT32_MAX),
    };
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(bytes, &expect, &header, err));
    s->index_pos = pos;
    s->index_size = (uint64_t)header.cbytes;
    return CV_OK;
}
