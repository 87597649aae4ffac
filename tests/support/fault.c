/* Test support: the store that fails on demand and keeps a journal of every successful change. A
 * lock is held during each change, so that the journal has the order of the changes. The store
 * knows only bytes; the test knows what a frame is and which images are valid. fault_journal.c
 * makes the images. */
#include "support/fault.h"

#include "base/heap.h"
#include "base/thread.h"
#include "store/open.h"

#include <stdlib.h>
#include <string.h>

typedef struct fault_store {
    cv_store base;
    cv_store *inner;
    cv_mutex lock; /* guards the members below; held during a change */
    cv_fault_kind kind;
    int sys_errno;
    int64_t fail_at; /* value of n_changes, or of n_reads for a read fault */
    int64_t n_changes;
    int64_t n_reads;
    int64_t n_hits;
    cv_fault_entry_kind last_hit; /* kind of the last failed change */
    cv_fault_journal journal;
} fault_store;

/* ---- Arming ------------------------------------------------------------- */

static fault_store *as_fault(const cv_store *store) { return (fault_store *)store; }

void cv_store_fault_arm(cv_store *store, cv_fault_kind kind, int64_t n, int sys_errno)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    f->kind = kind;
    f->sys_errno = sys_errno;
    f->fail_at = (kind == CV_FAULT_READ ? f->n_reads : f->n_changes) + n;
    cv_mutex_unlock(&f->lock);
}

static int64_t locked_value(const cv_store *store, const int64_t *value)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    int64_t result = *value;
    cv_mutex_unlock(&f->lock);
    return result;
}

int64_t cv_store_fault_count(const cv_store *store)
{
    return locked_value(store, &as_fault(store)->n_changes);
}

int64_t cv_store_fault_hits(const cv_store *store)
{
    return locked_value(store, &as_fault(store)->n_hits);
}

cv_fault_entry_kind cv_store_fault_last_hit(const cv_store *store)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    cv_fault_entry_kind result = f->last_hit;
    cv_mutex_unlock(&f->lock);
    return result;
}

/* Counts a read and returns whether it must fail. The caller holds the lock. */
static bool read_fails(fault_store *f)
{
    bool fails = f->kind == CV_FAULT_READ && f->n_reads == f->fail_at;
    f->n_reads++;
    f->n_hits += fails;
    return fails;
}

/* Counts a change and returns whether it must fail. The caller holds the lock. */
static bool change_fails(fault_store *f)
{
    bool at = f->n_changes == f->fail_at;
    bool fails = f->kind == CV_FAULT_FOREVER ? f->n_changes >= f->fail_at
                 : f->kind == CV_FAULT_ONCE || f->kind == CV_FAULT_SHORT ? at
                                                                         : false;
    f->n_changes++;
    f->n_hits += fails;
    return fails;
}

static cv_status fail_on_purpose(const fault_store *f, const char *what, cv_error *err)
{
    return cv_fail_sys(err, f->sys_errno, "fault on purpose in %s", what);
}

/* ---- Journal ------------------------------------------------------------ */

/* Reserves an entry of the journal before the change is made, so that no change is made that cannot
 * be recorded. The caller holds the lock. */
static cv_status reserve_entry(fault_store *f, cv_error *err)
{
    if (f->journal.n_entries < f->journal.capacity) return CV_OK;
    size_t capacity = f->journal.capacity ? f->journal.capacity * 2 : 64;
    cv_fault_entry *entries =
        cv_realloc(f->journal.entries, f->journal.n_entries * sizeof *entries,
                   capacity * sizeof *entries);
    if (!entries) return cv_fail_memory(err, capacity * sizeof *entries, "the fault journal");
    f->journal.entries = entries;
    f->journal.capacity = capacity;
    return CV_OK;
}

static cv_status copy_bytes(const void *bytes, size_t size, uint8_t **out, cv_error *err)
{
    *out = cv_malloc(size ? size : 1);
    if (!*out) return cv_fail_memory(err, size, "the fault journal");
    if (size > 0) memcpy(*out, bytes, size);
    return CV_OK;
}

void cv_store_fault_mark(cv_store *store, int64_t token)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    if (reserve_entry(f, NULL) == CV_OK)
        f->journal.entries[f->journal.n_entries++] =
            (cv_fault_entry){.kind = CV_FAULT_ENTRY_MARK, .token = token};
    cv_mutex_unlock(&f->lock);
}

const cv_fault_journal *cv_store_fault_journal(const cv_store *store)
{
    return &as_fault(store)->journal;
}

int64_t cv_store_fault_journal_size(const cv_store *store)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    int64_t n = (int64_t)f->journal.n_entries;
    cv_mutex_unlock(&f->lock);
    return n;
}

int64_t cv_store_fault_journal_bytes(const cv_store *store, int64_t entry)
{
    fault_store *f = as_fault(store);
    int64_t size = 0;
    cv_mutex_lock(&f->lock);
    if (entry >= 0 && (size_t)entry < f->journal.n_entries &&
        f->journal.entries[entry].kind == CV_FAULT_ENTRY_WRITE)
        size = (int64_t)f->journal.entries[entry].size;
    cv_mutex_unlock(&f->lock);
    return size;
}

/* ---- Changing operations ------------------------------------------------ */

/* Makes one change in the inner store. */
static cv_status apply(fault_store *f, const cv_fault_entry *e, cv_error *err)
{
    cv_store *inner = f->inner;
    cv_status status = CV_OK;
    switch (e->kind) {
    case CV_FAULT_ENTRY_WRITE:
        return cv_store_write(inner, e->object, e->pos, e->bytes, e->size, err);
    case CV_FAULT_ENTRY_TRUNCATE: return cv_store_truncate(inner, e->object, e->pos, err);
    case CV_FAULT_ENTRY_SYNC: return cv_store_sync(inner, e->object, err);
    case CV_FAULT_ENTRY_REPLACE:
        return cv_store_replace(inner, e->bytes, e->size, e->durable, err);
    case CV_FAULT_ENTRY_REMOVE: return cv_store_remove(inner, e->object, err);
    case CV_FAULT_ENTRY_PUBLISH:
        status = cv_store_publish(inner, e->durable, err);
        f->base.published = inner->published;
        return status;
    case CV_FAULT_ENTRY_MARK: break;
    }
    return status;
}

static const char *entry_name(cv_fault_entry_kind kind)
{
    static const char *const names[] = {"write",  "truncate", "sync", "replace",
                                        "remove", "publish",  "mark"};
    return names[kind];
}

/* Applies and records a change. Takes ownership of entry->bytes. The caller holds the lock. */
static cv_status apply_and_record(fault_store *f, cv_fault_entry entry, cv_error *err)
{
    cv_status status = reserve_entry(f, err);
    if (status == CV_OK) status = apply(f, &entry, err);
    if (status == CV_OK)
        f->journal.entries[f->journal.n_entries++] = entry;
    else
        cv_free(entry.bytes);
    return status;
}

static cv_status change(cv_store *store, cv_fault_entry entry, const void *bytes,
                        cv_error *err)
{
    fault_store *f = as_fault(store);
    cv_status status = CV_OK;
    cv_mutex_lock(&f->lock);
    bool fails = change_fails(f);
    if (fails) f->last_hit = entry.kind;
    bool partly = fails && f->kind == CV_FAULT_SHORT && entry.kind == CV_FAULT_ENTRY_WRITE;
    if (partly) entry.size /= 2;
    if (!fails || partly) {
        if (bytes) status = copy_bytes(bytes, entry.size, &entry.bytes, err);
        if (status == CV_OK) status = apply_and_record(f, entry, err);
    }
    if (status == CV_OK && fails) status = fail_on_purpose(f, entry_name(entry.kind), err);
    cv_mutex_unlock(&f->lock);
    return status;
}

static cv_status fault_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                             size_t size, cv_error *err)
{
    cv_fault_entry entry = {
        .kind = CV_FAULT_ENTRY_WRITE, .object = object, .pos = pos, .size = size};
    return change(store, entry, src, err);
}

static cv_status fault_truncate(cv_store *store, cv_object object, uint64_t size,
                                cv_error *err)
{
    cv_fault_entry entry = {.kind = CV_FAULT_ENTRY_TRUNCATE, .object = object, .pos = size};
    return change(store, entry, NULL, err);
}

static cv_status fault_sync(cv_store *store, cv_object object, cv_error *err)
{
    cv_fault_entry entry = {.kind = CV_FAULT_ENTRY_SYNC, .object = object};
    return change(store, entry, NULL, err);
}

static cv_status fault_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                               cv_error *err)
{
    cv_fault_entry entry = {.kind = CV_FAULT_ENTRY_REPLACE,
                            .object = CV_FRAME_OBJECT,
                            .size = size,
                            .durable = durable};
    return change(store, entry, bytes, err);
}

static cv_status fault_remove(cv_store *store, cv_object object, cv_error *err)
{
    cv_fault_entry entry = {.kind = CV_FAULT_ENTRY_REMOVE, .object = object};
    return change(store, entry, NULL, err);
}

static cv_status fault_publish(cv_store *store, bool durable, cv_error *err)
{
    cv_fault_entry entry = {
        .kind = CV_FAULT_ENTRY_PUBLISH, .object = CV_FRAME_OBJECT, .durable = durable};
    return change(store, entry, NULL, err);
}

/* ---- Reading ------------------------------------------------------------ */

static cv_status fault_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    return cv_store_size(as_fault(store)->inner, object, size, err);
}

static cv_status fault_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                            size_t size, cv_error *err)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    bool fails = read_fails(f);
    cv_status status = fails ? fail_on_purpose(f, "read", err) : CV_OK;
    cv_mutex_unlock(&f->lock);
    return fails ? status : cv_store_read(f->inner, object, pos, dst, size, err);
}

/* Returns no view while a read fault is armed, because a view would bypass the fault. */
static const uint8_t *fault_view(cv_store *store, cv_object object, uint64_t pos, size_t size)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    bool armed = f->kind == CV_FAULT_READ;
    cv_mutex_unlock(&f->lock);
    return armed ? NULL : cv_store_view(f->inner, object, pos, size);
}

static cv_status fault_list(cv_store *store, cv_object **objects, size_t *n, cv_error *err)
{
    return cv_store_list(as_fault(store)->inner, objects, n, err);
}

static cv_status fault_check_name(cv_store *store, cv_error *err)
{
    return cv_store_check_name(as_fault(store)->inner, err);
}

static bool fault_has_readers(cv_store *store)
{
    return cv_store_has_readers(as_fault(store)->inner);
}

static bool fault_has_writer(cv_store *store)
{
    return cv_store_has_writer(as_fault(store)->inner);
}

static bool fault_has_others(cv_store *store, uint64_t state)
{
    return cv_store_has_others(as_fault(store)->inner, state);
}

/* The changes of the new store are not recorded, and neither are deletions. */
static cv_status fault_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    return cv_store_create_over(as_fault(old)->inner, out, err);
}

static cv_status fault_unlink(cv_store *store, cv_watch *watch, cv_error *err)
{
    return cv_store_delete(as_fault(store)->inner, watch, err);
}

/* ---- Opening and closing ------------------------------------------------ */

static void fault_close(cv_store *store)
{
    fault_store *f = as_fault(store);
    cv_store_close(f->inner);
    for (size_t i = 0; i < f->journal.n_entries; i++) cv_free(f->journal.entries[i].bytes);
    cv_free(f->journal.entries);
    cv_free(f->journal.initial);
    cv_mutex_destroy(&f->lock);
    cv_free(f);
}

static const cv_store_ops fault_ops = {
    .name = "fault",
    .size = fault_size,
    .read = fault_read,
    .view = fault_view,
    .write = fault_write,
    .truncate = fault_truncate,
    .sync = fault_sync,
    .replace = fault_replace,
    .remove = fault_remove,
    .list = fault_list,
    .publish = fault_publish,
    .has_readers = fault_has_readers,
    .has_others = fault_has_others,
    .has_writer = fault_has_writer,
    .check_name = fault_check_name,
    .create_over = fault_create_over,
    .unlink = fault_unlink,
    .close = fault_close,
};

/* Loads the contents of the frame object from which the journal starts. */
static cv_status load_initial(fault_store *f, cv_error *err)
{
    uint64_t size = 0;
    cv_status status = cv_store_size(f->inner, CV_FRAME_OBJECT, &size, err);
    if (status == CATERVA_ENOTFOUND) return CV_OK; /* a directory without a frame yet */
    if (status != CV_OK || size == 0) return status;
    f->journal.initial = cv_malloc((size_t)size);
    if (!f->journal.initial) return cv_fail_memory(err, (size_t)size, "the fault journal");
    f->journal.initial_size = (size_t)size;
    return cv_store_read(f->inner, CV_FRAME_OBJECT, 0, f->journal.initial,
                         f->journal.initial_size, err);
}

cv_status cv_store_fault_create(cv_store *inner, cv_store **out, cv_error *err)
{
    fault_store *f = cv_calloc(1, sizeof *f);
    if (!f) {
        cv_store_close(inner);
        return cv_fail_memory(err, sizeof *f, "a store");
    }
    f->base = *inner;
    f->base.ops = &fault_ops;
    f->inner = inner;
    f->last_hit = CV_FAULT_ENTRY_MARK;
    cv_mutex_init(&f->lock);
    cv_status status = load_initial(f, err);
    if (status != CV_OK) {
        fault_close(&f->base);
        return status;
    }
    *out = &f->base;
    return CV_OK;
}

cv_status cv_store_fault_image(const cv_store *store, const cv_crash *crash, uint8_t **bytes,
                               size_t *size, int64_t *mark, cv_error *err)
{
    fault_store *f = as_fault(store);
    cv_mutex_lock(&f->lock);
    cv_status status = cv_fault_journal_image(&f->journal, crash, bytes, size, mark, err);
    cv_mutex_unlock(&f->lock);
    return status;
}
