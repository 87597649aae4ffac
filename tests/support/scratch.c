/* Test support: a temporary directory, and loading and saving whole files. Only the process that
 * made the directory removes it, never a forked child. */
#include "scratch.h"

#include "check.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch_dir[SCRATCH_PATH - 128];
static pid_t scratch_owner;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void scratch_remove(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

static void remove_scratch_dir(void)
{
    if (getpid() == scratch_owner) scratch_remove(scratch_dir);
}

static void make_scratch_dir(void)
{
#ifdef _WIN32
    const char *tmp = getenv("TEMP");
#else
    const char *tmp = getenv("TMPDIR");
#endif
    snprintf(scratch_dir, sizeof(scratch_dir), "%s/caterva-test-XXXXXX", tmp ? tmp : "/tmp");
    for (char *at = strchr(scratch_dir, '\\'); at; at = strchr(at, '\\')) *at = '/';
    CHECK(mkdtemp(scratch_dir) != NULL, "cannot make %s", scratch_dir);
    scratch_owner = getpid();
    atexit(remove_scratch_dir);
}

const char *scratch_path(char path[SCRATCH_PATH], const char *name)
{
    if (scratch_dir[0] == '\0') make_scratch_dir();
    int n = snprintf(path, SCRATCH_PATH, "%s/%s", scratch_dir, name);
    CHECK(n > 0 && n < SCRATCH_PATH, "path too long: %s", name);
    return path;
}

uint8_t *scratch_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    long end = ftell(file);
    rewind(file);
    uint8_t *bytes = check_alloc(end > 0 ? (size_t)end : 0);
    *size = fread(bytes, 1, end > 0 ? (size_t)end : 0, file);
    CHECK(end >= 0 && *size == (size_t)end, "cannot read %s", path);
    fclose(file);
    return bytes;
}

void scratch_save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL, "cannot write %s", path);
    CHECK(fwrite(bytes, 1, size, file) == size, "short write to %s", path);
    CHECK(fclose(file) == 0, "cannot close %s", path);
}
