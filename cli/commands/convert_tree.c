/* Room: cli/commands. `caterva convert` of whole files: groups, arrays, dimensions and attributes of
 * a file of another format become a tree, and back. A tree is made as a directory with a temporary
 * name; for an archive this directory is packed. Reports everything that the output does not have. */
#include "commands/convert_tree.h"

#include "foreign/values.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/foreign_sink.h"
#include "sources/foreign_source.h"
#include "sources/resume.h"
#include "sources/trees.h"
#include "terminal/output.h"
#include "terminal/progress.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <caterva_value.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_TREE_NAME 240 /* bytes; the system's limit, less the suffix of a temporary file */

static bool has_extension(const char *path, const char *extension)
{
    size_t size = strlen(path), n = strlen(extension);
    while (size > 1 && path[size - 1] == '/') size--;
    return size > n && strncasecmp(path + size - n, extension, n) == 0;
}

static bool is_tree_name(const char *path)
{
    return has_extension(path, ".b2d") || has_extension(path, ".b2z");
}

bool convert_is_array_in_tree(const cli_args *args)
{
    const char *in = args->positional[0], *out = args->positional[1];
    return is_tree_name(out) && !strstr(out, "::") && !cli_is_url(out) && !foreign_place_is(in) &&
           (strcmp(in, "-") == 0 || !tree_part_is(args, in));
}

/* Whether the output is a Zarr hierarchy, not a tree or one array. */
static bool is_zarr(const cli_args *args)
{
    const char *out = args->positional[1];
    return args->to ? strcasecmp(args->to, "zarr") == 0 : has_extension(out, ".zarr");
}

cli_exit convert_is_tree(const cli_args *args, bool *is)
{
    const char *in = args->positional[0], *out = args->positional[1];
    *is = false;
    if (strcmp(in, "-") == 0 || cli_is_url(out)) return CLI_OK;
    if (!foreign_place_is(in)) {
        bool fits = args->to ? foreign_by_name(args->to) != NULL
                             : foreign_by_path(out) || is_tree_name(out);
        *is = fits && tree_part_is(args, in);
    } else if (!strstr(out, "::")) {
        *is = is_tree_name(out);
        if (!*is && is_zarr(args)) return foreign_place_is_tree(in, is);
    }
    return CLI_OK;
}

static cli_exit refuse_options(const cli_args *args)
{
    if (!args->select && !args->astype && !args->view_dtype && !args->shape && !args->chunks &&
        !args->blocks && !args->offset && !args->sparse)
        return CLI_OK;
    return cli_fail(CLI_USAGE, "--select, --astype, --view-dtype, --shape, --offset, --chunks, "
                               "--blocks and --sparse require an output with one array");
}

/* Reports what the output will lack; an error with --strict. */
static cli_exit check_losses(const cli_args *args, const char *path, char *const *losses,
                             size_t n)
{
    foreign_report_losses(path, losses, n);
    if (n == 0 || !args->strict) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: --strict: %zu things cannot be converted", path, n);
}

/* ---- To a tree -------------------------------------------------------------------------- */

typedef struct to_tree {
    const cli_args *args;
    foreign_place in;
    char *folder; /* the tree while it is made */
    resume_id id;
} to_tree;

/* Says why no group or array of a tree can have the name, or returns NULL. */
static const char *fault_of(const char *name, size_t size)
{
    static const char hidden[] = "__vlmeta__", parts[] = ".b2nd.parts";
    if (size > MAX_TREE_NAME) return "has more than 240 bytes";
    if (name[0] == '.') return "begins with a dot";
    if (strncmp(name, hidden, sizeof hidden - 1) == 0) return "begins with __vlmeta__";
    if (size >= sizeof parts && memcmp(name + size - (sizeof parts - 1), parts, sizeof parts - 1) == 0)
        return "is that of a folder of jobs";
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 0x7f) return "has a control character";
    return values_is_utf8(name, size) ? NULL : "is not UTF-8";
}

/* Returns the name that the node has in the tree, or NULL if it is not part of it: it is outside the
 * group, or a tree cannot have its name, or that of a group above. */
static const char *name_in_tree(const to_tree *c, const foreign_node *node)
{
    const char *name = foreign_place_name(&c->in, node);
    for (const char *at = name; at && *at;) {
        size_t size = strcspn(at, "/");
        if (fault_of(at, size)) return NULL;
        at += size + (at[size] == '/');
    }
    return name;
}

/* Adds a sentence to the losses for each name that a tree cannot have. */
static cli_exit check_names(const to_tree *c)
{
    for (size_t i = 0; i < c->in.file->n; i++) {
        const foreign_node *node = &c->in.file->nodes[i];
        const char *name = foreign_place_name(&c->in, node);
        if (!name) continue;
        const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
        const char *fault = fault_of(last, strlen(last));
        if (fault)
            CLI_TRY(foreign_lose(c->in.file, "%s: its name %s, which a tree does not allow",
                                 node->key, fault));
    }
    return CLI_OK;
}

/* Returns "<folder>::/<name>", to be freed. */
static char *url_of(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 4;
    char *url = cli_alloc(size);
    if (url) snprintf(url, size, "%s::/%s", folder, name);
    return url;
}

static cli_exit set_group(caterva_tree *tree, const char *key, const foreign_node *node)
{
    caterva_error err;
    caterva_status status =
        key[1] ? caterva_tree_create_group(tree, key, &err) : CATERVA_OK;
    for (size_t i = 0; i < node->n_attributes && status == CATERVA_OK; i++) {
        const foreign_attribute *a = &node->attributes[i];
        status = caterva_tree_attr_set(tree, key, a->name, a->value, a->size, &err);
    }
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(node->key, &err);
}

/* Marks a tree that a later run may complete. */
static cli_exit set_mark(caterva_tree *tree, const resume_id *id)
{
    void *packed;
    size_t size;
    caterva_error err;
    caterva_value value = CATERVA_VALUE_INIT;
    value.kind = CATERVA_VALUE_TEXT;
    value.bytes = id->text;
    value.size = strlen(id->text);
    caterva_status status = caterva_value_pack(&value, 1, &packed, &size, &err);
    if (status == CATERVA_OK) {
        status = caterva_tree_attr_set(tree, "/", RESUME_NAME, packed, size, &err);
        caterva_free(packed);
    }
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(RESUME_NAME, &err);
}

/* Checks the mark of an unfinished tree, and deletes it if `complete`. A tree without it is complete:
 * the mark is there before the folder has its name. */
static cli_exit check_mark(const to_tree *c, bool complete)
{
    void *packed;
    size_t size, at = 0;
    caterva_tree *tree;
    caterva_error err;
    caterva_value value = CATERVA_VALUE_INIT;
    caterva_tree_options options = CATERVA_TREE_INIT;
    options.mode = CATERVA_MODE_WRITE;
    if (caterva_tree_open(c->folder, &options, &tree, &err) != CATERVA_OK)
        return cli_fail_array(c->folder, &err);
    cli_exit code = CLI_OK;
    caterva_status status =
        caterva_tree_attr_get(tree, "/", RESUME_NAME, &packed, &size, &err);
    if (status == CATERVA_OK) {
        bool same = caterva_value_next(packed, size, &at, &value, NULL) == CATERVA_OK &&
                    value.size == strlen(c->id.text) &&
                    memcmp(value.bytes, c->id.text, value.size) == 0;
        if (!same) code = resume_fail(c->folder);
        caterva_free(packed);
    }
    if (status == CATERVA_OK && code == CLI_OK && complete)
        status = caterva_tree_attr_delete(tree, "/", RESUME_NAME, &err);
    if (status == CATERVA_OK || status == CATERVA_ENOTFOUND)
        status = caterva_tree_commit(tree, &err);
    caterva_tree_close(tree, NULL);
    if (code == CLI_OK && status != CATERVA_OK) code = cli_fail_array(c->folder, &err);
    return code;
}

/* Makes the tree with all groups and their attributes. */
static cli_exit make_groups(const to_tree *c, const char *folder)
{
    caterva_tree *tree;
    caterva_error err;
    cli_exit code = CLI_OK;
    caterva_tree_options options = CATERVA_TREE_INIT;
    if (!c->args->go_on) options.durability = CATERVA_DURABILITY_NONE; /* the folder is synced at the end */
    if (caterva_tree_create(folder, &options, &tree, &err) != CATERVA_OK)
        return cli_fail_array(folder, &err);
    if (c->args->go_on) code = set_mark(tree, &c->id);
    for (size_t i = 0; i < c->in.file->n && code == CLI_OK; i++) {
        const foreign_node *node = &c->in.file->nodes[i];
        const char *name = node == c->in.node ? "" : name_in_tree(c, node);
        if (!node->is_group || !name) continue;
        char *key = url_of("", name);
        code = key ? set_group(tree, key + 2, node) : CLI_IO;
        free(key);
        if (cli_interrupted()) code = CLI_INTERRUPTED;
    }
    if (code == CLI_OK && caterva_tree_commit(tree, &err) != CATERVA_OK)
        code = cli_fail_array(folder, &err);
    caterva_tree_close(tree, NULL);
    return code;
}

static cli_exit verify_array(const to_tree *c, const foreign_node *node, const char *url)
{
    source *a = NULL, *b = NULL;
    caterva_array *array = NULL;
    cli_exit code = cli_open_array(c->args, url, CATERVA_MODE_READ, &array);
    if (code == CLI_OK) code = source_of_foreign(c->in.file, node, &a);
    if (code == CLI_OK) code = source_of_array(array, url, &b);
    if (code == CLI_OK) code = transfer_compare(c->args, node->key, a, b);
    source_close(a);
    source_close(b);
    caterva_discard(array);
    return code;
}

static cli_exit copy_array(const to_tree *c, const origin *like, const char *url)
{
    source *from;
    sink *to = NULL;
    CLI_TRY(source_of_foreign(c->in.file, like->node, &from));
    cli_exit code = c->args->go_on
                        ? sink_of_resumed_array(c->args, url, from, like, &c->id, &to)
                        : sink_of_new_array(c->args, url, false, from, like, &to);
    if (code == CLI_OK && to) code = transfer(c->args, from, to);
    source_close(from);
    return code;
}

static bool is_there(const char *url)
{
    caterva_array *array;
    bool is = caterva_open(url, NULL, &array, NULL) == CATERVA_OK;
    if (is) caterva_discard(array);
    return is;
}

/* An array that moves appears with its only commit: if it is there, it is complete. */
static cli_exit make_array(const to_tree *c, const foreign_node *node, const char *name)
{
    char *url = url_of(c->folder, name);
    if (!url) return CLI_IO;
    const origin like = {.node = node, .unsynced = !c->args->go_on};
    cli_exit code = CLI_OK;
    if (!foreign_can_move(c->args, c->in.file, node))
        code = copy_array(c, &like, url);
    else if (!c->args->go_on || !is_there(url))
        code = foreign_move_in(c->args, c->in.file, &like, url);
    if (code == CLI_OK && c->args->verify) code = verify_array(c, node, url);
    free(url);
    return code;
}

/* Deletes an array again, and records it as lost, if Zarr has no name for its dtype. */
static cli_exit drop_unless_zarr(const to_tree *c, const foreign_node *node, const char *name)
{
    char *url = url_of(c->folder, name), *text;
    size_t size;
    caterva_array *array;
    caterva_error err;
    cli_exit code = url ? cli_open_array(c->args, url, CATERVA_MODE_READ, &array) : CLI_IO;
    if (code == CLI_OK) {
        caterva_status status = caterva_zarr_metadata(array, &text, &size, &err);
        if (status == CATERVA_OK) caterva_free(text);
        caterva_discard(array);
        if (status == CATERVA_EUNSUPPORTED) {
            code = foreign_lose(c->in.file, "%s: %s", node->key, err.message);
            if (code == CLI_OK && caterva_delete(url, NULL, &err) != CATERVA_OK)
                code = cli_fail_array(url, &err);
        }
    }
    free(url);
    return code;
}

static cli_exit make_arrays(const to_tree *c)
{
    size_t reported = c->in.file->n_losses;
    cli_exit code = CLI_OK;
    for (size_t i = 0; i < c->in.file->n && code == CLI_OK; i++) {
        const foreign_node *node = &c->in.file->nodes[i];
        const char *name = name_in_tree(c, node);
        if (node->is_group || !name) continue;
        code = make_array(c, node, name);
        if (code == CLI_OK && is_zarr(c->args)) code = drop_unless_zarr(c, node, name);
    }
    if (code != CLI_OK) return code;
    return check_losses(c->args, c->in.path, c->in.file->losses + reported,
                        c->in.file->n_losses - reported);
}

/* Gives the finished directory its name. With -f it replaces a tree that is not open for writing. */
static cli_exit appear_as_folder(const to_tree *c, const char *out)
{
    caterva_tree *old;
    caterva_error err;
    caterva_tree_options options = CATERVA_TREE_INIT;
    options.mode = CATERVA_MODE_WRITE;
    CLI_TRY(output_sync_folder(c->folder, c->in.file ? c->in.file->n : 1));
    if (rename(c->folder, out) == 0) return CLI_OK;
    if (!c->args->force) return cli_fail_sys("cannot rename %s to %s", c->folder, out);
    if (caterva_tree_open(out, &options, &old, &err) != CATERVA_OK)
        return cli_fail_array(out, &err);
    char *aside = output_temporary(out, ".old");
    cli_exit code = aside ? CLI_OK : CLI_IO;
    bool is_moved = aside && rename(out, aside) == 0;
    caterva_tree_close(old, NULL);
    /* Windows renames no directory in which files are open */
    if (aside && !is_moved && rename(out, aside) != 0)
        code = cli_fail_sys("cannot rename %s to %s", out, aside);
    if (code == CLI_OK && rename(c->folder, out) != 0) {
        code = cli_fail_sys("cannot rename %s to %s", c->folder, out);
        (void)!rename(aside, out);
    } else if (code == CLI_OK) {
        output_delete_folder(aside);
    }
    free(aside);
    return code;
}

/* Packs a tree into an archive or a Zarr hierarchy. */
static cli_exit pack(const cli_args *args, const char *folder, const char *out)
{
    caterva_tree *tree;
    caterva_error err;
    progress bar;
    caterva_tree_pack_options options = CATERVA_TREE_PACK_INIT;
    options.overwrite = args->force;
    options.zarr = is_zarr(args);
    options.progress = progress_of(&bar);
    if (caterva_tree_open(folder, NULL, &tree, &err) != CATERVA_OK)
        return cli_fail_array(folder, &err);
    progress_start(&bar, args, 0);
    caterva_status status = caterva_tree_pack(tree, out, &options, &err);
    progress_end(&bar);
    caterva_tree_close(tree, NULL);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(out, &err);
}

/* Gives the finished directory its name, or packs it. */
static cli_exit appear(const to_tree *c, const char *out)
{
    return has_extension(out, ".b2d") ? appear_as_folder(c, out) : pack(c->args, c->folder, out);
}

static void print_plan(const to_tree *c)
{
    for (size_t i = 0; i < c->in.file->n; i++) {
        const foreign_node *node = &c->in.file->nodes[i];
        char shape[SHAPE_TEXT_SIZE];
        const char *name = name_in_tree(c, node);
        if (node->is_group || !name) continue;
        printf("%s  %s %s\n", cli_show(name).text,
               shape_text(node->ndim, node->shape, shape), cli_show(node->dtype).text);
    }
}

/* Deletes the folder: under another name if it has one with which a later run would go on. */
static void delete_folder(const to_tree *c, const char *out)
{
    char *aside = c->args->go_on ? output_temporary(out, ".b2d") : NULL;
    bool moved = aside && rename(c->folder, aside) == 0;
    output_delete_folder(moved ? aside : c->folder);
    free(aside);
}

/* Gives the tree its name, and deletes what is left of the folder. */
static cli_exit end_tree(const to_tree *c, const char *out, cli_exit code)
{
    if (code == CLI_OK) code = appear(c, out);
    if (c->folder && (code == CLI_OK || !c->args->go_on)) delete_folder(c, out);
    if (c->folder) cli_forget_file(c->folder);
    return code;
}

/* Makes the folder and its groups, or opens the folder of an earlier run. */
static cli_exit begin_tree(to_tree *c, const char *out)
{
    char *temporary = output_temporary(out, ".b2d");
    if (!temporary) return CLI_IO;
    if (!c->args->go_on) {
        c->folder = temporary;
        cli_mind_file(temporary);
        return make_groups(c, temporary);
    }
    c->folder = resume_path(out, ".b2d");
    cli_exit code = c->folder ? resume_identify(c->args, c->in.path, &c->id) : CLI_IO;
    if (code == CLI_OK && access(c->folder, F_OK) == 0) {
        code = check_mark(c, false);
    } else if (code == CLI_OK) {
        code = make_groups(c, temporary);
        if (code == CLI_OK && rename(temporary, c->folder) != 0)
            code = cli_fail_sys("cannot rename %s to %s", temporary, c->folder);
        if (code != CLI_OK) output_delete_folder(temporary);
    }
    free(temporary);
    return code;
}

static cli_exit run_to_tree(to_tree *c)
{
    const char *out = c->args->positional[1];
    CLI_TRY(foreign_place_open(c->args->positional[0], &c->in));
    c->in.file->threads = (int)c->args->threads;
    CLI_TRY(check_names(c));
    CLI_TRY(check_losses(c->args, c->in.path, c->in.file->losses, c->in.file->n_losses));
    if (c->args->dry_run) {
        print_plan(c);
        return CLI_OK;
    }
    CLI_TRY(output_check_array(out, c->args->force));
    cli_mind_temporaries();
    cli_exit code = begin_tree(c, out);
    if (code == CLI_OK) code = make_arrays(c);
    if (code == CLI_OK && c->args->go_on) code = check_mark(c, true);
    code = end_tree(c, out, code);
    if (code == CLI_OK && c->args->go_on) output_delete_temporaries(out);
    return code;
}

/* ---- One array in a tree ---------------------------------------------------------------- */

/* Sets `name` to that of the array: the name of the file, without its extension. */
static void name_of_array(const char *path, char name[MAX_TREE_NAME + 1])
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    const char *dot = strrchr(last, '.');
    size_t size = dot && dot > last ? (size_t)(dot - last) : strlen(last);
    snprintf(name, MAX_TREE_NAME + 1, "%.*s", size > MAX_TREE_NAME ? 0 : (int)size, last);
    if (!*name || strcmp(path, "-") == 0 || fault_of(name, size)) strcpy(name, "data");
}

cli_exit convert_array_to_tree(const cli_args *args, cli_exit (*convert)(const cli_args *))
{
    char name[MAX_TREE_NAME + 1];
    cli_args inner = *args;
    caterva_tree *tree;
    caterva_error err;
    to_tree c = {.args = args};
    const char *out = args->positional[1];
    if (args->go_on)
        return cli_fail(CLI_USAGE, "--resume of one array requires an array as output");
    if (args->to && strcmp(args->to, "b2nd") != 0)
        return cli_fail(CLI_USAGE, "%s is a tree, but --to is %s", out, args->to);
    CLI_TRY(output_check_array(out, args->force));
    cli_mind_temporaries();
    c.folder = output_temporary(out, ".b2d");
    if (!c.folder) return CLI_IO;
    name_of_array(args->positional[0], name);
    char *url = url_of(args->dry_run ? out : c.folder, name);
    cli_exit code = url ? CLI_OK : CLI_IO;
    inner.positional[1] = url;
    inner.to = "b2nd";
    if (args->dry_run) {
        if (code == CLI_OK) code = convert(&inner);
    } else {
        cli_mind_file(c.folder);
        if (code == CLI_OK && (caterva_tree_create(c.folder, NULL, &tree, &err) != CATERVA_OK ||
                               caterva_tree_close(tree, &err) != CATERVA_OK))
            code = cli_fail_array(c.folder, &err);
        if (code == CLI_OK) code = convert(&inner);
        code = end_tree(&c, out, code);
    }
    free(url);
    free(c.folder);
    return code;
}

/* ---- From a tree ------------------------------------------------------------------------ */

/* What is damaged is not left out. */
static cli_exit check_member(const tree_part *part, const caterva_tree_entry *entry)
{
    if (strcmp(entry->kind_name, "damaged") != 0) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: %s is damaged: 'caterva verify' says where", part->path,
                    entry->key);
}

static cli_exit take_group(const tree_part *part, const char *group, foreign_node *node)
{
    size_t n;
    const char **names;
    caterva_error err;
    if (caterva_tree_attr_list(part->tree, group, &names, &n, &err) != CATERVA_OK)
        return cli_fail_array(part->path, &err);
    cli_exit code = CLI_OK;
    for (size_t i = 0; i < n && code == CLI_OK; i++) {
        void *value;
        size_t size;
        if (caterva_tree_attr_get(part->tree, group, names[i], &value, &size, &err) !=
            CATERVA_OK)
            code = cli_fail_array(names[i], &err);
        else
            code = foreign_set_packed(node, names[i], value, size);
    }
    caterva_free(names);
    return code;
}

static cli_exit add_group(foreign_writer *writer, const tree_part *part, const char *group,
                          const char *key)
{
    foreign_node *node = foreign_node_make(key, true);
    if (!node) return CLI_IO;
    cli_exit code = take_group(part, group, node);
    if (code == CLI_OK) code = writer->add(writer, node);
    foreign_node_free(node);
    return code;
}

static cli_exit write_array(const cli_args *args, foreign_writer *writer, const char *key,
                            caterva_array *array)
{
    sink *to;
    source *from;
    foreign_node *node = NULL;
    const origin like = {.array = array};
    CLI_TRY(source_of_array(array, key, &from));
    cli_exit code = foreign_node_of(key, from, &like, &node);
    if (code == CLI_OK && !args->keep_chunks) memset(node->block_shape, 0, sizeof node->block_shape);
    if (code == CLI_OK) code = writer->add(writer, node);
    bool moves = code == CLI_OK && writer->write_stored && node->block_shape[0] > 0;
    if (moves) code = foreign_move_out(args, writer, node, array);
    if (code == CLI_OK && !moves) code = sink_of_node(writer, node, &to);
    if (code == CLI_OK && !moves) code = transfer(args, from, to);
    source_close(from);
    foreign_node_free(node);
    return code;
}

/* Whether an array is the coordinate of the dimension that has its name. */
static bool is_coordinate(caterva_array *array, const char *name)
{
    const char *slash = strrchr(name, '/');
    const char **dims = info_of(array)->ndim == 1 ? dims_of(array) : NULL;
    bool is = dims && dims[0] && strcmp(dims[0], slash ? slash + 1 : name) == 0;
    caterva_free(dims);
    return is;
}

/* Arrays are written in the turn of coordinates or in the one of the others. */
typedef enum turn { ALL, COORDINATES, OTHERS } turn;

static cli_exit write_entry(const cli_args *args, foreign_writer *writer,
                            const tree_part *part, const caterva_tree_entry *entry, turn which)
{
    caterva_array *array;
    const char *name = tree_part_name(part, entry);
    char *key = url_of("", name);
    if (!key) return CLI_IO;
    cli_exit code = CLI_OK;
    if (entry->kind == CATERVA_TREE_GROUP) {
        if (which != OTHERS) code = add_group(writer, part, entry->key, key + 2);
    } else if (entry->kind == CATERVA_TREE_OTHER) {
        code = check_member(part, entry);
        if (code == CLI_OK && which != OTHERS)
            code = foreign_lose_writing(writer, "%s is a %s, not an array", key + 2,
                                        entry->kind_name);
    } else {
        code = tree_part_open_array(args, part, entry, &array);
        if (code == CLI_OK) {
            if (which == ALL || is_coordinate(array, name) == (which == COORDINATES))
                code = write_array(args, writer, key + 2, array);
            caterva_discard(array);
        } else if (code == CLI_NO) {
            code = CLI_OK; /* deleted after the tree was listed */
        }
    }
    free(key);
    return code;
}

static size_t depth_of(const tree_part *part, const caterva_tree_entry *entry)
{
    size_t depth = 0;
    for (const char *c = tree_part_name(part, entry); *c; c++) depth += *c == '/';
    return depth;
}

/* Writes the entries of one depth, and subtracts them from *left. */
static cli_exit write_level(const cli_args *args, foreign_writer *writer, const tree_part *part,
                            size_t depth, turn which, size_t *left)
{
    for (size_t i = 0; i < part->list->n; i++) {
        if (depth_of(part, part->list->entries[i]) != depth) continue;
        if (left) --*left;
        CLI_TRY(write_entry(args, writer, part, part->list->entries[i], which));
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    return CLI_OK;
}

/* Arrays precede the groups beside them: groups share the dimensions of those above. */
static cli_exit write_all(const cli_args *args, foreign_writer *writer, const tree_part *part)
{
    CLI_TRY(add_group(writer, part, part->group, "/"));
    size_t left = part->list->n;
    for (size_t depth = 0; left > 0; depth++) {
        if (writer->coordinates_first)
            CLI_TRY(write_level(args, writer, part, depth, COORDINATES, NULL));
        CLI_TRY(write_level(args, writer, part, depth,
                            writer->coordinates_first ? OTHERS : ALL, &left));
    }
    return check_losses(args, writer->path, writer->losses, writer->n_losses);
}

/* Compares an array with that in the file. */
static cli_exit verify_entry(const cli_args *args, const tree_part *part,
                             const caterva_tree_entry *entry, foreign_place *file)
{
    caterva_array *array;
    source *a = NULL, *b = NULL;
    if (entry->kind == CATERVA_TREE_GROUP || entry->kind == CATERVA_TREE_OTHER) return CLI_OK;
    cli_exit code = tree_part_open_array(args, part, entry, &array);
    if (code != CLI_OK) return code == CLI_NO ? CLI_OK : code;
    char *key = url_of("", tree_part_name(part, entry));
    const foreign_node *node = key ? foreign_find(file->file, key + 2) : NULL;
    code = key ? source_of_array(array, key + 2, &a) : CLI_IO;
    if (code == CLI_OK && node) code = source_of_foreign(file->file, node, &b);
    if (code == CLI_OK && b) code = transfer_compare(args, key + 2, a, b);
    if (code == CLI_OK && !b)
        cli_warn("%s: %s has another name there, and is not compared", file->path, key + 2);
    source_close(a);
    source_close(b);
    free(key);
    caterva_discard(array);
    return code;
}

static cli_exit verify_file(const cli_args *args, const tree_part *part, const char *out)
{
    foreign_place file;
    cli_exit code = foreign_place_open(out, &file);
    for (size_t i = 0; i < part->list->n && code == CLI_OK; i++)
        code = verify_entry(args, part, part->list->entries[i], &file);
    foreign_place_close(&file);
    return code;
}

static cli_exit run_from_tree(const cli_args *args)
{
    tree_part part;
    foreign_writer *writer = NULL;
    const char *out = args->positional[1];
    const foreign_info *info = args->to ? foreign_by_name(args->to) : foreign_by_path(out);
    cli_exit code = tree_part_open(args, args->positional[0], &part);
    if (code == CLI_OK) code = foreign_create(info, out, args->force, &writer);
    if (code == CLI_OK) writer->threads = (int)args->threads;
    if (code == CLI_OK) code = write_all(args, writer, &part);
    if (code == CLI_OK)
        code = foreign_finish(writer);
    else
        foreign_abandon(writer);
    if (code == CLI_OK && args->verify) code = verify_file(args, &part, out);
    tree_part_close(&part);
    return code;
}

/* ---- From a tree to a tree -------------------------------------------------------------- */

static cli_exit copy_member(const cli_args *args, const tree_part *part,
                            const caterva_tree_entry *entry, const char *folder)
{
    progress bar;
    caterva_error err;
    caterva_array *array;
    caterva_copy_options options = CATERVA_COPY_INIT;
    cli_exit code = tree_part_open_array(args, part, entry, &array);
    if (code != CLI_OK) return code == CLI_NO ? CLI_OK : code; /* it was deleted meanwhile */
    char *url = url_of(folder, tree_part_name(part, entry));
    options.memory = args->memory;
    options.progress = progress_of(&bar);
    progress_start(&bar, args, 0);
    if (!url)
        code = CLI_IO;
    else if (caterva_copy(array, url, &options, NULL, &err) != CATERVA_OK)
        code = cli_fail_array(entry->key, &err);
    progress_end(&bar);
    free(url);
    caterva_discard(array);
    return code;
}

static cli_exit copy_groups(const tree_part *part, caterva_tree *to)
{
    caterva_error err;
    foreign_node root = {.key = "/", .is_group = true};
    cli_exit code = take_group(part, part->group, &root);
    if (code == CLI_OK) code = set_group(to, "/", &root);
    foreign_node_clear(&root);
    for (size_t i = 0; i < part->list->n && code == CLI_OK; i++) {
        const caterva_tree_entry *entry = part->list->entries[i];
        if (entry->kind != CATERVA_TREE_GROUP) continue;
        foreign_node node = {.key = (char *)entry->key, .is_group = true};
        char *key = url_of("", tree_part_name(part, entry));
        code = key ? take_group(part, entry->key, &node) : CLI_IO;
        if (code == CLI_OK) code = set_group(to, key + 2, &node);
        foreign_node_clear(&node);
        free(key);
    }
    if (code == CLI_OK && caterva_tree_commit(to, &err) != CATERVA_OK)
        code = cli_fail_array(part->path, &err);
    return code;
}

static cli_exit copy_members(const to_tree *c, const tree_part *part)
{
    caterva_tree *to;
    caterva_error err;
    if (caterva_tree_create(c->folder, NULL, &to, &err) != CATERVA_OK)
        return cli_fail_array(c->folder, &err);
    cli_exit code = copy_groups(part, to);
    caterva_tree_close(to, NULL);
    for (size_t i = 0; i < part->list->n && code == CLI_OK; i++) {
        const caterva_tree_entry *entry = part->list->entries[i];
        if (entry->kind == CATERVA_TREE_ARRAY) code = copy_member(c->args, part, entry, c->folder);
        if (entry->kind == CATERVA_TREE_OTHER) code = check_member(part, entry);
        if (code == CLI_OK && entry->kind == CATERVA_TREE_OTHER)
            cli_warn("%s: %s is a %s, not an array", part->path, entry->key, entry->kind_name);
        if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
    }
    return code;
}

/* Copies a tree, a Zarr hierarchy of ours or a group in one. */
static cli_exit copy_tree(const cli_args *args)
{
    tree_part part;
    to_tree c = {.args = args};
    const char *in = args->positional[0], *out = args->positional[1];
    CLI_TRY(output_check_array(out, args->force));
    cli_mind_temporaries();
    if (is_zarr(args) && !tree_part_is_within(in)) return pack(args, in, out);
    cli_exit code = tree_part_open(args, in, &part);
    if (code == CLI_OK) c.folder = output_temporary(out, ".b2d");
    if (c.folder) cli_mind_file(c.folder);
    if (code == CLI_OK) code = c.folder ? copy_members(&c, &part) : CLI_IO;
    code = end_tree(&c, out, code);
    free(c.folder);
    tree_part_close(&part);
    return code;
}

cli_exit convert_tree(const cli_args *args)
{
    CLI_TRY(refuse_options(args));
    if (!foreign_place_is(args->positional[0])) {
        if (args->go_on)
            return cli_fail(CLI_USAGE, "--resume requires a file of another format as input");
        return is_zarr(args) || is_tree_name(args->positional[1]) ? copy_tree(args)
                                                                  : run_from_tree(args);
    }
    to_tree c = {.args = args};
    cli_exit code = run_to_tree(&c);
    foreign_place_close(&c.in);
    free(c.folder);
    return code;
}
