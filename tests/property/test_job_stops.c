/* Jobs of more than a thousand parts: listing, deleting and sweeping them report progress,
 * and are stopped at many calls of on_progress. What was stopped can be repeated. */
#include "caterva.h"
#include "caterva_jobs.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS = 1200 };

static char path[SCRATCH_PATH];
static caterva_error err;
static patience progress; /* by the handle `array` */
static caterva_array *array;
static void *job;
static size_t job_size;

static int on_progress(void *unused, int64_t done, int64_t total)
{
    (void)unused;
    return patience_on_progress(&progress, done, total);
}

static void check_stopped(caterva_status status, const patience *p)
{
    CHECK(status == CATERVA_ESTOPPED && p->left == -1, "%s after %d calls",
          caterva_status_name(status), p->calls);
}

/* ---- A job ---------------------------------------------------------------------------- */

static void begin(void)
{
    progress = (patience){.left = -1};
    CHECK_OK(caterva_job_begin(array, NULL, &job, &job_size, &err), err);
}

/* The only job; n -1: there is no job. */
typedef struct found {
    char folder[SCRATCH_PATH];
    int64_t n;
    bool has_ended;
} found;

static caterva_status look(patience *p, found *out)
{
    const caterva_job_list *list;
    caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
    o.progress = every_step(patience_on_progress, p);
    *out = (found){.n = -1};
    caterva_status status = caterva_jobs_list(path, &o, &list, &err);
    if (status != CATERVA_OK) return status;
    CHECK(list->n <= 1, "%zu jobs", list->n);
    if (list->n == 1) {
        snprintf(out->folder, sizeof out->folder, "%s", list->entries[0]->folder);
        out->n = list->entries[0]->n_parts;
        out->has_ended = list->entries[0]->has_ended;
    }
    caterva_job_list_release(list);
    return status;
}

static found look_well(void)
{
    found f;
    patience p = {.left = -1};
    CHECK_OK(look(&p, &f), err);
    CHECK(p.done == p.total, "%lld of %lld", (long long)p.done, (long long)p.total);
    return f;
}

/* Files in place of parts. */
static void add_parts(void)
{
    found f = look_well();
    for (int i = 0; i < PARTS; i++) {
        char name[2 * SCRATCH_PATH];
        snprintf(name, sizeof name, "%s/host-1-%d", f.folder, i);
        FILE *file = fopen(name, "wb");
        CHECK(file && fclose(file) == 0, "%s", name);
    }
}

static caterva_status discard(patience *p)
{
    caterva_upkeep_options o = CATERVA_UPKEEP_INIT;
    o.progress = every_step(patience_on_progress, p);
    return caterva_job_delete(path, job, job_size, &o, &err);
}

/* ---- Stopped ---------------------------------------------------------------------------- */

static void stop_lists(void)
{
    found f;
    patience p = {.left = -1};
    CHECK_OK(look(&p, &f), err);
    CHECK(f.n == PARTS && p.total >= PARTS && p.done == p.total && p.calls > PARTS,
          "%lld parts, %lld of %lld", (long long)f.n, (long long)p.done, (long long)p.total);
    for (int chance = 0; chance < PARTS; chance += chance + 1) {
        p = (patience){.left = chance};
        check_stopped(look(&p, &f), &p);
    }
}

static void stop_discards(void)
{
    patience p = {.left = 0};
    check_stopped(discard(&p), &p);
    found f = look_well();
    CHECK(f.n == PARTS && !f.has_ended, "%lld parts", (long long)f.n);
    for (int i = 0; i < 2; i++) { /* a third of the parts each time */
        p = (patience){.left = PARTS / 3};
        check_stopped(discard(&p), &p);
        CHECK(p.calls == PARTS / 3 + 1, "%d calls", p.calls);
        f = look_well();
        CHECK(f.has_ended && f.n > 0 && f.n < PARTS, "%lld parts", (long long)f.n);
    }
    p = (patience){.left = -1};
    CHECK_OK(discard(&p), err);
    CHECK(p.done == p.total, "%lld of %lld", (long long)p.done, (long long)p.total);
    CHECK(look_well().n == -1, "something is left");
    CHECK(discard(&p) == CATERVA_ENOTFOUND, "it is there");
    caterva_free(job);
}

/* Two parts that are directories. Returns the number of files in them. */
static int visit_directories(const found *f, bool adds)
{
    int n = 0;
    char name[2 * SCRATCH_PATH];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "%s/host-2-%d", f->folder, i / 4);
        if (adds && i % 4 == 0) CHECK(mkdir(name, 0777) == 0, "%s", name);
        snprintf(name, sizeof name, "%s/host-2-%d/%d", f->folder, i / 4, i);
        FILE *file = fopen(name, adds ? "wb" : "rb");
        if (file) n++, fclose(file);
    }
    return n;
}

/* At done == 0 nothing has changed; later the rest is listed, or nothing is left. */
static void stop_discards_of_directories(void)
{
    patience p = {.left = -1};
    for (int chance = 0; p.left == -1; chance++) {
        begin();
        found f = look_well(), rest;
        CHECK(visit_directories(&f, true) == 8, "%s", f.folder);
        p = (patience){.left = chance};
        caterva_status status = discard(&p);
        rest = look_well();
        if (status != CATERVA_OK) {
            check_stopped(status, &p);
            CHECK(rest.n >= 0 && rest.has_ended == (p.done > 0), "%lld parts, %lld done",
                  (long long)rest.n, (long long)p.done);
            CHECK(p.done > 0 || visit_directories(&rest, false) == 8, "files are missing");
            patience again = {.left = -1};
            CHECK_OK(discard(&again), err);
        }
        CHECK(look_well().n == -1 && access(f.folder, F_OK) != 0, "something is left");
        *strrchr(f.folder, '/') = '\0';
        CHECK(access(f.folder, F_OK) != 0, "%s is left", f.folder);
        caterva_free(job);
    }
}

/* The next job deletes what was stopped; its beginning can be stopped, too. */
static void stop_sweeps(void)
{
    patience p = {.left = PARTS / 2};
    begin();
    add_parts();
    check_stopped(discard(&p), &p);
    caterva_free(job);
    for (int chance = 0; chance < 60; chance += 20) {
        progress = (patience){.left = chance};
        check_stopped(caterva_job_begin(array, NULL, &job, &job_size, &err), &progress);
        CHECK(!job && look_well().has_ended, "a job");
    }
    begin();
    CHECK(progress.done == progress.total && progress.total > 100, "%lld of %lld",
          (long long)progress.done, (long long)progress.total);
    found f = look_well();
    CHECK(f.n == 0 && !f.has_ended, "%lld parts", (long long)f.n);
}

/* The commit is done, and the remaining job is listed. */
static void stop_commits(void)
{
    int64_t start = 2, stop = 5;
    int32_t items[3] = {7, 8, 9}, read[3];
    void *token;
    size_t token_size;
    caterva_array *part;
    CHECK_OK(caterva_part_open(path, job, job_size, NULL, &part, &err), err);
    CHECK_OK(caterva_write(part, &start, &stop, items, sizeof items, &err), err);
    CHECK_OK(caterva_part_finish(part, &token, &token_size, &err), err);
    add_parts();
    progress = (patience){.left = -1};
    const void *tokens[] = {token};
    patience own = {.left = -1};
    caterva_merge_options o = CATERVA_MERGE_INIT;
    o.progress = every_step(patience_on_progress, &own);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(caterva_rollback(array, &err), err);
        progress = (patience){.left = -1};
        CHECK_OK(caterva_merge(array, tokens, &token_size, 1, i ? NULL : &o, NULL, &err),
                 err);
        CHECK(progress.done == own.total && progress.total == own.total && own.total > 0,
              "%lld of %lld, by the call %lld", (long long)progress.done,
              (long long)progress.total, (long long)own.total);
    }
    progress = (patience){.left = PARTS / 2};
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK(progress.left == -1, "it was not stopped");
    found f = look_well();
    CHECK(f.has_ended && f.n > 0 && f.n < PARTS, "%lld parts", (long long)f.n);
    caterva_array *reader;
    CHECK_OK(caterva_open(path, NULL, &reader, &err), err);
    CHECK_OK(caterva_read(reader, &start, &stop, read, sizeof read, &err), err);
    CHECK(memcmp(read, items, sizeof items) == 0, "it is not committed");
    caterva_discard(reader);
    patience p = {.left = -1};
    CHECK_OK(discard(&p), err);
    CHECK(look_well().n == -1, "something is left");
    caterva_free(token);
    caterva_free(job);
}

int main(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = (int64_t[]){10};
    o.dtype = "<i4";
    o.durability = CATERVA_DURABILITY_NONE;
    o.progress = every_step(on_progress, NULL);
    progress = (patience){.left = -1};
    CHECK_OK(caterva_create(scratch_path(path, "a.b2nd"), &o, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    begin();
    add_parts();
    stop_lists();
    stop_discards();
    stop_discards_of_directories();
    stop_sweeps();
    stop_commits();
    progress = (patience){.left = -1};
    CHECK_OK(caterva_close(array, &err), err);
    return 0;
}
