/* The temporary files and directories of this process: what is written and not yet
 * published. Listed so that a program that must leave at once leaves none of them. */
#ifndef CV_STORE_TEMPORARIES_H
#define CV_STORE_TEMPORARIES_H

#include "store/place.h"

/* Lists a place whose temporary is there; it stays where it is until it is closed. */
void cv_temporaries_add(cv_place *place);

/* For cv_place_close: does nothing for a place that is not listed. */
void cv_temporaries_remove(cv_place *place);

/* Removes all of them. */
void cv_temporaries_abandon(void);

#endif
