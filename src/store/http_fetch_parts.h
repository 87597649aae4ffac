/* Of a request for several ranges: its answer, judged and taken apart. The wire's thread's. */
#ifndef CV_STORE_HTTP_FETCH_PARTS_H
#define CV_STORE_HTTP_FETCH_PARTS_H

#include "store/http_fetch_state.h"

/* An attempt begins. */
cv_status cv_fetch_prepare_parts(cv_fetch *fetch);

/* The answer is none to such a request: false. */
bool cv_fetch_refuse_parts(cv_fetch *fetch);

/* Its fields have come; false: nobody hears the rest. */
bool cv_fetch_judge_parts(cv_fetch *fetch);

/* Some of the body. */
cv_wire_next cv_fetch_take_parts(cv_fetch *fetch, const uint8_t *bytes, size_t size);

/* The body is over, `is_whole` or not: what does not count comes again. */
void cv_fetch_end_parts(cv_fetch *fetch, bool is_whole);

#endif
