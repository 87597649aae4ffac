/* Room: engine/read. A walk in waves. How the store reads many ranges at once, and from where,
 * is not known here.
 *
 *     window    so many touched chunks that their lists are small; what is there decoded is
 *        |      delivered at once, the other blocks are listed
 *     layouts   of all chunks of the window but those that are read whole, in one wave, or two
 *        |
 *     blocks    their runs, which are shared among slots of memory:
 *
 *                 slot 0   [run run]--->[run]--->[run run run]--->
 *                 slot 1   [run run run run]------->[run run]----->
 *                 slot 2   [run run run run run run]------------->
 *
 * Where the store borrows memory there is one wave for all of it: what is asked for is on its
 * way, and waits there until what came before it is decoded (wave_room.h). Else
 * each slot is a wave of its own: when all of it is decoded it takes what comes next, while the
 * others are still on their way. They are of different sizes, so that they do not come to their
 * ends at once, and the way is never empty. What fits the memory as a whole is one slot, and so
 * is all where a store cannot begin a wave before another one has ended.
 *
 * The calling thread leads: it plans, asks the store, and is handed what arrives. It passes runs on
 * to threads that help, and decodes one itself when they have enough to do: the store goes
 * on reading meanwhile. */
#include "engine/read/wave.h"

#include "base/arith.h"
#include "engine/read/wave_window.h"
#include "engine/run/pool.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"
#include "store/reading.h"

/* ---- Wave room ----
 *
 * Lent memory. Whose bytes come there is not known here. */

typedef struct cv_lent_room {
    struct cv_lent_room *next; /* of the spare ones */
    size_t size;
} room;

/* The struct stands in front of what is lent. Sizes are rounded up, so that one fits the next
 * user, too. Who waits is told when a part of all has come back, or all that will: all of them are
 * asked then. */
enum { HEAD = 64, UNIT = 64 * 1024, TOLD_PART = 8 };

void cv_rooms_init(cv_rooms *r)
{
    cv_mutex_init(&r->lock);
    r->most = r->lent = r->kept = r->given = 0;
    r->n_lent = r->stuck = 0;
    r->spare = NULL;
}

static void free_spare(cv_rooms *r, room **at)
{
    room *gone = *at;
    *at = gone->next;
    r->kept -= gone->size;
    cv_free(gone);
}

void cv_rooms_destroy(cv_rooms *r)
{
    while (r->spare) free_spare(r, &r->spare);
    cv_mutex_destroy(&r->lock);
}

/* A spare one that is large enough, but not twice as large as need be. */
static room *take_spare(cv_rooms *r, size_t size)
{
    room **at = &r->spare;
    while (*at && ((*at)->size < size || (*at)->size / 2 > size)) at = &(*at)->next;
    room *found = *at;
    if (!found) return NULL;
    *at = found->next;
    r->kept -= found->size;
    return found;
}

static room *find(cv_rooms *r, size_t size, bool must)
{
    bool is_free = must || (size <= r->most && r->lent <= r->most - size);
    if (!is_free) return NULL;
    room *found = take_spare(r, size);
    if (found) return found;
    while (r->spare && r->lent + r->kept + size > r->most) free_spare(r, &r->spare);
    found = cv_malloc(HEAD + size);
    if (found) found->size = size;
    return found;
}

cv_status cv_rooms_lend(cv_rooms *r, size_t size, size_t stuck, uint8_t **out, cv_error *err)
{
    size_t whole = (size + UNIT - 1) / UNIT * UNIT;
    cv_mutex_lock(&r->lock);
    bool is_needed = r->n_lent <= stuck;
    room *found = find(r, whole, is_needed);
    if (found) {
        r->lent += found->size;
        r->n_lent++;
    } else {
        r->stuck = stuck;
    }
    cv_mutex_unlock(&r->lock);
    *out = found ? (uint8_t *)found + HEAD : NULL;
    if (!found && is_needed) return cv_fail_memory(err, whole, "bytes of a URL");
    return CV_OK;
}

bool cv_rooms_give(cv_rooms *r, uint8_t *lent)
{
    if (!lent) return false;
    room *back = (room *)(void *)(lent - HEAD);
    cv_mutex_lock(&r->lock);
    back->next = r->spare;
    r->spare = back;
    r->lent -= back->size;
    r->kept += back->size;
    r->given += back->size;
    r->n_lent--;
    bool tells = r->n_lent <= r->stuck || r->given >= r->most / TOLD_PART;
    if (tells) r->given = r->stuck = 0;
    cv_mutex_unlock(&r->lock);
    return tells;
}

/* ---- Wave team ----
 *
 * The threads of a walk in waves. Helpers have as many jobs before them as
 * there are helpers: the leader does what comes beyond that, while more arrives. */

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
static cv_status cv_team_init(cv_team *t, int helpers, cv_error *err)
{
    *t = (cv_team){.leader = cv_thread_self(), .n_helpers = helpers};
    cv_mutex_init(&t->lock);
    cv_cond_init(&t->changed);
    return cv_buffer_reserve(&t->ready, (size_t)helpers * sizeof(size_t), err);
}

static void cv_team_destroy(cv_team *t)
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

/* Does what is handed on until the leader ends. */
static void cv_team_help(cv_team *t, cv_worker *worker)
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

/* The leader's: has the job done, by a helper, or by `worker` now where they have enough to
 * do. The first failure of any. */
static cv_status cv_team_do(cv_team *t, size_t job, cv_worker *worker, cv_error *err)
{
    cv_status status = CV_OK;
    if (hand_on(t, job, &status, err)) return status;
    return t->work(t->context, job, worker, err);
}

/* The leader's: all that was handed on is done, or, after a failure such as `status`, given
 * up. */
static cv_status cv_team_finish(cv_team *t, cv_status status, cv_worker *worker, cv_error *err)
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

/* For all threads of the team, which come to cv_team_end: true for the leader. */
static bool cv_team_is_leader(const cv_team *t) { return cv_thread_is_self(t->leader); }

static void cv_team_end(cv_team *t, bool leads, cv_status status, const cv_error *error)
{
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, error);
    t->ended = t->ended || leads;
    cv_cond_wake_all(&t->changed);
    cv_mutex_unlock(&t->lock);
}

/* ---- Wave ---- */

/* Slots, and how much larger than the first one the others are: from SMALLEST to
 * SMALLEST + SLOTS - 1 parts of all memory that they share. */
enum { SLOTS = 16, SMALLEST = 3, PARTS = SLOTS * (2 * SMALLEST + SLOTS - 1) / 2 };

/* Jobs of a run are numbers next to each other. */
enum { MOST_JOBS = 64 };

typedef struct slot {
    struct wave *wave;
    cv_buffer packed, ranges;
    size_t first;    /* run of the window, which is that of its first range */
    atomic_int left; /* jobs to do; 0: it is free */
    bool is_used;
    cv_reading *reading;
    int round; /* how many waves were waited for before its own, and that */
} slot;

typedef struct wave {
    cv_window window;
    cv_team team;
    cv_worker *worker; /* the leader's */
    cv_gathering all;  /* of the slots */
    cv_rooms rooms;    /* of one that borrows */
    bool lends;
    slot slots[SLOTS];
    int n_slots;
    size_t memory, held; /* bytes that slots may have, and have */
    size_t next;         /* run, not yet asked for */
    int n_rounds;
    size_t failed; /* run that could not be read */
} wave;

static cv_store *store_of(const wave *w) { return w->window.walk->source->frame->store; }

static size_t size_of_run(const wave *w, size_t i)
{
    return CV_BLOCK_PREFIX + cv_window_run_at(&w->window, i)->run.size;
}

/* ---- Lending ------------------------------------------------------------------- */

static cv_status lend(void *context, size_t range, size_t stuck, uint8_t **dst, cv_error *err)
{
    const slot *s = context;
    wave *w = s->wave;
    cv_window_run *run = cv_window_run_at(&w->window, s->first + range);
    uint8_t *lent;
    *dst = NULL;
    CV_TRY(cv_rooms_lend(&w->rooms, size_of_run(w, s->first + range), stuck, &lent, err));
    if (!lent) return CV_OK;
    atomic_store(&run->kept, run->n_parts);
    *dst = run->bytes = lent + CV_BLOCK_PREFIX;
    return CV_OK;
}

static void give_back(wave *w, cv_window_run *run)
{
    if (cv_rooms_give(&w->rooms, run->bytes - CV_BLOCK_PREFIX)) cv_store_resume(store_of(w));
}

/* Of a wave that failed, when nobody reads or decodes any more. */
static void give_back_all(wave *w)
{
    for (size_t i = w->window.n_at_hand; w->lends && i < w->window.n_runs; i++) {
        cv_window_run *run = cv_window_run_at(&w->window, i);
        if (atomic_exchange(&run->kept, 0) > 0) give_back(w, run);
    }
}

/* ---- Jobs ---------------------------------------------------------------------- */

static cv_status do_job(void *context, size_t job, cv_worker *worker, cv_error *err)
{
    wave *w = context;
    cv_window_run *run = cv_window_run_at(&w->window, job / MOST_JOBS);
    bool is_lent = atomic_load(&run->kept) > 0;
    cv_status status = cv_window_decode(&w->window, run, (int)(job % MOST_JOBS), worker, err);
    if (is_lent && atomic_fetch_sub(&run->kept, 1) == 1) give_back(w, run);
    if (run->left) atomic_fetch_sub_explicit(run->left, 1, memory_order_release);
    return status;
}

static cv_status begin_jobs(wave *w, size_t i, cv_error *err)
{
    int n = cv_window_run_at(&w->window, i)->n_parts;
    for (int part = 0; part < n; part++)
        CV_TRY(cv_team_do(&w->team, i * MOST_JOBS + (size_t)part, w->worker, err));
    return CV_OK;
}

static cv_status arrived(void *context, size_t range, cv_error *err)
{
    const slot *s = context;
    wave *w = s->wave;
    cv_window_run *run = cv_window_run_at(&w->window, s->first + range);
    CV_TRY(cv_window_arrived(&w->window, run, err));
    if (w->lends) atomic_store(&run->kept, run->n_parts);
    return begin_jobs(w, s->first + range, err);
}

static void note_failed(void *context, size_t range)
{
    const slot *s = context;
    s->wave->failed = s->first + range;
}

/* ---- Slots --------------------------------------------------------------------- */

static size_t most_bytes(const wave *w)
{
    size_t best = cv_store_wave_bytes(store_of(w));
    return best > CV_WAVE_BYTES ? best : CV_WAVE_BYTES;
}

static size_t share_of(const wave *w, int i)
{
    if (w->lends) return SIZE_MAX;
    return w->n_slots == 1 ? w->memory : w->memory / PARTS * (size_t)(SMALLEST + i);
}

/* The next runs that go into the slot, and their bytes. */
static size_t measure(const wave *w, int i, size_t *last)
{
    size_t size = 0, most = share_of(w, i);
    for (*last = w->next; *last < w->window.n_runs; ++*last) {
        size_t next = size_of_run(w, *last);
        if (*last > w->next && size + next > most) break;
        size += next;
    }
    return size;
}

static bool is_any_used(const wave *w)
{
    int i = 0;
    while (i < w->n_slots && !w->slots[i].is_used) i++;
    return i < w->n_slots;
}

static void free_slots(wave *w)
{
    for (int i = 0; i < SLOTS; i++) {
        cv_buffer_free(&w->slots[i].packed);
        cv_buffer_free(&w->slots[i].ranges);
    }
    w->held = 0;
}

/* False: the others have the memory. */
static bool has_room(wave *w, const slot *s, size_t size)
{
    size_t more = size > s->packed.capacity ? size - s->packed.capacity : 0;
    if (w->lends || more == 0 || w->held + more <= w->memory) return true;
    if (is_any_used(w)) return false;
    free_slots(w); /* then what no wave is in is more than this one leaves */
    return true;
}

static cv_status place_runs(wave *w, slot *s, size_t last, cv_error *err)
{
    uint8_t *to = s->packed.data;
    int n_jobs = 0;
    s->ranges.size = 0;
    for (size_t i = s->first; i < last; i++) {
        cv_window_run *run = cv_window_run_at(&w->window, i);
        run->bytes = w->lends ? NULL : to + CV_BLOCK_PREFIX;
        run->left = &s->left;
        const cv_store_range range = {run->object, run->pos, run->run.size, run->bytes};
        CV_TRY(cv_buffer_append(&s->ranges, &range, sizeof range, err));
        if (!w->lends) to += CV_BLOCK_PREFIX + run->run.size;
        n_jobs += run->n_parts;
    }
    atomic_store(&s->left, n_jobs);
    return CV_OK;
}

/* What the slot had goes first: it grows by no more than it needs. */
static cv_status make_room(wave *w, slot *s, size_t size, cv_error *err)
{
    if (size <= s->packed.capacity) return CV_OK;
    w->held -= s->packed.capacity;
    cv_buffer_free(&s->packed);
    CV_TRY(cv_buffer_reserve(&s->packed, size, err));
    w->held += s->packed.capacity;
    return CV_OK;
}

/* Runs [next, last) are read, which have so many bytes. */
static cv_status begin_slot(wave *w, slot *s, size_t last, size_t size, cv_error *err)
{
    const cv_arrivals arrivals = {.arrived = arrived,
                                  .failed = note_failed,
                                  .lend = w->lends ? lend : NULL,
                                  .context = s,
                                  .watch = w->window.walk->source->watch,
                                  .together = w->n_slots > 1 ? w->memory : 0,
                                  .is_along = s->round < w->n_rounds};
    s->first = w->next;
    if (!w->lends) CV_TRY(make_room(w, s, size, err));
    CV_TRY(place_runs(w, s, last, err));
    w->next = last;
    s->is_used = true;
    if (++s->round > w->n_rounds) w->n_rounds = s->round;
    return cv_store_begin_wave(store_of(w),
                               (const cv_store_range *)(const void *)s->ranges.data,
                               last - s->first, &arrivals, &w->all, &s->reading, err);
}

static void end_slot(slot *s, bool gives_up)
{
    cv_store_end_wave(s->reading, gives_up);
    s->reading = NULL;
    s->is_used = false;
}

static void end_slots(wave *w, bool gives_up)
{
    for (int i = 0; i < w->n_slots; i++) {
        slot *s = &w->slots[i];
        if (!s->is_used) continue;
        if (gives_up || atomic_load_explicit(&s->left, memory_order_acquire) == 0)
            end_slot(s, gives_up);
    }
}

static cv_status begin_slots(wave *w, cv_error *err)
{
    w->memory = most_bytes(w);
    for (int i = 0; i < w->n_slots && w->next < w->window.n_runs; i++) {
        slot *s = &w->slots[i];
        size_t last, size;
        if (s->is_used) continue;
        size = measure(w, i, &last);
        if (has_room(w, s, size)) CV_TRY(begin_slot(w, s, last, size, err));
    }
    return CV_OK;
}

/* ---- The window -------------------------------------------------------------- */

static cv_status read_runs(wave *w, cv_error *err)
{
    cv_watch *watch = w->window.walk->source->watch;
    bool goes_on;
    while (w->next < w->window.n_runs || is_any_used(w)) {
        CV_TRY(begin_slots(w, err));
        CV_TRY(cv_gathering_wait(&w->all, watch, &goes_on, err));
        if (!goes_on) CV_TRY(cv_team_finish(&w->team, CV_OK, w->worker, err));
        end_slots(w, false);
    }
    return CV_OK;
}

/* What is read goes through so few bytes that memory is bounded. */
static cv_status run_runs(wave *w, cv_error *err)
{
    CV_TRY(cv_window_cut(&w->window, err));
    for (size_t i = 0; i < w->window.n_at_hand; i++) CV_TRY(begin_jobs(w, i, err));
    bool is_much = w->window.n_bytes > most_bytes(w);
    w->lends = is_much && cv_store_borrows(store_of(w));
    w->rooms.most = CV_ROOM_BYTES;
    w->n_slots = is_much && !w->lends && cv_store_has_waves(store_of(w)) ? SLOTS : 1;
    w->next = w->window.n_at_hand;
    w->n_rounds = 0;
    for (int i = 0; i < SLOTS; i++) w->slots[i].round = 0;
    return read_runs(w, err);
}

static cv_status run_window(wave *w, cv_error *err)
{
    CV_TRY(cv_window_fill(&w->window, err));
    if (w->window.n_chunks == 0) return CV_OK;
    w->failed = SIZE_MAX;
    cv_status status = run_runs(w, err);
    end_slots(w, true);
    if (status != CV_OK && w->failed != SIZE_MAX) {
        size_t chunk = cv_window_run_at(&w->window, w->failed)->chunk;
        cv_name_chunk(cv_window_wish(&w->window, chunk)->ref.chunk, err);
    }
    status = cv_team_finish(&w->team, status, w->worker, err);
    give_back_all(w);
    cv_window_release(&w->window);
    return status;
}

/* ---- Who leads, and who helps ---------------------------------------------------- */

static cv_status lead(wave *w, cv_worker *worker, cv_error *err)
{
    cv_status status = CV_OK;
    cv_gathering_init(&w->all);
    cv_rooms_init(&w->rooms);
    for (int i = 0; i < SLOTS; i++) w->slots[i].wave = w;
    w->worker = w->window.worker = worker;
    while (w->window.next < w->window.walk->n_chunks && status == CV_OK)
        status = run_window(w, err);
    free_slots(w);
    cv_rooms_destroy(&w->rooms);
    cv_gathering_destroy(&w->all);
    return status;
}

static void serve(void *context)
{
    wave *w = context;
    cv_workers *workers = w->window.walk->source->workers;
    cv_worker *worker = NULL;
    cv_error error = {0};
    bool leads = cv_team_is_leader(&w->team);
    cv_status status = cv_worker_take(workers, &worker, &error);
    if (leads && status == CV_OK) status = lead(w, worker, &error);
    if (!leads && status == CV_OK) cv_team_help(&w->team, worker);
    cv_worker_give(workers, worker);
    cv_team_end(&w->team, leads, status, &error);
}

cv_status cv_wave_run(const cv_walk *walk, int64_t first_chunk, int helpers, cv_error *err)
{
    wave w = {.window = {.walk = walk, .next = first_chunk}};
    cv_error error = {0};
    cv_status status = cv_team_init(&w.team, helpers, &error);
    w.team.work = do_job;
    w.team.context = &w;
    w.team.watch = walk->source->watch;
    if (status == CV_OK) {
        (void)cv_pool_run(helpers, serve, &w, NULL,
                          NULL); /* nobody is busy behind the leader */
        status = w.team.status;
        error = w.team.error;
    }
    cv_team_destroy(&w.team);
    cv_window_free(&w.window);
    if (status != CV_OK && err) *err = error;
    return status;
}

/* ---- Whether ----------------------------------------------------------------- */

/* Of a touched chunk a block in the middle: those at the edges are what the request before
 * may have read, too. */
static bool find_middle(const cv_walk *walk, int64_t k, int64_t *chunk, int64_t *block)
{
    if (walk->request.box) {
        cv_chunk_job job;
        cv_block_job middle;
        cv_plan_chunk(walk->request.box, k, &job);
        cv_plan_block(walk->request.box, &job, job.n_blocks / 2, &middle);
        *chunk = job.chunk;
        *block = middle.block;
        return true;
    }
    const cv_select_plan *plan = walk->request.selection;
    cv_select_chunk job;
    cv_select_block middle;
    plan->ops->chunk(plan, k, &job);
    if (job.n_blocks == 0) return false;
    plan->ops->block(plan, &job, job.n_blocks / 2, &middle);
    *chunk = job.chunk;
    *block = middle.block;
    return true;
}

static bool is_near(const cv_walk *walk, int64_t k)
{
    const cv_source *s = walk->source;
    cv_chunk_ref ref;
    int64_t chunk, block;
    if (!find_middle(walk, k, &chunk, &block)) return true;
    if (cv_source_find(s, chunk, &ref, NULL) != CV_OK) return true;
    if (ref.kind != CV_REF_STORED) return true;
    uint64_t pos = ref.pos;
    cv_layout *layout = cv_layout_find(s->frame->layouts, s->snapshot, &ref);
    if (layout && layout->n_blocks > 0) pos += (uint64_t)layout->blocks[block].start;
    cv_layout_release(layout);
    return cv_store_is_near(s->frame->store, ref.object, pos);
}

/* The requests before found their bytes in memory, and one of them has asked lately. */
static bool is_likely_near(cv_store *store)
{
    unsigned n = atomic_fetch_add_explicit(&store->n_near, 1, memory_order_relaxed);
    return n >= CV_NEAR_IN_A_ROW && n % CV_NEAR_IN_A_ROW != 0;
}

bool cv_wave_is_worth(const cv_walk *walk, int64_t first_chunk)
{
    cv_store *store = walk->source->frame->store;
    if (store->is_far) return true;
    if (!store->ops->read_at_once || walk->bytes < CV_LEAST_WAVE || walk->n_blocks < 2)
        return false;
    if (is_likely_near(store)) return false;
    bool near = is_near(walk, first_chunk + (walk->n_chunks - first_chunk) / 2);
    if (!near) atomic_store_explicit(&store->n_near, 0, memory_order_relaxed);
    return !near;
}
