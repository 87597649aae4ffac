/* Room: cli/sources. Reads masks and lists of indices from files into memory, where they stay as
 * long as their selection. Accepts the formats that contain a dtype. */
#include "sources/index_file.h"

#include "formats/descr.h"
#include "sources/cast.h"
#include "sources/input.h"

#include <stdlib.h>
#include <string.h>

static cli_exit read_items(const input *in, index_file *out)
{
    source *from = in->from;
    box all = {.start = {0}};
    out->ndim = from->shape.ndim;
    memcpy(out->shape, from->shape.shape, sizeof out->shape);
    memcpy(all.stop, out->shape, sizeof all.stop);
    out->n = box_items(&all, out->ndim);
    void *items = cli_alloc((size_t)(out->n * from->shape.item_size));
    if (!items) return CLI_IO;
    if (from->shape.item_size == 1)
        out->mask = items;
    else
        out->indices = items;
    return out->n > 0 ? from->read(from, &all, items) : CLI_OK;
}

/* Accepts booleans, and converts integers to int64. */
static cli_exit take_kind(input *in)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_CORRUPT, in->path, in->from->dtype, &dtype));
    char kind = dtype->kind;
    if (dtype->ndim > 0) kind = 'V';
    caterva_dtype_free(dtype);
    if (kind == 'b') return CLI_OK;
    if (kind == 'i' || kind == 'u')
        return source_cast(&in->from, "int64", CATERVA_CASTING_SAME_KIND);
    return cli_fail(
        CLI_USAGE, "%s contains %s; a mask must contain booleans, a list of indices integers",
        in->path, in->from->dtype);
}

cli_exit index_file_load(const char *path, index_file *out)
{
    static const cli_args args = {.threads = 1};
    input in;
    *out = (index_file){0};
    CLI_TRY(input_find(&args, path, &in));
    cli_exit code = in.format == FORMAT_RAW
                        ? cli_fail(CLI_USAGE, "%s: a mask must be npy or b2nd", path)
                        : input_open(&args, NULL, NULL, &in);
    if (code == CLI_OK) code = take_kind(&in);
    if (code == CLI_OK) code = read_items(&in, out);
    input_close(&in);
    return code;
}

void index_file_free(index_file *file)
{
    free(file->mask);
    free(file->indices);
    file->mask = NULL;
    file->indices = NULL;
}
