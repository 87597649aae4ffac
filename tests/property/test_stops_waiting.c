/* A progress callback that can stop only in the caller's own thread, as Python's can, stops
 * waiting calls: reads in waves and everything that reads ahead, from a store that delays its
 * bytes until it is stopped; and reads whose last piece another thread has. */
#include "support/every_step.h"
#include "waves_array.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 12, TICK_US = 2000, QUIET_TICKS = 50, MOST_TICKS = 2500 };

static blob bytes;
static caterva_store plain; /* the blob's */
static pthread_t caller;
static atomic_bool holds;   /* reads delay what they read */
static atomic_bool is_held; /* one does */
static atomic_bool has_said;
static atomic_int n_own_reads, n_helped;

static bool is_caller(void) { return pthread_equal(caller, pthread_self()); }

static int on_progress(void *unused, int64_t done, int64_t total)
{
    (void)unused;
    (void)done;
    (void)total;
    if (!is_caller() || !atomic_load(&is_held)) return 0;
    atomic_store(&has_said, true);
    return 1;
}

/* ---- Stores that hold back ----------------------------------------------------------------- */

static caterva_status hold_many(void *context, const caterva_store_range *ranges, size_t n,
                                int (*arrived)(void *token, size_t range), void *token,
                                caterva_error *err)
{
    if (!atomic_load(&holds)) return plain.read_many(context, ranges, n, arrived, token, err);
    atomic_store(&is_held, true);
    for (int i = 0; i < MOST_TICKS; i++) {
        if (arrived(token, n)) return CATERVA_ESTOPPED;
        usleep(TICK_US);
    }
    return plain.read_many(context, ranges, n, arrived, token, err);
}

/* On another thread than the caller's: waits until that thread has read nothing for long, and
 * then until it has stopped. */
static void hold_helper(void)
{
    int seen = -1;
    atomic_fetch_add(&n_helped, 1);
    for (int quiet = 0; quiet < QUIET_TICKS; quiet++) {
        int now = atomic_load(&n_own_reads);
        if (now != seen) quiet = 0;
        seen = now;
        usleep(TICK_US);
    }
    atomic_store(&is_held, true);
    for (int i = 0; i < MOST_TICKS && !atomic_load(&has_said); i++) usleep(TICK_US);
}

static caterva_status hold_one(void *context, uint64_t pos, void *dst, size_t size,
                               size_t *done, caterva_error *err)
{
    if (is_caller()) atomic_fetch_add(&n_own_reads, 1);
    if (atomic_load(&holds) && !is_caller()) hold_helper();
    return plain.read(context, pos, dst, size, done, err);
}

static caterva_array *open_held(bool in_waves, int threads)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    bytes.waves = in_waves;
    plain = blob_store(&bytes);
    caterva_store s = plain;
    if (in_waves)
        s.read_many = hold_many;
    else
        s.read = hold_one;
    o.threads = threads;
    o.cache_bytes = -1;
    o.progress = every_step(on_progress, NULL);
    atomic_store(&holds, false);
    atomic_store(&is_held, false);
    atomic_store(&has_said, false);
    CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
    return array;
}

/* ---- What waits ------------------------------------------------------------------------------ */

static int32_t got[N_ITEMS];

static caterva_status read_all(caterva_array *a, caterva_error *err)
{
    return caterva_read(a, origin, shape, got, sizeof got, err);
}

static caterva_status read_plane(caterva_array *a, caterva_error *err)
{
    static const int64_t start[3] = {0, 0, 5}, stop[3] = {SIDE, SIDE, 6};
    return caterva_read(a, start, stop, got, sizeof got, err);
}

static caterva_status count_statistics(caterva_array *a, caterva_error *err)
{
    caterva_stats stats = CATERVA_STATS_INIT;
    return caterva_statistics(a, NULL, &stats, err);
}

static caterva_status verify(caterva_array *a, caterva_error *err)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    return caterva_verify(a, NULL, &result, err);
}

static caterva_status copy(caterva_array *a, caterva_error *err)
{
    return caterva_copy(a, "mem:", NULL, NULL, err);
}

typedef caterva_status (*action)(caterva_array *array, caterva_error *err);

static const struct named_action {
    const char *name;
    action run;
} actions[] = {{"read", read_all},
               {"plane", read_plane},
               {"statistics", count_statistics},
               {"verify", verify},
               {"copy", copy}};

static void stop_waves(const struct named_action *act, int threads)
{
    caterva_error err;
    caterva_array *array = open_held(true, threads);
    CHECK_OK(read_plane(array, &err), err); /* threads are awake */
    atomic_store(&holds, true);
    caterva_status status = act->run(array, &err);
    CHECK(status == CATERVA_ESTOPPED && atomic_load(&has_said), "%s with %d threads: %s",
          act->name, threads, caterva_status_name(status));
    atomic_store(&holds, false);
    atomic_store(&is_held, false);
    CHECK_OK(read_all(array, &err), err);
    CHECK(memcmp(got, items, sizeof items) == 0, "other items after a stop");
    caterva_discard(array);
}

/* Returns false if no other thread came in time. */
static bool stop_last_piece(const struct named_action *act)
{
    caterva_error err;
    caterva_array *array = open_held(false, 2);
    CHECK_OK(read_all(array, &err), err);
    atomic_store(&n_helped, 0);
    atomic_store(&holds, true);
    caterva_status status = act->run(array, &err);
    bool came = atomic_load(&n_helped) > 0;
    CHECK(status == (came ? CATERVA_ESTOPPED : CATERVA_OK), "%s, %d helped: %s", act->name,
          atomic_load(&n_helped), caterva_status_name(status));
    caterva_discard(array);
    return came;
}

int main(void)
{
    rng r = {.state = 7};
    caller = pthread_self();
    blob_init(&bytes);
    make_items(&r);
    make_blob(&bytes);
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        int n_came = 0;
        for (int round = 0; round < ROUNDS; round++) stop_waves(&actions[i], 2 + round % 3);
        for (int round = 0; round < 20 * ROUNDS && n_came < 1; round++)
            n_came += stop_last_piece(&actions[i]);
        CHECK(n_came == 1, "%s: no helper came", actions[i].name);
    }
    blob_free(&bytes);
    return 0;
}
