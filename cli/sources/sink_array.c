/* Room: cli/sources. Arrays as sinks: a new one, or selected items of an existing one. Other
 * handles see no change before `finish` commits. `abandon` discards the handle: no file of a new
 * array remains, and an existing array is unchanged. */
#include "sources/array_copy.h"
#include "sources/described.h"
#include "sources/dims.h"
#include "sources/jobs.h"
#include "sources/sink.h"

#include <stdlib.h>
#include <string.h>

typedef struct array_sink {
    sink base;
    caterva_array *array;
    const char *path;
    selection sel;
    int64_t item_size;
    const cli_args *args; /* of a Zarr array */
} array_sink;

static cli_exit write_selection(sink *self, const box *b, const void *src)
{
    array_sink *s = (array_sink *)self;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_selection words;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    caterva_error err;
    selection_of_box(&s->sel, b, axes, &words);
    buffer.data = (void *)src;
    buffer.size = (size_t)(box_items(b, s->sel.n_result) * s->item_size);
    if (caterva_write_selection(s->array, &words, &buffer, &err) != CATERVA_OK)
        return cli_fail_array(s->path ? s->path : "the part", &err);
    return CLI_OK;
}

static void release(array_sink *s)
{
    selection_free(&s->sel);
    free(s);
}

static cli_exit finish_array(sink *self)
{
    array_sink *s = (array_sink *)self;
    caterva_error err;
    cli_exit code = CLI_OK;
    if (caterva_close(s->array, &err) != CATERVA_OK) code = cli_fail_array(s->path, &err);
    release(s);
    return code;
}

static void abandon_array(sink *self)
{
    array_sink *s = (array_sink *)self;
    caterva_discard(s->array);
    release(s);
}

cli_exit sink_of_array(caterva_array *array, const char *path, selection *sel, sink **out)
{
    const caterva_info *info = info_of(array);
    array_sink *s = cli_alloc(sizeof *s);
    if (!s) {
        selection_free(sel);
        caterva_discard(array);
        return CLI_IO;
    }
    *s = (array_sink){.array = array, .path = path, .sel = *sel};
    s->item_size = info->item_size;
    s->base.write = write_selection;
    s->base.encodes = true;
    s->base.finish = finish_array;
    s->base.abandon = abandon_array;
    transfer_neutral(s->base.align, s->base.stretch);
    for (int r = 0; r < sel->n_result; r++) {
        int d = sel->result[r];
        if (d < 0 || sel->axis[d].list || sel->axis[d].step != 1) continue;
        s->base.align[r] = info->chunk_shape[d] > 0 ? info->chunk_shape[d] : 1;
        s->base.phase[r] = sel->axis[d].start % s->base.align[r];
    }
    *out = &s->base;
    return CLI_OK;
}

static cli_exit finish_part(sink *self)
{
    array_sink *s = (array_sink *)self;
    cli_exit code = jobs_finish_part(s->array, s->path);
    release(s);
    return code;
}

cli_exit sink_of_part(caterva_array *part, const char *token, selection *sel, sink **out)
{
    CLI_TRY(sink_of_array(part, token ? token : "the part", sel, out));
    ((array_sink *)*out)->path = token;
    (*out)->finish = finish_part;
    return CLI_OK;
}

/* Copies attributes. If `damaged`, omits unreadable attributes, which were reported before. */
static cli_exit copy_attributes(caterva_array *from, caterva_array *to, const char *path,
                                bool damaged)
{
    const char *name;
    caterva_error err;
    for (int i = 0; (name = attribute_of(from, i)); i++) {
        void *value;
        size_t size;
        if (caterva_attr_get(from, name, &value, &size, &err) != CATERVA_OK) {
            if (damaged) continue;
            return cli_fail_array(name, &err);
        }
        caterva_status status = caterva_attr_set(to, name, value, size, &err);
        caterva_free(value);
        if (status != CATERVA_OK) return cli_fail_array(path, &err);
    }
    return CLI_OK;
}

/* The array itself is discarded: it has never had a name. */
static cli_exit finish_zarr(sink *self)
{
    array_sink *s = (array_sink *)self;
    cli_exit code = array_copy_to_zarr(s->args, s->array, s->path);
    abandon_array(self);
    return code;
}

/* Copies the attributes of a node, and the names of the axes that the items still have. */
static cli_exit copy_node(const foreign_node *node, const source *from, caterva_array *to,
                          const char *path)
{
    caterva_error err;
    const char *dims[CATERVA_MAX_DIMS] = {0};
    for (int d = 0; node->dims && d < from->shape.ndim; d++)
        if (from->axes[d] > 0) dims[d] = node->dims[from->axes[d] - 1];
    caterva_status status = node->dims ? caterva_dims_set(to, dims, &err) : CATERVA_OK;
    for (size_t i = 0; i < node->n_attributes && status == CATERVA_OK; i++) {
        const foreign_attribute *a = &node->attributes[i];
        status = caterva_attr_set(to, a->name, a->value, a->size, &err);
    }
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(path, &err);
}

cli_exit sink_make_array(const cli_args *args, const char *path, bool zarr, const source *from,
                         const origin *like, caterva_array **out)
{
    creation c;
    caterva_array *array = NULL, *model = like ? like->array : NULL;
    const foreign_node *node = like ? like->node : NULL;
    cli_exit code = creation_init(&c, args, &from->shape, from->dtype, model);
    if (code == CLI_OK && node) code = creation_take_node(&c, node, from);
    c.zarr = zarr;
    if (like && like->unsynced) c.options.durability = CATERVA_DURABILITY_NONE;
    if (code == CLI_OK && zarr && !c.options.chunk_shape && !c.options.block_shape)
        code = creation_choose_partition(&c);
    if (code == CLI_OK) code = creation_make(&c, path, &array);
    creation_free(&c);
    if (code != CLI_OK) return code;
    if (model) code = copy_attributes(model, array, path, args->skip_damaged);
    if (model && code == CLI_OK) code = dims_carry(model, from, array, path);
    if (node) code = copy_node(node, from, array, path);
    if (code == CLI_OK)
        *out = array;
    else
        caterva_discard(array);
    return code;
}

cli_exit sink_of_new_array(const cli_args *args, const char *path, bool zarr,
                           const source *from, const origin *like, sink **out)
{
    selection whole;
    caterva_array *array;
    if (zarr && args->sparse)
        return cli_fail(CLI_USAGE, "a Zarr array has all chunks in one file: omit --sparse");
    CLI_TRY(sink_make_array(args, path, zarr, from, like, &array));
    selection_whole(from->shape.ndim, from->shape.shape, &whole);
    CLI_TRY(sink_of_array(array, path, &whole, out));
    const foreign_node *node = like ? like->node : NULL;
    (*out)->holds_fill = node && !args->fill && strcmp(node->dtype, info_of(array)->dtype) == 0;
    if (!zarr) return CLI_OK;
    ((array_sink *)*out)->args = args;
    (*out)->finish = finish_zarr;
    return CLI_OK;
}
