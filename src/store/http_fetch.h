/* One range of one object, fetched whatever it takes: attempts, redirections, and what is
 * left of a body that was cut. */
#ifndef CV_STORE_HTTP_FETCH_H
#define CV_STORE_HTTP_FETCH_H

#include "store/http_object.h"

typedef struct cv_fetch cv_fetch;

struct cv_fetch {
    cv_wire wire;
    /* Given. The functions are called by the wire's thread and wait for nobody: `granted`
     * (or NULL) when the first answer says which bytes come, `take` with bytes in their
     * order, each once; what is not CV_OK ends it. `gone` is the last call. */
    cv_http_object *object;
    cv_ask ask;
    bool is_anew; /* past the server's caches */
    int n_ranges; /* of the reader, in this request */
    cv_status (*granted)(cv_fetch *fetch, const cv_grant *grant, cv_error *err);
    cv_status (*take)(cv_fetch *fetch, uint64_t pos, const uint8_t *bytes, size_t size,
                      cv_error *err);
    void (*gone)(cv_fetch *fetch);
    /* What came of it, for `gone`. */
    cv_status status;
    cv_error error;
    cv_reply reply;
    cv_grant grant; /* of the first answer that was taken */
    bool is_granted, has_no_ranges;
    /* Its own. */
    cv_ask now;              /* what this attempt asks for */
    uint64_t next, last_end; /* bytes [next, last_end) are still to be taken */
    cv_buffer head;          /* of the answer under way */
    bool is_judged;
    cv_verdict verdict;
    uint64_t body_pos, body_end; /* of the attempt: where its next byte belongs */
    uint64_t received;           /* bytes of the attempt's body */
    char *url;
    bool is_elsewhere;
    int attempts, failures, redirects;
};

/* All given is set, the rest zero. `gone` is called unless this fails. */
cv_status cv_fetch_begin(cv_fetch *fetch, cv_error *err);
void cv_fetch_cancel(cv_fetch *fetch);

#endif
