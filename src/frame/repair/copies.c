/* Room: frame/repair. The search for header copies and seals, and what they say about
 * which commit was the last. What states they make is rescue.c's matter. */
#include "frame/repair/copies.h"

#include "base/arith.h"
#include "format/frame_header.h"

#include <string.h>

/* ---- Collecting --------------------------------------------------------- */

static void drop(cv_found_copy *copy) { cv_buffer_free(&copy->header); }

static cv_status add_copy(cv_copies *c, const cv_header_copy *copy, cv_error *err)
{
    int at = c->n;
    while (at > 0 && c->items[at - 1].commit < copy->commit) at--;
    if (at == CV_MAX_COPIES) return CV_OK;
    cv_frame_header header;
    CV_TRY(cv_frame_header_parse(copy->header, copy->header_size, &header, err));
    cv_found_copy added = {
        .commit = copy->commit, .frame_size = header.frame_size, .cbytes = header.cbytes};
    added.end = copy->pos + copy->size;
    if (added.end < header.frame_size) added.end = header.frame_size;
    CV_TRY(cv_buffer_append(&added.header, copy->header, copy->header_size, err));
    if (c->n == CV_MAX_COPIES) drop(&c->items[--c->n]);
    memmove(c->items + at + 1, c->items + at, (size_t)(c->n - at) * sizeof c->items[0]);
    c->items[at] = added;
    c->n++;
    return CV_OK;
}

static void add_seal(cv_copies *c, const cv_found_seal *seal)
{
    int at = c->n_seals;
    while (at > 0 && c->seals[at - 1].footer.commit < seal->footer.commit) at--;
    if (at == CV_MAX_COPIES) return;
    if (c->n_seals == CV_MAX_COPIES) c->n_seals--;
    memmove(c->seals + at + 1, c->seals + at, (size_t)(c->n_seals - at) * sizeof c->seals[0]);
    c->seals[at] = *seal;
    c->n_seals++;
}

/* Those that begin in the first `fresh` bytes of the window, which stands at `pos`. */
static void find_seals(cv_copies *c, const cv_buffer *window, uint64_t pos, size_t fresh)
{
    cv_found_seal seal;
    for (size_t at = 0; at < fresh && window->size - at >= CV_SEAL_FOOTER; at++) {
        if (!cv_seal_footer_find(window->data, window->size, &at, &seal.footer)) return;
        seal.pos = pos + at;
        if (at < fresh && seal.footer.size <= seal.pos + CV_SEAL_FOOTER) add_seal(c, &seal);
    }
}

static cv_status search_window(cv_copies *c, const cv_buffer *window, uint64_t pos,
                               size_t fresh, cv_error *err)
{
    cv_header_copy copy;
    find_seals(c, window, pos, fresh);
    for (size_t at = fresh;
         cv_header_copy_before(window->data, window->size, pos, &at, &copy);)
        CV_TRY(add_copy(c, &copy, err));
    return CV_OK;
}

/* Back from the end, in windows that overlap by the largest copy. */
cv_status cv_copies_find(cv_store *store, cv_copies *out, cv_error *err)
{
    enum { STEP = 1 << 20 };
    uint64_t overlap = cv_header_copy_size(CV_HEADER_COPY_MAX), end;
    if (cv_store_size(store, CV_FRAME_OBJECT, &end, NULL) != CV_OK) return CV_OK;
    cv_buffer window = {0};
    cv_status status = CV_OK;
    for (uint64_t stored = end; end > 0 && status == CV_OK;) {
        uint64_t start = end > STEP ? end - STEP : 0;
        uint64_t stop = end + overlap < stored ? end + overlap : stored;
        status = cv_buffer_resize(&window, (size_t)(stop - start), err);
        if (status == CV_OK && cv_store_read(store, CV_FRAME_OBJECT, start, window.data,
                                             window.size, NULL) == CV_OK)
            status = search_window(out, &window, start, (size_t)(end - start), err);
        end = start;
    }
    cv_buffer_free(&window);
    return status;
}

void cv_copies_free(cv_copies *copies)
{
    for (int i = 0; i < copies->n; i++) drop(&copies->items[i]);
    *copies = (cv_copies){0};
}

/* ---- Which was the last ------------------------------------------------- */

/* A frame that was appended to the file, at its byte `pos`. */
static bool is_frame_at(cv_store *store, uint64_t pos)
{
    uint8_t bytes[CV_FRAME_HEADER_MIN];
    uint32_t size;
    return cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, sizeof bytes, NULL) == CV_OK &&
           cv_frame_header_peek(bytes, sizeof bytes, &size, NULL) == CV_OK;
}

/* A seal with a higher number than the newest copy, outside an appended frame. */
static bool has_later_seal(const cv_copies *c, cv_store *store)
{
    const cv_found_copy *newest = &c->items[0];
    uint64_t end = is_frame_at(store, newest->end) ? newest->end : UINT64_MAX;
    for (int i = 0; i < c->n_seals && c->seals[i].footer.commit > newest->commit; i++)
        if (c->seals[i].pos < end) return true;
    return false;
}

typedef enum agreement { NEITHER, ONE_SIZE, BOTH_SIZES } agreement;

static agreement agree(const cv_found_copy *copy, uint64_t frame_size, int64_t cbytes)
{
    return (agreement)((copy->frame_size == frame_size) + (copy->cbytes == cbytes));
}

/* What the standing header, whatever is damaged of it, says of its own commit. */
static agreement ask_header(const cv_copies *c, cv_store *store, bool *is_other)
{
    uint8_t bytes[CV_FRAME_HEADER_MIN];
    uint64_t frame_size;
    int64_t cbytes;
    *is_other = false;
    if (cv_store_read(store, CV_FRAME_OBJECT, 0, bytes, sizeof bytes, NULL) != CV_OK)
        return NEITHER;
    if (!cv_frame_header_peek_sizes(bytes, sizeof bytes, &frame_size, &cbytes))
        return NEITHER;
    *is_other = true;
    for (int i = 0; i < c->n; i++) /* of an older one: torn */
        if (agree(&c->items[i], frame_size, cbytes) == BOTH_SIZES) *is_other = false;
    return agree(&c->items[0], frame_size, cbytes);
}

/* Is what ends the file the rest of an older commit's frame, whose copy was overwritten?
 * A commit leaves the tail of the one before it whole, and writes its own in one piece:
 * copy, index, seal, trailer. One that reaches back over the newest copy's frame, or has
 * not even room for its ends behind it, is older, and so is one whose seal says so. */
static bool is_older_rest(const cv_found_copy *newest, cv_store *store, uint64_t stored)
{
    uint8_t tail[CV_TRAILER_TAIL], bytes[CV_SEAL_FOOTER];
    uint32_t size;
    cv_seal_footer footer;
    uint64_t room = stored - newest->end;
    if (room < cv_header_copy_size((uint32_t)newest->header.size) + CV_TRAILER_MIN)
        return true;
    uint64_t at = stored - sizeof tail;
    if (cv_store_read(store, CV_FRAME_OBJECT, at, tail, sizeof tail, NULL) != CV_OK ||
        cv_trailer_peek(tail, (int64_t)at, &size, NULL) != CV_OK)
        return false;
    if (size + sizeof bytes > room) return true;
    at = stored - size - sizeof bytes;
    return cv_store_read(store, CV_FRAME_OBJECT, at, bytes, sizeof bytes, NULL) == CV_OK &&
           cv_seal_footer_read(bytes, &footer) && footer.commit <= newest->commit;
}

/* Bytes behind the newest copy's frame that no older commit explains. */
static bool has_more(const cv_copies *c, cv_store *store)
{
    uint64_t stored;
    if (cv_store_size(store, CV_FRAME_OBJECT, &stored, NULL) != CV_OK) return true;
    for (int i = 0; i < c->n; i++)
        if (c->items[i].end >= stored) return false;
    return !is_older_rest(&c->items[0], store, stored) &&
           !is_frame_at(store, c->items[0].end);
}

bool cv_copies_have_last(const cv_copies *c, cv_store *store)
{
    bool is_other;
    if (has_later_seal(c, store)) return false;
    if (ask_header(c, store, &is_other) != NEITHER) return true;
    return !is_other && !has_more(c, store);
}
