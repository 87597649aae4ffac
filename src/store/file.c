/* Room: store. A frame in a regular file. The file is not mapped, because other processes may
 * truncate it. pread and pwrite need no shared offset. A new file has a temporary name until it is
 * published. The writer's lock belongs to the open file and survives the rename. */
#include "store/file.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "store/descriptors.h"
#include "store/path.h"
#include "store/reading.h"
#include "store/store.h"

#include <stddef.h>
#include <string.h>

/* ---- Finding the file ----
 *
 * Opens and locks the file at a path, and checks that it can contain a frame. */

static cv_status check_regular(cv_file file, const char *path, uint64_t offset,
                               cv_file_info *info, cv_error *err)
{
    cv_shown_path shown = cv_show_path(path);
    int error = cv_file_get_info(file, info);
    if (error) return cv_fail_sys(err, error, "cannot look at %s", shown.text);
    if (info->kind == CV_KIND_DIRECTORY) return cv_fail_open(err, EISDIR, path);
    if (info->kind != CV_KIND_FILE)
        return cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file", shown.text);
    if (offset > info->size)
        return cv_fail(err, CATERVA_ECORRUPT, 0,
                       "%s has %llu bytes, no frame can begin at byte %llu", shown.text,
                       (unsigned long long)info->size, (unsigned long long)offset);
    return CV_OK;
}

/* Hints the first page of a large file. Reading byte 0 without the hint would start the system's
 * read-ahead, which also affects later reads nearby: one item of the first chunk cost 68 KiB from
 * disk, or 308 KiB with blocks of 128 KiB. With the hint only this page is read. */
static void fetch_beginning(cv_file file, uint64_t offset, const cv_file_info *info)
{
    enum { LARGE = 256 * 1024, PAGE = 4096 };
    if (offset == 0 && info->size >= LARGE) cv_file_fetch(file, 0, PAGE);
}

/* Repeats if another process published over the path before the lock was taken, because a lock on
 * the old file would exclude no writer. */
static cv_status open_locked(const char *path, cv_file *file, cv_home *home, cv_error *err)
{
    for (;;) {
        int error = cv_open_file(cv_dir_here, path, CV_OPEN_BOTH, 0, file);
        if (error) return cv_fail_open(err, error, path);
        error = cv_file_lock(*file);
        cv_status status = error ? cv_fail_lock(err, error, path)
                                 : cv_home_find(path, *file, false, home, err);
        bool is_there = status == CV_OK && cv_home_leads_to(home, *file);
        if (is_there && cv_keeper_has(home->dir, *file))
            status = cv_fail_lock(err, EWOULDBLOCK, path);
        if (is_there && status == CV_OK) return CV_OK;
        cv_home_close(home);
        cv_file_close(file);
        CV_TRY(status);
    }
}

/* Locks before the first read, so that no writer reuses space that this reader needs. On systems
 * where such locks fail, a writer cannot detect readers and reuses no space. */
static cv_status open_for_reading(const char *path, cv_file *file, cv_error *err)
{
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_READ, 0, file);
    if (error) return cv_fail_open(err, error, path);
    (void)cv_file_share(*file);
    return CV_OK;
}

static cv_status open_it(const char *path, bool writable, cv_file *file, cv_home *home,
                         cv_error *err)
{
    char *stripped;
    CV_TRY(cv_strip_slashes(path, &stripped, err));
    cv_status status = writable ? open_locked(stripped, file, home, err)
                                : open_for_reading(stripped, file, err);
    cv_free(stripped);
    return status;
}

/* Opens the regular file at `path`, whose frame may begin at `offset`. For writing, takes the
 * lock and sets `home`, the file's name; for reading, leaves `home` unchanged. The caller closes
 * both. */
static cv_status file_find(const char *path, uint64_t offset, bool writable, cv_file *file,
                           cv_home *home, cv_error *err)
{
    cv_file_info info;
    CV_TRY(open_it(path, writable, file, home, err));
    cv_status status = check_regular(*file, path, offset, &info, err);
    if (status == CV_OK) {
        fetch_beginning(*file, offset, &info);
        return CV_OK;
    }
    if (writable) cv_home_close(home);
    cv_file_close(file);
    return status;
}

/* ---- The copy of a file that is read often ----
 *
 * When all reads so far have cost more than a copy, the thread that reads next makes the copy. */

/* Cost is counted in bytes: a small read takes as long as 2 KiB of a large read (0.4 us). */
enum { BYTES_PER_READ = 2048, LEAST_READS = 64 };

void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most)
{
    copy->file = file;
    copy->offset = offset;
    copy->size = size <= most ? (size_t)size : 0;
    atomic_init(&copy->cost, 0);
    atomic_init(&copy->stopped, false);
    atomic_init(&copy->bytes, NULL);
}

void cv_file_copy_free(cv_file_copy *copy) { cv_free(atomic_load(&copy->bytes)); }

void cv_file_copy_stop(cv_file_copy *copy)
{
    atomic_store_explicit(&copy->stopped, true, memory_order_relaxed);
}

static uint8_t *read_all(const cv_file_copy *copy)
{
    size_t done = 0;
    bool large = copy->size >= (size_t)CV_LARGE_PAGE; /* saves TLB misses */
    uint8_t *bytes = large ? cv_large_pages(copy->size) : cv_malloc(copy->size);
    if (!bytes) return NULL; /* reads will use the file */
    int error = cv_file_read(copy->file, bytes, copy->size, copy->offset, &done);
    if (!error && done == copy->size) return bytes;
    cv_free(bytes);
    return NULL;
}

void cv_file_copy_count(cv_file_copy *copy, size_t size)
{
    if (copy->size == 0) return;
    if (atomic_load_explicit(&copy->stopped, memory_order_relaxed)) return;
    uint64_t enough = copy->size + (uint64_t)LEAST_READS * BYTES_PER_READ;
    uint64_t cost = (uint64_t)size + BYTES_PER_READ;
    uint64_t before = atomic_fetch_add_explicit(&copy->cost, cost, memory_order_relaxed);
    if (before <= enough && before + cost > enough)
        atomic_store_explicit(&copy->bytes, read_all(copy), memory_order_release);
}

const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size)
{
    if (atomic_load_explicit(&copy->stopped, memory_order_relaxed)) return NULL;
    const uint8_t *bytes = atomic_load_explicit(&copy->bytes, memory_order_acquire);
    bool inside = pos <= copy->size && size <= copy->size - pos;
    return bytes && inside ? bytes + pos : NULL;
}

/* ---- The store ---- */

typedef struct file_store {
    cv_store base;
    cv_file file;
    uint64_t offset; /* position of the frame */
    uint64_t most;   /* limit of the frame's size */
    cv_place place;  /* names of a created store; closed when published */
    cv_home home;    /* name of a published store open for writing */
    cv_shown_path shown;
    cv_file_copy copy;
    bool leaves_temp;
    /* The members below are for a store that may rest, that is, close its file while idle. `keeper`
     * is NULL in other stores. */
    cv_keeper *keeper;
    char *path;   /* path of the file from the keeper's directory */
    char *folder; /* directory of `path` */
    cv_resting rest;
    cv_file_info known; /* the file's info when it was closed */
    bool is_marked;
    uint64_t held; /* inode of place.old if it is marked, because its lock is released; 0 */
} file_store;

/* ---- Resting -------------------------------------------------------------- */

static cv_status begin(file_store *f, cv_error *err)
{
    return f->keeper ? cv_rest_begin(&f->rest, err) : CV_OK;
}

static void end(file_store *f)
{
    if (f->keeper) cv_rest_end(&f->rest);
}

/* Does the same as begin, for callers that cannot report an error. */
static bool begins(file_store *f) { return begin(f, NULL) == CV_OK; }

static bool mark(file_store *f, uint64_t inode)
{
    return cv_file_mark(cv_dir_as_file(f->keeper->root), inode) == 0;
}

static void unmark(file_store *f, uint64_t inode)
{
    cv_file_unmark(cv_dir_as_file(f->keeper->root), inode);
}

/* Unlocks before closing, because children of fork share this opening and would keep the lock. */
static void close_file(file_store *f)
{
    if (cv_os_has_forked(f->base.opened)) cv_file_unlock(f->file);
    cv_file_close(&f->file);
}

static void let_held_go(file_store *f)
{
    if (f->held) unmark(f, f->held);
    f->held = 0;
}

static bool hold_by_mark(file_store *f)
{
    cv_file_info old;
    if (!f->place.old.is_locked) return true;
    if (cv_file_get_info(f->place.old.self, &old) || !mark(f, old.inode)) return false;
    f->held = old.inode;
    return true;
}

static cv_dir *dir_of(file_store *f)
{
    return f->base.published ? &f->home.dir : &f->place.dir;
}

static const char *name_of(const file_store *f)
{
    const char *slash = strrchr(f->path, '/');
    return !f->base.published ? f->place.temp : slash ? slash + 1 : f->path;
}

/* Closes the file without a sync. If the system fails to write unsynced bytes, it reports that to
 * the opening that syncs next, which is the one that commits. */
static bool sleep_now(cv_resting *rest)
{
    file_store *f = (file_store *)(void *)((char *)rest - offsetof(file_store, rest));
    cv_file_info closed;
    if (cv_store_is_parents(&f->base) || f->place.old.is_directory) return false;
    if (cv_file_get_info(f->file, &f->known)) return false;
    if (f->base.published ? !mark(f, f->known.inode) : !hold_by_mark(f)) return false;
    f->is_marked = f->base.published;
    close_file(f);
    cv_dir *dir = dir_of(f);
    if (cv_dir_get_link_info(*dir, name_of(f), &closed) == 0 &&
        closed.inode == f->known.inode)
        f->known = closed; /* a network file system may set the time at close */
    cv_target_close(&f->place.old);
    cv_dir_close(dir);
    return true;
}

static void forget_rest(file_store *f)
{
    if (!cv_store_is_parents(&f->base)) {
        if (f->is_marked) unmark(f, f->known.inode);
        let_held_go(f);
    }
    cv_keeper_release(f->keeper);
    cv_free(f->path);
    cv_free(f->folder);
}

/* Locks the file, with retries, because another process may hold the lock for a moment: it checks
 * the file, or is being refused because of the mark. */
static int lock_again(cv_file file)
{
    enum { WAITS = 200, WAIT_NS = 1000000 };
    int error = cv_file_lock(file);
    for (int i = 0; i < WAITS && error == EWOULDBLOCK; i++) {
        cv_os_sleep_ns(WAIT_NS);
        error = cv_file_lock(file);
    }
    return error;
}

static cv_status check_unchanged(const file_store *f, cv_file file, cv_error *err)
{
    cv_file_info now;
    int error = cv_file_get_info(file, &now);
    if (error) return cv_fail_sys(err, error, "cannot look at %s", f->shown.text);
    if (now.inode == f->known.inode && now.device == f->known.device &&
        now.size == f->known.size && now.changed_ns == f->known.changed_ns)
        return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s was changed or replaced by others while it was open for writing",
                   f->shown.text);
}

/* Reports a missing file as CATERVA_EIO, as with an open descriptor, not as CATERVA_ENOTFOUND. */
static cv_status fail_again(const file_store *f, int error, cv_error *err)
{
    if (error != ENOENT && error != ENOTDIR) return cv_fail_open(err, error, f->shown.text);
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s was removed or renamed by others while it was open", f->shown.text);
}

/* In a child of fork, opens the file only for reading, because the parent holds the lock. */
static cv_status open_again(const file_store *f, cv_dir dir, cv_file *out, cv_error *err)
{
    bool reads = cv_store_is_parents(&f->base);
    unsigned how = (reads ? CV_OPEN_READ : CV_OPEN_BOTH) | CV_OPEN_NO_LINK;
    int error = cv_open_file(dir, name_of(f), how, 0, out);
    if (error) return fail_again(f, error, err);
    error = reads ? 0 : lock_again(*out);
    cv_status status =
        error ? cv_fail_lock(err, error, f->shown.text) : check_unchanged(f, *out, err);
    if (status != CV_OK) cv_file_close(out);
    return status;
}

/* Replaces the target's mark by the lock again. Does nothing if the target is another file now:
 * publishing detects that later. */
static void hold_again(file_store *f)
{
    cv_file_info info;
    cv_target old;
    if (!f->held || cv_store_is_parents(&f->base)) return;
    if (cv_target_open(f->place.dir, f->place.name, false, &f->shown, &old, NULL) == CV_OK) {
        if (cv_file_get_info(old.self, &info) == 0 && info.inode == f->held)
            old.is_locked = lock_again(old.self) == 0;
        f->place.old = old;
    }
    let_held_go(f);
}

static cv_status wake(cv_resting *rest, cv_error *err)
{
    file_store *f = (file_store *)(void *)((char *)rest - offsetof(file_store, rest));
    cv_dir dir;
    int error = cv_open_dir(f->keeper->root, f->folder, 0, &dir);
    if (error) return fail_again(f, error, err);
    cv_status status = open_again(f, dir, &f->file, err);
    if (status != CV_OK) {
        cv_dir_close(&dir);
        return status;
    }
    *dir_of(f) = dir;
    if (!f->base.published) hold_again(f);
    return CV_OK;
}

/* ---- Bytes -------------------------------------------------------------- */

static cv_status file_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    file_store *f = (file_store *)store;
    uint64_t stored;
    CV_TRY(cv_store_check_frame(store, object, err));
    int error = cv_file_size(f->file, &stored);
    if (error) return cv_fail_sys(err, error, "cannot look at %s", f->shown.text);
    *size = stored > f->offset ? stored - f->offset : 0;
    if (*size > f->most) *size = f->most;
    return CV_OK;
}

static void file_stamp(cv_store *store, cv_stamp *out)
{
    cv_file_info info;
    if (cv_file_get_info(((file_store *)store)->file, &info)) return;
    *out = (cv_stamp){.object = info.inode, .time = info.changed_ns, .size = info.size};
}

static cv_status file_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                           size_t size, cv_error *err)
{
    file_store *f = (file_store *)store;
    uint64_t at, end = 0;
    size_t done = 0;
    CV_TRY(cv_store_check_frame(store, object, err));

    int error = 0;
    if (cv_add_u64(f->offset, pos, &at) && cv_add_u64(at, size, &end))
        error = cv_file_read(f->file, dst, size, at, &done);
    if (error)
        return cv_fail_sys(err, error, "cannot read %zu bytes at %llu of %s", size,
                           (unsigned long long)pos, f->shown.text);
    if (done == size) {
        cv_file_copy_count(&f->copy, size);
        return CV_OK;
    }
    CV_TRY(file_size(store, object, &end, err));
    return cv_fail_past_end(err, f->shown.text, pos, size, end);
}

static cv_at_once file_read_at_once(cv_store *store, const cv_store_range *r)
{
    file_store *f = (file_store *)store;
    uint64_t at;
    if (r->object != CV_FRAME_OBJECT || cv_file_copy_view(&f->copy, r->pos, 1) ||
        !cv_add_u64(f->offset, r->pos, &at))
        return CV_AT_ONCE_UNKNOWN;
    cv_at_once result = cv_file_read_at_once(f->file, r->dst, r->size, at);
    if (result == CV_AT_ONCE_READ) cv_file_copy_count(&f->copy, r->size);
    return result;
}

static void hint_range(cv_store *store, const cv_store_range *range)
{
    file_store *f = (file_store *)store;
    uint64_t at;
    if (cv_add_u64(f->offset, range->pos, &at)) cv_file_fetch(f->file, at, range->size);
}

static cv_status file_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                const cv_arrivals *arrivals, cv_error *err)
{
    return cv_store_read_deep(store, ranges, n, arrivals, hint_range, err);
}

static const uint8_t *file_view(cv_store *store, cv_object object, uint64_t pos, size_t size)
{
    file_store *f = (file_store *)store;
    return object == CV_FRAME_OBJECT ? cv_file_copy_view(&f->copy, pos, size) : NULL;
}

static void file_warm(cv_store *store, cv_object object, uint64_t pos, size_t size)
{
    file_store *f = (file_store *)store;
    if (object == CV_FRAME_OBJECT)
        cv_warm_bytes(cv_file_copy_view(&f->copy, pos, size), size);
}

static void file_read_anew(cv_store *store)
{
    cv_file_copy_stop(&((file_store *)store)->copy);
}

static cv_status file_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err)
{
    file_store *f = (file_store *)store;
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(cv_store_check_frame(store, object, err));
    int error = cv_file_write(f->file, src, size, pos);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot write %zu bytes at %llu of %s", size,
                       (unsigned long long)pos, f->shown.text);
}

static void file_take_room(cv_store *store, uint64_t pos, uint64_t size)
{
    file_store *f = (file_store *)store;
    uint64_t at;
    if (cv_add_u64(f->offset, pos, &at)) cv_file_take_room(f->file, at, size);
}

static bool file_clone(cv_store *store, uint64_t pos, cv_store *from, uint64_t there,
                       uint64_t size)
{
    file_store *f = (file_store *)store, *other = (file_store *)from;
    if (f->offset > 0 || other->offset > 0) return false;
    return cv_file_clone(f->file, pos, other->file, there, size) == 0;
}

static bool file_may_clone(cv_store *store, cv_store *from)
{
    return store->writable &&
           cv_file_may_clone(((file_store *)store)->file, ((file_store *)from)->file);
}

/* Copies in steps, to limit the memory. */
static cv_status copy_by_hand(cv_store *store, uint64_t from, uint64_t to, size_t size,
                              cv_error *err)
{
    enum { STEP = 256 * 1024 };
    uint8_t *stage = cv_malloc(STEP);
    if (!stage) return cv_fail_memory(err, STEP, "a copy");
    cv_status status = CV_OK;
    for (size_t done = 0; done < size && status == CV_OK;) {
        size_t step = size - done < STEP ? size - done : STEP;
        status = cv_store_read(store, CV_FRAME_OBJECT, from + done, stage, step, err);
        if (status == CV_OK)
            status = cv_store_write(store, CV_FRAME_OBJECT, to + done, stage, step, err);
        done += step;
    }
    cv_free(stage);
    return status;
}

static cv_status file_copy(cv_store *store, uint64_t from, uint64_t to, size_t size,
                           cv_error *err)
{
    file_store *f = (file_store *)store;
    uint64_t stored = 0, end;
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(file_size(store, CV_FRAME_OBJECT, &stored, err));
    if (!cv_add_u64(from, size, &end) || end > stored)
        return cv_fail_past_end(err, f->shown.text, from, size, stored);
    int error = cv_file_copy_within(f->file, from, to, size);
    if (error == ENOTSUP) return copy_by_hand(store, from, to, size, err);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot copy %zu bytes at %llu of %s", size,
                       (unsigned long long)from, f->shown.text);
}

static cv_status file_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err)
{
    file_store *f = (file_store *)store;
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(cv_store_check_frame(store, object, err));
    int error = cv_file_truncate(f->file, size);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot cut %s to %llu bytes", f->shown.text,
                       (unsigned long long)size);
}

static cv_status file_sync(cv_store *store, cv_object object, cv_error *err)
{
    file_store *f = (file_store *)store;
    CV_TRY(cv_store_check_frame(store, object, err));
    int error = cv_file_sync(f->file);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot sync %s", f->shown.text);
}

/* ---- Publishing and closing --------------------------------------------- */

static cv_status file_publish(cv_store *store, bool durable, cv_error *err)
{
    file_store *f = (file_store *)store;
    if (store->published) return CV_OK;
    cv_status status =
        cv_place_publish(&f->place, f->file, (cv_file){0}, durable, &store->published, err);
    if (!store->published) return status;
    cv_home_take(&f->place, f->file, &f->home);
    if (!f->place.is_left) cv_place_close(&f->place);
    return status;
}

static cv_status file_check_name(cv_store *store, cv_error *err)
{
    file_store *f = (file_store *)store;
    return cv_home_check(&f->home, f->file, &f->shown, err);
}

/* If this fails, the reader has a lock without a number: writers assume that the reader may be
 * reading any state. */
static void file_reads_state(cv_store *store, uint64_t state)
{
    cv_file file = ((file_store *)store)->file;
    if (state)
        (void)cv_file_share_number(file, state);
    else
        cv_file_unshare(file);
}

static bool file_has_readers(cv_store *store)
{
    return cv_file_is_shared(((file_store *)store)->file);
}

static bool file_has_others(cv_store *store, uint64_t state)
{
    return cv_file_is_shared_but(((file_store *)store)->file, state);
}

static bool file_has_writer(cv_store *store)
{
    return cv_file_ask_lock(((file_store *)store)->file) == EWOULDBLOCK;
}

static void file_close(cv_store *store)
{
    file_store *f = (file_store *)store;
    if (f->keeper) cv_rest_stop(&f->rest);
    if (!store->published && !f->leaves_temp && !cv_store_is_parents(store))
        cv_place_remove_temp(&f->place);
    cv_place_close(&f->place);
    cv_home_close(&f->home);
    cv_file_copy_free(&f->copy);
    close_file(f);
    if (f->keeper) forget_rest(f);
    cv_free(f);
}

static cv_status file_create_over(cv_store *old, cv_store **out, cv_error *err);
static cv_status file_unlink(cv_store *store, cv_watch *watch, cv_error *err);

static const cv_store_ops file_ops = {
    .name = "file",
    .stamp = file_stamp,
    .size = file_size,
    .read = file_read,
    .read_many = file_read_many,
    .read_at_once = file_read_at_once,
    .view = file_view,
    .warm = file_warm,
    .read_anew = file_read_anew,
    .write = file_write,
    .clone = file_clone,
    .may_clone = file_may_clone,
    .take_room = file_take_room,
    .copy = file_copy,
    .truncate = file_truncate,
    .sync = file_sync,
    .publish = file_publish,
    .reads_state = file_reads_state,
    .has_readers = file_has_readers,
    .has_others = file_has_others,
    .has_writer = file_has_writer,
    .check_name = file_check_name,
    .create_over = file_create_over,
    .unlink = file_unlink,
    .close = file_close,
};

/* ---- The same operations for a file that may rest ---------------------------- */

static cv_status resting_size(cv_store *store, cv_object object, uint64_t *size,
                              cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_size(store, object, size, err);
    end((file_store *)store);
    return status;
}

static cv_status resting_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                              size_t size, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_read(store, object, pos, dst, size, err);
    end((file_store *)store);
    return status;
}

static cv_status resting_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                   const cv_arrivals *arrivals, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_read_many(store, ranges, n, arrivals, err);
    end((file_store *)store);
    return status;
}

static cv_at_once resting_read_at_once(cv_store *store, const cv_store_range *range)
{
    if (!begins((file_store *)store)) return CV_AT_ONCE_UNKNOWN;
    cv_at_once result = file_read_at_once(store, range);
    end((file_store *)store);
    return result;
}

static cv_status resting_write(cv_store *store, cv_object object, uint64_t pos,
                               const void *src, size_t size, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_write(store, object, pos, src, size, err);
    end((file_store *)store);
    return status;
}

static void resting_take_room(cv_store *store, uint64_t pos, uint64_t size)
{
    if (!begins((file_store *)store)) return;
    file_take_room(store, pos, size);
    end((file_store *)store);
}

static cv_status resting_copy(cv_store *store, uint64_t from, uint64_t to, size_t size,
                              cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_copy(store, from, to, size, err);
    end((file_store *)store);
    return status;
}

static cv_status resting_truncate(cv_store *store, cv_object object, uint64_t size,
                                  cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_truncate(store, object, size, err);
    end((file_store *)store);
    return status;
}

static cv_status resting_sync(cv_store *store, cv_object object, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_sync(store, object, err);
    end((file_store *)store);
    return status;
}

static cv_status resting_publish(cv_store *store, bool durable, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_publish(store, durable, err);
    end((file_store *)store);
    return status;
}

/* If the file cannot be reopened, assumes that there are readers. */
static bool resting_has_readers(cv_store *store)
{
    if (!begins((file_store *)store)) return true;
    bool found = file_has_readers(store);
    end((file_store *)store);
    return found;
}

static bool resting_has_others(cv_store *store, uint64_t state)
{
    if (!begins((file_store *)store)) return true;
    bool found = file_has_others(store, state);
    end((file_store *)store);
    return found;
}

static cv_status resting_check_name(cv_store *store, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_check_name(store, err);
    end((file_store *)store);
    return status;
}

/* The new store uses the descriptors of the old store, which must not rest any more. */
static cv_status resting_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    CV_TRY(begin((file_store *)old, err));
    cv_status status = file_create_over(old, out, err);
    if (status != CV_OK) end((file_store *)old);
    return status;
}

static cv_status resting_unlink(cv_store *store, cv_watch *watch, cv_error *err)
{
    CV_TRY(begin((file_store *)store, err));
    cv_status status = file_unlink(store, watch, err);
    end((file_store *)store);
    return status;
}

static const cv_store_ops resting_ops = {
    .name = "file",
    .size = resting_size,
    .read = resting_read,
    .read_many = resting_read_many,
    .read_at_once = resting_read_at_once,
    .write = resting_write,
    .take_room = resting_take_room,
    .copy = resting_copy,
    .truncate = resting_truncate,
    .sync = resting_sync,
    .publish = resting_publish,
    .has_readers = resting_has_readers,
    .has_others = resting_has_others,
    .check_name = resting_check_name,
    .create_over = resting_create_over,
    .unlink = resting_unlink,
    .close = file_close,
};

static bool is_file(const cv_store *store)
{
    return store->ops == &file_ops || store->ops == &resting_ops;
}

/* Whether the path contains no symbolic link, and so stays below `root`. */
static bool is_below(cv_dir root, char *path, bool published)
{
    cv_file_info info;
    bool below = true;
    for (char *slash = strchr(path, '/'); slash && below; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        below =
            cv_dir_get_link_info(root, path, &info) == 0 && info.kind == CV_KIND_DIRECTORY;
        *slash = '/';
    }
    if (!below || !published) return below;
    return cv_dir_get_link_info(root, path, &info) == 0 && info.kind == CV_KIND_FILE;
}

cv_status cv_store_file_rest(cv_store *store, cv_keeper *keeper, const char *path,
                             cv_error *err)
{
    file_store *f = (file_store *)store;
    if (store->ops != &file_ops || !store->writable || f->offset > 0) return CV_OK;
    char *own = cv_strdup(path);
    if (!own) return cv_fail_memory(err, strlen(path), "a path");
    const char *slash = strrchr(path, '/');
    char *folder = slash ? cv_strndup(path, (size_t)(slash - path)) : cv_strdup(".");
    if (!folder || !is_below(keeper->root, own, store->published)) {
        cv_free(folder);
        cv_free(own);
        return folder ? CV_OK : cv_fail_memory(err, strlen(path), "a path");
    }
    f->path = own;
    f->folder = folder;
    f->keeper = cv_keeper_retain(keeper);
    if (!store->published) {
        cv_temporaries_remove(&f->place.listed);
        f->place.root = keeper->root;
        f->place.folder = folder;
        cv_place_list(&f->place);
    }
    store->ops = &resting_ops;
    cv_rest_start(&f->rest, sleep_now, wake);
    return CV_OK;
}

/* ---- Opening ------------------------------------------------------------ */

static cv_status new_store(cv_file file, const char *path, cv_store **out, cv_error *err)
{
    file_store *f = cv_calloc(1, sizeof *f);
    if (!f) return cv_fail_memory(err, sizeof *f, "a store");
    f->base.ops = &file_ops;
    f->base.opened = cv_os_now();
    f->base.slow_writes = true;
    f->base.compacts_itself = true;
    f->file = file;
    f->most = UINT64_MAX;
    f->shown = cv_show_path(path);
    cv_file_copy_init(&f->copy, file, 0, 0, 0);
    *out = &f->base;
    return CV_OK;
}

cv_status cv_store_file_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                             cv_error *err)
{
    cv_home home = {0};
    cv_file file;
    if (writable && offset > 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "a frame inside a file is read-only");
    CV_TRY(file_find(path, offset, writable, &file, &home, err));
    cv_status status = new_store(file, path, out, err);
    if (status != CV_OK) {
        cv_home_close(&home);
        cv_file_close(&file);
        return status;
    }
    ((file_store *)*out)->home = home;
    ((file_store *)*out)->offset = offset;
    (*out)->writable = writable;
    (*out)->published = true;
    return CV_OK;
}

cv_status cv_store_file_part(cv_file file, const char *path, uint64_t offset, uint64_t size,
                             cv_store **out, cv_error *err)
{
    cv_file own;
    int error;
    do {
        error = cv_file_again(file, &own);
    } while (cv_descriptors_make_room(error));
    if (error) return cv_fail_open(err, error, path);
    cv_status status = new_store(own, path, out, err);
    if (status != CV_OK) {
        cv_file_close(&own);
        return status;
    }
    ((file_store *)*out)->offset = offset;
    ((file_store *)*out)->most = size;
    (*out)->published = true;
    return CV_OK;
}

void cv_store_file_keep(cv_store *store, uint64_t most)
{
    file_store *f = (file_store *)store;
    uint64_t size = 0;
    if (store->ops != &file_ops || store->writable) return;
    if (file_size(store, CV_FRAME_OBJECT, &size, NULL) != CV_OK) return;
    cv_file_copy_init(&f->copy, f->file, f->offset, size, most);
}

static cv_status create_temp(cv_place *place, cv_file *file, cv_error *err)
{
    int error = cv_place_create_file(place, file);
    if (error) return cv_fail_sys(err, error, "cannot create %s", place->shown.text);
    error = cv_file_lock(*file);
    if (!error) return CV_OK;
    cv_place_remove_temp(place);
    cv_file_close(file);
    return cv_fail_lock(err, error, place->shown.text);
}

static cv_status create_at(cv_place *place, cv_store **out, cv_error *err)
{
    cv_file file;
    cv_status status = create_temp(place, &file, err);
    if (status != CV_OK) {
        cv_place_close(place);
        return status;
    }
    status = new_store(file, place->shown.text, out, err);
    if (status != CV_OK) {
        cv_place_remove_temp(place);
        cv_place_close(place);
        cv_file_close(&file);
        return status;
    }
    ((file_store *)*out)->place = *place;
    cv_place_list(&((file_store *)*out)->place);
    (*out)->writable = true;
    return CV_OK;
}

cv_status cv_store_file_create(const char *path, bool overwrite, cv_store **out,
                               cv_error *err)
{
    cv_place place;
    CV_TRY(cv_place_open(path, overwrite, &place, err));
    return create_at(&place, out, err);
}

uint64_t cv_store_file_offset(const cv_store *store)
{
    return is_file(store) ? ((const file_store *)store)->offset : 0;
}

uint64_t cv_store_file_changed(cv_store *store)
{
    cv_file_info info = {0};
    file_store *f = (file_store *)store;
    if (!is_file(store) || !begins(f)) return 0;
    (void)cv_file_get_info(f->file, &info);
    end(f);
    return info.changed_ns;
}

const char *cv_store_file_temp(const cv_store *store)
{
    bool has_one = is_file(store) && !store->published;
    return has_one ? ((const file_store *)store)->place.temp : NULL;
}

cv_status cv_store_file_hold_place(cv_store *store, cv_error *err)
{
    file_store *f = (file_store *)store;
    if (!is_file(store) || store->published) return CV_OK;
    CV_TRY(begin(f, err));
    cv_status status = cv_place_hold(&f->place, err);
    end(f);
    return status;
}

void cv_store_file_let_place_go(cv_store *store)
{
    file_store *f = (file_store *)store;
    if (!is_file(store) || store->published || !begins(f)) return;
    cv_place_let_go(&f->place);
    end(f);
}

void cv_store_file_leave_temp(cv_store *store, bool leave)
{
    file_store *f = (file_store *)store;
    f->leaves_temp = leave;
    cv_temporaries_remove(&f->place.listed);
    if (!leave) cv_place_list(&f->place);
}

static cv_status file_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    const file_store *f = (file_store *)old;
    cv_place place;
    CV_TRY(cv_home_place(&f->home, f->file, (cv_file){0}, &f->shown, &place, err));
    return create_at(&place, out, err);
}

/* Deletes one name in one step. `watch` can stop the call only before that step. */
static cv_status file_unlink(cv_store *store, cv_watch *watch, cv_error *err)
{
    const file_store *f = (file_store *)store;
    cv_place place;
    cv_watch_expect(watch, CV_FILE_BYTES);
    CV_TRY(cv_watch_tick(watch, 0, err));
    CV_TRY(cv_home_place(&f->home, f->file, (cv_file){0}, &f->shown, &place, err));
    cv_status status = cv_home_check(&f->home, f->file, &f->shown, err);
    int error = status == CV_OK ? cv_dir_remove(place.dir, place.name) : 0;
    if (error) status = cv_fail_sys(err, error, "cannot delete %s", f->shown.text);
    cv_place_close(&place);
    return status;
}
