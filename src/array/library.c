/* Room: array. Functions without an array: names and versions, the allocator, the block cache, and
 * conversions between buffers. */
#include "array/library.h"

#include "base/arith.h"
#include "base/heap.h"
#include "codec/spec.h"
#include "engine/items/convert.h"
#include "format/dtype.h"

#include <caterva_store.h>
#include <caterva_value.h>
#include <string.h>

const char *caterva_version(void) { return CATERVA_VERSION_STRING; }
const char *caterva_codec_version(void) { return cv_codec_engine_version(); }

/* Convert the number of a codec or filter in frames to its public constant, and back. The constant
 * for number 0 is 256; in_frame(0) is -1, an unknown number. */
static int of_frame(int number) { return number == 0 ? 256 : number; }
static int in_frame(int number) { return number == 256 ? 0 : number == 0 ? -1 : number; }

const char *caterva_codec_name(int codec) { return cv_codec_name(in_frame(codec)); }
int caterva_codec_number(const char *name) { return of_frame(cv_codec_number(name)); }
const char *caterva_filter_name(int filter) { return cv_filter_name(in_frame(filter)); }
int caterva_filter_number(const char *name) { return of_frame(cv_filter_number(name)); }

const char *caterva_status_name(caterva_status status)
{
    switch (status) {
    case CATERVA_OK: return "CATERVA_OK";
    case CATERVA_EINVAL: return "CATERVA_EINVAL";
    case CATERVA_ENOMEM: return "CATERVA_ENOMEM";
    case CATERVA_EIO: return "CATERVA_EIO";
    case CATERVA_ECORRUPT: return "CATERVA_ECORRUPT";
    case CATERVA_EUNSUPPORTED: return "CATERVA_EUNSUPPORTED";
    case CATERVA_EBUSY: return "CATERVA_EBUSY";
    case CATERVA_EEXIST: return "CATERVA_EEXIST";
    case CATERVA_ENOTFOUND: return "CATERVA_ENOTFOUND";
    case CATERVA_ESTOPPED: return "CATERVA_ESTOPPED";
    case CATERVA_ESHORT: return "CATERVA_ESHORT";
    case CATERVA_EREADONLY: return "CATERVA_EREADONLY";
    case CATERVA_ERANGE: return "CATERVA_ERANGE";
    case CATERVA_EDTYPE: return "CATERVA_EDTYPE";
    case CATERVA_ECAST: return "CATERVA_ECAST";
    case CATERVA_ESHAPE: return "CATERVA_ESHAPE";
    case CATERVA_EROLLBACK: return "CATERVA_EROLLBACK";
    case CATERVA_ESTALE: return "CATERVA_ESTALE";
    case CATERVA_EPIPELINE: return "CATERVA_EPIPELINE";
    }
    return "unknown status";
}

/* ---- The allocator ------------------------------------------------------------------- */

cv_status caterva_set_allocator(const caterva_allocator *allocator, cv_error *err)
{
    caterva_allocator given;
    if (!allocator) return cv_fail(err, CATERVA_EINVAL, -1, "the allocator is NULL");
    CV_TRY(cv_options_copy(&given, sizeof given, allocator, "allocator", err));
    if (!given.allocate || !given.release)
        return cv_fail(err, CATERVA_EINVAL, -1, "the allocator's %s function is NULL",
                       given.allocate ? "release" : "allocate");
    cv_heap_functions functions = {given.context, given.allocate, given.release};
    if (cv_heap_set(&functions)) return CV_OK;
    return cv_fail(
        err, CATERVA_EBUSY, -1,
        "an allocator can be set only once, before the library allocates anything");
}

/* ---- The block cache ----------------------------------------------------------------- */

cv_status cv_array_check_cache(int64_t cache_bytes, cv_error *err)
{
    if (cache_bytes >= CATERVA_NONE) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "cache_bytes is %lld, less than -1",
                   (long long)cache_bytes);
}

cv_status cv_array_set_cache(caterva_array *array, int64_t cache_bytes, cv_error *err)
{
    if (cache_bytes > 0) CV_TRY(cv_cache_create(cache_bytes, &array->own_cache, err));
    if (cache_bytes == 0)
        array->workers.cache = cv_cache_shared();
    else
        array->workers.cache = array->own_cache;
    return CV_OK;
}

caterva_status caterva_cache_set_limit(int64_t bytes, caterva_error *err)
{
    CV_TRY(cv_array_check_cache(bytes, err));
    if (bytes == 0) bytes = CV_CACHE_BYTES;
    cv_cache_set_limit(cv_cache_shared(), bytes == CATERVA_NONE ? 0 : bytes);
    return CV_OK;
}

caterva_status caterva_cache_describe(caterva_array *array, caterva_cache_info *out,
                                      caterva_error *err)
{
    CV_TRY(cv_output_check(out, sizeof *out, "cache info", err));
    cv_cache *cache = array ? array->workers.cache : cv_cache_shared();
    caterva_cache_info full = {.limit = 0};
    if (cache) cv_cache_measure(cache, &full);
    cv_output_fill(out, &full, sizeof full);
    return CV_OK;
}

/* ---- Conversions between two buffers --------------------------------------------------- */

static cv_status take_side(const caterva_buffer *given, const char *side, caterva_buffer *out,
                           cv_error *err)
{
    if (!given) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", side);
    CV_TRY(cv_options_copy(out, sizeof *out, given, "buffer", err));
    if (!out->dtype) return cv_fail(err, CATERVA_EINVAL, -1, "the %s has no dtype", side);
    if (out->shape || out->strides || out->field)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the %s has a shape, strides or a field, but its items must be "
                       "contiguous",
                       side);
    return CV_OK;
}

static cv_status check_size(const caterva_buffer *b, const char *side, int64_t n,
                            int64_t item_size, cv_error *err)
{
    int64_t size;
    if (!cv_mul_i64(n, item_size, &size) || (uint64_t)size > b->size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "%lld items of %lld bytes do not fit the %zu bytes of the %s",
                       (long long)n, (long long)item_size, b->size, side);
    if (size > 0 && !b->data) return cv_fail(err, CATERVA_EINVAL, -1, "the %s is NULL", side);
    return CV_OK;
}

/* Number of items converted between two polls of the watch. They take about one millisecond. */
enum { PIECE = 1 << 18 };

typedef struct sides {
    cv_conversion conversion;
    const uint8_t *src;
    uint8_t *dst;
    int64_t from_size, to_size; /* bytes of one item */
} sides;

static cv_status convert_pieces(const sides *s, int64_t n, cv_watch *watch, cv_error *err)
{
    cv_watch_expect(watch, n * s->to_size);
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = cv_min_i64(PIECE, n - at);
        const uint8_t *src = s->src + at * s->from_size;
        uint8_t *dst = s->dst + at * s->to_size;
        if (s->conversion.needed)
            cv_convert(&s->conversion, src, dst, count);
        else
            memcpy(dst, src, (size_t)(count * s->from_size));
        CV_TRY(cv_watch_tick(watch, count * s->to_size, err));
    }
    return CV_OK;
}

static cv_status convert_all(const sides *s, int64_t n,
                             const caterva_convert_options *options, cv_error *err)
{
    cv_watch watch;
    cv_watch *reporting = cv_watch_open(&watch, &options->progress, NULL);
    return cv_watch_close(&watch, convert_pieces(s, n, reporting, err));
}

caterva_status caterva_buffer_convert(const caterva_buffer *src, int64_t n,
                                      const caterva_buffer *dst,
                                      const caterva_convert_options *options,
                                      caterva_error *err)
{
    caterva_convert_options o;
    caterva_buffer from, to;
    sides s;
    int64_t item_size = 2; /* of bfloat16, which is no dtype of NumPy */
    CV_TRY(cv_options_read(&o, sizeof o, options, "convert options", err));
    CV_TRY(cv_progress_check(&o.progress, err));
    CV_TRY(take_side(src, "source", &from, err));
    CV_TRY(take_side(dst, "destination", &to, err));
    if (n < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "n is %lld, less than 0", (long long)n);
    CV_TRY(cv_conversion_init(&s.conversion, from.dtype, to.dtype, to.casting, err));
    bool needed = s.conversion.needed;
    if (!needed && strcmp(from.dtype, "bfloat16") != 0)
        CV_TRY(cv_dtype_item_size(from.dtype, strlen(from.dtype), &item_size, err));
    s.from_size = needed ? s.conversion.from.size : item_size;
    s.to_size = needed ? s.conversion.to.size : item_size;
    CV_TRY(check_size(&from, "source", n, s.from_size, err));
    CV_TRY(check_size(&to, "destination", n, s.to_size, err));
    s.src = from.data;
    s.dst = to.data;
    return convert_all(&s, n, &o, err);
}
