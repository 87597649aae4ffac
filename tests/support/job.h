/* Lines that tell a helper program what to do (here: jobs): key=value words, separated by tabs.
 * Lists are a,b,c; a box is 0:5,2:3 ("." with 0 dimensions); boxes are separated by `;`; bytes are
 * hexadecimal. A line that cannot be parsed fails the program. */
#ifndef SUPPORT_JOB_H
#define SUPPORT_JOB_H

#include "caterva.h"

#include <stddef.h>
#include <stdint.h>

enum { MAX_WORDS = 40, MAX_HEX = 1 << 16 };

typedef struct job {
    char *words[MAX_WORDS]; /* point into the line */
    int n_words;
} job;

typedef struct bounds {
    int64_t start[CATERVA_MAX_DIMS];
    int64_t stop[CATERVA_MAX_DIMS];
    size_t size; /* bytes */
} bounds;

/* Runs each line of stdin as a job. */
void serve_jobs(void (*run)(const job *j));

/* Return the value of a key. If the key is missing, find_word returns NULL, find_number 0, and
 * need_word fails the program. */
const char *find_word(const job *j, const char *key);
int64_t find_number(const job *j, const char *key);
const char *need_word(const job *j, const char *key);

/* Parses up to 16 numbers separated by commas; returns their number, 0 for NULL. */
int parse_list(const char *text, int64_t *out);

/* Parses at most MAX_HEX bytes; returns their number. */
size_t parse_hex(const char *text, uint8_t *out);

bounds whole_array(const caterva_info *info);

/* Parses the next box of `*text` and advances it; 0 at the end. */
int next_box(const char **text, const caterva_info *info, bounds *b);

/* Memory that creation options point to. */
typedef struct spec {
    int64_t shape[CATERVA_MAX_DIMS];
    int chunks[CATERVA_MAX_DIMS];
    int blocks[CATERVA_MAX_DIMS];
    uint8_t fill[MAX_HEX];
    uint8_t content[MAX_HEX];
    char name[64];
    caterva_metalayer metalayer;
} spec;

/* Parses the keys shape, chunks, blocks, dtype, item_size, codec, codec_meta, level, use_dict,
 * filters, filters_meta, kind, layout, fill, fill_value, meta, threads, durability and
 * dirty_budget. The options point into `s`. */
caterva_create_options parse_options(const job *j, spec *s);

/* Parses the key durability; returns the default if it is missing. */
caterva_durability parse_durability(const job *j);

#endif
