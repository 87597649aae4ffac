/* Room: frame/repair. The search for a state, see rescue.h. A copy has a checksum, a
 * header has none: what decides between them is said at is_torn and is_older. */
#include "frame/repair/rescue.h"

#include "base/arith.h"
#include "base/heap.h"
#include "frame/lookup.h"
#include "frame/repair/copies.h"
#include "frame/repair/refind.h"
#include "frame/sealed.h"
#include "frame/snapshot.h"
#include "frame/txn.h"

#include <string.h>

typedef struct search {
    cv_store *store;
    cv_snapshot *standing; /* the header at the frame's beginning, or NULL */
    cv_copies copies;
    bool has_last;  /* nothing tells of a commit later than the newest copy's */
    bool condemned; /* the seal says that the standing header is not the one it was */
} search;

/* ---- Copies ------------------------------------------------------------- */

static cv_status find_copies(search *s, cv_error *err)
{
    CV_TRY(cv_copies_find(s->store, &s->copies, err));
    s->has_last = s->copies.n > 0 && cv_copies_have_last(&s->copies, s->store);
    return CV_OK;
}

/* What the copy `i` is: that of the last commit, or of an older one. */
static caterva_found found_by(const search *s, int i)
{
    return i == 0 && s->has_last ? CATERVA_FOUND_COPY : CATERVA_FOUND_OLDER;
}

static bool is_ours(const cv_snapshot *state)
{
    return state->header.encode_threads == 0 && state->header.decode_threads == 0;
}

/* A header with our mark has its copy in its place. The copy of another one there
 * means that a write of the header stopped half-way, and so does a header that
 * has only its frame's size or its chunks' of the newest commit. Whether the
 * state's copy itself is damaged cannot be seen; then no other fits. */
static bool is_torn(const search *s, const cv_snapshot *state)
{
    const cv_frame_header *h = &state->header;
    if (!is_ours(state)) return false;
    for (int i = 0; i < s->copies.n; i++) {
        const cv_found_copy *c = &s->copies.items[i];
        bool is_it = c->header.size == state->header_bytes.size &&
                     memcmp(c->header.data, state->header_bytes.data, c->header.size) == 0;
        if (is_it) return false;
    }
    for (int i = 0; i < s->copies.n; i++) {
        const cv_found_copy *c = &s->copies.items[i];
        if (c->cbytes == h->cbytes || (i == 0 && c->frame_size == h->frame_size)) return true;
    }
    return false;
}

/* Nothing that a commit changed of the header is that of a copy, or the file tells of a
 * later commit: the header is newer than all of them, and its own copy lost. */
static bool is_older(const search *s)
{
    if (!s->standing) return false;
    if (s->copies.n > 0 && !s->has_last) return true;
    const cv_frame_header *h = &s->standing->header;
    for (int i = 0; i < s->copies.n; i++)
        if (s->copies.items[i].cbytes == h->cbytes ||
            s->copies.items[i].frame_size == h->frame_size)
            return false;
    return true;
}

/* ---- States ------------------------------------------------------------- */

/* What is asked of a state. Without its index the seal still names its chunks. */
typedef enum asked { ALL_OF_IT, NO_INDEX, NO_TRAILER, NO_SEAL } asked;

/* The trailer, or the place of the index without it. */
static cv_status load_end(const search *s, cv_snapshot *state, asked what, cv_error *err)
{
    if (what < NO_TRAILER) return cv_snapshot_load_tail(state, s->store, err);
    CV_TRY(cv_snapshot_find_index(state, s->store, err));
    return what == NO_TRAILER ? cv_sealed_find(state, s->store, err) : CV_OK;
}

/* That, and the decoded index. */
static cv_status complete(const search *s, cv_snapshot *state, asked what, cv_error *err)
{
    CV_TRY(load_end(s, state, what, err));
    const cv_index *index;
    if (state->grid.n_chunks == 0) return CV_OK;
    state->refound = what == NO_INDEX;
    if (what == NO_INDEX) return cv_refind_chunks(state, s->store, err);
    CV_TRY(cv_snapshot_index(state, s->store, &index, err));
    return what == NO_SEAL && is_ours(state) ? cv_refind_names(state, s->store, err) : CV_OK;
}

/* The state of these header bytes; a failed attempt leaves nothing behind. */
static cv_status try_header(const search *s, const cv_buffer *header, asked what,
                            cv_snapshot **out, cv_error *err)
{
    cv_snapshot *state;
    CV_TRY(cv_snapshot_from_header(header->data, header->size, &state, err));
    cv_status status = complete(s, state, what, err);
    if (status == CV_OK)
        *out = state;
    else
        cv_snapshot_release(state);
    return status;
}

static void take(cv_rescue *out, cv_snapshot *state, caterva_found found, asked what)
{
    out->state = state;
    out->found = found;
    out->trailer_lost = what >= NO_TRAILER;
    out->refound = what == NO_INDEX;
    out->unvouched = what == NO_SEAL && is_ours(state) && state->grid.n_chunks > 0;
    out->n_known = state->grid.n_chunks;
}

/* Whether a failure says nothing about the bytes: they could not be read, or there was no
 * memory for them. The search ends with it. */
static bool is_no_answer(cv_status status)
{
    return status == CATERVA_ENOMEM || status == CATERVA_EIO || status == CATERVA_ESTOPPED;
}

/* The most that these header bytes give, of what is asked from `first` to `last`. */
static cv_status try_all(const search *s, const cv_buffer *header, caterva_found found,
                         asked first, asked last, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state;
    cv_status status = CATERVA_ECORRUPT;
    for (int what = (int)first; what <= (int)last; what++) {
        status = try_header(s, header, (asked)what, &state, err);
        if (status == CV_OK) take(out, state, found, (asked)what);
        if (status == CV_OK || is_no_answer(status)) break;
    }
    return status;
}
/* The headers in the order of rescue.h. */
static cv_status try_states(const search *s, asked first, asked last, cv_rescue *out,
                            cv_error *err)
{
    bool older = is_older(s); /* the copies are, than the header */
    cv_status status = CATERVA_ECORRUPT;
    int n = s->copies.n + 1, standing = older || s->copies.n == 0 ? 0 : 1;
    for (int i = 0; i < n && status != CV_OK && !is_no_answer(status); i++) {
        int copy = i < standing ? i : i - 1;
        if (i != standing)
            status = try_all(s, &s->copies.items[copy].header,
                             older ? CATERVA_FOUND_OLDER : found_by(s, copy), first, last,
                             out, err);
        else if (s->standing && !s->condemned)
            status = try_all(s, &s->standing->header_bytes, CATERVA_FOUND_STANDING, first,
                             last, out, err);
    }
    return status;
}

/* What the seal vouches for, of any age; else what nothing vouches for. */
static cv_status try_all_states(const search *s, cv_rescue *out, cv_error *err)
{
    cv_status status = try_states(s, ALL_OF_IT, NO_TRAILER, out, err);
    if (status == CV_OK || is_no_answer(status)) return status;
    return try_states(s, NO_SEAL, NO_SEAL, out, err);
}

/* ---- Without an index ------------------------------------------------------ */

/* Of zeros. No memory is spent on chunks that the file has no room for: who calls
 * has looked. */
static cv_status own_index(cv_snapshot *state, cv_error *err)
{
    const cv_index zeros = {.n = state->grid.n_chunks,
                            .same = cv_offset_of_kind(CV_REF_ZEROS)};
    return cv_index_share(&zeros, &state->index, err);
}

/* Who writes an array from its first item to its last puts chunk behind chunk;
 * the first place where none follows ends what is known. */
static cv_status number_chunks(cv_store *store, cv_snapshot *state, int64_t *n_known,
                               cv_error *err)
{
    const cv_grid *g = &state->grid;
    uint64_t stored, at = state->header.header_size, end;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &stored, err));
    if (!cv_add_u64(at, (uint64_t)state->header.cbytes, &end) || end > stored) end = stored;
    *n_known = 0;
    if ((uint64_t)g->n_chunks > stored * 2) return CV_OK;
    CV_TRY(own_index(state, err));
    while (*n_known < g->n_chunks && at + CV_CHUNK_HEADER_SIZE <= end) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        cv_chunk_header header;
        cv_chunk_expect expect = {.chunk = *n_known,
                                  .pos = (int64_t)at,
                                  .nbytes = g->chunk_bytes,
                                  .block_size = g->block_bytes,
                                  .item_size = g->item_size,
                                  .max_cbytes = cv_min_i64((int64_t)(end - at), INT32_MAX)};
        CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, at, bytes, sizeof bytes, err));
        if (cv_chunk_header_parse(bytes, &expect, &header, NULL) != CV_OK) break;
        int64_t offset = (int64_t)(at - state->header.header_size);
        cv_found_table table; /* goes with its chunk */
        CV_TRY(cv_index_set(&state->index, (*n_known)++, offset, err));
        at += (uint64_t)header.cbytes;
        cv_range behind = {CV_FRAME_OBJECT, at, end};
        CV_TRY(cv_refind_table(store, g, &header, behind, &table, err));
        at += table.size;
    }
    return CV_OK;
}

/* A directory that was written from the first chunk to the last has their numbers
 * for names. */
static cv_status number_files(cv_store *store, cv_snapshot *state, int64_t *n_known,
                              cv_error *err)
{
    cv_object *files;
    size_t n_files;
    CV_TRY(cv_store_list(store, &files, &n_files, err));
    int64_t last = -1;
    for (size_t i = 0; i < n_files; i++) last = cv_max_i64(last, files[i]);
    cv_free(files);
    *n_known = 0;
    if (last + 1 != state->grid.n_chunks || n_files < (size_t)last / 64) return CV_OK;
    CV_TRY(own_index(state, err));
    for (; *n_known <= last; ++*n_known)
        CV_TRY(cv_index_set(&state->index, *n_known, *n_known, err));
    return CV_OK;
}

/* Special chunks are nowhere: how many are missing between two others is unknown,
 * which makes the numbers a guess. */
static cv_status guess_order(search *s, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state = s->standing;
    int64_t n_known = 0;
    if (state->header.sparse != s->store->has_chunk_objects)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "the header does not fit the file");
    CV_TRY(state->header.sparse ? number_files(s->store, state, &n_known, err)
                                : number_chunks(s->store, state, &n_known, err));
    if (n_known == 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "no chunk stands where the first one should");
    atomic_store(&state->index_ready, true);
    cv_snapshot_retain(state);
    take(out, state, CATERVA_FOUND_ORDER, NO_SEAL);
    out->n_known = n_known;
    return CV_OK;
}

/* ---- The search --------------------------------------------------------- */

/* Everything that a reader who opens the frame would ask for. */
static cv_status try_standing(search *s, cv_rescue *out)
{
    cv_snapshot *state;
    CV_TRY(cv_snapshot_load_header(s->store, &s->standing, &out->reason));
    CV_TRY(try_header(s, &s->standing->header_bytes, ALL_OF_IT, &state, &out->reason));
    take(out, state, CATERVA_FOUND_STANDING, ALL_OF_IT);
    return CV_OK;
}

static bool has_own_copy(const cv_snapshot *state, cv_store *store)
{
    cv_buffer bytes = {0};
    cv_header_copy copy;
    bool found = false;
    (void)cv_tail_read_copy(state, store, &bytes, &copy, &found, NULL);
    cv_buffer_free(&bytes);
    return found;
}

/* The state loads; but it may be a mix of two. */
static cv_status doubt_standing(search *s, cv_rescue *out, cv_error *err)
{
    cv_snapshot *state = out->state;
    cv_rescue other = {0};
    if (cv_tail_copy_size(state) == 0 || has_own_copy(state, s->store)) return CV_OK;
    CV_TRY(find_copies(s, err));
    if (!is_torn(s, state)) return CV_OK;
    for (int i = 0; i < s->copies.n; i++) {
        cv_status status = try_all(s, &s->copies.items[i].header, found_by(s, i), ALL_OF_IT,
                                   NO_SEAL, &other, err);
        if (is_no_answer(status)) return status;
        if (status != CV_OK) continue;
        *out = other;
        cv_snapshot_release(state);
        (void)cv_fail(&out->reason, CATERVA_ECORRUPT, 0,
                      "the header is a mix of two, as a write that stopped half-way leaves");
        break;
    }
    return CV_OK;
}

/* Whether a guess, which was not asked for, would make a state. */
static bool would_guess(search *s)
{
    cv_rescue out = {0};
    if (!s->standing || guess_order(s, &out, NULL) != CV_OK) return false;
    cv_snapshot_release(out.state);
    return true;
}

static cv_status find(search *s, bool guess, cv_rescue *out, cv_error *err)
{
    cv_status status = try_standing(s, out);
    if (status == CV_OK) {
        status = doubt_standing(s, out, err);
        if (status == CV_OK) return CV_OK;
        cv_snapshot_release(out->state);
        out->state = NULL; /* the caller's no more */
        return status;
    }
    if (is_no_answer(status)) {
        *err = out->reason;
        return status;
    }
    /* Of a header that can be read only its checksum is wrong at byte 0. */
    s->condemned = s->standing && out->reason.position == 0;
    status = find_copies(s, err);
    if (status == CV_OK) status = try_all_states(s, out, err);
    if (status != CV_OK && !is_no_answer(status) && guess && s->standing)
        status = guess_order(s, out, err);
    if (status == CV_OK || is_no_answer(status)) return status;
    /* Not why the last attempt failed. */
    (void)cv_fail(err, out->reason.code, out->reason.position,
                  "%.150s; no other state was found%s", out->reason.message,
                  !guess && would_guess(s) ? ", but a guess at the chunks' order makes one"
                                           : "");
    err->sys_errno = out->reason.sys_errno;
    return out->reason.code;
}

cv_status cv_rescue_find(cv_store *store, bool guess, cv_rescue *out, cv_error *err)
{
    search s = {.store = store};
    cv_error error = {0};
    *out = (cv_rescue){.reason.position = -1};
    cv_status status = find(&s, guess, out, &error);
    if (status != CV_OK && err) *err = error;
    cv_snapshot_release(s.standing);
    cv_copies_free(&s.copies);
    return status;
}

/* A directory's frame is not written in its place: all of it anew, the header changed. */
static cv_status replace_header(cv_store *store, const cv_buffer *header, bool durable,
                                cv_error *err)
{
    cv_buffer frame = {0};
    uint64_t size;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &size, err));
    if (size < header->size) /* found there, it has been longer a moment ago */
        return cv_fail(err, CATERVA_EIO, (int64_t)size, "the frame was cut meanwhile");
    cv_status status = cv_buffer_resize(&frame, (size_t)size, err);
    if (status == CV_OK)
        status = cv_store_read(store, CV_FRAME_OBJECT, 0, frame.data, frame.size, err);
    if (status == CV_OK) {
        memcpy(frame.data, header->data, header->size);
        status = cv_store_replace(store, frame.data, frame.size, durable, err);
    }
    cv_buffer_free(&frame);
    return status;
}

cv_status cv_rescue_write_header(cv_store *store, const cv_snapshot *state, bool durable,
                                 cv_error *err)
{
    const cv_buffer *header = &state->header_bytes;
    CV_TRY(cv_store_check_name(store, err));
    if (store->has_chunk_objects)
        CV_TRY(replace_header(store, header, durable, err));
    else
        CV_TRY(cv_store_write(store, CV_FRAME_OBJECT, 0, header->data, header->size, err));
    if (durable) CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    return cv_store_check_name(store, err);
}

/* A state without chunks has no number: any will do, it is the only copy. */
static cv_status make_copy(const cv_snapshot *state, uint64_t size, cv_buffer *out,
                           cv_error *err)
{
    const cv_buffer *header = &state->header_bytes;
    size_t at = out->size;
    CV_TRY(cv_buffer_resize(out, at + (size_t)size, err));
    cv_header_copy_write(state->footer.commit ? state->footer.commit : 1, header->data,
                         (uint32_t)header->size, out->data + at);
    return CV_OK;
}

cv_status cv_rescue_write_copy(cv_store *store, const cv_snapshot *state, bool durable,
                               cv_error *err)
{
    uint64_t pos, size;
    cv_buffer bytes = {0};
    CV_TRY(cv_store_check_name(store, err));
    CV_TRY(cv_tail_own_copy(state, store, &pos, &size, err));
    cv_status status = CV_OK;
    if (store->has_chunk_objects) { /* its frame is replaced whole */
        status = cv_buffer_resize(&bytes, (size_t)pos, err);
        if (status == CV_OK)
            status = cv_store_read(store, CV_FRAME_OBJECT, 0, bytes.data, bytes.size, err);
    }
    if (status == CV_OK) status = make_copy(state, size, &bytes, err);
    if (status == CV_OK && store->has_chunk_objects)
        status = cv_store_replace(store, bytes.data, bytes.size, durable, err);
    else if (status == CV_OK)
        status = cv_store_write(store, CV_FRAME_OBJECT, pos, bytes.data, bytes.size, err);
    cv_buffer_free(&bytes);
    if (status == CV_OK && durable) status = cv_store_sync(store, CV_FRAME_OBJECT, err);
    return status == CV_OK ? cv_store_check_name(store, err) : status;
}
