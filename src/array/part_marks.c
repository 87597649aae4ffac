/* Room: array. Marks of a handle that writes a part. Opening and finishing one is part.c's. */
#include "array/part_marks.h"

#include "base/heap.h"

void cv_part_of_job_free(cv_part_of_job *part)
{
    if (!part) return;
    cv_marks_clear(&part->marks);
    cv_free(part);
}

cv_status cv_part_mark_box(cv_part_of_job *part, const cv_plan *plan, cv_error *err)
{
    return part && plan->n_items > 0 ? cv_marks_add_box(&part->marks, plan, err) : CV_OK;
}

cv_status cv_part_mark_chunk(cv_part_of_job *part, int64_t chunk, cv_error *err)
{
    return part ? cv_marks_add_chunk(&part->marks, chunk, err) : CV_OK;
}

cv_status cv_part_mark_selection(cv_part_of_job *part, const cv_selection *selection,
                                 cv_error *err)
{
    if (!part || selection->n_items == 0) return CV_OK;
    cv_grid grid = cv_marks_grid(&part->marks);
    cv_selection bytes = *selection;
    bytes.grid = &grid;
    return cv_marks_add_selection(&part->marks, &bytes, err);
}

void cv_part_unmark(cv_part_of_job *part)
{
    if (!part) return;
    cv_grid grid = part->marks.grid;
    cv_marks_clear(&part->marks);
    cv_marks_init(&part->marks, &grid);
}

cv_status cv_part_refuse(const cv_part_of_job *part, const char *what, cv_error *err)
{
    if (!part) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s is not for a part of a job: write items, then caterva_part_finish",
                   what);
}
