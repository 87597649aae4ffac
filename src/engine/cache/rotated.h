/* Blocks whose last axis comes first. What a read wants one item thick along the
 * last axis lies scattered in a block, one item in each line of memory; rotated, it
 * lies in one piece. A block that enters the cache through such a read enters it
 * rotated, since the next read is likely to be its neighbour.
 *
 *     a block of 2 x 3:  a0 a1 a2 b0 b1 b2      rotated:  a0 b0 a1 b1 a2 b2
 */
#ifndef CV_ENGINE_ROTATED_H
#define CV_ENGINE_ROTATED_H

#include "engine/plan/plan.h"

/* True for a read of this part of a block that is better served by a rotated one. */
bool cv_rotated_is_better(const cv_grid *grid, const cv_block_job *block);

/* A block's strides when it is rotated, and where byte `pos` of it then is. */
void cv_rotated_strides(const cv_grid *grid, int64_t strides[CV_MAX_DIMS]);
int64_t cv_rotated_pos(const cv_grid *grid, int64_t pos);

/* A whole block, one way and the other. The two may not overlap. */
void cv_rotate(const cv_grid *grid, const uint8_t *block, uint8_t *rotated);
void cv_rotate_back(const cv_grid *grid, const uint8_t *rotated, uint8_t *block);

#endif
