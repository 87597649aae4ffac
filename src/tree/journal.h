/* The commit of several files of a directory: published as one file, finished, and read by
 * who comes before it is finished.
 *
 *   .caterva-commit     appears by a rename: from then on the commit stands
 *   g/x.b2nd            has an old header, or the new one already
 *   g/.y.b2nd.tmp-...   a new file, until it is renamed to g/y.b2nd
 *
 * A reader looks for the journal first and then at the file. So who has seen one file as
 * after the commit sees all as after it: either the journal still stands, or all is done. */
#ifndef CV_TREE_JOURNAL_H
#define CV_TREE_JOURNAL_H

#include "base/os_dir.h"
#include "format/journal.h"
#include "store/store.h"

/* A journal that stands; n 0: none. */
typedef struct cv_journal {
    cv_buffer bytes;
    cv_journal_step *steps;
    size_t n;
} cv_journal;

/* Reads the journal of the directory, named `shown` in sentences. CATERVA_ECORRUPT when it is
 * damaged. Release with cv_journal_free. */
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

/* Publishes a commit of these steps. *doubtful: it failed, and nobody knows whether the
 * commit stands. */
cv_status cv_journal_publish(cv_dir dir, const char *shown, const cv_journal_step *steps,
                             size_t n, bool durable, bool *doubtful, cv_error *err);

/* All steps are done. */
cv_status cv_journal_remove(cv_dir dir, const char *shown, cv_error *err);

/* Does what is left of the commit that stands, if any, in the tree at `root`, which nobody
 * else has open for writing. What others have changed since the commit stays theirs. */
cv_status cv_journal_finish(cv_dir dir, const char *root, const char *shown, cv_error *err);

#endif
