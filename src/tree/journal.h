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
#ifndef CV_TREE_JOURNAL_H
#define CV_TREE_JOURNAL_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "store/store.h"

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

/* Parses one; *steps has *n: free with cv_free. CATERVA_EUNSUPPORTED for newer versions. */
cv_status cv_journal_parse(const uint8_t *bytes, size_t size, cv_journal_step **steps,
                           size_t *n, cv_error *err);

/* ---- In a directory: published as one file, finished, and read until it is finished ----
 *
 *   .caterva-commit     appears by a rename: from then on the commit stands
 *   g/x.b2nd            has an old header, or the new one already
 *   g/.y.b2nd.tmp-...   a new file, until it is renamed to g/y.b2nd
 *
 * A reader looks for the journal first and then at the file. So one file seen as
 * after the commit means all are: either the journal still stands, or all is done. */

/* A journal that stands; n 0: none. */
typedef struct cv_journal {
    cv_buffer bytes;
    cv_journal_step *steps;
    size_t n;
} cv_journal;

/* Reads the journal, CATERVA_ECORRUPT if damaged. Release with cv_journal_free. */
cv_status cv_journal_look(cv_dir dir, const char *shown, cv_journal *out, cv_error *err);
void cv_journal_free(cv_journal *journal);

/* What it says of the file `path`, or NULL. */
const cv_journal_step *cv_journal_find(const cv_journal *journal, const char *path);

/* The file that is to take the step's path: "g/.y.b2nd.tmp-...". Owned: cv_free. */
cv_status cv_journal_file(const cv_journal_step *step, char **out, cv_error *err);

/* Whether that is still there, and its bytes. */
bool cv_journal_has_file(cv_dir dir, const cv_journal_step *step, uint64_t *size);

/* A store of the file `path` of the tree at `root`, to be read, as the journal has it. */
cv_status cv_journal_open(const cv_journal *journal, const char *root, const char *path,
                          cv_store **out, cv_error *err);

/* Publishes a commit of these steps. *doubtful: it failed, but may be published. */
cv_status cv_journal_publish(cv_dir dir, const char *shown, const cv_journal_step *steps,
                             size_t n, bool durable, bool *doubtful, cv_error *err);

/* Removes the journal of a finished commit. */
cv_status cv_journal_remove(cv_dir dir, const char *shown, cv_error *err);

/* Finishes the published commit, if any, of the tree at `root`, which only the caller may
 * write. Later changes by others stay. */
cv_status cv_journal_finish(cv_dir dir, const char *root, const char *shown, cv_error *err);

#endif
