/* Room: store. Publishing, step by step:
 *
 *     look    what stands at the URL; nothing, or what is to be replaced
 *     send    one PUT, or parts that are put together: on the condition that it still does
 *     verify  the end of the object, which holds the seal, read back
 *
 * A request whose answer was lost may have done its work, and the next attempt is then
 * refused by the object that it made: what stands there is looked at before that is believed.
 * It is ours when it has our write id, or, on servers that keep none, our bytes. */
#include "store/http_publish.h"

#include "base/heap.h"
#include "base/os.h"
#include "store/http_parts.h"
#include "store/http_piece.h"
#include "store/http_read.h"
#include "store/refusals.h"

#include <stdio.h>
#include <string.h>

enum {
    TAIL_BYTES = 64 * 1024,
    MOST_VOUCHING = 16 << 20,
    ASKING_BYTES = 1 << 20,
    CONDITION = CV_ETAG_SIZE + 32
};

typedef struct publishing {
    const cv_publication *p;
    cv_watch *watch;
    cv_session *session;
    cv_http_object *object;
    cv_sends sends;
    cv_upload_state state; /* name and write id; the upload's id when there is one */
    bool has_state;        /* a file remembers it */
    uint8_t *tail;         /* the end of the source */
    size_t tail_size;
    uint64_t part_size;
    bool abandons; /* there is no source */
    bool is_there; /* something, when it was looked */
    cv_identity found;
    char condition[CONDITION]; /* "": none */
} publishing;

/* ---- Looking -------------------------------------------------------------------------- */

/* Reads the end of what is there now. *is_there false: nothing, or nothing that may be seen. */
static cv_status look(publishing *u, const cv_ask *ask, cv_http_piece *piece,
                      cv_identity *found, bool *is_there, cv_error *err)
{
    bool no_ranges;
    cv_http_object *object;
    const char *url = u->p->read_url ? u->p->read_url : u->p->url;
    CV_TRY(cv_http_object_new(u->session, url, "", &object, err));
    cv_status status =
        cv_http_read_piece(object, ask, true, u->watch, piece, &no_ranges, err);
    *found = object->identity;
    *is_there = status != CATERVA_ENOTFOUND;
    cv_http_object_free(object);
    return status;
}

/* Something that cannot be read as an array is something, too. */
static cv_status look_first(publishing *u, cv_error *err)
{
    cv_error why = {0};
    cv_http_piece piece = {0};
    const cv_ask ask = {.is_suffix = true, .end = 1};
    cv_status status = look(u, &ask, &piece, &u->found, &u->is_there, &why);
    cv_free(piece.bytes);
    if (status == CV_OK || status == CATERVA_ENOTFOUND || status == CATERVA_ECORRUPT ||
        status == CATERVA_EUNSUPPORTED)
        return CV_OK;
    if (err) *err = why;
    return status;
}

/* Whether what is there has the bytes that were to be published, by its size and its end, and
 * whether somebody else has put it there. */
static cv_status compare(publishing *u, bool *is_same, bool *is_others, cv_error *err)
{
    bool is_there;
    cv_identity found;
    cv_http_piece piece = {0};
    uint64_t first = u->p->size - u->tail_size;
    const cv_ask ask = {.first = first, .end = u->p->size};
    *is_same = *is_others = false;
    cv_status status = look(u, &ask, &piece, &found, &is_there, err);
    if (status == CATERVA_ECORRUPT) return CV_OK; /* it is shorter */
    CV_TRY(status);
    *is_same = found.size == u->p->size && piece.pos <= first &&
               piece.pos + piece.size == u->p->size &&
               memcmp(piece.bytes + (first - piece.pos), u->tail, u->tail_size) == 0;
    *is_others = *found.write_id && strcmp(found.write_id, u->state.write_id) != 0;
    cv_free(piece.bytes);
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
        return cv_fail(err, status, -1, "it was sent, but cannot be read back: %.180s",
                       why.message);
    out->verified = is_same && !is_others;
    if (out->verified) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s: it was sent, but what is there now is something else: somebody "
                   "replaced it, or the server has damaged it",
                   u->object->shown);
}

/* After a refusal, where an answer was lost before: was it ours? */
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

/* ---- Conditions ----------------------------------------------------------------------- */

/* `how`: in which way what is there differs, or why that is not known. */
static cv_status refuse_other(const publishing *u, const char *how, cv_error *err)
{
    if (!u->p->if_match)
        return cv_fail(err, CATERVA_EEXIST, -1, "%s: something is there already, %.160s",
                       u->object->shown, how);
    return cv_fail(err, CATERVA_EEXIST, -1,
                   "%s: what is there is not %.80s, which was to be "
                   "replaced, but %.80s",
                   u->object->shown, u->p->if_match,
                   !u->is_there     ? "nothing"
                   : *u->found.etag ? u->found.etag
                                    : "unnamed");
}

static cv_status refuse_size(const publishing *u, cv_error *err)
{
    char how[96];
    (void)snprintf(how, sizeof how, "of %llu bytes, and not these %llu",
                   (unsigned long long)u->found.size, (unsigned long long)u->p->size);
    return refuse_other(u, how, err);
}

/* What may not be replaced need not be, if it is the same. Archives with a long directory do not
 * tell by a few bytes. */
static cv_status check_same(publishing *u, cv_error *err)
{
    bool is_same = false, is_others;
    char how[160];
    cv_error why = {0};
    cv_status status = CV_OK;
    if (!u->is_there) return refuse_other(u, "", err);
    if (u->found.size != UINT64_MAX && u->found.size != u->p->size)
        return refuse_size(u, err);
    bool is_vouched = u->p->vouching > 0 && u->p->vouching <= u->tail_size;
    if (is_vouched) status = compare(u, &is_same, &is_others, &why);
    if (is_same) return CV_OK;
    if (status == CATERVA_ESTOPPED || status == CATERVA_ENOMEM) {
        if (err) *err = why;
        return status;
    }
    if (status != CV_OK)
        (void)snprintf(how, sizeof how, "and cannot be compared: %.130s", why.message);
    return refuse_other(u,
                        status != CV_OK ? how
                        : is_vouched ? "of as many bytes, but not the same ones"
                                     : "of as many bytes; whether they are the same is not "
                                       "known without reading all of them",
                        err);
}

/* What must still be true when the object appears. *is_done: it is there, with the same bytes. */
static cv_status decide(publishing *u, bool *is_done, cv_error *err)
{
    const char *etag = u->p->if_match ? u->p->if_match : u->found.etag;
    bool is_refused = u->p->if_match
                          ? !u->is_there || strcmp(u->found.etag, u->p->if_match) != 0
                          : u->is_there && !u->p->replaces;
    *is_done = is_refused;
    if (is_refused) return check_same(u, err);
    if (!u->is_there)
        (void)snprintf(u->condition, sizeof u->condition, "If-None-Match: *");
    else if (cv_etag_is_strong(etag))
        (void)snprintf(u->condition, sizeof u->condition, "If-Match: %s", etag);
    return CV_OK;
}

/* ---- Sending whole -------------------------------------------------------------------- */

static const char *condition_of(const publishing *u)
{
    return *u->condition ? u->condition : NULL;
}

static const char *write_id_of(const publishing *u)
{
    return u->session->is_s3 ? u->state.write_id : NULL;
}

/* Few bytes are read first, so that it is known before they are sent that they are right. */
static cv_status take_few(const publishing *u, cv_send_body *body, uint8_t **owned,
                          cv_error *err)
{
    enum { FEW = 16 << 20 };
    const cv_publication *p = u->p;
    *body = (cv_send_body){.source = p->source, .size = p->size};
    *owned = NULL;
    if (p->size > FEW) return CV_OK;
    *owned = cv_malloc((size_t)p->size);
    if (!*owned) return cv_fail_memory(err, (size_t)p->size, "bytes to send");
    CV_TRY(cv_store_read(p->source, CV_FRAME_OBJECT, 0, *owned, (size_t)p->size, err));
    *body = (cv_send_body){.bytes = *owned, .size = p->size};
    return p->check(p->context, err);
}

static cv_status put_body(publishing *u, const cv_send_body *body, cv_error *err)
{
    cv_error why = {0};
    cv_send send = {.object = u->object,
                    .method = "PUT",
                    .condition = condition_of(u),
                    .write_id = write_id_of(u),
                    .has_body = true,
                    .asks_first = !u->session->is_s3 && u->p->size > ASKING_BYTES,
                    .body = *body};
    cv_status status = cv_send_do(&send, &u->sends, u->watch, &why);
    if (status == CV_OK && !cv_send_is_good(&send)) status = cv_send_refused(&send, &why);
    status = settle(u, status, send.may_be_done, &why, err);
    cv_send_free(&send);
    return status == CV_OK && body->source ? u->p->check(u->p->context, err) : status;
}

static cv_status put(publishing *u, cv_error *err)
{
    cv_send_body body;
    uint8_t *owned;
    cv_status status = take_few(u, &body, &owned, err);
    if (status == CV_OK) status = put_body(u, &body, err);
    cv_free(owned);
    return status;
}

/* ---- Sending in parts ----------------------------------------------------------------- */

static cv_status begin_parts(publishing *u, cv_parts *parts, cv_error *err)
{
    bool is_known = false;
    if (u->has_state) {
        CV_TRY(cv_parts_resume(parts, u->state.upload_id, u->watch, &is_known, err));
        if (is_known) return CV_OK;
        cv_upload_state_remove(u->p->state_path);
        u->has_state = false;
    }
    CV_TRY(cv_parts_begin(parts, u->watch, err));
    if (!u->p->state_path) return CV_OK;
    memcpy(u->state.upload_id, parts->upload_id, sizeof u->state.upload_id);
    CV_TRY(cv_upload_state_write(u->p->state_path, &u->state, err));
    u->has_state = true;
    return CV_OK;
}

static cv_status send_parts(publishing *u, cv_parts *parts, cv_error *err)
{
    bool may_be_done;
    cv_error why = {0};
    CV_TRY(cv_parts_send(parts, u->watch, err));
    CV_TRY(u->p->check(u->p->context, err));
    cv_status status = cv_parts_finish(parts, condition_of(u), u->watch, &may_be_done, &why);
    return settle(u, status, may_be_done, &why, err);
}

/* What cannot be resumed is not left behind. */
static cv_status put_parts(publishing *u, caterva_publish_result *out, cv_error *err)
{
    cv_parts parts = {.object = u->object,
                      .sends = &u->sends,
                      .source = u->p->source,
                      .size = u->p->size,
                      .part_size = u->part_size,
                      .write_id = write_id_of(u)};
    cv_status status = cv_parts_init(&parts, err);
    if (status == CV_OK) status = begin_parts(u, &parts, err);
    if (status == CV_OK) status = send_parts(u, &parts, err);
    if (status != CV_OK && *parts.encoded_id && !u->has_state)
        cv_parts_abort(&parts, u->p->url, status == CATERVA_ESTOPPED);
    out->parts = parts.n;
    out->parts_kept = parts.n_kept;
    cv_parts_free(&parts);
    return status;
}

/* ---- All of it ------------------------------------------------------------------------ */

static cv_status read_tail(publishing *u, cv_error *err)
{
    uint64_t size = u->p->size, wanted = TAIL_BYTES;
    if (u->p->vouching > wanted && u->p->vouching <= MOST_VOUCHING) wanted = u->p->vouching;
    u->tail_size = (size_t)(size < wanted ? size : wanted);
    u->tail = cv_malloc(u->tail_size);
    if (!u->tail) return cv_fail_memory(err, u->tail_size, "the end of a file");
    return cv_store_read(u->p->source, CV_FRAME_OBJECT, size - u->tail_size, u->tail,
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

/* The end vouches for the rest: by the seal, or by an archive's list of checksums. */
static void make_name(publishing *u)
{
    char size[24];
    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)u->p->size);
    sum_up(size, u->tail, u->tail_size, u->state.file);
    sum_up(u->p->url, NULL, 0, u->state.url);
    (void)snprintf(u->state.part_size, sizeof u->state.part_size, "%llu",
                   (unsigned long long)u->part_size);
}

/* What goes on must be what was begun; whatever differs of the file, it can be abandoned. */
static cv_status compare_states(const publishing *u, const cv_upload_state *before,
                                cv_error *err)
{
    const char *path = u->p->state_path;
    const cv_upload_state *now = &u->state;
    if (strcmp(before->url, now->url) != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s is the state of an upload to another URL: give that one, to go on "
                       "or to abandon it",
                       cv_show_path(path).text);
    if (u->abandons) return CV_OK;
    if (strcmp(before->file, now->file) != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s is the state of an upload of another file, or of this one before "
                       "it was changed: abandon it, then begin anew",
                       cv_show_path(path).text);
    if (strcmp(before->part_size, now->part_size) == 0) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is the state of an upload in parts of %s bytes, another size than %s: "
                   "go on with that, or abandon it",
                   cv_show_path(path).text, before->part_size, now->part_size);
}

static void make_write_id(publishing *u)
{
    uint8_t id[(CV_WRITE_ID_SIZE - 1) / 2];
    cv_os_random(id, sizeof id);
    for (size_t i = 0; i < sizeof id; i++)
        (void)snprintf(u->state.write_id + 2 * i, 3, "%02x", id[i]);
}

/* Of an upload before this one, where a file remembers it. */
static cv_status recall(publishing *u, cv_error *err)
{
    cv_upload_state before;
    make_name(u);
    make_write_id(u);
    if (!u->p->state_path) return CV_OK;
    CV_TRY(cv_upload_state_read(u->p->state_path, &before, &u->has_state, err));
    if (!u->has_state) return CV_OK;
    CV_TRY(compare_states(u, &before, err));
    u->state = before;
    return CV_OK;
}

/* The answer to the last request of an upload before this one may have been lost. */
static bool is_done_before(const publishing *u)
{
    return u->has_state && u->is_there && strcmp(u->found.write_id, u->state.write_id) == 0;
}

static cv_status abandon(publishing *u, cv_error *err)
{
    cv_parts parts = {.object = u->object, .sends = &u->sends};
    bool is_known;
    if (!u->has_state)
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no file %s",
                       cv_show_path(u->p->state_path).text);
    CV_TRY(cv_parts_resume(&parts, u->state.upload_id, u->watch, &is_known, err));
    if (is_known) cv_parts_abort(&parts, u->p->url, false);
    cv_upload_state_remove(u->p->state_path);
    return CV_OK;
}

/* An upload that was begun is not needed where the same bytes are there without it. */
static cv_status be_done(publishing *u, caterva_publish_result *out, cv_error *err)
{
    out->was_there = out->verified = 1;
    return u->has_state ? abandon(u, err) : CV_OK;
}

static cv_status publish(publishing *u, caterva_publish_result *out, cv_error *err)
{
    bool is_done;
    CV_TRY(look_first(u, err));
    if (is_done_before(u)) return verify(u, out, err);
    CV_TRY(decide(u, &is_done, err));
    if (is_done) return be_done(u, out, err);
    CV_TRY(u->session->is_s3 && u->p->size > u->part_size ? put_parts(u, out, err)
                                                          : put(u, err));
    return verify(u, out, err);
}

static cv_status begin(publishing *u, cv_error *err)
{
    const cv_publication *p = u->p;
    cv_sends_init(&u->sends);
    u->part_size = cv_parts_size(p->size, p->part_size);
    CV_TRY(
        cv_session_new(p->remote, cv_url_scheme(p->url) == CV_SCHEME_S3, &u->session, err));
    CV_TRY(cv_http_object_new(u->session, p->url, "", &u->object, err));
    if (!u->abandons) CV_TRY(read_tail(u, err));
    return recall(u, err);
}

static void finish(publishing *u)
{
    cv_http_object_free(u->object);
    cv_session_release(u->session);
    cv_sends_destroy(&u->sends);
    cv_free(u->tail);
}

cv_status cv_http_publish(const cv_publication *p, cv_watch *watch,
                          caterva_publish_result *out, cv_error *err)
{
    publishing u = {.p = p, .watch = watch};
    out->bytes = (int64_t)p->size;
    cv_status status = begin(&u, err);
    if (status == CV_OK) status = publish(&u, out, err);
    if (status == CV_OK && u.has_state) cv_upload_state_remove(p->state_path);
    if (u.session) {
        out->requests = atomic_load(&u.session->requests);
        out->retried = atomic_load(&u.session->retried);
    }
    finish(&u);
    return status;
}

cv_status cv_http_abandon(const cv_publication *p, cv_watch *watch, cv_error *err)
{
    publishing u = {.p = p, .watch = watch, .abandons = true};
    cv_status status = begin(&u, err);
    if (status == CV_OK) status = abandon(&u, err);
    finish(&u);
    return status;
}
