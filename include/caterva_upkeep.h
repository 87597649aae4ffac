/* Caterva: the upkeep of arrays and what is computed of whole arrays.
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

/* Options of caterva_compact, caterva_seal and caterva_delete. NULL in their place means the defaults. */
typedef struct caterva_upkeep_options {
    size_t struct_size;
    caterva_durability durability; /* of caterva_compact and caterva_seal */
    /* Hears in decoded bytes (caterva_delete: files; of jobs: parts), and stops; nothing has
     * changed then (but see caterva_delete and caterva_job_delete). NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_upkeep_options;
#define CATERVA_UPKEEP_INIT CATERVA_INIT_(caterva_upkeep_options)

/* Rewrites the array at `url` without its dead space: copies compressed chunks into a new
 * file beside it and renames, all or nothing. Takes the space of both for a while. Handles
 * that read a file go on seeing the old one until caterva_refresh. Returns CATERVA_EBUSY
 * while somebody writes the array, and, for a directory, while somebody reads it.
 * Thread: any. */
CATERVA_API caterva_status caterva_compact(const char *url,
                                           const caterva_upkeep_options *options,
                                           caterva_error *err);

/* Gives checksums to the chunks of the array at `url` that have none; from then on any
 * change of their bytes is noticed. Commits do the same bit by bit (64 MiB of such chunks
 * each). This does not decode data and, in a file, does not move them; in a directory each
 * such chunk becomes a new file. Chunks with damaged headers stay without; caterva_verify
 * names them. Returns CATERVA_EBUSY while somebody else writes the array.
 * Thread: any. */
CATERVA_API caterva_status caterva_seal(const char *url,
                                        const caterva_upkeep_options *options,
                                        caterva_error *err);

/* Deletes the array at `url`, a file or directory. It deletes nothing but arrays: for what
 * does not open as one it returns the status of caterva_open, and for a directory that
 * holds anything else CATERVA_EEXIST. Returns CATERVA_EBUSY while somebody writes the
 * array, and, for a directory, while somebody reads it; handles that read a file go on. If
 * `url` is a symbolic link, this deletes the array it points to and keeps the link.
 *
 * A directory goes from view at once, and then file after file. If on_progress stops it before
 * the first file is gone, nothing has changed. Later the rest lies under another name, which
 * the sentence of CATERVA_ESTOPPED says, and which caterva_delete deletes like any array.
 * Thread: any. */
CATERVA_API caterva_status caterva_delete(const char *url,
                                          const caterva_upkeep_options *options,
                                          caterva_error *err);

/* ---- Copy --------------------------------------------------------------- */

typedef struct caterva_copy_options {
    size_t struct_size;
    const int64_t *start; /* the box to copy, ndim entries; NULL: from the first item */
    const int64_t *stop;  /* NULL: to the last one                                    */
    /* What the new array is made of; NULL: as the source. A member that is zero or NULL takes
     * its value from the source: chunk_shape, block_shape, dtype (of the same item size),
     * codec (with codec_meta, use_dict and, unless set, level), filters (unless codec is
     * set), layout, metalayer, fill, metalayers. ndim, shape and item_size are ignored; other
     * members mean what they mean for caterva_create. */
    const caterva_create_options *create;
    int64_t memory; /* bytes that the copy may hold, at most; 0: 256 MiB              */
    /* Numbers are converted to this dtype, the fill with them, where `casting` allows
     * it; create->dtype must then be NULL.                                           */
    const char *convert_to;
    caterva_casting casting;
    /* Called now and then with chunks done; calls never overlap, any thread. Non-zero
     * stops: CATERVA_ESTOPPED. Must not use the source. The one in `create` hears of
     * later calls through *out.                                                      */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
    /* 1: the new array is to be read through URLs: one file with the layouts of all chunks
     * (48 bytes for each, 8 for each block) in one place: a block takes one round trip. Other
     * readers pass over them, a later commit may leave them behind; CATERVA_EINVAL with a
     * layout of directories. 0: as the source, where the copy is one file; CATERVA_NONE:
     * without. */
    int for_remote;
} caterva_copy_options;
#define CATERVA_COPY_INIT CATERVA_INIT_(caterva_copy_options)

/* Makes a new array at `url` (as caterva_create does) from a box of `source`, pending
 * changes included, and commits it: with another partition, codec or layout, and without
 * dead space. Attributes, metalayers and the fill travel along. `options` NULL: all as the
 * source. "mem:" and an array in a tree are contiguous, also a copy of a directory; asking for
 * another layout there is CATERVA_EINVAL.
 *
 * Where partition, codec, level and filters stay and the box begins where chunks do, this
 * moves chunks as they are stored, without decoding. Otherwise it decodes and encodes items
 * slab by slab, most source blocks once, within `memory` (at least three decoded chunks of
 * the new array). Who writes to the source waits meanwhile.
 *
 * Leaves nothing behind when it fails. On success *out is the new array, open for writing;
 * release it with caterva_close or caterva_discard. `out` NULL: it is closed.
 * Thread: shared. */
CATERVA_API caterva_status caterva_copy(caterva_array *source, const char *url,
                                        const caterva_copy_options *options,
                                        caterva_array **out, caterva_error *err);

/* Makes a new array at `url` of the view's items, as caterva_copy does of an array's and
 * with its options, except start and stop: select from the view instead. What the options
 * leave open is as the first array below the view has it. Axes that this array does not
 * have get chunks and blocks of one item.
 *
 * Where arrays are concatenated or stacked, this moves chunks as they are stored wherever
 * they fall on chunks of the new array: same partition (with chunks of 1 along a new axis),
 * codec, level and filters, and only whole chunks before them along the axis of the join.
 * It decodes and encodes all else slab by slab within `memory`. If somebody writes to the
 * arrays meanwhile, it is undefined which state is copied.
 * Thread: shared, on the arrays below. */
CATERVA_API caterva_status caterva_view_copy(const caterva_view *view, const char *url,
                                             const caterva_copy_options *options,
                                             caterva_array **out, caterva_error *err);

/* ---- Statistics and reductions ------------------------------------------ */

/* The library computes these block by block, in parallel: the array never stands in memory,
 * special chunks are counted without decoding, and pending changes are seen. Items are
 * bool, integers of 1 to 8 bytes, floats of 2, 4 or 8 bytes, or times, in either byte
 * order; others are CATERVA_EDTYPE. Results do not depend on the number of threads. An item
 * that is selected several times counts every time. Lists, points and masks take the memory
 * that they take in caterva_read_selection, and an axis' mask 8 bytes more for each
 * selected index. */

typedef struct caterva_reduce_options {
    size_t struct_size;
    const caterva_selection *selection; /* NULL: everything                   */
    const int *axes;      /* caterva_reduce: those of the selection's result that
                             go; NULL: all                                    */
    int n_axes;
    int skip_nan;         /* caterva_reduce: 1: NaN are passed over; 0: one makes its
                             result NaN, as in NumPy                          */
    /* Called now and then; calls never overlap, any thread. Non-zero stops:
     * CATERVA_ESTOPPED. Must not use the array.                                        */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_reduce_options;
#define CATERVA_REDUCE_INIT CATERVA_INIT_(caterva_reduce_options)

typedef struct caterva_number {
    char kind;  /* which member holds it exactly: 'i', 'u' or 'f'; 0: there is none */
    char reserved[7]; /* 0                                                          */
    int64_t i;
    uint64_t u; /* bool: 0 or 1                                                     */
    double f;   /* always the nearest double                                        */
} caterva_number;

typedef struct caterva_stats {
    size_t struct_size;
    int64_t n_items;         /* looked at                                          */
    int64_t n_nan;           /* of these NaN or NaT; all below is of the others    */
    caterva_number min, max; /* none of nothing. Times: their int64                */
    caterva_number sum;      /* exact for integers where it fits int64, of unsigned ones
                                uint64; else 'f'. None for times. Floats: of
                                doubles, error-compensated                         */
    double mean, std;        /* std with n in the denominator; NaN of nothing and
                                for times                                          */
    int64_t n_inf, n_negative_inf;  /* infinite items, which count in all above     */
    caterva_number finite_min, finite_max; /* of the finite items; kind 0 without any */
} caterva_stats;
#define CATERVA_STATS_INIT CATERVA_INIT_(caterva_stats)

/* Computes the statistics of all selected items. `options` NULL: of the whole array.
 * Thread: shared. */
CATERVA_API caterva_status caterva_statistics(caterva_array *array,
                                              const caterva_reduce_options *options,
                                              caterva_stats *out, caterva_error *err);

#define CATERVA_MAX_BINS 1000000

/* Counts the selected numbers that lie in [range[0], range[1]], both finite, in `n_bins`
 * bins of equal width, as numpy.histogram does with float64 edges, whatever the dtype: a bin
 * holds its lower edge, the last one also its upper. Other numbers and NaN are not counted. `counts` has n_bins entries.
 * Returns CATERVA_EINVAL for a range that doubles cannot cut into so many bins.
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
 * selection's result. Points and masks of the array have a single axis, which must go
 * (CATERVA_EUNSUPPORTED).
 *
 * - Minimum and maximum give items as the array has them; of nothing they are
 *   CATERVA_EINVAL.
 * - Sum gives int64 of signed integers, uint64 of unsigned ones and bool, modulo 2^64 as in
 *   NumPy, and double of floats, all in this machine's byte order.
 * - Mean gives double.
 * - Times have minimum and maximum only.
 *
 * Returns CATERVA_ESHORT when `dst_size` is too small for the result. When it fails, `dst`
 * is undefined. Threads work on different parts of the result: few work on a small one,
 * unless it is a single item.
 * Thread: shared. */
CATERVA_API caterva_status caterva_reduce(caterva_array *array, caterva_reduction what,
                                          const caterva_reduce_options *options, void *dst,
                                          size_t dst_size, caterva_error *err);

/* Compute as caterva_statistics, caterva_histogram and caterva_reduce do, with the view in
 * place of the array: selection and axes are the view's. CATERVA_EUNSUPPORTED for a list that
 * takes the item of a new axis several times.
 *
 * A view of several arrays is reduced array after array, each in parallel, and progress
 * counts items. If somebody writes to the arrays meanwhile, it is undefined which state of
 * each counts. Along axes this takes 24 bytes for each item of the result.
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

/* One damaged place. Damage is what was read and is wrong: bytes that do not match their
 * checksum, do not decode or contradict each other, bytes that are missing at the end of a file,
 * and the missing file of one chunk in a directory that is there (status 404 or 410 behind a
 * URL). That bytes could not be read is not damage but an error of the call: CATERVA_EIO when the
 * system or the server refuses or fails, also with EIO of a disk, status 403 or 5xx, or a
 * connection that breaks, and CATERVA_ENOTFOUND or CATERVA_EIO when the array itself is gone.
 * `chunk` -1: not in a chunk (header, index, trailer). */
typedef struct caterva_damage {
    int64_t chunk;
    int64_t index[CATERVA_MAX_DIMS]; /* of the chunk along each axis */
    int64_t position;                /* byte in the frame, or -1     */
    caterva_status code;
    const char *message;             /* borrowed for the call        */
} caterva_damage;

typedef struct caterva_verify_options {
    size_t struct_size;
    int quick;   /* 1: structure and chunk headers only, no decoding       */
    /* Called for each damaged place; calls of this function and the next never overlap,
     * any thread. Nothing of the array's is locked meanwhile: they may use it, but not
     * commit, refresh or close it. */
    void (*on_damage)(void *context, const caterva_damage *damage);
    /* Called now and then with chunks done; return non-zero to stop:
     * CATERVA_ESTOPPED. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_verify_options;
#define CATERVA_VERIFY_INIT CATERVA_INIT_(caterva_verify_options)

typedef struct caterva_verify_result {
    size_t struct_size;
    int64_t checked_chunks;
    int64_t damaged_chunks;
    int64_t damages;        /* places reported, also outside chunks */
    int64_t unverified_chunks; /* take space, and have no checksums: only what does
                                  not decode was noticed                      */
} caterva_verify_result;
#define CATERVA_VERIFY_RESULT_INIT CATERVA_INIT_(caterva_verify_result)

/* Checks the structure, the checksums of index and chunk headers, every block start, that
 * no two chunks overlap, every attribute, and (unless quick) that every block has its
 * checksum and decodes; in parallel. Reads what is stored anew, also where the handle has
 * it in memory. Reports damage, see caterva_damage, through on_damage and `result`: the
 * status is CATERVA_OK when the check ran to its end. Other threads may read and write
 * meanwhile; a commit through this handle waits until the check is over.
 *
 * Memory: beside the index, which the handle keeps (up to 12 bytes for each chunk), at most
 * 32 MiB for the places of chunks, 24 MiB more while they are sorted (where the C library's
 * qsort takes memory), and what each thread needs for a block.
 * Thread: shared. */
CATERVA_API caterva_status caterva_verify(caterva_array *array,
                                          const caterva_verify_options *options,
                                          caterva_verify_result *result, caterva_error *err);

/* ---- Around damage ------------------------------------------------------- */

typedef struct caterva_skip_options {
    size_t struct_size;
    const void *fill; /* one item in the place of what cannot be read; NULL: the
                         array's fill value                                    */
    /* Called for each damaged chunk; must not be NULL: nothing is skipped in
     * silence. Calls never overlap, any thread. Must not use the array.       */
    void (*on_damage)(void *context, const caterva_damage *damage);
    void *context;
} caterva_skip_options;
#define CATERVA_SKIP_INIT CATERVA_INIT_(caterva_skip_options)

/* Reads as caterva_read_selection does, but goes on after damage, see caterva_damage: where a
 * chunk is damaged, all that you want of it becomes the fill, and on_damage is called. Returns
 * CATERVA_OK also then. A chunk that could not be read ends the call with the error: it may be
 * sound. An array whose index is damaged has no readable chunk: CATERVA_ECORRUPT.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read_skipping(caterva_array *array,
                                                 const caterva_selection *selection,
                                                 const caterva_buffer *dst,
                                                 const caterva_skip_options *options,
                                                 caterva_error *err);

/* Says what a repair is based on. */
typedef enum caterva_found {
    CATERVA_FOUND_STANDING = 0, /* the header as it stands                               */
    CATERVA_FOUND_COPY,         /* the copy of the newest header: it was torn or damaged */
    CATERVA_FOUND_OLDER,        /* the copy of an older one, or of one that the file does not
                                   show to be the last: later commits are lost. What they
                                   wrote over dead space cannot be told in an unsealed
                                   file: a chunk may hold a later commit's items         */
    CATERVA_FOUND_ORDER         /* no index: chunks numbered in stored order, which is
                                   right only for arrays written once, from the first
                                   chunk to the last, and without special chunks         */
} caterva_found;

typedef struct caterva_repair_options {
    size_t struct_size;
    const char *output; /* where the new array goes; NULL: a header that can be restored
                           whole is put back in place, else `url` with ".repaired"     */
    int overwrite;      /* 1: replace what is at the output, never the damaged array   */
    int guess;          /* 1: without any index, CATERVA_FOUND_ORDER is better than nothing */
    int threads;        /* at most so many; 0: all cores                               */
    caterva_durability durability;
    /* Called once, when a state was found and before its chunks are checked. `fill` is
     * one item, which lost chunks will hold: the array's fill value, unless another
     * one is put there. Return non-zero to stop: CATERVA_ESTOPPED.                    */
    int (*on_found)(void *context, const caterva_info *info, void *fill);
    /* As in caterva_verify_options. Damage with chunk -1 is what keeps the array from
     * being opened, or an attribute that is lost; any other a chunk that is lost.     */
    void (*on_damage)(void *context, const caterva_damage *damage);
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_repair_options;
#define CATERVA_REPAIR_INIT CATERVA_INIT_(caterva_repair_options)

typedef struct caterva_repair_result {
    size_t struct_size;
    caterva_found found;
    int complete;         /* 1: all that the last commit held is there                 */
    int64_t n_chunks;
    int64_t lost_chunks;
    int lost_attributes;  /* -1: the trailer is lost, and all there were               */
    int in_place;         /* 1: the header, or its copy, was restored, all else is as it was */
    int written;          /* 1: the output is there. Neither: the array is sound       */
    int64_t unverified_chunks; /* take space, and no checksum vouches for them: only what
                                  does not decode is lost. The output has checksums of
                                  what they hold, right or wrong                       */
} caterva_repair_result;
#define CATERVA_REPAIR_RESULT_INIT CATERVA_INIT_(caterva_repair_result)

/* Repairs the array at `url`, a file or directory, that is damaged or cannot be opened.
 *
 * - It restores a torn or damaged header from its copy, in place: a single write (of a
 *   directory, a rename), which you can do again if it was interrupted.
 * - Otherwise it puts what can be read into a new array, copying chunks compressed, and
 *   leaves
 *   the damaged one alone. Lost chunks hold the fill, and on_damage hears of each.
 * - It leaves a sound array as it is and writes nothing.
 *
 * "Can be read" means what caterva_verify means: every block decodes. Nobody else may be
 * writing; with `output` NULL the library makes sure of that (CATERVA_EBUSY). Returns
 * CATERVA_ECORRUPT and writes nothing when nothing can be made of it, and the error of a read
 * that fails (CATERVA_EIO): copy a file from a failing disk first, whatever of it can be read.
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
    int64_t chunk;                   /* number, C order                          */
    int64_t index[CATERVA_MAX_DIMS]; /* along each axis                          */
    int64_t start[CATERVA_MAX_DIMS]; /* its items in the array: [start, stop),   */
    int64_t stop[CATERVA_MAX_DIMS];  /* cut at the shape                         */
    caterva_chunk_kind kind;
    int64_t position;                /* byte in the frame; -1: takes no space,
                                        sparse: number of the chunk file         */
    int64_t stored_bytes;            /* 0 when it takes no space                 */
    int memcpyed;                    /* stored without compression               */
} caterva_chunk_info;
#define CATERVA_CHUNK_INFO_INIT CATERVA_INIT_(caterva_chunk_info)

/* Describes chunk `chunk` in [0, n_chunks) as of the last commit. Reads the chunk's header
 * from the store. Returns CATERVA_ERANGE for other numbers.
 * Thread: shared. */
CATERVA_API caterva_status caterva_chunk_describe(caterva_array *array, int64_t chunk,
                                                  caterva_chunk_info *out, caterva_error *err);

typedef struct caterva_space {
    size_t struct_size;
    int64_t stored_chunks;  /* chunks that take space                       */
    int64_t special_chunks; /* zeros, NaN, uninit, repeated value           */
    int64_t live_bytes;     /* header and its copy, chunks with their
                               checksums, layouts for remote reading,
                               index, seal, trailer                         */
    int64_t dead_bytes;     /* the rest of the frame                        */
    int64_t unverified_chunks; /* take space, and have no checksums         */
} caterva_space;
#define CATERVA_SPACE_INIT CATERVA_INIT_(caterva_space)

/* Counts chunks and live bytes as of the last commit. Costs one small read for each stored
 * chunk.
 * Thread: shared. */
CATERVA_API caterva_status caterva_measure(caterva_array *array, caterva_space *out,
                                           caterva_error *err);

/* ---- Chunk by chunk ----------------------------------------------------- */

/* Goes over the chunks as of the last commit (commit first), in C order:
 *
 *     caterva_chunk_iter it = CATERVA_CHUNK_ITER_INIT;
 *     while (caterva_chunk_next(array, &it, &err) == CATERVA_OK && !it.done)
 *         ... it.chunk.kind, it.chunk.start, it.chunk.stop ...
 *
 * An iterator holds nothing to release. Set `next` to begin elsewhere. */
typedef struct caterva_chunk_iter {
    size_t struct_size;
    int64_t next;             /* number of the chunk that comes next */
    int done;                 /* 1: there was none left              */
    caterva_chunk_info chunk;
} caterva_chunk_iter;
#define CATERVA_CHUNK_ITER_INIT CATERVA_INIT_(caterva_chunk_iter)

/* Describes the next chunk in iter->chunk, or sets iter->done.
 * Thread: shared; an iterator belongs to one thread at a time. */
CATERVA_API caterva_status caterva_chunk_next(caterva_array *array, caterva_chunk_iter *iter,
                                              caterva_error *err);

typedef struct caterva_block_info {
    size_t struct_size;
    int64_t block;                   /* number in its chunk, C order             */
    int64_t index[CATERVA_MAX_DIMS]; /* in its chunk, along each axis            */
    int64_t start[CATERVA_MAX_DIMS]; /* its items in the array: [start, stop),   */
    int64_t stop[CATERVA_MAX_DIMS];  /* empty on an axis where all is padding    */
    int64_t stored_bytes;            /* 0 in a special chunk                     */
} caterva_block_info;
#define CATERVA_BLOCK_INFO_INIT CATERVA_INIT_(caterva_block_info)

/* Describes block `block` in [0, n_blocks) of a chunk as of the last commit. Its kind is
 * its chunk's. Returns CATERVA_ERANGE for other numbers.
 * Thread: shared. */
CATERVA_API caterva_status caterva_block_describe(caterva_array *array, int64_t chunk,
                                                  int64_t block, caterva_block_info *out,
                                                  caterva_error *err);

/* Goes over the blocks of one chunk in the same way: set `chunk` to its number. */
typedef struct caterva_block_iter {
    size_t struct_size;
    int64_t chunk;
    int64_t next; /* number of the block that comes next */
    int done;     /* 1: there was none left              */
    caterva_block_info block;
} caterva_block_iter;
#define CATERVA_BLOCK_ITER_INIT CATERVA_INIT_(caterva_block_iter)

/* Describes the next block in iter->block, or sets iter->done.
 * Thread: shared; an iterator belongs to one thread at a time. */
CATERVA_API caterva_status caterva_block_next(caterva_array *array, caterva_block_iter *iter,
                                              caterva_error *err);

/* Decodes chunk `chunk` into `dst`, which has room for chunk_bytes of the info: its blocks
 * in C order, items in C order inside each, padding (undefined) included. Sees pending
 * changes. For other orders, and for items alone, use caterva_read.
 * Thread: shared. */
CATERVA_API caterva_status caterva_chunk_read(caterva_array *array, int64_t chunk, void *dst,
                                              size_t dst_size, caterva_error *err);

/* Copies a chunk as it is stored, a Blosc2 chunk of *size bytes (at most chunk_bytes + 32),
 * for another array of the same item size and partition. A chunk that takes no space comes
 * as a header of 32 bytes. With `dst` NULL you get the size only; you also get it when
 * `dst_size` is too small (CATERVA_ESHORT). Sees pending changes: a handle for writing
 * encodes them first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_chunk_read_stored(caterva_array *array, int64_t chunk,
                                                     void *dst, size_t dst_size,
                                                     size_t *size, caterva_error *err);

/* Makes a Blosc2 chunk of `src_size` bytes chunk `chunk` of the array. It may have any
 * codec and filters that an array may have; those that look at the geometry only where the
 * array's own do. It may come from anywhere: the library checks its header and block starts
 * against the grid and decodes all of it once before it takes it. CATERVA_ECORRUPT or
 * CATERVA_EUNSUPPORTED say why not, and nothing has changed then. This handle sees the
 * chunk at once, others after the commit.
 * Thread: turns. */
CATERVA_API caterva_status caterva_chunk_write_stored(caterva_array *array, int64_t chunk,
                                                      const void *src, size_t src_size,
                                                      caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_UPKEEP_H */
