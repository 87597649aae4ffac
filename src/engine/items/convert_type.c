/* Room: engine/items. Which types are numbers, and which cast is allowed: NumPy's table,
 * written as the rules behind it. */
#include "engine/items/convert_type.h"

#include "format/dtype.h"

#include <stdio.h>
#include <string.h>

typedef struct number_kind {
    char kind; /* NumPy's */
    int size;
} number_kind;

static const number_kind kinds[] = {
    [CV_BOOL] = {'b', 1}, [CV_I8] = {'i', 1},  [CV_I16] = {'i', 2},   [CV_I32] = {'i', 4},
    [CV_I64] = {'i', 8},  [CV_U8] = {'u', 1},  [CV_U16] = {'u', 2},   [CV_U32] = {'u', 4},
    [CV_U64] = {'u', 8},  [CV_F16] = {'f', 2}, [CV_BF16] = {'f', 2},  [CV_F32] = {'f', 4},
    [CV_F64] = {'f', 8},  [CV_C64] = {'c', 8}, [CV_C128] = {'c', 16},
};
enum { N_NUMBERS = sizeof kinds / sizeof kinds[0] };

/* Bytes of a float that holds every value of a number, as NumPy sees it: 8-byte
 * integers count as fitting 8-byte floats. */
static int float_size(number_kind k)
{
    if (k.kind == 'f') return k.size;
    if (k.kind == 'c') return k.size / 2;
    return k.size == 1 ? 2 : k.size == 2 ? 4 : 8;
}

/* bfloat16 has the range of a float of 4 bytes and fewer bits than one of 2. */
static bool is_safe_bfloat16(cv_number from, cv_number to)
{
    if (from == to || from == CV_BOOL) return true;
    if (to == CV_BF16) return from == CV_I8 || from == CV_U8;
    return to >= CV_F32;
}

static bool is_safe_kind(number_kind from, number_kind to)
{
    if (from.kind == 'b') return true;
    switch (to.kind) {
    case 'b': return false;
    case 'u': return from.kind == 'u' && to.size >= from.size;
    case 'i':
        return (from.kind == 'i' && to.size >= from.size) ||
               (from.kind == 'u' && to.size > from.size);
    case 'f': return from.kind != 'c' && to.size >= float_size(from);
    default: return to.size / 2 >= float_size(from);
    }
}

static bool is_safe(cv_number from, cv_number to)
{
    if (from == CV_BF16 || to == CV_BF16) return is_safe_bfloat16(from, to);
    return is_safe_kind(kinds[from], kinds[to]);
}

/* NumPy's can_cast. */
static bool can_cast(cv_number from, cv_number to, caterva_casting casting)
{
    static const char order[] = "buifc"; /* a kind is cast to itself and those behind it */
    if (casting == CATERVA_CASTING_UNSAFE || is_safe(from, to)) return true;
    return casting == CATERVA_CASTING_SAME_KIND &&
           strchr(order, kinds[from].kind) <= strchr(order, kinds[to].kind);
}

/* The byte order that is not this machine's. */
static char foreign_order(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, sizeof first);
    return first ? '>' : '<';
}

static bool find_number(const caterva_dtype *dtype, cv_stored_number *out)
{
    for (int i = 0; dtype->ndim == 0 && i < N_NUMBERS; i++) {
        if (kinds[i].kind != dtype->kind || kinds[i].size != dtype->item_size) continue;
        if (i == CV_BF16) continue; /* known by its name */
        *out = (cv_stored_number){.number = (cv_number)i, .size = kinds[i].size};
        out->swapped = dtype->byte_order == foreign_order();
        return true;
    }
    return false;
}

static cv_status parse_number(const char *text, cv_stored_number *out, cv_error *err)
{
    caterva_dtype *dtype;
    if (strcmp(text, "bfloat16") == 0) {
        *out = (cv_stored_number){.number = CV_BF16, .size = 2};
        out->swapped = foreign_order() == '<';
        return CV_OK;
    }
    CV_TRY(caterva_dtype_parse(text, &dtype, err));
    bool is_number = find_number(dtype, out);
    caterva_dtype_free(dtype);
    if (is_number) return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1,
                   "items of %.100s cannot be converted: only bool, integers, floats of 2, 4 "
                   "and 8 bytes, and complex can",
                   text);
}

cv_status cv_conversion_init(cv_conversion *conversion, const char *from, const char *to,
                             caterva_casting casting, cv_error *err)
{
    *conversion = (cv_conversion){.needed = false};
    if (!to || strcmp(from, to) == 0) return CV_OK;
    CV_TRY(parse_number(from, &conversion->from, err));
    CV_TRY(parse_number(to, &conversion->to, err));
    if (casting < CATERVA_CASTING_SAME_KIND || casting > CATERVA_CASTING_UNSAFE)
        return cv_fail(err, CATERVA_EINVAL, -1, "a casting of unknown kind %d", (int)casting);
    if (!can_cast(conversion->from.number, conversion->to.number, casting))
        return cv_fail(err, CATERVA_ECAST, -1, "%.60s to %.60s is no %s cast", from, to,
                       casting == CATERVA_CASTING_SAFE ? "safe" : "same-kind");
    conversion->needed = conversion->from.number != conversion->to.number ||
                         conversion->from.swapped != conversion->to.swapped;
    return CV_OK;
}

/* ---- Fields ------------------------------------------------------------- */

/* The field of this name, `size` bytes long; NULL: none. */
static const caterva_field *field_named(const caterva_dtype *dtype, const char *name,
                                        size_t size)
{
    for (int i = 0; i < dtype->n_fields && dtype->ndim == 0; i++) {
        const caterva_field *f = &dtype->fields[i];
        if (strlen(f->name) == size && memcmp(f->name, name, size) == 0) return f;
    }
    return NULL;
}

/* The field that `path` leads to, and its place in the whole item; NULL: none. */
static const caterva_dtype *find_field(const caterva_dtype *dtype, const char *path,
                                       int64_t *offset)
{
    *offset = 0;
    for (;;) {
        size_t size = strcspn(path, ".");
        const caterva_field *found = field_named(dtype, path, size);
        if (!found) return NULL;
        *offset += found->offset;
        dtype = found->dtype;
        if (!path[size]) return dtype;
        path += size + 1;
    }
}

static cv_status init_field(cv_conversion *c, const caterva_dtype *field, const char *to,
                            caterva_casting casting, cv_error *err)
{
    char text[16];
    if (field->item_size == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "the field has no bytes");
    c->from.size = c->to.size = (int)field->item_size;
    c->needed = c->as_it_is = true;
    if (!to) return CV_OK;
    cv_conversion cast;
    cv_stored_number number;
    if (field->ndim > 0 || !find_number(field, &number))
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "the field is no number, and cannot be converted");
    snprintf(text, sizeof text, "%c%c%d", field->byte_order, field->kind, number.size);
    CV_TRY(cv_conversion_init(&cast, text, to, casting, err));
    if (!cast.needed) return CV_OK;
    c->from = cast.from;
    c->to = cast.to;
    c->as_it_is = false;
    return CV_OK;
}

cv_status cv_conversion_init_field(cv_conversion *conversion, const char *from,
                                   const char *field, const char *to, caterva_casting casting,
                                   cv_error *err)
{
    caterva_dtype *dtype;
    CV_TRY(caterva_dtype_parse(from, &dtype, err));
    *conversion = (cv_conversion){.item_size = dtype->item_size};
    const caterva_dtype *found = find_field(dtype, field, &conversion->offset);
    cv_status status = found ? init_field(conversion, found, to, casting, err)
                             : cv_fail(err, CATERVA_ENOTFOUND, -1,
                                       "items of %.100s have no field "
                                       "\"%.60s\"",
                                       from, field);
    caterva_dtype_free(dtype);
    return status;
}
