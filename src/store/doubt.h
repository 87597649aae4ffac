/* Bytes of a store that is far may be damaged on their way, or by a cache that kept them: what
 * a parser refuses, before a checksum is looked at or after, is fetched once more past all
 * caches, and only what is refused twice is told. */
#ifndef CV_STORE_DOUBT_H
#define CV_STORE_DOUBT_H

#include "store/store.h"

/* Reads of a store, which can be done again from the beginning, and change nothing that stays
 * when they fail. */
typedef struct cv_doubted {
    cv_store *store; /* NULL: none that is doubted */
    cv_status (*read)(void *context, cv_error *err);
    void *context;
    bool begins; /* nothing that was read before is used */
} cv_doubted;

/* Whether a parser speaks so of bytes that are not what they should be. */
bool cv_is_doubtful(cv_status status);

/* Reads; a second time where that is worth it. CATERVA_EIO: it is of another version now than
 * when it was opened; else what the last reading says. */
cv_status cv_store_doubting(const cv_doubted *d, cv_error *err);

#endif
