/* What a damaged file still has of its commits: whole copies of their headers, and the
 * footers of their seals. Both say the number of their commit. */
#ifndef CV_FRAME_COPIES_H
#define CV_FRAME_COPIES_H

#include "format/seal.h"
#include "store/store.h"

/* Of each so many are known: those of the highest numbers, newest first. */
enum { CV_MAX_COPIES = 16 };

typedef struct cv_found_copy {
    uint64_t commit;
    cv_buffer header;
    uint64_t frame_size;
    uint64_t end; /* of the copy or of its frame, what is further */
    int64_t cbytes;
} cv_found_copy;

typedef struct cv_found_seal {
    cv_seal_footer footer; /* as it stands: nothing is checked */
    uint64_t pos;
} cv_found_seal;

typedef struct cv_copies {
    cv_found_copy items[CV_MAX_COPIES];
    int n;
    cv_found_seal seals[CV_MAX_COPIES];
    int n_seals;
} cv_copies;

/* Reads all of the store's frame object, through a window. What cannot be read holds
 * nothing. `out` is empty; release it with cv_copies_free, whatever comes back. */
cv_status cv_copies_find(cv_store *store, cv_copies *out, cv_error *err);
void cv_copies_free(cv_copies *copies);

/* Is there nothing in the file that tells of a commit later than the newest copy's? That
 * are a seal with a higher number, sizes in the header that are no copy's, and bytes
 * behind the copy's frame that are neither an older one's nor a frame of their own. When in
 * doubt, there is. With one copy at least. */
bool cv_copies_have_last(const cv_copies *copies, cv_store *store);

#endif
