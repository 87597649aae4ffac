/* A store for tests that fails on demand and records its changes. It wraps another store (usually
 * memory), counts the changing operations, can make the n-th one fail, and keeps a journal from
 * which the bytes at any crash point can be rebuilt.
 *
 * Changing operations: write, truncate, sync, replace, remove, publish. */
#ifndef CV_SUPPORT_FAULT_H
#define CV_SUPPORT_FAULT_H

#include "support/fault_journal.h"

typedef enum cv_fault_kind {
    CV_FAULT_NONE = 0,
    CV_FAULT_ONCE,    /* operation n fails, later ones work        */
    CV_FAULT_FOREVER, /* operation n and every later one fail      */
    CV_FAULT_SHORT,   /* write n leaves half its bytes, then fails */
    CV_FAULT_READ     /* read n fails (reads are counted apart)    */
} cv_fault_kind;

/* Wraps `inner`, and owns it even on failure. */
cv_status cv_store_fault_create(cv_store *inner, cv_store **out, cv_error *err);

/* Arms a fault: the n-th operation from now on (0: the next one) fails with `sys_errno`. */
void cv_store_fault_arm(cv_store *store, cv_fault_kind kind, int64_t n, int sys_errno);

int64_t cv_store_fault_count(const cv_store *store); /* changing operations so far */
int64_t cv_store_fault_hits(const cv_store *store);  /* operations failed on demand */

/* The changing operation that failed last on demand; CV_FAULT_ENTRY_MARK if none did. */
cv_fault_entry_kind cv_store_fault_last_hit(const cv_store *store);

/* Records a mark of the test ("acknowledged commit k") in the journal. */
void cv_store_fault_mark(cv_store *store, int64_t token);

/* Returns the changes so far; valid until the next change. */
const cv_fault_journal *cv_store_fault_journal(const cv_store *store);

int64_t cv_store_fault_journal_size(const cv_store *store);
int64_t cv_store_fault_journal_bytes(const cv_store *store, int64_t entry); /* 0: no write */

/* Makes a possible state of the frame object after the crash; contiguous stores only. Sets *mark to
 * the last token marked before the crash point, or to -1. Release *bytes with cv_free. */
cv_status cv_store_fault_image(const cv_store *store, const cv_crash *crash, uint8_t **bytes,
                               size_t *size, int64_t *mark, cv_error *err);

#endif
