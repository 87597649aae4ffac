/* Room: cli/sources. Chunks of Blosc2 that move between arrays and files of other formats without
 * being decoded and encoded. */
#include "sources/described.h"
#include "sources/foreign_sink.h"
#include "sources/foreign_source.h"
#include "terminal/progress.h"

#include <caterva_upkeep.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>

bool foreign_can_move(const cli_args *args, const foreign_file *file, const foreign_node *node)
{
    return file->read_stored && node->ndim > 0 && node->block_shape[0] > 0 && !args->chunks &&
           !args->blocks && !args->codec && !args->filters && args->level < 0 &&
           !args->astype && !args->view_dtype && !args->select && !args->metalayer;
}

static int64_t count_chunks(const foreign_node *node)
{
    int64_t n = 1;
    for (int d = 0; d < node->ndim; d++)
        n *= (node->shape[d] + node->chunk_shape[d] - 1) / node->chunk_shape[d];
    return n;
}

/* Sets the box of chunk `index`, which counts in C order, and returns its bytes. */
static int64_t box_of_chunk(const foreign_node *node, int64_t index, box *b)
{
    for (int d = node->ndim - 1; d >= 0; d--) {
        int64_t chunk = node->chunk_shape[d], n = (node->shape[d] + chunk - 1) / chunk;
        b->start[d] = index % n * chunk;
        b->stop[d] = b->start[d] + chunk < node->shape[d] ? b->start[d] + chunk : node->shape[d];
        index /= n;
    }
    return box_items(b, node->ndim) * node->item_size;
}

/* ---- To an array ------------------------------------------------------------------------ */

static cli_exit copy_box(foreign_file *file, const foreign_node *node, const box *b,
                         int64_t size, caterva_array *to, const char *path)
{
    caterva_error err;
    void *items = cli_alloc((size_t)size);
    cli_exit code = items ? file->read(file, node, b->start, b->stop, items) : CLI_IO;
    if (code == CLI_OK &&
        caterva_write(to, b->start, b->stop, items, (size_t)size, &err) != CATERVA_OK)
        code = cli_fail_array(path, &err);
    free(items);
    return code;
}

static cli_exit move_chunk(foreign_file *file, const foreign_node *node, int64_t index,
                           caterva_array *to, const char *path, int64_t *size)
{
    box b;
    void *chunk = NULL;
    size_t stored = 0;
    caterva_error err;
    *size = box_of_chunk(node, index, &b);
    CLI_TRY(file->read_stored(file, node, index, &chunk, &stored));
    bool moved = stored > 0 && caterva_chunk_write_undecoded(to, index, chunk, stored, &err) ==
                                   CATERVA_OK;
    free(chunk);
    return moved ? CLI_OK : copy_box(file, node, &b, *size, to, path);
}

/* Chunks are allocated and released one after the other: glibc shall keep their pages meanwhile. */
static void keep_pages(void)
{
#ifdef M_MMAP_THRESHOLD
    (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

cli_exit foreign_move_in(const cli_args *args, foreign_file *file, const origin *like,
                         const char *path)
{
    source *from;
    progress bar;
    caterva_array *to = NULL;
    const foreign_node *node = like->node;
    keep_pages();
    CLI_TRY(source_of_foreign(file, node, &from));
    cli_exit code = sink_make_array(args, path, false, from, like, &to);
    source_close(from);
    if (code != CLI_OK) return code;
    int64_t n = count_chunks(node), size;
    progress_start(&bar, args, info_of(to)->data_bytes);
    for (int64_t i = 0; i < n && code == CLI_OK; i++) {
        code = cli_interrupted() ? CLI_INTERRUPTED : move_chunk(file, node, i, to, path, &size);
        if (code == CLI_OK) progress_step(&bar, bar.done + size);
    }
    code = cli_finish_array(to, path, code);
    progress_end(&bar);
    return code;
}

/* ---- From an array ---------------------------------------------------------------------- */

cli_exit foreign_move_out(const cli_args *args, foreign_writer *writer,
                          const foreign_node *node, caterva_array *array)
{
    box b;
    progress bar;
    caterva_error err;
    const caterva_info *info = info_of(array);
    size_t room = (size_t)info->chunk_bytes + 32, size;
    void *chunk = cli_alloc(room);
    cli_exit code = chunk ? CLI_OK : CLI_IO;
    progress_start(&bar, args, info->data_bytes);
    for (int64_t i = 0; i < info->n_chunks && code == CLI_OK; i++) {
        if (caterva_chunk_read_stored(array, i, chunk, room, &size, &err) != CATERVA_OK)
            code = cli_fail_array(node->key, &err);
        else
            code = writer->write_stored(writer, node, i, chunk, size);
        if (code == CLI_OK && cli_interrupted()) code = CLI_INTERRUPTED;
        progress_step(&bar, bar.done + box_of_chunk(node, i, &b));
    }
    progress_end(&bar);
    free(chunk);
    return code;
}
