/* Room: store. Directories of parts, counted and emptied. Which of them may go is for
 * job_folder.c to say. */
#include "store/job_parts.h"

#include "store/descriptors.h"

#include <string.h>

/* Of a directory that is no link: a part is nobody's way to somewhere else. */
static int list_directory(cv_dir parent, const char *name, cv_listing *listing)
{
    cv_dir dir;
    int error = cv_open_dir(parent, name, CV_OPEN_NO_LINK, &dir);
    return error ? error : cv_listing_open(dir, listing);
}

int64_t cv_parts_count(cv_dir parent, const char *name)
{
    cv_listing listing;
    int error;
    int64_t n = 0;
    if (list_directory(parent, name, &listing)) return 0;
    while (cv_listing_next(&listing, &error)) n++;
    cv_listing_close(&listing);
    return n;
}

int cv_parts_tell(cv_watch *watch, int64_t n)
{
    return cv_watch_tick(watch, n, NULL) == CV_OK ? 0 : ECANCELED;
}

/* Removes the files of a directory. */
static int remove_files(cv_dir parent, const char *name, cv_watch *watch)
{
    cv_listing listing;
    int error = list_directory(parent, name, &listing);
    if (error) return error;
    const char *entry;
    while (!error && (entry = cv_listing_next(&listing, &error))) {
        error = cv_dir_remove(listing.dir, entry);
        if (error == ENOENT) error = 0;
        if (!error) error = cv_parts_tell(watch, 0);
    }
    cv_listing_close(&listing);
    return error;
}

int cv_part_remove(cv_dir dir, const char *name, cv_watch *watch)
{
    int error = cv_dir_remove(dir, name);
    if (error != EISDIR && error != EPERM) return error == ENOENT ? 0 : error;
    error = remove_files(dir, name, watch);
    if (!error) error = cv_dir_remove_directory(dir, name);
    return error == ENOENT ? 0 : error;
}

/* All that can be: parts of other users may stay, and the first reason comes back. */
static int remove_parts(cv_dir parent, const char *name, cv_watch *watch)
{
    cv_listing listing;
    int error = list_directory(parent, name, &listing);
    if (error) return error;
    const char *entry;
    int failed = 0;
    while (failed != ECANCELED && (entry = cv_listing_next(&listing, &error))) {
        int one =
            strcmp(entry, CV_JOB_RECORD) != 0 ? cv_part_remove(listing.dir, entry, watch) : 0;
        if (one && !failed) failed = one;
        if (one != ECANCELED) one = cv_parts_tell(watch, 1);
        if (one == ECANCELED) failed = one;
    }
    cv_listing_close(&listing);
    return failed ? failed : error;
}

int cv_parts_remove(cv_dir all, const char *name, cv_watch *watch)
{
    int error = ENOTEMPTY; /* twice: a worker may have put something there meanwhile */
    for (int i = 0; i < 2 && (error == ENOTEMPTY || error == EEXIST); i++) {
        error = remove_parts(all, name, watch);
        if (!error) error = remove_files(all, name, watch);
        if (!error) error = cv_dir_remove_directory(all, name);
    }
    return error;
}

int cv_parts_sweep(cv_dir all, const char *prefix, cv_watch *watch)
{
    cv_dir again;
    cv_listing listing;
    int error, stopped = 0;
    if (cv_open_dir(all, ".", 0, &again) || cv_listing_open(again, &listing)) return 0;
    const char *name;
    while (!stopped && (name = cv_listing_next(&listing, &error))) {
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        cv_watch_expect(watch, watch ? cv_parts_count(all, name) : 0);
        if (cv_parts_remove(all, name, watch) == ECANCELED) stopped = ECANCELED;
    }
    cv_listing_close(&listing);
    return stopped;
}
