/* A real full disk: a small tmpfs is filled by appends and overwrites until no space is left.
 * The error says so, committed items are readable with this reader and with C-Blosc2's, and
 * the handle continues or reports that it cannot. Once space is freed, the work continues.
 * Skipped if no tmpfs can be mounted.
 *
 * usage: test_full_disk [SEED] */
#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <caterva_upkeep.h>
#include <stdio.h>

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, DISK = 3 << 20, BALLAST = 1 << 20, CHUNK = 8192, ROUNDS = 6 };

typedef struct trial {
    rng random;
    char path[SCRATCH_PATH + 16];
    char ballast[SCRATCH_PATH + 16];
    caterva_array *array;
    int32_t *items; /* committed items */
    int64_t n;
    int32_t *next; /* items if the commit in flight succeeds */
    int64_t n_next;
} trial;

static int n_full;     /* times the disk was full */
static int n_reopened; /* handles that reported that they cannot continue */

/* ---- A disk of our own --------------------------------------------------- */

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return done;
}

/* Without privileges: root in a user namespace. */
static bool become_root(void)
{
    char map[64];
    snprintf(map, sizeof map, "0 %ld 1", (long)getuid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return false;
    char groups[64];
    snprintf(groups, sizeof groups, "0 %ld 1", (long)getgid());
    return write_text("/proc/self/uid_map", map) &&
           write_text("/proc/self/setgroups", "deny") &&
           write_text("/proc/self/gid_map", groups);
}

/* The mount is private to this process and ends with it. */
static bool mount_disk(const char *path)
{
    char options[32];
    snprintf(options, sizeof options, "size=%d", DISK);
    bool own = geteuid() == 0 && unshare(CLONE_NEWNS) == 0;
    if (!own && !become_root()) return false;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return false;
    return mkdir(path, 0777) == 0 && mount("tmpfs", path, "tmpfs", 0, options) == 0;
}

static void put_ballast(trial *t, int64_t size)
{
    static const char zeros[4096];
    int fd = open(t->ballast, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    CHECK(fd >= 0, "no ballast: %s", strerror(errno));
    for (; size > 0; size -= (int64_t)sizeof zeros)
        CHECK(write(fd, zeros, sizeof zeros) == sizeof zeros, "no room for ballast");
    close(fd);
}

/* ---- What is there ------------------------------------------------------- */

static void check_items(const trial *t, const int32_t *got, const char *who)
{
    CHECK(memcmp(got, t->items, (size_t)t->n * sizeof *got) == 0, "%s reads otherwise", who);
}

static void check_array(trial *t, caterva_array *array, const char *who)
{
    caterva_error err;
    int64_t start = 0, n = info_of(array)->shape[0];
    CHECK(n == t->n, "%s: %lld items, not %lld", who, (long long)n, (long long)t->n);
    size_t size = (size_t)n * sizeof *t->items;
    int32_t *got = check_alloc(size);
    CHECK_OK(caterva_read(array, &start, &n, got, size, &err), err);
    check_items(t, got, who);
    free(got);
}

static void check_stored(trial *t)
{
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(t->path, NULL, &array, &err), err);
    check_array(t, array, "a new reader");
    CHECK_OK(caterva_close(array, &err), err);

    b2nd_array_t *theirs;
    CHECK(b2nd_open(t->path, &theirs) >= 0, "C-Blosc2 does not open it");
    CHECK(theirs->shape[0] == t->n, "C-Blosc2: %lld items", (long long)theirs->shape[0]);
    size_t size = (size_t)t->n * sizeof *t->items;
    int32_t *got = check_alloc(size);
    CHECK(b2nd_to_cbuffer(theirs, got, (int64_t)size) >= 0, "C-Blosc2 does not read it");
    check_items(t, got, "C-Blosc2");
    free(got);
    b2nd_free(theirs);
}

/* ---- Work ---------------------------------------------------------------- */

static void open_writer(trial *t)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.dirty_budget = 64 * 1024; /* chunks reach the disk before the commit */
    CHECK_OK(caterva_open(t->path, &options, &t->array, &err), err);
}

/* Writes noise over a part of the items, or after them; commits. */
static caterva_status work(trial *t, bool appends, caterva_error *err)
{
    int64_t n = rng_between(&t->random, 1, 3 * CHUNK);
    int64_t start = appends ? t->n : rng_between(&t->random, 0, t->n - 1);
    if (!appends && start + n > t->n) n = t->n - start;
    int64_t stop = start + n;
    t->n_next = appends ? stop : t->n;
    t->next = realloc(t->next, (size_t)t->n_next * sizeof *t->next);
    CHECK(t->next, "no memory");
    memcpy(t->next, t->items, (size_t)t->n * sizeof *t->items);
    rng_fill(&t->random, t->next + start, (size_t)n * sizeof *t->next);

    size_t size = (size_t)n * sizeof *t->next;
    caterva_status status =
        appends ? caterva_append(t->array, 0, n, PLAIN(t->next + start, size), err)
                : caterva_write(t->array, &start, &stop, t->next + start, size, err);
    if (status == CATERVA_OK) status = caterva_commit(t->array, err);
    if (status != CATERVA_OK) return status;
    int32_t *old = t->items;
    t->items = t->next;
    t->n = t->n_next;
    t->next = old;
    return CATERVA_OK;
}

/* Writes until no space is left. */
static void fill_disk(trial *t)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_status status = CATERVA_OK;
    bool only_overwrites = rng_one_in(&t->random, 2);
    for (int i = 0; i < 2000 && status == CATERVA_OK; i++)
        status = work(t, t->n < CHUNK || i > 30 || !only_overwrites, &err);
    CHECK(status == CATERVA_EIO && err.sys_errno == ENOSPC, "a full disk gives %s: %s",
          caterva_status_name(status), err.message);
    CHECK(strstr(err.message, "space") != NULL, "which is called \"%s\"", err.message);
    n_full++;
}

/* Space is available again. A handle that cannot continue reports so. */
static void go_on(trial *t)
{
    caterva_error err;
    caterva_status status = work(t, false, &err);
    if (status == CATERVA_EIO && strstr(err.message, "reopen")) {
        caterva_discard(t->array);
        open_writer(t);
        n_reopened++;
        status = work(t, false, &err);
    }
    CHECK(status == CATERVA_OK, "with space again: %s", err.message);
    check_stored(t);
}

static void run_round(trial *t)
{
    caterva_error err;
    put_ballast(t, rng_between(&t->random, BALLAST / 2, BALLAST));
    fill_disk(t);
    check_stored(t);
    CHECK_OK(caterva_rollback(t->array, &err), err);
    check_array(t, t->array, "the handle");
    for (int i = 0; i < 3; i++) { /* still full, or nearly */
        caterva_status status = work(t, true, &err);
        CHECK(status == CATERVA_OK || err.sys_errno == ENOSPC, "%s", err.message);
        check_stored(t);
        CHECK_OK(caterva_rollback(t->array, &err), err);
    }
    put_ballast(t, 0);
    go_on(t);
    CHECK_OK(caterva_close(t->array, &err), err);
    check_stored(t);
    caterva_status status = caterva_compact(t->path, NULL, &err);
    CHECK(status == CATERVA_OK || err.sys_errno == ENOSPC, "%s", err.message);
    check_stored(t); /* a copy that found no space leaves nothing behind */
    open_writer(t);
}

static void run_trial(const char *disk, uint64_t seed, caterva_layout layout)
{
    trial t = {.random = rng_from_seed(seed)};
    snprintf(t.path, sizeof t.path, "%s/array", disk);
    snprintf(t.ballast, sizeof t.ballast, "%s/ballast", disk);
    for (int round = 0; round < ROUNDS; round++) {
        caterva_error err;
        int64_t shape = CHUNK;
        int32_t chunk = CHUNK, block = CHUNK / 8;
        caterva_create_options options = CATERVA_CREATE_INIT;
        options.ndim = 1;
        options.shape = &shape;
        options.chunk_shape = &chunk;
        options.block_shape = &block;
        options.dtype = "<i4";
        options.layout = layout;
        options.overwrite = 1;
        CHECK_OK(caterva_create(t.path, &options, &t.array, &err), err);
        CHECK_OK(caterva_close(t.array, &err), err);
        t.n = shape;
        t.items = check_alloc((size_t)t.n * sizeof *t.items);
        t.next = NULL;
        memset(t.items, 0, (size_t)t.n * sizeof *t.items);
        open_writer(&t);
        run_round(&t);
        caterva_discard(t.array);
        free(t.items);
        free(t.next);
        scratch_remove(t.path);
    }
}

/* ---- What a writer that failed leaves -------------------------------------- */

/* Appends noise; chunks reach the disk at once. */
static caterva_status append_noise(trial *t, int64_t n, caterva_error *err)
{
    t->next = realloc(t->next, (size_t)(t->n + n) * sizeof *t->next);
    CHECK(t->next, "no memory");
    memcpy(t->next, t->items, (size_t)t->n * sizeof *t->items);
    rng_fill(&t->random, t->next + t->n, (size_t)n * sizeof *t->next);
    t->n_next = t->n + n;
    caterva_status status = caterva_append(t->array, 0, n, PLAIN(t->next + t->n, (size_t)n * sizeof *t->next), err);
    return status == CATERVA_OK ? caterva_commit(t->array, err) : status;
}

static void keep_noise(trial *t)
{
    int32_t *old = t->items;
    t->items = t->next;
    t->n = t->n_next;
    t->next = old;
}

static int64_t stored_size(const trial *t)
{
    struct stat st;
    CHECK(stat(t->path, &st) == 0, "no file");
    return st.st_size;
}

typedef enum ending { BY_ROLLBACK, BY_DISCARD, BY_CLOSE, BY_DEATH, N_ENDINGS } ending;

/* Writes more than fits, and ends. */
static void fail_and_leave(trial *t, ending how)
{
    caterva_error err;
    CHECK(append_noise(t, DISK / 4, &err) == CATERVA_EIO, "the disk is not full");
    CHECK(err.sys_errno == ENOSPC, "%s", err.message);
    if (how == BY_ROLLBACK) CHECK_OK(caterva_rollback(t->array, &err), err);
    if (how == BY_CLOSE) CHECK(caterva_close(t->array, &err) != CATERVA_OK, "closed well");
    if (how == BY_ROLLBACK || how == BY_DISCARD) caterva_discard(t->array);
    t->array = NULL;
}

static void die_writing(trial *t)
{
    int state = 0;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0, "no process");
    if (pid == 0) {
        caterva_error err;
        open_writer(t);
        CHECK(append_noise(t, DISK / 4, &err) == CATERVA_EIO, "the disk is not full");
        _exit(0); /* as if killed: without cleanup */
    }
    CHECK(waitpid(pid, &state, 0) == pid && state == 0, "the other process failed");
}

/* The next writer gets the space of the previous one, and writes less. */
static void a_smaller_write_succeeds(const char *disk, uint64_t seed, ending how)
{
    caterva_error err;
    trial t = {.random = rng_from_seed(seed)};
    int64_t shape = 0;
    int32_t chunk = CHUNK, block = CHUNK / 8;
    snprintf(t.path, sizeof t.path, "%s/small", disk);
    snprintf(t.ballast, sizeof t.ballast, "%s/ballast", disk);
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &shape;
    options.chunk_shape = &chunk;
    options.block_shape = &block;
    options.dtype = "<i4";
    CHECK_OK(caterva_create(t.path, &options, &t.array, &err), err);
    t.items = check_alloc(1);
    CHECK_OK(append_noise(&t, 2 * CHUNK, &err), err);
    keep_noise(&t);
    CHECK_OK(caterva_close(t.array, &err), err);

    int64_t size = stored_size(&t);
    put_ballast(&t, DISK - size - 10 * CHUNK * 4);
    if (how == BY_DEATH) {
        die_writing(&t);
        CHECK(stored_size(&t) > size, "nothing was left");
    } else {
        open_writer(&t);
        fail_and_leave(&t, how);
        CHECK(stored_size(&t) == size, "%lld bytes, not %lld", (long long)stored_size(&t),
              (long long)size);
    }
    open_writer(&t);
    CHECK_OK(append_noise(&t, 4 * CHUNK, &err), err);
    keep_noise(&t);
    CHECK_OK(caterva_close(t.array, &err), err);
    check_stored(&t);
    open_writer(&t);
    fail_and_leave(&t, how == BY_DEATH ? BY_DISCARD : how);
    put_ballast(&t, 0); /* space for a copy, but not much more */
    put_ballast(&t, DISK - 2 * stored_size(&t) - 64 * 1024);
    CHECK_OK(caterva_compact(t.path, NULL, &err), err);
    check_stored(&t);
    put_ballast(&t, 0);
    free(t.items);
    free(t.next);
    scratch_remove(t.path);
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_argument(argc, argv, 1);
    char disk[SCRATCH_PATH];
    if (!mount_disk(scratch_path(disk, "disk"))) {
        printf("skipped: no tmpfs can be mounted here: %s\n", strerror(errno));
        return SKIPPED;
    }
    blosc2_init();
    for (int how = 0; how < N_ENDINGS; how++)
        a_smaller_write_succeeds(disk, seed, (ending)how);
    run_trial(disk, seed, CATERVA_LAYOUT_CONTIGUOUS);
    run_trial(disk, seed + 1, CATERVA_LAYOUT_SPARSE);
    umount(disk);
    printf("the disk was full %d times; %d handles had to be opened again\n", n_full,
           n_reopened);
    return 0;
}

#else

int main(void)
{
    puts("skipped: tmpfs is Linux's");
    return 77;
}

#endif
