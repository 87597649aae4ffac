/* Room: array. The handle: made, locked, described, released. No bytes are
 * read or written here; that is the engine's. */
#include "array/array.h"

#include "base/heap.h"
#include "base/os.h"
#include "base/thread.h"
#include "codec/spec.h"
#include "format/array_meta.h"
#include "frame/attributes.h"
#include "store/fallbacks.h"

#include <string.h>

cv_status cv_array_check(const caterva_array *array, cv_error *err)
{
    if (array) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the array handle is NULL");
}

cv_status cv_array_check_writable(const caterva_array *array, cv_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (array->pending) return cv_store_check_writable(array->frame->store, err);
    return cv_fail(err, CATERVA_EREADONLY, -1, "the array is open for reading only");
}

cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    return cv_codec_check_encoding(&array->workers.spec, err);
}

/* ---- Locking ------------------------------------------------------------ */

void cv_array_lock_shared(caterva_array *array)
{
    if (!array->is_guarded) return;
    if (array->pending) cv_rwlock_read(&array->lock);
    if (array->watch) cv_watch_begin(array->watch);
}

void cv_array_lock_alone(caterva_array *array)
{
    if (array->pending) {
        cv_rwlock_write(&array->lock);
        cv_prefetch_suspend(&array->prefetch);
        cv_errands_suspend(&array->reads);
    }
    if (array->watch) cv_watch_begin(array->watch);
}

static void unlock(caterva_array *array, bool good)
{
    if (array->watch) cv_watch_end(array->watch, good);
    if (!array->pending) return;
    cv_prefetch_resume(&array->prefetch);
    cv_errands_resume(&array->reads);
    cv_rwlock_unlock(&array->lock);
}

void cv_array_unlock(caterva_array *array)
{
    if (array->is_guarded) unlock(array, false);
}

cv_status cv_array_finish(caterva_array *array, cv_status status)
{
    if (array->is_guarded) unlock(array, status == CV_OK);
    return status;
}

cv_status cv_array_set_watch(caterva_array *array, cv_progress_fn tell, void *context,
                             cv_error *err)
{
    if (!tell) return CV_OK;
    cv_watch *watch = cv_malloc(sizeof *watch);
    if (!watch) return cv_fail_memory(err, sizeof *watch, "a watch");
    cv_watch_init(watch, tell, context);
    array->watch = watch;
    array->is_guarded = true;
    if (array->pending) array->pending->watch = watch;
    return CV_OK;
}

cv_source cv_array_source(caterva_array *array)
{
    bool changed = array->pending && cv_pending_any(array->pending);
    return (cv_source){
        .frame = array->frame,
        .snapshot = changed ? cv_txn_snapshot(array->pending->txn) : array->snapshot,
        .pending = changed ? array->pending : NULL,
        .workers = &array->workers,
        .threads = array->threads,
        .watch = array->watch,
    };
}

const cv_snapshot *cv_array_state(const caterva_array *array)
{
    return array->pending ? cv_txn_snapshot(array->pending->txn) : array->snapshot;
}

/* ---- The fill ------------------------------------------------------------ */

static cv_status set_fill(caterva_array *array, const uint8_t *item, cv_error *err)
{
    size_t size = (size_t)array->snapshot->grid.item_size;
    array->fill = cv_malloc(size);
    if (!array->fill) return cv_fail_memory(err, size, "the fill value");
    memcpy(array->fill, item, size);
    return array->pending ? cv_pending_set_fill(array->pending, item, err) : CV_OK;
}

/* The fill is an attribute of our own. Files of other writers have none: zeros. */
static cv_status load_fill(caterva_array *array, cv_error *err)
{
    const cv_trailer *t = &array->snapshot->trailer;
    const cv_metalayer *own =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_OWN_ATTRIBUTE);
    if (!own) return CV_OK;
    cv_buffer value = {0};
    cv_own content;
    cv_status status = cv_frame_attribute(own, &value, NULL, err);
    if (status == CV_OK) status = cv_own_parse(value.data, value.size, &content, err);
    if (status == CV_OK && content.fill) {
        if (content.fill_size == (uint32_t)array->snapshot->grid.item_size)
            status = set_fill(array, content.fill, err);
        else
            status = cv_fail(err, CATERVA_ECORRUPT, -1,
                             "the fill value has %u bytes, items have %d", content.fill_size,
                             array->snapshot->grid.item_size);
    }
    cv_buffer_free(&value);
    return status;
}

static cv_source source_of(void *array) { return cv_array_source(array); }

/* ---- Making and releasing ----------------------------------------------- */

cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err)
{
    caterva_array *array = cv_calloc(1, sizeof *array);
    if (!array) {
        cv_frame_close(frame);
        return cv_fail_memory(err, sizeof *array, "an array handle");
    }
    array->frame = frame;
    array->threads = threads > 0 ? threads : cv_os_cores();
    array->snapshot = cv_frame_snapshot(frame);
    cv_rwlock_init(&array->lock);
    cv_gate_init(&array->gate);
    cv_descriptions_init(&array->descriptions);
    cv_prefetch_init(&array->prefetch, source_of, array, array->threads);
    cv_read_ahead_init(&array->ahead, false);
    cv_errands_init(&array->reads, array->threads);

    cv_status status = cv_workers_init(&array->workers, array->snapshot, err);
    if (status == CV_OK) status = cv_codec_check(&array->workers.spec, err);
    if (status == CV_OK && writable)
        status =
            cv_pending_create(frame, &array->workers, array->threads, &array->pending, err);
    array->is_guarded = array->pending != NULL;
    if (status == CV_OK) status = load_fill(array, err);
    if (status == CV_OK) status = cv_item_type_init(&array->type, array->snapshot, err);
    if (status != CV_OK) {
        cv_array_free(array);
        return status;
    }
    *out = array;
    return CV_OK;
}

void cv_array_free(caterva_array *array)
{
    if (!array) return;
    if (array->writers) cv_writers_leave(array->writers, &array->writers_place);
    cv_errands_close(&array->reads);
    cv_prefetch_destroy(&array->prefetch);
    if (array->workers.cache) cv_cache_forget(array->workers.cache, array->frame->id);
    cv_cache_free(array->own_cache);
    cv_pending_free(array->pending);
    cv_workers_destroy(&array->workers);
    cv_snapshot_release(array->snapshot);
    cv_frame_close(array->frame);
    cv_rwlock_destroy(&array->lock);
    if (array->watch) cv_watch_destroy(array->watch);
    cv_free(array->watch);
    cv_free(array->fill);
    cv_gate_destroy(&array->gate);
    cv_descriptions_destroy(&array->descriptions);
    cv_item_type_free(&array->type);
    cv_part_of_job_free(array->part);
    cv_held_jobs_free(array->jobs);
    cv_session_release(array->session);
    cv_free(array->path);
    cv_free(array->url);
    cv_free(array);
}

void caterva_discard(caterva_array *array) { cv_array_free(array); }

void caterva_free(void *memory) { cv_free(memory); }
