/* Room: jobs. Composes a chunk from blocks of several parts. A block that only one part wrote
 * is copied as stored; others become dirty blocks of the target and are encoded as usual.
 * Also opens the files of parts, few at a time. */
#include "jobs/compose.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/read/walk.h"
#include "engine/write/flush.h"
#include "engine/write/write.h"
#include "format/array_meta.h"
#include "frame/attributes.h"
#include "frame/layout.h"
#include "jobs/folder.h"
#include "jobs/marks.h"
#include "store/open.h"

#include <stdio.h>
#include <string.h>

/* ---- Files of parts ---------------------------------------------------------------- */

enum { MAX_OPEN = 48 };

cv_status cv_fail_in_part(const cv_part_token *token, cv_status status, cv_error *err)
{
    char text[sizeof err->message];
    if (status == CATERVA_EUNSUPPORTED) status = CATERVA_ECORRUPT; /* the library wrote it */
    if (status == CV_OK || !err) return status;
    err->code = status;
    (void)snprintf(text, sizeof text, "%s", err->message);
    (void)snprintf(err->message, sizeof err->message, "part %s: %.*s", token->name,
                   (int)(sizeof err->message - sizeof token->name - 8), text);
    return status;
}

static cv_status check_root(const cv_snapshot *s, const cv_part_token *token, cv_error *err)
{
    if (s->seal == CV_SEAL_WHOLE && s->header.frame_size == token->frame_size &&
        memcmp(s->trailer.fingerprint, token->root, CV_PART_ROOT) == 0)
        return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "it is not the finished part: it has %llu bytes and its token %llu, or "
                   "the checksums differ",
                   (unsigned long long)s->header.frame_size,
                   (unsigned long long)token->frame_size);
}

/* Checks that the part has the shape of its box of chunks, clipped to the array. */
static cv_status check_grid(const cv_grid *part, const cv_part_token *token,
                            const cv_grid *grid, cv_error *err)
{
    bool fits = part->ndim == grid->ndim && token->ndim == grid->ndim &&
                part->item_size == grid->item_size;
    for (int d = 0; d < grid->ndim && fits; d++) {
        int64_t start = token->first[d] * grid->chunk_shape[d];
        int64_t stop = start + token->n[d] * grid->chunk_shape[d];
        fits = part->chunk_shape[d] == grid->chunk_shape[d] &&
               part->block_shape[d] == grid->block_shape[d] &&
               token->first[d] + token->n[d] <= grid->chunk_counts[d] &&
               part->shape[d] == cv_min_i64(stop, grid->shape[d]) - start;
    }
    if (fits) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "its shape, chunks, blocks or items do not fit its job");
}

static cv_status check_chunks(const cv_part_token *token, const cv_grid *grid, cv_error *err)
{
    int64_t at[CV_MAX_DIMS];
    for (int64_t i = 0; i < token->n_chunks; i++) {
        int64_t chunk = token->chunks[i].chunk;
        bool inside = chunk < grid->n_chunks;
        if (inside) cv_grid_chunk_index(grid, chunk, at);
        for (int d = 0; d < grid->ndim && inside; d++)
            inside = at[d] >= token->first[d] && at[d] < token->first[d] + token->n[d];
        if (!inside)
            return cv_fail(err, CATERVA_ECORRUPT, -1,
                           "its token lists chunk %lld, which is outside its box",
                           (long long)chunk);
    }
    return CV_OK;
}

static bool is_origin(const cv_own *own, const cv_part_token *token)
{
    bool is = own->job && own->job_size == CV_JOB_ID && own->origin && own->marks &&
              memcmp(own->job, token->job, CV_JOB_ID) == 0 &&
              own->origin_size == 8 * (uint32_t)token->ndim;
    for (int d = 0; d < token->ndim && is; d++)
        is = cv_load_be64(own->origin + 8 * d) == (uint64_t)token->first[d];
    return is;
}

/* Checks that marks exist for exactly those chunks that the token lists as partly written. */
static cv_status check_marks(const cv_part_file *file, cv_error *err)
{
    const cv_part_token *token = file->token;
    int64_t n = 0;
    for (int64_t i = 0; i < token->n_chunks; i++) {
        n += token->chunks[i].in_part;
        if (token->chunks[i].in_part !=
            (cv_marks_find(&file->marks, token->chunks[i].chunk) != NULL))
            n = -1;
        if (n < 0) break;
    }
    if (n == file->marks.n) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "its token and its marks list different chunks");
}

static cv_status read_own(cv_part_file *file, const cv_grid *grid, cv_error *err)
{
    const cv_trailer *t = &file->snapshot->trailer;
    const cv_metalayer *layer =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_OWN_ATTRIBUTE);
    if (!layer) return cv_fail(err, CATERVA_ECORRUPT, -1, "it is not a part");
    cv_buffer value = {0};
    cv_own own;
    cv_status status = cv_frame_attribute(layer, &value, NULL, err);
    if (status == CV_OK) status = cv_own_parse(value.data, value.size, &own, err);
    if (status == CV_OK && !is_origin(&own, file->token))
        status = cv_fail(err, CATERVA_ECORRUPT, -1, "it belongs to another job or box");
    cv_marks_init(&file->marks, grid);
    if (status == CV_OK) status = cv_marks_read(&file->marks, own.marks, own.marks_size, err);
    if (status == CV_OK) status = check_marks(file, err);
    cv_buffer_free(&value);
    return status;
}

static void close_file(cv_part_file *file)
{
    if (!file) return;
    cv_marks_clear(&file->marks);
    cv_workers_destroy(&file->workers);
    cv_snapshot_release(file->snapshot);
    cv_frame_close(file->frame);
    cv_free(file);
}

static cv_status check(cv_part_file *file, const cv_grid *grid, cv_error *err)
{
    CV_TRY(check_root(file->snapshot, file->token, err));
    CV_TRY(check_grid(&file->snapshot->grid, file->token, grid, err));
    CV_TRY(check_chunks(file->token, grid, err));
    return read_own(file, grid, err);
}

static cv_status open_frame(const char *path, const cv_part_token *token, cv_frame **out,
                            cv_error *err)
{
    char id[CV_JOB_NAME], *name;
    cv_store *store;
    cv_job_name(token->job, id);
    CV_TRY(cv_job_path(path, id, token->name, &name, err));
    cv_status status = cv_store_open(name, 0, false, &store, err);
    cv_free(name);
    if (status != CV_OK) return status;
    return cv_frame_open(store, CATERVA_DURABILITY_NONE, false, out, err);
}

static cv_status open_file(const cv_part_files *all, const cv_part_token *token,
                           cv_part_file **out, cv_error *err)
{
    cv_part_file *file = cv_calloc(1, sizeof *file);
    if (!file) return cv_fail_memory(err, sizeof *file, "a part");
    file->token = token;
    cv_marks_init(&file->marks, all->grid);
    cv_status status = open_frame(all->path, token, &file->frame, err);
    if (status != CV_OK) {
        cv_free(file);
        return status;
    }
    file->snapshot = cv_frame_snapshot(file->frame);
    status = cv_workers_init(&file->workers, file->snapshot, err);
    if (status == CV_OK) status = check(file, all->grid, err);
    if (status != CV_OK) {
        close_file(file);
        return status;
    }
    file->source = (cv_source){
        .frame = file->frame,
        .snapshot = file->snapshot,
        .workers = &file->workers,
        .threads = 1,
        .checks = all->checks,
        .gives = all->gives,
        .is_durable = all->is_durable,
        .scan = true,
    };
    *out = file;
    return CV_OK;
}

int64_t cv_part_file_chunk(const cv_part_file *file, const cv_grid *grid, int64_t chunk)
{
    int64_t at[CV_MAX_DIMS], number = 0;
    cv_grid_chunk_index(grid, chunk, at);
    for (int d = 0; d < grid->ndim; d++)
        number += (at[d] - file->token->first[d]) * file->snapshot->grid.chunk_strides[d];
    return number;
}

cv_status cv_part_files_init(cv_part_files *all, const cv_part_files *what, cv_error *err)
{
    *all = *what;
    size_t n = (size_t)(what->n > 0 ? what->n : 1);
    cv_mutex_init(&all->lock);
    all->files = cv_calloc(n, sizeof all->files[0]);
    all->opened = cv_calloc(n, sizeof all->opened[0]);
    if (all->files && all->opened) return CV_OK;
    return cv_fail_memory(err, n * sizeof all->files[0], "a list of parts");
}

void cv_part_files_destroy(cv_part_files *all)
{
    for (int64_t i = 0; i < all->n_open; i++) close_file(all->files[all->opened[i]]);
    cv_free(all->files);
    cv_free(all->opened);
    cv_mutex_destroy(&all->lock);
}

/* If MAX_OPEN files are open, closes the one that was used longest ago. Called with the lock. */
static void make_room(cv_part_files *all)
{
    int64_t oldest = -1;
    if (all->n_open < MAX_OPEN) return;
    for (int64_t i = 0; i < all->n_open; i++) {
        const cv_part_file *file = all->files[all->opened[i]];
        if (file->users > 0) continue;
        if (oldest < 0 || file->used < all->files[all->opened[oldest]]->used) oldest = i;
    }
    if (oldest < 0) return;
    int64_t number = all->opened[oldest];
    close_file(all->files[number]);
    all->files[number] = NULL;
    all->opened[oldest] = all->opened[--all->n_open];
}

static cv_status take(cv_part_files *all, int64_t number, cv_part_file **out, cv_error *err)
{
    if (!all->files[number]) {
        make_room(all);
        CV_TRY(cv_fail_in_part(&all->tokens[number],
                               open_file(all, &all->tokens[number], &all->files[number], err),
                               err));
        all->opened[all->n_open++] = number;
    }
    *out = all->files[number];
    (*out)->users++;
    (*out)->used = ++all->clock;
    return CV_OK;
}

cv_status cv_part_files_take(cv_part_files *all, int64_t number, cv_part_file **out,
                             cv_error *err)
{
    cv_mutex_lock(&all->lock);
    cv_status status = take(all, number, out, err);
    cv_mutex_unlock(&all->lock);
    return status;
}

void cv_part_files_give(cv_part_files *all, cv_part_file *file)
{
    if (!file) return;
    cv_mutex_lock(&all->lock);
    file->users--;
    cv_mutex_unlock(&all->lock);
}

/* ---- Origins of blocks ------------------------------------------------------------- */

static const cv_grid *grid_of(const cv_composition *c)
{
    return &cv_txn_snapshot(c->target->txn)->grid;
}

static cv_mark mark_of(const cv_composition *c, int64_t file, int64_t block)
{
    const cv_marks *marks = &c->files[file]->marks;
    return cv_mark_of(marks, cv_marks_find(marks, c->chunk), c->chunk, block);
}

/* Where the items of a block come from. */
typedef struct origin {
    int64_t first; /* the first file whose items are not overridden; c->n: no file */
    bool covers;   /* this file wrote the whole block */
    bool alone;    /* and no later file wrote an item of it */
} origin;

static origin find_origin(const cv_composition *c, int64_t block)
{
    origin o = {.first = c->n};
    for (int64_t i = c->n - 1; i >= 0 && !o.covers; i--) {
        cv_mark mark = mark_of(c, i, block);
        o.covers = mark.kind == CV_MARK_ALL;
        o.alone = o.covers && o.first == c->n;
        if (mark.kind != CV_MARK_NONE) o.first = i;
    }
    return o;
}

/* Context of a sink that copies marked items of a part's decoded blocks over `blocks`. */
typedef struct laying {
    const cv_composition *c;
    int64_t file;
    uint8_t *const *blocks; /* by block number */
    uint8_t *item_block;    /* block_bytes, for a repeated item */
} laying;

static void lay_block(void *context, int64_t block, const uint8_t *bytes)
{
    const laying *l = context;
    cv_mark mark = mark_of(l->c, l->file, block);
    cv_mark_copy(grid_of(l->c), &mark, bytes, l->blocks[block]);
}

static const uint8_t *repeat(const laying *l, const uint8_t *item)
{
    const cv_grid *grid = grid_of(l->c);
    int64_t size = grid->item_size, n = grid->block_bytes / size;
    cv_fill_box(1, &n, size, item, (cv_strided){l->item_block, &size});
    return l->item_block;
}

static void lay_item(void *context, int64_t block, const uint8_t *item)
{
    lay_block(context, block, repeat(context, item));
}

/* Decodes those blocks of a file's chunk that are set in `wanted`, and delivers them to `sink`. */
static cv_status decode_file(const cv_composition *c, int64_t number, const bool *wanted,
                             const cv_block_sink *sink, cv_error *err)
{
    cv_part_file *file = c->files[number];
    const cv_grid *grid = grid_of(c);
    cv_chunk_ref ref;
    cv_worker *worker;
    int64_t n = 0;
    CV_TRY(
        cv_source_find(&file->source, cv_part_file_chunk(file, grid, c->chunk), &ref, err));
    CV_TRY(cv_worker_take(&file->workers, &worker, err));
    cv_status status = cv_worker_wanted(worker, grid->n_blocks, err);
    for (int64_t b = 0; b < grid->n_blocks && status == CV_OK; b++)
        if (wanted[b]) worker->wanted[n++] = (cv_wanted){.block = b, .tag = b};
    const cv_block_list list = {.wanted = worker->wanted, .n = n};
    if (status == CV_OK && n > 0)
        status =
            cv_decode_blocks(file->frame, file->snapshot, &ref, worker, &list, sink, err);
    cv_worker_give(&file->workers, worker);
    return cv_fail_in_part(file->token, status, err);
}

/* ---- One chunk --------------------------------------------------------------------- */

typedef struct composing {
    cv_composition *c;
    cv_worker *worker;
    cv_dirty_chunk *dirty;
    bool *wanted;                    /* per block, for one file */
    origin *origins;                 /* per block */
    cv_buffer scratch;               /* laying.item_block */
    cv_splice_source *sources;       /* per file; layout NULL: cannot be spliced */
    const cv_splice_source **others; /* per block, as in cv_splice_job */
    int64_t n_others;
} composing;

/* Makes those blocks dirty that were written in a file and cannot be copied as stored. */
static cv_status add_blocks(composing *s, cv_error *err)
{
    int64_t n_blocks = grid_of(s->c)->n_blocks, n_stored = 0;
    CV_TRY(cv_worker_wanted(s->worker, n_blocks, err));
    for (int64_t b = 0; b < n_blocks; b++) {
        uint8_t *memory;
        if (s->origins[b].first == s->c->n || s->others[b] || s->dirty->blocks[b]) continue;
        CV_TRY(cv_pending_add_block(s->c->target, s->dirty, b, &memory, err));
        if (!s->origins[b].covers) s->worker->wanted[n_stored++] = (cv_wanted){.block = b};
        s->c->n_decoded++;
    }
    return cv_patch_fill(s->c->target, s->dirty, s->worker, &n_stored, err);
}

/* Copies a file's marked items over `blocks`, except in blocks that later files override whole. */
static cv_status lay_file(composing *s, int64_t file, uint8_t *const *blocks, cv_error *err)
{
    int64_t n_blocks = grid_of(s->c)->n_blocks;
    for (int64_t b = 0; b < n_blocks; b++)
        s->wanted[b] = blocks[b] && s->origins[b].first <= file &&
                       mark_of(s->c, file, b).kind != CV_MARK_NONE;
    laying l = {s->c, file, blocks, s->scratch.data};
    cv_block_sink sink = {.take = lay_block, .fill = lay_item, .context = &l};
    return decode_file(s->c, file, s->wanted, &sink, err);
}

static cv_status lay_all(composing *s, cv_error *err)
{
    CV_TRY(add_blocks(s, err));
    for (int64_t i = 0; i < s->c->n; i++) CV_TRY(lay_file(s, i, s->dirty->blocks, err));
    return CV_OK;
}

static cv_status open_source(composing *s, int64_t number, cv_error *err)
{
    cv_part_file *file = s->c->files[number];
    cv_splice_source *source = &s->sources[number];
    cv_chunk_ref ref;
    cv_layout *layout;
    int64_t chunk = cv_part_file_chunk(file, grid_of(s->c), s->c->chunk);
    CV_TRY(cv_source_find(&file->source, chunk, &ref, err));
    if (ref.kind != CV_REF_STORED) return CV_OK;
    CV_TRY(cv_layout_get(file->frame->layouts, file->snapshot, &ref, &layout, err));
    if (!cv_can_splice(layout)) {
        cv_layout_release(layout);
        return CV_OK;
    }
    *source = (cv_splice_source){file->frame->store, layout, file->source.checks};
    return CV_OK;
}

/* Returns the file from which the block is copied as stored; NULL if it is not. A block of padding
 * is the same in all files. */
static const cv_splice_source *source_of(const composing *s, int64_t block)
{
    int64_t shape[CV_MAX_DIMS],
        number = s->origins[block].alone ? s->origins[block].first : 0;
    bool is_padding = !cv_block_valid(grid_of(s->c), s->c->chunk, block, shape);
    if (!s->origins[block].alone && !is_padding) return NULL;
    return s->sources[number].layout ? &s->sources[number] : NULL;
}

/* Finds the blocks that are copied as stored from a file. */
static cv_status find_others(composing *s, cv_error *err)
{
    for (int64_t i = 0; i < s->c->n; i++)
        CV_TRY(cv_fail_in_part(s->c->files[i]->token, open_source(s, i, err), err));
    for (int64_t b = 0; b < grid_of(s->c)->n_blocks; b++) {
        s->others[b] = source_of(s, b);
        s->n_others += s->others[b] != NULL;
    }
    return CV_OK;
}

static cv_status splice(composing *s, cv_error *err)
{
    cv_splice_job job = {
        .pending = s->c->target,
        .worker = s->worker,
        .chunk = s->c->chunk,
        .blocks = (void *)s->dirty->blocks,
        .n_dirty = s->dirty->n_dirty,
        .idle = cv_pending_idle(s->c->target, s->c->n_side),
        .others = s->others,
        .n_others = s->n_others,
    };
    cv_spliced spliced = CV_SPLICE_NOT;
    if (s->n_others > 0) CV_TRY(cv_splice_chunk(&job, &spliced, err));
    s->c->spliced = spliced == CV_SPLICE_DONE;
    return CV_OK;
}

/* Splices the chunk if possible, else decodes all its blocks and encodes it anew. */
static cv_status compose(composing *s, cv_error *err)
{
    cv_composition *c = s->c;
    int64_t n_blocks = grid_of(c)->n_blocks;
    CV_TRY(cv_pending_get(c->target, c->chunk, &s->dirty, err));
    for (int64_t b = 0; b < n_blocks; b++) s->origins[b] = find_origin(c, b);
    CV_TRY(find_others(s, err));
    CV_TRY(lay_all(s, err));
    CV_TRY(splice(s, err));
    if (c->spliced) {
        cv_pending_drop(c->target, c->chunk);
        return CV_OK;
    }
    if (s->n_others > 0) {
        memset(s->others, 0, (size_t)n_blocks * sizeof s->others[0]);
        CV_TRY(lay_all(s, err));
    }
    return cv_pending_flush_chunk(c->target, s->worker, c->chunk, c->n_side, err);
}

static cv_status open_composing(composing *s, cv_error *err)
{
    const cv_grid *grid = grid_of(s->c);
    size_t n = (size_t)grid->n_blocks;
    s->wanted = cv_calloc(n, sizeof s->wanted[0]);
    s->origins = cv_calloc(n, sizeof s->origins[0]);
    s->others = cv_calloc(n, sizeof s->others[0]);
    s->sources = cv_calloc((size_t)s->c->n, sizeof s->sources[0]);
    if (!s->wanted || !s->origins || !s->others || !s->sources)
        return cv_fail_memory(err, n * sizeof s->origins[0], "a list of blocks");
    return cv_buffer_resize(&s->scratch, (size_t)grid->block_bytes, err);
}

static void close_composing(composing *s)
{
    cv_free(s->wanted);
    cv_free(s->origins);
    for (int64_t i = 0; i < s->c->n && s->sources; i++)
        cv_layout_release((cv_layout *)s->sources[i].layout);
    cv_free(s->sources);
    cv_free(s->others);
    cv_buffer_free(&s->scratch);
}

cv_status cv_compose_chunk(cv_composition *c, cv_worker *worker, cv_error *err)
{
    composing s = {.c = c, .worker = worker};
    cv_status status = open_composing(&s, err);
    if (status == CV_OK) status = compose(&s, err);
    if (status != CV_OK) cv_pending_drop(c->target, c->chunk);
    close_composing(&s);
    return status;
}

/* Copies the parts' items over a copy of the array's chunk and compares both, block by block. */
static cv_status compare(composing *s, const uint8_t *chunk, uint8_t *copy, uint8_t **blocks,
                         bool *same, cv_error *err)
{
    cv_mark_place place = {.grid = grid_of(s->c)};
    int64_t size = place.grid->block_bytes;
    memcpy(copy, chunk, (size_t)place.grid->chunk_bytes);
    for (int64_t b = 0; b < place.grid->n_blocks; b++) {
        blocks[b] = copy + b * size;
        s->origins[b] = find_origin(s->c, b);
    }
    for (int64_t i = 0; i < s->c->n; i++) CV_TRY(lay_file(s, i, blocks, err));
    *same = true;
    for (int64_t b = 0; b < place.grid->n_blocks && *same; b++)
        *same = !cv_block_valid(place.grid, s->c->chunk, b, place.valid) ||
                cv_block_same(&place, chunk + b * size, blocks[b]);
    return CV_OK;
}

cv_status cv_compose_is_done(const cv_composition *c, cv_worker *worker, bool *done,
                             cv_error *err)
{
    composing s = {.c = (cv_composition *)c, .worker = worker};
    const cv_grid *grid = grid_of(c);
    size_t size = (size_t)grid->chunk_bytes;
    cv_source source = cv_source_of_pending(c->target);
    cv_buffer chunks = {0}; /* the array's chunk, and a copy */
    uint8_t **blocks = cv_calloc((size_t)grid->n_blocks, sizeof blocks[0]);
    cv_status status = blocks ? open_composing(&s, err)
                              : cv_fail_memory(err, sizeof blocks[0], "a list of blocks");
    if (status == CV_OK) status = cv_buffer_resize(&chunks, 2 * size, err);
    if (status == CV_OK) status = cv_chunk_fill(&source, c->chunk, chunks.data, worker, err);
    if (status == CV_OK)
        status = compare(&s, chunks.data, chunks.data + size, blocks, done, err);
    close_composing(&s);
    cv_buffer_free(&chunks);
    cv_free(blocks);
    return status;
}

bool cv_compose_meet(const cv_composition *c, int64_t *a, int64_t *b, int64_t *block)
{
    const cv_grid *grid = grid_of(c);
    for (*block = 0; *block < grid->n_blocks; (*block)++)
        for (*a = 0; *a < c->n; (*a)++)
            for (*b = *a + 1; *b < c->n; (*b)++) {
                cv_mark x = mark_of(c, *a, *block), y = mark_of(c, *b, *block);
                if (cv_marks_meet(grid, &x, &y)) return true;
            }
    return false;
}
