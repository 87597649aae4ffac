/* The journal of a commit of several files: the steps that remain once it is published. Exact-width
 * msgpack:
 *
 *   fixstr  "caterva-commit"
 *   u32     version, 1
 *   u32     number of steps
 *           steps, one after another:
 *     bin32   path of the file relative to the tree, with a NUL
 *     fixstr  "header" or "file"
 *             header: a new header for the frame in the file
 *       u64     number of the commit, as in the frame's seal; 0: without chunks
 *       u32     name of the state that the header replaces, see cv_snapshot_name
 *       bin32   the header
 *             file: another file gets the path
 *       bool    an existing file may be replaced
 *       bin32   name of the other file in the same directory, with a NUL
 *   u32     CRC32C of all before it
 *
 * Only the form of paths and names is checked here; readers of trees check which are allowed. */
#ifndef CV_TREE_JOURNAL_H
#define CV_TREE_JOURNAL_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "store/store.h"

/* A step. Strings and bytes are borrowed. */
typedef struct cv_journal_step {
    const char *path;
    const char *file; /* NULL: the step writes a header */
    bool replaces;
    uint64_t commit;
    uint32_t old_name;
    const uint8_t *header;
    uint32_t header_size;
} cv_journal_step;

/* Appends a journal. Paths and names must be shorter than 2^16 bytes. */
cv_status cv_journal_write(const cv_journal_step *steps, size_t n, cv_buffer *out,
                           cv_error *err);

/* Parses a journal; *steps has *n entries: cv_free. CATERVA_EUNSUPPORTED: a newer version. */
cv_status cv_journal_parse(const uint8_t *bytes, size_t size, cv_journal_step **steps,
                           size_t *n, cv_error *err);

/* ---- Journals in a directory ---------------------------------------------------------------
 *
 *   .caterva-commit     appears by a rename: from then on the commit is published
 *   g/x.b2nd            has the old header, or already the new one
 *   g/.y.b2nd.tmp-...   a new file, until it is renamed to g/y.b2nd
 *
 * A reader looks for the journal before it opens a file. So if it sees one file in the state after
 * the commit, it sees all files in that state: the journal still exists, or all steps are done. */

/* A published journal; n 0: none. */
typedef struct cv_journal {
    cv_buffer bytes;
    cv_journal_step *steps;
    size_t n;
} cv_journal;

/* Reads the journal; CATERVA_ECORRUPT if it is damaged. Release with cv_journal_free. */
cv_status cv_journal_look(cv_dir dir, const char *shown, cv_journal *out, cv_error *err);
void cv_journal_free(cv_journal *journal);

/* Returns the step for the file `path`, or NULL. */
const cv_journal_step *cv_journal_find(const cv_journal *journal, const char *path);

/* Returns the path of the file that the step renames: "g/.y.b2nd.tmp-...". Owned: cv_free. */
cv_status cv_journal_file(const cv_journal_step *step, char **out, cv_error *err);

/* Whether the file that the step renames still exists; *size: its bytes. */
bool cv_journal_has_file(cv_dir dir, const cv_journal_step *step, uint64_t *size);

/* Opens the file `path` of the tree at `root` for reading, in the state after the journal. */
cv_status cv_journal_open(const cv_journal *journal, const char *root, const char *path,
                          cv_store **out, cv_error *err);

/* Publishes a commit of these steps. *doubtful: the call failed, but may have published it. */
cv_status cv_journal_publish(cv_dir dir, const char *shown, const cv_journal_step *steps,
                             size_t n, bool durable, bool *doubtful, cv_error *err);

/* Deletes the journal of a finished commit. */
cv_status cv_journal_remove(cv_dir dir, const char *shown, cv_error *err);

/* Finishes the published commit, if any, of the tree at `root`. The caller has locked the tree.
 * Keeps changes that other writers made after the commit. */
cv_status cv_journal_finish(cv_dir dir, const char *root, const char *shown, cv_error *err);

#endif
