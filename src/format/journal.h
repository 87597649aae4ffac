/* The journal of a commit of several files: what is to be done once it is published. One
 * run of exact-width msgpack:
 *
 *   fixstr  "caterva-commit"
 *   u32     version, 1
 *   u32     number of steps
 *           steps, one behind the other:
 *     bin32   path of the file from the tree, with a NUL behind it
 *     fixstr  "header" or "file"
 *             header: a new header for the frame in the file
 *       u64     number of the commit, as the frame's seal has it; 0: without chunks
 *       u32     name of the state that it replaces, see cv_snapshot_name
 *       bin32   the header
 *             file: another file takes the path
 *       bool    what is there by then may be replaced
 *       bin32   name of the other file in the same directory, with a NUL behind it
 *   u32     CRC32C of all before it
 *
 * Paths and names are checked for their form only: what they may be is for the reader of
 * trees. */
#ifndef CV_FORMAT_JOURNAL_H
#define CV_FORMAT_JOURNAL_H

#include "base/heap.h"

/* Borrows everything. */
typedef struct cv_journal_step {
    const char *path;
    const char *file; /* NULL: the step is a header */
    bool replaces;
    uint64_t commit;
    uint32_t old_name;
    const uint8_t *header;
    uint32_t header_size;
} cv_journal_step;

/* Appends a journal. Paths and names have less than 2^16 bytes. */
cv_status cv_journal_write(const cv_journal_step *steps, size_t n, cv_buffer *out,
                           cv_error *err);

/* Parses one; *steps has *n of them: free with cv_free. CATERVA_EUNSUPPORTED for a newer
 * version. */
cv_status cv_journal_parse(const uint8_t *bytes, size_t size, cv_journal_step **steps,
                           size_t *n, cv_error *err);

#endif
