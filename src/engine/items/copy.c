/* Room: engine/items. Copies items; does not know chunks. Axes that are contiguous on both
 * sides are merged first, so that a box is copied in as few and as long runs as possible. A
 * short last axis uses loops specialised by item size. */
#include "engine/items/copy.h"

#include "base/arith.h"
#include "base/os_file.h"
#include "engine/items/transpose.h"
#include "engine/items/unshuffle.h"

#include <string.h>

typedef struct merged_box {
    int ndim; /* 0: one item */
    int64_t shape[CV_MAX_DIMS];
    int64_t src_strides[CV_MAX_DIMS];
    int64_t dst_strides[CV_MAX_DIMS];
} merged_box;

/* Merges axes, from the last on, where both sides are contiguous. box->shape[0] is innermost. */
static void merge(int ndim, const int64_t *shape, const int64_t *src, const int64_t *dst,
                  merged_box *box)
{
    int n = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        if (shape[d] == 1) continue;
        if (n > 0 && src[d] == box->src_strides[n - 1] * box->shape[n - 1] &&
            dst[d] == box->dst_strides[n - 1] * box->shape[n - 1]) {
            box->shape[n - 1] *= shape[d];
            continue;
        }
        box->shape[n] = shape[d];
        box->src_strides[n] = src[d];
        box->dst_strides[n] = dst[d];
        n++;
    }
    box->ndim = n;
}

static bool is_empty(int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++)
        if (shape[d] <= 0) return true;
    return false;
}

/* Advances both pointers to the next run of the outer axes [first, ndim); false at the end. */
static bool next_run(const merged_box *box, int first, int64_t *index, const uint8_t **src,
                     uint8_t **dst)
{
    for (int d = first; d < box->ndim; d++) {
        *src += box->src_strides[d];
        *dst += box->dst_strides[d];
        if (++index[d] < box->shape[d]) return true;
        *src -= box->src_strides[d] * box->shape[d];
        *dst -= box->dst_strides[d] * box->shape[d];
        index[d] = 0;
    }
    return false;
}

/* ---- Runs ----------------------------------------------------------------- */

/* The two innermost axes: `n` runs of equal size at constant steps. */
typedef struct runs {
    int64_t n;
    int64_t src_step, dst_step;
    int64_t n_items; /* of each run */
    int64_t src_item_step, dst_item_step;
    int64_t item_size;
    size_t size;   /* of a run, in bytes */
    int64_t plane; /* of shuffled items: bytes from one byte of an item to the next */
    cv_unshuffle_function *unshuffle;
    cv_transpose_function *transpose;
    const uint8_t *dst;    /* destination of the first run */
    const uint8_t *behind; /* first destination of the next call, or NULL */
    bool warms;            /* prefetches destinations */
} runs;

typedef void copy_function(const runs *r, const uint8_t *src, uint8_t *dst);

/* Prefetches destinations that are far apart, a few runs ahead; this made copying blocks into
 * a large array three times as fast. Runs that fill pages need no prefetch. */
enum { RUNS_AHEAD = 4, LEAST_AHEAD = 16, MOST_AHEAD = 2048 };

CV_WARMING void warm_ahead(const runs *r, int64_t i)
{
    int64_t ahead = i + RUNS_AHEAD;
    if (!r->warms) return;
    if (ahead < r->n)
        cv_warm_to_write(r->dst + ahead * r->dst_step, r->size);
    else if (r->behind)
        cv_warm_to_write(r->behind + (ahead - r->n) * r->dst_step, r->size);
}

/* Copies runs of `half` to 2 * `half` bytes as their first and last `half` bytes, which may
 * overlap; a call of memcpy costs more than such a run. The loop variables are copied out of
 * `r`, because the compiler must assume that writes to dst change `r`. */
#define DEFINE_SHORT_RUNS(name, half)                                                        \
    static inline void name##_copy(const uint8_t *src, uint8_t *dst, size_t last)            \
    {                                                                                        \
        memcpy(dst, src, half);                                                              \
        memcpy(dst + last, src + last, half);                                                \
    }                                                                                        \
    CV_WARMING void name##_warm(const uint8_t *dst, size_t last)                             \
    {                                                                                        \
        __builtin_prefetch(dst, 1);                                                          \
        if ((half) >= CV_LINE_BYTES) __builtin_prefetch(dst + CV_LINE_BYTES, 1);             \
        __builtin_prefetch(dst + last + (half)-1, 1);                                        \
    }                                                                                        \
    static void name(const runs *r, const uint8_t *src, uint8_t *dst)                        \
    {                                                                                        \
        const int64_t n = r->n, from = r->src_step, to = r->dst_step;                        \
        const size_t last = r->size - (half);                                                \
        int64_t i = 0, n_warming = r->warms ? n - RUNS_AHEAD : 0;                            \
        const uint8_t *ahead = r->dst + RUNS_AHEAD * to;                                     \
        const uint8_t *behind = r->warms ? r->behind : NULL;                                 \
        for (; i < n_warming; i++, src += from, dst += to, ahead += to) {                    \
            name##_warm(ahead, last);                                                        \
            name##_copy(src, dst, last);                                                     \
        }                                                                                    \
        for (; i < n; i++, src += from, dst += to) {                                         \
            if (behind) name##_warm(behind + (i - n_warming) * to, last);                    \
            name##_copy(src, dst, last);                                                     \
        }                                                                                    \
    }

DEFINE_SHORT_RUNS(runs_to_8, 4)
DEFINE_SHORT_RUNS(runs_to_16, 8)
DEFINE_SHORT_RUNS(runs_to_32, 16)
DEFINE_SHORT_RUNS(runs_to_64, 32)
DEFINE_SHORT_RUNS(runs_to_128, 64)

static void runs_of_any(const runs *r, const uint8_t *src, uint8_t *dst)
{
    for (int64_t i = 0; i < r->n; i++, src += r->src_step, dst += r->dst_step) {
        warm_ahead(r, i);
        memcpy(dst, src, r->size);
    }
}

static copy_function *contiguous(size_t size)
{
    if (size < 4 || size > 128) return runs_of_any;
    if (size <= 8) return runs_to_8;
    if (size <= 16) return runs_to_16;
    if (size <= 32) return runs_to_32;
    return size <= 64 ? runs_to_64 : runs_to_128;
}

#define DEFINE_STRIDED_RUN(name, type)                                                       \
    static void name(uint8_t *dst, int64_t dst_step, const uint8_t *src, int64_t src_step,   \
                     int64_t n)                                                              \
    {                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                    \
            type item;                                                                       \
            memcpy(&item, src + i * src_step, sizeof item);                                  \
            memcpy(dst + i * dst_step, &item, sizeof item);                                  \
        }                                                                                    \
    }

typedef struct item16 {
    uint64_t half[2];
} item16;

DEFINE_STRIDED_RUN(run_1, uint8_t)
DEFINE_STRIDED_RUN(run_2, uint16_t)
DEFINE_STRIDED_RUN(run_4, uint32_t)
DEFINE_STRIDED_RUN(run_8, uint64_t)
DEFINE_STRIDED_RUN(run_16, item16)

static void strided_run(uint8_t *dst, int64_t dst_step, const uint8_t *src, int64_t src_step,
                        int64_t n, int64_t item_size)
{
    switch (item_size) {
    case 1: run_1(dst, dst_step, src, src_step, n); return;
    case 2: run_2(dst, dst_step, src, src_step, n); return;
    case 4: run_4(dst, dst_step, src, src_step, n); return;
    case 8: run_8(dst, dst_step, src, src_step, n); return;
    case 16: run_16(dst, dst_step, src, src_step, n); return;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + i * dst_step, src + i * src_step, (size_t)item_size);
    }
}

static void strided_runs(const runs *r, const uint8_t *src, uint8_t *dst)
{
    for (int64_t i = 0; i < r->n; i++, src += r->src_step, dst += r->dst_step) {
        warm_ahead(r, i);
        strided_run(dst, r->dst_item_step, src, r->src_item_step, r->n_items, r->item_size);
    }
}

/* Transposing copies: one axis is contiguous in the source, another in the destination. Item sizes
 * without a kernel are copied in tiles, so that the next row uses the cache lines of a row. */
static bool runs_along_source(const runs *r)
{
    return r->src_item_step == r->item_size && r->dst_step == r->item_size;
}

static bool runs_along_result(const runs *r)
{
    return r->src_step == r->item_size && r->dst_item_step == r->item_size;
}

static void transpose(const runs *r, const uint8_t *src, uint8_t *dst)
{
    cv_transposition t = {r->n, r->n_items, r->src_step, r->dst_item_step};
    if (!runs_along_source(r))
        t = (cv_transposition){r->n_items, r->n, r->src_item_step, r->dst_step};
    r->transpose(&t, src, dst);
}

static void tiles(const runs *r, const uint8_t *src, uint8_t *dst)
{
    enum { TILE = 16 };
    for (int64_t j = 0; j < r->n; j += TILE) {
        int64_t n = cv_min_i64(TILE, r->n - j);
        for (int64_t i = 0; i < r->n_items; i++)
            strided_run(dst + i * r->dst_item_step + j * r->dst_step, r->dst_step,
                        src + i * r->src_item_step + j * r->src_step, r->src_step, n,
                        r->item_size);
    }
}

static copy_function *choose(runs *r)
{
    enum { FEW = 4 };
    if (r->src_item_step == r->item_size && r->dst_item_step == r->item_size)
        return contiguous(r->size);
    if (r->n < FEW || r->n_items < FEW) return strided_runs;
    if (!runs_along_source(r) && !runs_along_result(r)) return strided_runs;
    r->transpose = cv_transpose_for(r->item_size);
    return r->transpose ? transpose : tiles;
}

/* ---- Boxes ---------------------------------------------------------------- */

static runs runs_of(const merged_box *box, int64_t src_item_size, int64_t item_size)
{
    runs r = {.n = 1, .n_items = 1, .item_size = item_size};
    r.src_item_step = src_item_size;
    r.dst_item_step = item_size;
    if (box->ndim > 0) {
        r.n_items = box->shape[0];
        r.src_item_step = box->src_strides[0];
        r.dst_item_step = box->dst_strides[0];
    }
    if (box->ndim > 1) {
        r.n = box->shape[1];
        r.src_step = box->src_strides[1];
        r.dst_step = box->dst_strides[1];
    }
    r.size = (size_t)(r.n_items * item_size);
    r.warms = r.dst_item_step == item_size && r.size >= LEAST_AHEAD && r.size <= MOST_AHEAD;
    return r;
}

static void copy_merged(const merged_box *box, runs *r, copy_function *copy,
                        const uint8_t *from, uint8_t *to)
{
    int64_t index[CV_MAX_DIMS] = {0};
    const uint8_t *next_from = from;
    uint8_t *next_to = to;
    bool more;
    do {
        more = next_run(box, 2, index, &next_from, &next_to);
        r->dst = to;
        r->behind = more && r->n >= RUNS_AHEAD ? next_to : NULL;
        copy(r, from, to);
        from = next_from;
        to = next_to;
    } while (more);
}

void cv_copy_box(int ndim, const int64_t *shape, int64_t item_size, cv_strided src,
                 cv_strided dst)
{
    if (is_empty(ndim, shape)) return;
    merged_box box;
    merge(ndim, shape, src.strides, dst.strides, &box);
    if (box.ndim == 0) {
        strided_run(dst.data, item_size, src.data, item_size, 1, item_size);
        return;
    }
    runs r = runs_of(&box, item_size, item_size);
    copy_merged(&box, &r, choose(&r), src.data, dst.data);
}

/* ---- Shuffled boxes ---------------------------------------------------------- */

/* A run below this length takes no longer than a function call: 16 items take 2.1 ns inline, 3.1 ns
 * through a pointer. `restrict` and a constant item size let the compiler vectorise. */
enum { SHORT_RUN = 32 };

#define DEFINE_SHORT(name, item_size)                                                        \
    static inline void name##_run(const uint8_t *restrict src, int64_t plane, int64_t n,     \
                                  uint8_t *restrict dst)                                     \
    {                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                      \
            for (int64_t k = 0; k < (item_size); k++)                                        \
                dst[(item_size)*i + k] = src[k * plane + i];                                 \
    }                                                                                        \
    static void name(const runs *r, const uint8_t *src, uint8_t *dst)                        \
    {                                                                                        \
        for (int64_t i = 0; i < r->n; i++, src += r->src_step, dst += r->dst_step) {         \
            warm_ahead(r, i);                                                                \
            name##_run(src, r->plane, r->n_items, dst);                                      \
        }                                                                                    \
    }

DEFINE_SHORT(unshuffle_short_2, 2)
DEFINE_SHORT(unshuffle_short_4, 4)
DEFINE_SHORT(unshuffle_short_8, 8)

static copy_function *choose_short(int64_t item_size)
{
    switch (item_size) {
    case 2: return unshuffle_short_2;
    case 4: return unshuffle_short_4;
    case 8: return unshuffle_short_8;
    default: return NULL;
    }
}

static void unshuffle_typed(const runs *r, const uint8_t *src, uint8_t *dst)
{
    for (int64_t i = 0; i < r->n; i++, src += r->src_step, dst += r->dst_step) {
        warm_ahead(r, i);
        r->unshuffle(src, r->plane, r->n_items, dst);
    }
}

static void unshuffle_any(const runs *r, const uint8_t *src, uint8_t *dst)
{
    for (int64_t i = 0; i < r->n; i++, src += r->src_step, dst += r->dst_step)
        for (int64_t k = 0; k < r->item_size; k++)
            for (int64_t j = 0; j < r->n_items; j++)
                dst[j * r->dst_item_step + k] = src[k * r->plane + j * r->src_item_step];
}

static copy_function *choose_unshuffle(runs *r)
{
    if (r->src_item_step != 1 || r->dst_item_step != r->item_size) return unshuffle_any;
    r->unshuffle = cv_unshuffle_for(r->item_size);
    if (!r->unshuffle) return unshuffle_any;
    return r->n_items < SHORT_RUN ? choose_short(r->item_size) : unshuffle_typed;
}

bool cv_unshuffling_is_cheaper(int ndim, const int64_t *shape, int64_t item_size,
                               int64_t block_bytes)
{
    enum { SHORT = 8, FEW = 32 }; /* measured */
    int64_t size = item_size;
    for (int d = 0; d < ndim; d++) size *= shape[d];
    if (size <= block_bytes / FEW) return true;
    bool is_typed = item_size == 2 || item_size == 4 || item_size == 8;
    return is_typed && ndim > 0 && shape[ndim - 1] >= SHORT;
}

void cv_unshuffle_box(int ndim, const int64_t *shape, int64_t item_size, cv_shuffled src,
                      cv_strided dst)
{
    if (is_empty(ndim, shape)) return;
    merged_box box;
    int64_t strides[CV_MAX_DIMS];
    for (int d = 0; d < ndim; d++) strides[d] = src.strides[d] / item_size;
    merge(ndim, shape, strides, dst.strides, &box);
    const uint8_t *from = src.block + src.pos / item_size;
    int64_t plane = src.size / item_size;
    if (box.ndim == 0) {
        for (int64_t k = 0; k < item_size; k++) dst.data[k] = from[k * plane];
        return;
    }
    runs r = runs_of(&box, 1, item_size);
    r.plane = plane;
    copy_merged(&box, &r, choose_unshuffle(&r), from, dst.data);
}

/* Prefetches up to `most_lines` cache lines. `skewed`: runs may begin inside a cache line and then
 * reach one line further. */
static inline void warm(int ndim, const int64_t *shape, int64_t item_size, cv_strided src,
                        bool skewed, int most_lines)
{
    merged_box box;
    merge(ndim, shape, src.strides, src.strides, &box);
    runs r = runs_of(&box, item_size, item_size);
    int64_t step = cv_max_i64(r.src_item_step, CV_LINE_BYTES);
    int64_t size = (r.n_items - 1) * r.src_item_step + item_size;
    size = cv_min_i64(size, most_lines * step);
    int64_t index[CV_MAX_DIMS] = {0};
    const uint8_t *from = src.data;
    uint8_t *unused = src.data;
    int left = most_lines;
    do {
        const uint8_t *run = from;
        for (int64_t i = 0; i < r.n && left > 0; i++, run += r.src_step) {
            int64_t at = skewed ? -(int64_t)((uintptr_t)run % CV_LINE_BYTES) : 0;
            for (; at < size; at += step, left--)
                __builtin_prefetch(run + at, 0, 2); /* into the second-level cache */
        }
    } while (left > 0 && next_run(&box, 2, index, &from, &unused));
}

void cv_warm_box(int ndim, const int64_t *shape, int64_t item_size, cv_strided src)
{
    enum { MOST_LINES = 64 };
    warm(ndim, shape, item_size, src, false, MOST_LINES);
}

void cv_warm_block(int ndim, const int64_t *shape, int64_t item_size, cv_strided src)
{
    enum { MOST_LINES = 1024 };
    warm(ndim, shape, item_size, src, true, MOST_LINES);
}

static void fill_contiguous(uint8_t *dst, size_t size, const uint8_t *item, size_t item_size)
{
    if (!item) {
        memset(dst, 0, size);
        return;
    }
    memcpy(dst, item, item_size);
    for (size_t done = item_size; done < size;) {
        size_t step = done < size - done ? done : size - done;
        memcpy(dst + done, dst, step);
        done += step;
    }
}

void cv_fill_box(int ndim, const int64_t *shape, int64_t item_size, const uint8_t *item,
                 cv_strided dst)
{
    if (is_empty(ndim, shape)) return;
    int64_t no_strides[CV_MAX_DIMS] = {0};
    merged_box box;
    merge(ndim, shape, dst.strides, dst.strides, &box);
    if (box.ndim == 0) {
        fill_contiguous(dst.data, (size_t)item_size, item, (size_t)item_size);
        return;
    }
    int64_t index[CV_MAX_DIMS] = {0};
    const uint8_t *unused = (const uint8_t *)no_strides;
    memset(box.src_strides, 0, sizeof box.src_strides);
    uint8_t *to = dst.data;
    do {
        if (box.dst_strides[0] == item_size) {
            fill_contiguous(to, (size_t)(box.shape[0] * item_size), item, (size_t)item_size);
            continue;
        }
        for (int64_t i = 0; i < box.shape[0]; i++)
            fill_contiguous(to + i * box.dst_strides[0], (size_t)item_size, item,
                            (size_t)item_size);
    } while (next_run(&box, 1, index, &unused, &to));
}

bool cv_all_same(const uint8_t *bytes, size_t size, size_t item_size)
{
    return size >= item_size && memcmp(bytes, bytes + item_size, size - item_size) == 0;
}

bool cv_all_zero(const uint8_t *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && cv_all_same(bytes, size, 1));
}

const uint8_t *cv_nan_item(int64_t item_size)
{
    static const uint8_t nan32[4] = {0, 0, 0xc0, 0x7f};
    static const uint8_t nan64[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    if (item_size == sizeof nan32) return nan32;
    return item_size == sizeof nan64 ? nan64 : NULL;
}

bool cv_is_nan(const uint8_t *item, size_t item_size)
{
    const uint8_t *nan = cv_nan_item((int64_t)item_size);
    return nan && memcmp(item, nan, item_size) == 0;
}
