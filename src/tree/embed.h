/* What the file embed.b2e says of its tree: which leaves lie inside it, one behind the
 * other in its decompressed bytes, which are references to other places, and which groups
 * are objects of their own (python-blosc2's tables, remote stores). */
#ifndef CV_TREE_EMBED_H
#define CV_TREE_EMBED_H

#include "base/heap.h"
#include "store/store.h"

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

/* Reads both lists from the frame in `store`, which it closes, also on failure. Takes as
 * much memory as they are long, and refuses what is longer than any tree's. */
cv_status cv_embed_read(cv_store *store, cv_embed *out, cv_error *err);

const cv_embed_entry *cv_embed_find(const cv_embed *embed, cv_embed_what what,
                                    const char *key);

void cv_embed_free(cv_embed *embed);

#endif
