/* The files of a tree, copied one after the other: for archives and directories made of
 * it. */
#ifndef CV_TREE_COPY_H
#define CV_TREE_COPY_H

#include "tree/tree.h"

/* Who hears of it; tell NULL: nobody. */
typedef struct cv_copy_watch {
    int (*tell)(void *context, int64_t done, int64_t total);
    void *context;
    int64_t done, total; /* bytes */
} cv_copy_watch;

/* A file of the tree that is open to be copied: nobody writes to it meanwhile. */
typedef struct cv_copy_source {
    const cv_tree *tree;
    const cv_member *member;
    cv_file file;
    uint64_t pos, size;
    bool any_checksum; /* whatever the archive says: who copies it compares */
} cv_copy_source;

/* CATERVA_EBUSY while somebody writes to it, CATERVA_EUNSUPPORTED for a member that is not
 * stored as it is. Release with cv_copy_source_close. */
cv_status cv_copy_source_open(const cv_tree *tree, const cv_member *member,
                              cv_copy_source *out, cv_error *err);
void cv_copy_source_close(cv_copy_source *source);

/* Copies all of it to `to` at `pos`; *crc is its checksum. CATERVA_ECORRUPT when an archive
 * says another one; CATERVA_ESTOPPED when the watch says stop. */
cv_status cv_copy_bytes(const cv_copy_source *source, cv_file to, uint64_t pos,
                        cv_copy_watch *watch, uint32_t *crc, cv_error *err);

/* Reads all of it and compares the checksum with the archive's: CATERVA_ECORRUPT. */
cv_status cv_copy_check(const cv_copy_source *source, cv_copy_watch *watch, cv_error *err);

/* The contents of the tree to be copied: not of a tree that is one file. *total is the sum
 * of all bytes. */
cv_status cv_copy_look(const cv_tree *tree, cv_contents *own, const cv_contents **out,
                       int64_t *total, cv_error *err);

#endif
