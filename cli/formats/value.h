/* Values of attributes as JSON, both ways. In the file a value is MessagePack, in the widths
 * and extension types that python-blosc2 writes. What JSON lacks is an object of one word,
 * which is read back as what it stands for:
 *
 *     {"$binary": base64}               bytes, and anything that is not one value
 *     {"$complex": [real, imaginary]}   extension 44
 *     {"$tuple": [...]}, {"$set": [...]}
 *     {"$array": {"dtype": "<i2", "shape": [2], "data": [1, 2]}}   extension 46; data in C
 *                                       order, {"$binary"} where JSON cannot hold the items
 *     {"$map": [[key, value], ...]}     a map with keys that are not text, or whose first key
 *                                       is one of these words
 *     {"$ext": number, "data": base64}  any other extension
 *
 * NaN and the infinities become the texts "NaN", "Infinity" and "-Infinity". */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include "formats/json.h"

/* Writes the packed value. */
cli_exit value_print(json *j, const char *key, const void *packed, size_t size);

/* The packed value as JSON text, to be freed; NULL after a failure. */
char *value_text(const void *packed, size_t size);

/* JSON from outside, and what a sentence says about it if it is not valid. */
typedef struct value_input {
    const char *text;
    size_t size;
    const char *dtype; /* the value becomes a NumPy array of this dtype; NULL: as it stands */
    const char *what, *hint;
} value_input;

/* Packs one JSON value. If it is not one, returns CLI_USAGE with the sentence
 * "<what> is not JSON: ...<hint>". Release *out with caterva_free(). */
cli_exit value_parse(const value_input *in, void **out, size_t *size);

#endif
