/* The header of a Blosc2 frame: bytes <-> struct. See README_CFRAME_FORMAT.rst of C-Blosc2. */
#ifndef CV_FORMAT_FRAME_HEADER_H
#define CV_FORMAT_FRAME_HEADER_H

#include "base/heap.h"
#include "format/msgpack.h"

#define CV_MAX_METALAYERS 16 /* in a header; C-Blosc2's limit in a trailer, too */
#define CV_MAX_NAME 31

typedef struct cv_metalayer {
    char name[CV_MAX_NAME + 1]; /* NUL-terminated, without other NULs */
    const uint8_t *data;        /* borrowed from the parsed bytes */
    uint32_t size;
} cv_metalayer;

/* Returns the entry with this name, or NULL. */
const cv_metalayer *cv_metalayers_find(const cv_metalayer *layers, int n, const char *name);

/* ---- The header ---- */

/* Number of bytes with which every frame begins. */
enum { CV_FRAME_MAGIC_SIZE = 10 };

enum { CV_FRAME_VERSION = 2, CV_FRAME_VERSION_MAX = 3, CV_FRAME_HEADER_MIN = 97 };

#define CV_MAX_FILTERS 6

/* filters_meta[0] of an array whose chunks may differ in level and filter (docs/format.md). The
 * array's first filter is unused, so C-Blosc2 ignores the value and keeps it. */
enum { CV_META_AUTOMATIC = 99 };

typedef struct cv_frame_header {
    uint32_t header_size; /* bytes */
    uint64_t frame_size;  /* from header to trailer, without chunk files */
    uint8_t version;      /* 1..3 */
    bool sparse;          /* chunks are files of a directory */
    bool variable_chunks; /* chunks of different sizes (or chunk size 0) */
    bool vl_blocks;       /* chunks of variable-length blocks */
    uint8_t codec;        /* blosclz 0, lz4 1, lz4hc 2, zlib 4, zstd 5, plugins >= 32 */
    uint8_t codec_meta;
    uint8_t level;      /* 0..15 as stored */
    uint8_t split_mode; /* 1..4: always, never, auto, forward-compatible */
    bool use_dict;
    int64_t nbytes; /* n_chunks * chunk_size */
    int64_t cbytes; /* from the header's end to the index, with dead space */
    int32_t type_size, block_size, chunk_size;
    int16_t encode_threads, decode_threads; /* 0 if written by this library */
    bool has_attributes;
    uint8_t filters[CV_MAX_FILTERS], filters_meta[CV_MAX_FILTERS];
    int n_metalayers;
    cv_metalayer metalayers[CV_MAX_METALAYERS];
} cv_frame_header;

/* Gets the header's length from the first bytes (>= 15) of a frame. Fails with CATERVA_ECORRUPT
 * "not a Blosc2 frame". */
cv_status cv_frame_header_peek(const uint8_t *bytes, size_t size, uint32_t *header_size,
                               cv_error *err);

/* Gets the sizes that locate the tail of a commit. They are in the first CV_FRAME_HEADER_MIN bytes
 * of a header, which may be damaged. False if the sizes are unreadable or impossible. */
bool cv_frame_header_peek_sizes(const uint8_t *bytes, size_t size, uint64_t *frame_size,
                                int64_t *cbytes);

/* Parses `size` = header_size bytes, from which the metalayers borrow. Checks the range of each
 * field (sizes, version, split mode, filter count, ...), but not the geometry. */
cv_status cv_frame_header_parse(const uint8_t *bytes, size_t size, cv_frame_header *out,
                                cv_error *err);

/* Appends the encoded header. Sets header->header_size; the caller has set the other members. */
cv_status cv_frame_header_write(cv_frame_header *header, cv_buffer *out, cv_error *err);

/* ---- The trailer ----
 *
 * Attributes (variable-length metalayers) and a fingerprint. See README_CFRAME_FORMAT.rst of
 * C-Blosc2. */

enum { CV_TRAILER_MIN = 35, CV_TRAILER_TAIL = 23 };

typedef struct cv_trailer {
    uint32_t size; /* bytes */
    int n_attributes;
    cv_metalayer *attributes; /* owned; their data, Blosc2 chunks, are borrowed */
    uint8_t fingerprint_type;
    uint8_t fingerprint[16];
} cv_trailer;

/* Gets the size of the trailer from the last CV_TRAILER_TAIL bytes of a frame. */
cv_status cv_trailer_peek(const uint8_t tail[CV_TRAILER_TAIL], int64_t pos,
                          uint32_t *trailer_size, cv_error *err);

/* Parses the trailer at frame position `pos` (for messages). Release with cv_trailer_free. */
cv_status cv_trailer_parse(const uint8_t *bytes, size_t size, int64_t pos, cv_trailer *out,
                           cv_error *err);
void cv_trailer_free(cv_trailer *trailer);

/* Appends a trailer with these attributes and a zero fingerprint. */
cv_status cv_trailer_write(const cv_metalayer *attributes, int n, cv_buffer *out,
                           cv_error *err);

/* ---- The copy of the header ----
 *
 * Restores a torn header. The copy is in the dead space right before the index. Little-endian:
 *
 *    0  8  magic   "cv-head\x01"
 *    8  8  commit  number of the commit; the copy with the highest number is used
 *   16  4  size    n, bytes of the header
 *   20  n  header  the header at the frame's beginning
 *    .  4  CRC32C  of all preceding bytes of the copy
 *
 * A copy ends where its header says that the index begins. This excludes copies in frames that are
 * stored inside an array. Dead space may contain old copies and copies of unfinished commits, which
 * the commit number distinguishes. The number is 1 for a new frame's first commit and increases by
 * 1; a writer that opens a frame continues with the nanoseconds since 1970. To C-Blosc2 a copy is
 * dead space. Contiguous frames without an index have no copy.
 *
 * A directory has the copy right behind the frame's end, where other readers do not look. A program
 * that rewrites the frame drops the copy. In a directory the frame is replaced as a whole, so its
 * header cannot be torn; there the copy protects only against damage. */

/* Longer headers have no copy, to limit the search in hostile files. */
enum { CV_HEADER_COPY_MAX = 64 * 1024 };

typedef struct cv_header_copy {
    uint64_t commit;
    const uint8_t *header; /* borrowed */
    uint32_t header_size;
    uint64_t pos;  /* position of the copy in the frame */
    uint64_t size; /* bytes of the copy */
} cv_header_copy;

/* Returns the bytes of the copy of a header of `header_size` bytes, or 0 if that is too long. */
uint64_t cv_header_copy_size(uint32_t header_size);

/* Encodes a copy into `out`, which has cv_header_copy_size(header_size) bytes. */
void cv_header_copy_write(uint64_t commit, const uint8_t *header, uint32_t header_size,
                          uint8_t *out);

/* Parses `bytes` at frame position `pos`. CATERVA_ECORRUPT unless a complete header copy that
 * belongs at this position begins there. */
cv_status cv_header_copy_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out, cv_error *err);

/* Searches `bytes`, which are at frame position `pos`, backwards from *at (`size` at first) for a
 * copy. Sets *at to the copy's offset. Returns false if there is no copy. */
bool cv_header_copy_before(const uint8_t *bytes, size_t size, uint64_t pos, size_t *at,
                           cv_header_copy *out);

#endif
