/* Writes descriptions of arrays, for helper programs: members of a JSON object, each preceded by a
 * comma. Bytes are hexadecimal. */
#ifndef SUPPORT_ANSWER_H
#define SUPPORT_ANSWER_H

#include "caterva.h"

#include <stdio.h>

/* Writes a JSON string, or null. */
void put_text(FILE *to, const char *text);
void put_key_text(FILE *to, const char *key, const char *text);

/* Writes shape, partition, dtype, pipeline and storage. */
void put_info(FILE *to, const caterva_info *info);

/* Write the member "attributes" or "metalayers", an object with names and contents. */
caterva_status put_attributes(FILE *to, caterva_array *a, caterva_error *err);
void put_metalayers(FILE *to, caterva_array *a);

/* Writes the member "damages": the number of damages that caterva_verify finds. */
caterva_status put_damage(FILE *to, caterva_array *a, caterva_error *err);

#endif
