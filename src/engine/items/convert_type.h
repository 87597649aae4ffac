/* Which conversion leads from one type of items to another, and whether it may. */
#ifndef CV_ENGINE_CONVERT_TYPE_H
#define CV_ENGINE_CONVERT_TYPE_H

#include "engine/items/convert.h"

/* From one NumPy description to another. Equal types need no conversion, whatever
 * they are. CATERVA_ECAST when the casting does not allow it, CATERVA_EINVAL when a
 * description is none; CATERVA_EDTYPE for types that are no numbers. */
cv_status cv_conversion_init(cv_conversion *conversion, const char *from, const char *to,
                             caterva_casting casting, cv_error *err);

/* From a field of structured items: `field` is its name, or "a.b" for field b of field
 * a. `to` NULL: the field as it is, whatever it is; else it must be a number.
 * CATERVA_ENOTFOUND when the description `from` has no such field. */
cv_status cv_conversion_init_field(cv_conversion *conversion, const char *from,
                                   const char *field, const char *to, caterva_casting casting,
                                   cv_error *err);

#endif
