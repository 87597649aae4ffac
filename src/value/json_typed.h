/* Items of arrays inside values, read from JSON as json_items.h writes them. */
#ifndef CV_VALUE_JSON_TYPED_H
#define CV_VALUE_JSON_TYPED_H

#include "format/values.h"
#include "value/json_scan.h"

/* Appends the item that stands there to `items`. */
void cv_json_take_item(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items);

/* Behind the colon of "$array": the object with dtype, shape and data, packed. */
void cv_json_take_array(cv_json_scan *s, cv_packer *p);

#endif
