/* Room: engine/plan. Sorts wanted items by the block that holds them. A stable radix
 * sort: linear in the number of items, and of items asked for twice the later
 * one stays the later one, which is what decides a write. */
#include "engine/plan/buckets.h"

#include "base/arith.h"
#include "base/heap.h"

/* AT_ONCE: picks that are moved, in some milliseconds, before somebody hears of it. */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 48, AT_ONCE = 1 << 18 };

cv_status cv_buckets_init(cv_buckets *buckets, int64_t n, cv_watch *watch, cv_error *err)
{
    *buckets = (cv_buckets){.n_picks = n, .watch = n > AT_ONCE ? watch : NULL};
    int64_t size;
    if (!cv_mul_i64(cv_max_i64(n, 1), (int64_t)sizeof buckets->picks[0], &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "%lld items are too many to select",
                       (long long)n);
    buckets->picks = cv_malloc((size_t)size);
    if (!buckets->picks) return cv_fail_memory(err, (size_t)size, "a selection");
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

/* The largest number, and whether the picks are in order already. */
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

/* One digit, from the picks to `to`. */
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

/* Digit after digit, into `other` and back. */
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
    size_t size = (size_t)(n + 1) * sizeof(int64_t); /* never more than the picks' */
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
