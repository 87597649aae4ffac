/* Room: cli/sources. Opens the arrays of a window of entries on several threads. The threads mostly
 * wait for the server. */
#include "sources/leaf_infos.h"

#include <caterva_tree.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 16 };

static bool is_wanted(const leaf_infos *all, size_t i)
{
    const caterva_tree_entry *entry = all->part->list->entries[i];
    if (entry->kind != CATERVA_TREE_ARRAY) return false;
    return all->below || !strchr(tree_part_name(all->part, entry), '/');
}

/* Gets the info of entry `i`. *out is NULL for an array that is damaged or was deleted after it was
 * listed. Any other failure is an error of the command. */
static caterva_status info_at(const leaf_infos *all, size_t i, const caterva_info **out,
                              caterva_error *err)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array;
    const char *key = all->part->list->entries[i]->key;
    options.cache_bytes = -1;
    options.threads = 1;
    *out = NULL;
    if (!is_wanted(all, i) || cli_interrupted()) return CATERVA_OK;
    caterva_status status =
        caterva_tree_open_array(all->part->tree, key, &options, &array, err);
    if (status == CATERVA_OK) {
        status = caterva_info_get(array, out, err);
        caterva_discard(array);
    }
    return cli_is_damage(status) || status == CATERVA_ENOTFOUND ? CATERVA_OK : status;
}

/* ---- Concurrent opening ----------------------------------------------------------------- */

typedef struct window {
    leaf_infos *all;
    atomic_size_t next;
} window;

static void *open_some(void *context)
{
    window *w = context;
    leaf_infos *all = w->all;
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < all->stop;) {
        leaf_looked *found = &all->looked[i - all->first];
        found->status = info_at(all, i, &found->info, &found->error);
        if (found->status != CATERVA_OK) found->info = NULL;
    }
    return NULL;
}

/* Opens the arrays of a window. The calling thread takes part, so that all arrays are opened even
 * if no thread can be started. */
static void open_window(leaf_infos *all)
{
    window w = {.all = all};
    pthread_t threads[THREADS - 1];
    size_t n_wanted = 0, n = 0;
    atomic_init(&w.next, all->first);
    for (size_t i = all->first; i < all->stop; i++) n_wanted += is_wanted(all, i);
    while (n + 1 < n_wanted && n < THREADS - 1 &&
           pthread_create(&threads[n], NULL, open_some, &w) == 0)
        n++;
    open_some(&w);
    while (n > 0) pthread_join(threads[--n], NULL);
}

cli_exit leaf_info(leaf_infos *all, size_t i, const caterva_info **out)
{
    size_t most = cli_is_url(all->part->path) ? LEAF_INFOS_AT_ONCE : 1;
    if (i < all->first || i >= all->stop) {
        leaf_infos_free(all);
        all->first = i;
        all->stop = i + most < all->part->list->n ? i + most : all->part->list->n;
        open_window(all);
    }
    const leaf_looked *found = &all->looked[i - all->first];
    *out = found->info;
    if (found->status == CATERVA_OK) return CLI_OK;
    char *url = tree_part_url(all->part, all->part->list->entries[i]);
    cli_exit code = url ? cli_fail_array(url, &found->error) : CLI_IO;
    free(url);
    return code;
}

void leaf_infos_free(leaf_infos *all)
{
    for (size_t i = all->first; i < all->stop; i++)
        caterva_info_release(all->looked[i - all->first].info);
    all->first = all->stop = 0;
}
