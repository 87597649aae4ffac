/* Moving an array's chunks to another frame without decoding them. */
#ifndef CV_ENGINE_TRANSFER_H
#define CV_ENGINE_TRANSFER_H

#include "engine/jobs/hand_over.h"
#include "engine/read/read.h"

/* Copies one chunk as it is stored into another transaction, as its chunk
 * `number`: without dead space, and a special one takes none. The worker has scratch,
 * and what was read ahead. The chunk must have no dirty blocks, and both grids its
 * geometry. */
cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err);

/* Copies the source into `store`, which is new and owned from then on, and
 * commits: chunk after chunk as they are stored, no dead space between them.
 * Layouts that stand in one place do so again.
 * `sparse`: the store is a directory. Release *out with cv_frame_close. */
cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err);

/* Copies the source, pending chunks included (dirty blocks must have been
 * flushed), as a compact contiguous frame into fresh memory: *bytes is malloc'ed. */
cv_status cv_transfer_to_memory(const cv_source *source, void **bytes, size_t *size,
                                cv_error *err);

/* The same frame, handed over piece by piece: see hand_over.h. */
cv_status cv_transfer_pieces(const cv_source *source, cv_take_fn take, void *context,
                             cv_error *err);

#endif
