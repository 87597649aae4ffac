/* Room: cli/sources. Arrays of files of other formats as sources, and the texts that name them. */
#include "sources/foreign_source.h"

#include "sources/probe.h"
#include "sources/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Places ----------------------------------------------------------------------------- */

const char *foreign_place_title(const char *text)
{
    char *path;
    const char *key;
    if (cli_is_url(text) || tree_part_split(text, &path, &key) != CLI_OK) return NULL;
    const foreign_info *info = probe_foreign(path);
    free(path);
    return info ? info->title : NULL;
}

bool foreign_place_is(const char *text) { return foreign_place_title(text) != NULL; }

/* Drops the sentences about what is not in the place's group or array. */
static void drop_losses(const foreign_place *place)
{
    foreign_file *file = place->file;
    const char *key = place->node->key;
    size_t n = 0, size = key[1] ? strlen(key) : 0;
    for (size_t i = 0; i < file->n_losses; i++) {
        const char *loss = file->losses[i];
        bool is_in = size == 0 || (strncmp(loss, key, size) == 0 &&
                                   (loss[size] == '/' || strncmp(loss + size, ": ", 2) == 0));
        if (is_in)
            file->losses[n++] = file->losses[i];
        else
            free(file->losses[i]);
    }
    file->n_losses = n;
}

cli_exit foreign_place_open(const char *text, foreign_place *out)
{
    const char *key;
    *out = (foreign_place){.path = NULL};
    CLI_TRY(tree_part_split(text, &out->path, &key));
    out->info = probe_foreign(out->path);
    if (!out->info) return cli_fail(CLI_UNSUPPORTED, "%s has no known format", text);
    CLI_TRY(foreign_open(out->info, out->path, &out->file));
    out->node = foreign_find(out->file, key);
    if (out->node) drop_losses(out);
    if (out->node) return CLI_OK;
    return cli_fail(CLI_IO, "%s has no array or group %s", out->path, key);
}

cli_exit foreign_place_is_tree(const char *text, bool *is)
{
    size_t arrays = 0;
    foreign_place place;
    cli_exit code = foreign_place_open(text, &place);
    for (size_t i = 0; code == CLI_OK && i < place.file->n; i++)
        arrays += !place.file->nodes[i].is_group;
    if (code == CLI_OK)
        *is = place.node->is_group &&
              (arrays > 1 || (place.info->has_groups && !place.file->is_array));
    foreign_place_close(&place);
    return code;
}

void foreign_place_close(foreign_place *place)
{
    foreign_close(place->file);
    free(place->path);
    *place = (foreign_place){.path = NULL};
}

const char *foreign_place_name(const foreign_place *place, const foreign_node *node)
{
    size_t size = strcmp(place->node->key, "/") == 0 ? 0 : strlen(place->node->key);
    if (strncmp(node->key, place->node->key, size) != 0 || node->key[size] != '/') return NULL;
    return node->key[size + 1] ? node->key + size + 1 : NULL;
}

cli_exit foreign_place_take_array(const char *text, foreign_place *place)
{
    char list[600] = "";
    size_t n = 0, used = 0;
    const foreign_node *found = NULL;
    if (!place->node->is_group) return CLI_OK;
    for (size_t i = 0; i < place->file->n; i++) {
        const foreign_node *node = &place->file->nodes[i];
        if (node->is_group || !foreign_place_name(place, node)) continue;
        found = node;
        if (n++ < 8 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s",
                                     used ? ", " : "", node->key);
    }
    if (n == 0) return cli_fail(CLI_UNSUPPORTED, "%s has no arrays", text);
    if (n == 1) {
        place->node = found;
        return CLI_OK;
    }
    return cli_fail(CLI_USAGE, "%s has %zu arrays (%s%s); name one as %s::%s, or convert the whole file to a tree "
                    "(.b2d, .b2z)",
                    text, n, list, n > 8 ? ", ..." : "", place->path, found->key);
}

/* ---- Sources ---------------------------------------------------------------------------- */

typedef struct foreign_source {
    source base;
    foreign_file *file;
    const foreign_node *array;
} foreign_source;

static cli_exit read_box(source *self, const box *b, void *dst)
{
    foreign_source *s = (foreign_source *)self;
    return s->file->read(s->file, s->array, b->start, b->stop, dst);
}

static bool is_fill(source *self, const box *b)
{
    foreign_source *s = (foreign_source *)self;
    return s->file->is_fill(s->file, s->array, b->start, b->stop);
}

cli_exit source_of_foreign(foreign_file *file, const foreign_node *array, source **out)
{
    foreign_source *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (foreign_source){.file = file, .array = array};
    s->base.read = read_box;
    s->base.decodes = true;
    s->base.decodes_whole = array->ndim > 0 && array->chunk_shape[0] > 0;
    if (file->is_fill) s->base.is_fill = is_fill;
    s->base.first_axis_fastest = array->first_axis_fastest && array->ndim > 1;
    s->base.shape.ndim = array->ndim;
    s->base.shape.item_size = array->item_size;
    s->base.dtype = cli_copy_text(array->dtype);
    transfer_neutral(s->base.align, s->base.stretch);
    for (int d = 0; d < array->ndim; d++) {
        s->base.shape.shape[d] = array->shape[d];
        s->base.axes[d] = d + 1;
        if (array->chunk_shape[d] > 0) s->base.align[d] = array->chunk_shape[d];
    }
    if (!s->base.dtype) {
        source_close(&s->base);
        return CLI_IO;
    }
    *out = &s->base;
    return CLI_OK;
}
