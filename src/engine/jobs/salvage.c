/* Room: engine/jobs. Salvage: verify says which chunks can be read, the others are
 * replaced by the fill on the way into a new frame. How the state of the frame was
 * found is not known here. */
#include "engine/jobs/salvage.h"

#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/jobs/verify.h"
#include "engine/write/transfer.h"
#include "format/array_meta.h"
#include "frame/attributes.h"
#include "frame/commit.h"
#include "frame/lookup.h"
#include "frame/put.h"

#include <string.h>

/* ---- Checking ----------------------------------------------------------- */

static void lose(cv_salvage *salvage, int64_t chunk, const char *why)
{
    const caterva_verify_options *o = &salvage->check;
    const cv_damage_sink sink = {o->on_damage, o->context};
    cv_error error;
    (void)cv_fail(&error, CATERVA_ECORRUPT, -1, "chunk %lld %s", (long long)chunk, why);
    cv_damage_tell(&sink, &salvage->source->snapshot->grid, chunk, &error);
    salvage->lost[chunk / 8] |= (uint8_t)(1 << chunk % 8);
    salvage->result.damages++;
    salvage->result.damaged_chunks++;
}

static void lose_unknown(cv_salvage *salvage)
{
    int64_t n = salvage->source->snapshot->grid.n_chunks;
    for (int64_t i = salvage->n_known; i < n; i++)
        lose(salvage, i, "has no known place: the index is lost");
}

/* Special chunks have no names, and of others it may be that none was found. */
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

/* An index that names more chunks than there can be is none to repair by: the fill in
 * the place of each could take any number of bytes. */
static cv_status check_room(const cv_salvage *salvage, cv_error *err)
{
    const cv_source *source = salvage->source;
    cv_store *store = source->frame->store;
    const cv_index *index;
    if (cv_snapshot_index(source->snapshot, store, &index, NULL) != CV_OK) return CV_OK;
    return cv_snapshot_check_room(source->snapshot, store, cv_index_count_stored(index), err);
}

cv_status cv_salvage_check(cv_salvage *salvage, cv_error *err)
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

void cv_salvage_free(cv_salvage *salvage)
{
    cv_free(salvage->lost);
    salvage->lost = NULL;
}

/* ---- Attributes --------------------------------------------------------- */

/* Ours must be what we write, or the array would not open. */
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

cv_status cv_salvage_attributes(cv_snapshot *state, int *n_lost, cv_error *err)
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

void cv_salvage_tell_attributes(const cv_snapshot *state, int n_lost,
                                const cv_damage_sink *sink)
{
    for (int i = 0; i < n_lost; i++) {
        const cv_metalayer *lost =
            &state->trailer.attributes[state->trailer.n_attributes + i];
        cv_error reason = {0}, error;
        cv_status status = check_attribute(state, lost, &reason);
        (void)cv_fail(&error, status, reason.position, "attribute \"%s\" is lost: %.160s",
                      lost->name, reason.message);
        cv_damage_tell(sink, &state->grid, -1, &error);
    }
}

/* ---- Copying ------------------------------------------------------------ */

typedef struct copying {
    const cv_salvage *salvage;
    cv_txn *txn;
    cv_ref_kind initial; /* what the new frame's chunks are before they are put */
    cv_worker *worker;   /* of the source */
    cv_buffer filled;    /* the chunk that lost ones become; encoded at first need */
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

/* The chunk behind a run of those that the new frame begins with anyway. */
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
    int64_t n = salvage->source->snapshot->grid.n_chunks;
    CV_TRY(cv_txn_begin(target, &c.txn, err));
    cv_watch watch; /* all chunks were checked: what is told is no more than that */
    cv_watch_init_steps(&watch, salvage->check.on_progress, salvage->check.context, NULL);
    cv_watch_set_steps(&watch, n);
    cv_status status = cv_worker_take(salvage->source->workers, &c.worker, err);
    if (status == CV_OK) status = cv_watch_step(&watch, n, err);
    for (int64_t i = 0; status == CV_OK && (i = next_chunk(&c, i)) < n; i++) {
        status = copy_chunk(&c, i, err);
        if (status == CV_OK) status = cv_watch_tick(&watch, 0, err);
    }
    cv_txn_set_watch(c.txn, &watch);
    if (status == CV_OK) status = cv_txn_commit(c.txn, err);
    cv_watch_destroy(&watch);
    cv_worker_give(salvage->source->workers, c.worker);
    cv_buffer_free(&c.filled);
    cv_txn_free(c.txn);
    return status;
}

/* The new index costs memory only where a chunk is not like the first one. */
static cv_ref_kind initial_kind(const cv_salvage *salvage)
{
    cv_chunk_ref ref;
    if (salvage->source->snapshot->grid.n_chunks == 0 || cv_is_lost(salvage->lost, 0))
        return CV_REF_ZEROS;
    if (cv_source_find(salvage->source, 0, &ref, NULL) != CV_OK) return CV_REF_ZEROS;
    return ref.kind == CV_REF_STORED ? CV_REF_ZEROS : ref.kind;
}

cv_status cv_salvage_copy(const cv_salvage *salvage, cv_store *store,
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
