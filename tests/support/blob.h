/* A store of the program's own, in memory, with the faults that stores have. */
#ifndef SUPPORT_BLOB_H
#define SUPPORT_BLOB_H

#include <caterva.h>
#include <caterva_store.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { BLOB_ROOM = 32 << 20 };

typedef struct blob {
    uint8_t *bytes; /* BLOB_ROOM of them */
    uint64_t size;
    pthread_mutex_t lock;
    bool short_reads; /* gives less than asked for, 1 byte at least */
    bool slow;        /* takes its time, now and then */
    bool has_readers;
    atomic_int at_once, most_at_once; /* calls under way */
    atomic_long calls;
    long fail_at;    /* the call with this number fails; -1: none */
    bool half;       /* a write that fails has written half of its bytes */
    int status;      /* with which it fails */
    const char *why; /* NULL: it says nothing */
    int n_syncs, n_closed;
    /* With `waves` it reads many ranges at once, and they arrive in an order of its own. */
    bool waves;
    bool leaves_out; /* every third range of a wave, and says that all is well */
    bool lies;       /* ranges arrive twice, and such as nobody asked for */
    uint64_t bad;    /* the byte here cannot be read; 0: all can */
    atomic_long n_waves, n_ranges, n_reads, n_bytes; /* of waves and reads */
    atomic_long n_stopped;                           /* waves that heard to stop */
} blob;

void blob_init(blob *b);
void blob_free(blob *b);

/* A store that is this blob, to read and write. */
caterva_store blob_store(blob *b);

#endif
