/* Chunk references: what an entry of the index says, checked. */
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

/* CATERVA_ECORRUPT when so many stored chunks cannot be there: each takes a header of its
 * own, or is a file. For who is about to look at all of them. */
cv_status cv_snapshot_check_room(const cv_snapshot *snapshot, cv_store *store,
                                 int64_t n_stored, cv_error *err);

/* ---- index_read ----
 * The chunk index of a committed state, read from the frame: one entry of it, or all. */

/* The decoded index; reads and decodes it the first time. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* Where a chunk of the committed state is. The first few of a large index are
 * looked up in their block alone; who asks more often has it decoded whole. Any
 * thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

#endif
