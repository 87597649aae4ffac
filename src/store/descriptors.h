/* The number of file descriptors of a process is limited (64 or 1024). Stores close spare
 * descriptors on demand. */
#ifndef CV_STORE_DESCRIPTORS_H
#define CV_STORE_DESCRIPTORS_H

#include "base/os_dir.h"
#include "base/status.h"
#include "base/thread.h"

/* An object with descriptors that it can close. */
typedef struct cv_fd_holder {
    /* Closes idle descriptors and returns their number. Must not wait for a lock, which the caller
     * may hold. Any thread. */
    int (*give_up)(struct cv_fd_holder *holder);
    struct cv_fd_holder *next, *before;
} cv_fd_holder;

/* give_up may be called from add to remove. Any thread. */
void cv_fd_holder_add(cv_fd_holder *holder);
void cv_fd_holder_remove(cv_fd_holder *holder);

/* Do the same as cv_dir_open_file and cv_dir_open. If no descriptor is free, holders close spare
 * ones. If no holder has a spare descriptor, wait briefly until one is free. */
int cv_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);
int cv_open_dir(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* Lists the directory `name` of `dir`. Refuses a symbolic link. */
int cv_listing_open_at(cv_dir dir, const char *name, cv_listing *out);

/* Does the same as cv_dir_create_temp_file, and tries again as cv_open_file does. */
int cv_open_temp_file(cv_dir dir, const char *name, uint32_t mode, char temp[CV_OS_TEMP_NAME],
                      cv_file *out);

/* If `error` says that descriptors ran out, makes the holders close spare ones. Returns whether
 * they closed any. */
bool cv_descriptors_make_room(int error);

/* ---- Files that rest ----
 *
 * More files can be open for writing than there are descriptors. Up to CV_REST_AWAKE of them are
 * awake. The others rest: they are closed, and reopened when used. The file that has been awake for
 * longest rests first. When descriptors run out, more files rest. */

typedef struct cv_resting cv_resting;
struct cv_resting {
    /* Closes the descriptors and returns true, or changes nothing and returns false. Opens no
     * descriptor and waits for no lock. */
    bool (*sleep)(cv_resting *rest);
    cv_status (*wake)(cv_resting *rest, cv_error *err);
    cv_mutex lock; /* guards `users` and `is_resting` */
    int users;
    bool is_resting;
    cv_resting *next, *before; /* in the list of awake files */
};

/* cv_rest_start adds an awake file, whose `rest` must not move until cv_rest_stop. After
 * cv_rest_stop the file does not rest. */
void cv_rest_start(cv_resting *rest, bool (*sleep)(cv_resting *rest),
                   cv_status (*wake)(cv_resting *rest, cv_error *err));
void cv_rest_stop(cv_resting *rest);

/* cv_rest_begin wakes the file if it rests, and keeps it awake until cv_rest_end. Any thread. */
cv_status cv_rest_begin(cv_resting *rest, cv_error *err);
void cv_rest_end(cv_resting *rest);

#endif
