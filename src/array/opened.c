/* Room: array. Options of an opening checked, and a store made a handle. */
#include "array/opened.h"

#include "array/cache.h"
#include "array/compact.h"
#include "remote/remote.h"
#include "store/fallbacks.h"
#include "store/file.h"

cv_status cv_array_open_options(const caterva_open_options *options,
                                caterva_open_options *out, cv_error *err)
{
    static const caterva_open_options defaults = CATERVA_OPEN_INIT;
    CV_TRY(cv_options_copy(out, sizeof *out, options ? options : &defaults, "open options",
                           err));
    if (out->mode != CATERVA_MODE_READ && out->mode != CATERVA_MODE_WRITE)
        return cv_fail(err, CATERVA_EINVAL, -1, "open mode %d is neither READ nor WRITE",
                       (int)out->mode);
    if (out->threads < 0) return cv_fail(err, CATERVA_EINVAL, -1, "%d threads", out->threads);
    if (out->durability < CATERVA_DURABILITY_FULL ||
        out->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)out->durability);
    if (out->dirty_budget < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "a dirty budget of %lld bytes",
                       (long long)out->dirty_budget);
    CV_TRY(cv_array_check_cache(out->cache_bytes, err));
    CV_TRY(cv_array_check_compact(out->compact_percent, err));
    if (out->keep_bytes < -1)
        return cv_fail(err, CATERVA_EINVAL, -1, "a file of %lld bytes to keep",
                       (long long)out->keep_bytes);
    if (out->offset != 0 && out->mode == CATERVA_MODE_WRITE)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a frame at an offset in its file can be read only");
    return CV_OK;
}

/* ---- Stores ------------------------------------------------------------------ */

cv_status cv_array_open_session(const char *url, const caterva_remote_options *given,
                                cv_session **out, cv_error *err)
{
    caterva_remote_options remote = CATERVA_REMOTE_INIT;
    *out = NULL;
    if (given) CV_TRY(cv_options_copy(&remote, sizeof remote, given, "remote options", err));
    return cv_store_is_url(url) ? cv_store_http_begin(url, &remote, out, err) : CV_OK;
}

cv_status cv_array_open_remote(const char *url, const caterva_open_options *o, cv_store **out,
                               cv_error *err)
{
    cv_session *session;
    cv_watch watch;
    if (o->mode == CATERVA_MODE_WRITE) CV_TRY(cv_refuse_url(url, err));
    CV_TRY(cv_array_open_session(url, o->remote, &session, err));
    cv_watch_init(&watch, o->on_progress, o->context);
    cv_status status =
        cv_store_http_open(session, url, o->offset, o->on_progress ? &watch : NULL, out, err);
    cv_watch_destroy(&watch);
    cv_session_release(session); /* the store has it */
    return status;
}

enum { KEEP_BYTES = 16 << 20 };

static uint64_t bytes_to_keep(const caterva_open_options *o)
{
    if (o->keep_bytes < 0) return 0;
    return o->keep_bytes > 0 ? (uint64_t)o->keep_bytes : KEEP_BYTES;
}

/* Who is to hear of the handle's calls hears of the opening, where that may take long. */
static cv_status open_frame(cv_store *store, const caterva_open_options *o, cv_frame **out,
                            cv_error *err)
{
    cv_watch watch;
    cv_watch_init(&watch, o->on_progress, o->context);
    cv_watch *heard = store->is_far && o->on_progress ? &watch : NULL;
    store->watch = heard; /* until the opening is over */
    cv_status status = cv_frame_open(store, o->durability, o->unchecked != 0, out, err);
    if (status == CV_OK) (*out)->store->watch = NULL;
    cv_watch_destroy(&watch);
    return status;
}

cv_status cv_array_open_store(cv_store *store, const caterva_open_options *o,
                              caterva_array **out, cv_error *err)
{
    cv_frame *frame;
    cv_store_file_keep(store, bytes_to_keep(o));
    CV_TRY(open_frame(store, o, &frame, err));
    if (frame->current->meta.plain && o->mode == CATERVA_MODE_WRITE) {
        cv_frame_close(frame);
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame without the b2nd metalayer can be read only: "
                       "caterva_copy or `caterva convert` makes an n-d array of it");
    }
    CV_TRY(cv_array_new(frame, o->mode == CATERVA_MODE_WRITE, o->threads, out, err));
    (*out)->opened = *o;
    (*out)->opened.remote = NULL; /* the store has a copy */
    (*out)->compact_percent = o->compact_percent;
    (*out)->ahead.off = o->no_read_ahead != 0;
    if ((*out)->pending && o->dirty_budget > 0) (*out)->pending->budget = o->dirty_budget;
    cv_status status = cv_array_set_cache(*out, o->cache_bytes, err);
    if (status == CV_OK) status = cv_array_set_watch(*out, o->on_progress, o->context, err);
    if (status == CV_OK) frame->store->watch = (*out)->watch;
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
    }
    return status;
}
