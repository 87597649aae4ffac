/* Room: array. What is done to an array that nobody has open: dead space given back, what
 * other writers made sealed. */
#include "array/compact.h"
#include "frame/commit.h"
#include "frame/tidy.h"

static cv_status open_for_upkeep(const char *url, const caterva_upkeep_options *options,
                                 caterva_array **out, cv_error *err)
{
    static const caterva_upkeep_options defaults = CATERVA_UPKEEP_INIT;
    caterva_upkeep_options o;
    CV_TRY(
        cv_options_copy(&o, sizeof o, options ? options : &defaults, "upkeep options", err));
    caterva_open_options open = CATERVA_OPEN_INIT;
    open.mode = CATERVA_MODE_WRITE;
    open.durability = o.durability;
    open.on_progress = o.on_progress;
    open.context = o.context;
    return caterva_open(url, &open, out, err);
}

caterva_status caterva_compact(const char *url, const caterva_upkeep_options *options,
                               caterva_error *err)
{
    caterva_array *array;
    CV_TRY(open_for_upkeep(url, options, &array, err));
    cv_array_lock_alone(array);
    cv_status status = cv_array_finish(array, cv_array_compact(array, err));
    cv_array_free(array);
    return status;
}

caterva_status caterva_seal(const char *url, const caterva_upkeep_options *options,
                            caterva_error *err)
{
    caterva_array *array;
    CV_TRY(open_for_upkeep(url, options, &array, err));
    cv_array_lock_alone(array);
    cv_status status =
        cv_array_finish(array, cv_txn_seal(array->pending->txn, array->watch, err));
    if (status == CV_OK) cv_txn_tidy(array->pending->txn);
    cv_array_free(array);
    return status;
}
