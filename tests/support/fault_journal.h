/* The journal of a fault store, and the states that a crash may leave. */
#ifndef CV_SUPPORT_FAULT_JOURNAL_H
#define CV_SUPPORT_FAULT_JOURNAL_H

#include "store/store.h"

typedef enum cv_fault_entry_kind {
    CV_FAULT_ENTRY_WRITE,
    CV_FAULT_ENTRY_TRUNCATE,
    CV_FAULT_ENTRY_SYNC,
    CV_FAULT_ENTRY_REPLACE,
    CV_FAULT_ENTRY_REMOVE,
    CV_FAULT_ENTRY_PUBLISH,
    CV_FAULT_ENTRY_MARK
} cv_fault_entry_kind;

/* One successful change. For a short write, it contains the part that was written. */
typedef struct cv_fault_entry {
    cv_fault_entry_kind kind;
    bool durable; /* replace, publish */
    cv_object object;
    uint64_t pos; /* for a truncate: the new size */
    size_t size;
    uint8_t *bytes; /* write, replace: owned copy */
    int64_t token;  /* mark */
} cv_fault_entry;

typedef struct cv_fault_journal {
    cv_fault_entry *entries;
    size_t n_entries, capacity;
    uint8_t *initial; /* the frame object before the journal begins */
    size_t initial_size;
} cv_fault_journal;

/* A crash model determines which journal entries are in the store after a crash.
 *   prefix: all entries before `point`, in order.
 *   torn:   these, and the first `part` bytes of the write at `point`.
 *   power:  all entries before the last sync before `point`. Each 512-byte sector of a later write
 *           before `point` is kept or lost at random, by `seed`. */
typedef enum cv_crash_model { CV_CRASH_PREFIX, CV_CRASH_TORN, CV_CRASH_POWER } cv_crash_model;
typedef struct cv_crash {
    cv_crash_model model;
    int64_t point; /* number of entries before the crash */
    size_t part;
    uint64_t seed;
} cv_crash;

/* Makes a possible state of the frame object after the crash; contiguous stores only. Sets *mark to
 * the last token marked before the crash point, or to -1. Release *bytes with cv_free. */
cv_status cv_fault_journal_image(const cv_fault_journal *journal, const cv_crash *crash,
                                 uint8_t **bytes, size_t *size, int64_t *mark, cv_error *err);

#endif
