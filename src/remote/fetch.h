/* Which ranges share a request: a pure function. */
#ifndef CV_REMOTE_FETCH_H
#define CV_REMOTE_FETCH_H

#include "base/heap.h"
#include "base/status.h"
#include "remote/object.h"
#include "remote/reply.h"

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

/* ---- http_spans ----
 * Ranges of one object that one request asks for: how many go together, how the request names
 * them, and where what comes belongs. Pure functions. */

/* Bytes [next, end) are still to come; those from `sure` to `next` have, but in a part that may
 * yet turn out to be none. Several stand in their order. */
typedef struct cv_http_span {
    uint64_t next, end, sure;
} cv_http_span;

/* Servers take so many (Apache 200), in a field of at most 4 KiB. */
enum { CV_SPANS_MOST = 100 };

/* What a request for these costs: bytes, and a part of its own for each that is left. */
uint64_t cv_spans_cost(const cv_http_span *spans, size_t n);

/* How many of them, one at least, from the first on, share a request: as many as cost so much,
 * or just more, so that a sum divided by n gives n requests at most where bounds allow it. */
size_t cv_spans_share(const cv_http_span *spans, size_t n, uint64_t cost);

/* Bytes of all that are left, and how many spans they are of. */
uint64_t cv_spans_left(const cv_http_span *spans, size_t n, size_t *n_left);

/* Appends "Range: bytes=..." of what is left, with its NUL. */
cv_status cv_spans_add_field(const cv_http_span *spans, size_t n, cv_buffer *fields,
                             cv_error *err);

/* Bytes [pos, end) have come. The first span from `from` on that wants some of them, which then
 * has them, or n: none does. *first, *last: which bytes those are. Each byte is given once; those
 * of a span come in their order, and what comes before its turn is not wanted yet. */
size_t cv_spans_take(cv_http_span *spans, size_t n, size_t from, uint64_t pos, uint64_t end,
                     uint64_t *first, uint64_t *last);

/* ---- http_fetch_state ----
 * A request on its way, for one range of one object or several: what it is to do, and how far it
 * is. */

typedef struct cv_fetch cv_fetch;

/* Requests that share what room there is: how many are on their way, and how many of those
 * have paused because there is none. The wire's thread's. */
typedef struct cv_flow {
    int n_flying, n_paused;
} cv_flow;

struct cv_fetch {
    cv_wire wire;
    /* Given. The functions are called by the wire's thread and wait for nobody: `granted`
     * (or NULL) when the first answer says which bytes come, `take` with bytes in their
     * order, each once; what is not CV_OK ends it. `gone` is the last call. */
    cv_http_object *object;
    cv_ask ask;
    bool is_anew;  /* past the server's caches */
    int n_ranges;  /* of the reader, in this request */
    cv_flow *flow; /* NULL: there is room for all; else `admit` says for how many of those
                    * bytes, and the request pauses before the others until cv_wire_resume */
    cv_status (*admit)(cv_fetch *fetch, uint64_t pos, size_t size, size_t *admitted,
                       cv_error *err);
    cv_status (*granted)(cv_fetch *fetch, const cv_grant *grant, cv_error *err);
    cv_status (*take)(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err);
    void (*gone)(cv_fetch *fetch);
    /* Given, of several ranges: two at least, in place of `ask`, of an object whose identity is
     * known. `granted` is not called. What `take` was given counts when `trust` says so, of some
     * of it at a time; `undo` is called of a span of which some comes again. */
    cv_http_span *spans;
    size_t n_spans;
    void (*trust)(cv_fetch *fetch, uint64_t pos, uint64_t size);
    void (*undo)(cv_fetch *fetch);
    /* What came of it, for `gone`. */
    cv_status status;
    cv_error error;
    cv_reply reply;
    cv_grant grant; /* of the first answer that was taken */
    bool is_granted, has_no_ranges;
    /* What is left of several is to be asked for one by one, which this fetch may be used for;
     * and the server did not send what may be sent for several. Then `status` is CV_OK. */
    bool is_split, has_no_parts;
    /* Of several: the one whose bytes `take` is given, and `trust` and `undo` are about. */
    size_t span;
    /* Its own. */
    cv_ask now;              /* what this attempt asks for */
    uint64_t next, last_end; /* bytes [next, last_end) are still to be taken */
    cv_buffer head;          /* of the answer under way, or what a refusal says */
    bool is_judged;
    cv_verdict verdict;
    uint64_t body_pos, body_end; /* of the attempt: where its next byte belongs */
    uint64_t received;           /* bytes of the attempt's body */
    bool is_flying, is_paused;   /* counted by the flow */
    cv_whereabouts where;
    int attempts, failures;
    cv_multipart *parts;           /* the body of several; owned */
    uint64_t asked, most_received; /* bytes of the attempt */
    bool have_parts_come;
    size_t n_used; /* of bytes that come again after a pause */
};

/* ---- http_fetch ----
 * One range of one object, or several, fetched whatever it takes: attempts, redirections, and
 * what is left of a body that was cut. */

/* All given is set, the rest zero. `gone` is called unless this fails. */
cv_status cv_fetch_begin(cv_fetch *fetch, cv_error *err);
void cv_fetch_cancel(cv_fetch *fetch);

#endif
