/* Descriptors are scarce (64 or 1024 per process). Stores give up spare ones on demand. */
#ifndef CV_STORE_DESCRIPTORS_H
#define CV_STORE_DESCRIPTORS_H

#include "base/os_dir.h"
#include "base/status.h"
#include "base/thread.h"

/* Holds descriptors that it can do without. */
typedef struct cv_fd_holder {
    /* Closes idle ones, returns how many. Must not wait for any lock: the caller may hold
     * it. Any thread. */
    int (*give_up)(struct cv_fd_holder *holder);
    struct cv_fd_holder *next, *before;
} cv_fd_holder;

/* From add to remove, give_up may be called. Any thread. */
void cv_fd_holder_add(cv_fd_holder *holder);
void cv_fd_holder_remove(cv_fd_holder *holder);

/* As cv_dir_open_file and cv_dir_open; without free descriptors, holders give theirs up,
 * and one in use is waited for briefly. */
int cv_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out);
int cv_open_dir(cv_dir dir, const char *name, unsigned how, cv_dir *out);

/* Lists the directory `name` of `dir`. Links are refused: a name must not lead elsewhere. */
int cv_listing_open_at(cv_dir dir, const char *name, cv_listing *out);

/* As cv_dir_create_temp_file, in the same way. */
int cv_open_temp_file(cv_dir dir, const char *name, uint32_t mode, char temp[CV_OS_TEMP_NAME],
                      cv_file *out);

/* The holders give up some, unless `error` says something else. False: there were none. */
bool cv_descriptors_make_room(int error);

/* ---- Files that rest ----
 *
 * Files open for writing beyond the descriptor limit: up to CV_REST_AWAKE are awake; others
 * rest and are reopened for use. The longest awake rests first; more rest when descriptors
 * run out. */

typedef struct cv_resting cv_resting;
struct cv_resting {
    /* Closes the descriptors and returns true, or changes nothing. Opens none, waits for no
     * lock. */
    bool (*sleep)(cv_resting *rest);
    cv_status (*wake)(cv_resting *rest, cv_error *err);
    cv_mutex lock; /* guards these two: */
    int users;
    bool is_resting;
    cv_resting *next, *before; /* among those that are awake */
};

/* Adds an awake one, which must not move until cv_rest_stop; then it is never put to
 * rest. */
void cv_rest_start(cv_resting *rest, bool (*sleep)(cv_resting *rest),
                   cv_status (*wake)(cv_resting *rest, cv_error *err));
void cv_rest_stop(cv_resting *rest);

/* From begin to end it is awake. Any thread. */
cv_status cv_rest_begin(cv_resting *rest, cv_error *err);
void cv_rest_end(cv_resting *rest);

#endif
