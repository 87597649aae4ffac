/* The inside of the fault store: shared by fault.c and fault_image.c. */
#ifndef CV_STORE_FAULT_JOURNAL_H
#define CV_STORE_FAULT_JOURNAL_H

#include "store/fault.h"

#include <pthread.h>

typedef enum cv_fault_entry_kind {
    CV_FAULT_ENTRY_WRITE,
    CV_FAULT_ENTRY_TRUNCATE,
    CV_FAULT_ENTRY_SYNC,
    CV_FAULT_ENTRY_REPLACE,
    CV_FAULT_ENTRY_REMOVE,
    CV_FAULT_ENTRY_PUBLISH,
    CV_FAULT_ENTRY_MARK
} cv_fault_entry_kind;

/* One change that succeeded (of a short write: the part that was written). */
typedef struct cv_fault_entry {
    cv_fault_entry_kind kind;
    bool durable; /* replace, publish */
    cv_object object;
    uint64_t pos; /* of a truncate: the new size */
    size_t size;
    uint8_t *bytes; /* write, replace: owned copy */
    int64_t token;  /* mark */
} cv_fault_entry;

typedef struct cv_fault_store {
    cv_store base;
    cv_store *inner;
    pthread_mutex_t lock; /* over all below, and while a change is made */
    cv_fault_kind kind;
    int sys_errno;
    int64_t fail_at; /* in n_changes, or n_reads for a read fault */
    int64_t n_changes;
    int64_t n_reads;
    int64_t n_hits;
    cv_fault_entry *entries;
    size_t n_entries, capacity;
    uint8_t *initial; /* the frame object before the journal begins */
    size_t initial_size;
} cv_fault_store;

#endif
