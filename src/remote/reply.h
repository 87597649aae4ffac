/* Dates as HTTP has them: pure functions. */
#ifndef CV_REMOTE_REPLY_H
#define CV_REMOTE_REPLY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

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

/* ---- http_multipart ----
 * A body that holds several parts of one object (multipart/byteranges, RFC 9110, 14.6), taken
 * apart as it comes. Pure: it says where bytes belong; whether somebody asked for them, and
 * what is kept, is for its user. Nothing that a server sends makes it hold more than a head. */

/* Bytes of a part's head, of what stands before the first one, and of what follows the last. */
enum { CV_PART_HEAD = 4096 };

typedef enum cv_part_event {
    CV_PART_MORE,   /* all that was given is used */
    CV_PART_BEGINS, /* a part of bytes [pos, end) of an object of `total` */
    CV_PART_BYTES,  /* what was given begins with *n bytes that belong at `pos` */
    CV_PART_ENDS, /* where the part says that it does: its bytes are what it says they are */
    CV_PART_BAD   /* that is no such body: nothing more can be made of it */
} cv_part_event;

typedef enum cv_part_state {
    CV_PART_BEFORE, /* the first boundary */
    CV_PART_IN_HEAD,
    CV_PART_IN_BODY,
    CV_PART_BEHIND, /* a body: the end of a line, and a boundary */
    CV_PART_OVER,
    CV_PART_BROKEN
} cv_part_state;

typedef struct cv_multipart {
    uint64_t pos, end, total; /* of the part: its bytes from `pos` on are still to come */
    /* Its own. */
    cv_part_state state;
    char boundary[CV_BOUNDARY_SIZE];
    bool has_gap;      /* the end of a line behind a body was seen */
    bool has_returns;  /* lines of the part's head end with CR LF, and not with LF alone */
    size_t line, size; /* the line under way begins there; bytes of `text` */
    size_t n_outside;  /* bytes before the first boundary, or behind the last */
    char text[CV_PART_HEAD];
} cv_multipart;

/* A body begins, with the boundary that its reply names. */
void cv_multipart_begin(cv_multipart *body, const char *boundary);

/* What comes next of these bytes, one at least. *n: how many of them it has used up, or, of
 * CV_PART_BYTES, how many belong to the part: none of those is used before cv_multipart_take
 * says so, and what is not may be given again, later. */
cv_part_event cv_multipart_next(cv_multipart *body, const uint8_t *bytes, size_t size,
                                size_t *n);
void cv_multipart_take(cv_multipart *body, size_t n);

/* Nothing follows. True: the last part ends with that, as CV_PART_ENDS says. */
bool cv_multipart_end(cv_multipart *body);

/* ---- http_xml ----
 * Texts of elements in S3's answers: pure functions. They are not XML's grammar, but enough
 * for documents of elements and texts; what does not look like one has no such element. */

/* What stands inside an element. */
typedef struct cv_xml {
    const char *at, *end;
} cv_xml;

/* Finds the next <name>...</name>, of whatever attributes, and goes on behind it. False:
 * there is none. */
bool cv_xml_next(cv_xml *rest, const char *name, cv_xml *out);

/* The text of the first such element, with its references resolved, and a NUL. False: there
 * is none, or it has more than `room` bytes, or bytes that are not printable ASCII. */
bool cv_xml_text(cv_xml document, const char *name, char *out, size_t room);

/* Room for what a refusal is called. */
enum { CV_XML_REFUSAL_SIZE = 50 };

/* What S3 calls a refusal whose answer this is, behind ", "; "": it has no name of letters and
 * digits. */
void cv_xml_refusal(const void *answer, size_t size, char out[CV_XML_REFUSAL_SIZE]);

#endif
