/* One thread that leads a walk in waves, and those that help it: jobs handed on, their first
 * failure, and who waits for whom. What a job is, is not known here. */
#ifndef CV_ENGINE_WAVE_TEAM_H
#define CV_ENGINE_WAVE_TEAM_H

#include "base/heap.h"
#include "engine/run/worker.h"

typedef struct cv_team {
    cv_watch *watch; /* asked while the leader waits; or NULL */
    cv_thread leader;
    /* Does a job; of one that was handed on, on any thread. */
    cv_status (*work)(void *context, size_t job, cv_worker *worker, cv_error *err);
    void *context;
    int n_helpers;
    /* Under the lock. */
    cv_mutex lock;
    cv_cond changed;
    cv_buffer ready; /* a ring of n_helpers numbers, n_ready of them from next_ready on */
    size_t next_ready, n_ready;
    int n_idle, n_busy;
    bool ended;
    cv_status status; /* of the first failure */
    cv_error error;
} cv_team;

/* Up to `helpers` threads beside the calling one, which leads: only there can every function
 * of a caller's answer, so who waits for what is far must be there. Destroy it in any case. */
cv_status cv_team_init(cv_team *team, int helpers, cv_error *err);
void cv_team_destroy(cv_team *team);

/* For all threads of the team, which come to cv_team_end: true for the leader. */
bool cv_team_is_leader(const cv_team *team);
void cv_team_end(cv_team *team, bool leads, cv_status status, const cv_error *error);

/* Does what is handed on until the leader ends. */
void cv_team_help(cv_team *team, cv_worker *worker);

/* The leader's: has the job done, by a helper, or by `worker` now where they have enough to
 * do. The first failure of any. */
cv_status cv_team_do(cv_team *team, size_t job, cv_worker *worker, cv_error *err);

/* The leader's: all that was handed on is done, or, after a failure such as `status`, given
 * up. */
cv_status cv_team_finish(cv_team *team, cv_status status, cv_worker *worker, cv_error *err);

#endif
