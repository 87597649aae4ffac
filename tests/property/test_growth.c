/* Files do not grow without limit: dead space of sessions of open, write, commit and close is
 * reused by later ones, also beside readers that refresh, in this process and in another;
 * every reader always sees the right items.
 *
 * usage: test_growth [SEED] */
#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The expected array, and its readers. */
typedef struct scene {
    char path[SCRATCH_PATH];
    rng random;
    caterva_durability durability;
    uint8_t *items;
    int64_t n; /* bytes; items are of one byte */
    int32_t chunk;
    caterva_array *reader; /* in this process, or NULL */
    pid_t pid;             /* of another process, or 0 */
    int to, from;          /* pipes to it and from it */
} scene;

static int64_t file_size(const char *path)
{
    struct stat info;
    CHECK(stat(path, &info) == 0, "no %s", path);
    return info.st_size;
}

/* ---- Readers -------------------------------------------------------------- */

static uint32_t sum_of(const uint8_t *items, int64_t n)
{
    uint32_t sum = (uint32_t)n;
    for (int64_t i = 0; i < n; i++) sum = sum * 31 + items[i];
    return sum;
}

static uint32_t sum_read(caterva_array *array)
{
    caterva_error err;
    int64_t start = 0, n = info_of(array)->shape[0];
    uint8_t *got = check_alloc((size_t)n);
    CHECK_OK(caterva_read(array, &start, &n, got, (size_t)n, &err), err);
    uint32_t sum = sum_of(got, n);
    free(got);
    return sum;
}

static caterva_array *open_reader(const scene *s)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    options.cache_bytes = -1;
    caterva_array *array;
    CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
    return array;
}

/* Answers each byte with the sum of what it reads then. */
static void read_elsewhere(const scene *s, int from, int to)
{
    caterva_error err;
    caterva_array *array = open_reader(s);
    char byte;
    while (read(from, &byte, 1) == 1) {
        CHECK_OK(caterva_refresh(array, &err), err);
        uint32_t sum = sum_read(array);
        CHECK(write(to, &sum, sizeof sum) == (ssize_t)sizeof sum, "the pipe broke");
    }
    caterva_discard(array);
}

static void start_readers(scene *s, bool here, bool elsewhere)
{
    int there[2], back[2];
    if (here) s->reader = open_reader(s);
    if (!elsewhere) return;
    CHECK(pipe(there) == 0 && pipe(back) == 0, "no pipe");
    fflush(NULL);
    s->pid = fork();
    CHECK(s->pid >= 0, "no process");
    if (s->pid == 0) {
        close(there[1]);
        close(back[0]);
        read_elsewhere(s, there[0], back[1]);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    s->to = there[1];
    s->from = back[0];
}

/* All readers refresh to the committed state. */
static void follow(scene *s)
{
    caterva_error err;
    uint32_t sum, wanted = s->reader || s->pid ? sum_of(s->items, s->n) : 0;
    if (s->reader) {
        CHECK_OK(caterva_refresh(s->reader, &err), err);
        CHECK(sum_read(s->reader) == wanted, "the reader reads otherwise");
    }
    if (!s->pid) return;
    CHECK(write(s->to, "r", 1) == 1, "the other process is gone");
    CHECK(read(s->from, &sum, sizeof sum) == (ssize_t)sizeof sum, "it does not answer");
    CHECK(sum == wanted, "the other process reads otherwise");
}

static void stop_readers(scene *s)
{
    int state = 0;
    caterva_discard(s->reader);
    s->reader = NULL;
    if (!s->pid) return;
    close(s->to);
    close(s->from);
    CHECK(waitpid(s->pid, &state, 0) == s->pid && state == 0, "the other process failed");
    s->pid = 0;
}

/* ---- The writer ----------------------------------------------------------- */

static caterva_array *make(scene *s, const char *name, int64_t n, int32_t chunk)
{
    caterva_error err;
    int64_t start = 0;
    int32_t block = chunk / 4;
    scratch_path(s->path, name);
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &n;
    options.chunk_shape = &chunk;
    options.block_shape = &block;
    options.dtype = "|u1";
    options.overwrite = 1;
    options.threads = 1;
    options.durability = s->durability;
    options.codec = CATERVA_CODEC_LZ4;
    options.level = 1;
    caterva_array *array;
    s->n = n;
    s->chunk = chunk;
    s->items = check_alloc((size_t)n + 1);
    rng_fill(&s->random, s->items, (size_t)n);
    CHECK_OK(caterva_create(s->path, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, &start, &n, s->items, (size_t)n, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

static caterva_array *open_writer(const scene *s)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = 1;
    options.durability = s->durability;
    options.cache_bytes = -1;
    caterva_array *array;
    CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
    return array;
}

static void write_bytes(scene *s, caterva_array *array, int64_t n)
{
    caterva_error err;
    int64_t start = rng_between(&s->random, 0, s->n - n), stop = start + n;
    rng_fill(&s->random, s->items + start, (size_t)n);
    CHECK_OK(caterva_write(array, &start, &stop, s->items + start, (size_t)n, &err), err);
}

static void append_bytes(scene *s, caterva_array *array, int64_t n)
{
    caterva_error err;
    s->items = realloc(s->items, (size_t)(s->n + n));
    CHECK(s->items, "no memory");
    rng_fill(&s->random, s->items + s->n, (size_t)n);
    CHECK_OK(caterva_append(array, 0, n, PLAIN(s->items + s->n, (size_t)n), &err), err);
    s->n += n;
}

/* Checks that the file is complete and has the expected items. */
static void check_file(scene *s)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_array *array = open_reader(s);
    CHECK(sum_read(array) == sum_of(s->items, s->n), "the file holds something else");
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
    caterva_discard(array);
}

static void finish(scene *s, int64_t size, int64_t most, const char *what)
{
    printf("%s: %lld bytes of data, %lld at its largest, bar %lld\n", what, (long long)s->n,
           (long long)size, (long long)most);
    CHECK(size <= most, "%s: %lld bytes, %lld are the most", what, (long long)size,
          (long long)most);
    stop_readers(s);
    check_file(s);
    scratch_remove(s->path);
    free(s->items);
}

/* ---- The bars ------------------------------------------------------------- */

enum { APPENDS = 300, APPENDED = 8192 };

#ifdef _WIN32
/* No reader is forked. While a file is locked, wine keeps a descriptor of it for each handle that was
 * closed. */
enum { COMMITS = 1000, SESSIONS = 500, AUDIENCES = 2 };
#else
enum { COMMITS = 5000, SESSIONS = 2000, AUDIENCES = 3 };
#endif

typedef struct audience {
    const char *name;
    bool here, elsewhere;
} audience;

static const audience audiences[3] = {
    {"no reader", false, false},
    {"a reader in this process", true, false},
    {"a reader in another process", false, true},
};

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void appends(scene *s, int32_t chunk, const audience *a)
{
    caterva_error err;
    char what[128];
    int64_t largest = 0;
    CHECK_OK(caterva_close(make(s, "appends.b2nd", APPENDED, chunk), &err), err);
    start_readers(s, a->here, a->elsewhere);
    int times = few_if_sanitized(APPENDS, APPENDS / 3);
    for (int i = 0; i < times; i++) {
        caterva_array *array = open_writer(s);
        append_bytes(s, array, APPENDED);
        CHECK_OK(caterva_commit(array, &err), err);
        follow(s);
        CHECK_OK(caterva_close(array, &err), err);
        largest = larger(largest, file_size(s->path) - 2 * s->n);
    }
    snprintf(what, sizeof what, "%d appends, chunks of %d, %s", times, chunk, a->name);
    int64_t most = 2 * s->n + 2 * chunk;
    finish(s, larger(file_size(s->path), 2 * s->n + largest), most, what);
}

/* Every session writes `n` bytes of an array of `chunks` chunks. */
static void sessions(scene *s, int chunks, int32_t chunk, int64_t n, int times,
                     const audience *a)
{
    caterva_error err;
    char what[128];
    CHECK_OK(caterva_close(make(s, "sessions.b2nd", (int64_t)chunks * chunk, chunk), &err),
             err);
    int64_t first = file_size(s->path), largest = first;
    start_readers(s, a->here, a->elsewhere);
    for (int i = 0; i < times; i++) {
        caterva_array *array = open_writer(s);
        write_bytes(s, array, n);
        CHECK_OK(caterva_commit(array, &err), err);
        follow(s);
        CHECK_OK(caterva_close(array, &err), err);
        largest = larger(largest, file_size(s->path));
    }
    snprintf(what, sizeof what, "%d sessions, %d chunks of %d, %s", times, chunks, chunk,
             a->name);
    finish(s, largest, 3 * first, what);
}

static void lone_handle(scene *s, const audience *a)
{
    caterva_error err;
    char what[128];
    caterva_array *array = make(s, "lone.b2nd", 20000, 2000);
    int64_t first = file_size(s->path), largest = first;
    start_readers(s, a->here, a->elsewhere);
    int commits = few_if_sanitized(COMMITS, COMMITS / 5);
    for (int i = 0; i < commits; i++) {
        write_bytes(s, array, 1);
        CHECK_OK(caterva_commit(array, &err), err);
        follow(s);
        largest = larger(largest, file_size(s->path));
    }
    CHECK_OK(caterva_close(array, &err), err);
    snprintf(what, sizeof what, "%d commits of one handle, %s", commits, a->name);
    finish(s, largest, 2 * first, what);
}

/* A handle with compaction compacts when it closes, and not before; not beside a reader of an
 * older state. Chunks of zeros are not stored: zeroed items are dead space. */
static void compacts_by_itself(scene *s, int percent)
{
    caterva_error err;
    int64_t start = 0, n = 1 << 20, part = n / 2;
    CHECK_OK(caterva_close(make(s, "compacts.b2nd", n, 1 << 15), &err), err);
    caterva_array *reader = open_reader(s);
    for (int round = 0; round < 3; round++) {
        caterva_open_options options = CATERVA_OPEN_INIT;
        caterva_array *array;
        options.mode = CATERVA_MODE_WRITE;
        options.durability = s->durability;
        options.compact_percent = percent;
        CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
        memset(s->items, 0, (size_t)part);
        CHECK_OK(caterva_write(array, &start, &part, s->items, (size_t)part, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        if (round == 1) CHECK_OK(caterva_refresh(reader, &err), err);
        CHECK(file_size(s->path) > n, "compacted at once");
        CHECK_OK(caterva_close(array, &err), err);
        bool is_due = percent > 0 && percent < 50 && round > 0;
        CHECK((file_size(s->path) < n * 6 / 10) == is_due, "round %d, %d percent: %lld bytes",
              round, percent, (long long)file_size(s->path));
        if (is_due) break;
    }
    caterva_discard(reader);
    check_file(s);
    scratch_remove(s->path);
    free(s->items);
}

/* A window that moves over a series: what it drops is reused. */
static void window(scene *s)
{
    caterva_error err;
    caterva_array *array = make(s, "window.b2nd", 64000, 4000);
    int64_t first = file_size(s->path), largest = first;
    for (int i = 0; i < 500; i++) {
        append_bytes(s, array, 4000);
        CHECK_OK(caterva_remove(array, 0, 0, 4000, &err), err);
        memmove(s->items, s->items + 4000, (size_t)(s->n -= 4000));
        CHECK_OK(caterva_commit(array, &err), err);
        largest = larger(largest, file_size(s->path));
    }
    CHECK_OK(caterva_close(array, &err), err);
    finish(s, largest, 2 * first, "a window of 16 chunks that moves by 500");
}

int main(int argc, char **argv)
{
    scene s = {.random = rng_from_seed(seed_argument(argc, argv, 1))};
    s.durability = CATERVA_DURABILITY_NONE;
    for (int i = 0; i < AUDIENCES; i++) {
        const audience *a = &audiences[i];
        appends(&s, 1 << 20, a);
        appends(&s, 4 << 20, a);
        appends(&s, 48 << 10, a);
        sessions(&s, 10, 2000, 1, few_if_sanitized(SESSIONS, SESSIONS / 5), a);
        lone_handle(&s, a);
    }
    sessions(&s, 4, 1 << 20, 1000, few_if_sanitized(100, 30), &audiences[0]);
    sessions(&s, 10000, 400, 1, few_if_sanitized(300, 60), &audiences[0]);
    window(&s);
    compacts_by_itself(&s, 0);
    compacts_by_itself(&s, 40);
    compacts_by_itself(&s, 60);
    s.durability = CATERVA_DURABILITY_FULL; /* freed space is reused only after a sync */
    sessions(&s, 10, 2000, 1, 300, &audiences[0]);
    sessions(&s, 10, 2000, 1, 100, &audiences[AUDIENCES - 1]);
    s.durability = CATERVA_DURABILITY_ORDERED;
    sessions(&s, 10, 2000, 1, 100, &audiences[1]);
    return 0;
}
