/* The files of a tree: members of an archive, or files of a directory. */
#ifndef CV_TREE_MEMBERS_H
#define CV_TREE_MEMBERS_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"

typedef struct cv_member {
    const char *path;    /* "g/x.b2nd" */
    uint64_t size;       /* bytes stored */
    uint64_t full_size;  /* of an archive: bytes once they are unpacked */
    uint64_t header_pos; /* of an archive: of the local header in the file, */
    uint64_t end;        /* and where the next one begins */
    uint64_t data_pos;   /* where its bytes begin, whatever its header says; or 0 */
    uint32_t crc;        /* of an archive */
    uint16_t needs, flags, method;
    size_t other_name;  /* see cv_members_other_name */
    bool is_settled;    /* header and directory contradicted each other, see cv_zip_settle */
    bool is_unreadable; /* of a directory: a link that leads nowhere, or no regular file */
    const struct cv_journal_step *step; /* of a directory: has another name yet */
} cv_member;

typedef struct cv_members {
    cv_member *list; /* sorted by path once they are complete */
    size_t n, room;
    size_t
        n_replaced;  /* behind the n of a complete list: those that another one replaces, and
                        * hidden ones (cv_members_hide) */
    cv_buffer names; /* where the paths lie */
    cv_buffer places;
} cv_members;

/* Adds one, whose path is copied; member->path is set by cv_members_complete. */
cv_status cv_members_add(cv_members *members, const cv_member *member, const char *path,
                         size_t path_size, cv_error *err);

/* The member that was added last has another name, too, which is copied. */
cv_status cv_members_add_name(cv_members *members, const char *name, cv_error *err);

/* The member's other name, if the archive's header and directory disagree, or NULL. */
const char *cv_members_other_name(const cv_members *members, const cv_member *member);

/* Sorts them and, of several with one path, counts the one that was added last. */
void cv_members_complete(cv_members *members);

/* Puts members with a name that begins with a dot behind the others of a complete list. */
void cv_members_hide(cv_members *members);

/* The one with that path, or NULL. */
const cv_member *cv_members_find(const cv_members *members, const char *path);

void cv_members_free(cv_members *members);

/* CATERVA_EIO: why an unreadable member cannot be read. */
cv_status cv_fail_unreadable(const char *path, cv_error *err);

/* Adds every file below `dir` by its path from there. Follows no links to directories, so
 * there are no cycles. Skips hidden files, parts of jobs and what cannot be a leaf's name.
 * What has a leaf's name but cannot be a file is added as unreadable. The watch (or NULL)
 * counts files and may stop it. CATERVA_EIO if a directory or file cannot be read. */
cv_status cv_files_below(cv_dir dir, const char *shown, cv_watch *watch, cv_members *out,
                         cv_error *err);

/* The same of those alone that one path from there, "g/x", may stand for: files "g/x" and
 * "g/x.*" and files below a folder "g/x", all of them or, with `is_first`, only whether there
 * is one. Lists the names in "g", and looks at no other file. */
cv_status cv_files_near(cv_dir dir, const char *shown, cv_watch *watch, const char *path,
                        bool is_first, cv_members *out, cv_error *err);

/* The same with nothing skipped, for removal. `directories` gets their paths, each with its
 * NUL and after its parent's. `announced` files are announced to the watch already. */
cv_status cv_all_files_below(cv_dir dir, const char *shown, cv_watch *watch,
                             int64_t announced, cv_members *out, cv_buffer *directories,
                             cv_error *err);

#endif
