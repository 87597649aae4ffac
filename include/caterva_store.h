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

/* One of several ranges that caterva_store.read_many reads at once. */
typedef struct caterva_store_range {
    uint64_t pos;
    size_t size; /* 1 at least; all of them are to be read */
    void *dst;
    int64_t reserved; /* 0 */
} caterva_store_range;

/* Functions of yours that keep a frame where there is neither a file nor memory: in a blob
 * of a database, a member of an archive, an object somewhere. Begin with CATERVA_STORE_INIT
 * and set `size` and `read`; to write, also `write`, `truncate` and `sync`.
 *
 * Threads. The pool's threads call these functions, too, and several at once: `size` and
 * `read` beside each other and beside a `write` of other bytes, and `write` of separate
 * bytes beside each other; `read_many` is like `read` in this. The library never reads bytes
 * while it writes them. With `one_at_a_time` it holds a lock around each call. The functions
 * must not use an array that is in the store, and must return: no longjmp, no exception.
 *
 * Errors. A function returns CATERVA_OK, or CATERVA_EIO, ENOMEM, EBUSY, ENOTFOUND or
 * ESTOPPED (other statuses count as CATERVA_EIO), and may put one sentence into
 * err->message and an errno number into err->sys_errno; `err` is never NULL. Your caller
 * finds the sentence behind the name of the store and what it was to do. */
typedef struct caterva_store {
    size_t struct_size;
    void *context;        /* handed to every function                                  */
    const char *name;     /* for sentences; NULL: "the program's store"                 */
    const char *identity; /* of all openings in this process with the same text, one at a
                             time may write: CATERVA_EBUSY. NULL: the program sees to it */
    int one_at_a_time;    /* 1: the functions are not called by two threads at once     */
    /* How many bytes there are now.                                                   */
    caterva_status (*size)(void *context, uint64_t *size, caterva_error *err);
    /* Reads up to `size` bytes, at least 1 when there are any at `pos`; *done says how
     * many. 0 is the end. The library asks again for the rest.                        */
    caterva_status (*read)(void *context, uint64_t pos, void *dst, size_t size, size_t *done,
                           caterva_error *err);
    /* Writes all the bytes, and makes the store as long as they need; a gap reads as
     * zeros. When it fails, or the program dies in it, any of these bytes may have been
     * written, and no others; but of a write inside the first 512 bytes, which is how a
     * commit becomes visible, all or none, as a disk writes a sector.                  */
    caterva_status (*write)(void *context, uint64_t pos, const void *src, size_t size,
                            caterva_error *err);
    /* Cuts the store to `size` bytes, or lets it grow by zeros.                       */
    caterva_status (*truncate)(void *context, uint64_t size, caterva_error *err);
    /* Returns when all that was written and cut so far stays, whatever happens. A commit
     * is as durable as this is; CATERVA_DURABILITY_NONE never calls it.               */
    caterva_status (*sync)(void *context, caterva_error *err);
    /* Might anybody else have the store open for reading? As long as this says so, a
     * writer never uses the space of replaced chunks again. NULL: always.             */
    int (*has_readers)(void *context);
    /* Called once for each handle that caterva_store_open or caterva_store_create gave, when
     * it and what still reads for it are closed. NULL: not.                              */
    void (*close)(void *context);
    uint64_t latency_ns;       /* of a read, about, and what one transfers: with        */
    uint64_t bytes_per_second; /* `read_many` they say over which gaps reading is worth
                                  it. 0: not known                                      */
    /* Optional, for a store whose reads take long: reads n ranges, many at once. With it a
     * call of the library asks for all that it knows it needs in a few such calls: of a
     * read the heads of all chunks first, then all blocks. Ranges may touch, and stand in
     * any order. A read holds up to 16 MiB of stored bytes. Statistics and reductions,
     * reads around damage, prefetches, copies and caterva_verify ask like that for some
     * chunks ahead: about 32 MiB, never more than 64; a copy that moves chunks a quarter
     * of its `memory`, never more than half.
     *
     * Calls arrived(token, i) as soon as range i is whole at its dst, once for each, in any
     * order, on the thread that called: the library decodes it in there, while other ranges
     * are on their way. When `arrived` returns other than 0 nothing more is wanted: return
     * CATERVA_ESTOPPED soon, with no range being written to any more. Who waits long calls
     * arrived(token, n) every 100 ms or so, to hear that.
     *
     * When it fails, or leaves ranges out, the library reads what has not arrived with
     * `read`, and what that says counts.                                              */
    caterva_status (*read_many)(void *context, const caterva_store_range *ranges, size_t n,
                                int (*arrived)(void *token, size_t range), void *token,
                                caterva_error *err);
} caterva_store;
#define CATERVA_STORE_INIT CATERVA_INIT_(caterva_store)

/* Opens the frame that `store` holds, as caterva_open does a file's. Copies the struct. On
 * success the array owns the store: caterva_close and caterva_discard call `close`. On
 * failure it stays yours, and `close` is not called.
 *
 * CATERVA_MODE_WRITE needs the functions to write; nobody but this handle may write while
 * it is open. caterva_refresh reads the state anew. There is no URL: caterva_compact,
 * caterva_seal, caterva_repair and caterva_delete do not reach the array; caterva_copy
 * makes a file of it. caterva_open_options.offset must be 0, and keep_bytes has no effect.
 * Thread: any. */
CATERVA_API caterva_status caterva_store_open(const caterva_store *store,
                                              const caterva_open_options *options,
                                              caterva_array **out, caterva_error *err);

/* Creates an array in the store, as caterva_create does in a file, and owns the store as
 * caterva_store_open does. Returns CATERVA_EEXIST when the store holds any bytes, unless
 * `options` say overwrite: then it cuts them off at once, and not at the first commit. If
 * you close without a commit the store is left empty. The layout is
 * CATERVA_LAYOUT_CONTIGUOUS.
 * Thread: any. */
CATERVA_API caterva_status caterva_store_create(const caterva_store *store,
                                                const caterva_create_options *options,
                                                caterva_array **out, caterva_error *err);

/* ---- Frames in memory ---------------------------------------------------- */

/* Opens `size` bytes in memory that are a whole contiguous frame. With `copy` 0 the library
 * borrows them: leave them unchanged until you close the handle, and open for reading. With
 * `copy` 1 you may also write; caterva_frame_copy gives you the new bytes.
 * Thread: any. */
CATERVA_API caterva_status caterva_frame_open(const void *frame, size_t size, int copy,
                                              const caterva_open_options *options,
                                              caterva_array **out, caterva_error *err);

/* Copies the array, pending changes included, into one contiguous frame in memory: compact,
 * chunks copied compressed. Takes twice the memory of the frame for a while. Release *frame
 * with caterva_free.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_copy(caterva_array *array, void **frame, size_t *size,
                                            caterva_error *err);

/* Hands you the array as one contiguous frame, pending changes included, piece after piece
 * in order, without the whole of it in memory. `take` gets `size` bytes of `total` and
 * returns non-zero to stop (CATERVA_ESTOPPED); a piece is borrowed for the call. Do not use
 * the array in it.
 *
 * A file, or an array in memory, that has nothing pending is handed over as it lies, dead
 * space included: nothing is copied but what the store cannot lend, at most 1 MiB at a
 * time, and nothing is checked. A directory, and an array with changes pending, take the
 * memory of a compact frame.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_pieces(caterva_array *array,
                                                int (*take)(void *context, const void *piece,
                                                            size_t size, uint64_t total),
                                                void *context, caterva_error *err);

/* Appends such a frame to the file at `path`, which it creates when there is none. *offset
 * says where the frame begins, for caterva_open_options. Takes the memory of the frame.
 * After a failure the file is as long as it was. Returns CATERVA_EBUSY while somebody
 * writes an array at the file's beginning. Do not write to such an array afterwards: its
 * commits take the space behind it for their own.
 * Thread: turns. */
CATERVA_API caterva_status caterva_frame_append(caterva_array *array, const char *path,
                                               caterva_durability durability,
                                               uint64_t *offset, caterva_error *err);

/* ---- Memory of the program's own ------------------------------------------ */

/* Functions of yours that give the library its memory, instead of malloc. Begin with
 * CATERVA_ALLOCATOR_INIT and set both functions.
 *
 * Any thread may call them, the pool's threads too, and several at once. They must not call
 * this library, and must return: no longjmp, no exception. One thread may release what
 * another one allocated. */
typedef struct caterva_allocator {
    size_t struct_size;
    void *context; /* handed to both functions; must live as long as the process */
    /* Returns `size` bytes, at least 1, at a multiple of `alignment`, or NULL: then the
     * call that needed them fails with CATERVA_ENOMEM. What the bytes hold does not
     * matter. `alignment` is a power of 2: that of max_align_t mostly, 64 for buffers,
     * 2 MiB for the pages of the block cache.                                         */
    void *(*allocate)(void *context, size_t size, size_t alignment);
    /* Takes back what `allocate` returned; never NULL.                                */
    void (*release)(void *context, void *memory);
} caterva_allocator;
#define CATERVA_ALLOCATOR_INIT CATERVA_INIT_(caterva_allocator)

/* Makes the library take all its memory from `allocator`, from now on and in the whole
 * process. Copies the struct. Call it once, first of all: as soon as the library has
 * allocated anything, also for a call that has ended, this returns CATERVA_EBUSY and
 * changes nothing. Returns CATERVA_EINVAL when a function is NULL.
 *
 * Every allocation of the library goes through it: handles, buffers, cached blocks, the
 * segments of arrays in memory, and what it hands out. Release the latter with caterva_free
 * (or the function that its comment names), never with `release` or free. Four things do
 * not go through it: C-Blosc2, which has no such hook and uses malloc for the contexts and
 * scratch of each thread; the stacks of the pool's threads; what the C library allocates
 * inside its own calls (listing a directory, resolving a path); and memory that you lend,
 * which is never released.
 * Thread: any. */
CATERVA_API caterva_status caterva_set_allocator(const caterva_allocator *allocator,
                                                 caterva_error *err);

/* ---- Background reads and forks ------------------------------------------ */

/* For programs whose own functions (of a store, on_request, on_headers) need a lock that the
 * thread which forks holds, such as the lock of an interpreter: a fork waits for background
 * reads that are being done, and such a read for the function. Call caterva_background_hold
 * without that lock before the fork, and caterva_background_resume after it, in the parent
 * alone: a child of fork holds nothing.
 *
 * caterva_background_hold returns when no read of caterva_read_async and no prefetch is being
 * done; or, as a fork does, when none of them has come to an end for 10 seconds. Called in
 * one of these functions it returns at once: they may wait for that. Reads in the queue, and
 * those that come, wait until each hold is resumed. Meanwhile wait for no request; calls
 * that begin then do their work on their own thread alone.
 * Thread: any. */
CATERVA_API void caterva_background_hold(void);
CATERVA_API void caterva_background_resume(void);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_STORE_H */
