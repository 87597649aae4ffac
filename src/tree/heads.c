/* Room: tree. See heads.h. What cannot be read ahead is read when it is asked for, and only then
 * is something wrong. */
#include "tree/heads.h"

#include "base/heap.h"

#include <string.h>

/* Bytes of each: a local header, and what a frame's header mostly takes; of its extra fields;
 * of all. */
enum { EACH = 4096, EXTRA = 256, AT_ONCE = 4 << 20 };

static size_t bytes_ahead(const cv_member *member)
{
    uint64_t room = member->end - member->header_pos;
    bool is_closed = member->method != CV_ZIP_STORED || member->flags & CV_ZIP_ENCRYPTED;
    uint64_t header = CV_ZIP_LOCAL_SIZE + strlen(member->path) + EXTRA;
    uint64_t size = is_closed && header < EACH ? header : EACH;
    return room < size ? (size_t)room : (size_t)size;
}

/* The wave's return says all. */
static cv_status ignore(void *context, size_t range, cv_error *err)
{
    (void)context, (void)range, (void)err;
    return CV_OK;
}

static cv_status read_wave(cv_heads *h, cv_error *err)
{
    size_t n = 0;
    const cv_arrivals arrivals = {.arrived = ignore, .watch = h->tree->watch};
    cv_store_range *ranges = cv_calloc(h->stop - h->first, sizeof *ranges);
    if (!ranges) return cv_fail_memory(err, h->stop - h->first, "a list of ranges");
    for (size_t i = h->first; i < h->stop; i++) {
        size_t at = h->places[i - h->first], size = h->places[i - h->first + 1] - at;
        const cv_store_range range = {.object = CV_FRAME_OBJECT,
                                      .pos = h->members->list[i].header_pos,
                                      .size = size,
                                      .dst = h->bytes.data + at};
        if (size > 0) ranges[n++] = range;
    }
    cv_status status = cv_store_read_many(h->tree->store, ranges, n, &arrivals, err);
    cv_free(ranges);
    return status;
}

/* Members [first, ...), as many as fit. */
static cv_status plan(cv_heads *h, size_t first, cv_error *err)
{
    enum { MOST = AT_ONCE / EACH };
    size_t n = h->members->n - first;
    if (n > MOST) n = MOST;
    cv_heads_free(h);
    h->first = h->stop = first;
    h->places = cv_calloc(n + 1, sizeof *h->places);
    if (!h->places) return cv_fail_memory(err, n * sizeof *h->places, "heads of members");
    for (size_t i = 0; i < n; i++)
        h->places[i + 1] = h->places[i] + bytes_ahead(&h->members->list[first + i]);
    CV_TRY(cv_buffer_resize(&h->bytes, h->places[n], err));
    h->stop = first + n;
    return CV_OK;
}

/* Who reads one at a time says whose fault it is; nothing is at hand then. */
static cv_status read_ahead(cv_heads *h, size_t first, cv_error *err)
{
    cv_error reason = {0};
    CV_TRY(plan(h, first, err));
    cv_status status = read_wave(h, &reason);
    if (status == CV_OK) return CV_OK;
    for (size_t i = 0; i <= h->stop - h->first; i++) h->places[i] = 0;
    if (status != CATERVA_ENOMEM && status != CATERVA_ESTOPPED) return CV_OK;
    if (err) *err = reason;
    return status;
}

cv_status cv_heads_get(cv_heads *h, const cv_member *member, uint8_t *dst, size_t size,
                       size_t *done, cv_error *err)
{
    size_t i = (size_t)(member - h->members->list);
    cv_zip_source source = cv_tree_source(h->tree);
    if (h->tree->form != CV_TREE_ARCHIVE || !h->tree->store)
        return cv_tree_head(h->tree, member, dst, size, done, err);
    if (h->again) {
        source.store = h->again;
        return cv_zip_directory_head(&source, member, dst, size, done, err);
    }
    if (i < h->first || i >= h->stop) CV_TRY(read_ahead(h, i, err));
    size_t at = h->places[i - h->first], n = h->places[i - h->first + 1] - at;
    if (n > 0) {
        source.ahead = h->bytes.data + at;
        source.ahead_pos = member->header_pos;
        source.ahead_size = n;
    }
    return cv_zip_directory_head(&source, member, dst, size, done, err);
}

void cv_heads_free(cv_heads *h)
{
    cv_buffer_free(&h->bytes);
    cv_free(h->places);
    h->places = NULL;
    h->first = h->stop = 0;
}
