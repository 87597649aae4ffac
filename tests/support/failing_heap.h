/* An allocator of the library whose n-th allocation fails, and which counts what was not
 * released. One thread. */
#ifndef SUPPORT_FAILING_HEAP_H
#define SUPPORT_FAILING_HEAP_H

#include <stdbool.h>

/* First of all in a program: before the library allocates anything. */
void heap_install(void);

/* Until heap_disarm the n-th allocation from now (the first is 0) fails, and all
 * others are counted. */
void heap_arm(long n);

/* All succeed again. Whether one failed: false when there were no more than n. */
bool heap_disarm(void);

/* How many of those made while armed have not been released, to this moment. */
int heap_live(void);

#endif
