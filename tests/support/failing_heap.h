/* An allocator for the library whose n-th allocation fails, and which counts the allocations that
 * were not released. For use by one thread. */
#ifndef SUPPORT_FAILING_HEAP_H
#define SUPPORT_FAILING_HEAP_H

#include <stdbool.h>

/* Installs the allocator. Call it first in a program, before the library allocates anything. */
void heap_install(void);

/* Until heap_disarm, the n-th allocation from now on (0: the next) fails; all are counted. */
void heap_arm(long n);

/* Makes all allocations succeed again. Returns whether the n-th one was reached, and failed. */
bool heap_disarm(void);

/* Number of allocations made while armed that are not released yet. */
int heap_live(void);

#endif
