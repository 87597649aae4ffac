/* Caterva: arrays behind URLs.
 *
 * Options for reading http://, https:// and s3://, the cost of reading, and publishing an
 * array or archive to a URL. Conventions and thread classes are those of caterva.h. */
#ifndef CATERVA_REMOTE_H
#define CATERVA_REMOTE_H

#include <caterva.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- URLs ---------------------------------------------------------------- */

/* caterva_open reads "http://...", "https://..." and "s3://BUCKET/KEY" like files, if the
 * library was built with libcurl's header and libcurl 7.68 or newer is installed. Only
 * caterva_publish writes to a URL: creating one or opening it for writing is
 * CATERVA_EREADONLY, whatever its scheme. Opening a URL of another scheme is
 * CATERVA_EUNSUPPORTED.
 *
 * A handle stays with the object that it opened: each request names the object's ETag. If the
 * object has changed on the server or is not available any more (status 403, 404 or 410), reads
 * return CATERVA_EIO with a message that states this, until caterva_refresh. Certificates are
 * checked, https is never redirected to http, and messages contain neither the queries of URLs
 * nor credentials. */

/* The source of credentials for s3://. */
typedef enum caterva_credentials {
    CATERVA_CREDENTIALS_FIND = 0, /* those given here; else AWS_ACCESS_KEY_ID,
                                     AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the
                                     environment; else the profile in ~/.aws; else unsigned
                                     requests. One key without the other: CATERVA_EINVAL */
    CATERVA_CREDENTIALS_GIVEN,
    CATERVA_CREDENTIALS_ENVIRONMENT,
    CATERVA_CREDENTIALS_PROFILE,
    CATERVA_CREDENTIALS_NONE      /* public objects; unsigned requests                   */
} caterva_credentials;

/* The position of the bucket's name in the URL of a request to s3://. */
typedef enum caterva_addressing {
    CATERVA_ADDRESSING_DEFAULT = 0, /* PATH if `endpoint` is set, else HOST */
    CATERVA_ADDRESSING_PATH,        /* ENDPOINT/BUCKET/KEY                  */
    CATERVA_ADDRESSING_HOST         /* BUCKET.ENDPOINT/KEY                  */
} caterva_addressing;

/* A completed request, for on_request. */
typedef struct caterva_transfer {
    const char *method;
    const char *url;      /* without its query                                     */
    uint64_t first;       /* first byte; UINT64_MAX: the object's last `size` bytes */
    uint64_t size;        /* bytes requested or sent; for a multi-range request, of all
                             ranges together                                       */
    uint64_t received;    /* bytes of the response's body                          */
    int64_t nanoseconds;
    int status;           /* of HTTP; 0: no response                               */
    int attempt;          /* 1, 2, ...                                             */
    int ranges;           /* ranges of the read that this request joins            */
    const char *error;    /* one sentence, or NULL                                 */
} caterva_transfer;

/* How URLs are read. Start from CATERVA_REMOTE_INIT. Everything is copied. */
struct caterva_remote_options {
    size_t struct_size;
    int connections;        /* concurrent requests, 1 to 256; 0: 16                       */
    int connect_timeout_ms; /* to connect; 0: 10 seconds                                  */
    int stall_timeout_ms;   /* maximum time below 256 bytes per second, in whole seconds;
                               0: 30 seconds                                              */
    int retries;            /* after a temporary failure of a request, at most 20; 0: 5;
                               CATERVA_NONE: no retry                                     */
    int over_read_percent;  /* bytes that may be read beyond the needed ones, in percent of
                               these, to save requests and time; at most 1000000; 0: 100.
                               Unless this is CATERVA_NONE (no such bytes), chunks of at
                               most 1 MiB together are read whole                         */
    caterva_credentials credentials;
    const char *access_key; /* for CATERVA_CREDENTIALS_GIVEN, or NULL                     */
    const char *secret_key;
    const char *session_token; /* or NULL                                                 */
    const char *profile;    /* in ~/.aws; NULL: AWS_PROFILE, "default"                    */
    const char *region;     /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's,
                               "us-east-1"                                                */
    const char *endpoint;   /* "https://HOST[:PORT]" of a service other than Amazon's;
                               NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's */
    caterva_addressing addressing;
    /* "Name: value" in one line each, sent to the URL's own server only. CATERVA_EINVAL for
     * Accept-Encoding, Connection, Content-Length, Expect, Host, If-Match, If-Modified-Since,
     * If-None-Match, If-Range, If-Unmodified-Since, Range, TE, Transfer-Encoding, Upgrade,
     * User-Agent. */
    const char *const *headers;
    int n_headers;
    /* Supplies more headers, for tokens that expire: calls `add` for each. A thread of the
     * library calls this function before each attempt, never concurrently. It must not call the
     * library. A fork does not wait for it. If `headers` could not contain an added header, the
     * read fails and no request is sent. */
    void (*on_headers)(void *context, void (*add)(void *token, const char *header),
                       void *token);
    /* Called after each attempt, by the thread that calls on_headers. */
    void (*on_request)(void *context, const caterva_transfer *transfer);
    void *context;          /* for both; valid until the handle is closed                 */
    /* A folder that caches the bytes read, for other handles and processes: they open the
     * object with one request, as without a cache, and then fetch only missing bytes. The key
     * is URL, ETag, size and the object's end; bytes have checksums. Objects with neither a
     * strong ETag nor a seal, and directories, are not cached. If the folder cannot be read or
     * written, bytes come from the server. NULL: no cache. The folder is created if its parent
     * exists; its files are readable only for this user. */
    const char *cache_folder;
    int64_t cache_bytes;    /* maximum size of that folder; the least recently used files
                               are deleted; 0: 1 GiB                                      */
    const char *ca_file;    /* CA certificates for https, in PEM. NULL: AWS_CA_BUNDLE (only
                               s3://), CURL_CA_BUNDLE, SSL_CERT_FILE, the system's        */
};
#define CATERVA_REMOTE_INIT CATERVA_INIT_(caterva_remote_options)

/* What a handle has fetched so far. */
typedef struct caterva_transfers {
    size_t struct_size;
    int64_t requests;    /* attempts                                  */
    int64_t bytes;       /* of response bodies                        */
    int64_t round_trips; /* waits for a group of concurrent requests  */
    int64_t joined;      /* ranges that shared a request with another */
    int64_t retried;     /* attempts after the first of a request     */
    int64_t cached;      /* bytes that came from the cache folder     */
} caterva_transfers;
#define CATERVA_TRANSFERS_INIT CATERVA_INIT_(caterva_transfers)

/* Reports what reading a URL has cost so far, including everything opened from the same
 * handle. Returns CATERVA_EINVAL for an array that is not behind a URL.
 * Thread: shared. */
CATERVA_API caterva_status caterva_transfers_get(caterva_array *array, caterva_transfers *out,
                                                 caterva_error *err);

/* ---- Publishing ---------------------------------------------------------- */

typedef struct caterva_publish_options {
    size_t struct_size;
    int replace;          /* 1: an object at the URL may be replaced                  */
    const char *if_match; /* ETag, with quotes, of the only version that may be replaced;
                             NULL: the version at the URL when the call begins        */
    int64_t part_bytes;   /* s3:// only: a larger object is uploaded in parts of this size,
                             5 MiB to 5 GiB (raised if that were over 10,000 parts);
                             0: 8 MiB                                                 */
    const char *resume;   /* s3:// only: path of a file that records an upload in parts until
                             it is complete. If the file exists the upload is resumed: only
                             missing parts are sent. NULL: a failed call aborts its
                             upload                                                   */
    int abandon;          /* 1: abort the upload that `resume` records, and delete that file;
                             publishes nothing and ignores `path`                     */
    const char *read_url; /* http:// or https:// URL for reading the object, if `url` is
                             presigned for writing only; NULL: `url`                  */
    const caterva_remote_options *remote; /* NULL: the defaults                       */
    caterva_progress progress; /* counts stored bytes; stops within 100 ms            */
    int zarr; /* 1: publish a copy that is a Zarr array or group, made beside `path` and
                 deleted at the end                                                   */
} caterva_publish_options;
#define CATERVA_PUBLISH_INIT CATERVA_INIT_(caterva_publish_options)

typedef struct caterva_publish_result {
    size_t struct_size;
    int64_t bytes;      /* of the object                                           */
    int64_t parts;      /* upload parts; 0: sent in one request                    */
    int64_t parts_kept; /* upload parts already sent before the upload was resumed */
    int64_t requests;   /* attempts                                                */
    int64_t retried;    /* attempts after the first of a request                   */
    int verified;       /* 1: the object's end, with the seal, was read back       */
    int was_there;      /* 1: the URL already had the same bytes: nothing was sent */
} caterva_publish_result;
#define CATERVA_PUBLISH_RESULT_INIT CATERVA_INIT_(caterva_publish_result)

/* Uploads the array or archive at `path` to the URL: "s3://BUCKET/KEY", or "http://" and
 * "https://" if the server accepts PUT (WebDAV, presigned URLs). `path` is a finished file: a
 * sealed array in one file (also a member of a tree), or a `.b2z`. Other arrays are refused
 * with a message that names the step to do first: caterva_seal, a copy in one file,
 * caterva_tree_pack.
 *
 * `path` may also be a Zarr array or group (caterva_copy_options.zarr, caterva_tree_pack). Its
 * files become objects below the URL, "URL/zarr.json" and others: all are checked first, and the
 * metadata are sent last, those of the root at the end. Without them readers find nothing, so a
 * new one appears whole. With `replace` each object is replaced on its own: meanwhile readers may
 * find new chunks with old metadata. `if_match`, `resume` and `read_url` are CATERVA_EINVAL. A
 * failure leaves the objects that were sent; a repeated call sends the others. The result is the
 * sum of all objects.
 *
 * The whole file is checked before anything is sent: an array as by caterva_verify, an archive
 * by the checksums of its members. A damaged file is not published. If the file changes after
 * this check, its time shows this: before upload parts are joined, or after a single request.
 *
 * Without `replace`, publishing the same bytes again succeeds without sending them, see
 * `was_there`. An object at the URL counts as the same if it has the same size and the same
 * last bytes, which contain the root of the seal, or the archive's directory with each
 * member's checksum. Archives whose directory exceeds 16 MiB are not compared. An object that
 * differs or cannot be compared is CATERVA_EEXIST; the message gives the difference.
 *
 * The object appears whole. Without `replace` it is created only if nothing exists; with
 * `replace` it replaces only the version described by `if_match`. This holds if the server
 * supports conditional requests; with other servers the state is only checked beforehand. A
 * request whose response is lost is repeated, and its possible effect is recognised: S3 objects
 * get an id of the call in their metadata. Finally the last bytes of the object, with the seal,
 * are read back.
 *
 *   CATERVA_EINVAL     not sealed, a directory, or no URL; a `resume` file of another upload
 *   CATERVA_ECORRUPT   the file is damaged: nothing was sent
 *   CATERVA_EEXIST     another object exists at the URL
 *   CATERVA_EBUSY      the array is open for writing, or changed meanwhile
 *   CATERVA_ENOTFOUND  no such file or bucket
 *   CATERVA_EIO        the server refuses or fails; see the message
 *   CATERVA_ESTOPPED   stopped: nothing is at the URL, unless everything had been sent
 *
 * `options` and `result` may be NULL; *result is filled on failure, too. Takes little memory,
 * whatever the size.
 * Thread: any. */
CATERVA_API caterva_status caterva_publish(const char *path, const char *url,
                                           const caterva_publish_options *options,
                                           caterva_publish_result *result,
                                           caterva_error *err);

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_REMOTE_H */
