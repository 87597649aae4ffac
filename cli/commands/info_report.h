/* What `caterva info` reports about an array, as text and as JSON. */
#ifndef CLI_INFO_REPORT_H
#define CLI_INFO_REPORT_H

#include "cli.h"
#include "formats/json.h"
#include <caterva_upkeep.h>

/* The data of the report, gathered before anything is printed. */
typedef struct report {
    const char *path;
    caterva_array *array;
    const caterva_info *info;
    caterva_dtype *dtype; /* NULL: unknown */
    uint8_t *fill;        /* one item */
    caterva_space space;
    bool measured; /* `space` is valid; false for URLs and damaged chunk headers */
} report;

/* Fills r->dtype and r->fill from r->info. The caller frees both members, also on failure. */
cli_exit report_gather(report *r);

/* Returns data / stored, or 0 if nothing is stored. */
double report_ratio(int64_t data, int64_t stored);

/* Returns `name`, or if `name` is NULL, `number` as text. */
const char *report_name(const char *name, int number, char text[16]);

/* The names of a metalayer in text and in JSON. */
typedef struct kind_name {
    const char *text, *json;
} kind_name;

kind_name report_kind(caterva_metalayer_kind kind);

/* Returns the level in the form that --level accepts. */
int report_level(const caterva_info *info);

/* Returns the codec's meta as given at creation. The file holds only the low byte, from which a
 * negative meta is restored. */
int report_codec_meta(const caterva_info *info);

/* Makes the text of the fill, as `get` prints it. Release *text with free. */
cli_exit report_fill_text(const report *r, char **text, size_t *size);

/* report_measure_attribute sets *size to the size of an attribute's value. report_attribute_json
 * puts the value or, if the value is long, {"$bytes": size}. */
cli_exit report_measure_attribute(const report *r, const char *name, int64_t *size);
cli_exit report_attribute_json(const report *r, const char *name, json *j);

#endif
