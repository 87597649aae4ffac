/* Room: cli/sources. Files of other formats as sinks: one array of an open writer, or a file with a
 * single array, which appears at `finish`. */
#include "sources/foreign_sink.h"

#include "sources/described.h"
#include "sources/dims.h"

#include <caterva_value.h>
#include <stdlib.h>
#include <string.h>

typedef struct foreign_sink {
    sink base;
    foreign_writer *writer;
    const foreign_node *node;
    foreign_node *owned; /* of a file with a single array */
    bool strict;
} foreign_sink;

/* ---- Nodes ------------------------------------------------------------------------------ */

static cli_exit take_attributes(foreign_node *node, caterva_array *array)
{
    const char *name;
    caterva_error err;
    for (int i = 0; (name = attribute_of(array, i)); i++) {
        void *value;
        size_t size;
        if (strcmp(name, "dims") == 0) continue;
        if (caterva_attr_get(array, name, &value, &size, &err) != CATERVA_OK)
            return cli_fail_array(name, &err);
        CLI_TRY(foreign_set_packed(node, name, value, size));
    }
    return CLI_OK;
}

static cli_exit take_array(foreign_node *node, const source *from, caterva_array *array)
{
    const caterva_info *info = info_of(array);
    cli_exit code = take_attributes(node, array);
    const char **names = dims_of(array);
    for (int d = 0; names && d < node->ndim && code == CLI_OK; d++) {
        const char *name = from->axes[d] > 0 ? names[from->axes[d] - 1] : NULL;
        if (name) code = foreign_set_dim(node, d, name);
    }
    caterva_free(names);
    bool same = node->ndim == info->ndim;
    for (int d = 0; d < node->ndim; d++) same = same && from->axes[d] == d + 1;
    for (int d = 0; same && d < node->ndim; d++) {
        node->chunk_shape[d] = info->chunk_shape[d];
        node->block_shape[d] = info->block_shape[d];
    }
    if (code != CLI_OK || !info->fill_value || strcmp(info->dtype, node->dtype) != 0)
        return code;
    node->fill = cli_alloc((size_t)node->item_size);
    if (!node->fill) return CLI_IO;
    memcpy(node->fill, info->fill_value, (size_t)node->item_size);
    return CLI_OK;
}

static cli_exit take_node(foreign_node *node, const source *from, const foreign_node *like)
{
    for (size_t i = 0; i < like->n_attributes; i++) {
        const foreign_attribute *a = &like->attributes[i];
        CLI_TRY(foreign_copy_packed(node, a->name, a->value, a->size));
    }
    for (int d = 0; d < node->ndim; d++) {
        int axis = from->axes[d] - 1;
        if (axis < 0) continue;
        if (from->shape.shape[d] == like->shape[axis])
            node->chunk_shape[d] = like->chunk_shape[axis];
        if (like->dims && like->dims[axis])
            CLI_TRY(foreign_set_dim(node, d, like->dims[axis]));
    }
    if (!like->fill || strcmp(like->dtype, node->dtype) != 0) return CLI_OK;
    node->fill = cli_alloc((size_t)node->item_size);
    if (!node->fill) return CLI_IO;
    memcpy(node->fill, like->fill, (size_t)node->item_size);
    return CLI_OK;
}

cli_exit foreign_node_of(const char *key, const source *from, const origin *like,
                         foreign_node **out)
{
    foreign_node *node = foreign_node_make(key, false);
    if (!node) return CLI_IO;
    node->ndim = from->shape.ndim;
    node->item_size = from->shape.item_size;
    memcpy(node->shape, from->shape.shape, sizeof node->shape);
    node->dtype = cli_copy_text(from->dtype);
    node->first_axis_fastest = from->first_axis_fastest;
    cli_exit code = node->dtype ? CLI_OK : CLI_IO;
    if (code == CLI_OK && like && like->array) code = take_array(node, from, like->array);
    if (code == CLI_OK && like && like->node) code = take_node(node, from, like->node);
    if (code == CLI_OK)
        *out = node;
    else
        foreign_node_free(node);
    return code;
}

/* ---- Sinks ------------------------------------------------------------------------------ */

static cli_exit write_box(sink *self, const box *b, const void *src)
{
    foreign_sink *s = (foreign_sink *)self;
    return s->writer->write(s->writer, s->node, b->start, b->stop, src);
}

static cli_exit leave_open(sink *self)
{
    free(self);
    return CLI_OK;
}

static void forget(sink *self) { free(self); }

cli_exit sink_of_node(foreign_writer *writer, const foreign_node *node, sink **out)
{
    foreign_sink *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (foreign_sink){.writer = writer, .node = node};
    s->base.write = write_box;
    s->base.finish = leave_open;
    s->base.abandon = forget;
    s->base.encodes = true;
    s->base.in_order = writer->in_order;
    s->base.first_axis_fastest = node->first_axis_fastest;
    transfer_neutral(s->base.align, s->base.stretch);
    for (int d = 0; d < node->ndim; d++)
        if (node->chunk_shape[d] > 0) s->base.align[d] = node->chunk_shape[d];
    *out = &s->base;
    return CLI_OK;
}

void foreign_report_losses(const char *path, char *const *losses, size_t n)
{
    for (size_t i = 0; i < n; i++) cli_warn("%s: %s", path, losses[i]);
}

/* Reports what the file lacks; with --strict nothing may. */
static cli_exit finish_writer(foreign_writer *writer, bool strict)
{
    foreign_report_losses(writer->path, writer->losses, writer->n_losses);
    if (writer->n_losses == 0 || !strict) return foreign_finish(writer);
    cli_exit code = cli_fail(CLI_UNSUPPORTED, "%s: --strict: %zu things cannot be converted",
                             writer->path, writer->n_losses);
    foreign_abandon(writer);
    return code;
}

static cli_exit finish_file(sink *self)
{
    foreign_sink *s = (foreign_sink *)self;
    cli_exit code = finish_writer(s->writer, s->strict);
    foreign_node_free(s->owned);
    free(s);
    return code;
}

static void abandon_file(sink *self)
{
    foreign_sink *s = (foreign_sink *)self;
    foreign_abandon(s->writer);
    foreign_node_free(s->owned);
    free(s);
}

/* Adds the file's group and the array. */
static cli_exit add_array(foreign_writer *writer, foreign_node *node)
{
    foreign_node *root = foreign_node_make("/", true);
    if (!root) return CLI_IO;
    cli_exit code = writer->add(writer, root);
    foreign_node_free(root);
    return code == CLI_OK ? writer->add(writer, node) : code;
}

/* Begins a file with a single array. */
static cli_exit begin_file(const cli_args *args, const char *path, const source *from,
                           const origin *like, bool move, foreign_writer **writer,
                           foreign_node **node)
{
    const foreign_info *info = args->to ? foreign_by_name(args->to) : foreign_by_path(path);
    const char *key = like && like->node ? like->node->key : "/data";
    CLI_TRY(foreign_node_of(key, from, like, node));
    if (!move) memset((*node)->block_shape, 0, sizeof (*node)->block_shape);
    cli_exit code = foreign_create(info, path, args->force, writer);
    if (code == CLI_OK) (*writer)->threads = (int)args->threads;
    return code == CLI_OK ? add_array(*writer, *node) : code;
}

cli_exit foreign_move_file(const cli_args *args, const char *path, const source *from,
                           caterva_array *array, bool *moved)
{
    foreign_writer *writer = NULL;
    foreign_node *node = NULL;
    const origin like = {.array = array};
    cli_exit code = begin_file(args, path, from, &like, true, &writer, &node);
    *moved = code == CLI_OK && writer->write_stored && node->block_shape[0] > 0;
    if (*moved) code = foreign_move_out(args, writer, node, array);
    if (*moved && code == CLI_OK)
        code = finish_writer(writer, args->strict);
    else
        foreign_abandon(writer);
    foreign_node_free(node);
    return code;
}

cli_exit sink_of_foreign(const cli_args *args, const char *path, const source *from,
                         const origin *like, sink **out)
{
    foreign_writer *writer = NULL;
    foreign_node *node = NULL;
    cli_exit code = begin_file(args, path, from, like, false, &writer, &node);
    if (code == CLI_OK) code = sink_of_node(writer, node, out);
    if (code != CLI_OK) {
        foreign_abandon(writer);
        foreign_node_free(node);
        return code;
    }
    foreign_sink *s = (foreign_sink *)*out;
    s->owned = node;
    s->strict = args->strict;
    s->base.finish = finish_file;
    s->base.abandon = abandon_file;
    return CLI_OK;
}
