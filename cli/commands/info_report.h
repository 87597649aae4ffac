/* What `caterva info` tells of an array, as text and as JSON. */
#ifndef CLI_INFO_REPORT_H
#define CLI_INFO_REPORT_H

#include "cli.h"
#include "formats/json.h"
#include <caterva_upkeep.h>

/* What the report is made of, gathered before anything is printed. */
typedef struct report {
    const char *path;
    caterva_array *array;
    const caterva_info *info;
    caterva_dtype *dtype; /* NULL: not understood */
    uint8_t *fill;        /* one item */
    caterva_space space;
    bool measured; /* false: some chunk header is damaged, space is not known */
} report;

/* Fills dtype and fill from r->info; the caller frees both, also after a failure. */
cli_exit report_gather(report *r);

/* 0 where nothing is stored. */
double report_ratio(int64_t data, int64_t stored);

/* `name`, or the number where it is NULL. */
const char *report_name(const char *name, int number, char text[16]);

/* How a metalayer is called, in text and in JSON. */
typedef struct kind_name {
    const char *text, *json;
} kind_name;

kind_name report_kind(caterva_metalayer_kind kind);

/* The level as --level takes it. */
int report_level(const caterva_info *info);

/* The codec's meta as it was given: a power of ten may be negative, of which the file has
 * the low byte. */
int report_codec_meta(const caterva_info *info);

/* The fill as get would print it. Release *text with free. */
cli_exit report_fill_text(const report *r, char **text, size_t *size);

/* Bytes of an attribute's value; and the value, of a long one only its size, as
 * {"$bytes": size}. */
cli_exit report_measure_attribute(const report *r, const char *name, int64_t *size);
cli_exit report_attribute_json(const report *r, const char *name, json *j);

#endif
