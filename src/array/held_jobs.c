/* Room: array. A list in the handle; most have none. */
#include "array/held_jobs.h"

#include "base/heap.h"
#include "engine/run/pool.h"
#include "jobs/folder.h"

#include <string.h>

cv_status cv_held_jobs_get(cv_held_job **jobs, const char *id, cv_held_job **out,
                           cv_error *err)
{
    cv_held_job *job = *jobs;
    while (job && strcmp(job->id, id) != 0) job = job->next;
    if (!job) {
        job = cv_calloc(1, sizeof *job);
        if (!job) return cv_fail_memory(err, sizeof *job, "a job");
        memcpy(job->id, id, CV_JOB_NAME);
        job->next = *jobs;
        *jobs = job;
    }
    *out = job;
    return CV_OK;
}

static void free_job(cv_held_job *job)
{
    cv_file_close(&job->lock);
    cv_free(job);
}

static void remove_parts(void *context)
{
    cv_job_removal *removal = context;
    while (cv_job_removal_step(removal)) continue;
}

static void remove_job(const cv_held_job *job, const char *path, int threads, cv_watch *watch)
{
    enum { BYTES_PER_HELPER = 8 << 20 }; /* half a millisecond's work */
    cv_job_removal *removal;
    uint64_t helpers = job->merged_bytes / BYTES_PER_HELPER;
    if (cv_job_removal_begin(path, job->id, watch, &removal, NULL) != CV_OK) return;
    if (helpers > (uint64_t)threads - 1) helpers = (uint64_t)threads - 1;
    (void)cv_pool_run((int)helpers, remove_parts, removal, watch,
                      NULL); /* too late to stop */
    (void)cv_job_removal_end(removal, NULL);
}

void cv_held_jobs_committed(cv_held_job **jobs, const char *path, int threads,
                            cv_watch *watch)
{
    while (*jobs) {
        cv_held_job *job = *jobs;
        if (!job->merged) {
            jobs = &job->next;
            continue;
        }
        remove_job(job, path, threads, watch);
        *jobs = job->next;
        free_job(job);
    }
}

static bool has_begun(const void *jobs, const char *id)
{
    for (const cv_held_job *job = jobs; job; job = job->next)
        if (strcmp(job->id, id) == 0) return job->begun;
    return false;
}

void cv_held_jobs_published(const cv_held_job *jobs, const char *path)
{
    if (path) cv_job_folders_replaced(path, has_begun, jobs);
}

void cv_held_jobs_rolled_back(cv_held_job *jobs)
{
    for (; jobs; jobs = jobs->next) {
        jobs->merged = false;
        jobs->merged_bytes = 0;
    }
}

void cv_held_jobs_free(cv_held_job *jobs)
{
    while (jobs) {
        cv_held_job *next = jobs->next;
        free_job(jobs);
        jobs = next;
    }
}
