/* Layouts that were read, kept, bounded: written bytes never change while anybody needs
 * them, and who gives a position to another chunk says so here. */
#ifndef CV_FRAME_LAYOUT_CACHE_H
#define CV_FRAME_LAYOUT_CACHE_H

#include "frame/layout_records.h"

typedef struct cv_layout_cache cv_layout_cache;

/* The cache: sets of four, at most 4 MiB unless eight layouts are more; what workers
 * have notes of (layout_memo.h) may stay longer. For chunks of `store`, which outlives it. */
cv_layout_cache *cv_layout_cache_new(cv_store *store, int64_t n_blocks); /* or NULL */
void cv_layout_cache_free(cv_layout_cache *cache);

/* The layout of a stored chunk, from the cache or the store; checked against the
 * block table where the reference names one and the snapshot is not unchecked. Any
 * thread. Release with cv_layout_release. */
cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err);

/* The same where it is kept already, or a record of it is at hand, else NULL; and what was
 * read elsewhere is kept, too. */
cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref);
void cv_layout_keep(cv_layout_cache *cache, const cv_chunk_ref *ref, cv_layout *layout);

/* The records of this state's layouts, where the store is so far that they are worth looking
 * for; NULL: there are none. Borrowed from the cache. */
const cv_layout_records *cv_layout_cache_records(cv_layout_cache *cache,
                                                 const cv_snapshot *snapshot);

/* Forgets all layouts, or that of the chunk at `pos`. When a rollback, or the use of
 * dead space, gives positions to other chunks, with no read under way; to have them
 * read anew, at any time. */
void cv_layout_cache_clear(cv_layout_cache *cache);
void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos);

/* A number that tells the chunks which one position held one after another
 * apart: it changes whenever the position is forgotten as above (and sometimes
 * when another one is). For who keeps more of a chunk than its layout. */
uint32_t cv_layout_generation(const cv_layout_cache *cache, cv_object object, uint64_t pos);

#endif
