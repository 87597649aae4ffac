/* Room: store. The one list of who holds descriptors that can be done without. It is state
 * of the process, as the limit is; its lock is the last one that anybody takes, and who
 * gives up only tries other locks. */
#include "store/descriptors.h"

#include "base/os.h"
#include "base/thread.h"

#include <stddef.h>

static struct {
    cv_mutex lock;
    cv_once once;
    cv_fd_holder *first, *last; /* who gave last stands last */
} holders = {CV_MUTEX_INIT, CV_ONCE_INIT, NULL, NULL};

/* ---- The list ------------------------------------------------------------- */

static void before_fork(void) { cv_mutex_lock(&holders.lock); }
static void after_fork(void) { cv_mutex_unlock(&holders.lock); }

static void install_fork_handlers(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork, after_fork);
}

static void append(cv_fd_holder *holder)
{
    holder->next = NULL;
    holder->before = holders.last;
    *(holders.last ? &holders.last->next : &holders.first) = holder;
    holders.last = holder;
}

static void take_out(cv_fd_holder *holder)
{
    *(holder->before ? &holder->before->next : &holders.first) = holder->next;
    *(holder->next ? &holder->next->before : &holders.last) = holder->before;
}

void cv_fd_holder_add(cv_fd_holder *holder)
{
    cv_once_run(&holders.once, install_fork_handlers);
    cv_mutex_lock(&holders.lock);
    append(holder);
    cv_mutex_unlock(&holders.lock);
}

void cv_fd_holder_remove(cv_fd_holder *holder)
{
    cv_mutex_lock(&holders.lock);
    take_out(holder);
    cv_mutex_unlock(&holders.lock);
}

/* ---- Giving up ------------------------------------------------------------ */

/* Several at once: who opens one file too many opens more. Each holder is asked once, the
 * one that has kept its own for longest first. */
static int give_up_some(void)
{
    enum { ENOUGH = 8 };
    int given = 0;
    cv_mutex_lock(&holders.lock);
    cv_fd_holder *end = holders.last, *holder = holders.first;
    while (holder && given < ENOUGH) {
        cv_fd_holder *next = holder == end ? NULL : holder->next;
        given += holder->give_up(holder);
        take_out(holder);
        append(holder);
        holder = next;
    }
    cv_mutex_unlock(&holders.lock);
    return given;
}

bool cv_descriptors_make_room(int error)
{
    return (error == EMFILE || error == ENFILE) && give_up_some() > 0;
}

/* True when asking again is worth it, after a while perhaps: what others use they use for
 * a read or write of a file. */
static bool wait_for_room(int error, int *waits)
{
    enum { WAITS = 200, WAIT_NS = 1000000 };
    if (error != EMFILE && error != ENFILE) return false;
    if (cv_descriptors_make_room(error)) return true;
    if (*waits == WAITS) return false;
    ++*waits;
    cv_os_sleep_ns(WAIT_NS);
    return true;
}

int cv_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out)
{
    int error = cv_dir_open_file(dir, name, how, mode, out);
    for (int waits = 0; wait_for_room(error, &waits);)
        error = cv_dir_open_file(dir, name, how, mode, out);
    return error;
}

int cv_open_dir(cv_dir dir, const char *name, unsigned how, cv_dir *out)
{
    int error = cv_dir_open(dir, name, how, out);
    for (int waits = 0; wait_for_room(error, &waits);)
        error = cv_dir_open(dir, name, how, out);
    return error;
}

int cv_open_temp_file(cv_dir dir, const char *name, uint32_t mode, char temp[CV_OS_TEMP_NAME],
                      cv_file *out)
{
    int error = cv_dir_create_temp_file(dir, name, mode, temp, out);
    for (int waits = 0; wait_for_room(error, &waits);)
        error = cv_dir_create_temp_file(dir, name, mode, temp, out);
    return error;
}
