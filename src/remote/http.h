/* URLs, HTTP replies, answers of S3, and joining byte ranges into requests. Pure functions: no
 * files, clock or connections. Private to the room; see url.c, reply.c, multipart.c, ranges.c. */
#ifndef CV_REMOTE_HTTP_H
#define CV_REMOTE_HTTP_H

#include "base/heap.h"
#include "store/path.h"

/* ---- URLs (url.c) ----------------------------------------------------------------------- */

/* A parsed URL. The members point into the parsed text, borrowed. */
typedef struct cv_url {
    cv_scheme scheme;
    const char *host; /* a name, an address, or an IPv6 address in brackets; s3: the bucket */
    size_t host_size;
    int port;         /* 0: the default of the scheme */
    const char *path; /* with its first slash, or empty; s3: the key, not encoded */
    size_t path_size;
    const char *query; /* after the question mark; NULL: none */
    size_t query_size;
} cv_url;

/* Parses a URL. An http or https URL must have a host, and no user, fragment, blank or control
 * character; an s3 URL must have a bucket and a key. Other URLs are CATERVA_EINVAL. The message
 * omits the query, which may be secret. */
cv_status cv_url_parse(const char *text, cv_url *out, cv_error *err);

/* Whether both have the same scheme, host and port. */
bool cv_url_same_origin(const cv_url *a, const cv_url *b);

/* Converts an ASCII letter to lower case. */
char cv_lower(char c);

/* Writes `bytes` to `to`, percent-encoded except letters, digits, "-._~" and, with `keeps_slashes`,
 * slashes. Returns the end of the output, without a NUL, or NULL if it would exceed `end`. */
char *cv_url_encode(const char *bytes, size_t size, bool keeps_slashes, char *to,
                    const char *end);

/* Sets *out to a copy of the URL without the slashes at the end of its path (owned), and *has_slash
 * to whether the path had such slashes. */
cv_status cv_url_strip(const char *url, char **out, bool *has_slash, cv_error *err);

/* Checks the caller's header number `i`. CATERVA_EINVAL if the header is not "Name: value" in one
 * line, or if the library sets it itself. The message omits the value, which may be secret. */
cv_status cv_header_check(const char *header, int i, cv_error *err);

/* ---- Replies (reply.c), RFC 9110 -------------------------------------------------------- */

enum {
    CV_ETAG_SIZE = 160,
    CV_MODIFIED_SIZE = 48,
    CV_WRITE_ID_SIZE = 33,
    CV_BOUNDARY_SIZE = 71
};

/* The S3 metadata field that holds the id of the write that made an object. */
#define CV_WRITE_ID_FIELD "x-amz-meta-caterva-write-id"

/* The header fields that the library uses. */
typedef struct cv_reply {
    int status;
    bool has_length, has_range, is_encoded, is_multipart;
    bool is_malformed; /* a field is invalid, or occurs twice with different values */
    uint64_t length;   /* Content-Length, in bytes */
    uint64_t first, last, total; /* Content-Range; total UINT64_MAX: not stated. For status
                                  * 416 only total is set */
    char etag[CV_ETAG_SIZE];     /* with its quotes and W/; "": none */
    char modified[CV_MODIFIED_SIZE];
    char write_id[CV_WRITE_ID_SIZE]; /* "": missing or too long */
    char boundary[CV_BOUNDARY_SIZE]; /* of multipart/byteranges; "": none */
    uint32_t retry_after;   /* Retry-After in seconds; 0: not stated, or stated as a date */
    int64_t retry_at, date; /* dates in Retry-After and Date, seconds since 1970; 0: none */
    int most_ranges; /* ranges that this server software accepts in one request; 0: not known */
    bool is_relayed; /* a cache or another server may have made the reply */
} cv_reply;

/* Parses the status line and header fields as received. CATERVA_EIO: not an HTTP reply. */
cv_status cv_reply_parse(const char *bytes, size_t size, cv_reply *out, cv_error *err);

/* Returns the seconds that the server asks to wait before a retry (Retry-After); 0: not stated.
 * `now` (seconds since 1970) is used if Retry-After is a date and the reply has no Date. */
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

/* Whether the ETag may be used in If-Match. */
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
    CV_REPLY_RETRY,   /* the server is overloaded or temporarily broken */
    CV_REPLY_REDIRECT,
    CV_REPLY_NO_RANGES,     /* the server ignores ranges, and the object is large */
    CV_REPLY_NO_MULTIRANGE, /* the server does not answer multi-range requests */
    CV_REPLY_FAILED         /* the error says why */
} cv_verdict;

/* The bytes that a body contains: [first, first + size) of an object of `total` bytes. */
typedef struct cv_content_range {
    uint64_t first, size, total;
} cv_content_range;

/* Judges the reply to a single-range request. CV_REPLY_ACCEPT sets *content. Every other verdict
 * sets *err; the read fails with this error if no later attempt succeeds. */
cv_verdict cv_reply_judge(const cv_reply *reply, const cv_range_request *request,
                          const char *name, cv_content_range *content, cv_error *err);

/* Judges the reply to a multi-range request for a known version. The header of each body part of an
 * accepted reply must still be checked. Returns CV_REPLY_NO_MULTIRANGE for every reply that a
 * server without multi-range requests may send. If such a reply has another reason, the
 * single-range requests that follow will report it. */
cv_verdict cv_reply_judge_multirange(const cv_reply *reply, const cv_version *known,
                                     const char *name, cv_error *err);

/* Sets *out to the object version of an accepted reply. */
void cv_reply_version(const cv_reply *reply, const cv_content_range *content,
                      cv_version *out);

/* ---- XML answers of S3 (reply.c) -------------------------------------------------------- */

/* A document, or the content of an element. Only elements and text are supported. */
typedef struct cv_xml {
    const char *at, *end;
} cv_xml;

/* Sets *out to the content of the next element `name`, with or without attributes, and moves `rest`
 * behind this content. Returns false if `rest` has no such element. */
bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out);

/* Copies the text of the first element `name`, with references like &amp; resolved, and a NUL.
 * Returns false if the element is missing, or its text does not fit or is not printable ASCII. */
bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room);

enum { CV_XML_REFUSAL_SIZE = 50 };

/* Writes ", " and the text of <Code> in an error document of S3. Writes "" if <Code> is missing or
 * contains other characters than letters and digits. */
void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE]);

/* ---- multipart/byteranges bodies (multipart.c), RFC 9110 section 14.6 -------------------- */

/* Maximum bytes of a body part's header, and of all text outside the first and last part. */
enum { CV_PART_HEADER_SIZE = 4096 };

typedef enum cv_part_event {
    CV_PART_MORE,   /* all input is used */
    CV_PART_BEGINS, /* a body part with bytes [pos, end) of an object of `total` bytes */
    CV_PART_BYTES,  /* the input begins with *n bytes that belong at `pos` */
    CV_PART_ENDS,   /* the part ended where its header states: its bytes are valid */
    CV_PART_BAD     /* not a valid body; the rest cannot be parsed */
} cv_part_event;

typedef enum cv_part_state {
    CV_PART_PREAMBLE, /* before the first boundary */
    CV_PART_IN_HEADER,
    CV_PART_IN_BODY,
    CV_PART_BEHIND, /* after a part's bytes: a line end and a boundary must follow */
    CV_PART_EPILOGUE,
    CV_PART_BROKEN
} cv_part_state;

typedef struct cv_multipart {
    uint64_t pos, end, total; /* of the current part: its bytes [pos, end) are missing */
    /* Private to multipart.c: */
    cv_part_state state;
    char boundary[CV_BOUNDARY_SIZE];
    bool has_gap;      /* the line end after a part's bytes was read */
    bool has_returns;  /* lines of the part's header end with CR LF instead of LF */
    size_t line, size; /* start of the current line in `text`; bytes of `text` */
    size_t n_outside;  /* bytes before the first boundary and after the last one */
    char text[CV_PART_HEADER_SIZE];
} cv_multipart;

void cv_multipart_begin(cv_multipart *body, const char *boundary);

/* Parses `bytes` (`size` is at least 1) up to the next event. *n: the number of bytes parsed. With
 * CV_PART_BYTES, *n bytes of the part follow, and none of them is parsed: the caller uses some of
 * these bytes, passes their number to cv_multipart_take, and later passes the other input again. */
cv_part_event cv_multipart_next(cv_multipart *body, const uint8_t *bytes, size_t size,
                                size_t *n);
void cv_multipart_take(cv_multipart *body, size_t n);

/* Call this when the body has ended. Returns true if this completes the last body part: then its
 * bytes are valid, as with CV_PART_ENDS. */
bool cv_multipart_end(cv_multipart *body);

/* ---- Ranges of a request (ranges.c) ----------------------------------------------------- */

/* A range, or a piece of a long range. */
typedef struct cv_segment {
    uint64_t pos, end;
    size_t range; /* number of the reader's range that contains the segment */
    size_t at;    /* offset of the segment in that range */
    bool begins;  /* starts a request; set by cv_join */
} cv_segment;

typedef struct cv_join_rule {
    uint64_t gap; /* bytes; up to this size a gap is cheaper to read than another request */
    int over_percent; /* gap bytes that may be read, in percent of the needed bytes */
    uint64_t most;    /* maximum bytes of a request, and of each segment */
    uint64_t limit;   /* maximum to which `most` may be raised; 0: CV_JOIN_MOST */
    int connections;  /* `most` is raised until this number of requests suffices; 0: not
                      * raised */
} cv_join_rule;

/* Default maximum bytes of a request, and so of a retry. */
enum { CV_JOIN_MOST = 8 << 20 };

/* Sorts segments by position and sets `begins` for those that start a request; every other segment
 * belongs to the same request as the segment before it. Returns the number of requests. */
size_t cv_join(cv_segment *segments, size_t n, const cv_join_rule *rule);

/* A range of a multi-range request. Bytes before `committed` have been received and are valid.
 * Bytes [committed, received) belong to a body part that is still incomplete. Bytes [received, end)
 * are missing. Lists of ranges are in file order. */
typedef struct cv_byte_range {
    uint64_t received, end, committed;
} cv_byte_range;

/* Maximum ranges of one request: Apache accepts 200 ranges, and header fields of 8 KiB. */
enum { CV_RANGES_MOST = 100 };

/* Returns the number of missing bytes. *n_incomplete: the number of ranges with missing bytes. */
uint64_t cv_ranges_incomplete(const cv_byte_range *ranges, size_t n, size_t *n_incomplete);

/* Returns the missing bytes plus the overhead of a body part for each incomplete range. */
uint64_t cv_ranges_cost(const cv_byte_range *ranges, size_t n);

/* Returns how many of the first ranges, at least one, form a request of about this cost. If `cost`
 * is the total divided by m, m requests suffice unless other limits require more. */
size_t cv_ranges_share(const cv_byte_range *ranges, size_t n, uint64_t cost);

/* Appends "Range: bytes=..." for all incomplete ranges, with its NUL. */
cv_status cv_ranges_add_field(const cv_byte_range *ranges, size_t n, cv_buffer *fields,
                              cv_error *err);

/* Assigns received bytes [pos, end) to the first range, from number `from` on, whose next missing
 * byte is one of them. Marks bytes [*first, *last) of that range as received. Returns the range's
 * number, or n if no range lacks the bytes. A range receives its bytes in order, each byte once. */
size_t cv_ranges_take(cv_byte_range *ranges, size_t n, size_t from, uint64_t pos,
                      uint64_t end, uint64_t *first, uint64_t *last);

#endif
