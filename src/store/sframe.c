/* Room: store. Which files make a directory an array, and the removal of just
 * these: a file of somebody else is never removed, and keeps its directory. */
#include "store/sframe.h"

#include "base/heap.h"
#include "store/descriptors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* C-Blosc2's own lock file. */
static const char foreign_lock[] = ".b2lock";

static const char chunk_suffix[] = ".chunk";

cv_chunk_name cv_sframe_chunk_name(cv_object id)
{
    cv_chunk_name name;
    (void)snprintf(name.text, sizeof name.text, "%08llX%s", (unsigned long long)id,
                   chunk_suffix);
    return name;
}

static bool is_chunk_name(const char *name)
{
    size_t digits = strspn(name, "0123456789ABCDEFabcdef");
    return digits >= 8 && digits <= 16 && strcmp(name + digits, chunk_suffix) == 0;
}

static bool is_array_name(const char *name)
{
    return is_chunk_name(name) || strcmp(name, CV_SFRAME_FRAME) == 0 ||
           strcmp(name, CV_SFRAME_NEW_FRAME) == 0 || strcmp(name, CV_SFRAME_LOCK) == 0 ||
           strcmp(name, foreign_lock) == 0;
}

static int open_listing(cv_dir dir, const char *name, cv_listing *out)
{
    cv_dir opened;
    int error = cv_open_dir(dir, name, CV_OPEN_NO_LINK, &opened);
    return error ? error : cv_listing_open(opened, out);
}

/* Or none any more: a writer that closes removes old chunks. */
static bool is_regular_file(cv_dir dir, const char *name)
{
    cv_file_info info;
    int error = cv_dir_get_link_info(dir, name, &info);
    return error ? error == ENOENT : info.kind == CV_KIND_FILE;
}

/* Appends to a list that grows by doubling. Returns 0 or ENOMEM. */
static int append_id(cv_object **ids, size_t *n, cv_object id)
{
    bool is_full = (*n & (*n - 1)) == 0; /* 0 or a power of two */
    if (is_full) {
        cv_object *grown =
            cv_realloc(*ids, *n * sizeof grown[0], (*n ? *n * 2 : 1) * sizeof grown[0]);
        if (!grown) return ENOMEM;
        *ids = grown;
    }
    (*ids)[(*n)++] = id;
    return 0;
}

/* True for the name of a chunk of ours, which says its id. */
static bool is_chunk_of(const char *name, cv_object *id)
{
    if (!is_chunk_name(name)) return false;
    unsigned long long number = strtoull(name, NULL, 16);
    *id = (cv_object)number;
    return number <= INT64_MAX && strcmp(cv_sframe_chunk_name(*id).text, name) == 0;
}

int cv_sframe_list(cv_dir dir, cv_object **ids, size_t *n)
{
    *ids = NULL;
    *n = 0;
    cv_listing listing;
    int error = open_listing(dir, ".", &listing);
    if (error) return error;
    for (const char *name; !error && (name = cv_listing_next(&listing, &error)) != NULL;) {
        cv_object id;
        if (is_chunk_of(name, &id)) error = append_id(ids, n, id);
    }
    cv_listing_close(&listing);
    if (!error) return 0;
    cv_free(*ids);
    *ids = NULL;
    *n = 0;
    return error;
}

bool cv_sframe_is_array_at(cv_dir dir, const char *name)
{
    cv_listing listing;
    int error = open_listing(dir, name, &listing);
    if (error) return false;
    bool has_frame = false, is_array = true;
    for (const char *n; is_array && (n = cv_listing_next(&listing, &error)) != NULL;) {
        is_array = is_array_name(n) && is_regular_file(listing.dir, n);
        has_frame = has_frame || strcmp(n, CV_SFRAME_FRAME) == 0;
    }
    cv_listing_close(&listing);
    return is_array && has_frame && !error;
}

/* One pass; some systems lose their place in a directory that changes. */
static bool remove_files_at(cv_dir dir, const char *name)
{
    cv_listing listing;
    bool removed = false;
    int error = open_listing(dir, name, &listing);
    if (error) return false;
    for (const char *n; (n = cv_listing_next(&listing, &error)) != NULL;)
        if (is_array_name(n) && cv_dir_remove(listing.dir, n) == 0) removed = true;
    cv_listing_close(&listing);
    return removed;
}

void cv_sframe_remove_at(cv_dir dir, const char *name)
{
    bool progress = true;
    while (progress && cv_dir_remove_directory(dir, name) != 0)
        progress = remove_files_at(dir, name);
}

static cv_status remove_chunks(cv_dir dir, const cv_object *ids, size_t n_ids,
                               cv_watch *watch, size_t *n, cv_error *err)
{
    cv_watch_set_steps(watch, (int64_t)n_ids);
    CV_TRY(cv_watch_step(watch, 0, err)); /* nothing is gone yet */
    for (size_t i = 0; i < n_ids; i++) {
        if (cv_dir_remove(dir, cv_sframe_chunk_name(ids[i]).text) == 0) (*n)++;
        CV_TRY(cv_watch_step(watch, 1, err));
    }
    return CV_OK;
}

/* With all chunks gone a stop comes too late. */
static cv_status remove_watched(cv_dir dir, cv_watch *watch, size_t *n, cv_error *err)
{
    cv_object *ids;
    size_t n_ids;
    if (cv_sframe_list(dir, &ids, &n_ids) != 0) return CV_OK;
    cv_status status = n_ids > 0 ? remove_chunks(dir, ids, n_ids, watch, n, err) : CV_OK;
    cv_free(ids);
    return *n < n_ids ? status : CV_OK;
}

cv_status cv_sframe_delete_at(cv_dir dir, const char *name, cv_watch *watch, size_t *n,
                              cv_error *err)
{
    cv_dir inner;
    *n = 0;
    if (watch && cv_dir_open(dir, name, CV_OPEN_NO_LINK, &inner) == 0) {
        cv_status status = remove_watched(inner, watch, n, err);
        cv_dir_close(&inner);
        CV_TRY(status);
    }
    cv_sframe_remove_at(dir, name);
    return CV_OK;
}
