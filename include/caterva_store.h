/* Caterva: frames that are not in a file, and memory that is not from malloc.
 *
 * Stores and allocators that the program implements, and frames in the program's memory.
 * Conventions and thread classes are those of caterva.h. */
#ifndef CATERVA_STORE_H
#define CATERVA_STORE_H

#include <caterva.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Stores of the program's own ------------------------------------------ */

/* One of the ranges that caterva_store.read_many reads together. */
typedef struct caterva_store_range {
    uint64_t pos;
    size_t size; /* at least 1; all bytes must be read */
    void *dst;
    int64_t reserved; /* 0                             */
} caterva_store_range;

/* Functions of the program that keep a frame outside files and memory: in a blob of a
 * database, a member of an archive, or an object store. Begin with CATERVA_STORE_INIT and set
 * `size` and `read`; to write, also `write`, `truncate` and `sync`.
 *
 * Threads. The functions are called from any thread, also of the pool, and concurrently:
 * `size`, `read` and `read_many` beside each other and beside a `write` of other bytes;
 * `write` beside a `write` of other bytes. The library never reads bytes while it writes
 * them. With `one_at_a_time` it holds a lock around each call. The functions must not use an
 * array in the store, and must return: no longjmp, no exception.
 *
 * Errors. A function returns CATERVA_OK, or CATERVA_EIO, ENOMEM, EBUSY, ENOTFOUND or ESTOPPED
 * (other statuses count as CATERVA_EIO), and may put one sentence into err->message and an
 * errno number into err->sys_errno; `err` is never NULL. The error that the library returns
 * has this sentence after the store's name and the operation. */
typedef struct caterva_store {
    size_t struct_size;
    void *context;        /* passed to every function                                     */
    const char *name;     /* for messages; NULL: "the program's store"                    */
    const char *identity; /* names the stored data: only one handle of this process may write
                             in stores of this identity (CATERVA_EBUSY). NULL: not checked */
    int one_at_a_time;    /* 1: the functions are never called concurrently               */
    /* Sets *size to the current number of bytes. */
    caterva_status (*size)(void *context, uint64_t *size, caterva_error *err);
    /* Reads up to `size` bytes, at least 1 if there are any at `pos`, and sets *done to the
     * number of bytes read; 0 means the end. The library calls again for the rest. */
    caterva_status (*read)(void *context, uint64_t pos, void *dst, size_t size, size_t *done,
                           caterva_error *err);
    /* Writes all bytes, and extends the store if needed; a gap reads as zeros. After a
     * failure, or the death of the program, any of these bytes may have been written, but no
     * other bytes. A write inside the first 512 bytes makes a commit visible, and must be
     * atomic, like a write of a disk's sector. */
    caterva_status (*write)(void *context, uint64_t pos, const void *src, size_t size,
                            caterva_error *err);
    /* Truncates the store to `size` bytes, or extends it with zeros. */
    caterva_status (*truncate)(void *context, uint64_t size, caterva_error *err);
    /* Returns when all writes and truncations so far are durable. Determines the durability
     * of a commit; not called with CATERVA_DURABILITY_NONE. */
    caterva_status (*sync)(void *context, caterva_error *err);
    /* Returns non-zero if others may have the store open for reading: a writer then does not
     * reuse the space of replaced chunks. NULL: always. */
    int (*has_readers)(void *context);
    /* Called once for each handle of caterva_store_open or caterva_store_create, after it is
     * closed and its last read has ended. May be NULL. */
    void (*close)(void *context);
    uint64_t latency_ns;       /* of a read, approximately; 0: unknown                    */
    uint64_t bytes_per_second; /* of one read; 0: unknown. With `read_many`, latency and speed
                                  determine which gaps between ranges are read as well    */
    /* Optional, for a store with slow reads: reads n ranges concurrently. The library then
     * requests everything it needs in a few calls: for a read, the headers of all chunks and
     * then all blocks. Ranges may be adjacent, and in any order. A read holds up to 16 MiB of
     * stored bytes. Statistics, reductions, reads around damage, prefetches, copies and
     * caterva_verify request chunks ahead: about 32 MiB, at most 64 MiB. A copy that moves
     * chunks requests about a quarter of its `memory` ahead, at most half.
     *
     * Call arrived(token, i) as soon as range i is complete at its dst, once for each range,
     * in any order, on the calling thread: the library decodes it there while other ranges
     * are in transfer. If `arrived` returns non-zero, return CATERVA_ESTOPPED soon, after all
     * writes to ranges have ended. During long waits call arrived(token, n) about every
     * 100 ms, to check for this.
     *
     * After a failure, or for ranges left out, the library uses `read` and its status. */
    caterva_status (*read_many)(void *context, const caterva_store_range *ranges, size_t n,
                                int (*arrived)(void *token, size_t range), void *token,
                                caterva_error *err);
} caterva_store;
#define CATERVA_STORE_INIT CATERVA_INIT_(caterva_store)

/* Opens the frame in `store`, as caterva_open opens a file. Copies the struct. On success the
 * array owns the store: caterva_close and caterva_discard call `close`. On failure the caller
 * keeps the store, and `close` is not called.
 *
 * CATERVA_MODE_WRITE needs `write`, `truncate` and `sync`; only this handle may write while it
 * is open. caterva_refresh reads the current state. There is no URL: caterva_compact,
 * caterva_seal, caterva_repair and caterva_delete cannot be used; caterva_copy makes a file
 * of the array. caterva_open_options.offset must be 0, and keep_bytes has no effect.
 * Thread: any. */
CATERVA_API caterva_status caterva_store_open(const caterva_store *store,
                                              const caterva_open_options *options,
                                              caterva_array **out, caterva_error *err);

/* Creates an array in the store, as caterva_create does in a file. The array owns the store,
 * as with caterva_store_open. Returns CATERVA_EEXIST if the store holds any bytes, unless
 * `options` set overwrite: the bytes are then truncated at once, not at the first commit.
 * Closing without a commit leaves the store empty. The layout is CATERVA_LAYOUT_CONTIGUOUS.
 * Thread: any. */
CATERVA_API caterva_status caterva_store_create(const caterva_store *store,
                                                const caterva_create_options *options,
                                                caterva_array **out, caterva_error *err);

/* ---- Frames in memory ---------------------------------------------------- */

/* Opens `size` bytes in memory that are a whole contiguous frame. With `copy` 0 the library
 * borrows them: they must not change until the handle is closed, and the handle is for
 * reading only. With `copy` 1 the library copies them, and the handle may also write;
 * caterva_frame_copy returns the new bytes.
 * Thread: any. */
CATERVA_API caterva_status caterva_frame_open(const void *frame, size_t size, int copy,
                                              const caterva_open_options *options,
                                              caterva_array **out, caterva_error *err);

/* Copies the array, with pending changes, into one contiguous frame in memory, without dead
 * space; chunks are copied compressed. Takes twice the memory of the frame meanwhile. Release
 * *frame with caterva_free.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_copy(caterva_array *array, void **frame, size_t *size,
                                            caterva_error *err);

/* Passes the array to `take` as one contiguous frame, with pending changes, piece by piece in
 * order, without holding all of it in memory. `take` gets `size` bytes of `total`, borrowed
 * for the call, and returns non-zero to stop (CATERVA_ESTOPPED). It must not use the array.
 *
 * A file or an array in memory without pending changes is passed as stored, with dead space:
 * only bytes that the store cannot lend are copied, at most 1 MiB at a time, and nothing is
 * checked. A directory, or an array with pending changes, takes the memory of a frame without
 * dead space.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_pieces(caterva_array *array,
                                                int (*take)(void *context, const void *piece,
                                                            size_t size, uint64_t total),
                                                void *context, caterva_error *err);

/* Appends the array, as one contiguous frame, to the file at `path`, which is created if it
 * does not exist. Sets *offset to the start of the frame, for caterva_open_options. Takes the
 * memory of the frame. After a failure the file has its old length. Returns CATERVA_EBUSY while
 * an array at the file's beginning is open for writing. Such an array must not be written
 * afterwards: its commits would overwrite the bytes behind it.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_append(caterva_array *array, const char *path,
                                               caterva_durability durability,
                                               uint64_t *offset, caterva_error *err);

/* ---- Memory of the program's own ------------------------------------------ */

/* Functions of the program that allocate the library's memory, instead of malloc. Begin with
 * CATERVA_ALLOCATOR_INIT and set both functions.
 *
 * They are called from any thread, also of the pool, and concurrently. They must not call
 * this library, and must return: no longjmp, no exception. One thread may release memory that
 * another one allocated. */
typedef struct caterva_allocator {
    size_t struct_size;
    void *context; /* passed to both functions; valid until the process ends */
    /* Returns `size` >= 1 uninitialised bytes at a multiple of `alignment`, or NULL: the
     * library's call then fails with CATERVA_ENOMEM. `alignment` is a power of 2: mostly that
     * of max_align_t, 64 for buffers, 2 MiB for the pages of the block cache. */
    void *(*allocate)(void *context, size_t size, size_t alignment);
    /* Releases memory that `allocate` returned; never NULL. */
    void (*release)(void *context, void *memory);
} caterva_allocator;
#define CATERVA_ALLOCATOR_INIT CATERVA_INIT_(caterva_allocator)

/* Makes the library allocate all its memory with `allocator`, from now on and in the whole
 * process. Copies the struct. Call it once, before all other functions: after the library has
 * allocated anything, this returns CATERVA_EBUSY and changes nothing. Returns CATERVA_EINVAL
 * if a function is NULL.
 *
 * This covers every allocation of the library: handles, buffers, cached blocks, the segments
 * of arrays in memory, and results. Release results with caterva_free (or the function that
 * the contract names), never with `release` or free. Four things are not covered: C-Blosc2,
 * which uses malloc for the contexts and scratch of each thread; the stacks of the pool's
 * threads; allocations of the C library inside its own calls (listing a directory, resolving
 * a path); and borrowed memory, which is never released.
 * Thread: any. */
CATERVA_API caterva_status caterva_set_allocator(const caterva_allocator *allocator,
                                                 caterva_error *err);

/* ---- Background reads and forks ------------------------------------------ */

/* For programs whose own functions (of a store, on_request, on_headers) need a lock that the
 * forking thread holds, such as the lock of an interpreter: a fork waits for the background
 * reads in progress, and these wait for the function. Call caterva_background_hold without
 * that lock before the fork, and caterva_background_resume after it, only in the parent: a
 * child of fork holds nothing.
 *
 * caterva_background_hold returns when no read of caterva_read_async and no prefetch is in
 * progress; or, as a fork does, when none of them has ended for 10 seconds. Called inside a
 * function of the program, it returns at once, because the reads may wait for that function.
 * Queued and new reads wait until each hold is resumed. Do not wait for a request meanwhile;
 * new calls work on their own thread alone.
 * Thread: any. */
CATERVA_API void caterva_background_hold(void);
CATERVA_API void caterva_background_resume(void);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_STORE_H */
