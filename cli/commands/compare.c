/* Room: cli/commands. Compares items, as numbers if possible. Opens no file and prints nothing. */
#include "commands/compare.h"

#include "formats/item.h"

#include <math.h>
#include <string.h>

/* ---- dtypes ---------------------------------------------------------------- */

/* Returns the first named field from *i on, or NULL, and advances *i. Padding has no name. */
static const caterva_field *next_field(const caterva_dtype *dtype, int *i)
{
    while (*i < dtype->n_fields)
        if (*dtype->fields[(*i)++].name) return &dtype->fields[*i - 1];
    return NULL;
}

static bool same_fields(const caterva_dtype *a, const caterva_dtype *b)
{
    int i = 0, k = 0;
    const caterva_field *x, *y;
    do {
        x = next_field(a, &i);
        y = next_field(b, &k);
        if (!x != !y) return false;
        if (x && (strcmp(x->name, y->name) != 0 || x->offset != y->offset ||
                  !compare_dtypes(x->dtype, y->dtype)))
            return false;
    } while (x);
    return true;
}

bool compare_dtypes(const caterva_dtype *a, const caterva_dtype *b)
{
    if (a->kind != b->kind || a->byte_order != b->byte_order ||
        a->item_size != b->item_size || a->ndim != b->ndim || strcmp(a->unit, b->unit) != 0)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return same_fields(a, b);
}

/* ---- Items ----------------------------------------------------------------- */

static bool close_reals(double a, double b, const tolerance *close)
{
    if (a == b || (isnan(a) && isnan(b))) return true;
    return isfinite(b) && fabs(a - b) <= close->absolute + close->relative * fabs(b);
}

/* True if both parts are equal, or if the distance of the numbers is within the tolerance. */
static bool close_complex(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                          const tolerance *close)
{
    int64_t half = dtype->item_size / 2;
    double re[2] = {item_load_real(dtype, a, half), item_load_real(dtype, b, half)};
    double im[2] = {item_load_real(dtype, a + half, half),
                    item_load_real(dtype, b + half, half)};
    static const tolerance none = {0, 0};
    if (close_reals(re[0], re[1], &none) && close_reals(im[0], im[1], &none)) return true;
    double size = hypot(re[1], im[1]);
    return isfinite(size) &&
           hypot(re[0] - re[1], im[0] - im[1]) <= close->absolute + close->relative * size;
}

/* Computes the difference in integers, then rounds it to a double. */
static bool close_integers(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                           const tolerance *close)
{
    int64_t size = dtype->item_size;
    uint64_t difference;
    double b_size;
    if (dtype->kind == 'i') {
        int64_t x = item_load_int(dtype, a, size), y = item_load_int(dtype, b, size);
        difference = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
        b_size = fabs((double)y);
    } else {
        uint64_t x = item_load_uint(dtype, a, size), y = item_load_uint(dtype, b, size);
        difference = x > y ? x - y : y - x;
        b_size = (double)y;
    }
    return difference == 0 ||
           (double)difference <= close->absolute + close->relative * b_size;
}

static bool compare_scalars(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                            const tolerance *close)
{
    size_t size = (size_t)dtype->item_size;
    if (memcmp(a, b, size) == 0) return true;
    switch (item_is_number(dtype) ? dtype->kind : 'V') {
    case 'f':
        return close_reals(item_load_real(dtype, a, dtype->item_size),
                           item_load_real(dtype, b, dtype->item_size), close);
    case 'c': return close_complex(dtype, a, b, close);
    case 'i':
    case 'u': return close_integers(dtype, a, b, close);
    default: return false;
    }
}

static bool compare_fields(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                           const tolerance *close)
{
    int i = 0;
    for (const caterva_field *f = next_field(dtype, &i); f; f = next_field(dtype, &i))
        if (!compare_items(f->dtype, a + f->offset, b + f->offset, close)) return false;
    return true;
}

bool compare_items(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                   const tolerance *close)
{
    caterva_dtype element = *dtype;
    int64_t n = 1;
    for (int d = 0; d < dtype->ndim; d++) n *= dtype->shape[d];
    if (n == 0) return true;
    element.ndim = 0;
    element.item_size = dtype->item_size / n;
    for (int64_t i = 0; i < n; i++, a += element.item_size, b += element.item_size) {
        bool same = element.n_fields > 0 ? compare_fields(&element, a, b, close)
                                         : compare_scalars(&element, a, b, close);
        if (!same) return false;
    }
    return true;
}
