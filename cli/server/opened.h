/* Arrays and trees that are open for requests: a few, kept between requests. Any thread. */
#ifndef CLI_OPENED_H
#define CLI_OPENED_H

#include "cli.h"

#include <caterva_tree.h>

typedef struct opened_list opened_list;

/* What one request uses. One of the two is NULL. */
typedef struct opened {
    caterva_array *array;
    caterva_tree *tree;
} opened;

opened_list *opened_list_new(void); /* NULL after a reported lack of memory */
void opened_list_free(opened_list *list);

/* Gets the array at `place` ("x.b2nd", "t.b2z::/g/x"), or the tree (`is_tree`). What was opened more
 * than a second ago is opened again, so that commits of others are seen. End with opened_give. */
caterva_status opened_take(opened_list *list, const char *place, bool is_tree, opened *out,
                           caterva_error *err);
void opened_give(opened_list *list, const opened *used);

/* Reports a failure on standard error, once: later ones with the same text are left out. */
void opened_report(opened_list *list, const char *place, const caterva_error *err);

#endif
