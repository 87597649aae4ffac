/* An open tree: an archive, a directory, or one file with all leaves inside it. */
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
    CV_EMBED_REMOTE, /* not here, but at some URL */
    CV_EMBED_OBJECT  /* a group that is one object, of a kind */
} cv_embed_what;

typedef struct cv_embed_entry {
    const char *key;
    cv_embed_what what;
    uint64_t offset, size; /* of a leaf: in the decompressed bytes */
    const char *kind;      /* of an object, as python-blosc2 calls it */
} cv_embed_entry;

typedef struct cv_embed {
    cv_embed_entry *list; /* sorted by `what` and key */
    size_t n, room;
    cv_buffer names, places; /* where keys and kinds lie; `places` while it is read */
    uint64_t size;           /* decompressed bytes */
    bool is_store;           /* the frame says that it is one: tree, dictionary or store */
} cv_embed;

/* Reads both lists from the frame in `store`, which it closes, also on failure. Memory grows
 * with the lists; lists longer than any tree's are refused. */
cv_status cv_embed_read(cv_store *store, cv_embed *out, cv_error *err);

const cv_embed_entry *cv_embed_find(const cv_embed *embed, cv_embed_what what,
                                    const char *key);

void cv_embed_free(cv_embed *embed);

/* ---- The tree -------------------------------------------------------------------------- */

typedef enum cv_tree_form {
    CV_TREE_ARCHIVE,   /* .b2z */
    CV_TREE_DIRECTORY, /* .b2d */
    CV_TREE_FILE       /* .b2e: no files but this one */
} cv_tree_form;

/* What a tree holds, as of one look. */
typedef struct cv_contents {
    cv_members members;
    cv_embed embed;
    bool has_embed;     /* there is an embed.b2e */
    cv_journal journal; /* of a directory */
} cv_contents;

/* Never changes while it is open, but for is_confirmed; any thread. */
typedef struct cv_tree {
    cv_tree_form form;
    char *path; /* from the root */
    cv_shown_path shown;
    cv_file file;             /* of an archive or file */
    cv_store *store;          /* the same behind a URL; else NULL */
    cv_dir dir;               /* of a directory */
    bool writable;            /* a directory, locked against other writers */
    cv_os_moment opened;      /* by this process? a writable one is its own */
    bool durable;             /* names are synced */
    bool lacks_members;       /* of a damaged archive: more may have been there */
    bool skips_journal;       /* for repairs: files are read as they are */
    cv_watch *watch;          /* borrowed: counts long calls, mostly in files; or NULL */
    cv_contents contents;     /* of an archive or file: such never change in place */
    int n_openings;           /* readings of one behind a URL while it is opened; else 0 */
    atomic_bool is_confirmed; /* see cv_tree_confirm */
} cv_tree;

/* Where the archive's bytes are. */
cv_zip_source cv_tree_source(const cv_tree *tree);

/* Opens the tree at the path or URL in the session (NULL: a new one of defaults).
 * CATERVA_EUNSUPPORTED if it is no tree, CATERVA_ENOTFOUND if it does not exist. Release *out
 * with cv_tree_close. `watch`, or NULL, counts the opening alone. */
cv_status cv_tree_open(const char *path, cv_session *session, cv_watch *watch, cv_tree **out,
                       cv_error *err);
void cv_tree_close(cv_tree *tree); /* NULL is fine */

/* The same of a local tree that may be damaged. *reason is cv_tree_open's failure, or
 * CATERVA_OK. Finds the members of an archive without a directory, and needs no embed.b2e.
 * CATERVA_ECORRUPT if there is no member. */
cv_status cv_tree_open_damaged(const char *path, cv_tree **out, cv_error *reason,
                               cv_error *err);

/* Keeps other writers out and finishes an unfinished commit. CATERVA_EREADONLY if it is no
 * directory, CATERVA_EBUSY if another writer has it. */
cv_status cv_tree_lock(cv_tree *tree, cv_error *err);

/* CATERVA_EREADONLY if open for reading; CATERVA_EBUSY in a child of fork if the parent
 * opened it. */
cv_status cv_tree_check_writable(const cv_tree *tree, cv_error *err);

/* Lists a directory, or gives the known contents of other trees; always release *own. Files
 * of a directory are announced to the tree's watch; the caller counts them. */
cv_status cv_tree_look(const cv_tree *tree, cv_contents *own, const cv_contents **out,
                       cv_error *err);

/* The same of a directory, as far as it decides what the key stands for: see cv_files_near. Takes
 * as long in a tree of ten as of ten thousand arrays, unless these are below the key. */
cv_status cv_tree_look_near(const cv_tree *tree, const char *key, bool is_first,
                            cv_contents *own, cv_error *err);
void cv_contents_free(cv_contents *contents);

/* What tells an archive or file from another of its name; zeros of a directory. */
cv_status cv_tree_identify(const cv_tree *tree, uint8_t out[CV_STATE_ID], cv_error *err);

/* A store of a member's bytes, to be read. */
cv_status cv_tree_store(const cv_tree *tree, const cv_member *member, cv_store **out,
                        cv_error *err);

/* Call before reporting that something behind a URL is missing or wrong: no checksum covers
 * an archive's directory or embed.b2e. Fetches it again past all caches, once for each tree.
 * CATERVA_EIO if it has changed. Other trees: CATERVA_OK. */
cv_status cv_tree_confirm(const cv_tree *tree, cv_error *err);

/* Reads the directory of a remote archive again through a doubted store. CATERVA_EIO if it
 * differs: bytes were damaged on their way. */
cv_status cv_tree_check_members(const cv_tree *tree, cv_store *store, cv_error *err);

/* The same of embed.b2e. CATERVA_ENOTFOUND when there is none. */
cv_status cv_tree_embed_store(const cv_tree *tree, cv_store **out, cv_error *err);

/* Reads what embed.b2e holds into contents->embed. CATERVA_ENOTFOUND when there is none. */
cv_status cv_tree_read_embed(const cv_tree *tree, cv_contents *contents, cv_error *err);

/* The first bytes of a member, at most `size`; *done of them. */
cv_status cv_tree_head(const cv_tree *tree, const cv_member *member, uint8_t *dst,
                       size_t size, size_t *done, cv_error *err);

/* "PATH/member" of a directory. Owned: cv_free. */
cv_status cv_tree_path(const cv_tree *tree, const char *member, char **out, cv_error *err);

/* ---- Leaves by their keys ---- */

/* Where a leaf is: a file of the tree, or bytes in its embed.b2e. */
typedef struct cv_leaf {
    bool is_embedded;
    uint64_t offset, size; /* of an embedded one: in the decompressed bytes */
    cv_member member;      /* of a file */
    char *path;            /* of the file from the tree; member.path is this. Owned */
} cv_leaf;

/* CATERVA_ENOTFOUND if the key does not exist, CATERVA_EUNSUPPORTED for a group, a reference
 * or an object of python-blosc2. Release with cv_leaf_free. */
cv_status cv_tree_find(const cv_tree *tree, const char *key, cv_leaf *out, cv_error *err);
void cv_leaf_free(cv_leaf *leaf);

/* CATERVA_EREADONLY if the key, in a directory, lies inside an object of python-blosc2, such
 * as a column of a table, whose other parts would not follow. */
cv_status cv_tree_check_own(const cv_tree *tree, const char *key, cv_error *err);

/* Whether a file of a directory has the key, as python-blosc2 names it. */
bool cv_tree_has_file(const cv_tree *tree, const char *key);

/* Whether anything in a directory has, or may have, the name of a leaf of that key, with a
 * suffix other than `but` (NULL: any). */
bool cv_tree_has_leaf(const cv_tree *tree, const char *key, const char *but);

/* Finds the attributes of a group: a leaf, or neither path nor embedded if it has none.
 * CATERVA_ENOTFOUND if there is no group. Release with cv_leaf_free. */
cv_status cv_tree_find_attributes(const cv_tree *tree, const char *group, cv_leaf *out,
                                  cv_error *err);

/* The file that they are in or can be: "g/__vlmeta__.b2f". Owned: cv_free. */
cv_status cv_tree_attributes_path(const char *group, char **out, cv_error *err);

/* Whether there is such a group; "/" is there always. */
bool cv_contents_has_group(const cv_contents *contents, const char *key);

#endif
