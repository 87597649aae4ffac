/* Room: cli/foreign. Attribute values taken apart and put together. */
#include "foreign/values.h"

#include "formats/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---------------------------------------------------------------------------- */

packed_value values_of(const foreign_node *node, const char *name)
{
    const foreign_attribute *attribute = foreign_attribute_of(node, name);
    return attribute ? (packed_value){attribute->value, attribute->size} : (packed_value){0};
}

static bool head(packed_value value, size_t *at, caterva_value *out)
{
    caterva_error err;
    *out = (caterva_value)CATERVA_VALUE_INIT;
    return value.bytes &&
           caterva_value_next(value.bytes, value.size, at, out, &err) == CATERVA_OK;
}

/* Returns how many values follow the head of a list, and how many of them make one element. */
static int64_t n_inside(const caterva_value *value, int *each)
{
    *each = value->kind == CATERVA_VALUE_MAP ? 2 : 1;
    bool is_list = value->kind == CATERVA_VALUE_LIST || value->kind == CATERVA_VALUE_TUPLE ||
                   value->kind == CATERVA_VALUE_SET;
    return is_list || *each == 2 ? value->count * *each : 0;
}

/* Moves *at over one value with what is inside. */
static bool skip(packed_value value, size_t *at)
{
    caterva_value entry;
    int each;
    for (int64_t left = 1; left > 0; left--) {
        if (!head(value, at, &entry)) return false;
        left += n_inside(&entry, &each);
    }
    return true;
}

bool values_next(packed_value list, size_t *at, packed_value *key, packed_value *value)
{
    caterva_value entry;
    size_t begin = 0;
    int each;
    if (!head(list, &begin, &entry) || n_inside(&entry, &each) == 0) return false;
    if (*at == 0) *at = begin;
    if (*at >= list.size) return false;
    *key = (packed_value){0};
    for (int i = 0; i < each; i++) {
        begin = *at;
        if (!skip(list, at)) return false;
        *(i + 1 < each ? key : value) = (packed_value){list.bytes + begin, *at - begin};
    }
    return true;
}

packed_value values_find(packed_value map, const char *key)
{
    packed_value name, value;
    for (size_t at = 0; values_next(map, &at, &name, &value);)
        if (values_is(name, key)) return value;
    return (packed_value){0};
}

const char *values_text(packed_value value, size_t *size)
{
    caterva_value entry;
    size_t at = 0;
    if (!head(value, &at, &entry)) return NULL;
    if (entry.kind != CATERVA_VALUE_TEXT && entry.kind != CATERVA_VALUE_BYTES) return NULL;
    *size = entry.size;
    return entry.bytes;
}

bool values_is_bytes(packed_value value)
{
    caterva_value entry;
    size_t at = 0;
    return head(value, &at, &entry) && entry.kind == CATERVA_VALUE_BYTES;
}

bool values_is(packed_value value, const char *text)
{
    size_t size;
    const char *bytes = values_text(value, &size);
    return bytes && size == strlen(text) && memcmp(bytes, text, size) == 0;
}

static size_t array_numbers(const caterva_value *array, double *out, size_t max)
{
    caterva_error err;
    caterva_dtype *dtype;
    size_t n = 0;
    if (caterva_dtype_parse(array->dtype, &dtype, &err) != CATERVA_OK) return 0;
    if (dtype->item_size > 0) n = array->size / (size_t)dtype->item_size;
    caterva_dtype_free(dtype);
    caterva_buffer src = CATERVA_BUFFER_INIT, dst = CATERVA_BUFFER_INIT;
    src.data = (void *)(uintptr_t)array->bytes;
    src.size = array->size;
    src.dtype = array->dtype;
    dst.data = out;
    dst.size = n * sizeof *out;
    dst.dtype = "float64";
    dst.casting = CATERVA_CASTING_UNSAFE;
    bool fits =
        n <= max && caterva_buffer_convert(&src, (int64_t)n, &dst, NULL, &err) == CATERVA_OK;
    return fits ? n : 0;
}

static bool is_number(const caterva_value *entry, double *out)
{
    switch (entry->kind) {
    case CATERVA_VALUE_BOOL:
    case CATERVA_VALUE_INT: *out = (double)entry->integer; return true;
    case CATERVA_VALUE_UINT: *out = (double)(uint64_t)entry->integer; return true;
    case CATERVA_VALUE_REAL: *out = entry->real; return true;
    default: return false;
    }
}

size_t values_numbers(packed_value value, double *out, size_t max)
{
    caterva_value entry;
    size_t at = 0, n = 0;
    int each;
    if (max == 0 || !head(value, &at, &entry)) return 0;
    if (entry.kind == CATERVA_VALUE_ARRAY) return array_numbers(&entry, out, max);
    if (is_number(&entry, out)) return 1;
    int64_t count = n_inside(&entry, &each);
    if (each == 2 || (uint64_t)count > max) return 0;
    while (n < (size_t)count) {
        if (!head(value, &at, &entry)) return 0;
        bool plain = entry.kind == CATERVA_VALUE_ARRAY
                         ? array_numbers(&entry, out + n, 1) == 1
                         : is_number(&entry, out + n);
        if (!plain) return 0;
        n++;
    }
    return n;
}

/* ---- Making ----------------------------------------------------------------------------- */

static caterva_value *add(value_list *list, caterva_value_kind kind)
{
    static caterva_value unused;
    if (list->failed) return &unused;
    if ((list->n & (list->n - 1)) == 0) {
        size_t room = list->n ? 2 * list->n : 1;
        caterva_value *larger = realloc(list->entries, room * sizeof *larger);
        list->failed = !larger;
        if (!larger) return &unused;
        list->entries = larger;
    }
    caterva_value *entry = &list->entries[list->n++];
    *entry = (caterva_value)CATERVA_VALUE_INIT;
    entry->kind = kind;
    return entry;
}

size_t values_begin(value_list *list, caterva_value_kind kind)
{
    add(list, kind);
    return list->n - 1;
}

void values_end(value_list *list, size_t at, int64_t count)
{
    if (!list->failed) list->entries[at].count = count;
}

void values_add_nil(value_list *list) { add(list, CATERVA_VALUE_NIL); }

void values_add_int(value_list *list, int64_t number)
{
    add(list, CATERVA_VALUE_INT)->integer = number;
}

void values_add_real(value_list *list, double number)
{
    add(list, CATERVA_VALUE_REAL)->real = number;
}

static void add_bytes(value_list *list, caterva_value_kind kind, const void *bytes,
                      size_t size)
{
    caterva_value *entry = add(list, kind);
    entry->bytes = bytes;
    entry->size = size;
}

void values_add_text(value_list *list, const char *text, size_t size)
{
    add_bytes(list, values_is_utf8(text, size) ? CATERVA_VALUE_TEXT : CATERVA_VALUE_BYTES,
              text, size);
}

void values_add_bytes(value_list *list, const void *bytes, size_t size)
{
    add_bytes(list, CATERVA_VALUE_BYTES, bytes, size);
}

void values_add_array(value_list *list, const char *dtype, size_t n, const void *items)
{
    caterva_error err;
    caterva_dtype *parsed;
    caterva_value *entry = add(list, CATERVA_VALUE_ARRAY);
    snprintf(entry->dtype, sizeof entry->dtype, "%s", dtype);
    entry->ndim = 1;
    entry->shape[0] = (int64_t)n;
    entry->bytes = items;
    if (caterva_dtype_parse(dtype, &parsed, &err) != CATERVA_OK) return;
    entry->size = n * (size_t)parsed->item_size;
    caterva_dtype_free(parsed);
}

void values_free(value_list *list)
{
    free(list->entries);
    *list = (value_list){0};
}

cli_exit values_set(value_list *list, foreign_node *node, const char *name)
{
    caterva_error err;
    void *packed = NULL;
    size_t size = 0;
    cli_exit code = CLI_OK;
    if (list->failed)
        code = cli_fail(CLI_IO, "out of memory");
    else if (caterva_value_pack(list->entries, list->n, &packed, &size, &err) != CATERVA_OK)
        code = cli_fail(CLI_UNSUPPORTED, "the attribute %s of %s: %s", name, node->key,
                        err.message);
    values_free(list);
    return code == CLI_OK ? foreign_set_packed(node, name, packed, size) : code;
}

cli_exit values_set_text(foreign_node *node, const char *name, const char *text, size_t size)
{
    value_list list = {0};
    values_add_text(&list, text, size);
    return values_set(&list, node, name);
}

bool values_is_utf8(const char *text, size_t size)
{
    for (size_t n; size > 0; size -= n, text += n) {
        n = *text ? json_utf8_length(text, size) : 0;
        if (n == 0) return false;
    }
    return true;
}
