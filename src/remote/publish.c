/* Room: remote. Publishing: checks a finished file, a sealed array or an archive, and uploads it; or
 * the files of a Zarr array or group.
 *
 *     check   the file is finished and sound; it must not change until it is sent
 *     look    at the URL: it has no object, or the one to replace
 *     send    one PUT or an upload in parts, refused by the server if the object changed
 *     verify  the end of the object, which contains the seal, by reading it back
 *
 * If an answer is lost, the request may have succeeded; then the next attempt is refused. So after
 * a refusal the object counts as ours if it has our bytes, but not the id of another write. */
#include "array/array.h"
#include "array/open.h"
#include "array/wings.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "frame/snapshot.h"
#include "remote/transfer.h"
#include "store/descriptors.h"
#include "store/file.h"
#include "store/memory.h"
#include "store/zarr.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <string.h>

typedef struct finished {
    cv_archive archive;     /* all zeros if the file is an array */
    caterva_array *array;   /* stays open, so that its bytes stay. NULL: an archive */
    cv_store *source;       /* borrowed; its frame object is bytes [0, size) of the file */
    uint64_t size, changed; /* `changed`: the file's time when the check began */
    uint64_t vouching;      /* size of the end, with checksums of all bytes before it */
} finished;

/* ---- Finished files ---------------------------------------------------------------------- */

static cv_status refuse_directory(const char *path, cv_error *err)
{
    if (cv_wings.tree && cv_wings.tree->is_tree(path))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s is a directory of arrays: pack it into one file first (caterva "
                       "pack, caterva_tree_pack)",
                       cv_show_path(path).text);
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is a directory: copy it to one file first (caterva repack "
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

/* Opens an array. The root of its seal is in the last bytes. */
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

/* ---- Soundness --------------------------------------------------------------------------- */

typedef struct soundness {
    cv_error first; /* code 0: no damage */
    cv_watch *watch;
} soundness;

static void on_damage(void *context, const caterva_damage *damage)
{
    soundness *s = context;
    if (s->first.code != CV_OK) return;
    (void)cv_fail(&s->first, damage->code, damage->position, "%s", damage->message);
}

/* Reports no progress, because nothing is sent yet, but lets the caller stop the call. */
static int on_progress(void *context, int64_t done, int64_t total)
{
    const soundness *s = context;
    (void)done, (void)total;
    return cv_watch_tick(s->watch, 0, NULL) != CV_OK;
}

static cv_status check_items(const finished *f, soundness *s, cv_error *err)
{
    caterva_verify_options o = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    o.on_damage = on_damage;
    o.context = s;
    if (s->watch) o.progress = (caterva_progress){.report = on_progress, .context = s};
    return caterva_verify(f->array, &o, &result, err);
}

/* Checks the whole file before anything is sent. Later changes are detected by the file's time. */
static cv_status check_sound(const char *path, finished *f,
                             const caterva_publish_options *options, cv_error *err)
{
    cv_watch watch;
    soundness s = {.first = {.code = CV_OK}};
    s.watch = cv_watch_open_fixed(&watch, &options->progress, (int64_t)f->size, NULL);
    f->changed = cv_store_file_changed(f->source);
    cv_status status = f->array ? check_items(f, &s, err)
                                : cv_wings.tree->archive_check(&f->archive, s.watch, err);
    cv_watch_destroy(&watch);
    CV_TRY(status);
    if (s.first.code == CV_OK) return CV_OK;
    return cv_fail(err, s.first.code, s.first.position,
                   "cannot publish %s: it is damaged: %.200s", cv_show_path(path).text,
                   s.first.message);
}

/* Checks, after the last byte was read, that the file has not changed since check_sound began. */
static cv_status check_unchanged(const finished *f, cv_error *err)
{
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

/* ---- The state file of an upload ----------------------------------------------------------
 * It allows another call or process to resume an upload in parts. It contains no credentials.
 *
 *     caterva upload 1
 *     FILE URL PART WRITE-ID   identify file and URL, the size of upload parts, and the object
 *     UPLOAD-ID                given by the server */

typedef struct upload_state {
    char file[CV_SHA256_HEX], url[CV_SHA256_HEX]; /* SHA-256 in hex */
    char part_size[24];                           /* decimal */
    char write_id[CV_WRITE_ID_SIZE];
    char upload_id[CV_UPLOAD_ID_SIZE];
} upload_state;

static const char first_line[] = "caterva upload 1\n";

enum { ROOM = sizeof first_line + sizeof(upload_state) + 8 };

static bool is_word(const char *text, size_t size, bool is_hex)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (is_hex ? !is_digit : (unsigned char)c <= 0x20 || (unsigned char)c >= 0x7f)
            return false;
    }
    return size > 0;
}

static bool take_word(const char **at, char end, char *out, size_t room)
{
    const char *to = strchr(*at, end);
    if (!to || (size_t)(to - *at) >= room) return false;
    memcpy(out, *at, (size_t)(to - *at));
    out[to - *at] = '\0';
    *at = to + 1;
    return true;
}

static bool parse_state(const char *text, upload_state *out)
{
    const char *at = text + sizeof first_line - 1;
    if (strncmp(text, first_line, sizeof first_line - 1) != 0) return false;
    if (!take_word(&at, ' ', out->file, sizeof out->file) ||
        !take_word(&at, ' ', out->url, sizeof out->url) ||
        !take_word(&at, ' ', out->part_size, sizeof out->part_size) ||
        !take_word(&at, '\n', out->write_id, sizeof out->write_id) ||
        !take_word(&at, '\n', out->upload_id, sizeof out->upload_id) || *at)
        return false;
    return strlen(out->file) == CV_SHA256_HEX - 1 && strlen(out->url) == CV_SHA256_HEX - 1 &&
           strlen(out->write_id) == CV_WRITE_ID_SIZE - 1 &&
           is_word(out->file, CV_SHA256_HEX - 1, true) &&
           is_word(out->url, CV_SHA256_HEX - 1, true) &&
           is_word(out->part_size, strlen(out->part_size), true) &&
           is_word(out->write_id, CV_WRITE_ID_SIZE - 1, true) &&
           is_word(out->upload_id, strlen(out->upload_id), false);
}

/* Reads the state file. *is_there false: it does not exist. CATERVA_EINVAL: not a state file. */
static cv_status read_state(const char *path, upload_state *out, bool *is_there,
                            cv_error *err)
{
    cv_file file;
    char text[ROOM];
    size_t done = 0;
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_READ, 0, &file);
    *is_there = error != ENOENT;
    if (error == ENOENT) return CV_OK;
    if (error) return cv_fail_open(err, error, path);
    error = cv_file_read(file, text, sizeof text - 1, 0, &done);
    cv_file_close(&file);
    if (error) return cv_fail_sys(err, error, "cannot read %s", cv_show_path(path).text);
    text[done] = '\0';
    if (strlen(text) == done && parse_state(text, out)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "%s is not the state file of an upload",
                   cv_show_path(path).text);
}

static cv_status write_state(const char *path, const upload_state *s, cv_error *err)
{
    cv_file file;
    char text[ROOM];
    int size = snprintf(text, sizeof text, "%s%s %s %s %s\n%s\n", first_line, s->file, s->url,
                        s->part_size, s->write_id, s->upload_id);
    int error = cv_open_file(cv_dir_here, path, CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW,
                             0600, &file);
    if (!error) {
        error = cv_file_write(file, text, (size_t)size, 0);
        cv_file_close(&file);
    }
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot write the upload's state to %s",
                       cv_show_path(path).text);
}

static void remove_state(const char *path) { (void)cv_dir_remove(cv_dir_here, path); }

/* ---- The upload -------------------------------------------------------------------------- */

enum {
    TAIL_BYTES = 64 * 1024,
    MOST_VOUCHING = 16 << 20,
    ASKING_BYTES = 1 << 20,
    CONDITION = CV_ETAG_SIZE + 32
};

typedef struct publishing {
    const finished *file;
    const char *url;
    const char *member; /* of the object, relative to the URL: "", or "/c/0" */
    const caterva_publish_options *options; /* complete */
    cv_watch *watch;
    cv_session *session;
    cv_remote_object *object;
    cv_sends sends;
    upload_state state; /* of this upload, or of the resumed one */
    bool has_state;     /* the state file exists */
    uint8_t *tail;      /* the end of the file */
    size_t tail_size;
    uint64_t part_size;
    bool is_there; /* the URL has an object; `found`: its version */
    cv_version found;
    char condition[CONDITION]; /* "": none */
} publishing;

/* ---- Looking at the URL ------------------------------------------------------------------ */

/* Reads an excerpt of the object at the URL. *is_there false: no object, or a hidden one. */
static cv_status look(publishing *u, const cv_range_request *request, cv_excerpt *excerpt,
                      cv_version *found, bool *is_there, cv_error *err)
{
    bool no_ranges;
    cv_remote_object *object;
    const char *url = u->options->read_url ? u->options->read_url : u->url;
    CV_TRY(cv_remote_object_new(u->session, url, u->member, &object, err));
    cv_status status =
        cv_excerpt_read(object, request, true, u->watch, excerpt, &no_ranges, err);
    if (status == CATERVA_EIO && no_ranges) /* 416: the object ends before the range */
        status = CATERVA_ECORRUPT;
    *found = object->version;
    *is_there = status != CATERVA_ENOTFOUND;
    cv_remote_object_free(object);
    return status;
}

/* Finds the object at the URL. An object that is empty or cannot be read in ranges also counts. */
static cv_status look_first(publishing *u, cv_error *err)
{
    cv_error why = {0};
    cv_excerpt excerpt = {0};
    const cv_range_request request = {.is_suffix = true, .end = 1};
    cv_status status = look(u, &request, &excerpt, &u->found, &u->is_there, &why);
    cv_free(excerpt.bytes);
    if (status == CV_OK || status == CATERVA_ENOTFOUND || status == CATERVA_ECORRUPT ||
        status == CATERVA_EUNSUPPORTED)
        return CV_OK;
    if (err) *err = why;
    return status;
}

/* Compares the object at the URL with the file. *is_others: the object has another write id. */
static cv_status compare(publishing *u, bool *is_same, bool *is_others, cv_error *err)
{
    bool is_there;
    cv_version found;
    cv_excerpt excerpt = {0};
    uint64_t first = u->file->size - u->tail_size;
    const cv_range_request request = {.first = first, .end = u->file->size};
    *is_same = *is_others = false;
    cv_status status = look(u, &request, &excerpt, &found, &is_there, err);
    if (status == CATERVA_ECORRUPT) return CV_OK; /* the object is shorter */
    CV_TRY(status);
    *is_same = found.size == u->file->size && excerpt.pos <= first &&
               excerpt.pos + excerpt.size == u->file->size &&
               memcmp(excerpt.bytes + (first - excerpt.pos), u->tail, u->tail_size) == 0;
    *is_others = *found.write_id && strcmp(found.write_id, u->state.write_id) != 0;
    cv_free(excerpt.bytes);
    return CV_OK;
}

static cv_status verify(publishing *u, caterva_publish_result *out, cv_error *err)
{
    bool is_same, is_others;
    cv_error why = {0};
    cv_status status = compare(u, &is_same, &is_others, &why);
    if (status == CATERVA_ESTOPPED) {
        if (err) *err = why;
        return status;
    }
    if (status != CV_OK)
        return cv_fail(err, status, -1,
                       "the object was sent, but cannot be read back: %.180s", why.message);
    out->verified = is_same && !is_others;
    if (out->verified) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s: the object was sent, but the URL now has other bytes: another client "
                   "replaced it, or the server damaged it",
                   u->object->name.text);
}

/* Decides the result of a write. After a lost answer and a refusal, the object may be ours. */
static cv_status settle(publishing *u, cv_status status, bool may_be_done,
                        const cv_error *why, cv_error *err)
{
    bool is_same = false, is_others = false;
    if (status != CV_OK && may_be_done && status != CATERVA_ESTOPPED)
        (void)compare(u, &is_same, &is_others, NULL);
    if (status == CV_OK || (is_same && !is_others)) return CV_OK;
    if (err) *err = *why;
    return status;
}

/* ---- Conditions -------------------------------------------------------------------------- */

/* Refuses another object at the URL. `how`: the difference, or the reason why it is not known. */
static cv_status refuse_other(const publishing *u, const char *how, cv_error *err)
{
    if (!u->options->if_match)
        return cv_fail(err, CATERVA_EEXIST, -1, "%s: an object exists there already, %.160s",
                       u->object->name.text, how);
    return cv_fail(err, CATERVA_EEXIST, -1,
                   "%s: the object to replace should be %.80s, but the URL has %.80s",
                   u->object->name.text, u->options->if_match,
                   !u->is_there     ? "no object"
                   : *u->found.etag ? u->found.etag
                                    : "one without an ETag");
}

static cv_status refuse_size(const publishing *u, cv_error *err)
{
    char how[96];
    (void)snprintf(how, sizeof how, "of %llu bytes instead of %llu",
                   (unsigned long long)u->found.size, (unsigned long long)u->file->size);
    return refuse_other(u, how, err);
}

/* Accepts an existing object, which must not be replaced, if it has the same bytes. Its last bytes
 * prove that, except for archives whose directory exceeds MOST_VOUCHING. */
static cv_status check_same(publishing *u, cv_error *err)
{
    bool is_same = false, is_others;
    char how[160];
    cv_error why = {0};
    cv_status status = CV_OK;
    if (!u->is_there) return refuse_other(u, "", err);
    if (u->found.size != UINT64_MAX && u->found.size != u->file->size)
        return refuse_size(u, err);
    bool is_vouched = u->file->vouching > 0 && u->file->vouching <= u->tail_size;
    if (is_vouched) status = compare(u, &is_same, &is_others, &why);
    if (is_same) return CV_OK;
    if (status == CATERVA_ESTOPPED || status == CATERVA_ENOMEM) {
        if (err) *err = why;
        return status;
    }
    if (status != CV_OK)
        (void)snprintf(how, sizeof how, "which cannot be compared: %.130s", why.message);
    return refuse_other(u,
                        status != CV_OK ? how
                        : is_vouched    ? "of the same size, but with other bytes"
                                        : "of the same size; only reading all of it would "
                                          "show whether the bytes are the same",
                        err);
}

/* Sets the condition of the upload. *is_done: the object exists already, with the same bytes. */
static cv_status decide(publishing *u, bool *is_done, cv_error *err)
{
    const char *etag = u->options->if_match ? u->options->if_match : u->found.etag;
    bool is_refused = u->options->if_match
                          ? !u->is_there || strcmp(u->found.etag, u->options->if_match) != 0
                          : u->is_there && !u->options->replace;
    *is_done = is_refused;
    if (is_refused) return check_same(u, err);
    if (!u->is_there)
        (void)snprintf(u->condition, sizeof u->condition, "If-None-Match: *");
    else if (cv_etag_is_strong(etag))
        (void)snprintf(u->condition, sizeof u->condition, "If-Match: %s", etag);
    return CV_OK;
}

/* ---- Sending ----------------------------------------------------------------------------- */

static const char *condition_of(const publishing *u)
{
    return *u->condition ? u->condition : NULL;
}

static const char *write_id_of(const publishing *u)
{
    return u->session->is_s3 ? u->state.write_id : NULL;
}

static cv_status put_body(publishing *u, const cv_send_body *body, cv_error *err)
{
    cv_error why = {0};
    cv_send send = {.object = u->object,
                    .method = "PUT",
                    .condition = condition_of(u),
                    .write_id = write_id_of(u),
                    .has_body = true,
                    .asks_first = !u->session->is_s3 && u->file->size > ASKING_BYTES,
                    .body = *body};
    cv_status status = cv_send_do(&send, &u->sends, u->watch, &why);
    status = settle(u, status, send.may_be_done, &why, err);
    cv_send_free(&send);
    return status;
}

/* Sends the file in one request. A small file is read into memory first, so that a change is
 * detected before anything is sent. */
static cv_status put(publishing *u, cv_error *err)
{
    enum { SMALL = 16 << 20 };
    const finished *f = u->file;
    cv_send_body body = {.source = f->source, .size = f->size};
    if (f->size > SMALL) {
        CV_TRY(put_body(u, &body, err));
        return check_unchanged(f, err);
    }
    uint8_t *bytes = cv_malloc((size_t)f->size);
    if (!bytes) return cv_fail_memory(err, (size_t)f->size, "bytes to send");
    body = (cv_send_body){.bytes = bytes, .size = f->size};
    cv_status status =
        cv_store_read(f->source, CV_FRAME_OBJECT, 0, bytes, (size_t)f->size, err);
    if (status == CV_OK) status = check_unchanged(f, err);
    if (status == CV_OK) status = put_body(u, &body, err);
    cv_free(bytes);
    return status;
}

static cv_status begin_upload(publishing *u, cv_upload *upload, cv_error *err)
{
    bool is_known = false;
    if (u->has_state) {
        CV_TRY(cv_upload_resume(upload, u->state.upload_id, u->watch, &is_known, err));
        if (is_known) return CV_OK;
        remove_state(u->options->resume);
        u->has_state = false;
    }
    CV_TRY(cv_upload_begin(upload, u->watch, err));
    if (!u->options->resume) return CV_OK;
    memcpy(u->state.upload_id, upload->upload_id, sizeof u->state.upload_id);
    CV_TRY(write_state(u->options->resume, &u->state, err));
    u->has_state = true;
    return CV_OK;
}

static cv_status send_upload(publishing *u, cv_upload *upload, cv_error *err)
{
    bool may_be_done;
    cv_error why = {0};
    CV_TRY(cv_upload_send(upload, u->watch, err));
    CV_TRY(check_unchanged(u->file, err));
    cv_status status =
        cv_upload_finish(upload, condition_of(u), u->watch, &may_be_done, &why);
    return settle(u, status, may_be_done, &why, err);
}

/* Uploads in parts. An upload that fails and cannot be resumed is aborted. */
static cv_status put_parts(publishing *u, caterva_publish_result *out, cv_error *err)
{
    cv_upload upload = {.object = u->object,
                        .sends = &u->sends,
                        .source = u->file->source,
                        .size = u->file->size,
                        .part_size = u->part_size,
                        .write_id = write_id_of(u)};
    cv_status status = cv_upload_init(&upload, err);
    if (status == CV_OK) status = begin_upload(u, &upload, err);
    if (status == CV_OK) status = send_upload(u, &upload, err);
    if (status != CV_OK && *upload.encoded_id && !u->has_state)
        cv_upload_abort(&upload, u->url, status == CATERVA_ESTOPPED);
    out->parts = upload.n;
    out->parts_kept = upload.n_kept;
    cv_upload_free(&upload);
    return status;
}

/* ---- Resuming ---------------------------------------------------------------------------- */

static cv_status read_tail(publishing *u, cv_error *err)
{
    uint64_t size = u->file->size, wanted = TAIL_BYTES;
    if (u->file->vouching > wanted && u->file->vouching <= MOST_VOUCHING)
        wanted = u->file->vouching;
    u->tail_size = (size_t)(size < wanted ? size : wanted);
    u->tail = cv_malloc(u->tail_size);
    if (!u->tail) return cv_fail_memory(err, u->tail_size, "the end of a file");
    return cv_store_read(u->file->source, CV_FRAME_OBJECT, size - u->tail_size, u->tail,
                         u->tail_size, err);
}

static void sum_up(const char *text, const void *bytes, size_t size, char out[CV_SHA256_HEX])
{
    uint8_t sum[CV_SHA256_SIZE];
    cv_sha256 sha;
    cv_sha256_begin(&sha);
    cv_sha256_add(&sha, text, strlen(text) + 1);
    if (size > 0) cv_sha256_add(&sha, bytes, size);
    cv_sha256_end(&sha, sum);
    cv_sha256_hex(sum, out);
}

/* Identifies the upload. The file's end, with the seal or checksums, stands for the whole file. */
static void identify(publishing *u)
{
    char size[24];
    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)u->file->size);
    sum_up(size, u->tail, u->tail_size, u->state.file);
    sum_up(u->url, NULL, 0, u->state.url);
    (void)snprintf(u->state.part_size, sizeof u->state.part_size, "%llu",
                   (unsigned long long)u->part_size);
}

/* Checks that a resumed upload has the same URL, file and part size (only URL if abandoned). */
static cv_status compare_states(const publishing *u, const upload_state *before,
                                cv_error *err)
{
    const char *path = u->options->resume;
    const upload_state *now = &u->state;
    if (strcmp(before->url, now->url) != 0)
        return cv_fail(
            err, CATERVA_EINVAL, -1,
            "%s is the state of an upload to another URL: give that URL to resume or "
            "abandon the upload",
            cv_show_path(path).text);
    if (u->options->abandon) return CV_OK;
    if (strcmp(before->file, now->file) != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s is the state of an upload of another file, or of this file before "
                       "it was changed: abandon that upload, then start again",
                       cv_show_path(path).text);
    if (strcmp(before->part_size, now->part_size) == 0) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is the state of an upload in parts of %s bytes, not of %s: resume it "
                   "with that size, or abandon it",
                   cv_show_path(path).text, before->part_size, now->part_size);
}

static void make_write_id(publishing *u)
{
    uint8_t id[(CV_WRITE_ID_SIZE - 1) / 2];
    cv_os_random(id, sizeof id);
    for (size_t i = 0; i < sizeof id; i++)
        (void)snprintf(u->state.write_id + 2 * i, 3, "%02x", id[i]);
}

static cv_status recall(publishing *u, cv_error *err)
{
    upload_state before;
    identify(u);
    make_write_id(u);
    if (!u->options->resume) return CV_OK;
    CV_TRY(read_state(u->options->resume, &before, &u->has_state, err));
    if (!u->has_state) return CV_OK;
    CV_TRY(compare_states(u, &before, err));
    u->state = before;
    return CV_OK;
}

/* Whether the upload to resume is already finished, because just its last answer was lost. */
static bool is_done_before(const publishing *u)
{
    return u->has_state && u->is_there && strcmp(u->found.write_id, u->state.write_id) == 0;
}

static cv_status abandon(publishing *u, cv_error *err)
{
    cv_upload upload = {.object = u->object, .sends = &u->sends};
    bool is_known;
    if (!u->has_state)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s does not exist",
                       cv_show_path(u->options->resume).text);
    CV_TRY(cv_upload_resume(&upload, u->state.upload_id, u->watch, &is_known, err));
    if (is_known) cv_upload_abort(&upload, u->url, false);
    remove_state(u->options->resume);
    return CV_OK;
}

static cv_status publish_file(publishing *u, caterva_publish_result *out, cv_error *err)
{
    bool is_done;
    CV_TRY(look_first(u, err));
    if (is_done_before(u)) return verify(u, out, err);
    CV_TRY(decide(u, &is_done, err));
    if (is_done) {
        out->was_there = out->verified = 1;
        return u->has_state ? abandon(u, err) : CV_OK;
    }
    CV_TRY(u->session->is_s3 && u->file->size > u->part_size ? put_parts(u, out, err)
                                                             : put(u, err));
    return verify(u, out, err);
}

/* Appends the member to the object's name in messages. */
static void name_member(const publishing *u)
{
    cv_shown_path *name = &u->object->name;
    size_t size = strlen(name->text);
    (void)snprintf(name->text + size, sizeof name->text - size, "%s", u->member);
}

static cv_status begin(publishing *u, cv_error *err)
{
    enum { PART = 8 << 20 };
    const caterva_publish_options *o = u->options;
    cv_sends_init(&u->sends);
    u->part_size =
        cv_upload_part_size(u->file->size, o->part_bytes ? (uint64_t)o->part_bytes : PART);
    CV_TRY(cv_remote_object_new(u->session, u->url, u->member, &u->object, err));
    name_member(u);
    if (!o->abandon) CV_TRY(read_tail(u, err));
    return recall(u, err);
}

/* Publishes one object. */
static cv_status publish(publishing *u, caterva_publish_result *out, cv_error *err)
{
    const caterva_publish_options *o = u->options;
    cv_status status = begin(u, err);
    if (status == CV_OK) status = o->abandon ? abandon(u, err) : publish_file(u, out, err);
    if (!o->abandon && status == CV_OK && u->has_state) remove_state(o->resume);
    if (!o->abandon) out->bytes = (int64_t)u->file->size;
    cv_remote_object_free(u->object);
    cv_sends_destroy(&u->sends);
    cv_free(u->tail);
    return status;
}

static void close_session(cv_session *session, caterva_publish_result *out)
{
    if (!session) return;
    out->requests = atomic_load(&session->requests);
    out->retried = atomic_load(&session->retried);
    cv_session_release(session);
}

static cv_status publish_alone(const finished *f, const char *url,
                               const caterva_publish_options *o, caterva_publish_result *out,
                               cv_error *err)
{
    cv_watch watch;
    publishing u = {.file = f, .url = url, .member = "", .options = o};
    u.watch = cv_watch_open(&watch, &o->progress, NULL);
    if (!o->abandon) cv_watch_expect(u.watch, (int64_t)f->size);
    cv_status status = cv_session_begin(u.url, o->remote, &u.session, err);
    if (status == CV_OK) status = publish(&u, out, err);
    close_session(u.session, out);
    return cv_watch_close(&watch, status);
}

/* ---- Zarr arrays and groups --------------------------------------------------------------
 * Each has several objects. All are checked before the first is sent. Then the shards are sent, and
 * then the metadata, those of the root last: without them readers find nothing. */

typedef struct node {
    char *path;   /* of the directory */
    char *member; /* of the object of metadata, relative to the URL: "/g/zarr.json" */
    char *shard;  /* of the shard; NULL: a group */
    uint64_t size, changed; /* of the shard, as in `finished` */
    cv_buffer meta;
} node;

typedef struct zarr_upload {
    const caterva_publish_options *options;
    char *url;   /* without slashes at its end */
    node *nodes; /* parents first */
    size_t n, room;
    cv_session *session;
    cv_watch *watch;
    caterva_publish_result *out;
} zarr_upload;

static char *join(const char *a, const char *b, const char *c, cv_error *err)
{
    size_t size = strlen(a) + strlen(b) + strlen(c) + 3;
    char *text = cv_malloc(size);
    if (text)
        (void)snprintf(text, size, "%s%s%s/%s", a, *b ? "/" : "", b, c);
    else
        (void)cv_fail_memory(err, size, "a path");
    return text;
}

static cv_status take_shard(const node *k, finished *f, cv_error *err)
{
    CV_TRY(take_array(k->path, f, err));
    uint64_t frame_size = f->size;
    CV_TRY(cv_store_size(f->source, CV_FRAME_OBJECT, &f->size, err));
    f->vouching += f->size - frame_size;
    return CV_OK;
}

static cv_status check_node(const zarr_upload *z, node *k, cv_error *err)
{
    finished f = {0};
    cv_status status = cv_zarr_read_meta(cv_dir_here, k->path, &k->meta, err);
    if (status == CV_OK && k->shard) status = take_shard(k, &f, err);
    if (status == CV_OK && k->shard) status = check_sound(k->path, &f, z->options, err);
    k->size = f.size;
    k->changed = f.changed;
    cv_array_free(f.array);
    return status;
}

static cv_status add_node(zarr_upload *z, const char *root, const char *name, cv_error *err)
{
    cv_zarr_name shard;
    node *grown = cv_grow(z->nodes, z->n, &z->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, z->room * sizeof *grown, "a list of objects");
    z->nodes = grown;
    node k = {.path = *name ? join(root, "", name, err) : cv_strdup(root)};
    cv_zarr_node kind = k.path ? cv_zarr_look(cv_dir_here, k.path, &shard) : CV_ZARR_NONE;
    bool is_array = kind == CV_ZARR_ARRAY;
    if (k.path && (is_array || kind == CV_ZARR_GROUP)) {
        k.member = join("", name, CV_ZARR_META, err);
        if (is_array) k.shard = join("", name, shard.text, err);
        z->nodes[z->n++] = k;
        return k.member && (k.shard || !is_array) ? CV_OK : CATERVA_ENOMEM;
    }
    cv_status status = !k.path                ? cv_fail_memory(err, strlen(root), "a path")
                       : kind == CV_ZARR_NONE ? CV_OK /* of the shard's path */
                                              : cv_zarr_frame_path(k.path, &k.member, err);
    cv_free(k.path);
    return status;
}

static cv_status find_nodes(zarr_upload *z, const char *root, cv_error *err)
{
    cv_dir dir;
    cv_buffer paths = {0};
    int error = cv_open_dir(cv_dir_here, root, 0, &dir);
    if (error) return cv_fail_open(err, error, root);
    cv_status status = cv_zarr_list(dir, &paths, err);
    cv_dir_close(&dir);
    for (size_t at = 0; status == CV_OK && at < paths.size;) {
        const char *name = (const char *)paths.data + at;
        status = add_node(z, root, name, err);
        at += strlen(name) + 1;
    }
    cv_buffer_free(&paths);
    return status;
}

static cv_status send_object(zarr_upload *z, const finished *f, const char *member,
                             cv_error *err)
{
    caterva_publish_result one = CATERVA_PUBLISH_RESULT_INIT;
    publishing u = {.file = f,
                    .url = z->url,
                    .member = member,
                    .options = z->options,
                    .watch = z->watch,
                    .session = z->session};
    CV_TRY(publish(&u, &one, err));
    z->out->bytes += one.bytes;
    z->out->parts += one.parts;
    z->out->verified = z->out->verified && one.verified;
    z->out->was_there = z->out->was_there && one.was_there;
    return CV_OK;
}

static cv_status send_shard(zarr_upload *z, const node *k, cv_error *err)
{
    finished f = {0};
    cv_status status = take_shard(k, &f, err);
    f.changed = k->changed;
    if (status == CV_OK) status = send_object(z, &f, k->shard, err);
    cv_array_free(f.array);
    return status;
}

static cv_status send_meta(zarr_upload *z, const node *k, cv_error *err)
{
    finished f = {.size = k->meta.size, .vouching = k->meta.size};
    CV_TRY(cv_store_memory_borrow(k->meta.data, k->meta.size, &f.source, err));
    cv_status status = send_object(z, &f, k->member, err);
    cv_store_close(f.source);
    return status;
}

static cv_status send_all(zarr_upload *z, cv_error *err)
{
    CV_TRY(cv_session_begin(z->url, z->options->remote, &z->session, err));
    z->out->verified = z->out->was_there = 1;
    for (size_t i = 0; i < z->n; i++)
        cv_watch_expect(z->watch, (int64_t)(z->nodes[i].size + z->nodes[i].meta.size));
    for (size_t i = 0; i < z->n; i++)
        if (z->nodes[i].shard) CV_TRY(send_shard(z, &z->nodes[i], err));
    for (size_t i = z->n; i > 0; i--) CV_TRY(send_meta(z, &z->nodes[i - 1], err));
    return CV_OK;
}

static cv_status publish_zarr(const char *path, const char *url,
                              const caterva_publish_options *o, caterva_publish_result *out,
                              cv_error *err)
{
    cv_watch watch;
    zarr_upload z = {.options = o, .out = out};
    CV_TRY(cv_strip_slashes(url, &z.url, err));
    z.watch = cv_watch_open(&watch, &o->progress, NULL);
    cv_status status = find_nodes(&z, path, err);
    for (size_t i = 0; i < z.n && status == CV_OK; i++)
        status = check_node(&z, &z.nodes[i], err);
    if (status == CV_OK) status = send_all(&z, err);
    if (status != CV_OK) out->verified = out->was_there = 0;
    for (size_t i = 0; i < z.n; i++) {
        cv_free(z.nodes[i].path);
        cv_free(z.nodes[i].member);
        cv_free(z.nodes[i].shard);
        cv_buffer_free(&z.nodes[i].meta);
    }
    cv_free(z.nodes);
    cv_free(z.url);
    close_session(z.session, out);
    return cv_watch_close(&watch, status);
}

/* Sets *out to the name ".x.zarr-XXXXXX" beside the file or tree `path`. Owned: cv_free. */
static cv_status name_copy(const char *path, char **out, cv_error *err)
{
    char *file, temp[CV_OS_TEMP_NAME];
    size_t size = strlen(path);
    if (cv_array_is_leaf_url(path)) (void)cv_tree_url_key(path, &size);
    char *whole = cv_strndup(path, size);
    if (!whole) return cv_fail_memory(err, size, "a path");
    cv_status status = cv_strip_slashes(whole, &file, err);
    cv_free(whole);
    CV_TRY(status);
    const char *slash = strrchr(file, '/');
    size_t parent = slash ? (size_t)(slash + 1 - file) : 0;
    cv_os_temp_name(file + parent, "zarr", temp);
    *out = cv_malloc(parent + sizeof temp);
    if (*out) (void)snprintf(*out, parent + sizeof temp, "%.*s%s", (int)parent, file, temp);
    cv_free(file);
    return *out ? CV_OK : cv_fail_memory(err, size, "a path");
}

static cv_status copy_array(const char *path, const char *to,
                            const caterva_progress *progress, cv_error *err)
{
    caterva_array *array;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options o = CATERVA_COPY_INIT;
    create.durability = CATERVA_DURABILITY_NONE;
    o.create = &create;
    o.zarr = 1;
    o.progress = *progress;
    CV_TRY(caterva_open(path, NULL, &array, err));
    cv_status status = caterva_copy(array, to, &o, NULL, err);
    caterva_discard(array);
    return status;
}

/* Reports no progress while the copy is made, but lets the caller stop the call. */
static cv_status make_copy(const char *path, const char *to, const caterva_publish_options *o,
                           cv_error *err)
{
    cv_watch watch;
    soundness s = {.first = {.code = CV_OK}};
    caterva_progress progress = {.report = on_progress, .context = &s};
    bool is_tree = cv_wings.tree && cv_wings.tree->is_tree(path);
    s.watch = cv_watch_open_fixed(&watch, &o->progress, 1, NULL);
    cv_status status = is_tree ? cv_wings.tree->pack_for_zarr(path, to, &progress, err)
                               : copy_array(path, to, &progress, err);
    cv_watch_destroy(&watch);
    return status;
}

static cv_status publish_copy(const char *path, const char *url,
                              const caterva_publish_options *o, caterva_publish_result *out,
                              cv_error *err)
{
    char *copy;
    CV_TRY(name_copy(path, &copy, err));
    cv_status status = make_copy(path, copy, o, err);
    if (status == CV_OK) {
        status = publish_zarr(copy, url, o, out, err);
        (void)caterva_delete(copy, NULL, NULL);
    }
    cv_free(copy);
    return status;
}

static bool is_zarr(const char *path)
{
    cv_zarr_name shard;
    cv_zarr_node kind = cv_zarr_look(cv_dir_here, path, &shard);
    return kind == CV_ZARR_ARRAY || kind == CV_ZARR_GROUP;
}

/* ---- The call ---------------------------------------------------------------------------- */

static cv_status check_parts(int64_t size, cv_error *err)
{
    const int64_t least = 5 << 20, most = (int64_t)5 << 30;
    if (size == 0 || (size >= least && size <= most)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "part_bytes is %lld, outside of %lld to %lld",
                   (long long)size, (long long)least, (long long)most);
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
                   "if_match is not an ETag: include the quotes, as servers send them");
}

/* Refuses an option that would have no effect, because the caller relies on it. */
static cv_status check_resume(const char *url, const char *path, cv_error *err)
{
    if (!path || cv_url_scheme(url) == CV_SCHEME_S3) return CV_OK;
    return cv_fail(
        err, CATERVA_EINVAL, -1,
        "resume requires an s3:// URL: a web server receives the file in one request");
}

static cv_status check_zarr(const caterva_publish_options *o, cv_error *err)
{
    if (!o->if_match && !o->resume && !o->read_url) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "if_match, resume and read_url are for one object, but a Zarr array has "
                   "several");
}

static cv_status check_options(const char *url, const caterva_publish_options *o,
                               cv_error *err)
{
    CV_TRY(cv_progress_check(&o->progress, err));
    CV_TRY(check_resume(url, o->resume, err));
    CV_TRY(check_parts(o->part_bytes, err));
    CV_TRY(check_etag(o->if_match, err));
    if (o->abandon && !o->resume)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "abandon requires the state file of the upload (resume)");
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
                       "only files can be published: copy the array to a file first");
    if (cv_is_url(url)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is not a URL (http://..., https://... or s3://BUCKET/KEY)",
                   cv_show_path(url).text);
}

caterva_status caterva_publish(const char *path, const char *url,
                               const caterva_publish_options *options,
                               caterva_publish_result *result, caterva_error *err)
{
    caterva_publish_options o;
    caterva_remote_options remote;
    caterva_publish_result out = CATERVA_PUBLISH_RESULT_INIT;
    CV_TRY(check_names(path, url, err));
    if (result) CV_TRY(cv_output_check(result, sizeof *result, "publish result", err));
    CV_TRY(cv_options_read(&o, sizeof o, options, "publish options", err));
    if (o.remote) {
        CV_TRY(cv_options_copy(&remote, sizeof remote, o.remote, "remote options", err));
        o.remote = &remote;
    }
    CV_TRY(check_options(url, &o, err));
    finished f = {0};
    bool zarr = !o.abandon && (o.zarr || is_zarr(path));
    cv_status status = zarr ? check_zarr(&o, err) : CV_OK;
    if (status == CV_OK)
        status = zarr
                     ? (is_zarr(path) ? publish_zarr : publish_copy)(path, url, &o, &out, err)
                 : o.abandon ? CV_OK
                             : take(path, &f, err);
    if (status == CV_OK && !o.abandon && !zarr) status = check_sound(path, &f, &o, err);
    if (status == CV_OK && !zarr) status = publish_alone(&f, url, &o, &out, err);
    if (f.archive.tree) cv_wings.tree->archive_close(&f.archive);
    cv_array_free(f.array);
    if (result) cv_output_fill(result, &out, sizeof out);
    return status;
}
