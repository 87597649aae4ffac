/* Test support: ends a failed test with a message. Independent of what is tested. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *file, int line, const char *what, const char *format,
                            ...)
{
    va_list words;
    fprintf(stderr, "%s:%d: failed: %s: ", file, line, what);
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fputc('\n', stderr);
    exit(1);
}

void *check_alloc(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    CHECK(memory != NULL, "out of memory for %zu bytes", size);
    return memory;
}
