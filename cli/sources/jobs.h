/* Jobs of an array, named by the beginning of their ids; parts, and their tokens in files. */
#ifndef CLI_JOBS_H
#define CLI_JOBS_H

#include "cli.h"
#include <caterva_jobs.h>

/* Opens, for writing, a new part of the job whose id begins with args->part. */
cli_exit jobs_open_part(const cli_args *args, const char *path, caterva_array **out);

/* Finds the job of `list` whose id begins with `word`. Returns CLI_NO with a message if there is no
 * such job or more than one. */
cli_exit jobs_find(const caterva_job_list *list, const char *path, const char *word,
                   const caterva_job_entry **out);

/* Finishes the part and writes its token to `path`, replacing an existing file. If `path` is NULL
 * or "-", prints the token. Closes the part, also on failure. */
cli_exit jobs_finish_part(caterva_array *part, const char *path);

#endif
