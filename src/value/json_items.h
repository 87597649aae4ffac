/* Items of arrays inside values, as JSON writes them: numbers, true and false, complex
 * numbers as [re, im], texts, times as the integers that they are. */
#ifndef CV_VALUE_JSON_ITEMS_H
#define CV_VALUE_JSON_ITEMS_H

#include "format/values.h"

/* A text as it stands between the quotes of JSON: escaped, and made valid UTF-8. */
cv_status cv_json_escape(const void *text, size_t size, cv_buffer *out, cv_error *err);

/* True when JSON can say every item so that it can be read back. */
bool cv_json_has_items(const cv_typed *typed);

/* Appends item `i`. */
cv_status cv_json_item(const cv_typed *typed, int64_t i, cv_buffer *out, cv_error *err);

#endif
