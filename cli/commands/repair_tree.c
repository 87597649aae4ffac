/* Room: cli/commands. `caterva repair` of a tree: the library repairs each member, and this file
 * reports the results. Undamaged members are not listed. */
#include "commands/repair_tree.h"

#include "sources/creation.h"
#include "sources/damage.h"
#include "sources/trees.h"
#include "terminal/output.h"
#include "terminal/progress.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct repairing {
    const cli_args *args;
    const char *path;
    json *j;       /* NULL: text */
    bool is_begun; /* the object of a member is open */
    int ndim;      /* number of axes of the array under repair */
    cli_exit code; /* set if --fill cannot be parsed */
    progress bar;
} repairing;

static bool ends_with(const char *text, const char *ending)
{
    size_t size = strlen(text), length = strlen(ending);
    while (size > 1 && text[size - 1] == '/') size--;
    return size > length && memcmp(text + size - length, ending, length) == 0;
}

/* Whether the directory is a sparse array. Its name can end like the name of a tree. */
static bool is_array_directory(const char *path)
{
    static const char frame[] = "/chunks.b2frame";
    struct stat st;
    size_t size = strlen(path) + sizeof frame;
    char *name = cli_alloc(size);
    if (!name) return false;
    snprintf(name, size, "%s%s", path, frame);
    bool is_it = stat(name, &st) == 0;
    free(name);
    return is_it;
}

bool repair_is_tree(const cli_args *args, const char *path)
{
    struct stat st;
    if (cli_is_url(path) || tree_part_is_within(path) || stat(path, &st) != 0) return false;
    if (S_ISDIR(st.st_mode) && is_array_directory(path)) return false;
    if (ends_with(path, S_ISDIR(st.st_mode) ? ".b2d" : ".b2z")) return true;
    return tree_part_is(args, path);
}

/* ---- Members -------------------------------------------------------------- */

static cli_shown show_member(const repairing *r, const char *key)
{
    cli_shown shown = cli_show_place(r->path), name = cli_show(key);
    if (!key[1]) return shown;
    size_t used = strlen(shown.text);
    snprintf(shown.text + used, sizeof shown.text - used, "::%.4000s", name.text);
    return shown;
}

static void begin_member(repairing *r, const char *key)
{
    if (!r->j || r->is_begun) return;
    r->is_begun = true;
    json_begin_object(r->j, NULL);
    json_put_text(r->j, "key", key);
    json_begin_array(r->j, "damages");
}

static int on_found(void *context, const char *key, const caterva_info *info, void *fill)
{
    (void)key;
    repairing *r = context;
    r->ndim = info->ndim;
    if (r->args->fill) r->code = repair_parse_fill(r->args->fill, info, fill);
    return r->code != CLI_OK;
}

static void on_damage(void *context, const char *key, const caterva_damage *damage)
{
    repairing *r = context;
    begin_member(r, key);
    if (r->j)
        damage_put(r->j, r->ndim, damage);
    else
        damage_print(stdout, show_member(r, key).text, r->ndim, damage);
}

static const char *outcome_word(caterva_outcome outcome)
{
    switch (outcome) {
    case CATERVA_OUTCOME_SOUND: return "sound";
    case CATERVA_OUTCOME_WHOLE: return "whole";
    case CATERVA_OUTCOME_PARTLY: return "partly";
    default: return "lost";
    }
}

static void put_member(repairing *r, const caterva_tree_repaired *m)
{
    const caterva_repair_result *result = m->result;
    begin_member(r, m->key);
    r->is_begun = false;
    json_end_array(r->j);
    json_put_text(r->j, "kind_name", m->kind_name);
    json_put_text(r->j, "outcome", outcome_word(m->outcome));
    json_put_text(r->j, "reason", m->reason);
    json_put_int(r->j, "chunks", result->n_chunks);
    json_put_int(r->j, "lost_chunks", result->lost_chunks);
    if (result->lost_attributes < 0)
        json_put_null(r->j, "lost_attributes");
    else
        json_put_int(r->j, "lost_attributes", result->lost_attributes);
    json_put_int(r->j, "unverified_chunks", result->unverified_chunks);
    json_put_text(r->j, "beside", m->beside);
    json_end_object(r->j);
}

/* Prints the losses of an array. */
static void print_losses(const caterva_repair_result *result)
{
    if (result->found == CATERVA_FOUND_OLDER)
        printf("an older commit, later ones are lost; ");
    if (result->found == CATERVA_FOUND_ORDER)
        printf("chunks were numbered by position, which is a guess; ");
    printf("%lld of %lld chunks lost", (long long)result->lost_chunks,
           (long long)result->n_chunks);
    if (result->lost_attributes < 0) printf(", all attributes lost");
    if (result->lost_attributes > 0)
        printf(", %d %s lost", result->lost_attributes,
               result->lost_attributes == 1 ? "attribute" : "attributes");
}

static void print_member(const repairing *r, const caterva_tree_repaired *m)
{
    if (m->outcome == CATERVA_OUTCOME_SOUND) return;
    printf("%s: ", show_member(r, m->key).text);
    if (m->reason) fputs(m->reason, stdout);
    if (m->reason && m->outcome == CATERVA_OUTCOME_LOST) fputs(": lost", stdout);
    if (m->reason && m->outcome == CATERVA_OUTCOME_PARTLY) fputs(": lost in part", stdout);
    if (!m->reason && m->outcome == CATERVA_OUTCOME_PARTLY) print_losses(m->result);
    if (m->outcome == CATERVA_OUTCOME_WHOLE)
        printf("%snothing is lost", m->reason ? ": " : "repaired, ");
    if (m->beside)
        printf("; it is unchanged, the rest is in %s/%s", cli_show_place(r->path).text,
               cli_show(m->beside).text);
    putchar('\n');
}

static int on_member(void *context, const caterva_tree_repaired *m)
{
    repairing *r = context;
    if (r->j)
        put_member(r, m);
    else
        print_member(r, m);
    return cli_interrupted();
}

/* ---- The whole tree --------------------------------------------------------------------- */

static void print_verdict(const repairing *r, const caterva_tree_repair_result *result)
{
    int64_t damaged = result->whole_members + result->partly_members + result->lost_members;
    cli_shown path = cli_show_place(r->path);
    if (result->settled) printf("%s: an interrupted commit was completed\n", path.text);
    if (damaged == 0 && !r->args->output) {
        printf("%s: undamaged, nothing to repair\n", path.text);
        return;
    }
    printf("%s: %lld members, %lld damaged", path.text, (long long)result->members,
           (long long)damaged);
    if (result->complete)
        printf(", nothing is lost");
    else
        printf(", %lld lost in part, %lld lost", (long long)result->partly_members,
               (long long)result->lost_members);
    if (r->args->output)
        printf("; the repaired tree is %s", cli_show_place(r->args->output).text);
    putchar('\n');
}

static void put_verdict(const repairing *r, const caterva_tree_repair_result *result)
{
    json_end_array(r->j);
    json_put_bool(r->j, "complete", result->complete);
    json_put_bool(r->j, "settled", result->settled);
    json_put_int(r->j, "whole_members", result->whole_members);
    json_put_int(r->j, "partly_members", result->partly_members);
    json_put_int(r->j, "lost_members", result->lost_members);
    json_put_text(r->j, "output", r->args->output);
    json_end_object(r->j);
}

static cli_exit fail_repair(const repairing *r, const caterva_error *err)
{
    if (err->code == CATERVA_EINVAL && !r->args->output)
        return cli_fail(CLI_USAGE,
                        "%s is an archive, which cannot be repaired in place; use -o OUT",
                        cli_show_place(r->path).text);
    return cli_fail_array(r->path, err);
}

static cli_exit repair(void *context)
{
    repairing *r = context;
    const cli_args *args = r->args;
    caterva_tree_repair_options options = CATERVA_TREE_REPAIR_INIT;
    options.output = args->output;
    options.overwrite = args->force;
    options.guess = args->guess;
    options.threads = (int)args->threads;
    options.on_found = on_found;
    options.on_damage = on_damage;
    options.on_member = on_member;
    options.context = r;
    options.progress = progress_of(&r->bar);
    caterva_tree_repair_result result = CATERVA_TREE_REPAIR_RESULT_INIT;
    caterva_error err;
    cli_mind_temporaries();
    progress_start(&r->bar, args, 0);
    cli_patience patience = {0};
    caterva_status status;
    do status = caterva_tree_repair(r->path, &options, &result, &err);
    while (result.members == 0 && cli_try_again(args, status, &patience));
    progress_end(&r->bar);
    if (r->code != CLI_OK) return r->code;
    if (status != CATERVA_OK) return fail_repair(r, &err);
    if (r->j)
        put_verdict(r, &result);
    else
        print_verdict(r, &result);
    return result.complete ? CLI_OK : CLI_NO;
}

/* Checks OUT: an existing archive may be replaced with --force, a directory may not. */
static cli_exit check_output(const cli_args *args)
{
    struct stat st;
    const char *to = args->output;
    if (!to) return CLI_OK;
    if (ends_with(to, ".b2z")) return output_check_array(to, args->force);
    if (stat(to, &st) != 0) return CLI_OK;
    return cli_fail(CLI_IO, "%s exists already", cli_show_place(to).text);
}

cli_exit repair_tree_run(const cli_args *args)
{
    repairing r = {.args = args, .path = args->positional[0]};
    CLI_TRY(check_output(args));
    if (!args->json) return repair(&r);
    return repair_as_json(r.path, "members", &r.j, repair, &r);
}
