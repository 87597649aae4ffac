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
#include "engine/read/wave_room.h"
#include "engine/read/wave_team.h"
#include "engine/read/wave_window.h"
#include "engine/run/pool.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"
#include "store/fallbacks.h"

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
    uint8_t *room;
    *dst = NULL;
    CV_TRY(cv_rooms_lend(&w->rooms, size_of_run(w, s->first + range), stuck, &room, err));
    if (!room) return CV_OK;
    atomic_store(&run->kept, run->n_parts);
    *dst = run->bytes = room + CV_BLOCK_PREFIX;
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
