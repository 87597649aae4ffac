/* Room: upkeep. Repair: finds a state of the frame (rescue.c) and checks each chunk. Then it
 * restores the header, or copies everything that is readable into a new array. */
#include "upkeep/upkeep.h"

#include "array/array.h"
#include "array/open.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "engine/items/copy.h"
#include "engine/write/transfer.h"
#include "format/array_meta.h"
#include "frame/attributes.h"
#include "frame/commit.h"
#include "frame/lookup.h"
#include "frame/txn.h"
#include "store/open.h"
#include "store/path.h"
#include "upkeep/rescue.h"
#include "upkeep/verify.h"

#include <caterva_upkeep.h>
#include <string.h>

/* ---- Salvage ----------------------------------------------------------------------- */

typedef struct cv_salvage {
    const cv_source *source;
    int64_t n_known;              /* chunks from here on have no known position */
    bool refound;                 /* no index: chunks not named in the seal are lost, too */
    const uint8_t *fill;          /* one item for lost chunks; NULL: zeros */
    caterva_verify_options check; /* callbacks for damage and progress */
    uint8_t *lost; /* one bit per chunk; salvage_check sets it, salvage_free frees it */
    caterva_verify_result result;
} cv_salvage;

/* ---- Checks -------------------------------------------------------------- */

static void lose(cv_salvage *salvage, int64_t chunk, const char *why)
{
    const caterva_verify_options *o = &salvage->check;
    const cv_damage_sink sink = {o->on_damage, o->context};
    cv_error error;
    (void)cv_fail(&error, CATERVA_ECORRUPT, -1, "chunk %lld %s", (long long)chunk, why);
    cv_damage_report(&sink, &salvage->source->snapshot->grid, chunk, &error);
    salvage->lost[chunk / 8] |= (uint8_t)(1 << chunk % 8);
    salvage->result.damages++;
    salvage->result.damaged_chunks++;
}

static void lose_unknown(cv_salvage *salvage)
{
    int64_t n = salvage->source->snapshot->grid.n_chunks;
    for (int64_t i = salvage->n_known; i < n; i++)
        lose(salvage, i, "has no known position: the index is lost");
}

/* Marks chunks as lost that were not found by name: special chunks have no names, and chunks of
 * other writers may have none. */
static void lose_nameless(cv_salvage *salvage)
{
    int64_t n = salvage->source->snapshot->grid.n_chunks;
    for (int64_t i = 0; i < n && salvage->refound; i++) {
        cv_chunk_ref ref = {0};
        bool known = cv_source_find(salvage->source, i, &ref, NULL) == CV_OK &&
                     ref.kind == CV_REF_STORED && ref.name != 0;
        if (!known && !cv_is_lost(salvage->lost, i))
            lose(salvage, i, "was not found without the index");
    }
}

/* Rejects an index with more chunks than the file has room for: the copy would have the fill for
 * each of them, in any number of bytes. */
static cv_status check_room(const cv_salvage *salvage, cv_error *err)
{
    const cv_source *source = salvage->source;
    cv_store *store = source->frame->store;
    const cv_index *index;
    if (cv_snapshot_index(source->snapshot, store, &index, NULL) != CV_OK) return CV_OK;
    return cv_snapshot_check_room(source->snapshot, store, cv_index_count_stored(index), err);
}

static cv_status salvage_check(cv_salvage *salvage, cv_error *err)
{
    int64_t n = salvage->source->snapshot->grid.n_chunks;
    CV_TRY(check_room(salvage, err));
    size_t size = (size_t)n / 8 + 1;
    salvage->lost = cv_calloc(size, 1);
    if (!salvage->lost) return cv_fail_memory(err, size, "a list of chunks");
    CV_TRY(cv_verify(salvage->source, &salvage->check, salvage->lost, &salvage->result, err));
    lose_unknown(salvage);
    lose_nameless(salvage);
    return CV_OK;
}

static void salvage_free(cv_salvage *salvage)
{
    cv_free(salvage->lost);
    salvage->lost = NULL;
}

/* Checks the library's own attribute. An array with an invalid one cannot be opened. */
static cv_status check_own(const cv_buffer *value, int32_t item_size, cv_error *err)
{
    cv_own own = {0};
    CV_TRY(cv_own_parse(value->data, value->size, &own, err));
    if (!own.fill || own.fill_size == (uint32_t)item_size) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1, "the fill value has %u bytes, items have %d",
                   own.fill_size, item_size);
}

static cv_status check_attribute(const cv_snapshot *state, const cv_metalayer *attribute,
                                 cv_error *err)
{
    cv_buffer value = {0};
    if (strcmp(attribute->name, CV_OWN_ATTRIBUTE) != 0)
        return cv_frame_attribute_check(attribute, err);
    cv_status status = cv_frame_attribute(attribute, &value, NULL, err);
    if (status == CV_OK) status = check_own(&value, state->grid.item_size, err);
    cv_buffer_free(&value);
    return status;
}

/* Moves unreadable attributes of a private state behind the end of its list, where
 * salvage_report_attributes finds them. */
static cv_status salvage_attributes(cv_snapshot *state, int *n_lost, cv_error *err)
{
    cv_trailer *t = &state->trailer;
    int kept = 0;
    for (int i = 0; i < t->n_attributes; i++) {
        cv_error error = {0};
        cv_metalayer attribute = t->attributes[i];
        cv_status status = check_attribute(state, &attribute, &error);
        if (status == CATERVA_ENOMEM && err) *err = error;
        if (status == CATERVA_ENOMEM) return status;
        if (status != CV_OK) continue;
        t->attributes[i] = t->attributes[kept];
        t->attributes[kept++] = attribute;
    }
    *n_lost = t->n_attributes - kept;
    t->n_attributes = kept;
    return CV_OK;
}

static void salvage_report_attributes(const cv_snapshot *state, int n_lost,
                                      const cv_damage_sink *sink)
{
    for (int i = 0; i < n_lost; i++) {
        const cv_metalayer *lost =
            &state->trailer.attributes[state->trailer.n_attributes + i];
        cv_error reason = {0}, error;
        cv_status status = check_attribute(state, lost, &reason);
        (void)cv_fail(&error, status, reason.position, "attribute \"%s\" is lost: %.160s",
                      lost->name, reason.message);
        cv_damage_report(sink, &state->grid, -1, &error);
    }
}

/* ---- Copying ------------------------------------------------------------- */

typedef struct copying {
    const cv_salvage *salvage;
    cv_txn *txn;
    cv_ref_kind initial; /* kind of chunks of the new frame that are not put */
    cv_worker *worker;   /* of the source */
    cv_buffer filled;    /* replaces lost chunks; encoded on first use */
} copying;

static cv_status put_fill(copying *c, int64_t chunk, cv_error *err)
{
    const cv_source *source = c->salvage->source;
    size_t size = (size_t)source->snapshot->grid.item_size;
    if (!c->salvage->fill || cv_all_zero(c->salvage->fill, size))
        return c->initial == CV_REF_ZEROS
                   ? CV_OK
                   : cv_txn_put_special(c->txn, chunk, CV_REF_ZEROS, err);
    if (c->filled.size == 0)
        CV_TRY(cv_encode_repeated(&source->workers->spec, c->salvage->fill, &c->filled, err));
    return cv_txn_put(c->txn, chunk, &c->filled, err);
}

/* Skips chunks that need not be put into the new frame. */
static int64_t next_chunk(const copying *c, int64_t chunk)
{
    const cv_snapshot *s = c->salvage->source->snapshot;
    const cv_index *index = &s->index;
    int64_t entry = cv_offset_of_kind(c->initial);
    if (!atomic_load(&s->index_ready) || c->salvage->source->pending) return chunk;
    while (chunk < index->n && cv_index_get(index, chunk) == entry &&
           !cv_is_lost(c->salvage->lost, chunk))
        chunk++;
    return chunk;
}

static cv_status copy_chunk(copying *c, int64_t chunk, cv_error *err)
{
    cv_chunk_ref ref;
    if (cv_is_lost(c->salvage->lost, chunk)) return put_fill(c, chunk, err);
    CV_TRY(cv_source_find(c->salvage->source, chunk, &ref, err));
    if (ref.kind == c->initial) return CV_OK;
    return cv_transfer_chunk(c->salvage->source, chunk, c->txn, chunk, c->worker, err);
}

static cv_status copy_chunks(const cv_salvage *salvage, cv_ref_kind initial, cv_frame *target,
                             cv_error *err)
{
    copying c = {.salvage = salvage, .initial = initial};
    const cv_grid *grid = &salvage->source->snapshot->grid;
    int64_t n = grid->n_chunks;
    CV_TRY(cv_txn_begin(target, &c.txn, err));
    cv_watch watch; /* stops the copy; its progress is complete from the beginning */
    cv_watch *reporting =
        cv_watch_open_fixed(&watch, &salvage->check.progress, n * grid->chunk_bytes, NULL);
    cv_status status = cv_worker_take(salvage->source->workers, &c.worker, err);
    if (status == CV_OK) status = cv_watch_step(reporting, n * grid->chunk_bytes, err);
    for (int64_t i = 0; status == CV_OK && (i = next_chunk(&c, i)) < n; i++) {
        status = copy_chunk(&c, i, err);
        if (status == CV_OK) status = cv_watch_tick(reporting, 0, err);
    }
    cv_txn_set_watch(c.txn, reporting);
    if (status == CV_OK) status = cv_txn_commit(c.txn, err);
    cv_watch_close(&watch, status);
    cv_worker_give(salvage->source->workers, c.worker);
    cv_buffer_free(&c.filled);
    cv_txn_free(c.txn);
    return status;
}

/* Chooses the kind of the first chunk, if it is special: then the new index needs memory only for
 * chunks unlike the first. */
static cv_ref_kind initial_kind(const cv_salvage *salvage)
{
    cv_chunk_ref ref;
    if (salvage->source->snapshot->grid.n_chunks == 0 || cv_is_lost(salvage->lost, 0))
        return CV_REF_ZEROS;
    if (cv_source_find(salvage->source, 0, &ref, NULL) != CV_OK) return CV_REF_ZEROS;
    return ref.kind == CV_REF_STORED ? CV_REF_ZEROS : ref.kind;
}

/* Copies everything that is not lost into `store`, which it takes over, and commits: chunks as
 * stored, the fill for lost chunks, and attributes. Call after salvage_check. */
static cv_status salvage_copy(const cv_salvage *salvage, cv_store *store,
                              caterva_durability durability, cv_error *err)
{
    const cv_snapshot *s = salvage->source->snapshot;
    cv_frame *target;
    cv_ref_kind initial = initial_kind(salvage);
    cv_frame_seed seed = {.header = s->header,
                          .attributes = s->trailer.attributes,
                          .n_attributes = s->trailer.n_attributes,
                          .initial_offset = cv_offset_of_kind(initial)};
    CV_TRY(cv_frame_create(store, &seed, durability, &target, err));
    cv_status status = copy_chunks(salvage, initial, target, err);
    cv_frame_close(target);
    return status;
}

typedef struct repair {
    const char *url;
    caterva_repair_options options;
    caterva_repair_result result;
    cv_store *store;      /* until a frame owns it */
    cv_rescue rescue;     /* owns the state until a frame does */
    caterva_array *array; /* of the state that was found */
    uint8_t *fill;        /* one item for lost chunks */
} repair;

static cv_status read_options(repair *r, const caterva_repair_options *options, cv_error *err)
{
    caterva_repair_options *o = &r->options;
    CV_TRY(cv_options_read(o, sizeof *o, options, "repair options", err));
    CV_TRY(cv_progress_check(&o->progress, err));
    if (o->threads < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "threads is %d, less than 0", o->threads);
    if (o->durability < CATERVA_DURABILITY_FULL || o->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)o->durability);
    if (strcmp(r->url, "mem:") == 0 || (o->output && strcmp(o->output, "mem:") == 0))
        return cv_fail(err, CATERVA_EINVAL, -1, "only files and directories can be repaired");
    return CV_OK;
}

/* ---- Finding and checking ------------------------------------------------ */

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

/* Calls on_found, which may set the fill, before the first report of damage. */
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

static void report_unverified(const cv_snapshot *state, const cv_damage_sink *sink)
{
    cv_error error;
    (void)cv_fail(&error, CATERVA_ECORRUPT, (int64_t)state->index_pos,
                  "the seal is lost: the index at byte %llu cannot be verified",
                  (unsigned long long)state->index_pos);
    cv_damage_report(sink, &state->grid, -1, &error);
}

static cv_status find_state(repair *r, cv_error *err)
{
    bool writable = !r->options.output;
    if (!r->store) CV_TRY(cv_store_open(r->url, 0, writable, &r->store, err));
    CV_TRY(cv_rescue_find(r->store, r->options.guess != 0, &r->rescue, err));
    CV_TRY(salvage_attributes(r->rescue.state, &r->result.lost_attributes, err));
    CV_TRY(open_state(r, err));
    CV_TRY(introduce(r, err));
    const cv_snapshot *state = r->array->snapshot;
    const cv_damage_sink sink = {r->options.on_damage, r->options.context};
    if (r->rescue.reason.code != CATERVA_OK)
        cv_damage_report(&sink, &state->grid, -1, &r->rescue.reason);
    if (r->rescue.unverified) report_unverified(state, &sink);
    salvage_report_attributes(state, r->result.lost_attributes, &sink);
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
                  .context = o->context,
                  .progress = o->progress},
    };
    CV_TRY(salvage_check(salvage, err));
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

/* ---- Restoring ----------------------------------------------------------- */

/* Creates the output. Refuses to replace the damaged array, whatever name it is given by. */
static cv_status create_output(const repair *r, const char *output, cv_store **out,
                               cv_error *err)
{
    bool sparse = r->array->snapshot->header.sparse;
    if (cv_os_same_file(r->url, output))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the output is the damaged array itself, which is never replaced");
    return cv_store_create(output, sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS,
                           r->options.overwrite != 0, out, err);
}

typedef cv_status (*restore_fn)(cv_store *, const cv_snapshot *, bool, cv_error *);

static cv_status restore(repair *r, restore_fn put_back, cv_error *err)
{
    bool durable = r->options.durability != CATERVA_DURABILITY_NONE;
    CV_TRY(put_back(r->array->frame->store, r->array->snapshot, durable, err));
    r->result.in_place = 1;
    return CV_OK;
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
    if (status == CV_OK) status = salvage_copy(salvage, store, r->options.durability, err);
    if (status == CV_OK) r->result.written = 1;
    return status;
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
        return r->options.output ? write_output(r, salvage, err)
                                 : restore(r, cv_rescue_write_copy, err);
    bool is_header = r->rescue.found == CATERVA_FOUND_COPY && !r->rescue.refound;
    if (!r->result.complete || r->options.output || !is_header)
        return is_sound(r) ? CV_OK : write_output(r, salvage, err);
    return restore(r, cv_rescue_write_header, err);
}

/* Runs the repair, releases `r` and fills the result, also after a failure. */
static cv_status repair_and_release(repair *r, caterva_repair_result *result, cv_error *err)
{
    cv_salvage salvage = {0};
    cv_status status = run(r, &salvage, err);
    salvage_free(&salvage);
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
    if (cv_array_is_leaf_url(url)) {
        CV_TRY(cv_check_built(cv_wings.tree, "CATERVA_TREES", err));
        CV_TRY(cv_wings.tree->leaf_file(url, &file, err));
    }
    if (file) r.url = file;
    cv_status status = repair_and_release(&r, result, err);
    cv_free(file);
    return status;
}
