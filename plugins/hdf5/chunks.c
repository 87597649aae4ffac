/* Plug-in hdf5. Chunks that are packed by deflate, with or without shuffle, are decoded by several
 * threads: libhdf5 decodes one at a time. Only one thread at a time calls libhdf5. */
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

/* A box of whole chunks that is being read. */
typedef struct work {
    const h5_chunk_read *read;
    int64_t counts[CATERVA_MAX_DIMS]; /* of chunks in the box */
    int64_t n;
    size_t chunk_bytes;
    pthread_mutex_t lock; /* of libhdf5, and of the members below */
    int64_t next;
    cli_exit code;
} work;

/* What one thread needs. */
typedef struct scratch {
    uint8_t *stored, *a, *b;
    size_t room; /* of `stored` */
} scratch;

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
    const h5_pipeline *p = w->read->pipeline;
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

/* Copies the part of a chunk that is in the box; `items` NULL: the fill. Runs are as long as items
 * follow each other in both. */
static void copy_chunk(const work *w, const int64_t *first, const uint8_t *items)
{
    const h5_chunk_read *r = w->read;
    const foreign_node *node = r->node;
    int64_t count[CATERVA_MAX_DIMS], at[CATERVA_MAX_DIMS] = {0}, run = 1;
    for (int d = 0; d < node->ndim; d++) {
        int64_t rest = r->stop[d] - first[d];
        count[d] = rest < node->chunk_shape[d] ? rest : node->chunk_shape[d];
    }
    int outer = node->ndim - 1;
    run = count[outer];
    while (outer > 0 && count[outer] == node->chunk_shape[outer] &&
           count[outer] == r->stop[outer] - r->start[outer])
        run *= count[--outer];
    for (;;) {
        int64_t from = 0, to = 0;
        for (int d = 0; d < node->ndim; d++) {
            from = from * node->chunk_shape[d] + at[d];
            to = to * (r->stop[d] - r->start[d]) + first[d] - r->start[d] + at[d];
        }
        uint8_t *dst = r->dst + to * node->item_size;
        if (items)
            memcpy(dst, items + from * node->item_size, (size_t)(run * node->item_size));
        else
            fill(node, dst, (size_t)run);
        int d = outer - 1;
        while (d >= 0 && ++at[d] == count[d]) at[d--] = 0;
        if (d < 0) return;
    }
}

/* Reads the stored bytes of the next chunk. Returns false at the end, and after a failure. */
static bool take(work *w, scratch *s, int64_t *first, size_t *size, uint32_t *mask)
{
    const h5_chunk_read *r = w->read;
    hsize_t offset[CATERVA_MAX_DIMS], stored = 0;
    if (w->code == CLI_OK && cli_interrupted()) w->code = CLI_INTERRUPTED;
    if (w->code != CLI_OK || w->next == w->n) return false;
    int64_t index = w->next++;
    for (int d = r->node->ndim - 1; d >= 0; d--) {
        first[d] = r->start[d] + index % w->counts[d] * r->node->chunk_shape[d];
        index /= w->counts[d];
        offset[d] = (hsize_t)first[d];
    }
    h5_begin();
    *size = 0;
    if (H5Dget_chunk_storage_size(r->dataset, offset, &stored) < 0 || stored == 0) return true;
    if (stored > 2 * w->chunk_bytes + 65536) {
        w->code = cli_fail(CLI_CORRUPT, "%s: %s: a chunk of %zu bytes is stored in %llu", r->path,
                           r->node->key, w->chunk_bytes, (unsigned long long)stored);
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
    if (H5Dread_chunk(r->dataset, H5P_DEFAULT, offset, mask, s->stored) < 0)
        w->code = h5_fail(CLI_CORRUPT, r->path, r->node->key);
    *size = stored;
    return w->code == CLI_OK;
}

static void *run(void *own)
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
        if (items || size == 0) copy_chunk(w, first, items);
        pthread_mutex_lock(&w->lock);
        if (!items && size > 0 && w->code == CLI_OK)
            w->code = cli_fail(CLI_CORRUPT, "%s: %s: a chunk is damaged", w->read->path,
                               w->read->node->key);
    }
    pthread_mutex_unlock(&w->lock);
    free(s.stored);
    free(s.a);
    free(s.b);
    return NULL;
}

/* Returns how many threads to use; less than 2: libhdf5 reads the box as well. */
static int threads_for(const work *w, int most)
{
    long n = most > 0 ? most : sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MAX_THREADS) n = MAX_THREADS;
    if (n > w->n) n = (long)w->n;
    long room = (long)(MEMORY / (3 * w->chunk_bytes));
    return (int)(n < room ? n : room);
}

bool h5_read_chunks(const h5_chunk_read *read, int threads, cli_exit *code)
{
    const foreign_node *node = read->node;
    pthread_t others[MAX_THREADS];
    int n_others = 0;
    work w = {.read = read, .n = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.chunk_bytes = (size_t)node->item_size;
    for (int d = 0; d < node->ndim; d++) {
        int64_t chunk = node->chunk_shape[d];
        if (read->start[d] % chunk != 0 ||
            (read->stop[d] % chunk != 0 && read->stop[d] != node->shape[d]) ||
            w.chunk_bytes > MEMORY / (size_t)chunk)
            return false;
        w.counts[d] = (read->stop[d] - read->start[d] + chunk - 1) / chunk;
        w.n *= w.counts[d];
        w.chunk_bytes *= (size_t)chunk;
    }
    int n = threads_for(&w, threads);
    if (n < 2) return false;
    while (n_others < n - 1 && pthread_create(&others[n_others], NULL, run, &w) == 0) n_others++;
    run(&w);
    for (int i = 0; i < n_others; i++) pthread_join(others[i], NULL);
    pthread_mutex_destroy(&w.lock);
    *code = w.code;
    return true;
}
