/* Room: array. Repair of one member of a tree. Promises: what stays damaged is not replaced
 * but by what holds all that it held; a copy says when a checksum of the archive is wrong. */
#include "array/repair.h"
#include "array/tree_repair_member.h"
#include "base/heap.h"
#include "frame/snapshot.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "tree/names.h"

#include <stdio.h>
#include <string.h>

static const char suffix[] = ".repaired";

/* ---- Between the repair of an array and the caller -------------------------------------- */

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
    const cv_copy_watch *w = &r->watch;
    return w->tell ? w->tell(w->context, w->done, w->total) : 0;
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
    o.on_progress = on_progress;
    o.context = r;
    return o;
}

bool cv_tree_repair_is_damage(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED ||
           status == CATERVA_ENOTFOUND;
}

void cv_tree_repair_judge(cv_tree_repair *r, caterva_outcome outcome)
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
    return cv_fail_sys(err, error, "cannot make %s", cv_show_path(member->path).text);
}

static cv_status check_checksum(const cv_tree_repair *r, const cv_member *member,
                                uint32_t crc, cv_error *err)
{
    if (r->tree->form != CV_TREE_ARCHIVE || crc == member->crc) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                   "the member at byte %llu has the checksum %08x, it should be %08x",
                   (unsigned long long)member->header_pos, crc, member->crc);
}

/* Its bytes as they are; *why: the checksum is wrong, and they were copied. */
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
        status = cv_copy_bytes(&source, file, 0, &r->watch, &crc, err);
        cv_file_close(&file);
    }
    cv_copy_source_close(&source);
    if (status == CV_OK) (void)check_checksum(r, member, crc, why);
    return status;
}

/* ---- Arrays ------------------------------------------------------------------------------ */

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
    caterva_repair_result *result = &r->member.result;
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

/* The new array, which holds all that the damaged one held, takes its place. */
static cv_status replace(const cv_tree_repair *r, const char *path, cv_error *err)
{
    cv_place place;
    CV_TRY(cv_place_open(path, true, &place, err));
    int size = snprintf(place.temp, sizeof place.temp, "%s%s", place.name, suffix);
    cv_status status = CV_OK; /* where the names are too long, both stay */
    if (size < (int)sizeof place.temp) status = publish(&place, r->durable, err);
    cv_place_close(&place);
    return status;
}

static cv_status settle_beside(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    char *path;
    if (!r->member.result.written) return CV_OK;
    if (r->member.result.complete) {
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
    cv_tree_repair_judge(r, outcome_of(&r->member.result));
    return settle_beside(r, member, err);
}

/* Whether a sound array is sound to its last byte. */
static void judge_copy(cv_tree_repair *r, const cv_error *why)
{
    caterva_outcome outcome = CATERVA_OUTCOME_SOUND;
    if (why->code != CATERVA_OK) {
        r->reason = *why;
        bool vouched = r->member.result.unverified_chunks == 0;
        outcome = vouched ? CATERVA_OUTCOME_WHOLE : CATERVA_OUTCOME_PARTLY;
    }
    cv_tree_repair_judge(r, outcome);
}

static cv_status repair_into_output(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    char *output;
    cv_error why = {.code = CATERVA_OK};
    CV_TRY(cv_make_parents(r->made.dir, member->path, false, err));
    CV_TRY(join(r->made_path, "/", member->path, &output, err));
    cv_status status = repair_to(r, member, output, err);
    cv_free(output);
    CV_TRY(status);
    cv_tree_repair_judge(r, outcome_of(&r->member.result));
    if (r->member.result.written) return CV_OK;
    CV_TRY(copy_bytes(r, member, &why, err));
    judge_copy(r, &why);
    return CV_OK;
}

cv_status cv_tree_repair_array(cv_tree_repair *r, const cv_member *member, cv_error *err)
{
    cv_error why = {.position = -1};
    r->member.kind_name = "array";
    cv_status status =
        r->made_path ? repair_into_output(r, member, &why) : repair_in_place(r, member, &why);
    if (status == CV_OK) return CV_OK;
    if (status == CATERVA_EUNSUPPORTED) return cv_tree_repair_other(r, member, err);
    if (cv_tree_repair_is_damage(status)) {
        r->reason = why;
        cv_tree_repair_judge(r, CATERVA_OUTCOME_LOST);
        return CV_OK;
    }
    if (err) *err = why;
    return status;
}

/* ---- What is no array -------------------------------------------------------------------- */

/* Whether its header can be read, and says that it is no array. */
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

/* Attributes are whole where their header alone is damaged: `anew` is their leaf with another
 * header, and *why what was wrong. */
static cv_status remake(const cv_snapshot *s, cv_buffer *anew, cv_error *why, cv_error *err)
{
    if (cv_snapshot_check_header(s, why) == CV_OK) return CV_OK;
    return cv_make_group_with(s->trailer.attributes, s->trailer.n_attributes, NULL, anew,
                              err);
}

/* What is no array and nobody here can read is as it is; attributes that cannot be read are
 * lost. *why: it should be an array, and what its header says is nothing that this library
 * knows; nobody can say whether it is damaged. Or it is put right by the bytes in `anew`. */
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

/* The group stays where its attributes cannot. */
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
    if (!cv_tree_repair_is_damage(status)) {
        if (err) *err = *why;
        return status;
    }
    r->reason = *why;
    cv_tree_repair_judge(r, CATERVA_OUTCOME_LOST);
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

/* As it is, into the output; or what puts it right, where it goes. */
static cv_status put(cv_tree_repair *r, const cv_member *member, const cv_buffer *anew,
                     cv_error *mismatch, cv_error *err)
{
    if (anew->size > 0 && r->made_path)
        return cv_make_file(r->made.dir, member->path, anew, false, err);
    if (anew->size > 0) return put_in_place(r, member, anew, err);
    return r->made_path ? copy_bytes(r, member, mismatch, err) : CV_OK;
}

cv_status cv_tree_repair_other(cv_tree_repair *r, const cv_member *member, cv_error *err)
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
    cv_tree_repair_judge(r, is_anew   ? CATERVA_OUTCOME_WHOLE
                            : is_good ? CATERVA_OUTCOME_SOUND
                                      : CATERVA_OUTCOME_PARTLY);
    return CV_OK;
}
