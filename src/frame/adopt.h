/* Chunks that another writer stored get checksums where they lie: a table that
 * stands behind one still is taken again, else a new one is written into space of
 * its own and listed among the strays. A directory's chunk files have no such
 * space: there a new file, table behind the chunk, takes the old one's place. */
#ifndef CV_FRAME_ADOPT_H
#define CV_FRAME_ADOPT_H

#include "base/watch.h"
#include "frame/txn.h"

/* What one commit reads of such chunks at most, bytes. */
enum { CV_ADOPT_BYTES = 64 << 20 };

/* Adopts the next of them, up to CV_ADOPT_BYTES, into the transaction's index. What
 * cannot be parsed stays without; so does, unless `rewrite`, what would need a new
 * chunk file. One thread. txn->adopted: nothing is left to do. */
cv_status cv_adopt_some(cv_txn *txn, bool rewrite, cv_watch *watch, cv_error *err);

#endif
