/* The files of a tree: members of an archive, or files of a directory. */
#ifndef CV_TREE_MEMBERS_H
#define CV_TREE_MEMBERS_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"

typedef struct cv_member {
    const char *path;    /* "g/x.b2nd" */
    uint64_t size;       /* bytes as stored */
    uint64_t full_size;  /* archive: bytes when unpacked */
    uint64_t header_pos; /* archive: position of the local header in the file */
    uint64_t end;        /* archive: where the next member begins */
    uint64_t data_pos;   /* position of the data, if a repair found it; else 0 */
    uint32_t crc;        /* archive only */
    uint16_t needs, flags, method;
    size_t other_name;  /* see cv_members_other_name */
    bool is_settled;    /* header and directory disagreed, see cv_zip_settle */
    bool is_unreadable; /* directory: a broken link, or not a regular file */
    const struct cv_journal_step *step; /* directory: the file still has its temporary name */
} cv_member;

typedef struct cv_members {
    cv_member *list; /* sorted by path when complete */
    size_t n, room;
    size_t n_replaced; /* replaced and hidden members, stored after the first n */
    cv_buffer names;   /* storage of the paths */
    cv_buffer places;
} cv_members;

/* Adds a member. Copies the path; cv_members_complete sets member->path. */
cv_status cv_members_add(cv_members *members, const cv_member *member, const char *path,
                         size_t path_size, cv_error *err);

/* Sets the other name of the member that was added last. Copies the name. */
cv_status cv_members_add_name(cv_members *members, const char *name, cv_error *err);

/* Returns the member's other name, if the archive's header and directory disagree; else NULL. */
const char *cv_members_other_name(const cv_members *members, const cv_member *member);

/* Completes the list: sorts it and, of several members with one path, keeps the one added last. */
void cv_members_complete(cv_members *members);

/* In a complete list, moves members with a name that begins with a dot behind the others. */
void cv_members_hide(cv_members *members);

const cv_member *cv_members_find(const cv_members *members, const char *path);
void cv_members_free(cv_members *members);

/* Fails with CATERVA_EIO, because a member is unreadable. */
cv_status cv_fail_unreadable(const char *path, cv_error *err);

/* Adds every file below `dir` by its relative path. Follows no links to directories, so there are
 * no cycles. Skips hidden files, parts of jobs, and names that a leaf cannot have. Something with a
 * leaf's name that is not a file is added as unreadable. The watch (or NULL) counts files and may
 * stop the call. CATERVA_EIO: a directory or file cannot be read. */
cv_status cv_files_below(cv_dir dir, const char *shown, cv_watch *watch, cv_members *out,
                         cv_error *err);

/* As cv_files_below, but adds only files that the path "g/x" may mean: "g/x", "g/x.*", and files
 * below a directory "g/x" (with `is_first`, only one of these). Lists no directory besides "g". */
cv_status cv_files_near(cv_dir dir, const char *shown, cv_watch *watch, const char *path,
                        bool is_first, cv_members *out, cv_error *err);

/* As cv_files_below, but skips nothing, for deletion. `directories` gets the paths of directories,
 * each with a NUL and after its parent. `announced`: files that the watch expects already. */
cv_status cv_all_files_below(cv_dir dir, const char *shown, cv_watch *watch,
                             int64_t announced, cv_members *out, cv_buffer *directories,
                             cv_error *err);

#endif
