/* Values of attributes for readers and writers: what an attribute holds, and lists and maps. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "foreign/foreign.h"

#include <caterva_value.h>

/* ---- Reading ---------------------------------------------------------------------------- */

/* A packed value, borrowed. `bytes` is NULL for an attribute that does not exist. */
typedef struct packed_value {
    const uint8_t *bytes;
    size_t size;
} packed_value;

CLI_API packed_value values_of(const foreign_node *node, const char *name);

/* Sets `out` to the numbers of a value: one number, an array, or a list of numbers. Returns how many
 * there are; 0 if there are more than `max`, or if the value has no numbers. */
CLI_API size_t values_numbers(packed_value value, double *out, size_t max);

/* Whether the value is binary data. */
CLI_API bool values_is_bytes(packed_value value);

/* Returns the bytes of a text or of binary data, which are borrowed; NULL for other values. */
CLI_API const char *values_text(packed_value value, size_t *size);

/* Moves over the elements of a list, tuple or map: of a map to the next key and value, otherwise to
 * the next value. Begin with *at 0. Returns false after the last one, and for other values. */
CLI_API bool values_next(packed_value list, size_t *at, packed_value *key,
                         packed_value *value);

/* Returns the value of a map's key; without bytes if there is none. */
CLI_API packed_value values_find(packed_value map, const char *key);

/* Whether the value is the text `text`. */
CLI_API bool values_is(packed_value value, const char *text);

/* ---- Making ----------------------------------------------------------------------------- */

/* Entries of a value, as for caterva_value_pack. A lack of memory is reported by values_set. What is
 * added must stay valid until then. */
typedef struct value_list {
    caterva_value *entries;
    size_t n;
    bool failed;
} value_list;

/* Adds the head of a list or map, whose count values_end sets; returns its index. */
CLI_API size_t values_begin(value_list *list, caterva_value_kind kind);
CLI_API void values_end(value_list *list, size_t head, int64_t count);
CLI_API void values_add_nil(value_list *list);
CLI_API void values_add_int(value_list *list, int64_t number);
CLI_API void values_add_real(value_list *list, double number);
/* A text that is not UTF-8 becomes bytes. */
CLI_API void values_add_text(value_list *list, const char *text, size_t size);
CLI_API void values_add_bytes(value_list *list, const void *bytes, size_t size);

/* Adds an array with one axis of `n` numbers of `dtype`. */
CLI_API void values_add_array(value_list *list, const char *dtype, size_t n, const void *items);

/* Sets an attribute to the value, and releases the entries, also on failure. */
CLI_API cli_exit values_set(value_list *list, foreign_node *node, const char *name);
CLI_API void values_free(value_list *list);

/* Sets an attribute to a text, or to bytes if it is not UTF-8. */
CLI_API cli_exit values_set_text(foreign_node *node, const char *name, const char *text,
                                 size_t size);

/* Whether the bytes are UTF-8 without zeros. */
CLI_API bool values_is_utf8(const char *text, size_t size);

#endif
