/* Dates as HTTP has them: pure functions. */
#ifndef CV_STORE_HTTP_DATE_H
#define CV_STORE_HTTP_DATE_H

#include "base/status.h"

/* Parses a date in any of the three forms of RFC 9110, section 5.6.7: seconds since 1970 in *out,
 * never before it. False: it is not a date. */
bool cv_http_date(const char *text, size_t size, int64_t *out);

#endif
