/* The chunk index in memory: for each chunk an entry and the name of its block
 * table, in pages that snapshots and the transaction share.
 *
 *     committed  | page 0 | page 1 | page 2 |
 *                    |        |
 *     pending    | page 0 | page 1 | page 2'|      one entry of page 2 changed
 *
 * A page is never changed while somebody else holds it: a change copies that
 * page, and no commit copies the index. Each page is also one block of the
 * encoded index, and remembers its streams: a commit encodes changed pages
 * only; and it is one page of the seal's chunk list, and remembers its sum. */
#ifndef CV_FRAME_INDEX_H
#define CV_FRAME_INDEX_H

#include "base/arith.h"
#include "codec/encode.h"
#include "format/seal.h"

#include <stdatomic.h>

enum {
    CV_INDEX_PAGE = CV_SEAL_PAGE, /* entries; C-Blosc2's indexes have blocks of as many */
    CV_INDEX_PAGE_BYTES = CV_INDEX_PAGE * (int)sizeof(int64_t)
};

typedef struct cv_index_page {
    atomic_int references;
    int room;      /* entries there is memory for */
    int n_encoded; /* from here the writer's alone: entries in `streams`, 0: none */
    uint8_t *streams;
    size_t streams_size;
    uint8_t header[32]; /* of a chunk with such streams */
    int n_summed;       /* names in `sum`, their page's in the chunk list, 0: none */
    uint32_t sum;
    uint8_t *names; /* `room`, behind the entries, as the chunk list stores them;
                       0: no table is known */
    int64_t entries[];
} cv_index_page;

/* Block tables that do not stand behind their chunk, ascending by entry. Shared like
 * pages. */
typedef struct cv_strays {
    atomic_int references;
    int64_t n;
    cv_seal_stray items[];
} cv_strays;

/* An index of equal entries (a new array of zeros) has no pages. One owner; its pages are
 * shared. */
typedef struct cv_index {
    int64_t n;             /* entries */
    cv_index_page **pages; /* NULL: all entries are `same` */
    int64_t n_pages, max_pages;
    int64_t same;
    cv_strays *strays; /* NULL: none */
} cv_index;

/* Entries: offsets from the header's end, numbers of chunk files, or negative special
 * values. */
static inline bool cv_offset_is_special(int64_t offset) { return offset < 0; }

static inline int64_t cv_index_get(const cv_index *index, int64_t chunk)
{
    if (!index->pages) return index->same;
    return index->pages[chunk / CV_INDEX_PAGE]->entries[chunk % CV_INDEX_PAGE];
}

static inline uint32_t cv_page_name(const cv_index_page *page, int64_t i)
{
    return cv_load_le32(page->names + 4 * i);
}

static inline void cv_page_set_name(cv_index_page *page, int64_t i, uint32_t name)
{
    cv_store_le32(page->names + 4 * i, name);
}

/* The name of the chunk's block table, 0: unknown; and its position, 0: right behind the
 * chunk. */
static inline uint32_t cv_index_name(const cv_index *index, int64_t chunk)
{
    if (!index->pages) return 0;
    return cv_page_name(index->pages[chunk / CV_INDEX_PAGE], chunk % CV_INDEX_PAGE);
}
uint64_t cv_index_table_pos(const cv_index *index, int64_t chunk);

/* An index of `n` undefined entries without names; for who fills all of them. */
cv_status cv_index_create(int64_t n, cv_index *out, cv_error *err);

/* Adds the next page of `n` entries to an index with only `n` set: fill in its entries. The
 * second joins it with an equal page before it; returns the bytes it takes otherwise. */
cv_status cv_index_add_page(cv_index *index, int64_t n, cv_index_page **out, cv_error *err);
int64_t cv_index_join_page(cv_index *index, int n);

/* A second index that shares all pages of the first; can be changed even if that has
 * none. */
cv_status cv_index_share(const cv_index *from, cv_index *out, cv_error *err);

/* Change an index that has pages; on failure it is as it was. `name`: the block table's, or
 * 0. */
cv_status cv_index_set(cv_index *index, int64_t chunk, int64_t entry, uint32_t name,
                       cv_error *err);
cv_status cv_index_set_name(cv_index *index, int64_t chunk, uint32_t name, cv_error *err);

/* Sets the names of page `p`, as they are stored; an index without pages gets some. */
cv_status cv_index_set_names(cv_index *index, int64_t p, const uint8_t *names, size_t size,
                             cv_error *err);

/* Adds strays, in any order; drops those whose entry no chunk has any more. */
cv_status cv_index_add_strays(cv_index *index, const cv_seal_stray *strays, int64_t n,
                              cv_error *err);
cv_status cv_index_prune_strays(cv_index *index, cv_error *err);

cv_status cv_index_resize(cv_index *index, int64_t n, int64_t entry, cv_error *err);

/* Entries that name a stored chunk. */
int64_t cv_index_count_stored(const cv_index *index);

/* The first chunk from `chunk` on that is stored or not `same` (special); index->n: none. */
int64_t cv_index_next(const cv_index *index, int64_t chunk, int64_t same);

void cv_index_free(cv_index *index); /* leaves it empty */

/* ---- Encoding ----
 *
 * A chunk index to bytes: what a commit puts into its tail. */

/* Appends the index as a file has it, a Blosc2 chunk of int64: encodes changed pages,
 * copies the streams of the others. One thread at a time for all indexes that share pages.
 * *encoder is made at first need; the caller frees it. */
cv_status cv_index_encode(const cv_index *index, cv_encoder **encoder, cv_buffer *out,
                          cv_error *err);

#endif
