/* Infos of arrays that need no release. */
#ifndef SUPPORT_INFO_H
#define SUPPORT_INFO_H

#include "caterva.h"

/* Returns the array's current info; NULL for NULL. It stays valid until about a thousand other
 * infos were requested. Call on any thread. */
const caterva_info *info_of(caterva_array *array);

#endif
