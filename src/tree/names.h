/* Names in a tree. A leaf is a file or member "g/x.b2nd"; its key is "/g/x", without the suffix. */
#ifndef CV_TREE_NAMES_H
#define CV_TREE_NAMES_H

#include "base/status.h"

#define CV_TREE_EMBED "embed.b2e"       /* in every tree: embedded leaves, kinds of objects */
#define CV_TREE_ATTRIBUTES "__vlmeta__" /* the leaf with a group's attributes */
#define CV_TREE_JOURNAL ".caterva-commit" /* in a directory: an unfinished commit */
#define CV_TREE_ARRAY_SUFFIX ".b2nd"

/* Suffixes of leaves, the most likely one first. */
enum { CV_TREE_SUFFIXES = 3, CV_TREE_LONGEST_SUFFIX = 5 };
extern const char *const cv_tree_suffixes[CV_TREE_SUFFIXES];

/* CATERVA_ECORRUPT if a member's path could lead out of the tree or is not valid: empty, absolute,
 * with an empty, "." or ".." part, with a control character, or not UTF-8. `path` needs no NUL. */
cv_status cv_tree_check_path(const char *path, size_t size, cv_error *err);

/* Checks a key likewise; CATERVA_EINVAL. A key begins with a slash; "/" is the tree itself. */
cv_status cv_tree_check_key(const char *key, cv_error *err);

/* CATERVA_EUNSUPPORTED if the system cannot give a file the path of a member: on Windows a backslash
 * or a colon would lead out of the tree. */
cv_status cv_tree_check_file(const char *path, cv_error *err);

/* Whether the path has the suffix of a leaf: b2nd, b2f or b2b. */
bool cv_tree_is_leaf(const char *path);

/* Whether a name of `size` bytes is that of the folder of an array's jobs: "x.b2nd.parts". */
bool cv_tree_is_job_folder(const char *name, size_t size);

/* CATERVA_EINVAL if a group in the path has the name of a folder of jobs, because lists skip such
 * folders. The last name of the path is checked only if `is_group`. */
cv_status cv_tree_check_groups(const char *path, bool is_group, cv_error *err);

/* Returns the size of the path without its suffix. A dot that begins a name begins no suffix. */
size_t cv_tree_stem(const char *path);

/* Whether the key's last name is `name`. */
bool cv_tree_is_named(const char *key, size_t size, const char *name);

/* Compares keys in the order of lists: a group is followed by everything in it. */
int cv_tree_compare(const char *a, const char *b);

/* Returns the size of the group's key within `key`: 2 for "/g/x" ("/g"), 0 for "/x". */
size_t cv_tree_parent(const char *key, size_t size);

/* Whether `key` lies in `group`, or `path` in `folder`; "" is the whole tree. */
bool cv_tree_is_within(const char *key, const char *group);
bool cv_tree_is_path_in(const char *path, const char *folder);

#endif
