/* Test support: the operations that run on each hostile file, their memory and time limits. */
#include "support/hostile.h"

#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "info.h"
#include "support/check.h"
#include "support/every_step.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY = 256 << 20, /* in addition to the memory at the start */
#ifdef __OPTIMIZE__
    SECONDS = 6, /* of processor time: three times the need of slow machines */
#else
    SECONDS = 30,
#endif
    LARGE_CHUNK = 32 << 20
};

/* ---- Operations --------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double begun;

/* Checks one result. Any result is accepted except a lack of memory. */
static void step(const char *what, caterva_status status, const caterva_error *err)
{
    double now = seconds();
    if (getenv("TIMES"))
        fprintf(stderr, "    %-16s %6.2f s  %s\n", what, now - begun,
                status == CATERVA_OK ? "" : err->message);
    begun = now;
    CHECK(status != CATERVA_ENOMEM, "%s: %s", what, err->message);
}

static int stop_soon(void *context, int64_t done, int64_t total)
{
    (void)done, (void)total;
    return ++*(int *)context > 2;
}

static void ask_attributes(caterva_array *array)
{
    const caterva_info *info = info_of(array);
    caterva_error err;
    CHECK(info, "no description");
    for (int i = 0; i < info->n_attributes; i++) {
        uint8_t first[100];
        int64_t size;
        step("attr_read",
             caterva_attr_read(array, info->attribute_names[i], 0, first, sizeof first, &size,
                               &err),
             &err);
    }
}

static void ask_chunks(caterva_array *array)
{
    const caterva_info *info = info_of(array);
    caterva_error err;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
    caterva_chunk_iter chunks = CATERVA_CHUNK_ITER_INIT;
    if (info->n_chunks == 0) return;
    step("describe_chunk", caterva_chunk_describe(array, info->n_chunks - 1, &chunk, &err),
         &err);
    step("describe_block",
         caterva_block_describe(array, info->n_chunks - 1, info->n_blocks - 1, &block, &err),
         &err);
    step("next_chunk", caterva_chunk_next(array, &chunks, &err), &err);
}

/* Reads one item, and calls the functions that examine the whole array. */
static void ask_items(caterva_array *array)
{
    const caterva_info *info = info_of(array);
    caterva_error err;
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    int calls = 0;
    caterva_reduce_options options = CATERVA_REDUCE_INIT;
    for (int d = 0; d < info->ndim; d++) {
        stop[d] = info->shape[d];
        start[d] = stop[d] - 1;
    }
    if (info->item_size <= 16) {
        uint8_t item[16];
        step("read", caterva_read(array, start, stop, item, sizeof item, &err), &err);
    }
    options.progress = every_step(stop_soon, &calls);
    step("statistics", caterva_statistics(array, &options, &stats, &err), &err);
}

/* Makes copies. The calls may be stopped early, because no copy is compared. */
static void ask_copies(caterva_array *array)
{
    caterva_error err;
    caterva_array *copy;
    caterva_copy_options options = CATERVA_COPY_INIT;
    void *frame;
    size_t size;
    int calls = 0;
    options.progress = every_step(stop_soon, &calls);
    options.memory = 64 << 20;
    caterva_status status = caterva_copy(array, "mem:", &options, &copy, &err);
    step("copy", status, &err);
    if (status == CATERVA_OK) caterva_discard(copy);
    status = caterva_frame_copy(array, &frame, &size, &err);
    step("to_frame", status, &err);
    if (status == CATERVA_OK) caterva_free(frame);
}

void hostile_restore(const hostile *h) { scratch_save(h->file, h->bytes, h->size); }

static void ask_reader(const hostile *h)
{
    caterva_error err;
    caterva_array *array;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_verify_result verified = CATERVA_VERIFY_RESULT_INIT;
    caterva_status status = caterva_open(h->path, NULL, &array, &err);
    step("open", status, &err);
    if (status != CATERVA_OK) return;
    ask_attributes(array);
    ask_chunks(array);
    ask_items(array);
    step("measure", caterva_measure(array, &space, &err), &err);
    step("verify", caterva_verify(array, NULL, &verified, &err), &err);
    ask_copies(array);
    step("refresh", caterva_refresh(array, &err), &err);
    caterva_discard(array);
}

/* Writes one item. Does nothing if the chunk, its segments or the memory for each of its blocks are
 * large, because a writer needs that much memory. */
static void ask_writer(const hostile *h)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    caterva_status status = caterva_open(h->path, &options, &array, &err);
    step("open to write", status, &err);
    if (status != CATERVA_OK) return;
    const caterva_info *info = info_of(array);
    int64_t start[CATERVA_MAX_DIMS], stop[CATERVA_MAX_DIMS];
    int64_t chunk = info->item_size, each_block = 16;
    static const uint8_t item[16] = {1};
    for (int d = 0; d < info->ndim; d++) {
        stop[d] = info->shape[d];
        start[d] = stop[d] - 1;
        chunk *= info->chunk_shape[d];
    }
    if (info->item_size <= 16 && chunk + each_block * info->n_blocks <= LARGE_CHUNK)
        step("write", caterva_write(array, start, stop, item, (size_t)info->item_size, &err),
             &err);
    step("commit", caterva_commit(array, &err), &err);
    caterva_discard(array);
}

static void ask_repair(const hostile *h, int guess)
{
    caterva_error err;
    caterva_repair_result repaired = CATERVA_REPAIR_RESULT_INIT;
    char output[SCRATCH_PATH + 16];
    caterva_repair_options repair = CATERVA_REPAIR_INIT;
    snprintf(output, sizeof output, "%s.out", h->path);
    repair.output = output;
    repair.overwrite = 1;
    repair.guess = guess;
    hostile_restore(h);
    step(guess ? "repair, guessing" : "repair",
         caterva_repair(h->path, &repair, &repaired, &err), &err);
    scratch_remove(output);
}

static void ask_library(const hostile *h)
{
    caterva_error err;
    ask_reader(h);
    ask_repair(h, 0);
    ask_repair(h, 1);
    hostile_restore(h);
    step("compact", caterva_compact(h->path, NULL, &err), &err);
    hostile_restore(h);
    step("seal", caterva_seal(h->path, NULL, &err), &err);
    hostile_restore(h);
    ask_writer(h);
    hostile_restore(h);
}

/* ---- Under limits ------------------------------------------------------- */

/* Returns the current size of private writable memory. */
static rlim_t data_size(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "no /proc");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmData: %lu kB", &kib) == 1) break;
    fclose(status);
    return (rlim_t)kib * 1024;
}

static void set_limits(rlim_t most_seconds)
{
    struct rlimit memory = {data_size() + MEMORY, data_size() + MEMORY};
    struct rlimit cpu = {most_seconds, most_seconds + 1};
    CHECK(setrlimit(RLIMIT_DATA, &memory) == 0, "setrlimit");
    CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0, "setrlimit");
    begun = seconds();
}

static void check_end(int status, const char *name, const char *what)
{
    CHECK(!WIFSIGNALED(status), "%s: %s ended by signal %d", name, what, WTERMSIG(status));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 1, "%s: %s failed", name, what);
}

void hostile_run_library(const hostile *h)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        set_limits(SECONDS);
        ask_library(h);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    check_end(status, h->name, "the library");
}

/* Runs a command. With `all`, it may exceed the time limit, but not the memory limit. */
static void run_program(const hostile *h, const char *const *words, bool all, const char *log)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY),
            out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (null < 0 || out < 0) _exit(1);
        dup2(null, 1);
        dup2(out, 2);
        set_limits(all ? 1 : SECONDS);
        execv(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    bool stopped = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU;
    CHECK(!WIFSIGNALED(status) || (all && stopped), "%s: caterva %s ended by signal %d",
          h->name, words[1], WTERMSIG(status));
    CHECK(stopped || WEXITSTATUS(status) != 127, "cannot run %s", words[0]);
    size_t size;
    char *said = (char *)scratch_load(log, &size);
    CHECK(said, "%s", log);
    bool memory = false;
    for (size_t i = 0; i + 6 <= size; i++)
        memory = memory || memcmp(said + i, "memory", 6) == 0;
    CHECK(!memory, "%s: caterva %s: %.*s", h->name, words[1], (int)size, said);
    free(said);
}

void hostile_run_programs(const hostile *h)
{
    const char *program = getenv("CATERVA_CLI"), *path = h->path;
    char log[SCRATCH_PATH], output[SCRATCH_PATH];
    if (!program) return;
    enum { N_WHOLE = 5 }; /* runs before those that read all items */
    scratch_path(log, "said");
    scratch_path(output, "output.b2nd");
    const char *const runs[][6] = {
        {program, "info", path},    {program, "attr", "list", path},
        {program, "verify", path},  {program, "repair", "-o", output, path},
        {program, "compact", path}, {program, "get", path, "0"},
        {program, "stats", path},   {program, "view", path},
        {program, "tune", path},    {program, "diff", path, path},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        double before = 0;
        struct rusage usage;
        getrusage(RUSAGE_CHILDREN, &usage);
        before = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
        run_program(h, runs[i], i >= N_WHOLE, log);
        getrusage(RUSAGE_CHILDREN, &usage);
        if (getenv("TIMES"))
            fprintf(stderr, "    caterva %-8s %6.2f s\n", runs[i][1],
                    (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6 -
                        before);
        scratch_remove(output);
    }
}
