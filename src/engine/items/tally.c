/* Room: engine/items. Adds up. Integers exactly; floats run by run, the runs with the
 * rounding error carried along; the spread by Chan, Golub and LeVeque's update
 * (Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979),
 * which loses nothing where the mean is large and the spread small: of integers it is fed with
 * their distances from one of them. */
#include "engine/items/tally.h"

#include <math.h>
#include <string.h>

/* ---- Sums ----------------------------------------------------------------- */

void cv_real_sum_add(cv_real_sum *sum, double value)
{
    double total = sum->sum + value;
    double part = total - sum->sum;
    sum->rest += (sum->sum - (total - part)) + (value - part);
    sum->sum = total;
}

/* Once the sum is infinite the rest means nothing. */
double cv_real_sum_value(const cv_real_sum *sum)
{
    return isfinite(sum->sum) ? sum->sum + sum->rest : sum->sum;
}

static void add_words(cv_exact_sum *sum, int64_t high, uint64_t low)
{
    uint64_t total = sum->low + low;
    uint64_t carry = total < low;
    sum->low = total;
    sum->high = (int64_t)((uint64_t)sum->high + (uint64_t)high + carry);
}

/* Adds high * 2^32 + low. */
static void add_halves(cv_exact_sum *sum, int64_t high, uint64_t low)
{
    add_words(sum, high >> 32, (uint64_t)high << 32);
    add_words(sum, 0, low);
}

static double exact_to_double(const cv_exact_sum *sum)
{
    const double two64 = 18446744073709551616.0;
    if (sum->high >= 0) return (double)sum->high * two64 + (double)sum->low;
    uint64_t low = ~sum->low + 1;
    uint64_t high = ~(uint64_t)sum->high + (low == 0);
    return -((double)high * two64 + (double)low);
}

/* ---- Runs ----------------------------------------------------------------- */

/* Extremes of values[0..n), n >= 1, in four lanes that a compiler keeps apart. */
#define DEFINE_EXTREMES(name, member)                                                        \
    static void name(const cv_wide *values, int64_t n, cv_wide *min, cv_wide *max)           \
    {                                                                                        \
        enum { LANES = 4 };                                                                  \
        cv_wide lo[LANES], hi[LANES];                                                        \
        for (int k = 0; k < LANES; k++) lo[k] = hi[k] = values[0];                           \
        int64_t i = 0;                                                                       \
        for (; i + LANES <= n; i += LANES)                                                   \
            for (int k = 0; k < LANES; k++) {                                                \
                cv_wide v = values[i + k];                                                   \
                lo[k].member = v.member < lo[k].member ? v.member : lo[k].member;            \
                hi[k].member = v.member > hi[k].member ? v.member : hi[k].member;            \
            }                                                                                \
        for (; i < n; i++) {                                                                 \
            if (values[i].member < lo[0].member) lo[0] = values[i];                          \
            if (values[i].member > hi[0].member) hi[0] = values[i];                          \
        }                                                                                    \
        for (int k = 1; k < LANES; k++) {                                                    \
            if (lo[k].member < lo[0].member) lo[0] = lo[k];                                  \
            if (hi[k].member > hi[0].member) hi[0] = hi[k];                                  \
        }                                                                                    \
        *min = lo[0];                                                                        \
        *max = hi[0];                                                                        \
    }

DEFINE_EXTREMES(extremes_int, i)
DEFINE_EXTREMES(extremes_uint, u)
DEFINE_EXTREMES(extremes_real, f)

/* Adds `value` n times: at most 2^29, what a block has. */
static void sum_equal(cv_exact_sum *sum, cv_number_class number_class, cv_wide value,
                      int64_t n)
{
    int64_t high = number_class == CV_INT ? value.i >> 32 : (int64_t)(value.u >> 32);
    add_halves(sum, high * n, (value.u & UINT32_MAX) * (uint64_t)n);
}

/* Leaves of each its distance from the least, and adds those up; high is the sum's bits from 32
 * on. */
static void subtract_least(uint64_t least, cv_wide *values, int64_t n, int64_t *high,
                           uint64_t *low)
{
    for (int64_t i = 0; i < n; i++) { /* n <= CV_RUN: neither overflows */
        values[i].u -= least;
        *high += (int64_t)(values[i].u >> 32);
        *low += values[i].u & UINT32_MAX;
    }
}

/* The same of distances whose sum has 63 bits. */
static uint64_t subtract_near(uint64_t least, cv_wide *values, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i].u -= least;
    return sum;
}

/* Adds the integers, and leaves of each its distance from the least, as a double: what is
 * large in all of them is gone before anything is rounded. */
static void take_integers(cv_tally *out, cv_number_class number_class, cv_wide *values,
                          int64_t n)
{
    const uint64_t least = out->min.u, reach = out->max.u - least;
    int64_t high = 0;
    uint64_t low = 0;
    if (reach <= INT64_MAX / CV_RUN)
        low = subtract_near(least, values, n);
    else
        subtract_least(least, values, n, &high, &low);
    add_halves(&out->exact, high, low);
    sum_equal(&out->exact, number_class, out->min, n);
    out->origin = out->min;
    cv_numbers_to_real(reach <= INT64_MAX ? CV_INT : CV_UINT, values, n);
}

/* Counts the infinite floats of values[0..n) and sets the extremes of the others. */
static void find_finite(cv_tally *run, const cv_wide *values, int64_t n)
{
    run->finite_min.f = (double)INFINITY;
    run->finite_max.f = -(double)INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double value = values[i].f;
        if (isinf(value)) {
            *(value > 0 ? &run->n_inf : &run->n_negative_inf) += 1;
            continue;
        }
        if (value < run->finite_min.f) run->finite_min.f = value;
        if (value > run->finite_max.f) run->finite_max.f = value;
    }
}

void cv_tally_run(cv_tally *tally, const cv_number_type *type, cv_wide *values, int64_t n)
{
    cv_tally run = {.n = cv_numbers_drop_nan(type, values, n)};
    run.n_nan = n - run.n;
    if (run.n > 0) {
        switch (type->number_class) {
        case CV_INT: extremes_int(values, run.n, &run.min, &run.max); break;
        case CV_UINT: extremes_uint(values, run.n, &run.min, &run.max); break;
        case CV_REAL: extremes_real(values, run.n, &run.min, &run.max); break;
        }
        run.finite_min = run.min;
        run.finite_max = run.max;
        if (type->number_class == CV_REAL && (isinf(run.min.f) || isinf(run.max.f)))
            find_finite(&run, values, run.n);
    }
    if (run.n > 0 && !type->is_time) {
        bool is_real = type->number_class == CV_REAL;
        if (!is_real) take_integers(&run, type->number_class, values, run.n);
        double sum = cv_numbers_sum(values, run.n);
        if (is_real) run.real.sum = sum;
        bool is_one = is_real && run.min.f == run.max.f; /* the sum of such is rounded */
        run.mean = is_one ? run.min.f : sum / (double)run.n;
        run.squares = cv_numbers_squares(values, run.n, run.mean);
    }
    cv_tally_add(tally, type, &run);
}

void cv_tally_repeat(cv_tally *tally, const cv_number_type *type, cv_wide value, int64_t n)
{
    cv_wide copy = value;
    cv_tally run = {.n = n, .min = value, .max = value};
    run.finite_min = run.finite_max = value;
    if (n == 0) return;
    if (cv_numbers_drop_nan(type, &copy, 1) == 0) run = (cv_tally){.n_nan = n};
    if (run.n > 0 && !type->is_time) {
        if (type->number_class != CV_REAL) {
            sum_equal(&run.exact, type->number_class, value, n);
            run.origin = value;
        } else {
            run.real.sum = value.f * (double)n;
            run.mean = value.f;
            run.squares = value.f - value.f; /* NaN for what is infinite */
            if (isinf(value.f)) *(value.f > 0 ? &run.n_inf : &run.n_negative_inf) = n;
        }
    }
    cv_tally_add(tally, type, &run);
}

/* ---- Together -------------------------------------------------------------- */

static bool less(cv_number_class number_class, cv_wide a, cv_wide b)
{
    switch (number_class) {
    case CV_INT: return a.i < b.i;
    case CV_UINT: return a.u < b.u;
    case CV_REAL: break;
    }
    return a.f < b.f;
}

/* From the origin of one to that of the other. */
static double origins_apart(const cv_tally *from, const cv_tally *to,
                            cv_number_class number_class)
{
    if (number_class == CV_REAL) return 0;
    if (less(number_class, to->origin, from->origin))
        return -(double)(from->origin.u - to->origin.u);
    return (double)(to->origin.u - from->origin.u);
}

static int64_t n_finite(const cv_tally *tally)
{
    return tally->n - tally->n_inf - tally->n_negative_inf;
}

static void add_finite(cv_tally *tally, cv_number_class number_class, const cv_tally *from)
{
    if (n_finite(from) > 0) {
        bool first = n_finite(tally) == 0;
        if (first || less(number_class, from->finite_min, tally->finite_min))
            tally->finite_min = from->finite_min;
        if (first || less(number_class, tally->finite_max, from->finite_max))
            tally->finite_max = from->finite_max;
    }
    tally->n_inf += from->n_inf;
    tally->n_negative_inf += from->n_negative_inf;
}

void cv_tally_add(cv_tally *tally, const cv_number_type *type, const cv_tally *from)
{
    tally->n_nan += from->n_nan;
    if (from->n == 0) return;
    int64_t n_nan = tally->n_nan;
    if (tally->n == 0) {
        *tally = *from;
        tally->n_nan = n_nan;
        return;
    }
    if (less(type->number_class, from->min, tally->min)) tally->min = from->min;
    if (less(type->number_class, tally->max, from->max)) tally->max = from->max;
    add_finite(tally, type->number_class, from); /* before n, which it reads */
    add_words(&tally->exact, from->exact.high, from->exact.low);
    cv_real_sum_add(&tally->real, from->real.sum);
    tally->real.rest += from->real.rest;

    double n = (double)tally->n + (double)from->n;
    double apart = from->mean - tally->mean + origins_apart(tally, from, type->number_class);
    double share = (double)from->n / n;
    tally->mean += apart * share;
    tally->squares += from->squares + apart * apart * (double)tally->n * share;
    tally->n += from->n;
}

/* ---- The public form -------------------------------------------------------- */

static caterva_number number_public(const cv_number_type *type, cv_wide value)
{
    switch (type->number_class) {
    case CV_INT: return (caterva_number){.kind = 'i', .i = value.i, .f = (double)value.i};
    case CV_UINT: return (caterva_number){.kind = 'u', .u = value.u, .f = (double)value.u};
    case CV_REAL: break;
    }
    return (caterva_number){.kind = 'f', .f = value.f};
}

static caterva_number sum_public(const cv_tally *tally, const cv_number_type *type)
{
    const cv_exact_sum *exact = &tally->exact;
    if (type->number_class == CV_REAL)
        return (caterva_number){.kind = 'f', .f = cv_real_sum_value(&tally->real)};
    caterva_number sum = {.kind = 'f', .f = exact_to_double(exact)};
    if (type->number_class == CV_UINT && exact->high == 0) {
        sum.kind = 'u';
        sum.u = exact->low;
    } else if (type->number_class == CV_INT &&
               exact->high == ((int64_t)exact->low < 0 ? -1 : 0)) {
        sum.kind = 'i';
        sum.i = (int64_t)exact->low;
    }
    return sum;
}

double cv_tally_mean(const cv_tally *tally, const cv_number_type *type)
{
    if (tally->n == 0 || type->is_time) return (double)NAN;
    return sum_public(tally, type).f / (double)tally->n;
}

void cv_tally_public(const cv_tally *tally, const cv_number_type *type, caterva_stats *out)
{
    *out = (caterva_stats){.n_items = tally->n + tally->n_nan, .n_nan = tally->n_nan};
    out->mean = cv_tally_mean(tally, type);
    out->std = (double)NAN;
    if (tally->n > 0) {
        out->min = number_public(type, tally->min);
        out->max = number_public(type, tally->max);
    }
    out->n_inf = tally->n_inf;
    out->n_negative_inf = tally->n_negative_inf;
    if (n_finite(tally) > 0) {
        out->finite_min = number_public(type, tally->finite_min);
        out->finite_max = number_public(type, tally->finite_max);
    }
    if (type->is_time) return;
    out->sum = sum_public(tally, type);
    if (tally->n > 0) out->std = sqrt(tally->squares / (double)tally->n);
}
