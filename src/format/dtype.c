/* Room: format. NumPy type descriptions of whole items: scalars, lists of
 * fields, and the dictionaries that str(dtype) prints for fields with gaps.
 *
 *   type  = 'scalar' | [field, ...] | {'names': [...], ...} | (type, shape)
 *   field = (name, type) | (name, type, shape);  name = 'n' | ('title', 'n')
 *
 * Promises: memory in proportion to the text, nesting of MAX_DEPTH at most,
 * offsets and sizes checked. Knows nothing of frames. */
#include "format/dtype.h"

#include "base/arith.h"
#include "base/grid.h"
#include "base/heap.h"
#include "format/dtype_scalar.h"
#include "format/literal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

typedef struct parser {
    cv_literal in;
    int depth;    /* of nested types */
    bool aligned; /* fields without offsets are laid out as C does */
} parser;

static cv_status parse_type(parser *p, caterva_dtype *out);

/* ---- Fields ------------------------------------------------------------- */

/* Field `i`, added when it is the next one. The array's room is the next
 * power of two. Until it is complete, a field has no name or type. */
static cv_status reach_field(parser *p, caterva_dtype *type, int i, caterva_field **out)
{
    caterva_field *fields = (caterva_field *)type->fields;
    if (i == type->n_fields) {
        if (i == INT32_MAX / 2) return cv_literal_fail(&p->in, "more than %d fields", i);
        if ((i & (i - 1)) == 0) {
            size_t room = (i ? 2 * (size_t)i : 1) * sizeof *fields;
            fields = cv_realloc(fields, (size_t)i * sizeof *fields, room);
            if (!fields) return cv_fail_memory(p->in.err, room, "fields");
            type->fields = fields;
        }
        fields[i] = (caterva_field){.offset = -1};
        type->n_fields++;
    }
    *out = &fields[i];
    return CV_OK;
}

static cv_status parse_field_type(parser *p, caterva_field *field)
{
    if (field->dtype) return cv_literal_fail(&p->in, "a second type for a field");
    caterva_dtype *type = cv_calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(p->in.err, sizeof *type, "a field");
    field->dtype = type;
    return parse_type(p, type);
}

static cv_status parse_field_name(parser *p, caterva_field *field)
{
    char *name = (char *)field->name;
    cv_status status = cv_literal_string(&p->in, &name);
    field->name = name;
    return status;
}

/* Makes `type` a sub-array of itself with these dimensions in front. */
static cv_status prepend_dims(parser *p, caterva_dtype *type, const int64_t *dims, int n)
{
    if (n + type->ndim > CV_MAX_DIMS)
        return cv_literal_fail(&p->in, "a sub-array of %d dimensions", n + type->ndim);
    memmove(type->shape + n, type->shape, (size_t)type->ndim * sizeof *type->shape);
    for (int i = 0; i < n; i++) {
        type->shape[i] = dims[i];
        if (!cv_mul_i64(type->item_size, dims[i], &type->item_size) ||
            type->item_size > INT32_MAX)
            return cv_literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    }
    type->ndim += n;
    return CV_OK;
}

/* "3" or "(3,)" or "(2, 3)" */
static cv_status parse_shape(parser *p, caterva_dtype *type)
{
    int64_t dims[CV_MAX_DIMS];
    int n = 0;
    bool tuple = cv_literal_accept(&p->in, '(');
    while (!(tuple && cv_literal_peek(&p->in) == ')')) {
        if (n == CV_MAX_DIMS) return cv_literal_fail(&p->in, "more than %d dimensions", n);
        CV_TRY(cv_literal_number(&p->in, &dims[n++]));
        if (!tuple || !cv_literal_accept(&p->in, ',')) break;
    }
    if (tuple) CV_TRY(cv_literal_expect(&p->in, ')'));
    return prepend_dims(p, type, dims, n);
}

/* What C asks of an item's position; a struct's is that of its fields. */
static int64_t alignment_of(const caterva_dtype *type)
{
    int64_t scalar = type->item_size;
    int64_t alignment = 1;
    for (int i = 0; i < type->n_fields; i++)
        alignment = cv_max_i64(alignment, alignment_of(type->fields[i].dtype));
    for (int i = 0; i < type->ndim && scalar > 0; i++) scalar /= type->shape[i];
    switch (type->kind) {
    case 'U': return 4;
    case 'c': return scalar / 2;
    case 'i':
    case 'u':
    case 'f':
    case 'M':
    case 'm': return scalar == 12 ? 4 : scalar;
    default: return alignment;
    }
}

/* Rounds the item up so that what follows it, or the next item, lies right. */
static void pad_item(const parser *p, caterva_dtype *item, const caterva_dtype *next)
{
    int64_t alignment = p->aligned ? cv_max_i64(1, alignment_of(next)) : 1;
    item->item_size = cv_ceil_div(item->item_size, alignment) * alignment;
}

/* Puts a field behind those before it. */
static cv_status place_field(parser *p, caterva_dtype *type, caterva_field *field)
{
    pad_item(p, type, field->dtype);
    field->offset = type->item_size;
    if (!cv_add_i64(type->item_size, field->dtype->item_size, &type->item_size) ||
        type->item_size > INT32_MAX)
        return cv_literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

/* ---- [(name, type), ...] ------------------------------------------------ */

static cv_status parse_titled_name(parser *p, caterva_field *field)
{
    bool titled = cv_literal_accept(&p->in, '(');
    CV_TRY(parse_field_name(p, field));
    if (!titled) return CV_OK;
    CV_TRY(cv_literal_expect(&p->in, ','));
    CV_TRY(parse_field_name(p, field)); /* the title goes, the name stays */
    return cv_literal_expect(&p->in, ')');
}

static cv_status parse_field(parser *p, caterva_dtype *type)
{
    caterva_field *field = NULL;
    CV_TRY(cv_literal_expect(&p->in, '('));
    CV_TRY(reach_field(p, type, type->n_fields, &field));
    CV_TRY(parse_titled_name(p, field));
    CV_TRY(cv_literal_expect(&p->in, ','));
    CV_TRY(parse_field_type(p, field));
    if (cv_literal_accept(&p->in, ',') && cv_literal_peek(&p->in) != ')')
        CV_TRY(parse_shape(p, (caterva_dtype *)field->dtype));
    CV_TRY(cv_literal_expect(&p->in, ')'));
    return place_field(p, type, field);
}

static cv_status parse_field_list(parser *p, caterva_dtype *out)
{
    CV_TRY(cv_literal_expect(&p->in, '['));
    while (cv_literal_peek(&p->in) != ']') {
        CV_TRY(parse_field(p, out));
        if (!cv_literal_accept(&p->in, ',')) break;
    }
    pad_item(p, out, out);
    return cv_literal_expect(&p->in, ']');
}

/* ---- {'names': [...], 'formats': [...], ...} ---------------------------- */

typedef struct dict_parts {
    int n_names, n_formats, n_offsets; /* -1: the key was not there */
    int64_t item_size;                 /* -1: not given */
} dict_parts;

typedef cv_status parse_column(parser *p, caterva_field *field);

static cv_status parse_offset(parser *p, caterva_field *field)
{
    return cv_literal_number(&p->in, &field->offset);
}

/* Titles are not kept. */
static cv_status parse_title(parser *p, caterva_field *field)
{
    (void)field;
    if (cv_literal_accept_word(&p->in, "None")) return CV_OK;
    char *title = NULL;
    cv_status status = cv_literal_string(&p->in, &title);
    cv_free(title);
    return status;
}

/* One list with an entry for each field. */
static cv_status parse_columns(parser *p, caterva_dtype *out, parse_column *parse, int *n)
{
    if (*n >= 0) return cv_literal_fail(&p->in, "the same list twice");
    *n = 0;
    CV_TRY(cv_literal_expect(&p->in, '['));
    while (cv_literal_peek(&p->in) != ']') {
        caterva_field *field = NULL;
        CV_TRY(reach_field(p, out, (*n)++, &field));
        CV_TRY(parse(p, field));
        if (!cv_literal_accept(&p->in, ',')) break;
    }
    return cv_literal_expect(&p->in, ']');
}

static cv_status parse_dict_entry(parser *p, caterva_dtype *out, dict_parts *parts)
{
    char *key = NULL;
    int n_titles = -1;
    cv_status status = cv_literal_string(&p->in, &key);
    if (status == CV_OK) status = cv_literal_expect(&p->in, ':');
    if (status != CV_OK)
        ;
    else if (strcmp(key, "names") == 0)
        status = parse_columns(p, out, parse_field_name, &parts->n_names);
    else if (strcmp(key, "formats") == 0)
        status = parse_columns(p, out, parse_field_type, &parts->n_formats);
    else if (strcmp(key, "offsets") == 0)
        status = parse_columns(p, out, parse_offset, &parts->n_offsets);
    else if (strcmp(key, "titles") == 0)
        status = parse_columns(p, out, parse_title, &n_titles);
    else if (strcmp(key, "itemsize") == 0)
        status = cv_literal_number(&p->in, &parts->item_size);
    else if (strcmp(key, "aligned") != 0)
        status = cv_literal_fail(&p->in, "unknown key '%.20s'", key);
    else if (!cv_literal_accept_word(&p->in, "True") &&
             !cv_literal_accept_word(&p->in, "False"))
        status = cv_literal_fail(&p->in, "'aligned' is neither True nor False");
    cv_free(key);
    return status;
}

/* Joins what the lists said; offsets that were left out are consecutive. */
static cv_status finish_dict(parser *p, caterva_dtype *out, const dict_parts *parts)
{
    if (parts->n_names < 0 || parts->n_formats < 0)
        return cv_literal_fail(&p->in, "%s are missing",
                               parts->n_names < 0 ? "names" : "formats");
    if (parts->n_names != out->n_fields || parts->n_formats != out->n_fields ||
        (parts->n_offsets >= 0 && parts->n_offsets != out->n_fields))
        return cv_literal_fail(&p->in, "%d names, %d formats and %d offsets", parts->n_names,
                               parts->n_formats, parts->n_offsets);
    int64_t end = 0;
    for (int i = 0; i < out->n_fields; i++) {
        caterva_field *field = (caterva_field *)&out->fields[i];
        if (parts->n_offsets < 0) CV_TRY(place_field(p, out, field));
        end = cv_max_i64(end, field->offset + field->dtype->item_size);
    }
    out->item_size = end;
    pad_item(p, out, out);
    if (parts->item_size >= 0) out->item_size = parts->item_size;
    if (end > out->item_size)
        return cv_literal_fail(&p->in, "a field ends at byte %lld of an item of %lld",
                               (long long)end, (long long)out->item_size);
    if (out->item_size > INT32_MAX)
        return cv_literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

/* Whether the dictionary ends in 'aligned': True, as NumPy prints it. It must
 * be known before its formats: lists of fields inside them are aligned too. */
static bool says_aligned(const parser *p)
{
    cv_literal in = p->in;
    int depth = 0;
    while (in.at < in.size && depth >= 0) {
        char c = cv_literal_peek(&in);
        if (depth == 0 && cv_literal_accept_word(&in, "'aligned': True")) return true;
        if (strchr("([{", c) && c) depth++;
        if (strchr(")]}", c) && c) depth--;
        if (c == '\'' || c == '"')
            cv_literal_skip_string(&in);
        else
            in.at++;
    }
    return false;
}

static cv_status parse_dict_entries(parser *p, caterva_dtype *out)
{
    dict_parts parts = {-1, -1, -1, -1};
    while (cv_literal_peek(&p->in) != '}') {
        CV_TRY(parse_dict_entry(p, out, &parts));
        if (!cv_literal_accept(&p->in, ',')) break;
    }
    CV_TRY(cv_literal_expect(&p->in, '}'));
    return finish_dict(p, out, &parts);
}

static cv_status parse_dict(parser *p, caterva_dtype *out)
{
    CV_TRY(cv_literal_expect(&p->in, '{'));
    bool around = p->aligned;
    p->aligned = around || says_aligned(p);
    cv_status status = parse_dict_entries(p, out);
    p->aligned = around;
    return status;
}

/* ---- Types -------------------------------------------------------------- */

static cv_status parse_quoted_scalar(parser *p, caterva_dtype *out)
{
    size_t at = p->in.at;
    char *text = NULL;
    cv_status status = cv_literal_string(&p->in, &text);
    if (status == CV_OK)
        status = cv_dtype_parse_scalar(text, strlen(text), at + 1, out, p->in.err);
    cv_free(text);
    return status;
}

/* (type, shape) */
static cv_status parse_sub_array(parser *p, caterva_dtype *out)
{
    CV_TRY(cv_literal_expect(&p->in, '('));
    CV_TRY(parse_type(p, out));
    CV_TRY(cv_literal_expect(&p->in, ','));
    CV_TRY(parse_shape(p, out));
    (void)cv_literal_accept(&p->in, ',');
    return cv_literal_expect(&p->in, ')');
}

static cv_status parse_structured(parser *p, caterva_dtype *out)
{
    out->kind = 'V';
    out->byte_order = '|';
    return cv_literal_peek(&p->in) == '[' ? parse_field_list(p, out) : parse_dict(p, out);
}

static cv_status parse_type(parser *p, caterva_dtype *out)
{
    if (p->depth == MAX_DEPTH)
        return cv_literal_fail(&p->in, "nested deeper than %d", MAX_DEPTH);
    p->depth++;
    char c = cv_literal_peek(&p->in);
    cv_status status;
    if (c == '[' || c == '{')
        status = parse_structured(p, out);
    else if (c == '(')
        status = parse_sub_array(p, out);
    else
        status = parse_quoted_scalar(p, out);
    p->depth--;
    return status;
}

static cv_status parse_whole(parser *p, caterva_dtype *out)
{
    char c = cv_literal_peek(&p->in);
    if (c != '[' && c != '{' && c != '(')
        return cv_dtype_parse_scalar(p->in.text + p->in.at, p->in.size - p->in.at, p->in.at,
                                     out, p->in.err);
    CV_TRY(parse_type(p, out));
    (void)cv_literal_peek(&p->in);
    if (p->in.at != p->in.size) return cv_literal_fail(&p->in, "text is left over");
    return CV_OK;
}

cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err)
{
    caterva_dtype *type = cv_calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(err, sizeof *type, "a dtype");
    parser p = {.in = {.text = text, .size = size, .err = err}};
    cv_status status = parse_whole(&p, type);
    if (status != CV_OK) {
        caterva_dtype_free(type);
        return status;
    }
    *out = type;
    return CV_OK;
}

cv_status cv_dtype_item_size(const char *text, size_t size, int64_t *out, cv_error *err)
{
    caterva_dtype *type = NULL;
    CV_TRY(cv_dtype_parse(text, size, &type, err));
    *out = type->item_size;
    caterva_dtype_free(type);
    return CV_OK;
}

caterva_status caterva_dtype_parse(const char *text, caterva_dtype **out, caterva_error *err)
{
    if (!text || !out) return cv_fail(err, CATERVA_EINVAL, -1, "dtype: NULL was given");
    return cv_dtype_parse(text, strlen(text), out, err);
}

/* As deep as the parser went: MAX_DEPTH. */
void caterva_dtype_free(caterva_dtype *dtype)
{
    if (!dtype) return;
    for (int i = 0; i < dtype->n_fields; i++) {
        cv_free((char *)dtype->fields[i].name);
        caterva_dtype_free((caterva_dtype *)dtype->fields[i].dtype);
    }
    cv_free((caterva_field *)dtype->fields);
    cv_free(dtype);
}
