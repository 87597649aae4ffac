/* The seal of a snapshot, format/seal.h: what it vouches for is checked when it
 * is read, the chunks' own checksums in layout.h. */
#ifndef CV_FRAME_SEALED_H
#define CV_FRAME_SEALED_H

#include "frame/snapshot.h"

/* The seal's head, read and checked at first need; NULL where there is nothing to
 * check: an unsealed state, one without chunks, or one opened unchecked. Any
 * thread. */
cv_status cv_sealed_head(cv_snapshot *snapshot, cv_store *store, const cv_seal_head **out,
                         cv_error *err);

/* The seal of a state whose trailer is lost, which begins where the index ends: that
 * it vouches for that index is all that tells it from other bytes. CATERVA_ECORRUPT:
 * there is none. */
cv_status cv_sealed_find(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* Checks the encoded index, whole; or a part of it against its sum. */
cv_status cv_sealed_check_index(const cv_snapshot *snapshot, const cv_seal_head *head,
                                const uint8_t *bytes, cv_error *err);
cv_status cv_sealed_check_part(const cv_snapshot *snapshot, uint32_t sum, const void *bytes,
                               size_t size, cv_error *err);

/* CATERVA_ECORRUPT: the index is not what was sealed. */
cv_status cv_sealed_fail_index(const cv_snapshot *snapshot, cv_error *err);

/* Reads and checks the chunk list and the strays, and puts them into the decoded
 * index. */
cv_status cv_sealed_read_names(const cv_snapshot *snapshot, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err);

/* One name of the list. */
cv_status cv_sealed_read_name(const cv_snapshot *snapshot, cv_store *store,
                              const cv_seal_head *head, int64_t chunk, uint32_t *out,
                              cv_error *err);

/* Appends the seal of `index`, whose encoding `out` ends with, from byte `origin`
 * on: all that stands between index and trailer, wherever that will be.
 * footer->commit is given. */
cv_status cv_sealed_append(const cv_index *index, size_t origin, cv_buffer *out,
                           cv_seal_footer *footer, cv_error *err);

/* The number of the names in the list of such a seal: cv_layouts_names of its pages. */
uint32_t cv_sealed_names(const cv_index *index);

/* Reads and checks all of the seal from the store, and the index with it. */
cv_status cv_sealed_verify(const cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* ---- layout_area ----
 * Where the layouts of a committed state stand together, see format/layout_area.h. */

typedef struct cv_layout_area {
    uint64_t pos, size; /* all of it; size 0: there is none */
    uint64_t first;     /* where its first record is */
    int64_t n;          /* records */
    size_t record_size;
} cv_layout_area;

/* Where it ends, if there is one: behind this byte is the header's copy, or the index. */
uint64_t cv_layout_area_end(const cv_snapshot *snapshot);

/* Looks for that of a state's own chunks; there is none in what is not sealed, or opened
 * unchecked. */
cv_status cv_layout_area_find(cv_snapshot *snapshot, cv_store *store, cv_layout_area *out,
                              cv_error *err);

#endif
