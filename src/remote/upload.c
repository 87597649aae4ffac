/* Room: remote. Requests that write to a server, retried if that may help, and S3 uploads in parts
 * ("Uploading and copying objects using multipart upload"). The caller's thread waits for several
 * requests at once. `may_be_done`: an attempt without a good answer may have succeeded, so the
 * owner must check the server's state before it reports a failure. */
#include "remote/transfer.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_NS = 20000000, /* how often the watch is checked */
    MOST_HEAD = 64 * 1024,
    MOST_ANSWER = 1 << 20,
    PIECE = 256 * 1024
};

static cv_send *send_of(cv_wire *wire) { return (cv_send *)wire; } /* its first member */

/* ---- Request ----------------------------------------------------------------------------- */

static cv_status fail(cv_send *s, cv_status status)
{
    s->status = status;
    return status;
}

static cv_status add_fields(cv_send *s, cv_buffer *fields, cv_error *err)
{
    static const char no_expect[] = "Expect:"; /* prevents libcurl from adding this field */
    const cv_request_head head = {.method = s->method,
                                  .url = s->url,
                                  .query = s->query,
                                  .payload = *s->payload ? s->payload : NULL,
                                  .write_id = s->write_id};
    if (s->condition)
        CV_TRY(cv_buffer_append(fields, s->condition, strlen(s->condition) + 1, err));
    if (s->has_body && !s->asks_first)
        CV_TRY(cv_buffer_append(fields, no_expect, sizeof no_expect, err));
    return cv_request_add_fields(s->object, &head, fields, err);
}

static cv_status prepare(cv_wire *wire, cv_wire_setup *setup)
{
    cv_send *s = send_of(wire);
    const caterva_remote_options *o = &s->object->session->options;
    s->head.size = s->answer.size = 0;
    s->given = 0;
    s->is_sent = !s->has_body || s->body.size == 0;
    s->reply = (cv_reply){0};
    s->n_attempts++;
    setup->method = s->method;
    setup->url = s->url;
    setup->has_body = s->has_body;
    setup->body_size = s->body.size;
    setup->connect_ms = o->connect_timeout_ms;
    setup->stall_ms = o->stall_timeout_ms;
    setup->is_slow = s->is_slow;
    setup->ca_file = o->ca_file;
    return fail(s, add_fields(s, &setup->fields, &s->error));
}

static bool give(cv_wire *wire, uint64_t pos, uint8_t *to, size_t size)
{
    cv_send *s = send_of(wire);
    const cv_send_body *b = &s->body;
    if (pos < s->given) /* libcurl retries on another connection by itself */
        s->may_be_done = s->may_be_done || s->is_sent;
    if (!b->source)
        memcpy(to, b->bytes + pos, size);
    else if (fail(s, cv_store_read(b->source, CV_FRAME_OBJECT, b->pos + pos, to, size,
                                   &s->error)) != CV_OK)
        return false;
    s->given = pos + size;
    s->is_sent = s->given == b->size;
    if (s->given > s->most_given) {
        if (s->sends) atomic_fetch_add(&s->sends->given, (int64_t)(s->given - s->most_given));
        s->most_given = s->given;
    }
    return true;
}

/* ---- Answer ------------------------------------------------------------------------------ */

static bool take(cv_send *s, cv_buffer *to, const void *bytes, size_t size, size_t most)
{
    if (to->size + size > most) {
        (void)fail(s, cv_fail(&s->error, CATERVA_EIO, -1,
                              "%s: the server's answer has more than %zu bytes",
                              s->object->name.text, most));
        return false;
    }
    return fail(s, cv_buffer_append(to, bytes, size, &s->error)) == CV_OK;
}

static bool take_header(cv_wire *wire, const char *line, size_t size)
{
    cv_send *s = send_of(wire);
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) s->head.size = 0;
    return take(s, &s->head, line, size, MOST_HEAD);
}

static cv_wire_next take_body(cv_wire *wire, const uint8_t *bytes, size_t size)
{
    cv_send *s = send_of(wire);
    atomic_fetch_add(&s->object->session->bytes, (int64_t)size);
    return take(s, &s->answer, bytes, size, MOST_ANSWER) ? CV_WIRE_GOES_ON : CV_WIRE_ENDS;
}

/* ---- After an attempt ------------------------------------------------------------------- */

static cv_xml document_of(const cv_send *s)
{
    const char *bytes = (const char *)s->answer.data;
    return (cv_xml){bytes, bytes ? bytes + s->answer.size : bytes};
}

static bool is_good(const cv_send *s)
{
    int status = s->reply.status;
    if (s->status != CV_OK || status < 200 || status > 299) return false;
    cv_xml rest = document_of(s), inside;
    return !s->proof || cv_xml_next(&rest, s->proof, &inside);
}

/* Whether another attempt may succeed. S3 answers 409 while another client writes the same key. It
 * answers the completion of an upload with status 200 and states the result in the body. */
static bool is_transient(const cv_send *s)
{
    int status = s->reply.status;
    if (status == 409) return s->object->session->is_s3;
    if (status >= 200 && status <= 299) return !is_good(s);
    return cv_reply_is_busy(status);
}

static uint32_t wait_requested(const cv_send *s)
{
    return cv_reply_wait(&s->reply, (int64_t)(cv_os_time_ns() / 1000000000));
}

static int64_t try_again(cv_send *s, uint32_t asked_s)
{
    int64_t pause = cv_session_backoff(s->object->session, &s->n_failures, asked_s);
    if (pause >= 0) return pause;
    if (s->status != CV_OK) cv_session_count_attempts(&s->error, s->n_attempts, asked_s);
    return CV_WIRE_DONE;
}

static int64_t broken(cv_send *s, const cv_wire_end *end)
{
    cv_session *session = s->object->session;
    s->may_be_done = s->may_be_done || (end->was_connected && s->is_sent);
    if (s->status != CV_OK) return CV_WIRE_DONE;
    (void)fail(s, cv_remote_object_broken(s->object, s->url, end, &s->error));
    bool may_recover = end->was_connected || atomic_load(&session->has_connected);
    return end->is_broken && may_recover ? try_again(s, 0) : CV_WIRE_DONE;
}

static cv_status parse(cv_send *s, cv_error *err)
{
    return cv_reply_parse((const char *)s->head.data, s->head.size, &s->reply, err);
}

/* Whether the server refused the request. If so, it may close the connection before it has received
 * the whole body. */
static bool has_refusal(cv_send *s)
{
    bool is_reply = s->head.size > 0 && parse(s, NULL) == CV_OK;
    if (is_reply && s->reply.status >= 400) return true;
    s->reply = (cv_reply){0};
    return false;
}

static int64_t decide(cv_send *s, const cv_wire_end *end)
{
    if (s->status != CV_OK || !(end->is_whole || has_refusal(s))) return broken(s, end);
    if (fail(s, parse(s, &s->error)) != CV_OK) return CV_WIRE_DONE;
    if (!is_transient(s)) return CV_WIRE_DONE;
    s->may_be_done = s->may_be_done || s->reply.status >= 500 || s->reply.status < 300;
    return try_again(s, wait_requested(s));
}

static void report(const cv_send *s, const cv_wire_end *end)
{
    const caterva_remote_options *o = &s->object->session->options;
    if (!o->on_request) return;
    const caterva_transfer transfer = {
        .method = s->method,
        .url = s->object->name.text,
        .first = s->body.pos,
        .size = s->body.size,
        .received = s->answer.size,
        .nanoseconds = (int64_t)end->total_ns,
        .status = s->reply.status,
        .attempt = s->n_attempts,
        .ranges = 1,
        .error = s->status != CV_OK ? s->error.message : NULL,
    };
    cv_wire_give_turn();
    o->on_request(o->context, &transfer);
    cv_wire_take_turn();
}

static int64_t end_attempt(cv_wire *wire, const cv_wire_end *end)
{
    cv_send *s = send_of(wire);
    cv_session *session = s->object->session;
    atomic_fetch_add(&session->requests, 1);
    int64_t again = decide(s, end);
    if (end->was_connected) atomic_store(&session->has_connected, true);
    report(s, end);
    if (again != CV_WIRE_DONE) s->status = CV_OK;
    return again;
}

static void gone(cv_wire *wire)
{
    cv_send *s = send_of(wire);
    if (s->status == CV_OK && s->reply.status == 0)
        (void)fail(s, cv_wire_fail_gone(wire, &s->error));
    cv_buffer_free(&s->head);
    cv_free(s->url);
    s->url = NULL;
    s->gone(s);
}

/* ---- Refusals ---------------------------------------------------------------------------- */

static const struct {
    int status;
    cv_status code;
    const char *sentence;
} refusals[] = {
    {400, CATERVA_EIO, "the server refuses the request"},
    {401, CATERVA_EIO, "the server requires credentials"},
    {403, CATERVA_EIO, "these credentials do not allow writing it"},
    {404, CATERVA_ENOTFOUND, "the bucket does not exist, or the URL cannot be written"},
    {405, CATERVA_EUNSUPPORTED, "the server does not accept files there"},
    {409, CATERVA_EIO, "the folder does not exist, or another client is writing"},
    {411, CATERVA_EUNSUPPORTED, "the server refuses the request"},
    {412, CATERVA_EEXIST, "an object exists there already"},
    {413, CATERVA_EUNSUPPORTED, "the server does not accept an object of this size"},
    {501, CATERVA_EUNSUPPORTED, "the server does not support the request"},
    {507, CATERVA_EIO, "the server is out of space"},
};

static void refuse_lost(const cv_send *s, const char *code, cv_status *kind,
                        const char **sentence)
{
    int status = s->reply.status;
    bool replaces = s->condition && strncmp(s->condition, "If-Match", 8) == 0;
    if (status == 404 && strcmp(code, ", NoSuchUpload") == 0) {
        *sentence = "the upload no longer exists: another client or a rule of the bucket "
                    "aborted or finished it";
    } else if (replaces && (status == 404 || status == 412)) {
        *kind = CATERVA_EEXIST;
        *sentence = status == 404 ? "the object to replace no longer exists"
                                  : "another client has changed the object to replace";
    }
}

static cv_status fail_refused(const cv_send *s, cv_error *err)
{
    char code[CV_XML_REFUSAL_SIZE];
    int status = s->reply.status;
    const char *sentence = status >= 300 && status < 400
                               ? "the server redirects, but writing follows no redirects"
                               : "the server answers";
    cv_status kind = CATERVA_EIO;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].status != status) continue;
        sentence = refusals[i].sentence;
        kind = refusals[i].code;
    }
    cv_xml_refusal(s->answer.data, s->answer.size, code);
    refuse_lost(s, code, &kind, &sentence);
    (void)cv_fail(err, kind, -1, "%s: %s (status %d%s)", s->object->name.text, sentence,
                  status, code);
    if (err && (status == 401 || status == 403)) err->sys_errno = EACCES;
    if (err)
        cv_session_count_attempts(err, s->n_attempts,
                                  cv_reply_is_busy(status) ? wait_requested(s) : 0);
    return kind;
}

static cv_status result_of(const cv_send *s, cv_error *err)
{
    if (s->status != CV_OK && err) *err = s->error;
    if (s->status != CV_OK || is_good(s)) return s->status;
    return fail_refused(s, err);
}

/* ---- Beginning --------------------------------------------------------------------------- */

static cv_status make_url(cv_send *s, cv_error *err)
{
    const char *url = s->object->url;
    size_t size = strlen(url) + (s->query ? strlen(s->query) : 0) + 2;
    s->url = cv_malloc(size);
    if (!s->url) return cv_fail_memory(err, size, "a URL");
    (void)snprintf(s->url, size, "%s%s%s", url, s->query ? "?" : "",
                   s->query ? s->query : "");
    return CV_OK;
}

static cv_status hash_source(const cv_send *s, cv_sha256 *sha, cv_watch *watch, cv_error *err)
{
    uint8_t *piece = cv_malloc(PIECE);
    cv_status status = piece ? CV_OK : cv_fail_memory(err, PIECE, "bytes to send");
    for (uint64_t done = 0; status == CV_OK && done < s->body.size;) {
        uint64_t left = s->body.size - done;
        size_t size = left < PIECE ? (size_t)left : PIECE;
        status = cv_store_read(s->body.source, CV_FRAME_OBJECT, s->body.pos + done, piece,
                               size, err);
        if (status == CV_OK) cv_sha256_add(sha, piece, size);
        if (status == CV_OK) status = cv_watch_tick(watch, 0, err);
        done += size;
    }
    cv_free(piece);
    return status;
}

/* Hashes the body for the signature, so that the server accepts no other bytes. */
static cv_status hash_body(cv_send *s, cv_watch *watch, cv_error *err)
{
    cv_sha256 sha;
    uint8_t sum[CV_SHA256_SIZE];
    if (!s->object->is_signed || !s->has_body) return CV_OK;
    cv_sha256_begin(&sha);
    if (s->body.source)
        CV_TRY(hash_source(s, &sha, watch, err));
    else
        cv_sha256_add(&sha, s->body.bytes, (size_t)s->body.size);
    cv_sha256_end(&sha, sum);
    cv_sha256_hex(sum, s->payload);
    return CV_OK;
}

static cv_status submit(cv_send *s, cv_error *err)
{
    s->wire.prepare = prepare;
    s->wire.header = take_header;
    s->wire.body = take_body;
    s->wire.give = give;
    s->wire.end = end_attempt;
    s->wire.gone = gone;
    s->wire.limit = &s->object->session->limit;
    cv_status status = make_url(s, err);
    if (status == CV_OK) status = cv_wire_submit(&s->wire, err);
    if (status == CV_OK) return CV_OK;
    cv_free(s->url);
    s->url = NULL;
    return status;
}

/* ---- Concurrent requests ---------------------------------------------------------------- */

void cv_sends_init(cv_sends *sends)
{
    *sends = (cv_sends){0};
    cv_mutex_init(&sends->lock);
    cv_cond_init(&sends->changed);
    atomic_init(&sends->given, 0);
}

void cv_sends_destroy(cv_sends *sends)
{
    cv_cond_destroy(&sends->changed);
    cv_mutex_destroy(&sends->lock);
}

static void take_out(cv_sends *sends, cv_send *s)
{
    cv_send **link = &sends->first;
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    sends->n--;
    s->is_gone = true;
}

static void note_gone(cv_send *s)
{
    cv_sends *sends = s->sends;
    cv_mutex_lock(&sends->lock);
    take_out(sends, s);
    cv_cond_wake_all(&sends->changed);
    cv_mutex_unlock(&sends->lock);
}

static cv_status begin_send(cv_send *s, cv_sends *sends, cv_watch *watch, cv_error *err)
{
    s->sends = sends;
    s->gone = note_gone;
    s->is_gone = true;
    CV_TRY(hash_body(s, watch, err));
    cv_mutex_lock(&sends->lock);
    s->is_gone = false;
    s->next = sends->first;
    sends->first = s;
    sends->n++;
    cv_mutex_unlock(&sends->lock);
    cv_status status = submit(s, err);
    if (status == CV_OK) return CV_OK;
    cv_mutex_lock(&sends->lock);
    take_out(sends, s);
    cv_mutex_unlock(&sends->lock);
    return status;
}

static cv_status report_sent(cv_sends *sends, cv_watch *watch, cv_error *err)
{
    int64_t given = atomic_load(&sends->given), n = given - sends->reported;
    sends->reported = given;
    return cv_watch_tick(watch, n, err);
}

/* Waits until at most `most` requests are in flight, or the watch stops the wait. */
static cv_status wait_for_sends(cv_sends *sends, size_t most, cv_watch *watch, cv_error *err)
{
    cv_status status = CV_OK;
    cv_mutex_lock(&sends->lock);
    while (sends->n > most && status == CV_OK) {
        cv_cond_wait_for(&sends->changed, &sends->lock, LOOK_NS);
        cv_mutex_unlock(&sends->lock);
        status = report_sent(sends, watch, err);
        cv_mutex_lock(&sends->lock);
    }
    cv_mutex_unlock(&sends->lock);
    return status;
}

static void cancel_sends(cv_sends *sends)
{
    cv_mutex_lock(&sends->lock);
    while (sends->n > 0) {
        for (cv_send *s = sends->first; s; s = s->next) cv_wire_cancel(&s->wire);
        cv_cond_wait(&sends->changed, &sends->lock);
    }
    cv_mutex_unlock(&sends->lock);
}

/* Sends a request and waits for its end. `settles`: if the watch stops the call, waits up to half a
 * second for the answer. Although this function then returns CATERVA_ESTOPPED, is_good reports
 * whether the request succeeded on the server. */
static cv_status do_send(cv_send *s, cv_sends *sends, bool settles, cv_watch *watch,
                         cv_error *err)
{
    const uint64_t grace_ns = 500000000;
    CV_TRY(begin_send(s, sends, watch, err));
    cv_status status = wait_for_sends(sends, 0, watch, err);
    if (settles) {
        const uint64_t begun = cv_os_clock_ns();
        cv_mutex_lock(&sends->lock);
        while (sends->n > 0 && cv_os_clock_ns() - begun < grace_ns)
            cv_cond_wait_for(&sends->changed, &sends->lock, LOOK_NS);
        cv_mutex_unlock(&sends->lock);
    }
    cancel_sends(sends);
    return status == CV_OK ? result_of(s, err) : status;
}

cv_status cv_send_do(cv_send *s, cv_sends *sends, cv_watch *watch, cv_error *err)
{
    return do_send(s, sends, false, watch, err);
}

void cv_send_free(cv_send *s) { cv_buffer_free(&s->answer); }

/* ---- Uploads in parts -------------------------------------------------------------------- */

enum { MOST_PARTS = 10000, MOST_SLOTS = 16, QUERY = 3 * CV_UPLOAD_ID_SIZE + 128 };

typedef struct cv_upload_part {
    char etag[CV_ETAG_SIZE]; /* "": not on the server */
} cv_upload_part;

uint64_t cv_upload_part_size(uint64_t size, uint64_t wanted)
{
    uint64_t least = size / MOST_PARTS + (size % MOST_PARTS != 0);
    return least > wanted ? least : wanted;
}

cv_status cv_upload_init(cv_upload *u, cv_error *err)
{
    u->n = (int)(u->size / u->part_size + (u->size % u->part_size != 0));
    u->list = cv_calloc((size_t)u->n, sizeof *u->list);
    if (u->list) return CV_OK;
    return cv_fail_memory(err, (size_t)u->n * sizeof *u->list, "a list of parts");
}

void cv_upload_free(cv_upload *u) { cv_free(u->list); }

static uint64_t size_of(const cv_upload *u, int i)
{
    uint64_t left = u->size - (uint64_t)i * u->part_size;
    return left < u->part_size ? left : u->part_size;
}

static cv_status bad_answer(const cv_upload *u, const char *what, cv_error *err)
{
    return cv_fail(err, CATERVA_EIO, -1, "%s: the server's answer has no %s of the upload",
                   u->object->name.text, what);
}

static cv_status set_id(cv_upload *u, const char *upload_id, cv_error *err)
{
    char *end = u->encoded_id + sizeof u->encoded_id - 1;
    if (!*upload_id) return bad_answer(u, "id", err);
    if (upload_id != u->upload_id)
        (void)snprintf(u->upload_id, sizeof u->upload_id, "%s", upload_id);
    end = cv_url_encode(u->upload_id, strlen(u->upload_id), false, u->encoded_id, end);
    if (end) *end = '\0';
    return end ? CV_OK : bad_answer(u, "id", err);
}

cv_status cv_upload_begin(cv_upload *u, cv_watch *watch, cv_error *err)
{
    cv_send send = {.object = u->object,
                    .method = "POST",
                    .query = "uploads=",
                    .write_id = u->write_id,
                    .proof = "UploadId",
                    .has_body = true};
    cv_status status = do_send(&send, u->sends, true, watch, err);
    if (is_good(&send)) { /* also if the call was stopped */
        (void)cv_xml_text(document_of(&send), "UploadId", u->upload_id, sizeof u->upload_id);
        cv_status named = set_id(u, u->upload_id, status == CV_OK ? err : NULL);
        if (status == CV_OK) status = named;
    }
    cv_send_free(&send);
    return status;
}

/* Takes an upload part from the server's list. A part of the right size counts as sent: the state
 * file (see publish.c) ensures that it has the same bytes. */
static void keep_part(cv_upload *u, cv_xml part)
{
    char number[16], size[24], etag[CV_ETAG_SIZE];
    if (!cv_xml_text(part, "PartNumber", number, sizeof number) ||
        !cv_xml_text(part, "Size", size, sizeof size) ||
        !cv_xml_text(part, "ETag", etag, sizeof etag))
        return;
    long i = strtol(number, NULL, 10) - 1;
    if (i < 0 || i >= u->n || strtoull(size, NULL, 10) != size_of(u, (int)i)) return;
    if (strpbrk(etag, "<>&") || *u->list[i].etag) return;
    memcpy(u->list[i].etag, etag, sizeof etag);
    u->n_kept += *etag != '\0';
}

/* Takes the parts on one page of a list. *marker: the page's last part; 0: no page follows. */
static void keep_page(cv_upload *u, cv_xml page, long *marker)
{
    char truncated[8], next[16];
    cv_xml rest = page, part;
    while (cv_xml_next(&rest, "Part", &part)) keep_part(u, part);
    long after = 0;
    if (cv_xml_text(page, "IsTruncated", truncated, sizeof truncated) &&
        strcmp(truncated, "true") == 0 &&
        cv_xml_text(page, "NextPartNumberMarker", next, sizeof next))
        after = strtol(next, NULL, 10);
    *marker = after > *marker && after <= MOST_PARTS ? after : 0;
}

static cv_status list_page(cv_upload *u, long *marker, cv_watch *watch, bool *is_known,
                           cv_error *err)
{
    char query[QUERY];
    (void)snprintf(query, sizeof query, "part-number-marker=%ld&uploadId=%s", *marker,
                   u->encoded_id);
    cv_send send = {
        .object = u->object, .method = "GET", .query = query, .proof = "IsTruncated"};
    cv_error why = {0};
    cv_status status = cv_send_do(&send, u->sends, watch, &why);
    *is_known = status != CATERVA_ENOTFOUND || send.reply.status != 404;
    if (status == CV_OK)
        keep_page(u, document_of(&send), marker);
    else
        *marker = 0;
    cv_send_free(&send);
    if (status == CV_OK || !*is_known) return CV_OK;
    if (err) *err = why;
    return status;
}

cv_status cv_upload_resume(cv_upload *u, const char *upload_id, cv_watch *watch,
                           bool *is_known, cv_error *err)
{
    long marker = 0;
    CV_TRY(set_id(u, upload_id, err));
    do CV_TRY(list_page(u, &marker, watch, is_known, err));
    while (marker > 0);
    for (int i = 0; i < u->n; i++)
        if (*u->list[i].etag) cv_watch_add(watch, (int64_t)size_of(u, i));
    return CV_OK;
}

typedef struct slot {
    cv_send send;
    int part; /* -1: free */
    char query[QUERY];
} slot;

typedef struct sending {
    cv_upload *upload;
    slot *slots;
    int n_slots;
} sending;

static cv_status begin_part(sending *s, slot *to, int part, cv_watch *watch, cv_error *err)
{
    cv_upload *u = s->upload;
    (void)snprintf(to->query, sizeof to->query, "partNumber=%d&uploadId=%s", part + 1,
                   u->encoded_id);
    to->send = (cv_send){.object = u->object,
                         .method = "PUT",
                         .query = to->query,
                         .has_body = true,
                         .body = {.source = u->source,
                                  .pos = (uint64_t)part * u->part_size,
                                  .size = size_of(u, part)}};
    to->part = part;
    cv_status status = begin_send(&to->send, u->sends, watch, err);
    if (status != CV_OK) to->part = -1;
    return status;
}

static cv_status end_part(sending *s, slot *from, cv_error *err)
{
    cv_upload *u = s->upload;
    const cv_send *send = &from->send;
    cv_status status = result_of(send, err);
    if (status == CV_OK && (!*send->reply.etag || strpbrk(send->reply.etag, "<>&")))
        status = bad_answer(u, "part", err);
    if (status == CV_OK)
        memcpy(u->list[from->part].etag, send->reply.etag, sizeof send->reply.etag);
    cv_send_free(&from->send);
    from->part = -1;
    return status;
}

static cv_status end_parts(sending *s, cv_error *err)
{
    cv_status status = CV_OK;
    for (int i = 0; i < s->n_slots && status == CV_OK; i++) {
        cv_mutex_lock(&s->upload->sends->lock);
        bool is_over = s->slots[i].part >= 0 && s->slots[i].send.is_gone;
        cv_mutex_unlock(&s->upload->sends->lock);
        if (is_over) status = end_part(s, &s->slots[i], err);
    }
    return status;
}

static slot *find_free(const sending *s)
{
    slot *found = s->slots;
    while (found->part >= 0) found++; /* one is free: fewer are in flight than slots exist */
    return found;
}

static cv_status send_all(sending *s, cv_watch *watch, cv_error *err)
{
    cv_upload *u = s->upload;
    for (int i = 0; i < u->n; i++) {
        if (*u->list[i].etag) continue;
        CV_TRY(wait_for_sends(u->sends, (size_t)s->n_slots - 1, watch, err));
        CV_TRY(end_parts(s, err));
        CV_TRY(begin_part(s, find_free(s), i, watch, err));
    }
    for (int left = s->n_slots - 1; left >= 0; left--) { /* stops at the first failure */
        CV_TRY(wait_for_sends(u->sends, (size_t)left, watch, err));
        CV_TRY(end_parts(s, err));
    }
    return CV_OK;
}

cv_status cv_upload_send(cv_upload *u, cv_watch *watch, cv_error *err)
{
    int most = u->object->session->limit.most;
    sending s = {.upload = u, .n_slots = most < MOST_SLOTS ? most : MOST_SLOTS};
    s.slots = cv_calloc((size_t)s.n_slots, sizeof *s.slots);
    if (!s.slots) return cv_fail_memory(err, (size_t)s.n_slots * sizeof *s.slots, "requests");
    for (int i = 0; i < s.n_slots; i++) s.slots[i].part = -1;
    cv_status status = send_all(&s, watch, err);
    cancel_sends(u->sends);
    for (int i = 0; i < s.n_slots; i++) cv_send_free(&s.slots[i].send);
    cv_free(s.slots);
    return status;
}

static cv_status append_text(cv_buffer *to, const char *text, cv_error *err)
{
    return cv_buffer_append(to, text, strlen(text), err);
}

static cv_status make_list(const cv_upload *u, cv_buffer *out, cv_error *err)
{
    CV_TRY(append_text(out,
                       "<CompleteMultipartUpload "
                       "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
                       err));
    for (int i = 0; i < u->n; i++) {
        char part[CV_ETAG_SIZE + 96];
        (void)snprintf(part, sizeof part,
                       "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i + 1,
                       u->list[i].etag);
        CV_TRY(append_text(out, part, err));
    }
    return append_text(out, "</CompleteMultipartUpload>", err);
}

cv_status cv_upload_finish(cv_upload *u, const char *condition, cv_watch *watch,
                           bool *may_be_done, cv_error *err)
{
    char query[QUERY];
    cv_buffer list = {0};
    *may_be_done = false;
    (void)snprintf(query, sizeof query, "uploadId=%s", u->encoded_id);
    cv_status status = make_list(u, &list, err);
    cv_send send = {.object = u->object,
                    .method = "POST",
                    .query = query,
                    .condition = condition,
                    .proof = "CompleteMultipartUploadResult",
                    .has_body = true,
                    .is_slow = true,
                    .body = {.bytes = list.data, .size = list.size}};
    if (status == CV_OK) status = cv_send_do(&send, u->sends, watch, err);
    *may_be_done = send.may_be_done || (status == CATERVA_ESTOPPED && send.n_attempts > 0);
    cv_send_free(&send);
    cv_buffer_free(&list);
    return status;
}

/* ---- Aborting an upload ------------------------------------------------------------------ */

typedef struct orphan {
    cv_send send;
    cv_remote_object *object;
    cv_mutex lock;
    cv_cond changed;
    bool is_gone, is_left;
    char query[QUERY];
} orphan;

static void free_orphan(orphan *o)
{
    cv_send_free(&o->send);
    cv_remote_object_free(o->object);
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

/* Makes an object in a session of its own, which does not call functions of the program. */
static cv_status new_object(const cv_upload *u, const char *url, cv_remote_object **out)
{
    cv_session *session;
    caterva_remote_options options = u->object->session->options;
    options.on_headers = NULL;
    options.on_request = NULL;
    CV_TRY(cv_session_begin(url, &options, &session, NULL));
    cv_status status = cv_remote_object_new(session, url, "", out, NULL);
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

static void abort_hastily(const cv_upload *u, const char *url)
{
    enum { MOMENT_NS = 50000000 };
    orphan *o = cv_calloc(1, sizeof *o);
    if (!o) return;
    cv_mutex_init(&o->lock);
    cv_cond_init(&o->changed);
    (void)snprintf(o->query, sizeof o->query, "uploadId=%s", u->encoded_id);
    cv_status status = new_object(u, url, &o->object);
    o->send = (cv_send){
        .object = o->object, .method = "DELETE", .query = o->query, .gone = orphan_gone};
    if (status == CV_OK) status = submit(&o->send, NULL);
    if (status == CV_OK)
        wait_for_orphan(o, MOMENT_NS);
    else
        free_orphan(o);
}

void cv_upload_abort(cv_upload *u, const char *url, bool is_hasty)
{
    char query[QUERY];
    if (is_hasty) {
        abort_hastily(u, url);
        return;
    }
    (void)snprintf(query, sizeof query, "uploadId=%s", u->encoded_id);
    cv_send send = {.object = u->object, .method = "DELETE", .query = query};
    (void)cv_send_do(&send, u->sends, NULL, NULL);
    cv_send_free(&send);
}
