/* Room: array. Files that are finished go to a server: which ones are, and that they stay as
 * they are while they are sent. How that is done is for store/http_publish.c. */
#include "array/array.h"
#include "array/wings.h"
#include "base/os_dir.h"
#include "frame/snapshot.h"
#include "remote/remote.h"
#include "remote/upload.h"
#include "remote/url.h"
#include "store/file.h"

#include <caterva_remote.h>
#include <caterva_upkeep.h>
#include <string.h>

/* What is published. */
typedef struct finished {
    cv_archive archive;     /* or */
    caterva_array *array;   /* open for reading: what is committed stays while it is */
    cv_store *source;       /* borrowed */
    uint64_t size, changed; /* the latter: when, before it was looked at */
    uint64_t vouching;      /* last bytes that have checksums of all others */
} finished;

/* ---- Which files ---------------------------------------------------------------------- */

static cv_status refuse_directory(const char *path, cv_error *err)
{
    if (cv_wings.tree && cv_wings.tree->is_tree(path))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s is a directory of arrays: pack it into one file first (caterva "
                       "pack, caterva_tree_pack)",
                       cv_show_path(path).text);
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is a directory: make one file of it first (caterva repack "
                   "--contiguous, caterva_copy)",
                   cv_show_path(path).text);
}

static cv_status check_array(const char *path, const finished *f, cv_error *err)
{
    const cv_shown_path shown = cv_show_path(path);
    if (f->source->has_chunk_objects) return refuse_directory(path, err);
    if (cv_store_has_writer(f->source))
        return cv_fail(err, CATERVA_EBUSY, -1, "%s is open for writing", shown.text);
    if (f->array->snapshot->seal == CV_SEAL_WHOLE) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is not sealed: seal it first (caterva seal, caterva_seal)",
                   shown.text);
}

/* The root of the seal is in the last bytes. */
static cv_status take_array(const char *path, finished *f, cv_error *err)
{
    enum { ROOT = 256 };
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.cache_bytes = -1;
    o.keep_bytes = -1;
    o.no_read_ahead = 1;
    CV_TRY(caterva_open(path, &o, &f->array, err));
    f->source = f->array->frame->store;
    f->size = f->array->snapshot->header.frame_size;
    f->vouching = f->size < ROOT ? f->size : ROOT;
    return check_array(path, f, err);
}

static cv_status take(const char *path, finished *f, cv_error *err)
{
    cv_file_info info;
    cv_error why = {0};
    bool is_known = cv_dir_get_info(cv_dir_here, path, &info) == 0;
    if (is_known && info.kind == CV_KIND_DIRECTORY) return refuse_directory(path, err);
    cv_status status = is_known && info.kind == CV_KIND_FILE && cv_wings.tree
                           ? cv_wings.tree->archive_open(path, &f->archive, &why)
                           : CATERVA_EUNSUPPORTED;
    if (status == CV_OK) {
        f->source = f->archive.store;
        f->size = f->archive.size;
        f->vouching = f->archive.vouching;
        return CV_OK;
    }
    if (status == CATERVA_ECORRUPT) {
        if (err) *err = why;
        return status;
    }
    return take_array(path, f, err);
}

static void give_back(finished *f)
{
    if (f->archive.tree) cv_wings.tree->archive_close(&f->archive);
    cv_array_free(f->array);
}

/* ---- That they are sound ------------------------------------------------------------- */

/* Checking them, and the first thing that is wrong. */
typedef struct soundness {
    const caterva_publish_options *options;
    cv_error first; /* code 0: nothing */
    uint64_t size;
} soundness;

static void on_damage(void *context, const caterva_damage *damage)
{
    soundness *s = context;
    if (s->first.code != CV_OK) return;
    (void)cv_fail(&s->first, damage->code, damage->position, "%s", damage->message);
}

/* Nothing is sent yet: who waits may stop, and is told so. */
static int on_progress(void *context, int64_t done, int64_t total)
{
    const soundness *s = context;
    (void)done, (void)total;
    if (!s->options->on_progress) return 0;
    return s->options->on_progress(s->options->context, 0, (int64_t)s->size);
}

static cv_status check_items(const finished *f, soundness *s, cv_error *err)
{
    caterva_verify_options o = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    o.on_damage = on_damage;
    o.on_progress = on_progress;
    o.context = s;
    return caterva_verify(f->array, &o, &result, err);
}

/* Before anything is sent: what readers would be told of afterwards, or never. A file that is
 * changed from now on is noticed by its time. */
static cv_status check_sound(const char *path, finished *f,
                             const caterva_publish_options *options, cv_error *err)
{
    soundness s = {.options = options, .first = {.code = CV_OK}, .size = f->size};
    f->changed = cv_store_file_changed(f->source);
    CV_TRY(f->array ? check_items(f, &s, err)
                    : cv_wings.tree->archive_check(&f->archive, on_progress, &s, err));
    if (s.first.code == CV_OK) return CV_OK;
    return cv_fail(err, s.first.code, s.first.position,
                   "%s is not published, it is damaged: %.200s", cv_show_path(path).text,
                   s.first.message);
}

static cv_status check_same(void *context, cv_error *err)
{
    const finished *f = context;
    cv_snapshot *now = NULL;
    if (cv_store_file_changed(f->source) != f->changed)
        return cv_fail(err, CATERVA_EBUSY, -1, "the file was changed while it was sent");
    if (!f->array) return CV_OK; /* an archive never changes in place */
    const cv_snapshot *then = f->array->snapshot;
    cv_status status = cv_snapshot_load(f->source, false, &now, NULL);
    bool is_same = status == CV_OK && now->header.frame_size == then->header.frame_size &&
                   cv_snapshot_name(now) == cv_snapshot_name(then);
    cv_snapshot_release(now);
    if (is_same) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1, "the array was changed while it was sent");
}

/* ---- The call ------------------------------------------------------------------------- */

static cv_status check_parts(int64_t size, cv_error *err)
{
    const int64_t least = 5 << 20, most = (int64_t)5 << 30;
    if (size == 0 || (size >= least && size <= most)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "part_bytes is %lld: it lies between %lld and %lld", (long long)size,
                   (long long)least, (long long)most);
}

static cv_status check_etag(const char *etag, cv_error *err)
{
    enum { MOST = 150 };
    if (!etag) return CV_OK;
    size_t size = strlen(etag);
    bool is_quoted = size >= 2 && size <= MOST && etag[0] == '"' && etag[size - 1] == '"';
    for (size_t i = 0; i < size && is_quoted; i++)
        is_quoted = (unsigned char)etag[i] > 0x20 && (unsigned char)etag[i] < 0x7f;
    if (is_quoted) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "if_match is no ETag: it stands between quotes, as servers say it");
}

/* What would have no effect is not taken: who asks for it counts on it. */
static cv_status check_resume(const char *url, const char *path, cv_error *err)
{
    if (!path || cv_url_scheme(url) == CV_SCHEME_S3) return CV_OK;
    return cv_fail(
        err, CATERVA_EINVAL, -1,
        "resume is for uploads in parts, to s3://: a web server takes one request");
}

static cv_status check_options(const char *url, const caterva_publish_options *o,
                               cv_error *err)
{
    CV_TRY(check_resume(url, o->resume, err));
    CV_TRY(check_parts(o->part_bytes, err));
    CV_TRY(check_etag(o->if_match, err));
    if (o->abandon && !o->resume)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "abandon needs the file that remembers the upload (resume)");
    if (o->resume && !*o->resume)
        return cv_fail(err, CATERVA_EINVAL, -1, "the path of `resume` is empty");
    if (!o->read_url) return CV_OK;
    bool is_web = strncmp(o->read_url, "http", 4) == 0;
    if (is_web && cv_is_url(o->read_url)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "read_url is neither http:// nor https://");
}

static cv_status check_names(const char *path, const char *url, cv_error *err)
{
    if (!path || !url) return cv_fail(err, CATERVA_EINVAL, -1, "path or url is NULL");
    if (!*path) return cv_fail(err, CATERVA_EINVAL, -1, "the path is empty");
    if (cv_is_url(path))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "what is published is a file: copy the array to one first");
    if (cv_is_url(url)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is no URL: http://..., https://... or s3://BUCKET/KEY",
                   cv_show_path(url).text);
}

static cv_status run(const cv_publication *p, const caterva_publish_options *o,
                     caterva_publish_result *out, cv_error *err)
{
    cv_watch watch;
    cv_watch_init(&watch, o->on_progress, o->context);
    cv_watch_begin(&watch);
    if (!o->abandon) cv_watch_expect(&watch, (int64_t)p->size);
    cv_status status =
        o->abandon ? cv_http_abandon(p, &watch, err) : cv_http_publish(p, &watch, out, err);
    cv_watch_end(&watch, status == CV_OK && !o->abandon);
    cv_watch_destroy(&watch);
    return status;
}

static cv_status publish(const char *path, const char *url, const caterva_publish_options *o,
                         caterva_publish_result *out, cv_error *err)
{
    enum { PART = 8 << 20 };
    finished f = {0};
    cv_status status = o->abandon ? CV_OK : take(path, &f, err);
    if (status == CV_OK && !o->abandon) status = check_sound(path, &f, o, err);
    const cv_publication p = {.source = f.source,
                              .size = f.size,
                              .vouching = f.vouching,
                              .url = url,
                              .read_url = o->read_url,
                              .replaces = o->replace != 0,
                              .if_match = o->if_match,
                              .part_size = o->part_bytes ? (uint64_t)o->part_bytes : PART,
                              .state_path = o->resume,
                              .remote = o->remote,
                              .check = check_same,
                              .context = &f};
    if (status == CV_OK) status = run(&p, o, out, err);
    give_back(&f);
    return status;
}

caterva_status caterva_publish(const char *path, const char *url,
                               const caterva_publish_options *options,
                               caterva_publish_result *result, caterva_error *err)
{
    static const caterva_publish_options defaults = CATERVA_PUBLISH_INIT;
    caterva_publish_options o;
    caterva_remote_options remote;
    caterva_publish_result out = CATERVA_PUBLISH_RESULT_INIT;
    CV_TRY(check_names(path, url, err));
    if (result) CV_TRY(cv_output_check(result, sizeof *result, "publish result", err));
    CV_TRY(
        cv_options_copy(&o, sizeof o, options ? options : &defaults, "publish options", err));
    if (o.remote) {
        CV_TRY(cv_options_copy(&remote, sizeof remote, o.remote, "remote options", err));
        o.remote = &remote;
    }
    CV_TRY(check_options(url, &o, err));
    cv_status status = publish(path, url, &o, &out, err);
    if (result) cv_output_fill(result, &out, sizeof out);
    return status;
}
