/* What makes an array a part of a job: what of it was written, and whose it is. */
#ifndef CV_ARRAY_PART_MARKS_H
#define CV_ARRAY_PART_MARKS_H

#include "jobs/marks.h"
#include "jobs/record.h"

typedef struct cv_part_of_job {
    uint8_t job[CV_JOB_ID];
    char name[CV_PART_NAME]; /* in the job's folder */
    cv_marks marks;
} cv_part_of_job;

void cv_part_of_job_free(cv_part_of_job *part); /* NULL is fine */

/* Marks what is about to be written; NULL, an array that is no part: nothing. */
cv_status cv_part_mark_box(cv_part_of_job *part, const cv_plan *plan, cv_error *err);
cv_status cv_part_mark_chunk(cv_part_of_job *part, int64_t chunk, cv_error *err);
cv_status cv_part_mark_selection(cv_part_of_job *part, const cv_selection *selection,
                                 cv_error *err);

/* Forgets all marks. */
void cv_part_unmark(cv_part_of_job *part);

/* CATERVA_EUNSUPPORTED for a part: `what` is not done to one. */
cv_status cv_part_refuse(const cv_part_of_job *part, const char *what, cv_error *err);

#endif
