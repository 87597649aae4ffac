/* Destinations of items. Each function here opens a sink; `finish` or `abandon` releases it,
 * including its own memory. */
#ifndef CLI_SINK_H
#define CLI_SINK_H

#include "foreign/foreign.h"
#include "formats/item.h"
#include "sources/creation.h"
#include "sources/source.h"

/* Writes to the selected items of an open array. The sink takes ownership of the array and the
 * lists of `sel`, also on failure. `finish` commits, `abandon` leaves the file unchanged. */
cli_exit sink_of_array(caterva_array *array, const char *path, selection *sel, sink **out);

/* Like sink_of_array, for a part. `finish` writes the token to `token`, like jobs_finish_part. */
cli_exit sink_of_part(caterva_array *part, const char *token, selection *sel, sink **out);

/* What a new array takes its attributes, the names of its dimensions and its fill from: an array,
 * or an array in a file of another format. Both may be NULL. If `unsynced`, commits of the new array are
 * not synced: the caller syncs the folder that it is in. */
typedef struct origin {
    caterva_array *array;
    const foreign_node *node;
    bool unsynced;
} origin;

/* Makes a new array for the items of `from`, with what it takes from `like` (may be NULL). If `zarr`,
 * the array has no name, and a partition that Zarr allows. */
cli_exit sink_make_array(const cli_args *args, const char *path, bool zarr, const source *from,
                         const origin *like, caterva_array **out);

/* Writes the items of `from` to a new array. If `zarr`, `finish` copies the array to a Zarr array,
 * which appears whole. */
cli_exit sink_of_new_array(const cli_args *args, const char *path, bool zarr,
                           const source *from, const origin *like, sink **out);

/* Writes a raw or npy file, or to standard output (`path` NULL or "-"). */
cli_exit sink_of_file(const cli_args *args, const char *path, data_format format,
                      const source *from, sink **out);

/* Writes text: a line for each row, a blank line and "# [i,:,:]" between pages. */
cli_exit sink_of_text(const cli_args *args, const char *path, bool csv, const source *from,
                      sink **out);

/* Opens one of the last three sinks, by format. */
cli_exit sink_open(const cli_args *args, const char *path, data_format format,
                   const source *from, const origin *like, sink **out);

#endif
