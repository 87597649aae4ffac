/* The trailer of a Blosc2 frame: attributes (variable-length metalayers) and a
 * fingerprint. Layout: FORMAT.md section 5. */
#ifndef CV_FORMAT_TRAILER_H
#define CV_FORMAT_TRAILER_H

#include "format/metalayers.h"

enum { CV_TRAILER_MIN = 35, CV_TRAILER_TAIL = 23 };

typedef struct cv_trailer {
    uint32_t size;         /* bytes */
    int n_attributes;
    cv_metalayer *attributes; /* owned array; data borrows from the bytes, each a Blosc2 chunk */
    uint8_t fingerprint_type;
    uint8_t fingerprint[16];
} cv_trailer;

/* From the last CV_TRAILER_TAIL bytes of a frame: how long is the trailer? */
cv_status cv_trailer_peek(const uint8_t tail[CV_TRAILER_TAIL], int64_t pos,
                          uint32_t *trailer_size, cv_error *err);

/* Parses the whole trailer, which stands at frame position `pos` (for
 * messages). Release with cv_trailer_free. */
cv_status cv_trailer_parse(const uint8_t *bytes, size_t size, int64_t pos, cv_trailer *out,
                           cv_error *err);
void cv_trailer_free(cv_trailer *trailer);

/* Appends a trailer with these attributes and a zero fingerprint. */
cv_status cv_trailer_write(const cv_metalayer *attributes, int n, cv_buffer *out,
                           cv_error *err);

#endif
