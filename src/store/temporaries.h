/* The temporary files and directories of this process: what is written and not yet
 * published. Listed so that a program that must leave at once leaves none of them. */
#ifndef CV_STORE_TEMPORARIES_H
#define CV_STORE_TEMPORARIES_H

#include "base/os_file.h"

/* One of them; part of whatever knows where it is. */
typedef struct cv_temporary {
    void (*remove)(struct cv_temporary *temporary); /* called with the list's lock */
    cv_os_moment made;                              /* by this process? */
    bool is_listed;
    struct cv_temporary *next, *before;
} cv_temporary;

/* Lists one that is there now; it stays where it is in memory until it is taken off. */
void cv_temporaries_add(cv_temporary *temporary, void (*remove)(cv_temporary *temporary));

/* Takes it off; does nothing for one that is not listed. */
void cv_temporaries_remove(cv_temporary *temporary);

/* Removes all of them. */
void cv_temporaries_abandon(void);

#endif
