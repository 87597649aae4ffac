/* Room: engine/read. Where chunks are: committed, or pending. */
#include "engine/read/source.h"

#include "frame/index_read.h"

cv_source cv_source_of_pending(cv_pending *pending)
{
    return (cv_source){.frame = pending->frame,
                       .snapshot = cv_txn_snapshot(pending->txn),
                       .pending = pending,
                       .workers = pending->workers,
                       .threads = pending->threads,
                       .scan = true,
                       .watch = pending->watch};
}

cv_status cv_source_find(const cv_source *source, int64_t chunk, cv_chunk_ref *out,
                         cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    return cv_snapshot_find(source->snapshot, source->frame->store, chunk, out, err);
}
