/* Room: engine/read. What a write stands on. */
#include "engine/read/source.h"

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
