/* What a server answered, taken apart and judged before a byte of its body is believed: pure
 * functions. A server is not trusted: what it says must be what was asked for. */
#ifndef CV_STORE_HTTP_REPLY_H
#define CV_STORE_HTTP_REPLY_H

#include "base/status.h"

enum {
    CV_ETAG_SIZE = 160,
    CV_MODIFIED_SIZE = 48,
    CV_WRITE_ID_SIZE = 33,
    CV_BOUNDARY_SIZE = 71
};

/* The field of S3 by which an object says who published it. */
#define CV_WRITE_ID_FIELD "x-amz-meta-caterva-write-id"

/* The fields that count. */
typedef struct cv_reply {
    int status;
    bool has_length, has_range, is_encoded, is_multipart;
    bool is_odd;     /* a field twice with two values, or one that cannot be read */
    uint64_t length; /* of the body */
    uint64_t first, last, total; /* of the range; total UINT64_MAX: not said */
    char etag[CV_ETAG_SIZE];     /* with its quotes, and W/; "": none */
    char modified[CV_MODIFIED_SIZE];
    char write_id[CV_WRITE_ID_SIZE]; /* "": none that fits */
    char boundary[CV_BOUNDARY_SIZE]; /* between the parts of multipart/byteranges; "": none */
    uint32_t retry_after;            /* seconds; 0: not said, or as a date: */
    int64_t retry_at,
        date;        /* seconds since 1970, the latter by the server's clock; 0: not said */
    int most_parts;  /* that servers of this name send at once; 0: who knows */
    bool is_relayed; /* it may come from another server than the one that is named */
} cv_reply;

/* Parses status line and fields, as they came. CATERVA_EIO: that is no reply. */
cv_status cv_reply_parse(const char *bytes, size_t size, cv_reply *out, cv_error *err);

/* After how many seconds the server asks to be tried again; 0: it does not. `now`, in seconds
 * since 1970, counts where it names a date and does not say what time it is. */
uint32_t cv_reply_wait(const cv_reply *reply, int64_t now);

/* Which version of an object is read. */
typedef struct cv_identity {
    uint64_t size; /* UINT64_MAX: not known yet */
    char etag[CV_ETAG_SIZE];
    char modified[CV_MODIFIED_SIZE];
    char write_id[CV_WRITE_ID_SIZE]; /* of who published it; "": not said */
} cv_identity;

/* What was asked for: bytes [first, end), or, with `is_suffix`, the last `end` ones. */
typedef struct cv_ask {
    bool is_suffix;
    uint64_t first, end;
    const cv_identity *identity;
} cv_ask;

typedef enum cv_verdict {
    CV_REPLY_TAKE,      /* the body is what was asked for, see cv_grant */
    CV_REPLY_RETRY,     /* the server is busy or broken just now */
    CV_REPLY_REDIRECT,  /* it is somewhere else */
    CV_REPLY_NO_RANGES, /* the server answers with all of a large object */
    CV_REPLY_NO_PARTS,  /* the server does not send several parts at once */
    CV_REPLY_FAILED     /* as the error says */
} cv_verdict;

/* What the body holds: bytes [first, first + size) of an object of `total`. */
typedef struct cv_grant {
    uint64_t first, size, total;
} cv_grant;

/* Judges. *err is filled for all verdicts but CV_REPLY_TAKE; its code is what a read should
 * return when nothing better comes of another attempt. `name` is for sentences. */
cv_verdict cv_reply_judge(const cv_reply *reply, const cv_ask *ask, const char *name,
                          cv_grant *grant, cv_error *err);

/* Judges the reply to a request for several parts of an object whose identity is known. What is
 * taken is a body of parts, each of which is to be judged by what its own head says. Whatever
 * may be the way of a server that does not know such requests is CV_REPLY_NO_PARTS: what is
 * wrong with it beyond that, the replies to requests for one part will tell. */
cv_verdict cv_reply_judge_parts(const cv_reply *reply, const cv_identity *known,
                                const char *name, cv_error *err);

/* The identity that a reply which was taken shows. */
void cv_reply_identity(const cv_reply *reply, const cv_grant *grant, cv_identity *out);

/* Whether an ETag may stand in If-Match. */
bool cv_etag_is_strong(const char *etag);

/* Whether the server may answer the same request otherwise in a while: 408, 429 and 5xx, but for
 * what it does not know (501, 505) and has no room for (507). */
bool cv_reply_is_busy(int status);

#endif
