/* New trees: the bytes that every tree begins with, and directories that appear complete. */
#ifndef CV_TREE_MAKE_H
#define CV_TREE_MAKE_H

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/watch.h"
#include "format/frame_header.h"
#include "store/path.h"
#include "tree/opened.h"

#include <caterva_tree.h>

/* A file of the tree, locked against writers while it is copied. */
typedef struct cv_copy_source {
    const cv_tree *tree;
    const cv_member *member;
    cv_file file;
    uint64_t pos, size;
    bool any_checksum; /* the caller compares the archive's checksum */
} cv_copy_source;

/* Opens a file of the tree for copying. CATERVA_EBUSY: the file is open for writing;
 * CATERVA_EUNSUPPORTED: the member is compressed. Release with cv_copy_source_close. */
cv_status cv_copy_source_open(const cv_tree *tree, const cv_member *member,
                              cv_copy_source *out, cv_error *err);
void cv_copy_source_close(cv_copy_source *source);

/* Copies the whole file to `to` at `pos`; *crc: the checksum. CATERVA_ECORRUPT: the archive states
 * another checksum. The watch (or NULL) counts the bytes. */
cv_status cv_copy_bytes(const cv_copy_source *source, cv_file to, uint64_t pos,
                        cv_watch *watch, uint32_t *crc, cv_error *err);

/* Reads the whole file; CATERVA_ECORRUPT if its checksum differs from the archive's. */
cv_status cv_copy_check(const cv_copy_source *source, cv_watch *watch, cv_error *err);

/* Append an empty embed.b2e, or the leaf of a group without attributes, byte for byte as
 * python-blosc2 writes them. */
cv_status cv_make_embed(cv_buffer *out, cv_error *err);
cv_status cv_make_group(cv_buffer *out, cv_error *err);

/* Appends the sealed leaf of a group with attributes. `like`: header of the old leaf, or NULL. */
cv_status cv_make_group_with(const cv_metalayer *attributes, int n,
                             const cv_frame_header *like, cv_buffer *out, cv_error *err);

/* A directory under a temporary name in the same parent. */
typedef struct cv_new_directory {
    cv_dir parent;
    cv_dir dir;
    char *name;
    char temp[CV_OS_TEMP_NAME];
    cv_shown_path shown;
    bool published;
} cv_new_directory;

/* Creates a directory that will get the name `path`; CATERVA_EEXIST if `path` exists. Release with
 * cv_new_directory_close, which deletes a directory that was not published. */
cv_status cv_new_directory_open(const char *path, cv_new_directory *out, cv_error *err);
cv_status cv_new_directory_publish(cv_new_directory *made, bool durable, cv_error *err);
void cv_new_directory_close(cv_new_directory *made);

/* Makes an empty tree, which appears complete. CATERVA_EEXIST if `path` exists. */
cv_status cv_make_tree(const char *path, bool durable, cv_error *err);

/* Writes a new file `name` in `dir`, and creates the directories in its path. */
cv_status cv_make_file(cv_dir dir, const char *name, const cv_buffer *bytes, bool durable,
                       cv_error *err);

/* As cv_make_file, but leaves the file under a temporary name (`temp`) in the same directory. */
cv_status cv_make_temp(cv_dir dir, const char *name, const cv_buffer *bytes, bool durable,
                       char temp[CV_OS_TEMP_NAME], cv_error *err);

/* CATERVA_EEXIST if the directory has a name of the path in another case, and the system ignores case. */
cv_status cv_check_spelling(cv_dir dir, const char *name, cv_error *err);

/* Creates missing directories in the path of `name`, whose spelling it checks. If `durable`, syncs the
 * new names. */
cv_status cv_make_parents(cv_dir dir, const char *name, bool durable, cv_error *err);

/* Deletes everything below `dir`, best effort. The watch counts files, of which `announced` are
 * announced already. Fails only if the watch stops the call (CATERVA_ESTOPPED). */
cv_status cv_remove_all(cv_dir dir, const char *shown, cv_watch *watch, int64_t announced,
                        cv_error *err);

/* Deletes the directory, with all directories below, if they contain no file. Such directories stay
 * when new arrays are discarded, or the last member of a group is deleted. */
void cv_remove_empty(cv_dir dir, const char *name);

/* Syncs all files and directories below `dir`, of which there are about `n_files`. */
cv_status cv_sync_below(cv_dir dir, const char *shown, size_t n_files, cv_error *err);

/* Before the files of a tree are copied: keeps other writers out and finishes an unfinished commit,
 * until cv_tree_let_go. */
cv_status cv_tree_hold(const cv_tree *tree, cv_error *err);
void cv_tree_let_go(const cv_tree *tree);

/* CATERVA_EINVAL if a copy of the tree at `path` would be made inside its source. */
cv_status cv_tree_check_outside(const cv_tree *tree, const char *path, cv_error *err);

/* See caterva_tree_pack and caterva_tree_unpack; `options` must be complete. */
cv_status cv_tree_pack(const cv_tree *tree, const char *path,
                       const caterva_tree_pack_options *options, cv_error *err);
cv_status cv_tree_unpack(const cv_tree *tree, const char *path,
                         const caterva_tree_pack_options *options, cv_error *err);

#endif
