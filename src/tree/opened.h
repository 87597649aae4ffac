/* An open tree: an archive, a directory, or a file with all leaves inside it. */
#ifndef CV_TREE_OPENED_H
#define CV_TREE_OPENED_H

#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/os_file.h"
#include "base/watch.h"
#include "format/seal.h"
#include "store/path.h"
#include "store/store.h"
#include "tree/archive.h"
#include "tree/journal.h"
#include "tree/members.h"

#include <stdatomic.h>

typedef enum cv_embed_what {
    CV_EMBED_LEAF,
    CV_EMBED_REMOTE, /* a reference to an array at a URL */
    CV_EMBED_OBJECT  /* a group that is one object, such as a table */
} cv_embed_what;

typedef struct cv_embed_entry {
    const char *key;
    cv_embed_what what;
    uint64_t offset, size; /* of a leaf in the decompressed bytes */
    const char *kind;      /* object: its kind, as python-blosc2 names it */
} cv_embed_entry;

typedef struct cv_embed {
    cv_embed_entry *list; /* sorted by `what` and key */
    size_t n, room;
    cv_buffer names, places; /* storage of keys and kinds; `places` only while reading */
    uint64_t size;           /* number of decompressed bytes */
    bool is_store;           /* the frame is marked as a tree, dictionary or store */
} cv_embed;

/* Reads the lists of leaves and objects from the frame in `store`, and closes the store, also on
 * failure. Memory grows with the lists; lists too long for a tree are refused. */
cv_status cv_embed_read(cv_store *store, cv_embed *out, cv_error *err);

const cv_embed_entry *cv_embed_find(const cv_embed *embed, cv_embed_what what,
                                    const char *key);
void cv_embed_free(cv_embed *embed);

/* ---- The tree -------------------------------------------------------------------------- */

typedef enum cv_tree_form {
    CV_TREE_ARCHIVE,   /* .b2z */
    CV_TREE_DIRECTORY, /* .b2d */
    CV_TREE_ZARR,      /* a hierarchy of Zarr groups: tree/zarr.h */
    CV_TREE_FILE       /* .b2e: only this file */
} cv_tree_form;

/* The contents of a tree at one time. */
typedef struct cv_contents {
    cv_members members;
    cv_embed embed;
    bool has_embed;     /* embed.b2e exists */
    cv_journal journal; /* directory only */
} cv_contents;

/* Constant while the tree is open, except for is_confirmed. Thread: any. */
typedef struct cv_tree {
    cv_tree_form form;
    char *path; /* absolute */
    cv_shown_path shown;
    cv_file file;             /* archive or file */
    cv_store *store;          /* archive or file behind a URL; else NULL */
    cv_dir dir;               /* directory or hierarchy */
    bool writable;            /* a directory, locked against other writers */
    cv_os_moment opened;      /* detects use by a child of fork: a writable tree belongs to
                               * the process that opened it */
    bool durable;             /* names are synced */
    bool lacks_members;       /* a damaged archive, which may have had further members */
    bool skips_journal;       /* for repairs: files are read as they are */
    cv_watch *watch;          /* borrowed; counts, mostly, files in long calls; or NULL */
    cv_contents contents;     /* when it was opened; of a directory: none */
    int n_openings;           /* attempts, while a tree behind a URL is opened; else 0 */
    atomic_bool is_confirmed; /* see cv_tree_confirm */
} cv_tree;

cv_zip_source cv_tree_source(const cv_tree *tree);

/* Opens the tree at the path or URL in the session (NULL: a new one with defaults).
 * CATERVA_EUNSUPPORTED: not a tree; CATERVA_ENOTFOUND: nothing exists there. Release *out with
 * cv_tree_close. `watch` (or NULL) reports progress of the opening only. */
cv_status cv_tree_open(const char *path, cv_session *session, cv_watch *watch, cv_tree **out,
                       cv_error *err);
void cv_tree_close(cv_tree *tree); /* NULL is fine */

/* Opens a local tree that may be damaged. *reason: the error with which cv_tree_open would fail, or
 * CATERVA_OK. Finds the members of an archive without a directory, and does not need embed.b2e.
 * CATERVA_ECORRUPT: no members were found. */
cv_status cv_tree_open_damaged(const char *path, cv_tree **out, cv_error *reason,
                               cv_error *err);

/* Locks the tree against other writers and finishes an unfinished commit. CATERVA_EREADONLY: not a
 * directory; CATERVA_EBUSY: another writer has locked it. */
cv_status cv_tree_lock(cv_tree *tree, cv_error *err);

/* Returns CATERVA_EREADONLY if the tree is open for reading, CATERVA_EBUSY in a child of fork. */
cv_status cv_tree_check_writable(const cv_tree *tree, cv_error *err);

/* Lists a directory, or returns the known contents of other trees; always release *own. Files of a
 * directory are announced to the tree's watch; the caller counts them. */
cv_status cv_tree_look(const cv_tree *tree, cv_contents *own, const cv_contents **out,
                       cv_error *err);

/* Lists only the files of a directory that determine the meaning of the key, see cv_files_near. The
 * time depends only on the names in the key's group and the files below the key. */
cv_status cv_tree_look_near(const cv_tree *tree, const char *key, bool is_first,
                            cv_contents *own, cv_error *err);
void cv_contents_free(cv_contents *contents);

/* Sets `out` to an id that differs if an archive or file is replaced; zeros for a directory. */
cv_status cv_tree_identify(const cv_tree *tree, uint8_t out[CV_STATE_ID], cv_error *err);

/* Opens a member's bytes as a store for reading. */
cv_status cv_tree_store(const cv_tree *tree, const cv_member *member, cv_store **out,
                        cv_error *err);

/* Call this before reporting that something behind a URL is missing or wrong, because no checksum
 * covers an archive's directory or embed.b2e. Fetches both again, bypassing all caches, once for
 * each tree. CATERVA_EIO: one of them differs. Does nothing for trees that are not remote. */
cv_status cv_tree_confirm(const cv_tree *tree, cv_error *err);

/* Reads the directory of a remote archive again through a doubted store. CATERVA_EIO: the directory
 * differs, because bytes were damaged in transit, or the archive was replaced. */
cv_status cv_tree_check_members(const cv_tree *tree, cv_store *store, cv_error *err);

/* Opens embed.b2e as a store. CATERVA_ENOTFOUND: embed.b2e does not exist. */
cv_status cv_tree_embed_store(const cv_tree *tree, cv_store **out, cv_error *err);

/* Reads the lists of embed.b2e into contents->embed. CATERVA_ENOTFOUND: no embed.b2e exists. */
cv_status cv_tree_read_embed(const cv_tree *tree, cv_contents *contents, cv_error *err);

/* Reads the first bytes of a member, at most `size`; *done: the number of bytes read. */
cv_status cv_tree_head(const cv_tree *tree, const cv_member *member, uint8_t *dst,
                       size_t size, size_t *done, cv_error *err);

/* Makes "PATH/member" for a directory. Owned: cv_free. */
cv_status cv_tree_path(const cv_tree *tree, const char *member, char **out, cv_error *err);

/* ---- Leaves by key ---------------------------------------------------------------------- */

/* The location of a leaf: a file of the tree, or bytes in its embed.b2e. */
typedef struct cv_leaf {
    bool is_embedded;
    uint64_t offset, size; /* of an embedded leaf in the decompressed bytes */
    cv_member member;      /* the file, if not embedded */
    char *path;            /* relative to the tree, owned; member.path points to it */
} cv_leaf;

/* Finds the leaf of a key. CATERVA_ENOTFOUND: the key does not exist; CATERVA_EUNSUPPORTED: a
 * group, a reference or an object of python-blosc2. Release with cv_leaf_free. */
cv_status cv_tree_find(const cv_tree *tree, const char *key, cv_leaf *out, cv_error *err);
void cv_leaf_free(cv_leaf *leaf);

/* CATERVA_EREADONLY if the key, in a directory, lies inside an object of python-blosc2, such as a
 * column of a table: a change of one column alone would damage the table. */
cv_status cv_tree_check_own(const cv_tree *tree, const char *key, cv_error *err);

/* Whether a directory has a file for the key, as python-blosc2 names it. */
bool cv_tree_has_file(const cv_tree *tree, const char *key);

/* Whether anything in a directory has the name of a leaf of that key, with a suffix other than
 * `but` (NULL: any). Also true if memory is lacking or a look-up fails. */
bool cv_tree_has_leaf(const cv_tree *tree, const char *key, const char *but);

/* Finds the leaf with the attributes of a group. If the group has none, *out has no path and is not
 * embedded. CATERVA_ENOTFOUND: the group does not exist. Release with cv_leaf_free. */
cv_status cv_tree_find_attributes(const cv_tree *tree, const char *group, cv_leaf *out,
                                  cv_error *err);

/* Sets *out to the path of a group's file of attributes, "g/__vlmeta__.b2f", owned: cv_free. */
cv_status cv_tree_attributes_path(const char *group, char **out, cv_error *err);

/* Whether the group exists; "/" always does. */
bool cv_contents_has_group(const cv_contents *contents, const char *key);

#endif
