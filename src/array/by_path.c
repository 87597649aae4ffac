/* Room: array. Arrays as files: put behind the end of another file; new ones abandoned. */
#include "array/array.h"
#include "store/open.h"
#include "store/place.h"

void caterva_abandon(void) { cv_temporaries_abandon(); }

static cv_status append(caterva_array *array, cv_append *a, uint64_t *offset, cv_error *err)
{
    void *frame;
    uint64_t pos = 0;
    CV_TRY(caterva_frame_copy(array, &frame, &a->size, err));
    a->bytes = frame;
    cv_status status = cv_store_file_append(a, &pos, err);
    caterva_free(frame);
    if (status == CV_OK && offset) *offset = pos;
    return status;
}

caterva_status caterva_frame_append(caterva_array *array, const char *path,
                                    caterva_durability durability, uint64_t *offset,
                                    caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!path || !*path) return cv_fail(err, CATERVA_EINVAL, -1, "the path is NULL or empty");
    if (durability < CATERVA_DURABILITY_FULL || durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)durability);
    cv_append a = {.path = path, .durable = durability != CATERVA_DURABILITY_NONE};
    a.watch = array->watch;
    if (a.watch) cv_watch_begin(a.watch); /* around both, so that they are counted together */
    cv_status status = append(array, &a, offset, err);
    if (a.watch) cv_watch_end(a.watch, status == CV_OK);
    return status;
}
