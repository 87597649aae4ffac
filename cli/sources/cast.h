/* A source whose items are wanted in another dtype. */
#ifndef CLI_CAST_H
#define CLI_CAST_H

#include "sources/source.h"

/* --casting; CATERVA_CASTING_SAME_KIND when it was not given. */
cli_exit casting_find(const cli_args *args, caterva_casting *out);

/* Puts a cast to `dtype` behind *from, which the new source owns from now on; nothing
 * when the items are of that dtype. After a failure *from is as it was. */
cli_exit source_cast(source **from, const char *dtype, caterva_casting casting);

/* Gives the items of `from` the dtype `text`, of the same size: the bytes stay. */
cli_exit source_view_as(source *from, const char *text);

/* --view-dtype and --astype, in this order, where they were given. */
cli_exit source_apply_dtypes(const cli_args *args, source **from);

/* One item from `from_dtype` to `to_dtype`, as --astype casts the others. */
cli_exit cast_item(const cli_args *args, const char *from_dtype, const void *src,
                   const char *to_dtype, void *dst, size_t dst_size);

#endif
