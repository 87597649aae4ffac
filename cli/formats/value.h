/* Conversion of attribute values from and to JSON. In the file a value is MessagePack, in the
 * widths and extension types that python-blosc2 writes. Values that JSON lacks become an object
 * with one reserved word, which is converted back:
 *
 *   {"$binary": base64}               bytes, and anything that is not one MessagePack value
 *   {"$complex": [real, imaginary]}   extension 44
 *   {"$tuple": [...]}, {"$set": [...]}
 *   {"$array": {"dtype": "<i2", "shape": [2], "data": [1, 2]}}   extension 46; data in C
 *                                     order, {"$binary"} if JSON cannot represent the items
 *   {"$map": [[key, value], ...]}     a map with keys that are not text, or whose first key
 *                                     is one of these words
 *   {"$ext": number, "data": base64}  any other extension
 *
 * NaN and infinities become the texts "NaN", "Infinity" and "-Infinity". */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "formats/json.h"

/* Prints the packed value. */
cli_exit value_print(json *j, const char *key, const void *packed, size_t size);

/* Returns the packed value as JSON text, to be freed; NULL after a failure. */
CLI_API char *value_text(const void *packed, size_t size);

/* JSON input, and texts for the message if the input is invalid. */
typedef struct value_input {
    const char *text;
    size_t size;
    const char *dtype; /* dtype of the NumPy array to make; NULL: make no array */
    const char *what, *hint;
} value_input;

/* Packs one JSON value. If it is invalid, reports CLI_USAGE with "<what> is not JSON: ...<hint>".
 * Release *out with caterva_free(). */
CLI_API cli_exit value_parse(const value_input *in, void **out, size_t *size);

#endif
