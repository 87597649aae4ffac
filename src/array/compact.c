/* Room: array. Giving dead space back: a compact copy takes the file's place. */
#include "array/array.h"
#include "engine/transfer.h"

/* The handle for writing keeps other writers out until the copy has the name. */
static cv_status compact(caterva_array *array, cv_error *err)
{
    cv_source source = cv_array_source(array);
    bool sparse = source.snapshot->header.sparse;
    cv_store *store;
    cv_frame *frame;
    if (sparse && cv_store_has_readers(array->frame->store)) /* whose files would go */
        return cv_fail(err, CATERVA_EBUSY, -1, "the directory is open for reading elsewhere");
    CV_TRY(cv_store_create_over(array->frame->store, &store, err));
    CV_TRY(cv_transfer(&source, store, sparse, array->frame->durability, &frame, err));
    cv_frame_close(frame);
    return CV_OK;
}

caterva_status caterva_compact(const char *url, const caterva_upkeep_options *options,
                               caterva_error *err)
{
    caterva_array *array;
    CV_TRY(cv_array_open_for_upkeep(url, options, &array, err));
    cv_array_lock_alone(array);
    cv_status status = cv_array_finish(array, compact(array, err));
    cv_array_free(array);
    return status;
}
