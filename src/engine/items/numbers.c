/* Room: engine/items. Kernels over short runs of numbers, a few cache lines per call. */
#include "engine/items/numbers.h"

#include "base/arith.h"
#include "engine/items/convert.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <string.h>

enum { LANES = 8 };

/* ---- Loading -------------------------------------------------------------- */

static double float_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double double_of(uint64_t word)
{
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

#define AS_IS(word) (word)

/* The first loop has the usual step, the item size, as a constant, so that it is vectorised. */
#define DEFINE_LOAD(name, word, order, member, value)                                        \
    static void name(const uint8_t *src, int64_t step, int64_t n, cv_wide *out)              \
    {                                                                                        \
        word w;                                                                              \
        if (step == (int64_t)sizeof w) {                                                     \
            for (int64_t i = 0; i < n; i++) {                                                \
                memcpy(&w, src + i * (int64_t)sizeof w, sizeof w);                           \
                w = order(w);                                                                \
                out[i].member = (value);                                                     \
            }                                                                                \
            return;                                                                          \
        }                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                    \
            memcpy(&w, src + i * step, sizeof w);                                            \
            w = order(w);                                                                    \
            out[i].member = (value);                                                         \
        }                                                                                    \
    }
#define DEFINE_LOADS(name, word, swapped, member, value)                                     \
    DEFINE_LOAD(name, word, AS_IS, member, value)                                            \
    DEFINE_LOAD(name##_swapped, word, swapped, member, value)

DEFINE_LOAD(load_bool, uint8_t, AS_IS, u, w != 0)
DEFINE_LOAD(load_i1, uint8_t, AS_IS, i, (int8_t)w)
DEFINE_LOAD(load_u1, uint8_t, AS_IS, u, w)
DEFINE_LOADS(load_i2, uint16_t, __builtin_bswap16, i, (int16_t)w)
DEFINE_LOADS(load_u2, uint16_t, __builtin_bswap16, u, w)
DEFINE_LOADS(load_f2, uint16_t, __builtin_bswap16, f, cv_half_to_double(w, CV_FLOAT16))
DEFINE_LOADS(load_i4, uint32_t, __builtin_bswap32, i, (int32_t)w)
DEFINE_LOADS(load_u4, uint32_t, __builtin_bswap32, u, w)
DEFINE_LOADS(load_f4, uint32_t, __builtin_bswap32, f, float_of(w))
DEFINE_LOADS(load_i8, uint64_t, __builtin_bswap64, i, (int64_t)w)
DEFINE_LOADS(load_u8, uint64_t, __builtin_bswap64, u, w)
DEFINE_LOADS(load_f8, uint64_t, __builtin_bswap64, f, double_of(w))

typedef struct number_kind {
    char kind;
    int64_t size;
    cv_number_class number_class;
    void (*load)(const uint8_t *src, int64_t step, int64_t n, cv_wide *out);
    void (*load_swapped)(const uint8_t *src, int64_t step, int64_t n, cv_wide *out);
} number_kind;

static const number_kind kinds[] = {
    {'b', 1, CV_UINT, load_bool, load_bool},     {'i', 1, CV_INT, load_i1, load_i1},
    {'i', 2, CV_INT, load_i2, load_i2_swapped},  {'i', 4, CV_INT, load_i4, load_i4_swapped},
    {'i', 8, CV_INT, load_i8, load_i8_swapped},  {'u', 1, CV_UINT, load_u1, load_u1},
    {'u', 2, CV_UINT, load_u2, load_u2_swapped}, {'u', 4, CV_UINT, load_u4, load_u4_swapped},
    {'u', 8, CV_UINT, load_u8, load_u8_swapped}, {'f', 2, CV_REAL, load_f2, load_f2_swapped},
    {'f', 4, CV_REAL, load_f4, load_f4_swapped}, {'f', 8, CV_REAL, load_f8, load_f8_swapped},
    {'M', 8, CV_INT, load_i8, load_i8_swapped},  {'m', 8, CV_INT, load_i8, load_i8_swapped},
};

static bool machine_is_big(void)
{
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 0;
}

static const number_kind *find_kind(const caterva_dtype *dtype)
{
    if (dtype->ndim > 0 || dtype->n_fields > 0) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].kind == dtype->kind && kinds[i].size == dtype->item_size)
            return &kinds[i];
    return NULL;
}

cv_status cv_number_type_of(const char *description, cv_number_type *out, cv_error *err)
{
    caterva_dtype *dtype;
    CV_TRY(caterva_dtype_parse(description, &dtype, err));
    const number_kind *kind = find_kind(dtype);
    if (kind) {
        bool big = dtype->byte_order == '>';
        *out = (cv_number_type){.number_class = kind->number_class,
                                .is_time = kind->kind == 'M' || kind->kind == 'm',
                                .item_size = kind->size,
                                .swap = dtype->byte_order != '|' && big != machine_is_big()};
        out->load = out->swap ? kind->load_swapped : kind->load;
    }
    caterva_dtype_free(dtype);
    if (kind) return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1,
                   "a reduction needs numbers (bool, integers, floats of 2, 4 or 8 bytes, "
                   "times), but the items are %.100s",
                   description);
}

/* ---- Storing -------------------------------------------------------------- */

static uint64_t bits_of(const cv_number_type *type, cv_wide value)
{
    if (type->number_class != CV_REAL || type->item_size == 8) return value.u;
    if (type->item_size == 2) return cv_double_to_half(value.f, CV_FLOAT16);
    float narrow = (float)value.f;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

void cv_number_store(const cv_number_type *type, cv_wide value, uint8_t *item)
{
    uint64_t bits = bits_of(type, value);
    bool big = type->swap != machine_is_big();
    for (int64_t i = 0; i < type->item_size; i++)
        item[big ? type->item_size - 1 - i : i] = (uint8_t)(bits >> 8 * i);
}

/* ---- Runs ----------------------------------------------------------------- */

void cv_numbers_to_real(cv_number_class from, cv_wide *values, int64_t n)
{
    if (from == CV_INT)
        for (int64_t i = 0; i < n; i++) values[i].f = (double)values[i].i;
    if (from == CV_UINT)
        for (int64_t i = 0; i < n; i++) values[i].f = (double)values[i].u;
}

static int64_t drop_nan(cv_wide *values, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) kept += values[i].f == values[i].f;
    if (kept == n) return n;
    kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (values[i].f == values[i].f) values[kept++] = values[i];
    return kept;
}

static int64_t drop_nat(cv_wide *values, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (values[i].i != INT64_MIN) values[kept++] = values[i];
    return kept;
}

int64_t cv_numbers_drop_nan(const cv_number_type *type, cv_wide *values, int64_t n)
{
    if (type->is_time) return drop_nat(values, n);
    return type->number_class == CV_REAL ? drop_nan(values, n) : n;
}

static double add_lanes(const double lanes[LANES])
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double cv_numbers_sum(const cv_wide *values, int64_t n)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += values[i + k].f;
    for (int k = 0; i < n; i++, k++) lanes[k] += values[i].f;
    return add_lanes(lanes);
}

static double cv_numbers_squares(const cv_wide *values, int64_t n, double mean)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            double distance = values[i + k].f - mean;
            lanes[k] += distance * distance;
        }
    for (int k = 0; i < n; i++, k++) {
        double distance = values[i].f - mean;
        lanes[k] += distance * distance;
    }
    return add_lanes(lanes);
}

/* ---- Tallies -------------------------------------------------------------------
 *
 * Integers are added exactly; floats run by run with the rounding error carried along. The
 * spread uses the update of Chan, Golub and LeVeque (Updating Formulae and a Pairwise
 * Algorithm for Computing Sample Variances, 1979), which is stable for a large mean. For
 * integers, mean and spread are computed from distances to one of the integers. */

/* ---- Sums ----------------------------------------------------------------- */

void cv_real_sum_add(cv_real_sum *sum, double value)
{
    double total = sum->sum + value;
    double part = total - sum->sum;
    sum->rest += (sum->sum - (total - part)) + (value - part);
    sum->sum = total;
}

/* Ignores `rest` if the sum is infinite, because `rest` is then meaningless. */
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

/* Finds the extremes of values[0..n), n >= 1, in four independent lanes. */
#define DEFINE_EXTREMES(name, member)                                                        \
    static void name(const cv_wide *values, int64_t n, cv_wide *min, cv_wide *max)           \
    {                                                                                        \
        enum { APART = 4 };                                                                  \
        cv_wide lo[APART], hi[APART];                                                        \
        for (int k = 0; k < APART; k++) lo[k] = hi[k] = values[0];                           \
        int64_t i = 0;                                                                       \
        for (; i + APART <= n; i += APART)                                                   \
            for (int k = 0; k < APART; k++) {                                                \
                cv_wide v = values[i + k];                                                   \
                lo[k].member = v.member < lo[k].member ? v.member : lo[k].member;            \
                hi[k].member = v.member > hi[k].member ? v.member : hi[k].member;            \
            }                                                                                \
        for (; i < n; i++) {                                                                 \
            if (values[i].member < lo[0].member) lo[0] = values[i];                          \
            if (values[i].member > hi[0].member) hi[0] = values[i];                          \
        }                                                                                    \
        for (int k = 1; k < APART; k++) {                                                    \
            if (lo[k].member < lo[0].member) lo[0] = lo[k];                                  \
            if (hi[k].member > hi[0].member) hi[0] = hi[k];                                  \
        }                                                                                    \
        *min = lo[0];                                                                        \
        *max = hi[0];                                                                        \
    }

DEFINE_EXTREMES(extremes_int, i)
DEFINE_EXTREMES(extremes_uint, u)
DEFINE_EXTREMES(extremes_real, f)

/* Adds `value` n times, in steps that do not overflow. */
static void sum_equal(cv_exact_sum *sum, cv_number_class number_class, cv_wide value,
                      int64_t n)
{
    int64_t high = number_class == CV_INT ? value.i >> 32 : (int64_t)(value.u >> 32);
    for (int64_t step; n > 0 && value.u != 0; n -= step) {
        step = cv_min_i64(n, UINT32_MAX);
        add_halves(sum, high * step, (value.u & UINT32_MAX) * (uint64_t)step);
    }
}

/* Replaces each value by its distance from the least value, and adds the lower 32 bits of each
 * distance to `low`, the upper 32 bits to `high`. */
static void subtract_least(uint64_t least, cv_wide *values, int64_t n, int64_t *high,
                           uint64_t *low)
{
    for (int64_t i = 0; i < n; i++) { /* n <= CV_RUN: neither overflows */
        values[i].u -= least;
        *high += (int64_t)(values[i].u >> 32);
        *low += values[i].u & UINT32_MAX;
    }
}

/* Like subtract_least, for distances whose sum fits 63 bits. Returns the sum. */
static uint64_t subtract_near(uint64_t least, cv_wide *values, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += values[i].u -= least;
    return sum;
}

/* Adds the integers and replaces each by its distance from the least, as a double, so that a
 * large common part does not cost precision. */
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
        bool is_one = is_real && run.min.f == run.max.f; /* the mean is exact */
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
            run.squares = value.f - value.f; /* NaN for infinite values */
            if (isinf(value.f)) *(value.f > 0 ? &run.n_inf : &run.n_negative_inf) = n;
        }
    }
    cv_tally_add(tally, type, &run);
}

/* ---- Adding tallies --------------------------------------------------------- */

bool cv_number_less(cv_number_class number_class, cv_wide a, cv_wide b)
{
    switch (number_class) {
    case CV_INT: return a.i < b.i;
    case CV_UINT: return a.u < b.u;
    case CV_REAL: break;
    }
    return a.f < b.f;
}

static double origins_apart(const cv_tally *from, const cv_tally *to,
                            cv_number_class number_class)
{
    if (number_class == CV_REAL) return 0;
    if (cv_number_less(number_class, to->origin, from->origin))
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
        if (first || cv_number_less(number_class, from->finite_min, tally->finite_min))
            tally->finite_min = from->finite_min;
        if (first || cv_number_less(number_class, tally->finite_max, from->finite_max))
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
    if (cv_number_less(type->number_class, from->min, tally->min)) tally->min = from->min;
    if (cv_number_less(type->number_class, tally->max, from->max)) tally->max = from->max;
    add_finite(tally, type->number_class, from); /* before n changes */
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
