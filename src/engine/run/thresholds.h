/* From how much work on a second thread is worth waking, and how fine work is cut. Waking
 * one takes tens of microseconds (run/pool.c), in which a core decodes about 256 KiB,
 * encodes about 64 KiB or copies about 1 MiB. All are bytes unless they say otherwise. */
#ifndef CV_ENGINE_THRESHOLDS_H
#define CV_ENGINE_THRESHOLDS_H

enum {
    /* For each helper at least so much decoded; a layer of a scan that takes less is not
     * read ahead of; and what a prefetch decodes at once, for which a writer may wait. */
    CV_DECODE_PER_HELPER = 256 * 1024,

    /* The same of what is encoded, and of what a write copies, encodes or patches. */
    CV_ENCODE_PER_HELPER = 64 * 1024,

    /* The same of streams that are copied from one place of a file to another. */
    CV_COPY_PER_HELPER = 1 << 20,

    /* Parts that a request is cut into for each thread: who is done early takes another;
     * but each costs a look for its chunk, so none is smaller than that. Nine chunks of a
     * plane cut into 18 parts instead of 9, two threads: 306 -> 273 us in blocks of
     * 16 KiB, 548 -> 483 us in blocks of 128 KiB, lines 57 -> 53 us. */
    CV_PARTS_PER_THREAD = 8,
    CV_BYTES_PER_PART = 128 * 1024,

    /* Of a selection of at most so many items the calling thread takes what is there decoded
     * by itself: 1,300 instructions for each where all lie in chunks of their own, together
     * about the time in which a helper wakes. */
    CV_MOST_ITEMS_ALONE = 128,

    /* A chunk of at most so much is not cut among threads when it is written alone, but
     * waits until so much waits for each of them. 10,000 appends of a chunk of 1 KiB with
     * two threads: 184,500 -> 97,200 instructions for each with zstd, 63,000 -> 36,500 with
     * LZ4. Larger ones would not be in the processor's caches any more when their turn
     * comes. */
    CV_MOST_QUEUED_CHUNK = 1 << 20,
    CV_QUEUED_PER_THREAD = 128 * 1024,

    /* A chunk of so much that does not lie in the caller's memory as it is stored is
     * gathered block by block while it is encoded, see cv_encode_gathered: smaller ones stay
     * in the second cache in between. 384^3 of noise in chunks of 8 MiB, LZ4, one thread:
     * 171 -> 153 ms; 113 MB of compressible items in chunks of 256 KiB: 23.8 -> 21.8 ms, of
     * 1 MiB: 24.3 -> 20.9; of 128 KiB nothing is gained. */
    CV_LEAST_GATHERED = 256 * 1024,

    /* An encoded chunk of so much is put by another thread, while the next one is encoded,
     * see cv_behind: one that is smaller is written while that thread wakes. 113 MB of noise,
     * LZ4: in chunks of 64 KiB 85 -> 59 ms, of 128 KiB 79 -> 59, of 4 MiB 66 -> 57; in
     * chunks of 512 KiB that become 8 KiB, 26 -> 28 ms. Chunks of more than the most,
     * decoded, are not: that takes memory for another one. Nor are chunks of parts, whose
     * job has a worker for each core: the thread would push one of them aside for each
     * chunk. 256 MiB of noise by two processes on two cores: 494 -> 473 ms; by one
     * process, which then leaves a core idle, 836 -> 894. */
    CV_LEAST_BEHIND = 32 * 1024,
    CV_MOST_BEHIND = 64 << 20,

    /* From so much decoded it is asked whether a request's bytes are in memory, which takes
     * 0.3 to 0.9 us; what takes less time than that costs more is read as if they were. When
     * so many requests in a row have found theirs there, one of as many asks: a line of 64
     * KiB in 32 blocks takes 2 % longer where each does. */
    CV_LEAST_WAVE = 64 * 1024,
    CV_NEAR_IN_A_ROW = 4,

    /* Bytes as they are stored that a wave reads, and of a range of it, which one thread
     * decodes. */
    CV_WAVE_BYTES = 16 << 20,
    CV_WAVE_RANGE = 256 * 1024,

    /* Bytes of a wave that borrows memory which have come and are not decoded. 163 MB at 50 ms:
     * 170 to 350 ms with 32 MiB as with 64; memory that was never touched before is what is
     * dear. */
    CV_ROOM_BYTES = 32 << 20,

    /* Blocks, chunks and bytes of their heads that a request asks for at once. */
    CV_WAVE_BLOCKS = 16384,
    CV_WAVE_CHUNKS = 2048,
    CV_WAVE_HEADS = 16 << 20,

    /* Stored bytes that an operation which goes over many chunks of a far store has read
     * ahead of its use, in all its windows: with one thread two of 16 MiB, each of which a
     * link of 1 Gbit/s brings in 130 ms, more than its round trip. */
    CV_STAGE_BYTES = 32 << 20,

    /* Jobs that statistics are cut into, the same number however many threads there are:
     * enough of them for any machine, few enough that their tallies take no memory. */
    CV_LEAST_TALLIES = 64,
    CV_MOST_TALLIES = 4096,

    /* Tiles that a reduction along axes is cut into for each thread, and the cells of one
     * (24 bytes each) that still are in the second cache. */
    CV_TILES_PER_THREAD = 4,
    CV_CELLS_PER_TILE = 64 * 1024
};

#endif
