/* The index of a committed state: an entry of it, as a checked reference to a chunk, or all of
 * it; and the seal (format/seal.h), which is checked as far as it is read. The chunks' own
 * checksums are layout.h's. */
#ifndef CV_FRAME_LOOKUP_H
#define CV_FRAME_LOOKUP_H

#include "frame/snapshot.h"

typedef enum cv_ref_kind {
    CV_REF_STORED,
    CV_REF_ZEROS,
    CV_REF_NAN,
    CV_REF_UNINIT, /* reads as zeros */
    CV_REF_ITEM    /* one item everywhere; only pending, never in an index */
} cv_ref_kind;

/* Where a chunk is. */
typedef struct cv_chunk_ref {
    int64_t chunk;
    cv_ref_kind kind;
    cv_object object;    /* of a stored chunk: the frame, or a chunk file */
    uint64_t pos;        /* of its first byte in the object */
    uint64_t limit;      /* bytes the object can hold of it (0: ask the store) */
    const uint8_t *item; /* of CV_REF_ITEM; borrowed */
    uint32_t name;       /* of its block table, 0: none is known, it is unverified */
    uint64_t table_pos;  /* where that stands in the frame, 0: right behind the chunk */
} cv_chunk_ref;

/* The index entry of a special chunk. */
int64_t cv_offset_of_kind(cv_ref_kind kind);

/* Turns an index entry into a reference, checked against the chunk area; without
 * the name of a table. */
cv_status cv_chunk_ref_make(const cv_snapshot *snapshot, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err);

/* The reference to a chunk of an index of the snapshot's. */
cv_status cv_chunk_ref_find(const cv_snapshot *snapshot, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err);

/* CATERVA_ECORRUPT if the frame has no room for `n_stored` stored chunks: each takes a header
 * of its own, or is a file. Call it before looking at all of them. */
cv_status cv_snapshot_check_room(const cv_snapshot *snapshot, cv_store *store,
                                 int64_t n_stored, cv_error *err);

/* ---- The index ---- */

/* The decoded index; reads and decodes it the first time. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* Where a chunk of the committed state is. The first few of a large index are
 * looked up in their block alone; who asks more often has it decoded whole. Any
 * thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

/* ---- The seal ---- */

/* The seal's head, read and checked at first need; NULL where there is nothing to
 * check: an unsealed state, one without chunks, or one opened unchecked. Any
 * thread. */
cv_status cv_sealed_head(cv_snapshot *snapshot, cv_store *store, const cv_seal_head **out,
                         cv_error *err);

/* The seal of a state whose trailer is lost, which begins where the index ends: that
 * it vouches for that index is all that tells it from other bytes. CATERVA_ECORRUPT:
 * there is none. */
cv_status cv_sealed_find(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* Reads and checks the chunk list and the strays, and puts them into the decoded index. */
cv_status cv_sealed_read_names(const cv_snapshot *snapshot, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err);

/* Appends the seal of `index`, whose encoding `out` ends with, from byte `origin`
 * on: all that stands between index and trailer, wherever that will be.
 * footer->commit is given. */
cv_status cv_sealed_append(const cv_index *index, size_t origin, cv_buffer *out,
                           cv_seal_footer *footer, cv_error *err);

/* The number of the names in the list of such a seal: cv_layouts_names of its pages. */
uint32_t cv_sealed_names(const cv_index *index);

/* Reads and checks all of the seal from the store, and the index with it. */
cv_status cv_sealed_verify(const cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* ---- The layouts of all chunks ----
 *
 * Where they stand together in the frame, see format/seal.h. */

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
