/* Room: array. Commit, rollback and close: what a handle for writing does to the frame. */
#include "array/commit.h"

#include "array/compact.h"
#include "array/describe.h"
#include "engine/write/flush.h"
#include "frame/commit.h"
#include "store/fallbacks.h"

void cv_array_renew(caterva_array *array)
{
    cv_snapshot_release(array->snapshot);
    array->snapshot = cv_frame_snapshot(array->frame);
    cv_array_changed(array);
}

caterva_status caterva_commit(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_part_refuse(array->part, "a commit", err));
    CV_TRY(cv_gate_close(&array->gate, err));
    cv_array_lock_alone(array);
    const cv_store *store = array->frame->store;
    bool is_new = !store->published && store->ops->create_over; /* with a place for jobs */
    cv_status status = CV_OK;
    if (cv_pending_any(array->pending)) {
        status = cv_pending_commit(array->pending, err);
        if (status == CV_OK) cv_array_renew(array);
    }
    if (status == CV_OK && is_new) cv_held_jobs_published(array->jobs, array->path);
    if (status == CV_OK)
        cv_held_jobs_committed(&array->jobs, array->path, array->threads, array->watch);
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
    cv_part_unmark(array->part);
    cv_held_jobs_rolled_back(array->jobs);
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
    cv_status status = array->pending && !array->part ? commit_at_close(array, err) : CV_OK;
    cv_array_free(array);
    return status;
}
