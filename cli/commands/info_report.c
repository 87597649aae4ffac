/* Room: cli/commands. What `caterva info` gathers, and the values that text and JSON share. */
#include "commands/info_report.h"

#include "formats/item.h"
#include "formats/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double report_ratio(int64_t data, int64_t stored)
{
    return stored > 0 ? (double)data / (double)stored : 0;
}

const char *report_name(const char *name, int number, char text[16])
{
    if (name) return name;
    snprintf(text, 16, "%d", number);
    return text;
}

cli_exit report_gather(report *r)
{
    size_t size = (size_t)r->info->item_size;
    caterva_dtype_parse(r->info->dtype, &r->dtype, NULL);
    r->fill = cli_alloc(size);
    if (!r->fill) return CLI_IO;
    memset(r->fill, 0, size);
    if (r->info->fill_value) memcpy(r->fill, r->info->fill_value, size);
    return CLI_OK;
}

/* Size in bytes of the longest item that is printed. */
enum { LONGEST_ITEM = 1 << 16 };

kind_name report_kind(caterva_metalayer_kind kind)
{
    static const kind_name names[] = {
        [CATERVA_METALAYER_B2ND] = {"B2ND", "b2nd"},
        [CATERVA_METALAYER_CATERVA] = {"Caterva", "caterva"},
        [CATERVA_METALAYER_NONE] = {"plain items", "b2frame"},
    };
    return names[kind];
}

int report_level(const caterva_info *info)
{
    return info->level == CATERVA_NONE ? 0 : info->level;
}

int report_codec_meta(const caterva_info *info)
{
    bool power = info->codec == CATERVA_CODEC_ZFP_ACCURACY;
    return power && info->codec_meta > 127 ? info->codec_meta - 256 : info->codec_meta;
}

cli_exit report_fill_text(const report *r, char **text, size_t *size)
{
    static const item_style style = {.precision = -1};
    *text = NULL;
    FILE *stream = open_memstream(text, size);
    if (!stream) return cli_fail_sys("no memory for the fill");
    if (r->info->item_size > LONGEST_ITEM)
        fprintf(stream, "(%d bytes)", r->info->item_size);
    else
        item_print(stream, r->dtype, r->fill, &style);
    if (fclose(stream) == 0) return CLI_OK;
    free(*text);
    return cli_fail_sys("no memory for the fill");
}

/* Size in bytes of the longest value that is decoded: few bytes can decompress to gigabytes. */
enum { LONGEST_VALUE = 1 << 20 };

cli_exit report_measure_attribute(const report *r, const char *name, int64_t *size)
{
    caterva_error err;
    if (caterva_attr_read(r->array, name, 0, NULL, 0, size, &err) != CATERVA_OK)
        return cli_fail_array(r->path, &err);
    return CLI_OK;
}

cli_exit report_attribute_json(const report *r, const char *name, json *j)
{
    void *value;
    size_t size;
    int64_t length;
    caterva_error err;
    CLI_TRY(report_measure_attribute(r, name, &length));
    if (length > LONGEST_VALUE) {
        json_begin_object(j, name);
        json_put_int(j, "$bytes", length);
        json_end_object(j);
        return CLI_OK;
    }
    if (caterva_attr_get(r->array, name, &value, &size, &err) != CATERVA_OK)
        return cli_fail_array(r->path, &err);
    cli_exit code = value_print(j, name, value, size);
    caterva_free(value);
    return code;
}
