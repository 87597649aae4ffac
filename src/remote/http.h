/* What URLs, HTTP replies and S3 answers say, and which byte ranges share a request. Everything
 * here is a function of its arguments: no files, no clock, no connections. Private to the room;
 * implemented by url.c, reply.c, multipart.c and ranges.c. */
#ifndef CV_REMOTE_HTTP_H
#define CV_REMOTE_HTTP_H

#include "base/heap.h"
#include "store/path.h"

/* ---- URLs (url.c) ----------------------------------------------------------------------- */

/* Parts of the text, borrowed. */
typedef struct cv_url {
    cv_scheme scheme;
    const char *host; /* a name, an address, or an IPv6 address in brackets; s3: the bucket */
    size_t host_size;
    int port;         /* 0: the default of the scheme */
    const char *path; /* from its slash on, or empty; s3: the key, not encoded */
    size_t path_size;
    const char *query; /* behind the question mark; NULL: none */
    size_t query_size;
} cv_url;

/* CATERVA_EINVAL, without the query in the message, unless the text is a URL that is read: no
 * user, fragment, blanks or control characters; with a host or, for s3, a bucket and a key. */
cv_status cv_url_parse(const char *text, cv_url *out, cv_error *err);

/* Whether both have the same scheme, host and port. */
bool cv_url_same_origin(const cv_url *a, const cv_url *b);

/* Appends bytes; all but letters, digits, "-._~" and, with `keeps_slashes`, slashes become %XX.
 * Returns the end of what it wrote, without a NUL; NULL if that would be behind `end`. */
char *cv_url_encode(const char *bytes, size_t size, bool keeps_slashes, char *to,
                    const char *end);

/* Copies the URL without slashes at the end of its path (owned). *has_slash: it had some. */
cv_status cv_url_strip(const char *url, char **out, bool *has_slash, cv_error *err);

/* Checks header number `i` of the caller. CATERVA_EINVAL unless it is "Name: value" in one line
 * and the library does not set this header itself. The value may be secret and is not shown. */
cv_status cv_header_check(const char *header, int i, cv_error *err);

/* ---- Replies (reply.c), RFC 9110 -------------------------------------------------------- */

enum {
    CV_ETAG_SIZE = 160,
    CV_MODIFIED_SIZE = 48,
    CV_WRITE_ID_SIZE = 33,
    CV_BOUNDARY_SIZE = 71
};

/* The metadata field of S3 in which an object keeps the id of the write that made it. */
#define CV_WRITE_ID_FIELD "x-amz-meta-caterva-write-id"

/* The header fields that matter. */
typedef struct cv_reply {
    int status;
    bool has_length, has_range, is_encoded, is_multipart;
    bool is_malformed; /* a field that cannot be read, or stands twice with two values */
    uint64_t length;   /* of the body */
    uint64_t first, last, total; /* Content-Range; total UINT64_MAX: not stated. Of status 416
                                  * total alone */
    char etag[CV_ETAG_SIZE];     /* with its quotes and W/; "": none */
    char modified[CV_MODIFIED_SIZE];
    char write_id[CV_WRITE_ID_SIZE]; /* "": none that fits */
    char boundary[CV_BOUNDARY_SIZE]; /* of multipart/byteranges; "": none */
    uint32_t retry_after;            /* seconds; 0: not stated, or as a date: */
    int64_t retry_at,
        date;        /* seconds since 1970; date by the server's clock; 0: not stated */
    int most_ranges; /* that this server software accepts at once; 0: not known */
    bool is_relayed; /* may come from another server than the one that is named */
} cv_reply;

/* Parses status line and header fields as received. CATERVA_EIO: not an HTTP reply. */
cv_status cv_reply_parse(const char *bytes, size_t size, cv_reply *out, cv_error *err);

/* Seconds after which the server asks to be tried again (Retry-After); 0: it does not. `now`
 * (seconds since 1970) counts if it states a date without stating the time by its own clock. */
uint32_t cv_reply_wait(const cv_reply *reply, int64_t now);

/* Whether the same request may succeed later: 408, 429 and 5xx, except 501 (not implemented),
 * 505 (HTTP version) and 507 (no room). */
bool cv_reply_is_busy(int status);

/* A version of an object. */
typedef struct cv_version {
    uint64_t size; /* UINT64_MAX: not known yet */
    char etag[CV_ETAG_SIZE];
    char modified[CV_MODIFIED_SIZE];
    char write_id[CV_WRITE_ID_SIZE]; /* "": not stated */
} cv_version;

/* Whether an ETag may be used in If-Match. */
bool cv_etag_is_strong(const char *etag);

/* A request for bytes [first, end) or, with `is_suffix`, for the last `end` bytes. */
typedef struct cv_range_request {
    bool is_suffix;
    uint64_t first, end;
    const cv_version *version;
} cv_range_request;

typedef enum cv_verdict {
    CV_REPLY_PENDING, /* not judged yet */
    CV_REPLY_ACCEPT,  /* the body is what was requested, see cv_content_range */
    CV_REPLY_RETRY,   /* the server is overloaded or broken at the moment */
    CV_REPLY_REDIRECT,
    CV_REPLY_NO_RANGES,     /* the server ignores ranges, and the object is large */
    CV_REPLY_NO_MULTIRANGE, /* the server does not answer multi-range requests */
    CV_REPLY_FAILED         /* as the error says */
} cv_verdict;

/* The body holds bytes [first, first + size) of an object of `total`. */
typedef struct cv_content_range {
    uint64_t first, size, total;
} cv_content_range;

/* Judges the reply to a request for one range. *err is filled unless the verdict is
 * CV_REPLY_ACCEPT: the read fails with it if no other attempt succeeds. */
cv_verdict cv_reply_judge(const cv_reply *reply, const cv_range_request *request,
                          const char *name, cv_content_range *content, cv_error *err);

/* Judges the reply to a request for several ranges of a known version. An accepted body consists
 * of body parts, each to be judged by its own header. Any reply that a server without
 * multi-range requests may send is CV_REPLY_NO_MULTIRANGE: if there is another reason, the
 * replies to single-range requests will show it. */
cv_verdict cv_reply_judge_multirange(const cv_reply *reply, const cv_version *known,
                                     const char *name, cv_error *err);

/* The version that an accepted reply is of. */
void cv_reply_version(const cv_reply *reply, const cv_content_range *content,
                      cv_version *out);

/* ---- XML answers of S3 (reply.c). Enough for documents of elements and texts. ------------ */

/* The content of an element, or a document. */
typedef struct cv_xml {
    const char *at, *end;
} cv_xml;

/* Finds the next <name>...</name> with any attributes, and moves behind it. */
bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out);

/* Copies the text of the first such element, references resolved, with a NUL. False if there is
 * none, if it does not fit, or if it has bytes that are not printable ASCII. */
bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room);

enum { CV_XML_REFUSAL_SIZE = 50 };

/* The <Code> of an error document, behind ", "; "" if it has none of letters and digits. */
void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE]);

/* ---- multipart/byteranges bodies (multipart.c), RFC 9110 section 14.6 -------------------- */

/* Limit of a body part's header, and of all bytes outside of body parts. */
enum { CV_PART_HEADER_SIZE = 4096 };

typedef enum cv_part_event {
    CV_PART_MORE,   /* all input is used */
    CV_PART_BEGINS, /* a body part of bytes [pos, end) of an object of `total` */
    CV_PART_BYTES,  /* the input begins with *n bytes that belong at `pos` */
    CV_PART_ENDS,   /* exactly where its header said: its bytes can be trusted */
    CV_PART_BAD     /* not such a body; nothing more can be read from it */
} cv_part_event;

typedef enum cv_part_state {
    CV_PART_PREAMBLE, /* before the first boundary */
    CV_PART_IN_HEADER,
    CV_PART_IN_BODY,
    CV_PART_BEHIND, /* a body: the end of a line and a boundary must follow */
    CV_PART_EPILOGUE,
    CV_PART_BROKEN
} cv_part_state;

typedef struct cv_multipart {
    uint64_t pos, end,
        total; /* of the body part: its bytes from `pos` on are still to come */
    /* Private to multipart.c: */
    cv_part_state state;
    char boundary[CV_BOUNDARY_SIZE];
    bool has_gap;      /* the end of a line behind a body was read */
    bool has_returns;  /* lines of the part's header end with CR LF instead of LF */
    size_t line, size; /* where the current line begins in `text`; bytes of `text` */
    size_t n_outside;  /* bytes before the first boundary and behind the last one */
    char text[CV_PART_HEADER_SIZE];
} cv_multipart;

void cv_multipart_begin(cv_multipart *body, const char *boundary);

/* Reads the next event from at least one byte. *n: how many bytes it used. CV_PART_BYTES uses
 * none: the caller takes up to *n bytes with cv_multipart_take and passes the others again. */
cv_part_event cv_multipart_next(cv_multipart *body, const uint8_t *bytes, size_t size,
                                size_t *n);
void cv_multipart_take(cv_multipart *body, size_t n);

/* The body is over. True: this completes the last body part, as CV_PART_ENDS does. */
bool cv_multipart_end(cv_multipart *body);

/* ---- Ranges of a request (ranges.c) ----------------------------------------------------- */

/* A range, or a piece of one that is cut because it is long. */
typedef struct cv_segment {
    uint64_t pos, end;
    size_t range; /* the reader's range that it belongs to, */
    size_t at;    /* and where it begins in that */
    bool begins;  /* a request; set by cv_join */
} cv_segment;

typedef struct cv_join_rule {
    uint64_t gap;     /* reading over at most so many bytes is quicker than another request */
    int over_percent; /* of the needed bytes that may be read over in total */
    uint64_t most;    /* bytes of a request, and of each segment */
    uint64_t limit;   /* of `most` if that is raised for the connections; 0: CV_JOIN_MOST */
    int connections;  /* joined requests may be so long that each connection gets one;
                       * 0: `most` is not raised */
} cv_join_rule;

/* The default limit of a request: if it fails, at most so much has to be repeated. */
enum { CV_JOIN_MOST = 8 << 20 };

/* Sorts segments by position and marks those that begin a request; each of the others is read
 * by the request before it. Returns the number of requests. */
size_t cv_join(cv_segment *segments, size_t n, const cv_join_rule *rule);

/* A range of a multi-range request. Bytes up to `committed` were received for certain, those up
 * to `received` in a body part that is not complete yet. Lists of ranges are in file order. */
typedef struct cv_byte_range {
    uint64_t received, end, committed;
} cv_byte_range;

/* Of one request: Apache accepts 200 ranges, and header fields of 8 KiB. */
enum { CV_RANGES_MOST = 100 };

/* The bytes that are not received yet, and the number of ranges that they belong to. */
uint64_t cv_ranges_incomplete(const cv_byte_range *ranges, size_t n, size_t *n_incomplete);

/* The same in units of cost: bytes, plus the overhead of a body part for each range. */
uint64_t cv_ranges_cost(const cv_byte_range *ranges, size_t n);

/* How many of them, at least one, go into one request of about this cost. With the total cost
 * divided by m this gives at most m requests, unless other limits ask for more. */
size_t cv_ranges_share(const cv_byte_range *ranges, size_t n, uint64_t cost);

/* Appends "Range: bytes=..." for what is incomplete, with its NUL. */
cv_status cv_ranges_add_field(const cv_byte_range *ranges, size_t n, cv_buffer *fields,
                              cv_error *err);

/* Bytes [pos, end) were received. Finds the first range from number `from` on whose next missing
 * byte is among them, marks what it gets as received, and returns its number; n: there is none.
 * [*first, *last): the bytes that it gets. A range takes its bytes in order, each once. */
size_t cv_ranges_take(cv_byte_range *ranges, size_t n, size_t from, uint64_t pos,
                      uint64_t end, uint64_t *first, uint64_t *last);

#endif
