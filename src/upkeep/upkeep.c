/* Room: upkeep. Operations on arrays by URL: compacting, sealing, deleting. */
#include "upkeep/upkeep.h"

#include "array/array.h"
#include "frame/commit.h"
#include "store/open.h"
#include "upkeep/zarr.h"

#include <caterva_upkeep.h>

cv_status cv_upkeep_options_read(const caterva_upkeep_options *options,
                                 caterva_upkeep_options *out, cv_error *err)
{
    CV_TRY(cv_options_read(out, sizeof *out, options, "upkeep options", err));
    return cv_progress_check(&out->progress, err);
}

static cv_status open_for_upkeep(const char *url, const caterva_upkeep_options *options,
                                 caterva_array **out, cv_error *err)
{
    caterva_upkeep_options o;
    CV_TRY(cv_upkeep_options_read(options, &o, err));
    caterva_open_options open = CATERVA_OPEN_INIT;
    open.mode = CATERVA_MODE_WRITE;
    open.durability = o.durability;
    open.progress = o.progress;
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

/* ---- Deletion -------------------------------------------------------------- */

static cv_status delete_store(cv_store *store, const caterva_upkeep_options *o, cv_error *err)
{
    cv_watch watch;
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, NULL);
    return cv_watch_close(&watch, cv_store_delete(store, reporting, err));
}

caterva_status caterva_delete(const char *url, const caterva_upkeep_options *options,
                              caterva_error *err)
{
    caterva_upkeep_options o;
    caterva_open_options open = CATERVA_OPEN_INIT;
    caterva_array *array;
    CV_TRY(cv_upkeep_options_read(options, &o, err));
    bool is_zarr;
    CV_TRY(cv_zarr_delete(url, &is_zarr, err));
    if (is_zarr) return CV_OK;
    open.mode = CATERVA_MODE_WRITE; /* keeps other writers out until the deletion */
    open.cache_bytes = -1;
    CV_TRY(caterva_open(url, &open, &array, err));
    cv_status status = delete_store(array->frame->store, &o, err);
    cv_array_free(array);
    return status;
}
