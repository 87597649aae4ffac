/* Room: cli/commands. The line of `info --short`. The columns have fixed widths, so that a line can
 * be printed as soon as its file is read. Every column except the last (the name) starts with a
 * non-blank character. */
#include "commands/info_line.h"

#include "commands/info_report.h"
#include "formats/item.h"
#include "formats/numbers.h"

#include <stdio.h>
#include <string.h>

#define LINE "%-20s %-9s %10s %9s  %-27s %-8s %s\n"

typedef struct codec_text {
    char text[160];
} codec_text;

static codec_text add(codec_text before, const char *mark, const char *name, int number)
{
    codec_text after;
    if (name)
        snprintf(after.text, sizeof after.text, "%.100s%s%.32s", before.text, mark, name);
    else
        snprintf(after.text, sizeof after.text, "%.100s%s%d", before.text, mark, number);
    return after;
}

/* Returns a text such as "zstd 5, shuffle": without the parameters that the long report shows. */
static codec_text codec_of(const caterva_info *info)
{
    codec_text text = {""};
    text = add(text, "", caterva_codec_name(info->codec), info->codec);
    text = add(text, " ", NULL, report_level(info));
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (info->filters[i] != CATERVA_FILTER_NONE)
            text = add(text, ", ", caterva_filter_name(info->filters[i]), info->filters[i]);
    return text;
}

void info_line_print(const char *path, const caterva_info *info, const caterva_dtype *dtype)
{
    char shape[CATERVA_MAX_DIMS * 21] = "()", type[ITEM_NAME_SIZE];
    char bytes[NUMBER_TEXT_SIZE], ratio[32];
    size_t used = 0;
    if (!info) {
        printf(LINE, "-", "-", "-", "-", "-", "unread", cli_show_place(path).text);
        return;
    }
    for (int d = 0; d < info->ndim; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? "," : "",
                                 (long long)info->shape[d]);
    item_type_name(dtype, info->dtype, type);
    double stored = (double)info->frame_bytes;
    snprintf(ratio, sizeof ratio, "%.2f", stored > 0 ? (double)info->data_bytes / stored : 0);
    printf(LINE, shape, type, number_bytes(info->frame_bytes, bytes), ratio,
           codec_of(info).text, info->sealed ? "sealed" : "unsealed",
           cli_show_place(path).text);
}
