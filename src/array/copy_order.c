/* Room: array. What a new array is to be that copies an array or a view: the options of
 * the caller, and the source where they leave something open. */
#include "array/copy_order.h"

#include "engine/items/convert.h"

#include "array/describe.h"

#include <string.h>

enum { DEFAULT_MEMORY = 256 << 20 };

cv_status cv_copy_read_options(const caterva_copy_options *options, cv_copy_order *order,
                               cv_error *err)
{
    static const caterva_copy_options defaults = CATERVA_COPY_INIT;
    static const caterva_create_options like_source = CATERVA_CREATE_INIT;
    CV_TRY(cv_options_copy(&order->options, sizeof order->options,
                           options ? options : &defaults, "copy options", err));
    const caterva_create_options *create = order->options.create;
    CV_TRY(cv_options_copy(&order->create, sizeof order->create,
                           create ? create : &like_source, "create options", err));
    if (order->options.memory < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "a memory bound of %lld bytes",
                       (long long)order->options.memory);
    if (order->options.memory == 0) order->options.memory = DEFAULT_MEMORY;
    if (order->options.convert_to && order->create.dtype)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "items are converted to %.60s: then create->dtype is NULL",
                       order->options.convert_to);
    order->conversion = (cv_conversion){.needed = false};
    return CV_OK;
}

cv_status cv_copy_set_conversion(const caterva_array *source, cv_copy_order *order,
                                 cv_error *err)
{
    const caterva_copy_options *o = &order->options;
    if (!o->convert_to) return CV_OK;
    CV_TRY(cv_conversion_init(&order->conversion, source->type.dtype, o->convert_to,
                              o->casting, err));
    if (!order->conversion.needed) return CV_OK;
    order->create.dtype = o->convert_to;
    order->create.item_size = order->conversion.to.size;
    return CV_OK;
}

void cv_copy_set_kind(const caterva_array *source, const char *url, cv_copy_order *order)
{
    caterva_create_options *c = &order->create;
    if (!order->options.layout_set) {
        c->layout = cv_array_layout(source);
        if (cv_array_metalayer(source) != CATERVA_METALAYER_NONE)
            c->metalayer = cv_array_metalayer(source);
        if (strcmp(url, "mem:") == 0) c->layout = CATERVA_LAYOUT_CONTIGUOUS;
    }
    if (c->fill == CATERVA_FILL_ZEROS && source->fill) {
        c->fill = CATERVA_FILL_VALUE;
        c->fill_value = source->fill;
        if (!order->conversion.needed) return;
        cv_convert(&order->conversion, source->fill, order->fill, 1);
        c->fill_value = order->fill;
    }
}

cv_status cv_copy_choose_remote(caterva_array *source, cv_copy_order *order, cv_error *err)
{
    bool is_one_file = order->create.layout == CATERVA_LAYOUT_CONTIGUOUS, has_layouts = false;
    int asked = order->options.for_remote;
    cv_source from = cv_array_source(source);
    if (asked == 0 && is_one_file) CV_TRY(cv_source_has_layouts(&from, &has_layouts, err));
    order->options.for_remote = asked > 0 || has_layouts;
    if (asked <= 0 || is_one_file) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "layouts for remote reading stand in one file, and a directory is asked "
                   "for");
}
