/* The header of a Blosc2 frame: bytes <-> struct. FORMAT.md section 1. */
#ifndef CV_FORMAT_FRAME_HEADER_H
#define CV_FORMAT_FRAME_HEADER_H

#include "base/heap.h"
#include "format/msgpack.h"

#define CV_MAX_METALAYERS 16  /* per header; also what C-Blosc2 can write per trailer */
#define CV_MAX_NAME 31

typedef struct cv_metalayer {
    char name[CV_MAX_NAME + 1]; /* NUL-terminated; bytes inside are not NUL */
    const uint8_t *data;        /* borrowed from the parsed bytes */
    uint32_t size;
} cv_metalayer;

/* The entry called `name`, or NULL. */
const cv_metalayer *cv_metalayers_find(const cv_metalayer *layers, int n, const char *name);

/* ---- The header ---- */

/* Bytes that every frame begins with. */
enum { CV_FRAME_MAGIC_SIZE = 10 };

enum { CV_FRAME_VERSION = 2, CV_FRAME_VERSION_MAX = 3, CV_FRAME_HEADER_MIN = 97 };

#define CV_MAX_FILTERS 6

typedef struct cv_frame_header {
    uint32_t header_size;   /* bytes */
    uint64_t frame_size;    /* bytes, header to trailer; chunk files not counted */
    uint8_t version;        /* 1..3 */
    bool sparse;            /* chunks are files of a directory */
    bool variable_chunks;   /* chunks of different sizes (or chunk size 0) */
    bool vl_blocks;         /* chunks of variable-length blocks */
    uint8_t codec;          /* the compcode: blosclz 0, lz4 1, lz4hc 2, zlib 4, zstd 5, plugins >= 32 */
    uint8_t codec_meta;
    uint8_t level;          /* 0..15 as stored */
    uint8_t split_mode;     /* 1..4: always, never, auto, forward-compatible */
    bool use_dict;
    int64_t nbytes;         /* n_chunks * chunk_size */
    int64_t cbytes;         /* header end to index, dead space included */
    int32_t type_size, block_size, chunk_size;
    int16_t encode_threads, decode_threads; /* 0: written by us */
    bool has_attributes;
    uint8_t filters[CV_MAX_FILTERS], filters_meta[CV_MAX_FILTERS];
    int n_metalayers;
    cv_metalayer metalayers[CV_MAX_METALAYERS];
} cv_frame_header;

/* The header's length from a frame's first bytes (>= 15). CATERVA_ECORRUPT "not a Blosc2
 * frame". */
cv_status cv_frame_header_peek(const uint8_t *bytes, size_t size, uint32_t *header_size,
                               cv_error *err);

/* The sizes that locate a commit's tail, from the first CV_FRAME_HEADER_MIN bytes of a
 * possibly damaged header. False if unreadable or impossible. */
bool cv_frame_header_peek_sizes(const uint8_t *bytes, size_t size, uint64_t *frame_size,
                                int64_t *cbytes);

/* Parses `size` = header_size bytes; metalayers borrow from them. Checks each field's own
 * range (sizes, version, split mode, filter count...), not geometry. */
cv_status cv_frame_header_parse(const uint8_t *bytes, size_t size, cv_frame_header *out,
                                cv_error *err);

/* Appends the encoded header with the given frame_size etc.; sets header->header_size. */
cv_status cv_frame_header_write(cv_frame_header *header, cv_buffer *out, cv_error *err);

/* ---- The trailer ----
 *
 * Attributes (variable-length metalayers) and a fingerprint. FORMAT.md section 5. */

enum { CV_TRAILER_MIN = 35, CV_TRAILER_TAIL = 23 };

typedef struct cv_trailer {
    uint32_t size;         /* bytes */
    int n_attributes;
    cv_metalayer *attributes; /* owned array; data borrows from the bytes, each a Blosc2 chunk */
    uint8_t fingerprint_type;
    uint8_t fingerprint[16];
} cv_trailer;

/* From the last CV_TRAILER_TAIL bytes of a frame: how long is the trailer? */
cv_status cv_trailer_peek(const uint8_t tail[CV_TRAILER_TAIL], int64_t pos,
                          uint32_t *trailer_size, cv_error *err);

/* Parses the trailer at frame position `pos` (for messages). Release with
 * cv_trailer_free. */
cv_status cv_trailer_parse(const uint8_t *bytes, size_t size, int64_t pos, cv_trailer *out,
                           cv_error *err);
void cv_trailer_free(cv_trailer *trailer);

/* Appends a trailer with these attributes and a zero fingerprint. */
cv_status cv_trailer_write(const cv_metalayer *attributes, int n, cv_buffer *out,
                           cv_error *err);

/* ---- The copy of the header ----
 *
 * In the dead space right before the index, to restore a torn header. Little-endian:
 *
 *   0   8  magic      "cv-head\x01"
 *   8   8  commit     counts the commits: of several copies the newest counts
 *  16   4  size       n, bytes of the header
 *  20   n  header     exactly as it stands at the frame's beginning
 *  20+n 4  CRC32C     of all before it
 *
 * It ends where its header says that the index begins, which rules out copies in frames
 * stored inside an array. Old copies, also of unfinished commits, may lie anywhere in dead
 * space, hence the number: 1 for a new frame's first commit, then counted; a writer that
 * opens a frame goes on at the nanoseconds since 1970. To C-Blosc2 a copy is dead space.
 * Contiguous frames without an index have none.
 *
 * A directory's frame has it right behind the frame's end, where no reader looks; rewriting
 * drops it. There it is for damage: the frame is replaced whole, so nothing tears its
 * header. */

/* Longer headers have no copy, to bound the search in hostile files. */
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

/* Parses `bytes` at frame position `pos`. CATERVA_ECORRUPT unless it is a whole header copy
 * that belongs there. */
cv_status cv_header_copy_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out, cv_error *err);

/* Searches backwards from `*at` (`size` at first) in `bytes`, at frame position `pos`, for
 * a copy, and sets *at to its place. False: none. */
bool cv_header_copy_before(const uint8_t *bytes, size_t size, uint64_t pos, size_t *at,
                           cv_header_copy *out);

#endif
