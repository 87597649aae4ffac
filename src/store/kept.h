/* A copy of a small file, made once reads of it have cost as much as reading all of it
 * would have: from then on its bytes are lent, and a read costs no system call.
 *
 * It is for files that are only read. What a committed state consists of does not
 * change as long as somebody reads it (frame/commit.c), so the copy stays right; one
 * who opens the file again has a new store. Memory, not a mapping: others may cut the
 * file. */
#ifndef CV_STORE_KEPT_H
#define CV_STORE_KEPT_H

#include "base/os_file.h"

#include <stdatomic.h>

typedef struct cv_kept {
    cv_file file;
    uint64_t offset;            /* of its first byte in the file */
    size_t size;                /* 0: nothing is ever kept */
    atomic_uint_least64_t cost; /* of all reads */
    atomic_bool stopped;
    _Atomic(uint8_t *) bytes; /* NULL: not yet */
} cv_kept;

/* Not for files of more than `most` bytes: *kept then never lends. The file is
 * borrowed. */
void cv_kept_init(cv_kept *kept, cv_file file, uint64_t offset, uint64_t size, uint64_t most);
void cv_kept_free(cv_kept *kept);

/* The bytes, or NULL: to be read from the file. What was lent stays until cv_kept_free.
 * Any thread. */
const uint8_t *cv_kept_view(const cv_kept *kept, uint64_t pos, size_t size);

/* So many were read from the file: the read that makes it worth keeping makes the copy.
 * Any thread. */
void cv_kept_count(cv_kept *kept, size_t size);

/* Nothing is lent from now on. Any thread. */
void cv_kept_stop(cv_kept *kept);

#endif
