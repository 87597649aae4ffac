/* Calls without an open array: deleting and converting are stopped at each call of
 * on_progress. Progress never goes back and ends at the total. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_value.h"

#include "support/check.h"
#include "support/patience.h"
#include "support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { N = 40, CHUNKS = 8, FILE_BYTES = 4096 }; /* of each file */
static char folder[SCRATCH_PATH], path[SCRATCH_PATH];

/* Copies the name of the only entry of the folder into `name`; 0 if there is none. */
static int find_entry(char name[SCRATCH_PATH])
{
    int n = 0;
    DIR *dir = opendir(folder);
    CHECK(dir != NULL, "cannot list %s", folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(name, SCRATCH_PATH, "%s", entry->d_name);
        n++;
    }
    closedir(dir);
    CHECK(n <= 1, "%d entries", n);
    return n;
}

static void save(void)
{
    int32_t items[N];
    caterva_error err;
    caterva_array *array;
    caterva_create_options options = CATERVA_CREATE_INIT;
    for (int i = 0; i < N; i++) items[i] = i * i + 1;
    options.ndim = 1;
    options.shape = (int64_t[]){N};
    options.chunk_shape = (int32_t[]){N / CHUNKS};
    options.dtype = "<i4";
    options.layout = CATERVA_LAYOUT_SPARSE;
    CHECK_OK(caterva_create_from_memory(path, &options, items, sizeof items, &array, &err),
             err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* ---- Deleting ----------------------------------------------------------------------- */

static void check_whole(void)
{
    int64_t start = 0, stop = N;
    int32_t items[N];
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, &start, &stop, items, sizeof items, &err), err);
    for (int i = 0; i < N; i++) CHECK(items[i] == i * i + 1, "item %d", i);
    caterva_discard(array);
}

/* The rest has another name, which the message contains, and is deleted by that name. */
static void delete_rest(const caterva_error *err)
{
    char name[SCRATCH_PATH], rest[2 * SCRATCH_PATH];
    caterva_error again;
    caterva_array *array;
    CHECK(caterva_open(path, NULL, &array, &again) == CATERVA_ENOTFOUND, "it is in view");
    CHECK(find_entry(name) == 1, "nothing is left");
    CHECK(strstr(err->message, name) != NULL, "%s: not %s", err->message, name);
    snprintf(rest, sizeof rest, "%s/%s", folder, name);
    CHECK_OK(caterva_delete(rest, NULL, &again), again);
}

static void stop_unlink(void)
{
    char name[SCRATCH_PATH];
    for (int chance = 0;; chance++) {
        patience p = {.left = chance};
        caterva_error err;
        caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
        options.progress = every_step(patience_on_progress, &p);
        save();
        caterva_status status = caterva_delete(path, &options, &err);
        CHECK(p.total == CHUNKS * FILE_BYTES, "%lld bytes", (long long)p.total);
        if (status == CATERVA_OK) {
            CHECK(p.done == p.total && chance >= CHUNKS, "%lld bytes at chance %d",
                  (long long)p.done, chance);
            CHECK(find_entry(name) == 0, "%s is left", name);
            return;
        }
        CHECK(status == CATERVA_ESTOPPED && p.calls == chance + 1, "%s after %d calls",
              caterva_status_name(status), p.calls);
        if (chance == 0)
            check_whole();
        else
            delete_rest(&err);
        if (chance == 0) CHECK_OK(caterva_delete(path, NULL, &err), err);
        CHECK(find_entry(name) == 0, "%s is left at chance %d", name, chance);
    }
}

/* ---- Converting --------------------------------------------------------------------- */

static caterva_status convert(const int32_t *src, double *dst, int64_t n, patience *p)
{
    caterva_error err;
    caterva_buffer from = CATERVA_BUFFER_INIT, to = CATERVA_BUFFER_INIT;
    caterva_convert_options options = CATERVA_CONVERT_INIT;
    from.data = (void *)(uintptr_t)src;
    from.size = (size_t)n * sizeof src[0];
    from.dtype = "=i4";
    to.data = dst;
    to.size = (size_t)n * sizeof dst[0];
    to.dtype = "=f8";
    options.progress = every_step(patience_on_progress, p);
    return caterva_buffer_convert(&from, n, &to, &options, &err);
}

static void stop_convert(void)
{
    int64_t n = 1000003;
    int32_t *src = check_alloc((size_t)n * sizeof src[0]);
    double *dst = check_alloc((size_t)n * sizeof dst[0]);
    for (int64_t i = 0; i < n; i++) src[i] = (int32_t)i - 7;
    int chance = 0;
    for (caterva_status status = CATERVA_ESTOPPED; status != CATERVA_OK; chance++) {
        patience p = {.left = chance};
        status = convert(src, dst, n, &p);
        CHECK(p.total == n * 8, "%lld bytes", (long long)p.total);
        if (status == CATERVA_OK)
            CHECK(p.done == n * 8, "%lld bytes", (long long)p.done);
        else
            CHECK(status == CATERVA_ESTOPPED, "%s", caterva_status_name(status));
    }
    CHECK(chance > 3, "%d chances", chance);
    for (int64_t i = 0; i < n; i++) CHECK(dst[i] == (double)i - 7, "item %lld", (long long)i);
    free(src);
    free(dst);
}

int main(void)
{
    CHECK(mkdir(scratch_path(folder, "folder"), 0777) == 0, "mkdir");
    scratch_path(path, "folder/array");
    stop_unlink();
    stop_convert();
    return 0;
}
