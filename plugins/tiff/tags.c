/* Plug-in tiff: tags and the map that has them, both ways. */
#include "plugin.h"

#include "foreign/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of libtiff's own tags that are attributes; a writer sets them again. */
static const uint16_t kept_tags[] = {
    TIFFTAG_SUBFILETYPE, TIFFTAG_DOCUMENTNAME, TIFFTAG_MAKE,           TIFFTAG_MODEL,
    TIFFTAG_ORIENTATION, TIFFTAG_XRESOLUTION,  TIFFTAG_YRESOLUTION,    TIFFTAG_PAGENAME,
    TIFFTAG_XPOSITION,   TIFFTAG_YPOSITION,    TIFFTAG_RESOLUTIONUNIT, TIFFTAG_SOFTWARE,
    TIFFTAG_DATETIME,    TIFFTAG_ARTIST,       TIFFTAG_HOSTCOMPUTER,   TIFFTAG_COPYRIGHT,
    TIFFTAG_PHOTOMETRIC, TIFFTAG_EXTRASAMPLES, TIFFTAG_BITSPERSAMPLE,  TIFFTAG_ICCPROFILE,
    TIFFTAG_XMLPACKET,   TIFFTAG_PHOTOSHOP,    TIFFTAG_TARGETPRINTER,  TIFFTAG_THRESHHOLDING,
};
#define N_KEPT (sizeof kept_tags / sizeof kept_tags[0])

/* Those that have attributes of their own, or that say how pages are stored. */
static const uint16_t other_tags[] = {
    TIFFTAG_IMAGEDESCRIPTION, TIFFTAG_JPEGTABLES,          TIFFTAG_EXIFIFD,
    TIFFTAG_GPSIFD,           TIFFTAG_YCBCRCOEFFICIENTS,   TIFFTAG_YCBCRSUBSAMPLING,
    TIFFTAG_YCBCRPOSITIONING, TIFFTAG_REFERENCEBLACKWHITE, TIFFTAG_TRANSFERFUNCTION,
};
#define N_OTHER (sizeof other_tags / sizeof other_tags[0])

/* Types of the values of a tag, and how arrays of them are called. */
static const struct tag_type {
    TIFFDataType type;
    int size;
    const char *dtype;
} tag_types[] = {
    {TIFF_SBYTE, 1, "|i1"},       {TIFF_SHORT, 2, ORDER "u2"}, {TIFF_SSHORT, 2, ORDER "i2"},
    {TIFF_LONG, 4, ORDER "u4"},   {TIFF_SLONG, 4, ORDER "i4"}, {TIFF_FLOAT, 4, ORDER "f4"},
    {TIFF_DOUBLE, 8, ORDER "f8"}, {TIFF_LONG8, 8, ORDER "u8"}, {TIFF_SLONG8, 8, ORDER "i8"},
};
#define N_TAG_TYPES (sizeof tag_types / sizeof tag_types[0])

static const char *dtype_of_tag(TIFFDataType type)
{
    for (size_t i = 0; i < N_TAG_TYPES; i++)
        if (tag_types[i].type == type) return tag_types[i].dtype;
    return NULL;
}

/* Adds the value of a tag with a count. False if its type has no place. */
static bool add_counted(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    uint16_t small = 0;
    uint32_t n = 0;
    const void *bytes = NULL;
    TIFFDataType type = TIFFFieldDataType(f);
    const char *dtype = dtype_of_tag(type);
    if (TIFFFieldSetGetCountSize(f) == 4) {
        if (!TIFFGetField(tif, TIFFFieldTag(f), &n, &bytes)) return false;
    } else {
        if (!TIFFGetField(tif, TIFFFieldTag(f), &small, &bytes)) return false;
        n = small;
    }
    bool is_text = type == TIFF_ASCII, is_bytes = type == TIFF_BYTE || type == TIFF_UNDEFINED;
    if (!bytes || !(dtype || is_text || is_bytes)) return false;
    values_add_text(list, name, strlen(name));
    if (is_text)
        values_add_text(list, bytes, strnlen(bytes, n));
    else if (is_bytes)
        values_add_bytes(list, bytes, n);
    else
        values_add_array(list, dtype, n, bytes);
    return true;
}

/* Adds a tag with one value. */
static bool add_single(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    uint32_t tag = TIFFFieldTag(f), number = 0;
    uint16_t small = 0;
    float real = 0;
    const char *text = NULL;
    if (TIFFFieldReadCount(f) > 1 && TIFFFieldDataType(f) != TIFF_ASCII) return false;
    switch (TIFFFieldDataType(f)) {
    case TIFF_ASCII:
        if (!TIFFGetField(tif, tag, &text) || !text) return false;
        values_add_text(list, name, strlen(name));
        values_add_text(list, text, strlen(text));
        return true;
    case TIFF_SHORT:
        if (!TIFFGetField(tif, tag, &small)) return false;
        values_add_text(list, name, strlen(name));
        values_add_int(list, small);
        return true;
    case TIFF_LONG:
        if (!TIFFGetField(tif, tag, &number)) return false;
        values_add_text(list, name, strlen(name));
        values_add_int(list, number);
        return true;
    case TIFF_RATIONAL:
        if (TIFFFieldSetGetSize(f) != 4 || !TIFFGetField(tif, tag, &real)) return false;
        values_add_text(list, name, strlen(name));
        values_add_real(list, (double)real);
        return true;
    default: return false;
    }
}

/* Adds a tag with a fixed number of rational values. */
static bool add_rationals(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    const float *numbers = NULL;
    bool fits = TIFFFieldDataType(f) == TIFF_RATIONAL && TIFFFieldReadCount(f) > 1 &&
                TIFFFieldSetGetSize(f) == 4;
    if (!fits || !TIFFGetField(tif, TIFFFieldTag(f), &numbers) || !numbers) return false;
    values_add_text(list, name, strlen(name));
    values_add_array(list, ORDER "f4", (size_t)TIFFFieldReadCount(f), numbers);
    return true;
}

/* Adds the remaining tags, named by their numbers, and reports those whose values have no place. */
static cli_exit add_custom(foreign_file *file, TIFF *tif, const char *key, value_list *list,
                           int64_t *n, char (*names)[12])
{
    for (int i = 0; i < TIFFGetTagListCount(tif); i++) {
        uint32_t tag = TIFFGetTagListEntry(tif, i);
        const TIFFField *f = TIFFFieldWithTag(tif, tag);
        bool is_kept = !f;
        for (size_t k = 0; k < N_KEPT; k++) is_kept |= kept_tags[k] == tag;
        for (size_t k = 0; k < N_OTHER; k++) is_kept |= other_tags[k] == tag;
        if (is_kept) continue;
        snprintf(names[i], sizeof names[i], "%u", tag);
        bool done = TIFFFieldPassCount(f) ? add_counted(list, tif, f, names[i])
                                          : add_single(list, tif, f, names[i]) ||
                                                add_rationals(list, tif, f, names[i]);
        *n += done;
        if (!done)
            CLI_TRY(foreign_lose(file, "%s: the tag %u, %s", key, tag, TIFFFieldName(f)));
    }
    return CLI_OK;
}

cli_exit tiff_tags_to_map(foreign_file *file, TIFF *tif, foreign_node *node)
{
    value_list list = {0};
    int64_t n = 0;
    size_t map = values_begin(&list, CATERVA_VALUE_MAP);
    for (size_t i = 0; i < N_KEPT; i++) {
        const TIFFField *f = TIFFFieldWithTag(tif, kept_tags[i]);
        if (!f) continue;
        bool counted = TIFFFieldPassCount(f);
        n += counted ? add_counted(&list, tif, f, TIFFFieldName(f))
                     : add_single(&list, tif, f, TIFFFieldName(f));
    }
    char(*names)[12] = cli_alloc((size_t)TIFFGetTagListCount(tif) * sizeof *names);
    cli_exit code = names ? add_custom(file, tif, node->key, &list, &n, names) : CLI_IO;
    values_end(&list, map, n);
    if (code == CLI_OK) code = values_set(&list, node, "tiff");
    values_free(&list);
    free(names);
    return code;
}

/* ---- Writing ---------------------------------------------------------------------------- */

/* Tags of the map that the layout of the array decides. */
static bool is_of_layout(uint32_t tag)
{
    return tag == TIFFTAG_BITSPERSAMPLE || tag == TIFFTAG_PHOTOMETRIC ||
           tag == TIFFTAG_EXTRASAMPLES;
}

static void set_number(TIFF *tif, const TIFFField *f, double number)
{
    uint32_t tag = TIFFFieldTag(f);
    switch (TIFFFieldDataType(f)) {
    case TIFF_SHORT: TIFFSetField(tif, tag, (uint16_t)number); break;
    case TIFF_LONG: TIFFSetField(tif, tag, (uint32_t)number); break;
    case TIFF_RATIONAL: TIFFSetField(tif, tag, number); break;
    default: break;
    }
}

/* Makes a tag known to libtiff, with values of a type. */
static const TIFFField *register_tag(TIFF *tif, uint32_t tag, TIFFDataType type, char *name)
{
    const TIFFFieldInfo info = {tag, TIFF_VARIABLE2, TIFF_VARIABLE2, type, FIELD_CUSTOM, 1, 1,
                                name};
    const TIFFField *f = TIFFFieldWithTag(tif, tag);
    if (!f) TIFFMergeFieldInfo(tif, &info, 1);
    return TIFFFieldWithTag(tif, tag);
}

/* Sets a text, with the zero that ends it. */
static bool set_text(TIFF *tif, const TIFFField *f, const char *bytes, size_t size)
{
    char *text = cli_alloc(size + 1);
    if (!text) return false;
    memcpy(text, bytes, size);
    text[size] = '\0';
    bool done = TIFFFieldPassCount(f)
                    ? TIFFSetField(tif, TIFFFieldTag(f), (uint32_t)size + 1, text) == 1
                    : TIFFSetField(tif, TIFFFieldTag(f), text) == 1;
    free(text);
    return done;
}

/* Sets a tag to a value of the map; false if that is not possible. */
static bool set_value(TIFF *tif, const TIFFField *f, packed_value value,
                      const caterva_value *head)
{
    double number;
    bool is_text = TIFFFieldDataType(f) == TIFF_ASCII;
    if (is_text) return head->bytes && set_text(tif, f, head->bytes, head->size);
    if (TIFFFieldPassCount(f)) {
        size_t size = 1;
        for (size_t i = 0; i < N_TAG_TYPES; i++)
            if (tag_types[i].type == TIFFFieldDataType(f)) size = (size_t)tag_types[i].size;
        return head->bytes && TIFFSetField(tif, TIFFFieldTag(f),
                                           (uint32_t)(head->size / size), head->bytes) == 1;
    }
    if (TIFFFieldDataType(f) == TIFF_RATIONAL && TIFFFieldReadCount(f) > 1)
        return strcmp(head->dtype, ORDER "f4") == 0 &&
               head->size == 4 * (size_t)TIFFFieldReadCount(f) &&
               TIFFSetField(tif, TIFFFieldTag(f), head->bytes) == 1;
    if (values_numbers(value, &number, 1) != 1) return false;
    set_number(tif, f, number);
    return true;
}

/* Returns the type of a tag that has a value of the map; TIFF_NOTYPE if no type fits. */
static TIFFDataType type_of_value(const caterva_value *head)
{
    if (head->kind == CATERVA_VALUE_TEXT) return TIFF_ASCII;
    if (head->kind == CATERVA_VALUE_BYTES) return TIFF_UNDEFINED;
    for (size_t i = 0; i < N_TAG_TYPES && head->kind == CATERVA_VALUE_ARRAY; i++)
        if (strcmp(tag_types[i].dtype, head->dtype) == 0) return tag_types[i].type;
    return TIFF_NOTYPE;
}

/* Returns the field of a tag that is named by its number. A tag that libtiff does not know gets the
 * type of its value. */
static const TIFFField *custom_field(TIFF *tif, const char *name, const caterva_value *head)
{
    char *end, copy[16];
    unsigned long tag = strtoul(name, &end, 10);
    TIFFDataType type = type_of_value(head);
    if (*end || tag < 256 || tag > 65535) return NULL;
    const TIFFField *f = TIFFFieldWithTag(tif, (uint32_t)tag);
    if (!f && type != TIFF_NOTYPE) {
        snprintf(copy, sizeof copy, "%lu", tag);
        f = register_tag(tif, (uint32_t)tag, type, copy);
    }
    bool counted = f && TIFFFieldPassCount(f);
    if (counted && type == TIFF_UNDEFINED && TIFFFieldDataType(f) == TIFF_BYTE) return f;
    return counted && TIFFFieldDataType(f) != type ? NULL : f;
}

/* Sets one tag of the map; false if that is not possible. */
static bool set_tag(TIFF *tif, const char *name, packed_value value)
{
    caterva_value head = CATERVA_VALUE_INIT;
    caterva_error err;
    size_t at = 0;
    const TIFFField *f = NULL;
    if (caterva_value_next(value.bytes, value.size, &at, &head, &err) != CATERVA_OK)
        return false;
    for (size_t i = 0; i < N_KEPT && !f; i++) {
        f = TIFFFieldWithTag(tif, kept_tags[i]);
        if (f && strcmp(TIFFFieldName(f), name) != 0) f = NULL;
    }
    if (!f) f = custom_field(tif, name, &head);
    if (!f) return false;
    return is_of_layout(TIFFFieldTag(f)) || set_value(tif, f, value, &head);
}

cli_exit tiff_tags_from_map(foreign_writer *self, TIFF *tif, const foreign_node *node)
{
    packed_value map = values_of(node, "tiff"), key, value;
    size_t size;
    char name[64];
    for (size_t at = 0; values_next(map, &at, &key, &value);) {
        const char *text = values_text(key, &size);
        if (!text || size >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        if (!set_tag(tif, name, value))
            CLI_TRY(foreign_lose_writing(self, "%s: the tag %s", node->key, name));
    }
    return CLI_OK;
}

bool tiff_set_text(TIFF *tif, uint32_t tag, const char *bytes, size_t size)
{
    return set_text(tif, TIFFFieldWithTag(tif, tag), bytes, size);
}

int tiff_scan_shape(const char **text, int64_t sizes[TIFF_MAX_SIZES])
{
    int n = 0;
    if (strncmp(*text, TIFF_SHAPE, sizeof TIFF_SHAPE - 1) != 0) return 0;
    *text += sizeof TIFF_SHAPE - 1;
    for (char *end; n < TIFF_MAX_SIZES; n++, *text = end + strspn(end, ", ")) {
        sizes[n] = strtoll(*text, &end, 10);
        if (end == *text) break;
    }
    return n;
}
