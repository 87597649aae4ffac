/* Room: engine/run. Lists of errands: who takes one, who has told it, who waits. What an
 * errand is about is not known here. All that is kept is guarded by the pool's lock, so
 * that a child of fork finds it whole. */
#include "engine/run/errands.h"

/* Functions of callers that this thread is in, one within another. */
static _Thread_local int n_telling;

/* ---- Lists, with the lock -------------------------------------------------- */

static void unlink_waiting(cv_errands *list, cv_errand *e)
{
    *(e->before ? &e->before->next : &list->first) = e->next;
    *(e->next ? &e->next->before : &list->last) = e->before;
    e->before = e->next = NULL;
}

static void append_waiting(cv_errands *list, cv_errand *e)
{
    e->before = list->last;
    *(list->last ? &list->last->next : &list->first) = e;
    list->last = e;
}

static void put_first(cv_errands *list, cv_errand *e)
{
    e->next = list->first;
    *(list->first ? &list->first->before : &list->last) = e;
    list->first = e;
}

static void add_busy(cv_errands *list, cv_errand *e)
{
    e->next = list->busy;
    if (list->busy) list->busy->before = e;
    list->busy = e;
}

static void remove_busy(cv_errands *list, cv_errand *e)
{
    *(e->before ? &e->before->next : &list->busy) = e->next;
    if (e->next) e->next->before = e->before;
    e->before = e->next = NULL;
}

static void begin_telling(cv_errands *list, cv_errand *e)
{
    if (e->state < CV_ERRAND_DONE) atomic_fetch_sub(&list->n_open, 1);
    e->state = CV_ERRAND_TELLING;
    e->teller = cv_thread_self();
}

/* Nobody will tell of it in this process. */
static void forget(cv_errand *e)
{
    e->list = NULL;
    e->state = CV_ERRAND_OVER;
    cv_watch_stop(&e->watch);
    e->free(e);
}

static bool is_told_here(const cv_errand *e)
{
    return e->state == CV_ERRAND_TELLING && cv_thread_is_self(e->teller);
}

/* In a child of fork: what the parent had is the parent's, but for a function that has
 * forked itself and will return. */
static void disown(cv_errands *list)
{
    if (list->process == cv_pool_process()) return;
    list->process = cv_pool_process();
    while (list->first) {
        cv_errand *e = list->first;
        unlink_waiting(list, e);
        forget(e);
    }
    for (cv_errand *e = list->busy, *next; e; e = next) {
        next = e->next;
        if (is_told_here(e)) continue;
        remove_busy(list, e);
        forget(e);
    }
    cv_cond_init(&list->calm);
    atomic_store(&list->n_open, 0);
}

/* ---- One errand ------------------------------------------------------------- */

bool cv_errand_is_told_here(const cv_errand *errand)
{
    cv_pool_lock();
    bool here = is_told_here(errand);
    cv_pool_unlock();
    return here;
}

/* The list may be gone by the time that the function returns. */
static void tell(void *context)
{
    cv_errand *e = context;
    n_telling++;
    if (e->tell) e->tell(e);
    n_telling--;
    cv_pool_lock();
    cv_errands *list = e->list;
    if (list) {
        remove_busy(list, e);
        cv_cond_wake_all(&list->calm);
    }
    e->list = NULL;
    e->state = CV_ERRAND_OVER;
    cv_cond_wake_all(&e->over);
    cv_pool_unlock();
    e->free(e);
}

/* The first one, or NULL. */
static cv_errand *take(cv_errands *list, bool suspended)
{
    cv_pool_lock();
    disown(list);
    bool may_begin = suspended || !atomic_load(&list->is_held);
    cv_errand *e = may_begin ? list->first : NULL;
    if (e) {
        unlink_waiting(list, e);
        e->state = CV_ERRAND_RUNNING;
        add_busy(list, e);
    }
    cv_pool_unlock();
    return e;
}

static bool do_first(void *context, cv_pool_after *after)
{
    cv_errands *list = context;
    cv_errand *e = take(list, false);
    if (!e) return false;
    e->run(e);
    cv_pool_lock();
    begin_telling(list, e);
    cv_pool_unlock();
    *after = (cv_pool_after){tell, e};
    return true;
}

void cv_errand_cancel(cv_errand *errand)
{
    cv_watch_stop(&errand->watch);
    cv_pool_lock();
    cv_errands *list = errand->list;
    if (list) disown(list);
    if (errand->list && errand->state == CV_ERRAND_WAITING) {
        unlink_waiting(list, errand);
        put_first(list, errand);
    }
    cv_pool_unlock();
}

bool cv_errand_wait(cv_errand *errand)
{
    cv_pool_lock();
    if (errand->list) disown(errand->list);
    bool may_wait = n_telling == 0;
    while (may_wait && errand->state != CV_ERRAND_OVER) cv_pool_wait(&errand->over);
    bool is_known = errand->state == CV_ERRAND_OVER || is_told_here(errand);
    cv_pool_unlock();
    return is_known;
}

/* ---- The handle's side ------------------------------------------------------ */

void cv_errands_init(cv_errands *list, int most)
{
    *list = (cv_errands){.process = cv_pool_process()};
    list->job = (cv_pool_job){.step = do_first, .context = list, .most = most};
    if (most < 1) list->job.most = 1;
    cv_cond_init(&list->calm);
}

/* Whether one may be added; with the lock, as what follows. The job may be posted in vain. */
static cv_status make_ready(cv_errands *list, cv_error *err)
{
    disown(list);
    if (list->is_closed)
        return cv_fail(err, CATERVA_ESTOPPED, -1, "the array is being closed");
    if (cv_pool_post_locked(&list->job)) return CV_OK;
    return cv_fail(err, CATERVA_ENOMEM, -1,
                   "the system has no thread for work in the background");
}

/* Nothing of the list is looked at without the lock: the errand may be told before the
 * caller returns, and close the list. */
static void add(cv_errand *errand)
{
    append_waiting(errand->list, errand);
    atomic_fetch_add(&errand->list->n_open, 1);
}

static void prepare(cv_errand *errand)
{
    cv_watch_init(&errand->watch, NULL, NULL);
    cv_cond_init(&errand->over);
    errand->state = CV_ERRAND_WAITING;
    atomic_store(&errand->list->is_used, true);
}

cv_status cv_errands_add(cv_errand *first, cv_error *err)
{
    cv_status status = CV_OK;
    for (cv_errand *e = first; e; e = e->next) prepare(e);
    cv_pool_lock();
    for (cv_errand *e = first; e && status == CV_OK; e = e->next)
        status = make_ready(e->list, err);
    for (cv_errand *e = first, *next; e; e = next) {
        next = e->next;
        e->next = NULL;
        if (status == CV_OK)
            add(e);
        else
            e->list = NULL;
    }
    cv_pool_unlock();
    return status;
}

/* What is read while `is_held` is true, by a step that takes one, comes after it was set:
 * either such a step finds it, or it is seen here. */
void cv_errands_suspend(cv_errands *list)
{
    atomic_store(&list->is_held, true);
    if (atomic_load(&list->n_open) > 0) cv_pool_withdraw(&list->job);
}

void cv_errands_resume(cv_errands *list)
{
    if (!atomic_load_explicit(&list->is_held, memory_order_relaxed)) return;
    atomic_store(&list->is_held, false);
    if (atomic_load(&list->n_open) > 0) cv_pool_post(&list->job);
}

/* Those that are added meanwhile, by functions that are being told, wait on. */
void cv_errands_settle(cv_errands *list)
{
    int n = 0;
    if (!atomic_load(&list->is_used)) return;
    cv_pool_lock();
    disown(list);
    for (const cv_errand *e = list->first; e; e = e->next) n++;
    cv_pool_unlock();
    for (; n > 0; n--) {
        cv_errand *e = take(list, true);
        if (!e) return;
        e->run(e);
        cv_pool_lock();
        e->state = CV_ERRAND_DONE;
        atomic_fetch_sub(&list->n_open, 1);
        cv_pool_unlock();
    }
}

/* One that is done, from now on being told by this thread; or NULL. */
static cv_errand *take_done(cv_errands *list)
{
    cv_pool_lock();
    cv_errand *e = list->busy;
    while (e && e->state != CV_ERRAND_DONE) e = e->next;
    if (e) begin_telling(list, e);
    cv_pool_unlock();
    return e;
}

void cv_errands_tell_settled(cv_errands *list)
{
    for (cv_errand *e = take_done(list); e; e = take_done(list)) tell(e);
}

/* All are to end. */
static void stop_all(cv_errands *list)
{
    cv_pool_lock();
    disown(list);
    list->is_closed = true;
    for (cv_errand *e = list->first; e; e = e->next) cv_watch_stop(&e->watch);
    for (cv_errand *e = list->busy; e; e = e->next) cv_watch_stop(&e->watch);
    cv_pool_unlock();
}

static bool is_calm(const cv_errands *list)
{
    const cv_errand *e = list->busy;
    while (e && is_told_here(e)) e = e->next;
    return !e;
}

void cv_errands_close(cv_errands *list)
{
    if (!atomic_load(&list->is_used)) return;
    stop_all(list);
    cv_errands_suspend(list);
    cv_errands_settle(list); /* each looks at its watch first */
    cv_errands_tell_settled(list);
    cv_pool_lock();
    while (!is_calm(list)) cv_pool_wait(&list->calm);
    while (list->busy) { /* what has called this */
        cv_errand *e = list->busy;
        remove_busy(list, e);
        e->list = NULL;
    }
    cv_pool_unlock();
    cv_pool_withdraw(&list->job); /* a function may have posted it in vain */
}
