/* Room: remote. INTRO of remote/upload */
#include "remote/upload.h"

#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "remote/contents.h"
#include "remote/reply.h"
#include "remote/wave.h"
#include "store/descriptors.h"
#include "store/path.h"

#include <caterva_remote.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Upload state ----
 *
 * The file of an upload that is not finished. It holds no credentials. */

enum { CV_UPLOAD_ID_SIZE = 1024, CV_PART_SIZE_TEXT = 24 };

typedef struct cv_upload_state {
    char file[CV_SHA256_HEX], url[CV_SHA256_HEX]; /* their sums */
    char part_size[CV_PART_SIZE_TEXT];            /* decimal */
    char write_id[CV_WRITE_ID_SIZE];
    char upload_id[CV_UPLOAD_ID_SIZE];
} cv_upload_state;

static const char first_line[] = "caterva upload 1\n";

enum { ROOM = sizeof first_line + sizeof(cv_upload_state) + 8 };

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

/* Copies a word up to `end` and goes behind that. */
static bool take(const char **at, char end, char *out, size_t room)
{
    const char *to = strchr(*at, end);
    if (!to || (size_t)(to - *at) >= room) return false;
    memcpy(out, *at, (size_t)(to - *at));
    out[to - *at] = '\0';
    *at = to + 1;
    return true;
}

static bool parse(const char *text, cv_upload_state *out)
{
    const char *at = text + sizeof first_line - 1;
    if (strncmp(text, first_line, sizeof first_line - 1) != 0) return false;
    if (!take(&at, ' ', out->file, sizeof out->file) ||
        !take(&at, ' ', out->url, sizeof out->url) ||
        !take(&at, ' ', out->part_size, sizeof out->part_size) ||
        !take(&at, '\n', out->write_id, sizeof out->write_id) ||
        !take(&at, '\n', out->upload_id, sizeof out->upload_id) || *at)
        return false;
    return strlen(out->file) == CV_SHA256_HEX - 1 && strlen(out->url) == CV_SHA256_HEX - 1 &&
           strlen(out->write_id) == CV_WRITE_ID_SIZE - 1 &&
           is_word(out->file, CV_SHA256_HEX - 1, true) &&
           is_word(out->url, CV_SHA256_HEX - 1, true) &&
           is_word(out->part_size, strlen(out->part_size), true) &&
           is_word(out->write_id, CV_WRITE_ID_SIZE - 1, true) &&
           is_word(out->upload_id, strlen(out->upload_id), false);
}

/* Reads the file. *is_there false: there is none. CATERVA_EINVAL: it is something else. */
static cv_status cv_upload_state_read(const char *path, cv_upload_state *out, bool *is_there,
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
    if (strlen(text) == done && parse(text, out)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "%s is not the state of an upload",
                   cv_show_path(path).text);
}

/* Makes the file, which is not there. */
static cv_status cv_upload_state_write(const char *path, const cv_upload_state *s, cv_error *err)
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

static void cv_upload_state_remove(const char *path) { (void)cv_dir_remove(cv_dir_here, path); }

/* ---- Http parts ----
 *
 * Uploads in parts, as "Uploading and copying objects using multipart upload"
 * of S3 describes them. What a part is called by the server is taken from its answers and
 * given back to it. */

typedef struct cv_parts {
    cv_http_object *object;
    cv_sends *sends;
    cv_store *source;
    uint64_t size, part_size;
    const char *write_id;
    char upload_id[CV_UPLOAD_ID_SIZE];
    char encoded_id[3 * CV_UPLOAD_ID_SIZE]; /* as it stands in a query */
    int n, n_kept;                          /* parts; those that were there already */
    struct cv_sent_part *list;
} cv_parts;

enum { MOST_PARTS = 10000, MOST_SLOTS = 16, QUERY = 3 * CV_UPLOAD_ID_SIZE + 128 };

typedef struct cv_sent_part {
    char etag[CV_ETAG_SIZE]; /* "": it is not there */
} cv_sent_part;

/* The least size of parts, not below `wanted`, of which S3 takes so many as an object of `size`
 * bytes needs. */
static uint64_t cv_parts_size(uint64_t size, uint64_t wanted)
{
    uint64_t least = size / MOST_PARTS + (size % MOST_PARTS != 0);
    return least > wanted ? least : wanted;
}

/* object, sends, source, sizes and write_id are given, the rest zero. Release with
 * cv_parts_free. */
static cv_status cv_parts_init(cv_parts *p, cv_error *err)
{
    p->n = (int)(p->size / p->part_size + (p->size % p->part_size != 0));
    p->list = cv_calloc((size_t)p->n, sizeof *p->list);
    if (p->list) return CV_OK;
    return cv_fail_memory(err, (size_t)p->n * sizeof *p->list, "a list of parts");
}

static void cv_parts_free(cv_parts *p) { cv_free(p->list); }

static uint64_t size_of(const cv_parts *p, int i)
{
    uint64_t left = p->size - (uint64_t)i * p->part_size;
    return left < p->part_size ? left : p->part_size;
}

static cv_status bad_answer(const cv_parts *p, const char *what, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1, "%s: the server's answer names no %s of the upload",
                   p->object->name.text, what);
}

static cv_xml document_of(const cv_send *s)
{
    const char *bytes = (const char *)s->answer.data;
    return (cv_xml){bytes, bytes ? bytes + s->answer.size : bytes};
}

/* ---- Beginning ------------------------------------------------------------------------ */

static cv_status set_id(cv_parts *p, const char *upload_id, cv_error *err)
{
    char *end = p->encoded_id + sizeof p->encoded_id - 1;
    if (!*upload_id) return bad_answer(p, "id", err);
    if (upload_id != p->upload_id)
        (void)snprintf(p->upload_id, sizeof p->upload_id, "%s", upload_id);
    end = cv_url_encode(p->upload_id, strlen(p->upload_id), false, p->encoded_id, end);
    if (end) *end = '\0';
    return end ? CV_OK : bad_answer(p, "id", err);
}

/* Begins an upload, and knows its upload_id then; mostly also when it is stopped meanwhile. */
static cv_status cv_parts_begin(cv_parts *p, cv_watch *watch, cv_error *err)
{
    cv_send send = {.object = p->object,
                    .method = "POST",
                    .query = "uploads=",
                    .write_id = p->write_id,
                    .proof = "UploadId",
                    .has_body = true};
    cv_status status = cv_send_settle(&send, p->sends, watch, err);
    bool is_made = cv_send_is_good(&send);
    if (status == CV_OK && !is_made) status = cv_send_refused(&send, err);
    if (is_made) {
        (void)cv_xml_text(document_of(&send), "UploadId", p->upload_id, sizeof p->upload_id);
        cv_status named = set_id(p, p->upload_id, status == CV_OK ? err : NULL);
        if (status == CV_OK) status = named;
    }
    cv_send_free(&send);
    return status;
}

/* ---- Going on ------------------------------------------------------------------------- */

/* A part that is as long as ours counts: it was sent of the same bytes, says the state. */
static void keep_part(cv_parts *p, cv_xml part)
{
    char number[16], size[24], etag[CV_ETAG_SIZE];
    if (!cv_xml_text(part, "PartNumber", number, sizeof number) ||
        !cv_xml_text(part, "Size", size, sizeof size) ||
        !cv_xml_text(part, "ETag", etag, sizeof etag))
        return;
    long i = strtol(number, NULL, 10) - 1;
    if (i < 0 || i >= p->n || strtoull(size, NULL, 10) != size_of(p, (int)i)) return;
    if (strpbrk(etag, "<>&") || *p->list[i].etag) return;
    memcpy(p->list[i].etag, etag, sizeof etag);
    p->n_kept += *etag != '\0';
}

/* *marker: the last part that was listed; 0 when it was the last page. */
static void keep_page(cv_parts *p, cv_xml page, long *marker)
{
    char truncated[8], next[16];
    cv_xml rest = page, part;
    while (cv_xml_next(&rest, "Part", &part)) keep_part(p, part);
    long after = 0;
    if (cv_xml_text(page, "IsTruncated", truncated, sizeof truncated) &&
        strcmp(truncated, "true") == 0 &&
        cv_xml_text(page, "NextPartNumberMarker", next, sizeof next))
        after = strtol(next, NULL, 10);
    *marker = after > *marker && after <= MOST_PARTS ? after : 0;
}

static cv_status list_page(cv_parts *p, long *marker, cv_watch *watch, bool *is_known,
                           cv_error *err)
{
    char query[QUERY];
    (void)snprintf(query, sizeof query, "part-number-marker=%ld&uploadId=%s", *marker,
                   p->encoded_id);
    cv_send send = {
        .object = p->object, .method = "GET", .query = query, .proof = "IsTruncated"};
    cv_status status = cv_send_do(&send, p->sends, watch, err);
    *is_known = status != CV_OK || send.reply.status != 404;
    if (status == CV_OK && *is_known && !cv_send_is_good(&send))
        status = cv_send_refused(&send, err);
    if (status == CV_OK && *is_known)
        keep_page(p, document_of(&send), marker);
    else
        *marker = 0;
    cv_send_free(&send);
    return status;
}

/* Goes on with one: finds the parts that the server has. *is_known false: it knows no such
 * upload any more. */
static cv_status cv_parts_resume(cv_parts *p, const char *upload_id, cv_watch *watch, bool *is_known,
                          cv_error *err)
{
    long marker = 0;
    CV_TRY(set_id(p, upload_id, err));
    do CV_TRY(list_page(p, &marker, watch, is_known, err));
    while (marker > 0);
    for (int i = 0; i < p->n; i++)
        if (*p->list[i].etag) cv_watch_add(watch, (int64_t)size_of(p, i));
    return CV_OK;
}

/* ---- Sending -------------------------------------------------------------------------- */

typedef struct slot {
    cv_send send;
    int part; /* -1: free */
    char query[QUERY];
} slot;

typedef struct sending {
    cv_parts *parts;
    slot *slots;
    int n_slots;
} sending;

static cv_status begin_part(sending *s, slot *to, int part, cv_watch *watch, cv_error *err)
{
    cv_parts *p = s->parts;
    (void)snprintf(to->query, sizeof to->query, "partNumber=%d&uploadId=%s", part + 1,
                   p->encoded_id);
    to->send = (cv_send){.object = p->object,
                         .method = "PUT",
                         .query = to->query,
                         .has_body = true,
                         .body = {.source = p->source,
                                  .pos = (uint64_t)part * p->part_size,
                                  .size = size_of(p, part)}};
    to->part = part;
    cv_status status = cv_send_begin(&to->send, p->sends, watch, err);
    if (status != CV_OK) to->part = -1;
    return status;
}

static cv_status end_part(sending *s, slot *from, cv_error *err)
{
    cv_parts *p = s->parts;
    const cv_send *send = &from->send;
    cv_status status = send->status;
    if (status != CV_OK && err) *err = send->error;
    if (status == CV_OK && !cv_send_is_good(send)) status = cv_send_refused(send, err);
    if (status == CV_OK && (!*send->reply.etag || strpbrk(send->reply.etag, "<>&")))
        status = bad_answer(p, "part", err);
    if (status == CV_OK)
        memcpy(p->list[from->part].etag, send->reply.etag, sizeof send->reply.etag);
    cv_send_free(&from->send);
    from->part = -1;
    return status;
}

static cv_status end_parts(sending *s, cv_error *err)
{
    cv_status status = CV_OK;
    for (int i = 0; i < s->n_slots && status == CV_OK; i++) {
        cv_mutex_lock(&s->parts->sends->lock);
        bool is_over = s->slots[i].part >= 0 && s->slots[i].send.is_gone;
        cv_mutex_unlock(&s->parts->sends->lock);
        if (is_over) status = end_part(s, &s->slots[i], err);
    }
    return status;
}

static slot *find_free(const sending *s)
{
    slot *found = s->slots;
    while (found->part >= 0) found++; /* there is one: fewer are under way */
    return found;
}

static cv_status send_all(sending *s, cv_watch *watch, cv_error *err)
{
    cv_parts *p = s->parts;
    for (int i = 0; i < p->n; i++) {
        if (*p->list[i].etag) continue;
        CV_TRY(cv_sends_wait(p->sends, (size_t)s->n_slots - 1, watch, err));
        CV_TRY(end_parts(s, err));
        CV_TRY(begin_part(s, find_free(s), i, watch, err));
    }
    for (int left = s->n_slots - 1; left >= 0; left--) { /* the first failure ends it */
        CV_TRY(cv_sends_wait(p->sends, (size_t)left, watch, err));
        CV_TRY(end_parts(s, err));
    }
    return CV_OK;
}

/* Sends those that are not there. On failure none is under way any more. */
static cv_status cv_parts_send(cv_parts *p, cv_watch *watch, cv_error *err)
{
    int most = p->object->session->limit.most;
    sending s = {.parts = p, .n_slots = most < MOST_SLOTS ? most : MOST_SLOTS};
    s.slots = cv_calloc((size_t)s.n_slots, sizeof *s.slots);
    if (!s.slots) return cv_fail_memory(err, (size_t)s.n_slots * sizeof *s.slots, "requests");
    for (int i = 0; i < s.n_slots; i++) s.slots[i].part = -1;
    cv_status status = send_all(&s, watch, err);
    cv_sends_cancel(p->sends);
    for (int i = 0; i < s.n_slots; i++) cv_send_free(&s.slots[i].send);
    cv_free(s.slots);
    return status;
}

/* ---- Finishing ------------------------------------------------------------------------ */

static cv_status append_text(cv_buffer *to, const char *text, cv_error *err)
{
    return cv_buffer_append(to, text, strlen(text), err);
}

static cv_status make_list(const cv_parts *p, cv_buffer *out, cv_error *err)
{
    CV_TRY(append_text(out,
                       "<CompleteMultipartUpload "
                       "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
                       err));
    for (int i = 0; i < p->n; i++) {
        char part[CV_ETAG_SIZE + 96];
        (void)snprintf(part, sizeof part,
                       "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i + 1,
                       p->list[i].etag);
        CV_TRY(append_text(out, part, err));
    }
    return append_text(out, "</CompleteMultipartUpload>", err);
}

/* Puts them together, unless `condition` (or NULL) speaks against it. *may_be_done: on
 * failure, it may have been done. */
static cv_status cv_parts_finish(cv_parts *p, const char *condition, cv_watch *watch,
                          bool *may_be_done, cv_error *err)
{
    char query[QUERY];
    cv_buffer list = {0};
    *may_be_done = false;
    (void)snprintf(query, sizeof query, "uploadId=%s", p->encoded_id);
    cv_status status = make_list(p, &list, err);
    cv_send send = {.object = p->object,
                    .method = "POST",
                    .query = query,
                    .condition = condition,
                    .proof = "CompleteMultipartUploadResult",
                    .has_body = true,
                    .is_slow = true,
                    .body = {.bytes = list.data, .size = list.size}};
    if (status == CV_OK) status = cv_send_do(&send, p->sends, watch, err);
    if (status == CV_OK && !cv_send_is_good(&send)) status = cv_send_refused(&send, err);
    *may_be_done = send.may_be_done || (status == CATERVA_ESTOPPED && send.attempts > 0);
    cv_send_free(&send);
    cv_buffer_free(&list);
    return status;
}

/* ---- Aborting ------------------------------------------------------------------------- */

/* A request that lives on when nobody waits for it any more. */
typedef struct orphan {
    cv_send send;
    cv_http_object *object;
    cv_mutex lock;
    cv_cond changed;
    bool is_gone, is_left;
    char query[QUERY];
} orphan;

static void free_orphan(orphan *o)
{
    cv_send_free(&o->send);
    cv_http_object_free(o->object);
    cv_cond_destroy(&o->changed);
    cv_mutex_destroy(&o->lock);
    cv_free(o);
}

static void orphan_gone(cv_send *send)
{
    orphan *o = (orphan *)send;
    cv_mutex_lock(&o->lock);
    bool is_left = o->is_left;
    o->is_gone = true;
    cv_cond_wake_all(&o->changed);
    cv_mutex_unlock(&o->lock);
    if (is_left) free_orphan(o);
}

/* A session of its own: the caller's functions are not called once it has returned. */
static cv_status new_object(const cv_parts *p, const char *url, cv_http_object **out)
{
    cv_session *session;
    caterva_remote_options options = p->object->session->options;
    options.on_headers = NULL;
    options.on_request = NULL;
    CV_TRY(cv_session_new(&options, true, &session, NULL));
    cv_status status = cv_http_object_new(session, url, "", out, NULL);
    cv_session_release(session);
    return status;
}

static void wait_for_orphan(orphan *o, uint64_t ns)
{
    cv_mutex_lock(&o->lock);
    if (!o->is_gone) cv_cond_wait_for(&o->changed, &o->lock, ns);
    bool is_gone = o->is_gone;
    o->is_left = !is_gone;
    cv_mutex_unlock(&o->lock);
    if (is_gone) free_orphan(o);
}

static void abort_hastily(const cv_parts *p, const char *url)
{
    enum { MOMENT_NS = 50000000 };
    orphan *o = cv_calloc(1, sizeof *o);
    if (!o) return;
    cv_mutex_init(&o->lock);
    cv_cond_init(&o->changed);
    (void)snprintf(o->query, sizeof o->query, "uploadId=%s", p->encoded_id);
    cv_status status = new_object(p, url, &o->object);
    o->send = (cv_send){
        .object = o->object, .method = "DELETE", .query = o->query, .gone = orphan_gone};
    if (status == CV_OK) status = cv_send_begin_alone(&o->send, NULL);
    if (status == CV_OK)
        wait_for_orphan(o, MOMENT_NS);
    else
        free_orphan(o);
}

/* Has the server forget the upload. `is_hasty`: returns within a moment, and leaves the
 * request on its way if that takes longer. */
static void cv_parts_abort(cv_parts *p, const char *url, bool is_hasty)
{
    char query[QUERY];
    if (is_hasty) {
        abort_hastily(p, url);
        return;
    }
    (void)snprintf(query, sizeof query, "uploadId=%s", p->encoded_id);
    cv_send send = {.object = p->object, .method = "DELETE", .query = query};
    (void)cv_send_do(&send, p->sends, NULL, NULL);
    cv_send_free(&send);
}

/* ---- Http publish ----
 *
 * Publishing, step by step:
 *
 *     look    what stands at the URL; nothing, or what is to be replaced
 *     send    one PUT, or parts that are put together: on the condition that it still does
 *     verify  the end of the object, which holds the seal, read back
 *
 * A request whose answer was lost may have done its work, and the next attempt is then
 * refused by the object that it made: what stands there is looked at before that is believed.
 * It is ours when it has our write id, or, on servers that keep none, our bytes. */

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
                   u->object->name.text);
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
                       u->object->name.text, how);
    return cv_fail(err, CATERVA_EEXIST, -1,
                   "%s: what is there is not %.80s, which was to be "
                   "replaced, but %.80s",
                   u->object->name.text, u->p->if_match,
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
