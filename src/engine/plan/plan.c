/* Room: engine/plan. Plans boxes: arithmetic only. Divisions take much of the time of a small
 * read, so thin boxes avoid them. */
#include "engine/plan/plan.h"

#include "base/arith.h"

static cv_status check_box(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                           cv_error *err)
{
    for (int d = 0; d < grid->ndim; d++) {
        if (start[d] < 0 || stop[d] > grid->shape[d] || start[d] > stop[d])
            return cv_fail(err, CATERVA_ERANGE, -1,
                           "box [%lld, %lld) on axis %d does not lie in [0, %lld)",
                           (long long)start[d], (long long)stop[d], d,
                           (long long)grid->shape[d]);
    }
    return CV_OK;
}

static bool is_empty(int ndim, const int64_t *start, const int64_t *stop)
{
    for (int d = 0; d < ndim; d++)
        if (start[d] == stop[d]) return true;
    return false;
}

cv_status cv_plan_box(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                      cv_plan *out, cv_error *err)
{
    CV_TRY(check_box(grid, start, stop, err));
    if (is_empty(grid->ndim, start, stop)) { /* products of other axes may overflow */
        *out = (cv_plan){.grid = grid};
        return CV_OK;
    }
    out->grid = grid;
    out->n_chunks = 1;
    out->n_items = 1;
    int64_t stride = grid->item_size; /* no overflow: the box is inside the shape */
    for (int d = grid->ndim - 1; d >= 0; d--) {
        int64_t length = stop[d] - start[d];
        out->start[d] = start[d];
        out->stop[d] = stop[d];
        out->buffer_strides[d] = stride;
        out->first_chunk[d] = start[d] / grid->chunk_shape[d];
        out->chunk_counts[d] =
            length == 1 ? 1 : (stop[d] - 1) / grid->chunk_shape[d] - out->first_chunk[d] + 1;
        out->n_chunks *= out->chunk_counts[d];
        out->n_items *= length;
        stride *= length;
    }
    return CV_OK;
}

void cv_plan_chunk(const cv_plan *plan, int64_t k, cv_chunk_job *out)
{
    const cv_grid *g = plan->grid;
    out->chunk = 0;
    out->n_blocks = 1;
    out->buffer_pos = 0;
    for (int d = g->ndim - 1; d >= 0; d--) {
        int64_t index = plan->first_chunk[d];
        if (plan->chunk_counts[d] > 1) {
            index += k % plan->chunk_counts[d];
            k /= plan->chunk_counts[d];
        }
        int64_t origin = index * g->chunk_shape[d];
        int64_t lo = cv_max_i64(plan->start[d] - origin, 0);
        int64_t hi = cv_min_i64(plan->stop[d] - origin, g->chunk_shape[d]);
        out->chunk += index * g->chunk_strides[d];
        out->lo[d] = lo;
        out->hi[d] = hi;
        out->valid[d] = cv_min_i64(g->shape[d] - origin, g->chunk_shape[d]);
        out->first_block[d] = lo < g->block_shape[d] ? 0 : lo / g->block_shape[d];
        out->block_counts[d] =
            hi - lo == 1 ? 1 : (hi - 1) / g->block_shape[d] - out->first_block[d] + 1;
        out->n_blocks *= out->block_counts[d];
        out->buffer_pos += (origin + lo - plan->start[d]) * plan->buffer_strides[d];
    }
}

void cv_plan_block(const cv_plan *plan, const cv_chunk_job *job, int64_t j, cv_block_job *out)
{
    const cv_grid *g = plan->grid;
    out->block = 0;
    out->block_pos = 0;
    out->buffer_pos = job->buffer_pos;
    out->whole = true;
    out->covers = true;
    out->ends = true;
    for (int d = g->ndim - 1; d >= 0; d--) {
        int64_t index = job->first_block[d];
        if (job->block_counts[d] > 1) {
            index += j % job->block_counts[d];
            j /= job->block_counts[d];
        }
        int64_t length = g->block_shape[d];
        int64_t origin = index * length;
        int64_t lo = cv_max_i64(job->lo[d] - origin, 0);
        int64_t hi = cv_min_i64(job->hi[d] - origin, length);
        out->block += index * g->block_strides[d];
        out->shape[d] = hi - lo;
        out->block_pos += lo * g->item_strides[d];
        out->buffer_pos += (origin + lo - job->lo[d]) * plan->buffer_strides[d];
        out->whole = out->whole && hi - lo == length;
        out->ends = out->ends && hi >= cv_min_i64(job->valid[d] - origin, length);
        out->covers = out->covers && lo == 0;
    }
    out->covers = out->covers && out->ends;
}

int64_t cv_plan_find_block(const cv_plan *plan, const cv_chunk_job *job, int64_t block)
{
    const cv_grid *g = plan->grid;
    int64_t j = 0;
    for (int d = 0; d < g->ndim; d++) {
        int64_t index = block / g->block_strides[d] - job->first_block[d];
        block %= g->block_strides[d];
        if (index < 0 || index >= job->block_counts[d]) return -1;
        j = j * job->block_counts[d] + index;
    }
    return j;
}

bool cv_chunk_job_covers(const cv_plan *plan, const cv_chunk_job *job)
{
    for (int d = 0; d < plan->grid->ndim; d++)
        if (job->lo[d] != 0 || job->hi[d] != job->valid[d]) return false;
    return true;
}

bool cv_plan_block_contiguous(const cv_plan *plan)
{
    const cv_grid *g = plan->grid;
    for (int d = 0; d < g->ndim; d++)
        if (g->block_shape[d] > 1 && plan->buffer_strides[d] != g->item_strides[d])
            return false;
    return true;
}

/* Along an axis, the box can cut only the first and the last chunk. Totals are products. */
int64_t cv_plan_count_blocks(const cv_plan *plan, int64_t *n_whole)
{
    const cv_grid *g = plan->grid;
    int64_t total = 1;
    *n_whole = plan->n_items > 1 || g->block_bytes == g->item_size;
    if (plan->n_items == 1) return 1;
    for (int d = 0; d < g->ndim; d++) {
        int64_t lo = plan->start[d] % g->chunk_shape[d];
        int64_t hi = (plan->stop[d] - 1) % g->chunk_shape[d] + 1;
        int64_t first = lo / g->block_shape[d];
        int64_t last = (hi - 1) / g->block_shape[d];
        int64_t n = (plan->chunk_counts[d] - 1) * g->block_counts[d] + last - first + 1;
        int64_t cut = (lo % g->block_shape[d] != 0) + (hi % g->block_shape[d] != 0);
        total *= n;
        *n_whole *= cv_max_i64(n - cut, 0);
    }
    return total;
}
