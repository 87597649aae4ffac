/* A MessagePack value as JSON.
 *
 * What JSON lacks is an object of one of these, so that nothing is lost on the way back:
 *
 *     {"$binary": base64}                 bytes; also all that is no value
 *     {"$complex": [re, im]}              extension 44
 *     {"$tuple": [...]}                   a list that begins with "__tuple__"
 *     {"$set": [...]}                     extension 45
 *     {"$array": {"dtype": "<i2", "shape": [2], "data": [1, 2]}}   extension 46; data in C
 *                                         order, {"$binary"} where JSON has no such items
 *     {"$map": [[key, value], ...]}       a map with keys that are not text, or whose
 *                                         first key is one of these words
 *     {"$ext": number, "data": base64}    any other extension, 42 and 43 among them
 *
 * NaN and the infinities become texts; a float32 the float64 that it is. */
#ifndef CV_VALUE_JSON_WRITE_H
#define CV_VALUE_JSON_WRITE_H

#include "base/heap.h"
#include "base/watch.h"

/* The words above; cv_json_read knows them by their place. */
typedef enum cv_json_word {
    CV_WORD_BINARY,
    CV_WORD_COMPLEX,
    CV_WORD_TUPLE,
    CV_WORD_SET,
    CV_WORD_ARRAY,
    CV_WORD_MAP,
    CV_WORD_EXT,
    CV_N_WORDS
} cv_json_word;

/* Which of them the text is; CV_N_WORDS: none. */
cv_json_word cv_json_word_find(const void *text, size_t size);

/* Appends the JSON of a value, or of bytes that are none. `watch`, or NULL, counts steps: it
 * hears of the value's bytes, and may stop. */
cv_status cv_json_write(const void *value, size_t size, cv_watch *watch, cv_buffer *out,
                        cv_error *err);

#endif
