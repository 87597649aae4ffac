/* Room: cli/commands. `caterva verify` of a tree: the library checks each member, and this file
 * prints each as a line or a JSON object. */
#include "commands/verify_tree.h"

#include "formats/item.h"
#include "sources/damage.h"
#include "sources/trees.h"
#include "terminal/progress.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct verification {
    const cli_args *args;
    const tree_part *part;
    json j;
    char *url;       /* URL of the current member; NULL: nothing reported yet */
    int ndim;        /* number of axes of the current member */
    cli_exit unread; /* exit status of a member that cannot be opened */
    progress bar;
    cli_exit worst;
} verification;

static char *url_of(const verification *v, const char *key)
{
    size_t size = strlen(v->part->path) + strlen(key) + 3;
    char *url = cli_alloc(size);
    if (url) snprintf(url, size, "%s::%s", v->part->path, key);
    return url;
}

/* Returns the number of axes of a damaged array, or 0 if it cannot be opened. */
static int axes_of(const verification *v, const char *key)
{
    caterva_array *array;
    const caterva_info *info;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.cache_bytes = -1;
    int ndim = 0;
    if (caterva_tree_open_array(v->part->tree, key, &options, &array, NULL) != CATERVA_OK)
        return 0;
    if (caterva_info_get(array, &info, NULL) == CATERVA_OK) {
        ndim = info->ndim;
        caterva_info_release(info);
    }
    caterva_discard(array);
    return ndim;
}

/* ---- Members -------------------------------------------------------------- */

static void begin_member(verification *v, const char *key)
{
    if (v->url) return;
    v->url = url_of(v, key);
    if (!v->args->json) return;
    v->j = (json){.stream = stdout};
    json_begin_object(&v->j, NULL);
    json_put_int(&v->j, "schema", 1);
    json_put_place(&v->j, "file", v->url);
    json_begin_array(&v->j, "damages");
}

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    verification *v = context;
    bool is_first = !v->url;
    begin_member(v, key);
    if (is_first) v->unread = CLI_CORRUPT;
    if (damage->code == CATERVA_EUNSUPPORTED) v->unread = CLI_UNSUPPORTED;
    if (is_first) v->ndim = damage->chunk >= 0 ? axes_of(v, key) : 0;
    if (!v->url || (v->args->short_lines && !v->args->json)) return;
    if (v->args->json)
        damage_put(&v->j, v->ndim, damage);
    else
        damage_print(stdout, v->url, v->ndim, damage);
}

/* Whether a member is an array that cannot be opened. */
static bool is_unread(const caterva_tree_member *m)
{
    bool is_array =
        strcmp(m->kind_name, "array") == 0 || strcmp(m->kind_name, "damaged") == 0;
    return is_array && m->damages > 0 && m->result->checked_chunks == 0;
}

static void print_chunks(const caterva_tree_member *m, char text[64])
{
    long long checked = (long long)m->result->checked_chunks;
    if (checked == 0)
        snprintf(text, 64, "-");
    else if (m->damages > 0)
        snprintf(text, 64, "%lld of %lld chunks", (long long)m->result->damaged_chunks,
                 checked);
    else
        snprintf(text, 64, "%lld %s", checked, checked == 1 ? "chunk" : "chunks");
}

static void print_short(const verification *v, const caterva_tree_member *m)
{
    char chunks[64];
    print_chunks(m, chunks);
    printf("%-9s %-24s %-9s %s\n",
           is_unread(m)     ? "unread"
           : m->damages > 0 ? "damaged"
           : m->skipped     ? "skipped"
                            : "ok",
           chunks, m->sealed ? "sealed" : "unsealed", cli_show_place(v->url).text);
}

static void print_long(const verification *v, const caterva_tree_member *m)
{
    char chunks[64];
    print_chunks(m, chunks);
    const char *word = m->damages > 0 ? "damaged" : m->skipped ? "not checked" : "ok";
    printf("%s: %s, %s, %s%s", cli_show_place(v->url).text, word, m->kind_name,
           chunks[0] == '-' ? "" : chunks, chunks[0] == '-' ? "" : ", ");
    printf("%s\n", m->sealed ? "sealed" : "unsealed");
}

static void put_member(verification *v, const caterva_tree_member *m)
{
    json_end_array(&v->j);
    json_put_text(&v->j, "kind_name", m->kind_name);
    json_put_bool(&v->j, "ok", m->damages == 0);
    if (m->skipped) json_put_bool(&v->j, "skipped", true);
    json_put_int(&v->j, "checked_chunks", m->result->checked_chunks);
    json_put_int(&v->j, "damaged_chunks", m->result->damaged_chunks);
    json_put_bool(&v->j, "sealed", m->sealed);
    json_put_int(&v->j, "unverified_chunks", m->result->unverified_chunks);
    json_end_object(&v->j);
    putchar('\n');
}

static int on_member(void *context, const caterva_tree_member *m)
{
    verification *v = context;
    begin_member(v, m->key);
    cli_exit code = is_unread(m) ? v->unread : m->damages > 0 ? CLI_NO : CLI_OK;
    if (!v->url) code = CLI_IO;
    if (code > v->worst) v->worst = code;
    if (v->url && v->args->json)
        put_member(v, m);
    else if (v->url && v->args->short_lines)
        print_short(v, m);
    else if (v->url)
        print_long(v, m);
    free(v->url);
    v->url = NULL;
    return cli_interrupted();
}

static void on_case_collision(void *context, const char *key, const char *other)
{
    const verification *v = context;
    cli_warn("%s: %s and %s differ only in case: a directory cannot have both where case is "
             "ignored, as on Windows and macOS",
             cli_show_place(v->part->path).text, other, key);
}

/* ---- The whole tree --------------------------------------------------------------------- */

static cli_exit verify(verification *v)
{
    caterva_error err;
    caterva_tree_verify_options o = CATERVA_TREE_VERIFY_INIT;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    o.quick = v->args->quick;
    o.threads = (int)v->args->threads;
    o.on_damage = on_damage;
    o.on_member = on_member;
    o.on_case_collision = on_case_collision;
    o.context = v;
    o.progress = progress_of(&v->bar);
    progress_start(&v->bar, v->args, 0);
    caterva_status status =
        caterva_tree_verify(v->part->tree, v->part->group, &o, &result, &err);
    progress_end(&v->bar);
    free(v->url);
    if (status != CATERVA_OK) return cli_fail_array(v->part->path, &err);
    return v->worst;
}

cli_exit verify_tree_run(const cli_args *args, const char *text)
{
    tree_part part;
    cli_exit code = tree_part_open(args, text, &part);
    verification v = {.args = args, .part = &part};
    if (code == CLI_OK)
        code = verify(&v);
    else if (args->short_lines && !args->json)
        printf("%-9s %-24s %-9s %s\n", "unread", "-", "-", cli_show_place(text).text);
    tree_part_close(&part);
    return code;
}
