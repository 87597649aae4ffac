/* Descriptions of arrays by helper programs: members of a JSON object, each preceded by a comma.
 * Bytes are hexadecimal. */
#ifndef SUPPORT_ANSWER_H
#define SUPPORT_ANSWER_H

#include "caterva.h"

#include <stdio.h>

/* Writes a JSON string, or null. */
void put_text(FILE *to, const char *text);
void put_key_text(FILE *to, const char *key, const char *text);

/* Shape, partition, dtype, pipeline and storage. */
void put_info(FILE *to, const caterva_info *info);

/* "attributes" or "metalayers": an object of names and contents. */
caterva_status put_attributes(FILE *to, caterva_array *a, caterva_error *err);
void put_metalayers(FILE *to, caterva_array *a);

/* "damages": the number that caterva_verify finds. */
caterva_status put_damage(FILE *to, caterva_array *a, caterva_error *err);

#endif
