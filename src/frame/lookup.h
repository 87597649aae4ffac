/* The index of a committed state, as checked references or as a whole; and its seal
 * (format/seal.h), checked as far as it is read. Checksums of chunks are in layout.h. */
#ifndef CV_FRAME_LOOKUP_H
#define CV_FRAME_LOOKUP_H

#include "frame/snapshot.h"

typedef enum cv_ref_kind {
    CV_REF_STORED,
    CV_REF_ZEROS,
    CV_REF_NAN,
    CV_REF_UNINIT, /* reads as zeros */
    CV_REF_ITEM    /* one repeated item; only pending, never in an index */
} cv_ref_kind;

/* The position of a chunk. */
typedef struct cv_chunk_ref {
    int64_t chunk;
    cv_ref_kind kind;
    cv_object object;    /* object of a stored chunk: the frame, or a chunk file */
    uint64_t pos;        /* position of the chunk's first byte in the object */
    uint64_t limit;      /* bytes of the object available for it; 0: ask the store */
    const uint8_t *item; /* of CV_REF_ITEM; borrowed */
    uint32_t name;       /* checksum that names the chunk's block table; 0 if unverified */
    uint64_t table_pos;  /* position of the table in the frame; 0: right behind the chunk */
} cv_chunk_ref;

/* The index entry of a special chunk. */
int64_t cv_offset_of_kind(cv_ref_kind kind);

/* Makes a reference without a table name from an index entry; checks it against the chunk area. */
cv_status cv_chunk_ref_make(const cv_snapshot *snapshot, int64_t chunk, int64_t offset,
                            cv_chunk_ref *out, cv_error *err);

/* Makes the reference to a chunk from its entry in `index`. */
cv_status cv_chunk_ref_find(const cv_snapshot *snapshot, const cv_index *index, int64_t chunk,
                            cv_chunk_ref *out, cv_error *err);

/* CATERVA_ECORRUPT if the frame cannot contain `n_stored` chunks (each is a file, or at least a
 * header). Call before listing all chunks. */
cv_status cv_snapshot_check_room(const cv_snapshot *snapshot, cv_store *store,
                                 int64_t n_stored, cv_error *err);

/* ---- The index ---- */

/* Returns the decoded index. The first call reads and decodes it. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* Finds a chunk of the committed state. The first few lookups in a large index decode one block
 * each; later ones decode the whole index. Any thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

/* ---- The seal ---- */

/* Returns the head of the seal, which the first call reads and checks. NULL if the state is
 * unsealed, has no chunks or was opened unchecked. Any thread. */
cv_status cv_sealed_head(cv_snapshot *snapshot, cv_store *store, const cv_seal_head **out,
                         cv_error *err);

/* Finds the seal behind the index of a state whose trailer is lost, and checks that its head fits
 * this index. CATERVA_ECORRUPT: not found. */
cv_status cv_sealed_find(cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* Reads and checks the seal's chunk list and strays, and adds them to the decoded index. */
cv_status cv_sealed_read_names(const cv_snapshot *snapshot, cv_store *store,
                               const cv_seal_head *head, cv_index *index, cv_error *err);

/* Appends the seal of `index`: everything between index and trailer. `out` ends with the encoded
 * index, which begins at byte `origin`. The caller has set footer->commit. */
cv_status cv_sealed_append(const cv_index *index, size_t origin, cv_buffer *out,
                           cv_seal_footer *footer, cv_error *err);

/* Returns the checksum of the names in that seal's chunk list: cv_layouts_names of its pages. */
uint32_t cv_sealed_names(const cv_index *index);

/* Reads all of the seal and the index from the store, and checks them. */
cv_status cv_sealed_verify(const cv_snapshot *snapshot, cv_store *store, cv_error *err);

/* ---- The layouts of all chunks ----
 *
 * The area of the frame that contains them, see format/seal.h. */

typedef struct cv_layout_area {
    uint64_t pos, size; /* of the whole area; size 0: no area */
    uint64_t first;     /* position of the first record */
    int64_t n;          /* number of records */
    size_t record_size;
} cv_layout_area;

/* Returns an upper bound of the area's end: the position of the header copy, or of the index. */
uint64_t cv_layout_area_end(const cv_snapshot *snapshot);

/* Finds the area with the layouts of this state. None if unsealed or opened unchecked. */
cv_status cv_layout_area_find(cv_snapshot *snapshot, cv_store *store, cv_layout_area *out,
                              cv_error *err);

#endif
