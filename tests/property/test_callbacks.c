/* Callbacks of verify may use the array, since no lock is held. They read, describe and write
 * the array, also from another thread that they wait for, and another handle is opened and
 * closed. A commit inside a callback is refused; one of another thread waits for the end. If
 * a lock is held after all, the test hangs and is killed. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/info.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1000, CHUNK = 100, PATIENCE = 300 };

static const int64_t origin[1] = {0}, end[1] = {N};

typedef struct caller {
    caterva_array *array;
    const char *path;
    pthread_t committer;
    atomic_int committing, committed;
    int n_damages, n_steps;
    int64_t done;
} caller;

static void create(const char *path)
{
    caterva_error err;
    uint8_t items[N];
    const int32_t chunks[1] = {CHUNK};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = end;
    options.chunk_shape = chunks;
    options.block_shape = chunks;
    options.dtype = "|u1";
    for (int i = 0; i < N; i++) items[i] = (uint8_t)(i * 37);
    caterva_array *array;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    CHECK_OK(caterva_create_from_memory(path, &options, items, N, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_chunk_describe(array, 5, &chunk, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(bytes, "%s", path);
    bytes[chunk.position + 60] ^= 0xff;
    scratch_save(path, bytes, size);
    free(bytes);
}

static void *write_some(void *context)
{
    caterva_error err;
    const uint8_t items[CHUNK] = {1};
    const int64_t stop[1] = {CHUNK};
    CHECK_OK(caterva_write(context, origin, stop, items, CHUNK, &err), err);
    return NULL;
}

static void *commit(void *context)
{
    caller *c = context;
    caterva_error err;
    atomic_store(&c->committing, 1);
    CHECK_OK(caterva_commit(c->array, &err), err);
    atomic_store(&c->committed, 1);
    return NULL;
}

static void use(caller *c)
{
    caterva_error err;
    caterva_array *other;
    caterva_space space = CATERVA_SPACE_INIT;
    pthread_t writer;
    uint8_t items[CHUNK];
    const int64_t stop[1] = {CHUNK};
    CHECK(pthread_create(&writer, NULL, write_some, c->array) == 0, "a thread");
    CHECK(pthread_join(writer, NULL) == 0, "a thread");
    CHECK_OK(caterva_read(c->array, origin, stop, items, CHUNK, &err), err);
    CHECK(items[0] == 1 && items[1] == 0, "what was written is not there");
    CHECK_OK(caterva_attr_set(c->array, "name", "value", 5, &err), err);
    CHECK(info_of(c->array)->n_attributes == 1, "no attribute");
    CHECK_OK(caterva_measure(c->array, &space, &err), err);
    CHECK(caterva_commit(c->array, &err) == CATERVA_EBUSY, "committed what is checked");
    CHECK_OK(caterva_open(c->path, NULL, &other, &err), err);
    CHECK_OK(caterva_read(other, origin, stop, items, CHUNK, &err), err);
    CHECK(items[1] == 37, "the committed state is another one");
    CHECK_OK(caterva_close(other, &err), err);
    CHECK(!atomic_load(&c->committed), "a commit did not wait");
}

static void on_damage(void *context, const caterva_damage *damage)
{
    caller *c = context;
    CHECK(damage->chunk == 5, "damage in chunk %lld", (long long)damage->chunk);
    c->n_damages++;
    use(c);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    caller *c = context;
    CHECK(done >= c->done && done <= total && total == N, "%lld of %lld", (long long)done,
          (long long)total);
    c->done = done;
    use(c);
    if (c->n_steps++ > 0) return 0;
    CHECK(pthread_create(&c->committer, NULL, commit, c) == 0, "a thread");
    while (!atomic_load(&c->committing)) usleep(1000);
    return 0;
}

int main(void)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    alarm(PATIENCE);
    create(scratch_path(path, "callbacks.b2nd"));
    caterva_open_options writing = CATERVA_OPEN_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    caller c = {.path = path};
    CHECK_OK(caterva_open(path, &writing, &c.array, &err), err);
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    options.on_damage = on_damage;
    options.context = &c;
    options.progress = every_step(on_progress, &c);
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_verify(c.array, &options, &result, &err), err);
    CHECK(c.n_damages == 1 && c.done == N, "%d damages, %lld bytes", c.n_damages,
          (long long)c.done);
    CHECK(pthread_join(c.committer, NULL) == 0, "a thread");
    CHECK(atomic_load(&c.committed), "not committed");
    CHECK_OK(caterva_close(c.array, &err), err);
    puts("verify has nothing locked while it calls");
    return 0;
}
