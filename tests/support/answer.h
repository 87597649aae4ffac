/* What helper programs say of an array: members of a JSON object, each with a
 * comma before it. Bytes are hexadecimal. */
#ifndef SUPPORT_ANSWER_H
#define SUPPORT_ANSWER_H

#include "caterva.h"

#include <stdio.h>

/* A JSON string, or null. */
void put_text(FILE *to, const char *text);
void put_key_text(FILE *to, const char *key, const char *text);

/* Shape, partition, dtype, pipeline and storage. */
void put_info(FILE *to, const caterva_info *info);

/* "attributes", "metalayers": an object of name and content. */
caterva_status put_attributes(FILE *to, caterva_array *a, caterva_error *err);
void put_metalayers(FILE *to, caterva_array *a);

/* "damages": how many caterva_verify finds. */
caterva_status put_damage(FILE *to, caterva_array *a, caterva_error *err);

#endif
