/* Room: array. Commit, rollback and close: what a handle for writing does to the frame. */
#include "array/commit.h"

#include "array/describe.h"
#include "array/wings.h"
#include "engine/write/flush.h"
#include "engine/write/transfer.h"
#include "frame/commit.h"
#include "store/open.h"
#include "store/refusals.h"
#include <caterva_upkeep.h>

/* ---- Compact ----
 *
 * Giving dead space back: a compact copy takes the file's place. */

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

/* Compacts a file with nothing pending where so much of it is dead that its options ask
 * for it, before the handle is released. Best effort. */
static void cv_array_compact_at_close(caterva_array *array)
{
    if (!is_worth_it(array)) return;
    cv_array_lock_alone(array);
    (void)cv_array_finish(array, cv_array_compact(array, NULL));
}

/* ---- Commit ---- */

void cv_array_renew(caterva_array *array)
{
    cv_snapshot_release(array->snapshot);
    array->snapshot = cv_frame_snapshot(array->frame);
    cv_array_changed(array);
}

caterva_status caterva_commit(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a commit", err));
    CV_TRY(cv_gate_close(&array->gate, err));
    cv_array_lock_alone(array);
    const cv_store *store = array->frame->store;
    bool is_new = !store->published && store->ops->create_over; /* with a place for jobs */
    cv_status status = CV_OK;
    if (cv_pending_any(array->pending)) {
        status = cv_pending_commit(array->pending, err);
        if (status == CV_OK) cv_array_renew(array);
    }
    if (status == CV_OK && cv_wings.jobs) cv_wings.jobs->committed(array, is_new);
    status = cv_array_finish(array, status);
    cv_gate_open(&array->gate);
    return status;
}

caterva_status caterva_rollback(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    cv_array_lock_alone(array);
    bool fresh = !array->frame->store->published;
    cv_pending_rollback(array->pending);
    if (fresh) cv_pending_fill(array->pending);
    cv_array_roll_back_attached(array);
    cv_array_changed(array);
    cv_array_unlock(array);
    return CV_OK;
}

static cv_status commit_at_close(caterva_array *array, cv_error *err)
{
    const cv_store *store = array->frame->store;
    if (!cv_pending_any(array->pending) && cv_store_is_parents(store)) return CV_OK;
    CV_TRY(caterva_commit(array, err));
    if (!store->in_memory) cv_txn_tidy(array->pending->txn);
    cv_array_compact_at_close(array);
    return CV_OK;
}

caterva_status caterva_close(caterva_array *array, caterva_error *err)
{
    if (!array) return CV_OK;
    cv_errands_close(&array->reads);
    cv_prefetch_cancel(&array->prefetch);
    bool commits = array->pending && cv_array_refuse(array, "a commit", NULL) == CV_OK;
    cv_status status = commits ? commit_at_close(array, err) : CV_OK;
    cv_array_free(array);
    return status;
}
