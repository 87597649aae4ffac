/* Room: array. Repair: a state is found, checked chunk by chunk, and either its
 * header is put back or what can be read goes into a new array. */
#include "array/repair.h"

#include "array/array.h"
#include "array/describe.h"
#include "array/leaf.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "engine/jobs/salvage.h"
#include "frame/repair/rescue.h"
#include "frame/txn.h"
#include "store/fallbacks.h"
#include "store/open.h"

#include <string.h>

typedef struct repair {
    const char *url;
    caterva_repair_options options;
    caterva_repair_result result;
    cv_store *store;      /* until a frame owns it */
    cv_rescue rescue;     /* its state likewise */
    caterva_array *array; /* of the state that was found */
    uint8_t *fill;        /* one item for lost chunks */
} repair;

static cv_status read_options(repair *r, const caterva_repair_options *options, cv_error *err)
{
    static const caterva_repair_options defaults = CATERVA_REPAIR_INIT;
    caterva_repair_options *o = &r->options;
    CV_TRY(
        cv_options_copy(o, sizeof *o, options ? options : &defaults, "repair options", err));
    if (o->threads < 0) return cv_fail(err, CATERVA_EINVAL, -1, "%d threads", o->threads);
    if (o->durability < CATERVA_DURABILITY_FULL || o->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)o->durability);
    if (strcmp(r->url, "mem:") == 0 || (o->output && strcmp(o->output, "mem:") == 0))
        return cv_fail(err, CATERVA_EINVAL, -1, "only files and directories are repaired");
    return CV_OK;
}

/* ---- Finding and checking ----------------------------------------------- */

static cv_status open_state(repair *r, cv_error *err)
{
    cv_frame *frame;
    cv_store *store = r->store;
    cv_snapshot *state = r->rescue.state;
    r->store = NULL;
    r->rescue.state = NULL;
    CV_TRY(cv_frame_open_state(store, state, r->options.durability, &frame, err));
    return cv_array_new(frame, false, r->options.threads, &r->array, err);
}

/* The caller hears what was found before the first damage, and has a say in what
 * lost chunks become. */
static cv_status introduce(repair *r, cv_error *err)
{
    const cv_description *found;
    size_t size = (size_t)r->array->snapshot->grid.item_size;
    if (!r->array->fill && !r->options.on_found) return CV_OK; /* zeros */
    r->fill = cv_calloc(1, size);
    if (!r->fill) return cv_fail_memory(err, size, "the fill");
    if (r->array->fill) memcpy(r->fill, r->array->fill, size);
    if (!r->options.on_found) return CV_OK;
    CV_TRY(cv_array_describe(r->array, &found, err));
    bool stop = r->options.on_found(r->options.context, &found->info, r->fill) != 0;
    cv_description_release(found);
    return stop ? cv_fail(err, CATERVA_ESTOPPED, -1, "stopped") : CV_OK;
}

static void tell_unvouched(const cv_snapshot *state, const cv_damage_sink *sink)
{
    cv_error error;
    (void)cv_fail(&error, CATERVA_ECORRUPT, (int64_t)state->index_pos,
                  "the seal is lost: what the index at byte %llu says cannot be checked",
                  (unsigned long long)state->index_pos);
    cv_damage_tell(sink, &state->grid, -1, &error);
}

static cv_status find_state(repair *r, cv_error *err)
{
    bool writable = !r->options.output;
    if (!r->store) CV_TRY(cv_store_open(r->url, 0, writable, &r->store, err));
    CV_TRY(cv_rescue_find(r->store, r->options.guess != 0, &r->rescue, err));
    CV_TRY(cv_salvage_attributes(r->rescue.state, &r->result.lost_attributes, err));
    CV_TRY(open_state(r, err));
    CV_TRY(introduce(r, err));
    const cv_snapshot *state = r->array->snapshot;
    const cv_damage_sink sink = {r->options.on_damage, r->options.context};
    if (r->rescue.reason.code != CATERVA_OK)
        cv_damage_tell(&sink, &state->grid, -1, &r->rescue.reason);
    if (r->rescue.unvouched) tell_unvouched(state, &sink);
    cv_salvage_tell_attributes(state, r->result.lost_attributes, &sink);
    return CV_OK;
}

static cv_status check_chunks(repair *r, cv_salvage *salvage, const cv_source *source,
                              cv_error *err)
{
    const caterva_repair_options *o = &r->options;
    *salvage = (cv_salvage){
        .source = source,
        .n_known = r->rescue.n_known,
        .refound = r->rescue.refound,
        .fill = r->fill,
        .check = {.struct_size = sizeof salvage->check,
                  .on_damage = o->on_damage,
                  .on_progress = o->on_progress,
                  .context = o->context},
    };
    CV_TRY(cv_salvage_check(salvage, err));
    caterva_repair_result *result = &r->result;
    result->found = r->rescue.found;
    result->n_chunks = source->snapshot->grid.n_chunks;
    result->lost_chunks = salvage->result.damaged_chunks;
    result->unverified_chunks = salvage->result.unverified_chunks;
    if (r->rescue.trailer_lost) result->lost_attributes = -1;
    result->complete = result->lost_chunks == 0 && result->lost_attributes == 0 &&
                       result->found <= CATERVA_FOUND_COPY;
    return CV_OK;
}

/* ---- Restoring ---------------------------------------------------------- */

static cv_status restore_header(repair *r, cv_error *err)
{
    bool durable = r->options.durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_rescue_write_header(r->array->frame->store, r->array->snapshot, durable, err));
    r->result.in_place = 1;
    return CV_OK;
}

/* The damaged array stays as it is, whatever its repair is called. */
static cv_status create_output(const repair *r, const char *output, cv_store **out,
                               cv_error *err)
{
    bool sparse = r->array->snapshot->header.sparse;
    if (cv_os_same_file(r->url, output))
        return cv_fail(err, CATERVA_EEXIST, -1,
                       "the output is the damaged array itself, which is never replaced");
    return cv_store_create(output, sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS,
                           r->options.overwrite != 0, out, err);
}

static cv_status write_output(repair *r, const cv_salvage *salvage, cv_error *err)
{
    static const char suffix[] = ".repaired";
    size_t size = strlen(r->url);
    char *chosen = NULL;
    cv_store *store;
    while (size > 1 && r->url[size - 1] == '/') size--;
    if (!r->options.output) {
        chosen = cv_malloc(size + sizeof suffix);
        if (!chosen) return cv_fail_memory(err, size + sizeof suffix, "a path");
        memcpy(chosen, r->url, size);
        memcpy(chosen + size, suffix, sizeof suffix);
    }
    cv_status status = create_output(r, chosen ? chosen : r->options.output, &store, err);
    cv_free(chosen);
    if (status == CV_OK) status = cv_salvage_copy(salvage, store, r->options.durability, err);
    if (status == CV_OK) r->result.written = 1;
    return status;
}

/* Only the copy of the header is damaged: it is there again when the header will be. */
static cv_status restore_copy(repair *r, cv_error *err)
{
    bool durable = r->options.durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_rescue_write_copy(r->array->frame->store, r->array->snapshot, durable, err));
    r->result.in_place = 1;
    return CV_OK;
}

static bool is_sound(const repair *r)
{
    return r->result.complete && r->rescue.reason.code == CATERVA_OK;
}

static cv_status look_at_copy(const repair *r, bool *is_damaged, cv_error *err)
{
    cv_error why;
    cv_status status = cv_tail_check_copy(r->array->snapshot, r->array->frame->store, &why);
    *is_damaged = status == CATERVA_ECORRUPT;
    if (status == CV_OK || *is_damaged) return CV_OK;
    if (err) *err = why;
    return status;
}

static cv_status run(repair *r, cv_salvage *salvage, cv_error *err)
{
    CV_TRY(find_state(r, err));
    cv_source source = cv_array_source(r->array);
    source.scan = true;
    CV_TRY(check_chunks(r, salvage, &source, err));
    bool lacks_copy = false;
    if (is_sound(r)) CV_TRY(look_at_copy(r, &lacks_copy, err));
    if (lacks_copy)
        return r->options.output ? write_output(r, salvage, err) : restore_copy(r, err);
    bool is_header = r->rescue.found == CATERVA_FOUND_COPY && !r->rescue.refound;
    if (!r->result.complete || r->options.output || !is_header)
        return is_sound(r) ? CV_OK : write_output(r, salvage, err);
    return restore_header(r, err);
}

/* Releases all that `r` holds, and tells what was found, also on failure. */
static cv_status repair_and_release(repair *r, caterva_repair_result *result, cv_error *err)
{
    cv_salvage salvage = {0};
    cv_status status = run(r, &salvage, err);
    cv_salvage_free(&salvage);
    cv_array_free(r->array);
    cv_snapshot_release(r->rescue.state);
    cv_store_close(r->store);
    cv_free(r->fill);
    cv_output_fill(result, &r->result, sizeof r->result);
    return status;
}

cv_status cv_array_repair_store(cv_store *store, const char *name,
                                const caterva_repair_options *options,
                                caterva_repair_result *result, cv_error *err)
{
    repair r = {.url = name, .store = store, .options = *options};
    return repair_and_release(&r, result, err);
}

caterva_status caterva_repair(const char *url, const caterva_repair_options *options,
                              caterva_repair_result *result, caterva_error *err)
{
    if (!url) return cv_fail(err, CATERVA_EINVAL, -1, "url is NULL");
    CV_TRY(cv_output_check(result, sizeof *result, "repair result", err));
    CV_TRY(cv_refuse_url(url, err));
    repair r = {.url = url};
    char *file = NULL; /* of a leaf of a tree */
    CV_TRY(read_options(&r, options, err));
    if (cv_array_is_leaf_url(url)) CV_TRY(cv_array_leaf_file(url, &file, err));
    if (file) r.url = file;
    cv_status status = repair_and_release(&r, result, err);
    cv_free(file);
    return status;
}
