/* An allocator for the library whose n-th allocation fails, and which counts unreleased memory. For
 * one thread. */
#ifndef SUPPORT_FAILING_HEAP_H
#define SUPPORT_FAILING_HEAP_H

#include <stdbool.h>

/* Call first in a program, before the library allocates anything. */
void heap_install(void);

/* Until heap_disarm, the n-th allocation from now (0: the next) fails, and all others are
 * counted. */
void heap_arm(long n);

/* Makes all allocations succeed again. Returns whether one failed: false if there were at most
 * n. */
bool heap_disarm(void);

/* Number of allocations made while armed that are not released yet. */
int heap_live(void);

#endif
