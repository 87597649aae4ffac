/* Room: codec. Undoing the shuffle for some items of a block: byte k of all items stands
 * before byte k + 1 of any. For a whole block libblosc2 does it, with wider vectors than
 * can be counted on here. */
#include "codec/internal.h"

/* `n` items of planes that are `length` bytes long. That no byte is both read and written,
 * and the size known, lets the compiler make them interleave vectors. */
#define UNSHUFFLE(item_size)                                                                 \
    static void unshuffle_##item_size(const uint8_t *restrict shuffled, int32_t length,      \
                                      int32_t n, uint8_t *restrict dst)                      \
    {                                                                                        \
        for (int32_t i = 0; i < n; i++)                                                      \
            for (int32_t k = 0; k < item_size; k++)                                          \
                dst[item_size * i + k] = shuffled[k * length + i];                           \
    }

UNSHUFFLE(2)
UNSHUFFLE(4)
UNSHUFFLE(8)

static void unshuffle_run(const uint8_t *shuffled, int32_t length, int32_t item_size,
                          int32_t n, uint8_t *dst)
{
    switch (item_size) {
    case 2: unshuffle_2(shuffled, length, n, dst); return;
    case 4: unshuffle_4(shuffled, length, n, dst); return;
    case 8: unshuffle_8(shuffled, length, n, dst); return;
    default:
        for (int32_t k = 0; k < item_size; k++)
            for (int32_t i = 0; i < n; i++)
                dst[(ptrdiff_t)i * item_size + k] = shuffled[(ptrdiff_t)k * length + i];
    }
}

void cv_unshuffle_part(const uint8_t *shuffled, int32_t block_bytes, int32_t item_size,
                       const cv_block_part *part, uint8_t *dst)
{
    int32_t length = block_bytes / item_size;
    for (int32_t i = 0; i < part->n[0]; i++)
        for (int32_t j = 0; j < part->n[1]; j++) {
            int32_t pos = part->start + i * part->step[0] + j * part->step[1];
            unshuffle_run(shuffled + pos / item_size, length, item_size,
                          part->size / item_size, dst + pos);
        }
}

/* A byte here takes as long as so many of a block that libblosc2 unshuffles, and a run
 * as that many more (measured with blocks of 16 KiB: 0.03 ns, 4 ns). */
bool cv_unshuffle_is_cheaper(int32_t block_bytes, int32_t item_size,
                             const cv_block_part *part)
{
    enum { BYTE = 2, BYTE_OF_OTHERS = 32, RUN = 256 };
    bool is_typed = item_size == 2 || item_size == 4 || item_size == 8;
    int64_t n_runs = (int64_t)part->n[0] * part->n[1];
    int64_t each = (int64_t)part->size * (is_typed ? BYTE : BYTE_OF_OTHERS) + RUN;
    return n_runs * each < block_bytes;
}
