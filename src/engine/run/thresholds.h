/* Thresholds for waking threads and cutting work. A wake-up takes tens of microseconds
 * (run/pool.c): a core decodes 256 KiB, encodes 64 KiB or copies 1 MiB meanwhile. In bytes
 * unless stated. */
#ifndef CV_ENGINE_THRESHOLDS_H
#define CV_ENGINE_THRESHOLDS_H

enum {
    /* Least decoded bytes per helper, and of a layer read ahead; and what a prefetch
     * decodes at once. */
    CV_DECODE_PER_HELPER = 256 * 1024,

    /* The same of what is encoded, and of what a write copies, encodes or patches. */
    CV_ENCODE_PER_HELPER = 64 * 1024,

    /* The same of streams that are copied from one place of a file to another. */
    CV_COPY_PER_HELPER = 1 << 20,

    /* Parts per thread of a request: balances load, but each looks up its chunk. Nine
     * chunks of a plane in 18 parts instead of 9, two threads: 306 -> 273 us with 16 KiB
     * blocks, 548 -> 483 us with 128 KiB blocks, lines 57 -> 53 us. */
    CV_PARTS_PER_THREAD = 8,
    CV_BYTES_PER_PART = 128 * 1024,

    /* Up to this many selected items the calling thread takes decoded blocks alone: 1,300
     * instructions per item in a chunk of its own, in all about a wake-up. */
    CV_MOST_ITEMS_ALONE = 128,

    /* Chunks up to this size, written alone, are not cut among threads but queue until each
     * thread has as much. 10,000 appends of 1 KiB chunks, two threads: 184,500 -> 97,200
     * instructions each with zstd, 63,000 -> 36,500 with LZ4. Larger ones would leave the
     * processor's caches. */
    CV_MOST_QUEUED_CHUNK = 1 << 20,
    CV_QUEUED_PER_THREAD = 128 * 1024,

    /* Chunks from this size on that do not lie in stored order are gathered during
     * encoding, see cv_encode_gathered; smaller ones stay in the second cache. 384^3 of
     * noise in 8 MiB chunks, LZ4, one thread: 171 -> 153 ms; 113 MB of compressible items
     * in chunks of 256 KiB: 23.8 -> 21.8 ms, of 1 MiB: 24.3 -> 20.9; of 128 KiB no gain. */
    CV_LEAST_GATHERED = 256 * 1024,

    /* Encoded chunks from this size on are put by another thread during the next one's
     * encoding, see cv_behind; smaller ones are written while it wakes. 113 MB of noise,
     * LZ4: in chunks of 64 KiB 85 -> 59 ms, of 128 KiB 79 -> 59, of 4 MiB 66 -> 57; 512 KiB
     * that become 8 KiB, 26 -> 28 ms. Not above the most decoded bytes, which need a second
     * buffer; nor for parts, whose workers use all cores: 256 MiB of noise by two processes
     * on two cores 494 -> 473 ms; by one, which idles a core, 836 -> 894. */
    CV_LEAST_BEHIND = 32 * 1024,
    CV_MOST_BEHIND = 64 << 20,

    /* From this many decoded bytes on a request asks whether its bytes are in memory (0.3
     * to 0.9 us). After so many hits in a row only one of as many asks: a line of 64 KiB in
     * 32 blocks takes 2 % longer with each. */
    CV_LEAST_WAVE = 64 * 1024,
    CV_NEAR_IN_A_ROW = 4,

    /* Bytes as they are stored that a wave reads, and of a range of it, which one thread
     * decodes. */
    CV_WAVE_BYTES = 16 << 20,
    CV_WAVE_RANGE = 256 * 1024,

    /* Borrowed bytes of a wave that are not decoded yet. 163 MB at 50 ms: 170 to 350 ms
     * with 32 MiB as with 64; fresh memory is what costs. */
    CV_ROOM_BYTES = 32 << 20,

    /* Blocks, chunks and bytes of their heads that a request asks for at once. */
    CV_WAVE_BLOCKS = 16384,
    CV_WAVE_CHUNKS = 2048,
    CV_WAVE_HEADS = 16 << 20,

    /* Stored bytes read ahead in all windows of a far operation: with one thread two of 16
     * MiB, each 130 ms at 1 Gbit/s, more than a round trip. */
    CV_STAGE_BYTES = 32 << 20,

    /* Jobs of statistics, independent of threads: enough for any machine, few small
     * tallies. */
    CV_LEAST_TALLIES = 64,
    CV_MOST_TALLIES = 4096,

    /* Tiles per thread of a reduction, and cells of one (24 bytes each) that fit the second
     * cache. */
    CV_TILES_PER_THREAD = 4,
    CV_CELLS_PER_TILE = 64 * 1024
};

#endif
