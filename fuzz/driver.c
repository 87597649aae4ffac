/* Runs a fuzz target over files without libFuzzer: every file named, and every file of every
 * directory named. The last printed input is the one that crashed or caused a sanitizer's
 * report.
 *
 * usage: replay_TARGET [-q] PATH... */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int quiet;
static long n_replayed;

static void replay_file(const char *path, size_t size)
{
    if (!quiet) fprintf(stderr, "%s\n", path);
    FILE *file = fopen(path, "rb");
    FUZZ_NEED(file, "%s cannot be read", path);
    uint8_t *bytes = malloc(size ? size : 1); /* exactly the size: overruns are detected */
    FUZZ_NEED(bytes, "no memory");
    size_t got = fread(bytes, 1, size, file);
    FUZZ_NEED(got == size, "%s: %zu bytes of %zu", path, got, size);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    n_replayed++;
}

static void replay(const char *path)
{
    struct stat status;
    FUZZ_NEED(stat(path, &status) == 0, "%s does not exist", path);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path, (size_t)status.st_size);
        return;
    }
    DIR *directory = opendir(path);
    FUZZ_NEED(directory, "%s cannot be listed", path);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char inside[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        replay(inside);
    }
    closedir(directory);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-q") == 0)
            quiet = 1;
        else
            replay(argv[i]);
    }
    printf("%ld inputs replayed\n", n_replayed);
    FUZZ_NEED(n_replayed > 0, "there was nothing to replay");
    return 0;
}
