/* A writer's commit goes to the array that it opened, by any name, even if directories above
 * it have been renamed since; and what others put in its place is not replaced. */
#include "small_array.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[SCRATCH_PATH], target[PATH_SIZE];

static caterva_array *open_to_write(const char *path)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    uint8_t items[N];
    memset(items, 3, N);
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
    return array;
}

static void expect_threes(const char *path)
{
    caterva_error err;
    caterva_array *array = NULL;
    uint8_t items[N];
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, origin, shape, items, N, &err), err);
    for (int i = 0; i < N; i++) CHECK(items[i] == 3, "%s: item %d is %d", path, i, items[i]);
    CHECK_OK(caterva_close(array, &err), err);
}

/* By a relative path, with chdir and a renamed directory above; also for creation. */
static void names_hold_in_moving_directories(caterva_layout layout)
{
    caterva_error err;
    char a[PATH_SIZE], b[PATH_SIZE], path[PATH_SIZE + 16];
    snprintf(a, sizeof a, "%s/a", folder);
    snprintf(b, sizeof b, "%s/b", folder);
    for (int created = 0; created < 2; created++) {
        CHECK(mkdir(a, 0777) == 0 && chdir(a) == 0, "mkdir");
        save("x", layout, 1);
        caterva_array *array = NULL;
        uint8_t items[N];
        memset(items, 3, N);
        caterva_create_options options = drawn(layout);
        if (created)
            CHECK_OK(caterva_create_from_memory("x", &options, items, N, &array, &err), err);
        else
            array = open_to_write("x");
        CHECK(chdir("/") == 0 && rename(a, b) == 0, "rename");
        CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        CHECK_OK(caterva_close(array, &err), err);
        snprintf(path, sizeof path, "%s/x", b);
        expect_threes(path);
        scratch_remove(b);
    }
}

/* The target of the link; of two hard links, the one that was opened. */
static void names_behind_links(void)
{
    caterva_error err;
    char link_name[PATH_SIZE], real[PATH_SIZE];
    snprintf(link_name, sizeof link_name, "%s/link", folder);
    snprintf(real, sizeof real, "%s/real", folder);
    save(real, CATERVA_LAYOUT_CONTIGUOUS, 1);
    CHECK(symlink("real", link_name) == 0, "symlink");
    caterva_array *array = open_to_write(link_name);
    CHECK(unlink(link_name) == 0, "unlink");
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    expect_threes(real);

    CHECK(link(real, link_name) == 0, "link");
    array = open_to_write(link_name);
    CHECK(unlink(link_name) == 0, "unlink");
    CHECK(caterva_commit(array, &err) == CATERVA_EIO, "a name that is gone");
    caterva_discard(array);
    expect_threes(real);
    scratch_remove(real);
}

/* What others put in place of a directory's frame is not replaced. */
static void a_foreign_frame_is_kept(void)
{
    caterva_error err;
    char beside[PATH_SIZE], from[PATH_SIZE + 20], to[PATH_SIZE + 20];
    snprintf(beside, sizeof beside, "%s/beside", folder);
    snprintf(from, sizeof from, "%s/chunks.b2frame", beside);
    snprintf(to, sizeof to, "%s/chunks.b2frame", target);
    save(target, CATERVA_LAYOUT_SPARSE, 1);
    save(beside, CATERVA_LAYOUT_SPARSE, 4);
    caterva_array *array = open_to_write(target);
    CHECK(rename(from, to) == 0, "rename");
    CHECK(caterva_commit(array, &err) == CATERVA_EIO, "a foreign commit is undone");
    caterva_discard(array);
    scratch_remove(beside);
    scratch_remove(target);
}

int main(void)
{
    scratch_path(folder, "arrays");
    CHECK(mkdir(folder, 0777) == 0, "mkdir");
    snprintf(target, sizeof target, "%s/target", folder);
    names_hold_in_moving_directories(CATERVA_LAYOUT_CONTIGUOUS);
    names_hold_in_moving_directories(CATERVA_LAYOUT_SPARSE);
    names_behind_links();
    a_foreign_frame_is_kept();
    return 0;
}
