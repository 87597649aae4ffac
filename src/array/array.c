/* Room: array. Creates, describes, locks, commits and releases the handle. The engine reads and
 * writes items, and open.c opens handles. This file does not know what wings attach. */
#include "array/array.h"

#include "array/wings.h"
#include "base/heap.h"
#include "base/os.h"
#include "codec/spec.h"
#include "engine/read/chunks.h"
#include "engine/write/flush.h"
#include "engine/write/transfer.h"
#include "format/array_meta.h"
#include "format/dtype.h"
#include "frame/attributes.h"
#include "frame/commit.h"
#include "store/file.h"
#include "store/open.h"
#include "store/store.h"

#include <caterva_upkeep.h>
#include <stdio.h>
#include <string.h>

/* ---- Callers' structs of older and newer versions ---------------------------------------- */

static size_t size_of(const void *sized)
{
    size_t given;
    memcpy(&given, sized, sizeof given);
    return given;
}

cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err)
{
    enum { MOST = 64 * 1024 };
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", what);
    size_t given = size_of(out);
    if (given < sizeof given || given > MOST)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%s.struct_size is %zu: begin with its _INIT macro", what, given);
    for (size_t i = size; i < given; i++)
        if (((const uint8_t *)out)[i] != 0)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "byte %zu of the %s is not 0, but this library knows only the "
                           "first %zu bytes",
                           i, what, size);
    return CV_OK;
}

cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err)
{
    CV_TRY(cv_output_check(options, size, what, err));
    size_t given = size_of(options);
    memset(out, 0, size);
    memcpy(out, options, given < size ? given : size);
    return CV_OK;
}

cv_status cv_options_read(void *out, size_t size, const void *options, const char *what,
                          cv_error *err)
{
    if (options) return cv_options_copy(out, size, options, what, err);
    memset(out, 0, size);
    memcpy(out, &size, sizeof size);
    return CV_OK;
}

void cv_output_fill(void *out, const void *full, size_t size)
{
    size_t given = size_of(out), used = given < size ? given : size;
    memcpy((uint8_t *)out + sizeof given, (const uint8_t *)full + sizeof given,
           used - sizeof given);
}

/* ---- The dtype ------------------------------------------------------------------ */

/* Items are opaque ("|V<size>") if the stored dtype is unknown or contradicts the item size. */
static cv_status item_type_init(cv_item_type *type, const cv_snapshot *snapshot,
                                cv_error *err)
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

cv_status cv_array_check(const caterva_array *array, cv_error *err)
{
    if (array) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the array handle is NULL");
}

cv_status cv_array_check_writable(const caterva_array *array, cv_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (array->pending) return cv_store_check_writable(array->frame->store, err);
    return cv_fail(err, CATERVA_EREADONLY, -1, "the array is open for reading only");
}

cv_status cv_array_check_encodes(const caterva_array *array, cv_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    return cv_codec_check_encoding(&array->workers.spec, err);
}

/* ---- Locks ------------------------------------------------------------------------ */

void cv_array_lock_shared(caterva_array *array)
{
    if (!array->is_guarded) return;
    if (array->pending) cv_rwlock_read(&array->lock);
    if (array->watch) cv_watch_begin(array->watch);
}

void cv_array_lock_alone(caterva_array *array)
{
    if (array->pending) {
        cv_rwlock_write(&array->lock);
        cv_prefetch_suspend(&array->prefetch);
        cv_tasks_suspend(&array->reads);
    }
    if (array->watch) cv_watch_begin(array->watch);
}

static void unlock(caterva_array *array, bool good)
{
    if (array->watch) cv_watch_end(array->watch, good);
    if (!array->pending) return;
    cv_prefetch_resume(&array->prefetch);
    cv_tasks_resume(&array->reads);
    cv_rwlock_unlock(&array->lock);
}

void cv_array_unlock(caterva_array *array)
{
    if (array->is_guarded) unlock(array, false);
}

cv_status cv_array_finish(caterva_array *array, cv_status status)
{
    if (array->is_guarded) unlock(array, status == CV_OK);
    return status;
}

cv_status cv_array_set_watch(caterva_array *array, const caterva_progress *progress,
                             cv_error *err)
{
    if (!progress->report) return CV_OK;
    cv_watch *watch = cv_malloc(sizeof *watch);
    if (!watch) return cv_fail_memory(err, sizeof *watch, "a watch");
    cv_watch_init(watch, progress);
    array->watch = watch;
    array->is_guarded = true;
    if (array->pending) array->pending->watch = watch;
    return CV_OK;
}

/* Sets the members one by one. To build a struct and copy it would be slower: the vector loads of
 * the copy would wait for the narrower stores before them. */
static inline void set_source(caterva_array *array, cv_source *out)
{
    cv_snapshot *changed = array->pending ? cv_pending_state(array->pending) : NULL;
    memset(out, 0, sizeof *out);
    out->frame = array->frame;
    out->snapshot = changed ? changed : array->snapshot;
    out->pending = changed ? array->pending : NULL;
    out->workers = &array->workers;
    out->threads = array->threads;
    out->watch = array->watch;
}

cv_source cv_array_source(caterva_array *array)
{
    cv_source source;
    set_source(array, &source);
    return source;
}

cv_status cv_array_check_whole(const caterva_array *array, cv_error *err)
{
    return array->pending ? cv_pending_check_whole(array->pending, err) : CV_OK;
}

cv_status cv_array_begin_read(caterva_array *array, cv_source *out, cv_error *err)
{
    CV_TRY(cv_array_check(array, err));
    cv_array_lock_shared(array);
    cv_status status = cv_array_check_whole(array, err);
    if (status != CV_OK) return cv_array_finish(array, status);
    set_source(array, out);
    return CV_OK;
}

const cv_snapshot *cv_array_state(const caterva_array *array)
{
    return array->pending ? cv_txn_snapshot(array->pending->txn) : array->snapshot;
}

/* ---- Descriptions: one block of memory, which also holds the strings and contents -------- */

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

static void describe_header(const caterva_array *array, caterva_info *info)
{
    const cv_snapshot *s = array->snapshot;
    const cv_frame_header *h = &s->header;
    info->layout = array->layout;
    info->metalayer = array->metalayer;
    info->codec = h->codec ? h->codec : CATERVA_CODEC_BLOSCLZ;
    info->codec_meta = h->codec_meta;
    info->level = h->level ? h->level : CATERVA_NONE;
    info->use_dict = h->use_dict;
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        info->filters[i] = h->filters[i] ? h->filters[i] : CATERVA_FILTER_NONE;
        info->filters_meta[i] = h->filters_meta[i];
    }
    info->frame_bytes = (int64_t)h->frame_size + (h->sparse ? h->cbytes : 0);
    info->header_bytes = h->header_size;
    info->sealed = s->seal == CV_SEAL_WHOLE;
}

/* The memory of a description: the struct, followed by everything that it points to. While the size
 * is measured, `at` is NULL and only `used` changes. */
typedef struct arena {
    uint8_t *at;
    size_t used;
} arena;

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

/* Stores everything that the info points to. `state` includes pending changes. */
static void keep_all(arena *a, const caterva_array *array, const cv_snapshot *state,
                     const cv_attributes *attributes, caterva_info *info)
{
    const cv_frame_header *h = &state->header;
    const char **names = take(a, (size_t)attributes->n * sizeof names[0]);
    caterva_metalayer *layers = take(a, (size_t)h->n_metalayers * sizeof layers[0]);
    info->attribute_names = names;
    info->n_attributes = attributes->n;
    for (int i = 0; i < attributes->n; i++) {
        const char *name = keep_text(a, attributes->list[i].name);
        if (names) names[i] = name;
    }
    info->metalayers = layers;
    info->n_metalayers = h->n_metalayers;
    keep_metalayers(a, h, layers);
    info->dtype = keep_text(a, array->type.dtype);
    info->dtype_stored = keep_text(a, array->type.stored);
    info->url = keep_text(a, array->path);
    info->fill_value =
        array->fill ? keep(a, array->fill, (size_t)state->grid.item_size) : NULL;
}

static cv_status describe(const caterva_array *array, cv_description **out, cv_error *err)
{
    const cv_snapshot *state = cv_array_state(array);
    arena all = {.used = sizeof(cv_description)};
    const cv_attributes *attributes;
    caterva_info measured;
    CV_TRY(cv_snapshot_attributes(state, &attributes, err));
    keep_all(&all, array, state, attributes, &measured);
    cv_description *d = cv_calloc(1, all.used);
    if (!d) return cv_fail_memory(err, all.used, "a description");
    all = (arena){.at = (uint8_t *)d, .used = sizeof(cv_description)};
    atomic_init(&d->references, 1);
    describe_grid(&state->grid, &d->info);
    describe_header(array, &d->info);
    keep_all(&all, array, state, attributes, &d->info);
    d->info.struct_size = sizeof d->info;
    d->info.dtype_disagrees = array->type.disagrees;
    d->info.in_memory = array->frame->store->in_memory;
    d->info.offset = cv_store_file_offset(array->frame->store);
    d->info.mode = array->pending ? CATERVA_MODE_WRITE : CATERVA_MODE_READ;
    d->info.durability = array->frame->durability;
    d->info.commit_number = (int64_t)array->snapshot->footer.commit;
    cv_snapshot_identify(array->snapshot, d->info.state_id);
    *out = d;
    return CV_OK;
}

void cv_description_release(const cv_description *description)
{
    cv_description *d = cv_unconst(description);
    if (!d) return;
    if (atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) == 1) cv_free(d);
}

/* Makes the new description here, because cv_array_describe would have to wait for the lock during
 * a long write. If memory runs out here, the next cv_array_describe makes the description. */
void cv_array_changed(caterva_array *array)
{
    cv_description *fresh = NULL;
    (void)describe(array, &fresh, NULL);
    cv_mutex_lock(&array->description_lock);
    cv_description *old = array->description;
    array->description = fresh;
    cv_mutex_unlock(&array->description_lock);
    cv_description_release(old);
}

/* Returns the latest description with a new reference, or NULL. */
static const cv_description *latest(caterva_array *array)
{
    cv_mutex_lock(&array->description_lock);
    cv_description *d = array->description;
    if (d) atomic_fetch_add_explicit(&d->references, 1, memory_order_relaxed);
    cv_mutex_unlock(&array->description_lock);
    return d;
}

static cv_status offer(caterva_array *array, cv_error *err)
{
    cv_description *fresh;
    cv_array_lock_shared(array);
    cv_status status = describe(array, &fresh, err);
    if (status == CV_OK) {
        cv_mutex_lock(&array->description_lock);
        cv_description *useless = array->description ? fresh : NULL;
        if (!useless) array->description = fresh;
        cv_mutex_unlock(&array->description_lock);
        cv_description_release(useless);
    }
    cv_array_unlock(array);
    return status;
}

cv_status cv_array_describe(caterva_array *array, const cv_description **out, cv_error *err)
{
    while (!(*out = latest(array))) CV_TRY(offer(array, err));
    return CV_OK;
}

caterva_status caterva_info_get(caterva_array *array, const caterva_info **out,
                                caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    const cv_description *d;
    CV_TRY(cv_array_describe(array, &d, err));
    *out = &d->info;
    return CV_OK;
}

void caterva_info_release(const caterva_info *info)
{
    cv_description_release((const cv_description *)(const void *)info); /* first member */
}

const caterva_metalayer *caterva_info_metalayer(const caterva_info *info, const char *name)
{
    for (int i = 0; info && name && i < info->n_metalayers; i++)
        if (strcmp(info->metalayers[i].name, name) == 0) return &info->metalayers[i];
    return NULL;
}

caterva_status caterva_measure(caterva_array *array, caterva_space *out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(cv_output_check(out, sizeof *out, "space", err));
    caterva_space full;
    cv_array_lock_shared(array);
    cv_status status = cv_measure(array->frame, array->snapshot, array->watch, &full, err);
    if (status == CV_OK) cv_output_fill(out, &full, sizeof full);
    return cv_array_finish(array, status);
}

/* ---- Gate: a commit waits until no thread verifies --------------------------------------- */

static void gate_init(cv_gate *gate)
{
    gate->passing = NULL;
    cv_mutex_init(&gate->lock);
    cv_cond_init(&gate->changed);
}

void cv_gate_enter(cv_gate *gate, cv_passing *self)
{
    self->calls = false;
    cv_mutex_lock(&gate->lock);
    self->next = gate->passing;
    gate->passing = self;
    cv_mutex_unlock(&gate->lock);
}

void cv_gate_leave(cv_gate *gate, const cv_passing *self)
{
    cv_mutex_lock(&gate->lock);
    cv_passing **at = &gate->passing;
    while (*at != self) at = &(*at)->next;
    *at = self->next;
    cv_cond_wake_all(&gate->changed);
    cv_mutex_unlock(&gate->lock);
}

/* On success the gate's mutex stays locked until cv_gate_open: cv_gate_enter waits for it. */
cv_status cv_gate_close(cv_gate *gate, cv_error *err)
{
    bool own = false;
    cv_mutex_lock(&gate->lock);
    while (gate->passing && !own) {
        for (const cv_passing *p = gate->passing; p && !own; p = p->next)
            own = p->calls && cv_thread_is_self(p->thread);
        if (!own) cv_cond_wait(&gate->changed, &gate->lock);
    }
    if (!own) return CV_OK;
    cv_mutex_unlock(&gate->lock);
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the array is being verified: its callbacks cannot commit");
}

void cv_gate_open(cv_gate *gate) { cv_mutex_unlock(&gate->lock); }

void cv_gate_note_call(cv_gate *gate, cv_passing *self, bool calls)
{
    cv_mutex_lock(&gate->lock);
    self->thread = cv_thread_self();
    self->calls = calls;
    cv_mutex_unlock(&gate->lock);
}

void cv_array_attach(caterva_array *array, const cv_attachment_kind *kind,
                     cv_attachment *attachment)
{
    *attachment = (cv_attachment){.kind = kind, .next = atomic_load(&array->attached)};
    atomic_store(&array->attached, attachment);
}

cv_attachment *cv_array_attached(const caterva_array *array, const cv_attachment_kind *kind)
{
    cv_attachment *a = atomic_load(&array->attached);
    while (a && a->kind != kind) a = a->next;
    return a;
}

cv_status cv_array_note_write(caterva_array *array, const cv_written *items, cv_error *err)
{
    for (cv_attachment *a = atomic_load(&array->attached); a; a = a->next)
        if (a->kind->write) CV_TRY(a->kind->write(a, items, err));
    return CV_OK;
}

cv_status cv_array_refuse(const caterva_array *array, const char *what, cv_error *err)
{
    for (const cv_attachment *a = atomic_load(&array->attached); a; a = a->next)
        if (a->kind->refuse) CV_TRY(a->kind->refuse(a, what, err));
    return CV_OK;
}

static void roll_back_attached(caterva_array *array)
{
    for (cv_attachment *a = atomic_load(&array->attached); a; a = a->next)
        if (a->kind->roll_back) a->kind->roll_back(a);
}

/* Frees the attachments in the order in which they were added: the `free` of the first attachment
 * may wait for a commit of the tree, and the commit uses all attachments. */
static void free_attached(caterva_array *array)
{
    for (cv_attachment *a; (a = atomic_load(&array->attached)) != NULL;) {
        cv_attachment *before = NULL;
        for (; a->next; a = a->next) before = a;
        a->kind->free(a);
        if (before)
            before->next = NULL;
        else
            atomic_store(&array->attached, NULL);
    }
}

static cv_status set_fill(caterva_array *array, const uint8_t *item, cv_error *err)
{
    size_t size = (size_t)array->snapshot->grid.item_size;
    array->fill = cv_malloc(size);
    if (!array->fill) return cv_fail_memory(err, size, "the fill value");
    memcpy(array->fill, item, size);
    return array->pending ? cv_pending_set_fill(array->pending, item, err) : CV_OK;
}

/* Reads the fill value from the library's own attribute. The fill is zeros if the attribute does
 * not exist, as in files of other programs. */
static cv_status load_fill(caterva_array *array, cv_error *err)
{
    const cv_trailer *t = &array->snapshot->trailer;
    const cv_metalayer *own =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_OWN_ATTRIBUTE);
    if (!own) return CV_OK;
    cv_buffer value = {0};
    cv_own content;
    cv_status status = cv_frame_attribute(own, &value, NULL, err);
    if (status == CV_OK) status = cv_own_parse(value.data, value.size, &content, err);
    if (status == CV_OK && content.fill) {
        if (content.fill_size == (uint32_t)array->snapshot->grid.item_size)
            status = set_fill(array, content.fill, err);
        else
            status = cv_fail(err, CATERVA_ECORRUPT, -1,
                             "the fill value has %u bytes, items have %d", content.fill_size,
                             array->snapshot->grid.item_size);
    }
    cv_buffer_free(&value);
    return status;
}

static cv_source source_of(void *array) { return cv_array_source(array); }

/* ---- Creating and releasing ---------------------------------------------- */

cv_status cv_array_new(cv_frame *frame, bool writable, int threads, caterva_array **out,
                       cv_error *err)
{
    caterva_array *array = cv_calloc(1, sizeof *array);
    if (!array) {
        cv_frame_close(frame);
        return cv_fail_memory(err, sizeof *array, "an array handle");
    }
    array->frame = frame;
    array->threads = threads > 0 ? threads : cv_os_cores();
    array->snapshot = cv_frame_snapshot(frame);
    array->layout =
        array->snapshot->header.sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    const cv_array_meta *meta = &array->snapshot->meta;
    array->metalayer = meta->plain    ? CATERVA_METALAYER_NONE
                       : meta->legacy ? CATERVA_METALAYER_CATERVA
                                      : CATERVA_METALAYER_B2ND;
    cv_rwlock_init(&array->lock);
    gate_init(&array->gate);
    cv_mutex_init(&array->description_lock);
    cv_prefetch_init(&array->prefetch, source_of, array, array->threads);
    cv_read_ahead_init(&array->ahead, false);
    cv_tasks_init(&array->reads, array->threads);

    cv_status status = cv_workers_init(&array->workers, array->snapshot, err);
    if (status == CV_OK) status = cv_codec_check(&array->workers.spec, err);
    if (status == CV_OK && writable)
        status =
            cv_pending_create(frame, &array->workers, array->threads, &array->pending, err);
    array->is_guarded = array->pending != NULL;
    if (status == CV_OK) status = load_fill(array, err);
    if (status == CV_OK) status = item_type_init(&array->type, array->snapshot, err);
    if (status != CV_OK) {
        cv_array_free(array);
        return status;
    }
    *out = array;
    return CV_OK;
}

void cv_array_free(caterva_array *array)
{
    if (!array) return;
    free_attached(array);
    cv_tasks_close(&array->reads);
    cv_prefetch_destroy(&array->prefetch);
    if (array->workers.cache) cv_cache_forget(array->workers.cache, array->frame->id);
    cv_cache_free(array->own_cache);
    cv_pending_free(array->pending);
    cv_workers_destroy(&array->workers);
    cv_snapshot_release(array->snapshot);
    cv_frame_close(array->frame);
    cv_rwlock_destroy(&array->lock);
    if (array->watch) cv_watch_destroy(array->watch);
    cv_free(array->watch);
    cv_free(array->fill);
    cv_cond_destroy(&array->gate.changed);
    cv_mutex_destroy(&array->gate.lock);
    cv_description_release(array->description);
    cv_mutex_destroy(&array->description_lock);
    cv_free(array->type.dtype);
    cv_free(array->type.stored);
    cv_free(array->path);
    cv_free(array->url);
    cv_free(array);
}

void caterva_discard(caterva_array *array) { cv_array_free(array); }

void caterva_free(void *memory) { cv_free(memory); }

/* ---- Compact copies ---------------------------------------------------------------------- */

cv_status cv_array_check_compact(int percent, cv_error *err)
{
    if (percent >= 0 && percent <= 100) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "compact_percent is %d, not in 0..100", percent);
}

cv_status cv_array_compact(caterva_array *array, cv_error *err)
{
    cv_source source = cv_array_source(array);
    bool sparse = source.snapshot->header.sparse;
    cv_store *store;
    cv_frame *frame;
    /* A reader would lose the files of the chunks that it reads. */
    if (sparse && cv_store_has_readers(array->frame->store))
        return cv_fail(err, CATERVA_EBUSY, -1, "the directory is open for reading elsewhere");
    CV_TRY(cv_store_create_over(array->frame->store, &store, err));
    CV_TRY(cv_transfer(&source, store, sparse, array->frame->durability, &frame, err));
    cv_frame_close(frame);
    return CV_OK;
}

enum { MIN_DEAD = 64 * 1024 }; /* bytes; freeing fewer bytes is not worth a copy */

/* Returns whether the options request a compact copy for the file's share of dead bytes. */
static bool compacts_at_close(const caterva_array *array)
{
    uint64_t dead, size;
    if (array->compact_percent == 0 || !array->frame->store->compacts_itself) return false;
    if (!cv_txn_dead(array->pending->txn, &dead, &size) || dead < MIN_DEAD) return false;
    return (double)dead * 100 >= (double)size * array->compact_percent;
}

/* Removes unused space before the handle is released. Ignores errors. Takes the lock, because
 * another thread may be committing or rolling back the array's tree. */
static void tidy_at_close(caterva_array *array)
{
    cv_array_lock_alone(array);
    cv_prefetch_cancel(&array->prefetch);
    if (!array->frame->store->in_memory) cv_txn_tidy(array->pending->txn);
    if (compacts_at_close(array))
        (void)cv_array_finish(array, cv_array_compact(array, NULL));
    else
        cv_array_unlock(array);
}

/* ---- Commit, rollback, close --------------------------------------------------------------- */

int caterva_has_pending(caterva_array *array)
{
    if (!array || !array->pending) return 0;
    cv_array_lock_shared(array);
    bool any = cv_pending_state(array->pending) != NULL;
    cv_array_unlock(array);
    return any;
}

void cv_array_renew(caterva_array *array)
{
    cv_snapshot_release(array->snapshot);
    array->snapshot = cv_frame_snapshot(array->frame);
    cv_array_changed(array);
}

caterva_status caterva_commit(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    CV_TRY(cv_array_refuse(array, "a commit", err));
    CV_TRY(cv_gate_close(&array->gate, err));
    cv_array_lock_alone(array);
    const cv_store *store = array->frame->store;
    /* only stores that have create_over can have jobs */
    bool is_new = !store->published && store->ops->create_over;
    cv_status status = CV_OK;
    if (cv_pending_state(array->pending)) {
        status = cv_pending_commit(array->pending, err);
        if (status == CV_OK) cv_array_renew(array);
    }
    if (status == CV_OK && cv_wings.jobs) cv_wings.jobs->committed(array, is_new);
    status = cv_array_finish(array, status);
    cv_gate_open(&array->gate);
    return status;
}

caterva_status caterva_rollback(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check_writable(array, err));
    cv_array_lock_alone(array);
    bool fresh = !array->frame->store->published;
    cv_pending_rollback(array->pending);
    if (fresh) cv_pending_fill(array->pending);
    roll_back_attached(array);
    cv_array_changed(array);
    cv_array_unlock(array);
    return CV_OK;
}

static cv_status commit_at_close(caterva_array *array, cv_error *err)
{
    const cv_store *store = array->frame->store;
    if (cv_store_is_parents(store) && !cv_pending_state(array->pending)) return CV_OK;
    CV_TRY(caterva_commit(array, err));
    tidy_at_close(array);
    return CV_OK;
}

caterva_status caterva_close(caterva_array *array, caterva_error *err)
{
    if (!array) return CV_OK;
    cv_tasks_close(&array->reads);
    bool commits = array->pending && cv_array_refuse(array, "a commit", NULL) == CV_OK;
    cv_status status = commits ? commit_at_close(array, err) : CV_OK;
    cv_array_free(array);
    return status;
}
