/* Open files are few: a process may have 64 of them, or 1024. Some that stores hold save
 * time only, and when one is wanted that the system does not give, those go. */
#ifndef CV_STORE_DESCRIPTORS_H
#define CV_STORE_DESCRIPTORS_H

#include "base/os_dir.h"
#include "base/status.h"
#include "base/thread.h"

/* Holds descriptors that it can do without. */
typedef struct cv_fd_holder {
    /* Closes some that nobody uses at this moment and returns how many. Must not wait,
     * for any lock: the caller may hold it. Any thread. */
    int (*give_up)(struct cv_fd_holder *holder);
    struct cv_fd_holder *next, *before;
} cv_fd_holder;

/* From add to remove, give_up may be called. Any thread. */
void cv_fd_holder_add(cv_fd_holder *holder);
void cv_fd_holder_remove(cv_fd_holder *holder);

/* As cv_dir_open_file and cv_dir_open; where process or system have no descriptor left,
 * holders give theirs up, and for a moment one is waited for that is in use. */
int cv_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);
int cv_open_dir(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* As cv_dir_create_temp_file, in the same way. */
int cv_open_temp_file(cv_dir dir, const char *name, uint32_t mode, char temp[CV_OS_TEMP_NAME],
                      cv_file *out);

/* The holders give up some, unless `error` says something else. False: there were none. */
bool cv_descriptors_make_room(int error);

/* ---- Files that rest ----
 *
 * Files that are open for writing in numbers that no process has descriptors for: a few are
 * awake, with their descriptors, and the others rest, and are opened again when they are used.
 * Beyond CV_REST_AWAKE the one that has been awake for longest rests, and when the process has
 * no descriptor left, more of them. */

typedef struct cv_resting cv_resting;
struct cv_resting {
    /* Closes the descriptors and returns true, or returns false and changes nothing. Opens
     * none, and waits for no lock. */
    bool (*sleep)(cv_resting *rest);
    cv_status (*wake)(cv_resting *rest, cv_error *err);
    cv_mutex lock; /* guards these two: */
    int users;
    bool is_resting;
    cv_resting *next, *before; /* among those that are awake */
};

/* One that is awake. It stays where it is in memory until cv_rest_stop, after which it is not
 * put to rest any more. */
void cv_rest_start(cv_resting *rest, bool (*sleep)(cv_resting *rest),
                   cv_status (*wake)(cv_resting *rest, cv_error *err));
void cv_rest_stop(cv_resting *rest);

/* From begin to end it is awake. Any thread. */
cv_status cv_rest_begin(cv_resting *rest, cv_error *err);
void cv_rest_end(cv_resting *rest);

#endif
