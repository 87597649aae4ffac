/* Anonymous memory, and pages without access. */
#ifndef TESTS_WINDOWS_MMAN_H
#define TESTS_WINDOWS_MMAN_H

#include <stddef.h>

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_SHARED 1
#define MAP_ANONYMOUS 32
#define MAP_FAILED ((void *)-1)
void *posix_map(size_t size, int protection);
int posix_unmap(void *memory);
int mprotect(void *memory, size_t size, int protection);
#define mmap(at, size, protection, flags, fd, pos) posix_map(size, protection)
#define munmap(memory, size) posix_unmap(memory)

#endif
