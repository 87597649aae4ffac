/* A store that is another one but for its first bytes. */
#ifndef CV_STORE_HEADED_H
#define CV_STORE_HEADED_H

#include "store/store.h"

/* Reads `size` bytes of `head`, which are copied, in the place of those that `inner` begins
 * with, and everything else from `inner`, which holds at least so many. Owns `inner`, unless
 * it fails. To be read only. */
cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err);

#endif
