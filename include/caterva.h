/* Caterva: n-dimensional arrays in compressed chunks.
 *
 * An array is cut into chunks and each chunk into blocks. A read decodes only the blocks it
 * touches, in parallel. A file is a Blosc2 frame with the `b2nd` (or older `caterva`)
 * metalayer: python-blosc2 and C-Blosc2 read what this library writes, and it reads what
 * they write.
 *
 * Start simple: caterva_open, caterva_read, caterva_close. Every function that can fail
 * returns a caterva_status and takes a caterva_error last (NULL is fine). What a function
 * hands out through `**out` belongs to you, and its comment names the function that
 * releases it. What a function returns is borrowed. Releasing NULL is fine.
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
#define CATERVA_LEVEL_DEFAULT (-1)
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

/* A function fills it when it fails and leaves it alone when it succeeds. */
typedef struct caterva_error {
    caterva_status code;
    int sys_errno;     /* 0 unless a system call failed               */
    int64_t position;  /* byte offset in the frame, or -1             */
    char message[240]; /* one English sentence, NUL-terminated UTF-8. Control
                          characters and other bytes in names stand as \xNN */
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

/* Codecs, numbered as in Blosc2 frames. Those from 32 on are n-d plugins of libblosc2.
 * `level` is 0..9; plugins take `codec_meta` as libblosc2 documents it.
 *
 * Some pipelines do not give back the items that went in, or not what their filters
 * promise: delta with two other filters, trunc-prec behind shuffle, zfp on integers, and
 * the like. Creating, copying or writing with one of them returns CATERVA_EPIPELINE and
 * names it. */
typedef enum caterva_codec {
    CATERVA_CODEC_BLOSCLZ = 0,
    CATERVA_CODEC_LZ4 = 1,
    CATERVA_CODEC_LZ4HC = 2,
    CATERVA_CODEC_ZLIB = 4,
    CATERVA_CODEC_ZSTD = 5,
    CATERVA_CODEC_NDLZ = 32,
    CATERVA_CODEC_ZFP_ACCURACY = 33,  /* lossy; codec_meta: 10^meta is the tolerance */
    CATERVA_CODEC_ZFP_PRECISION = 34, /* lossy; codec_meta: bits kept               */
    CATERVA_CODEC_ZFP_RATE = 35       /* lossy; codec_meta: percent of the size     */
} caterva_codec;

typedef enum caterva_filter {
    CATERVA_FILTER_NONE = 0,
    CATERVA_FILTER_SHUFFLE = 1,
    CATERVA_FILTER_BITSHUFFLE = 2,
    CATERVA_FILTER_DELTA = 3, /* C-Blosc2 misreads parts of chunks that have it               */
    CATERVA_FILTER_TRUNC_PREC = 4, /* lossy; meta: mantissa bits kept (or, negative, cleared) */
    CATERVA_FILTER_NDCELL = 32,    /* meta: cell edge                                         */
    CATERVA_FILTER_NDMEAN = 33,    /* lossy; meta: cell edge                                  */
    CATERVA_FILTER_BYTEDELTA = 35, /* behind shuffle; meta: streams, 0 = item size            */
    CATERVA_FILTER_INT_TRUNC = 36  /* lossy; meta: bits kept (or, negative, cleared)          */
} caterva_filter;

/* Turn a name, as the command line spells it ("lz4", "bitshuffle", ...), into a number and
 * back. Return NULL or -1 when there is none. Names are static.
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
 *   caterva_unlink of a directory   each chunk file  files, of the call
 *   caterva_buffer_convert          each 2^18 items  items, of the call
 *   JSON to values, values to JSON  each 64 to       bytes of what is read, of the call
 *                                   96 KiB
 *   caterva_value_pack_array        each MiB         bytes, of the call
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
 *   jobs_list, job_discard          each part        parts, of the call
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
 * start from the _INIT macro, never from garbage. Zero means "choose for me" everywhere.
 * The library borrows pointers for the call only. A program made for a newer library may
 * pass a longer struct to this one as long as the part that this one does not know is zero;
 * otherwise CATERVA_EINVAL names the byte. */

typedef enum caterva_durability {
    CATERVA_DURABILITY_FULL = 0, /* commit survives power loss (two syncs)                */
    CATERVA_DURABILITY_ORDERED,  /* one sync: power loss may take the last commit, no more */
    CATERVA_DURABILITY_NONE      /* no sync: survives a killed process, not power loss     */
} caterva_durability;

typedef enum caterva_fill {
    CATERVA_FILL_ZEROS = 0,
    CATERVA_FILL_UNINIT, /* reads as zeros until written; other libraries may
                            read any bytes there                              */
    CATERVA_FILL_NAN,    /* item size 4 or 8                                  */
    CATERVA_FILL_VALUE   /* every item is *fill_value                         */
} caterva_fill;

typedef enum caterva_layout {
    CATERVA_LAYOUT_CONTIGUOUS = 0, /* one file, or memory                 */
    CATERVA_LAYOUT_SPARSE          /* a directory, one file for each chunk */
} caterva_layout;

typedef enum caterva_metalayer_kind {
    CATERVA_METALAYER_B2ND = 0,
    CATERVA_METALAYER_CATERVA, /* for readers before C-Blosc2 2.7: no dtype */
    CATERVA_METALAYER_NONE     /* of an open array: a frame of plain items  */
} caterva_metalayer_kind;

/* A fixed metalayer of yours, added at creation. */
typedef struct caterva_metalayer {
    const char *name; /* 1..31 bytes of UTF-8; "b2nd" and "caterva" are taken */
    const void *content;
    size_t size;
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
    int codec_set;              /* 0: zstd, default level, shuffle; 1: as follows     */
    int codec;                  /* caterva_codec                                      */
    int codec_meta;             /* 0..255                                             */
    int level;                  /* 0..9, or CATERVA_LEVEL_DEFAULT: for zstd 3 if items have
                                   1 byte and 2 if they have more, for other codecs 5 */
    int use_dict;               /* zstd only. C-Blosc2 misreads parts of such chunks,
                                   see docs/format.md                                 */
    int filters[CATERVA_MAX_FILTERS];      /* caterva_filter, applied in order        */
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

/* ---- URLs ---------------------------------------------------------------- */

/* caterva_open reads "http://...", "https://..." and "s3://BUCKET/KEY" as it reads files, when
 * the library was built with libcurl's header and libcurl 7.68 or newer is there. Nothing but
 * caterva_publish writes to a URL: creating one or opening it for writing is CATERVA_EREADONLY,
 * whatever its scheme is. Opening a URL of another scheme is CATERVA_EUNSUPPORTED. The handle
 * stays with the object that it found: each request names its ETag, and once it has changed on the server, or cannot be had there any more (status 403, 404
 * or 410), reads return CATERVA_EIO and say so, until caterva_refresh. Certificates are checked,
 * https is never left for http, and neither URLs' queries nor credentials stand in messages. */

/* Where credentials for s3:// come from. */
typedef enum caterva_credentials {
    CATERVA_CREDENTIALS_FIND = 0, /* those given here; else the environment (AWS_ACCESS_KEY_ID,
                                     AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN); else the
                                     profile in ~/.aws; else none: requests are not signed.
                                     Where one of two keys is alone: CATERVA_EINVAL */
    CATERVA_CREDENTIALS_GIVEN,
    CATERVA_CREDENTIALS_ENVIRONMENT,
    CATERVA_CREDENTIALS_PROFILE,
    CATERVA_CREDENTIALS_NONE      /* of public objects */
} caterva_credentials;

/* A request that has ended, for on_request. */
typedef struct caterva_transfer {
    const char *method;
    const char *url;      /* without its query                                        */
    uint64_t first;       /* byte of the object; UINT64_MAX: its last `size` bytes    */
    uint64_t size;        /* bytes asked for, or sent; where a request asks for
                             several parts of the object, of all of them              */
    uint64_t received;    /* bytes of the body that came                              */
    int64_t nanoseconds;
    int status;           /* of HTTP; 0: no answer                                    */
    int attempt;          /* 1, 2, ...                                                */
    int ranges;           /* of the reader, joined in this request                    */
    const char *error;    /* one sentence, or NULL                                    */
} caterva_transfer;

/* How URLs are read. Start from CATERVA_REMOTE_INIT. Everything is copied. */
typedef struct caterva_remote_options {
    size_t struct_size;
    int connections;        /* so many requests at once, 1 to 256; 0: 16               */
    int connect_timeout_ms; /* for a connection; 0: 10 seconds                         */
    int stall_timeout_ms;   /* for 256 bytes each second, in whole seconds; 0: 30      */
    int retries;            /* of a request that failed for a while, at most 20; 0: 5;
                               -1: none                                                */
    int over_read_percent;  /* bytes that may be read over what is needed, where that
                               saves requests and time, at most 1000000; 0: 100; -1:
                               none. Any but that: chunks of at most 1 MiB together
                               are read whole                                          */
    caterva_credentials credentials;
    const char *access_key; /* CATERVA_CREDENTIALS_GIVEN; NULL: none                   */
    const char *secret_key;
    const char *session_token; /* or NULL                                              */
    const char *profile;    /* in ~/.aws; NULL: AWS_PROFILE, "default"                 */
    const char *region;     /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's,
                               "us-east-1"                                             */
    const char *endpoint;   /* "https://HOST[:PORT]" of another service than Amazon's;
                               NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's */
    int path_style;         /* 1: ENDPOINT/BUCKET/KEY; -1: BUCKET.ENDPOINT/KEY; 0: the
                               first with an endpoint, the second without              */
    const char *const *headers; /* "Name: value", for the URL's own server only        */
    int n_headers;
    /* More headers, for tokens that expire: calls `add` for each. Called before each attempt
     * by a thread of the library, one at a time; it may not call the library. A fork does not
     * wait for it. One that would be refused in `headers` fails what is being read, and no
     * request is made.                                                                  */
    void (*on_headers)(void *context, void (*add)(void *token, const char *header),
                       void *token);
    /* Hears of each attempt when it has ended, by that thread, too. */
    void (*on_request)(void *context, const caterva_transfer *transfer);
    void *context;          /* of both; valid until the handle is closed               */
    /* A folder that keeps what was read, for other handles and processes: they open the
     * object with one request, as ever, and then ask the server only for what is not there.
     * Bytes are kept by URL, ETag, size and the object's end, with checksums, and nothing of
     * an object that has neither a strong ETag nor a seal, nor of a directory. What cannot be
     * written or read there is fetched. NULL: nothing is kept. The folder is made when its
     * parent is there; only this user can read the files.                              */
    const char *cache_folder;
    int64_t cache_bytes;    /* so many in that folder, at most: those used last are kept;
                               0: 1 GiB                                                */
    const char *ca_file;    /* certificates, in PEM, of those who vouch for https servers,
                               in place of the system's. NULL: AWS_CA_BUNDLE, of s3://
                               only, CURL_CA_BUNDLE, SSL_CERT_FILE, the system's        */
} caterva_remote_options;
#define CATERVA_REMOTE_INIT CATERVA_INIT_(caterva_remote_options)

/* What a handle has fetched so far. */
typedef struct caterva_transfers {
    size_t struct_size;
    int64_t requests;    /* attempts at requests                                       */
    int64_t bytes;       /* of bodies                                                  */
    int64_t round_trips; /* times that somebody waited for requests, sent together     */
    int64_t joined;      /* ranges that shared a request with another                  */
    int64_t retried;     /* attempts after the first one of a request                  */
    int64_t cached;      /* bytes that came from the cache folder instead              */
} caterva_transfers;
#define CATERVA_TRANSFERS_INIT CATERVA_INIT_(caterva_transfers)

typedef struct caterva_open_options {
    size_t struct_size;
    caterva_mode mode;
    uint64_t offset;  /* the frame begins there in the file (reading only)  */
    int threads;      /* at most so many per request; 0: all cores          */
    caterva_durability durability;
    int64_t dirty_budget; /* bytes of decoded blocks a writer may hold back; 0: 64 MiB */
    int64_t cache_bytes;  /* decoded blocks kept for later reads: 0: in the cache that
                             handles share; > 0: in one of the handle's own of so many
                             bytes; -1: none                              */
    int unchecked;        /* 1: what is read is not checked against checksums, to get
                             at what is left of a damaged array; a commit then takes
                             what it finds for good                       */
    int no_read_ahead;    /* 1: scans are not read ahead of, see caterva_prefetch      */
    int64_t keep_bytes;   /* reading: a file of at most so many bytes is kept in memory,
                             as it is stored, once what was read of it has cost as much
                             as reading all of it. 0: 16 MiB; -1: never. What others do
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
 * when something is there and `overwrite` is 0.
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

/* Opens `size` bytes in memory that are a whole contiguous frame. With `copy` 0 the library
 * borrows them: leave them unchanged until you close the handle, and open for reading. With
 * `copy` 1 you may also write; caterva_frame_copy gives you the new bytes.
 * Thread: any. */
CATERVA_API caterva_status caterva_frame_open(const void *frame, size_t size, int copy,
                                              const caterva_open_options *options,
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
CATERVA_API void caterva_abandon(void);

/* Turns a handle for reading to the last committed state; until then the handle goes on
 * seeing the state it opened. It keeps all options, and looks at the path that caterva_open
 * resolved, whatever the working directory is now. If another array has taken that place
 * the handle turns to it; if nothing is there any more this returns CATERVA_ENOTFOUND and
 * the handle goes on as it was. Reads of caterva_read_async that are outstanding are done
 * first, on the old state. Does nothing for handles for writing and for arrays in memory.
 * Thread: alone. */
CATERVA_API caterva_status caterva_refresh(caterva_array *array, caterva_error *err);

/* Options of caterva_compact, caterva_seal and caterva_unlink. NULL in their place means the defaults. */
typedef struct caterva_upkeep_options {
    size_t struct_size;
    caterva_durability durability; /* of caterva_compact and caterva_seal */
    /* Hears in decoded bytes (caterva_unlink: files; of jobs: parts), and stops; nothing has
     * changed then (but see caterva_unlink and caterva_job_discard). NULL: nobody. */
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

/* Deletes the array at `url`, a file or directory. It deletes nothing but arrays: for what
 * does not open as one it returns the status of caterva_open, and for a directory that
 * holds anything else CATERVA_EEXIST. Returns CATERVA_EBUSY while somebody writes the
 * array, and, for a directory, while somebody reads it; handles that read a file go on. If
 * `url` is a symbolic link, this deletes the array it points to and keeps the link.
 *
 * A directory goes from view at once, and then file after file. If on_progress stops it before
 * the first file is gone, nothing has changed. Later the rest lies under another name, which
 * the sentence of CATERVA_ESTOPPED says, and which caterva_unlink deletes like any array.
 * Thread: any. */
CATERVA_API caterva_status caterva_unlink(const char *url,
                                          const caterva_upkeep_options *options,
                                          caterva_error *err);

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
    int codec, codec_meta, level;
    int filters[CATERVA_MAX_FILTERS];
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

/* Says what reading a URL has cost so far, together with what was opened from the same handle.
 * Returns CATERVA_EINVAL for an array that is no URL's.
 * Thread: shared. */
CATERVA_API caterva_status caterva_transfers_get(caterva_array *array, caterva_transfers *out,
                                                 caterva_error *err);

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
    int64_t start, stop, step; /* step is not 0; a missing one is 1, written out */
    const int64_t *indices;    /* borrowed for the call */
    const uint8_t *mask;       /* likewise              */
    int64_t n;                 /* of indices or mask    */
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
CATERVA_API caterva_status caterva_histogram(caterva_array *array,
                                             const caterva_reduce_options *options,
                                             const double range[2], int64_t n_bins,
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

/* ---- Copy --------------------------------------------------------------- */

typedef struct caterva_copy_options {
    size_t struct_size;
    const int64_t *start; /* the box to copy, ndim entries; NULL: from the first item */
    const int64_t *stop;  /* NULL: to the last one                                    */
    /* What the new array is made of; NULL: as the source. In it, too, what is zero or
     * NULL is as the source: chunk_shape, block_shape, dtype (of the same item size),
     * codec (codec_set 0), fill, metalayers. ndim, shape and item_size are not looked
     * at; overwrite, threads, durability and dirty_budget mean what they always mean. */
    const caterva_create_options *create;
    int layout_set; /* 1: layout and metalayer as `create` says; 0: as the source     */
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
     * layout of directories. 0: as the source, where the copy is one file; -1: without. */
    int for_remote;
} caterva_copy_options;
#define CATERVA_COPY_INIT CATERVA_INIT_(caterva_copy_options)

/* Makes a new array at `url` (as caterva_create does) from a box of `source`, pending
 * changes included, and commits it: with another partition, codec or layout, and without
 * dead space. Attributes, metalayers and the fill travel along. `options` NULL: all as the
 * source. "mem:" is contiguous, also a copy of a directory; asking for another layout there is
 * CATERVA_EINVAL.
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

/* ---- Selections in and out ---------------------------------------------- */

/* Computes the shape of a selection's result. `shape` has room for CATERVA_MAX_DIMS
 * entries; the first *ndim are set. CATERVA_ERANGE names the axis and the number that does
 * not fit the array. Goes over lists and masks once.
 * Thread: shared. */
CATERVA_API caterva_status caterva_selection_shape(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   int64_t *shape, int *ndim,
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

/* Writes the selected items from `src`. If an item is selected twice, the last value (in C
 * order of the result) stays, as in NumPy. Otherwise as caterva_write, with the statuses
 * and the memory of caterva_read_selection. A source of another dtype is converted whole
 * first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_write_selection(caterva_array *array,
                                                   const caterva_selection *selection,
                                                   const caterva_buffer *src,
                                                   caterva_error *err);

/* Options of caterva_buffer_convert, and of caterva_value_pack_array, _to_json, _from_json. */
typedef struct caterva_convert_options {
    size_t struct_size;
    /* Hears in items, or in bytes of values, and stops; the destination is undefined then.
     * NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_convert_options;
#define CATERVA_CONVERT_INIT CATERVA_INIT_(caterva_convert_options)

/* Converts `n` items, one behind the other, from src->data to dst->data, without an array:
 * from src->dtype to dst->dtype as dst->casting allows. The sizes must hold n items; shape,
 * strides and field are NULL; the memory must not overlap. Items of equal dtypes are
 * copied, whatever they are; others must be numbers. `options` NULL: nobody hears of it.
 *
 * Returns CATERVA_ECAST for a cast that is not allowed, CATERVA_EDTYPE for items that are
 * no numbers, CATERVA_ESHORT for too little memory, CATERVA_EINVAL for a dtype that is
 * none.
 * Thread: any. */
CATERVA_API caterva_status caterva_buffer_convert(const caterva_buffer *src, int64_t n,
                                                  const caterva_buffer *dst,
                                                  const caterva_convert_options *options,
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

/* Sets the size of the shared cache in bytes. 0 empties it and keeps it empty. Below 0:
 * CATERVA_EINVAL.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_set_limit(int64_t bytes, caterva_error *err);

/* Counts what is in the cache that `array` uses (all zero without one), or, with NULL, in
 * the shared one.
 * Thread: any. */
CATERVA_API caterva_status caterva_cache_describe(const caterva_array *array,
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

/* Return the number of axes, their lengths (ndim entries) and the dtype. Borrowed from the
 * view. Of NULL: 0 and NULL.
 * Thread: any. */
CATERVA_API int caterva_view_ndim(const caterva_view *view);
CATERVA_API const int64_t *caterva_view_shape(const caterva_view *view);
CATERVA_API const char *caterva_view_dtype(const caterva_view *view); /* borrowed */

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
                                                  const caterva_reduce_options *options,
                                                  const double range[2], int64_t n_bins,
                                                  int64_t *counts, caterva_error *err);
CATERVA_API caterva_status caterva_view_reduce(const caterva_view *view,
                                               caterva_reduction what,
                                               const caterva_reduce_options *options,
                                               void *dst, size_t dst_size,
                                               caterva_error *err);

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

/* ---- Attributes and metalayers ------------------------------------------ */

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
CATERVA_API caterva_status caterva_attr_remove(caterva_array *array, const char *name,
                                               caterva_error *err);

/* Replaces the content of one of your metalayers; its length stays. Pending until the
 * commit.
 * Thread: turns. */
CATERVA_API caterva_status caterva_metalayer_update(caterva_array *array, const char *name,
                                               const void *content, size_t size,
                                               caterva_error *err);

/* ---- Values of attributes, and dimensions -------------------------------- */

/* An attribute holds one MessagePack value, as python-blosc2 writes it. These functions
 * read and write such values; they need no array. They never execute anything in a value: a
 * pickle is bytes like any others.
 *
 * Where they take options, on_progress hears of bytes of what is read: of the items, of the
 * packed value, of the JSON. `options` may be NULL. */
typedef enum caterva_value_kind {
    CATERVA_VALUE_NIL = 0,
    CATERVA_VALUE_BOOL,      /* integer: 0 or 1                                        */
    CATERVA_VALUE_INT,       /* integer                                                */
    CATERVA_VALUE_UINT,      /* integer: the bits of a uint64 above INT64_MAX          */
    CATERVA_VALUE_REAL,      /* real                                                   */
    CATERVA_VALUE_COMPLEX,   /* real and imaginary                                     */
    CATERVA_VALUE_TEXT,      /* bytes and size: UTF-8, if who wrote it was right       */
    CATERVA_VALUE_BYTES,     /* bytes and size                                         */
    CATERVA_VALUE_LIST,      /* count: so many values come next                        */
    CATERVA_VALUE_TUPLE,     /* the same                                               */
    CATERVA_VALUE_SET,       /* the same                                               */
    CATERVA_VALUE_MAP,       /* count: so many pairs of key and value come next        */
    CATERVA_VALUE_ARRAY,     /* dtype, ndim and shape; bytes and size: items, C order  */
    CATERVA_VALUE_FRAME,     /* bytes and size: a Blosc2 frame                         */
    CATERVA_VALUE_REFERENCE, /* bytes and size: MessagePack that says where something is */
    CATERVA_VALUE_EXTENSION  /* extension, bytes and size: any other type              */
} caterva_value_kind;

typedef struct caterva_value {
    size_t struct_size;
    caterva_value_kind kind;
    int64_t integer;
    double real, imaginary;
    int64_t count;
    const void *bytes; /* borrowed from the value that is read */
    size_t size;
    int extension;     /* MessagePack's number of the type     */
    char dtype[32];    /* a scalar's, such as "<i2"            */
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
} caterva_value;
#define CATERVA_VALUE_INIT CATERVA_INIT_(caterva_value)

/* Reads what stands at byte *at of a packed value, and moves *at behind it; begin with 0.
 * Of a list, tuple, set or map it reads the head: the next calls read what stands inside,
 * and after the last of it *at is `size`. Takes no memory. Returns CATERVA_ECORRUPT when
 * the bytes are no MessagePack.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_next(const void *packed, size_t size, size_t *at,
                                              caterva_value *out, caterva_error *err);

/* Packs an array of NumPy: `size` bytes of items in C order, of the scalar type `dtype`
 * ("<i2", "int16", "<M8[ns]"). With ndim 0 it packs a single item that keeps its type: the
 * _FillValue of int16 items. Returns CATERVA_EDTYPE when `dtype` is no scalar type,
 * CATERVA_ESHORT when there are fewer bytes than the shape has items. Release *packed with
 * caterva_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_pack_array(const char *dtype, int ndim,
                                                    const int64_t *shape, const void *items,
                                                    size_t size,
                                                    const caterva_convert_options *options,
                                                    void **packed, size_t *packed_size,
                                                    caterva_error *err);

/* Turns a packed value into JSON, NUL-terminated: *json_size bytes and the NUL. What JSON
 * lacks becomes an object of one word, which caterva_value_from_json reads back:
 *
 *     {"$binary": base64}               bytes, and all that is no value
 *     {"$tuple": [...]}, {"$set": [...]}, {"$complex": [real, imaginary]}
 *     {"$array": {"dtype": "<i2", "shape": [2], "data": [1, 2]}}
 *     {"$map": [[key, value], ...]}     a map with other keys than text
 *     {"$ext": number, "data": base64}  any other extension type
 *
 * NaN and the infinities become the texts "NaN", "Infinity" and "-Infinity", and stay texts
 * outside "$array" and "$complex". Release *json with caterva_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_to_json(const void *packed, size_t size,
                                                 const caterva_convert_options *options,
                                                 char **json, size_t *json_size,
                                                 caterva_error *err);

/* Packs one JSON text. With `dtype`, a scalar type but no complex one, the JSON is a
 * number, true, false or text, or lists of them of one shape, and the value becomes an
 * array of NumPy; NULL packs what the JSON says. CATERVA_EINVAL says what was expected, and
 * at which byte. Release *packed with caterva_free.
 * Thread: any. */
CATERVA_API caterva_status caterva_value_from_json(const char *json, size_t json_size,
                                                   const char *dtype,
                                                   const caterva_convert_options *options,
                                                   void **packed, size_t *packed_size,
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

/* ---- Stores of the program's own ------------------------------------------ */

/* One of several ranges that caterva_store.read_many reads at once. */
typedef struct caterva_store_range {
    uint64_t pos;
    size_t size; /* 1 at least; all of them are to be read */
    void *dst;
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
 * caterva_seal, caterva_repair and caterva_unlink do not reach the array; caterva_copy
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
 *   CATERVA_ECORRUPT   bytes that are no token; a part that is not, byte for byte, what its
 *                      token says
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
CATERVA_API caterva_status caterva_job_discard(const char *url, const void *job,
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
 * removed: caterva_job_discard tries again. Looks at every part; on_progress of `options`
 * hears of them (NULL: nobody). Release *out with caterva_job_list_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_jobs_list(const char *url,
                                             const caterva_upkeep_options *options,
                                             const caterva_job_list **out,
                                             caterva_error *err);
CATERVA_API void caterva_job_list_release(const caterva_job_list *list); /* NULL is fine */

/* ---- Publishing ---------------------------------------------------------- */

typedef struct caterva_publish_options {
    size_t struct_size;
    int replace;          /* 1: what stands at the URL may be replaced                  */
    const char *if_match; /* its ETag, with quotes: only this version is replaced; NULL:
                             the one that is there when the call begins                 */
    int64_t part_bytes;   /* s3:// only: what is larger is sent in parts of so many bytes (or
                             more: there are at most 10,000), 5 MiB to 5 GiB; 0: 8 MiB  */
    const char *resume;   /* s3:// only: path of a file that remembers an upload in parts from
                             its begin to its end. Where it is, the upload goes on with
                             the parts that are not there yet. NULL: a call that fails
                             aborts its upload                                          */
    int abandon;          /* 1: aborts the upload that `resume` remembers, and removes the
                             file; publishes nothing, and does not look at `path`       */
    const char *read_url; /* http:// or https://, where the object is read, when `url` is
                             presigned for writing only; NULL: `url`                    */
    const caterva_remote_options *remote; /* NULL: all as by default                    */
    /* Hears in bytes, and stops within 100 ms. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_publish_options;
#define CATERVA_PUBLISH_INIT CATERVA_INIT_(caterva_publish_options)

typedef struct caterva_publish_result {
    size_t struct_size;
    int64_t bytes;      /* of the object                                                */
    int64_t parts;      /* that it was sent in; 0: in one request                       */
    int64_t parts_kept; /* of these: were there, from the upload that was resumed       */
    int64_t requests;   /* attempts at requests                                         */
    int64_t retried;    /* attempts after the first one of a request                    */
    int verified;       /* 1: its end, with the seal, was read back                     */
    int was_there;      /* 1: the same bytes were at the URL already: nothing was sent  */
} caterva_publish_result;
#define CATERVA_PUBLISH_RESULT_INIT CATERVA_INIT_(caterva_publish_result)

/* Puts the array or archive at `path` behind the URL: "s3://BUCKET/KEY", or "http://" and
 * "https://" where the server takes PUT (WebDAV, presigned URLs). It is a finished file: a
 * sealed array in one file (also a member of a tree), or a `.b2z`. Others are refused, by a
 * sentence that says what to do first: caterva_seal, a copy in one file, caterva_tree_pack.
 *
 * Before anything is sent all of it is checked, as caterva_verify does, of an archive by the
 * checksums of its members: what is damaged here is not published. A file whose bytes change
 * from then on is noticed by its time before parts are put together, and after one request.
 *
 * Publishing the same bytes again succeeds without sending them, see `was_there`: without
 * `replace` an object at the URL counts as the same when it has as many bytes and the same last
 * ones, where the root of the seal is, or the archive's directory with the checksum of each
 * member. An archive whose directory is longer than 16 MiB is not compared. Whatever differs, or
 * cannot be compared, is CATERVA_EEXIST, and the sentence says in which way.
 *
 * The object appears whole. Without `replace` only where there is nothing; with it, only in
 * place of the version that was there, if the server knows conditional requests; a server
 * that ignores them is asked before, once. A request whose answer was lost is tried again,
 * and what it may have done is recognised: objects of S3 get an id of the call in their
 * metadata. At the end the last bytes of the object, with the seal, are read back.
 *
 *   CATERVA_EINVAL     not sealed, a directory, or no URL; a `resume` file of another upload
 *   CATERVA_ECORRUPT   the file is damaged: nothing was sent
 *   CATERVA_EEXIST     something else is there already
 *   CATERVA_EBUSY      somebody has the array open for writing, or changed it meanwhile
 *   CATERVA_ENOTFOUND  no such file, or bucket
 *   CATERVA_EIO        the server refuses or fails, the sentence says how
 *   CATERVA_ESTOPPED   as you said: nothing is at the URL, unless all was sent
 *
 * `options` and `result` may be NULL; *result is filled on failure, too. Takes little memory,
 * whatever the size.
 * Thread: any. */
CATERVA_API caterva_status caterva_publish(const char *path, const char *url,
                                           const caterva_publish_options *options,
                                           caterva_publish_result *result,
                                           caterva_error *err);

/* ---- Trees of arrays ------------------------------------------------------ */

/* A tree keeps several arrays in one place, in groups, exactly as python-blosc2's TreeStore
 * and DictStore do: a directory (`.b2d`) with a file for each array, or one zip archive
 * (`.b2z`) whose members are stored as they are and read in place. It can also be a file of
 * an EmbedStore (`.b2e`), to be read. An array of a tree has a key, "/group/name".
 *
 * Wherever this library takes the URL of an array that exists, "weather.b2z::/group/name"
 * and "weather.b2d::/group/name" name one in a tree: opening one so needs nothing of what
 * follows. A file whose own name has "::" in it is still found by that name.
 *
 * Work in a `.b2d` and publish it as a `.b2z`: an archive never changes in place, its arrays
 * are open for reading only. So are arrays that lie inside embed.b2e, where python-blosc2
 * keeps small ones, and the columns of its tables.
 *
 * The library checks what an archive says before it reads anything by it: members must lie
 * apart from each other, names must not lead out of the tree (CATERVA_ECORRUPT). It lists
 * members that are deflated or encrypted, and refuses them by name (CATERVA_EUNSUPPORTED).
 */
typedef struct caterva_tree caterva_tree;

typedef enum caterva_tree_kind {
    CATERVA_TREE_ARRAY = 0, /* caterva_tree_open_array opens it                       */
    CATERVA_TREE_GROUP,     /* has members, or attributes                             */
    CATERVA_TREE_OTHER      /* kind_name says what: it is listed, and cannot be opened */
} caterva_tree_kind;

/* The library makes these. */
typedef struct caterva_tree_entry {
    size_t struct_size;
    const char *key;       /* "/group/name"; groups stand before what is in them         */
    caterva_tree_kind kind;
    const char *kind_name; /* "array", "schunk" (a frame of plain items: a 1-d array),
                              "group", or python-blosc2's word for another object:
                              "ctable", "lazyexpr", "batcharray", "remote", ...; "file" for
                              what is no frame, "deflated" and "encrypted" for members that
                              cannot be read in place, "damaged" for what should be a frame
                              and was read, but is not one                               */
    int read_only;         /* 1: it can never be opened for writing where it is          */
    int embedded;          /* 1: it lies inside embed.b2e                                */
    int64_t stored_bytes;  /* of the file, member or frame; 0 for groups                 */
    const char *path;      /* of the file or member in the tree; NULL: it has none       */
} caterva_tree_entry;

typedef struct caterva_tree_list {
    size_t struct_size;
    size_t n;
    const caterva_tree_entry *const *entries; /* n of them, sorted by key */
} caterva_tree_list;

/* Options of caterva_tree_open. NULL in their place means the defaults. */
typedef struct caterva_tree_options {
    size_t struct_size;
    caterva_mode mode;             /* CATERVA_MODE_WRITE: directories only               */
    caterva_durability durability; /* of names that are made, removed and moved, and of
                                      caterva_tree_commit; that of an array's own commits is
                                      in its options                                     */
    const caterva_remote_options *remote; /* of a URL, copied: for the tree and all arrays that
                                       are opened from it, which must be closed before what
                                       its `context` leads to goes. NULL: all as by default */
    /* Hears of the opening and of long calls through the handle, in files mostly, and stops
     * them; see above. Arrays that are opened from the tree have their own. NULL: nobody. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_options;
#define CATERVA_TREE_INIT CATERVA_INIT_(caterva_tree_options)

/* Opens the tree at `path`, a directory or file. Of an archive this reads the directory, as
 * long as it is, and embed.b2e, but nothing of the arrays. Returns CATERVA_ENOTFOUND when
 * nothing is there, CATERVA_EUNSUPPORTED when it is no tree, CATERVA_ECORRUPT when an
 * archive was cut or says what cannot be, or embed.b2e is damaged; with
 * CATERVA_MODE_WRITE also CATERVA_EREADONLY for what is no directory, and CATERVA_EBUSY
 * while another handle has the tree open for writing. Release *out with caterva_tree_close.
 * A tree that is open for writing is the process's that opened it: in a child of fork all
 * that changes, commits, rolls back or packs it returns CATERVA_EBUSY. Opening for writing
 * removes what a caterva_tree_remove has left that was stopped or killed; where that is stopped
 * (CATERVA_ESTOPPED), the next one goes on.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open(const char *path,
                                             const caterva_tree_options *options,
                                             caterva_tree **out, caterva_error *err);

/* Commits attributes of groups that are pending, and releases the handle, also when that
 * fails; arrays and lists that came from it stay valid, and what is pending in an array is
 * the array's. After a caterva_tree_commit that failed and was neither repeated nor rolled
 * back it drops the attributes, and returns the status of that commit. NULL is fine. In a child of fork it
 * commits nothing (CATERVA_EBUSY where something was pending), and leaves the tree's lock to
 * the parent.
 * Thread: alone. */
CATERVA_API caterva_status caterva_tree_close(caterva_tree *tree, caterva_error *err);

/* Identifies what an archive or a file with all leaves holds, as state_id of caterva_info does
 * for an array: an archive by names, places, sizes and checksums of its members, a file by its
 * inode, time and size. A directory has no state of its own, but its arrays have: all zeros.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_state_id(caterva_tree *tree,
                                                 uint8_t out[CATERVA_STATE_ID],
                                                 caterva_error *err);

/* Lists what is in `group` and below it ("/group"; NULL or "/": everything). *out never
 * changes; of a directory each call looks anew. Reads the first bytes of every file or
 * member, which tell its kind.
 *
 * "damaged" is only what was read and is wrong: truncated, or with bytes that are not a
 * frame's. Behind a URL such bytes are fetched a second time, past all caches, first. A file
 * or member that cannot be read is an error of the call, and there is no list: CATERVA_EIO
 * when the system or the server refuses or fails (no permission, no descriptor, a bad sector,
 * a timeout, a connection that breaks, status 401, 403, 404, 5xx, another version on the
 * server), CATERVA_ESTOPPED, CATERVA_ENOMEM. Files that a writer of a directory deletes
 * meanwhile are left out. Returns CATERVA_ENOTFOUND when there is no such group.
 * Release *out with caterva_tree_list_release.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_get_list(caterva_tree *tree, const char *group,
                                                 const caterva_tree_list **out,
                                                 caterva_error *err);
CATERVA_API void caterva_tree_list_release(const caterva_tree_list *list); /* NULL is fine */

/* Opens the array of that key; `options` as in caterva_open, but that a tree behind a URL has
 * its own `remote`. The array outlives the tree's handle. Of an archive this reads the file that the tree was opened from, also when
 * another one has its name by now. Returns CATERVA_ENOTFOUND when there is no such key,
 * CATERVA_EUNSUPPORTED when it is no array, CATERVA_EREADONLY for CATERVA_MODE_WRITE where
 * it can only be read. Release *out with caterva_close or caterva_discard.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_open_array(caterva_tree *tree, const char *key,
                                                   const caterva_open_options *options,
                                                   caterva_array **out, caterva_error *err);

/* Makes an empty tree at `path`, a directory, and opens it for writing; `mode` of the
 * options does not count. It appears whole, under its name. CATERVA_EEXIST when anything is
 * there. Release *out with caterva_tree_close.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_create(const char *path,
                                               const caterva_tree_options *options,
                                               caterva_tree **out, caterva_error *err);

/* Makes a new array of that key, as caterva_create makes a file: it is there from its first
 * commit on. The groups of the key are made. CATERVA_EEXIST: the key is a group's, or
 * something's already unless `options` say overwrite; or a part of it is an array's. Arrays
 * and attributes that are pending through this handle are in the way, too. CATERVA_EINVAL: a
 * name in it begins with a dot, which hides it, or is one of python-blosc2's own.
 * caterva_create with "weather.b2d::/group/name" does the same, and makes the tree where
 * there is nothing of that name. Release *out with caterva_close or caterva_discard.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_array(caterva_tree *tree, const char *key,
                                                     const caterva_create_options *options,
                                                     caterva_array **out, caterva_error *err);

/* Makes an empty group, and those it lies in. CATERVA_EEXIST: the key is taken.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_create_group(caterva_tree *tree, const char *key,
                                                     caterva_error *err);

/* Removes the array or other leaf of that key, or a group with all that is in it, which
 * goes from view at once. CATERVA_EEXIST: files of others are in the group, and nothing is
 * removed. CATERVA_EREADONLY: it lies inside embed.b2e, or is one of python-blosc2's objects.
 * CATERVA_EBUSY, when nothing else is in the way: an array of it is open for writing, or has
 * an open job, whether anybody works on it or not: merge it, or end it by
 * caterva_job_discard.
 *
 * Stopped by the handle's on_progress (CATERVA_ESTOPPED), it leaves one of two states:
 *
 *   nothing is removed, as long as files are looked at and asked for writers and jobs
 *   the group is gone, with its attributes that were pending, once its files go: the sentence
 *   says so. No list and no archive has any part of it, and its key is free. What is left of
 *   its files lies in a hidden directory of the tree, ".group.deleted-" and six characters,
 *   which the next caterva_tree_remove, of any key, or caterva_tree_open for writing removes
 *
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_remove(caterva_tree *tree, const char *key,
                                               caterva_error *err);

/* Gives the array, leaf or group another key, in one step; the groups of the new one are
 * made. The statuses of caterva_tree_remove, CATERVA_EEXIST when `to` is taken, and
 * CATERVA_EBUSY for an array that has an open job, whether anybody works on it or not, and for
 * a group that holds one: merge or end it first.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_move(caterva_tree *tree, const char *from,
                                             const char *to, caterva_error *err);

/* ---- Commits of trees ----------------------------------------------------- */

/* Commits, as one, all that is pending in the tree: in the arrays that are open for writing
 * through this handle (caterva_tree_open_array, caterva_tree_create_array; new ones among
 * them), and attributes of groups. Whatever happens to the process, the file system or the
 * power, all of it is there afterwards or nothing, for readers of this library.
 *
 * Each array first writes everything but its header. Then a file `.caterva-commit` appears
 * in the tree, which holds the new headers: that is the commit. The headers are written,
 * new files get their names, and the file goes. Where a writer was killed before that, it
 * still stands: who opens the tree for reading, or an array as "weather.b2d::/group/name",
 * reads what it says, and who opens them for writing finishes the commit first. Programs
 * that do not know it, python-blosc2 among them, find each array whole, but some as before.
 *
 * Who opens several arrays while somebody commits may get some as before and others as
 * after it; once an array is seen as after, all that are opened later are.
 *
 * Syncs as the strictest of the tree's durability and that of the arrays says;
 * CATERVA_DURABILITY_ORDERED counts as CATERVA_DURABILITY_FULL.
 *
 * On failure nothing was committed, and what is pending stays so: call it again, or
 * caterva_tree_rollback. CATERVA_ESTOPPED is such a failure; once the file has appeared, a stop
 * comes too late. CATERVA_EBUSY is such a failure, when somebody writes to a file that
 * a new array would replace. There are two exceptions, which the sentence tells of: an array
 * whose sync failed must be opened again; and after a failure that comes behind the commit
 * itself (CATERVA_EIO) the commit stands, and is finished when you close all handles and open
 * the tree for writing.
 * CATERVA_EREADONLY when the tree is open for reading. CATERVA_EBUSY in a function that a
 * verify of one of the arrays calls.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_commit(caterva_tree *tree, caterva_error *err);

/* Drops all that caterva_tree_commit would commit, as caterva_rollback does in one array. A
 * new array is empty then, and still to be committed or discarded.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_rollback(caterva_tree *tree, caterva_error *err);

/* ---- Attributes of groups ------------------------------------------------- */

/* A group's attributes are those of a file `__vlmeta__.b2f` in it, as python-blosc2 has them;
 * "/" has some, too. Values and names are as those of arrays (caterva_attr_set). They can be
 * read of every tree and changed in a directory that is open for writing. What is changed is
 * pending until caterva_tree_commit or caterva_tree_close; through this handle it is seen at
 * once. */

/* Lists the names: *names has *n of them, in the order in which they are stored. One block of
 * memory: release *names with caterva_free. Returns CATERVA_ENOTFOUND when there is no such
 * group; one without attributes has none.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_list(caterva_tree *tree, const char *group,
                                                  const char ***names, size_t *n,
                                                  caterva_error *err);

/* As caterva_attr_get; CATERVA_ENOTFOUND also when there is no such group.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_get(caterva_tree *tree, const char *group,
                                                 const char *name, void **value, size_t *size,
                                                 caterva_error *err);

/* As caterva_attr_set. The group is made with its first attribute, at the commit, where
 * there is none. CATERVA_EREADONLY when the tree is open for reading, and for groups that are
 * python-blosc2's objects; CATERVA_EEXIST when the key is an array's.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_set(caterva_tree *tree, const char *group,
                                                 const char *name, const void *value,
                                                 size_t size, caterva_error *err);

/* As caterva_attr_remove; the group stays.
 * Thread: turns. */
CATERVA_API caterva_status caterva_tree_attr_remove(caterva_tree *tree, const char *group,
                                                    const char *name, caterva_error *err);

/* ---- Verify of trees ------------------------------------------------------ */

/* The library makes these: what was found in one member of a tree. */
typedef struct caterva_tree_member {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_entry; "/" is embed.b2e and what stands for
                              the tree itself; "/g/__vlmeta__": attributes of "/g"         */
    const char *kind_name; /* as there; "attributes", "tree"                             */
    int64_t damages;       /* places that on_damage was called for                       */
    int sealed;            /* 1: checksums of this library vouch for what it holds        */
    caterva_verify_result result; /* of arrays                                           */
    int ndim;              /* of an array that opens: of the damages' `index`             */
    int skipped;           /* 1: its bytes were not looked at: it is deflated or encrypted, or
                              a reference to another place                                */
} caterva_tree_member;

typedef struct caterva_tree_verify_options {
    size_t struct_size;
    int quick;   /* 1: structure and chunk headers only: no decoding, and the checksums of
                    an archive's members are not computed                                 */
    int threads; /* at most so many for each array; 0: all cores                          */
    /* Called for each damaged place, before on_member of its member. */
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called for each member when it is done; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_member *member);
    /* Called now and then with stored bytes done; return non-zero to stop. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_verify_options;
#define CATERVA_TREE_VERIFY_INIT CATERVA_INIT_(caterva_tree_verify_options)

typedef struct caterva_tree_verify_result {
    size_t struct_size;
    int64_t members;         /* checked                                                  */
    int64_t damaged_members;
    int64_t damages;
    int64_t unsealed_members; /* only what does not decode was noticed in them            */
    int64_t skipped_members;  /* whose bytes were not looked at; not among the damaged    */
} caterva_tree_verify_result;
#define CATERVA_TREE_VERIFY_RESULT_INIT CATERVA_INIT_(caterva_tree_verify_result)

/* Verifies all that is in `group` and below it (NULL or "/": everything, embed.b2e and a
 * commit that is not finished among it): arrays as caterva_verify does, of other frames that
 * their structure holds and their attributes decode, of an archive's members that the header
 * before each says what the archive's directory does, but for what differs in sound archives
 * of other programs (times, known versions), and that their checksums are right (of an
 * archive behind a URL: those that arrays have themselves). The bytes of members that are
 * deflated or encrypted are not looked at: `skipped` says so. An array that cannot be opened is damage with the chunk -1, whose code
 * is that of the open: CATERVA_EUNSUPPORTED when its header says what this library does not
 * know, as one of a newer version does, or a flipped bit. Frames that are no arrays, and whose
 * structure this library does not know, are no damage. Reports damage through the functions in
 * `options` and `result`: the status is CATERVA_OK when the check ran to its end. A member that
 * cannot be read is not damage, and ends the check with the error (CATERVA_EIO). References to
 * other places and what python-blosc2 makes of its own objects are not looked at.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_verify(caterva_tree *tree, const char *group,
                                               const caterva_tree_verify_options *options,
                                               caterva_tree_verify_result *result,
                                               caterva_error *err);

/* ---- Repair of trees ------------------------------------------------------ */

/* Says what became of a member of a tree. */
typedef enum caterva_outcome {
    CATERVA_OUTCOME_SOUND = 0, /* it needs no repair                                     */
    CATERVA_OUTCOME_WHOLE,     /* it was damaged, and nothing of it is lost              */
    CATERVA_OUTCOME_PARTLY,    /* some of it is lost: `reason`, or the array's result    */
    CATERVA_OUTCOME_LOST       /* nothing can be made of it: `reason`                    */
} caterva_outcome;

/* The library makes these: what became of one member. */
typedef struct caterva_tree_repaired {
    size_t struct_size;
    const char *key;       /* as in caterva_tree_member                                  */
    const char *kind_name; /* "array", "attributes", "tree", "frame", "file"             */
    caterva_outcome outcome; /* PARTLY, with a reason, of what says that it is a frame this
                              library does not know: it is kept, or copied, as it is      */
    const char *reason;    /* a sentence, or NULL                                        */
    const char *beside;    /* the file in the tree that holds what was saved of an array
                              that stays as it is: "g/x.b2nd.repaired"; NULL: none       */
    caterva_repair_result result; /* of arrays                                           */
} caterva_tree_repaired;

typedef struct caterva_tree_repair_options {
    size_t struct_size;
    const char *output; /* a new tree: an archive when its name ends in ".b2z", else a
                           directory. NULL: the tree is repaired in place, which takes a
                           directory                                                     */
    int overwrite;      /* 1: replace an archive that is the output, and what earlier
                           repairs have left beside arrays                               */
    int guess;          /* as in caterva_repair_options, of each array                   */
    int threads;
    caterva_durability durability;
    /* As in caterva_repair_options, of the array of that key.                           */
    int (*on_found)(void *context, const char *key, const caterva_info *info, void *fill);
    void (*on_damage)(void *context, const char *key, const caterva_damage *damage);
    /* Called for each member when it is done; return non-zero to stop: CATERVA_ESTOPPED. */
    int (*on_member)(void *context, const caterva_tree_repaired *member);
    /* Called now and then with stored bytes done; return non-zero to stop. */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_repair_options;
#define CATERVA_TREE_REPAIR_INIT CATERVA_INIT_(caterva_tree_repair_options)

typedef struct caterva_tree_repair_result {
    size_t struct_size;
    int complete;           /* 1: nothing is lost                                        */
    int settled;            /* 1: a commit that was not finished is now                  */
    int64_t members;        /* looked at                                                 */
    int64_t whole_members;  /* so many had each outcome; all others are sound            */
    int64_t partly_members;
    int64_t lost_members;
} caterva_tree_repair_result;
#define CATERVA_TREE_REPAIR_RESULT_INIT CATERVA_INIT_(caterva_tree_repair_result)

/* Repairs the tree at `path`, a directory or an archive that is damaged or cannot be opened.
 *
 * - It finishes a commit that stands. A journal that is damaged is put aside, as
 *   ".caterva-commit.damaged": arrays are then as they stand.
 * - In place, it repairs each array as caterva_repair does, and puts one that needs a new
 *   file into its place when nothing of it is lost. Otherwise the damaged array stays, and
 *   what can be read is put beside it: "x.b2nd.repaired".
 * - Into an `output`, it copies sound members as they are and puts what can be read of each
 *   other array into its place. Attributes of groups that are damaged are left out. The
 *   output appears whole; the tree itself stays as it is, but for the commit.
 * - Members of an archive whose directory was cut off or is damaged are found by the headers
 *   that stand before them. Unless all bytes up to the directory belong to some, "/" is
 *   CATERVA_OUTCOME_PARTLY: there may have been others.
 * - A member whose name in the directory is not the one in its header gets the one that makes
 *   more sense, and is CATERVA_OUTCOME_PARTLY: `reason` names both. No checksum tells which it had.
 * - embed.b2e is made anew where there is none. A damaged one is put aside, as
 *   "embed.b2e.damaged", and replaced by an empty one: what lay inside it is lost.
 *
 * Members that nothing can be made of are named by on_member, and stop nothing. A member that
 * cannot be read ends the repair with the error (CATERVA_EIO): it may be sound. Returns
 * CATERVA_EUNSUPPORTED when `path` is no tree, CATERVA_ECORRUPT when no member is found,
 * CATERVA_EINVAL for an archive without an output, CATERVA_EEXIST when something is at the
 * output or is left beside an array, CATERVA_EBUSY while somebody is writing to the tree.
 * Interrupted, it can be done again.
 * Thread: any. */
CATERVA_API caterva_status caterva_tree_repair(const char *path,
                                               const caterva_tree_repair_options *options,
                                               caterva_tree_repair_result *result,
                                               caterva_error *err);

typedef struct caterva_tree_pack_options {
    size_t struct_size;
    int overwrite; /* caterva_tree_pack: 1: replace the file that is there           */
    caterva_durability durability; /* CATERVA_DURABILITY_NONE: nothing is synced         */
    /* Hears in bytes; non-zero stops: CATERVA_ESTOPPED, and nothing has changed.      */
    int (*on_progress)(void *context, int64_t done, int64_t total);
    void *context;
} caterva_tree_pack_options;
#define CATERVA_TREE_PACK_INIT CATERVA_INIT_(caterva_tree_pack_options)

/* Writes the tree, a directory or an archive, as an archive (.b2z) at `path`: all files that
 * are not hidden, stored as they are, embed.b2e last. The archive appears whole, in the
 * place of an older one with `overwrite`; who reads that goes on. Takes a buffer of memory
 * and 100 bytes for each file.
 * CATERVA_EBUSY while the tree, or an array in it, is open for writing elsewhere, and while
 * the file at `path` is. CATERVA_ECORRUPT: a member's checksum in the source is wrong.
 * `options` NULL: the defaults.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_pack(caterva_tree *tree, const char *path,
                                             const caterva_tree_pack_options *options,
                                             caterva_error *err);

/* Writes the tree as a directory (.b2d) at `path`, which appears whole; CATERVA_EEXIST when
 * anything is there, whatever `overwrite` says. Otherwise as caterva_tree_pack.
 * Thread: shared. */
CATERVA_API caterva_status caterva_tree_unpack(caterva_tree *tree, const char *path,
                                               const caterva_tree_pack_options *options,
                                               caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_H */
