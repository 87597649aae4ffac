/* Files that are open for writing in numbers that no process has descriptors for: a few are
 * awake, with their descriptors, and the others rest, and are opened again when they are used.
 * Beyond CV_REST_AWAKE the one that has been awake for longest rests, and when the process has
 * no descriptor left, more of them. */
#ifndef CV_STORE_REST_H
#define CV_STORE_REST_H

#include "base/status.h"
#include "base/thread.h"

enum { CV_REST_AWAKE = 48 }; /* two descriptors each */

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
