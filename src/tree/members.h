/* The files of a tree: members of an archive, or files of a directory. */
#ifndef CV_TREE_MEMBERS_H
#define CV_TREE_MEMBERS_H

#include "format/journal.h"
#include "format/zip.h"

typedef struct cv_member {
    const char *path;    /* "g/x.b2nd" */
    uint64_t size;       /* bytes stored */
    uint64_t full_size;  /* of an archive: bytes once they are unpacked */
    uint64_t header_pos; /* of an archive: of the local header in the file, */
    uint64_t end;        /* and where the next one begins */
    uint64_t data_pos;   /* where its bytes begin, whatever its header says; or 0 */
    uint32_t crc;        /* of an archive */
    uint16_t needs, flags, method;
    size_t other_name; /* see cv_members_other_name */
    bool is_settled;   /* header and directory contradicted each other, see zip_settle.h */
    const cv_journal_step *step; /* of a directory: has another name yet, see journal.h */
} cv_member;

typedef struct cv_members {
    cv_member *list; /* sorted by path once they are complete */
    size_t n, room;
    size_t n_replaced; /* behind the n of a complete list: those that another one replaces */
    cv_buffer names;   /* where the paths lie */
    cv_buffer places;
} cv_members;

/* Adds one, whose path is copied; member->path is set by cv_members_complete. */
cv_status cv_members_add(cv_members *members, const cv_member *member, const char *path,
                         size_t path_size, cv_error *err);

/* The member that was added last has another name, too, which is copied. */
cv_status cv_members_add_name(cv_members *members, const char *name, cv_error *err);

/* Of a complete list: what either the header or the directory of an archive calls the member
 * when the other calls it by its path; or NULL. */
const char *cv_members_other_name(const cv_members *members, const cv_member *member);

/* Sorts them and, of several with one path, counts the one that was added last. */
void cv_members_complete(cv_members *members);

/* The one with that path, or NULL. */
const cv_member *cv_members_find(const cv_members *members, const char *path);

void cv_members_free(cv_members *members);

#endif
