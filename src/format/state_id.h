/* Identifiers of states: a hash of whatever tells one committed state from all others. */
#ifndef CV_FORMAT_STATE_ID_H
#define CV_FORMAT_STATE_ID_H

#include <stddef.h>
#include <stdint.h>

enum { CV_STATE_ID = 16 }; /* CATERVA_STATE_ID of caterva.h */

typedef struct cv_state_part {
    const void *bytes;
    size_t size;
} cv_state_part;

/* The identifier of all parts in this order: XXH3-128 of them. */
void cv_state_id(const cv_state_part *parts, size_t n, uint8_t out[CV_STATE_ID]);

#endif
