/* A caterva_store in memory, as a program would implement it, with faults for tests. */
#ifndef SUPPORT_BLOB_H
#define SUPPORT_BLOB_H

#include <caterva.h>
#include <caterva_store.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { BLOB_ROOM = 32 << 20 };

typedef struct blob {
    uint8_t *bytes; /* BLOB_ROOM bytes */
    uint64_t size;
    pthread_mutex_t lock;
    bool short_reads; /* reads return fewer bytes than requested, at least 1 */
    bool slow;        /* some calls are slow */
    bool has_readers;
    atomic_int at_once, most_at_once; /* calls in progress: now, and at most */
    atomic_long calls;
    long fail_at;    /* number of the call that fails; -1: none */
    bool half;       /* a failing write writes half of its bytes */
    int status;      /* the status of the failure */
    const char *why; /* NULL: no message */
    int n_syncs, n_closed;
    /* With `waves` the store has read_many; the ranges arrive in an arbitrary order. */
    bool waves;
    bool leaves_out; /* leaves out every third range of a wave, and returns CATERVA_OK */
    bool lies;       /* ranges arrive twice, and some that were not requested */
    uint64_t bad;    /* the byte at this position cannot be read; 0: all can */
    atomic_long n_waves, n_ranges, n_reads, n_bytes; /* requested from this store */
    atomic_long n_stopped;                           /* waves that `arrived` stopped */
} blob;

void blob_init(blob *b);
void blob_free(blob *b);

/* Makes a caterva_store of this blob, for reading and writing. */
caterva_store blob_store(blob *b);

#endif
