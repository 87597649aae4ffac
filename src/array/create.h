/* Creates arrays, also as copies of other arrays. */
#ifndef CV_ARRAY_CREATE_H
#define CV_ARRAY_CREATE_H

#include "array/array.h"

/* caterva_create with complete options. If `like` is not NULL, it provides dtype, codec and
 * metalayers where the options leave them unset, and all attributes except the library's own. */
cv_status cv_array_create(const char *url, const caterva_create_options *options,
                          const cv_snapshot *like, caterva_array **out, cv_error *err);

#endif
