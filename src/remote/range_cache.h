/* Bytes of one thing that were read before, by this process or by others, in a folder that
 * they share (store/range_folder.h). Any thread. Nothing fails: what is not there is read
 * elsewhere. */
#ifndef CV_REMOTE_RANGE_CACHE_H
#define CV_REMOTE_RANGE_CACHE_H

#include "base/os_dir.h"
#include "base/thread.h"

enum { CV_PACK_KEY = 32, CV_PACK_NAME = 64, CV_PACK_MOST = 4 << 20 };

/* ---- range_cache ----
 * Bytes of one thing that were read before, by this process or by others, in a folder that
 * they share (store/range_folder.h). Any thread. Nothing fails: what is not there is read
 * elsewhere. */

typedef struct cv_range_cache cv_range_cache;

/* NULL: there is none in that folder. The key stands for what can never change. */
cv_range_cache *cv_range_cache_open(const char *folder, uint64_t bound,
                                    const uint8_t key[CV_PACK_KEY]);
void cv_range_cache_close(cv_range_cache *cache); /* NULL is fine */

/* Has a look at what others have added: before some calls of get. */
void cv_range_cache_look(cv_range_cache *cache);

/* Whether bytes [pos, pos + size) are there: then they are in `dst`; else some of them may
 * be. */
bool cv_range_cache_get(cv_range_cache *cache, uint64_t pos, void *dst, size_t size);

/* Adds ranges of `positions` and `sizes`, whose bytes follow each other. */
void cv_range_cache_put(cv_range_cache *cache, const uint64_t *positions, const size_t *sizes,
                        size_t n, const uint8_t *bytes);

/* Removes all of the thing's, for everybody: it is not what was thought. */
void cv_range_cache_forget(cv_range_cache *cache);

#endif
