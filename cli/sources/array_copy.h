/* Copies a box of an array file to a new array file, for repack, and for convert if both are
 * arrays. If possible, the library copies chunks without decoding them. */
#ifndef CLI_ARRAY_COPY_H
#define CLI_ARRAY_COPY_H

#include "sources/creation.h"

/* Whether the selection's result is a box of the array with all of its axes. */
bool array_copy_fits(const selection *sel);

/* Fills the options for a copy of this selection of `from`, like creation_init. --astype and
 * --view-dtype are applied; only one of them may be given. Release `c` with creation_free, also
 * after a failure. */
cli_exit array_copy_init(creation *c, const cli_args *args, caterva_array *from,
                         const selection *sel);

/* Copies to args->positional[1] with a progress bar. After CLI_INTERRUPTED there is no new file. */
cli_exit array_copy_run(const cli_args *args, caterva_array *from, const selection *sel,
                        creation *c);

/* Copies the array, with its pending changes, to a new Zarr array. Chunks, blocks, codec and filters
 * that options set must be possible there; others are adapted. */
cli_exit array_copy_to_zarr(const cli_args *args, caterva_array *from, const char *path);

#endif
