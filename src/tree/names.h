/* Names in a tree. A leaf is a file or member, "g/x.b2nd"; its key is "/g/x", the path
 * without the last suffix. */
#ifndef CV_TREE_NAMES_H
#define CV_TREE_NAMES_H

#include "base/status.h"

#define CV_TREE_EMBED "embed.b2e"         /* of every tree: what lies inside it, and kinds */
#define CV_TREE_ATTRIBUTES "__vlmeta__"   /* the leaf that carries a group's attributes */
#define CV_TREE_JOURNAL ".caterva-commit" /* of a directory: a commit that is not finished */
#define CV_TREE_ARRAY_SUFFIX ".b2nd"

/* Of leaves, the most likely one first. */
enum { CV_TREE_SUFFIXES = 3, CV_TREE_LONGEST_SUFFIX = 5 };
extern const char *const cv_tree_suffixes[CV_TREE_SUFFIXES];

/* CATERVA_ECORRUPT for a member's path that could lead out of the tree or is no name:
 * empty, absolute, with an empty, "." or ".." part, a control character, or no UTF-8.
 * Needs no NUL. */
cv_status cv_tree_check_path(const char *path, size_t size, cv_error *err);

/* The same of a key, which begins with a slash; "/" is the tree itself. CATERVA_EINVAL. */
cv_status cv_tree_check_key(const char *key, cv_error *err);

/* Whether the path is a leaf's by its suffix: b2nd, b2f or b2b. */
bool cv_tree_is_leaf(const char *path);

/* Whether a name of `size` bytes is that of the folder of an array's jobs: "x.b2nd.parts". */
bool cv_tree_is_job_folder(const char *name, size_t size);

/* CATERVA_EINVAL if a group in the path has such a name: lists skip these folders. The path's
 * last name counts only if the path `is_group`. */
cv_status cv_tree_check_groups(const char *path, bool is_group, cv_error *err);

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

#endif
