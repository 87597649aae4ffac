/* Room: array. Descriptions: made from a snapshot, counted, kept as long as somebody
 * holds them. One block of memory each, strings and contents behind the struct. */
#include "array/description.h"

#include "base/heap.h"
#include "format/dtype.h"

#include <stdio.h>
#include <string.h>

/* ---- dtype -------------------------------------------------------------- */

/* Files exist whose dtype does not fit their item size: then the items are
 * opaque, and the info says so. */
cv_status cv_item_type_init(cv_item_type *type, const cv_snapshot *snapshot, cv_error *err)
{
    const cv_array_meta *meta = &snapshot->meta;
    *type = (cv_item_type){.dtype = NULL};
    if (meta->dtype) {
        type->stored = cv_strndup(meta->dtype, meta->dtype_size);
        if (!type->stored) return cv_fail_memory(err, meta->dtype_size, "a dtype");
        int64_t size;
        cv_status parsed = cv_dtype_item_size(meta->dtype, meta->dtype_size, &size, NULL);
        if (parsed == CATERVA_ENOMEM) return cv_fail_memory(err, meta->dtype_size, "a dtype");
        type->disagrees =
            meta->dtype_format != 0 || parsed != CV_OK || size != snapshot->grid.item_size;
        if (!type->disagrees) type->dtype = cv_strdup(type->stored);
        if (!type->disagrees && !type->dtype)
            return cv_fail_memory(err, meta->dtype_size, "a dtype");
    }
    if (type->dtype) return CV_OK;
    char opaque[24];
    snprintf(opaque, sizeof opaque, "|V%d", snapshot->grid.item_size);
    type->dtype = cv_strdup(opaque);
    return type->dtype ? CV_OK : cv_fail_memory(err, sizeof opaque, "a dtype");
}

void cv_item_type_free(cv_item_type *type)
{
    cv_free(type->dtype);
    cv_free(type->stored);
    *type = (cv_item_type){.dtype = NULL};
}

/* ---- Numbers ------------------------------------------------------------ */

static void describe_grid(const cv_grid *grid, caterva_info *info)
{
    info->ndim = grid->ndim;
    for (int d = 0; d < grid->ndim; d++) {
        info->shape[d] = grid->shape[d];
        info->chunk_shape[d] = (int32_t)grid->chunk_shape[d];
        info->block_shape[d] = (int32_t)grid->block_shape[d];
        info->chunk_counts[d] = grid->chunk_counts[d];
        info->block_counts[d] = grid->block_counts[d];
    }
    info->item_size = grid->item_size;
    info->n_items = grid->n_items;
    info->n_chunks = grid->n_chunks;
    info->n_blocks = grid->n_blocks;
    info->chunk_bytes = grid->chunk_bytes;
    info->block_bytes = grid->block_bytes;
    info->data_bytes = grid->total_bytes;
}

caterva_metalayer_kind cv_metalayer_kind(const cv_array_meta *meta)
{
    if (meta->plain) return CATERVA_METALAYER_NONE;
    return meta->legacy ? CATERVA_METALAYER_CATERVA : CATERVA_METALAYER_B2ND;
}

static void describe_header(const cv_snapshot *s, caterva_info *info)
{
    const cv_frame_header *h = &s->header;
    info->layout = h->sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    info->metalayer = cv_metalayer_kind(&s->meta);
    info->codec = h->codec;
    info->codec_meta = h->codec_meta;
    info->level = h->level;
    info->use_dict = h->use_dict;
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        info->filters[i] = h->filters[i];
        info->filters_meta[i] = h->filters_meta[i];
    }
    info->frame_bytes = (int64_t)h->frame_size + (h->sparse ? h->cbytes : 0);
    info->header_bytes = h->header_size;
    info->sealed = s->seal == CV_SEAL_WHOLE;
}

/* ---- Names and contents ------------------------------------------------- */

/* One piece of memory, the struct at its front. Measuring, `at` is NULL and only `used`
 * moves. */
typedef struct arena {
    uint8_t *at;
    size_t used;
} arena;

/* Aligned for whatever an item may be. */
static void *take(arena *a, size_t size)
{
    enum { ALIGNMENT = 16 };
    a->used = (a->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *taken = a->at ? a->at + a->used : NULL;
    a->used += size;
    return taken;
}

static const void *keep(arena *a, const void *bytes, size_t size)
{
    void *kept = take(a, size);
    if (kept && size > 0) memcpy(kept, bytes, size);
    return kept;
}

static const char *keep_text(arena *a, const char *text)
{
    return text ? keep(a, text, strlen(text) + 1) : NULL;
}

static void keep_attributes(arena *a, const cv_attributes *all, const char **names)
{
    for (int i = 0; i < all->n; i++) {
        const char *name = keep_text(a, all->list[i].name);
        if (names) names[i] = name;
    }
}

static void keep_metalayers(arena *a, const cv_frame_header *h, caterva_metalayer *layers)
{
    for (int i = 0; i < h->n_metalayers; i++) {
        const cv_metalayer *from = &h->metalayers[i];
        caterva_metalayer layer = {.size = from->size};
        layer.name = keep_text(a, from->name);
        layer.content = keep(a, from->data, from->size);
        if (layers) layers[i] = layer;
    }
}

/* All that the info points at. */
static void keep_all(arena *a, const cv_described *from, const cv_attributes *attributes,
                     caterva_info *info)
{
    const cv_frame_header *h = &from->state->header;
    const char **names = take(a, (size_t)attributes->n * sizeof names[0]);
    caterva_metalayer *layers = take(a, (size_t)h->n_metalayers * sizeof layers[0]);
    size_t item_size = (size_t)from->state->grid.item_size;
    info->attribute_names = names;
    info->n_attributes = attributes->n;
    keep_attributes(a, attributes, names);
    info->metalayers = layers;
    info->n_metalayers = h->n_metalayers;
    keep_metalayers(a, h, layers);
    info->dtype = keep_text(a, from->type->dtype);
    info->dtype_stored = keep_text(a, from->type->stored);
    info->url = keep_text(a, from->path);
    info->fill_value = from->fill ? keep(a, from->fill, item_size) : NULL;
}

/* ---- Making and counting ------------------------------------------------ */

cv_status cv_description_create(const cv_described *from, cv_description **out, cv_error *err)
{
    arena all = {.used = sizeof(cv_description)};
    const cv_attributes *attributes;
    caterva_info measured;
    CV_TRY(cv_snapshot_attributes(from->state, &attributes, err));
    keep_all(&all, from, attributes, &measured);
    cv_description *d = cv_calloc(1, all.used);
    if (!d) return cv_fail_memory(err, all.used, "a description");
    all = (arena){.at = (uint8_t *)d, .used = sizeof(cv_description)};
    atomic_init(&d->references, 1);
    describe_grid(&from->state->grid, &d->info);
    describe_header(from->committed, &d->info);
    keep_all(&all, from, attributes, &d->info);
    d->info.struct_size = sizeof d->info;
    d->info.dtype_disagrees = from->type->disagrees;
    d->info.in_memory = from->in_memory;
    d->info.offset = from->offset;
    d->info.mode = from->mode;
    d->info.durability = from->durability;
    d->info.commit_number = (int64_t)from->committed->footer.commit;
    cv_snapshot_identify(from->committed, d->info.state_id);
    *out = d;
    return CV_OK;
}

void cv_description_release(const cv_description *description)
{
    cv_description *d = cv_unconst(description);
    if (!d) return;
    if (atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) == 1) cv_free(d);
}

/* ---- What a handle keeps ------------------------------------------------ */

void cv_descriptions_init(cv_descriptions *all)
{
    *all = (cv_descriptions){.latest = NULL};
    cv_mutex_init(&all->lock);
}

void cv_descriptions_destroy(cv_descriptions *all)
{
    cv_description_release(all->latest);
    cv_mutex_destroy(&all->lock);
}

const cv_description *cv_descriptions_latest(cv_descriptions *all)
{
    cv_mutex_lock(&all->lock);
    cv_description *d = all->latest;
    if (d) atomic_fetch_add_explicit(&d->references, 1, memory_order_relaxed);
    cv_mutex_unlock(&all->lock);
    return d;
}

void cv_descriptions_offer(cv_descriptions *all, cv_description *fresh)
{
    cv_mutex_lock(&all->lock);
    cv_description *useless = all->latest ? fresh : NULL;
    if (!useless) all->latest = fresh;
    cv_mutex_unlock(&all->lock);
    cv_description_release(useless);
}

void cv_descriptions_turn(cv_descriptions *all, cv_description *fresh)
{
    cv_mutex_lock(&all->lock);
    cv_description *old = all->latest;
    all->latest = fresh;
    cv_mutex_unlock(&all->lock);
    cv_description_release(old);
}

void cv_descriptions_swap(cv_descriptions *a, cv_descriptions *b)
{
    cv_description *latest = a->latest;
    a->latest = b->latest;
    b->latest = latest;
}
