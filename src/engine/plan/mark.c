/* Room: engine/plan. The mark of one block: boxes joined while they make a box, bits when they
 * do not. */
#include "engine/plan/mark.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"

#include <string.h>

void cv_mark_free(cv_mark *mark)
{
    cv_free(mark->box);
    cv_free(mark->bits);
    *mark = (cv_mark){CV_MARK_NONE, NULL, NULL};
}

/* ---- Blocks ------------------------------------------------------------------------ */

bool cv_block_valid(const cv_grid *grid, int64_t chunk, int64_t block, int64_t *shape)
{
    int64_t at[CV_MAX_DIMS], in[CV_MAX_DIMS];
    cv_grid_chunk_index(grid, chunk, at);
    cv_grid_block_index(grid, block, in);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t start = at[d] * grid->chunk_shape[d];
        int64_t items = cv_min_i64(grid->chunk_shape[d], grid->shape[d] - start);
        shape[d] = cv_min_i64(grid->block_shape[d], items - in[d] * grid->block_shape[d]);
        if (shape[d] <= 0) return false;
    }
    return true;
}

static int64_t block_items(const cv_grid *grid)
{
    return grid->block_bytes / grid->item_size;
}

size_t cv_mark_bits_size(const cv_grid *grid) { return (size_t)(block_items(grid) + 7) / 8; }

static bool get_bit(const uint8_t *bits, int64_t i) { return bits[i / 8] >> i % 8 & 1; }

static void set_bit(uint8_t *bits, int64_t i) { bits[i / 8] |= (uint8_t)(1u << i % 8); }

/* Calls `line` with the first item and the length of each line of the box along the last
 * axis. */
typedef void (*line_fn)(void *context, int64_t first, int64_t n);

static void each_line(const cv_grid *grid, const int32_t *box, line_fn line, void *context)
{
    int ndim = grid->ndim, last = ndim - 1;
    int64_t at[CV_MAX_DIMS];
    for (int d = 0; d < ndim; d++) at[d] = box[d];
    int64_t length = ndim == 0 ? 1 : box[ndim + last] - box[last];
    while (true) {
        int64_t first = 0;
        for (int d = 0; d < ndim; d++)
            first += at[d] * (grid->item_strides[d] / grid->item_size);
        line(context, first, length);
        int d = last - 1;
        while (d >= 0 && ++at[d] == box[ndim + d]) {
            at[d] = box[d];
            d--;
        }
        if (d < 0) return;
    }
}

static void set_line(void *context, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++) set_bit(context, i);
}

static void set_box_bits(const cv_grid *grid, const int32_t *box, uint8_t *bits)
{
    each_line(grid, box, set_line, bits);
}

/* The box that a block is, as far as it lies in the array. */
static void whole_box(const cv_grid *grid, const int64_t *valid, int32_t *box)
{
    for (int d = 0; d < grid->ndim; d++) {
        box[d] = 0;
        box[grid->ndim + d] = (int32_t)valid[d];
    }
}

/* Are all items of the array marked in these bits? */
typedef struct meeting {
    const uint8_t *bits;
    bool wanted;
    bool found;
} meeting;

static void find_in_line(void *context, int64_t first, int64_t n)
{
    meeting *m = context;
    for (int64_t i = first; i < first + n && !m->found; i++)
        m->found = get_bit(m->bits, i) == m->wanted;
}

static bool has_bit(const cv_grid *grid, const int32_t *box, const uint8_t *bits, bool wanted)
{
    meeting m = {bits, wanted, false};
    each_line(grid, box, find_in_line, &m);
    return m.found;
}

/* ---- Marking ------------------------------------------------------------------------ */

void cv_mark_all(cv_mark *mark)
{
    cv_mark_free(mark);
    mark->kind = CV_MARK_ALL;
}

static cv_status to_bits(cv_mark *mark, const cv_grid *grid, cv_error *err)
{
    if (mark->kind == CV_MARK_ITEMS) return CV_OK;
    uint8_t *bits = cv_calloc(1, cv_mark_bits_size(grid));
    if (!bits) return cv_fail_memory(err, cv_mark_bits_size(grid), "marks");
    if (mark->kind == CV_MARK_BOX) set_box_bits(grid, mark->box, bits);
    cv_free(mark->box); /* it has no bits yet */
    mark->box = NULL;
    mark->bits = bits;
    mark->kind = CV_MARK_ITEMS;
    return CV_OK;
}

static bool is_inside(int ndim, const int32_t *box, const int32_t *other)
{
    for (int d = 0; d < ndim; d++)
        if (box[d] < other[d] || box[ndim + d] > other[ndim + d]) return false;
    return true;
}

/* Makes `old` the box that both are together, if they are one: they differ on one axis
 * only, and leave no gap there; or one is in the other. */
static bool join_boxes(int ndim, const int32_t *box, int32_t *old)
{
    int differs = -1;
    if (is_inside(ndim, box, old)) return true;
    if (is_inside(ndim, old, box)) {
        memcpy(old, box, (size_t)ndim * 2 * sizeof box[0]);
        return true;
    }
    for (int d = 0; d < ndim; d++) {
        if (box[d] == old[d] && box[ndim + d] == old[ndim + d]) continue;
        if (differs >= 0 || box[d] > old[ndim + d] || old[d] > box[ndim + d]) return false;
        differs = d;
    }
    old[differs] = (int32_t)cv_min_i64(old[differs], box[differs]);
    old[ndim + differs] = (int32_t)cv_max_i64(old[ndim + differs], box[ndim + differs]);
    return true;
}

static cv_status set_box(cv_mark *mark, int ndim, const int32_t *box, cv_error *err)
{
    size_t size = (size_t)ndim * 2 * sizeof box[0];
    mark->box = cv_malloc(size);
    if (!mark->box) return cv_fail_memory(err, size, "marks");
    memcpy(mark->box, box, size);
    mark->kind = CV_MARK_BOX;
    return CV_OK;
}

static void settle(cv_mark *mark, const cv_mark_place *place)
{
    int32_t whole[2 * CV_MAX_DIMS];
    const cv_grid *grid = place->grid;
    whole_box(grid, place->valid, whole);
    if (mark->kind == CV_MARK_BOX ? is_inside(grid->ndim, whole, mark->box)
                                  : !has_bit(grid, whole, mark->bits, false))
        cv_mark_all(mark);
}

cv_status cv_mark_add_box(cv_mark *mark, const cv_mark_place *place, const int32_t *box,
                          cv_error *err)
{
    const cv_grid *grid = place->grid;
    if (mark->kind == CV_MARK_ALL) return CV_OK;
    if (mark->kind == CV_MARK_NONE) CV_TRY(set_box(mark, grid->ndim, box, err));
    if (mark->kind != CV_MARK_BOX || !join_boxes(grid->ndim, box, mark->box)) {
        CV_TRY(to_bits(mark, grid, err));
        set_box_bits(grid, box, mark->bits);
    }
    settle(mark, place);
    return CV_OK;
}

cv_status cv_mark_add_bytes(cv_mark *mark, const cv_mark_place *place, const uint8_t *bytes,
                            cv_error *err)
{
    if (mark->kind == CV_MARK_ALL) return CV_OK;
    CV_TRY(to_bits(mark, place->grid, err));
    for (int64_t i = 0, n = block_items(place->grid); i < n; i++)
        if (bytes[i]) set_bit(mark->bits, i);
    settle(mark, place);
    return CV_OK;
}

typedef struct copying {
    const uint8_t *src;
    uint8_t *dst;
} copying;

static void copy_bits(void *context, int64_t first, int64_t n)
{
    const copying *c = context;
    for (int64_t i = first; i < first + n; i++)
        if (get_bit(c->src, i)) set_bit(c->dst, i);
}

cv_status cv_mark_add_bits(cv_mark *mark, const cv_mark_place *place, const uint8_t *bits,
                           cv_error *err)
{
    int32_t whole[2 * CV_MAX_DIMS];
    whole_box(place->grid, place->valid, whole);
    CV_TRY(to_bits(mark, place->grid, err));
    copying c = {bits, mark->bits};
    each_line(place->grid, whole, copy_bits, &c);
    settle(mark, place);
    return CV_OK;
}

/* ---- Asking ------------------------------------------------------------------------- */

static bool boxes_meet(int ndim, const int32_t *a, const int32_t *b)
{
    for (int d = 0; d < ndim; d++)
        if (a[d] >= b[ndim + d] || b[d] >= a[ndim + d]) return false;
    return true;
}

bool cv_marks_meet(const cv_grid *grid, const cv_mark *a, const cv_mark *b)
{
    if (a->kind == CV_MARK_NONE || b->kind == CV_MARK_NONE) return false;
    if (a->kind == CV_MARK_ALL || b->kind == CV_MARK_ALL) return true;
    if (a->kind == CV_MARK_BOX && b->kind == CV_MARK_BOX)
        return boxes_meet(grid->ndim, a->box, b->box);
    if (a->kind == CV_MARK_BOX) return cv_marks_meet(grid, b, a);
    if (b->kind == CV_MARK_BOX) return has_bit(grid, b->box, a->bits, true);
    for (size_t i = 0; i < cv_mark_bits_size(grid); i++)
        if (a->bits[i] & b->bits[i]) return true;
    return false;
}

static void copy_items(const cv_grid *grid, const uint8_t *bits, const uint8_t *src,
                       uint8_t *dst)
{
    size_t size = (size_t)grid->item_size;
    for (int64_t i = 0, n = block_items(grid); i < n; i++)
        if (get_bit(bits, i)) memcpy(dst + (size_t)i * size, src + (size_t)i * size, size);
}

static void copy_marked_box(const cv_grid *grid, const int32_t *box, const uint8_t *src,
                            uint8_t *dst)
{
    int64_t shape[CV_MAX_DIMS], pos = 0;
    for (int d = 0; d < grid->ndim; d++) {
        shape[d] = box[grid->ndim + d] - box[d];
        pos += box[d] * grid->item_strides[d];
    }
    cv_copy_box(grid->ndim, shape, grid->item_size,
                (cv_strided){(uint8_t *)src + pos, grid->item_strides},
                (cv_strided){dst + pos, grid->item_strides});
}

void cv_mark_copy(const cv_grid *grid, const cv_mark *mark, const uint8_t *src, uint8_t *dst)
{
    if (mark->kind == CV_MARK_ALL) memcpy(dst, src, (size_t)grid->block_bytes);
    if (mark->kind == CV_MARK_BOX) copy_marked_box(grid, mark->box, src, dst);
    if (mark->kind == CV_MARK_ITEMS) copy_items(grid, mark->bits, src, dst);
}

typedef struct comparing {
    int64_t item_size;
    const uint8_t *a, *b;
    bool differ;
} comparing;

static void compare_line(void *context, int64_t first, int64_t n)
{
    comparing *c = context;
    int64_t pos = first * c->item_size;
    size_t size = (size_t)(n * c->item_size);
    c->differ = c->differ || memcmp(c->a + pos, c->b + pos, size) != 0;
}

bool cv_block_same(const cv_mark_place *place, const uint8_t *a, const uint8_t *b)
{
    int32_t whole[2 * CV_MAX_DIMS];
    comparing c = {place->grid->item_size, a, b, false};
    whole_box(place->grid, place->valid, whole);
    each_line(place->grid, whole, compare_line, &c);
    return !c.differ;
}
