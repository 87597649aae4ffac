/* Room: store. Open chunk files, kept in slots by id. A slot's lock is held to
 * find, open and count, never while bytes are read or written; a file whose
 * slot is taken by another one in use is opened for the one call. */
#include "store/chunk_files.h"

#include "base/os_dir.h"
#include "store/descriptors.h"
#include "store/sframe.h"

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

/* Call with the lock. */
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

/* One that is made gets its access before there is anything to read. */
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

/* Opens into the slot when nobody uses it, else beside it. With the lock. */
static int open_into(cv_chunk_files *files, cv_object id, unsigned how, cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    bool is_free = slot->users == 0;
    if (is_free) forget(slot); /* before another descriptor is asked for */
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

/* Is it that file, and no symbolic link or what others have put in its place? */
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
