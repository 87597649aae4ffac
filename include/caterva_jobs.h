/* Caterva: many writers of one array.
 *
 * Workers write parts, and a coordinator merges them into the array. Conventions and thread
 * classes are those of caterva.h. */
#ifndef CATERVA_JOBS_H
#define CATERVA_JOBS_H

#include <caterva.h>
#include <caterva_upkeep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Many writers ---------------------------------------------------------- */

/* Any number of workers, in threads, processes or machines that share a file system, write
 * one array at once: each writes a part, a file of its own, and takes no lock of the array.
 * One coordinator merges the parts, and one commit makes all of them visible, or nothing.
 *
 *     coordinator   caterva_job_begin -> job        the array is open for writing
 *     workers       caterva_part_open(url, job), caterva_write ..., caterva_part_finish -> token
 *     coordinator   caterva_merge(tokens), caterva_commit
 *
 * A job and a token are bytes: send them as you like. Parts may hold any items, also parts of
 * chunks and of blocks; what no part wrote stays what it is in the array. Chunks that one part
 * wrote whole are moved as they are stored, blocks that one part wrote whole are spliced; only
 * blocks that several parts share, or that a part wrote a piece of, are decoded.
 *
 * A worker that dies leaves no token: what it wrote is not merged, and its task is done again.
 * A coordinator that dies leaves the array as it was, and the tokens are good for the next
 * one, as long as nobody has changed the chunks that they wrote.
 *
 * Parts are in the directory PATH.parts/ beside the array, in one folder for each job.
 * Arrays in memory and in stores of your own have no such place: CATERVA_EUNSUPPORTED. The
 * parts of an array of a tree lie beside its file: workers take the array's URL,
 * "weather.b2d::/group/name", or the path of the file. Archives never change. */

typedef struct caterva_job_options {
    size_t struct_size;
    const int64_t *shape; /* what the array grows to with this job, ndim entries, none less
                             than now: resized at once, as by caterva_resize, and pending.
                             NULL: the shape that the handle sees                          */
} caterva_job_options;
#define CATERVA_JOB_INIT CATERVA_INIT_(caterva_job_options)

/* Begins a job on an array that is open for writing, which need not have been committed yet.
 * What is pending is flushed and belongs to what the job stands on. Writes 8 bytes for each
 * chunk, compressed: how caterva_merge tells which chunks have changed since. *job belongs to
 * you: release it with caterva_free.
 * Thread: turns. */
CATERVA_API caterva_status caterva_job_begin(caterva_array *array,
                                             const caterva_job_options *options, void **job,
                                             size_t *job_size, caterva_error *err);

/* Makes a new part of the job for the array at `url`, as this worker reaches it. *out is an
 * array for writing, of the shape, partition, codec and layout of the array. Its items read as
 * zeros until this handle writes them: it is no copy of the array, which other handles read.
 * Of `options` (NULL: defaults) all but mode, offset and compact_percent count.
 *
 * Its shape, attributes and metalayers do not change, and it cannot be committed
 * (CATERVA_EUNSUPPORTED). caterva_part_finish ends it; caterva_close and caterva_discard drop
 * it. Handles of one job may be open at once in any number; each takes a file or directory.
 *
 * Returns CATERVA_ECORRUPT for bytes that are no job, CATERVA_ENOTFOUND when the job's
 * folder is not there: it was merged and committed, or discarded; and CATERVA_ESTALE when
 * another array was created at the path since.
 * Thread: any. */
CATERVA_API caterva_status caterva_part_open(const char *url, const void *job,
                                             size_t job_size,
                                             const caterva_open_options *options,
                                             caterva_array **out, caterva_error *err);

/* Encodes what is pending in the part, writes the part to its place, syncs it as durability
 * says, and gives you its token: less than 1 KiB and 24 bytes for each chunk. Releases the
 * handle also when it fails; then nothing is left of the part. Release *token with
 * caterva_free. CATERVA_EINVAL for what is no part.
 * Thread: alone. */
CATERVA_API caterva_status caterva_part_finish(caterva_array *part, void **token,
                                               size_t *token_size, caterva_error *err);

typedef enum caterva_overlap {
    CATERVA_OVERLAP_ERROR = 0, /* an item that two parts wrote is an error          */
    CATERVA_OVERLAP_LAST       /* it is taken from the one whose token comes last   */
} caterva_overlap;

typedef struct caterva_merge_options {
    size_t struct_size;
    caterva_overlap overlap;
    int unchecked; /* 1: the bytes that move are not compared with their checksums, which
                      travel along: damage is noticed when somebody reads it             */
    int keep;      /* 1: the commit leaves the job's folder, for other tokens of the job  */
    /* Hears in chunks, and stops; while parts are checked, that none is done. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_merge_options;
#define CATERVA_MERGE_INIT CATERVA_INIT_(caterva_merge_options)

typedef struct caterva_merge_result {
    size_t struct_size;
    int64_t parts;          /* that hold something, each counted once                  */
    int64_t chunks;         /* that they wrote                                         */
    int64_t moved_chunks;   /* of these: moved as they were stored                     */
    int64_t spliced_chunks; /* put together of compressed blocks                       */
    int64_t decoded_blocks; /* of spliced and encoded chunks: decoded to be put together */
    int64_t merged_before;  /* chunks that held all of it already                      */
} caterva_merge_result;
#define CATERVA_MERGE_RESULT_INIT CATERVA_INIT_(caterva_merge_result)

/* Merges `n` finished parts of one job into the array, which is open for writing and need not
 * be the handle that began the job. The merge is pending like any write: caterva_commit makes
 * all of it visible and removes the job's folder (what it may not remove caterva_jobs_list names),
 * caterva_rollback drops it and leaves the parts. A token that comes twice counts once. Hand over tokens of parts that share chunks in
 * one call. `options` and `result` may be NULL.
 *
 * Everything is checked before anything changes, except that the array grows first to the
 * shape of the job, which stays pending:
 *
 *   CATERVA_ECORRUPT   bytes that are not a token; a part whose index or chunks are not those
 *                      that its token names by a checksum. Other bytes of the part's file, such
 *                      as those behind its frame, do not count
 *   CATERVA_EINVAL     tokens of several jobs
 *   CATERVA_ENOTFOUND  a part, or the folder of the job beside this array, is not there
 *   CATERVA_ESHAPE     the array's geometry or dtype is not that of the job
 *   CATERVA_EEXIST     two parts wrote the same items; the sentence names both
 *   CATERVA_ESTALE     the array has changed, since the job began, in a chunk that a part
 *                      wrote; unless it holds what the parts hold, as after a commit that
 *                      went through unnoticed. Or another array was created at its path since
 *
 * After another failure, and after CATERVA_ECORRUPT in the midst of moving, the committed
 * state is untouched, but you must call caterva_rollback before you change the array again.
 * Merging the same tokens again then succeeds.
 *
 * Costs one opening and at most one copy of each part's compressed bytes: in a directory whole
 * chunk files of the same file system and owner are linked. Nobody may write to a finished part:
 * caterva_commit returns CATERVA_ECORRUPT, with nothing changed, when a linked file has another
 * length or time than at the merge. Memory: 48 bytes and, linked, 64 for each
 * chunk of all tokens together, and a few open parts.
 * Thread: turns. */
CATERVA_API caterva_status caterva_merge(caterva_array *array, const void *const *tokens,
                                         const size_t *token_sizes, size_t n,
                                         const caterva_merge_options *options,
                                         caterva_merge_result *result, caterva_error *err);

/* Removes the folder of the job with all its parts, whoever began it, also while its
 * coordinator is at work: see `is_live` of caterva_jobs_list. Tokens of the job are good for
 * nothing afterwards. The array may be gone already. Returns CATERVA_ENOTFOUND when there is
 * no such job, and CATERVA_EIO when a part could not be removed, as one of another user; the
 * others are, and the job has ended.
 *
 * If on_progress of `options` (NULL: nobody hears) stops it when nothing is done (done == 0),
 * the job is what it was. Later it has ended, caterva_jobs_list lists what is left of it, with
 * `has_ended`, and calling this again removes that.
 * Thread: any. */
CATERVA_API caterva_status caterva_job_delete(const char *url, const void *job,
                                               size_t job_size,
                                               const caterva_upkeep_options *options,
                                               caterva_error *err);

/* The library makes these. */
typedef struct caterva_job_entry {
    size_t struct_size;
    const char *id;        /* 32 hexadecimal digits, the name of its folder            */
    const char *folder;    /* path                                                     */
    const void *job;       /* as caterva_job_begin gave it                             */
    size_t job_size;
    const char *host;      /* where it was begun                                       */
    int64_t process;       /* and by which process                                     */
    int64_t began_ns;      /* nanoseconds since 1970, by the clock of that machine     */
    int64_t commit_number; /* of the array that it stands on; 0: see caterva_info      */
    int is_live;           /* 1: the handle that began it is open                      */
    int64_t n_parts;       /* finished, also those whose task was done again           */
    int64_t part_bytes;    /* of their files                                           */
    int has_ended;         /* 1: merged or discarded, and it could not be removed      */
} caterva_job_entry;

typedef struct caterva_job_list {
    size_t struct_size;
    size_t n;
    const caterva_job_entry *const *entries; /* n of them, the oldest first */
} caterva_job_list;

/* Lists the jobs beside the array at `url` that were begun and neither merged and committed
 * nor discarded; and, `has_ended`, what is left of those that were, where a part could not be
 * removed: caterva_job_delete tries again. Looks at every part; on_progress of `options`
 * hears of them (NULL: nobody). Release *out with caterva_job_list_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_jobs_list(const char *url,
                                             const caterva_upkeep_options *options,
                                             const caterva_job_list **out,
                                             caterva_error *err);
CATERVA_API void caterva_job_list_release(const caterva_job_list *list); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_JOBS_H */
