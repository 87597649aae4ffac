/* Plug-in hdf5. Types of HDF5 as dtypes of NumPy, and back. Byte order, sizes and offsets of fields
 * stay; numbers of unusual widths (24 bits, bfloat16) are read as the next larger type. */
#include "hdf5.h"

#include "formats/descr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 8 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE '<'
#else
#define NATIVE '>'
#endif

/* ---- Types of HDF5 by kind and size ------------------------------------------------------ */

static hid_t in_order(hid_t native, char order)
{
    hid_t type = H5Tcopy(native);
    if (order != '|') H5Tset_order(type, order == '>' ? H5T_ORDER_BE : H5T_ORDER_LE);
    return type;
}

static hid_t integer_type(char kind, size_t size, char order)
{
    bool u = kind == 'u';
    switch (size) {
    case 1: return in_order(u ? H5T_NATIVE_UINT8 : H5T_NATIVE_INT8, '|');
    case 2: return in_order(u ? H5T_NATIVE_UINT16 : H5T_NATIVE_INT16, order);
    case 4: return in_order(u ? H5T_NATIVE_UINT32 : H5T_NATIVE_INT32, order);
    case 8: return in_order(u ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64, order);
    default: return -1;
    }
}

static hid_t real_type(size_t size, char order)
{
    if (size == 4) return in_order(H5T_NATIVE_FLOAT, order);
    if (size == 8) return in_order(H5T_NATIVE_DOUBLE, order);
    if (size == H5Tget_size(H5T_NATIVE_LDOUBLE) && order == NATIVE)
        return H5Tcopy(H5T_NATIVE_LDOUBLE);
    if (size != 2) return -1;
    hid_t type = in_order(H5T_NATIVE_FLOAT, order); /* IEEE binary16 */
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

static hid_t complex_type(size_t size, char order)
{
    hid_t part = real_type(size / 2, order);
    if (part < 0) return -1;
    hid_t type = H5Tcreate(H5T_COMPOUND, size);
    H5Tinsert(type, "r", 0, part);
    H5Tinsert(type, "i", size / 2, part);
    h5_close(part);
    return type;
}

hid_t h5_type_bool(void)
{
    const int8_t values[] = {0, 1};
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    H5Tenum_insert(type, "FALSE", &values[0]);
    H5Tenum_insert(type, "TRUE", &values[1]);
    return type;
}

hid_t h5_type_string(bool is_utf8, size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    if (size != H5T_VARIABLE) H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, is_utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
    return type;
}

/* ---- From HDF5 --------------------------------------------------------------------------- */

/* Prints the dtype while it descends into a type. `problem` says why there is none. */
typedef struct printer {
    FILE *stream;
    const char *problem;
    h5_type *out;
} printer;

static hid_t give_up(printer *p, const char *problem)
{
    if (!p->problem) p->problem = problem;
    return -1;
}

static char order_of(hid_t type)
{
    if (H5Tget_size(type) == 1) return '|';
    H5T_order_t order = H5Tget_order(type);
    return order == H5T_ORDER_BE ? '>' : order == H5T_ORDER_LE ? '<' : NATIVE;
}

static hid_t print_integer(printer *p, hid_t type)
{
    size_t size = H5Tget_size(type), wide = 1;
    while (wide < size) wide *= 2;
    char kind = H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i', order = order_of(type);
    if (wide > 8) return give_up(p, "integers of more than 64 bits");
    fprintf(p->stream, "'%c%c%zu'", order, kind, wide);
    return integer_type(kind, wide, order);
}

/* libhdf5 does not convert bit fields to integers. */
static hid_t print_bits(printer *p, hid_t type)
{
    size_t size = H5Tget_size(type);
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return give_up(p, "bit fields of unusual width");
    if (size == 1 && H5Tget_precision(type) == 1)
        fputs("'|b1'", p->stream);
    else
        fprintf(p->stream, "'%cu%zu'", order_of(type), size);
    return H5Tcopy(type);
}

static hid_t print_real(printer *p, hid_t type)
{
    static const struct {
        size_t size, exponent, mantissa;
    } widths[] = {{2, 5, 10}, {4, 8, 23}, {8, 11, 52}, {16, 15, 64}};
    size_t sign, exponent_at, exponent, mantissa_at, mantissa;
    char order = order_of(type);
    if (H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) < 0)
        return give_up(p, "floats of an unknown format");
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        hid_t memory = real_type(widths[i].size, widths[i].size == 16 ? NATIVE : order);
        bool fits = exponent <= widths[i].exponent && mantissa <= widths[i].mantissa;
        /* libhdf5 converts to binary16 by means of another type: only what is the same. */
        if (widths[i].size == 2) fits = H5Tequal(memory, type) > 0;
        if (memory >= 0 && fits) {
            fprintf(p->stream, "'%cf%zu'", widths[i].size == 16 ? NATIVE : order,
                    widths[i].size);
            return memory;
        }
        h5_close(memory);
    }
    return give_up(p, "floats of more than 80 bits");
}

static hid_t print_string(printer *p, hid_t type, int depth)
{
    if (H5Tis_variable_str(type) > 0) {
        if (depth > 0) return give_up(p, "structures with texts of any length");
        p->out->text = H5_ANY_LENGTH;
        p->out->is_utf8 = H5Tget_cset(type) == H5T_CSET_UTF8;
        fputs("'|V1'", p->stream); /* not used */
        return h5_type_string(p->out->is_utf8, H5T_VARIABLE);
    }
    size_t size = H5Tget_size(type);
    bool is_utf8 = H5Tget_cset(type) == H5T_CSET_UTF8;
    if (depth == 0) p->out->text = H5_FIXED_TEXT;
    if (depth == 0) p->out->is_utf8 = is_utf8;
    fprintf(p->stream, "'|S%zu'", size);
    return h5_type_string(is_utf8, size);
}

/* h5py stores types that HDF5 lacks as opaque items with the tag "NUMPY:<M8[ns]". */
static hid_t print_opaque(printer *p, hid_t type, int depth)
{
    static const char prefix[] = "NUMPY:";
    size_t size = H5Tget_size(type);
    char *tag = H5Tget_tag(type);
    caterva_dtype *parsed = NULL;
    const char *text = tag && strncmp(tag, prefix, sizeof prefix - 1) == 0
                           ? tag + sizeof prefix - 1
                           : NULL;
    if (text && strchr(text, '\'')) text = NULL;
    if (text && caterva_dtype_parse(text, &parsed, NULL) != CATERVA_OK) parsed = NULL;
    if (parsed && parsed->item_size == (int64_t)size && parsed->n_fields == 0 &&
        parsed->ndim == 0 && parsed->kind != '?') {
        fprintf(p->stream, "'%s'", text);
    } else {
        fprintf(p->stream, "'|V%zu'", size);
        if (depth == 0) p->out->is_bytes = true;
        if (tag) snprintf(p->out->tag, sizeof p->out->tag, "%s", tag);
    }
    caterva_dtype_free(parsed);
    H5free_memory(tag);
    return H5Tcopy(type);
}

static bool member_is(hid_t type, unsigned i, const char *name)
{
    char *member = H5Tget_member_name(type, i);
    bool same = member && strcmp(member, name) == 0;
    H5free_memory(member);
    return same;
}

static bool is_bool(hid_t type)
{
    int8_t values[2] = {0};
    if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
    for (unsigned i = 0; i < 2; i++)
        if (H5Tget_member_value(type, i, &values[i]) < 0) return false;
    unsigned zero = values[0] == 0 ? 0 : 1;
    return values[zero] == 0 && values[1 - zero] == 1 && member_is(type, zero, "FALSE") &&
           member_is(type, 1 - zero, "TRUE");
}

static hid_t print_enum(printer *p, hid_t type, int depth)
{
    if (is_bool(type)) {
        fputs("'|b1'", p->stream);
        return H5Tcopy(type);
    }
    hid_t base = H5Tget_super(type);
    hid_t memory = H5Tget_class(base) == H5T_INTEGER
                       ? print_integer(p, base)
                       : give_up(p, "an enumeration of unusual values");
    if (memory >= 0 && H5Tequal(memory, base) <= 0) {
        h5_close(memory);
        memory = give_up(p, "an enumeration of unusual values");
    }
    h5_close(base);
    if (memory < 0) return memory;
    h5_close(memory);
    if (depth == 0)
        p->out->is_enum = true;
    else
        p->out->has_enum_fields = true;
    return H5Tcopy(type);
}

static hid_t print_type(printer *p, hid_t type, int depth);

/* Sets *size to that of one part if the type is h5py's for complex numbers, {r, i}. */
static bool is_complex(hid_t type, size_t *size, char *order)
{
    if (H5Tget_nmembers(type) != 2 || !member_is(type, 0, "r") || !member_is(type, 1, "i"))
        return false;
    hid_t r = H5Tget_member_type(type, 0), i = H5Tget_member_type(type, 1);
    *size = H5Tget_size(r);
    *order = order_of(r);
    bool same = H5Tget_class(r) == H5T_FLOAT && H5Tequal(r, i) > 0 && *size > 2 &&
                H5Tget_member_offset(type, 0) == 0 &&
                H5Tget_member_offset(type, 1) == *size && H5Tget_size(type) == 2 * *size;
    hid_t part = same ? real_type(*size, *order) : -1;
    same = part >= 0 && H5Tequal(part, r) > 0;
    h5_close(part);
    h5_close(r);
    h5_close(i);
    return same;
}

static void print_name(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', stream);
        if ((unsigned char)*text < 0x20)
            fprintf(stream, "\\x%02x", *text);
        else
            fputc(*text, stream);
    }
    fputc('\'', stream);
}

typedef struct member {
    unsigned index;
    size_t offset, size; /* in the file */
} member;

static void print_gap(printer *p, size_t from, size_t to)
{
    if (to > from) fprintf(p->stream, "%s('', '|V%zu')", from ? ", " : "", to - from);
}

/* Flattens an array type: returns its element type, and appends its lengths to `axes`. */
static hid_t array_element(printer *p, hid_t type, hsize_t *axes, int *n)
{
    hid_t element = H5Tcopy(type);
    while (element >= 0 && H5Tget_class(element) == H5T_ARRAY) {
        hsize_t lengths[H5S_MAX_RANK];
        int ndim = H5Tget_array_dims2(element, lengths);
        hid_t inner = H5Tget_super(element);
        h5_close(element);
        element = inner;
        if (ndim < 1 || *n + ndim >= CATERVA_MAX_DIMS) {
            h5_close(element);
            return give_up(p, "array types of too many axes");
        }
        for (int d = 0; d < ndim; d++) axes[(*n)++] = lengths[d];
    }
    return element;
}

/* Prints the shape of a sub-array and the end of its tuple: ", (3,))". */
static void print_axes(FILE *stream, const hsize_t *axes, int n)
{
    if (n > 0) fputs(", (", stream);
    for (int d = 0; d < n; d++) fprintf(stream, "%llu,", (unsigned long long)axes[d]);
    if (n > 0) fputs("))", stream);
}

/* Prints a field ("('a', '<f4', (3,))") and returns its type. */
static hid_t print_field(printer *p, hid_t type, unsigned index, int depth)
{
    char *name = H5Tget_member_name(type, index);
    hid_t field = H5Tget_member_type(type, index);
    hsize_t axes[CATERVA_MAX_DIMS];
    int n = 0;
    if (!name || !*name) give_up(p, "structures with nameless fields");
    hid_t element = p->problem ? -1 : array_element(p, field, axes, &n), memory = -1;
    if (element >= 0) {
        fputc('(', p->stream);
        print_name(p->stream, name);
        fputs(", ", p->stream);
        memory = print_type(p, element, depth + 1);
        print_axes(p->stream, axes, n);
        if (n == 0) fputc(')', p->stream);
    }
    if (memory >= 0 && n > 0) {
        hid_t whole = H5Tarray_create2(memory, (unsigned)n, axes);
        h5_close(memory);
        memory = whole;
    }
    h5_close(element);
    h5_close(field);
    H5free_memory(name);
    return memory;
}

/* Whether every field has in memory the size that it has in the file. A dry run: what is printed
 * is discarded. */
static bool sizes_stay(printer *p, hid_t type, const member *members, int n, int depth)
{
    FILE *stream = p->stream;
    bool stay = true;
    p->stream = fopen("/dev/null", "w");
    if (!p->stream) give_up(p, "");
    for (int i = 0; i < n && !p->problem; i++) {
        hid_t memory = print_field(p, type, members[i].index, depth);
        stay = stay && memory >= 0 && H5Tget_size(memory) == members[i].size;
        h5_close(memory);
    }
    if (p->stream) fclose(p->stream);
    p->stream = stream;
    return stay;
}

static hid_t print_members(printer *p, hid_t type, const member *members, int n, int depth)
{
    bool stay = sizes_stay(p, type, members, n, depth);
    size_t end = 0, total = H5Tget_size(type);
    hid_t memory = p->problem ? -1 : H5Tcreate(H5T_COMPOUND, stay ? total : 8 * total + 64);
    fputc('[', p->stream);
    for (int i = 0; i < n && !p->problem; i++) {
        if (stay && members[i].offset < end) return give_up(p, "structures that overlap");
        if (stay) print_gap(p, end, members[i].offset);
        if (stay) end = members[i].offset;
        if (end > 0) fputs(", ", p->stream);
        hid_t field = print_field(p, type, members[i].index, depth);
        if (field < 0) break;
        char *name = H5Tget_member_name(type, members[i].index);
        if (H5Tinsert(memory, name, end, field) < 0) give_up(p, "a damaged structure");
        end += H5Tget_size(field);
        H5free_memory(name);
        h5_close(field);
    }
    if (stay) print_gap(p, end, total);
    fputc(']', p->stream);
    if (!stay && !p->problem) H5Tset_size(memory, end);
    if (!p->problem) return memory;
    h5_close(memory);
    return -1;
}

/* Fields that are not in the order of their offsets need a dictionary. */
static hid_t print_dictionary(printer *p, hid_t type, const member *members, int n, int depth)
{
    size_t total = H5Tget_size(type);
    hid_t memory = H5Tcreate(H5T_COMPOUND, total);
    fputs("{'names': [", p->stream);
    for (int i = 0; i < n && !p->problem; i++) {
        char *name = H5Tget_member_name(type, members[i].index);
        if (!name || !*name) give_up(p, "structures with nameless fields");
        if (i > 0) fputs(", ", p->stream);
        if (name) print_name(p->stream, name);
        H5free_memory(name);
    }
    fputs("], 'formats': [", p->stream);
    for (int i = 0; i < n && !p->problem; i++) {
        hsize_t axes[CATERVA_MAX_DIMS];
        int n_axes = 0;
        char *name = H5Tget_member_name(type, members[i].index);
        hid_t whole = H5Tget_member_type(type, members[i].index);
        hid_t element = array_element(p, whole, axes, &n_axes), field = -1;
        if (i > 0) fputs(", ", p->stream);
        if (n_axes > 0) fputc('(', p->stream);
        if (element >= 0) field = print_type(p, element, depth + 1);
        print_axes(p->stream, axes, n_axes);
        if (field >= 0 && n_axes > 0) {
            hid_t array = H5Tarray_create2(field, (unsigned)n_axes, axes);
            h5_close(field);
            field = array;
        }
        if (field >= 0 && (H5Tget_size(field) != members[i].size ||
                           H5Tinsert(memory, name, members[i].offset, field) < 0))
            give_up(p, "structures whose fields have unusual widths");
        h5_close(field);
        h5_close(element);
        h5_close(whole);
        H5free_memory(name);
    }
    fputs("], 'offsets': [", p->stream);
    for (int i = 0; i < n; i++) fprintf(p->stream, "%s%zu", i ? ", " : "", members[i].offset);
    fprintf(p->stream, "], 'itemsize': %zu}", total);
    if (!p->problem) return memory;
    h5_close(memory);
    return -1;
}

static hid_t print_structure(printer *p, hid_t type, int depth)
{
    size_t size;
    char order;
    if (is_complex(type, &size, &order)) {
        fprintf(p->stream, "'%cc%zu'", order, 2 * size);
        return complex_type(2 * size, order);
    }
    if (depth == 0) p->out->is_structure = true;
    int n = H5Tget_nmembers(type);
    member *members = n > 0 ? cli_alloc((size_t)n * sizeof *members) : NULL;
    if (!members) return give_up(p, n > 0 ? "" : "structures without fields");
    for (int i = 0; i < n; i++) {
        hid_t field = H5Tget_member_type(type, (unsigned)i);
        members[i] = (member){(unsigned)i, H5Tget_member_offset(type, (unsigned)i),
                              H5Tget_size(field)};
        h5_close(field);
    }
    bool in_order = true;
    for (int i = 1; i < n; i++)
        in_order = in_order && members[i].offset > members[i - 1].offset;
    hid_t memory = in_order ? print_members(p, type, members, n, depth)
                            : print_dictionary(p, type, members, n, depth);
    free(members);
    return memory;
}

static hid_t print_type(printer *p, hid_t type, int depth)
{
    if (depth > MAX_NESTING) return give_up(p, "structures of too many levels");
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: return print_integer(p, type);
    case H5T_BITFIELD: return print_bits(p, type);
    case H5T_FLOAT: return print_real(p, type);
    case H5T_STRING: return print_string(p, type, depth);
    case H5T_OPAQUE: return print_opaque(p, type, depth);
    case H5T_ENUM: return print_enum(p, type, depth);
    case H5T_COMPOUND: return print_structure(p, type, depth);
    case H5T_REFERENCE: return give_up(p, "references");
    case H5T_VLEN: return give_up(p, "sequences of any length");
    case H5T_TIME: return give_up(p, "times of HDF5's own type");
    default: return give_up(p, "items of an unknown type");
    }
}

/* Sets out->dtype and item_size of the text that was printed: quoted if it is a scalar. */
static const char *take_dtype(h5_type *out, char *text)
{
    caterva_error err;
    caterva_dtype *parsed;
    size_t length = strlen(text);
    if (text[0] == '\'') {
        text[length - 1] = '\0';
        text++;
    }
    if (caterva_dtype_parse(text, &parsed, &err) != CATERVA_OK)
        return err.code == CATERVA_ENOMEM ? "" : "structures that no array can have";
    out->item_size = (size_t)parsed->item_size;
    bool is_possible = parsed->item_size > 0 && parsed->item_size <= INT32_MAX;
    caterva_dtype_free(parsed);
    if (!is_possible) return "items that are too large";
    return descr_for_array(CLI_UNSUPPORTED, "HDF5", text, &out->dtype) == CLI_OK ? NULL : "";
}

const char *h5_type_of(hid_t file_type, h5_type *out)
{
    *out = (h5_type){.memory = -1};
    char *text = NULL;
    size_t size;
    printer p = {.stream = open_memstream(&text, &size), .out = out};
    if (!p.stream) {
        cli_fail_sys("no memory for a dtype");
        return "";
    }
    hid_t element = array_element(&p, file_type, out->axes, &out->n_axes);
    if (element >= 0) out->memory = print_type(&p, element, 0);
    h5_close(element);
    if (out->memory < 0) give_up(&p, "items of an unknown type");
    if (fclose(p.stream) != 0) give_up(&p, "");
    if (!p.problem && out->text != H5_ANY_LENGTH) p.problem = take_dtype(out, text);
    if (!p.problem && out->text != H5_ANY_LENGTH &&
        H5Tget_size(out->memory) != out->item_size)
        p.problem = "structures that no array can have";
    if (!p.problem && out->n_axes > 0) {
        hid_t whole = H5Tarray_create2(out->memory, (unsigned)out->n_axes, out->axes);
        h5_close(out->memory);
        out->memory = whole;
    }
    free(text);
    if (p.problem) h5_type_free(out);
    return p.problem;
}

void h5_type_free(h5_type *type)
{
    h5_close(type->memory);
    free(type->dtype);
    *type = (h5_type){.memory = -1};
}

/* ---- To HDF5 ----------------------------------------------------------------------------- */

static hid_t opaque_type(const caterva_dtype *dtype, size_t size)
{
    char tag[64] = "", *text = NULL;
    hid_t type = H5Tcreate(H5T_OPAQUE, size);
    if (dtype->kind != 'V' && descr_of(dtype, &text) == CLI_OK)
        snprintf(tag, sizeof tag, "NUMPY:%s", text);
    free(text);
    H5Tset_tag(type, tag);
    return type;
}

static hid_t structure_type(const caterva_dtype *dtype, size_t size)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, size);
    for (int i = 0; i < dtype->n_fields && type >= 0; i++) {
        const caterva_field *f = &dtype->fields[i];
        if (!*f->name) continue; /* padding */
        hid_t field = h5_type_for(f->dtype);
        if (field < 0 || H5Tinsert(type, f->name, (size_t)f->offset, field) < 0) {
            h5_close(type);
            type = -1;
        }
        h5_close(field);
    }
    return type;
}

static hid_t element_type(const caterva_dtype *dtype, size_t size)
{
    if (size == 0) return -1;
    if (dtype->n_fields > 0) return structure_type(dtype, size);
    switch (dtype->kind) {
    case 'b': return h5_type_bool();
    case 'i':
    case 'u': return integer_type(dtype->kind, size, dtype->byte_order);
    case 'f': return real_type(size, dtype->byte_order);
    case 'c': return complex_type(size, dtype->byte_order);
    case 'S': return h5_type_string(false, size);
    default: return opaque_type(dtype, size);
    }
}

hid_t h5_type_for(const caterva_dtype *dtype)
{
    hsize_t axes[CATERVA_MAX_DIMS], n = 1;
    for (int d = 0; d < dtype->ndim; d++) n *= axes[d] = (hsize_t)dtype->shape[d];
    if (n == 0) return -1;
    caterva_dtype element = *dtype;
    element.item_size = (int64_t)((hsize_t)dtype->item_size / n);
    element.ndim = 0;
    hid_t type = element_type(&element, (size_t)element.item_size);
    if (dtype->ndim == 0 || type < 0) return type;
    hid_t whole = H5Tarray_create2(type, (unsigned)dtype->ndim, axes);
    h5_close(type);
    return whole;
}
