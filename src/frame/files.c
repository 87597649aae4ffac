/* Room: frame. Chunk files that no committed state names any more. Removing
 * them is never a must: it happens when it harms nobody, after the state that
 * does without them is durable, and what fails is left to the next writer. */
#include "frame/files.h"

#include "base/arith.h"
#include "base/heap.h"
#include "frame/index_read.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

cv_status cv_files_named(const cv_index *index, int64_t n, int64_t **files, size_t *n_files,
                         cv_error *err)
{
    *n_files = 0;
    size_t n_stored = 0;
    for (int64_t i = 0; i < n; i++) n_stored += !cv_offset_is_special(cv_index_get(index, i));
    size_t size = (n_stored + 1) * sizeof(int64_t);
    *files = cv_malloc(size);
    if (!*files) return cv_fail_memory(err, size, "a list of chunk files");
    for (int64_t i = 0; i < n; i++) {
        int64_t entry = cv_index_get(index, i);
        if (!cv_offset_is_special(entry)) (*files)[(*n_files)++] = entry;
    }
    qsort(*files, *n_files, sizeof **files, by_number);
    return CV_OK;
}

/* Sorts `files` and keeps those that `named`, which ascends, does not have. Returns how many. */
static size_t drop_named(int64_t *files, size_t n_files, const int64_t *named, size_t n_named)
{
    size_t left = 0;
    if (n_files == 0) return 0;
    qsort(files, n_files, sizeof files[0], by_number);
    for (size_t i = 0, k = 0; i < n_files; i++) {
        while (k < n_named && named[k] < files[i]) k++;
        if (k == n_named || named[k] != files[i]) files[left++] = files[i];
    }
    return left;
}

/* Those that were put are listed, too: a chunk may lie beyond a shape that has shrunk since. */
static cv_status add_put(const cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err)
{
    size_t item = sizeof **files, n = *n_files + txn->n_new_files;
    if (txn->n_new_files == 0) return CV_OK;
    int64_t *grown = cv_realloc(*files, *n_files * item, n * item);
    if (!grown) return cv_fail_memory(err, n * item, "a list of chunk files");
    memcpy(grown + *n_files, txn->new_files, txn->n_new_files * item);
    *files = grown;
    *n_files = n;
    return CV_OK;
}

cv_status cv_files_unnamed(cv_txn *txn, int64_t **files, size_t *n_files, cv_error *err)
{
    const cv_index *old;
    int64_t *kept;
    size_t n_kept;
    if (!txn->has_index) return CV_OK;
    CV_TRY(cv_snapshot_index(txn->base, txn->frame->store, &old, err));
    CV_TRY(cv_files_named(old, txn->base->grid.n_chunks, files, n_files, err));
    CV_TRY(add_put(txn, files, n_files, err));
    CV_TRY(cv_files_named(&txn->index, txn->state->grid.n_chunks, &kept, &n_kept, err));
    *n_files = drop_named(*files, *n_files, kept, n_kept);
    cv_free(kept);
    return CV_OK;
}

/* ---- Files that were replaced -------------------------------------------- */

void cv_files_replaced(cv_txn *txn, const int64_t *files, size_t n_files)
{
    size_t n = txn->n_old_files + n_files;
    if (n_files == 0) return;
    cv_object *grown =
        cv_realloc(txn->old_files, txn->n_old_files * sizeof grown[0], n * sizeof grown[0]);
    if (!grown) return; /* the next writer finds them */
    memcpy(grown + txn->n_old_files, files, n_files * sizeof files[0]);
    txn->old_files = grown;
    txn->n_old_files = n;
}

void cv_files_remove_old(cv_txn *txn, const cv_snapshot *state)
{
    cv_store *store = txn->frame->store;
    if (txn->n_old_files == 0 || txn->frame->poisoned) return;
    if (cv_snapshot_has_older_readers(state, store)) return;
    for (size_t i = 0; i < txn->n_old_files; i++)
        cv_store_remove(store, txn->old_files[i], NULL);
    txn->n_old_files = 0;
}

/* ---- Files that were left ------------------------------------------------- */

/* What stands in the frame's place must be what a power cut leaves there,
 * before anything that an older one names goes. *n: those that stay. */
static cv_status remove_left(cv_txn *txn, int64_t *files, size_t *n, cv_error *err)
{
    cv_store *store = txn->frame->store;
    if (*n == 0 || cv_snapshot_has_older_readers(txn->base, store)) return CV_OK;
    if (txn->frame->durability != CATERVA_DURABILITY_NONE)
        CV_TRY(cv_store_sync(store, CV_FRAME_OBJECT, err));
    size_t stay = 0;
    for (size_t i = 0; i < *n; i++)
        if (cv_store_remove(store, files[i], NULL) != CV_OK) files[stay++] = files[i];
    *n = stay;
    return CV_OK;
}

/* A number given twice could show one chunk's bytes to a reader who looks for
 * another's: new ones begin above all files that are there. */
static void choose_next(cv_txn *txn, const int64_t *ascending, size_t n)
{
    if (n > 0 && ascending[n - 1] < INT64_MAX)
        txn->next_file = cv_max_i64(txn->next_file, ascending[n - 1] + 1);
}

cv_status cv_files_begin(cv_txn *txn, cv_error *err)
{
    cv_store *store = txn->frame->store;
    cv_snapshot *base = txn->base;
    if (!base->header.sparse || !store->published) return CV_OK;

    const cv_index none = {.same = cv_offset_of_kind(CV_REF_ZEROS)}, *index = &none;
    int64_t *named = NULL, *files = NULL;
    size_t n_named, n_files;
    cv_status status = CV_OK;
    if (base->grid.n_chunks > 0) status = cv_snapshot_index(base, store, &index, err);
    if (status == CV_OK)
        status = cv_files_named(index, base->grid.n_chunks, &named, &n_named, err);
    if (status == CV_OK) status = cv_store_list(store, &files, &n_files, err);
    if (status == CV_OK) choose_next(txn, named, n_named);
    if (status == CV_OK && n_files > 0) {
        n_files = drop_named(files, n_files, named, n_named);
        status = remove_left(txn, files, &n_files, err);
        choose_next(txn, files, n_files);
    }
    cv_free(named);
    cv_free(files);
    return status;
}
