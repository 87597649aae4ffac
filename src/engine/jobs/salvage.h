/* What can be read of a damaged array, moved into a new frame. */
#ifndef CV_ENGINE_SALVAGE_H
#define CV_ENGINE_SALVAGE_H

#include "engine/read/read.h"

typedef struct cv_salvage {
    const cv_source *source;
    int64_t n_known;     /* chunks from here on have no place: they are lost */
    bool refound;        /* so are those that the seal does not name: there is no index */
    const uint8_t *fill; /* one item for lost chunks; NULL: zeros */
    caterva_verify_options check; /* whom to tell of damage and progress */
    uint8_t *
        lost; /* a bit for each chunk; filled by cv_salvage_check, freed by cv_salvage_free */
    caterva_verify_result result;
} cv_salvage;

/* Takes the attributes that cannot be read out of a state that nobody else has:
 * they stand behind the others in its list, where tell_attributes finds them. */
cv_status cv_salvage_attributes(cv_snapshot *state, int *n_lost, cv_error *err);
void cv_salvage_tell_attributes(const cv_snapshot *state, int n_lost,
                                const cv_damage_sink *sink);

/* Reads and decodes every chunk; tells of each that is damaged. */
cv_status cv_salvage_check(cv_salvage *salvage, cv_error *err);

/* Copies what is not lost into `store`, which is new and owned from then on, and
 * commits: chunks as they are stored, the fill in the place of lost ones, and the
 * attributes. After cv_salvage_check. */
cv_status cv_salvage_copy(const cv_salvage *salvage, cv_store *store,
                          caterva_durability durability, cv_error *err);

void cv_salvage_free(cv_salvage *salvage);

#endif
