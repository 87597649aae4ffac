/* Room: array. A program's own memory functions, checked and handed down. */
#include "array/array.h"
#include "base/heap.h"

cv_status caterva_set_allocator(const caterva_allocator *allocator, cv_error *err)
{
    caterva_allocator given;
    if (!allocator) return cv_fail(err, CATERVA_EINVAL, -1, "the allocator is NULL");
    CV_TRY(cv_options_copy(&given, sizeof given, allocator, "allocator", err));
    if (!given.allocate || !given.release)
        return cv_fail(err, CATERVA_EINVAL, -1, "the allocator's %s function is NULL",
                       given.allocate ? "release" : "allocate");
    cv_heap_functions functions = {given.context, given.allocate, given.release};
    if (cv_heap_set(&functions)) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "an allocator can be set once, and before the library allocates anything");
}
