/* The directory of a zip archive, read and judged as a whole. */
#ifndef CV_TREE_ZIP_DIRECTORY_H
#define CV_TREE_ZIP_DIRECTORY_H

#include "base/os_file.h"
#include "base/watch.h"
#include "store/fallbacks.h"
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
 * header and directory says so, which is looked at behind a store if the header was read ahead. */
cv_status cv_zip_directory_locate(const cv_zip_source *source, const cv_member *member,
                                  uint64_t *pos, uint8_t *dst, size_t size, size_t *done,
                                  cv_error *err);

/* The first bytes of a member's data, at most `size`; *done of them. */
cv_status cv_zip_directory_head(const cv_zip_source *source, const cv_member *member,
                                uint8_t *dst, size_t size, size_t *done, cv_error *err);

#endif
