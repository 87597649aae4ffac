/* Where items go. Each opener gives a sink that its finish or its abandon
 * releases, the memory it stands in included. */
#ifndef CLI_SINK_H
#define CLI_SINK_H

#include "formats/item.h"
#include "sources/creation.h"
#include "sources/source.h"

/* The selected items of an open array. The sink owns the array and the lists of
 * `sel` from now on, also after a failure: finish commits, abandon leaves the file as
 * it was. */
cli_exit sink_of_array(caterva_array *array, const char *path, selection *sel, sink **out);

/* The same of a part of a job: finish writes its token to `token`, as jobs_finish_part. */
cli_exit sink_of_part(caterva_array *part, const char *token, selection *sel, sink **out);

/* A new array for the items of `from`. `like`: as creation_init, and with the
 * attributes of that array. */
cli_exit sink_of_new_array(const cli_args *args, const char *path, const source *from,
                           caterva_array *like, sink **out);

/* A raw or npy file, or standard output (`path` NULL or "-"). */
cli_exit sink_of_file(const cli_args *args, const char *path, data_format format,
                      const source *from, sink **out);

/* Text: a line for each row, a blank line and "# [i,:,:]" between pages. */
cli_exit sink_of_text(const cli_args *args, const char *path, bool csv, const source *from,
                      sink **out);

/* Any of the last three, by format. */
cli_exit sink_open(const cli_args *args, const char *path, data_format format,
                   const source *from, caterva_array *like, sink **out);

#endif
