/* Test support: rebuilds the frame object's bytes at a crash point from a fault store's journal. An
 * image consists of the initial bytes with journal entries applied in order. The crash models
 * differ in which entries they apply, and in how much of a write. */
#include "support/fault_journal.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

enum { SECTOR = 512 };

typedef struct image {
    uint8_t *bytes;
    size_t size, capacity;
    uint64_t random; /* state of the generator */
} image;

/* SplitMix64. Returns true in half of the calls. */
static bool flip(image *im)
{
    uint64_t x = im->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) & 1;
}

/* ---- Applying entries --------------------------------------------------- */

static cv_status resize(image *im, size_t size, cv_error *err)
{
    if (size > im->capacity) {
        size_t capacity = size > im->capacity * 2 ? size : im->capacity * 2;
        uint8_t *bytes = cv_realloc(im->bytes, im->size, capacity);
        if (!bytes) return cv_fail_memory(err, capacity, "a crash image");
        im->bytes = bytes;
        im->capacity = capacity;
    }
    if (size > im->size) memset(im->bytes + im->size, 0, size - im->size);
    im->size = size;
    return CV_OK;
}

static cv_status put(image *im, uint64_t pos, const uint8_t *bytes, size_t size,
                     cv_error *err)
{
    if (size == 0) return CV_OK;
    if (pos + size > im->size) CV_TRY(resize(im, (size_t)pos + size, err));
    memcpy(im->bytes + pos, bytes, size);
    return CV_OK;
}

static bool changes_frame(const cv_fault_entry *e)
{
    return e->object == CV_FRAME_OBJECT &&
           (e->kind == CV_FAULT_ENTRY_WRITE || e->kind == CV_FAULT_ENTRY_TRUNCATE ||
            e->kind == CV_FAULT_ENTRY_REPLACE);
}

static cv_status apply(image *im, const cv_fault_entry *e, cv_error *err)
{
    if (!changes_frame(e)) return CV_OK;
    if (e->kind == CV_FAULT_ENTRY_WRITE) return put(im, e->pos, e->bytes, e->size, err);
    if (e->kind == CV_FAULT_ENTRY_TRUNCATE) return resize(im, (size_t)e->pos, err);
    im->size = 0;
    return put(im, 0, e->bytes, e->size, err);
}

/* Applies an entry that no sync covers: each sector of a write with probability 1/2; any other
 * change completely or not at all. */
static cv_status apply_by_chance(image *im, const cv_fault_entry *e, cv_error *err)
{
    if (!changes_frame(e)) return CV_OK;
    if (e->kind != CV_FAULT_ENTRY_WRITE) return flip(im) ? apply(im, e, err) : CV_OK;
    for (size_t done = 0; done < e->size;) {
        uint64_t pos = e->pos + done;
        size_t part = SECTOR - (size_t)(pos % SECTOR);
        if (part > e->size - done) part = e->size - done;
        if (flip(im)) CV_TRY(put(im, pos, e->bytes + done, part, err));
        done += part;
    }
    return CV_OK;
}

/* ---- Models ------------------------------------------------------------- */

static cv_status apply_range(const cv_fault_journal *j, image *im, size_t from, size_t to,
                             cv_error *err)
{
    for (size_t i = from; i < to; i++) CV_TRY(apply(im, &j->entries[i], err));
    return CV_OK;
}

static cv_status make_torn(const cv_fault_journal *j, image *im, size_t point, size_t part,
                           cv_error *err)
{
    CV_TRY(apply_range(j, im, 0, point, err));
    if (point == j->n_entries) return CV_OK;
    const cv_fault_entry *e = &j->entries[point];
    if (e->kind != CV_FAULT_ENTRY_WRITE || !changes_frame(e)) return CV_OK;
    return put(im, e->pos, e->bytes, part < e->size ? part : e->size, err);
}

static bool is_sync(const cv_fault_entry *e)
{
    return e->object == CV_FRAME_OBJECT &&
           (e->kind == CV_FAULT_ENTRY_SYNC ||
            (e->kind == CV_FAULT_ENTRY_REPLACE && e->durable));
}

static cv_status make_power(const cv_fault_journal *j, image *im, size_t point, cv_error *err)
{
    size_t synced = point;
    while (synced > 0 && !is_sync(&j->entries[synced - 1])) synced--;
    CV_TRY(apply_range(j, im, 0, synced, err));
    for (size_t i = synced; i < point; i++) CV_TRY(apply_by_chance(im, &j->entries[i], err));
    return CV_OK;
}

static int64_t last_mark(const cv_fault_journal *j, size_t point)
{
    for (size_t i = point; i > 0; i--)
        if (j->entries[i - 1].kind == CV_FAULT_ENTRY_MARK) return j->entries[i - 1].token;
    return -1;
}

static cv_status make(const cv_fault_journal *j, image *im, const cv_crash *crash,
                      cv_error *err)
{
    if (crash->point < 0 || (size_t)crash->point > j->n_entries)
        return cv_fail(err, CATERVA_EINVAL, -1, "point %lld of a journal of %zu entries",
                       (long long)crash->point, j->n_entries);
    size_t point = (size_t)crash->point;
    CV_TRY(resize(im, 1, err)); /* even an empty image has memory */
    im->size = 0;
    CV_TRY(put(im, 0, j->initial, j->initial_size, err));
    switch (crash->model) {
    case CV_CRASH_PREFIX: return apply_range(j, im, 0, point, err);
    case CV_CRASH_TORN: return make_torn(j, im, point, crash->part, err);
    case CV_CRASH_POWER: return make_power(j, im, point, err);
    }
    return cv_fail(err, CATERVA_EINVAL, -1, "unknown kind of crash %d", (int)crash->model);
}

cv_status cv_fault_journal_image(const cv_fault_journal *journal, const cv_crash *crash,
                                 uint8_t **bytes, size_t *size, int64_t *mark, cv_error *err)
{
    image im = {.random = crash->seed};
    cv_status status = make(journal, &im, crash, err);
    if (status == CV_OK) {
        *bytes = im.bytes;
        *size = im.size;
        *mark = last_mark(journal, (size_t)crash->point);
    } else {
        cv_free(im.bytes);
    }
    return status;
}
