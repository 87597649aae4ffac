/* Room: frame. Begins and ends transactions, and says what their state is. What happens
 * between is in put.c and reshape.c, committing in commit.c. */
#include "frame/txn.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "frame/index.h"
#include "frame/layout.h"
#include "frame/lookup.h"

#include <stdlib.h>
#include <string.h>

/* ---- Txn state ----
 *
 * What every part of a transaction that changes the index asks of it. */

cv_status cv_txn_index(cv_txn *txn, const cv_index **out, cv_error *err)
{
    *out = &txn->index;
    if (txn->has_index) return CV_OK;
    return cv_snapshot_index(txn->base, txn->frame->store, out, err);
}

cv_status cv_txn_own_index(cv_txn *txn, cv_error *err)
{
    if (txn->has_index) return CV_OK;
    const cv_index *index;
    CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &index, err));
    CV_TRY(cv_index_share(index, &txn->index, err));
    txn->has_index = true;
    return CV_OK;
}

/* ---- Second trailer ----
 *
 * The second trailer of frames without chunks, see second_trailer.h. It is
 * written for C-Blosc2 alone; nothing here reads it. */

/* True when C-Blosc2 looks for the trailer in front. */
static bool cv_second_trailer_is_needed(const cv_snapshot *state)
{
    return !state->header.sparse && state->grid.n_chunks == 0;
}

bool cv_second_trailer_is_apart(const cv_snapshot *state)
{
    return cv_second_trailer_is_needed(state) &&
           state->header.frame_size != state->header.header_size + state->trailer_bytes.size;
}

uint64_t cv_second_trailer_keep_off(const cv_txn *txn, uint64_t pos, uint64_t size)
{
    uint64_t front = txn->state->header.header_size;
    bool is_front = pos == front && !txn->frame->store->published;
    if (!cv_second_trailer_is_needed(txn->state) || is_front || pos >= front + size)
        return pos;
    return front + size;
}

/* What the old header needs lies there: the new one must be on the disk first. */
static cv_status settle_header(const cv_txn *txn)
{
    cv_frame *frame = txn->frame;
    if (!frame->store->published || frame->durability != CATERVA_DURABILITY_ORDERED)
        return CV_OK;
    return cv_store_sync(frame->store, CV_FRAME_OBJECT, NULL);
}

void cv_second_trailer_write(cv_txn *txn, const cv_snapshot *state)
{
    cv_store *store = txn->frame->store;
    const cv_buffer *trailer = &state->trailer_bytes;
    uint64_t front = state->header.header_size;
    txn->owes_second = cv_second_trailer_is_apart(state);
    if (!txn->owes_second || txn->frame->poisoned) return;
    bool is_read = store->published && cv_snapshot_has_older_readers(state, store);
    if (is_read || settle_header(txn) != CV_OK) return;
    if (cv_store_write(store, CV_FRAME_OBJECT, front, trailer->data, trailer->size, NULL) !=
        CV_OK)
        return;
    txn->owes_second = false;
    if (store->published && txn->frame->durability == CATERVA_DURABILITY_FULL)
        (void)cv_store_sync(store, CV_FRAME_OBJECT, NULL);
}

void cv_second_trailer_account(cv_txn *txn, const cv_snapshot *next)
{
    if (cv_second_trailer_is_needed(next))
        cv_space_occupy(&txn->space, next->header.header_size, next->trailer_bytes.size);
}

/* ---- Files ----
 *
 * Chunk files that no committed state names any more. Removing
 * them is never a must: it happens when it harms nobody, after the state that
 * does without them is durable, and what fails is left to the next writer. */

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

/* Sorts `files` and keeps those that `named`, which ascends, does not have. Returns how many. */
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

/* Those that were put are listed, too: a chunk may lie beyond a shape that has shrunk since. */
static cv_status add_put(const cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err)
{
    size_t item = sizeof **files, n = *n_files + txn->n_new_files;
    if (txn->n_new_files == 0) return CV_OK;
    int64_t *grown = cv_realloc(*files, *n_files * item, n * item);
    if (!grown) return cv_fail_memory(err, n * item, "a list of chunk files");
    memcpy(grown + *n_files, txn->new_files, txn->n_new_files * item);
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

/* ---- Files that were replaced -------------------------------------------- */

void cv_files_replaced(cv_txn *txn, const int64_t *files, size_t n_files)
{
    size_t n = txn->n_old_files + n_files;
    if (n_files == 0) return;
    cv_object *grown =
        cv_realloc(txn->old_files, txn->n_old_files * sizeof grown[0], n * sizeof grown[0]);
    if (!grown) return; /* the next writer finds them */
    memcpy(grown + txn->n_old_files, files, n_files * sizeof files[0]);
    txn->old_files = grown;
    txn->n_old_files = n;
}

void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state)
{
    cv_store *store = txn->frame->store;
    if (txn->n_old_files == 0 || txn->frame->poisoned) return;
    if (cv_snapshot_has_older_readers(state, store)) return;
    for (size_t i = 0; i < txn->n_old_files; i++)
        cv_store_remove(store, txn->old_files[i], NULL);
    txn->n_old_files = 0;
}

/* ---- Files that were left ------------------------------------------------- */

/* What stands in the frame's place must be what a power cut leaves there,
 * before anything that an older one names goes. *n: those that stay. */
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

/* A number given twice could show one chunk's bytes to a reader who looks for
 * another's: new ones begin above all files that are there. */
static void choose_next(cv_txn *txn, const int64_t *ascending, size_t n)
{
    if (n > 0 && ascending[n - 1] < INT64_MAX)
        txn->next_file = cv_max_i64(txn->next_file, ascending[n - 1] + 1);
}

/* When a writer opens: removes the files that the committed index does not
 * name, unless somebody reads an older state, and finds the first number above all files that
 * are there. */
static cv_status cv_files_begin(cv_txn *txn, cv_error *err)
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

/* ---- Holes ----
 *
 * Decides which dead bytes may be used again now. */

/* What makes one more sync worth it: a share of the frame, or room for several. */
enum { WORTH_PART = 8, WORTH_TIMES = 16 };

/* ---- Beginning ------------------------------------------------------------ */

/* An array that was appended to this file (caterva_frame_append) is no garbage. */
static cv_status find_follower(cv_txn *txn, uint64_t pos, uint64_t size, cv_error *err)
{
    const cv_buffer *header = &txn->frame->current->header_bytes;
    uint8_t bytes[CV_FRAME_MAGIC_SIZE];
    if (size < sizeof bytes) return CV_OK;
    CV_TRY(cv_store_read(txn->frame->store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, err));
    txn->has_follower = memcmp(bytes, header->data, sizeof bytes) == 0;
    return CV_OK;
}

/* When the transaction begins: behind the frame are bytes up to `stored`. */
static cv_status cv_holes_begin(cv_txn *txn, uint64_t stored, cv_error *err)
{
    uint64_t end = txn->frame->current->header.frame_size;
    txn->unsettled = txn->frame->durability != CATERVA_DURABILITY_NONE;
    txn->unsurveyed = true;
    txn->found_end = end;
    if (stored <= end) return CV_OK;
    CV_TRY(find_follower(txn, end, stored - end, err));
    if (!txn->has_follower)
        cv_extents_add(&txn->space.aging, (cv_extent){end, txn->base_end - end}, true);
    return CV_OK;
}

bool cv_txn_may_reuse(cv_txn *txn)
{
    if (!txn->may_reuse)
        txn->may_reuse = !cv_snapshot_has_older_readers(txn->base, txn->frame->store);
    return txn->may_reuse;
}

/* ---- After a sync --------------------------------------------------------- */

/* The committed header is on the disk then, and no older one. A sync that fails may
 * have lost what was put. */
static cv_status settle(cv_txn *txn, cv_error *err)
{
    cv_frame *frame = txn->frame;
    if (txn->unsettled) {
        cv_status status = cv_store_sync(frame->store, CV_FRAME_OBJECT, err);
        if (status != CV_OK) frame->poisoned = true;
        CV_TRY(status);
    }
    txn->unsettled = false;
    cv_space_settled(&txn->space);
    return CV_OK;
}

/* What lies behind the frame when nothing was put yet is nobody's. */
static cv_status cut_left_behind(cv_txn *txn, cv_error *err)
{
    uint64_t end = txn->base->header.frame_size;
    bool is_left = txn->base_end > end && txn->base_chunks_end <= end &&
                   txn->end == txn->base_end && !txn->has_follower;
    if (!is_left || txn->frame->store->in_memory || !cv_txn_may_reuse(txn)) return CV_OK;
    CV_TRY(settle(txn, err));
    if (cv_store_truncate(txn->frame->store, CV_FRAME_OBJECT, end, NULL) != CV_OK)
        return CV_OK;
    cv_space_occupy(&txn->space, end, txn->base_end - end);
    txn->base_end = txn->end = end;
    return CV_OK;
}

/* ---- Finding -------------------------------------------------------------- */

static cv_extents *found_in(cv_txn *txn)
{
    return txn->unsettled ? &txn->space.aging : &txn->space.free;
}

static cv_status look_around(cv_txn *txn, cv_error *err)
{
    cv_frame *frame = txn->frame;
    if (!txn->unsurveyed) return CV_OK;
    CV_TRY(cut_left_behind(txn, err));
    txn->unsurveyed = false; /* once: what is put from now on is no finding */
    CV_TRY(cv_survey_make(&txn->survey, frame, txn->base, txn->base_tail_pos, found_in(txn),
                          err));
    if (cv_second_trailer_is_needed(txn->base)) {
        uint64_t front = txn->base->header.header_size, size = txn->base->trailer_bytes.size;
        cv_space_occupy(&txn->space, front, size);
        cv_extents_cut(&txn->space.aging, front, size);
    }
    return CV_OK;
}

static bool is_worth_a_sync(const cv_txn *txn, uint64_t size)
{
    uint64_t total = cv_extents_total(&txn->space.aging);
    if (!txn->unsettled || !cv_extents_fit(&txn->space.aging, size)) return false;
    return total >= txn->base->header.frame_size / WORTH_PART || total / WORTH_TIMES >= size;
}

cv_status cv_holes_take(cv_txn *txn, uint64_t size, cv_extent *out, bool *found,
                        cv_error *err)
{
    CV_TRY(look_around(txn, err));
    *found = cv_txn_may_reuse(txn) && cv_space_take(&txn->space, size, out);
    if (*found || !txn->may_reuse) return CV_OK;
    if (!is_worth_a_sync(txn, size)) {
        uint64_t enough = txn->unsettled ? txn->base->header.frame_size / WORTH_PART : size;
        CV_TRY(cv_survey_find(&txn->survey, txn->frame, size, enough, found_in(txn), err));
    }
    if (is_worth_a_sync(txn, size)) CV_TRY(settle(txn, err));
    *found = cv_space_take(&txn->space, size, out);
    return CV_OK;
}

void cv_holes_replaced(cv_txn *txn, uint64_t pos)
{
    cv_extent chunk;
    if (txn->unsurveyed) (void)look_around(txn, NULL);
    if (cv_space_replaced(&txn->space, pos)) return;
    if (cv_survey_replaced(&txn->survey, pos, &chunk)) cv_space_died(&txn->space, chunk);
}

/* ---- The tail ------------------------------------------------------------- */

cv_status cv_holes_before_tail(cv_txn *txn, uint64_t size, cv_error *err)
{
    uint64_t end, found;
    bool known = cv_space_ours_end(&txn->space, &end);
    if (!txn->frame->store->published) return CV_OK;
    CV_TRY(look_around(txn, err));
    if (!known || !txn->survey.whole || !cv_txn_may_reuse(txn)) return CV_OK;
    CV_TRY(cv_survey_end(&txn->survey, txn->frame, found_in(txn), &found, err));
    if (end < found) end = found;
    if (end < txn->base->header.header_size) end = txn->base->header.header_size;
    if (end < txn->chunks_end) txn->chunks_end = end;
    if (!txn->unsettled || end >= txn->base_tail_pos) return CV_OK;
    uint64_t gain = txn->base_tail_pos - end;
    bool is_worth = gain >= size && gain >= txn->base->header.frame_size / WORTH_PART;
    return is_worth ? settle(txn, err) : CV_OK;
}

/* ---- Counting ------------------------------------------------------------- */

bool cv_holes_dead(cv_txn *txn, uint64_t *dead)
{
    cv_space *space = &txn->space;
    uint64_t end = txn->base->header.frame_size;
    if (txn->unsurveyed || !txn->survey.whole) return false;
    if (cv_survey_rest(&txn->survey, txn->frame, found_in(txn), NULL) != CV_OK) return false;
    *dead = cv_extents_below(&space->free, end) + cv_extents_below(&space->aging, end) +
            cv_extents_below(&space->dead, end);
    return true;
}

/* ---- Giving back ---------------------------------------------------------- */

/* Cuts the file back to what committed states may need. Best effort. */
static void cv_holes_cut_back(cv_txn *txn)
{
    cv_store *store = txn->frame->store;
    uint64_t stored;
    if (txn->base->header.sparse || store->in_memory || !store->published) return;
    if (txn->frame->poisoned || !txn->changed) return; /* poisoned: the disk may use it */
    if (cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) != CV_OK) return;
    if (stored > txn->base_end)
        (void)cv_store_truncate(store, CV_FRAME_OBJECT, txn->base_end, NULL);
}

/* ---- Tail ----
 *
 * Builds the tails that commits write; finds the header copy of one
 * when a writer opens. What copy and seal look like is format's matter. */

uint64_t cv_tail_copy_size(const cv_snapshot *state)
{
    if (state->header.sparse || state->grid.n_chunks == 0) return 0;
    return cv_header_copy_size(state->header.header_size);
}

cv_status cv_tail_read_copy(const cv_snapshot *state, cv_store *store, cv_buffer *bytes,
                            cv_header_copy *copy, bool *found, cv_error *err)
{
    uint64_t size = cv_tail_copy_size(state);
    *found = false;
    if (size == 0 || (uint64_t)state->header.cbytes < size) return CV_OK;
    uint64_t pos = state->index_pos - size;
    CV_TRY(cv_buffer_resize(bytes, (size_t)size, err));
    CV_TRY(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes->data, bytes->size, err));
    *found = cv_header_copy_parse(bytes->data, bytes->size, pos, copy, NULL) == CV_OK &&
             copy->header_size == state->header_bytes.size &&
             memcmp(copy->header, state->header_bytes.data, copy->header_size) == 0;
    return CV_OK;
}

/* *reaches: the frame goes so far. Its size is not asked for: of a directory that turns to the
 * frame of a later commit. */
static cv_status read_if_there(cv_store *store, uint64_t pos, void *to, size_t size,
                               bool *reaches, cv_error *err)
{
    cv_error why;
    cv_status status = cv_store_read(store, CV_FRAME_OBJECT, pos, to, size, &why);
    *reaches = status == CV_OK;
    if (status == CV_OK || status == CATERVA_ECORRUPT) return CV_OK;
    if (err) *err = why;
    return status;
}

cv_status cv_tail_own_copy(const cv_snapshot *state, cv_store *store, uint64_t *pos,
                           uint64_t *size, cv_error *err)
{
    const cv_frame_header *h = &state->header;
    *pos = *size = 0;
    if (state->seal != CV_SEAL_WHOLE) return CV_OK;
    if (h->sparse) { /* behind all; an older version has written none */
        uint8_t first;
        bool is_there;
        CV_TRY(read_if_there(store, h->frame_size, &first, 1, &is_there, err));
        if (is_there) *size = cv_header_copy_size(h->header_size);
        *pos = h->frame_size;
        return CV_OK;
    }
    *size = cv_tail_copy_size(state);
    if ((uint64_t)h->cbytes < *size) *size = 0;
    *pos = state->index_pos - *size;
    return CV_OK;
}

static bool is_copy_of(const cv_snapshot *state, const cv_buffer *bytes, uint64_t pos)
{
    cv_header_copy copy;
    return cv_header_copy_parse(bytes->data, bytes->size, pos, &copy, NULL) == CV_OK &&
           copy.header_size == state->header_bytes.size &&
           memcmp(copy.header, state->header_bytes.data, copy.header_size) == 0;
}

cv_status cv_tail_check_copy(const cv_snapshot *state, cv_store *store, cv_error *err)
{
    uint64_t pos, size;
    cv_buffer bytes = {0};
    CV_TRY(cv_tail_own_copy(state, store, &pos, &size, err));
    if (size == 0) return CV_OK;
    bool is_good = false;
    cv_status status = cv_buffer_resize(&bytes, (size_t)size, err);
    if (status == CV_OK)
        status = read_if_there(store, pos, bytes.data, bytes.size, &is_good, err);
    if (is_good) is_good = is_copy_of(state, &bytes, pos);
    cv_buffer_free(&bytes);
    if (status != CV_OK || is_good) return status;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the copy of the header at byte %llu is damaged", (unsigned long long)pos);
}

/* Looks where the committed tail begins and the chunks end: at the copy, where
 * there is one, else at the index. Sets the transaction's base_tail_pos,
 * base_chunks_end and n_commits. */
static cv_status cv_tail_find(cv_txn *txn, cv_error *err)
{
    const cv_snapshot *base = txn->frame->current;
    const cv_frame_header *h = &base->header;
    cv_buffer bytes = {0};
    cv_header_copy copy;
    bool found;
    cv_status status = cv_tail_read_copy(base, txn->frame->store, &bytes, &copy, &found, err);
    if (status == CV_OK) {
        uint64_t index_pos =
            h->frame_size - base->trailer.size - base->footer.size - base->index_size;
        uint64_t now = cv_os_time_ns();
        txn->base_tail_pos = found ? copy.pos : index_pos;
        txn->base_chunks_end = found ? copy.pos : h->header_size + (uint64_t)h->cbytes;
        txn->n_commits = found && copy.commit > now ? copy.commit : now;
    }
    cv_buffer_free(&bytes);
    return status;
}

/* ---- Building ----------------------------------------------------------- */

/* A frame without chunks has no index, and nothing between header and trailer. */
static cv_status append_index(cv_txn *txn, cv_tail *tail, cv_error *err)
{
    cv_buffer *out = &tail->bytes;
    size_t origin = out->size;
    if (txn->state->grid.n_chunks == 0) return CV_OK;
    CV_TRY(cv_txn_own_index(txn, err));
    if (txn->index.strays && txn->index.strays->n > txn->index.n)
        CV_TRY(cv_index_prune_strays(&txn->index, err));
    CV_TRY(cv_index_encode(&txn->index, &txn->encoder, out, err));
    tail->index_size = out->size - origin;
    tail->footer.commit = txn->n_commits + 1;
    CV_TRY(cv_sealed_append(&txn->index, origin, out, &tail->footer, err));
    tail->root = out->size - CV_SEAL_FOOTER;
    return CV_OK;
}

cv_status cv_tail_build(cv_txn *txn, cv_tail *tail, cv_error *err)
{
    const cv_buffer *trailer = &txn->state->trailer_bytes;
    *tail = (cv_tail){.bytes = tail->bytes, .copy_size = cv_tail_copy_size(txn->state)};
    CV_TRY(cv_buffer_resize(&tail->bytes, (size_t)tail->copy_size, err));
    CV_TRY(append_index(txn, tail, err));
    return cv_buffer_append(&tail->bytes, trailer->data, trailer->size, err);
}

/* A commit that fails has used up its number: its copy may lie about. */
void cv_tail_seal(cv_txn *txn, const cv_buffer *header, cv_tail *tail)
{
    cv_buffer *bytes = &tail->bytes;
    txn->n_commits++;
    if (tail->copy_size > 0)
        cv_header_copy_write(txn->n_commits, header->data, (uint32_t)header->size,
                             bytes->data);
    cv_seal_root_write(bytes->data + tail->root, bytes->size - tail->root, header->data,
                       header->size);
}

/* ---- Txn ---- */

/* Stands the (empty) transaction on the frame's current snapshot. */
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
    txn->adds_layouts = false;
    txn->n_new_files = 0;
    txn->end = txn->base_end;
    txn->chunks_end = txn->base_chunks_end;
    txn->may_reuse = false;
}

/* What is used of a contiguous frame when it is opened. Behind its end may lie
 * what an older header needs, should a power cut bring it back. C-Blosc2 leaves
 * frames that it emptied with the chunk area of before, beyond their end. */
static cv_status find_ends(cv_txn *txn, cv_error *err)
{
    const cv_frame_header *h = &txn->frame->current->header;
    txn->base_chunks_end = h->header_size;
    txn->base_end = h->header_size;
    if (h->sparse || !txn->frame->store->published) return CV_OK;
    uint64_t stored;
    CV_TRY(cv_store_size(txn->frame->store, CV_FRAME_OBJECT, &stored, err));
    CV_TRY(cv_tail_find(txn, err));
    txn->base_end = stored > h->frame_size ? stored : h->frame_size;
    if (txn->base_end < txn->base_chunks_end) txn->base_end = txn->base_chunks_end;
    return cv_holes_begin(txn, stored, err);
}

/* After a failed sync or header write the disk may hold the new state: what
 * seems free space may be its. */
cv_status cv_txn_check(const cv_txn *txn, cv_error *err)
{
    if (!txn->frame->poisoned) return CV_OK;
    return cv_fail(
        err, CATERVA_EIO, -1,
        "a sync or a write of the header failed: what is on disk is unknown, reopen "
        "the array");
}

cv_status cv_txn_begin(cv_frame *frame, cv_txn **out, cv_error *err)
{
    cv_txn *txn = cv_calloc(1, sizeof *txn);
    if (!txn) return cv_fail_memory(err, sizeof *txn, "a transaction");
    txn->frame = frame;
    cv_mutex_init(&txn->lock);
    cv_status status = find_ends(txn, err);
    cv_txn_reset(txn);
    txn->owes_second = cv_second_trailer_is_apart(txn->base);
    txn->adopted = !frame->store->published;
    if (!frame->store->published) txn->survey.whole = true; /* there is nothing to find */
    if (txn->n_commits < txn->base->footer.commit) txn->n_commits = txn->base->footer.commit;
    if (status == CV_OK) status = cv_files_begin(txn, err);
    if (status != CV_OK) {
        cv_txn_free(txn);
        return status;
    }
    *out = txn;
    return CV_OK;
}

/* Chunk files that no committed state refers to. Best effort: readers ignore
 * files that the index does not name. */
static void remove_new_files(cv_txn *txn)
{
    if (txn->frame->poisoned) return; /* the disk may name them */
    for (size_t i = 0; i < txn->n_new_files; i++)
        cv_store_remove(txn->frame->store, txn->new_files[i], NULL);
    txn->n_new_files = 0;
}

void cv_txn_free(cv_txn *txn)
{
    if (!txn) return;
    if (txn->frame->store->published && txn->base) {
        remove_new_files(txn);
        cv_holes_cut_back(txn);
        if (txn->owes_second) cv_second_trailer_write(txn, txn->base);
    }
    cv_space_destroy(&txn->space);
    cv_survey_free(&txn->survey);
    cv_snapshot_release(txn->base);
    cv_snapshot_release(txn->state);
    cv_index_free(&txn->index);
    cv_encoder_free(txn->encoder);
    cv_buffer_free(&txn->tail);
    cv_free(txn->new_files);
    cv_free(txn->old_files);
    cv_mutex_destroy(&txn->lock);
    cv_free(txn);
}

/* ---- The state as it is now ----------------------------------------------- */

bool cv_txn_pending(const cv_txn *txn)
{
    return txn->changed || !txn->frame->store->published;
}

cv_snapshot *cv_txn_snapshot(const cv_txn *txn) { return txn->state; }

/* A chunk put since the commit, behind its chunks. Slack behind it, and chunks
 * that others are about to write, are not stored yet. */
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

/* Called with the lock. */
static cv_status find(cv_txn *txn, int64_t chunk, cv_chunk_ref *out, cv_error *err)
{
    const cv_frame_header *h = &txn->base->header;
    const cv_index *index;
    CV_TRY(cv_txn_index(txn, &index, err));
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

/* ---- Changes that are no chunks ------------------------------------------- */

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

void cv_txn_add_layouts(cv_txn *txn) { txn->adds_layouts = true; }

void cv_txn_rollback(cv_txn *txn)
{
    remove_new_files(txn);
    cv_holes_cut_back(txn);
    cv_layout_cache_clear(txn->frame->layouts);
    cv_txn_reset(txn);
    txn->adopt_next = 0;
    txn->adopted = !txn->frame->store->published;
    cv_space_rolled_back(&txn->space, txn->end);
}
