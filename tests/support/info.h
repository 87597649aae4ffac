/* Descriptions of arrays that need no release. */
#ifndef SUPPORT_INFO_H
#define SUPPORT_INFO_H

#include "caterva.h"

/* The array's current description; NULL for NULL. Any thread. Valid until about a thousand other
 * states were described. */
const caterva_info *info_of(caterva_array *array);

#endif
