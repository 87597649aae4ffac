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

/* Writes a file with a single array whose chunks move as they are stored. *moved is false, and nothing is
 * written, if they cannot. */
cli_exit foreign_move_file(const cli_args *args, const char *path, const source *from,
                           caterva_array *array, bool *moved);

/* Whether the array's chunks can move to a new array as they are stored. */
bool foreign_can_move(const cli_args *args, const foreign_file *file, const foreign_node *node);

/* Moves the array like->node of a file to the new array at `path`. Chunks that cannot move are decoded. */
cli_exit foreign_move_in(const cli_args *args, foreign_file *file, const origin *like,
                         const char *path);

/* Moves the chunks of an array to a node that was added to the writer, and that still has the
 * block_shape of the array. */
cli_exit foreign_move_out(const cli_args *args, foreign_writer *writer,
                          const foreign_node *node, caterva_array *array);

#endif
