/* Room: store. The list of those that are awake, the one awake for longest first. State of the
 * process, as the limit is. Its lock is taken with the lock of one that wakes, and under it
 * other locks are only tried. */
#include "store/rest.h"

#include "store/descriptors.h"

static int give_up(cv_fd_holder *holder);

static struct {
    cv_mutex lock;
    cv_once once;
    cv_resting *first, *last;
    size_t n;
    cv_fd_holder holder;
} awake = {.lock = CV_MUTEX_INIT, .once = CV_ONCE_INIT, .holder = {.give_up = give_up}};

static void before_fork(void) { cv_mutex_lock(&awake.lock); }
static void after_fork(void) { cv_mutex_unlock(&awake.lock); }

static void install(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork, after_fork);
    cv_fd_holder_add(&awake.holder);
}

static void append(cv_resting *rest)
{
    rest->next = NULL;
    rest->before = awake.last;
    *(awake.last ? &awake.last->next : &awake.first) = rest;
    awake.last = rest;
    awake.n++;
}

static void take_out(cv_resting *rest)
{
    *(rest->before ? &rest->before->next : &awake.first) = rest->next;
    *(rest->next ? &rest->next->before : &awake.last) = rest->before;
    awake.n--;
}

/* Call with the lock. */
static bool put_to_rest(cv_resting *rest)
{
    if (!cv_mutex_try_lock(&rest->lock)) return false;
    bool slept = rest->users == 0 && rest->sleep(rest);
    if (slept) rest->is_resting = true;
    cv_mutex_unlock(&rest->lock);
    return slept;
}

/* Puts some to rest until no more than `most` are awake, and asks `tries` of them. */
static int reduce(size_t most, size_t tries)
{
    int n = 0;
    cv_mutex_lock(&awake.lock);
    for (size_t i = 0; i < tries && awake.n > most; i++) {
        cv_resting *rest = awake.first;
        take_out(rest);
        if (put_to_rest(rest))
            n++;
        else
            append(rest);
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
    append(rest);
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
    if (!rest->is_resting) take_out(rest);
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
