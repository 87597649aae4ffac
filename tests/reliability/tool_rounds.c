/* One array written in rounds of a job each, for test_jobs.py, which journals, fails and kills
 * them:
 *
 *   tool_rounds init LAYOUT PATH     creates the array; LAYOUT: file, directory
 *   tool_rounds work PATH N          N rounds, all by this process
 *   tool_rounds live PATH N          the same; workers are concurrent processes, which are
 *                                    started again if they are killed
 *   tool_rounds check PATH ACK       with our reader: 0 if the array is in the state after round
 *   tool_rounds b2nd PATH ACK        ACK or the next; the same with C-Blosc2's. Other statuses:
 *                                    tools/reliability/README.md
 *   tool_rounds goes-on PATH ACK     the interrupted round is merged, another one is run, and
 *                                    no file is left of any job
 *
 * In a round the array may grow, two workers write parts that share chunks and blocks, their
 * tokens are written durably next to the array ("ACK 3+": those of round 4 are), and a merge and
 * a commit apply them ("ACK 4"). In some rounds the coordinator dies between the two, and
 * another one merges. Without a fault the program ends with status 0, otherwise with 9. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_jobs.h"

#include "support/check.h"
#include "support/info.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>
#undef print_error

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD, NO_OPEN, LOST, WRONG, NO_READ, FAILED = 9, USAGE = 64 };
enum {
    COLUMNS = 20,
    FIRST_ROWS = 18,
    MOST_ROWS = 120,
    MOST = MOST_ROWS * COLUMNS,
    WORKERS = 2
};

static const int64_t origin[2] = {0, 0};

/* ---- What a round writes ------------------------------------------------------------------ */

static int64_t rows_after(int round) { return FIRST_ROWS + 3 * ((round + 1) / 2); }

typedef struct task {
    int64_t start[2], stop[2];
} task;

/* The tasks of a round share a chunk and a block. */
static task task_of(int round, int worker)
{
    int64_t rows = rows_after(round), split = 5 + round * 4 % (rows - 8);
    task first = {{1, 0}, {split, 17}}, second = {{split, 3}, {rows, COLUMNS}};
    return worker == 0 ? first : second;
}

static int32_t item_of(int round, int worker, int64_t r, int64_t c)
{
    return (int32_t)(round * 100000 + worker * 50000 + r * COLUMNS + c + 1);
}

static size_t fill_task(int round, int worker, int32_t *items)
{
    task t = task_of(round, worker);
    size_t n = 0;
    for (int64_t r = t.start[0]; r < t.stop[0]; r++)
        for (int64_t c = t.start[1]; c < t.stop[1]; c++)
            items[n++] = item_of(round, worker, r, c);
    return n * sizeof items[0];
}

/* Computes the items after that many rounds; returns their bytes. */
static size_t state_after(int rounds, int32_t *items)
{
    memset(items, 0, MOST * sizeof items[0]);
    for (int round = 1; round <= rounds; round++)
        for (int w = 0; w < WORKERS; w++) {
            task t = task_of(round, w);
            for (int64_t r = t.start[0]; r < t.stop[0]; r++)
                for (int64_t c = t.start[1]; c < t.stop[1]; c++)
                    items[r * COLUMNS + c] = item_of(round, w, r, c);
        }
    return (size_t)(rows_after(rounds) * COLUMNS) * sizeof items[0];
}

/* ---- Tokens beside the array ---------------------------------------------------------------- */

static const char *token_path(const char *path, int round, int worker)
{
    static char name[4096];
    snprintf(name, sizeof name, "%s.token-%d-%d", path, round, worker);
    return name;
}

static bool sync_folder(const char *path)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY);
    bool good = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0) close(folder);
    return good;
}

/* Uses write(2), which the shim intercepts. */
static bool save_token(const char *path, int round, int worker, const void *token,
                       size_t size)
{
    int file = open(token_path(path, round, worker), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) return false;
    bool good = write(file, token, size) == (ssize_t)size && fsync(file) == 0;
    return close(file) == 0 && good && sync_folder(path);
}

typedef struct tokens {
    const void *bytes[WORKERS];
    size_t sizes[WORKERS];
} tokens;

static bool load_tokens(const char *path, int round, tokens *t)
{
    bool all = true;
    for (int w = 0; w < WORKERS; w++) {
        t->bytes[w] = scratch_load(token_path(path, round, w), &t->sizes[w]);
        all = all && t->bytes[w];
    }
    return all;
}

static void free_tokens(const tokens *t)
{
    for (int w = 0; w < WORKERS; w++) free((void *)t->bytes[w]);
}

/* ---- A round ---------------------------------------------------------------------------------- */

typedef struct rounds {
    const char *path;
    caterva_array *array;
    caterva_error err;
    bool by_processes;
    void *job;
    size_t job_size;
} rounds;

static caterva_status work(rounds *s, int round, int worker)
{
    static int32_t items[MOST];
    caterva_array *part;
    void *token;
    size_t token_size, size = fill_task(round, worker, items);
    task t = task_of(round, worker);
    caterva_status status =
        caterva_part_open(s->path, s->job, s->job_size, NULL, &part, &s->err);
    if (status != CATERVA_OK) return status;
    status = caterva_write(part, t.start, t.stop, items, size, &s->err);
    if (status != CATERVA_OK) {
        caterva_discard(part);
        return status;
    }
    status = caterva_part_finish(part, &token, &token_size, &s->err);
    if (status != CATERVA_OK) return status;
    if (!save_token(s->path, round, worker, token, token_size)) status = CATERVA_EIO;
    caterva_free(token);
    return status;
}

static pid_t start_worker(rounds *s, int round, int worker)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(work(s, round, worker) == CATERVA_OK ? 0 : FAILED);
    return child;
}

/* Restarts a killed worker. */
static caterva_status run_processes(rounds *s, int round)
{
    pid_t children[WORKERS];
    for (int w = 0; w < WORKERS; w++) children[w] = start_worker(s, round, w);
    for (int w = 0; w < WORKERS; w++) {
        int how;
        if (waitpid(children[w], &how, 0) != children[w]) return CATERVA_EIO;
        if (how == 0) continue;
        if (!WIFSIGNALED(how)) return CATERVA_EIO;
        children[w] = start_worker(s, round, w);
        w--;
    }
    return CATERVA_OK;
}

static void acknowledge(int round, const char *plus)
{
    char line[32];
    int size = snprintf(line, sizeof line, "ACK %d%s\n", round, plus);
    if (write(1, line, (size_t)size) != size) exit(FAILED);
}

static caterva_status reopen(rounds *s)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.threads = 1;
    caterva_discard(s->array);
    return caterva_open(s->path, &o, &s->array, &s->err);
}

static caterva_status make_parts(rounds *s, int round)
{
    const int64_t shape[2] = {rows_after(round), COLUMNS};
    caterva_job_options o = CATERVA_JOB_INIT;
    o.shape = shape;
    caterva_status status = caterva_job_begin(s->array, &o, &s->job, &s->job_size, &s->err);
    if (status == CATERVA_OK && s->by_processes) status = run_processes(s, round);
    for (int w = 0; w < WORKERS && status == CATERVA_OK && !s->by_processes; w++)
        status = work(s, round, w);
    caterva_free(s->job);
    s->job = NULL;
    return status;
}

static caterva_status merge(rounds *s, int round)
{
    tokens t;
    caterva_status status = CATERVA_EIO;
    if (load_tokens(s->path, round, &t))
        status = caterva_merge(s->array, t.bytes, t.sizes, WORKERS, NULL, NULL, &s->err);
    free_tokens(&t);
    return status;
}

static caterva_status play(rounds *s, int round, bool says)
{
    caterva_status status = make_parts(s, round);
    if (status == CATERVA_OK && says) acknowledge(round - 1, "+");
    if (status == CATERVA_OK && round % 3 == 2) status = reopen(s);
    if (status == CATERVA_OK) status = merge(s, round);
    if (status == CATERVA_OK) status = caterva_commit(s->array, &s->err);
    if (status == CATERVA_OK && says) acknowledge(round, "");
    return status;
}

static int run(const char *path, int n, bool by_processes)
{
    rounds s = {.path = path, .by_processes = by_processes};
    caterva_status status = reopen(&s);
    for (int round = 1; round <= n && status == CATERVA_OK; round++)
        status = play(&s, round, true);
    caterva_discard(s.array);
    if (status != CATERVA_OK) fprintf(stderr, "%s\n", s.err.message);
    return status == CATERVA_OK ? 0 : FAILED;
}

static int init(const char *layout, const char *path)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    static int32_t items[MOST];
    o.ndim = 2;
    o.shape = (const int64_t[]){FIRST_ROWS, COLUMNS};
    o.chunk_shape = (const int32_t[]){8, 8};
    o.block_shape = (const int32_t[]){4, 8};
    o.dtype = "<i4";
    if (strcmp(layout, "directory") == 0) o.layout = CATERVA_LAYOUT_SPARSE;
    size_t size = state_after(0, items);
    CHECK_OK(caterva_create_from_memory(path, &o, items, size, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    return 0;
}

/* ---- Checking ---------------------------------------------------------------------------------- */

/* An array as seen by one reader. */
typedef struct found {
    int64_t rows;
    int32_t items[MOST];
} found;

static int load(const char *path, found *out)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_array *array;
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    if (caterva_open(path, NULL, &array, &err) != CATERVA_OK) return NO_OPEN;
    caterva_info info = *info_of(array);
    CHECK(info.shape[0] <= MOST_ROWS && info.shape[1] == COLUMNS, "another shape");
    out->rows = info.shape[0];
    size_t size = (size_t)(out->rows * COLUMNS) * sizeof out->items[0];
    caterva_status status = caterva_read(array, origin, info.shape, out->items, size, &err);
    if (status == CATERVA_OK) status = caterva_verify(array, NULL, &verified, &err);
    caterva_discard(array);
    return status == CATERVA_OK && verified.damages == 0 ? GOOD : NO_READ;
}

static int load_b2nd(const char *path, found *out)
{
    b2nd_array_t *array;
    blosc2_init();
    if (b2nd_open(path, &array) < 0) return NO_OPEN;
    out->rows = array->shape[0];
    int64_t size = out->rows * COLUMNS * (int64_t)sizeof out->items[0];
    int result = b2nd_to_cbuffer(array, out->items, size);
    b2nd_free(array);
    return result < 0 ? NO_READ : GOOD;
}

static bool is_state(const found *f, int round)
{
    static int32_t items[MOST];
    size_t size = state_after(round, items);
    return f->rows == rows_after(round) && memcmp(f->items, items, size) == 0;
}

/* Returns the number of the state; -1 if it is an invalid one. */
static int state_of(const found *f)
{
    for (int round = 0; rows_after(round) <= MOST_ROWS; round++)
        if (is_state(f, round)) return round;
    return -1;
}

static int check(const char *path, int ack, bool b2nd)
{
    static found f;
    int fault = b2nd ? load_b2nd(path, &f) : load(path, &f);
    if (fault != GOOD) return fault;
    int state = state_of(&f);
    if (state < 0 || state > ack + 1) return WRONG;
    return state < ack ? LOST : GOOD;
}

/* ---- Going on ------------------------------------------------------------------------------------ */

/* Merges the tokens of the next round, if they exist; acknowledged tokens must be valid.
 * Returns the state. */
static int merge_again(rounds *s, int state, int ack, bool have_tokens)
{
    int round = ack + 1;
    caterva_status status = merge(s, round);
    bool over = status == CATERVA_ENOTFOUND && state == round;
    CHECK(status == CATERVA_OK || over || !have_tokens,
          "merging round %d again: %s, state %d", round, s->err.message, state);
    if (status == CATERVA_OK) {
        CHECK_OK(caterva_commit(s->array, &s->err), s->err);
        return round;
    }
    CHECK_OK(reopen(s), s->err);
    return state;
}

/* Deletes jobs that have not ended. */
static void discard_jobs(const char *path)
{
    caterva_error err;
    const caterva_job_list *list;
    char parts[4096];
    CHECK_OK(caterva_jobs_list(path, NULL, &list, &err), err);
    for (size_t i = 0; i < list->n; i++) {
        const caterva_job_entry *job = list->entries[i];
        CHECK(!job->is_live, "job %s is live", job->id);
        CHECK_OK(caterva_job_delete(path, job->job, job->job_size, NULL, &err), err);
    }
    caterva_job_list_release(list);
    snprintf(parts, sizeof parts, "%s.parts", path);
    CHECK(access(parts, F_OK) != 0 && errno == ENOENT, "%s is still there", parts);
}

static int go_on(const char *path, int ack, bool have_tokens)
{
    static found f;
    rounds s = {.path = path};
    CHECK(load(path, &f) == GOOD, "it does not read");
    int state = state_of(&f);
    CHECK(state >= 0, "no state");
    CHECK_OK(reopen(&s), s.err);
    state = merge_again(&s, state, ack, have_tokens) + 1;
    CHECK_OK(play(&s, state, false), s.err);
    CHECK_OK(caterva_close(s.array, &s.err), s.err);
    discard_jobs(path);
    CHECK(load(path, &f) == GOOD && is_state(&f, state), "round %d is not there", state);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) return USAGE;
    const char *command = argv[1], *path = argv[2], *word = argv[3];
    int number = atoi(word);
    if (strcmp(command, "init") == 0) return init(path, word);
    if (strcmp(command, "work") == 0) return run(path, number, false);
    if (strcmp(command, "live") == 0) return run(path, number, true);
    if (strcmp(command, "check") == 0) return check(path, number, false);
    if (strcmp(command, "b2nd") == 0) return check(path, number, true);
    if (strcmp(command, "goes-on") == 0)
        return go_on(path, number, strchr(word, '+') != NULL);
    return USAGE;
}
