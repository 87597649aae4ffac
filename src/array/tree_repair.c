/* Room: array. Repair of a tree: what stands in the way of opening it is settled, then each
 * member is repaired for itself. Promises: in place, nothing that cannot be read is thrown
 * away, it is put aside; an output appears whole. */
#include "array/tree_repair_member.h"

#include "array/array.h"
#include "array/embedded.h"
#include "base/heap.h"
#include "base/os_file.h"
#include "base/status.h"
#include "store/descriptors.h"
#include "tree/files_below.h"
#include "tree/names.h"
#include "tree/pack.h"

#include <stdio.h>
#include <string.h>

#define ASIDE ".damaged"

/* ---- Reports ------------------------------------------------------------------------------ */

static void begin(cv_tree_repair *r, const char *key, const char *kind_name)
{
    r->reason = (cv_error){.code = CATERVA_OK, .position = -1};
    r->member = (caterva_tree_repaired){
        .struct_size = sizeof r->member, .key = key, .kind_name = kind_name};
    r->member.result.struct_size = sizeof r->member.result;
}

static cv_status finish(cv_tree_repair *r, cv_error *err)
{
    caterva_tree_repair_result *all = &r->result;
    const caterva_outcome outcome = r->member.outcome;
    all->members++;
    all->whole_members += outcome == CATERVA_OUTCOME_WHOLE;
    all->partly_members += outcome == CATERVA_OUTCOME_PARTLY;
    all->lost_members += outcome == CATERVA_OUTCOME_LOST;
    int stop = 0;
    if (r->options.on_member) stop = r->options.on_member(r->options.context, &r->member);
    cv_free(r->beside);
    r->beside = NULL;
    if (!stop) return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped after %lld members",
                   (long long)all->members);
}

/* The same of what concerns the tree itself. */
static cv_status report(cv_tree_repair *r, caterva_outcome outcome, const cv_error *why,
                        cv_error *err)
{
    begin(r, "/", "tree");
    r->reason = *why;
    cv_tree_repair_judge(r, outcome);
    return finish(r, err);
}

/* Which of its names it had is lost. */
static void judge_named(cv_tree_repair *r, const cv_member *member, const char *other)
{
    char taken[80], shown[80];
    if (r->member.outcome == CATERVA_OUTCOME_LOST) return;
    cv_show_text(taken, sizeof taken, member->path);
    cv_show_text(shown, sizeof shown, other);
    (void)cv_fail(&r->reason, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                  "header and directory of the zip archive have two names for it: %s, which "
                  "was taken, and %s",
                  taken, shown);
    cv_tree_repair_judge(r, CATERVA_OUTCOME_PARTLY);
}

/* Nothing of it is lost when the archive's word on it alone was damaged, but for its name. */
static void judge_settled(cv_tree_repair *r, const cv_member *member)
{
    const char *other = cv_members_other_name(&r->tree->contents.members, member);
    if (other) judge_named(r, member, other);
    if (!member->is_settled || r->member.outcome != CATERVA_OUTCOME_SOUND) return;
    (void)cv_fail(&r->reason, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                  "the header at byte %llu and the zip archive's directory contradicted each "
                  "other",
                  (unsigned long long)member->header_pos);
    cv_tree_repair_judge(r, CATERVA_OUTCOME_WHOLE);
}

/* ---- The journal ------------------------------------------------------------------------- */

static cv_status put_aside(const cv_tree_repair *r, const char *name, const char *aside,
                           cv_error *err)
{
    int error = cv_dir_rename(r->tree->dir, name, aside);
    if (!error && r->durable) error = cv_dir_sync(r->tree->dir);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot rename %s in %s", name, r->tree->shown.text);
}

/* A journal that nobody can read keeps all arrays from being opened. */
static cv_status drop_journal(cv_tree_repair *r, const cv_error *why, cv_error *err)
{
    r->tree->skips_journal = true;
    if (!r->made_path) CV_TRY(put_aside(r, CV_TREE_JOURNAL, CV_TREE_JOURNAL ASIDE, err));
    return report(r, CATERVA_OUTCOME_LOST, why, err);
}

/* Nobody else writes to it from now on. */
static cv_status settle_commit(cv_tree_repair *r, cv_error *err)
{
    cv_file_info info;
    cv_error why = {.position = -1};
    cv_tree *tree = r->tree;
    if (tree->form != CV_TREE_DIRECTORY) return CV_OK;
    bool stands = cv_dir_get_link_info(tree->dir, CV_TREE_JOURNAL, &info) == 0;
    int error = cv_file_lock(cv_dir_as_file(tree->dir));
    if (error) return cv_fail_lock(err, error, tree->path);
    tree->writable = true;
    cv_status status = cv_journal_finish(tree->dir, tree->path, tree->shown.text, &why);
    if (status == CATERVA_ECORRUPT) return drop_journal(r, &why, err);
    if (status != CV_OK && err) *err = why;
    r->result.settled = status == CV_OK && stands;
    return status;
}

/* ---- embed.b2e --------------------------------------------------------------------------- */

static cv_status make_embed(const cv_tree_repair *r, cv_error *err)
{
    cv_buffer bytes = {0};
    cv_dir dir = r->made_path ? r->made.dir : r->tree->dir;
    cv_status status = cv_make_embed(&bytes, err);
    if (status == CV_OK) status = cv_make_file(dir, CV_TREE_EMBED, &bytes, r->durable, err);
    cv_buffer_free(&bytes);
    return status;
}

/* How many places of the leaves inside it are damaged. */
static cv_status verify_embed(const cv_tree_repair *r, int64_t *damages, cv_error *err)
{
    cv_embed_bytes bytes;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CV_TRY(cv_embedded_open(r->tree, &bytes, err));
    cv_status status = caterva_verify(bytes.context, NULL, &result, err);
    cv_embedded_close(&bytes);
    *damages = result.damages;
    return status;
}

/* Whether the lists of what lies inside it can be had. */
static cv_status read_embed(const cv_tree_repair *r, cv_error *err)
{
    cv_store *store;
    cv_embed embed = {0};
    CV_TRY(cv_tree_embed_store(r->tree, &store, err));
    cv_status status = cv_embed_read(store, &embed, err);
    cv_embed_free(&embed);
    return status;
}

static cv_status judge_embed(cv_tree_repair *r, cv_error *err)
{
    int64_t damages = 0;
    cv_error why = {.position = -1};
    cv_status status = verify_embed(r, &damages, &why);
    if (status == CV_OK && damages == 0) return CV_OK;
    if (status != CV_OK && !cv_tree_repair_is_damage(status)) {
        if (err) *err = why;
        return status;
    }
    if (status == CV_OK)
        (void)cv_fail(&why, CATERVA_ECORRUPT, -1,
                      "%s has %lld damaged places: arrays that lie there cannot be read",
                      CV_TREE_EMBED, (long long)damages);
    r->reason = why;
    cv_tree_repair_judge(r, CATERVA_OUTCOME_PARTLY);
    return CV_OK;
}

static cv_status lose_embed(cv_tree_repair *r, const cv_error *why, cv_error *err)
{
    if (!r->made_path) CV_TRY(put_aside(r, CV_TREE_EMBED, CV_TREE_EMBED ASIDE, err));
    CV_TRY(make_embed(r, err));
    r->reason = *why;
    cv_tree_repair_judge(r, CATERVA_OUTCOME_LOST);
    return CV_OK;
}

/* The archive's word on its bytes may be wrong: they could be read. */
static cv_status copy_embed(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    const caterva_tree_repaired before = r->member;
    const cv_error reason = r->reason;
    CV_TRY(cv_tree_repair_other(r, member, err));
    r->member.kind_name = "tree";
    if (before.outcome > r->member.outcome) {
        r->member = before;
        r->reason = reason;
    }
    return CV_OK;
}

/* `member`: embed.b2e, or NULL when there is none. */
static cv_status repair_embed(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_error why = {.position = -1};
    begin(r, "/", "tree");
    if (!member) {
        (void)cv_fail(&r->reason, CATERVA_ENOTFOUND, -1, "there was no %s", CV_TREE_EMBED);
        cv_tree_repair_judge(r, CATERVA_OUTCOME_WHOLE);
        CV_TRY(make_embed(r, err));
        return finish(r, err);
    }
    cv_status status = read_embed(r, &why);
    if (status != CV_OK && !cv_tree_repair_is_damage(status)) {
        if (err) *err = why;
        return status;
    }
    if (status != CV_OK) {
        CV_TRY(lose_embed(r, &why, err));
    } else {
        CV_TRY(judge_embed(r, err));
        if (r->made_path) CV_TRY(copy_embed(r, member, err));
        judge_settled(r, member);
    }
    return finish(r, err);
}

/* ---- All members ------------------------------------------------------------------------- */

/* "/g/x" of "g/x.b2nd". */
static cv_status key_of(const cv_member *member, char **out, cv_error *err)
{
    size_t stem =
        cv_tree_is_leaf(member->path) ? cv_tree_stem(member->path) : strlen(member->path);
    *out = cv_malloc(stem + 2);
    if (!*out) return cv_fail_memory(err, stem + 2, "a key");
    (void)snprintf(*out, stem + 2, "/%s", member->path);
    return CV_OK;
}

static cv_status repair_member(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    char *key;
    CV_TRY(key_of(member, &key, err));
    begin(r, key, "file");
    const char *ending = member->path + cv_tree_stem(member->path);
    bool is_array = strcmp(ending, CV_TREE_ARRAY_SUFFIX) == 0;
    int64_t done = r->watch.done;
    cv_status status = is_array ? cv_tree_repair_array(r, member, err)
                                : cv_tree_repair_other(r, member, err);
    if (status == CV_OK) judge_settled(r, member);
    if (status == CV_OK) status = finish(r, err);
    r->watch.done = done + (int64_t)member->size;
    cv_free(key);
    return status;
}

/* embed.b2e was looked at before; in an archive a journal is nobody's. */
static bool is_own(const char *path)
{
    return strcmp(path, CV_TREE_EMBED) == 0 || strcmp(path, CV_TREE_JOURNAL) == 0;
}

static cv_status repair_members(cv_tree_repair *r, const cv_members *members, cv_error *err)
{
    for (size_t i = 0; i < members->n; i++) r->watch.total += (int64_t)members->list[i].size;
    CV_TRY(repair_embed(r, cv_members_find(members, CV_TREE_EMBED), err));
    for (size_t i = 0; i < members->n; i++)
        if (!is_own(members->list[i].path)) CV_TRY(repair_member(r, &members->list[i], err));
    return CV_OK;
}

static cv_status repair_all(cv_tree_repair *r, cv_error *err)
{
    cv_members files = {0};
    const cv_tree *tree = r->tree;
    if (tree->form == CV_TREE_ARCHIVE) return repair_members(r, &tree->contents.members, err);
    cv_status status = cv_files_below(tree->dir, tree->shown.text, NULL, &files, err);
    if (status == CV_OK) {
        cv_members_complete(&files);
        status = repair_members(r, &files, err);
    }
    cv_members_free(&files);
    return status;
}

/* ---- The output -------------------------------------------------------------------------- */

static bool is_archive_name(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && memcmp(path + size - 4, ".b2z", 4) == 0;
}

/* Where the directory that is made is, under its temporary name. */
static cv_status find_made_path(cv_tree_repair *r, const char *path, cv_error *err)
{
    char *whole = cv_os_absolute(path);
    if (!whole) return cv_fail_memory(err, strlen(path), "a path");
    char *slash = strrchr(whole, '/');
    size_t parent = slash ? (size_t)(slash - whole) + 1 : 0;
    size_t size = parent + strlen(r->made.temp) + 1;
    char *made = cv_malloc(size);
    if (made) (void)snprintf(made, size, "%.*s%s", (int)parent, whole, r->made.temp);
    cv_free(whole);
    r->made_path = made;
    return made ? CV_OK : cv_fail_memory(err, size, "a path");
}

/* An archive is packed from a directory, which is beside it meanwhile. */
static cv_status open_output(cv_tree_repair *r, cv_error *err)
{
    char *path;
    const char *output = r->options.output;
    if (cv_os_same_file(r->tree->path, output))
        return cv_fail(err, CATERVA_EEXIST, -1,
                       "the output is the damaged tree itself, which is never replaced");
    size_t size = strlen(output), room = size + sizeof ".b2d";
    while (size > 1 && output[size - 1] == '/') size--;
    path = cv_malloc(room);
    if (!path) return cv_fail_memory(err, room, "a path");
    (void)snprintf(path, room, "%.*s%s", (int)size, output,
                   is_archive_name(output) ? ".b2d" : "");
    cv_status status = cv_new_directory_open(path, &r->made, err);
    if (status == CV_OK) status = find_made_path(r, path, err);
    cv_free(path);
    return status;
}

static cv_status pack_output(const cv_tree_repair *r, cv_error *err)
{
    cv_tree *tree;
    caterva_tree_pack_options o = CATERVA_TREE_PACK_INIT;
    o.overwrite = r->options.overwrite;
    o.durability = r->options.durability;
    CV_TRY(cv_tree_open(r->made_path, NULL, NULL, &tree, err));
    cv_status status = cv_tree_pack(tree, r->options.output, &o, err);
    cv_tree_close(tree);
    return status;
}

static cv_status publish_output(cv_tree_repair *r, cv_error *err)
{
    if (!r->made_path) return CV_OK;
    if (is_archive_name(r->options.output)) return pack_output(r, err);
    int error = r->durable ? cv_dir_sync_all(r->made.dir) : 0;
    if (error && error != ENOTSUP)
        return cv_fail_sys(err, error, "cannot sync %s", r->made.shown.text);
    return cv_new_directory_publish(&r->made, r->durable, err);
}

/* ---- The call ---------------------------------------------------------------------------- */

static cv_status check_options(const cv_tree_repair *r, cv_error *err)
{
    const caterva_tree_repair_options *o = &r->options;
    if (o->threads < 0) return cv_fail(err, CATERVA_EINVAL, -1, "%d threads", o->threads);
    if (o->durability < CATERVA_DURABILITY_FULL || o->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)o->durability);
    if (o->output || r->tree->form == CV_TREE_DIRECTORY) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is an archive, which never changes in place: name an output",
                   r->tree->shown.text);
}

static cv_status run(cv_tree_repair *r, const cv_error *found, cv_error *err)
{
    CV_TRY(check_options(r, err));
    if (r->options.output) CV_TRY(open_output(r, err));
    r->durable = r->options.durability != CATERVA_DURABILITY_NONE;
    r->watch.tell = r->options.on_progress;
    r->watch.context = r->options.context;
    CV_TRY(settle_commit(r, err));
    bool is_rescued = r->tree->form == CV_TREE_ARCHIVE && found->code != CATERVA_OK;
    if (is_rescued)
        CV_TRY(report(r,
                      r->tree->lacks_members ? CATERVA_OUTCOME_PARTLY : CATERVA_OUTCOME_WHOLE,
                      found, err));
    CV_TRY(repair_all(r, err));
    r->result.complete = r->result.partly_members + r->result.lost_members == 0;
    return publish_output(r, err);
}

caterva_status caterva_tree_repair(const char *path,
                                   const caterva_tree_repair_options *options,
                                   caterva_tree_repair_result *result, caterva_error *err)
{
    static const caterva_tree_repair_options defaults = CATERVA_TREE_REPAIR_INIT;
    cv_tree_repair r = {.tree = NULL};
    cv_error found;
    if (!path) return cv_fail(err, CATERVA_EINVAL, -1, "path is NULL");
    CV_TRY(cv_output_check(result, sizeof *result, "tree repair result", err));
    CV_TRY(cv_options_copy(&r.options, sizeof r.options, options ? options : &defaults,
                           "tree repair options", err));
    CV_TRY(cv_tree_open_damaged(path, &r.tree, &found, err));
    cv_status status = run(&r, &found, err);
    if (r.made.name) cv_new_directory_close(&r.made);
    cv_free(r.made_path);
    cv_free(r.beside);
    cv_tree_close(r.tree);
    cv_output_fill(result, &r.result, sizeof r.result);
    return status;
}
