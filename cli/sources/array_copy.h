/* A box of an array file into a new array file: what repack does, and convert
 * where both ends are arrays. The library moves chunks compressed when it can. */
#ifndef CLI_ARRAY_COPY_H
#define CLI_ARRAY_COPY_H

#include "sources/creation.h"

/* True when the selection's result is a box of the array, with all of its axes. */
bool array_copy_fits(const selection *sel);

/* Fills options for the copy of this selection of `from`, as creation_init does, with
 * --astype or --view-dtype, of which one may be given. Release `c` with creation_free,
 * also on failure. */
cli_exit array_copy_init(creation *c, const cli_args *args, caterva_array *from,
                         const selection *sel);

/* Copies to args->positional[1] with a progress bar. CLI_INTERRUPTED when a signal
 * came: nothing is left then. */
cli_exit array_copy_run(const cli_args *args, caterva_array *from, const selection *sel,
                        creation *c);

#endif
