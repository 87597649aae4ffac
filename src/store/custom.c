/* Room: store. A frame in a store whose functions the program provides. A read returns all bytes or
 * an error, whatever these functions return. */
#include "store/custom.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/status.h"
#include "base/thread.h"
#include "store/store.h"

#include <caterva_store.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct program {
    caterva_store calls;
    char *identity; /* NULL if not set */
    char name[64];  /* for messages */
    cv_mutex lock;  /* held during each call if one_at_a_time */
    atomic_int users;
    bool is_owned; /* the last user closes the program's store */
} program;

typedef struct custom_store {
    cv_store base;
    program *program;
    bool is_listed;
    struct custom_store *next;
} custom_store;

/* ---- Writers -------------------------------------------------------------- */

static cv_mutex lock = CV_MUTEX_INIT;
static custom_store *writers;

static cv_status list_writer(custom_store *c, cv_error *err)
{
    const char *identity = c->program->identity;
    bool is_open = false;
    if (!identity) return CV_OK;
    cv_thread_hold_on_fork(&lock);
    cv_mutex_lock(&lock);
    for (const custom_store *w = writers; w && !is_open; w = w->next)
        is_open = strcmp(w->program->identity, identity) == 0;
    if (!is_open) {
        c->is_listed = true;
        c->next = writers;
        writers = c;
    }
    cv_mutex_unlock(&lock);
    if (!is_open) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1, "%s is open for writing in this program",
                   c->program->name);
}

static void unlist_writer(custom_store *c)
{
    if (!c->is_listed) return;
    cv_mutex_lock(&lock);
    custom_store **link = &writers;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    cv_mutex_unlock(&lock);
}

/* ---- Calling ---------------------------------------------------------------- */

static void begin(program *p)
{
    if (p->calls.one_at_a_time) cv_mutex_lock(&p->lock);
    cv_thread_be_awaited(1);
}

static void end(program *p)
{
    cv_thread_be_awaited(-1);
    if (p->calls.one_at_a_time) cv_mutex_unlock(&p->lock);
}

static cv_status known_status(caterva_status status)
{
    switch (status) {
    case CATERVA_OK:
    case CATERVA_ENOMEM:
    case CATERVA_EBUSY:
    case CATERVA_ENOTFOUND:
    case CATERVA_ESTOPPED: return status;
    default: return CATERVA_EIO;
    }
}

/* Fails with "<name> cannot <what>", followed by the program's own message if it has one. */
static cv_status fail_call(const program *p, caterva_status status, cv_error *reason,
                           const char *what, cv_error *err)
{
    char why[sizeof reason->message];
    reason->message[sizeof reason->message - 1] = '\0';
    cv_show_text(why, sizeof why, reason->message);
    cv_status code = cv_fail(err, known_status(status), -1, "%s cannot %s%s%s", p->name, what,
                             *why ? ": " : "", why);
    if (err && code == CATERVA_EIO) err->sys_errno = reason->sys_errno;
    return code;
}

/* ---- Bytes -------------------------------------------------------------------- */

static cv_status custom_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    cv_error reason = {.code = CATERVA_OK};
    CV_TRY(cv_store_check_frame(store, object, err));
    begin(p);
    caterva_status status = p->calls.size(p->calls.context, size, &reason);
    end(p);
    if (status != CATERVA_OK) return fail_call(p, status, &reason, "report its size", err);
    if (*size <= INT64_MAX) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "%s reports a size of %llu bytes", p->name,
                   (unsigned long long)*size);
}

/* Reads at least one byte, and sets *done to their number: 0 only at the end of the frame. */
static cv_status read_some(program *p, uint64_t pos, void *dst, size_t size, size_t *done,
                           cv_error *err)
{
    cv_error reason = {.code = CATERVA_OK};
    *done = 0;
    begin(p);
    caterva_status status = p->calls.read(p->calls.context, pos, dst, size, done, &reason);
    end(p);
    if (status == CATERVA_OK && *done <= size) return CV_OK;
    char what[80];
    (void)snprintf(what, sizeof what, "read %zu bytes at %llu", size,
                   (unsigned long long)pos);
    if (status != CATERVA_OK) return fail_call(p, status, &reason, what, err);
    return cv_fail(err, CATERVA_EIO, -1, "%s reports %zu of %zu bytes read at %llu", p->name,
                   *done, size, (unsigned long long)pos);
}

static cv_status custom_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    CV_TRY(cv_store_check_frame(store, object, err));
    uint64_t end_pos;
    bool fits = cv_add_u64(pos, size, &end_pos) && end_pos <= INT64_MAX;
    size_t done = 0;
    for (size_t n = 1; fits && done < size && n > 0; done += n)
        CV_TRY(read_some(p, pos + done, (uint8_t *)dst + done, size - done, &n, err));
    if (done == size) return CV_OK;
    CV_TRY(custom_size(store, object, &end_pos, err));
    return cv_fail_past_end(err, p->name, pos, size, end_pos);
}

/* ---- Many ranges --------------------------------------------------------------- */

typedef struct custom_wave {
    size_t n, n_arrived;
    uint8_t *has_arrived;
    const cv_arrivals *arrivals;
    cv_status status; /* the first failure of the reader */
    cv_error error;
} custom_wave;

/* Passes on each requested range at most once: the program is not trusted. A range that was not
 * requested only checks for cancellation. */
static int take_arrival(void *token, size_t range)
{
    custom_wave *w = token;
    const cv_arrivals *a = w->arrivals;
    if (w->status == CV_OK && range >= w->n) {
        w->status = cv_watch_tick(a->watch, 0, &w->error);
    } else if (w->status == CV_OK && !w->has_arrived[range]) {
        w->has_arrived[range] = 1;
        w->n_arrived++;
        w->status = a->arrived(a->context, range, &w->error);
    }
    return w->status != CV_OK;
}

static cv_status read_left(cv_store *store, const cv_store_range *ranges,
                           const custom_wave *w, cv_error *err)
{
    const cv_arrivals *a = w->arrivals;
    for (size_t i = 0; i < w->n; i++) {
        const cv_store_range *r = &ranges[i];
        if (w->has_arrived[i]) continue;
        cv_status status = cv_store_read(store, r->object, r->pos, r->dst, r->size, err);
        if (status != CV_OK && a->failed) a->failed(a->context, i);
        CV_TRY(status);
        CV_TRY(a->arrived(a->context, i, err));
    }
    return CV_OK;
}

/* Calls the program's read_many. Omits the call if no frame can have one of the ranges, or if out
 * of memory. In these cases read_left reads all ranges, or fails. */
static cv_status ask_program(program *p, const cv_store_range *ranges, custom_wave *w)
{
    cv_error ignored = {.code = CATERVA_OK};
    caterva_store_range *given = cv_malloc(w->n * sizeof *given);
    if (!given) return CV_OK;
    bool fits = true;
    for (size_t i = 0; i < w->n; i++) {
        uint64_t end_pos;
        given[i] = (caterva_store_range){
            .pos = ranges[i].pos, .size = ranges[i].size, .dst = ranges[i].dst};
        fits = fits && ranges[i].object == CV_FRAME_OBJECT && ranges[i].size > 0 &&
               cv_add_u64(ranges[i].pos, ranges[i].size, &end_pos) && end_pos <= INT64_MAX;
    }
    if (fits) {
        begin(p);
        (void)p->calls.read_many(p->calls.context, given, w->n, take_arrival, w, &ignored);
        end(p);
    }
    cv_free(given);
    return w->status;
}

static cv_status custom_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                  const cv_arrivals *arrivals, cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    if (!p->calls.read_many) return cv_store_read_each(store, ranges, n, arrivals, err);
    custom_wave w = {.n = n, .arrivals = arrivals, .has_arrived = cv_calloc(n, 1)};
    if (!w.has_arrived) return cv_fail_memory(err, n, "a list of ranges");
    cv_status status = ask_program(p, ranges, &w);
    if (status != CV_OK && err) *err = w.error;
    if (status == CV_OK && w.n_arrived < n) status = read_left(store, ranges, &w, err);
    cv_free(w.has_arrived);
    return status;
}

/* Returns the number of bytes transferred in the time of one round trip. Reading a smaller gap is
 * faster than another request. */
static uint32_t join_gap_of(const caterva_store *s)
{
    const double most = 1 << 20, least = 4096;
    double gap = 1e-9 * (double)s->latency_ns * (double)s->bytes_per_second;
    return (uint32_t)(gap > most ? most : gap > least ? gap : least);
}

/* ---- Changing ------------------------------------------------------------------- */

static cv_status custom_write(cv_store *store, cv_object object, uint64_t pos,
                              const void *src, size_t size, cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    cv_error reason = {.code = CATERVA_OK};
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(cv_store_check_frame(store, object, err));
    if (size == 0) return CV_OK;
    begin(p);
    caterva_status status = p->calls.write(p->calls.context, pos, src, size, &reason);
    end(p);
    if (status == CATERVA_OK) return CV_OK;
    char what[80];
    (void)snprintf(what, sizeof what, "write %zu bytes at %llu", size,
                   (unsigned long long)pos);
    return fail_call(p, status, &reason, what, err);
}

static cv_status custom_truncate(cv_store *store, cv_object object, uint64_t size,
                                 cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    cv_error reason = {.code = CATERVA_OK};
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(cv_store_check_frame(store, object, err));
    begin(p);
    caterva_status status = p->calls.truncate(p->calls.context, size, &reason);
    end(p);
    if (status == CATERVA_OK) return CV_OK;
    char what[80];
    (void)snprintf(what, sizeof what, "be cut to %llu bytes", (unsigned long long)size);
    return fail_call(p, status, &reason, what, err);
}

static cv_status custom_sync(cv_store *store, cv_object object, cv_error *err)
{
    program *p = ((custom_store *)store)->program;
    cv_error reason = {.code = CATERVA_OK};
    CV_TRY(cv_store_check_frame(store, object, err));
    begin(p);
    caterva_status status = p->calls.sync(p->calls.context, &reason);
    end(p);
    return status == CATERVA_OK
               ? CV_OK
               : fail_call(p, status, &reason, "make its bytes durable", err);
}

/* ---- Life ------------------------------------------------------------------------ */

static cv_status custom_publish(cv_store *store, bool durable, cv_error *err)
{
    (void)durable, (void)err; /* the commit has synced the bytes */
    store->published = true;
    return CV_OK;
}

static bool custom_has_readers(cv_store *store)
{
    program *p = ((custom_store *)store)->program;
    if (!p->calls.has_readers) return true; /* unknown */
    begin(p);
    bool has = p->calls.has_readers(p->calls.context) != 0;
    end(p);
    return has;
}

static void leave(program *p)
{
    if (atomic_fetch_sub(&p->users, 1) > 1) return;
    if (p->is_owned && p->calls.close) p->calls.close(p->calls.context);
    cv_mutex_destroy(&p->lock);
    cv_free(p->identity);
    cv_free(p);
}

static void custom_close(cv_store *store)
{
    custom_store *c = (custom_store *)store;
    if (!store->published && !cv_store_is_parents(store))
        (void)custom_truncate(store, CV_FRAME_OBJECT, 0, NULL);
    unlist_writer(c);
    leave(c->program);
    cv_free(c);
}

static const cv_store_ops custom_ops = {
    .name = "store of the program's own",
    .size = custom_size,
    .read = custom_read,
    .read_many = custom_read_many,
    .write = custom_write,
    .truncate = custom_truncate,
    .sync = custom_sync,
    .publish = custom_publish,
    .has_readers = custom_has_readers,
    .close = custom_close,
};

/* ---- Making ------------------------------------------------------------------------ */

static cv_status check_functions(const caterva_store *s, bool writable, cv_error *err)
{
    if (!s->size || !s->read)
        return cv_fail(err, CATERVA_EINVAL, -1, "the store's %s function is NULL",
                       s->size ? "read" : "size");
    if (!writable || (s->write && s->truncate && s->sync)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the store's %s function is NULL: the store is read-only",
                   !s->write      ? "write"
                   : !s->truncate ? "truncate"
                                  : "sync");
}

static cv_status new_program(const caterva_store *given, program **out, cv_error *err)
{
    program *p = cv_calloc(1, sizeof *p);
    char *identity = given->identity ? cv_strdup(given->identity) : NULL;
    if (!p || (given->identity && !identity)) {
        cv_free(p);
        cv_free(identity);
        return cv_fail_memory(err, sizeof *p, "a store");
    }
    p->calls = *given;
    p->identity = identity;
    cv_show_text(p->name, sizeof p->name, given->name ? given->name : "the program's store");
    p->calls.name = p->calls.identity = NULL; /* were borrowed from the caller */
    cv_mutex_init(&p->lock);
    atomic_init(&p->users, 0);
    *out = p;
    return CV_OK;
}

static cv_status new_store(program *p, bool writable, custom_store **out, cv_error *err)
{
    custom_store *c = cv_calloc(1, sizeof *c);
    if (!c) return cv_fail_memory(err, sizeof *c, "a store");
    c->base = (cv_store){.ops = &custom_ops,
                         .writable = writable,
                         .published = true,
                         .is_far = p->calls.read_many != NULL,
                         .join_gap = join_gap_of(&p->calls),
                         .opened = cv_os_now()};
    c->program = p;
    atomic_fetch_add(&p->users, 1);
    *out = c;
    return CV_OK;
}

cv_status cv_store_custom_open(const caterva_store *given, bool writable, cv_store **out,
                               cv_error *err)
{
    program *p = NULL;
    custom_store *c = NULL;
    CV_TRY(check_functions(given, writable, err));
    CV_TRY(new_program(given, &p, err));
    cv_status status = new_store(p, writable, &c, err);
    if (!c) {
        leave(p);
        return status;
    }
    if (writable) status = list_writer(c, err);
    if (status == CV_OK)
        *out = &c->base;
    else
        custom_close(&c->base);
    return status;
}

cv_status cv_store_custom_create(const caterva_store *given, bool overwrite, cv_store **out,
                                 cv_error *err)
{
    cv_store *store;
    uint64_t size;
    CV_TRY(cv_store_custom_open(given, true, &store, err));
    cv_status status = custom_size(store, CV_FRAME_OBJECT, &size, err);
    if (status == CV_OK && size > 0 && !overwrite)
        status = cv_fail(err, CATERVA_EEXIST, -1, "%s holds %llu bytes already",
                         ((custom_store *)store)->program->name, (unsigned long long)size);
    if (status == CV_OK && size > 0) status = custom_truncate(store, CV_FRAME_OBJECT, 0, err);
    if (status != CV_OK) {
        custom_close(store);
        return status;
    }
    store->published = false;
    *out = store;
    return CV_OK;
}

void cv_store_custom_own(cv_store *store)
{
    ((custom_store *)store)->program->is_owned = true;
}

cv_status cv_store_custom_again(cv_store *store, cv_store **out, cv_error *err)
{
    custom_store *c = NULL;
    *out = NULL;
    if (store->ops != &custom_ops) return CV_OK;
    CV_TRY(new_store(((custom_store *)store)->program, false, &c, err));
    *out = &c->base;
    return CV_OK;
}
