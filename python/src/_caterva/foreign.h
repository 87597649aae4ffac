/* Python on threads that are not Python's: the library's, which tell that a read is done,
 * ask for headers or for bytes.
 *
 * The interpreter makes and deletes the state of a thread under a lock of its own, without
 * the GIL. CPython 3.11 finds that lock taken for good in a child of a fork that comes
 * meanwhile: 7 of 4,700 forks beside reads that nobody waits for. So a fork waits here. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "extension.h"

typedef struct foreign {
    PyThreadState *made; /* NULL: the thread has a state already */
    PyGILState_STATE gil;
    bool is_in;
} foreign;

/* With the GIL from here on, on any thread; unless `is_in` is false: the interpreter is ending,
 * and the library's threads may touch nothing of Python's any more. */
foreign foreign_enter(void);
void foreign_leave(foreign f);

/* Once in a process, with the GIL: forks and the end of the interpreter wait from then on. -1
 * with an exception. */
int foreign_init(void);

#endif
