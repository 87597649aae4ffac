/* Room: store. The process's list of holders of spare descriptors. Under the list's lock, give_up
 * takes the lock of the list of awake files (below), and tries to take others without waiting. */
#include "store/descriptors.h"

#include "base/os.h"

#include <stddef.h>

static struct {
    cv_mutex lock;
    cv_fd_holder *first, *last; /* `first` was asked longest ago */
} holders = {CV_MUTEX_INIT, NULL, NULL};

static void hold_on_fork(void);

/* ---- The list ------------------------------------------------------------- */

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
    hold_on_fork();
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

/* ---- Closing spare descriptors -------------------------------------------- */

/* Asks each holder once, from the first in the list on, until ENOUGH descriptors are closed. Moves
 * each holder that was asked to the end of the list. */
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

/* Returns whether to try again. Waits if no holder had a spare descriptor, because a descriptor in
 * use is often needed for only one read or write. */
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

int cv_listing_open_at(cv_dir dir, const char *name, cv_listing *out)
{
    cv_dir opened;
    int error = cv_open_dir(dir, name, CV_OPEN_NO_LINK, &opened);
    return error ? error : cv_listing_open(opened, out);
}

int cv_open_temp_file(cv_dir dir, const char *name, uint32_t mode, char temp[CV_OS_TEMP_NAME],
                      cv_file *out)
{
    int error = cv_dir_create_temp_file(dir, name, mode, temp, out);
    for (int waits = 0; wait_for_room(error, &waits);)
        error = cv_dir_create_temp_file(dir, name, mode, temp, out);
    return error;
}

/* ---- Files that rest ----
 *
 * The process's list of awake files. The first file has been awake for longest. The list's lock is
 * taken while the lock of a waking file is held. So under the list's lock, the lock of a file is
 * taken only if that needs no waiting. */

enum { CV_REST_AWAKE = 48 }; /* files; each has two descriptors */

static int give_up(cv_fd_holder *holder);

static struct {
    cv_mutex lock;
    cv_once once;
    cv_resting *first, *last;
    size_t n;
    cv_fd_holder holder;
} awake = {.lock = CV_MUTEX_INIT, .once = CV_ONCE_INIT, .holder = {.give_up = give_up}};

static void hold_on_fork(void)
{
    cv_thread_hold_on_fork(&awake.lock);
    cv_thread_hold_on_fork(&holders.lock); /* last added, locked first, as in give_up_some */
}

static void install(void) { cv_fd_holder_add(&awake.holder); }

static void append_awake(cv_resting *rest)
{
    rest->next = NULL;
    rest->before = awake.last;
    *(awake.last ? &awake.last->next : &awake.first) = rest;
    awake.last = rest;
    awake.n++;
}

static void take_out_awake(cv_resting *rest)
{
    *(rest->before ? &rest->before->next : &awake.first) = rest->next;
    *(rest->next ? &rest->next->before : &awake.last) = rest->before;
    awake.n--;
}

/* Puts the file to rest unless it is in use. Call with the list's lock. */
static bool put_to_rest(cv_resting *rest)
{
    if (!cv_mutex_try_lock(&rest->lock)) return false;
    bool slept = rest->users == 0 && rest->sleep(rest);
    if (slept) rest->is_resting = true;
    cv_mutex_unlock(&rest->lock);
    return slept;
}

static int reduce(size_t most, size_t tries)
{
    int n = 0;
    cv_mutex_lock(&awake.lock);
    for (size_t i = 0; i < tries && awake.n > most; i++) {
        cv_resting *rest = awake.first;
        take_out_awake(rest);
        if (put_to_rest(rest))
            n++;
        else
            append_awake(rest);
    }
    cv_mutex_unlock(&awake.lock);
    return n;
}

static int give_up(cv_fd_holder *holder)
{
    enum { ENOUGH = 8 };
    (void)holder;
    cv_mutex_lock(&awake.lock);
    size_t n = awake.n;
    cv_mutex_unlock(&awake.lock);
    return reduce(n > ENOUGH ? n - ENOUGH : 0, n);
}

static void add(cv_resting *rest)
{
    cv_mutex_lock(&awake.lock);
    append_awake(rest);
    cv_mutex_unlock(&awake.lock);
}

void cv_rest_start(cv_resting *rest, bool (*sleep)(cv_resting *rest),
                   cv_status (*wake)(cv_resting *rest, cv_error *err))
{
    enum { TRIES = 4 };
    cv_once_run(&awake.once, install);
    rest->sleep = sleep;
    rest->wake = wake;
    cv_mutex_init(&rest->lock);
    add(rest);
    (void)reduce(CV_REST_AWAKE, TRIES);
}

void cv_rest_stop(cv_resting *rest)
{
    cv_mutex_lock(&awake.lock);
    if (!rest->is_resting) take_out_awake(rest);
    cv_mutex_unlock(&awake.lock);
    cv_mutex_destroy(&rest->lock);
}

cv_status cv_rest_begin(cv_resting *rest, cv_error *err)
{
    enum { TRIES = 4 };
    cv_status status = CV_OK;
    cv_mutex_lock(&rest->lock);
    bool wakes = rest->is_resting;
    if (wakes) status = rest->wake(rest, err);
    if (status == CV_OK) {
        rest->users++;
        if (wakes) {
            rest->is_resting = false;
            add(rest);
        }
    }
    cv_mutex_unlock(&rest->lock);
    if (wakes && status == CV_OK) (void)reduce(CV_REST_AWAKE, TRIES);
    return status;
}

void cv_rest_end(cv_resting *rest)
{
    cv_mutex_lock(&rest->lock);
    rest->users--;
    cv_mutex_unlock(&rest->lock);
}
