/* Calling Python on threads of the library: to report that a read has ended, and to get headers
 * or bytes.
 *
 * The interpreter creates and deletes thread states under a lock of its own, without the GIL. In
 * CPython 3.11 a child that is forked meanwhile finds that lock held forever (7 of 4,700 forks
 * during background reads). So forks wait for such calls here. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "extension.h"

typedef struct foreign {
    PyThreadState *made; /* NULL: the thread had a state already */
    PyGILState_STATE gil;
    bool is_in;
} foreign;

/* Takes the GIL, on any thread. While the interpreter is shutting down, returns `is_in` false
 * instead: the library's threads must not touch Python objects any more. */
foreign foreign_enter(void);
void foreign_leave(foreign f);

/* Returns whether the interpreter is shutting down and has refused a thread of the library: a call of
 * this thread may have failed for that. False on the thread that shuts the interpreter down. */
bool foreign_was_refused(void);

/* Adds hooks: a fork waits for background reads, and exit for the threads that entered. Call once
 * per process, with the GIL. Returns -1 with an exception. */
int foreign_init(void);

#endif
