/* What an array is, without a reference to give back. */
#ifndef SUPPORT_INFO_H
#define SUPPORT_INFO_H

#include "caterva.h"

/* The array as it is now; NULL for NULL. Any thread. Good until some thousand other
 * states were asked about. */
const caterva_info *info_of(caterva_array *array);

#endif
