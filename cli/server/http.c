/* Room: cli/server. HTTP/1.1 by libmicrohttpd: methods, conditions, ranges, and limits of
 * connections, time and memory. Only this file includes its header. Requests run on a few threads;
 * the main thread waits for a signal, and closes connections that take too long. */
#include "server/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 4,
    CONNECTIONS = 512,
    CROWD = 256, /* connections: from here on each has one request, as more may be waiting */
    CONNECTION_MEMORY =
        16 << 10,         /* bytes: request line and headers, and those of the answer */
    QUIET = 20,           /* seconds without a byte until a connection is closed */
    QUIET_IN_CROWD = 2,   /* the same between requests */
    SECONDS_TO_ASK = 30,  /* from connecting to the end of the headers */
    SECONDS_BETWEEN = 60, /* the same for further requests */
    SECONDS_OF_WAIT = 20, /* for memory, then the answer is 503 */
    TRIES = 5,            /* to read a small part of a file while it changes */
    PIECE = 64 << 10,     /* bytes of a file that are read at once */
    SLOWEST = 16 << 10    /* bytes per second of an answer in memory, at least */
};

/* ---- Connections -------------------------------------------------------------------------- */

typedef struct client {
    struct client *next, *previous;
    int socket;
    int64_t deadline;   /* s; 0: none */
    int64_t idle_since; /* s; 0: it has not ended a request, or has begun another */
} client;

typedef struct exchange exchange;

typedef struct server {
    answerer *answers;
    pthread_mutex_t lock; /* guards the list, and keeps sockets in it open */
    client *clients;
    int n_clients;
    pthread_mutex_t
        wait_lock; /* guards what follows; no other lock is taken by its holders */
    pthread_cond_t someone_waits;
    exchange *waiting; /* for memory: suspended, the oldest first */
    bool is_stopping;
} server;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec;
}

static void add_client(server *s, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    client *c = malloc(sizeof *c);
    *context = c;
    if (!c) return; /* without a deadline */
    *c = (client){.socket = info ? (int)info->connect_fd : -1,
                  .deadline = now() + SECONDS_TO_ASK};
    pthread_mutex_lock(&s->lock);
    c->next = s->clients;
    if (c->next) c->next->previous = c;
    s->clients = c;
    s->n_clients++;
    pthread_mutex_unlock(&s->lock);
}

static void remove_client(server *s, client *c)
{
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    if (c->next) c->next->previous = c->previous;
    *(c->previous ? &c->previous->next : &s->clients) = c->next;
    s->n_clients--;
    pthread_mutex_unlock(&s->lock);
    free(c);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        add_client(cls, connection, context);
    else
        remove_client(cls, *context);
}

/* `is_idle`: between requests. */
static void set_deadline(server *s, struct MHD_Connection *connection, int64_t seconds,
                         bool is_idle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    client *c = info ? info->socket_context : NULL;
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    c->deadline = seconds > 0 ? now() + seconds : 0;
    c->idle_since = is_idle ? now() : 0;
    pthread_mutex_unlock(&s->lock);
}

static bool is_late(const client *c, bool in_crowd)
{
    return (c->deadline > 0 && c->deadline < now()) ||
           (in_crowd && c->idle_since > 0 && c->idle_since + QUIET_IN_CROWD < now());
}

static void close_late(server *s)
{
    pthread_mutex_lock(&s->lock);
    for (const client *c = s->clients; c; c = c->next)
        if (c->socket >= 0 && is_late(c, s->n_clients > CROWD))
            (void)shutdown(c->socket, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
}

static bool is_crowded(server *s)
{
    pthread_mutex_lock(&s->lock);
    bool crowded = s->n_clients > CROWD;
    pthread_mutex_unlock(&s->lock);
    return crowded;
}

/* ---- Conditions and ranges ----------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Whether a list of tags has this one, or is "*". A weak tag counts if `weak`. */
static bool has_tag(const char *list, const char *tag, bool weak)
{
    size_t size = strlen(tag);
    if (strcmp(list, "*") == 0) return true;
    for (const char *at = list; (at = strstr(at, tag)); at += size)
        if (weak || at - list < 2 || at[-1] != '/') return true;
    return false;
}

typedef enum range_kind { RANGE_NONE, RANGE_GOOD, RANGE_BAD } range_kind;

typedef struct range {
    int64_t start, size;
} range;

/* Reads a number. Returns false without a digit, and if the number is too large. */
static bool take_number(const char **text, int64_t *out)
{
    const char *at = *text;
    *out = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (*out > (INT64_MAX - 9) / 10) return false;
        *out = *out * 10 + (*at - '0');
    }
    bool some = at > *text;
    *text = at;
    return some;
}

/* One range. Several, and what is no range, count as none: the whole is the answer. */
static range_kind parse_range(const char *text, int64_t total, range *out)
{
    static const char unit[] = "bytes=";
    int64_t first = 0, last = total - 1;
    if (strncasecmp(text, unit, sizeof unit - 1) != 0) return RANGE_NONE;
    text += sizeof unit - 1;
    bool has_first = take_number(&text, &first);
    if (*text++ != '-') return RANGE_NONE;
    bool has_last = take_number(&text, &last);
    if (*text || (!has_first && !has_last)) return RANGE_NONE;
    if (has_first && has_last && last < first) return RANGE_NONE;
    if (!has_last) last = total - 1;
    if (!has_first) { /* the last bytes */
        first = last < total ? total - last : 0;
        if (last == 0) return RANGE_BAD;
        last = total - 1;
    }
    if (first >= total) return RANGE_BAD;
    if (last >= total) last = total - 1;
    *out = (range){first, last - first + 1};
    return RANGE_GOOD;
}

/* ---- Answers ------------------------------------------------------------------------------- */

struct exchange {
    server *server;
    answer answer;
    int64_t start; /* of the answer's bytes in the whole, or of the wanted part of its file */
    struct MHD_Connection *connection; /* while it waits */
    int64_t until;                     /* s: waits no longer; 0: has not waited */
    exchange *next;
};

static void add_common(struct MHD_Response *response)
{
    (void)MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
    (void)MHD_add_response_header(response, "Access-Control-Expose-Headers",
                                  "Accept-Ranges, Content-Length, Content-Range, ETag");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Server", "caterva");
}

static enum MHD_Result queue(server *s, struct MHD_Connection *connection, unsigned status,
                             struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    if (is_crowded(s)) (void)MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result queue_empty(server *s, struct MHD_Connection *connection,
                                   unsigned status, const char *name, const char *value)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (char[]){""}, MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    add_common(response);
    if (name) (void)MHD_add_response_header(response, name, value);
    return queue(s, connection, status, response);
}

static enum MHD_Result queue_options(server *s, struct MHD_Connection *connection)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (char[]){""}, MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    add_common(response);
    (void)MHD_add_response_header(response, "Access-Control-Allow-Methods",
                                  "GET, HEAD, OPTIONS");
    (void)MHD_add_response_header(response, "Access-Control-Allow-Headers",
                                  "If-Match, If-None-Match, If-Range, Range");
    (void)MHD_add_response_header(response, "Access-Control-Max-Age", "86400");
    return queue(s, connection, MHD_HTTP_NO_CONTENT, response);
}

/* Reads the next piece of a file. If the file has changed, the connection ends before the answer
 * does, so that no client takes parts of two states for one. */
static ssize_t read_piece(void *cls, uint64_t position, char *out, size_t most)
{
    const exchange *e = cls;
    int64_t at = e->start + (int64_t)position;
    return answer_read(&e->answer, at, out, most) ? (ssize_t)most
                                                  : MHD_CONTENT_READER_END_WITH_ERROR;
}

/* A small part of a file becomes bytes. False if the file has changed. */
static bool load(exchange *e, const range *part)
{
    answer *a = &e->answer;
    e->start = a->file >= 0 ? part->start : 0;
    if (a->file < 0 || part->size > PIECE) return true;
    void *bytes = malloc(part->size > 0 ? (size_t)part->size : 1);
    if (!bytes || !answer_read(a, part->start, bytes, (size_t)part->size)) {
        free(bytes);
        return !bytes;
    }
    close(a->file);
    a->file = -1;
    a->bytes = bytes;
    a->size = (size_t)part->size;
    return true;
}

static struct MHD_Response *make_body(exchange *e, const range *part)
{
    const answer *a = &e->answer;
    if (a->file < 0)
        return MHD_create_response_from_buffer((size_t)part->size,
                                               (char *)a->bytes + (part->start - e->start),
                                               MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_callback((uint64_t)part->size, PIECE, read_piece, e,
                                             NULL);
}

/* The decoder of Blosc in the viewer is WebAssembly in a data URL, and makes functions of text. */
static const char policy[] =
    "default-src 'self'; connect-src 'self' data:; "
    "script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; frame-ancestors 'self'";

static enum MHD_Result queue_part(exchange *e, struct MHD_Connection *connection,
                                  const range *part, bool is_part, int64_t total)
{
    const answer *a = &e->answer;
    char text[80];
    int status = is_part ? MHD_HTTP_PARTIAL_CONTENT : a->status;
    struct MHD_Response *response = make_body(e, part);
    if (!response) return MHD_NO;
    add_common(response);
    (void)MHD_add_response_header(response, "Content-Type", a->type);
    if (a->etag[0]) {
        (void)MHD_add_response_header(response, "ETag", a->etag);
        (void)MHD_add_response_header(response, "Accept-Ranges", "bytes");
    }
    (void)MHD_add_response_header(response, "Cache-Control",
                                  a->status == MHD_HTTP_OK ? "no-cache" : "no-store");
    if (a->is_page)
        (void)MHD_add_response_header(response, "Content-Security-Policy", policy);
    if (a->status == MHD_HTTP_SERVICE_UNAVAILABLE)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    if (is_part) {
        (void)snprintf(text, sizeof text, "bytes %lld-%lld/%lld", (long long)part->start,
                       (long long)(part->start + part->size - 1), (long long)total);
        (void)MHD_add_response_header(response, "Content-Range", text);
    }
    return queue(e->server, connection, (unsigned)status, response);
}

/* The client has these bytes. */
static enum MHD_Result queue_same(exchange *e, struct MHD_Connection *connection)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (char[]){""}, MHD_RESPMEM_MUST_COPY);
    if (!response) return MHD_NO;
    add_common(response);
    (void)MHD_add_response_header(response, "ETag", e->answer.etag);
    (void)MHD_add_response_header(response, "Cache-Control", "no-cache");
    return queue(e->server, connection, MHD_HTTP_NOT_MODIFIED, response);
}

/* Sets *changed instead if the answer's file has changed meanwhile, unless `changed` is NULL. */
static enum MHD_Result queue_answer(exchange *e, struct MHD_Connection *connection,
                                    bool *changed)
{
    const answer *a = &e->answer;
    int64_t total = a->file >= 0 ? a->state.size : (int64_t)a->size;
    range part = {0, total};
    range_kind kind = RANGE_NONE;
    bool is_good = a->status == MHD_HTTP_OK;
    const char *match = header(connection, "If-Match");
    const char *none_match = header(connection, "If-None-Match");
    const char *wanted = header(connection, "Range"),
               *if_range = header(connection, "If-Range");
    if (is_good && match && !has_tag(match, a->etag, false))
        return queue_empty(e->server, connection, MHD_HTTP_PRECONDITION_FAILED, NULL, NULL);
    if (is_good && none_match && has_tag(none_match, a->etag, true))
        return queue_same(e, connection);
    if (is_good && wanted && (!if_range || strcmp(if_range, a->etag) == 0))
        kind = parse_range(wanted, total, &part);
    if (kind == RANGE_BAD) {
        char text[40];
        (void)snprintf(text, sizeof text, "bytes */%lld", (long long)total);
        return queue_empty(e->server, connection, MHD_HTTP_RANGE_NOT_SATISFIABLE,
                           "Content-Range", text);
    }
    if (!load(e, &part) && changed) {
        *changed = true;
        return MHD_YES;
    }
    set_deadline(e->server, connection,
                 a->file >= 0 ? 0 : SECONDS_TO_ASK + part.size / SLOWEST, false);
    return queue_part(e, connection, &part, kind == RANGE_GOOD, total);
}

/* ---- Requests that wait for memory ---------------------------------------------------------- */

/* Suspends the connection; the request is made again later. False if it has waited long enough. */
static bool wait_for_memory(exchange *e, struct MHD_Connection *connection)
{
    server *s = e->server;
    if (e->until == 0) e->until = now() + SECONDS_OF_WAIT;
    pthread_mutex_lock(&s->wait_lock);
    bool may_wait = !s->is_stopping && now() < e->until;
    if (may_wait) {
        exchange **at = &s->waiting;
        while (*at && (*at)->until <= e->until) at = &(*at)->next;
        e->connection = connection;
        e->next = *at;
        *at = e;
        MHD_suspend_connection(connection);
        pthread_cond_signal(&s->someone_waits);
    }
    pthread_mutex_unlock(&s->wait_lock);
    return may_wait;
}

/* Waits a moment, then lets the oldest go on, one for each thread; all of them if `is_stopping`. */
static void resume_some(server *s, bool is_stopping)
{
    enum { SOON = 10 * 1000 * 1000, LATER = 200 * 1000 * 1000 }; /* ns */
    struct timespec until;
    pthread_mutex_lock(&s->wait_lock);
    s->is_stopping = is_stopping;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += s->waiting ? SOON : LATER;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!is_stopping) (void)pthread_cond_timedwait(&s->someone_waits, &s->wait_lock, &until);
    for (int i = 0; s->waiting && (i < THREADS || is_stopping); i++) {
        exchange *first = s->waiting;
        s->waiting = first->next;
        MHD_resume_connection(first->connection);
    }
    pthread_mutex_unlock(&s->wait_lock);
}

/* ---- Requests ------------------------------------------------------------------------------ */

static bool is_read(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
           strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Returns the path of a target in absolute form, "http://HOST/PATH". */
static const char *path_of(const char *url)
{
    static const char scheme[] = "http://";
    size_t size = sizeof scheme - 1;
    if (strncasecmp(url, scheme, size) != 0) return url;
    const char *path = strchr(url + size, '/');
    return path ? path : "/";
}

/* Called for each request at the end of the headers, at the end of the request, and after each wait. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection,
                                  const char *url, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **context)
{
    (void)version;
    (void)upload;
    exchange *e = *context;
    if (!e) {
        if (strcmp(method, MHD_HTTP_METHOD_OPTIONS) == 0)
            return queue_options(cls, connection);
        if (!is_read(method))
            return queue_empty(cls, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow",
                               "GET, HEAD, OPTIONS");
        e = malloc(sizeof *e);
        if (!e) return MHD_NO;
        *e = (exchange){.server = cls, .answer = {.file = -1}};
        *context = e;
        return MHD_YES;
    }
    if (*upload_size > 0) return MHD_NO; /* a body, which no read has */
    for (int tries = 1;; tries++) {
        bool changed = false;
        answer_make(e->server->answers, path_of(url), &e->answer);
        bool waits = e->answer.is_busy && wait_for_memory(e, connection);
        enum MHD_Result result =
            waits ? MHD_YES : queue_answer(e, connection, tries < TRIES ? &changed : NULL);
        if (!waits && !changed) return result;
        answer_free(e->server->answers, &e->answer);
        if (waits) return MHD_YES;
    }
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    exchange *e = *context;
    set_deadline(cls, connection, SECONDS_BETWEEN, true);
    if (!e) return;
    answer_free(e->server->answers, &e->answer);
    free(e);
    *context = NULL;
}

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes %XX in place, once; %00 and what is no number stay. */
static size_t unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    char *to = text;
    (void)cls;
    (void)connection;
    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? digit_of(at[1]) : -1, low = high >= 0 ? digit_of(at[2]) : -1;
        bool is_escape = low >= 0 && high + low > 0;
        uint8_t byte = (uint8_t)(is_escape ? high * 16 + low : *at);
        memcpy(to++, &byte, 1);
        if (is_escape) at += 2;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* ---- The server ---------------------------------------------------------------------------- */

static struct MHD_Daemon *start(server *s, const struct addrinfo *where)
{
    /* With epoll, version 0.9.75 does not look at some connections if many arrive at once. Without ITC,
     * threads that have all the connections they may have are not woken up to stop. */
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME;
    if (MHD_is_feature_supported(MHD_FEATURE_POLL) == MHD_YES) flags |= MHD_USE_POLL;
    if (where->ai_family == AF_INET6) flags |= MHD_USE_IPv6;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_SOCK_ADDR, where->ai_addr,
        MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)QUIET,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, s, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_END);
}

static cli_exit find_address(const http_options *options, struct addrinfo **out)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    (void)snprintf(port, sizeof port, "%d", options->port);
    int error = getaddrinfo(options->address, port, &hints, out);
    if (error == 0) return CLI_OK;
    return cli_fail(CLI_USAGE, "--bind %s: %s", cli_show(options->address).text,
                    gai_strerror(error));
}

static void announce(struct MHD_Daemon *daemon, const char *address, size_t n_items)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    bool is_six = strchr(address, ':') != NULL;
    printf("serving %zu %s at http://%s%s%s:%u/\n", n_items, n_items == 1 ? "file" : "files",
           is_six ? "[" : "", cli_show(address).text, is_six ? "]" : "",
           info ? (unsigned)info->port : 0);
    fflush(stdout);
}

cli_exit http_serve(answerer *answers, const http_options *options, size_t n_items)
{
    struct addrinfo *where;
    server s = {.answers = answers};
    CLI_TRY(find_address(options, &where));
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&s.lock, NULL);
    pthread_mutex_init(&s.wait_lock, NULL);
    pthread_cond_init(&s.someone_waits, NULL);
    errno = 0;
    struct MHD_Daemon *daemon = start(&s, where);
    freeaddrinfo(where);
    if (!daemon)
        return cli_fail_sys("cannot listen at %s, port %d", cli_show(options->address).text,
                            options->port);
    announce(daemon, options->address, n_items);
    while (!cli_interrupted()) {
        resume_some(&s, false);
        close_late(&s);
    }
    resume_some(&s, true);
    MHD_stop_daemon(daemon);
    pthread_mutex_destroy(&s.lock);
    pthread_mutex_destroy(&s.wait_lock);
    pthread_cond_destroy(&s.someone_waits);
    return CLI_OK;
}
