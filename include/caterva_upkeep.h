/* Caterva: upkeep of arrays, and computations over whole arrays.
 *
 * Deleting, compacting and sealing files; copies with another partition, codec or layout;
 * statistics and reductions; verify, repair and reading around damage; what a file stores,
 * chunk by chunk. Conventions and thread classes are those of caterva.h. */
#ifndef CATERVA_UPKEEP_H
#define CATERVA_UPKEEP_H

#include <caterva.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Deleting, compacting, sealing --------------------------------------- */

/* Options of caterva_compact, caterva_seal, caterva_delete and the functions of
 * caterva_jobs.h. NULL means the defaults. */
typedef struct caterva_upkeep_options {
    size_t struct_size;
    caterva_durability durability; /* of caterva_compact and caterva_seal */
    /* A stopped call changes nothing, except as caterva_delete and caterva_job_delete
     * describe. */
    caterva_progress progress;
} caterva_upkeep_options;
#define CATERVA_UPKEEP_INIT CATERVA_INIT_(caterva_upkeep_options)

/* Rewrites the array at `url` without its dead space, all or nothing: copies compressed
 * chunks into a new file beside it and renames that. Takes the space of both files meanwhile.
 * Handles that read a file see the old one until caterva_refresh. Returns CATERVA_EBUSY while
 * the array is open for writing; for a directory, also while it is open for reading.
 * Thread: any. */
CATERVA_API caterva_status caterva_compact(const char *url,
                                           const caterva_upkeep_options *options,
                                           caterva_error *err);

/* Adds checksums to the chunks of the array at `url` that have none; later changes of their
 * bytes are then detected. Each commit does the same for up to 64 MiB of such chunks. Decodes
 * no data. In a file no data move; in a directory each such chunk becomes a new file. Chunks
 * with damaged headers get no checksum; caterva_verify names them. Returns CATERVA_EBUSY
 * while the array is open for writing.
 * Thread: any. */
CATERVA_API caterva_status caterva_seal(const char *url,
                                        const caterva_upkeep_options *options,
                                        caterva_error *err);

/* Deletes the array at `url`, a file or directory, or a Zarr group. Deletes nothing else: if `url` does not open
 * as an array, returns the status of caterva_open; if a directory contains other files,
 * CATERVA_EEXIST. Returns CATERVA_EBUSY while the array is open for writing; for a directory,
 * also while it is open for reading. Handles that read a file keep reading it. If `url` is a
 * symbolic link, deletes the array it points to and keeps the link.
 *
 * A directory disappears at once; then its files are deleted one by one. If the call is stopped
 * before the first file is deleted, nothing has changed. If it is stopped later, the remaining
 * files stay under another name, which the message of CATERVA_ESTOPPED gives; caterva_delete
 * deletes them like any array.
 * Thread: any. */
CATERVA_API caterva_status caterva_delete(const char *url,
                                          const caterva_upkeep_options *options,
                                          caterva_error *err);

/* ---- Copy --------------------------------------------------------------- */

typedef struct caterva_copy_options {
    size_t struct_size;
    const int64_t *start; /* the box to copy, ndim entries; NULL: from the first item */
    const int64_t *stop;  /* NULL: to the last item                                   */
    /* Properties of the new array; NULL: those of the source. These members come from the
     * source if zero or NULL: chunk_shape, block_shape, dtype (of the same item size), codec
     * (with codec_meta, use_dict and, unless set, level), filters (unless codec is set),
     * layout, metalayer, fill, metalayers. ndim, shape and item_size are ignored; the others
     * are as for caterva_create. */
    const caterva_create_options *create;
    int64_t memory; /* maximum bytes that the copy allocates; 0: 256 MiB          */
    /* Numbers, and the fill, are converted to this dtype if `casting` allows it;
     * create->dtype must then be NULL. */
    const char *convert_to;
    caterva_casting casting;
    /* Counts the new array's bytes. `create->progress` is for later calls through *out. */
    caterva_progress progress;
    /* 1: prepare for reading through URLs: one file with the layouts of all chunks (48 bytes
     * for each chunk, 8 for each block) in one place, so that a block takes one round trip.
     * Other readers ignore the layouts, and a later commit may drop them. CATERVA_EINVAL with
     * CATERVA_LAYOUT_SPARSE. 0: as the source, if the copy is one file; CATERVA_NONE: no. */
    int for_remote;
    /* 1: the new array is also a Zarr v3 array, for readers of either: `url` becomes a directory
     * with zarr.json and the frame, which caterva_open opens like the frame. Chunk shapes
     * become multiples of block shapes, and codec and filters that Blosc 1 lacks become zstd
     * and shuffle, unless the options set them: then CATERVA_EINVAL. CATERVA_EUNSUPPORTED if
     * Zarr has no name for the dtype. *out is open for reading. docs/zarr.md has the format. */
    int zarr;
} caterva_copy_options;
#define CATERVA_COPY_INIT CATERVA_INIT_(caterva_copy_options)

/* Makes a new array at `url` (as caterva_create does) from a box of `source`, with pending
 * changes, and commits it. The new array has no dead space, and may have another partition,
 * codec or layout. Copies attributes, metalayers and the fill. `options` NULL: everything is as
 * in the source. "mem:" and arrays in a tree are contiguous, also if the source is a directory;
 * requesting another layout there is CATERVA_EINVAL.
 *
 * If partition, codec, level and filters stay and the box begins at a chunk boundary, chunks
 * are moved as stored, without decoding. Otherwise items are decoded and encoded slab by
 * slab, most source blocks once, within `memory` (at least three decoded chunks of the new
 * array). Writes to the source wait meanwhile.
 *
 * A failure leaves nothing behind. On success *out is the new array, open for writing;
 * release it with caterva_close or caterva_discard. If `out` is NULL the array is closed.
 * Thread: shared. */
CATERVA_API caterva_status caterva_copy(caterva_array *source, const char *url,
                                        const caterva_copy_options *options,
                                        caterva_array **out, caterva_error *err);

/* Makes a new array at `url` from the view's items, with the rules and options of
 * caterva_copy, except start and stop: select from the view instead. Unset options come from
 * the first array below the view. Axes that this array does not have get chunks and blocks of
 * one item.
 *
 * If arrays are joined, chunks that coincide with chunks of the new array are moved as
 * stored: this requires the same partition (with chunks of 1 along a new axis), codec, level
 * and filters, and only whole chunks before them along the axis of the join. Everything else
 * is decoded and encoded slab by slab within `memory`. If the arrays are written meanwhile it
 * is undefined which state is copied.
 * Thread: shared, on the arrays below. */
CATERVA_API caterva_status caterva_view_copy(const caterva_view *view, const char *url,
                                             const caterva_copy_options *options,
                                             caterva_array **out, caterva_error *err);

/* ---- Statistics and reductions ------------------------------------------ */

/* These functions compute block by block, in parallel: the array is never whole in memory,
 * special chunks are counted without decoding, and pending changes are seen. Items are bool,
 * integers of 1 to 8 bytes, floats of 2, 4 or 8 bytes, or times, in either byte order; other
 * items are CATERVA_EDTYPE. Results do not depend on the number of threads. An item that is
 * selected several times counts each time. Lists, points and masks take the memory they take
 * in caterva_read_selection, and a mask of an axis 8 bytes more for each selected index. */

typedef struct caterva_reduce_options {
    size_t struct_size;
    const caterva_selection *selection; /* NULL: everything */
    const int *axes;      /* caterva_reduce: axes of the selection's result to
                             reduce; NULL: all              */
    int n_axes;
    int skip_nan;         /* caterva_reduce: 1: NaN are ignored; 0: a NaN makes its
                             result NaN, as in NumPy        */
    caterva_progress progress;
} caterva_reduce_options;
#define CATERVA_REDUCE_INIT CATERVA_INIT_(caterva_reduce_options)

typedef struct caterva_number {
    char kind;  /* the member with the exact value: 'i', 'u' or 'f'; 0: no value */
    char reserved[7]; /* 0                                                       */
    int64_t i;
    uint64_t u; /* bool: 0 or 1                                                  */
    double f;   /* always the nearest double                                     */
} caterva_number;

typedef struct caterva_stats {
    size_t struct_size;
    int64_t n_items;         /* items selected                                        */
    int64_t n_nan;           /* NaN or NaT; the members below ignore them             */
    caterva_number min, max; /* no value if there are no items. Times: as int64       */
    caterva_number sum;      /* integers: exact if the sum fits int64 (unsigned: uint64),
                                else 'f'. Floats: in double, error-compensated. Times:
                                no value                                              */
    double mean, std;        /* std divides by n; NaN without items and for times     */
    int64_t n_inf, n_negative_inf;  /* infinite items; the members above include them */
    caterva_number finite_min, finite_max; /* of the finite items; kind 0 without any */
} caterva_stats;
#define CATERVA_STATS_INIT CATERVA_INIT_(caterva_stats)

/* Computes the statistics of all selected items. `options` NULL: the whole array.
 * Thread: shared. */
CATERVA_API caterva_status caterva_statistics(caterva_array *array,
                                              const caterva_reduce_options *options,
                                              caterva_stats *out, caterva_error *err);

#define CATERVA_MAX_BINS 1000000

/* Counts the selected numbers in [range[0], range[1]], both finite, in `n_bins` bins of equal
 * width, as numpy.histogram does with float64 edges, whatever the dtype: a bin includes its
 * lower edge; the last bin also includes its upper edge. Numbers outside the range, and NaN,
 * are not counted. `counts`
 * has n_bins entries. Returns CATERVA_EINVAL if doubles cannot divide the range into that
 * many bins.
 * Thread: shared. */
CATERVA_API caterva_status caterva_histogram(caterva_array *array, const double range[2],
                                             int64_t n_bins,
                                             const caterva_reduce_options *options,
                                             int64_t *counts, caterva_error *err);

typedef enum caterva_reduction {
    CATERVA_REDUCTION_MIN = 0,
    CATERVA_REDUCTION_MAX,
    CATERVA_REDUCTION_SUM,
    CATERVA_REDUCTION_MEAN
} caterva_reduction;

/* Reduces along the axes of the options into `dst`, in C order over the other axes of the
 * selection's result. Points and masks of the array have a single axis, which must be reduced
 * (CATERVA_EUNSUPPORTED).
 *
 * - Minimum and maximum have the array's dtype; without items they are CATERVA_EINVAL.
 * - Sum is int64 for signed integers, uint64 for unsigned ones and bool, modulo 2^64 as in
 *   NumPy, and double for floats, in this machine's byte order.
 * - Mean is double.
 * - Times have minimum and maximum only.
 *
 * Returns CATERVA_ESHORT if `dst_size` is too small for the result. After a failure `dst` is
 * undefined. Threads work on different parts of the result, so a small result uses few threads,
 * unless it is a single item.
 * Thread: shared. */
CATERVA_API caterva_status caterva_reduce(caterva_array *array, caterva_reduction what,
                                          const caterva_reduce_options *options, void *dst,
                                          size_t dst_size, caterva_error *err);

/* Compute as caterva_statistics, caterva_histogram and caterva_reduce do, with the view in
 * place of the array: selection and axes are the view's. Return CATERVA_EUNSUPPORTED for a
 * list that takes the item of a new axis several times.
 *
 * A view of several arrays is reduced array by array, each in parallel. If the arrays are
 * written meanwhile it is undefined which state of each counts. Reducing along axes takes 24
 * bytes for each item of the result.
 * Thread: shared, on the arrays below. */
CATERVA_API caterva_status caterva_view_statistics(const caterva_view *view,
                                                   const caterva_reduce_options *options,
                                                   caterva_stats *out, caterva_error *err);
CATERVA_API caterva_status caterva_view_histogram(const caterva_view *view,
                                                  const double range[2], int64_t n_bins,
                                                  const caterva_reduce_options *options,
                                                  int64_t *counts, caterva_error *err);
CATERVA_API caterva_status caterva_view_reduce(const caterva_view *view,
                                               caterva_reduction what,
                                               const caterva_reduce_options *options,
                                               void *dst, size_t dst_size,
                                               caterva_error *err);

/* ---- Verify ------------------------------------------------------------- */

/* A damaged place: bytes that were read and do not match their checksum, do not decode or
 * contradict each other; bytes missing at the end of a file; the missing file of one chunk in
 * an existing directory (status 404 or 410 behind a URL). Bytes that could not be read are
 * not damage but an error of the call: CATERVA_EIO if the system or the server refuses or
 * fails (EIO of a disk, status 403 or 5xx, a broken connection), CATERVA_ENOTFOUND or
 * CATERVA_EIO if the array itself does not exist any more. `chunk` -1: not in a chunk
 * (header, index, trailer). */
typedef struct caterva_damage {
    int64_t chunk;
    int64_t index[CATERVA_MAX_DIMS]; /* of the chunk along each axis */
    int64_t position;                /* byte in the frame, or -1     */
    caterva_status code;
    const char *message;             /* borrowed for the call        */
} caterva_damage;

typedef struct caterva_verify_options {
    size_t struct_size;
    int quick;   /* 1: structure and chunk headers only, no decoding */
    /* Called for each damaged place, from any thread; calls of this function and of
     * progress.report never overlap. Both functions may use the array, but not commit, refresh
     * or close it. */
    void (*on_damage)(void *context, const caterva_damage *damage);
    void *context;
    caterva_progress progress;
} caterva_verify_options;
#define CATERVA_VERIFY_INIT CATERVA_INIT_(caterva_verify_options)

typedef struct caterva_verify_result {
    size_t struct_size;
    int64_t checked_chunks;
    int64_t damaged_chunks;
    int64_t damages;        /* places reported, also outside chunks */
    int64_t unverified_chunks; /* chunks stored without checksums: wrong bytes
                                  that decode were not detected     */
} caterva_verify_result;
#define CATERVA_VERIFY_RESULT_INIT CATERVA_INIT_(caterva_verify_result)

/* Checks, in parallel: the structure, the checksums of index and chunk headers, every block
 * start, every attribute, that no two chunks overlap, and (unless quick) that every block
 * matches its checksum and decodes. Reads everything from the store, also bytes that the
 * handle keeps in memory. Reports damage (see caterva_damage) through on_damage and `result`;
 * the status is CATERVA_OK if the check ran to its end. Other threads may read and write
 * meanwhile; a commit through this handle waits until the check has ended.
 *
 * Memory, besides the index that the handle keeps (up to 12 bytes for each chunk): at most 32
 * MiB for the positions of chunks, 24 MiB more while they are sorted (if the C library's
 * qsort allocates), and what each thread needs for a block.
 * Thread: shared. */
CATERVA_API caterva_status caterva_verify(caterva_array *array,
                                          const caterva_verify_options *options,
                                          caterva_verify_result *result, caterva_error *err);

/* ---- Reading around damage, and repair ----------------------------------- */

typedef struct caterva_skip_options {
    size_t struct_size;
    const void *fill; /* one item, which replaces each damaged item; NULL: the
                         array's fill value */
    /* Called for each damaged chunk, from any thread; calls never overlap. Must not be NULL,
     * and must not use the array. */
    void (*on_damage)(void *context, const caterva_damage *damage);
    void *context;
} caterva_skip_options;
#define CATERVA_SKIP_INIT CATERVA_INIT_(caterva_skip_options)

/* Reads as caterva_read_selection does, but continues after damage (see caterva_damage): the
 * selected items of a damaged chunk become the fill, and on_damage is called. Returns
 * CATERVA_OK also after damage. A chunk that could not be read ends the call with the error,
 * because it may be sound. An array with a damaged index has no readable chunk:
 * CATERVA_ECORRUPT.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read_skipping(caterva_array *array,
                                                 const caterva_selection *selection,
                                                 const caterva_buffer *dst,
                                                 const caterva_skip_options *options,
                                                 caterva_error *err);

/* The state that a repair is based on. */
typedef enum caterva_found {
    CATERVA_FOUND_STANDING = 0, /* the current header                                    */
    CATERVA_FOUND_COPY,         /* the copy of the newest header, which was damaged      */
    CATERVA_FOUND_OLDER,        /* the copy of an older header, or of one that may not be the
                                   newest: later commits are lost. In an unsealed file, a
                                   chunk may hold items of a lost commit, which wrote over
                                   dead space                                            */
    CATERVA_FOUND_ORDER         /* no index: chunks are numbered in stored order. Correct
                                   only for arrays written once, from the first chunk to the
                                   last, without special chunks                          */
} caterva_found;

typedef struct caterva_repair_options {
    size_t struct_size;
    const char *output; /* path of the new array; NULL: restore the header in place if
                           that is enough, else `url` with ".repaired"              */
    int overwrite;      /* 1: replace an existing output, but not the damaged array */
    int guess;          /* 1: without any index, use CATERVA_FOUND_ORDER            */
    int threads;        /* maximum; 0: all cores                                    */
    caterva_durability durability;
    /* Called once, after a state was found and before its chunks are checked. `fill` is the
     * item that lost chunks will hold: the array's fill value, unless this function
     * overwrites it. Return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_found)(void *context, const caterva_info *info, void *fill);
    /* As in caterva_verify_options. Damage with chunk -1 prevents opening, or is a lost
     * attribute; other damage is a lost chunk. */
    void (*on_damage)(void *context, const caterva_damage *damage);
    void *context;
    caterva_progress progress;
} caterva_repair_options;
#define CATERVA_REPAIR_INIT CATERVA_INIT_(caterva_repair_options)

typedef struct caterva_repair_result {
    size_t struct_size;
    caterva_found found;
    int complete;         /* 1: nothing of the last commit is lost                        */
    int64_t n_chunks;
    int64_t lost_chunks;
    int lost_attributes;  /* -1: the trailer is lost, with all attributes                 */
    int in_place;         /* 1: the header or its copy was restored; nothing else changed */
    int written;          /* 1: the output was written. If in_place and written are 0, the
                             array is sound                                               */
    int64_t unverified_chunks; /* chunks stored without checksums: wrong bytes that decode
                                  were not detected. The output has checksums of the
                                  items that were read, right or wrong                    */
} caterva_repair_result;
#define CATERVA_REPAIR_RESULT_INIT CATERVA_INIT_(caterva_repair_result)

/* Repairs the array at `url`, a file or directory, that is damaged or cannot be opened.
 *
 * - A torn or damaged header is restored from its copy, in place, with a single write (in a
 *   directory, a rename), which can be repeated after an interruption.
 * - Otherwise everything readable is copied into a new array, chunks compressed, and the
 *   damaged one is left unchanged. Lost chunks hold the fill; on_damage is called for each.
 * - A sound array is left as it is, and nothing is written.
 *
 * "Readable" is what caterva_verify accepts: every block decodes. The array must not be
 * written meanwhile; with `output` NULL the library ensures that (CATERVA_EBUSY). Returns
 * CATERVA_ECORRUPT and writes nothing if nothing can be recovered, and the error of a read
 * that fails (CATERVA_EIO): copy a file from a failing disk first, as far as it can be read.
 * Thread: any. */
CATERVA_API caterva_status caterva_repair(const char *url,
                                          const caterva_repair_options *options,
                                          caterva_repair_result *result, caterva_error *err);

/* ---- What is stored ------------------------------------------------------ */

typedef enum caterva_chunk_kind {
    CATERVA_CHUNK_STORED = 0,
    CATERVA_CHUNK_ZEROS,
    CATERVA_CHUNK_NAN,
    CATERVA_CHUNK_VALUE,  /* one repeated item */
    CATERVA_CHUNK_UNINIT
} caterva_chunk_kind;

typedef struct caterva_chunk_info {
    size_t struct_size;
    int64_t chunk;                   /* number, C order                        */
    int64_t index[CATERVA_MAX_DIMS]; /* along each axis                        */
    int64_t start[CATERVA_MAX_DIMS]; /* its items in the array: [start, stop), */
    int64_t stop[CATERVA_MAX_DIMS];  /* cut at the shape                       */
    caterva_chunk_kind kind;
    int64_t position;                /* byte in the frame; -1: not stored;
                                        sparse: number of the chunk file       */
    int64_t stored_bytes;            /* 0 if not stored                        */
    int memcpyed;                    /* stored without compression             */
} caterva_chunk_info;
#define CATERVA_CHUNK_INFO_INIT CATERVA_INIT_(caterva_chunk_info)

/* Describes chunk `chunk` in [0, n_chunks) as of the last commit. Reads the chunk's header
 * from the store. Returns CATERVA_ERANGE for other numbers.
 * Thread: shared. */
CATERVA_API caterva_status caterva_chunk_describe(caterva_array *array, int64_t chunk,
                                                  caterva_chunk_info *out, caterva_error *err);

typedef struct caterva_space {
    size_t struct_size;
    int64_t stored_chunks;  /* chunks with bytes in the frame     */
    int64_t special_chunks; /* zeros, NaN, uninit, repeated value */
    int64_t live_bytes;     /* header and its copy, chunks with their
                               checksums, layouts for remote reading,
                               index, seal, trailer               */
    int64_t dead_bytes;     /* the rest of the frame              */
    int64_t unverified_chunks; /* stored without checksums        */
} caterva_space;
#define CATERVA_SPACE_INIT CATERVA_INIT_(caterva_space)

/* Counts chunks and live bytes as of the last commit. Costs one small read for each stored
 * chunk.
 * Thread: shared. */
CATERVA_API caterva_status caterva_measure(caterva_array *array, caterva_space *out,
                                           caterva_error *err);

/* ---- Chunk by chunk ----------------------------------------------------- */

/* Iterates over the chunks of the last commit (commit first), in C order:
 *
 *     caterva_chunk_iter it = CATERVA_CHUNK_ITER_INIT;
 *     while (caterva_chunk_next(array, &it, &err) == CATERVA_OK && !it.done)
 *         ... it.chunk.kind, it.chunk.start, it.chunk.stop ...
 *
 * An iterator needs no release. Set `next` to begin elsewhere. */
typedef struct caterva_chunk_iter {
    size_t struct_size;
    int64_t next;             /* number of the next chunk */
    int done;                 /* 1: no further chunk      */
    caterva_chunk_info chunk;
} caterva_chunk_iter;
#define CATERVA_CHUNK_ITER_INIT CATERVA_INIT_(caterva_chunk_iter)

/* Describes the next chunk in iter->chunk, or sets iter->done.
 * Thread: shared; an iterator belongs to one thread at a time. */
CATERVA_API caterva_status caterva_chunk_next(caterva_array *array, caterva_chunk_iter *iter,
                                              caterva_error *err);

typedef struct caterva_block_info {
    size_t struct_size;
    int64_t block;                   /* number in its chunk, C order           */
    int64_t index[CATERVA_MAX_DIMS]; /* in its chunk, along each axis          */
    int64_t start[CATERVA_MAX_DIMS]; /* its items in the array: [start, stop), */
    int64_t stop[CATERVA_MAX_DIMS];  /* empty on an axis where all is padding  */
    int64_t stored_bytes;            /* 0 in a special chunk                   */
} caterva_block_info;
#define CATERVA_BLOCK_INFO_INIT CATERVA_INIT_(caterva_block_info)

/* Describes block `block` in [0, n_blocks) of a chunk as of the last commit. Its kind is that
 * of its chunk. Returns CATERVA_ERANGE for other numbers.
 * Thread: shared. */
CATERVA_API caterva_status caterva_block_describe(caterva_array *array, int64_t chunk,
                                                  int64_t block, caterva_block_info *out,
                                                  caterva_error *err);

/* Copies a chunk as stored: a Blosc2 chunk of *size bytes (at most chunk_bytes + 32), for
 * another array of the same item size and partition. A chunk without stored bytes is a header
 * of 32 bytes. `dst` NULL only sets *size; *size is also set if `dst_size` is too small
 * (CATERVA_ESHORT). Sees pending changes: a handle for writing encodes them first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_chunk_read_stored(caterva_array *array, int64_t chunk,
                                                     void *dst, size_t dst_size,
                                                     size_t *size, caterva_error *err);

/* Stores a Blosc2 chunk of `src_size` bytes as chunk `chunk` of the array. The chunk may have
 * any codec and filters that an array may have. If they depend on the geometry, the array must
 * have the same codec and filters. The chunk need not be trusted: the library checks its header
 * and block starts against the grid, and decodes it once as a whole. CATERVA_ECORRUPT and
 * CATERVA_EUNSUPPORTED name the reason for a refusal, and nothing has changed then. This handle
 * sees the chunk at once, others after the commit. Reports no progress and cannot be stopped.
 * Thread: turns. */
CATERVA_API caterva_status caterva_chunk_write_stored(caterva_array *array, int64_t chunk,
                                                      const void *src, size_t src_size,
                                                      caterva_error *err);

/* The same without decoding, several times as fast: checks the header, the block starts and the
 * sizes of the streams. Only chunks with a dictionary or delta are decoded. What else is damaged is
 * stored as it is: a later read returns CATERVA_ECORRUPT, or items that nothing tells to be wrong.
 * Thread: turns. */
CATERVA_API caterva_status caterva_chunk_write_undecoded(caterva_array *array, int64_t chunk,
                                                         const void *src, size_t src_size,
                                                         caterva_error *err);

/* ---- Any array as a Zarr array ------------------------------------------- */

/* Presents an array to readers of Zarr v3 as it is, without a copy: the Zarr array has the
 * same shape, dtype, fill, dimension names and attributes, and its chunks are blocks of
 * block_shape items, with the codecs `bytes` and `blosc`. caterva_copy_options.zarr makes
 * files for these readers instead. Both functions take handles for reading (CATERVA_EINVAL
 * for others), and allocate their result: release it with caterva_free. */

/* Makes the metadata, zarr.json: *size bytes of JSON in *text, and a NUL. Returns
 * CATERVA_EUNSUPPORTED, with the reason, if Zarr has no name for the dtype.
 * Thread: shared. */
CATERVA_API caterva_status caterva_zarr_metadata(caterva_array *array, char **text,
                                                 size_t *size, caterva_error *err);

/* Makes the chunk at `index` (ndim entries, NULL for ndim 0; in blocks): a Blosc 1 buffer of
 * *size bytes in *bytes, or NULL and 0 if all of its items are the fill, a missing chunk.
 *
 * A block that Blosc 1 can decode is not decoded: 20 bytes are put before its stored bytes,
 * which are read and compared with their checksum. Others are decoded and stored
 * uncompressed in the buffer: those of another pipeline than one codec of Blosc 1 and one of
 * shuffle and bitshuffle, of uncompressed chunks, and all blocks of an array whose chunk
 * shape is no multiple of its block shape. Items beyond the shape are undefined. Returns
 * CATERVA_ERANGE for an index outside the array.
 * Thread: shared. */
CATERVA_API caterva_status caterva_zarr_chunk(caterva_array *array, const int64_t *index,
                                              void **bytes, size_t *size, caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_UPKEEP_H */
