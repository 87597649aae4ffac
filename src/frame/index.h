/* The chunk index in memory: for each chunk an entry and the name of its block table, in pages that
 * snapshots and the transaction share.
 *
 *     committed  | page 0 | page 1 | page 2 |
 *                    |        |
 *     pending    | page 0 | page 1 | page 2'|      one entry of page 2 changed
 *
 * A shared page never changes: a change copies the page. No commit copies the whole index. Each
 * page is one block of the encoded index and keeps its compressed streams, so that a commit encodes
 * only changed pages. It is also one page of the seal's chunk list, and keeps its checksum. */
#ifndef CV_FRAME_INDEX_H
#define CV_FRAME_INDEX_H

#include "base/arith.h"
#include "codec/encode.h"
#include "format/seal.h"

#include <stdatomic.h>

enum {
    CV_INDEX_PAGE = CV_SEAL_PAGE, /* entries, as many as in blocks of C-Blosc2's indexes */
    CV_INDEX_PAGE_BYTES = CV_INDEX_PAGE * (int)sizeof(int64_t)
};

typedef struct cv_index_page {
    atomic_int references;
    int room;      /* capacity */
    int n_encoded; /* entries in `streams`; 0: none. From here to `sum` only for the writer */
    uint8_t *streams;
    size_t streams_size;
    uint8_t header[32]; /* of a chunk with such streams */
    int n_summed;       /* names that `sum` covers; 0: none */
    uint32_t sum;       /* checksum of this page of the chunk list */
    uint8_t *names;     /* `room` names behind the entries; 0: the chunk has no known table */
    int64_t entries[];
} cv_index_page;

/* Block tables that are not right behind their chunk, sorted by entry. Shared like pages. */
typedef struct cv_strays {
    atomic_int references;
    int64_t n;
    cv_seal_stray items[];
} cv_strays;

/* An index has one owner; its pages are shared. If all entries are equal, it may have no pages. */
typedef struct cv_index {
    int64_t n;             /* entries */
    cv_index_page **pages; /* NULL: all entries are `same`, as in a new array of zeros */
    int64_t n_pages, max_pages;
    int64_t same;
    cv_strays *strays; /* NULL: none */
} cv_index;

/* Entries: offsets from the header's end, numbers of chunk files, or negative special values. */
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

/* The name of the chunk's block table (0: unknown), and its position (0: right behind the
 * chunk). */
static inline uint32_t cv_index_name(const cv_index *index, int64_t chunk)
{
    if (!index->pages) return 0;
    return cv_page_name(index->pages[chunk / CV_INDEX_PAGE], chunk % CV_INDEX_PAGE);
}
uint64_t cv_index_table_pos(const cv_index *index, int64_t chunk);

/* Makes an index of `n` undefined entries without names: the caller sets all of them. */
cv_status cv_index_create(int64_t n, cv_index *out, cv_error *err);

/* add_page adds the next page, of `n` entries. Before the first page, only index->n is set. The
 * caller fills the page in. join_page replaces the last page by the one before if both are equal;
 * returns the bytes that the last page takes, 0 if it was replaced. */
cv_status cv_index_add_page(cv_index *index, int64_t n, cv_index_page **out, cv_error *err);
int64_t cv_index_join_page(cv_index *index, int n);

/* Makes a second index that shares all pages of the first. The second one always has pages, so that
 * it can be changed. */
cv_status cv_index_share(const cv_index *from, cv_index *out, cv_error *err);

/* Change an index that has pages. On failure nothing is changed. `name`: the block table's, or
 * 0. */
cv_status cv_index_set(cv_index *index, int64_t chunk, int64_t entry, uint32_t name,
                       cv_error *err);
cv_status cv_index_set_name(cv_index *index, int64_t chunk, uint32_t name, cv_error *err);

/* Sets the names of page `p` from the chunk list's form. Makes the pages if the index has none. */
cv_status cv_index_set_names(cv_index *index, int64_t p, const uint8_t *names, size_t size,
                             cv_error *err);

/* add_strays adds strays, in any order. prune_strays drops those whose entry no chunk has any
 * more. */
cv_status cv_index_add_strays(cv_index *index, const cv_seal_stray *strays, int64_t n,
                              cv_error *err);
cv_status cv_index_prune_strays(cv_index *index, cv_error *err);

cv_status cv_index_resize(cv_index *index, int64_t n, int64_t entry, cv_error *err);

/* Number of entries that stand for a stored chunk. */
int64_t cv_index_count_stored(const cv_index *index);

/* Returns the first chunk from `chunk` on whose entry is not the special entry `same`; else
 * index->n. */
int64_t cv_index_next(const cv_index *index, int64_t chunk, int64_t same);

void cv_index_free(cv_index *index); /* leaves it empty */

/* ---- Encoding ----
 *
 * The bytes of a chunk index, as a commit writes them into the tail. */

/* Appends the encoded index, a Blosc2 chunk of int64. Encodes changed pages and copies the streams
 * of the others. Indexes that share pages must be encoded by one thread at a time. Creates *encoder
 * at first need; the caller frees it. */
cv_status cv_index_encode(const cv_index *index, cv_encoder **encoder, cv_buffer *out,
                          cv_error *err);

#endif
