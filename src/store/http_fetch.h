/* One range of one object, or several, fetched whatever it takes: attempts, redirections, and
 * what is left of a body that was cut. */
#ifndef CV_STORE_HTTP_FETCH_H
#define CV_STORE_HTTP_FETCH_H

#include "store/http_fetch_state.h"

/* All given is set, the rest zero. `gone` is called unless this fails. */
cv_status cv_fetch_begin(cv_fetch *fetch, cv_error *err);
void cv_fetch_cancel(cv_fetch *fetch);

#endif
