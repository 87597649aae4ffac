/* Room: engine/plan. Gathers and scatters items: boxes with copy.c, lists on the last axis
 * with loops specialised by item size, other axes with an odometer. */
#include "engine/plan/part.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"

#include <string.h>

/* Sorts wanted items by block with a radix sort, in linear time. The sort is stable: repeated items
 * keep their order, which decides the result of a write. */

/* AT_ONCE: picks moved between two polls of the watch; moving them takes some milliseconds. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 48, AT_ONCE = 1 << 18 };

cv_status cv_buckets_init(cv_buckets *buckets, int64_t n, cv_watch *watch, cv_error *err)
{
    *buckets = (cv_buckets){.n_picks = n, .watch = n > AT_ONCE ? watch : NULL};
    int64_t size;
    if (!cv_mul_i64(cv_max_i64(n, 1), (int64_t)sizeof buckets->picks[0], &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "%lld items are too many to select",
                       (long long)n);
    buckets->picks = cv_malloc(cv_size(size));
    if (!buckets->picks) return cv_fail_memory(err, cv_size(size), "a selection");
    return CV_OK;
}

void cv_buckets_free(cv_buckets *buckets)
{
    cv_free(buckets->picks);
    cv_free(buckets->blocks);
    cv_free(buckets->block_starts);
    cv_free(buckets->chunk_starts);
    *buckets = (cv_buckets){.n_picks = 0};
}

/* ---- Sorting ------------------------------------------------------------ */

static bool is_sorted(const cv_pick *picks, int64_t n, int64_t *largest)
{
    bool sorted = true;
    *largest = 0;
    for (int64_t i = 0; i < n; i++) {
        sorted = sorted && picks[i].at[CV_IN_BLOCK] >= *largest;
        *largest = cv_max_i64(*largest, picks[i].at[CV_IN_BLOCK]);
    }
    return sorted;
}

static void insertion_sort(cv_pick *picks, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        cv_pick pick = picks[i];
        int64_t j = i;
        for (; j > 0 && picks[j - 1].at[CV_IN_BLOCK] > pick.at[CV_IN_BLOCK]; j--)
            picks[j] = picks[j - 1];
        picks[j] = pick;
    }
}

static cv_status sort_digit(const cv_buckets *buckets, cv_pick *to, int shift,
                            int64_t counts[DIGITS], cv_error *err)
{
    const cv_pick *from = buckets->picks;
    int64_t n = buckets->n_picks;
    for (int i = 0; i < DIGITS; i++) counts[i] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[(from[i].at[CV_IN_BLOCK] >> shift) & (DIGITS - 1)]++;
    int64_t start = 0;
    for (int i = 0; i < DIGITS; i++) {
        int64_t count = counts[i];
        counts[i] = start;
        start += count;
    }
    for (int64_t first = 0, end; first < n; first = end) {
        end = cv_min_i64(first + AT_ONCE, n);
        for (int64_t i = first; i < end; i++)
            to[counts[(from[i].at[CV_IN_BLOCK] >> shift) & (DIGITS - 1)]++] = from[i];
        CV_TRY(cv_watch_tick(buckets->watch, (end - first) * (int64_t)sizeof *to, err));
    }
    return CV_OK;
}

static cv_status sort_digits(cv_buckets *buckets, int64_t largest, cv_pick **other,
                             int64_t counts[DIGITS], cv_error *err)
{
    int n_digits = 0;
    for (int64_t left = largest; left > 0; left >>= DIGIT_BITS) n_digits++;
    cv_watch_expect(buckets->watch,
                    n_digits * buckets->n_picks * (int64_t)sizeof buckets->picks[0]);
    for (int i = 0; i < n_digits; i++) {
        CV_TRY(sort_digit(buckets, *other, i * DIGIT_BITS, counts, err));
        cv_pick *sorted = *other;
        *other = buckets->picks;
        buckets->picks = sorted;
    }
    return CV_OK;
}

static cv_status sort(cv_buckets *buckets, cv_error *err)
{
    int64_t n = buckets->n_picks, largest;
    if (is_sorted(buckets->picks, n, &largest)) return CV_OK;
    if (n <= FEW) {
        insertion_sort(buckets->picks, n);
        return CV_OK;
    }
    size_t size = (size_t)n * sizeof(cv_pick);
    cv_pick *other = cv_malloc(size);
    int64_t *counts = cv_malloc(DIGITS * sizeof counts[0]);
    cv_status status = other && counts ? sort_digits(buckets, largest, &other, counts, err)
                                       : cv_fail_memory(err, size, "sorting a selection");
    cv_free(other);
    cv_free(counts);
    return status;
}

/* ---- Grouping ----------------------------------------------------------- */

static int64_t count_blocks(const cv_buckets *buckets, int64_t items_per_block)
{
    int64_t n = 0, last = -1;
    for (int64_t i = 0; i < buckets->n_picks; i++) {
        int64_t block = buckets->picks[i].at[CV_IN_BLOCK] / items_per_block;
        n += block != last;
        last = block;
    }
    return n;
}

cv_status cv_buckets_group(cv_buckets *buckets, cv_numbering numbering, cv_error *err)
{
    CV_TRY(sort(buckets, err));
    int64_t n = count_blocks(buckets, numbering.items_per_block);
    size_t size = (size_t)(n + 1) * sizeof(int64_t); /* no overflow: picks take more */
    buckets->blocks = cv_malloc(size);
    buckets->block_starts = cv_malloc(size);
    buckets->chunk_starts = cv_malloc(size);
    if (!buckets->blocks || !buckets->block_starts || !buckets->chunk_starts)
        return cv_fail_memory(err, 3 * size, "the blocks of a selection");

    int64_t block = -1, chunk = -1;
    for (int64_t i = 0; i < buckets->n_picks; i++) {
        int64_t *number = &buckets->picks[i].at[CV_IN_BLOCK];
        int64_t in_block = *number / numbering.items_per_block;
        *number %= numbering.items_per_block;
        if (in_block == block) continue;
        block = in_block;
        if (block / numbering.blocks_per_chunk != chunk) {
            chunk = block / numbering.blocks_per_chunk;
            buckets->chunk_starts[buckets->n_chunks++] = buckets->n_blocks;
        }
        buckets->blocks[buckets->n_blocks] = block;
        buckets->block_starts[buckets->n_blocks++] = i;
    }
    buckets->block_starts[buckets->n_blocks] = buckets->n_picks;
    buckets->chunk_starts[buckets->n_chunks] = buckets->n_blocks;
    return CV_OK;
}

/* ---- Copies ------------------------------------------------------------------ */

/* A copy in progress: an odometer over the first n_outer axes, and the present addresses. */
typedef struct cursor {
    const cv_part *part;
    cv_side from, to;
    int n_outer;
    int64_t index[CV_MAX_DIMS];
    const uint8_t *src;
    uint8_t *dst;
} cursor;

static int64_t offset(const cv_part *part, cv_side side, int axis, int64_t i)
{
    const cv_pick *picks = part->picks[axis];
    return (picks ? picks[i].at[side] : i) * part->strides[side][axis];
}

static void move(cursor *c, int axis, int64_t i, int64_t j)
{
    c->src += offset(c->part, c->from, axis, j) - offset(c->part, c->from, axis, i);
    c->dst += offset(c->part, c->to, axis, j) - offset(c->part, c->to, axis, i);
    c->index[axis] = j;
}

static bool next(cursor *c)
{
    for (int d = c->n_outer - 1; d >= 0; d--) {
        int64_t i = c->index[d];
        if (i + 1 < c->part->n[d]) {
            move(c, d, i, i + 1);
            return true;
        }
        move(c, d, i, 0);
    }
    return false;
}

/* ---- A list on the last axis --------------------------------------------- */

typedef struct item16 {
    uint64_t half[2];
} item16;

#define COPY_PICKS(type)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                        \
        type item;                                                                           \
        memcpy(&item, c->src + picks[i].at[c->from] * src_step, sizeof item);                \
        memcpy(c->dst + picks[i].at[c->to] * dst_step, &item, sizeof item);                  \
    }                                                                                        \
    return

static void copy_picks(const cursor *c)
{
    const cv_part *part = c->part;
    int last = part->ndim - 1;
    const cv_pick *picks = part->picks[last];
    int64_t n = part->n[last];
    int64_t src_step = part->strides[c->from][last], dst_step = part->strides[c->to][last];
    switch (part->item_size) {
    case 1: COPY_PICKS(uint8_t);
    case 2: COPY_PICKS(uint16_t);
    case 4: COPY_PICKS(uint32_t);
    case 8: COPY_PICKS(uint64_t);
    case 16: COPY_PICKS(item16);
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(c->dst + picks[i].at[c->to] * dst_step,
                   c->src + picks[i].at[c->from] * src_step, (size_t)part->item_size);
    }
}

/* ---- A mask ---------------------------------------------------------------- */

typedef struct track {
    uint8_t *data;
    int64_t step;
} track;

/* Has no branch per item: an item that is not selected is overwritten by the next item. */
#define GATHER_MASK(type)                                                                    \
    for (int64_t i = 0, k = 0; k < n; i++) {                                                 \
        type item;                                                                           \
        memcpy(&item, block.data + i * block.step, sizeof item);                             \
        memcpy(buffer.data + k * buffer.step, &item, sizeof item);                           \
        k += mask[i] != 0;                                                                   \
    }                                                                                        \
    return

static void gather_mask(const cv_part *part, track block, track buffer)
{
    const uint8_t *mask = part->mask;
    int64_t n = part->n[0];
    switch (part->item_size) {
    case 1: GATHER_MASK(uint8_t);
    case 2: GATHER_MASK(uint16_t);
    case 4: GATHER_MASK(uint32_t);
    case 8: GATHER_MASK(uint64_t);
    default:
        for (int64_t i = 0, k = 0; k < n; i++)
            if (mask[i])
                memcpy(buffer.data + k++ * buffer.step, block.data + i * block.step,
                       (size_t)part->item_size);
    }
}

static void scatter_mask(const cv_part *part, track buffer, track block)
{
    for (int64_t i = 0, k = 0; k < part->n[0]; i++)
        if (part->mask[i])
            memcpy(block.data + i * block.step, buffer.data + k++ * buffer.step,
                   (size_t)part->item_size);
}

static void copy_masked(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst)
{
    cv_side to = from == CV_IN_BLOCK ? CV_IN_BUFFER : CV_IN_BLOCK;
    track a = {(uint8_t *)src + part->pos[from], part->strides[from][0]};
    track b = {dst + part->pos[to], part->strides[to][0]};
    if (from == CV_IN_BLOCK)
        gather_mask(part, a, b);
    else
        scatter_mask(part, a, b);
}

/* ---- The copy ----------------------------------------------------------- */

void cv_part_copy(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst)
{
    if (part->mask) {
        copy_masked(part, from, src, dst);
        return;
    }
    cv_side to = from == CV_IN_BLOCK ? CV_IN_BUFFER : CV_IN_BLOCK;
    int inner = part->ndim; /* axes [inner, ndim) have a constant step */
    while (inner > 0 && !part->picks[inner - 1]) inner--;
    bool list_last = inner > 0 && inner == part->ndim;

    cursor c = {.part = part, .from = from, .to = to};
    c.n_outer = list_last ? inner - 1 : inner;
    c.src = src + part->pos[from];
    c.dst = dst + part->pos[to];
    for (int d = 0; d < c.n_outer; d++) {
        c.src += offset(part, from, d, 0);
        c.dst += offset(part, to, d, 0);
    }
    do {
        if (list_last) {
            copy_picks(&c);
        } else {
            cv_strided a = {(uint8_t *)c.src, part->strides[from] + inner};
            cv_strided b = {c.dst, part->strides[to] + inner};
            cv_copy_box(part->ndim - inner, part->n + inner, part->item_size, a, b);
        }
    } while (next(&c));
}

/* Copies from a block that has only `item`: all its strides are 0. */
void cv_part_fill(const cv_part *part, const uint8_t *item, uint8_t *dst)
{
    bool even = !part->mask;
    for (int d = 0; d < part->ndim; d++) even = even && !part->picks[d];
    if (even) {
        cv_strided to = {dst + part->pos[CV_IN_BUFFER], part->strides[CV_IN_BUFFER]};
        cv_fill_box(part->ndim, part->n, part->item_size, item, to);
        return;
    }
    cv_part flat = *part;
    flat.pos[CV_IN_BLOCK] = 0;
    memset(flat.strides[CV_IN_BLOCK], 0, sizeof flat.strides[CV_IN_BLOCK]);
    cv_part_copy(&flat, CV_IN_BLOCK, item, dst);
}
