/* Structs that callers allocate, of the size that their header gave them: a program
 * built with an older header passes a shorter one, one built with a newer header a
 * longer one, whose tail must be zero. */
#ifndef CV_ARRAY_SIZED_H
#define CV_ARRAY_SIZED_H

#include "base/status.h"

/* Copies a struct of any known size over zeros. `what` names it in errors.
 * CATERVA_EINVAL for NULL, for sizes that cannot be, and for a tail that is set. */
cv_status cv_options_copy(void *out, size_t size, const void *options, const char *what,
                          cv_error *err);

/* The same checks of a struct that is to be filled, before any work is done. */
cv_status cv_output_check(const void *out, size_t size, const char *what, cv_error *err);

/* Fills it, as far as the caller's size goes, from one of ours of `size` bytes. */
void cv_output_fill(void *out, const void *full, size_t size);

#endif
