/* Helper of the sequence tests: each line on stdin is an operation. One array is open for
 * writing and one for reading between operations. The helper may be killed at any moment.
 *
 * A line has words as in support/job.h, one of them `op`; with `size=N`, N bytes follow it. The
 * response is one line of JSON; with `size`, this number of bytes follow it.
 *   op=create        url and the words of parse_options: opens it for writing
 *   op=open          url [durability] [threads] [dirty_budget]: for writing
 *   op=write, read   box; write: data
 *   op=append        axis n, data
 *   op=insert        axis at n, data or (none) the fill
 *   op=remove        axis start stop
 *   op=resize        shape
 *   op=attr_set      name value; op=attr_remove  name
 *   op=meta_update   name value
 *   op=commit, rollback, close, discard
 *   op=state         a description of the writer's array
 *   op=look          url: the same through a new handle
 *   op=watch         url: opens it for reading, and keeps it open
 *   op=watched       as state, of the array opened by watch
 *   op=refresh, unwatch
 *   op=compact       url [durability] */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/answer.h"
#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static caterva_array *writer;
static caterva_array *watcher;

/* data of the line, and of the response */
static uint8_t *data;
static size_t data_size;
static uint8_t *reply;
static size_t reply_size;

/* ---- Open and close ------------------------------------------------------- */

static caterva_status run_create(const job *j, FILE *to, caterva_error *err)
{
    static spec s; /* large */
    (void)to;
    caterva_create_options options = parse_options(j, &s);
    return caterva_create(need_word(j, "url"), &options, &writer, err);
}

static caterva_status run_open(const job *j, FILE *to, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    (void)to;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = parse_durability(j);
    options.threads = (int)find_number(j, "threads");
    options.dirty_budget = find_number(j, "dirty_budget");
    return caterva_open(need_word(j, "url"), &options, &writer, err);
}

static caterva_status run_close(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to;
    caterva_array *a = writer;
    writer = NULL;
    return caterva_close(a, err);
}

static caterva_status run_discard(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to, (void)err;
    caterva_discard(writer);
    writer = NULL;
    return CATERVA_OK;
}

static caterva_status run_commit(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to;
    return caterva_commit(writer, err);
}

static caterva_status run_rollback(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to;
    return caterva_rollback(writer, err);
}

static caterva_status run_compact(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    options.durability = parse_durability(j);
    return caterva_compact(need_word(j, "url"), &options, err);
}

/* ---- Read ----------------------------------------------------------------- */

static caterva_status reply_box(caterva_array *a, const bounds *b, caterva_error *err)
{
    reply_size = b->size;
    reply = check_alloc(reply_size);
    return caterva_read(a, b->start, b->stop, reply, reply_size, err);
}

static bounds one_box(const job *j, const caterva_info *info)
{
    bounds b = {.size = 0};
    const char *text = need_word(j, "box");
    CHECK(next_box(&text, info, &b), "no box");
    return b;
}

static caterva_status run_read(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    bounds b = one_box(j, info_of(writer));
    return reply_box(writer, &b, err);
}

static caterva_status describe(caterva_array *a, FILE *to, caterva_error *err)
{
    bounds all = whole_array(info_of(a));
    put_info(to, info_of(a));
    caterva_status status = reply_box(a, &all, err);
    if (status == CATERVA_OK) status = put_attributes(to, a, err);
    if (status == CATERVA_OK) put_metalayers(to, a);
    return status;
}

static caterva_status run_state(const job *j, FILE *to, caterva_error *err)
{
    (void)j;
    return describe(writer, to, err);
}

static caterva_status run_look(const job *j, FILE *to, caterva_error *err)
{
    caterva_array *a = NULL;
    caterva_status status = caterva_open(need_word(j, "url"), NULL, &a, err);
    if (status == CATERVA_OK) status = describe(a, to, err);
    if (status == CATERVA_OK) status = put_damage(to, a, err);
    caterva_discard(a);
    return status;
}

static caterva_status run_watch(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    return caterva_open(need_word(j, "url"), NULL, &watcher, err);
}

static caterva_status run_watched(const job *j, FILE *to, caterva_error *err)
{
    (void)j;
    caterva_status status = describe(watcher, to, err);
    return status == CATERVA_OK ? put_damage(to, watcher, err) : status;
}

static caterva_status run_refresh(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to;
    return caterva_refresh(watcher, err);
}

static caterva_status run_unwatch(const job *j, FILE *to, caterva_error *err)
{
    (void)j, (void)to, (void)err;
    caterva_discard(watcher);
    watcher = NULL;
    return CATERVA_OK;
}

/* ---- Change --------------------------------------------------------------- */

static caterva_status run_write(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    bounds b = one_box(j, info_of(writer));
    return caterva_write(writer, b.start, b.stop, data, data_size, err);
}

static caterva_status run_append(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    return caterva_append(writer, (int)find_number(j, "axis"), find_number(j, "n"), PLAIN(data, data_size), err);
}

static caterva_status run_insert(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    return caterva_insert(writer, (int)find_number(j, "axis"), find_number(j, "at"), find_number(j, "n"), data ? data ? PLAIN(data, data_size) : NULL : NULL, err);
}

static caterva_status run_remove(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    return caterva_remove(writer, (int)find_number(j, "axis"), find_number(j, "start"),
                          find_number(j, "stop"), err);
}

static caterva_status run_resize(const job *j, FILE *to, caterva_error *err)
{
    int64_t shape[CATERVA_MAX_DIMS];
    (void)to;
    parse_list(need_word(j, "shape"), shape);
    return caterva_resize(writer, shape, err);
}

static caterva_status run_attr_set(const job *j, FILE *to, caterva_error *err)
{
    static uint8_t value[MAX_HEX];
    (void)to;
    size_t size = parse_hex(need_word(j, "value"), value);
    return caterva_attr_set(writer, need_word(j, "name"), value, size, err);
}

static caterva_status run_attr_remove(const job *j, FILE *to, caterva_error *err)
{
    (void)to;
    return caterva_attr_delete(writer, need_word(j, "name"), err);
}

static caterva_status run_meta_update(const job *j, FILE *to, caterva_error *err)
{
    static uint8_t value[MAX_HEX];
    (void)to;
    size_t size = parse_hex(need_word(j, "value"), value);
    return caterva_metalayer_update(writer, need_word(j, "name"), value, size, err);
}

/* ---- Lines ---------------------------------------------------------------- */

typedef struct verb {
    const char *name;
    caterva_status (*run)(const job *j, FILE *to, caterva_error *err);
} verb;

static const verb verbs[] = {
    {"create", run_create},
    {"open", run_open},
    {"close", run_close},
    {"discard", run_discard},
    {"commit", run_commit},
    {"rollback", run_rollback},
    {"compact", run_compact},
    {"read", run_read},
    {"state", run_state},
    {"look", run_look},
    {"watch", run_watch},
    {"watched", run_watched},
    {"refresh", run_refresh},
    {"unwatch", run_unwatch},
    {"write", run_write},
    {"append", run_append},
    {"insert", run_insert},
    {"remove", run_remove},
    {"resize", run_resize},
    {"attr_set", run_attr_set},
    {"attr_remove", run_attr_remove},
    {"meta_update", run_meta_update},
};

static const verb *find_verb(const char *name)
{
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    CHECK(0, "no operation %s", name);
}

/* Loads the bytes after the line into memory of exactly that size. */
static void load_data(const job *j)
{
    if (find_word(j, "size") == NULL) return;
    data_size = (size_t)find_number(j, "size");
    data = check_alloc(data_size);
    CHECK(fread(data, 1, data_size, stdin) == data_size, "the line's data end early");
}

static void release_bytes(void)
{
    free(data);
    free(reply);
    data = NULL;
    reply = NULL;
    data_size = 0;
    reply_size = 0;
}

static void run_job(const job *j)
{
    char *text = NULL;
    size_t size = 0;
    caterva_error err = {.message = ""};
    FILE *to = open_memstream(&text, &size);
    CHECK(to != NULL, "no memory stream");
    load_data(j);
    caterva_status status = find_verb(need_word(j, "op"))->run(j, to, &err);
    fclose(to);
    if (status != CATERVA_OK) reply_size = 0;
    printf("{\"status\":\"%s\"", caterva_status_name(status));
    put_key_text(stdout, "message", err.message);
    printf(",\"size\":%zu%s}\n", reply_size, status == CATERVA_OK ? text : "");
    if (reply_size > 0)
        CHECK(fwrite(reply, 1, reply_size, stdout) == reply_size, "cannot answer");
    fflush(stdout);
    free(text);
    release_bytes();
}

int main(void)
{
    serve_jobs(run_job);
    caterva_discard(writer);
    caterva_discard(watcher);
    return 0;
}
