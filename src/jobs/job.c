/* Room: jobs. Begins, lists and deletes jobs. Ends them in the commit of the handle that merged
 * them. Does not depend on parts and merges. */
#include "jobs/job.h"

#include "array/array.h"
#include "array/open.h"
#include "base/heap.h"
#include "base/os.h"
#include "engine/run/pool.h"
#include "engine/write/flush.h"
#include "engine/write/resize.h"
#include "jobs/base.h"
#include "jobs/folder.h"
#include "jobs/jobs.h"
#include "upkeep/upkeep.h"

#include <caterva_jobs.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Jobs of a handle -------------------------------------------------------------- */

typedef struct held_jobs {
    cv_attachment base; /* first */
    cv_held_job *first;
} held_jobs;

static void free_job(cv_held_job *job)
{
    cv_file_close(&job->lock);
    cv_free(job);
}

static void roll_back(cv_attachment *self)
{
    for (cv_held_job *job = ((held_jobs *)self)->first; job; job = job->next) {
        job->merged = false;
        job->merged_bytes = 0;
    }
}

static void free_held(cv_attachment *self)
{
    for (cv_held_job *next, *job = ((held_jobs *)self)->first; job; job = next) {
        next = job->next;
        free_job(job);
    }
    cv_free(self);
}

static const cv_attachment_kind held_kind = {.roll_back = roll_back, .free = free_held};

static cv_held_job *first_held(const caterva_array *array)
{
    const cv_attachment *held = cv_array_attached(array, &held_kind);
    return held ? ((const held_jobs *)held)->first : NULL;
}

cv_status cv_held_job_get(caterva_array *array, const char *id, cv_held_job **out,
                          cv_error *err)
{
    held_jobs *held = (held_jobs *)cv_array_attached(array, &held_kind);
    cv_held_job *job = held ? held->first : NULL;
    while (job && strcmp(job->id, id) != 0) job = job->next;
    *out = job;
    if (job) return CV_OK;
    if (!held) {
        held = cv_calloc(1, sizeof *held);
        if (!held) return cv_fail_memory(err, sizeof *held, "a job");
        cv_array_attach(array, &held_kind, &held->base);
    }
    job = cv_calloc(1, sizeof *job);
    if (!job) return cv_fail_memory(err, sizeof *job, "a job");
    memcpy(job->id, id, CV_JOB_NAME);
    job->next = held->first;
    *out = held->first = job;
    return CV_OK;
}

static void remove_parts(void *context)
{
    cv_job_removal *removal = context;
    while (cv_job_removal_step(removal)) continue;
}

static void remove_job(const cv_held_job *job, const char *path, int threads, cv_watch *watch)
{
    enum { BYTES_PER_HELPER = 8 << 20 }; /* half a millisecond of deleting */
    cv_job_removal *removal;
    uint64_t helpers = job->merged_bytes / BYTES_PER_HELPER;
    if (cv_job_removal_begin(path, job->id, watch, &removal, NULL) != CV_OK) return;
    if (helpers > (uint64_t)threads - 1) helpers = (uint64_t)threads - 1;
    (void)cv_pool_run((int)helpers, remove_parts, removal, watch,
                      NULL); /* the job has ended */
    (void)cv_job_removal_end(removal, NULL);
}

static void remove_merged(caterva_array *array)
{
    held_jobs *held = (held_jobs *)cv_array_attached(array, &held_kind);
    cv_held_job **link = held ? &held->first : NULL;
    while (link && *link) {
        cv_held_job *job = *link;
        if (!job->merged) {
            link = &job->next;
            continue;
        }
        remove_job(job, array->path, array->threads, array->watch);
        *link = job->next;
        free_job(job);
    }
}

static bool has_begun(const void *jobs, const char *id)
{
    for (const cv_held_job *job = jobs; job; job = job->next)
        if (strcmp(job->id, id) == 0) return job->begun;
    return false;
}

void cv_jobs_committed(caterva_array *array, bool is_first)
{
    if (is_first && array->path)
        cv_job_folders_replaced(array->path, has_begun, first_held(array));
    remove_merged(array);
}

/* ---- Begin ------------------------------------------------------------------------- */

static cv_status check_place(const caterva_array *array, cv_error *err)
{
    if (array->frame->store->in_memory)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "the array is in memory: parts need a directory beside it");
    if (!array->path || !array->frame->store->ops->create_over)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "the array has no path: parts need a directory beside it");
    if (cv_array_is_leaf_url(array->path))
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%.150s is an array in a tree: open its file by its own path",
                       array->path);
    return cv_array_refuse(array, "a job", err);
}

static cv_status grow(caterva_array *array, const int64_t *shape, cv_error *err)
{
    const cv_grid *grid = &cv_array_state(array)->grid;
    for (int d = 0; shape && d < grid->ndim; d++)
        if (shape[d] < grid->shape[d])
            return cv_fail(
                err, CATERVA_ESHAPE, -1,
                "a job cannot shrink an array: shape[%d] is %lld, the array has %lld", d,
                (long long)shape[d], (long long)grid->shape[d]);
    if (!shape || memcmp(shape, grid->shape, (size_t)grid->ndim * sizeof shape[0]) == 0)
        return CV_OK;
    cv_status status = cv_resize(array->pending, shape, err);
    if (status != CV_OK) array->pending->broken = true;
    cv_array_changed(array);
    return status;
}

/* Writes the header of an empty frame that has the geometry and the pipeline of `state`. */
static cv_status write_header(const cv_snapshot *state, cv_buffer *out, cv_error *err)
{
    cv_frame_header header = state->header;
    header.n_metalayers = 0;
    for (int i = 0; i < state->header.n_metalayers; i++) {
        const cv_metalayer *layer = &state->header.metalayers[i];
        if (strcmp(layer->name, state->meta.legacy ? "caterva" : "b2nd") == 0)
            header.metalayers[header.n_metalayers++] = *layer;
    }
    header.has_attributes = false;
    header.cbytes = 0;
    CV_TRY(cv_frame_header_write(&header, out, err));
    header.frame_size = header.header_size + CV_TRAILER_MIN;
    out->size = 0;
    return cv_frame_header_write(&header, out, err);
}

static cv_status write_record(const caterva_array *array, const uint8_t *id, cv_buffer *out,
                              cv_error *err)
{
    const cv_grid *committed = &array->snapshot->grid;
    cv_job_record record = {
        .commit = array->snapshot->footer.commit,
        .began_ns = cv_os_time_ns(),
        .process = cv_os_process(),
        .ndim = committed->ndim,
    };
    cv_buffer header = {0};
    memcpy(record.id, id, CV_JOB_ID);
    cv_os_host(record.host, sizeof record.host);
    memcpy(record.shape, committed->shape, sizeof record.shape);
    cv_status status = write_header(cv_array_state(array), &header, err);
    record.header = header.data;
    record.header_size = (uint32_t)header.size;
    if (status == CV_OK) status = cv_job_record_write(&record, out, err);
    cv_buffer_free(&header);
    return status;
}

static cv_status write_base(caterva_array *array, const char *folder, cv_error *err)
{
    size_t size = strlen(folder) + sizeof "/" CV_JOB_BASE;
    char *path = cv_malloc(size);
    if (!path) return cv_fail_memory(err, size, "a path");
    (void)snprintf(path, size, "%s/" CV_JOB_BASE, folder);
    cv_status status = cv_job_base_write(array, path, err);
    cv_free(path);
    return status;
}

static cv_status make_folder(caterva_array *array, const char *id, const cv_buffer *record,
                             cv_file *lock, cv_error *err)
{
    char *folder;
    bool durable = array->frame->durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_job_folder_make(array->path, id, array->watch, &folder, err));
    cv_status status = write_base(array, folder, err);
    cv_free(folder);
    if (status == CV_OK)
        status = cv_job_folder_name(array->path, id, record, durable, lock, err);
    if (status != CV_OK) (void)cv_job_folder_remove(array->path, id, NULL, NULL);
    return status;
}

static cv_status begin(caterva_array *array, const int64_t *shape, cv_buffer *record,
                       cv_error *err)
{
    uint8_t id[CV_JOB_ID];
    char name[CV_JOB_NAME];
    cv_file lock;
    cv_held_job *held;
    CV_TRY(cv_pending_check(array->pending, err));
    CV_TRY(grow(array, shape, err));
    CV_TRY(cv_pending_flush(array->pending, err));
    cv_os_random(id, sizeof id);
    cv_job_name(id, name);
    CV_TRY(write_record(array, id, record, err));
    CV_TRY(make_folder(array, name, record, &lock, err));
    cv_status status = cv_held_job_get(array, name, &held, err);
    if (status == CV_OK) {
        held->lock = lock;
        held->begun = true;
        return CV_OK;
    }
    cv_file_close(&lock);
    (void)cv_job_folder_remove(array->path, name, NULL, NULL);
    return status;
}

caterva_status caterva_job_begin(caterva_array *array, const caterva_job_options *options,
                                 void **job, size_t *job_size, caterva_error *err)
{
    caterva_job_options o;
    cv_buffer record = {0};
    CV_TRY(cv_array_check_encodes(array, err));
    if (!job || !job_size) return cv_fail(err, CATERVA_EINVAL, -1, "job or job_size is NULL");
    *job = NULL;
    CV_TRY(cv_options_read(&o, sizeof o, options, "job options", err));
    CV_TRY(check_place(array, err));
    cv_array_lock_alone(array);
    cv_status status = cv_array_finish(array, begin(array, o.shape, &record, err));
    if (status != CV_OK) {
        cv_buffer_free(&record);
        return status;
    }
    *job = record.data;
    *job_size = record.size;
    return CV_OK;
}

/* ---- Calls without a handle -------------------------------------------------------- */

caterva_status caterva_job_delete(const char *url, const void *job, size_t job_size,
                                  const caterva_upkeep_options *options, caterva_error *err)
{
    cv_watch watch;
    caterva_upkeep_options o;
    cv_job_record record;
    char id[CV_JOB_NAME], *path;
    if (!url || !job) return cv_fail(err, CATERVA_EINVAL, -1, "url or job is NULL");
    CV_TRY(cv_job_record_parse(job, job_size, &record, err));
    cv_job_name(record.id, id);
    CV_TRY(cv_upkeep_options_read(options, &o, err));
    CV_TRY(cv_job_place(url, &path, err));
    cv_watch *reporting = cv_watch_open(&watch, &o.progress, NULL);
    cv_status status = cv_job_folder_remove(path, id, reporting, err);
    cv_free(path);
    return cv_watch_close(&watch, status);
}

/* ---- List -------------------------------------------------------------------------- */

typedef struct listed_job {
    caterva_job_entry entry; /* first */
    char id[CV_JOB_NAME];
    char host[CV_JOB_HOST];
    char *folder;
    cv_buffer job;
} listed_job;

typedef struct listing {
    caterva_job_list list; /* first */
    const char *path;
    cv_watch *watch;
    size_t max;
    caterva_job_entry **entries;
} listing;

static void free_listed(listed_job *job)
{
    cv_free(job->folder);
    cv_buffer_free(&job->job);
    cv_free(job);
}

static cv_status look_at(const listing *all, const char *name, listed_job *out, cv_error *err)
{
    cv_job_record record;
    cv_job_look look;
    const char *path = all->path;
    const char *id = cv_job_folder_id(name);
    memcpy(out->id, id, CV_JOB_NAME);
    CV_TRY(cv_job_path(path, name, NULL, &out->folder, err));
    CV_TRY(cv_job_folder_read(path, name, &out->job, err));
    CV_TRY(cv_job_record_parse(out->job.data, out->job.size, &record, err));
    CV_TRY(cv_job_folder_look(path, name, all->watch, &look, err));
    memcpy(out->host, record.host, CV_JOB_HOST);
    out->entry = (caterva_job_entry){
        .struct_size = sizeof out->entry,
        .id = out->id,
        .folder = out->folder,
        .job = out->job.data,
        .job_size = out->job.size,
        .host = out->host,
        .process = record.process,
        .began_ns = (int64_t)record.began_ns,
        .commit_number = (int64_t)record.commit,
        .is_live = look.is_live,
        .n_parts = look.n_parts,
        .part_bytes = look.part_bytes,
        .has_ended = id != name,
    };
    return CV_OK;
}

/* Adds a job to the list. Skips a job that has ended since its folder was listed. */
static cv_status add_job(void *context, const char *name, cv_error *err)
{
    listing *all = context;
    cv_error error = {.code = CATERVA_OK};
    caterva_job_entry **entries =
        cv_grow(all->entries, all->list.n, &all->max, sizeof *entries);
    if (!entries) return cv_fail_memory(err, all->max * sizeof *entries, "a list of jobs");
    all->entries = entries;
    listed_job *job = cv_calloc(1, sizeof *job);
    if (!job) return cv_fail_memory(err, sizeof *job, "a job");
    cv_status status = look_at(all, name, job, &error);
    if (status == CV_OK) {
        all->entries[all->list.n++] = &job->entry;
        return CV_OK;
    }
    free_listed(job);
    if (status == CATERVA_ENOTFOUND) return CV_OK;
    if (err) *err = error;
    return status;
}

static int by_age(const void *a, const void *b)
{
    const caterva_job_entry *x = *(caterva_job_entry *const *)a;
    const caterva_job_entry *y = *(caterva_job_entry *const *)b;
    if (x->began_ns != y->began_ns) return x->began_ns < y->began_ns ? -1 : 1;
    return strcmp(x->id, y->id);
}

static cv_status list_jobs(const char *path, cv_watch *watch, const caterva_job_list **out,
                           cv_error *err)
{
    listing *all = cv_calloc(1, sizeof *all);
    if (!all) return cv_fail_memory(err, sizeof *all, "a list of jobs");
    all->list.struct_size = sizeof all->list;
    all->path = path;
    all->watch = watch;
    cv_status status = cv_job_folders(path, add_job, all, err);
    if (all->list.n > 0) qsort(all->entries, all->list.n, sizeof all->entries[0], by_age);
    all->path = NULL;
    all->watch = NULL;
    all->list.entries = (const caterva_job_entry *const *)all->entries;
    if (status != CV_OK) {
        caterva_job_list_release(&all->list);
        return status;
    }
    *out = &all->list;
    return CV_OK;
}

caterva_status caterva_jobs_list(const char *url, const caterva_upkeep_options *options,
                                 const caterva_job_list **out, caterva_error *err)
{
    char *path;
    cv_watch watch;
    caterva_upkeep_options o;
    if (!url || !out) return cv_fail(err, CATERVA_EINVAL, -1, "url or out is NULL");
    *out = NULL;
    CV_TRY(cv_upkeep_options_read(options, &o, err));
    CV_TRY(cv_job_place(url, &path, err));
    cv_watch *reporting = cv_watch_open(&watch, &o.progress, NULL);
    cv_status status = list_jobs(path, reporting, out, err);
    cv_free(path);
    return cv_watch_close(&watch, status);
}

void caterva_job_list_release(const caterva_job_list *list)
{
    listing *all = (listing *)list;
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) free_listed((listed_job *)all->entries[i]);
    cv_free(all->entries);
    cv_free(all);
}

/* ---- Checks before an array is moved ----------------------------------------------- */

static cv_status refuse_open(void *context, const char *id, cv_error *err)
{
    if (cv_job_folder_id(id) != id) return CV_OK; /* the job has ended */
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "%.80s has the open job %s, whose parts are beside it: merge or delete it "
                   "before the array is moved or deleted",
                   (const char *)context, id);
}

cv_status cv_jobs_check_none(const char *path, const char *name, cv_error *err)
{
    return cv_job_folders(path, refuse_open, cv_unconst(name), err);
}

cv_status cv_jobs_has_folder(const char *path, bool *out, cv_error *err)
{
    char *folder;
    cv_file_info info;
    CV_TRY(cv_job_path(path, NULL, NULL, &folder, err));
    *out = cv_dir_get_info(cv_dir_here, folder, &info) == 0;
    cv_free(folder);
    return CV_OK;
}
