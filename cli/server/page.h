/* The list of all arrays, as a page or as JSON. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "server/opened.h"
#include "server/shelf.h"

/* Arrays in a list, and bytes of it, at most; the rest is counted. */
enum { PAGE_ARRAYS = 2000, PAGE_MOST = 2 << 20 };

/* Returns *size bytes, to be freed; NULL without memory. */
char *page_list(const shelf *all, opened_list *handles, bool is_json, size_t *size);

#endif
