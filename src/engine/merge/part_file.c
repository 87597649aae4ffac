/* Room: engine/merge. Opening parts. What becomes of their chunks is not known here. */
#include "engine/merge/part_file.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/marks_bytes.h"
#include "format/array_meta.h"
#include "frame/attributes.h"
#include "store/job_folder.h"
#include "store/open.h"

#include <stdio.h>
#include <string.h>

/* Open at once beside those that are in use. */
enum { MAX_OPEN = 48 };

cv_status cv_fail_in_part(const cv_part_token *token, cv_status status, cv_error *err)
{
    char text[sizeof err->message];
    if (status == CATERVA_EUNSUPPORTED) status = CATERVA_ECORRUPT; /* this library made it */
    if (status == CV_OK || !err) return status;
    err->code = status;
    (void)snprintf(text, sizeof text, "%s", err->message);
    (void)snprintf(err->message, sizeof err->message, "part %s: %.*s", token->name,
                   (int)(sizeof err->message - sizeof token->name - 8), text);
    return status;
}

/* ---- Is it the part --------------------------------------------------------------------- */

static cv_status check_root(const cv_snapshot *s, const cv_part_token *token, cv_error *err)
{
    if (s->seal == CV_SEAL_WHOLE && s->header.frame_size == token->frame_size &&
        memcmp(s->trailer.fingerprint, token->root, CV_PART_ROOT) == 0)
        return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, -1,
                   "it is not what was finished: %llu bytes, its token says %llu, or their "
                   "checksums differ",
                   (unsigned long long)s->header.frame_size,
                   (unsigned long long)token->frame_size);
}

/* Its shape is that of its box of chunks, as far as the array reaches. */
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
    return cv_fail(err, CATERVA_ECORRUPT, -1, "its geometry is not that of its job");
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
                           "its token names chunk %lld, which is not in its box",
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

/* Chunks that the token says were written in part must have marks, and no others. */
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
    return cv_fail(err, CATERVA_ECORRUPT, -1, "its token and its marks name other chunks");
}

static cv_status read_own(cv_part_file *file, const cv_grid *grid, cv_error *err)
{
    const cv_trailer *t = &file->snapshot->trailer;
    const cv_metalayer *layer =
        cv_metalayers_find(t->attributes, t->n_attributes, CV_OWN_ATTRIBUTE);
    if (!layer) return cv_fail(err, CATERVA_ECORRUPT, -1, "it is no part");
    cv_buffer value = {0};
    cv_own own;
    cv_status status = cv_frame_attribute(layer, &value, NULL, err);
    if (status == CV_OK) status = cv_own_parse(value.data, value.size, &own, err);
    if (status == CV_OK && !is_origin(&own, file->token))
        status = cv_fail(err, CATERVA_ECORRUPT, -1, "it is of another job or place");
    cv_marks_init(&file->marks, grid);
    if (status == CV_OK) status = cv_marks_read(&file->marks, own.marks, own.marks_size, err);
    if (status == CV_OK) status = check_marks(file, err);
    cv_buffer_free(&value);
    return status;
}

/* ---- Opening ------------------------------------------------------------------------------ */

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

/* ---- Many ----------------------------------------------------------------------------------- */

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

/* Closes the one that was not used for longest. With the lock. */
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
