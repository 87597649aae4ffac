/* The chunk index in memory: one entry for each chunk, in pages that snapshots
 * and the transaction share.
 *
 *     committed  | page 0 | page 1 | page 2 |
 *                    |        |
 *     pending    | page 0 | page 1 | page 2'|      one entry of page 2 changed
 *
 * A page is never changed while somebody else holds it: a change copies that
 * page, and no commit copies the index. Each page is also one block of the
 * encoded index, and remembers its streams: a commit encodes changed pages
 * only. */
#ifndef CV_FRAME_INDEX_H
#define CV_FRAME_INDEX_H

#include "codec/codec.h"

#include <stdatomic.h>

enum {
    CV_INDEX_PAGE = 2048, /* entries; the blocks of C-Blosc2's indexes have as many */
    CV_INDEX_PAGE_BYTES = CV_INDEX_PAGE * (int)sizeof(int64_t)
};

typedef struct cv_index_page {
    atomic_int references;
    int room;      /* entries there is memory for */
    int n_encoded; /* from here the writer's alone: entries in `streams`, 0: none */
    uint8_t *streams;
    size_t streams_size;
    uint8_t header[32]; /* of a chunk with such streams */
    int64_t entries[];
} cv_index_page;

/* All entries the same (a fresh array of zeros) costs no memory. An index with
 * pages belongs to one owner, its pages to all who hold them. */
typedef struct cv_index {
    int64_t n;             /* entries */
    cv_index_page **pages; /* NULL: all entries are `same` */
    int64_t n_pages, max_pages;
    int64_t same;
} cv_index;

static inline int64_t cv_index_get(const cv_index *index, int64_t chunk)
{
    if (!index->pages) return index->same;
    return index->pages[chunk / CV_INDEX_PAGE]->entries[chunk % CV_INDEX_PAGE];
}

/* An index of `n` undefined entries; for who fills all of them. */
cv_status cv_index_create(int64_t n, cv_index *out, cv_error *err);

/* A second index of the same entries that shares all pages of the first. It
 * can be changed, also when the first has none. */
cv_status cv_index_share(const cv_index *from, cv_index *out, cv_error *err);

/* Change an index that has pages. On failure it is as it was. */
cv_status cv_index_set(cv_index *index, int64_t chunk, int64_t entry, cv_error *err);
cv_status cv_index_resize(cv_index *index, int64_t n, int64_t fill, cv_error *err);

void cv_index_free(cv_index *index); /* leaves it empty */

/* Appends the index to `out` as it stands in a file: a Blosc2 chunk of int64.
 * Costs the encoding of the pages that changed since they were last encoded,
 * and a copy of the streams of all. One thread at a time for all indexes that
 * share pages. *encoder is made at first need; the caller frees it. */
cv_status cv_index_encode(const cv_index *index, cv_encoder **encoder, cv_buffer *out,
                          cv_error *err);

#endif
