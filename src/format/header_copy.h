/* A copy of the frame's header in the dead space right before the index, from
 * which a torn header is restored. All numbers little-endian:
 *
 *   0   8  magic      "cv-head\x01"
 *   8   8  commit     counts the commits: of several copies the newest counts
 *  16   4  size       n, bytes of the header
 *  20   n  header     exactly as it stands at the frame's beginning
 *  20+n 4  CRC32C     of all before it
 *
 * It ends where its own header says that the index begins, so bytes that only
 * look like a copy (a frame stored inside an array) are not taken for one. Old
 * copies, also of commits that a crash cut short, may lie anywhere in dead space:
 * hence the number. A new frame's first commit is 1, the next 2; a writer that
 * opens a frame goes on at the nanoseconds since 1970, which is more. C-Blosc2 counts a
 * copy as bytes of no chunk. Contiguous frames without an index have none.
 *
 * A directory's frame has it right behind its end, where its header says that the frame
 * ends: no reader looks there, and who rewrites the frame drops it. The frame is replaced
 * whole, so nothing tears its header; the copy is there for damage. */
#ifndef CV_FORMAT_HEADER_COPY_H
#define CV_FORMAT_HEADER_COPY_H

#include "base/heap.h"

/* Longer headers (of large metalayers) have no copy: it bounds what searching a
 * hostile file may cost. */
enum { CV_HEADER_COPY_MAX = 64 * 1024 };

typedef struct cv_header_copy {
    uint64_t commit;
    const uint8_t *header; /* borrowed */
    uint32_t header_size;
    uint64_t pos;  /* of the copy in the frame */
    uint64_t size; /* of the copy */
} cv_header_copy;

/* Bytes of the copy of a header of `header_size` bytes; 0: it has none. */
uint64_t cv_header_copy_size(uint32_t header_size);

/* Encodes into `out`, cv_header_copy_size(header_size) bytes. */
void cv_header_copy_write(uint64_t commit, const uint8_t *header, uint32_t header_size,
                          uint8_t *out);

/* Parses what `bytes`, at frame position `pos`, begin with. CATERVA_ECORRUPT
 * unless it is a whole copy of a header that belongs in this place. */
cv_status cv_header_copy_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out, cv_error *err);

/* Looks back from `*at` (`size` at first) in `bytes`, which begin at frame
 * position `pos`, for the next copy; *at is then its place in them. False when
 * there is none. */
bool cv_header_copy_before(const uint8_t *bytes, size_t size, uint64_t pos, size_t *at,
                           cv_header_copy *out);

#endif
