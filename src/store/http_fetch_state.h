/* A request on its way, for one range of one object or several: what it is to do, and how far it
 * is. */
#ifndef CV_STORE_HTTP_FETCH_STATE_H
#define CV_STORE_HTTP_FETCH_STATE_H

#include "store/http_moved.h"
#include "store/http_multipart.h"
#include "store/http_spans.h"

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

#endif
