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

/* Any number of workers (threads, processes, or machines that share a file system) write one
 * array at the same time. Each writes a part, a file of its own, and takes no lock of the
 * array. One coordinator merges the parts, and one commit makes all of them visible, or
 * nothing.
 *
 *     coordinator   caterva_job_begin -> job        the array is open for writing
 *     workers       caterva_part_open(url, job), caterva_write, caterva_part_finish -> token
 *     coordinator   caterva_merge(tokens), caterva_commit
 *
 * A job and a token are bytes: transport them in any way. Parts may hold any items, also
 * pieces of chunks and of blocks; items that no part wrote stay as they are in the array.
 * Chunks that one part wrote whole are moved as stored, blocks that one part wrote whole are
 * spliced; only blocks that several parts share, or that a part wrote in part, are decoded.
 *
 * A worker that dies returns no token: what it wrote is not merged, and its work must be
 * repeated. A coordinator that dies leaves the array unchanged, and the next coordinator can
 * use the tokens unless the chunks that they wrote have changed.
 *
 * Parts are in the directory PATH.parts/ beside the array, in one folder for each job. Arrays
 * in memory and in the program's stores have no such directory: CATERVA_EUNSUPPORTED. The
 * parts of an array of a tree are beside its file: workers take the array's URL,
 * "weather.b2d::/group/name", or the path of the file. Archives never change. */

typedef struct caterva_job_options {
    size_t struct_size;
    const int64_t *shape; /* new shape of the array: ndim entries, none less than now. The
                             array grows at once, as by caterva_resize; the change is
                             pending. NULL: the shape that the handle sees */
} caterva_job_options;
#define CATERVA_JOB_INIT CATERVA_INIT_(caterva_job_options)

/* Begins a job on an array that is open for writing; the array may be uncommitted. Flushes
 * pending changes, which become part of the job's base. Writes 8 bytes for each chunk,
 * compressed: with them caterva_merge finds the chunks that have changed since. Release *job
 * with caterva_free.
 * Thread: turns. */
CATERVA_API caterva_status caterva_job_begin(caterva_array *array,
                                             const caterva_job_options *options, void **job,
                                             size_t *job_size, caterva_error *err);

/* Makes a new part of the job. `url`: the array, by the path or URL at which this worker finds
 * it. *out is an array for writing, with the shape, partition, codec and layout of the array.
 * Its items read as zeros until this handle writes them: *out is not a copy. `options`
 * (NULL: defaults) apply except mode, offset and compact_percent.
 *
 * Its shape, attributes and metalayers cannot change, and it cannot be committed
 * (CATERVA_EUNSUPPORTED). caterva_part_finish completes it; caterva_close and caterva_discard
 * delete it. Any number of parts of one job may be open at once; each takes a file or
 * directory.
 *
 * Returns CATERVA_ECORRUPT for bytes that are not a job, CATERVA_ENOTFOUND if the job's
 * folder does not exist (it was merged and committed, or deleted), and CATERVA_ESTALE if
 * another array has been created at the path since.
 * Thread: any. */
CATERVA_API caterva_status caterva_part_open(const char *url, const void *job,
                                             size_t job_size,
                                             const caterva_open_options *options,
                                             caterva_array **out, caterva_error *err);

/* Encodes the part's pending changes, installs its file or directory, syncs it according to the
 * durability, and returns its token: less than 1 KiB and 24 bytes for each chunk. Releases the
 * handle also on failure; then the part is deleted. Release *token with caterva_free. Returns
 * CATERVA_EINVAL for an array that is not a part.
 * Thread: alone. */
CATERVA_API caterva_status caterva_part_finish(caterva_array *part, void **token,
                                               size_t *token_size, caterva_error *err);

typedef enum caterva_overlap {
    CATERVA_OVERLAP_ERROR = 0, /* an item that two parts wrote is an error */
    CATERVA_OVERLAP_LAST       /* the part whose token comes last wins     */
} caterva_overlap;

typedef struct caterva_merge_options {
    size_t struct_size;
    caterva_overlap overlap;
    int unchecked; /* 1: moved bytes are not compared with their checksums; a later read
                      detects damage by the checksums, which are copied                 */
    int keep;      /* 1: the commit keeps the job's folder, for other tokens of the job */
    caterva_progress progress; /* done == 0 while parts are checked */
} caterva_merge_options;
#define CATERVA_MERGE_INIT CATERVA_INIT_(caterva_merge_options)

typedef struct caterva_merge_result {
    size_t struct_size;
    int64_t parts;          /* parts with items, each counted once            */
    int64_t chunks;         /* chunks that the parts wrote                    */
    int64_t moved_chunks;   /* chunks moved as stored                         */
    int64_t spliced_chunks; /* chunks assembled from compressed blocks        */
    int64_t decoded_blocks; /* blocks decoded for spliced or encoded chunks   */
    int64_t merged_before;  /* chunks that already held the same items        */
} caterva_merge_result;
#define CATERVA_MERGE_RESULT_INIT CATERVA_INIT_(caterva_merge_result)

/* Merges `n` finished parts of one job into the array, which is open for writing; any handle
 * can merge, not only the one that began the job. The merge is pending like any write:
 * caterva_commit makes all of it visible and deletes the job's folder (caterva_jobs_list
 * lists parts that stay); caterva_rollback rolls the merge back and keeps the parts. A
 * repeated token counts once. Parts that share chunks must be merged in one call. `options`
 * and `result` may be NULL.
 *
 * Everything is checked before anything changes, except that the array first grows to the
 * shape of the job, and this change stays pending:
 *
 *   CATERVA_ECORRUPT   bytes that are not a token; a part whose index or chunks do not match
 *                      the checksum in its token. Other bytes of the part's file, such as
 *                      those after its frame, are ignored
 *   CATERVA_EINVAL     tokens of several jobs
 *   CATERVA_ENOTFOUND  a part, or the folder of the job beside this array, does not exist
 *   CATERVA_ESHAPE     the array's geometry or dtype is not that of the job
 *   CATERVA_EEXIST     two parts wrote the same items; the message names both
 *   CATERVA_ESTALE     a chunk that a part wrote has changed in the array since the job
 *                      began, unless it already holds the items of the parts, as after a
 *                      commit whose success was not reported; or another array has been
 *                      created at the path
 *
 * After another failure, or CATERVA_ECORRUPT while chunks are moved, the committed state is
 * untouched, but caterva_rollback must precede the next change of the array. Merging the same
 * tokens again then succeeds.
 *
 * Costs one opening and at most one copy of each part's compressed bytes. In a directory,
 * whole chunk files of the same file system and owner are linked. A finished part must not be
 * written: caterva_commit returns CATERVA_ECORRUPT, with nothing changed, if the length or
 * time of a linked file has changed since the merge. Memory: 48 bytes (linked: 64 more) for
 * each chunk of all tokens together, and a few open parts.
 * Thread: turns. */
CATERVA_API caterva_status caterva_merge(caterva_array *array, const void *const *tokens,
                                         const size_t *token_sizes, size_t n,
                                         const caterva_merge_options *options,
                                         caterva_merge_result *result, caterva_error *err);

/* Deletes the folder of the job with all its parts, whichever process began it, and also
 * while its coordinator works: see `is_live` of caterva_jobs_list. Tokens of the job are
 * unusable afterwards. The array need not exist any more. Returns CATERVA_ENOTFOUND if the
 * job does not exist, and CATERVA_EIO if a part (of another user, for example) could not be
 * deleted; the others are deleted, and the job has ended.
 *
 * If the progress of `options` (may be NULL) stops the call at done == 0, nothing has changed.
 * If it stops the call later, the job has ended: caterva_jobs_list lists the remaining parts,
 * with `has_ended`, and another call deletes them.
 * Thread: any. */
CATERVA_API caterva_status caterva_job_delete(const char *url, const void *job,
                                               size_t job_size,
                                               const caterva_upkeep_options *options,
                                               caterva_error *err);

/* Allocated by the library. */
typedef struct caterva_job_entry {
    size_t struct_size;
    const char *id;        /* 32 hexadecimal digits, the name of its folder        */
    const char *folder;    /* path                                                 */
    const void *job;       /* as returned by caterva_job_begin                     */
    size_t job_size;
    const char *host;      /* machine on which the job was begun                   */
    int64_t process;       /* process that began the job                           */
    int64_t began_ns;      /* nanoseconds since 1970, by the clock of that machine */
    int64_t commit_number; /* of the array when the job began; 0: see caterva_info */
    int is_live;           /* 1: the handle that began the job is open             */
    int64_t n_parts;       /* finished parts, including repeated work              */
    int64_t part_bytes;    /* size of the files of all finished parts              */
    int has_ended;         /* 1: merged or deleted, but its folder is not empty    */
} caterva_job_entry;

typedef struct caterva_job_list {
    size_t struct_size;
    size_t n;
    const caterva_job_entry *const *entries; /* n of them, the oldest first */
} caterva_job_list;

/* Lists the open jobs beside the array at `url`: those that were begun, but not yet merged and
 * committed, or deleted. With `has_ended`, also lists ended jobs of which a part could not be
 * deleted: caterva_job_delete tries again. Reads every part. `options` may be NULL. Release
 * *out with caterva_job_list_release.
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
