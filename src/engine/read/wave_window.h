/* The chunks of a walk that a wave is about: what of them is not there decoded, their layouts,
 * and the runs of bytes to be read. Lists that are small, however much is wanted. */
#ifndef CV_ENGINE_WAVE_WINDOW_H
#define CV_ENGINE_WAVE_WINDOW_H

#include "engine/read/walk.h"
#include "frame/fetch.h"

/* A chunk of the window. */
typedef struct cv_window_chunk {
    int64_t number;      /* among those touched */
    int64_t first, last; /* its blocks in the list */
    bool lacks_layout;   /* none is at hand, */
    bool is_whole;       /* and its bytes are read without one */
} cv_window_chunk;

/* Bytes that are read at once, and the blocks that they hold. */
typedef struct cv_window_run {
    size_t chunk; /* of the window */
    cv_fetch_run run;
    cv_object object; /* where its bytes are, */
    uint64_t pos;     /* from this one on */
    bool is_whole;    /* all bytes of such a chunk */
    bool is_apart;    /* then: no two of its blocks share bytes */
    int n_parts;      /* jobs that its blocks are shared among */
    uint8_t *bytes;   /* NULL: at hand */
    atomic_int *left; /* parts to do of what was read with it, or NULL */
    atomic_int kept;  /* of bytes that were lent: parts to do before they are given back */
} cv_window_run;

typedef struct cv_window {
    const cv_walk *walk;
    cv_worker *worker;
    int64_t next; /* touched chunk, not yet in a window */
    cv_buffer wanted, chunks, wishes, runs;
    size_t n_wanted, n_chunks, n_runs;
    size_t n_asked;   /* chunks whose layouts are asked for: the first ones */
    size_t n_at_hand; /* runs that need not be read: the first ones */
    uint64_t n_bytes; /* of the others, with room before each */
} cv_window;

void cv_window_free(cv_window *window);

/* The next chunks, while there are some: what is there decoded is delivered at once. */
cv_status cv_window_fill(cv_window *window, cv_error *err);

/* The layouts of those, but of the ones that are read whole, and then all runs. */
cv_status cv_window_cut(cv_window *window, cv_error *err);

/* The layouts of the window are not needed any more. */
void cv_window_release(cv_window *window);

/* Bytes of a chunk that is read whole have come: finds its layout. */
cv_status cv_window_arrived(cv_window *window, cv_window_run *run, cv_error *err);

/* Decodes and delivers one part of a run, whose bytes have come, or are at hand. */
cv_status cv_window_decode(const cv_window *window, const cv_window_run *run, int part,
                           cv_worker *worker, cv_error *err);

static inline cv_layout_wish *cv_window_wish(const cv_window *w, size_t chunk)
{
    return (cv_layout_wish *)(void *)w->wishes.data + chunk;
}
static inline cv_window_run *cv_window_run_at(const cv_window *w, size_t i)
{
    return (cv_window_run *)(void *)w->runs.data + i;
}

#endif
