/* Room: cli/sources. An open array as a source that continues after damage. Reports each skipped
 * chunk once, however many boxes contain it. */
#include "sources/damage.h"
#include "sources/described.h"
#include "sources/source.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

typedef struct damaged_source {
    source base;
    caterva_array *array;
    const char *path;
    uint8_t *fill; /* or NULL */
    uint8_t *told; /* one bit per chunk; 1: the chunk was reported */
    int64_t n_skipped;
} damaged_source;

/* The library may call this from any thread, but its calls never overlap. */
static void on_damage(void *context, const caterva_damage *damage)
{
    damaged_source *s = context;
    uint8_t bit = (uint8_t)(1u << damage->chunk % 8), *told = &s->told[damage->chunk / 8];
    if (*told & bit) return;
    *told |= bit;
    s->n_skipped++;
    fputs("caterva: skipped: ", stderr);
    damage_print(stderr, s->path, info_of(s->array)->ndim, damage);
}

static cli_exit read_damaged(source *self, const box *b, void *dst)
{
    damaged_source *s = (damaged_source *)self;
    caterva_skip_options options = CATERVA_SKIP_INIT;
    options.fill = s->fill;
    options.on_damage = on_damage;
    options.context = s;
    caterva_selection wanted = CATERVA_SELECTION_INIT;
    wanted.start = b->start;
    wanted.stop = b->stop;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.data = dst;
    buffer.size = (size_t)(box_items(b, self->shape.ndim) * self->shape.item_size);
    caterva_error err;
    if (caterva_read_skipping(s->array, &wanted, &buffer, &options, &err) != CATERVA_OK)
        return cli_fail_array(s->path, &err);
    return CLI_OK;
}

static void close_damaged(source *self)
{
    damaged_source *s = (damaged_source *)self;
    free(s->fill);
    free(s->told);
}

static cli_exit add_memory(damaged_source *s, const uint8_t *fill)
{
    const caterva_info *info = info_of(s->array);
    size_t bits = (size_t)info->n_chunks / 8 + 1;
    s->told = cli_alloc(bits);
    if (!s->told) return CLI_IO;
    memset(s->told, 0, bits);
    if (!fill) return CLI_OK;
    s->fill = cli_alloc((size_t)info->item_size);
    if (!s->fill) return CLI_IO;
    memcpy(s->fill, fill, (size_t)info->item_size);
    return CLI_OK;
}

cli_exit source_of_damaged(caterva_array *array, const char *path, const uint8_t *fill,
                           source **out)
{
    source *sound;
    CLI_TRY(source_of_array(array, path, &sound));
    damaged_source *s = cli_alloc(sizeof *s);
    if (!s) {
        source_close(sound);
        return CLI_IO;
    }
    *s = (damaged_source){.base = *sound, .array = array, .path = path};
    s->base.read = read_damaged;
    s->base.read_selected = NULL;
    s->base.takes_lists = true;
    s->base.close = close_damaged;
    free(sound); /* its members were moved to s->base */
    cli_exit code = add_memory(s, fill);
    if (code != CLI_OK) {
        source_close(&s->base);
        return code;
    }
    *out = &s->base;
    return CLI_OK;
}

int64_t source_skipped(const source *damaged)
{
    return ((const damaged_source *)damaged)->n_skipped;
}
