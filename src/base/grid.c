/* Room: base. Computes the grid. Shapes are multiplied only here, with overflow checks. */
#include "base/grid.h"

#include "base/arith.h"

static cv_status init_axis(cv_grid *g, int axis, int64_t shape, int32_t chunk, int32_t block,
                           cv_error *err)
{
    if (shape < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "shape[%d] is %lld, less than 0", axis,
                       (long long)shape);
    bool empty_ok = shape == 0; /* other programs store edges of 0 for empty arrays */
    if (chunk < (empty_ok ? 0 : 1))
        return cv_fail(err, CATERVA_EINVAL, -1, "chunk shape[%d] is %d, less than 1", axis,
                       chunk);
    if (block < (empty_ok ? 0 : 1))
        return cv_fail(err, CATERVA_EINVAL, -1, "block shape[%d] is %d, less than 1", axis,
                       block);
    if (block > chunk)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "block shape[%d] is %d, more than the chunk's %d", axis, block, chunk);

    g->shape[axis] = shape;
    g->chunk_shape[axis] = cv_max_i64(chunk, 1);
    g->block_shape[axis] = cv_max_i64(block, 1);
    g->chunk_counts[axis] = cv_ceil_div(shape, g->chunk_shape[axis]);
    g->block_counts[axis] = cv_ceil_div(g->chunk_shape[axis], g->block_shape[axis]);
    g->ext_chunk_shape[axis] = g->block_counts[axis] * g->block_shape[axis];
    return CV_OK;
}

/* Computes strides and products, last axis first. Returns false if the bytes of a chunk exceed
 * int64. Sets *counts_fit to whether the array's numbers of chunks, items and bytes fit int64. */
static bool multiply(cv_grid *g, bool *counts_fit)
{
    int64_t chunks = 1, blocks = 1, items = 1, block = g->item_size, chunk = g->item_size;
    bool fits = true;
    *counts_fit = true;
    for (int d = g->ndim - 1; d >= 0; d--) {
        g->chunk_strides[d] = chunks;
        g->block_strides[d] = blocks;
        g->item_strides[d] = block;
        *counts_fit = cv_mul_i64(chunks, g->chunk_counts[d], &chunks) && *counts_fit;
        *counts_fit = cv_mul_i64(items, g->shape[d], &items) && *counts_fit;
        fits = cv_mul_i64(blocks, g->block_counts[d], &blocks) && fits;
        fits = cv_mul_i64(block, g->block_shape[d], &block) && fits;
        fits = cv_mul_i64(chunk, g->ext_chunk_shape[d], &chunk) && fits;
    }
    g->n_chunks = chunks;
    g->n_blocks = blocks;
    g->n_items = items;
    g->block_bytes = block;
    g->chunk_bytes = chunk;
    *counts_fit = cv_mul_i64(items, g->item_size, &g->total_bytes) && *counts_fit;
    return fits;
}

static int64_t count_blocks(const cv_grid *g, int d)
{
    int64_t before_last = g->chunk_counts[d] - 1;
    int64_t in_last = g->shape[d] - before_last * g->chunk_shape[d];
    return before_last * g->block_counts[d] + cv_ceil_div(in_last, g->block_shape[d]);
}

static bool has_empty_axis(const cv_grid *g)
{
    for (int d = 0; d < g->ndim; d++)
        if (g->shape[d] == 0) return true;
    return false;
}

cv_status cv_grid_init(cv_grid *grid, int ndim, const int64_t *shape,
                       const int32_t *chunk_shape, const int32_t *block_shape,
                       int64_t item_size, cv_error *err)
{
    if (ndim < 0 || ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d dimensions, the format allows 0 to %d",
                       ndim, CV_MAX_DIMS);
    if (item_size < 1 || item_size > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "item size %lld, the format allows 1 to %lld bytes",
                       (long long)item_size, (long long)CV_MAX_BLOCK_BYTES);

    *grid = (cv_grid){.ndim = ndim, .item_size = (int32_t)item_size};
    for (int d = 0; d < ndim; d++)
        CV_TRY(init_axis(grid, d, shape[d], chunk_shape[d], block_shape[d], err));

    bool counts_fit;
    bool fits = multiply(grid, &counts_fit);
    if (has_empty_axis(grid)) { /* an overflow along other axes is no error */
        grid->n_items = grid->n_chunks = grid->total_bytes = 0;
        counts_fit = true;
    }
    if (!fits || !counts_fit)
        return cv_fail(err, CATERVA_EINVAL, -1, "the %s size does not fit 64 bits",
                       fits ? "shape's" : "chunk shape's");
    if (grid->block_bytes > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a block of %lld bytes, the format allows %lld",
                       (long long)grid->block_bytes, (long long)CV_MAX_BLOCK_BYTES);
    if (grid->chunk_bytes > CV_MAX_CHUNK_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a chunk of %lld bytes, the format allows %lld",
                       (long long)grid->chunk_bytes, (long long)CV_MAX_CHUNK_BYTES);
    if (grid->n_chunks > CV_MAX_CHUNKS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%lld chunks, the format allows %lld",
                       (long long)grid->n_chunks, (long long)CV_MAX_CHUNKS);
    enum { MOST_LISTED = 1 << 26 }; /* lists of them take up to 24 bytes for each */
    if (sizeof(size_t) < sizeof(int64_t) &&
        cv_max_i64(grid->n_chunks, grid->n_blocks) > MOST_LISTED)
        return cv_fail(
            err, CATERVA_EUNSUPPORTED, -1,
            "%lld chunks of %lld blocks: with addresses of 32 bits at most %d of each",
            (long long)grid->n_chunks, (long long)grid->n_blocks, MOST_LISTED);
    grid->n_all_blocks = grid->n_chunks > 0; /* the product stays below 2^59 */
    for (int d = 0; d < ndim && grid->n_chunks > 0; d++)
        grid->n_all_blocks *= count_blocks(grid, d);
    return CV_OK;
}

void cv_grid_chunk_index(const cv_grid *grid, int64_t chunk, int64_t *index)
{
    for (int d = 0; d < grid->ndim; d++) {
        index[d] = chunk / grid->chunk_strides[d];
        chunk %= grid->chunk_strides[d];
    }
}

void cv_grid_block_index(const cv_grid *grid, int64_t block, int64_t *index)
{
    for (int d = 0; d < grid->ndim; d++) {
        index[d] = block / grid->block_strides[d];
        block %= grid->block_strides[d];
    }
}
