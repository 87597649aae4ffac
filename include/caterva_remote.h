/* Caterva: arrays behind URLs.
 *
 * Options for reading http://, https:// and s3://, what reading has cost, and publishing an
 * array or archive to a URL. Conventions and thread classes are those of caterva.h. */
#ifndef CATERVA_REMOTE_H
#define CATERVA_REMOTE_H

#include <caterva.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Where a URL of s3:// has the name of the bucket. */
typedef enum caterva_addressing {
    CATERVA_ADDRESSING_DEFAULT = 0, /* PATH if `endpoint` is known, else HOST */
    CATERVA_ADDRESSING_PATH,        /* ENDPOINT/BUCKET/KEY                    */
    CATERVA_ADDRESSING_HOST         /* BUCKET.ENDPOINT/KEY                    */
} caterva_addressing;

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
struct caterva_remote_options {
    size_t struct_size;
    int connections;        /* so many requests at once, 1 to 256; 0: 16               */
    int connect_timeout_ms; /* for a connection; 0: 10 seconds                         */
    int stall_timeout_ms;   /* for 256 bytes each second, in whole seconds; 0: 30      */
    int retries;            /* of a request that failed for a while, at most 20; 0: 5;
                               CATERVA_NONE: none                                      */
    int over_read_percent;  /* bytes that may be read over what is needed, where that
                               saves requests and time, at most 1000000; 0: 100;
                               CATERVA_NONE: none. With any other value, chunks of at most
                               1 MiB together are read whole                           */
    caterva_credentials credentials;
    const char *access_key; /* CATERVA_CREDENTIALS_GIVEN; NULL: none                   */
    const char *secret_key;
    const char *session_token; /* or NULL                                              */
    const char *profile;    /* in ~/.aws; NULL: AWS_PROFILE, "default"                 */
    const char *region;     /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's,
                               "us-east-1"                                             */
    const char *endpoint;   /* "https://HOST[:PORT]" of another service than Amazon's;
                               NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's */
    caterva_addressing addressing;
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
};
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

/* Says what reading a URL has cost so far, together with what was opened from the same handle.
 * Returns CATERVA_EINVAL for an array that is no URL's.
 * Thread: shared. */
CATERVA_API caterva_status caterva_transfers_get(caterva_array *array, caterva_transfers *out,
                                                 caterva_error *err);

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

#ifdef __cplusplus
}
#endif

#endif /* CATERVA_REMOTE_H */
