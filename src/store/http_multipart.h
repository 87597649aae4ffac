/* A body that holds several parts of one object (multipart/byteranges, RFC 9110, 14.6), taken
 * apart as it comes. Pure: it says where bytes belong; whether somebody asked for them, and
 * what is kept, is for its user. Nothing that a server sends makes it hold more than a head. */
#ifndef CV_STORE_HTTP_MULTIPART_H
#define CV_STORE_HTTP_MULTIPART_H

#include "store/http_reply.h"

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

#endif
