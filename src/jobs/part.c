/* Room: jobs. Parts of a job: opened as new arrays in the job's folder, marked while they are
 * written, and finished. The core treats the handle of a part like any other handle. */
#include "array/create.h"
#include "array/open.h"
#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"
#include "engine/write/flush.h"
#include "format/array_meta.h"
#include "frame/commit.h"
#include "frame/snapshot.h"
#include "frame/txn.h"
#include "jobs/folder.h"
#include "jobs/marks.h"
#include "jobs/record.h"

#include <caterva_jobs.h>
#include <stdio.h>
#include <string.h>

/* ---- Marks of a handle ------------------------------------------------------------- */

typedef struct part_of_job {
    cv_attachment base; /* first */
    uint8_t job[CV_JOB_ID];
    char name[CV_PART_NAME]; /* in the job's folder */
    cv_marks marks;
} part_of_job;

static cv_status mark_selection(cv_marks *marks, const cv_selection *selection, cv_error *err)
{
    if (selection->n_items == 0) return CV_OK;
    cv_grid grid = cv_marks_grid(marks);
    cv_selection bytes = *selection;
    bytes.grid = &grid;
    return cv_marks_add_selection(marks, &bytes, err);
}

static cv_status mark(cv_attachment *self, const cv_written *items, cv_error *err)
{
    cv_marks *marks = &((part_of_job *)self)->marks;
    if (items->chunk) return cv_marks_add_chunk(marks, *items->chunk, err);
    if (items->selection) return mark_selection(marks, items->selection, err);
    return items->box->n_items > 0 ? cv_marks_add_box(marks, items->box, err) : CV_OK;
}

static cv_status refuse(const cv_attachment *self, const char *what, cv_error *err)
{
    (void)self;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "a part of a job does not allow %s: write items, then caterva_part_finish",
                   what);
}

static void unmark(cv_attachment *self)
{
    cv_marks *marks = &((part_of_job *)self)->marks;
    cv_grid grid = marks->grid;
    cv_marks_clear(marks);
    cv_marks_init(marks, &grid);
}

static void free_part(cv_attachment *self)
{
    cv_marks_clear(&((part_of_job *)self)->marks);
    cv_free(self);
}

static const cv_attachment_kind part_kind = {
    .write = mark, .refuse = refuse, .roll_back = unmark, .free = free_part};

/* ---- Opening ----------------------------------------------------------------------- */

/* Makes a unique name from host, process and random bytes. Leaves out other characters of the host
 * name than letters and digits. */
static void choose_name(char out[CV_PART_NAME])
{
    enum { HOST = 32 };
    char host[HOST];
    uint64_t chance;
    size_t n = 0;
    cv_os_host(host, sizeof host);
    cv_os_random(&chance, sizeof chance);
    for (const char *c = host; *c && *c != '.'; c++)
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9'))
            out[n++] = *c;
    (void)snprintf(out + n, CV_PART_NAME - n, "%s%u-%016llx", n > 0 ? "-" : "",
                   cv_os_process(), (unsigned long long)chance);
}

static cv_status create(const char *place, const cv_snapshot *like,
                        const caterva_open_options *o, caterva_array **out, cv_error *err)
{
    caterva_create_options c = CATERVA_CREATE_INIT;
    const cv_array_meta *meta = &like->meta;
    c.ndim = meta->ndim;
    c.shape = meta->shape;
    c.chunk_shape = meta->chunk_shape;
    c.block_shape = meta->block_shape;
    c.layout = like->header.sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    c.metalayer = meta->plain    ? CATERVA_METALAYER_NONE
                  : meta->legacy ? CATERVA_METALAYER_CATERVA
                                 : CATERVA_METALAYER_B2ND;
    c.threads = o->threads;
    c.durability = o->durability;
    c.dirty_budget = o->dirty_budget;
    c.cache_bytes = o->cache_bytes;
    c.no_read_ahead = o->no_read_ahead;
    c.progress = o->progress;
    return cv_array_create(place, &c, like, out, err);
}

static cv_status begin_marks(caterva_array *array, const cv_job_record *job, const char *name,
                             cv_error *err)
{
    part_of_job *part = cv_calloc(1, sizeof *part);
    if (!part) return cv_fail_memory(err, sizeof *part, "a part");
    memcpy(part->job, job->id, CV_JOB_ID);
    memcpy(part->name, name, CV_PART_NAME);
    cv_marks_init(&part->marks, &cv_array_state(array)->grid);
    cv_array_attach(array, &part_kind, &part->base);
    array->pending->behind.crowded = true; /* the workers of a job use all cores */
    return CV_OK;
}

/* Checks that the job is open and its array was not replaced, without listing a large folder. */
static cv_status check_folder(const char *path, const char *id, cv_error *err)
{
    cv_buffer record = {0};
    cv_status status = cv_job_folder_read(path, id, &record, err);
    cv_buffer_free(&record);
    return status == CV_OK ? cv_job_folder_check(path, id, err) : status;
}

static cv_status open_part(const char *path, const cv_job_record *job,
                           const caterva_open_options *o, caterva_array **out, cv_error *err)
{
    char id[CV_JOB_NAME], name[CV_PART_NAME] = {0}, *place;
    cv_snapshot *like;
    cv_job_name(job->id, id);
    choose_name(name);
    CV_TRY(check_folder(path, id, err));
    CV_TRY(cv_job_path(path, id, name, &place, err));
    cv_status status = cv_snapshot_from_header(job->header, job->header_size, &like, err);
    if (status == CV_OK) {
        status = create(place, like, o, out, err);
        cv_snapshot_release(like);
    }
    cv_free(place);
    if (status == CV_OK) status = begin_marks(*out, job, name, err);
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
    }
    return status;
}

caterva_status caterva_part_open(const char *url, const void *job, size_t job_size,
                                 const caterva_open_options *options, caterva_array **out,
                                 caterva_error *err)
{
    if (!url || !job || !out)
        return cv_fail(err, CATERVA_EINVAL, -1, "url, job or out is NULL");
    *out = NULL;
    char *path;
    caterva_open_options o;
    cv_job_record record;
    CV_TRY(cv_array_open_options(options, &o, err));
    CV_TRY(cv_job_record_parse(job, job_size, &record, err));
    CV_TRY(cv_job_place(url, &path, err));
    cv_status status = open_part(path, &record, &o, out, err);
    cv_free(path);
    return status;
}

/* ---- Finishing --------------------------------------------------------------------- */

/* Crops the part to the box around all chunks that were written. */
static cv_status crop(cv_txn *txn, const cv_marks *marks, cv_part_token *token, cv_error *err)
{
    const cv_grid *grid = &marks->grid;
    int64_t shape[CV_MAX_DIMS];
    cv_marks_box(marks, token->first, token->n);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t stop = (token->first[d] + token->n[d]) * grid->chunk_shape[d];
        shape[d] = cv_min_i64(stop, grid->shape[d]) - token->first[d] * grid->chunk_shape[d];
    }
    return cv_txn_crop(txn, token->first, shape, err);
}

static cv_status encode_own(const part_of_job *part, const cv_part_token *token,
                            cv_buffer *out, cv_error *err)
{
    uint8_t origin[8 * CV_MAX_DIMS];
    cv_buffer marks = {0}, value = {0};
    for (int d = 0; d < token->ndim; d++)
        cv_store_be64(origin + 8 * d, (uint64_t)token->first[d]);
    cv_status status = cv_marks_write(&part->marks, &marks, err);
    if (status == CV_OK && marks.size > INT32_MAX / 2)
        status = cv_fail(
            err, CATERVA_EUNSUPPORTED, -1,
            "the marks of written items take %zu bytes, more than an attribute can have",
            marks.size);
    cv_own own = {.job = part->job,
                  .job_size = CV_JOB_ID,
                  .origin = origin,
                  .origin_size = 8 * (uint32_t)token->ndim,
                  .marks = marks.data,
                  .marks_size = (uint32_t)marks.size};
    if (status == CV_OK) status = cv_own_write(&own, &value, err);
    if (status == CV_OK) status = cv_encode_plain(value.data, value.size, NULL, out, err);
    cv_buffer_free(&marks);
    cv_buffer_free(&value);
    return status;
}

static cv_status set_own(cv_txn *txn, const part_of_job *part, const cv_part_token *token,
                         cv_error *err)
{
    cv_buffer own = {0};
    cv_metalayer layer = {.name = CV_OWN_ATTRIBUTE};
    cv_change change = {.set_attributes = true, .attributes = &layer, .n_attributes = 1};
    cv_status status = encode_own(part, token, &own, err);
    layer.data = own.data;
    layer.size = (uint32_t)own.size;
    if (status == CV_OK) status = cv_txn_change(txn, &change, err);
    cv_buffer_free(&own);
    return status;
}

static cv_status list_chunks(const cv_marks *marks, cv_part_token *token, cv_error *err)
{
    size_t size = (size_t)marks->n * sizeof token->chunks[0];
    token->chunks = cv_malloc(size);
    if (!token->chunks) return cv_fail_memory(err, size, "a token");
    for (int64_t i = 0; i < marks->n; i++)
        token->chunks[i] =
            (cv_part_chunk){marks->chunks[i].chunk, marks->chunks[i].marks != NULL};
    token->n_chunks = marks->n;
    return CV_OK;
}

static cv_status publish(caterva_array *array, const part_of_job *part, cv_part_token *token,
                         cv_error *err)
{
    cv_txn *txn = array->pending->txn;
    CV_TRY(list_chunks(&part->marks, token, err));
    CV_TRY(crop(txn, &part->marks, token, err));
    CV_TRY(set_own(txn, part, token, err));
    CV_TRY(cv_txn_commit(txn, err));
    const cv_snapshot *s = array->frame->current;
    memcpy(token->name, part->name, sizeof token->name);
    memcpy(token->root, s->trailer.fingerprint, CV_PART_ROOT);
    token->frame_size = s->header.frame_size;
    return CV_OK;
}

static cv_status finish(caterva_array *array, part_of_job *part, cv_buffer *out,
                        cv_error *err)
{
    cv_part_token token = {.ndim = part->marks.grid.ndim};
    memcpy(token.job, part->job, CV_JOB_ID);
    for (int d = 0; d < token.ndim; d++) token.n[d] = 1;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(cv_pending_flush(array->pending, err));
    CV_TRY(cv_marks_sort(&part->marks, err));
    cv_status status = part->marks.n > 0 ? publish(array, part, &token, err) : CV_OK;
    if (status == CV_OK) status = cv_part_token_write(&token, out, err);
    cv_part_token_free(&token);
    return status;
}

caterva_status caterva_part_finish(caterva_array *part, void **token, size_t *token_size,
                                   caterva_error *err)
{
    CV_TRY(cv_array_check(part, err));
    part_of_job *of = (part_of_job *)cv_array_attached(part, &part_kind);
    if (!of || !token || !token_size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       of ? "token or token_size is NULL" : "the array is not a part");
    cv_buffer bytes = {0};
    *token = NULL;
    cv_array_lock_alone(part);
    cv_status status = cv_array_finish(part, finish(part, of, &bytes, err));
    cv_array_free(part);
    if (status != CV_OK) {
        cv_buffer_free(&bytes);
        return status;
    }
    *token = bytes.data;
    *token_size = bytes.size;
    return CV_OK;
}
