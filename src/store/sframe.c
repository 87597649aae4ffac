/* Room: store. Recognises and removes the files that make a directory an array. Never removes
 * foreign files. A directory that contains a foreign file stays. */
#include "store/sframe.h"

#include "store/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* C-Blosc2's own lock file. */
static const char foreign_lock[] = ".b2lock";

static const char chunk_suffix[] = ".chunk";

cv_chunk_name cv_sframe_chunk_name(cv_object id)
{
    cv_chunk_name name;
    (void)snprintf(name.text, sizeof name.text, "%08llX%s", (unsigned long long)id,
                   chunk_suffix);
    return name;
}

static bool is_chunk_name(const char *name)
{
    size_t digits = strspn(name, "0123456789ABCDEFabcdef");
    return digits >= 8 && digits <= 16 && strcmp(name + digits, chunk_suffix) == 0;
}

static bool is_array_name(const char *name)
{
    return is_chunk_name(name) || strcmp(name, CV_SFRAME_FRAME) == 0 ||
           strcmp(name, CV_SFRAME_NEW_FRAME) == 0 || strcmp(name, CV_SFRAME_LOCK) == 0 ||
           strcmp(name, foreign_lock) == 0;
}

/* Also true if the file does not exist any more: a writer that closes deletes old chunks. */
static bool is_regular_file(cv_dir dir, const char *name)
{
    cv_file_info info;
    int error = cv_dir_get_link_info(dir, name, &info);
    return error ? error == ENOENT : info.kind == CV_KIND_FILE;
}

static int append_id(cv_object **ids, size_t *n, cv_object id)
{
    bool is_full = (*n & (*n - 1)) == 0; /* 0 or a power of two */
    if (is_full) {
        cv_object *grown =
            cv_realloc(*ids, *n * sizeof grown[0], (*n ? *n * 2 : 1) * sizeof grown[0]);
        if (!grown) return ENOMEM;
        *ids = grown;
    }
    (*ids)[(*n)++] = id;
    return 0;
}

static bool is_chunk_of(const char *name, cv_object *id)
{
    if (!is_chunk_name(name)) return false;
    unsigned long long number = strtoull(name, NULL, 16);
    *id = (cv_object)number;
    return number <= INT64_MAX && strcmp(cv_sframe_chunk_name(*id).text, name) == 0;
}

int cv_sframe_list(cv_dir dir, cv_object **ids, size_t *n)
{
    *ids = NULL;
    *n = 0;
    cv_listing listing;
    int error = cv_listing_open_at(dir, ".", &listing);
    if (error) return error;
    for (const char *name; !error && (name = cv_listing_next(&listing, &error)) != NULL;) {
        cv_object id;
        if (is_chunk_of(name, &id)) error = append_id(ids, n, id);
    }
    cv_listing_close(&listing);
    if (!error) return 0;
    cv_free(*ids);
    *ids = NULL;
    *n = 0;
    return error;
}

bool cv_sframe_is_array_at(cv_dir dir, const char *name)
{
    cv_listing listing;
    int error = cv_listing_open_at(dir, name, &listing);
    if (error) return false;
    bool has_frame = false, is_array = true;
    for (const char *n; is_array && (n = cv_listing_next(&listing, &error)) != NULL;) {
        is_array = is_array_name(n) && is_regular_file(listing.dir, n);
        has_frame = has_frame || strcmp(n, CV_SFRAME_FRAME) == 0;
    }
    cv_listing_close(&listing);
    return is_array && has_frame && !error;
}

/* Removes the array's files in one pass. On some systems listing skips names if the directory
 * changes, so the caller repeats the pass. */
static bool remove_files_at(cv_dir dir, const char *name)
{
    cv_listing listing;
    bool removed = false;
    int error = cv_listing_open_at(dir, name, &listing);
    if (error) return false;
    for (const char *n; (n = cv_listing_next(&listing, &error)) != NULL;)
        if (is_array_name(n) && cv_dir_remove(listing.dir, n) == 0) removed = true;
    cv_listing_close(&listing);
    return removed;
}

void cv_sframe_remove_at(cv_dir dir, const char *name)
{
    bool progress = true;
    while (progress && cv_dir_remove_directory(dir, name) != 0)
        progress = remove_files_at(dir, name);
}

static cv_status remove_chunks(cv_dir dir, const cv_object *ids, size_t n_ids,
                               cv_watch *watch, size_t *n, cv_error *err)
{
    cv_watch_expect(watch, (int64_t)n_ids * CV_FILE_BYTES);
    CV_TRY(cv_watch_tick(watch, 0, err)); /* nothing is deleted yet */
    for (size_t i = 0; i < n_ids; i++) {
        if (cv_dir_remove(dir, cv_sframe_chunk_name(ids[i]).text) == 0) (*n)++;
        CV_TRY(cv_watch_tick(watch, CV_FILE_BYTES, err));
    }
    return CV_OK;
}

/* Once all chunks are deleted, ignores a stop and deletes the other files. */
static cv_status remove_watched(cv_dir dir, cv_watch *watch, size_t *n, cv_error *err)
{
    cv_object *ids;
    size_t n_ids;
    if (cv_sframe_list(dir, &ids, &n_ids) != 0) return CV_OK;
    cv_status status = n_ids > 0 ? remove_chunks(dir, ids, n_ids, watch, n, err) : CV_OK;
    cv_free(ids);
    return *n < n_ids ? status : CV_OK;
}

cv_status cv_sframe_delete_at(cv_dir dir, const char *name, cv_watch *watch, size_t *n,
                              cv_error *err)
{
    cv_dir inner;
    *n = 0;
    if (watch && cv_dir_open(dir, name, CV_OPEN_NO_LINK, &inner) == 0) {
        cv_status status = remove_watched(inner, watch, n, err);
        cv_dir_close(&inner);
        CV_TRY(status);
    }
    cv_sframe_remove_at(dir, name);
    return CV_OK;
}

/* ---- Chunk files ----
 *
 * The slots of open chunk files, by id. Nothing is read or written under a slot's lock. If another
 * file is in use in the slot, a file is opened for only one call. */

void cv_chunk_files_init(cv_chunk_files *files, cv_dir dir)
{
    files->dir = dir;
    files->has_access = false;
    for (int i = 0; i < CV_CHUNK_SLOTS; i++) {
        files->slots[i].id = -1;
        files->slots[i].file = (cv_file){0};
        files->slots[i].users = 0;
        cv_mutex_init(&files->slots[i].lock);
    }
}

void cv_chunk_files_set_access(cv_chunk_files *files, const cv_os_access *access)
{
    files->has_access = true;
    files->access = *access;
    files->access.mode &= 0666;
}

/* Call with the slot's lock. */
static void close_idle(cv_chunk_slot *slot)
{
    if (slot->users == 0) cv_file_close(&slot->file);
}

static void forget(cv_chunk_slot *slot)
{
    slot->id = -1;
    close_idle(slot);
}

void cv_chunk_files_close(cv_chunk_files *files)
{
    for (int i = 0; i < CV_CHUNK_SLOTS; i++) {
        forget(&files->slots[i]);
        cv_mutex_destroy(&files->slots[i].lock);
    }
}

int cv_chunk_files_give_up(cv_chunk_files *files)
{
    int n = 0;
    for (int i = 0; i < CV_CHUNK_SLOTS; i++) {
        cv_chunk_slot *slot = &files->slots[i];
        if (!cv_mutex_try_lock(&slot->lock)) continue;
        if (slot->users == 0 && cv_file_is_open(slot->file)) {
            forget(slot);
            n++;
        }
        cv_mutex_unlock(&slot->lock);
    }
    return n;
}

static cv_chunk_slot *slot_of(cv_chunk_files *files, cv_object id)
{
    return &files->slots[id % CV_CHUNK_SLOTS];
}

/* Sets the access of a new file before anything is written. */
static int open_file(const cv_chunk_files *files, cv_object id, unsigned how, cv_file *out)
{
    cv_chunk_name name = cv_sframe_chunk_name(id);
    uint32_t mode = files->has_access ? 0600 : 0666;
    int error = EEXIST;
    if (how & CV_OPEN_CREATE)
        error = cv_open_file(files->dir, name.text, how | CV_OPEN_NEW, mode, out);
    if (error == EEXIST && how & CV_OPEN_EMPTY) {
        error = cv_dir_remove(files->dir, name.text);
        if (!error) error = cv_open_file(files->dir, name.text, how | CV_OPEN_NEW, mode, out);
    } else if (error == EEXIST)
        return cv_open_file(files->dir, name.text, how & ~(unsigned)CV_OPEN_CREATE, 0, out);
    if (error || !files->has_access) return error;
    error = cv_file_set_access(*out, &files->access);
    if (error) cv_file_close(out);
    return error;
}

/* Opens a file into its slot, or for one call if the slot is in use. Call with the slot's lock. */
static int open_into(cv_chunk_files *files, cv_object id, unsigned how, cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    bool is_free = slot->users == 0;
    if (is_free) forget(slot); /* frees a descriptor first */
    int error = open_file(files, id, how, &out->file);
    out->slot = NULL;
    if (error || !is_free) return error;
    slot->id = id;
    slot->file = out->file;
    slot->users = 1;
    out->slot = slot;
    return 0;
}

int cv_chunk_acquire(cv_chunk_files *files, cv_object id, cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    int error = 0;
    cv_mutex_lock(&slot->lock);
    if (slot->id == id) {
        slot->users++;
        *out = (cv_chunk_handle){slot->file, slot};
    } else {
        error = open_into(files, id, CV_OPEN_READ, out);
    }
    cv_mutex_unlock(&slot->lock);
    return error;
}

int cv_chunk_acquire_writable(cv_chunk_files *files, cv_object id, bool anew,
                              cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | (anew ? CV_OPEN_EMPTY : 0U);
    cv_mutex_lock(&slot->lock);
    int error = open_into(files, id, how, out);
    cv_mutex_unlock(&slot->lock);
    return error;
}

/* Whether `name` is this file, not a symbolic link or another file that replaced it. */
static bool is_file(cv_dir dir, const char *name, cv_file file)
{
    cv_file_info opened = {0}, named = {0};
    return cv_file_get_info(file, &opened) == 0 &&
           cv_dir_get_link_info(dir, name, &named) == 0 && named.kind == CV_KIND_FILE &&
           opened.device == named.device && opened.inode == named.inode;
}

static int link_file(cv_dir dir, const char *name, cv_dir from, const char *there,
                     cv_file file)
{
    int error = cv_dir_link(from, there, dir, name);
    if (error == EEXIST && cv_dir_remove(dir, name) == 0)
        error = cv_dir_link(from, there, dir, name);
    if (error || is_file(dir, name, file)) return error;
    (void)cv_dir_remove(dir, name);
    return ESTALE;
}

int cv_chunk_link(cv_chunk_files *files, cv_object id, const cv_chunk_files *from,
                  cv_object there, cv_file file)
{
    cv_chunk_slot *slot = slot_of(files, id);
    cv_chunk_name name = cv_sframe_chunk_name(id), old = cv_sframe_chunk_name(there);
    cv_mutex_lock(&slot->lock);
    if (slot->id == id) forget(slot);
    int error = link_file(files->dir, name.text, from->dir, old.text, file);
    cv_mutex_unlock(&slot->lock);
    return error;
}

void cv_chunk_release(cv_chunk_handle handle)
{
    if (!handle.slot) {
        cv_file_close(&handle.file);
        return;
    }
    cv_mutex_lock(&handle.slot->lock);
    handle.slot->users--;
    if (handle.slot->id < 0) close_idle(handle.slot);
    cv_mutex_unlock(&handle.slot->lock);
}

int cv_chunk_remove(cv_chunk_files *files, cv_object id)
{
    cv_chunk_slot *slot = slot_of(files, id);
    cv_chunk_name name = cv_sframe_chunk_name(id);
    cv_mutex_lock(&slot->lock);
    if (slot->id == id) forget(slot);
    int error = cv_dir_remove(files->dir, name.text);
    cv_mutex_unlock(&slot->lock);
    return error == ENOENT ? 0 : error;
}

/* ---- Shared chunks ----
 *
 * An entry is the file's state when it was shared. A file that lost its name or was replaced is not
 * checked, because only this store removes or replaces its files. */

typedef struct shared_chunk {
    cv_object object;
    cv_file_info info;
} shared_chunk;

void cv_shared_chunks_init(cv_shared_chunks *shared)
{
    cv_mutex_init(&shared->lock);
    shared->list = (cv_buffer){0};
}

void cv_shared_chunks_destroy(cv_shared_chunks *shared)
{
    cv_buffer_free(&shared->list);
    cv_mutex_destroy(&shared->lock);
}

bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file)
{
    shared_chunk entry = {.object = object};
    if (cv_file_get_info(file, &entry.info)) return false;
    cv_mutex_lock(&shared->lock);
    cv_status status = cv_buffer_append(&shared->list, &entry, sizeof entry, NULL);
    cv_mutex_unlock(&shared->lock);
    return status == CV_OK;
}

/* Ignores the link count, owner and permissions, which change when the job is deleted, because the
 * file's other name is in the job. */
static bool is_changed(const cv_file_info *was, const cv_file_info *is)
{
    bool same_file = was->device == is->device && was->inode == is->inode;
    return same_file && (was->size != is->size || was->changed_ns != is->changed_ns);
}

cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err)
{
    const shared_chunk *list = (const shared_chunk *)(const void *)shared->list.data;
    size_t n = shared->list.size / sizeof list[0];
    for (size_t i = 0; i < n; i++) {
        cv_chunk_name name = cv_sframe_chunk_name(list[i].object);
        cv_file_info is;
        if (cv_dir_get_link_info(dir, name.text, &is) || !is_changed(&list[i].info, &is))
            continue;
        return cv_fail(
            err, CATERVA_ECORRUPT, -1,
            "%s was changed through the part that it was merged from: it had "
            "%llu bytes and has %llu now; roll back, and merge again without that part",
            name.text, (unsigned long long)list[i].info.size, (unsigned long long)is.size);
    }
    return CV_OK;
}

void cv_shared_chunks_forget(cv_shared_chunks *shared) { cv_buffer_free(&shared->list); }
