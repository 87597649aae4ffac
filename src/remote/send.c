/* Room: store. The life of a request that changes something. What it did is known when its
 * answer came, and only then: `may_be_done` says that an answer was lost, and who asked looks
 * at the server's state before it believes a refusal that came later. */
#include "remote/send.h"

#include "base/heap.h"
#include "base/os.h"
#include "base/os_file.h"
#include "remote/reply.h"
#include "remote/wire.h"

#include <caterva_remote.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOK_NS = 20000000, /* how often the watch is asked */
    MOST_HEAD = 64 * 1024,
    MOST_ANSWER = 1 << 20,
    PIECE = 256 * 1024
};

static cv_send *of(cv_wire *wire) { return (cv_send *)wire; } /* its first member */

/* ---- Asking ------------------------------------------------------------------------ */

static cv_status fail(cv_send *s, cv_status status)
{
    s->status = status;
    return status;
}

static cv_status add_fields(cv_send *s, cv_buffer *fields, cv_error *err)
{
    static const char no_question[] = "Expect:"; /* libcurl then asks none of its own */
    const cv_http_asked asked = {.method = s->method,
                                 .url = s->url,
                                 .query = s->query,
                                 .payload = *s->payload ? s->payload : NULL,
                                 .write_id = s->write_id};
    if (s->condition)
        CV_TRY(cv_buffer_append(fields, s->condition, strlen(s->condition) + 1, err));
    if (s->has_body && !s->asks_first)
        CV_TRY(cv_buffer_append(fields, no_question, sizeof no_question, err));
    return cv_http_object_fields(s->object, &asked, fields, err);
}

static cv_status prepare(cv_wire *wire, cv_wire_setup *setup)
{
    cv_send *s = of(wire);
    const caterva_remote_options *o = &s->object->session->options;
    s->head.size = s->answer.size = 0;
    s->given = 0;
    s->is_sent = !s->has_body || s->body.size == 0;
    s->reply = (cv_reply){0};
    s->attempts++;
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
    cv_send *s = of(wire);
    const cv_send_body *b = &s->body;
    if (pos < s->given) /* libcurl tries another connection by itself */
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

/* ---- Hearing ----------------------------------------------------------------------- */

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
    cv_send *s = of(wire);
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) s->head.size = 0;
    return take(s, &s->head, line, size, MOST_HEAD);
}

static cv_wire_next take_body(cv_wire *wire, const uint8_t *bytes, size_t size)
{
    cv_send *s = of(wire);
    atomic_fetch_add(&s->object->session->bytes, (int64_t)size);
    return take(s, &s->answer, bytes, size, MOST_ANSWER) ? CV_WIRE_GOES_ON : CV_WIRE_ENDS;
}

/* ---- What next --------------------------------------------------------------------- */

bool cv_send_is_good(const cv_send *s)
{
    int status = s->reply.status;
    if (s->status != CV_OK || status < 200 || status > 299) return false;
    cv_xml rest = {(const char *)s->answer.data, NULL}, inside;
    if (!s->proof) return true;
    rest.end = rest.at ? rest.at + s->answer.size : rest.at;
    return rest.at && cv_xml_next(&rest, s->proof, &inside);
}

/* S3 answers 409 while somebody else writes the same key, and, when many parts are put
 * together, 200 before it knows. */
static bool is_for_a_while(const cv_send *s)
{
    int status = s->reply.status;
    if (status == 409) return s->object->session->is_s3;
    if (status >= 200 && status <= 299) return !cv_send_is_good(s);
    return cv_reply_is_busy(status);
}

/* Seconds after which the server asks to be tried again. */
static uint32_t wait_asked(const cv_send *s)
{
    return cv_reply_wait(&s->reply, (int64_t)(cv_os_time_ns() / 1000000000));
}

static int64_t try_again(cv_send *s, uint32_t asked_s)
{
    int64_t pause = cv_session_pause(s->object->session, &s->failures, asked_s);
    if (pause >= 0) return pause;
    if (s->status != CV_OK) cv_session_count_attempts(&s->error, s->attempts, asked_s);
    return CV_WIRE_DONE;
}

static int64_t broken(cv_send *s, const cv_wire_end *end)
{
    cv_session *session = s->object->session;
    s->may_be_done = s->may_be_done || (end->was_connected && s->is_sent);
    if (s->status != CV_OK) return CV_WIRE_DONE;
    (void)fail(s, cv_http_object_broken(s->object, s->url, end, &s->error));
    bool may_recover = end->was_connected || atomic_load(&session->has_connected);
    return end->is_broken && may_recover ? try_again(s, 0) : CV_WIRE_DONE;
}

static cv_status parse(cv_send *s, cv_error *err)
{
    return cv_reply_parse((const char *)s->head.data, s->head.size, &s->reply, err);
}

/* Who refuses a body may close the connection on it. */
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
    if (!is_for_a_while(s)) return CV_WIRE_DONE;
    s->may_be_done = s->may_be_done || s->reply.status >= 500 || s->reply.status < 300;
    return try_again(s, wait_asked(s));
}

static void tell(const cv_send *s, const cv_wire_end *end)
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
        .attempt = s->attempts,
        .ranges = 1,
        .error = s->status != CV_OK ? s->error.message : NULL,
    };
    cv_wire_give_turn();
    o->on_request(o->context, &transfer);
    cv_wire_take_turn();
}

static int64_t end_attempt(cv_wire *wire, const cv_wire_end *end)
{
    cv_send *s = of(wire);
    cv_session *session = s->object->session;
    atomic_fetch_add(&session->requests, 1);
    int64_t again = decide(s, end);
    if (end->was_connected) atomic_store(&session->has_connected, true);
    tell(s, end);
    if (again != CV_WIRE_DONE) s->status = CV_OK;
    return again;
}

static void gone(cv_wire *wire)
{
    cv_send *s = of(wire);
    if (s->status == CV_OK && s->reply.status == 0)
        (void)fail(s, cv_wire_fail_gone(wire, &s->error));
    cv_buffer_free(&s->head);
    cv_free(s->url);
    s->url = NULL;
    s->gone(s);
}

/* ---- Beginning ------------------------------------------------------------------------ */

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

/* Of who is signed, the body is, too: the server then takes no other bytes. */
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

cv_status cv_send_begin_alone(cv_send *s, cv_error *err) { return submit(s, err); }

/* ---- Several ------------------------------------------------------------------------- */

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

/* With the lock. */
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

cv_status cv_send_begin(cv_send *s, cv_sends *sends, cv_watch *watch, cv_error *err)
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

static cv_status tell_watch(cv_sends *sends, cv_watch *watch, cv_error *err)
{
    int64_t given = atomic_load(&sends->given), news = given - sends->told;
    sends->told = given;
    return cv_watch_tick(watch, news, err);
}

cv_status cv_sends_wait(cv_sends *sends, size_t most, cv_watch *watch, cv_error *err)
{
    cv_status status = CV_OK;
    cv_mutex_lock(&sends->lock);
    while (sends->n > most && status == CV_OK) {
        cv_cond_wait_for(&sends->changed, &sends->lock, LOOK_NS);
        cv_mutex_unlock(&sends->lock);
        status = tell_watch(sends, watch, err);
        cv_mutex_lock(&sends->lock);
    }
    cv_mutex_unlock(&sends->lock);
    return status;
}

void cv_sends_cancel(cv_sends *sends)
{
    cv_mutex_lock(&sends->lock);
    while (sends->n > 0) {
        for (cv_send *s = sends->first; s; s = s->next) cv_wire_cancel(&s->wire);
        cv_cond_wait(&sends->changed, &sends->lock);
    }
    cv_mutex_unlock(&sends->lock);
}

static void wait_a_little(cv_sends *sends)
{
    const uint64_t ns = 500000000, begun = cv_os_clock_ns();
    cv_mutex_lock(&sends->lock);
    while (sends->n > 0 && cv_os_clock_ns() - begun < ns)
        cv_cond_wait_for(&sends->changed, &sends->lock, LOOK_NS);
    cv_mutex_unlock(&sends->lock);
}

static cv_status do_one(cv_send *s, cv_sends *sends, bool settles, cv_watch *watch,
                        cv_error *err)
{
    CV_TRY(cv_send_begin(s, sends, watch, err));
    cv_status status = cv_sends_wait(sends, 0, watch, err);
    if (settles) wait_a_little(sends);
    cv_sends_cancel(sends);
    if (status == CV_OK && s->status != CV_OK && err) *err = s->error;
    return status == CV_OK ? s->status : status;
}

cv_status cv_send_do(cv_send *s, cv_sends *sends, cv_watch *watch, cv_error *err)
{
    return do_one(s, sends, false, watch, err);
}

cv_status cv_send_settle(cv_send *s, cv_sends *sends, cv_watch *watch, cv_error *err)
{
    return do_one(s, sends, true, watch, err);
}

void cv_send_free(cv_send *s) { cv_buffer_free(&s->answer); }

/* ---- Refusals ------------------------------------------------------------------------- */

static const struct {
    int status;
    cv_status code;
    const char *sentence;
} refusals[] = {
    {400, CATERVA_EIO, "the server refuses it"},
    {401, CATERVA_EIO, "it wants credentials"},
    {403, CATERVA_EIO, "it may not be written with these credentials"},
    {404, CATERVA_ENOTFOUND, "there is no such bucket, or nothing can be written there"},
    {405, CATERVA_EUNSUPPORTED, "the server takes no files there"},
    {409, CATERVA_EIO, "the folder is not there, or somebody else is writing"},
    {411, CATERVA_EUNSUPPORTED, "the server refuses it"},
    {412, CATERVA_EEXIST, "something is there already"},
    {413, CATERVA_EUNSUPPORTED, "the server takes nothing so large"},
    {501, CATERVA_EUNSUPPORTED, "the server does not know how"},
    {507, CATERVA_EIO, "the server has no room for it"},
};

/* What was there when the request was decided on is not there any more. */
static void refuse_lost(const cv_send *s, const char *code, cv_status *kind,
                        const char **sentence)
{
    int status = s->reply.status;
    bool replaces = s->condition && strncmp(s->condition, "If-Match", 8) == 0;
    if (status == 404 && strcmp(code, ", NoSuchUpload") == 0) {
        *sentence = "the upload is not there any more: it was aborted, or finished, by "
                    "somebody else or a rule of the bucket";
    } else if (replaces && (status == 404 || status == 412)) {
        *kind = CATERVA_EEXIST;
        *sentence = status == 404 ? "what was to be replaced is gone meanwhile"
                                  : "what was to be replaced is another now: somebody else "
                                    "was quicker";
    }
}

cv_status cv_send_refused(const cv_send *s, cv_error *err)
{
    char code[CV_XML_REFUSAL_SIZE];
    int status = s->reply.status;
    const char *sentence = status >= 300 && status < 400
                               ? "the server redirects, which nothing that is written follows"
                               : "the server answers";
    cv_status kind = CATERVA_EIO;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].status != status) continue;
        sentence = refusals[i].sentence;
        kind = refusals[i].code;
    }
    cv_xml_refusal(s->answer.data, s->answer.size, code);
    refuse_lost(s, code, &kind, &sentence);
    (void)cv_fail(err, kind, -1, "%s: %s (status %d%s)", s->object->name.text, sentence, status,
                  code);
    if (err && (status == 401 || status == 403)) err->sys_errno = EACCES;
    if (err)
        cv_session_count_attempts(err, s->attempts,
                                  cv_reply_is_busy(status) ? wait_asked(s) : 0);
    return kind;
}
