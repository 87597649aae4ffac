/* Room: store. Open chunk files, kept in slots by id. A slot's lock is held to
 * find, open and count, never while bytes are read or written; a file whose
 * slot is taken by another one in use is opened for the one call. */
#include "store/chunk_files.h"

#include "base/os.h"
#include "store/descriptors.h"
#include "store/sframe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void cv_chunk_files_init(cv_chunk_files *files, int dir_fd)
{
    files->dir_fd = dir_fd;
    files->has_access = false;
    for (int i = 0; i < CV_CHUNK_SLOTS; i++) {
        files->slots[i].id = -1;
        files->slots[i].fd = -1;
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
    if (slot->users > 0 || slot->fd < 0) return;
    close(slot->fd);
    slot->fd = -1;
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
        if (slot->users == 0 && slot->fd >= 0) {
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
static int open_file(const cv_chunk_files *files, cv_object id, int flags, int *fd)
{
    cv_chunk_name name = cv_sframe_chunk_name(id);
    int mode = files->has_access ? 0600 : 0666;
    int error = EEXIST;
    if (flags & O_CREAT)
        error = cv_open_at(files->dir_fd, name.text, flags | O_EXCL, mode, fd);
    if (error == EEXIST) return cv_open_at(files->dir_fd, name.text, flags & ~O_CREAT, 0, fd);
    if (error || !files->has_access) return error;
    error = cv_os_set_access(*fd, &files->access);
    if (error) close(*fd);
    return error;
}

/* Opens into the slot when nobody uses it, else beside it. With the lock. */
static int open_into(cv_chunk_files *files, cv_object id, int flags, cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    bool is_free = slot->users == 0;
    if (is_free) forget(slot); /* before another descriptor is asked for */
    int error = open_file(files, id, flags, &out->fd);
    out->slot = NULL;
    if (error || !is_free) return error;
    slot->id = id;
    slot->fd = out->fd;
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
        *out = (cv_chunk_handle){slot->fd, slot};
    } else {
        error = open_into(files, id, O_RDONLY, out);
    }
    cv_mutex_unlock(&slot->lock);
    return error;
}

int cv_chunk_acquire_writable(cv_chunk_files *files, cv_object id, bool anew,
                              cv_chunk_handle *out)
{
    cv_chunk_slot *slot = slot_of(files, id);
    cv_mutex_lock(&slot->lock);
    int error = open_into(files, id, O_RDWR | O_CREAT | (anew ? O_TRUNC : 0), out);
    cv_mutex_unlock(&slot->lock);
    return error;
}

void cv_chunk_release(cv_chunk_handle handle)
{
    if (!handle.slot) {
        close(handle.fd);
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
    int error = unlinkat(files->dir_fd, name.text, 0) ? errno : 0;
    cv_mutex_unlock(&slot->lock);
    return error == ENOENT ? 0 : error;
}
