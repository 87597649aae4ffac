/* Named byte strings: the fixed metalayers of a header and the attributes
 * (variable-length metalayers) of a trailer share one encoding:
 *
 *   93 cd <u16 map size> de <u16 n> n x (a0+len name, d2 <i32 offset>)
 *   dc <u16 n> n x (c6 <u32 size> bytes)
 *
 * Offsets point at the c6 and count from the start of header or trailer. */
#ifndef CV_FORMAT_METALAYERS_H
#define CV_FORMAT_METALAYERS_H

#include "base/heap.h"
#include "format/msgpack.h"

#define CV_MAX_METALAYERS 16  /* per header; also what C-Blosc2 can write per trailer */
#define CV_MAX_ATTRIBUTES 8192 /* what a reader accepts in a trailer */
#define CV_MAX_NAME 31

typedef struct cv_metalayer {
    char name[CV_MAX_NAME + 1]; /* NUL-terminated; bytes inside are not NUL */
    const uint8_t *data;        /* borrowed from the parsed bytes */
    uint32_t size;
} cv_metalayer;

/* Reads the section at the reader's position: at most `max` entries into
 * `out`. Offsets must be those of the values (map_size is ignored, as by every
 * other reader). Sticky errors stay in the reader. */
void cv_metalayers_read(cv_reader *reader, cv_metalayer *out, int max, int *n);

/* Number of entries the section at the reader's position claims, without
 * moving; 0 when malformed (the following read says how). */
int cv_metalayers_count(const cv_reader *reader);

/* Appends the section. `origin` is where header or trailer begins in
 * `buffer`; `in_trailer` picks the map size's origin (FORMAT.md section 1). */
cv_status cv_metalayers_write(cv_buffer *buffer, size_t origin, bool in_trailer,
                              const cv_metalayer *layers, int n, cv_error *err);

/* The entry called `name`, or NULL. */
const cv_metalayer *cv_metalayers_find(const cv_metalayer *layers, int n, const char *name);

#endif
