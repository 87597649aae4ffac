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
    ONE_HANDLE, /* one handle for all commits */
    REOPENED,   /* a new handle for each commit */
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

/* Makes one more commit through `array`: writes a random box (the whole array the first time), and
 * the attribute "step" with the number of the state. */
void sample_change(rng *r, sample *s, caterva_array *array);

/* Returns the path of the frame: the file, or chunks.b2frame in the directory. */
const char *sample_frame_path(const sample *s, char path[SCRATCH_PATH]);

typedef struct verdict {
    caterva_status status;
    caterva_repair_result result;
} verdict;

/* Saves `bytes` as the sample's frame (NULL: leaves it unchanged) and repairs it. Checks that the
 * callbacks match the result, that kept chunks equal committed ones, and that libblosc2 reads the
 * same. `hit` is the chunk that may contain anything that decodes; -1: none, -2: any chunk. `guess`
 * is the repair option of this name. */
verdict judge_repair(const sample *s, const uint8_t *bytes, size_t size, int64_t hit,
                     int guess, const char *what);

/* The number of judged repairs, and their results, so that a test can check that all occurred. */
typedef struct repair_counts {
    int n, in_place, written, hopeless, older, guessed, mixed;
} repair_counts;
extern repair_counts repairs_judged;

#endif
