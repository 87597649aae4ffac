/* Room: engine/read. A walk in waves.
 *
 *     window    some touched chunks, so that lists stay small; dirty and cached blocks are
 *        |      delivered at once, the others listed
 *     layouts   of the window's chunks, except those read whole, in one wave or two
 *        |
 *     blocks    as runs, which are divided among slots of memory:
 *
 *                 slot 0   [run run]--->[run]--->[run run run]--->
 *                 slot 1   [run run run run]------->[run run]----->
 *                 slot 2   [run run run run run run]------------->
 *
 * If the store can borrow memory, one wave reads all runs; bytes wait on the connection until
 * earlier bytes are decoded and their memory is free (cv_rooms). Otherwise each slot is a wave:
 * when it is decoded, it takes the next runs while other slots are under way. Slots differ in size,
 * so that they do not end together. One slot suffices if all runs fit the memory, or if the store
 * allows one wave at a time.
 *
 * The calling thread plans, reads from the store and receives arrivals. It passes runs to helpers,
 * and decodes runs itself when helpers are busy. */
#include "engine/read/wave.h"

#include "base/arith.h"
#include "engine/run/pool.h"
#include "engine/run/thresholds.h"
#include "frame/fetch.h"
#include "frame/layout.h"
#include "store/reading.h"

#include <stdlib.h>

/* ---- The window ------------------------------------------------------------------
 *
 * The chunks that are read together: lists of their missing blocks, layouts and runs. */

typedef struct window_chunk {
    int64_t number;      /* among the touched chunks */
    int64_t first, last; /* its blocks in `wanted` */
    bool lacks_layout;   /* the layout is not in memory */
    bool is_whole;       /* all bytes are read at once, without the layout first */
} window_chunk;

/* Blocks of a chunk whose bytes are neighbours and are read together. */
typedef struct window_run {
    size_t chunk; /* index in the window */
    cv_fetch_run run;
    cv_object object; /* the object that has the bytes */
    uint64_t pos;     /* position of the first byte */
    bool is_whole;    /* the run is a whole chunk */
    bool is_apart;    /* if is_whole: no two blocks share bytes */
    int n_parts;      /* number of jobs that the blocks are divided into */
    uint8_t *bytes;   /* NULL: already in memory */
    atomic_int *left; /* the slot's count of jobs left, or NULL */
    atomic_int kept;  /* for lent bytes: jobs left; then the bytes are returned */
} window_run;

typedef struct window {
    const cv_walk *walk;
    cv_worker *worker;
    int64_t next; /* next touched chunk to add */
    cv_buffer wanted, chunks, requests, runs;
    size_t n_wanted, n_chunks, n_runs;
    size_t n_asked;   /* number of leading chunks, whose layouts are requested */
    size_t n_at_hand; /* number of leading runs, which need not be read */
    uint64_t n_bytes; /* bytes of the other runs, with the prefix of each */
} window;

static cv_layout_request *request_at(const window *w, size_t chunk)
{
    return (cv_layout_request *)(void *)w->requests.data + chunk;
}
static window_run *run_at(const window *w, size_t i)
{
    return (window_run *)(void *)w->runs.data + i;
}

static window_chunk *chunk_at(const window *w, size_t i)
{
    return (window_chunk *)(void *)w->chunks.data + i;
}

static cv_wanted *list_of(const window *w, size_t chunk)
{
    return (cv_wanted *)(void *)w->wanted.data + chunk_at(w, chunk)->first;
}

static int64_t count_of(const window *w, size_t chunk)
{
    return chunk_at(w, chunk)->last - chunk_at(w, chunk)->first;
}

static void free_window(window *w)
{
    cv_buffer_free(&w->wanted);
    cv_buffer_free(&w->chunks);
    cv_buffer_free(&w->requests);
    cv_buffer_free(&w->runs);
}

/* ---- Chunks -------------------------------------------------------------------- */

static cv_status add_chunk(window *w, const cv_walk_chunk *c, cv_error *err)
{
    int64_t first = (int64_t)w->n_wanted;
    window_chunk chunk = {.number = w->next, .first = first, .last = first + c->n_wanted};
    cv_layout_request request = {.ref = c->ref,
                                 .end = cv_source_guess_end(w->walk->source, &c->ref)};
    CV_TRY(cv_buffer_append(&w->wanted, w->worker->wanted,
                            (size_t)c->n_wanted * sizeof(cv_wanted), err));
    CV_TRY(cv_buffer_append(&w->chunks, &chunk, sizeof chunk, err));
    CV_TRY(cv_buffer_append(&w->requests, &request, sizeof request, err));
    w->n_wanted += (size_t)c->n_wanted;
    w->n_chunks++;
    return CV_OK;
}

static cv_status plan_chunk(window *w, bool *is_full, cv_error *err)
{
    int64_t room = w->n_wanted > 0 ? CV_WAVE_BLOCKS - (int64_t)w->n_wanted : INT64_MAX;
    cv_walk_chunk c;
    CV_TRY(cv_walk_find(w->walk, w->next, room, w->worker, &c, err));
    *is_full = c.n_blocks > room;
    if (*is_full) return CV_OK;
    if (c.n_wanted > 0) CV_TRY(add_chunk(w, &c, err));
    w->next++;
    return CV_OK;
}

static cv_status fill_window(window *w, cv_error *err)
{
    size_t most = CV_WAVE_HEADS / cv_layout_wave_bytes(&w->walk->source->snapshot->grid);
    most = most < 1 ? 1 : most < CV_WAVE_CHUNKS ? most : CV_WAVE_CHUNKS;
    bool is_full = false;
    w->wanted.size = w->chunks.size = w->requests.size = w->runs.size = 0;
    w->n_wanted = w->n_chunks = w->n_asked = w->n_runs = w->n_at_hand = 0;
    w->n_bytes = 0;
    while (w->next < w->walk->n_chunks && w->n_chunks < most && !is_full)
        CV_TRY(plan_chunk(w, &is_full, err));
    return CV_OK;
}

/* ---- Chunks read whole ------------------------------------------------------------ */

/* Most bytes of a chunk that is read whole, without its layout. Reading a larger chunk takes longer
 * than the round trip that is saved. */
enum { MOST_WHOLE = 8 << 20 };

static int64_t blocks_inside(const cv_grid *grid, int64_t chunk)
{
    int64_t index[CV_MAX_DIMS], n = 1;
    cv_grid_chunk_index(grid, chunk, index);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t left = grid->shape[d] - index[d] * grid->chunk_shape[d];
        n *= cv_ceil_div(cv_min_i64(left, grid->chunk_shape[d]), grid->block_shape[d]);
    }
    return n;
}

static uint64_t extent_of(const cv_layout_request *request)
{
    return request->end > request->ref.pos ? request->end - request->ref.pos : 0;
}

static bool can_be_whole(const cv_layout_request *request)
{
    uint64_t extent = extent_of(request);
    return extent >= CV_CHUNK_HEADER_SIZE && extent <= MOST_WHOLE &&
           request->ref.table_pos == 0;
}

static bool has_layout(const cv_source *s, const cv_layout_request *request)
{
    cv_layout *known = cv_layout_find(s->frame->layouts, s->snapshot, &request->ref);
    cv_layout_release(known);
    return known != NULL;
}

static bool is_all_wanted(const window *w, size_t i)
{
    const cv_grid *grid = &w->walk->source->snapshot->grid;
    return count_of(w, i) >= blocks_inside(grid, request_at(w, i)->ref.chunk);
}

/* Estimates the wanted bytes of a chunk, rounded up to whole blocks with their padding. */
static uint64_t needed_of(const window *w, size_t i)
{
    uint64_t extent = extent_of(request_at(w, i));
    if (is_all_wanted(w, i)) return extent;
    double n_blocks = (double)w->walk->source->snapshot->grid.n_blocks;
    uint64_t needed = (uint64_t)((double)extent * (double)count_of(w, i) / n_blocks) + 1;
    return needed < extent ? needed : extent;
}

/* Marks the chunks to read whole: chunks wanted whole, or all chunks without a layout if reading
 * the unwanted bytes costs less than waiting for layouts. */
static void choose_wholes(window *w)
{
    const cv_source *s = w->walk->source;
    uint64_t over = 0, needed = 0;
    bool all_can = true;
    for (size_t i = 0; i < w->n_chunks; i++) {
        window_chunk *chunk = chunk_at(w, i);
        const cv_layout_request *request = request_at(w, i);
        uint64_t of_chunk = needed_of(w, i);
        needed += of_chunk;
        chunk->lacks_layout = !has_layout(s, request);
        if (!chunk->lacks_layout) continue;
        all_can = all_can && can_be_whole(request);
        chunk->is_whole = can_be_whole(request) && is_all_wanted(w, i);
        over += extent_of(request) - of_chunk;
    }
    cv_store *store = s->frame->store;
    uint64_t spare = store->ops->spare ? store->ops->spare(store, needed) : 0;
    if (!all_can || over > spare) return;
    for (size_t i = 0; i < w->n_chunks; i++)
        chunk_at(w, i)->is_whole = chunk_at(w, i)->lacks_layout;
}

/* Returns whether chunks may be read whole. A window of at most most_whole bytes needs no choice:
 * the store reads it in one wave in any case. */
static bool may_be_whole(const window *w)
{
    const cv_source *s = w->walk->source;
    uint64_t size = 0, most = s->frame->store->most_whole;
    if (!s->frame->store->is_far || most == 0) return false;
    if (cv_layout_is_small(&s->snapshot->grid)) return false;
    for (size_t i = 0; i < w->n_chunks && size <= most; i++)
        size += extent_of(request_at(w, i));
    return size > most;
}

static cv_status move_chunks(window *w, bool wholes, cv_buffer *chunks, cv_buffer *requests,
                             cv_error *err)
{
    for (size_t i = 0; i < w->n_chunks; i++) {
        if (chunk_at(w, i)->is_whole != wholes) continue;
        CV_TRY(cv_buffer_append(chunks, chunk_at(w, i), sizeof(window_chunk), err));
        CV_TRY(cv_buffer_append(requests, request_at(w, i), sizeof(cv_layout_request), err));
    }
    if (!wholes) w->n_asked = requests->size / sizeof(cv_layout_request);
    return CV_OK;
}

/* Moves chunks that are read whole behind all others. */
static cv_status find_wholes(window *w, cv_error *err)
{
    cv_buffer chunks = {0}, requests = {0};
    w->n_asked = w->n_chunks;
    if (!may_be_whole(w)) return CV_OK;
    choose_wholes(w);
    cv_status status = move_chunks(w, false, &chunks, &requests, err);
    if (status == CV_OK) status = move_chunks(w, true, &chunks, &requests, err);
    cv_buffer_free(status == CV_OK ? &w->chunks : &chunks);
    cv_buffer_free(status == CV_OK ? &w->requests : &requests);
    if (status != CV_OK) return status;
    w->chunks = chunks;
    w->requests = requests;
    return CV_OK;
}

static bool are_apart(const cv_layout *layout, const cv_wanted *list, int64_t n)
{
    bool apart = true;
    for (int64_t i = 1; i < n && apart; i++)
        apart = cv_fetch_range(layout, list[i - 1].block).end <=
                cv_fetch_range(layout, list[i].block).start;
    return apart;
}

/* Parses the layout of a chunk that is read whole, when its bytes have arrived. */
static cv_status find_arrived_layout(window *w, window_run *run, cv_error *err)
{
    const cv_source *s = w->walk->source;
    cv_layout_request *request = request_at(w, run->chunk);
    if (!run->is_whole) return CV_OK;
    CV_TRY(cv_layout_of_bytes(s->frame->layouts, s->snapshot, request, run->bytes,
                              run->run.size, err));
    const cv_layout *layout = request->layout;
    if (layout->header.special != CV_SPECIAL_NONE || layout->access == CV_ACCESS_CHUNK) {
        int n_parts = run->n_parts; /* the whole chunk becomes one job */
        run->n_parts = 1;
        atomic_fetch_sub(run->left, n_parts - 1);
        return CV_OK;
    }
    cv_wanted *list = list_of(w, run->chunk);
    cv_fetch_sort(layout, list, run->run.last);
    run->is_apart = are_apart(layout, list, run->run.last);
    return CV_OK;
}

/* ---- Runs ---------------------------------------------------------------------- */

static cv_status add_run(window *w, window_run *run, cv_error *err)
{
    const cv_chunk_ref *ref = &request_at(w, run->chunk)->ref;
    run->object = ref->object;
    run->pos = ref->pos + (uint64_t)run->run.start;
    CV_TRY(cv_buffer_append(&w->runs, run, sizeof *run, err));
    w->n_runs++;
    w->n_bytes += CV_BLOCK_PREFIX + run->run.size;
    return CV_OK;
}

/* Returns whether no byte of the chunk needs to be read. */
static bool is_at_hand(const cv_layout *layout)
{
    return layout->header.special != CV_SPECIAL_NONE || layout->chunk;
}

static cv_status cut_runs(window *w, size_t chunk, cv_error *err)
{
    const cv_layout *layout = request_at(w, chunk)->layout;
    int64_t n = count_of(w, chunk);
    cv_wanted *list = list_of(w, chunk);
    window_run run = {.chunk = chunk, .run = {.last = n}, .n_parts = 1};
    if (is_at_hand(layout)) return add_run(w, &run, err);
    if (layout->access == CV_ACCESS_CHUNK) {
        run.run.size = (size_t)layout->header.cbytes;
        return add_run(w, &run, err);
    }
    cv_fetch_sort(layout, list, n);
    for (; run.run.first < n; run.run.first = run.run.last) {
        cv_fetch_next_run(w->walk->source->frame, layout, list, n, CV_WAVE_RANGE, &run.run);
        CV_TRY(add_run(w, &run, err));
    }
    return CV_OK;
}

static cv_status add_whole(window *w, size_t chunk, cv_error *err)
{
    int64_t n = count_of(w, chunk);
    uint64_t extent = extent_of(request_at(w, chunk));
    int64_t parts = cv_ceil_div((int64_t)extent, CV_WAVE_RANGE);
    window_run run = {.chunk = chunk,
                      .run = {.last = n, .size = cv_size((int64_t)extent)},
                      .is_whole = true,
                      .n_parts = (int)cv_min_i64(parts, n)};
    return add_run(w, &run, err);
}

static int by_position(const void *a, const void *b)
{
    const window_run *x = a, *y = b;
    if (x->object != y->object) return x->object < y->object ? -1 : 1;
    return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Reads the layouts of chunks not read whole. Cuts all chunks into runs, those at hand first. */
static cv_status cut_window(window *w, cv_error *err)
{
    const cv_source *s = w->walk->source;
    CV_TRY(find_wholes(w, err));
    if (w->n_asked > 0)
        CV_TRY(cv_layout_wave(s->frame->layouts, s->snapshot, request_at(w, 0), w->n_asked,
                              s->watch, err));
    for (size_t i = 0; i < w->n_asked; i++)
        if (is_at_hand(request_at(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    w->n_at_hand = w->n_runs;
    for (size_t i = 0; i < w->n_asked; i++)
        if (!is_at_hand(request_at(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    for (size_t i = w->n_asked; i < w->n_chunks; i++) CV_TRY(add_whole(w, i, err));
    if (w->n_runs > w->n_at_hand) /* so that neighbouring runs are read */
        qsort(run_at(w, w->n_at_hand), w->n_runs - w->n_at_hand, sizeof(window_run),
              by_position);
    return CV_OK;
}

/* ---- Decoding ---------------------------------------------------------------- */

static cv_fetch_run part_of(const window_run *run, int part)
{
    cv_fetch_run r = run->run;
    int64_t n = r.last - r.first;
    r.last = r.first + n * (part + 1) / run->n_parts;
    r.first += n * part / run->n_parts;
    return r;
}

/* Sets where the blocks of the part are. The first block of a part cannot be decoded in place,
 * because the bytes before it belong to another part. */
static void place_part(const cv_layout *layout, cv_wanted *list, const window_run *run,
                       const cv_fetch_run *part)
{
    cv_fetch_place(layout, list, part, run->bytes);
    if (!run->is_whole) return;
    for (int64_t i = part->first; i < part->last; i++)
        list[i].packed.in_place = run->is_apart && i > part->first;
}

/* Decodes and delivers one part of a run whose bytes have arrived or are in memory. */
static cv_status decode_part(const window *w, const window_run *run, int part,
                             cv_worker *worker, cv_error *err)
{
    const cv_layout_request *request = request_at(w, run->chunk);
    const cv_layout *layout = request->layout;
    const cv_fetch_run blocks = part_of(run, part);
    size_t size = (size_t)layout->header.cbytes;
    bool is_one = layout->access == CV_ACCESS_CHUNK;
    bool is_here = run->bytes && (!(run->is_whole || is_one) || size <= run->run.size);
    const cv_block_list list = {.wanted = list_of(w, run->chunk) + blocks.first,
                                .n = blocks.last - blocks.first,
                                .layout = layout,
                                .is_placed = is_here && !is_one,
                                .chunk = is_here && is_one ? run->bytes : NULL};
    if (list.is_placed) place_part(layout, list_of(w, run->chunk), run, &blocks);
    return cv_walk_decode(w->walk, chunk_at(w, run->chunk)->number, &request->ref, &list,
                          worker, err);
}

/* ---- Memory lent to the store ------------------------------------------------------ */

typedef struct cv_lent_room {
    struct cv_lent_room *next; /* next spare room */
    size_t size;
} room;

/* HEAD: bytes before lent memory. Sizes are rounded up to UNIT for reuse. Ranges that wait are
 * resumed when 1/RESUME_PART of the limit was returned, or when no other room can be returned. */
enum { HEAD = 64, UNIT = 64 * 1024, RESUME_PART = 8 };

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

/* Takes a spare room that is large enough, but not more than twice as large as needed. */
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
    bool resumes = r->n_lent <= r->stuck || r->given >= r->most / RESUME_PART;
    if (resumes) r->given = r->stuck = 0;
    cv_mutex_unlock(&r->lock);
    return resumes;
}

/* At most one job per helper is queued. The leader does the other jobs while bytes arrive. */

typedef struct team {
    cv_watch *watch; /* polled while the leader waits; or NULL */
    cv_thread leader;
    /* Does a job. Any thread does a queued job; the leader does the others. */
    cv_status (*work)(void *context, size_t job, cv_worker *worker, cv_error *err);
    void *context;
    int n_helpers;
    /* Protected by the lock. */
    cv_mutex lock;
    cv_cond changed;
    cv_buffer ready; /* a ring of n_helpers job numbers, n_ready of them from next_ready on */
    size_t next_ready, n_ready;
    int n_idle, n_busy;
    bool ended;
    cv_status status; /* of the first failure */
    cv_error error;
} team;

/* Initialises a team of up to `helpers` threads. The calling thread leads: it waits for far bytes,
 * because only this thread may call callbacks of the program. Always destroy the team. */
static cv_status init_team(team *t, int helpers, cv_error *err)
{
    *t = (team){.leader = cv_thread_self(), .n_helpers = helpers};
    cv_mutex_init(&t->lock);
    cv_cond_init(&t->changed);
    return cv_buffer_reserve(&t->ready, (size_t)helpers * sizeof(size_t), err);
}

static void destroy_team(team *t)
{
    cv_buffer_free(&t->ready);
    cv_cond_destroy(&t->changed);
    cv_mutex_destroy(&t->lock);
}

/* Called with the lock. */
static void note_failure(team *t, cv_status status, const cv_error *error)
{
    if (t->status != CV_OK) return;
    t->status = status;
    t->error = *error;
}

static size_t *ready_at(const team *t, size_t i)
{
    return (size_t *)(void *)t->ready.data + i % (size_t)t->n_helpers;
}

static bool take_ready(team *t, size_t *job)
{
    if (t->status != CV_OK) t->n_ready = 0;
    if (t->n_ready == 0) return false;
    *job = *ready_at(t, t->next_ready++);
    t->n_ready--;
    return true;
}

/* Called with the lock, which is released during the job. */
static void do_ready(team *t, size_t job, cv_worker *worker)
{
    cv_error error = {0};
    t->n_busy++;
    cv_mutex_unlock(&t->lock);
    cv_status status = t->work(t->context, job, worker, &error);
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, &error);
    if (--t->n_busy == 0) cv_cond_wake_all(&t->changed);
}

static void help_team(team *t, cv_worker *worker)
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

/* Returns true if the job is queued for another thread, or dropped after a failure. */
static bool hand_on(team *t, size_t job, cv_status *status, cv_error *err)
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

/* Called by the leader. Queues the job for a helper, or does it with `worker` if helpers are busy.
 * Returns the first failure of any thread. */
static cv_status have_done(team *t, size_t job, cv_worker *worker, cv_error *err)
{
    cv_status status = CV_OK;
    if (hand_on(t, job, &status, err)) return status;
    return t->work(t->context, job, worker, err);
}

/* Called by the leader. Waits until all jobs are done, or dropped after a failure (`status` or
 * another one). */
static cv_status finish_team(team *t, cv_status status, cv_worker *worker, cv_error *err)
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

static void leave_team(team *t, bool leads, cv_status status, const cv_error *error)
{
    cv_mutex_lock(&t->lock);
    if (status != CV_OK) note_failure(t, status, error);
    t->ended = t->ended || leads;
    cv_cond_wake_all(&t->changed);
    cv_mutex_unlock(&t->lock);
}

/* ---- Slots of a wave ------------------------------------------------------------ */

/* The memory has PARTS equal shares. Slots have SMALLEST to SMALLEST + SLOTS - 1 of them. */
enum { SLOTS = 16, SMALLEST = 3, PARTS = SLOTS * (2 * SMALLEST + SLOTS - 1) / 2 };

/* The jobs of run i have the numbers i * MOST_JOBS to (i + 1) * MOST_JOBS - 1. */
enum { MOST_JOBS = 64 };

typedef struct slot {
    struct wave *wave;
    cv_buffer packed, ranges;
    size_t first;    /* index of the slot's first run in the window */
    atomic_int left; /* jobs left; 0: the slot is free */
    bool is_used;
    cv_reading *reading;
    int round; /* waves begun in this slot */
} slot;

typedef struct wave {
    window window;
    team team;
    cv_worker *worker; /* the leader's */
    cv_gathering all;  /* for the readings of all slots */
    cv_rooms rooms;    /* used if the store borrows memory */
    bool lends;
    slot slots[SLOTS];
    int n_slots;
    size_t memory, held; /* bytes: limit of all slots, and allocated */
    size_t next;         /* next run to read */
    int n_rounds;
    size_t failed; /* index of a run that could not be read */
} wave;

static cv_store *store_of(const wave *w) { return w->window.walk->source->frame->store; }

static bool has_waves(const cv_store *s)
{
    return s->ops->begin_wave && !s->has_chunk_objects;
}

static bool borrows(cv_store *s)
{
    return has_waves(s) && s->ops->borrows && s->ops->borrows(s);
}

static size_t size_of_run(const wave *w, size_t i)
{
    return CV_BLOCK_PREFIX + run_at(&w->window, i)->run.size;
}

static cv_status lend(void *context, size_t range, size_t stuck, uint8_t **dst, cv_error *err)
{
    const slot *s = context;
    wave *w = s->wave;
    window_run *run = run_at(&w->window, s->first + range);
    uint8_t *lent;
    *dst = NULL;
    CV_TRY(cv_rooms_lend(&w->rooms, size_of_run(w, s->first + range), stuck, &lent, err));
    if (!lent) return CV_OK;
    atomic_store(&run->kept, run->n_parts);
    *dst = run->bytes = lent + CV_BLOCK_PREFIX;
    return CV_OK;
}

static void give_back(wave *w, window_run *run)
{
    cv_store *store = store_of(w);
    bool resumes = cv_rooms_give(&w->rooms, run->bytes - CV_BLOCK_PREFIX);
    if (resumes && store->ops->resume) store->ops->resume(store);
}

/* Takes back memory that is still lent after a failure. No thread reads or decodes any more. */
static void give_back_all(wave *w)
{
    for (size_t i = w->window.n_at_hand; w->lends && i < w->window.n_runs; i++) {
        window_run *run = run_at(&w->window, i);
        if (atomic_exchange(&run->kept, 0) > 0) give_back(w, run);
    }
}

/* ---- Jobs ---------------------------------------------------------------------- */

static cv_status do_job(void *context, size_t job, cv_worker *worker, cv_error *err)
{
    wave *w = context;
    window_run *run = run_at(&w->window, job / MOST_JOBS);
    bool is_lent = atomic_load(&run->kept) > 0;
    cv_status status = decode_part(&w->window, run, (int)(job % MOST_JOBS), worker, err);
    if (is_lent && atomic_fetch_sub(&run->kept, 1) == 1) give_back(w, run);
    if (run->left) atomic_fetch_sub_explicit(run->left, 1, memory_order_release);
    return status;
}

static cv_status begin_jobs(wave *w, size_t i, cv_error *err)
{
    int n = run_at(&w->window, i)->n_parts;
    for (int part = 0; part < n; part++)
        CV_TRY(have_done(&w->team, i * MOST_JOBS + (size_t)part, w->worker, err));
    return CV_OK;
}

static cv_status arrived(void *context, size_t range, cv_error *err)
{
    const slot *s = context;
    wave *w = s->wave;
    window_run *run = run_at(&w->window, s->first + range);
    CV_TRY(find_arrived_layout(&w->window, run, err));
    if (w->lends) atomic_store(&run->kept, run->n_parts);
    return begin_jobs(w, s->first + range, err);
}

static void note_failed(void *context, size_t range)
{
    const slot *s = context;
    s->wave->failed = s->first + range;
}

static size_t most_bytes(const wave *w)
{
    cv_store *store = store_of(w);
    size_t best = store->ops->wave_bytes ? store->ops->wave_bytes(store) : 0;
    return best > CV_WAVE_BYTES ? best : CV_WAVE_BYTES;
}

static size_t share_of(const wave *w, int i)
{
    if (w->lends) return SIZE_MAX;
    return w->n_slots == 1 ? w->memory : w->memory / PARTS * (size_t)(SMALLEST + i);
}

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

static bool has_room(wave *w, const slot *s, size_t size)
{
    size_t more = size > s->packed.capacity ? size - s->packed.capacity : 0;
    if (w->lends || more == 0 || w->held + more <= w->memory) return true;
    if (is_any_used(w)) return false;
    free_slots(w); /* no wave is under way, so all slots can be freed */
    return true;
}

static cv_status place_runs(wave *w, slot *s, size_t last, cv_error *err)
{
    uint8_t *to = s->packed.data;
    int n_jobs = 0;
    s->ranges.size = 0;
    for (size_t i = s->first; i < last; i++) {
        window_run *run = run_at(&w->window, i);
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

/* Frees the old memory before it reserves more, so that both are never allocated together. */
static cv_status make_room(wave *w, slot *s, size_t size, cv_error *err)
{
    if (size <= s->packed.capacity) return CV_OK;
    w->held -= s->packed.capacity;
    cv_buffer_free(&s->packed);
    CV_TRY(cv_buffer_reserve(&s->packed, size, err));
    w->held += s->packed.capacity;
    return CV_OK;
}

/* Reads runs [next, last), which have `size` bytes. */
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
    cv_store *store = store_of(w);
    const cv_store_range *ranges = (const cv_store_range *)(const void *)s->ranges.data;
    s->reading = NULL;
    if (!has_waves(store))
        return cv_store_read_wave(store, ranges, last - s->first, &arrivals, err);
    return store->ops->begin_wave(store, ranges, last - s->first, &arrivals, &w->all,
                                  &s->reading, err);
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

/* ---- All windows --------------------------------------------------------------- */

static cv_status read_runs(wave *w, cv_error *err)
{
    cv_watch *watch = w->window.walk->source->watch;
    bool goes_on;
    while (w->next < w->window.n_runs || is_any_used(w)) {
        CV_TRY(begin_slots(w, err));
        CV_TRY(cv_gathering_wait(&w->all, watch, &goes_on, err));
        if (!goes_on) CV_TRY(finish_team(&w->team, CV_OK, w->worker, err));
        end_slots(w, false);
    }
    return CV_OK;
}

/* Reads the runs of a window in bounded memory. */
static cv_status run_runs(wave *w, cv_error *err)
{
    CV_TRY(cut_window(&w->window, err));
    for (size_t i = 0; i < w->window.n_at_hand; i++) CV_TRY(begin_jobs(w, i, err));
    bool is_much = w->window.n_bytes > most_bytes(w);
    w->lends = is_much && borrows(store_of(w));
    w->rooms.most = CV_ROOM_BYTES;
    w->n_slots = is_much && !w->lends && has_waves(store_of(w)) ? SLOTS : 1;
    w->next = w->window.n_at_hand;
    w->n_rounds = 0;
    for (int i = 0; i < SLOTS; i++) w->slots[i].round = 0;
    return read_runs(w, err);
}

static cv_status run_window(wave *w, cv_error *err)
{
    CV_TRY(fill_window(&w->window, err));
    if (w->window.n_chunks == 0) return CV_OK;
    w->failed = SIZE_MAX;
    cv_status status = run_runs(w, err);
    end_slots(w, true);
    if (status != CV_OK && w->failed != SIZE_MAX) {
        size_t chunk = run_at(&w->window, w->failed)->chunk;
        cv_name_chunk(request_at(&w->window, chunk)->ref.chunk, err);
    }
    status = finish_team(&w->team, status, w->worker, err);
    give_back_all(w);
    cv_layout_wave_release(request_at(&w->window, 0), w->window.n_chunks);
    return status;
}

/* ---- The leader and the helpers --------------------------------------------------- */

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
    bool leads = cv_thread_is_self(w->team.leader);
    cv_status status = cv_worker_take(workers, &worker, &error);
    if (leads && status == CV_OK) status = lead(w, worker, &error);
    if (!leads && status == CV_OK) help_team(&w->team, worker);
    cv_worker_give(workers, worker);
    leave_team(&w->team, leads, status, &error);
}

static cv_status run_waves_once(const cv_walk *walk, int helpers, cv_error *err)
{
    wave w = {.window = {.walk = walk, .next = walk->first_chunk}};
    cv_error error = {0};
    cv_status status = init_team(&w.team, helpers, &error);
    w.team.work = do_job;
    w.team.context = &w;
    w.team.watch = walk->source->watch;
    if (status == CV_OK) {
        (void)cv_pool_run(helpers, serve, &w, NULL, NULL); /* no watch: helpers have ended */
        status = w.team.status;
        error = w.team.error;
    }
    destroy_team(&w.team);
    free_window(&w.window);
    if (status != CV_OK && err) *err = error;
    return status;
}

typedef struct waves {
    const cv_walk *walk;
    int helpers, n_done;
} waves;

static cv_status read_waves(void *context, cv_error *err)
{
    waves *v = context;
    if (v->n_done++ > 0) cv_layout_cache_clear(v->walk->source->frame->layouts);
    return run_waves_once(v->walk, v->helpers, err);
}

/* Corrupt data may belong to another version of the object, or be damaged in transit, so it is read
 * again. But a fold cannot undo what it counted: for a fold, a changed version is an error. */
cv_status cv_wave_run(const cv_walk *w, int helpers, cv_error *err)
{
    waves v = {w, helpers, 0};
    cv_store *store = w->source->frame->store;
    const cv_doubted all = {.store = store, .read = read_waves, .context = &v};
    if (!w->delivery->counts) return cv_store_doubting(&all, err);
    cv_error error = {0}, doubt = {0};
    cv_status status = run_waves_once(w, helpers, &error), answer = CV_OK;
    if (cv_is_doubtful(status) && store->ops->doubt) {
        answer = store->ops->doubt(store, false, &doubt);
        if (answer == CV_OK) answer = store->ops->settle(store, false, &doubt);
    }
    if (status != CV_OK && err) *err = answer == CV_OK ? error : doubt;
    return answer == CV_OK ? status : answer;
}

/* ---- The decision ------------------------------------------------------------- */

/* Finds a block in the middle of a touched chunk, because earlier requests may have read its
 * edges. */
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
    uint8_t byte;
    const cv_store_range range = {.object = ref.object, .pos = pos, .size = 1, .dst = &byte};
    return cv_store_read_at_once(s->frame->store, &range) != CV_AT_ONCE_NO;
}

/* Returns true if recent requests found their bytes in memory, so this request need not check. */
static bool is_likely_near(cv_store *store)
{
    unsigned n = atomic_fetch_add_explicit(&store->n_near, 1, memory_order_relaxed);
    return n >= CV_NEAR_IN_A_ROW && n % CV_NEAR_IN_A_ROW != 0;
}

bool cv_wave_is_worth(const cv_walk *walk)
{
    cv_store *store = walk->source->frame->store;
    if (store->is_far) return true;
    if (!store->ops->read_at_once || walk->bytes < CV_LEAST_WAVE || walk->n_blocks < 2)
        return false;
    if (is_likely_near(store)) return false;
    bool near = is_near(walk, walk->first_chunk + (walk->n_chunks - walk->first_chunk) / 2);
    if (!near) atomic_store_explicit(&store->n_near, 0, memory_order_relaxed);
    return !near;
}
