/* Thresholds for waking threads and splitting work, in bytes unless stated otherwise. Waking a
 * thread takes tens of microseconds (run/pool.c); in that time a core decodes 256 KiB, encodes 64
 * KiB or copies 1 MiB. */
#ifndef CV_ENGINE_THRESHOLDS_H
#define CV_ENGINE_THRESHOLDS_H

enum {
    /* Least decoded bytes per helper, least bytes of a layer (read/prefetch.h) that is read ahead,
     * and bytes that a prefetch decodes in one step. */
    CV_DECODE_PER_HELPER = 256 * 1024,

    /* Least bytes per helper that a write copies, encodes or patches. */
    CV_ENCODE_PER_HELPER = 64 * 1024,

    /* Least bytes per helper of streams that are copied within a file. */
    CV_COPY_PER_HELPER = 1 << 20,

    /* Segments per thread of a request. More segments balance the load better, but each looks up
     * its chunk. A plane through nine chunks, two threads, in 18 segments instead of 9: 306 -> 273
     * us with 16 KiB blocks, 548 -> 483 us with 128 KiB blocks; a line: 57 -> 53 us. */
    CV_PARTS_PER_THREAD = 8,
    CV_BYTES_PER_PART = 128 * 1024,

    /* Up to this number of selected items the calling thread reads decoded blocks alone. An item in
     * a chunk of its own costs 1,300 instructions; 128 items cost about as much as a wake-up. */
    CV_MOST_ITEMS_ALONE = 128,

    /* Chunks up to this size, written alone, are not split among threads. They are queued
     * until each thread has CV_QUEUED_PER_THREAD bytes. 10,000 appends of 1 KiB chunks, two
     * threads: 184,500 -> 97,200 instructions each with zstd, 63,000 -> 36,500 with LZ4.
     * Larger chunks would be evicted from the processor caches meanwhile. */
    CV_MOST_QUEUED_CHUNK = 1 << 20,
    CV_QUEUED_PER_THREAD = 128 * 1024,

    /* Chunks of at least this size that are not in stored order in memory are gathered block by
     * block during encoding, see cv_encode_gathered; smaller ones stay in the second-level cache.
     * 384^3 of noise in 8 MiB chunks, LZ4, one thread: 171 -> 153 ms; 113 MB of compressible items
     * in chunks of 256 KiB: 23.8 -> 21.8 ms, of 1 MiB: 24.3 -> 20.9; of 128 KiB no gain. */
    CV_LEAST_GATHERED = 256 * 1024,

    /* Encoded chunks of at least this size are written by another thread while the next chunk is
     * encoded, see cv_behind; a smaller chunk is written faster than that thread wakes. 113 MB of
     * noise, LZ4: in chunks of 64 KiB 85 -> 59 ms, of 128 KiB 79 -> 59, of 4 MiB 66 -> 57; in
     * chunks of 512 KiB that compress to 8 KiB, 26 -> 28 ms. Not used for chunks of more than
     * CV_MOST_BEHIND decoded bytes, which need a second buffer. Nor for parts of a job, whose
     * processes use all cores: without it, 256 MiB of noise took two processes on two cores 473 ms
     * instead of 494, but one process, which leaves a core idle, 894 instead of 836. */
    CV_LEAST_BEHIND = 32 * 1024,
    CV_MOST_BEHIND = 64 << 20,

    /* Requests of at least this many decoded bytes check whether their bytes are in memory, which
     * takes 0.3 to 0.9 us. After CV_NEAR_IN_A_ROW positive answers in a row, only every fourth
     * request checks: if every request did, a line of 64 KiB in 32 blocks would be 2 % slower. */
    CV_LEAST_WAVE = 64 * 1024,
    CV_NEAR_IN_A_ROW = 4,

    /* Stored bytes that one wave reads, and those of one range of it, which one thread decodes. */
    CV_WAVE_BYTES = 16 << 20,
    CV_WAVE_RANGE = 256 * 1024,

    /* Most bytes of a wave that are borrowed from the store and not decoded yet. 163 MB at 50 ms
     * latency take 170 to 350 ms, with 32 MiB as with 64; fresh memory dominates the cost. */
    CV_ROOM_BYTES = 32 << 20,

    /* Limits of one wave: blocks, chunks, and bytes of chunk headers. */
    CV_WAVE_BLOCKS = 16384,
    CV_WAVE_CHUNKS = 2048,
    CV_WAVE_HEADS = 16 << 20,

    /* Stored bytes read ahead in all windows of an operation on a far store: with one thread,
     * two windows of 16 MiB. At 1 Gbit/s each takes 130 ms, more than a round trip. */
    CV_STAGE_BYTES = 32 << 20,

    /* Least and most jobs of a statistics request. Their number is independent of the threads:
     * enough for any machine, few enough that tallies stay small. */
    CV_LEAST_TALLIES = 64,
    CV_MOST_TALLIES = 4096,

    /* Tiles per thread of a reduction, and cells per tile. A cell has 24 bytes: a tile fits the
     * second-level cache. */
    CV_TILES_PER_THREAD = 4,
    CV_CELLS_PER_TILE = 64 * 1024
};

#endif
