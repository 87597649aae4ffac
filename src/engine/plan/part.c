/* Room: engine/plan. Gathers and scatters. Trailing axes in even steps are boxes and
 * go to copy.c; a list on the last axis has loops typed by item size; all other
 * axes are an odometer's. */
#include "engine/plan/part.h"

#include "engine/items/copy.h"

#include <string.h>

/* Where both sides stand while an odometer runs over the outer axes. */
typedef struct cursor {
    const cv_part *part;
    cv_side from, to;
    int n_outer;
    int64_t index[CV_MAX_DIMS];
    const uint8_t *src;
    uint8_t *dst;
} cursor;

static int64_t offset(const cv_part *part, cv_side side, int axis, int64_t i)
{
    const cv_pick *picks = part->picks[axis];
    return (picks ? picks[i].at[side] : i) * part->strides[side][axis];
}

/* Moves along one axis from item i to item j. */
static void move(cursor *c, int axis, int64_t i, int64_t j)
{
    c->src += offset(c->part, c->from, axis, j) - offset(c->part, c->from, axis, i);
    c->dst += offset(c->part, c->to, axis, j) - offset(c->part, c->to, axis, i);
    c->index[axis] = j;
}

static bool next(cursor *c)
{
    for (int d = c->n_outer - 1; d >= 0; d--) {
        int64_t i = c->index[d];
        if (i + 1 < c->part->n[d]) {
            move(c, d, i, i + 1);
            return true;
        }
        move(c, d, i, 0);
    }
    return false;
}

/* ---- A list on the last axis -------------------------------------------- */

typedef struct item16 {
    uint64_t half[2];
} item16;

#define COPY_PICKS(type)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                        \
        type item;                                                                           \
        memcpy(&item, c->src + picks[i].at[c->from] * src_step, sizeof item);                \
        memcpy(c->dst + picks[i].at[c->to] * dst_step, &item, sizeof item);                  \
    }                                                                                        \
    return

static void copy_picks(const cursor *c)
{
    const cv_part *part = c->part;
    int last = part->ndim - 1;
    const cv_pick *picks = part->picks[last];
    int64_t n = part->n[last];
    int64_t src_step = part->strides[c->from][last], dst_step = part->strides[c->to][last];
    switch (part->item_size) {
    case 1: COPY_PICKS(uint8_t);
    case 2: COPY_PICKS(uint16_t);
    case 4: COPY_PICKS(uint32_t);
    case 8: COPY_PICKS(uint64_t);
    case 16: COPY_PICKS(item16);
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(c->dst + picks[i].at[c->to] * dst_step,
                   c->src + picks[i].at[c->from] * src_step, (size_t)part->item_size);
    }
}

/* ---- A mask --------------------------------------------------------------- */

/* One side, as a line of items. */
typedef struct track {
    uint8_t *data;
    int64_t step;
} track;

/* Without a branch for each item: what is not selected is overwritten by the next. */
#define GATHER_MASK(type)                                                                    \
    for (int64_t i = 0, k = 0; k < n; i++) {                                                 \
        type item;                                                                           \
        memcpy(&item, block.data + i * block.step, sizeof item);                             \
        memcpy(buffer.data + k * buffer.step, &item, sizeof item);                           \
        k += mask[i] != 0;                                                                   \
    }                                                                                        \
    return

static void gather_mask(const cv_part *part, track block, track buffer)
{
    const uint8_t *mask = part->mask;
    int64_t n = part->n[0];
    switch (part->item_size) {
    case 1: GATHER_MASK(uint8_t);
    case 2: GATHER_MASK(uint16_t);
    case 4: GATHER_MASK(uint32_t);
    case 8: GATHER_MASK(uint64_t);
    default:
        for (int64_t i = 0, k = 0; k < n; i++)
            if (mask[i])
                memcpy(buffer.data + k++ * buffer.step, block.data + i * block.step,
                       (size_t)part->item_size);
    }
}

static void scatter_mask(const cv_part *part, track buffer, track block)
{
    for (int64_t i = 0, k = 0; k < part->n[0]; i++)
        if (part->mask[i])
            memcpy(block.data + i * block.step, buffer.data + k++ * buffer.step,
                   (size_t)part->item_size);
}

static void copy_masked(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst)
{
    cv_side to = from == CV_IN_BLOCK ? CV_IN_BUFFER : CV_IN_BLOCK;
    track a = {(uint8_t *)src + part->pos[from], part->strides[from][0]};
    track b = {dst + part->pos[to], part->strides[to][0]};
    if (from == CV_IN_BLOCK)
        gather_mask(part, a, b);
    else
        scatter_mask(part, a, b);
}

/* ---- The copy ----------------------------------------------------------- */

void cv_part_copy(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst)
{
    if (part->mask) {
        copy_masked(part, from, src, dst);
        return;
    }
    cv_side to = from == CV_IN_BLOCK ? CV_IN_BUFFER : CV_IN_BLOCK;
    int inner = part->ndim; /* axes [inner, ndim) are in even steps */
    while (inner > 0 && !part->picks[inner - 1]) inner--;
    bool list_last = inner > 0 && inner == part->ndim;

    cursor c = {.part = part, .from = from, .to = to};
    c.n_outer = list_last ? inner - 1 : inner;
    c.src = src + part->pos[from];
    c.dst = dst + part->pos[to];
    for (int d = 0; d < c.n_outer; d++) {
        c.src += offset(part, from, d, 0);
        c.dst += offset(part, to, d, 0);
    }
    do {
        if (list_last) {
            copy_picks(&c);
        } else {
            cv_strided a = {(uint8_t *)c.src, part->strides[from] + inner};
            cv_strided b = {c.dst, part->strides[to] + inner};
            cv_copy_box(part->ndim - inner, part->n + inner, part->item_size, a, b);
        }
    } while (next(&c));
}

/* Steps of no bytes lead from the item to itself. */
void cv_part_fill(const cv_part *part, const uint8_t *item, uint8_t *dst)
{
    bool even = !part->mask;
    for (int d = 0; d < part->ndim; d++) even = even && !part->picks[d];
    if (even) {
        cv_strided to = {dst + part->pos[CV_IN_BUFFER], part->strides[CV_IN_BUFFER]};
        cv_fill_box(part->ndim, part->n, part->item_size, item, to);
        return;
    }
    cv_part flat = *part;
    flat.pos[CV_IN_BLOCK] = 0;
    memset(flat.strides[CV_IN_BLOCK], 0, sizeof flat.strides[CV_IN_BLOCK]);
    cv_part_copy(&flat, CV_IN_BLOCK, item, dst);
}
