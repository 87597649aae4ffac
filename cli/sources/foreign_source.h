/* Arrays of files of other formats, as inputs: "FILE" if it holds one array, or "FILE::/group/name". */
#ifndef CLI_FOREIGN_SOURCE_H
#define CLI_FOREIGN_SOURCE_H

#include "foreign/foreign.h"
#include "sources/source.h"

/* A file of another format, and the group or array in it that the text names. */
typedef struct foreign_place {
    char *path; /* owned */
    const foreign_info *info;
    foreign_file *file;
    const foreign_node *node; /* "/" if the text names a file */
} foreign_place;

/* Whether the text names a file of another format, or something in one. */
bool foreign_place_is(const char *text);

/* Returns "an HDF5 file" for such a text, otherwise NULL. */
const char *foreign_place_title(const char *text);

/* Opens the file and finds the node. Release *out with foreign_place_close, also after a failure. */
cli_exit foreign_place_open(const char *text, foreign_place *out);
void foreign_place_close(foreign_place *place);

/* Sets *is to whether such a text names a group: of a format with groups, or one of several arrays. */
cli_exit foreign_place_is_tree(const char *text, bool *is);

/* If the node is a group with a single array below it, takes that array. Otherwise reports that the
 * text names no array, with a list of some. */
cli_exit foreign_place_take_array(const char *text, foreign_place *place);

/* Returns the name of a node relative to the place's group: "x", "g/x"; NULL if it is not below. */
const char *foreign_place_name(const foreign_place *place, const foreign_node *node);

/* Reads an array of an open file. */
cli_exit source_of_foreign(foreign_file *file, const foreign_node *array, source **out);

#endif
