/* Room: cli/commands. `caterva compact`: returns dead space to the file system. The library makes
 * the compact copy and installs it; this file counts and reports bytes. */
#include "formats/json.h"
#include "sources/described.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

/* Adds up the sizes of a directory's files. */
static cli_exit count_directory(const char *path, int64_t *bytes)
{
    DIR *folder = opendir(path);
    if (!folder) return cli_fail_sys("cannot read %s", path);
    struct dirent *entry;
    cli_exit code = CLI_OK;
    while (code == CLI_OK && (entry = readdir(folder))) {
        char name[PATH_MAX];
        struct stat st;
        if (snprintf(name, sizeof name, "%s/%s", path, entry->d_name) >= (int)sizeof name)
            errno = ENAMETOOLONG;
        else if (stat(name, &st) == 0) {
            *bytes += S_ISREG(st.st_mode) ? st.st_size : 0;
            continue;
        }
        code = cli_fail_sys("cannot stat %s/%s", path, entry->d_name);
    }
    closedir(folder);
    return code;
}

/* Gets the size of an array in a tree from its header, because the array has no path for stat. */
static cli_exit count_frame(const char *path, int64_t *bytes)
{
    caterva_array *array;
    cli_args args = {.threads = 1};
    CLI_TRY(cli_open_array(&args, path, CATERVA_MODE_READ, &array));
    *bytes = info_of(array)->frame_bytes;
    caterva_discard(array);
    return CLI_OK;
}

static cli_exit count_bytes(const char *path, int64_t *bytes)
{
    struct stat st;
    *bytes = 0;
    if (tree_part_is_within(path)) return count_frame(path, bytes);
    if (cli_is_url(path)) return CLI_OK; /* the library reports the error */
    if (stat(path, &st) != 0) return cli_fail_sys("cannot stat %s", path);
    if (S_ISDIR(st.st_mode)) return count_directory(path, bytes);
    *bytes = st.st_size;
    return CLI_OK;
}

static void report(const cli_args *args, int64_t before, int64_t after)
{
    const char *path = args->positional[0];
    if (!args->json) {
        printf("%s: %lld -> %lld bytes\n", cli_show_place(path).text, (long long)before,
               (long long)after);
        return;
    }
    json j = {.stream = stdout};
    json_begin_object(&j, NULL);
    json_put_int(&j, "schema", 1);
    json_put_place(&j, "file", path);
    json_put_int(&j, "before_bytes", before);
    json_put_int(&j, "after_bytes", after);
    json_end_object(&j);
    putchar('\n');
}

static cli_exit run_compact(const cli_args *args)
{
    const char *path = args->positional[0];
    int64_t before, after;
    caterva_error err;
    CLI_TRY(count_bytes(path, &before));
    caterva_upkeep_options options = CATERVA_UPKEEP_INIT;
    progress bar;
    options.progress = progress_of(&bar);
    cli_mind_temporaries();
    progress_start(&bar, args, 0);
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_compact(path, &options, &err);
    while (cli_try_again(args, status, &patience));
    progress_end(&bar);
    if (status != CATERVA_OK) return cli_fail_array(path, &err);
    CLI_TRY(count_bytes(path, &after));
    report(args, before, after);
    return CLI_OK;
}

const cli_command cli_command_compact = {
    .name = "compact",
    .synopsis = "FILE",
    .summary = "return dead space to the file system",
    .details =
        "Rewrites FILE without the space of replaced chunks and prints its bytes before and\n"
        "after. Chunks are copied compressed. The complete compact file replaces FILE\n"
        "atomically; a reader that has FILE open keeps reading the old one.",
    .options = CLI_OPT_JSON | CLI_OPT_WAIT,
    .min_args = 1,
    .max_args = 1,
    .run = run_compact,
};
