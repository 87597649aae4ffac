/* Conversions that go on after an interruption. The unfinished array has an attribute with what it
 * was made from and how many boxes it has; the attribute is deleted with the last commit. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "sources/sink.h"

#define RESUME_NAME "_caterva_convert" /* of the attribute */

/* Identifies a state of the input file and the memory limit, which determines the boxes. */
typedef struct resume_id {
    char text[100];
} resume_id;

/* `path` may name an array in a file. */
cli_exit resume_identify(const cli_args *args, const char *path, resume_id *out);

/* Returns the name under which OUT is made, to be freed: "OUT.partial" and `extension`. */
char *resume_path(const char *out, const char *extension);

/* Opens the unfinished array at `path`, or makes it. Returns CLI_OK with *out NULL if the array is
 * complete. Its `finish` and `abandon` leave the array at `path`. */
cli_exit sink_of_resumed_array(const cli_args *args, const char *path, const source *from,
                               const origin *like, const resume_id *id, sink **out);

/* Reports that `path` was made from another state of the input. */
cli_exit resume_fail(const char *path);

#endif
