/* Room: array. A list in the handle; most have none. */
#include "array/held_jobs.h"

#include "base/heap.h"
#include "store/job_folder.h"

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

void cv_held_jobs_committed(cv_held_job **jobs, const char *path)
{
    while (*jobs) {
        cv_held_job *job = *jobs;
        if (!job->merged) {
            jobs = &job->next;
            continue;
        }
        (void)cv_job_folder_remove(path, job->id, NULL);
        *jobs = job->next;
        free_job(job);
    }
}

void cv_held_jobs_rolled_back(cv_held_job *jobs)
{
    for (; jobs; jobs = jobs->next) jobs->merged = false;
}

void cv_held_jobs_free(cv_held_job *jobs)
{
    while (jobs) {
        cv_held_job *next = jobs->next;
        free_job(jobs);
        jobs = next;
    }
}
