/* Names in a tree. A leaf is a file or member, "g/x.b2nd"; its key is "/g/x", the path
 * without the last suffix. */
#ifndef CV_TREE_NAMES_H
#define CV_TREE_NAMES_H

#include "base/os_dir.h"
#include "base/status.h"
#include "base/watch.h"
#include "tree/journal.h"
#include "tree/zip.h"

#define CV_TREE_EMBED "embed.b2e"         /* of every tree: what lies inside it, and kinds */
#define CV_TREE_ATTRIBUTES "__vlmeta__"   /* the leaf that carries a group's attributes */
#define CV_TREE_JOURNAL ".caterva-commit" /* of a directory: a commit that is not finished */
#define CV_TREE_ARRAY_SUFFIX ".b2nd"

/* Of leaves, the most likely one first. */
enum { CV_TREE_SUFFIXES = 3, CV_TREE_LONGEST_SUFFIX = 5 };
extern const char *const cv_tree_suffixes[CV_TREE_SUFFIXES];

/* Refuses a member's path that could lead out of the tree, or is no name: empty, from the
 * root, with "." or ".." or nothing between slashes, with a zero or control character, or
 * no UTF-8. CATERVA_ECORRUPT. `path` needs no NUL behind it. */
cv_status cv_tree_check_path(const char *path, size_t size, cv_error *err);

/* The same of a key, which begins with a slash; "/" is the tree itself. CATERVA_EINVAL. */
cv_status cv_tree_check_key(const char *key, cv_error *err);

/* Whether the path is a leaf's by its suffix: b2nd, b2f or b2b. */
bool cv_tree_is_leaf(const char *path);

/* Bytes of the path without its last suffix, which does not begin its last name. */
size_t cv_tree_stem(const char *path);

/* Whether the key's last name is this one. */
bool cv_tree_is_named(const char *key, size_t size, const char *name);

/* The order in which trees are listed: a group, then all that is in it. */
int cv_tree_compare(const char *a, const char *b);

/* The bytes of the key that are its group's: of "/g/x" those of "/g", of "/x" none. */
size_t cv_tree_parent(const char *key, size_t size);

/* Whether `key` lies in the group, which "" is for the whole tree; and a path in the folder. */
bool cv_tree_is_within(const char *key, const char *group);
bool cv_tree_is_path_in(const char *path, const char *folder);

/* Cuts "TREE::/g/x": the key behind the first "::" that a slash or nothing follows, or NULL
 * when there is none. "TREE::" has the key "/". */
const char *cv_tree_url_key(const char *url, size_t *path_size);

/* ---- members ----
 * The files of a tree: members of an archive, or files of a directory. */

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

/* ---- files_below ----
 * The files below a directory. */

/* Adds every file below `dir`, by its path from there. Links to directories are not
 * followed, so there is no way round; links to files are files. What cannot be the name of
 * a leaf, hidden files, and the parts of many writers are passed over: they are nobody's
 * here. Each file is announced to the watch, or NULL, which may stop it. CATERVA_EIO if a
 * directory cannot be listed or a file cannot be looked at. */
cv_status cv_files_below(cv_dir dir, const char *shown, cv_watch *watch, cv_members *out,
                         cv_error *err);

/* The same with nothing passed over, for who removes it: links are files, hidden ones are
 * there, and `directories` gets the paths of directories, each behind the one it is in and
 * with its NUL. `announced` files the watch has heard of before. */
cv_status cv_all_files_below(cv_dir dir, const char *shown, cv_watch *watch,
                             int64_t announced, cv_members *out, cv_buffer *directories,
                             cv_error *err);

#endif
