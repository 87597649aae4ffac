/* Room: tree. Repairs a tree: first what prevents opening it, then each member separately. In
 * place, a damaged file is replaced only if nothing of it is lost, and unusable files are renamed.
 * An output appears as a whole. */
#include "array/array.h"
#include "base/heap.h"
#include "base/os_file.h"
#include "base/status.h"
#include "frame/snapshot.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "tree/leaf.h"
#include "tree/make.h"
#include "tree/names.h"
#include "tree/opened.h"
#include "tree/zip.h"
#include "upkeep/upkeep.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <string.h>

typedef struct cv_tree_repair {
    caterva_tree_repair_options options;
    caterva_tree_repair_result result;
    cv_tree *tree;
    bool durable;
    cv_watch watch;
    cv_watch *reporting;          /* &watch, or NULL */
    cv_new_directory made;        /* the output, if there is one */
    char *made_path;              /* temporary path of the output; NULL: repair in place */
    caterva_tree_repaired member; /* the current member */
    caterva_repair_result array;  /* result of the current member, if it is an array */
    char *beside;
    cv_error reason;
} cv_tree_repair;

static const char suffix[] = ".repaired";

static int on_found(void *context, const caterva_info *info, void *fill)
{
    const cv_tree_repair *r = context;
    return r->options.on_found(r->options.context, r->member.key, info, fill);
}

static void on_damage(void *context, const caterva_damage *damage)
{
    const cv_tree_repair *r = context;
    if (r->options.on_damage) r->options.on_damage(r->options.context, r->member.key, damage);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    const cv_tree_repair *r = context;
    (void)done;
    (void)total;
    return cv_watch_tick(r->reporting, 0, NULL) != CV_OK;
}

static caterva_repair_options options_of(cv_tree_repair *r, const char *output)
{
    caterva_repair_options o = CATERVA_REPAIR_INIT;
    o.output = output;
    o.overwrite = r->options.overwrite;
    o.guess = r->options.guess;
    o.threads = r->options.threads;
    o.durability = r->options.durability;
    o.on_found = r->options.on_found ? on_found : NULL;
    o.on_damage = on_damage;
    o.context = r;
    o.progress = (caterva_progress){.report = on_progress, .context = r};
    o.progress.per_second = r->options.progress.per_second;
    return o;
}

/* Whether the status means damage. Other failures end the repair, because a member that cannot be
 * read may be sound. */
static bool is_damage(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED ||
           status == CATERVA_ENOTFOUND;
}

static void judge(cv_tree_repair *r, caterva_outcome outcome)
{
    r->member.outcome = outcome;
    r->member.reason = r->reason.code != CATERVA_OK ? r->reason.message : NULL;
}

/* ---- Copies ------------------------------------------------------------------------------ */

static cv_status open_output(const cv_tree_repair *r, const cv_member *member, cv_file *out,
                             cv_error *err)
{
    CV_TRY(cv_make_parents(r->made.dir, member->path, false, err));
    unsigned how = CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = cv_open_file(r->made.dir, member->path, how, 0666, out);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot create %s", cv_show_path(member->path).text);
}

/* Copies the bytes unchanged; *why is set if their checksum is wrong. */
static cv_status copy_bytes(cv_tree_repair *r, const cv_member *member, cv_error *why,
                            cv_error *err)
{
    uint32_t crc;
    cv_file file;
    cv_copy_source source;
    CV_TRY(cv_copy_source_open(r->tree, member, &source, err));
    source.any_checksum = true;
    cv_status status = open_output(r, member, &file, err);
    if (status == CV_OK) {
        status = cv_copy_bytes(&source, file, 0, r->reporting, &crc, err);
        cv_file_close(&file);
    }
    cv_copy_source_close(&source);
    if (status == CV_OK && r->tree->form == CV_TREE_ARCHIVE && crc != member->crc)
        (void)cv_fail(why, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                      "the member at byte %llu has the checksum %08x, but should have %08x",
                      (unsigned long long)member->header_pos, crc, member->crc);
    return status;
}

static cv_status join(const char *a, const char *between, const char *b, char **out,
                      cv_error *err)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s%s%s", a, between, b);
    return CV_OK;
}

static cv_status repair_to(cv_tree_repair *r, const cv_member *member, const char *output,
                           cv_error *err)
{
    char *path;
    cv_store *store;
    const caterva_repair_options o = options_of(r, output);
    caterva_repair_result *result = &r->array;
    result->struct_size = sizeof *result;
    CV_TRY(cv_tree_path(r->tree, member->path, &path, err));
    cv_status status = CV_OK;
    if (r->tree->form == CV_TREE_DIRECTORY) {
        status = caterva_repair(path, &o, result, err);
    } else {
        status = cv_tree_store(r->tree, member, &store, err);
        if (status == CV_OK)
            status = cv_array_repair_store(store, r->member.key, &o, result, err);
    }
    cv_free(path);
    return status;
}

static caterva_outcome outcome_of(const caterva_repair_result *result)
{
    if (!result->complete) return CATERVA_OUTCOME_PARTLY;
    return result->written || result->in_place ? CATERVA_OUTCOME_WHOLE
                                               : CATERVA_OUTCOME_SOUND;
}

static cv_status publish(cv_place *place, bool durable, cv_error *err)
{
    cv_file made;
    bool moved;
    int error = cv_open_file(place->dir, place->temp, CV_OPEN_BOTH, 0, &made);
    if (error) return cv_fail_open(err, error, place->temp);
    cv_status status = cv_place_publish(place, made, (cv_file){0}, durable, &moved, err);
    cv_file_close(&made);
    return status;
}

/* Replaces the damaged array by the new one, from which nothing is missing. */
static cv_status replace(const cv_tree_repair *r, const char *path, cv_error *err)
{
    cv_place place;
    CV_TRY(cv_place_open(path, true, &place, err));
    int size = snprintf(place.temp, sizeof place.temp, "%s%s", place.name, suffix);
    cv_status status = CV_OK; /* if the name is too long, both stay */
    if (size < (int)sizeof place.temp) status = publish(&place, r->durable, err);
    cv_place_close(&place);
    return status;
}

static cv_status settle_beside(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    char *path;
    if (!r->array.written) return CV_OK;
    if (r->array.complete) {
        CV_TRY(cv_tree_path(r->tree, member->path, &path, err));
        cv_status status = replace(r, path, err);
        cv_free(path);
        return status;
    }
    CV_TRY(join(member->path, "", suffix, &r->beside, err));
    r->member.beside = r->beside;
    return CV_OK;
}

static cv_status repair_in_place(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    CV_TRY(repair_to(r, member, NULL, err));
    judge(r, outcome_of(&r->array));
    return settle_beside(r, member, err);
}

/* Judges an array that was copied unchanged. It may be sound although its member's sum differs. */
static void judge_copy(cv_tree_repair *r, const cv_error *why)
{
    caterva_outcome outcome = CATERVA_OUTCOME_SOUND;
    if (why->code != CATERVA_OK) {
        r->reason = *why;
        bool vouched = r->array.unverified_chunks == 0;
        outcome = vouched ? CATERVA_OUTCOME_WHOLE : CATERVA_OUTCOME_PARTLY;
    }
    judge(r, outcome);
}

static cv_status repair_into_output(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    char *output;
    cv_error why = {.code = CATERVA_OK};
    CV_TRY(cv_tree_check_file(member->path, err));
    CV_TRY(cv_make_parents(r->made.dir, member->path, false, err));
    CV_TRY(join(r->made_path, "/", member->path, &output, err));
    cv_status status = repair_to(r, member, output, err);
    cv_free(output);
    CV_TRY(status);
    judge(r, outcome_of(&r->array));
    if (r->array.written) return CV_OK;
    CV_TRY(copy_bytes(r, member, &why, err));
    judge_copy(r, &why);
    return CV_OK;
}

/* Checks a member that is not an array, and copies it to the output, if there is one. */
static cv_status repair_other(cv_tree_repair *r, const cv_member *member, cv_error *err);

static cv_status repair_array(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_error why = {.position = -1};
    r->member.kind_name = "array";
    cv_status status =
        r->made_path ? repair_into_output(r, member, &why) : repair_in_place(r, member, &why);
    if (status == CV_OK) return CV_OK;
    if (status == CATERVA_EUNSUPPORTED) return repair_other(r, member, err);
    if (is_damage(status)) {
        r->reason = why;
        judge(r, CATERVA_OUTCOME_LOST);
        return CV_OK;
    }
    if (err) *err = why;
    return status;
}

/* ---- Other members ---------------------------------------------------------------------- */

static bool is_other_kind(cv_store *store)
{
    char name[CV_KIND_NAME];
    return cv_snapshot_load_kind(store, name, NULL) == CV_OK && strcmp(name, "array") != 0;
}

static bool is_attributes(const char *path)
{
    size_t size = cv_tree_stem(path), length = strlen(CV_TREE_ATTRIBUTES);
    return size >= length && memcmp(path + size - length, CV_TREE_ATTRIBUTES, length) == 0 &&
           (size == length || path[size - length - 1] == '/');
}

/* Sets `anew` to the leaf of attributes with a new header if the present one is damaged (*why). */
static cv_status remake(const cv_snapshot *s, cv_buffer *anew, cv_error *why, cv_error *err)
{
    if (cv_snapshot_check_header(s, why) == CV_OK) return CV_OK;
    return cv_make_group_with(s->trailer.attributes, s->trailer.n_attributes, NULL, anew,
                              err);
}

/* Checks a frame. Accepts an unknown kind, but not unreadable attributes. `anew`: repaired bytes,
 * if any. *why: the repaired damage, or the reason why a supposed array cannot be checked. */
static cv_status check_frame(const cv_tree_repair *r, const cv_member *member,
                             cv_buffer *anew, cv_error *why, cv_error *err)
{
    cv_store *store;
    cv_snapshot *s = NULL;
    cv_error reason = {.position = -1};
    CV_TRY(cv_tree_store(r->tree, member, &store, err));
    cv_status status = cv_snapshot_load_any(store, &s, &reason);
    if (status == CV_OK) status = cv_snapshot_check_attributes(s, &reason);
    if (status == CV_OK && is_attributes(member->path))
        status = remake(s, anew, why, &reason);
    if (status == CATERVA_EUNSUPPORTED && !is_other_kind(store)) *why = reason;
    cv_snapshot_release(s);
    cv_store_close(store);
    bool may_be_good = status == CATERVA_EUNSUPPORTED && !is_attributes(member->path);
    if (status == CV_OK || may_be_good) return CV_OK;
    if (err) *err = reason;
    return status;
}

static cv_status make_group(const cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_buffer bytes = {0};
    cv_status status = cv_make_group(&bytes, err);
    if (status == CV_OK) status = cv_make_file(r->made.dir, member->path, &bytes, false, err);
    cv_buffer_free(&bytes);
    return status;
}

static cv_status lose(cv_tree_repair *r, const cv_member *member, cv_status status,
                      const cv_error *why, cv_error *err)
{
    if (!is_damage(status)) {
        if (err) *err = *why;
        return status;
    }
    r->reason = *why;
    judge(r, CATERVA_OUTCOME_LOST);
    return r->made_path && is_attributes(member->path) ? make_group(r, member, err) : CV_OK;
}

static cv_status publish_bytes(const cv_tree_repair *r, cv_place *place, cv_file file,
                               const cv_buffer *bytes, cv_error *err)
{
    bool moved;
    int error = cv_file_write(file, bytes->data, bytes->size, 0);
    if (!error && r->durable) error = cv_file_sync(file);
    if (error) return cv_fail_sys(err, error, "cannot write %s", place->shown.text);
    return cv_place_publish(place, file, (cv_file){0}, r->durable, &moved, err);
}

static cv_status replace_bytes(const cv_tree_repair *r, cv_place *place,
                               const cv_buffer *bytes, cv_error *err)
{
    cv_file file;
    int error = cv_place_create_file(place, &file);
    if (error) return cv_fail_sys(err, error, "cannot create %s", place->shown.text);
    cv_status status = publish_bytes(r, place, file, bytes, err);
    if (status != CV_OK) cv_place_remove_temp(place);
    cv_file_close(&file);
    return status;
}

static cv_status put_in_place(const cv_tree_repair *r, const cv_member *member,
                              const cv_buffer *bytes, cv_error *err)
{
    char *path;
    cv_place place;
    CV_TRY(cv_tree_path(r->tree, member->path, &path, err));
    cv_status status = cv_place_open(path, true, &place, err);
    cv_free(path);
    CV_TRY(status);
    status = replace_bytes(r, &place, bytes, err);
    cv_place_close(&place);
    return status;
}

/* Copies the member to the output unchanged, or writes the repaired bytes. */
static cv_status put(cv_tree_repair *r, const cv_member *member, const cv_buffer *anew,
                     cv_error *mismatch, cv_error *err)
{
    if (anew->size > 0 && r->made_path)
        return cv_make_file(r->made.dir, member->path, anew, false, err);
    if (anew->size > 0) return put_in_place(r, member, anew, err);
    return r->made_path ? copy_bytes(r, member, mismatch, err) : CV_OK;
}

static cv_status repair_other(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_buffer anew = {0};
    bool is_frame = cv_tree_is_leaf(member->path) && member->method == CV_ZIP_STORED;
    cv_error why = {.position = -1}, mismatch = {.code = CATERVA_OK};
    cv_error unread = {.code = CATERVA_OK};
    r->member.kind_name = is_attributes(member->path) ? "attributes"
                          : is_frame                  ? "frame"
                                                      : "file";
    cv_status status = is_frame ? check_frame(r, member, &anew, &unread, &why) : CV_OK;
    if (status == CV_OK) status = put(r, member, &anew, &mismatch, &why);
    bool is_anew = anew.size > 0;
    cv_buffer_free(&anew);
    if (status != CV_OK) return lose(r, member, status, &why, err);
    r->reason = unread.code != CATERVA_OK ? unread : mismatch;
    bool is_good = r->reason.code == CATERVA_OK;
    judge(r, is_anew   ? CATERVA_OUTCOME_WHOLE
             : is_good ? CATERVA_OUTCOME_SOUND
                       : CATERVA_OUTCOME_PARTLY);
    return CV_OK;
}

#define ASIDE ".damaged"

static void begin(cv_tree_repair *r, const char *key, const char *kind_name)
{
    r->reason = (cv_error){.code = CATERVA_OK, .position = -1};
    r->array = (caterva_repair_result)CATERVA_REPAIR_RESULT_INIT;
    r->member = (caterva_tree_repaired){.struct_size = sizeof r->member,
                                        .key = key,
                                        .kind_name = kind_name,
                                        .result = &r->array};
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

static cv_status report(cv_tree_repair *r, caterva_outcome outcome, const cv_error *why,
                        cv_error *err)
{
    begin(r, "/", "tree");
    r->reason = *why;
    judge(r, outcome);
    return finish(r, err);
}

/* Reports that a member had two names, and which one was used. */
static void judge_named(cv_tree_repair *r, const cv_member *member, const char *other)
{
    char taken[80], shown[80];
    if (r->member.outcome == CATERVA_OUTCOME_LOST) return;
    cv_show_text(taken, sizeof taken, member->path);
    cv_show_text(shown, sizeof shown, other);
    (void)cv_fail(&r->reason, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                  "header and directory of the zip archive give different names: %s, "
                  "which was used, and %s",
                  taken, shown);
    judge(r, CATERVA_OUTCOME_PARTLY);
}

/* Judges a member whose header and directory disagreed: at most the member's name is lost. */
static void judge_settled(cv_tree_repair *r, const cv_member *member)
{
    const char *other = cv_members_other_name(&r->tree->contents.members, member);
    if (other) judge_named(r, member, other);
    if (!member->is_settled || r->member.outcome != CATERVA_OUTCOME_SOUND) return;
    (void)cv_fail(&r->reason, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                  "the header at byte %llu and the zip archive's directory contradicted each "
                  "other",
                  (unsigned long long)member->header_pos);
    judge(r, CATERVA_OUTCOME_WHOLE);
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

/* Discards an unreadable journal, which would prevent arrays from being opened. */
static cv_status drop_journal(cv_tree_repair *r, const cv_error *why, cv_error *err)
{
    r->tree->skips_journal = true;
    if (!r->made_path) CV_TRY(put_aside(r, CV_TREE_JOURNAL, CV_TREE_JOURNAL ASIDE, err));
    return report(r, CATERVA_OUTCOME_LOST, why, err);
}

/* Locks a directory against other writers, and finishes an unfinished commit. */
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

static cv_status make_embed(const cv_tree_repair *r, cv_error *err)
{
    cv_buffer bytes = {0};
    cv_dir dir = r->made_path ? r->made.dir : r->tree->dir;
    cv_status status = cv_make_embed(&bytes, err);
    if (status == CV_OK) status = cv_make_file(dir, CV_TREE_EMBED, &bytes, r->durable, err);
    cv_buffer_free(&bytes);
    return status;
}

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

static cv_status read_embed(const cv_tree_repair *r, cv_error *err)
{
    cv_store *store;
    cv_embed embed = {0};
    CV_TRY(cv_tree_embed_store(r->tree, &store, err));
    cv_status status = cv_embed_read(store, &embed, err);
    cv_embed_free(&embed);
    cv_embed_bytes bytes; /* to read its arrays, the codec and filters must be known */
    if (status == CV_OK) status = cv_embedded_open(r->tree, &bytes, err);
    if (status == CV_OK) cv_embedded_close(&bytes);
    return status;
}

static cv_status judge_embed(cv_tree_repair *r, cv_error *err)
{
    int64_t damages = 0;
    cv_error why = {.position = -1};
    cv_status status = verify_embed(r, &damages, &why);
    if (status == CV_OK && damages == 0) return CV_OK;
    if (status != CV_OK && !is_damage(status)) {
        if (err) *err = why;
        return status;
    }
    if (status == CV_OK)
        (void)cv_fail(&why, CATERVA_ECORRUPT, -1,
                      "%s has %lld damaged places: arrays inside it cannot be read",
                      CV_TREE_EMBED, (long long)damages);
    r->reason = why;
    judge(r, CATERVA_OUTCOME_PARTLY);
    return CV_OK;
}

static cv_status lose_embed(cv_tree_repair *r, const cv_error *why, cv_error *err)
{
    if (!r->made_path) CV_TRY(put_aside(r, CV_TREE_EMBED, CV_TREE_EMBED ASIDE, err));
    CV_TRY(make_embed(r, err));
    r->reason = *why;
    judge(r, CATERVA_OUTCOME_LOST);
    return CV_OK;
}

/* Copies embed.b2e. The archive's record of it may be wrong although its bytes could be read. */
static cv_status copy_embed(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    const caterva_tree_repaired before = r->member;
    const cv_error reason = r->reason;
    CV_TRY(repair_other(r, member, err));
    r->member.kind_name = "tree";
    if (before.outcome > r->member.outcome) {
        r->member = before;
        r->reason = reason;
    }
    return CV_OK;
}

/* Repairs embed.b2e; `member` NULL: it does not exist. */
static cv_status repair_embed(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_error why = {.position = -1};
    begin(r, "/", "tree");
    if (!member) {
        (void)cv_fail(&r->reason, CATERVA_ENOTFOUND, -1, "%s did not exist", CV_TREE_EMBED);
        judge(r, CATERVA_OUTCOME_WHOLE);
        CV_TRY(make_embed(r, err));
        return finish(r, err);
    }
    cv_status status = read_embed(r, &why);
    if (status != CV_OK && !is_damage(status)) {
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

/* Makes "/g/x" from "g/x.b2nd". */
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
    if (member->is_unreadable) {
        (void)cv_fail_unreadable(member->path, &r->reason);
        judge(r, CATERVA_OUTCOME_LOST);
        cv_free(key);
        return finish(r, err);
    }
    const char *ending = member->path + cv_tree_stem(member->path);
    bool is_array = strcmp(ending, CV_TREE_ARRAY_SUFFIX) == 0;
    int64_t done = atomic_load(&r->watch.done) + (int64_t)member->size;
    cv_status status = is_array ? repair_array(r, member, err) : repair_other(r, member, err);
    if (status == CV_OK) judge_settled(r, member);
    if (status == CV_OK) status = finish(r, err);
    cv_watch_add(r->reporting, done - atomic_load(&r->watch.done));
    cv_free(key);
    return status;
}

static cv_status repair_members(cv_tree_repair *r, const cv_members *members, cv_error *err)
{
    for (size_t i = 0; i < members->n; i++)
        cv_watch_expect(r->reporting, (int64_t)members->list[i].size);
    CV_TRY(repair_embed(r, cv_members_find(members, CV_TREE_EMBED), err));
    for (size_t i = 0; i < members->n; i++) {
        const char *path = members->list[i].path;
        if (strcmp(path, CV_TREE_EMBED) != 0 && strcmp(path, CV_TREE_JOURNAL) != 0)
            CV_TRY(repair_member(r, &members->list[i], err));
    }
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

static bool is_archive_name(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && memcmp(path + size - 4, ".b2z", 4) == 0;
}

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

/* Opens the output. An archive is packed from a temporary directory beside it. */
static cv_status open_output_tree(cv_tree_repair *r, cv_error *err)
{
    char *path;
    const char *output = r->options.output;
    if (cv_os_same_file(r->tree->path, output))
        return cv_fail(err, CATERVA_EINVAL, -1,
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

static cv_status check_options(const cv_tree_repair *r, cv_error *err)
{
    const caterva_tree_repair_options *o = &r->options;
    if (o->threads < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "the number of threads, %d, is negative",
                       o->threads);
    if (o->durability < CATERVA_DURABILITY_FULL || o->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is unknown",
                       (int)o->durability);
    if (o->output || r->tree->form == CV_TREE_DIRECTORY) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s is an archive, which never changes in place: give an output",
                   r->tree->shown.text);
}

static cv_status run(cv_tree_repair *r, const cv_error *found, cv_error *err)
{
    CV_TRY(check_options(r, err));
    if (r->options.output) CV_TRY(open_output_tree(r, err));
    r->durable = r->options.durability != CATERVA_DURABILITY_NONE;
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
    cv_tree_repair r = {.tree = NULL};
    cv_error found;
    if (!path) return cv_fail(err, CATERVA_EINVAL, -1, "path is NULL");
    CV_TRY(cv_output_check(result, sizeof *result, "tree repair result", err));
    CV_TRY(
        cv_options_read(&r.options, sizeof r.options, options, "tree repair options", err));
    CV_TRY(cv_progress_check(&r.options.progress, err));
    CV_TRY(cv_tree_open_damaged(path, &r.tree, &found, err));
    r.reporting = cv_watch_open(&r.watch, &r.options.progress, NULL);
    cv_status status = cv_watch_close(&r.watch, run(&r, &found, err));
    if (r.made.name) cv_new_directory_close(&r.made);
    cv_free(r.made_path);
    cv_free(r.beside);
    cv_tree_close(r.tree);
    cv_output_fill(result, &r.result, sizeof r.result);
    return status;
}
