/* Room: engine/jobs. What each reduction is: how numbers are added to a cell, cells to each
 * other, and which result they make. It knows no arrays. */
#include "engine/jobs/cells.h"

#include <math.h>
#include <string.h>

/* ---- Counting -------------------------------------------------------------- */

/* Whether numbers are added as doubles, whatever they are. */
static bool adds_doubles(const cv_number_type *type, caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: break;
    case CATERVA_REDUCTION_SUM: return type->number_class == CV_REAL;
    case CATERVA_REDUCTION_MEAN: return true;
    }
    return false;
}

static void add_real(cv_cell *c, double value)
{
    cv_real_sum sum = {c->value.f, c->rest};
    cv_real_sum_add(&sum, value);
    c->value.f = sum.sum;
    c->rest = sum.rest;
}

static bool goes_before(cv_number_class number_class, cv_wide a, cv_wide b)
{
    switch (number_class) {
    case CV_INT: return a.i < b.i;
    case CV_UINT: return a.u < b.u;
    case CV_REAL: break;
    }
    return a.f < b.f;
}

/* What one value makes of an extreme, or of a sum of n of them. */
static void fold(cv_cell *c, const cv_number_type *type, caterva_reduction what,
                 cv_wide value, int64_t n)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
        if (c->n == 0 || goes_before(type->number_class, value, c->value)) c->value = value;
        break;
    case CATERVA_REDUCTION_MAX:
        if (c->n == 0 || goes_before(type->number_class, c->value, value)) c->value = value;
        break;
    case CATERVA_REDUCTION_SUM:
        if (type->number_class == CV_REAL)
            add_real(c, value.f * (double)n);
        else
            c->value.u += value.u * (uint64_t)n; /* wraps, as NumPy's does */
        break;
    case CATERVA_REDUCTION_MEAN:
        cv_numbers_to_real(type->number_class, &value, 1);
        add_real(c, value.f * (double)n);
        break;
    }
    c->n += n;
}

void cv_cell_repeat(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                    cv_wide value, int64_t n)
{
    fold(cell, type, what, value, n);
}

void cv_cell_run(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                 cv_wide *values, int64_t n)
{
    n = cv_numbers_drop_nan(type, values, n);
    if (adds_doubles(type, what)) {
        cv_numbers_to_real(type->number_class, values, n);
        if (n > 0) add_real(cell, cv_numbers_sum(values, n));
        cell->n += n;
        return;
    }
    for (int64_t i = 0; i < n; i++) fold(cell, type, what, values[i], 1);
}

void cv_cells_each(cv_cell *cells, const cv_number_type *type, caterva_reduction what,
                   cv_wide *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (cv_numbers_drop_nan(type, &values[i], 1) == 1)
            fold(&cells[i], type, what, values[i], 1);
}

/* ---- Together -------------------------------------------------------------- */

void cv_cell_add(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                 const cv_cell *from)
{
    if (from->n == 0) return;
    if (adds_doubles(type, what)) {
        add_real(cell, from->value.f);
        cell->rest += from->rest;
    } else {
        fold(cell, type, what, from->value, 1);
        cell->n--;
    }
    cell->n += from->n;
}

static cv_cell cell_of(const cv_tally *tally, const cv_number_type *type,
                       caterva_reduction what)
{
    cv_cell cell = {.n = tally->n};
    bool real = type->number_class == CV_REAL;
    switch (what) {
    case CATERVA_REDUCTION_MIN: cell.value = tally->min; break;
    case CATERVA_REDUCTION_MAX: cell.value = tally->max; break;
    case CATERVA_REDUCTION_SUM:
        if (!real) cell.value.u = tally->exact.low;
        break;
    case CATERVA_REDUCTION_MEAN:
        if (!real) cell.value.f = cv_tally_mean(tally, type) * (double)tally->n;
        break;
    }
    if (real && !cv_reduce_gives_item(what)) {
        cell.value.f = tally->real.sum;
        cell.rest = tally->real.rest;
    }
    return cell;
}

void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from)
{
    if (from->n == 0) return;
    const cv_cell counted = cell_of(from, type, what);
    cv_cell_add(cell, type, what, &counted);
}

/* ---- Results --------------------------------------------------------------- */

bool cv_reduce_gives_item(caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: return true;
    case CATERVA_REDUCTION_SUM:
    case CATERVA_REDUCTION_MEAN: break;
    }
    return false;
}

int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what)
{
    return cv_reduce_gives_item(what) ? type->item_size : 8;
}

void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst)
{
    if (cv_reduce_gives_item(what))
        cv_number_store(type, value, dst);
    else
        memcpy(dst, &value, sizeof value);
}

/* Where there is a NaN or NaT that is not skipped. */
static cv_wide nan_of(const cv_number_type *type)
{
    return type->is_time ? (cv_wide){.i = INT64_MIN} : (cv_wide){.f = (double)NAN};
}

cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX:
    case CATERVA_REDUCTION_MEAN: break;
    case CATERVA_REDUCTION_SUM: return (cv_wide){.u = 0};
    }
    return nan_of(type);
}

static double real_sum_of(const cv_cell *c)
{
    cv_real_sum sum = {c->value.f, c->rest};
    return cv_real_sum_value(&sum);
}

cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan)
{
    bool saw_nan = cell->n < n_items;
    if (saw_nan && !skip_nan) return nan_of(type);
    if (cell->n == 0) return cv_reduce_nothing(type, what);
    switch (what) {
    case CATERVA_REDUCTION_MIN:
    case CATERVA_REDUCTION_MAX: return cell->value;
    case CATERVA_REDUCTION_SUM:
        return adds_doubles(type, what) ? (cv_wide){.f = real_sum_of(cell)} : cell->value;
    case CATERVA_REDUCTION_MEAN: return (cv_wide){.f = real_sum_of(cell) / (double)cell->n};
    }
    return nan_of(type);
}

static cv_wide sum_of(const cv_tally *tally, const cv_number_type *type)
{
    if (type->number_class != CV_REAL) return (cv_wide){.u = tally->exact.low};
    return (cv_wide){.f = cv_real_sum_value(&tally->real)};
}

cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan)
{
    if (tally->n_nan > 0 && !skip_nan) return nan_of(type);
    if (tally->n == 0) return cv_reduce_nothing(type, what);
    switch (what) {
    case CATERVA_REDUCTION_MIN: return tally->min;
    case CATERVA_REDUCTION_MAX: return tally->max;
    case CATERVA_REDUCTION_SUM: return sum_of(tally, type);
    case CATERVA_REDUCTION_MEAN: return (cv_wide){.f = cv_tally_mean(tally, type)};
    }
    return nan_of(type);
}
