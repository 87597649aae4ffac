/* Sources whose items are converted to another dtype. */
#ifndef CLI_CAST_H
#define CLI_CAST_H

#include "sources/source.h"

/* Parses --casting. The default is CATERVA_CASTING_SAME_KIND. */
cli_exit casting_find(const cli_args *args, caterva_casting *out);

/* Replaces *from by a source that owns *from and converts its items to `dtype`. Does nothing if the
 * items already have that dtype. A failure leaves *from unchanged. */
cli_exit source_cast(source **from, const char *dtype, caterva_casting casting);

/* Sets the dtype of `from` to `text`; bytes do not change. CLI_USAGE if item sizes differ. */
cli_exit source_view_as(source *from, const char *text);

/* Applies --view-dtype and --astype, in this order, if they are given. */
cli_exit source_apply_dtypes(const cli_args *args, source **from);

/* Converts one item from `from_dtype` to `to_dtype`, as --astype does. */
cli_exit cast_item(const cli_args *args, const char *from_dtype, const void *src,
                   const char *to_dtype, void *dst, size_t dst_size);

#endif
