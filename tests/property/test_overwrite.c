/* Replacing arrays that are in use: every function that replaces an existing path, every pair
 * of file and directory, beside a writer and beside a reader, in this process and in another
 * one. A writer's acknowledged commit is never lost, a reader never loses a byte, and no
 * temporary file remains. Then, names that others take away from a writer. */
#include "small_array.h"

#include <caterva_upkeep.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[SCRATCH_PATH], target[PATH_SIZE], other[PATH_SIZE];

static int count_entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    CHECK(dir, "%s", path);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

/* ---- Who has the array open: here or in another process ------------------- */

typedef enum step { OPEN_READ, OPEN_WRITE, COMMIT, READ, CLOSE, LEAVE } step;

typedef struct order {
    step what;
    int value; /* COMMIT: what to write; READ: what is expected */
    char path[PATH_SIZE];
} order;

static caterva_array *held;

static caterva_status open_held(const char *path, caterva_mode mode)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    options.threads = 1;
    options.cache_bytes = -1;
    options.durability = CATERVA_DURABILITY_NONE;
    return caterva_open(path, &options, &held, NULL);
}

static caterva_status obey(const order *o)
{
    uint8_t items[N];
    caterva_status status;
    switch (o->what) {
    case OPEN_READ: return open_held(o->path, CATERVA_MODE_READ);
    case OPEN_WRITE: return open_held(o->path, CATERVA_MODE_WRITE);
    case COMMIT:
        memset(items, o->value, N);
        status = caterva_write(held, origin, shape, items, N, NULL);
        return status == CATERVA_OK ? caterva_commit(held, NULL) : status;
    case READ:
        status = caterva_read(held, origin, shape, items, N, NULL);
        for (int i = 0; i < N && status == CATERVA_OK; i++)
            if (items[i] != o->value) status = CATERVA_ECORRUPT;
        return status;
    default: break;
    }
    status = caterva_close(held, NULL);
    held = NULL;
    return status;
}

typedef struct holder {
    int to, from; /* pipes; -1: in this process */
    pid_t process;
} holder;

static _Noreturn void serve(int from, int to)
{
    order o;
    while (read(from, &o, sizeof o) == (ssize_t)sizeof o && o.what != LEAVE) {
        caterva_status status = obey(&o);
        if (write(to, &status, sizeof status) != (ssize_t)sizeof status) break;
    }
    _exit(0);
}

/* Called before this process has threads. */
static holder begin_holder(void)
{
    int down[2], up[2];
    CHECK(pipe(down) == 0 && pipe(up) == 0, "pipe");
    pid_t process = fork();
    CHECK(process >= 0, "fork");
    if (process == 0) {
        close(down[1]); /* so that the end of this process is detected */
        close(up[0]);
        serve(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    return (holder){down[1], up[0], process};
}

static caterva_status tell(const holder *h, step what, const char *path, int value)
{
    order o = {.what = what, .value = value};
    caterva_status status = CATERVA_OK;
    snprintf(o.path, sizeof o.path, "%s", path);
    if (h->to < 0) return obey(&o);
    CHECK(write(h->to, &o, sizeof o) == (ssize_t)sizeof o, "the other process is gone");
    if (what == LEAVE) return status;
    CHECK(read(h->from, &status, sizeof status) == (ssize_t)sizeof status,
          "the other process died");
    return status;
}

static void end_holder(const holder *h)
{
    int status = 0;
    tell(h, LEAVE, "", 0);
    CHECK(waitpid(h->process, &status, 0) == h->process && status == 0, "it ended with %d",
          status);
    close(h->to);
    close(h->from);
}

/* ---- The verbs that replace ------------------------------------------------ */

typedef enum verb {
    CREATE,
    FROM_BUFFER,
    COPY,
    COPY_VIEW,
    COPY_CONVERTED,
    REPAIR,
    COMPACT,
    UNLINK,
    N_VERBS
} verb;

static const char *const verb_names[] = {"create",
                                         "create_from_buffer",
                                         "copy",
                                         "copy_view",
                                         "copy, converted",
                                         "repair",
                                         "compact",
                                         "unlink"};

static caterva_status create_empty(caterva_layout layout, caterva_error *err)
{
    caterva_array *array = NULL;
    caterva_create_options options = drawn(layout);
    uint8_t two = 2;
    options.fill = CATERVA_FILL_VALUE;
    options.fill_value = &two;
    caterva_status status = caterva_create(target, &options, &array, err);
    return status == CATERVA_OK ? caterva_close(array, err) : status;
}

static caterva_status create_filled(caterva_layout layout, caterva_error *err)
{
    caterva_array *array = NULL;
    uint8_t items[N];
    caterva_create_options options = drawn(layout);
    memset(items, 2, N);
    caterva_status status =
        caterva_create_from_memory(target, &options, items, N, &array, err);
    return status == CATERVA_OK ? caterva_close(array, err) : status;
}

static caterva_status copy(verb v, caterva_layout layout, caterva_error *err)
{
    caterva_array *source = NULL;
    caterva_view *view = NULL;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    create.overwrite = 1;
    create.layout = layout;
    create.durability = CATERVA_DURABILITY_NONE;
    options.create = &create;
    if (v == COPY_CONVERTED) {
        options.convert_to = "|i1";
        options.casting = CATERVA_CASTING_UNSAFE;
    }
    CHECK_OK(caterva_open(other, NULL, &source, err), *err);
    CHECK_OK(caterva_view_of(source, &view, err), *err);
    caterva_status status = v == COPY_VIEW
                                ? caterva_view_copy(view, target, &options, NULL, err)
                                : caterva_copy(source, target, &options, NULL, err);
    caterva_view_free(view);
    caterva_discard(source);
    return status;
}

/* Damages `other` so that repair writes it anew, in that layout. */
static caterva_status repair(caterva_layout layout, caterva_error *err)
{
    char damaged[PATH_SIZE];
    snprintf(damaged, sizeof damaged, "%s/damaged", folder);
    save(damaged, layout, 2);
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    options.output = target;
    options.durability = CATERVA_DURABILITY_NONE;
    options.overwrite = 1;
    char frame[PATH_SIZE + 20];
    snprintf(frame, sizeof frame,
             layout == CATERVA_LAYOUT_SPARSE ? "%s/chunks.b2frame" : "%s", damaged);
    FILE *f = fopen(frame, "r+b");
    CHECK(f && fseek(f, 24, SEEK_SET) == 0 && fputc(0xee, f) == 0xee && fclose(f) == 0,
          "cannot damage %s", frame);
    caterva_status status = caterva_repair(damaged, &options, &result, err);
    scratch_remove(damaged);
    return status;
}

static caterva_status run(verb v, caterva_layout layout, caterva_error *err)
{
    switch (v) {
    case CREATE: return create_empty(layout, err);
    case FROM_BUFFER: return create_filled(layout, err);
    case REPAIR: return repair(layout, err);
    case COMPACT: return caterva_compact(target, NULL, err);
    case UNLINK: return caterva_delete(target, NULL, err);
    default: return copy(v, layout, err);
    }
}

/* ---- The matrix ------------------------------------------------------------ */

typedef struct cell {
    verb v;
    caterva_layout old, fresh;
    bool writes; /* the holder */
    bool remote;
} cell;

static void fail_cell(const cell *c, const char *what, caterva_status status,
                      const char *message)
{
    CHECK(false, "%s: %s over %s beside a %s in %s process: %s (%s)", what, verb_names[c->v],
          c->old == CATERVA_LAYOUT_SPARSE ? "directory" : "file",
          c->writes ? "writer" : "reader", c->remote ? "another" : "this",
          caterva_status_name(status), message);
}

static void expect(const cell *c, const char *what, caterva_status got, caterva_status wanted,
                   const caterva_error *err)
{
    if (got != wanted) fail_cell(c, what, got, err && got != CATERVA_OK ? err->message : "");
}

/* What is at the path after the call succeeded: nothing, what was there, or twos. */
static void expect_after(const cell *c, int before, const holder *h)
{
    struct stat st;
    int wanted = c->v == COMPACT ? before : 2;
    if (c->v == UNLINK) {
        CHECK(lstat(target, &st) != 0, "unlink left %s", target);
        return;
    }
    bool is_directory = stat(target, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_directory != (c->fresh == CATERVA_LAYOUT_SPARSE))
        fail_cell(c, "kind", CATERVA_OK, "");
    expect(c, "opening the new one", tell(h, OPEN_READ, target, 0), CATERVA_OK, NULL);
    expect(c, "reading the new one", tell(h, READ, "", wanted), CATERVA_OK, NULL);
    expect(c, "closing the new one", tell(h, CLOSE, "", 0), CATERVA_OK, NULL);
}

static void run_cell(const cell *c, const holder *h)
{
    caterva_error err;
    const holder here = {-1, -1, 0};
    scratch_remove(target);
    save(target, c->old, 1);
    expect(c, "opening", tell(h, c->writes ? OPEN_WRITE : OPEN_READ, target, 0), CATERVA_OK,
           NULL);
    bool refused = c->writes || c->old == CATERVA_LAYOUT_SPARSE;
    expect(c, "first", run(c->v, c->fresh, &err), refused ? CATERVA_EBUSY : CATERVA_OK, &err);
    if (c->writes) expect(c, "the commit", tell(h, COMMIT, "", 3), CATERVA_OK, NULL);
    int now = c->writes ? 3 : 1;
    expect(c, "the holder's read", tell(h, READ, "", now), CATERVA_OK, NULL);
    expect(c, "the holder's close", tell(h, CLOSE, "", 0), CATERVA_OK, NULL);
    if (refused) {
        expect(c, "opening again", tell(&here, OPEN_READ, target, 0), CATERVA_OK, NULL);
        expect(c, "what is kept", tell(&here, READ, "", now), CATERVA_OK, NULL);
        expect(c, "closing again", tell(&here, CLOSE, "", 0), CATERVA_OK, NULL);
        expect(c, "second", run(c->v, c->fresh, &err), CATERVA_OK, &err);
    }
    expect_after(c, now, h);
    int left = count_entries(folder);
    CHECK(left == (c->v == UNLINK ? 1 : 2), "%d entries after %s", left, verb_names[c->v]);
}

static void run_matrix(const holder *remote)
{
    static const caterva_layout layouts[] = {CATERVA_LAYOUT_CONTIGUOUS,
                                             CATERVA_LAYOUT_SPARSE};
    const holder here = {-1, -1, 0};
    for (int i = 0; i < N_VERBS * 16; i++) {
        cell c = {.v = (verb)(i / 16),
                  .old = layouts[i & 1],
                  .fresh = layouts[i >> 1 & 1],
                  .writes = (i & 4) != 0,
                  .remote = (i & 8) != 0};
        bool keeps_kind = c.v == COMPACT || c.v == UNLINK;
        if (!keeps_kind || c.old == c.fresh) run_cell(&c, c.remote ? remote : &here);
    }
}

/* ---- Who comes between create and publish ---------------------------------- */

static void who_comes_late(const holder *h, caterva_layout old, caterva_layout fresh,
                           bool writes)
{
    caterva_error err;
    caterva_array *array = NULL;
    uint8_t items[N];
    caterva_create_options options = drawn(fresh);
    scratch_remove(target);
    save(target, old, 1);
    memset(items, 2, N);
    CHECK_OK(caterva_create(target, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
    caterva_status status = tell(h, writes ? OPEN_WRITE : OPEN_READ, target, 0);
    CHECK(status == CATERVA_OK, "the old one opens with %s", caterva_status_name(status));
    bool refused = writes || old == CATERVA_LAYOUT_SPARSE;
    status = caterva_commit(array, &err);
    CHECK(status == (refused ? CATERVA_EBUSY : CATERVA_OK), "the first commit says %s",
          caterva_status_name(status));
    status = tell(h, READ, "", 1);
    CHECK(status == CATERVA_OK, "the old one reads with %s", caterva_status_name(status));
    if (writes) CHECK(tell(h, COMMIT, "", 3) == CATERVA_OK, "the writer cannot commit");
    CHECK(tell(h, CLOSE, "", 0) == CATERVA_OK, "the holder cannot close");
    CHECK_OK(caterva_commit(array, &err), err); /* nothing is lost by waiting */
    CHECK_OK(caterva_close(array, &err), err);
    CHECK(tell(h, OPEN_READ, target, 0) == CATERVA_OK, "the new one does not open");
    CHECK(tell(h, READ, "", 2) == CATERVA_OK, "the new one has other items");
    tell(h, CLOSE, "", 0);
    CHECK(count_entries(folder) == 2, "%d entries", count_entries(folder));
}

/* ---- Names that others take away ------------------------------------------- */

typedef enum theft { MOVED, DELETED, REPLACED, MOVED_ELSEWHERE, N_THEFTS } theft;

static void steal(theft how, caterva_layout layout, const char *away)
{
    char beside[PATH_SIZE];
    if (how == REPLACED) {
        snprintf(beside, sizeof beside, "%s/beside", folder);
        save(beside, layout, 4);
        if (layout == CATERVA_LAYOUT_SPARSE) CHECK(rename(target, away) == 0, "rename");
        CHECK(rename(beside, target) == 0, "rename");
    } else if (how == DELETED) {
        scratch_remove(target);
    } else {
        CHECK(rename(target, away) == 0, "rename");
    }
}

/* A commit or compaction of an array that has lost its name does not return OK. If the file
 * is moved back, nothing is lost. */
static void a_lost_name_is_reported(theft how, caterva_layout layout,
                                    caterva_durability durability)
{
    char away[PATH_SIZE + 16], elsewhere[PATH_SIZE];
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    uint8_t items[N];
    memset(items, 3, N);
    scratch_remove(target);
    save(target, layout, 1);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    snprintf(away, sizeof away, "%s/%s", how == MOVED_ELSEWHERE ? elsewhere : folder,
             how == MOVED_ELSEWHERE ? "target" : "away");
    CHECK(mkdir(elsewhere, 0777) == 0, "mkdir");
    options.mode = CATERVA_MODE_WRITE;
    options.durability = durability;
    CHECK_OK(caterva_open(target, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
    steal(how, layout, away);
    caterva_status status = caterva_commit(array, &err);
    CHECK(status == CATERVA_EIO, "theft %d of layout %d: the commit says %s", (int)how,
          (int)layout, caterva_status_name(status));
    CHECK(strstr(err.message, "target") && strstr(err.message, "others"), "%s", err.message);
    if (how == MOVED || how == MOVED_ELSEWHERE) {
        CHECK(rename(away, target) == 0, "rename");
        CHECK_OK(caterva_commit(array, &err), err);
        CHECK_OK(caterva_close(array, &err), err);
        const holder here = {-1, -1, 0};
        CHECK(tell(&here, OPEN_READ, target, 0) == CATERVA_OK, "it does not open");
        CHECK(tell(&here, READ, "", 3) == CATERVA_OK, "the commit is lost");
        tell(&here, CLOSE, "", 0);
    } else {
        CHECK(caterva_close(array, &err) == CATERVA_EIO, "close says OK of a lost commit");
    }
    scratch_remove(away);
    scratch_remove(elsewhere);
    scratch_remove(target);
    CHECK(count_entries(folder) == 1, "%d entries", count_entries(folder));
}

int main(void)
{
    holder remote = begin_holder();
    scratch_path(folder, "arrays");
    CHECK(mkdir(folder, 0777) == 0, "mkdir");
    snprintf(target, sizeof target, "%s/target", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    save(other, CATERVA_LAYOUT_CONTIGUOUS, 2);
    run_matrix(&remote);
    const holder here = {-1, -1, 0};
    for (int i = 0; i < 16; i++)
        who_comes_late(i & 8 ? &remote : &here,
                       i & 1 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS,
                       i & 2 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS, i & 4);
    const caterva_durability durabilities[] = {
        CATERVA_DURABILITY_FULL, CATERVA_DURABILITY_ORDERED, CATERVA_DURABILITY_NONE};
    for (int i = 0; i < N_THEFTS * 6; i++)
        a_lost_name_is_reported((theft)(i / 6),
                                i & 1 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS,
                                durabilities[i / 2 % 3]);
    end_holder(&remote);
    return 0;
}
