/* The face of this room. */
#ifndef CV_UPKEEP_UPKEEP_H
#define CV_UPKEEP_UPKEEP_H

#include "array/array.h"
#include "store/store.h"

#include <caterva_upkeep.h>

/* As caterva_repair of the content of `store`, named `name` in errors; complete options with
 * an output. Takes over the store, also on failure. */
cv_status cv_array_repair_store(cv_store *store, const char *name,
                                const caterva_repair_options *options,
                                caterva_repair_result *result, cv_error *err);

#endif
