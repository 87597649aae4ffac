/* Room: store. Marks of files that are written and closed at the moment. Must not know what
 * the files are, nor when they are closed. */
#include "store/keeper.h"

#include "base/heap.h"
#include "base/os_file.h"
#include "store/descriptors.h"
#include "store/refusals.h"

cv_status cv_keeper_new(cv_dir dir, const char *shown, cv_keeper **out, cv_error *err)
{
    cv_keeper *keeper = cv_calloc(1, sizeof *keeper);
    if (!keeper) return cv_fail_memory(err, sizeof *keeper, "a tree handle");
    int error = cv_open_dir(dir, ".", 0, &keeper->root);
    if (error) {
        cv_free(keeper);
        return cv_fail_open(err, error, shown);
    }
    atomic_init(&keeper->references, 1);
    *out = keeper;
    return CV_OK;
}

cv_keeper *cv_keeper_retain(cv_keeper *keeper)
{
    atomic_fetch_add(&keeper->references, 1);
    return keeper;
}

void cv_keeper_release(cv_keeper *keeper)
{
    if (!keeper || atomic_fetch_sub(&keeper->references, 1) > 1) return;
    cv_dir_close(&keeper->root);
    cv_free(keeper);
}

/* Opens the directory above. False at the root, and where it may not be opened. */
static bool go_up(cv_dir *dir)
{
    cv_dir above;
    cv_file_info own, parent;
    if (cv_open_dir(*dir, "..", 0, &above)) return false;
    bool is_higher = cv_file_get_info(cv_dir_as_file(*dir), &own) == 0 &&
                     cv_file_get_info(cv_dir_as_file(above), &parent) == 0 &&
                     (own.inode != parent.inode || own.device != parent.device);
    cv_dir_close(dir);
    *dir = above;
    return is_higher;
}

bool cv_keeper_has(cv_dir dir, cv_file file)
{
    cv_dir at;
    cv_file_info info;
    if (cv_file_get_info(file, &info) || cv_open_dir(dir, ".", 0, &at)) return false;
    bool found = false;
    do {
        found = cv_file_is_marked(cv_dir_as_file(at), info.inode);
    } while (!found && go_up(&at));
    cv_dir_close(&at);
    return found;
}

int cv_keeper_ask(cv_dir dir, cv_file file)
{
    int error = cv_file_ask_lock(file);
    return !error && cv_keeper_has(dir, file) ? EWOULDBLOCK : error;
}

/* Locked first: a mark that is not there by then does not come any more. Its writer may meet
 * this lock for a moment, and tries again. */
int cv_keeper_lock(cv_dir dir, cv_file file)
{
    int error = cv_file_lock(file);
    if (error || !cv_keeper_has(dir, file)) return error;
    cv_file_unlock(file);
    return EWOULDBLOCK;
}
