/* Room: cli/commands. `caterva verify`: checks every byte. The library finds the damage; this file
 * prints each damaged place as a line or a JSON object. The library calls back on any of its
 * threads, but never concurrently. */
#include "commands/verify_tree.h"
#include "sources/damage.h"
#include "sources/described.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct verification {
    const char *path;
    const caterva_info *info;
    json *j;        /* NULL: text */
    int64_t behind; /* bytes of the file after the frame */
    bool short_line;
    progress bar;
} verification;

static void on_damage(void *context, const caterva_damage *damage)
{
    const verification *v = context;
    if (v->short_line) return;
    if (v->j)
        damage_put(v->j, v->info->ndim, damage);
    else
        damage_print(stdout, v->path, v->info->ndim, damage);
}

/* Prints whether the array is sealed, and the number of chunks without checksums. */
static void print_seal(const verification *v, const caterva_verify_result *result)
{
    printf(", %s", v->info->sealed ? "sealed" : "unsealed");
    if (v->info->sealed && result->unverified_chunks > 0)
        printf(" except %lld %s", (long long)result->unverified_chunks,
               result->unverified_chunks == 1 ? "chunk" : "chunks");
    putchar('\n');
}

static void print_line(const char *word, const char *chunks, const char *seal,
                       const char *path)
{
    printf("%-9s %-24s %-9s %s\n", word, chunks, seal, cli_show_place(path).text);
}

static void print_short(const verification *v, const caterva_verify_result *result)
{
    char chunks[64];
    if (result->damages > 0)
        snprintf(chunks, sizeof chunks, "%lld of %lld chunks",
                 (long long)result->damaged_chunks, (long long)result->checked_chunks);
    else
        snprintf(chunks, sizeof chunks, "%lld %s", (long long)result->checked_chunks,
                 result->checked_chunks == 1 ? "chunk" : "chunks");
    print_line(result->damages > 0 ? "damaged" : "ok", chunks,
               v->info->sealed ? "sealed" : "unsealed", v->path);
}

static void print_verdict(const verification *v, const caterva_verify_result *result,
                          const caterva_space *space, bool quick)
{
    if (v->short_line) {
        print_short(v, result);
    } else if (v->j) {
        json_end_array(v->j);
        json_put_bool(v->j, "ok", result->damages == 0);
        json_put_int(v->j, "checked_chunks", result->checked_chunks);
        json_put_int(v->j, "damaged_chunks", result->damaged_chunks);
        json_put_bool(v->j, "sealed", v->info->sealed);
        json_put_int(v->j, "unverified_chunks", result->unverified_chunks);
        json_put_int(v->j, "bytes_behind", v->behind);
        json_end_object(v->j);
        putchar('\n');
    } else if (result->damages == 0) {
        printf("%s: ok, %lld %s, %lld stored, %s", cli_show_place(v->path).text,
               (long long)result->checked_chunks,
               result->checked_chunks == 1 ? "chunk" : "chunks",
               (long long)space->stored_chunks,
               quick ? "structure only" : "every block decodes");
        print_seal(v, result);
    } else {
        printf("%s: damaged, %lld of %lld chunks\n", cli_show_place(v->path).text,
               (long long)result->damaged_chunks, (long long)result->checked_chunks);
    }
}

/* Returns the number of bytes after the frame in the file: another frame, or anything else. */
static int64_t bytes_behind(const verification *v)
{
    struct stat st;
    bool file = v->info->layout == CATERVA_LAYOUT_CONTIGUOUS && stat(v->path, &st) == 0;
    if (!file || !S_ISREG(st.st_mode) || st.st_size < v->info->frame_bytes) return 0;
    return st.st_size - v->info->frame_bytes;
}

static cli_exit verify(const cli_args *args, caterva_array *array, verification *v)
{
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    options.quick = args->quick;
    options.on_damage = on_damage;
    options.context = v;
    options.progress = progress_of(&v->bar);
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_error err;
    progress_start(&v->bar, args, 0);
    caterva_status status = caterva_verify(array, &options, &result, &err);
    progress_end(&v->bar);
    if (status != CATERVA_OK) return cli_fail_array(v->path, &err);
    if (result.damages == 0 && caterva_measure(array, &space, &err) != CATERVA_OK)
        return cli_fail_array(v->path, &err);
    v->behind = bytes_behind(v);
    print_verdict(v, &result, &space, args->quick);
    if (!v->j && v->behind > 0)
        printf("%s: %lld bytes after the frame, which are not part of the array\n",
               cli_show_place(v->path).text, (long long)v->behind);
    return result.damages ? CLI_NO : CLI_OK;
}

static cli_exit verify_file(const cli_args *args, const char *path)
{
    caterva_array *array;
    verification v = {.path = path, .short_line = args->short_lines && !args->json};
    cli_exit opened = cli_open_array(args, path, CATERVA_MODE_READ, &array);
    if (opened != CLI_OK && v.short_line) print_line("unread", "-", "-", path);
    if (opened != CLI_OK) return opened;
    v.info = info_of(array);
    json j = {.stream = stdout};
    if (args->json) {
        v.j = &j;
        json_begin_object(&j, NULL);
        json_put_int(&j, "schema", 1);
        json_put_place(&j, "file", v.path);
        json_begin_array(&j, "damages");
    }
    cli_exit code = verify(args, array, &v);
    caterva_discard(array);
    return code;
}

static cli_exit verify_any(const cli_args *args, const char *path)
{
    return tree_part_is(args, path) ? verify_tree_run(args, path) : verify_file(args, path);
}

static cli_exit run_verify(const cli_args *args) { return cli_each_file(args, verify_any); }

const cli_command cli_command_verify = {
    .name = "verify",
    .synopsis = "FILE...",
    .summary = "check structure, checksums and every block; name each damage",
    .details =
        "Checks the structure of each FILE, its checksums, and that every block decodes, "
        "and\n"
        "names each damaged place. Chunks without checksums are counted (see 'caterva\n"
        "seal'). Bytes after the array are counted too, but are not damage. The exit status\n"
        "is 1 if there is damage, 4 if FILE cannot be opened at all, 5 if it uses features\n"
        "that this version does not know. For several files, or the members of a tree, all\n"
        "are checked and the exit status is the worst. For a tree (.b2z, .b2d), every "
        "member\n"
        "is checked; in an archive also by its checksum. Deflated or encrypted members are\n"
        "named but not checked.",
    .options = CLI_OPT_JSON | CLI_OPT_SHORT | CLI_OPT_QUICK | CLI_OPT_THREADS |
               CLI_OPT_NO_PROGRESS | CLI_OPT_REMOTE,
    .min_args = 1,
    .max_args = CLI_ANY_NUMBER,
    .run = run_verify,
};
