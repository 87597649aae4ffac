/* The index of a committed state, as checked references or whole; and its seal
 * (format/seal.h), checked as far as it is read. Chunks' own checksums are layout.h's. */
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

/* Makes a reference, without a table's name, of an index entry; checks it against the chunk
 * area. */
cv_status cv_chunk_ref_make(const cv_snapshot *snapshot, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err);

/* The reference to a chunk of an index of the snapshot's. */
cv_status cv_chunk_ref_find(const cv_snapshot *snapshot, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err);

/* CATERVA_ECORRUPT if the frame cannot hold `n_stored` chunks (each takes a header, or is a
 * file). Call before looking at all. */
cv_status cv_snapshot_check_room(const cv_snapshot *snapshot, cv_store *store,
                                 int64_t n_stored, cv_error *err);

/* ---- The index ---- */

/* The decoded index; reads and decodes it the first time. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* Finds a chunk of the committed state. The first few lookups of a large index decode one
 * block each; later ones decode all. Any thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

/* ---- The seal ---- */

/* The seal's head, read and checked at first need; NULL: unsealed, without chunks, or
 * opened unchecked. Any thread. */
cv_status cv_sealed_head(cv_snapshot *snapshot, cv_store *store, const cv_seal_head **out,
                         cv_error *err);

/* Finds the seal behind the index of a state whose trailer is lost: it must vouch for that
 * index. CATERVA_ECORRUPT: there is none. */
cv_status cv_sealed_find(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* Reads and checks the chunk list and the strays, and puts them into the decoded index. */
cv_status cv_sealed_read_names(const cv_snapshot *snapshot, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err);

/* Appends the seal of `index`, whose encoding `out` ends with, from byte `origin` on: all
 * between index and trailer. footer->commit is given. */
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

/* Finds the area of the state's own layouts; none if unsealed or opened unchecked. */
cv_status cv_layout_area_find(cv_snapshot *snapshot, cv_store *store, cv_layout_area *out,
                              cv_error *err);

#endif
