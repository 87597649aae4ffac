/* Room: remote. Objects on servers: URLs as they are sent, header fields with credentials, and
 * redirects. Signed requests follow no redirect. The caller's headers and signatures are sent to no
 * other server. */
#include "remote/server.h"

#include "base/os.h"

#include <stdio.h>
#include <string.h>

/* ---- URLs as they are sent -------------------------------------------------------------- */

enum { MOST_URL = 16 * 1024 };

typedef struct text {
    char *at, *end;
    bool full;
    char room[MOST_URL];
} text;

static void begin(text *t)
{
    t->at = t->room;
    t->end = t->room + sizeof t->room - 1;
    t->full = false;
}

static void add(text *t, const char *bytes, size_t size)
{
    if (t->full || (size_t)(t->end - t->at) < size) {
        t->full = true;
        return;
    }
    memcpy(t->at, bytes, size);
    t->at += size;
}

static void add_text(text *t, const char *s) { add(t, s, strlen(s)); }

static void add_encoded(text *t, const char *bytes, size_t size)
{
    char *at = t->full ? NULL : cv_url_encode(bytes, size, true, t->at, t->end);
    t->full = !at;
    if (at) t->at = at;
}

/* Encodes characters that a URL must not contain. Does not encode "%" again. */
static void add_safe(text *t, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x80 || strchr("\"<>^`{|}", c))
            add_encoded(t, bytes + i, 1);
        else
            add(t, bytes + i, 1);
    }
}

static char *end_text(text *t)
{
    *t->at = '\0';
    return t->full ? NULL : cv_strdup(t->room);
}

static void add_port(text *t, const cv_url *u)
{
    char port[16];
    int usual = u->scheme == CV_SCHEME_HTTP ? 80 : 443;
    if (u->port == 0 || u->port == usual) return;
    (void)snprintf(port, sizeof port, ":%d", u->port);
    add_text(t, port);
}

static cv_status place_http(cv_remote_object *o, const cv_url *u, const char *member, text *t)
{
    begin(t);
    add_text(t, u->scheme == CV_SCHEME_HTTP ? "http://" : "https://");
    add(t, u->host, u->host_size);
    add_port(t, u);
    if (u->path_size == 0 && !*member) add_text(t, "/");
    add_safe(t, u->path, u->path_size);
    add_encoded(t, member, strlen(member));
    if (u->query) add_text(t, "?");
    add_safe(t, u->query ? u->query : "", u->query_size);
    o->url = end_text(t);
    return o->url ? CV_OK : CATERVA_ENOMEM;
}

static void make_endpoint(const cv_session *s, char *to, size_t size)
{
    const char *region = s->credentials.region;
    const char *end = strncmp(region, "cn-", 3) == 0 ? ".cn" : "";
    (void)snprintf(to, size, "https://s3.%.60s.amazonaws.com%s", region, end);
}

/* Whether the bucket's name goes into the path. By default it does if an endpoint is set, or if the
 * name contains dots, because certificates do not cover such names as hosts. */
static bool is_path_style(const cv_session *s, const cv_url *bucket)
{
    caterva_addressing asked = s->options.addressing;
    if (asked != CATERVA_ADDRESSING_DEFAULT) return asked == CATERVA_ADDRESSING_PATH;
    bool has_dots = memchr(bucket->host, '.', bucket->host_size) != NULL;
    return s->credentials.endpoint || has_dots;
}

static cv_status place_s3(cv_remote_object *o, const cv_url *u, const char *member, text *t,
                          cv_error *err)
{
    const cv_session *s = o->session;
    char amazon[128];
    cv_url e;
    bool in_path = is_path_style(s, u);
    make_endpoint(s, amazon, sizeof amazon);
    CV_TRY(cv_url_parse(s->credentials.endpoint ? s->credentials.endpoint : amazon, &e, err));
    begin(t);
    if (!in_path) {
        add(t, u->host, u->host_size);
        add_text(t, ".");
    }
    add(t, e.host, e.host_size);
    add_port(t, &e);
    o->host = end_text(t);
    begin(t);
    add_text(t, "/");
    if (in_path) {
        add_encoded(t, u->host, u->host_size);
        add_text(t, "/");
    }
    add_encoded(t, u->path, u->path_size);
    add_encoded(t, member, strlen(member));
    o->path = end_text(t);
    if (!o->host || !o->path) return CATERVA_ENOMEM;
    begin(t);
    add_text(t, e.scheme == CV_SCHEME_HTTP ? "http://" : "https://");
    add_text(t, o->host);
    add_text(t, o->path);
    o->url = end_text(t);
    o->is_signed = s->credentials.access_key != NULL;
    return o->url ? CV_OK : CATERVA_ENOMEM;
}

static cv_status place(cv_remote_object *o, const char *url, const char *member,
                       cv_error *err)
{
    cv_url parsed;
    CV_TRY(cv_url_parse(url, &parsed, err));
    text *t = cv_malloc(sizeof *t);
    if (!t) return cv_fail_memory(err, sizeof *t, "a URL");
    t->full = false;
    cv_status status = parsed.scheme == CV_SCHEME_S3 ? place_s3(o, &parsed, member, t, err)
                                                     : place_http(o, &parsed, member, t);
    bool full = t->full;
    cv_free(t);
    if (status == CATERVA_ENOMEM && full)
        return cv_fail(err, CATERVA_EINVAL, -1, "the URL is longer than %d bytes", MOST_URL);
    return status == CATERVA_ENOMEM ? cv_fail_memory(err, MOST_URL, "a URL") : status;
}

cv_status cv_remote_object_new(cv_session *session, const char *url, const char *member,
                               cv_remote_object **out, cv_error *err)
{
    cv_remote_object *o = cv_calloc(1, sizeof *o);
    if (!o) return cv_fail_memory(err, sizeof *o, "a URL");
    cv_session_retain(session);
    o->session = session;
    o->version.size = UINT64_MAX;
    o->name = cv_show_url(url);
    cv_mutex_init(&o->lock);
    cv_status status = place(o, url, member, err);
    if (status == CV_OK)
        *out = o;
    else
        cv_remote_object_free(o);
    return status;
}

void cv_remote_object_free(cv_remote_object *o)
{
    if (!o) return;
    cv_session_release(o->session);
    cv_mutex_destroy(&o->lock);
    cv_free(o->url);
    cv_free(o->host);
    cv_free(o->path);
    cv_free(o->location);
    cv_free(o);
}

void cv_remote_object_meet(cv_remote_object *o, const cv_reply *reply,
                           const cv_content_range *content)
{
    cv_reply_version(reply, content, &o->version);
    if (reply->most_ranges > 0)
        cv_multirange_expect(&o->session->multirange, (size_t)reply->most_ranges);
}

/* Messages about certificates name the host of `url`, which may be the target of a redirect. */
cv_status cv_remote_object_broken(const cv_remote_object *o, const char *url,
                                  const cv_wire_end *end, cv_error *err)
{
    cv_url at;
    if (end->lacks_memory)
        return cv_fail(err, CATERVA_ENOMEM, -1, "%s: %.90s", o->name.text, end->why);
    if (!end->is_untrusted || cv_url_parse(url, &at, NULL) != CV_OK)
        return cv_fail(err, CATERVA_EIO, -1, "%s: %.90s", o->name.text, end->why);
    return cv_fail(err, CATERVA_EIO, -1, "%.80s: the certificate of %.*s is refused: %.90s",
                   o->name.text, at.host_size < 60 ? (int)at.host_size : 60, at.host,
                   end->why);
}

/* ---- Header fields ------------------------------------------------------------------------ */

cv_status cv_add_field(cv_buffer *fields, const char *name, const char *value, cv_error *err)
{
    CV_TRY(cv_buffer_append(fields, name, strlen(name), err));
    CV_TRY(cv_buffer_append(fields, ": ", 2, err));
    return cv_buffer_append(fields, value, strlen(value) + 1, err);
}

static cv_status add_signature(cv_remote_object *o, const cv_request_head *head,
                               cv_buffer *fields, cv_error *err)
{
    static const char no_body[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const cv_credentials *c = &o->session->credentials;
    const char *payload = head->payload ? head->payload : no_body;
    char time[CV_SIGN_TIME];
    cv_sign_time(cv_os_time_ns() / 1000000000, time);
    cv_signed_field signed_fields[5] = {
        {"host", o->host}, {"x-amz-content-sha256", payload}, {"x-amz-date", time}};
    int n = 3;
    if (head->write_id)
        signed_fields[n++] = (cv_signed_field){CV_WRITE_ID_FIELD, head->write_id};
    if (c->session_token)
        signed_fields[n++] = (cv_signed_field){"x-amz-security-token", c->session_token};
    const cv_signing signing = {.method = head->method,
                                .path = o->path,
                                .query = head->query ? head->query : "",
                                .fields = signed_fields,
                                .n_fields = n,
                                .payload = payload,
                                .time = time,
                                .region = c->region,
                                .service = "s3",
                                .access_key = c->access_key,
                                .secret_key = c->secret_key};
    for (int i = 1; i < n; i++)
        CV_TRY(cv_add_field(fields, signed_fields[i].name, signed_fields[i].value, err));
    static const char name[] = "Authorization: ";
    CV_TRY(cv_buffer_append(fields, name, sizeof name - 1, err));
    return cv_sign(&signing, fields, err);
}

typedef struct adding {
    cv_buffer *fields;
    cv_status status;
    int n;
    cv_error *err;
} adding;

static void add_header(void *token, const char *header)
{
    adding *a = token;
    if (a->status == CV_OK) a->status = cv_header_check(header, a->n++, a->err);
    if (a->status == CV_OK)
        a->status = cv_buffer_append(a->fields, header, strlen(header) + 1, a->err);
}

static cv_status add_users(const caterva_remote_options *o, cv_buffer *fields, cv_error *err)
{
    for (int i = 0; i < o->n_headers; i++)
        CV_TRY(cv_buffer_append(fields, o->headers[i], strlen(o->headers[i]) + 1, err));
    adding a = {.fields = fields, .status = CV_OK, .err = err};
    if (!o->on_headers) return CV_OK;
    cv_wire_give_turn();
    o->on_headers(o->context, add_header, &a);
    cv_wire_take_turn();
    return a.status;
}

cv_status cv_request_add_fields(cv_remote_object *o, const cv_request_head *head,
                                cv_buffer *fields, cv_error *err)
{
    cv_url own, to;
    CV_TRY(cv_add_field(fields, "User-Agent", "caterva/" CATERVA_VERSION_STRING, err));
    CV_TRY(cv_add_field(fields, "Accept-Encoding", "identity", err));
    if (cv_url_parse(o->url, &own, NULL) != CV_OK ||
        cv_url_parse(head->url, &to, NULL) != CV_OK || !cv_url_same_origin(&own, &to))
        return CV_OK;
    CV_TRY(add_users(&o->session->options, fields, err));
    if (o->is_signed) return add_signature(o, head, fields, err);
    return head->write_id ? cv_add_field(fields, CV_WRITE_ID_FIELD, head->write_id, err)
                          : CV_OK;
}

/* ---- Routes ------------------------------------------------------------------------------- */

cv_status cv_route_begin(cv_route *route, cv_remote_object *object, cv_error *err)
{
    cv_mutex_lock(&object->lock);
    route->is_redirected = object->location != NULL;
    route->url = cv_strdup(route->is_redirected ? object->location : object->url);
    cv_mutex_unlock(&object->lock);
    return route->url ? CV_OK : cv_fail_memory(err, 1, "a URL");
}

static void set_location(cv_remote_object *o, const char *location)
{
    char *copy = location ? cv_strdup(location) : NULL;
    cv_mutex_lock(&o->lock);
    char *old = o->location;
    o->location = copy;
    cv_mutex_unlock(&o->lock);
    cv_free(old);
}

static cv_status check_redirect(const cv_remote_object *o, const char *from, const char *to,
                                cv_error *err)
{
    cv_url a, b;
    cv_error reason = {0};
    if (o->is_signed)
        return cv_fail(err, CATERVA_EIO, -1,
                       "%s: the server redirects, but signed requests follow no redirects: "
                       "the bucket may be in another region",
                       o->name.text);
    if (cv_url_parse(from, &a, &reason) != CV_OK || cv_url_parse(to, &b, &reason) != CV_OK)
        return cv_fail(err, CATERVA_EIO, -1, "%s: the server redirects: %.150s", o->name.text,
                       reason.message);
    if (b.scheme == CV_SCHEME_S3 ||
        (a.scheme == CV_SCHEME_HTTPS && b.scheme != CV_SCHEME_HTTPS))
        return cv_fail(err, CATERVA_EIO, -1,
                       "%s: the server redirects from https to http, which is not followed",
                       o->name.text);
    return CV_OK;
}

cv_status cv_route_follow(cv_route *route, const cv_remote_object *object, const char *to,
                          cv_error *err)
{
    enum { MOST_REDIRECTS = 5 };
    if (route->n_redirects++ >= MOST_REDIRECTS || !to)
        return cv_fail(err, CATERVA_EIO, -1,
                       to ? "%s: the server redirects too often"
                          : "%s: the server redirects without a Location",
                       object->name.text);
    CV_TRY(check_redirect(object, route->url, to, err));
    char *copy = cv_strdup(to);
    if (!copy) return cv_fail_memory(err, strlen(to), "a URL");
    cv_free(route->url);
    route->url = copy;
    route->is_redirected = true;
    return CV_OK;
}

bool cv_route_is_dead(int status)
{
    return status == 401 || status == 403 || status == 404 || status == 410;
}

bool cv_route_restart(cv_route *route, cv_remote_object *object, int status)
{
    if (!route->is_redirected || !cv_route_is_dead(status)) return false;
    if (strcmp(route->url, object->url) == 0 || route->n_redirects > 0) return false;
    route->n_redirects++;
    set_location(object, NULL);
    cv_free(route->url);
    route->url = NULL;
    return true;
}

void cv_route_keep(const cv_route *route, cv_remote_object *object)
{
    if (route->n_redirects > 0 && route->is_redirected) set_location(object, route->url);
}
