/* The chunks of a Zarr array. A chunk is a file, or a range of the file of a shard, and is read and
 * decoded as a whole, by several threads if a box has several; the last one is kept. The shape of what is
 * decoded at once is the node's chunk_shape. A chunk that does not exist holds the fill value. */
#ifndef CLI_ZARR_CHUNKS_H
#define CLI_ZARR_CHUNKS_H

#include "foreign/foreign.h"

#include <pthread.h>

#define MAX_CODECS 8
#define MAX_CHUNK (INT64_C(1) << 31) /* bytes of a decoded chunk */

typedef enum codec { CODEC_BLOSC, CODEC_ZSTD, CODEC_GZIP, CODEC_ZLIB, CODEC_CRC32C } codec;

/* How bytes become a chunk: codecs in the order of encoding, and the order of axes. */
typedef struct pipeline {
    codec codecs[MAX_CODECS];
    int n;
    int order[CATERVA_MAX_DIMS]; /* axis i of the stored chunk is axis order[i] of the array */
    bool reordered;
} pipeline;

/* A decoded chunk. at[0] -1: none. */
typedef struct decoded {
    int64_t at[CATERVA_MAX_DIMS]; /* its index, in chunks */
    uint8_t *items;
    bool missing; /* it does not exist */
} decoded;

typedef struct zarr_array {
    char *folder;
    const char *prefix; /* of chunk keys: "c" and the separator, or nothing */
    char separator;
    pipeline chunk;
    bool sharded, index_first;
    bool is_empty; /* no chunk or shard exists */
    int64_t shard_shape[CATERVA_MAX_DIMS];
    pipeline index;
    int64_t chunk_size; /* bytes, decoded */
    decoded last;         /* that was decoded */
    /* The last index of a shard. -1: none. */
    pthread_mutex_t lock;
    int64_t shard_at[CATERVA_MAX_DIMS];
    uint64_t *entries; /* offset and size of each chunk of the shard; NULL: the shard is missing */
    bool is_own;          /* it is an array of this library, which reads it and knows its checksums */
    caterva_array *frame; /* then, while it is the file's `own` */
} zarr_array;

/* Begins a call that reports at most one failure. */
void zarr_begin(void);

/* Reads a file, or `size` bytes of it from `at`. *bytes is NULL if it does not exist. A negative
 * `at` counts from the end; `size` -1 is the whole file. */
cli_exit zarr_read_file(const char *path, int64_t at, int64_t size, uint8_t **bytes,
                        int64_t *got);

/* Reads a little-endian number. */
uint64_t zarr_load64(const uint8_t *at);

/* Finds out, from the first chunk, whether the chunks can move. Then sets the node's block_shape and
 * file->read_stored. */
cli_exit zarr_find_blocks(foreign_file *file, foreign_node *node, zarr_array *a);

/* The functions `read` and `is_fill` of a file. A shard that exists is never the fill. */
cli_exit zarr_read_items(foreign_file *self, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst);
bool zarr_is_fill(foreign_file *self, const foreign_node *node, const int64_t *start,
                  const int64_t *stop);

#endif
