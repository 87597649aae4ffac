/* Open files are few: a process may have 64 of them, or 1024. Some that stores hold save
 * time only, and when one is wanted that the system does not give, those go. */
#ifndef CV_STORE_DESCRIPTORS_H
#define CV_STORE_DESCRIPTORS_H

#include "base/os_dir.h"

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

#endif
