/* Good files of several commits, and checks of the results of repairs after damage. */
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

/* How a file was written. */
typedef enum writer {
    ONE_HANDLE, /* overwrites, and reuses dead space */
    REOPENED,   /* one handle for each commit: reuses nothing */
    SPARSE,
    BLOSC2 /* written at once by C-Blosc2 */
} writer;

extern const char *const writer_names[];

typedef struct extent {
    int64_t pos, size;
} extent;

/* A good file, and the contents after each commit. */
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

/* Writes the file again at its path, and loads it. Release with sample_free. */
sample sample_make(rng *r, writer w);
void sample_free(sample *s);

/* One more commit through `array`: a random box (the whole array the first time), and the attribute
 * "step", the number of the state. */
void sample_change(rng *r, sample *s, caterva_array *array);

/* The path of the frame: the file, or the directory's chunks.b2frame. */
const char *sample_frame_path(const sample *s, char path[SCRATCH_PATH]);

typedef struct verdict {
    caterva_status status;
    caterva_repair_result result;
} verdict;

/* Saves `bytes` as the sample's frame (NULL: unchanged) and repairs it. Checks that the reports are
 * consistent, that kept chunks equal committed ones, and that libblosc2 reads the same. `hit`: the
 * chunk that may contain anything that decodes, -1 for none, -2 for any. `guess`: the option of
 * repair. */
verdict judge_repair(const sample *s, const uint8_t *bytes, size_t size, int64_t hit,
                     int guess, const char *what);

/* The number of judged repairs, and their results, so that a test can check that all occurred. */
typedef struct repair_counts {
    int n, in_place, written, hopeless, older, guessed, mixed;
} repair_counts;
extern repair_counts repairs_judged;

#endif
