/* The program that tools/reliability runs with crashes and I/O errors, and checks:
 *
 *   tool_workload init LAYOUT KIND PATH      creates the array; LAYOUT: file, directory
 *   tool_workload work KIND PATH N           N commits in one session, each followed
 *                                            by a line "ACK <commits so far>"; ends
 *                                            without a close, as after an error
 *   tool_workload sessions KIND PATH N       the same; every third commit is a close
 *   tool_workload check KIND PATH ACK        with our reader: 0 if the array is in the
 *   tool_workload check-b2nd KIND PATH ACK   state after commit ACK or the next; other
 *                                            statuses: tools/reliability/README.md
 *
 * KIND is one of support/model.h. If work fails without a fault, the status is 9. */
#include "support/model.h"

#include <blosc2.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GOOD, NO_OPEN, LOST, WRONG, NO_READ, HALF, FAILED = 9, USAGE = 64 };

/* ---- Work ---------------------------------------------------------------- */

static caterva_array *open_for_work(const char *path, caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = 1;
    caterva_array *array = NULL;
    (void)caterva_open(path, &options, &array, err);
    return array;
}

/* Uses write(2), so that the shim's journal records it in order. */
static void acknowledge(int n)
{
    char line[32];
    int size = snprintf(line, sizeof line, "ACK %d\n", n);
    if (write(1, line, (size_t)size) != size) exit(FAILED);
}

/* Commits operation `i`; a close commits as well, and reopens. */
static caterva_status finish(caterva_array **array, const char *kind, const char *path, int i,
                             bool close, caterva_error *err)
{
    bool compacts = strcmp(kind, "compact") == 0;
    caterva_array *old = *array;
    if (!close && !compacts) {
        caterva_status status = caterva_commit(old, err);
        if (status == CATERVA_OK) acknowledge(i + 1);
        return status;
    }
    *array = NULL;
    caterva_status status = caterva_close(old, err);
    if (status == CATERVA_OK) acknowledge(i + 1);
    if (status == CATERVA_OK && compacts) status = caterva_compact(path, NULL, err);
    if (status != CATERVA_OK) return status;
    *array = open_for_work(path, err);
    return *array ? CATERVA_OK : err->code;
}

static int work(const char *kind, const char *path, int n, bool sessions)
{
    caterva_error err = {.code = CATERVA_OK};
    model m = model_begin(kind);
    caterva_array *array = open_for_work(path, &err);
    caterva_status status = array ? CATERVA_OK : err.code;
    for (int i = 0; i < n && status == CATERVA_OK; i++) {
        status = model_step(&m, kind, i, array, &err);
        if (status == CATERVA_OK)
            status = finish(&array, kind, path, i, sessions && i % 3 == 2, &err);
    }
    if (status == CATERVA_OK && sessions) {
        status = caterva_close(array, &err);
        array = NULL;
    }
    caterva_discard(array);
    model_free(&m);
    if (status != CATERVA_OK) fprintf(stderr, "%s\n", err.message);
    return status == CATERVA_OK ? 0 : FAILED;
}

/* ---- Check --------------------------------------------------------------- */

/* Classifies a state that is neither the acknowledged one nor the next. */
static int judge_other(const char *kind, const model *got, int ack)
{
    model m = model_begin(kind), before = model_begin(kind);
    int verdict = WRONG;
    for (int i = 0; i <= ack; i++) {
        if (i < ack && model_equal(got, &m)) verdict = LOST;
        CHECK(model_step(&m, kind, i, NULL, NULL) == CATERVA_OK, "the model fails");
        if (i < ack) CHECK(model_step(&before, kind, i, NULL, NULL) == CATERVA_OK, "fails");
    }
    if (verdict == WRONG && model_is_mixture(got, &before, &m)) verdict = HALF;
    model_free(&m);
    model_free(&before);
    return verdict;
}

static int judge(const char *kind, const model *got, int ack)
{
    model m = model_begin(kind);
    for (int i = 0; i < ack; i++)
        CHECK(model_step(&m, kind, i, NULL, NULL) == CATERVA_OK, "the model fails");
    bool good = model_equal(got, &m);
    CHECK(model_step(&m, kind, ack, NULL, NULL) == CATERVA_OK, "the model fails");
    good = good || model_equal(got, &m);
    model_free(&m);
    return good ? GOOD : judge_other(kind, got, ack);
}

static int check(const char *kind, const char *path, int ack, bool b2nd)
{
    char why[256];
    model got;
    if (b2nd) blosc2_init();
    model_fault fault = b2nd ? model_load_b2nd(&got, path, why) : model_load(&got, path, why);
    int verdict = fault == MODEL_NO_OPEN   ? NO_OPEN
                  : fault == MODEL_NO_READ ? NO_READ
                                           : judge(kind, &got, ack);
    if (fault != MODEL_OK) fprintf(stderr, "%s\n", why);
    if (verdict != GOOD) fprintf(stderr, "%s after %d: verdict %d\n", kind, ack, verdict);
    model_free(&got);
    return verdict;
}

static int init(const char *layout, const char *kind, const char *path)
{
    caterva_error err;
    model m = model_begin(kind);
    bool sparse = strcmp(layout, "directory") == 0;
    caterva_status status = model_create(
        &m, path, sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS, &err);
    model_free(&m);
    if (status != CATERVA_OK) fprintf(stderr, "%s\n", err.message);
    return status == CATERVA_OK ? 0 : FAILED;
}

int main(int argc, char **argv)
{
    if (argc != 5) return USAGE;
    const char *command = argv[1];
    if (strcmp(command, "init") == 0)
        return model_knows(argv[3]) ? init(argv[2], argv[3], argv[4]) : USAGE;
    if (!model_knows(argv[2])) return USAGE;
    int n = atoi(argv[4]);
    if (strcmp(command, "work") == 0) return work(argv[2], argv[3], n, false);
    if (strcmp(command, "sessions") == 0) return work(argv[2], argv[3], n, true);
    if (strcmp(command, "check") == 0) return check(argv[2], argv[3], n, false);
    if (strcmp(command, "check-b2nd") == 0) return check(argv[2], argv[3], n, true);
    return USAGE;
}
