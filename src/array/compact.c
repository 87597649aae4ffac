/* Room: array. Giving dead space back: a compact copy takes the file's place. */
#include "array/compact.h"

#include "engine/jobs/transfer.h"
#include "frame/commit.h"
#include "store/open.h"

/* The handle keeps other writers out until the copy has the name. */
cv_status cv_array_compact(caterva_array *array, cv_error *err)
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

/* ---- By itself ------------------------------------------------------------ */

enum { MIN_DEAD = 64 * 1024 };

cv_status cv_array_check_compact(int percent, cv_error *err)
{
    if (percent >= 0 && percent <= 100) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "compact_percent is %d: 0 to 100", percent);
}

static bool is_worth_it(caterva_array *array)
{
    uint64_t dead, size;
    bool compacts_itself = array->pending && array->frame->store->compacts_itself;
    if (array->compact_percent == 0 || !compacts_itself) return false;
    if (!cv_txn_dead(array->pending->txn, &dead, &size)) return false;
    return dead >= MIN_DEAD && (double)dead * 100 >= (double)size * array->compact_percent;
}

void cv_array_compact_at_close(caterva_array *array)
{
    if (!is_worth_it(array)) return;
    cv_array_lock_alone(array);
    (void)cv_array_finish(array, cv_array_compact(array, NULL));
}
