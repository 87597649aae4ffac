/* Caterva: n-dimensional arrays in compressed chunks.
 *
 * An array is cut into chunks and each chunk into blocks. A read decodes only the blocks it
 * touches, in parallel. A file is a Blosc2 frame with the `b2nd` (or older `caterva`)
 * metalayer: python-blosc2 and C-Blosc2 read what this library writes, and it reads what
 * they write.
 *
 * Start simple: caterva_open, caterva_read, caterva_close. Every function that can fail
 * returns a caterva_status and takes a caterva_error last (NULL is fine).
 *
 * Arguments. First the object, then inputs, then options (NULL: the defaults), then results,
 * last the error. The number of axes stands before their lengths; other counts stand behind
 * what they count. A handle is never const, because a read changes its caches; what never
 * changes is const wherever it is passed: views, infos, lists, dtypes.
 *
 * Ownership. What a function stores through `**out` belongs to the caller; its comment names
 * the function that releases it. What a function returns is borrowed. Releasing NULL is fine.
 *
 * Threads. The comment of each function names its class:
 *
 *   any     call it from any thread at any time; it waits for no other call
 *   shared  call it from any thread, also while other threads use the handle; it runs
 *           beside other shared calls and waits while a call that takes turns runs
 *   turns   call it from any thread, also while other threads use the handle; it runs
 *           alone, waits until the calls under way return, and others wait for it
 *   alone   no other thread may be in a call with the handle, or begin one
 *
 * Handles for reading make nobody wait. On different handles all calls run beside each
 * other.
 *
 * A handle with one thread encodes and decodes with that of the caller. While a write
 * encodes one chunk, a thread of the pool may write the chunk before it to the file.
 *
 * State. The library keeps a fork-safe pool of worker threads that it starts at first need,
 * a cache of decoded blocks that is bounded in bytes, a list of new arrays that were not
 * committed yet, and a list of files that it may close when descriptors are short. It
 * prints nothing and reads no environment, but for URLs. The pool's threads live on after
 * the last handle, so the shared library stays loaded after dlclose. Never unload a plug-in
 * that links the static library (link it with -Wl,-z,nodelete). */
#ifndef CATERVA_H
#define CATERVA_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <string.h>
#endif

/* What the _INIT macros are made of: struct_size set, all else zero. */
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

#if defined(__GNUC__) || defined(__clang__)
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

/* What every function that can fail returns. Each value says one thing and never changes
 * its meaning. */
typedef enum caterva_status {
    CATERVA_OK = 0,
    CATERVA_EINVAL = -1,       /* an argument breaks a documented rule                */
    CATERVA_ENOMEM = -2,       /* an allocation failed; nothing was changed           */
    CATERVA_EIO = -3,          /* the store failed; err->sys_errno says how           */
    CATERVA_ECORRUPT = -4,     /* the bytes are not a valid array                     */
    CATERVA_EUNSUPPORTED = -5, /* valid, but this library cannot read or do it        */
    CATERVA_EBUSY = -6,        /* in use by another handle, process or call           */
    CATERVA_EEXIST = -7,       /* something is there already, and is not to go        */
    CATERVA_ENOTFOUND = -8,    /* no such file, attribute or metalayer                */
    CATERVA_ESTOPPED = -9,     /* you said stop: on_progress, or a request cancelled  */
    CATERVA_ESHORT = -10,      /* a buffer has fewer bytes than the call needs        */
    CATERVA_EREADONLY = -11,   /* the handle or view is for reading only              */
    CATERVA_ERANGE = -12,      /* an index, box, axis or chunk number lies outside    */
    CATERVA_EDTYPE = -13,      /* the items' dtype is none that this call takes       */
    CATERVA_ECAST = -14,       /* `casting` does not allow this conversion            */
    CATERVA_ESHAPE = -15,      /* shapes do not fit each other                        */
    CATERVA_EROLLBACK = -16,   /* a change failed half-way: roll back first           */
    CATERVA_ESTALE = -17,      /* the shape changed since the view or read was begun  */
    CATERVA_EPIPELINE = -18    /* codec and filters cannot encode these items         */
} caterva_status;

/* A function fills it when it fails and does not touch it when it succeeds: it need not be
 * initialised. */
typedef struct caterva_error {
    caterva_status code;
    int sys_errno;     /* 0 unless a system call failed               */
    int64_t position;  /* byte offset in the frame, or -1             */
    char message[240]; /* one English sentence, NUL-terminated UTF-8. Control
                          characters and other bytes in names stand as \xNN */
    int64_t reserved[4]; /* set to 0 by this version; for members to come */
} caterva_error;

/* Returns the library's version, "MAJOR.MINOR.PATCH". Static.
 * Thread: any. */
CATERVA_API const char *caterva_version(void);

/* Returns the version of the C-Blosc2 that runs. Static.
 * Thread: any. */
CATERVA_API const char *caterva_codec_version(void);

/* Returns "CATERVA_EINVAL" and so on; "unknown status" for other numbers. Static.
 * Thread: any. */
CATERVA_API const char *caterva_status_name(caterva_status status);

/* ---- Codecs and filters ------------------------------------------------- */

/* Codecs. The low byte of a constant is the number in Blosc2 frames, where blosclz is 0.
 * Those from 32 on are n-d plugins of libblosc2; they take `codec_meta` as libblosc2
 * documents it.
 *
 * Some pipelines do not give back the items that went in, or not what their filters
 * promise: delta with two other filters, trunc-prec behind shuffle, zfp on integers, and
 * the like. Creating, copying or writing with one of them returns CATERVA_EPIPELINE and
 * names it. */
typedef enum caterva_codec {
    CATERVA_CODEC_DEFAULT = 0, /* zstd                                               */
    CATERVA_CODEC_LZ4 = 1,
    CATERVA_CODEC_LZ4HC = 2,
    CATERVA_CODEC_ZLIB = 4,
    CATERVA_CODEC_ZSTD = 5,
    CATERVA_CODEC_NDLZ = 32,
    CATERVA_CODEC_ZFP_ACCURACY = 33,  /* lossy; codec_meta: 10^meta is the tolerance */
    CATERVA_CODEC_ZFP_PRECISION = 34, /* lossy; codec_meta: bits kept               */
    CATERVA_CODEC_ZFP_RATE = 35,      /* lossy; codec_meta: percent of the size     */
    CATERVA_CODEC_BLOSCLZ = 256
} caterva_codec;

/* Filters, numbered in the same way; 0 of Blosc2 frames is "no filter". */
typedef enum caterva_filter {
    CATERVA_FILTER_DEFAULT = 0, /* see caterva_create_options.filters                          */
    CATERVA_FILTER_SHUFFLE = 1,
    CATERVA_FILTER_BITSHUFFLE = 2,
    CATERVA_FILTER_DELTA = 3, /* C-Blosc2 misreads parts of chunks that have it               */
    CATERVA_FILTER_TRUNC_PREC = 4, /* lossy; meta: mantissa bits kept (or, negative, cleared) */
    CATERVA_FILTER_NDCELL = 32,    /* meta: cell edge                                         */
    CATERVA_FILTER_NDMEAN = 33,    /* lossy; meta: cell edge                                  */
    CATERVA_FILTER_BYTEDELTA = 35, /* behind shuffle; meta: streams, 0 = item size            */
    CATERVA_FILTER_INT_TRUNC = 36, /* lossy; meta: bits kept (or, negative, cleared)          */
    CATERVA_FILTER_NONE = 256
} caterva_filter;

/* Convert the name of a codec or filter, as the command line spells it ("lz4", "bitshuffle",
 * ...), into its constant and back. Return -1 for an unknown name, NULL for an unknown
 * constant. Names are static.
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
    const char *name;           /* NUL-terminated UTF-8              */
    int64_t offset;             /* bytes from the item's start       */
    const caterva_dtype *dtype; /* of the field, sub-array included  */
    int64_t reserved[2];        /* 0                                 */
} caterva_field;

struct caterva_dtype {
    char kind;        /* NumPy's: b i u f c S U M m V, or '?' when not understood */
    char byte_order;  /* '<', '>' or '|' (not applicable)                         */
    int64_t item_size; /* bytes, sub-array included                               */
    int ndim;         /* of the sub-array; 0 for a scalar                         */
    int64_t shape[CATERVA_MAX_DIMS];
    char unit[16];    /* M, m: "ns", "25s", or "" for generic                     */
    int n_fields;     /* of a structured type, else 0                             */
    const caterva_field *fields;
};

/* Parses a description. CATERVA_EINVAL says what is wrong and at which character. Release
 * *out with caterva_dtype_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_dtype_parse(const char *text, caterva_dtype **out,
                                               caterva_error *err);
CATERVA_API void caterva_dtype_free(caterva_dtype *dtype);

/* ---- Progress and stopping ---------------------------------------------- */

/* Long calls tell a function of yours how far they are, and stop when it returns non-zero.
 * They then return CATERVA_ESTOPPED.
 *
 *     int on_progress(void *context, int64_t done, int64_t total)
 *
 * You hand it over in one of two places. The options that open or create a handle have one
 * for every call through that handle; a tree's handle has its own, and each array that is
 * opened from it, too. The options of statistics, copies, verify, repair, compact, seal, unlink,
 * lists of jobs and conversions have one for that call alone. A call with both tells both,
 * maybe at once.
 *
 *   what tells, and stops           how often        counts
 *   reads, prefetched or not        each block       bytes, of the handle
 *   lists and points, sorted        each 2^18        bytes moved, of the handle
 *   writes, changes of shape        each block       bytes, of the handle
 *   commit, close, frame_copy       each chunk       bytes, of the handle
 *   these and copies, to a directory each file synced nothing more: the same numbers again
 *   frame_append                    each chunk, then bytes, of the handle: decoded ones,
 *                                   each 8 MiB       then those of the frame
 *   frame_open with `copy`          each 8 MiB       bytes of the frame
 *   compact, seal                   each chunk       bytes, of the call
 *   caterva_delete of a directory   each chunk file  files, of the call
 *   caterva_buffer_convert          each 2^18 items  items, of the call
 *   caterva_attr_get                each MiB         bytes, of the handle
 *   caterva_attr_set                each block of a  bytes, of the handle
 *                                   value above 1 MiB
 *   statistics, reductions          each of 64+ jobs steps, of the call; bytes, of the handle
 *   copies, verify, repair          each chunk       chunks, of the call; bytes, of the handle
 *   measure                         each chunk       bytes, of the handle
 *   caterva_merge                   each part that   chunks, of the call
 *                                   is checked, each
 *                                   chunk
 *   publish                         each 20 ms       bytes that were sent, of the call
 *   trees: list, create, move,      each file, of    files, of the tree's handle
 *   remove, pack, unpack, verify    each pass
 *   trees: commit, close            each array and   these, of the tree's handle
 *                                   each group
 *   trees: attr_get, attr_set       as of arrays     bytes, of the tree's handle
 *   jobs_list, job_delete           each part        parts, of the call
 *   commit and close after a merge, each part        bytes and parts, of the handle
 *   job_begin: folders that go
 *   caterva_read_async, and of views  cancel it      tells nobody
 *
 * These can take longer than 100 ms without telling:
 *
 *   selections, before the sort     masks of views, and reads in the background: their lists,
 *                                   points and masks of millions of entries are checked and
 *                                   copied in the call
 *   statistics, reductions          of lists and points: the handle's function hears of the
 *                                   sort, that of the call only of what comes behind it
 *   changes of shape, job_begin     of more than a million chunks: their index
 *   caterva_tree_open, _repair      of an archive of more than some hundred thousand members;
 *                                   the list of files that caterva_tree_repair begins with, and
 *                                   what a caterva_tree_unpack that fails takes away again, of
 *                                   more than some thousand
 *   syncs to disk                   each of them; a commit whose handle has no function syncs
 *                                   all chunk files that a directory has got, one by one
 *
 * - Your function is called often, from any thread, but never twice at once. Be quick, and
 *   look at a clock before you draw. Do not use the array in it.
 * - Through a handle `done` and `total` count decoded bytes. `total` grows when a call
 *   finds
 *   more to do. Calls that run at once through one handle are counted together.
 * - `done` never goes back and never passes `total`. A call that succeeds ends with done ==
 *   total. A call with nothing to do tells nothing.
 * - A stopped call leaves what any failed call leaves: the committed state is untouched,
 *   and
 *   what was pending stays pending. You can do a stopped commit again, or roll it back. A
 *   stopped caterva_close drops what is pending and releases the handle. The items that a
 *   stopped read or write was about are undefined.
 * - A stop that comes when everything is done (done == total) may come too late; the call
 *   then
 *   succeeds. So does a commit that is stopped while the folder of a merged job goes:
 *   caterva_jobs_list lists what is left of it.
 * - Nothing can stop a single block inside libblosc2, nor a chunk with a dictionary or the
 *   delta filter, whose blocks depend on each other. */

/* ---- Options ------------------------------------------------------------ */

/* Options begin with struct_size, which keeps an old program valid with a new library:
 * start from the _INIT macro. The library borrows pointers for the call only. A program made
 * for a newer library may pass a longer struct to this one if the part that this one does not
 * know is zero; otherwise CATERVA_EINVAL names the byte. Structs that stand in arrays, or that
 * need not be initialised, have reserved members instead.
 *
 * Zero and NULL mean "choose for me" in every member of every struct. Where "nothing" is a
 * choice, too, it has a value of its own: CATERVA_NONE, or a constant of the enumeration. */
#define CATERVA_NONE (-1)

typedef enum caterva_durability {
    CATERVA_DURABILITY_FULL = 0, /* commit survives power loss (two syncs)                */
    CATERVA_DURABILITY_ORDERED,  /* one sync: power loss may take the last commit, no more */
    CATERVA_DURABILITY_NONE      /* no sync: survives a killed process, not power loss     */
} caterva_durability;

typedef enum caterva_fill {
    CATERVA_FILL_DEFAULT = 0, /* zeros; of a copy: the fill of the source     */
    CATERVA_FILL_ZEROS,
    CATERVA_FILL_UNINIT, /* reads as zeros until written; other libraries may
                            read any bytes there                              */
    CATERVA_FILL_NAN,    /* item size 4 or 8                                  */
    CATERVA_FILL_VALUE   /* every item is *fill_value                         */
} caterva_fill;

typedef enum caterva_layout {
    CATERVA_LAYOUT_DEFAULT = 0, /* contiguous; of a copy: as the source   */
    CATERVA_LAYOUT_CONTIGUOUS,  /* one file, or memory                    */
    CATERVA_LAYOUT_SPARSE       /* a directory with a file for each chunk */
} caterva_layout;

typedef enum caterva_metalayer_kind {
    CATERVA_METALAYER_DEFAULT = 0, /* b2nd; of a copy: as the source        */
    CATERVA_METALAYER_B2ND,
    CATERVA_METALAYER_CATERVA, /* for readers before C-Blosc2 2.7: no dtype */
    CATERVA_METALAYER_NONE     /* of an open array: a frame of plain items  */
} caterva_metalayer_kind;

/* A fixed metalayer of yours, added at creation. */
typedef struct caterva_metalayer {
    const char *name; /* 1..31 bytes of UTF-8; "b2nd" and "caterva" are taken */
    const void *content;
    size_t size;
    int64_t reserved[2]; /* 0 */
} caterva_metalayer;

typedef struct caterva_create_options {
    size_t struct_size;
    int ndim;                   /* 0..15                                              */
    const int64_t *shape;       /* ndim entries, each >= 0                            */
    const int32_t *chunk_shape; /* ndim entries >= 1, or NULL                         */
    const int32_t *block_shape; /* ndim entries, 1 <= block <= chunk, or NULL         */
    const char *dtype;          /* NumPy description; NULL: "|V<item_size>"           */
    int32_t item_size;          /* bytes; 0: what the dtype says                      */
    caterva_layout layout;
    caterva_metalayer_kind metalayer;
    caterva_fill fill;
    const void *fill_value;     /* one item, for CATERVA_FILL_VALUE                   */
    int codec;                  /* caterva_codec; 0: zstd                             */
    int codec_meta;             /* 0..255                                             */
    int level;                  /* 1..9; CATERVA_NONE: blocks are stored uncompressed; 0: for
                                   zstd 3 if items have 1 byte and 2 if they have more,
                                   for other codecs 5                                 */
    int use_dict;               /* zstd only. C-Blosc2 misreads parts of such chunks,
                                   see docs/format.md                                 */
    int filters[CATERVA_MAX_FILTERS];      /* caterva_filter, applied in order; entries of 0
                                   beside others do nothing. All 0: shuffle, and no filter
                                   with an n-d codec. CATERVA_FILTER_NONE alone: no filter */
    int filters_meta[CATERVA_MAX_FILTERS]; /* -128..255, the low byte is stored       */
    const caterva_metalayer *metalayers;   /* user's fixed metalayers                 */
    int n_metalayers;                      /* 0..15                                   */
    int overwrite;              /* replace what exists at the first commit            */
    int threads;                /* at most so many per request; 0: all cores          */
    caterva_durability durability;
    int64_t dirty_budget;       /* bytes of decoded blocks a writer may hold back; 0: 64 MiB */
    int64_t cache_bytes;        /* as in caterva_open_options                         */
    int no_read_ahead;          /* as in caterva_open_options                         */
    /* Hears of long calls through the handle, and stops them; see above. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
    int compact_percent;        /* as in caterva_open_options                         */
} caterva_create_options;
#define CATERVA_CREATE_INIT CATERVA_INIT_(caterva_create_options)

typedef enum caterva_mode { CATERVA_MODE_READ = 0, CATERVA_MODE_WRITE } caterva_mode;

/* How URLs are read: see caterva_remote.h. */
typedef struct caterva_remote_options caterva_remote_options;

typedef struct caterva_open_options {
    size_t struct_size;
    caterva_mode mode;
    uint64_t offset;  /* the frame begins there in the file (reading only)  */
    int threads;      /* at most so many per request; 0: all cores          */
    caterva_durability durability;
    int64_t dirty_budget; /* bytes of decoded blocks a writer may hold back; 0: 64 MiB */
    int64_t cache_bytes;  /* decoded blocks kept for later reads: 0: in the cache that
                             handles share; > 0: in a cache of this handle, of so many
                             bytes; CATERVA_NONE: not kept                */
    int unchecked;        /* 1: what is read is not checked against checksums, to get
                             at what is left of a damaged array; a commit then takes
                             what it finds for good                       */
    int no_read_ahead;    /* 1: scans are not read ahead of, see caterva_prefetch      */
    int64_t keep_bytes;   /* reading: a file of at most so many bytes is kept in memory,
                             as it is stored, once what was read of it has cost as much
                             as reading all of it. 0: 16 MiB; CATERVA_NONE: never. What others do
                             to the file is then seen by caterva_refresh and
                             caterva_verify only                               */
    /* Hears of long calls through the handle, and stops them; see above. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
    int compact_percent;  /* writing: 1 to 100: caterva_close compacts the file, as
                             caterva_compact does, when this handle has changed it and
                             at least so many percent of it, and 64 KiB, are dead space,
                             unless somebody reads an older state. That takes the time
                             and, for a while, the space of a copy of all that is not
                             dead; when it fails, nothing has changed and caterva_close
                             succeeds. on_progress hears of it as of a call of its own,
                             and may stop it. 0: never. A directory has no dead space */
    const caterva_remote_options *remote; /* of a URL, copied; NULL: all as by default */
} caterva_open_options;
#define CATERVA_OPEN_INIT CATERVA_INIT_(caterva_open_options)

/* ---- Create, open, close ------------------------------------------------ */

/* An open array. */
typedef struct caterva_array caterva_array;

/* Makes a new array at `url`: a path, or "mem:" for one in memory. All cells hold the fill.
 * Nothing appears at the path before the first commit (or close), and then the whole array:
 * the library writes under a temporary name beside it and renames. Returns CATERVA_EEXIST
 * when something is there and `overwrite` is 0, and CATERVA_EINVAL for a directory in a tree:
 * an array there is one file.
 *
 * With `overwrite` the new array replaces a file, or the directory of an array. It keeps
 * the permissions, owner and group of what it replaces as far as the process may set them.
 * Returns CATERVA_EBUSY when that is open for writing, or is a directory that is open for
 * reading. The first commit checks again and decides; if it says CATERVA_EBUSY the new
 * array stays pending, and a later commit may succeed. Handles that read a replaced file go
 * on seeing it.
 *
 * Release *out with caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_create(const char *url,
                                          const caterva_create_options *options,
                                          caterva_array **out, caterva_error *err);

/* Creates an array and writes all of it from `src`: C order, `src_size` bytes, at least as
 * many as the array has. Does not commit. Leaves nothing behind when it fails.
 * Thread: any. */
CATERVA_API caterva_status caterva_create_from_memory(const char *url,
                                                      const caterva_create_options *options,
                                                      const void *src, size_t src_size,
                                                      caterva_array **out,
                                                      caterva_error *err);

/* Opens the array at `url`: a file, the directory of a sparse frame, or one of these behind
 * http://, https:// or s3://, see caterva_remote_options. `options` NULL opens it for
 * reading. Resolves a relative path once, against the working directory of now. Costs a few
 * small reads, however many chunks there are; of a URL one request.
 *
 * A Blosc2 frame of plain items, without the array's metalayer, opens as a 1-d array that
 * can only be read (CATERVA_EUNSUPPORTED with CATERVA_MODE_WRITE).
 *
 * Returns CATERVA_ENOTFOUND when nothing is there, CATERVA_ECORRUPT with the byte position,
 * CATERVA_EUNSUPPORTED for what this library cannot read, and, with CATERVA_MODE_WRITE,
 * CATERVA_EBUSY while another handle or process writes there. Release *out with
 * caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_open(const char *url, const caterva_open_options *options,
                                        caterva_array **out, caterva_error *err);

/* Makes everything written so far visible to others and as durable as the handle's
 * durability says, all or nothing. Does nothing when nothing is pending. Waits for a
 * caterva_verify of the same handle; returns CATERVA_EBUSY inside a function that
 * caterva_verify calls.
 *
 * After a failure the last committed state is untouched and your changes are still pending:
 * commit again when its reason is gone, a full disk for example. One failure is final for the
 * handle: where a sync failed, or the write of the header that makes the commit visible,
 * nobody knows whether the medium holds the old state or the new one. Reads go on; every
 * later write and commit returns CATERVA_EIO: discard the handle and open the array again,
 * which finds one of the two states, whole.
 *
 * Returns CATERVA_EIO when somebody moved, deleted or replaced the file or directory while
 * it was open for writing: a commit there would be lost.
 * Thread: turns. */
CATERVA_API caterva_status caterva_commit(caterva_array *array, caterva_error *err);

/* Drops everything since the last commit. A new array that was never committed holds its
 * fill again.
 * Thread: turns. */
CATERVA_API caterva_status caterva_rollback(caterva_array *array, caterva_error *err);

/* Commits what is pending and releases the handle, like fclose: it releases the handle also
 * when the commit fails or is stopped, and then drops what is pending. To keep that, call
 * caterva_commit first, and caterva_close when it has succeeded. Cancels the handle's reads of
 * caterva_read_async first.
 *
 * A handle for writing then tidies up, unless somebody reads an older state: it cuts the
 * file behind its frame, gives back dead space before the index where that is worth a
 * commit, removes chunk files that were replaced, and compacts the file when
 * compact_percent says so. Failing to tidy up is no error: the data are committed.
 * Thread: alone. */
CATERVA_API caterva_status caterva_close(caterva_array *array, caterva_error *err);

/* Releases the handle and drops what is pending. A new array that was never committed
 * leaves nothing behind. Cancels the handle's reads of caterva_read_async first.
 * Thread: alone. */
CATERVA_API void caterva_discard(caterva_array *array);

/* Removes everything that this process keeps under temporary names: new arrays that were
 * not committed yet, and what copies, compact and repair are making. Call it when the
 * program must leave at once, with _exit and without closing its handles; those are good
 * for nothing afterwards. In a child of fork it leaves alone what the parent has. Not for
 * signal handlers.
 * Thread: any. */
CATERVA_API void caterva_delete_temporaries(void);

/* Turns a handle for reading to the last committed state; until then the handle goes on
 * seeing the state it opened. It keeps all options, and looks at the path that caterva_open
 * resolved, whatever the working directory is now. If another array has taken that place
 * the handle turns to it; if nothing is there any more this returns CATERVA_ENOTFOUND and
 * the handle goes on as it was. Reads of caterva_read_async that are outstanding are done
 * first, on the old state. Does nothing for handles for writing and for arrays in memory.
 * Thread: alone. */
CATERVA_API caterva_status caterva_refresh(caterva_array *array, caterva_error *err);

/* Releases memory that this library handed out.
 * Thread: any. */
CATERVA_API void caterva_free(void *memory);

/* ---- What is it --------------------------------------------------------- */

typedef struct caterva_info {
    size_t struct_size;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int32_t chunk_shape[CATERVA_MAX_DIMS];
    int32_t block_shape[CATERVA_MAX_DIMS];
    int64_t chunk_counts[CATERVA_MAX_DIMS]; /* chunks along each axis                    */
    int64_t block_counts[CATERVA_MAX_DIMS]; /* blocks of one chunk along each axis       */
    const char *dtype;     /* description that fits item_size; "|V<n>" when none does    */
    const char *dtype_stored; /* what the file says, NULL without dtype                  */
    const void *fill_value; /* one item: what new cells hold; NULL: zeros                */
    int dtype_disagrees;   /* 1: the stored dtype does not fit item_size; items are opaque */
    int32_t item_size;     /* bytes                                                      */
    caterva_layout layout;
    caterva_metalayer_kind metalayer;
    int in_memory;
    int sealed;            /* 1: the last commit's checksums vouch for all of it;
                              caterva_measure counts chunks without            */
    int codec, codec_meta, level; /* as in caterva_create_options, never 0 (codec_meta: or 0) */
    int filters[CATERVA_MAX_FILTERS]; /* CATERVA_FILTER_NONE in entries without a filter  */
    int filters_meta[CATERVA_MAX_FILTERS];
    int use_dict;
    int64_t n_items;       /* of the array                                               */
    int64_t n_chunks;
    int64_t n_blocks;      /* of one chunk                                               */
    int64_t chunk_bytes;   /* decoded, padding included                                  */
    int64_t block_bytes;
    int64_t data_bytes;    /* n_items * item_size                                        */
    int64_t frame_bytes;   /* of the frame as stored (sparse: chunk files added)         */
    int64_t header_bytes;  /* above 512 a header write may tear in a power cut           */
    int n_attributes;
    int n_metalayers;      /* the array's own included                                   */
    const char *const *attribute_names;  /* n_attributes entries, in file order          */
    const caterva_metalayer *metalayers; /* n_metalayers entries, in file order          */
    const char *url;       /* absolute path of the file or directory; NULL in memory     */
    uint64_t offset;       /* where the frame begins in the file                         */
    caterva_mode mode;     /* of the handle                                              */
    caterva_durability durability; /* of its commits                                     */
    int64_t commit_number; /* of the last commit: it grows with each. 0 where the file does
                              not say: no commit yet, a file of another writer, or an array
                              of which no chunk is stored                                */
    /* Identifies the last commit that the handle sees: equal through all handles at that
     * commit, in all processes, and different for another commit of the array or for another
     * array in its place. The checksums of a sealed array give it; copies of the file have the
     * same. Without a seal it also takes inode, time and size of the file (ETag, date and size
     * behind a URL), so it is as fine as the clock of the file system. Not for arrays in
     * memory, nor before the first commit: what is in it is undefined then.              */
    uint8_t state_id[CATERVA_STATE_ID];
} caterva_info;

/* Gives you a reference to a description of the array as its handle sees it, pending
 * changes included. A description never changes and outlives whatever happens to the array,
 * caterva_refresh and caterva_close too. All calls give the same one until the shape, the
 * attributes or the metalayers change, or a commit or rollback happens. Costs little: it
 * reads nothing from the store. Only the first call for a state may wait for a write under
 * way. Release *out with caterva_info_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_info_get(caterva_array *array, const caterva_info **out,
                                            caterva_error *err);
CATERVA_API void caterva_info_release(const caterva_info *info); /* NULL is fine */

/* Returns 1 while the handle has changes that are not committed, else 0, also for NULL. A
 * new array has some until its first commit.
 * Thread: shared. */
CATERVA_API int caterva_has_pending(caterva_array *array);

/* Finds the metalayer of that name, or returns NULL. Borrowed from `info`.
 * Thread: any. */
CATERVA_API const caterva_metalayer *caterva_info_metalayer(const caterva_info *info,
                                                            const char *name);

/* ---- Casts --------------------------------------------------------------- */

/* Says which casts you allow where you want items in another dtype, in NumPy's words. */
typedef enum caterva_casting {
    CATERVA_CASTING_SAME_KIND = 0, /* safe ones, and within a kind: float64 to float32    */
    CATERVA_CASTING_SAFE,          /* that keep every value                               */
    CATERVA_CASTING_UNSAFE         /* all; of integers the low bits stay, of floats what
                                   does not fit goes to the nearest integer, NaN to 0  */
} caterva_casting;

/* ---- Selections and buffers --------------------------------------------------------- */

/* Says what to take along one axis. A zero-filled one takes the whole axis. Indices may be
 * negative, as in Python: -1 is the last. */
typedef enum caterva_axis_kind {
    CATERVA_AXIS_ALL = 0,
    CATERVA_AXIS_INDEX, /* the one item `start`; the axis is dropped from the result */
    CATERVA_AXIS_SLICE, /* start:stop:step as Python means it, bounds clamped        */
    CATERVA_AXIS_LIST,  /* items indices[0..n), any order, repeats allowed           */
    CATERVA_AXIS_MASK   /* the items i where mask[i] is not 0; n is the axis' length */
} caterva_axis_kind;

/* A bound of a slice that you leave out: for x[::-1] set start and stop to
 * CATERVA_AXIS_OMIT and step to -1. */
#define CATERVA_AXIS_OMIT INT64_MIN

typedef struct caterva_axis {
    caterva_axis_kind kind;
    int64_t start, stop, step; /* step 0: 1             */
    const int64_t *indices;    /* borrowed for the call */
    const uint8_t *mask;       /* likewise              */
    int64_t n;                 /* of indices or mask    */
    int64_t reserved[2];       /* must be 0             */
} caterva_axis;

typedef enum caterva_selection_kind {
    CATERVA_SELECTION_BOX = 0, /* [start, stop) on each axis, as caterva_read; strict */
    CATERVA_SELECTION_AXES,    /* each axis by itself                                 */
    CATERVA_SELECTION_POINTS,  /* single items                                        */
    CATERVA_SELECTION_MASK     /* the items where a mask of the array's shape says so */
} caterva_selection_kind;

/* Says which items of an array `a` you mean, in the words of NumPy:
 *
 *   BOX     a[start[0]:stop[0], ...]; both NULL: everything
 *   AXES    a[np.ix_(...)], each axis after its own kind, also mixed: of two
 *           lists every pair is taken (NumPy's own a[l0, l1] is POINTS). Axes
 *           behind the last given one are taken whole.
 *   POINTS  a[p[:, 0], p[:, 1], ...] for `points` of n_points rows, one index for
 *           each axis of the array
 *   MASK    a[mask]: the items in C order
 *
 * The result has one axis for each axis that is not dropped (BOX, AXES), or a single one
 * (POINTS, MASK). A zero-filled selection is the whole array. The library borrows all
 * pointers for the call. */
typedef struct caterva_selection {
    size_t struct_size;
    caterva_selection_kind kind;
    const int64_t *start, *stop; /* BOX: ndim entries each            */
    const caterva_axis *axes;    /* AXES: n_axes entries, 0..ndim     */
    int n_axes;
    const int64_t *points;       /* POINTS: n_points * ndim, C order  */
    int64_t n_points;
    const uint8_t *mask;         /* MASK: n_items bytes, C order      */
    size_t mask_size;            /* must be n_items                   */
} caterva_selection;
#define CATERVA_SELECTION_INIT CATERVA_INIT_(caterva_selection)

/* Describes memory of yours. Item (i, j, ...) lies at data + i * strides[0] + j *
 * strides[1] + ...; `data` is the item (0, 0, ...), which with negative strides is not the
 * lowest.
 *
 * `shape` NULL means the selection's shape; otherwise its `ndim` entries must equal that.
 * The source of a write may also have a shape that NumPy would broadcast: fewer axes, or
 * axes of 1 item, are repeated; and its strides may be 0. `strides` NULL means C order. The
 * items of a destination must not overlap: a stride of 0 is refused, others are yours to
 * see to. */
typedef struct caterva_buffer {
    size_t struct_size;
    void *data;             /* not written when it is a source                  */
    size_t size;            /* bytes from the lowest item to the end of the
                               highest; checked against shape and strides       */
    int ndim;               /* of shape and strides where these are given       */
    const int64_t *shape;
    const int64_t *strides; /* bytes                                            */
    const char *dtype;      /* of the items; NULL: the array's. Numbers (bool, integers,
                               float16, 32 and 64, complex; either byte order) are
                               converted; buffers may also be "bfloat16", little-endian,
                               whose casts are those of ml_dtypes                    */
    caterva_casting casting;
    const char *field;      /* of a destination, where items are structured: only this
                               field of each, "a", or "a.b" of a nested one; dtype is
                               then that of the field. NULL: whole items             */
} caterva_buffer;
#define CATERVA_BUFFER_INIT CATERVA_INIT_(caterva_buffer)

/* ---- Read and write ----------------------------------------------------- */

/* Copies the box [start, stop) into `dst` in C order. `start` and `stop` have ndim entries
 * (NULL for ndim 0) with 0 <= start <= stop <= shape on each axis. Returns CATERVA_ERANGE
 * for other boxes and CATERVA_ESHORT when `dst_size` is less than the box's bytes. When it
 * fails, the items of `dst` are undefined.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read(caterva_array *array, const int64_t *start,
                                        const int64_t *stop, void *dst, size_t dst_size,
                                        caterva_error *err);

/* Writes the box [start, stop) from `src`, in C order. This handle sees the new items at
 * once, others after the commit. The handle must be open for writing (CATERVA_EREADONLY).
 * Other statuses are those of caterva_read. When the write fails, the items of the box are
 * undefined until you write them again or roll back; the committed state is untouched.
 * Thread: turns. */
CATERVA_API caterva_status caterva_write(caterva_array *array, const int64_t *start,
                                         const int64_t *stop, const void *src, size_t src_size,
                                         caterva_error *err);

/* ---- Selections in and out ---------------------------------------------- */

/* Computes the shape of a selection's result. `shape` has room for CATERVA_MAX_DIMS entries, of
 * which the first *ndim are set. CATERVA_ERANGE names the axis and the number that does
 * not fit the array. Goes over lists and masks once.
 * Thread: shared. */
CATERVA_API caterva_status caterva_selection_shape(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   int *ndim, int64_t *shape,
                                                   caterva_error *err);

/* Copies the selected items into `dst` (`selection` NULL: everything). Decodes only the
 * blocks that hold a wanted item, each once, in parallel.
 *
 * Beside the blocks at work this takes memory: for lists and points 32 bytes for each index
 * and 24 for each touched block; for a mask of the array 8 bytes for each line of items in
 * a block; for boxes and slices nothing. Another dtype than the array's takes a converted
 * block for each thread.
 *
 * Returns CATERVA_ERANGE for what lies outside, CATERVA_ESHAPE for a buffer or mask of
 * another shape, CATERVA_ESHORT for a buffer that is too small, CATERVA_ECAST for a cast
 * that `casting` does not allow, CATERVA_EDTYPE for items that cannot be converted. When it
 * fails, the items at the result's places are undefined.
 * Thread: shared. */
CATERVA_API caterva_status caterva_read_selection(caterva_array *array,
                                                  const caterva_selection *selection,
                                                  const caterva_buffer *dst,
                                                  caterva_error *err);

/* Says whom caterva_read_async tells. */
typedef struct caterva_async_options {
    size_t struct_size;
    /* Called once for each call that returned CATERVA_OK: when the read is done, has failed
     * or was cancelled. `error` is NULL on success, else borrowed for the call. */
    void (*on_done)(void *context, caterva_status status, const caterva_error *error);
    void *context;
} caterva_async_options;
#define CATERVA_ASYNC_INIT CATERVA_INIT_(caterva_async_options)

/* A read of caterva_read_async, from the call until you release it. */
typedef struct caterva_request caterva_request;

/* Does what caterva_read_selection does, but returns at once. Threads of the library's pool
 * do the read, and the one that did it calls on_done. The handle keeps the reads in a queue
 * and begins them in the order you called them, as many at once as the handle has
 * `threads`. Any number may be outstanding; each takes about 2 KiB and the memory of its
 * selection's lists and masks.
 *
 * This copies `selection`, `dst` and `options` with all they point at, except the memory at
 * dst->data: that is the library's until on_done is called. Wrong arguments are returned at
 * once, with the statuses of caterva_read_selection, and on_done is not called. So are
 * CATERVA_ENOMEM, also when the system has no thread to give, and CATERVA_ESTOPPED, when
 * the array is being closed.
 *
 * *out is set before the read begins. Cancel it, wait for it, and release it with
 * caterva_request_release, at any time. Pass `out` NULL if you will do neither. With
 * neither `out` nor on_done nobody would know when the read is done: CATERVA_EINVAL.
 *
 * - What it reads. Through a handle for reading: the state that the handle saw at the call,
 *   also when caterva_refresh comes after it. Through a handle for writing: what a caterva_read
 *   in another thread might see, pending changes included, at one moment between the call and
 *   on_done; CATERVA_ESTALE if the shape has changed by then.
 * - on_done is called exactly once, also after a failure, caterva_request_cancel and
 *   caterva_close. It runs on a thread of the pool, maybe before this function has returned,
 *   but never inside it. caterva_close, caterva_discard and caterva_refresh may call it, too.
 * - on_done may call any function of the library, also caterva_read_async, and may close
 *   the
 *   array when no other call uses it. It must not wait for another request (CATERVA_EBUSY). Be
 *   quick: a thread that is in on_done reads nothing.
 * - caterva_close and caterva_discard cancel what is outstanding and return when every
 *   on_done
 *   has: hold no lock over them that on_done takes. caterva_refresh does outstanding reads
 *   first.
 * - A write, a commit or a fork waits for the reads that are being done at that moment. It
 *   does
 *   not wait for reads in the queue, nor for on_done.
 * - In a child of fork nothing is outstanding. The child may release requests of its
 *   parent;
 *   on_done is called in the parent.
 *
 * Thread: any. */
CATERVA_API caterva_status caterva_read_async(caterva_array *array,
                                              const caterva_selection *selection,
                                              const caterva_buffer *dst,
                                              const caterva_async_options *options,
                                              caterva_request **out, caterva_error *err);

/* Asks the read to end soon, and returns at once. A read in the queue does not begin; a
 * read under way stops between two blocks. Its status is CATERVA_ESTOPPED unless it was
 * done already. on_done is called as ever, and not by this function. What the buffer holds
 * is undefined.
 * Thread: any. */
CATERVA_API void caterva_request_cancel(caterva_request *request); /* NULL is fine */

/* Waits until on_done has returned, and returns the status of the read. Inside the
 * request's own on_done it returns at once. In a child of fork it returns CATERVA_ESTOPPED
 * at once for a request of the parent that was not over.
 * Thread: any. */
CATERVA_API caterva_status caterva_request_wait(caterva_request *request, caterva_error *err);

/* Releases the request, also inside on_done; the read goes on.
 * Thread: any, once. */
CATERVA_API void caterva_request_release(caterva_request *request); /* NULL is fine */

/* Writes the selected items from `src`. If an item is selected twice, the last value (in C
 * order of the result) stays, as in NumPy. Otherwise as caterva_write, with the statuses
 * and the memory of caterva_read_selection. A source of another dtype is converted whole
 * first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_write_selection(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   const caterva_buffer *src,
                                                   caterva_error *err);

/* ---- The block cache ---------------------------------------------------- */

/* The cache keeps blocks decoded that a read wanted in part, for the reads that want the
 * rest of them. It does not keep blocks that were wanted whole. The blocks that a scan has
 * come to the end of go first, and one request fills no more than three quarters of the
 * cache. Every read is exact: what a handle finds in the cache is what it would decode from
 * the state it sees.
 *
 * If all blocks of an array fit the cache together, the cache keeps every block that is read
 * of it, also those wanted whole and those at the end of a scan. Only the first read of all
 * of the array at once leaves nothing there.
 *
 * All handles of the process share one cache of 64 MiB, except those opened with their own
 * or with none (`cache_bytes`). It takes memory as blocks come and gives it back as handles
 * are closed. */

typedef struct caterva_cache_info {
    size_t struct_size;
    int64_t limit;    /* bytes                                            */
    int64_t bytes;    /* in use, never more than the limit                */
    int64_t blocks;   /* in the cache                                     */
    int64_t hits;     /* blocks looked for and found, since the beginning */
    int64_t misses;   /* looked for and not found                         */
    int64_t inserted;
    int64_t evicted;  /* gone to make room                                */
    int64_t prefetched; /* of those inserted, before a read asked for them */
} caterva_cache_info;
#define CATERVA_CACHE_INFO_INIT CATERVA_INIT_(caterva_cache_info)

/* Sets the size of the shared cache in bytes. 0 restores the default of 64 MiB, CATERVA_NONE
 * empties the cache and keeps it empty. Lower values are CATERVA_EINVAL.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_set_limit(int64_t bytes, caterva_error *err);

/* Counts what is in the cache that `array` uses (all zero without one), or, with NULL, in
 * the shared one.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_describe(caterva_array *array,
                                                  caterva_cache_info *out,
                                                  caterva_error *err);

/* Asks for the blocks of the box [start, stop) to be decoded into the cache, and returns at
 * once. This is a hint. Blocks that are there already are left alone. Boxes that wait get
 * no more than half of the cache together; what goes beyond that is left out, and so is a
 * box when eight wait. Errors are not reported here: the read that needs the block reports
 * them. Does nothing through a handle without a cache or with `threads` 1: the threads that
 * decode are the handle's beyond its caller's, and reads go first. Returns CATERVA_ERANGE
 * if the box is not inside the array.
 *
 * A write waits for the few blocks that are being decoded, and what it writes is seen. So
 * do closing the handle and fork; what is left of the boxes is dropped then, as it is by
 * caterva_refresh.
 *
 * A scan needs no such call. When a thread reads three boxes, each moved from the one
 * before by the same step along one axis, the library prefetches the next layer of blocks
 * along that axis whenever the scan comes to a new one. A selection, also of a view, counts
 * as a box when it has neither steps nor lists. There is no read-ahead when the boxes want
 * most of their blocks whole, when the handle has one thread, when several threads read
 * through it, when the machine has not two cores for each scan that is read ahead of, when
 * two layers are more than three quarters of the cache, or when no_read_ahead switches it
 * off.
 * Thread: shared. */
CATERVA_API caterva_status caterva_prefetch(caterva_array *array, const int64_t *start,
                                            const int64_t *stop, caterva_error *err);

/* ---- Views -------------------------------------------------------------- */

/* A view shows an array through slices, steps, transposition and new axes, or shows several
 * arrays as one. Making a view touches no data and costs a small struct. Reading and
 * writing through it is a selection of the array below, which must stay open. A view shows
 * what the array's handle sees, and never changes once made. Views made of it stay valid
 * when you free it. When the array's shape changes, or caterva_refresh turns its handle to an array
 * of other axes or another dtype, what goes through older views returns CATERVA_ESTALE, whatever
 * else is wrong with the call. Of a view of several arrays the items of those that have not
 * changed can still be read. */
typedef struct caterva_view caterva_view;

/* Makes a view of the whole array. Release *out, as all views below, with
 * caterva_view_free.
 * Thread: shared; caterva_view_free: any, once. */
CATERVA_API caterva_status caterva_view_of(caterva_array *array, caterva_view **out,
                                           caterva_error *err);
CATERVA_API void caterva_view_free(caterva_view *view); /* NULL is fine */

/* Makes a view of a[...] with slices and indices (which drop their axis). Lists are fine
 * only in even steps. Axes behind n_axes are taken whole.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_select(const caterva_view *view,
                                               const caterva_axis *axes, int n_axes,
                                               caterva_view **out, caterva_error *err);

/* Makes a view whose axis i is axis order[i] of the old one. `order` NULL reverses the
 * axes.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_transpose(const caterva_view *view, const int *order,
                                                  caterva_view **out, caterva_error *err);

/* Makes a view with a new axis of one item in front of `axis` in [0, ndim]; at most 16 in
 * all.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_expand(const caterva_view *view, int axis,
                                               caterva_view **out, caterva_error *err);

/* Makes a view without `axis`, which must have one item.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_squeeze(const caterva_view *view, int axis,
                                                caterva_view **out, caterva_error *err);

/* Makes one view of `n` >= 1 views, one behind the other along `axis`. They have the same
 * dtype, and the same shape but for that axis. The result can only be read.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_concat(const caterva_view *const *views, int n,
                                               int axis, caterva_view **out,
                                               caterva_error *err);

/* Makes one view of `n` >= 1 views of one shape, along a new axis in front of `axis`.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_stack(const caterva_view *const *views, int n,
                                              int axis, caterva_view **out,
                                              caterva_error *err);

/* Return the number of axes, and their lengths (ndim entries, borrowed from the view). Of
 * NULL: 0 and NULL. The dtype is that of the arrays below.
 * Thread: any. */
CATERVA_API int caterva_view_ndim(const caterva_view *view);
CATERVA_API const int64_t *caterva_view_shape(const caterva_view *view);

/* Read and write as caterva_read_selection and caterva_write_selection do, with the view in
 * place of the array. Lists and points take 8 bytes more for each index; a mask of the view
 * takes the memory of so many points; points and masks of a view of several arrays take 8
 * bytes more for each, once more the memory of their coordinates, and that of the items. A
 * view of several arrays cannot be written: CATERVA_EREADONLY.
 * Thread: shared for caterva_view_read, turns for caterva_view_write, on the arrays below.
 */
CATERVA_API caterva_status caterva_view_read(const caterva_view *view,
                                             const caterva_selection *selection,
                                             const caterva_buffer *dst, caterva_error *err);
CATERVA_API caterva_status caterva_view_write(const caterva_view *view,
                                              const caterva_selection *selection,
                                              const caterva_buffer *src, caterva_error *err);

/* Does what caterva_view_read does, but returns at once, as caterva_read_async does: what
 * stands there about requests, copies of arguments, on_done, statuses and forks holds here.
 * Free the view whenever you like; the arrays below stay open until you close them.
 *
 * Each array below that has a wanted item reads its share as a read of its own: it stands in
 * the queue of that handle, and several arrays may read at once. The first share that fails
 * stops the others, and its error is the read's. on_done is called once, when all are over.
 *
 * - What it reads is said of each array by itself. Through handles for writing the shares may
 *   be of different moments.
 * - caterva_close, caterva_discard and caterva_refresh of one array see to its share only: the
 *   first two cancel the whole read, but on_done may come after they have returned, when the
 *   last of the other arrays has stopped. `dst` is the library's until then.
 * - CATERVA_ESTALE is told by on_done; the call itself tells of wrong arguments only.
 *
 * Takes about 2 KiB for each array and 1.5 KiB for each share: a list along the axis of a join
 * has one for each run of indices of the same array. Points and masks of several arrays take
 * the memory of their result once more, as in caterva_view_read.
 * Thread: any. */
CATERVA_API caterva_status caterva_view_read_async(const caterva_view *view,
                                                   const caterva_selection *selection,
                                                   const caterva_buffer *dst,
                                                   const caterva_async_options *options,
                                                   caterva_request **out, caterva_error *err);

/* ---- Changes of shape --------------------------------------------------- */

/* These work on any axis, at any position. Chunks that stay whole keep their bytes. New
 * cells hold the array's fill (zeros in files of other writers). Cells that go out of view
 * are cleared: growing again brings nothing back. This handle sees the new shape at once,
 * others after the commit.
 *
 * When an argument is wrong, nothing has changed. On any other failure the committed state
 * is untouched, but you must call caterva_rollback before you change the array again
 * (CATERVA_EROLLBACK). */

/* Grows or shrinks each axis at its end, to `shape` (ndim entries).
 * Thread: turns. */
CATERVA_API caterva_status caterva_resize(caterva_array *array, const int64_t *shape,
                                          caterva_error *err);

/* Appends `n` items at the end of `axis`, from `src`, whose shape is the array's but for
 * `n` on that axis, or one that is broadcast to it.
 * Thread: turns. */
CATERVA_API caterva_status caterva_append(caterva_array *array, int axis, int64_t n,
                                          const caterva_buffer *src, caterva_error *err);

/* Inserts `n` items in front of position `at` in [0, shape[axis]], from `src` as in
 * caterva_append; `src` NULL inserts the fill. Costs an edit of the index where `at` and
 * `n` are multiples of the chunk shape, otherwise it moves everything behind.
 * Thread: turns. */
CATERVA_API caterva_status caterva_insert(caterva_array *array, int axis, int64_t at, int64_t n,
                                          const caterva_buffer *src, caterva_error *err);

/* Removes items [start, stop) of `axis`; what is behind moves up.
 * Thread: turns. */
CATERVA_API caterva_status caterva_remove(caterva_array *array, int axis, int64_t start,
                                          int64_t stop, caterva_error *err);

/* ---- Attributes, metalayers, dimensions --------------------------------- */

/* Attributes are Blosc2's variable-length metalayers. Their values are bytes; python-blosc2
 * stores msgpack in them. caterva_info lists their names, and names and contents of the
 * fixed metalayers. */

/* Gives you the value's bytes, decompressed: all of them, whatever memory that takes. If
 * you do not trust the file, ask caterva_attr_read for the size first. Release *value with
 * caterva_free. Returns CATERVA_ENOTFOUND when there is no such name.
 * Thread: shared. */
CATERVA_API caterva_status caterva_attr_get(caterva_array *array, const char *name,
                                            void **value, size_t *size, caterva_error *err);

/* Copies bytes of the value from byte `start` on, as many as there are and `dst_size` has
 * room for, and sets *size to the size of the whole value. `dst` NULL gives the size only,
 * which costs nothing: a few bytes of a file can stand for gigabytes. Otherwise this takes
 * the memory of a block of the value, and returns CATERVA_EUNSUPPORTED if that is more than
 * 32 MiB. Returns CATERVA_ENOTFOUND when there is no such name, CATERVA_ERANGE when `start`
 * is behind the end.
 * Thread: shared. */
CATERVA_API caterva_status caterva_attr_read(caterva_array *array, const char *name,
                                             int64_t start, void *dst, size_t dst_size,
                                             int64_t *size, caterva_error *err);

/* Sets an attribute to `size` bytes: one MessagePack value, as python-blosc2 expects; pending
 * until the commit. Names have 1 to 65535 bytes of UTF-8, and there may be as many as you
 * like. Where they stand in the file:
 *
 * - C-Blosc2 can change a frame of at most 16 attributes whose names have 31 bytes. While all
 *   fit, each has a key of its own ("vlmeta"), as python-blosc2 writes them.
 * - Then the attribute `attrs` is a map of those that do not fit: all longer names, and what
 *   comes behind the first 15, or 14 where the array has a fill. python-blosc2 opens the file
 *   and shows the others, and the map as one attribute.
 * - All functions here know both places, in files of other writers, too, and there also a
 *   map that is JSON text. A key of its own comes before one in the map.
 *
 * CATERVA_EINVAL when the bytes are no MessagePack value and would have to stand in the map,
 * or when the map would have more than 64 MiB.
 * Thread: turns. */
CATERVA_API caterva_status caterva_attr_set(caterva_array *array, const char *name,
                                            const void *value, size_t size,
                                            caterva_error *err);

/* Removes an attribute; pending until the commit. Returns CATERVA_ENOTFOUND when there is
 * none.
 * Thread: turns. */
CATERVA_API caterva_status caterva_attr_delete(caterva_array *array, const char *name,
                                               caterva_error *err);

/* Replaces the content of one of your metalayers; its length stays. Pending until the
 * commit.
 * Thread: turns. */
CATERVA_API caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                               const void *content, size_t size,
                                               caterva_error *err);

/* Gives you the names of the array's dimensions: *names has one for each axis, NULL for an
 * axis without one. They come from the attribute `dims`, a list of text or nil; without it
 * from `dimension_names`, else `_ARRAY_DIMENSIONS`, as Zarr has them. An attribute that is
 * no list of one entry for each axis is passed over. Returns CATERVA_ENOTFOUND when there
 * is none. One block of memory: release *names with caterva_free.
 * Thread: shared. */
CATERVA_API caterva_status caterva_dims_get(caterva_array *array, const char ***names,
                                            caterva_error *err);

/* Names the dimensions: one name for each axis, UTF-8, NULL for none; with `names` NULL it
 * takes all names away. Sets the attribute `dims` and removes `dimension_names` and
 * `_ARRAY_DIMENSIONS`, which would say something else; pending until the commit. Copies,
 * views' copies among them, keep the names of the axes that they keep.
 * Thread: alone. */
CATERVA_API caterva_status caterva_dims_set(caterva_array *array, const char *const *names,
                                            caterva_error *err);

/* ---- Partition ---------------------------------------------------------- */

/* Chooses the chunk and block shape that the library would take for an array of this shape
 * and item size. Keeps a given shape (not NULL) and chooses the other one to fit. ndim
 * entries each.
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
