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
    cv_watch *watch; /* counts the members of long lists; or NULL */
    bool is_once;    /* the caller has the store read again what is wrong */
    bool is_lenient; /* see cv_zip_directory_locate */
} cv_zip_source;

/* Reads up to `size` bytes and stops early only at the end; *done of them. */
cv_status cv_zip_source_read(const cv_zip_source *source, uint64_t pos, void *dst,
                             size_t size, size_t *done, cv_error *err);

/* Reads all members but directories. Memory grows with what is there, not with what the
 * archive claims. CATERVA_ECORRUPT if it was cut, members overlap or a name leads
 * elsewhere. */
cv_status cv_zip_directory_read(const cv_zip_source *source, const cv_shown_path *shown,
                                cv_members *out, cv_error *err);

/* CATERVA_ECORRUPT unless a member's local header says the same as the directory. */
cv_status cv_zip_directory_check(const cv_zip_source *source, const cv_member *member,
                                 cv_error *err);

/* Reads a member's local header and at most `size` bytes of its data into `dst`, *done of
 * them. *pos is where its data begins in the file. CATERVA_EUNSUPPORTED if it is deflated
 * or encrypted; CATERVA_ECORRUPT if only one of header and directory says so (checked
 * behind a store only if the header was read ahead). Behind a store that is not
 * `is_lenient` the header must also state the directory's size, checksum and flags, else
 * CATERVA_ECORRUPT: it was damaged on its way, or the archive was replaced.
 * cv_zip_directory_check checks files. */
cv_status cv_zip_directory_locate(const cv_zip_source *source, const cv_member *member,
                                  uint64_t *pos, uint8_t *dst, size_t size, size_t *done,
                                  cv_error *err);

/* The first bytes of a member's data, at most `size`; *done of them. */
cv_status cv_zip_directory_head(const cv_zip_source *source, const cv_member *member,
                                uint8_t *dst, size_t size, size_t *done, cv_error *err);

/* Finds members by the headers before their data, in file order; passes over names that lead
 * elsewhere. The last member of a cut archive ends with the file. Reads from member to
 * member, and every byte where none begins. *is_all: nothing else is there but the beginning
 * of a directory, or the end behind embed.b2e. */
cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err);

/* Settles each member whose header contradicts the directory: the one with the right checksum
 * counts, and if neither has it, the directory. Names have no checksum: the more plausible
 * one counts and the other is kept (cv_members_other_name). In a group with other members
 * attributes or embed.b2e come first, then leaves; a leaf comes before what is none; else the
 * directory counts. Reads each header, and the bytes of those members alone. */
cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err);

#endif
