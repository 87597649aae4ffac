/* Room: cli/sources. Casts: the library converts each box after the source has delivered it.
 * Whether the cast is allowed is checked before the first item is read. */
#include "sources/cast.h"

#include "formats/descr.h"

#include <caterva_value.h>
#include <stdlib.h>
#include <string.h>

typedef struct cast_source {
    source base;
    source *inner;
    caterva_casting casting;
    void *scratch; /* a box as delivered by the inner source */
    size_t scratch_size;
} cast_source;

cli_exit casting_find(const cli_args *args, caterva_casting *out)
{
    static const char *const names[] = {
        [CATERVA_CASTING_SAME_KIND] = "same_kind",
        [CATERVA_CASTING_SAFE] = "safe",
        [CATERVA_CASTING_UNSAFE] = "unsafe",
    };
    *out = CATERVA_CASTING_SAME_KIND;
    if (!args->casting) return CLI_OK;
    for (int i = 0; i < 3; i++) {
        if (strcmp(args->casting, names[i]) != 0) continue;
        *out = (caterva_casting)i;
        return CLI_OK;
    }
    return cli_fail(CLI_USAGE, "--casting must be safe, same_kind or unsafe, not '%s'",
                    args->casting);
}

static caterva_buffer side(void *items, size_t size, const char *dtype)
{
    caterva_buffer b = CATERVA_BUFFER_INIT;
    b.data = items;
    b.size = size;
    b.dtype = dtype;
    return b;
}

/* Reports a failed cast: CLI_UNSUPPORTED for a dtype that cannot be cast, otherwise CLI_USAGE. If
 * --casting unsafe would allow the cast, the message says so. */
static cli_exit fail_cast(const caterva_buffer *to, const caterva_error *err)
{
    cli_exit code = err->code == CATERVA_EDTYPE ? CLI_UNSUPPORTED : CLI_USAGE;
    bool other = to->casting != CATERVA_CASTING_UNSAFE && strstr(err->message, " cast");
    return cli_fail(code, "%s%s", err->message, other ? "; --casting unsafe allows it" : "");
}

static cli_exit cast_items(const caterva_buffer *from, int64_t n, const caterva_buffer *to)
{
    caterva_error err;
    if (caterva_buffer_convert(from, n, to, NULL, &err) == CATERVA_OK) return CLI_OK;
    return fail_cast(to, &err);
}

static cli_exit read_cast(source *self, const box *b, void *dst)
{
    cast_source *s = (cast_source *)self;
    int64_t n = box_items(b, self->shape.ndim);
    size_t size = (size_t)(n * s->inner->shape.item_size);
    if (size > s->scratch_size) {
        free(s->scratch);
        s->scratch_size = 0;
        s->scratch = cli_alloc(size);
        if (!s->scratch) return CLI_IO;
        s->scratch_size = size;
    }
    CLI_TRY(s->inner->read(s->inner, b, s->scratch));
    caterva_buffer from = side(s->scratch, size, s->inner->dtype);
    caterva_buffer to = side(dst, (size_t)(n * self->shape.item_size), self->dtype);
    to.casting = s->casting;
    return cast_items(&from, n, &to);
}

static void close_cast(source *self)
{
    cast_source *s = (cast_source *)self;
    source_close(s->inner);
    free(s->scratch);
}

/* Makes the scratch box, whose items may have another size, count against the memory limit:
 * increases the stretch of the axis along which boxes grow first. */
static void count_scratch(cast_source *s)
{
    int ndim = s->base.shape.ndim;
    int64_t both = s->base.shape.item_size + s->inner->shape.item_size;
    if (ndim == 0) return;
    int d = s->base.first_axis_fastest && !s->base.in_order ? 0 : ndim - 1;
    s->base.stretch[d] *= (both + s->base.shape.item_size - 1) / s->base.shape.item_size;
}

static cli_exit make_cast(source *inner, char *text, caterva_casting casting, source **out)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_USAGE, "--astype", text, &dtype));
    int64_t item_size = dtype->item_size;
    caterva_dtype_free(dtype);
    uint8_t none[1];
    caterva_buffer from = side(none, 0, inner->dtype), to = side(none, 0, text);
    to.casting = casting;
    CLI_TRY(cast_items(&from, 0, &to));
    cast_source *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (cast_source){.base = *inner, .inner = inner, .casting = casting};
    s->base.dtype = text;
    s->base.shape.item_size = item_size;
    s->base.read = read_cast;
    s->base.read_selected = NULL;
    s->base.close = close_cast;
    count_scratch(s);
    *out = &s->base;
    return CLI_OK;
}

cli_exit source_cast(source **from, const char *dtype, caterva_casting casting)
{
    char *text;
    CLI_TRY(descr_for_array(CLI_USAGE, "--astype", dtype, &text));
    if (strcmp(text, (*from)->dtype) == 0) {
        free(text);
        return CLI_OK;
    }
    cli_exit code = make_cast(*from, text, casting, from);
    if (code != CLI_OK) free(text);
    return code;
}

cli_exit source_view_as(source *from, const char *text)
{
    caterva_dtype *dtype;
    CLI_TRY(descr_parse(CLI_USAGE, "--view-dtype", text, &dtype));
    int64_t size = dtype->item_size;
    caterva_dtype_free(dtype);
    if (size != from->shape.item_size)
        return cli_fail(CLI_USAGE,
                        "--view-dtype '%s' has %lld bytes, but the input's items have %lld; "
                        "--astype converts them",
                        text, (long long)size, (long long)from->shape.item_size);
    char *described;
    CLI_TRY(descr_for_array(CLI_USAGE, "--view-dtype", text, &described));
    free(from->dtype);
    from->dtype = described;
    return CLI_OK;
}

cli_exit source_apply_dtypes(const cli_args *args, source **from)
{
    caterva_casting casting;
    CLI_TRY(casting_find(args, &casting));
    if (args->casting && !args->astype)
        return cli_fail(CLI_USAGE, "--casting requires --astype");
    if (args->view_dtype) CLI_TRY(source_view_as(*from, args->view_dtype));
    return args->astype ? source_cast(from, args->astype, casting) : CLI_OK;
}

cli_exit cast_item(const cli_args *args, const char *from_dtype, const void *src,
                   const char *to_dtype, void *dst, size_t dst_size)
{
    caterva_buffer from = side((void *)src, SIZE_MAX, from_dtype);
    caterva_buffer to = side(dst, dst_size, to_dtype);
    CLI_TRY(casting_find(args, &to.casting));
    return cast_items(&from, 1, &to);
}
