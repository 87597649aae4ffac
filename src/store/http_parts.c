/* Room: store. Uploads in parts, as "Uploading and copying objects using multipart upload"
 * of S3 describes them. What a part is called by the server is taken from its answers and
 * given back to it. */
#include "store/http_parts.h"

#include "base/heap.h"
#include "store/http_xml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 10000, MOST_SLOTS = 16, QUERY = 3 * CV_UPLOAD_ID_SIZE + 128 };

typedef struct cv_sent_part {
    char etag[CV_ETAG_SIZE]; /* "": it is not there */
} cv_sent_part;

uint64_t cv_parts_size(uint64_t size, uint64_t wanted)
{
    uint64_t least = size / MOST_PARTS + (size % MOST_PARTS != 0);
    return least > wanted ? least : wanted;
}

cv_status cv_parts_init(cv_parts *p, cv_error *err)
{
    p->n = (int)(p->size / p->part_size + (p->size % p->part_size != 0));
    p->list = cv_calloc((size_t)p->n, sizeof *p->list);
    if (p->list) return CV_OK;
    return cv_fail_memory(err, (size_t)p->n * sizeof *p->list, "a list of parts");
}

void cv_parts_free(cv_parts *p) { cv_free(p->list); }

static uint64_t size_of(const cv_parts *p, int i)
{
    uint64_t left = p->size - (uint64_t)i * p->part_size;
    return left < p->part_size ? left : p->part_size;
}

static cv_status bad_answer(const cv_parts *p, const char *what, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1, "%s: the server's answer names no %s of the upload",
                   p->object->shown, what);
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

cv_status cv_parts_begin(cv_parts *p, cv_watch *watch, cv_error *err)
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

cv_status cv_parts_resume(cv_parts *p, const char *upload_id, cv_watch *watch, bool *is_known,
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

cv_status cv_parts_send(cv_parts *p, cv_watch *watch, cv_error *err)
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

cv_status cv_parts_finish(cv_parts *p, const char *condition, cv_watch *watch,
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

void cv_parts_abort(cv_parts *p, const char *url, bool is_hasty)
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
