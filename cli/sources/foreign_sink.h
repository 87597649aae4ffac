/* Arrays and groups written to files of other formats. */
#ifndef CLI_FOREIGN_SINK_H
#define CLI_FOREIGN_SINK_H

#include "foreign/foreign.h"
#include "sources/sink.h"

/* Describes an array as node `key`: shape and dtype of `from`, and what `like` has besides. Release
 * *out with foreign_node_free. */
cli_exit foreign_node_of(const char *key, const source *from, const origin *like,
                         foreign_node **out);

/* Writes to a node that was added to the writer. finish and abandon leave the writer open. */
cli_exit sink_of_node(foreign_writer *writer, const foreign_node *node, sink **out);

/* Reports everything that the writer could not write. */
void foreign_report_losses(const char *path, char *const *losses, size_t n);

/* Writes a file with a single array. */
cli_exit sink_of_foreign(const cli_args *args, const char *path, const source *from,
                         const origin *like, sink **out);

#endif
