/* Chunk files that a directory shares with another one, from the merge that gave them a second
 * name to the commit: whoever writes into a part in between would change the array. */
#ifndef CV_STORE_SHARED_CHUNKS_H
#define CV_STORE_SHARED_CHUNKS_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/thread.h"
#include "store/store.h"

typedef struct cv_shared_chunks {
    cv_mutex lock;
    cv_buffer list; /* one entry for each */
} cv_shared_chunks;

void cv_shared_chunks_init(cv_shared_chunks *shared);
void cv_shared_chunks_destroy(cv_shared_chunks *shared);

/* Notes what the file is now. Any thread. False: it cannot be noted, and is not to be shared. */
bool cv_shared_chunks_add(cv_shared_chunks *shared, cv_object object, cv_file file);

/* CATERVA_ECORRUPT when the size or time of one that still has its name in `dir` is not what
 * was noted. One look at each. */
cv_status cv_shared_chunks_check(cv_shared_chunks *shared, cv_dir dir, cv_error *err);

void cv_shared_chunks_forget(cv_shared_chunks *shared); /* all of them */

#endif
