/* The directory of a zip archive, read and judged as a whole. */
#ifndef CV_TREE_ARCHIVE_H
#define CV_TREE_ARCHIVE_H

#include "base/os_file.h"
#include "base/watch.h"
#include "store/path.h"
#include "store/store.h"
#include "tree/members.h"

/* Where the bytes of an archive are: in a file, or behind a store. */
typedef struct cv_zip_source {
    cv_file file;
    cv_store *store;      /* NULL: the file */
    const uint8_t *ahead; /* bytes from there on that were read before; or NULL */
    uint64_t ahead_pos;
    size_t ahead_size;
    cv_watch *watch; /* hears of many members; NULL: nobody */
    bool is_once;    /* the caller has the store read again what is wrong */
    bool is_lenient; /* see cv_zip_directory_locate */
} cv_zip_source;

/* Reads up to `size` bytes and stops early only at the end; *done of them. */
cv_status cv_zip_source_read(const cv_zip_source *source, uint64_t pos, void *dst,
                             size_t size, size_t *done, cv_error *err);

/* All members but directories. Takes memory for names and numbers of those that are really
 * there, whatever the archive claims. CATERVA_ECORRUPT for an archive that was cut, for
 * members that overlap, and for names that lead elsewhere. */
cv_status cv_zip_directory_read(const cv_zip_source *source, const cv_shown_path *shown,
                                cv_members *out, cv_error *err);

/* Whether a member's local header says of it what the directory does: CATERVA_ECORRUPT. */
cv_status cv_zip_directory_check(const cv_zip_source *source, const cv_member *member,
                                 cv_error *err);

/* Reads a member's local header, and as much behind it as there is and fits: at most
 * `size` bytes of its data into `dst`, *done of them. *pos is where its data begins in the
 * file. CATERVA_EUNSUPPORTED when it is deflated or encrypted; CATERVA_ECORRUPT when only one of
 * header and directory says so, which is looked at behind a store if the header was read ahead.
 * Behind a store that is not `is_lenient` the header must also state the size, checksum and flags
 * of the directory, CATERVA_ECORRUPT: either may have been damaged on its way, or the archive
 * replaced since the directory was read. A file is as it is, and cv_zip_directory_check is for
 * verify. */
cv_status cv_zip_directory_locate(const cv_zip_source *source, const cv_member *member,
                                  uint64_t *pos, uint8_t *dst, size_t size, size_t *done,
                                  cv_error *err);

/* The first bytes of a member's data, at most `size`; *done of them. */
cv_status cv_zip_directory_head(const cv_zip_source *source, const cv_member *member,
                                uint8_t *dst, size_t size, size_t *done, cv_error *err);

/* ---- Without a directory ----
 * Members of an archive whose directory is lost. */

/* Finds members by the headers that stand before their data, in the order of the file; names
 * that lead elsewhere are passed over. The last one of an archive that was cut ends with the
 * file. Reads from member to member, and all bytes where no member begins. *is_all: nothing
 * else lay there, but what a directory begins with, or the end behind embed.b2e. */
cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err);

/* ---- Contradictions ----
 * Members of an archive whose directory says something else than the headers before them. */

/* Makes the complete list say of each such member what fits its bytes: the header's word or the
 * directory's, whichever has the right checksum. What neither fits stays as the directory has it.
 * Names have no checksum: where there are two, the one that makes more sense counts, and the
 * member keeps the other one (cv_members_other_name). A name of attributes or embed.b2e comes before
 * a leaf's in a group that has other members, any leaf's before one that is none, and that before
 * another member's; between equal ones the directory's counts. Reads the header of each member, and the bytes of those alone. */
cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err);

#endif
