/* Plug-in hdf5. Chunks that are packed by deflate, with or without shuffle, are decoded and encoded
 * by several threads: libhdf5 does one at a time. Only one thread at a time calls libhdf5. Chunks are
 * written in their order, so that equal arrays become equal files. */
#include "hdf5.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define MEMORY ((size_t)64 << 20) /* of all threads */
enum { MAX_THREADS = 64 };

bool h5_pipeline_of(hid_t properties, h5_pipeline *out)
{
    *out = (h5_pipeline){.n = H5Pget_nfilters(properties)};
    bool packed = false;
    if (out->n < 1 || out->n > H5_MAX_FILTERS) return false;
    for (int i = 0; i < out->n; i++) {
        unsigned flags, values[8] = {0};
        size_t n = sizeof values / sizeof values[0];
        out->filters[i] =
            H5Pget_filter2(properties, (unsigned)i, &flags, &n, values, 0, NULL, NULL);
        out->element[i] = n > 0 ? values[0] : 0;
        packed = packed || out->filters[i] == H5Z_FILTER_DEFLATE;
        if (out->filters[i] != H5Z_FILTER_DEFLATE && out->filters[i] != H5Z_FILTER_SHUFFLE)
            return false;
    }
    return packed;
}

/* A box of whole chunks that is being read or written. */
typedef struct work {
    const h5_chunk_box *box;
    int64_t counts[CATERVA_MAX_DIMS]; /* of chunks in the box */
    int64_t n;
    size_t chunk_bytes;
    pthread_mutex_t lock; /* of libhdf5, and of the members below */
    pthread_cond_t turn;  /* `written` or `code` has changed */
    int64_t next, written;
    cli_exit code;
} work;

/* What one thread needs. */
typedef struct scratch {
    uint8_t *stored, *a, *b;
    size_t room; /* of `stored` */
} scratch;

/* ---- Geometry ---------------------------------------------------------------------------- */

/* The runs of a chunk that is in the box: items that follow each other in both. */
typedef struct rows {
    int64_t count[CATERVA_MAX_DIMS], at[CATERVA_MAX_DIMS];
    int outer; /* axes before those of a run */
    bool done;
    int64_t in_chunk, in_box; /* bytes before the run */
    size_t size;
} rows;

static void begin_rows(const work *w, const int64_t *first, rows *r)
{
    const h5_chunk_box *b = w->box;
    const foreign_node *node = b->node;
    int last = node->ndim - 1;
    *r = (rows){.outer = last};
    for (int d = 0; d < node->ndim; d++) {
        int64_t rest = b->stop[d] - first[d];
        r->count[d] = rest < node->chunk_shape[d] ? rest : node->chunk_shape[d];
    }
    int64_t run = r->count[last];
    while (r->outer > 0 && r->count[r->outer] == node->chunk_shape[r->outer] &&
           r->count[r->outer] == b->stop[r->outer] - b->start[r->outer])
        run *= r->count[--r->outer];
    r->size = (size_t)(run * node->item_size);
}

static bool next_row(const work *w, const int64_t *first, rows *r)
{
    const h5_chunk_box *b = w->box;
    if (r->done) return false;
    r->in_chunk = r->in_box = 0;
    for (int d = 0; d < b->node->ndim; d++) {
        r->in_chunk = r->in_chunk * b->node->chunk_shape[d] + r->at[d];
        r->in_box =
            r->in_box * (b->stop[d] - b->start[d]) + first[d] - b->start[d] + r->at[d];
    }
    r->in_chunk *= b->node->item_size;
    r->in_box *= b->node->item_size;
    int d = r->outer - 1;
    while (d >= 0 && ++r->at[d] == r->count[d]) r->at[d--] = 0;
    r->done = d < 0;
    return true;
}

/* Takes the next chunk, and sets `first` to its first item; false after the last. */
static bool next_chunk(work *w, int64_t *index, int64_t *first, hsize_t *offset)
{
    const h5_chunk_box *b = w->box;
    if (w->code == CLI_OK && cli_interrupted()) w->code = CLI_INTERRUPTED;
    if (w->code != CLI_OK || w->next == w->n) return false;
    int64_t rest = *index = w->next++;
    for (int d = b->node->ndim - 1; d >= 0; d--) {
        first[d] = b->start[d] + rest % w->counts[d] * b->node->chunk_shape[d];
        rest /= w->counts[d];
        offset[d] = (hsize_t)first[d];
    }
    return true;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static void unshuffle(const uint8_t *src, uint8_t *dst, size_t size, size_t element)
{
    size_t n = size / element;
    for (size_t b = 0; b < element; b++)
        for (size_t i = 0; i < n; i++) dst[i * element + b] = src[b * n + i];
    memcpy(dst + n * element, src + n * element, size - n * element);
}

/* Undoes the filters; returns the items, in `s`, or NULL if the chunk is damaged. */
static const uint8_t *decode(const work *w, scratch *s, size_t size, uint32_t mask)
{
    const h5_pipeline *p = w->box->pipeline;
    const uint8_t *from = s->stored;
    for (int i = p->n - 1; i >= 0; i--) {
        uint8_t *to = from == s->a ? s->b : s->a;
        bool is_deflate = p->filters[i] == H5Z_FILTER_DEFLATE;
        uLongf made = w->chunk_bytes;
        if (mask >> i & 1 || (!is_deflate && p->element[i] < 2)) continue;
        if (is_deflate && (uncompress(to, &made, from, size) != Z_OK || made != w->chunk_bytes))
            return NULL;
        if (!is_deflate && size != w->chunk_bytes) return NULL;
        if (!is_deflate) unshuffle(from, to, size, p->element[i]);
        from = to;
        size = w->chunk_bytes;
    }
    return size == w->chunk_bytes ? from : NULL;
}

static void fill(const foreign_node *node, uint8_t *dst, size_t n)
{
    size_t size = (size_t)node->item_size;
    if (!node->fill) memset(dst, 0, n * size);
    for (size_t i = 0; node->fill && i < n; i++) memcpy(dst + i * size, node->fill, size);
}

/* Copies the part of a chunk that is in the box; `items` NULL: the fill. */
static void scatter(const work *w, const int64_t *first, const uint8_t *items)
{
    rows r;
    begin_rows(w, first, &r);
    while (next_row(w, first, &r)) {
        uint8_t *dst = w->box->items + r.in_box;
        if (items)
            memcpy(dst, items + r.in_chunk, r.size);
        else
            fill(w->box->node, dst, r.size / (size_t)w->box->node->item_size);
    }
}

/* Reads the stored bytes of the next chunk; *size is 0 if the chunk is not stored. Returns false
 * at the end, and after a failure. */
static bool take(work *w, scratch *s, int64_t *first, size_t *size, uint32_t *mask)
{
    const h5_chunk_box *b = w->box;
    hsize_t offset[CATERVA_MAX_DIMS], stored = 0;
    int64_t index;
    if (!next_chunk(w, &index, first, offset)) return false;
    h5_begin();
    *size = 0;
    if (H5Dget_chunk_storage_size(b->dataset, offset, &stored) < 0 || stored == 0) return true;
    if (stored > 2 * w->chunk_bytes + 65536) {
        w->code = cli_fail(CLI_CORRUPT, "%s: %s: a chunk of %zu bytes is stored in %llu", b->path,
                           b->node->key, w->chunk_bytes, (unsigned long long)stored);
        return false;
    }
    if (stored > s->room) {
        free(s->stored);
        s->room = 0;
        s->stored = cli_alloc(stored);
        if (!s->stored) w->code = CLI_IO;
        if (!s->stored) return false;
        s->room = stored;
    }
    if (H5Dread_chunk(b->dataset, H5P_DEFAULT, offset, mask, s->stored) < 0)
        w->code = h5_fail(CLI_CORRUPT, b->path, b->node->key);
    *size = stored;
    return w->code == CLI_OK;
}

static void *read_chunks(void *own)
{
    work *w = own;
    scratch s = {.a = malloc(w->chunk_bytes), .b = malloc(w->chunk_bytes)};
    int64_t first[CATERVA_MAX_DIMS];
    uint32_t mask = 0;
    size_t size;
    pthread_mutex_lock(&w->lock);
    if (!s.a || !s.b) w->code = cli_fail(CLI_IO, "out of memory");
    while (take(w, &s, first, &size, &mask)) {
        pthread_mutex_unlock(&w->lock);
        const uint8_t *items = size > 0 ? decode(w, &s, size, mask) : NULL;
        if (items || size == 0) scatter(w, first, items);
        pthread_mutex_lock(&w->lock);
        if (!items && size > 0 && w->code == CLI_OK)
            w->code = cli_fail(CLI_CORRUPT, "%s: %s: a chunk is damaged", w->box->path,
                               w->box->node->key);
    }
    pthread_mutex_unlock(&w->lock);
    free(s.stored);
    free(s.a);
    free(s.b);
    return NULL;
}

/* ---- Writing ----------------------------------------------------------------------------- */

static void shuffle(const uint8_t *src, uint8_t *dst, size_t size, size_t element)
{
    size_t n = size / element;
    for (size_t b = 0; b < element; b++)
        for (size_t i = 0; i < n; i++) dst[b * n + i] = src[i * element + b];
    memcpy(dst + n * element, src + n * element, size - n * element);
}

/* Sets `dst` to a whole chunk; what is not in the box is zero. */
static void gather(const work *w, const int64_t *first, uint8_t *dst)
{
    rows r;
    begin_rows(w, first, &r);
    if (r.size < w->chunk_bytes) memset(dst, 0, w->chunk_bytes);
    while (next_row(w, first, &r)) memcpy(dst + r.in_chunk, w->box->items + r.in_box, r.size);
}

/* Packs the chunk in s->a into s->stored, and returns its size; 0 after a failure. Shuffle comes
 * before deflate. */
static size_t encode(const work *w, const scratch *s)
{
    const h5_pipeline *p = w->box->pipeline;
    const uint8_t *from = s->a;
    uLongf size = s->room;
    if (p->filters[0] == H5Z_FILTER_SHUFFLE && p->element[0] > 1) {
        shuffle(from, s->b, w->chunk_bytes, p->element[0]);
        from = s->b;
    }
    int level = (int)p->element[p->n - 1];
    return compress2(s->stored, &size, from, w->chunk_bytes, level) == Z_OK ? size : 0;
}

/* Writes a packed chunk after those before it. */
static void put_in_turn(work *w, int64_t index, const hsize_t *offset, const scratch *s,
                        size_t size)
{
    while (w->written != index && w->code == CLI_OK) pthread_cond_wait(&w->turn, &w->lock);
    h5_begin();
    if (w->code == CLI_OK && (size == 0 || H5Dwrite_chunk(w->box->dataset, H5P_DEFAULT, 0, offset,
                                                          size, s->stored) < 0))
        w->code = h5_fail(CLI_IO, w->box->path, w->box->node->key);
    w->written++;
    pthread_cond_broadcast(&w->turn);
}

static void *write_chunks(void *own)
{
    work *w = own;
    scratch s = {.a = malloc(w->chunk_bytes), .b = malloc(w->chunk_bytes)};
    int64_t first[CATERVA_MAX_DIMS], index;
    hsize_t offset[CATERVA_MAX_DIMS];
    s.room = compressBound(w->chunk_bytes);
    s.stored = malloc(s.room);
    pthread_mutex_lock(&w->lock);
    if (!s.a || !s.b || !s.stored) w->code = cli_fail(CLI_IO, "out of memory");
    while (next_chunk(w, &index, first, offset)) {
        pthread_mutex_unlock(&w->lock);
        gather(w, first, s.a);
        size_t size = encode(w, &s);
        pthread_mutex_lock(&w->lock);
        put_in_turn(w, index, offset, &s, size);
    }
    pthread_cond_broadcast(&w->turn);
    pthread_mutex_unlock(&w->lock);
    free(s.stored);
    free(s.a);
    free(s.b);
    return NULL;
}

/* ---- Threads ----------------------------------------------------------------------------- */

/* Returns how many threads to use; less than 2: libhdf5 does as well. */
static int threads_for(const work *w, int most)
{
    long n = most > 0 ? most : sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MAX_THREADS) n = MAX_THREADS;
    if (n > w->n) n = (long)w->n;
    long room = (long)(MEMORY / (3 * w->chunk_bytes));
    return (int)(n < room ? n : room);
}

static bool run(const h5_chunk_box *box, int threads, void *(*one)(void *), cli_exit *code)
{
    const foreign_node *node = box->node;
    pthread_t others[MAX_THREADS];
    int n_others = 0;
    work w = {.box = box, .n = 1, .lock = PTHREAD_MUTEX_INITIALIZER,
              .turn = PTHREAD_COND_INITIALIZER};
    w.chunk_bytes = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        int64_t chunk = node->chunk_shape[d];
        if (box->start[d] % chunk != 0 ||
            (box->stop[d] % chunk != 0 && box->stop[d] != node->shape[d]) ||
            w.chunk_bytes > MEMORY / (size_t)chunk)
            return false;
        w.counts[d] = (box->stop[d] - box->start[d] + chunk - 1) / chunk;
        w.n *= w.counts[d];
        w.chunk_bytes *= (size_t)chunk;
    }
    int n = threads_for(&w, threads);
    if (n < 2) return false;
    while (n_others < n - 1 && pthread_create(&others[n_others], NULL, one, &w) == 0) n_others++;
    one(&w);
    for (int i = 0; i < n_others; i++) pthread_join(others[i], NULL);
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.turn);
    *code = w.code;
    return true;
}

bool h5_read_chunks(const h5_chunk_box *box, int threads, cli_exit *code)
{
    return run(box, threads, read_chunks, code);
}

bool h5_write_chunks(const h5_chunk_box *box, int threads, cli_exit *code)
{
    return run(box, threads, write_chunks, code);
}
