/* The face of upkeep for other wings: options, and the repair of a frame in any store. */
#ifndef CV_UPKEEP_UPKEEP_H
#define CV_UPKEEP_UPKEEP_H

#include "array/array.h"
#include "store/store.h"

#include <caterva_upkeep.h>

/* Copies the options (or NULL) to `out` and checks them. */
cv_status cv_upkeep_options_read(const caterva_upkeep_options *options,
                                 caterva_upkeep_options *out, cv_error *err);

/* Repairs the frame in `store` as caterva_repair does; `name` is used in messages. The options are
 * complete and name an output. Closes the store, also after a failure. */
cv_status cv_array_repair_store(cv_store *store, const char *name,
                                const caterva_repair_options *options,
                                caterva_repair_result *result, cv_error *err);

#endif
