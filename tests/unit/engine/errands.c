/* Errands: each is told once, the order in which they begin, who waits for whom, and what
 * suspending, settling and closing a list leave undone. */
#include "engine/run/pool.h"
#include "support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { HANG_SECONDS = 120, MANY = 200 };

typedef struct chore {
    cv_errand errand;
    atomic_bool *gate; /* it runs until this is open, or it is stopped; or NULL */
    int number;        /* the how many-th to run, from 1 */
    bool was_stopped;
    atomic_int told;
    atomic_bool freed;
} chore;

static atomic_int n_run;

static chore *chore_of(cv_errand *errand) { return (chore *)(void *)errand; }

static void run(cv_errand *errand)
{
    chore *c = chore_of(errand);
    c->number = atomic_fetch_add(&n_run, 1) + 1;
    do c->was_stopped = cv_watch_tick(&errand->watch, 0, NULL) != CV_OK;
    while (!c->was_stopped && c->gate && !atomic_load(c->gate) && usleep(100) == 0);
}

static void tell(cv_errand *errand) { atomic_fetch_add(&chore_of(errand)->told, 1); }

static void note_free(cv_errand *errand) { atomic_store(&chore_of(errand)->freed, true); }

static void init_chore(chore *c, atomic_bool *gate)
{
    memset(c, 0, sizeof *c);
    c->errand = (cv_errand){.run = run, .tell = tell, .free = note_free};
    c->gate = gate;
}

static cv_status add_to(cv_errands *list, cv_errand *errand, cv_error *err)
{
    errand->list = list;
    return cv_errands_add(errand, err);
}

static void add(cv_errands *list, chore *c)
{
    assert_int_equal(add_to(list, &c->errand, NULL), CV_OK);
}

/* The list lets go of it at last, and these are on the stack. */
static void let_go(chore *c)
{
    while (!atomic_load(&c->freed)) usleep(10);
}

/* Must be the first test: there are no threads yet. */
static void without_a_thread_none_is_taken(void **state)
{
    (void)state;
    SKIP_IF_SANITIZED();
    struct rlimit all, none;
    cv_errands list;
    chore c;
    cv_error err;
    cv_errands_init(&list, 2);
    init_chore(&c, NULL);
    assert_int_equal(getrlimit(RLIMIT_AS, &all), 0);
    none = all;
    none.rlim_cur = 4096; /* no memory for a stack */
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    cv_status status = add_to(&list, &c.errand, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &all), 0);
    assert_int_equal(status, CATERVA_ENOMEM);
    assert_null(c.errand.list);
    init_chore(&c, NULL);
    add(&list, &c);
    assert_true(cv_errand_wait(&c.errand));
    assert_int_equal(atomic_load(&c.told), 1);
    cv_errands_close(&list);
    let_go(&c);
}

static void they_begin_in_order_but_for_cancelled_ones(void **state)
{
    (void)state;
    cv_errands list;
    chore c[6];
    atomic_bool gate = false;
    cv_errands_init(&list, 0); /* one at a time all the same */
    atomic_store(&n_run, 0);
    for (int i = 0; i < 6; i++) {
        init_chore(&c[i], i == 0 ? &gate : NULL);
        add(&list, &c[i]);
    }
    while (atomic_load(&n_run) == 0) usleep(100); /* the first one is running */
    cv_errand_cancel(&c[4].errand);
    cv_errand_cancel(&c[2].errand);
    cv_errand_cancel(&c[2].errand);
    atomic_store(&gate, true);
    for (int i = 0; i < 6; i++) assert_true(cv_errand_wait(&c[i].errand));
    static const int order[] = {1, 4, 2, 5, 3, 6};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(c[i].number, order[i]);
        assert_int_equal(c[i].was_stopped, i == 2 || i == 4);
        assert_int_equal(atomic_load(&c[i].told), 1);
        let_go(&c[i]);
    }
    cv_errands_close(&list);
}

static void cancelling_stops_a_running_one(void **state)
{
    (void)state;
    cv_errands list;
    chore c;
    atomic_bool gate = false;
    cv_errands_init(&list, 1);
    init_chore(&c, &gate);
    add(&list, &c);
    usleep(1000);
    cv_errand_cancel(&c.errand);
    assert_true(cv_errand_wait(&c.errand));
    assert_true(c.was_stopped);
    cv_errands_close(&list);
    let_go(&c);
}

static void none_begins_while_the_list_is_suspended(void **state)
{
    (void)state;
    cv_errands list;
    chore c[MANY];
    cv_errands_init(&list, 3);
    atomic_store(&n_run, 0);
    for (int i = 0; i < MANY; i++) {
        init_chore(&c[i], NULL);
        bool held = i % 3 == 0;
        if (held) cv_errands_suspend(&list);
        int before = atomic_load(&n_run);
        add(&list, &c[i]);
        if (!held) continue;
        if (i % 30 == 0) usleep(2000);
        assert_int_equal(atomic_load(&n_run), before);
        cv_errands_resume(&list);
    }
    for (int i = 0; i < MANY; i++) assert_true(cv_errand_wait(&c[i].errand));
    for (int i = 0; i < MANY; i++) assert_int_equal(atomic_load(&c[i].told), 1);
    cv_errands_resume(&list); /* of nothing */
    cv_errands_close(&list);
    for (int i = 0; i < MANY; i++) let_go(&c[i]);
}

/* Settled ones have run, and are told when that is asked for. */
static void settling_runs_what_waits(void **state)
{
    (void)state;
    cv_errands list;
    chore c[MANY], late;
    cv_errands_init(&list, 2);
    cv_errands_suspend(&list);
    for (int i = 0; i < MANY; i++) {
        init_chore(&c[i], NULL);
        add(&list, &c[i]);
    }
    cv_errands_settle(&list);
    for (int i = 0; i < MANY; i++) {
        assert_true(c[i].number > 0);
        assert_int_equal(atomic_load(&c[i].told), 0);
    }
    init_chore(&late, NULL);
    add(&list, &late);
    assert_int_equal(late.number, 0);
    cv_errands_resume(&list);
    cv_errands_tell_settled(&list);
    for (int i = 0; i < MANY; i++) assert_int_equal(atomic_load(&c[i].told), 1);
    assert_true(cv_errand_wait(&late.errand));
    cv_errands_close(&list);
    for (int i = 0; i < MANY; i++) let_go(&c[i]);
    let_go(&late);
}

static void closing_tells_all_and_takes_no_more(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        cv_errands list;
        chore c[20], late;
        cv_error err;
        atomic_bool gate = false; /* only a stop ends the first ones */
        cv_errands_init(&list, 1 + round % 3);
        for (int i = 0; i < 20; i++) {
            init_chore(&c[i], i < 5 ? &gate : NULL);
            add(&list, &c[i]);
        }
        if (round % 4 == 0) usleep(500);
        cv_errands_close(&list);
        for (int i = 0; i < 20; i++) assert_int_equal(atomic_load(&c[i].told), 1);
        for (int i = 0; i < 5; i++) assert_true(c[i].was_stopped);
        init_chore(&late, NULL);
        assert_int_equal(add_to(&list, &late.errand, &err), CATERVA_ESTOPPED);
        assert_null(late.errand.list);
        cv_errands_close(&list);
        assert_int_equal(cv_pool_n_jobs(), 0);
        for (int i = 0; i < 20; i++) let_go(&c[i]);
    }
}

/* ---- Of several lists ----------------------------------------------------------- */

enum { LISTS = 4 };

/* Makes a chain of them, the last one first. */
static cv_errand *chain(cv_errands *lists, chore *c, atomic_bool *gate)
{
    for (int i = 0; i < LISTS; i++) {
        init_chore(&c[i], gate);
        c[i].errand.list = &lists[i];
        c[i].errand.next = i > 0 ? &c[i - 1].errand : NULL;
    }
    return &c[LISTS - 1].errand;
}

/* Each is told by its own list, whatever becomes of the others. */
static void a_chain_goes_to_several_lists(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        cv_errands lists[LISTS];
        chore c[LISTS];
        atomic_bool gate = false;
        for (int i = 0; i < LISTS; i++) cv_errands_init(&lists[i], 1);
        cv_errands_suspend(&lists[2]);
        assert_int_equal(cv_errands_add(chain(lists, c, &gate), NULL), CV_OK);
        cv_errands_close(&lists[1]);
        assert_true(c[1].was_stopped);
        assert_int_equal(atomic_load(&c[1].told), 1);
        assert_int_equal(atomic_load(&c[2].told), 0);
        atomic_store(&gate, true);
        cv_errands_resume(&lists[2]);
        for (int i = 0; i < LISTS; i++) assert_true(cv_errand_wait(&c[i].errand));
        for (int i = 0; i < LISTS; i++) cv_errands_close(&lists[i]);
        for (int i = 0; i < LISTS; i++) {
            assert_int_equal(atomic_load(&c[i].told), 1);
            assert_int_equal(c[i].was_stopped, i == 1);
            let_go(&c[i]);
        }
    }
}

/* One list that is closed: none is added to the others, which go on. */
static void a_chain_is_added_whole_or_not(void **state)
{
    (void)state;
    for (int closed = 0; closed < LISTS; closed++) {
        cv_errands lists[LISTS];
        chore c[LISTS], first;
        cv_error err;
        for (int i = 0; i < LISTS; i++) cv_errands_init(&lists[i], 2);
        init_chore(&first, NULL);
        add(&lists[closed], &first);
        cv_errands_close(&lists[closed]);
        assert_int_equal(cv_errands_add(chain(lists, c, NULL), &err), CATERVA_ESTOPPED);
        for (int i = 0; i < LISTS; i++) assert_null(c[i].errand.list);
        for (int i = 0; i < LISTS; i++) {
            if (i == closed) continue;
            chore other;
            init_chore(&other, NULL);
            add(&lists[i], &other);
            assert_true(cv_errand_wait(&other.errand));
            let_go(&other);
        }
        for (int i = 0; i < LISTS; i++) cv_errands_close(&lists[i]);
        for (int i = 0; i < LISTS; i++) assert_int_equal(atomic_load(&c[i].told), 0);
        let_go(&first);
    }
}

/* ---- In what tells ------------------------------------------------------------ */

typedef struct deep {
    cv_errand errand;
    cv_errands *list;
    cv_errand *other;
    bool waited_for_itself, refused_to_wait;
    atomic_bool closed, freed;
} deep;

static void run_nothing(cv_errand *errand) { (void)errand; }

static void wait_inside(cv_errand *errand)
{
    deep *d = (deep *)(void *)errand;
    d->waited_for_itself = cv_errand_wait(errand);
    d->refused_to_wait = !cv_errand_wait(d->other);
    cv_errands_close(d->list);
    atomic_store(&d->closed, true);
}

static void keep_it(cv_errand *errand)
{
    atomic_store(&((deep *)(void *)errand)->freed, true);
}

static void what_tells_may_close_the_list(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        cv_errands *list = malloc(sizeof *list);
        chore c[3];
        atomic_bool gate = false;
        deep d = {.errand = {.run = run_nothing, .tell = wait_inside, .free = keep_it}};
        assert_non_null(list);
        cv_errands_init(list, 4);
        d.list = list;
        d.other = &c[2].errand;
        for (int k = 0; k < 3; k++) {
            init_chore(&c[k], &gate);
            add(list, &c[k]);
        }
        assert_int_equal(add_to(list, &d.errand, NULL), CV_OK); /* the last */
        assert_true(cv_errand_wait(&d.errand));
        assert_true(atomic_load(&d.closed) && d.waited_for_itself && d.refused_to_wait);
        memset(list, 0xA5, sizeof *list); /* nobody looks at it */
        free(list);
        for (int k = 0; k < 3; k++) {
            assert_true(cv_errand_wait(&c[k].errand));
            assert_true(c[k].was_stopped);
            let_go(&c[k]);
        }
        while (!atomic_load(&d.freed)) usleep(10);
    }
}

int main(void)
{
    alarm(2 * HANG_SECONDS); /* a hang ends the program with a signal */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_thread_none_is_taken),
        cmocka_unit_test(they_begin_in_order_but_for_cancelled_ones),
        cmocka_unit_test(cancelling_stops_a_running_one),
        cmocka_unit_test(none_begins_while_the_list_is_suspended),
        cmocka_unit_test(settling_runs_what_waits),
        cmocka_unit_test(closing_tells_all_and_takes_no_more),
        cmocka_unit_test(a_chain_goes_to_several_lists),
        cmocka_unit_test(a_chain_is_added_whole_or_not),
        cmocka_unit_test(what_tells_may_close_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
