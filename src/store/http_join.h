/* Which ranges share a request: a pure function. */
#ifndef CV_STORE_HTTP_JOIN_H
#define CV_STORE_HTTP_JOIN_H

#include "base/status.h"

/* A range, or part of one that is so long that several requests share it. */
typedef struct cv_segment {
    uint64_t pos, end;
    size_t range; /* whose it is, */
    size_t at;    /* and where its first byte is in there */
    bool begins;  /* a request; set by cv_join */
} cv_segment;

typedef struct cv_join_rule {
    uint64_t gap;     /* reading over so many bytes is quicker than another request */
    int over_percent; /* of what is needed that may be read over in all */
    uint64_t most;    /* bytes of a request; no segment has more */
    uint64_t limit;   /* that no request is joined beyond; 0: CV_JOIN_MOST */
    int connections; /* each has one request at a time: those that are joined may have `most`,
                       * or as much as gives each connection one; 0: no more than `most` */
} cv_join_rule;

/* Bytes of a request: one that is lost is not to cost much. */
enum { CV_JOIN_MOST = 8 << 20 };

/* Sorts segments by position, and says which of them begin requests; the others lie in the one
 * before them. Returns how many requests there are. */
size_t cv_join(cv_segment *segments, size_t n, const cv_join_rule *rule);

#endif
