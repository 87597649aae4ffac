/* A copy of a small file, made once reads of it have cost as much as reading all of it
 * would have: from then on its bytes are lent, and a read costs no system call.
 *
 * It is for files that are only read. What a committed state consists of does not
 * change as long as somebody reads it (frame/commit.c), so the copy stays right; one
 * who opens the file again has a new store. Memory, not a mapping: others may cut the
 * file. */
#ifndef CV_STORE_FILE_COPY_H
#define CV_STORE_FILE_COPY_H

#include "base/os_file.h"

#include <stdatomic.h>

typedef struct cv_file_copy {
    cv_file file;
    uint64_t offset;            /* of its first byte in the file */
    size_t size;                /* 0: nothing is ever copied */
    atomic_uint_least64_t cost; /* of all reads */
    atomic_bool stopped;
    _Atomic(uint8_t *) bytes; /* NULL: not yet */
} cv_file_copy;

/* Not for files of more than `most` bytes: *copy then never lends. The file is
 * borrowed. */
void cv_file_copy_init(cv_file_copy *copy, cv_file file, uint64_t offset, uint64_t size,
                       uint64_t most);
void cv_file_copy_free(cv_file_copy *copy);

/* The bytes, or NULL: to be read from the file. What was lent stays until cv_file_copy_free.
 * Any thread. */
const uint8_t *cv_file_copy_view(const cv_file_copy *copy, uint64_t pos, size_t size);

/* So many were read from the file: the read that makes it worth keeping makes the copy.
 * Any thread. */
void cv_file_copy_count(cv_file_copy *copy, size_t size);

/* Nothing is lent from now on. Any thread. */
void cv_file_copy_stop(cv_file_copy *copy);

#endif
