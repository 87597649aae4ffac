/* Caterva: n-dimensional arrays in compressed chunks.
 *
 * An array is divided into chunks and each chunk into blocks. A read decodes only the blocks
 * it touches, in parallel. A file is a Blosc2 frame with the `b2nd` (or older `caterva`)
 * metalayer: this library, python-blosc2 and C-Blosc2 read what the others write.
 *
 * Start with caterva_open, caterva_read, caterva_close. Every function that can fail returns
 * a caterva_status and takes a caterva_error last (NULL is fine).
 *
 * Arguments. The order is: object, inputs, options (NULL: the defaults), results, error. The
 * number of axes precedes their lengths; other counts follow what they count. Handles are
 * never const, because reads change their caches. Views, infos, lists and dtypes never change
 * and are const.
 *
 * Ownership. An object stored through `**out` belongs to the caller; the contract names the
 * function that releases it. A returned pointer is borrowed. Releasing NULL is fine.
 *
 * Threads. Each contract names the function's thread class:
 *
 *   any     call it from any thread at any time; it waits for no other call
 *   shared  call it from any thread, also while other threads use the handle; it runs
 *           beside other shared calls, but not beside a call of class turns
 *   turns   call it from any thread, also while other threads use the handle; it runs
 *           alone: it waits for the calls in progress, and later calls wait for it
 *   alone   no other thread may be in a call with the handle, or begin one
 *
 * Calls on different handles run in parallel; a handle for reading never blocks another handle.
 * A handle with one thread encodes and decodes on the caller's thread. While a write encodes
 * one chunk, a pool thread may write the previous chunk to the file.
 *
 * State. The library keeps a fork-safe pool of worker threads (started on first use), a cache
 * of decoded blocks bounded in bytes, a list of new arrays that are not committed yet, and a
 * list of files that it may close when descriptors run short. It prints nothing, and reads
 * the environment only for URLs. The pool outlives the last handle, so the shared library
 * stays loaded after dlclose. Never unload a plug-in that links the static library (link it
 * with -Wl,-z,nodelete). */
#ifndef CATERVA_H
#define CATERVA_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <string.h>
#endif

/* The _INIT macros: struct_size is set, everything else is zero. */
#ifdef __cplusplus
template <typename T> inline T caterva_init_()
{
    T made;
    memset(&made, 0, sizeof(T)); /* padding, too */
    made.struct_size = sizeof(T);
    return made;
}
#define CATERVA_INIT_(type) caterva_init_<type>()
extern "C" {
#else
#define CATERVA_INIT_(type) { .struct_size = sizeof(type) }
#endif

#if defined(_WIN32) && defined(CATERVA_BUILDS_DLL)
#define CATERVA_API __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define CATERVA_API __attribute__((visibility("default")))
#else
#define CATERVA_API
#endif

#define CATERVA_VERSION_MAJOR 0
#define CATERVA_VERSION_MINOR 8
#define CATERVA_VERSION_PATCH 0
#define CATERVA_VERSION_STRING "0.8.0"

/* 16 dimensions can be read; 15 can be written (msgpack's fixarray ends there). */
#define CATERVA_MAX_DIMS 16
#define CATERVA_MAX_WRITE_DIMS 15
#define CATERVA_MAX_FILTERS 6
#define CATERVA_STATE_ID 16 /* bytes of caterva_info.state_id */

/* ---- Statuses and errors ------------------------------------------------ */

/* The result of every function that can fail. Values never change meaning. */
typedef enum caterva_status {
    CATERVA_OK = 0,
    CATERVA_EINVAL = -1,       /* an argument breaks a documented rule               */
    CATERVA_ENOMEM = -2,       /* an allocation failed; nothing was changed          */
    CATERVA_EIO = -3,          /* the store failed; see err->sys_errno               */
    CATERVA_ECORRUPT = -4,     /* the bytes are not a valid array                    */
    CATERVA_EUNSUPPORTED = -5, /* valid, but this library cannot read or do it       */
    CATERVA_EBUSY = -6,        /* in use by another handle, process or call          */
    CATERVA_EEXIST = -7,       /* something exists there and may not be replaced     */
    CATERVA_ENOTFOUND = -8,    /* no such file, attribute or metalayer               */
    CATERVA_ESTOPPED = -9,     /* stopped by caterva_progress, or cancelled          */
    CATERVA_ESHORT = -10,      /* a buffer has fewer bytes than the call needs       */
    CATERVA_EREADONLY = -11,   /* the handle or view is for reading only             */
    CATERVA_ERANGE = -12,      /* an index, box, axis or chunk number is out of range */
    CATERVA_EDTYPE = -13,      /* this call does not accept the items' dtype         */
    CATERVA_ECAST = -14,       /* `casting` does not allow this conversion           */
    CATERVA_ESHAPE = -15,      /* shapes do not fit each other                       */
    CATERVA_EROLLBACK = -16,   /* a change failed half-way: roll back first          */
    CATERVA_ESTALE = -17,      /* the shape changed since the view or read began     */
    CATERVA_EPIPELINE = -18    /* codec and filters cannot encode these items        */
} caterva_status;

/* Filled on failure, unchanged on success; need not be initialised. */
typedef struct caterva_error {
    caterva_status code;
    int sys_errno;     /* 0 unless a system call failed                        */
    int64_t position;  /* byte offset in the frame, or -1                      */
    char message[240]; /* one English sentence, NUL-terminated UTF-8; control
                          characters and invalid bytes in names appear as \xNN */
    int64_t reserved[4]; /* set to 0 by this version; for later members        */
} caterva_error;

/* caterva_version returns "MAJOR.MINOR.PATCH". caterva_codec_version returns the version of the
 * C-Blosc2 in use. caterva_status_name returns "CATERVA_EINVAL" etc., or "unknown status". The
 * texts are static.
 * Thread: any. */
CATERVA_API const char *caterva_version(void);
CATERVA_API const char *caterva_codec_version(void);
CATERVA_API const char *caterva_status_name(caterva_status status);

/* ---- Codecs and filters ------------------------------------------------- */

/* Codecs. The low byte is the number in Blosc2 frames (blosclz: 0). Codecs from 32 on are n-d
 * plugins of libblosc2, which documents their `codec_meta`. Some combinations of codec and
 * filters do not restore the items, or not with the precision that the filters promise: for
 * example delta with two other filters, trunc-prec after shuffle, or zfp on integers. Creating,
 * copying or writing with such a pipeline returns CATERVA_EPIPELINE; the error names it. */
typedef enum caterva_codec {
    CATERVA_CODEC_DEFAULT = 0, /* zstd                                               */
    CATERVA_CODEC_LZ4 = 1,
    CATERVA_CODEC_LZ4HC = 2,
    CATERVA_CODEC_ZLIB = 4,
    CATERVA_CODEC_ZSTD = 5,
    CATERVA_CODEC_NDLZ = 32,
    CATERVA_CODEC_ZFP_ACCURACY = 33,  /* lossy; codec_meta: 10^meta is the tolerance */
    CATERVA_CODEC_ZFP_PRECISION = 34, /* lossy; codec_meta: bits kept                */
    CATERVA_CODEC_ZFP_RATE = 35,      /* lossy; codec_meta: percent of the size      */
    CATERVA_CODEC_BLOSCLZ = 256
} caterva_codec;

/* Filters, numbered in the same way; 0 in a Blosc2 frame is "no filter". */
typedef enum caterva_filter {
    CATERVA_FILTER_DEFAULT = 0, /* see caterva_create_options.filters                     */
    CATERVA_FILTER_SHUFFLE = 1,
    CATERVA_FILTER_BITSHUFFLE = 2,
    CATERVA_FILTER_DELTA = 3, /* C-Blosc2 misreads parts of chunks that have it           */
    CATERVA_FILTER_TRUNC_PREC = 4, /* lossy; meta: mantissa bits kept (negative: cleared) */
    CATERVA_FILTER_NDCELL = 32,    /* meta: cell edge                                     */
    CATERVA_FILTER_NDMEAN = 33,    /* lossy; meta: cell edge                              */
    CATERVA_FILTER_BYTEDELTA = 35, /* after shuffle; meta: streams, 0 = item size         */
    CATERVA_FILTER_INT_TRUNC = 36, /* lossy; meta: bits kept (negative: cleared)          */
    CATERVA_FILTER_NONE = 256
} caterva_filter;

/* Convert a constant into the name that the command line uses ("lz4", "bitshuffle", ...) and
 * back. Return -1 for an unknown name, NULL for an unknown constant. Names are static.
 * Thread: any. */
CATERVA_API const char *caterva_codec_name(int codec);
CATERVA_API int caterva_codec_number(const char *name);
CATERVA_API const char *caterva_filter_name(int filter);
CATERVA_API int caterva_filter_number(const char *name);

/* ---- dtypes ------------------------------------------------------------- */

/* A parsed NumPy type description: "<f8", "|S8", "<M8[ns]", or a list of fields such as
 * "[('a', '<f4'), ('b', '<f8', (3,))]". */
typedef struct caterva_dtype caterva_dtype;

typedef struct caterva_field {
    const char *name;           /* NUL-terminated UTF-8             */
    int64_t offset;             /* bytes from the item's start      */
    const caterva_dtype *dtype; /* of the field, sub-array included */
    int64_t reserved[2];        /* 0                                */
} caterva_field;

struct caterva_dtype {
    char kind;        /* NumPy's: b i u f c S U M m V, or '?' if unknown */
    char byte_order;  /* '<', '>' or '|' (not applicable)                */
    int64_t item_size; /* bytes, sub-array included                      */
    int ndim;         /* of the sub-array; 0 for a scalar                */
    int64_t shape[CATERVA_MAX_DIMS];
    char unit[16];    /* M, m: "ns", "25s", or "" for generic            */
    int n_fields;     /* of a structured type, else 0                    */
    const caterva_field *fields;
};

/* Parses a description. CATERVA_EINVAL names the fault and the character. Release *out with
 * caterva_dtype_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_dtype_parse(const char *text, caterva_dtype **out,
                                               caterva_error *err);
CATERVA_API void caterva_dtype_free(caterva_dtype *dtype);

/* ---- Progress and stopping ---------------------------------------------- */

/* Reports the progress of long calls, and can stop them. In the options that create or open a
 * handle it applies to all calls through the handle. In the options of one call it applies to
 * that call. If both are set the call reports to both, possibly at the same time. Arrays opened
 * from a tree have their own options for this.
 *
 * - `report` is called from any thread, but never concurrently. It must be quick and must not
 *   use the array. If it returns non-zero the call stops: CATERVA_ESTOPPED. A function set for
 *   a handle stops all calls in progress through the handle, and every call that begins before
 *   the stopped calls have ended.
 * - All counts are bytes of items that are decoded or encoded, in whole chunks or blocks,
 *   unless an option states something else. A file that is listed, moved or deleted counts 4
 *   KiB, whatever its size.
 * - `done` never decreases and never exceeds `total`. `total` is 0 while nothing is known, and
 *   grows when a call finds more work. Concurrent calls through one handle are counted
 *   together. The first report is made at once, and a successful call ends with
 *   done == total. A call with nothing to do reports nothing.
 * - A stopped call leaves what a failed call leaves: the committed state is untouched and
 *   pending changes stay pending. A stopped commit can be repeated or rolled back. A stopped
 *   caterva_close drops pending changes and releases the handle. The items of a stopped read
 *   or write are undefined.
 * - A stop at done == total, or while a commit deletes files, may be too late: the call then
 *   succeeds.
 * - Background reads report nothing. Stop them with caterva_request_cancel.
 *
 * More than 100 ms can pass without a report while millions of indices or points are copied,
 * while the index of more than a million chunks or the directory of an archive of more than
 * 100,000 members is processed, during a single read or write of a store, a sync to disk or a
 * block inside libblosc2, and in caterva_chunk_write_stored. */
typedef struct caterva_progress {
    int (*report)(void *context, int64_t done, int64_t total); /* or NULL               */
    void *context;
    int per_second;      /* maximum reports; 0: 50; CATERVA_NONE: report every step     */
    int64_t reserved[2]; /* 0                                                           */
} caterva_progress;

/* ---- Options ------------------------------------------------------------ */

/* Options begin with struct_size, which keeps an old program valid with a new library: start
 * from the _INIT macro. Pointers are borrowed for the call. A longer struct of a newer
 * version is accepted if the unknown part is zero; otherwise CATERVA_EINVAL names the byte.
 * Structs in arrays, and structs that need not be initialised, have reserved members instead.
 * Zero and NULL mean "choose for me" in every member of every struct. If "nothing" is a
 * choice it has its own value: CATERVA_NONE, or a constant of the enumeration. */
#define CATERVA_NONE (-1)

typedef enum caterva_durability {
    CATERVA_DURABILITY_FULL = 0, /* commit survives power loss (two syncs)                 */
    CATERVA_DURABILITY_ORDERED,  /* one sync: power loss may undo the last commit only     */
    CATERVA_DURABILITY_NONE      /* no sync: survives a killed process, not power loss     */
} caterva_durability;

typedef enum caterva_fill {
    CATERVA_FILL_DEFAULT = 0, /* zeros; in a copy: the source's fill          */
    CATERVA_FILL_ZEROS,
    CATERVA_FILL_UNINIT, /* zeros until written; any bytes in other libraries */
    CATERVA_FILL_NAN,    /* item size 4 or 8                                  */
    CATERVA_FILL_VALUE   /* every item is *fill_value                         */
} caterva_fill;

typedef enum caterva_layout {
    CATERVA_LAYOUT_DEFAULT = 0, /* contiguous; in a copy: the source's    */
    CATERVA_LAYOUT_CONTIGUOUS,  /* one file, or memory                    */
    CATERVA_LAYOUT_SPARSE       /* a directory with a file for each chunk */
} caterva_layout;

typedef enum caterva_metalayer_kind {
    CATERVA_METALAYER_DEFAULT = 0, /* b2nd; in a copy: the source's         */
    CATERVA_METALAYER_B2ND,
    CATERVA_METALAYER_CATERVA, /* for readers before C-Blosc2 2.7: no dtype */
    CATERVA_METALAYER_NONE     /* in caterva_info: a frame of plain items   */
} caterva_metalayer_kind;

/* A fixed metalayer of the user, added at creation. */
typedef struct caterva_metalayer {
    const char *name; /* 1..31 bytes of UTF-8; "b2nd" and "caterva" are taken */
    const void *content;
    size_t size;
    int64_t reserved[2]; /* 0                                                 */
} caterva_metalayer;

typedef struct caterva_create_options {
    size_t struct_size;
    int ndim;                   /* 0..15                                                  */
    const int64_t *shape;       /* ndim entries, each >= 0                                */
    const int32_t *chunk_shape; /* ndim entries >= 1, or NULL                             */
    const int32_t *block_shape; /* ndim entries, 1 <= block <= chunk, or NULL             */
    const char *dtype;          /* NumPy description; NULL: "|V<item_size>"               */
    int32_t item_size;          /* bytes; 0: from the dtype                               */
    caterva_layout layout;
    caterva_metalayer_kind metalayer;
    caterva_fill fill;
    const void *fill_value;     /* one item, for CATERVA_FILL_VALUE                       */
    int codec;                  /* caterva_codec; 0: zstd                                 */
    int codec_meta;             /* 0..255                                                 */
    int level;                  /* 1..9; CATERVA_NONE: blocks are stored uncompressed; 0:
                                   zstd 3 for items of 1 byte, 2 for larger ones; other
                                   codecs 5. With zstd, if level and all filters are 0, a
                                   chunk of at least 64 blocks that is written whole gets
                                   level 4, bitshuffle or (floats) no filter, if that
                                   makes a sample block of the chunk much smaller         */
    int use_dict;               /* for zstd; C-Blosc2 misreads some chunks: docs/format.md */
    int filters[CATERVA_MAX_FILTERS];      /* caterva_filter, applied in order; entries 0
                                   are skipped. All 0: shuffle, but no filter for items
                                   of 1 byte or with an n-d codec; see also `level`.
                                   CATERVA_FILTER_NONE alone: no filter                   */
    int filters_meta[CATERVA_MAX_FILTERS]; /* -128..255, the low byte is stored           */
    const caterva_metalayer *metalayers;   /* user's fixed metalayers                     */
    int n_metalayers;                      /* 0..15                                       */
    int overwrite;              /* 1: the first commit replaces what exists at the URL    */
    int threads;                /* maximum per request; 0: all cores                      */
    caterva_durability durability;
    int64_t dirty_budget;       /* bytes of decoded blocks a writer may buffer; 0: 64 MiB */
    int64_t cache_bytes;        /* as in caterva_open_options                             */
    int no_read_ahead;          /* as in caterva_open_options                             */
    caterva_progress progress;  /* of all calls through the handle                        */
    int compact_percent;        /* as in caterva_open_options                             */
} caterva_create_options;
#define CATERVA_CREATE_INIT CATERVA_INIT_(caterva_create_options)

typedef enum caterva_mode { CATERVA_MODE_READ = 0, CATERVA_MODE_WRITE } caterva_mode;

/* How URLs are read: see caterva_remote.h. */
typedef struct caterva_remote_options caterva_remote_options;

typedef struct caterva_open_options {
    size_t struct_size;
    caterva_mode mode;
    uint64_t offset;  /* start of the frame in the file (reading only)                */
    int threads;      /* maximum per request; 0: all cores                            */
    caterva_durability durability;
    int64_t dirty_budget; /* bytes of decoded blocks a writer may buffer; 0: 64 MiB   */
    int64_t cache_bytes;  /* size of a cache of decoded blocks for this handle alone;
                             0: the shared cache; CATERVA_NONE: no cache              */
    int unchecked;        /* 1: checksums are ignored, to recover the intact items of a
                             damaged array; a commit then accepts damaged items, too  */
    int no_read_ahead;    /* 1: no read-ahead of scans, see caterva_prefetch          */
    int64_t keep_bytes;   /* reading: a file of at most this size is kept in memory, as
                             stored, once its reads have cost as much as reading it
                             whole. Only caterva_refresh and caterva_verify see changes
                             of a kept file. 0: 16 MiB; CATERVA_NONE: no file is kept */
    caterva_progress progress; /* of all calls through the handle                    */
    int compact_percent;  /* writing, 1 to 100: caterva_close compacts a changed file (see
                             caterva_compact) if its dead space is at least this
                             percentage and 64 KiB, and no reader uses an older state.
                             A compaction reports its own progress; if it fails or is
                             stopped, the close succeeds. 0, or a directory: never    */
    const caterva_remote_options *remote; /* for a URL; copied. NULL: the defaults    */
    int end_zarr;         /* writing: 1: also opens a file that is a Zarr array, too (see
                             caterva_copy_options.zarr). The open removes what only Zarr
                             readers need: from then on they refuse the array. 0, or
                             an array without items: CATERVA_EREADONLY                */
} caterva_open_options;
#define CATERVA_OPEN_INIT CATERVA_INIT_(caterva_open_options)

/* ---- Create, open, close ------------------------------------------------ */

/* An open array. */
typedef struct caterva_array caterva_array;

/* Makes a new array at `url`: a path, or "mem:" for an array in memory. All cells hold the
 * fill. The path does not exist before the first commit (or close); then the whole array
 * appears: the library writes a temporary file beside it and renames it. Returns CATERVA_EEXIST
 * if something exists there and `overwrite` is 0, and CATERVA_EINVAL for a directory layout in
 * a tree, where an array is one file. With `overwrite` the new array replaces a file, or the
 * directory of an array. The new array gets the permissions, owner and group of the old one, if
 * the process may set them. Returns CATERVA_EBUSY if the old array is open for writing, or is a
 * directory that is open for reading. The first commit checks this again; if it returns
 * CATERVA_EBUSY the new array stays pending and a later commit may succeed. Handles that read a
 * replaced file keep reading it. Release *out with caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_create(const char *url,
                                          const caterva_create_options *options,
                                          caterva_array **out, caterva_error *err);

/* Creates an array and writes all of it from `src`, in C order. `src_size` is at least the
 * array's size in bytes. Does not commit. A failure leaves nothing behind.
 * Thread: any. */
CATERVA_API caterva_status caterva_create_from_memory(const char *url,
                                                      const caterva_create_options *options,
                                                      const void *src, size_t src_size,
                                                      caterva_array **out,
                                                      caterva_error *err);

/* Opens the array at `url`: a file, the directory of a sparse frame, or one of these behind
 * http://, https:// or s3://, see caterva_remote_options. `options` NULL opens it for
 * reading. A relative path is resolved once, against the current working directory. Costs a
 * few small reads, whatever the number of chunks; for a URL, one request. A Blosc2 frame of
 * plain items, without the array's metalayer, opens as a read-only 1-d array
 * (CATERVA_EUNSUPPORTED with CATERVA_MODE_WRITE).
 *
 * Returns CATERVA_ENOTFOUND if nothing exists there, CATERVA_ECORRUPT with the byte position if
 * the frame is damaged, and CATERVA_EUNSUPPORTED if this library cannot read the frame. With
 * CATERVA_MODE_WRITE, returns CATERVA_EBUSY while another handle or process has the array open
 * for writing. Release *out with caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_open(const char *url, const caterva_open_options *options,
                                        caterva_array **out, caterva_error *err);

/* Makes all pending changes, or none, visible to other handles, and as durable as the handle's
 * `durability` requires. Does nothing if no change is pending. Waits for a caterva_verify of
 * the same handle; returns CATERVA_EBUSY inside a callback of caterva_verify.
 *
 * After a failure the last committed state is untouched and the changes are still pending:
 * commit again when the cause (a full disk, for example) is gone. If a sync fails, or if the
 * write of the header at the end fails, the state on the medium is unknown. Reads still work
 * then, but every later write and commit returns CATERVA_EIO. Discard the handle and open
 * the array again: it has either the whole old state or the whole new one. Returns CATERVA_EIO
 * if the file or directory was moved, deleted or replaced while it was open for writing: a
 * commit there would be lost.
 * Thread: turns. */
CATERVA_API caterva_status caterva_commit(caterva_array *array, caterva_error *err);

/* Rolls back all changes since the last commit. A new array that was never committed holds
 * its fill again.
 * Thread: turns. */
CATERVA_API caterva_status caterva_rollback(caterva_array *array, caterva_error *err);

/* Commits pending changes and releases the handle, also if the commit fails or is stopped:
 * the changes are lost then. To keep them, call caterva_commit first, and caterva_close when
 * it has succeeded. Cancels the handle's outstanding background reads first.
 *
 * A handle for writing then tidies up unless a reader uses an older state: it truncates the
 * file behind its frame, frees dead space before the index if that is worth a commit, deletes
 * replaced chunk files, and compacts the file as compact_percent requests. A failure to tidy
 * up is no error: the data are committed. An array of a tree may be closed or discarded while
 * another thread commits or rolls back the tree.
 * Thread: alone. */
CATERVA_API caterva_status caterva_close(caterva_array *array, caterva_error *err);

/* Releases the handle and drops pending changes. A new array that was never committed leaves
 * nothing behind. Cancels the handle's outstanding background reads first.
 * Thread: alone. */
CATERVA_API void caterva_discard(caterva_array *array);

/* Deletes all temporary files of this process: new arrays that are not committed, and the
 * unfinished output of copies, compact and repair. Call it before the program ends with _exit
 * without closing its handles; the handles are unusable afterwards. In a child of fork it keeps
 * the parent's files. Not for signal handlers.
 * Thread: any. */
CATERVA_API void caterva_delete_temporaries(void);

/* Moves a handle for reading to the last committed state; until then the handle sees the state
 * in which it was opened. All options stay. Looks at the path that caterva_open resolved,
 * whatever the working directory is now. If another array is at that path now, the handle moves
 * to it. If nothing is there, returns CATERVA_ENOTFOUND and the handle keeps its state.
 * Outstanding background reads finish first, on the old state. Does nothing for handles for
 * writing and for arrays in memory.
 * Thread: alone. */
CATERVA_API caterva_status caterva_refresh(caterva_array *array, caterva_error *err);

/* Releases memory that this library allocated for the caller.
 * Thread: any. */
CATERVA_API void caterva_free(void *memory);

/* ---- Description -------------------------------------------------------- */

typedef struct caterva_info {
    size_t struct_size;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    int32_t block_shape[CATERVA_MAX_DIMS];
    int64_t chunk_counts[CATERVA_MAX_DIMS]; /* chunks along each axis                      */
    int64_t block_counts[CATERVA_MAX_DIMS]; /* blocks of one chunk along each axis         */
    const char *dtype;     /* description that fits item_size; else "|V<n>"                */
    const char *dtype_stored; /* as in the file; NULL without dtype                        */
    const void *fill_value; /* one item: what new cells hold; NULL: zeros                  */
    int dtype_disagrees;   /* 1: the stored dtype does not fit item_size; items are opaque */
    int32_t item_size;     /* bytes                                                        */
    caterva_layout layout;
    caterva_metalayer_kind metalayer;
    int in_memory;
    int sealed;            /* 1: checksums cover the whole array; see caterva_measure      */
    int codec, codec_meta, level; /* as in caterva_create_options; codec, level are not 0  */
    int filters[CATERVA_MAX_FILTERS]; /* CATERVA_FILTER_NONE in entries without a filter   */
    int filters_meta[CATERVA_MAX_FILTERS]; /* 99 in the first entry, beside
                              CATERVA_FILTER_NONE: chunks may have another level and other
                              filters, see caterva_create_options.level                    */
    int use_dict;
    int64_t n_items;       /* of the array                                                 */
    int64_t n_chunks;
    int64_t n_blocks;      /* of one chunk                                                 */
    int64_t chunk_bytes;   /* decoded, padding included                                    */
    int64_t block_bytes;
    int64_t data_bytes;    /* n_items * item_size                                          */
    int64_t frame_bytes;   /* size of the stored frame (sparse: with its chunk files)      */
    int64_t header_bytes;  /* size of its header; if above 512, power loss may tear it     */
    int n_attributes;
    int n_metalayers;      /* including the array's own                                    */
    const char *const *attribute_names;  /* n_attributes entries, in file order            */
    const caterva_metalayer *metalayers; /* n_metalayers entries, in file order            */
    const char *url;       /* absolute path of the file or directory; NULL in memory       */
    uint64_t offset;       /* where the frame begins in the file                           */
    caterva_mode mode;     /* of the handle                                                */
    caterva_durability durability; /* of its commits                                       */
    int64_t commit_number; /* of the last commit; each commit increases it. 0: the file has
                              no number, because of no commit yet, another writer, or no
                              stored chunk                                                 */
    /* Identifies the last commit that the handle sees: equal through all handles at that
     * commit, in all processes; different for another commit or another array. Computed from
     * the checksums of a sealed array (copies of the file have the same id); without a seal
     * also from the file's inode, time and size (URL: ETag, date and size), so commits within
     * a tick of that clock may share an id. Undefined in memory and before the first commit. */
    uint8_t state_id[CATERVA_STATE_ID];
} caterva_info;

/* Stores a reference to a description of the array as its handle sees it, with pending
 * changes. The description never changes and outlives every change of the array,
 * caterva_refresh and caterva_close. Calls return the same description until the shape, the
 * attributes or the metalayers change, or a commit or rollback happens. Reads nothing from
 * the store. Only the first call for a state may wait for a write in progress. Release *out
 * with caterva_info_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_info_get(caterva_array *array, const caterva_info **out,
                                            caterva_error *err);
CATERVA_API void caterva_info_release(const caterva_info *info); /* NULL is fine */

/* Returns 1 if the handle has pending changes, else 0, also for NULL. A new array has pending
 * changes until its first commit.
 * Thread: shared. */
CATERVA_API int caterva_has_pending(caterva_array *array);

/* Returns the metalayer of that name, borrowed from `info`, or NULL.
 * Thread: any. */
CATERVA_API const caterva_metalayer *caterva_info_metalayer(const caterva_info *info,
                                                            const char *name);

/* ---- Casts --------------------------------------------------------------- */

/* The casts that a conversion of items may use, in NumPy's terms. */
typedef enum caterva_casting {
    CATERVA_CASTING_SAME_KIND = 0, /* safe, or within one kind: float64 to float32     */
    CATERVA_CASTING_SAFE,          /* casts that keep every value                      */
    CATERVA_CASTING_UNSAFE         /* all casts; integers keep their low bits; floats that
                                   do not fit become the nearest integer, NaN 0        */
} caterva_casting;

/* ---- Selections and buffers --------------------------------------------------------- */

/* Selects items along one axis; all zero selects the whole axis. Indices may be negative, as
 * in Python: -1 is the last. */
typedef enum caterva_axis_kind {
    CATERVA_AXIS_ALL = 0,
    CATERVA_AXIS_INDEX, /* the one item `start`; the axis is dropped from the result */
    CATERVA_AXIS_SLICE, /* start:stop:step as Python means it, bounds clamped        */
    CATERVA_AXIS_LIST,  /* items indices[0..n), any order, repeats allowed           */
    CATERVA_AXIS_MASK   /* the items i where mask[i] is not 0; n is the axis' length */
} caterva_axis_kind;

/* An omitted bound of a slice: x[::-1] has start and stop CATERVA_AXIS_OMIT and step -1. */
#define CATERVA_AXIS_OMIT INT64_MIN

typedef struct caterva_axis {
    caterva_axis_kind kind;
    int64_t start, stop, step; /* step 0: 1             */
    const int64_t *indices;    /* borrowed for the call */
    const uint8_t *mask;       /* borrowed for the call */
    int64_t n;                 /* of indices or mask    */
    int64_t reserved[2];       /* must be 0             */
} caterva_axis;

typedef enum caterva_selection_kind {
    CATERVA_SELECTION_BOX = 0, /* [start, stop) on each axis; bounds are not clamped   */
    CATERVA_SELECTION_AXES,    /* the items that each axis selects, combined           */
    CATERVA_SELECTION_POINTS,  /* single items                                         */
    CATERVA_SELECTION_MASK     /* the items where a mask of the array's shape is not 0 */
} caterva_selection_kind;

/* Selects items of an array `a`, in NumPy's terms:
 *
 *   BOX     a[start[0]:stop[0], ...]; both NULL: everything
 *   AXES    a[np.ix_(...)], one kind per axis; two lists select every pair (NumPy's
 *           a[l0, l1] is POINTS). Axes after the last given one are taken whole
 *   POINTS  a[p[:, 0], p[:, 1], ...] for `points` of n_points rows, one index for
 *           each axis of the array
 *   MASK    a[mask]: the items in C order
 *
 * The result has one axis for each axis that is not dropped (BOX, AXES), or a single one
 * (POINTS, MASK). An all-zero selection is the whole array. All pointers are borrowed for the
 * call. */
typedef struct caterva_selection {
    size_t struct_size;
    caterva_selection_kind kind;
    const int64_t *start, *stop; /* BOX: ndim entries each           */
    const caterva_axis *axes;    /* AXES: n_axes entries, 0..ndim    */
    int n_axes;
    const int64_t *points;       /* POINTS: n_points * ndim, C order */
    int64_t n_points;
    const uint8_t *mask;         /* MASK: n_items bytes, C order     */
    size_t mask_size;            /* must be n_items                  */
} caterva_selection;
#define CATERVA_SELECTION_INIT CATERVA_INIT_(caterva_selection)

/* Memory of the caller. Item (i, j, ...) is at data + i * strides[0] + j * strides[1] + ...;
 * `data` is item (0, 0, ...), which is not the lowest address if strides are negative.
 *
 * `shape` NULL means the selection's shape; otherwise the `ndim` entries must equal it. The
 * source of a write may also have a shape that NumPy would broadcast (fewer axes, axes of 1
 * item) and strides of 0. `strides` NULL means C order. The items of a destination must not
 * overlap; only a stride of 0 is checked. */
typedef struct caterva_buffer {
    size_t struct_size;
    void *data;             /* only read if the buffer is a source        */
    size_t size;            /* bytes from the lowest item to the end of the
                               highest; checked against shape and strides */
    int ndim;               /* entries of shape and strides, if not NULL  */
    const int64_t *shape;
    const int64_t *strides; /* bytes                                      */
    const char *dtype;      /* of the items; NULL: the array's. Numbers (bool, integers,
                               float16, 32 and 64, complex; either byte order) are
                               converted; buffers may also be "bfloat16", little-endian,
                               cast as in ml_dtypes                       */
    caterva_casting casting;
    const char *field;      /* in a destination of structured items: the only field to
                               read, "a", or "a.b" if nested; dtype is then the field's.
                               NULL: whole items                          */
} caterva_buffer;
#define CATERVA_BUFFER_INIT CATERVA_INIT_(caterva_buffer)

/* ---- Read and write ----------------------------------------------------- */

/* Reads the box [start, stop) into `dst` in C order. `start` and `stop` have ndim entries
 * (NULL for ndim 0), 0 <= start <= stop <= shape on each axis. Returns CATERVA_ERANGE for
 * other boxes and CATERVA_ESHORT if `dst_size` is less than the box's bytes. After a failure
 * the items of `dst` are undefined.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read(caterva_array *array, const int64_t *start,
                                        const int64_t *stop, void *dst, size_t dst_size,
                                        caterva_error *err);

/* Writes the box [start, stop) from `src`, in C order. This handle sees the new items at
 * once, others after the commit. Returns CATERVA_EREADONLY unless the handle is open for
 * writing; other statuses are those of caterva_read. After a failure the items of the box are
 * undefined until they are written again or rolled back; the committed state is untouched.
 * Thread: turns. */
CATERVA_API caterva_status caterva_write(caterva_array *array, const int64_t *start,
                                         const int64_t *stop, const void *src, size_t src_size,
                                         caterva_error *err);

/* ---- Selections in and out ---------------------------------------------- */

/* Computes the shape of a selection's result: sets *ndim, and the first *ndim of the
 * CATERVA_MAX_DIMS entries of `shape`. CATERVA_ERANGE names the axis and the number outside
 * the array. Reads lists and masks once.
 * Thread: shared. */
CATERVA_API caterva_status caterva_selection_shape(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   int *ndim, int64_t *shape,
                                                   caterva_error *err);

/* Copies the selected items into `dst` (`selection` NULL: everything). Decodes only the
 * blocks that hold a selected item, each once, in parallel.
 *
 * Memory, besides the blocks in progress: lists and points take 32 bytes for each index and
 * 24 for each touched block; a mask of the array 8 bytes for each line of items in a block;
 * boxes and slices nothing. A conversion takes one converted block for each thread. Returns
 * CATERVA_ERANGE for items outside the array, CATERVA_ESHAPE for a buffer or mask of another
 * shape, CATERVA_ESHORT for a buffer that is too small, CATERVA_ECAST for a cast that
 * `casting` does not allow, CATERVA_EDTYPE for items that cannot be converted. After a
 * failure the destination's items are undefined.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read_selection(caterva_array *array,
                                                  const caterva_selection *selection,
                                                  const caterva_buffer *dst,
                                                  caterva_error *err);

/* The completion callback of caterva_read_async. */
typedef struct caterva_async_options {
    size_t struct_size;
    /* Called once for each accepted call, when the read has succeeded, failed or been
     * cancelled. `error` is NULL on success, else borrowed for the call. */
    void (*on_done)(void *context, caterva_status status, const caterva_error *error);
    void *context;
} caterva_async_options;
#define CATERVA_ASYNC_INIT CATERVA_INIT_(caterva_async_options)

/* A read of caterva_read_async, from the call until its release. */
typedef struct caterva_request caterva_request;

/* Does what caterva_read_selection does, but returns at once. A thread of the library's pool
 * does the read and calls on_done. The handle queues its reads and begins them in order, at
 * most `threads` at once. Any number of reads may be outstanding; each takes about 2 KiB and
 * the memory of its lists and masks.
 *
 * Copies `selection`, `dst` and `options` with all they point at, except the memory at
 * dst->data, which belongs to the library until on_done is called. Wrong arguments are reported
 * by this call, with the statuses of caterva_read_selection, and on_done is not called. The
 * same holds for CATERVA_ENOMEM, also if the system cannot create a thread, and for
 * CATERVA_ESTOPPED, if the array is being closed. *out is set before the read begins. Cancel
 * the request or wait for it, and release it with caterva_request_release at any time. Pass
 * `out` NULL if you need no request. Set `out` or `on_done`; setting neither is CATERVA_EINVAL.
 *
 * - A handle for reading reads the state it saw at the call, also after a caterva_refresh. A
 *   handle for writing reads one state that it had between the call and on_done, with pending
 *   changes, like a caterva_read in another thread; CATERVA_ESTALE if the shape has changed.
 * - on_done is called exactly once, also after a failure, caterva_request_cancel and
 *   caterva_close. It runs on a pool thread, or inside caterva_close, caterva_discard or
 *   caterva_refresh; it may run before this function returns, but never inside it.
 * - on_done may call any function of the library, also caterva_read_async, and may close the
 *   array if no other call uses it. It must not wait for another request (CATERVA_EBUSY). It
 *   must be quick, because its thread reads nothing meanwhile.
 * - caterva_close and caterva_discard cancel outstanding reads and return after every on_done
 *   has returned: do not hold a lock that on_done takes. caterva_refresh finishes outstanding
 *   reads first.
 * - Writes, commits and forks wait for the reads in progress, but not for queued reads or
 *   on_done.
 * - A child of fork has no outstanding reads. It may release requests of its parent; on_done
 *   is called in the parent.
 *
 * Thread: any. */
CATERVA_API caterva_status caterva_read_async(caterva_array *array,
                                              const caterva_selection *selection,
                                              const caterva_buffer *dst,
                                              const caterva_async_options *options,
                                              caterva_request **out, caterva_error *err);

/* Cancels the read, and returns at once. A queued read does not begin; a read in progress stops
 * between two blocks. The read's status is CATERVA_ESTOPPED unless it was already done. on_done
 * is called as usual, but not by this function. The buffer's contents are undefined.
 * Thread: any. */
CATERVA_API void caterva_request_cancel(caterva_request *request); /* NULL is fine */

/* Waits until on_done has returned, and returns the status of the read. Returns at once
 * inside the request's own on_done. In a child of fork, returns CATERVA_ESTOPPED at once for
 * an unfinished request of the parent.
 * Thread: any. */
CATERVA_API caterva_status caterva_request_wait(caterva_request *request, caterva_error *err);

/* Releases the request, also inside on_done; the read continues.
 * Thread: any, once. */
CATERVA_API void caterva_request_release(caterva_request *request); /* NULL is fine */

/* Writes the selected items from `src`. If an item is selected twice the last value (in C
 * order of the result) wins, as in NumPy. Otherwise works as caterva_write, with the statuses
 * and memory of caterva_read_selection. A source of another dtype is first converted whole.
 * Thread: turns. */
CATERVA_API caterva_status caterva_write_selection(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   const caterva_buffer *src,
                                                   caterva_error *err);

/* ---- The block cache ---------------------------------------------------- */

/* The cache keeps decoded blocks that a read needed in part, but not blocks that were read
 * whole. Blocks that a scan has passed are evicted first; one request fills at most three
 * quarters of the cache. The cache never changes what a read returns. If all blocks of an array
 * fit into the cache together, every block that is read is kept, except when the first read of
 * the array reads all of it at once. All handles of the process share one cache of 64 MiB,
 * except handles with a cache of their own or none (`cache_bytes`). The cache's memory grows
 * with its blocks and shrinks as handles are closed. */

typedef struct caterva_cache_info {
    size_t struct_size;
    int64_t limit;    /* bytes                                          */
    int64_t bytes;    /* in use, never more than the limit              */
    int64_t blocks;   /* in the cache                                   */
    int64_t hits;     /* lookups that found the block, since the start  */
    int64_t misses;   /* lookups that did not find the block            */
    int64_t inserted;
    int64_t evicted;  /* blocks evicted to make room                    */
    int64_t prefetched; /* blocks inserted before a read needed them    */
} caterva_cache_info;
#define CATERVA_CACHE_INFO_INIT CATERVA_INIT_(caterva_cache_info)

/* Sets the size of the shared cache in bytes. 0 restores the default, CATERVA_NONE empties
 * the cache and keeps it empty. Returns CATERVA_EINVAL for lower values.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_set_limit(int64_t bytes, caterva_error *err);

/* Describes the cache that `array` uses (all members are 0 if it uses none). With `array` NULL,
 * describes the shared cache.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_describe(caterva_array *array,
                                                  caterva_cache_info *out,
                                                  caterva_error *err);

/* Requests that the blocks of the box [start, stop) be decoded into the cache, and returns at
 * once. Cached blocks are not decoded again. All queued boxes together fill at most half of the
 * cache; blocks beyond that are ignored, and so is a box while eight boxes are queued. Errors
 * are reported by the read that needs the block. The handle's threads decode, except the
 * caller's, and reads have priority. So the call does nothing through a handle with `threads`
 * 1, or without a cache. Returns CATERVA_ERANGE if the box is not inside the array. A write
 * waits for the few blocks being decoded, as closing and fork do, and later reads see the
 * written items. Closing, fork and caterva_refresh drop the queued boxes.
 *
 * A scan needs no such call. When a thread reads three boxes, each moved by the same step
 * along one axis, the library prefetches the next layer of blocks along that axis each time
 * the scan reaches a new layer. A selection, also of a view, counts as a box if it has neither
 * steps nor lists. There is no read-ahead if the boxes need most of their blocks whole, the
 * handle has one thread, several threads read through it, the machine has fewer than two
 * cores for each such scan, two layers exceed three quarters of the cache, or no_read_ahead
 * is set.
 * Thread: shared. */
CATERVA_API caterva_status caterva_prefetch(caterva_array *array, const int64_t *start,
                                            const int64_t *stop, caterva_error *err);

/* ---- Views -------------------------------------------------------------- */

/* A view shows an array through slices, steps, transposition and new axes, or shows several
 * arrays as one. Making one touches no data. A view never changes. A read or write through a
 * view is a selection of the array below, in the state that the array's handle sees; the array
 * must stay open. A view made from another view stays valid when the other is freed. After a
 * change of the array's shape, or a caterva_refresh to an array of other axes or another dtype,
 * use of older views returns CATERVA_ESTALE, before any other error. A view of several arrays
 * can still read the items of the unchanged arrays. */
typedef struct caterva_view caterva_view;

/* Makes a view of the whole array. Release this view, and those that the functions below make,
 * with caterva_view_free.
 * Thread: shared; caterva_view_free: any, once. */
CATERVA_API caterva_status caterva_view_of(caterva_array *array, caterva_view **out,
                                           caterva_error *err);
CATERVA_API void caterva_view_free(caterva_view *view); /* NULL is fine */

/* Makes a view of a[...] with slices and indices (which drop their axis). Lists must have
 * even steps. Axes after n_axes are taken whole.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_select(const caterva_view *view,
                                               const caterva_axis *axes, int n_axes,
                                               caterva_view **out, caterva_error *err);

/* caterva_view_transpose makes axis order[i] of the old view axis i of the new one (`order`
 * NULL reverses the axes). caterva_view_expand adds an axis of one item before `axis` in
 * [0, ndim], up to 16 axes. caterva_view_squeeze drops `axis`, which must have one item.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_transpose(const caterva_view *view, const int *order,
                                                  caterva_view **out, caterva_error *err);
CATERVA_API caterva_status caterva_view_expand(const caterva_view *view, int axis,
                                               caterva_view **out, caterva_error *err);
CATERVA_API caterva_status caterva_view_squeeze(const caterva_view *view, int axis,
                                                caterva_view **out, caterva_error *err);

/* Join `n` >= 1 views of one dtype into a read-only view. caterva_view_concat joins along
 * `axis`, where lengths may differ; on other axes lengths must be equal. caterva_view_stack
 * joins views of one shape along a new axis before `axis`.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_concat(const caterva_view *const *views, int n,
                                               int axis, caterva_view **out,
                                               caterva_error *err);
CATERVA_API caterva_status caterva_view_stack(const caterva_view *const *views, int n,
                                              int axis, caterva_view **out,
                                              caterva_error *err);

/* caterva_view_ndim returns the number of axes. caterva_view_shape returns their lengths,
 * borrowed from the view. For NULL they return 0 and NULL. The dtype is that of the arrays.
 * Thread: any. */
CATERVA_API int caterva_view_ndim(const caterva_view *view);
CATERVA_API const int64_t *caterva_view_shape(const caterva_view *view);

/* Read and write as caterva_read_selection and caterva_write_selection do, with the view in
 * place of the array. Lists and points take 8 bytes more for each index; a mask of the view
 * takes the memory of as many points. With a view of several arrays, points and masks also
 * take, for each item, 8 bytes, its coordinates a second time, and the size of the item. A view
 * of several arrays cannot be written: CATERVA_EREADONLY.
 * Thread: shared for caterva_view_read, turns for caterva_view_write, on the arrays below. */
CATERVA_API caterva_status caterva_view_read(const caterva_view *view,
                                             const caterva_selection *selection,
                                             const caterva_buffer *dst, caterva_error *err);
CATERVA_API caterva_status caterva_view_write(const caterva_view *view,
                                              const caterva_selection *selection,
                                              const caterva_buffer *src, caterva_error *err);

/* Does what caterva_view_read does, but returns at once: the rules of caterva_read_async
 * about requests, copies of arguments, on_done, statuses and forks hold. The view may be
 * freed at any time; the arrays below must stay open. Each array below with a selected item
 * reads its share as one read in its handle's queue; several arrays may read at once. The
 * first share that fails stops the others, and its error is the read's. on_done is called
 * once, when all shares have ended.
 *
 * - The state that is read is defined per array. Through handles for writing, the shares may
 *   read states of different times.
 * - caterva_close, caterva_discard and caterva_refresh of one array wait only for its share.
 *   caterva_close and caterva_discard cancel the whole read, but on_done may be called after
 *   they return, when the last other array has stopped. Until then `dst` is the library's.
 * - CATERVA_ESTALE is reported through on_done; the call itself reports only wrong arguments.
 *
 * Takes about 2 KiB for each array and 1.5 KiB for each share: a list along the axis of a
 * join has one share for each run of indices in one array. Points and masks of several arrays
 * take the memory of their result a second time.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_read_async(const caterva_view *view,
                                                   const caterva_selection *selection,
                                                   const caterva_buffer *dst,
                                                   const caterva_async_options *options,
                                                   caterva_request **out, caterva_error *err);

/* ---- Changes of shape --------------------------------------------------- */

/* These functions work on any axis, at any position. Chunks that stay whole keep their bytes.
 * New cells hold the array's fill (zeros in files of other writers). Removed cells are
 * cleared: growing again does not restore them. This handle sees the new shape at once,
 * others after the commit.
 *
 * A wrong argument changes nothing. After any other failure, also a stop, the committed state
 * is untouched, but some items may have moved and others not. Until caterva_rollback, reads,
 * copies, changes and commits through the handle return CATERVA_EROLLBACK. */

/* Grows or shrinks each axis at its end, to `shape` (ndim entries).
 * Thread: turns. */
CATERVA_API caterva_status caterva_resize(caterva_array *array, const int64_t *shape,
                                          caterva_error *err);

/* Appends `n` items at the end of `axis` from `src`, whose shape is the array's with `n` on
 * that axis, or can be broadcast to it.
 * Thread: turns. */
CATERVA_API caterva_status caterva_append(caterva_array *array, int axis, int64_t n,
                                          const caterva_buffer *src, caterva_error *err);

/* Inserts `n` items before position `at` in [0, shape[axis]], from `src` as in
 * caterva_append; `src` NULL inserts the fill. If `at` and `n` are multiples of the chunk
 * shape, only the index changes; otherwise everything after `at` moves.
 * Thread: turns. */
CATERVA_API caterva_status caterva_insert(caterva_array *array, int axis, int64_t at, int64_t n,
                                          const caterva_buffer *src, caterva_error *err);

/* Removes the cells [start, stop) of `axis`; the cells after them move up.
 * Thread: turns. */
CATERVA_API caterva_status caterva_remove(caterva_array *array, int axis, int64_t start,
                                          int64_t stop, caterva_error *err);

/* ---- Attributes, metalayers, dimensions --------------------------------- */

/* Attributes are Blosc2's variable-length metalayers. Their values are bytes; python-blosc2
 * stores msgpack in them. caterva_info lists their names, and names and contents of the fixed
 * metalayers. */

/* Returns the whole value, decompressed, in *value, whatever memory it takes. For untrusted
 * files get the size from caterva_attr_read first. Release *value with caterva_free. Returns
 * CATERVA_ENOTFOUND if the name does not exist.
 * Thread: shared. */
CATERVA_API caterva_status caterva_attr_get(caterva_array *array, const char *name,
                                            void **value, size_t *size, caterva_error *err);

/* Copies at most `dst_size` bytes of the value, from byte `start` on, and sets *size to the
 * size of the whole value. `dst` NULL only sets *size, which costs nothing: a few bytes of a
 * file can expand to gigabytes. Otherwise takes the memory of one block of the value, and
 * returns CATERVA_EUNSUPPORTED if that exceeds 32 MiB. Returns CATERVA_ENOTFOUND if the name
 * does not exist, CATERVA_ERANGE if `start` is after the end.
 * Thread: shared. */
CATERVA_API caterva_status caterva_attr_read(caterva_array *array, const char *name,
                                             int64_t start, void *dst, size_t dst_size,
                                             int64_t *size, caterva_error *err);

/* Sets an attribute to `size` bytes: one MessagePack value, as python-blosc2 expects. Pending
 * until the commit. Names have 1 to 65535 bytes of UTF-8; their number is not limited. Where
 * attributes are stored:
 *
 * - C-Blosc2 can change a frame with at most 16 attributes whose names have at most 31 bytes.
 *   While all attributes fit, each has its own key ("vlmeta"), as python-blosc2 writes them.
 * - Otherwise the attribute `attrs` is a map of those that do not fit: all with longer names,
 *   and all after the first 15 (14 if the array has a fill). python-blosc2 opens the file and
 *   shows the others, and the map as one attribute.
 * - All functions here read both places, also in files of other writers, where the map may be
 *   JSON text. If a name is in both places, its own key takes precedence over the map.
 *
 * Returns CATERVA_EINVAL if the bytes are not a MessagePack value and would go into the map,
 * or if the map would exceed 64 MiB.
 * Thread: turns. */
CATERVA_API caterva_status caterva_attr_set(caterva_array *array, const char *name,
                                            const void *value, size_t size,
                                            caterva_error *err);

/* Deletes an attribute; pending until the commit. Returns CATERVA_ENOTFOUND if it does not
 * exist.
 * Thread: turns. */
CATERVA_API caterva_status caterva_attr_delete(caterva_array *array, const char *name,
                                               caterva_error *err);

/* Replaces the content of a metalayer of the user; the length must stay. Pending until the
 * commit.
 * Thread: turns. */
CATERVA_API caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                               const void *content, size_t size,
                                               caterva_error *err);

/* Returns the names of the dimensions in *names: one for each axis, NULL for an axis without a
 * name. They come from the attribute `dims`, a list of text or nil; without it from Zarr's
 * `dimension_names` or `_ARRAY_DIMENSIONS`, in this order. An attribute that is not a list of
 * one entry for each axis is ignored. Returns CATERVA_ENOTFOUND if the array has no names.
 * *names is one allocation: release it with caterva_free.
 * Thread: shared. */
CATERVA_API caterva_status caterva_dims_get(caterva_array *array, const char ***names,
                                            caterva_error *err);

/* Names the dimensions: one UTF-8 name for each axis, NULL for no name; `names` NULL deletes
 * all. Sets the attribute `dims` and deletes `dimension_names` and `_ARRAY_DIMENSIONS`, which
 * would contradict it. Pending until the commit. Copies, also of views, keep the names of
 * their axes.
 * Thread: turns. */
CATERVA_API caterva_status caterva_dims_set(caterva_array *array, const char *const *names,
                                            caterva_error *err);

/* ---- Partition ---------------------------------------------------------- */

/* Computes the chunk and block shape that the library would choose for an array of this shape
 * and item size. If one of the two shapes is given (not NULL), keeps it and chooses the other
 * shape to fit. Each shape has ndim entries.
 * Thread: any. */
CATERVA_API caterva_status caterva_partition_choose(int ndim, const int64_t *shape,
                                                    int64_t item_size,
                                                    const int32_t *given_chunk_shape,
                                                    const int32_t *given_block_shape,
                                                    int32_t *chunk_shape, int32_t *block_shape,
                                                    caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_H */
