/* What a server offers: a list of names, each with the place of an array or tree. Requests are looked
 * up in it, and never become paths. */
#ifndef CLI_SHELF_H
#define CLI_SHELF_H

#include "cli.h"

/* The most files that are offered. */
enum { SHELF_MOST = 10000 };

typedef struct shelf_item {
    char *name; /* "sub/x.zarr": its array or groups, as Zarr */
    char *path; /* for caterva_open or caterva_tree_open */
    bool is_tree;
    char *raw_name; /* "sub/x.b2nd"; NULL: it is no single file */
    char *raw_path;
} shelf_item;

typedef struct shelf {
    shelf_item *items; /* sorted by name */
    size_t n, room;
    const shelf_item **raw; /* those with a raw_name, sorted by it */
    size_t n_raw;
    bool is_cut;     /* there are more than SHELF_MOST */
    size_t n_linked; /* left out: there are symbolic links in their directories */
    int users;       /* of shelves_take */
} shelf;

/* The shelf of some paths, which is made again now and then. Any thread. */
typedef struct shelves shelves;

/* Lists the arrays and trees at `paths`: each is one, or a directory, which is searched for files and
 * directories with the suffixes .b2nd, .b2frame, .b2z, .b2d, .b2e and .zarr. Hidden names and
 * symbolic links in it, and arrays and trees with symbolic links in their directories, are left out. Reports a path that does not exist or is neither. `paths` is
 * borrowed. */
cli_exit shelves_new(char *const *paths, int n, shelves **out);
void shelves_free(shelves *s);

/* Gets the present list; end with shelves_give. `again` makes it anew, unless it was made less than two
 * seconds ago or a path is missing now. */
const shelf *shelves_take(shelves *s, bool again);
void shelves_give(shelves *s, const shelf *used);

/* Finds the item whose name is followed by a slash or the end in `path`, and sets *rest to what
 * follows. NULL if it does not exist. */
const shelf_item *shelf_find(const shelf *all, const char *path, const char **rest);
const shelf_item *shelf_find_raw(const shelf *all, const char *path);

/* Whether the item, or the file of member `node` ("g/y", "" for none), has become a symbolic link
 * since the list was made. The library follows no links of directories in trees. */
bool shelf_has_link(const shelf_item *item, const char *node);

#endif
