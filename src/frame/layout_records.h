/* The layouts of all chunks of a state as they stand in its frame: which record is whose, and
 * a layout made of one. */
#ifndef CV_FRAME_LAYOUT_RECORDS_H
#define CV_FRAME_LAYOUT_RECORDS_H

#include "frame/layout.h"
#include "frame/layout_area.h"

typedef struct cv_layout_records {
    cv_layout_area area;
    const cv_snapshot *snapshot; /* whose they are */
    const cv_index *index;       /* the snapshot's, decoded */
    int64_t before[];            /* of each page of the index: records before it */
} cv_layout_records;

/* Those of the snapshot, which outlives them; NULL: it has none whose footer is at hand, or
 * they cannot be used. Free with cv_free. */
cv_status cv_layout_records_new(cv_snapshot *snapshot, cv_store *store,
                                cv_layout_records **out, cv_error *err);

/* The record of a chunk; false: it has none. */
bool cv_layout_records_find(const cv_layout_records *records, int64_t chunk, int64_t *record);

/* Where a record is in the frame. */
static inline uint64_t cv_layout_record_pos(const cv_layout_records *records, int64_t record)
{
    return records->area.first + (uint64_t)record * records->area.record_size;
}

/* The layout that a record's bytes make, checked, with one reference; NULL: they are not what
 * the seal knows of the chunk, or there is no memory. */
cv_layout *cv_layout_of_record(const cv_layout_records *records, cv_store *store,
                               const cv_chunk_ref *ref, const uint8_t *bytes);

#endif
