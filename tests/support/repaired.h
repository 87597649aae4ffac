/* Good files of several commits, and the judge of what a repair makes of them once
 * they are damaged. */
#ifndef SUPPORT_REPAIRED_H
#define SUPPORT_REPAIRED_H

#include "caterva.h"
#include "caterva_upkeep.h"
#include "oracle.h"
#include "random.h"
#include "scratch.h"

#include <stddef.h>
#include <stdint.h>

enum { REPAIRED_COMMITS = 5, REPAIRED_CHUNKS = 16 };

/* How a file came to be. */
typedef enum writer {
    ONE_HANDLE, /* overwrites, and uses dead space again */
    REOPENED,   /* one handle for each commit: nothing is used again */
    SPARSE,
    BLOSC2 /* written at once by C-Blosc2 */
} writer;

extern const char *const writer_names[];

typedef struct extent {
    int64_t pos, size;
} extent;

/* A good file, and what each of its commits held. */
typedef struct sample {
    writer writer;
    geometry geometry;
    char path[SCRATCH_PATH];
    oracle states[REPAIRED_COMMITS + 1];
    int n_states;
    uint8_t *bytes; /* of the file, or of a directory's chunks.b2frame */
    size_t size;
    int64_t n_chunks;
    extent chunks[REPAIRED_CHUNKS];
} sample;

/* Written anew at its path, and loaded. Release with sample_free. */
sample sample_make(rng *r, writer w);
void sample_free(sample *s);

/* One more commit, through `array`: a random box (the first time all) and the
 * attribute "step", the number of the state. */
void sample_change(rng *r, sample *s, caterva_array *array);

/* Where the frame lies: the file, or the directory's chunks.b2frame. */
const char *sample_frame_path(const sample *s, char path[SCRATCH_PATH]);

typedef struct verdict {
    caterva_status status;
    caterva_repair_result result;
} verdict;

/* Saves `bytes` as the sample's frame (NULL: it stays as it is) and repairs it. What
 * the repair says must agree with itself, what it kept with what was committed, and
 * libblosc2 must read it alike. `hit` is the chunk that may hold anything that
 * decodes, -1 for none, -2 for any; `guess` is the repair's option. */
verdict judge_repair(const sample *s, const uint8_t *bytes, size_t size, int64_t hit,
                     int guess, const char *what);

/* How many repairs were judged, and how they ended: so that a test can say that it
 * met every way. */
typedef struct repair_counts {
    int n, in_place, written, hopeless, older, guessed, mixed;
} repair_counts;
extern repair_counts repairs_judged;

#endif
