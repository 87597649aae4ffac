/* Reads and checks the directory of a zip archive. */
#ifndef CV_TREE_ARCHIVE_H
#define CV_TREE_ARCHIVE_H

#include "base/os_file.h"
#include "base/watch.h"
#include "store/path.h"
#include "store/store.h"
#include "tree/members.h"

/* The bytes of an archive: in a file, or behind a store. */
typedef struct cv_zip_source {
    cv_file file;
    cv_store *store;      /* NULL: use the file */
    const uint8_t *ahead; /* bytes that were read ahead, at ahead_pos; or NULL */
    uint64_t ahead_pos;
    size_t ahead_size;
    cv_watch *watch; /* checked while long lists are read; or NULL */
    bool is_once;    /* wrong bytes are not read again here: the caller reads them again */
    bool is_lenient; /* see cv_zip_directory_locate */
} cv_zip_source;

/* Reads up to `size` bytes, fewer only at the end; *done: the number of bytes read. */
cv_status cv_zip_source_read(const cv_zip_source *source, uint64_t pos, void *dst,
                             size_t size, size_t *done, cv_error *err);

/* Reads all members except directories. Memory grows with the bytes of the archive's directory, not
 * with its numbers. CATERVA_ECORRUPT: the archive was cut, members overlap, or a name leads
 * out of the tree. */
cv_status cv_zip_directory_read(const cv_zip_source *source, const cv_shown_path *shown,
                                cv_members *out, cv_error *err);

/* Returns CATERVA_ECORRUPT unless the member's local header agrees with the directory. */
cv_status cv_zip_directory_check(const cv_zip_source *source, const cv_member *member,
                                 cv_error *err);

/* Reads a member's local header and at most `size` bytes of its data into `dst`; *done: bytes of
 * data read. *pos: where the data begin in the file. CATERVA_EUNSUPPORTED: the member is compressed
 * or encrypted. CATERVA_ECORRUPT has two reasons:
 *
 * 1. Either the header or the directory, but not both, states that the member is compressed or
 *    encrypted. Behind a store this is checked only if the header was read ahead.
 * 2. Behind a store that is not `is_lenient`, the header has another size, checksum or flags than
 *    the directory: it was damaged in transit, or the archive was replaced.
 *
 * For files, cv_zip_directory_check checks size, checksum and flags. */
cv_status cv_zip_directory_locate(const cv_zip_source *source, const cv_member *member,
                                  uint64_t *pos, uint8_t *dst, size_t size, size_t *done,
                                  cv_error *err);

/* Reads the first bytes of a member's data, at most `size`; *done: the number of bytes read. */
cv_status cv_zip_directory_head(const cv_zip_source *source, const cv_member *member,
                                uint8_t *dst, size_t size, size_t *done, cv_error *err);

/* Finds members by the local headers before their data, in file order. Skips names that lead out of
 * the tree. The last member of a cut archive ends with the file. Reads headers, and bytes that
 * belong to no member. *is_all: no member is missing, because there are no gaps, and the directory
 * or the end of the file follows embed.b2e. */
cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err);

/* Settles each member whose header contradicts the directory. Whichever of the two has the checksum
 * of the data counts; if neither has it, the directory counts. Names have no checksum: the more
 * plausible name counts, and the other is kept (cv_members_other_name). Most plausible are names of
 * attributes and embed.b2e, then names of leaves; of equals, a name in a group with other members;
 * else the directory's. Reads each header, but only the data of contradictory members. */
cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err);

#endif
