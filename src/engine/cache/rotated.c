/* Room: engine/cache. The geometry of rotated blocks; copy.c moves the items. */
#include "engine/cache/rotated.h"

#include "engine/items/copy.h"

static int64_t rows_of(const cv_grid *grid)
{
    return grid->block_bytes / grid->item_size / grid->block_shape[grid->ndim - 1];
}

bool cv_rotated_is_better(const cv_grid *grid, const cv_block_job *block)
{
    enum { SHORT = 8, FEW = 128 }; /* rotating costs more than it can win (measured) */
    if (grid->ndim < 2) return false;
    int last = grid->ndim - 1;
    if (block->shape[last] != 1 || grid->block_shape[last] < SHORT) return false;
    int64_t n = 1;
    for (int d = 0; d < last; d++) n *= block->shape[d];
    return n >= FEW && 2 * n >= rows_of(grid);
}

void cv_rotated_strides(const cv_grid *grid, int64_t strides[CV_MAX_DIMS])
{
    int last = grid->ndim - 1;
    for (int d = 0; d < last; d++)
        strides[d] = grid->item_strides[d] / grid->block_shape[last];
    strides[last] = rows_of(grid) * grid->item_size;
}

int64_t cv_rotated_pos(const cv_grid *grid, int64_t pos)
{
    int64_t item = pos / grid->item_size, length = grid->block_shape[grid->ndim - 1];
    return (item % length * rows_of(grid) + item / length) * grid->item_size;
}

static void copy_block(const cv_grid *grid, cv_strided from, cv_strided to)
{
    int64_t shape[CV_MAX_DIMS];
    for (int d = 0; d < grid->ndim; d++) shape[d] = grid->block_shape[d];
    cv_copy_box(grid->ndim, shape, grid->item_size, from, to);
}

void cv_rotate(const cv_grid *grid, const uint8_t *block, uint8_t *rotated)
{
    int64_t strides[CV_MAX_DIMS];
    cv_rotated_strides(grid, strides);
    copy_block(grid, (cv_strided){(uint8_t *)block, grid->item_strides},
               (cv_strided){rotated, strides});
}

void cv_rotate_back(const cv_grid *grid, const uint8_t *rotated, uint8_t *block)
{
    int64_t strides[CV_MAX_DIMS];
    cv_rotated_strides(grid, strides);
    copy_block(grid, (cv_strided){(uint8_t *)rotated, strides},
               (cv_strided){block, grid->item_strides});
}
