/* Room: store. A queue before the medium that is kept full by hints: so many ranges are
 * asked for ahead of the one that is read, which then waits for its own bytes only.
 *
 *     ranges   0 1 2 3 4 5 6 7 8 9 ...
 *                  ^           ^
 *                 read       asked for
 *
 * Measured, on a disk that needs 100 us for a read: 576 ranges of 8.6 KiB, one after the
 * other 42 to 74 ms, hinted 12 to 16, by io_uring with 32 under way 17 to 22 through the page
 * cache and 13 to 16 past it; 144 ranges of 70 KiB 24, 7 to 14, 13 to 15 and 10. The hints
 * need no ring and no threads, work where a sandbox forbids io_uring, and leave the bytes in
 * the page cache; and the system reads exactly what they name, where it would read ahead of
 * what looks like a file read from its beginning to its end. */
#include "store/deep.h"

/* Ranges, and bytes of them, that are under way. */
enum { MOST_RANGES = 128, MOST_BYTES = 16 << 20 };

cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err)
{
    size_t asked = 0;
    uint64_t under_way = 0;
    for (size_t i = 0; i < n; i++) {
        for (; asked < n && asked < i + MOST_RANGES; asked++) {
            if (asked > i && under_way + ranges[asked].size > MOST_BYTES) break;
            ask(store, &ranges[asked]);
            under_way += ranges[asked].size;
        }
        const cv_store_range *r = &ranges[i];
        cv_status status = cv_store_read(store, r->object, r->pos, r->dst, r->size, err);
        if (status != CV_OK && arrivals->failed) arrivals->failed(arrivals->context, i);
        CV_TRY(status);
        under_way -= r->size;
        CV_TRY(arrivals->arrived(arrivals->context, i, err));
    }
    return CV_OK;
}
