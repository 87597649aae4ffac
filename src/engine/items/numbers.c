/* Room: engine/items. Kernels over short runs of numbers. No chunks, no axes; nothing
 * here is larger than a few cache lines per call. */
#include "engine/items/numbers.h"

#include "engine/items/half.h"

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

/* The usual step is a constant, so that the loop over it becomes a vector's. */
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
                   "times), the items are %.100s",
                   description);
}

/* ---- Storing -------------------------------------------------------------- */

/* The item's bits in the low end of a word. */
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

double cv_numbers_squares(const cv_wide *values, int64_t n, double mean)
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
