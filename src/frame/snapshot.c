/* Room: frame. What a snapshot is made of, and what follows from its header: metalayer
 * against header, both against the grid. It is loaded by snapshot_load.c. Nothing here
 * reads what is stored, or knows of blocks or selections. */
#include "frame/snapshot.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "frame/attribute.h"
#include "frame/kinds.h"

cv_snapshot *cv_snapshot_new(void)
{
    cv_snapshot *snapshot = cv_calloc(1, sizeof *snapshot);
    if (!snapshot) return NULL;
    atomic_init(&snapshot->references, 1);
    atomic_init(&snapshot->index_ready, false);
    atomic_init(&snapshot->index_lookups, 0);
    atomic_init(&snapshot->head_ready, false);
    atomic_init(&snapshot->attributes, NULL);
    cv_mutex_init(&snapshot->index_lock);
    cv_mutex_init(&snapshot->head_lock);
    return snapshot;
}

void cv_snapshot_retain(cv_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
}

void cv_snapshot_release(cv_snapshot *snapshot)
{
    if (!snapshot) return;
    if (atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) > 1) return;
    cv_buffer_free(&snapshot->header_bytes);
    cv_buffer_free(&snapshot->trailer_bytes);
    cv_attributes_free(atomic_load(&snapshot->attributes));
    cv_trailer_free(&snapshot->trailer);
    cv_index_free(&snapshot->index);
    cv_seal_head_free(&snapshot->head);
    cv_mutex_destroy(&snapshot->index_lock);
    cv_mutex_destroy(&snapshot->head_lock);
    cv_free(snapshot);
}

/* ---- Attributes --------------------------------------------------------- */

uint32_t cv_snapshot_name(const cv_snapshot *s)
{
    uint32_t name = cv_crc32c(0, s->header_bytes.data, s->header_bytes.size);
    return cv_crc32c(name, s->trailer_bytes.data, s->trailer_bytes.size);
}

/* Who comes first keeps its own for all: another one throws its away. */
cv_status cv_snapshot_attributes(const cv_snapshot *snapshot, const cv_attributes **out,
                                 cv_error *err)
{
    static const cv_attributes none;
    cv_snapshot *s = cv_unconst(snapshot);
    *out = &none;
    if (s->trailer.n_attributes == 0) return CV_OK;
    cv_attributes *known = atomic_load_explicit(&s->attributes, memory_order_acquire);
    cv_attributes *loaded = NULL;
    if (!known) CV_TRY(cv_attributes_load(&s->trailer, &loaded, err));
    if (loaded && atomic_compare_exchange_strong(&s->attributes, &known, loaded))
        known = loaded;
    else
        cv_attributes_free(loaded);
    *out = known;
    return CV_OK;
}

/* ---- Header ------------------------------------------------------------- */

static cv_status parse_meta(cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    const cv_metalayer *layer = cv_metalayers_find(h->metalayers, h->n_metalayers, "b2nd");
    bool legacy = !layer;
    if (legacy) layer = cv_metalayers_find(h->metalayers, h->n_metalayers, "caterva");
    if (!s->any_kind) CV_TRY(cv_kind_check(h, layer != NULL, err));
    if (!layer) return cv_kind_plain(h, &s->meta, err);
    return cv_array_meta_parse(layer->data, layer->size, legacy,
                               layer->data - s->header_bytes.data, &s->meta, err);
}

/* The header's own sizes must be those that shape and partition give. Frames
 * of no chunks may say 0 (C-Blosc2 does, with partitions of 0). */
static cv_status check_sizes(const cv_snapshot *s, cv_error *err)
{
    const cv_frame_header *h = &s->header;
    const cv_grid *g = &s->grid;
    if (s->meta.plain) return CV_OK;               /* is made of them */
    int64_t nbytes = g->n_chunks * g->chunk_bytes; /* the grid bounds both */
    if (h->nbytes != nbytes)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "the header says %lld bytes of chunks, the shape needs %lld",
                       (long long)h->nbytes, (long long)nbytes);
    if (nbytes == 0) return CV_OK;
    if (h->vl_blocks || h->variable_chunks)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "an n-d array with %s, which no writer makes",
                       h->vl_blocks ? "variable-length blocks" : "variable-size chunks");
    if (h->chunk_size != g->chunk_bytes)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "the header says chunks of %d bytes, the chunk shape needs %lld",
                       h->chunk_size, (long long)g->chunk_bytes);
    return CV_OK;
}

cv_status cv_snapshot_parse(cv_snapshot *s, cv_error *err)
{
    CV_TRY(
        cv_frame_header_parse(s->header_bytes.data, s->header_bytes.size, &s->header, err));
    CV_TRY(parse_meta(s, err));

    cv_error reason = {0};
    const cv_array_meta *m = &s->meta;
    if (cv_grid_init(&s->grid, m->ndim, m->shape, m->chunk_shape, m->block_shape,
                     s->header.type_size, &reason) != CV_OK)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "no valid array: %s", reason.message);
    return check_sizes(s, err);
}

int64_t cv_snapshot_chunk_bytes(const cv_snapshot *s, int64_t chunk)
{
    int64_t bytes = s->grid.chunk_bytes;
    return s->meta.plain ? cv_min_i64(bytes, s->header.nbytes - chunk * bytes) : bytes;
}

cv_status cv_snapshot_check_header(const cv_snapshot *s, cv_error *err)
{
    if (s->seal != CV_SEAL_NO_HEADER || s->header.n_metalayers > 0) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, 0, "the header is damaged: checksum differs");
}

cv_status cv_snapshot_check_attributes(const cv_snapshot *s, cv_error *err)
{
    for (int i = 0; i < s->trailer.n_attributes; i++)
        CV_TRY(cv_frame_attribute_check(&s->trailer.attributes[i], err));
    return CV_OK;
}

/* ---- Which state it is ---------------------------------------------------- */

void cv_snapshot_identify(const cv_snapshot *s, uint8_t out[CV_STATE_ID])
{
    cv_stamp stamp = s->seal == CV_SEAL_WHOLE ? (cv_stamp){0} : s->stamp;
    const cv_state_part parts[] = {
        {s->header_bytes.data, s->header_bytes.size},
        {s->trailer_bytes.data, s->trailer_bytes.size},
        {&stamp, sizeof stamp},
    };
    cv_state_id(parts, sizeof parts / sizeof parts[0], out);
}

/* ---- Who reads what ------------------------------------------------------- */

/* The number of the commit, or 0: there is none, or others changed the frame since. */
static uint64_t number_of(const cv_snapshot *s)
{
    return s->seal == CV_SEAL_WHOLE ? s->footer.commit : 0;
}

bool cv_snapshot_has_older_readers(const cv_snapshot *s, cv_store *store)
{
    uint64_t number = number_of(s);
    return number ? cv_store_has_others(store, number) : cv_store_has_readers(store);
}

/* A state without chunks is all in memory now. */
void cv_snapshot_note_reader(const cv_snapshot *s, cv_store *store)
{
    uint64_t number = s->grid.n_chunks > 0 ? number_of(s) : 0;
    if (number || s->grid.n_chunks == 0) cv_store_reads_state(store, number);
}
