/* Room: engine/read. The threads of a walk in waves. Helpers have as many jobs before them as
 * there are helpers: the leader does what comes beyond that, while more arrives. */
#include "engine/read/wave_team.h"

cv_status cv_team_init(cv_team *t, int helpers, cv_error *err)
{
    *t = (cv_team){.leader = cv_thread_self(), .n_helpers = helpers};
    cv_mutex_init(&t->lock);
    cv_cond_init(&t->changed);
    return cv_buffer_reserve(&t->ready, (size_t)helpers * sizeof(size_t), err);
}

void cv_team_destroy(cv_team *t)
{
    cv_buffer_free(&t->ready);
    cv_cond_destroy(&t->changed);
    cv_mutex_destroy(&t->lock);
}

/* With the lock. */
static void note_failure(cv_team *t, cv_status status, const cv_error *error)
{
    if (t->status != CV_OK) return;
    t->status = status;
    t->error = *error;
}

/* ---- Jobs that are handed on ------------------------------------------------- */

static size_t *ready_at(const cv_team *t, size_t i)
{
    return (size_t *)(void *)t->ready.data + i % (size_t)t->n_helpers;
}

static bool take_ready(cv_team *t, size_t *job)
{
    if (t->status != CV_OK) t->n_ready = 0;
    if (t->n_ready == 0) return false;
    *job = *ready_at(t, t->next_ready++);
    t->n_ready--;
    return true;
}

/* Called and left with the lock. */
static void do_ready(cv_team *t, size_t job, cv_worker *worker)
{
    cv_error error = {0};
    t->n_busy++;
    cv_mutex_unlock(&t->lock);
    cv_status status = t->work(t->context, job, worker, &error);
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, &error);
    if (--t->n_busy == 0) cv_cond_wake_all(&t->changed);
}

void cv_team_help(cv_team *t, cv_worker *worker)
{
    size_t job;
    cv_mutex_lock(&t->lock);
    while (!t->ended) {
        if (take_ready(t, &job)) {
            do_ready(t, job, worker);
            continue;
        }
        t->n_idle++;
        cv_cond_wait(&t->changed, &t->lock);
        t->n_idle--;
    }
    cv_mutex_unlock(&t->lock);
}

/* True: somebody else does the job, or nobody needs to any more. */
static bool hand_on(cv_team *t, size_t job, cv_status *status, cv_error *err)
{
    if (t->n_helpers == 0) return false;
    cv_mutex_lock(&t->lock);
    *status = t->status;
    if (*status != CV_OK && err) *err = t->error;
    bool is_handed = *status == CV_OK && t->n_ready < (size_t)t->n_helpers;
    if (is_handed) {
        *ready_at(t, t->next_ready + t->n_ready++) = job;
        if (t->n_idle > 0) cv_cond_wake_one(&t->changed);
    }
    cv_mutex_unlock(&t->lock);
    return is_handed || *status != CV_OK;
}

cv_status cv_team_do(cv_team *t, size_t job, cv_worker *worker, cv_error *err)
{
    cv_status status = CV_OK;
    if (hand_on(t, job, &status, err)) return status;
    return t->work(t->context, job, worker, err);
}

cv_status cv_team_finish(cv_team *t, cv_status status, cv_worker *worker, cv_error *err)
{
    size_t job;
    if (t->n_helpers == 0) return status;
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, err ? err : &t->error);
    while (take_ready(t, &job)) do_ready(t, job, worker);
    while (t->n_busy > 0) {
        cv_error error;
        cv_status said = cv_watch_wait(t->watch, &t->changed, &t->lock, &error);
        if (said != CV_OK) note_failure(t, said, &error);
    }
    if (status == CV_OK && t->status != CV_OK) {
        status = t->status;
        if (err) *err = t->error;
    }
    cv_mutex_unlock(&t->lock);
    return status;
}

/* ---- Who leads ------------------------------------------------------------------ */

bool cv_team_is_leader(const cv_team *t) { return cv_thread_is_self(t->leader); }

void cv_team_end(cv_team *t, bool leads, cv_status status, const cv_error *error)
{
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, error);
    t->ended = t->ended || leads;
    cv_cond_wake_all(&t->changed);
    cv_mutex_unlock(&t->lock);
}
