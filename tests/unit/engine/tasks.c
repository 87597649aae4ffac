/* Tasks: each is reported once, the order in which they begin, which waits are allowed, and
 * what suspending, draining and closing a list leave undone. */
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
    cv_task task;
    atomic_bool *gate; /* runs until this is open or it is stopped; or NULL */
    int number;        /* its position in the order of runs, from 1 */
    bool was_stopped;
    atomic_int reported;
    atomic_bool freed;
} chore;

static atomic_int n_run;

static chore *chore_of(cv_task *task) { return (chore *)(void *)task; }

static void run(cv_task *task)
{
    chore *c = chore_of(task);
    c->number = atomic_fetch_add(&n_run, 1) + 1;
    do c->was_stopped = cv_watch_tick(&task->watch, 0, NULL) != CV_OK;
    while (!c->was_stopped && c->gate && !atomic_load(c->gate) && usleep(100) == 0);
}

static void report(cv_task *task) { atomic_fetch_add(&chore_of(task)->reported, 1); }

static void note_free(cv_task *task) { atomic_store(&chore_of(task)->freed, true); }

static void init_chore(chore *c, atomic_bool *gate)
{
    memset(c, 0, sizeof *c);
    c->task = (cv_task){.run = run, .report = report, .free = note_free};
    c->gate = gate;
}

static cv_status add_to(cv_tasks *list, cv_task *task, cv_error *err)
{
    task->list = list;
    return cv_tasks_add(task, err);
}

static void add(cv_tasks *list, chore *c)
{
    assert_int_equal(add_to(list, &c->task, NULL), CV_OK);
}

/* Waits until the list has freed its task, because the chores are on the stack. */
static void let_go(chore *c)
{
    while (!atomic_load(&c->freed)) usleep(10);
}

/* Must be the first test: there are no threads yet. */
static void without_a_thread_no_task_is_accepted(void **state)
{
    (void)state;
    SKIP_IF_SANITIZED();
    struct rlimit all, none;
    cv_tasks list;
    chore c;
    cv_error err;
    cv_tasks_init(&list, 2);
    init_chore(&c, NULL);
    assert_int_equal(getrlimit(RLIMIT_AS, &all), 0);
    none = all;
    none.rlim_cur = 4096; /* no memory for a stack */
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    cv_status status = add_to(&list, &c.task, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &all), 0);
    assert_int_equal(status, CATERVA_ENOMEM);
    assert_null(c.task.list);
    init_chore(&c, NULL);
    add(&list, &c);
    assert_true(cv_task_wait(&c.task));
    assert_int_equal(atomic_load(&c.reported), 1);
    cv_tasks_close(&list);
    let_go(&c);
}

static void tasks_begin_in_order_except_cancelled_ones(void **state)
{
    (void)state;
    cv_tasks list;
    chore c[6];
    atomic_bool gate = false;
    cv_tasks_init(&list, 0); /* one at a time nevertheless */
    atomic_store(&n_run, 0);
    for (int i = 0; i < 6; i++) {
        init_chore(&c[i], i == 0 ? &gate : NULL);
        add(&list, &c[i]);
    }
    while (atomic_load(&n_run) == 0) usleep(100); /* the first one is running */
    cv_task_cancel(&c[4].task);
    cv_task_cancel(&c[2].task);
    cv_task_cancel(&c[2].task);
    atomic_store(&gate, true);
    for (int i = 0; i < 6; i++) assert_true(cv_task_wait(&c[i].task));
    static const int order[] = {1, 4, 2, 5, 3, 6};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(c[i].number, order[i]);
        assert_int_equal(c[i].was_stopped, i == 2 || i == 4);
        assert_int_equal(atomic_load(&c[i].reported), 1);
        let_go(&c[i]);
    }
    cv_tasks_close(&list);
}

static void cancelling_stops_a_running_task(void **state)
{
    (void)state;
    cv_tasks list;
    chore c;
    atomic_bool gate = false;
    cv_tasks_init(&list, 1);
    init_chore(&c, &gate);
    add(&list, &c);
    usleep(1000);
    cv_task_cancel(&c.task);
    assert_true(cv_task_wait(&c.task));
    assert_true(c.was_stopped);
    cv_tasks_close(&list);
    let_go(&c);
}

static void no_task_begins_while_the_list_is_suspended(void **state)
{
    (void)state;
    cv_tasks list;
    chore c[MANY];
    cv_tasks_init(&list, 3);
    atomic_store(&n_run, 0);
    for (int i = 0; i < MANY; i++) {
        init_chore(&c[i], NULL);
        bool held = i % 3 == 0;
        if (held) cv_tasks_suspend(&list);
        int before = atomic_load(&n_run);
        add(&list, &c[i]);
        if (!held) continue;
        if (i % 30 == 0) usleep(2000);
        assert_int_equal(atomic_load(&n_run), before);
        cv_tasks_resume(&list);
    }
    for (int i = 0; i < MANY; i++) assert_true(cv_task_wait(&c[i].task));
    for (int i = 0; i < MANY; i++) assert_int_equal(atomic_load(&c[i].reported), 1);
    cv_tasks_resume(&list); /* nothing to resume */
    cv_tasks_close(&list);
    for (int i = 0; i < MANY; i++) let_go(&c[i]);
}

/* Drained tasks have run; they are reported on request. */
static void draining_runs_waiting_tasks(void **state)
{
    (void)state;
    cv_tasks list;
    chore c[MANY], late;
    cv_tasks_init(&list, 2);
    cv_tasks_suspend(&list);
    for (int i = 0; i < MANY; i++) {
        init_chore(&c[i], NULL);
        add(&list, &c[i]);
    }
    cv_tasks_drain(&list);
    for (int i = 0; i < MANY; i++) {
        assert_true(c[i].number > 0);
        assert_int_equal(atomic_load(&c[i].reported), 0);
    }
    init_chore(&late, NULL);
    add(&list, &late);
    assert_int_equal(late.number, 0);
    cv_tasks_resume(&list);
    cv_tasks_report_drained(&list);
    for (int i = 0; i < MANY; i++) assert_int_equal(atomic_load(&c[i].reported), 1);
    assert_true(cv_task_wait(&late.task));
    cv_tasks_close(&list);
    for (int i = 0; i < MANY; i++) let_go(&c[i]);
    let_go(&late);
}

static void closing_reports_all_and_refuses_more(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        cv_tasks list;
        chore c[20], late;
        cv_error err;
        atomic_bool gate = false; /* the first tasks end only when stopped */
        cv_tasks_init(&list, 1 + round % 3);
        for (int i = 0; i < 20; i++) {
            init_chore(&c[i], i < 5 ? &gate : NULL);
            add(&list, &c[i]);
        }
        if (round % 4 == 0) usleep(500);
        cv_tasks_close(&list);
        for (int i = 0; i < 20; i++) assert_int_equal(atomic_load(&c[i].reported), 1);
        for (int i = 0; i < 5; i++) assert_true(c[i].was_stopped);
        init_chore(&late, NULL);
        assert_int_equal(add_to(&list, &late.task, &err), CATERVA_ESTOPPED);
        assert_null(late.task.list);
        cv_tasks_close(&list);
        assert_int_equal(cv_pool_n_jobs(), 0);
        for (int i = 0; i < 20; i++) let_go(&c[i]);
    }
}

/* ---- Several lists --------------------------------------------------------------- */

enum { LISTS = 4 };

/* Chains the tasks, the last one first. */
static cv_task *chain(cv_tasks *lists, chore *c, atomic_bool *gate)
{
    for (int i = 0; i < LISTS; i++) {
        init_chore(&c[i], gate);
        c[i].task.list = &lists[i];
        c[i].task.next = i > 0 ? &c[i - 1].task : NULL;
    }
    return &c[LISTS - 1].task;
}

/* Each task is reported by its own list, whatever happens to the other tasks. */
static void a_chain_goes_to_several_lists(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        cv_tasks lists[LISTS];
        chore c[LISTS];
        atomic_bool gate = false;
        for (int i = 0; i < LISTS; i++) cv_tasks_init(&lists[i], 1);
        cv_tasks_suspend(&lists[2]);
        assert_int_equal(cv_tasks_add(chain(lists, c, &gate), NULL), CV_OK);
        cv_tasks_close(&lists[1]);
        assert_true(c[1].was_stopped);
        assert_int_equal(atomic_load(&c[1].reported), 1);
        assert_int_equal(atomic_load(&c[2].reported), 0);
        atomic_store(&gate, true);
        cv_tasks_resume(&lists[2]);
        for (int i = 0; i < LISTS; i++) assert_true(cv_task_wait(&c[i].task));
        for (int i = 0; i < LISTS; i++) cv_tasks_close(&lists[i]);
        for (int i = 0; i < LISTS; i++) {
            assert_int_equal(atomic_load(&c[i].reported), 1);
            assert_int_equal(c[i].was_stopped, i == 1);
            let_go(&c[i]);
        }
    }
}

/* If one list is closed, no task is added to any list; the other lists remain usable. */
static void a_chain_is_added_whole_or_not_at_all(void **state)
{
    (void)state;
    for (int closed = 0; closed < LISTS; closed++) {
        cv_tasks lists[LISTS];
        chore c[LISTS], first;
        cv_error err;
        for (int i = 0; i < LISTS; i++) cv_tasks_init(&lists[i], 2);
        init_chore(&first, NULL);
        add(&lists[closed], &first);
        cv_tasks_close(&lists[closed]);
        assert_int_equal(cv_tasks_add(chain(lists, c, NULL), &err), CATERVA_ESTOPPED);
        for (int i = 0; i < LISTS; i++) assert_null(c[i].task.list);
        for (int i = 0; i < LISTS; i++) {
            if (i == closed) continue;
            chore other;
            init_chore(&other, NULL);
            add(&lists[i], &other);
            assert_true(cv_task_wait(&other.task));
            let_go(&other);
        }
        for (int i = 0; i < LISTS; i++) cv_tasks_close(&lists[i]);
        for (int i = 0; i < LISTS; i++) assert_int_equal(atomic_load(&c[i].reported), 0);
        let_go(&first);
    }
}

/* ---- Inside `report` ----------------------------------------------------------- */

typedef struct deep {
    cv_task task;
    cv_tasks *list;
    cv_task *other;
    bool waited_for_itself, refused_to_wait;
    atomic_bool closed, freed;
} deep;

static void run_nothing(cv_task *task) { (void)task; }

static void wait_inside(cv_task *task)
{
    deep *d = (deep *)(void *)task;
    d->waited_for_itself = cv_task_wait(task);
    d->refused_to_wait = !cv_task_wait(d->other);
    cv_tasks_close(d->list);
    atomic_store(&d->closed, true);
}

static void keep_it(cv_task *task) { atomic_store(&((deep *)(void *)task)->freed, true); }

static void report_may_close_the_list(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        cv_tasks *list = malloc(sizeof *list);
        chore c[3];
        atomic_bool gate = false;
        deep d = {.task = {.run = run_nothing, .report = wait_inside, .free = keep_it}};
        assert_non_null(list);
        cv_tasks_init(list, 4);
        d.list = list;
        d.other = &c[2].task;
        for (int k = 0; k < 3; k++) {
            init_chore(&c[k], &gate);
            add(list, &c[k]);
        }
        assert_int_equal(add_to(list, &d.task, NULL), CV_OK); /* the last */
        assert_true(cv_task_wait(&d.task));
        assert_true(atomic_load(&d.closed) && d.waited_for_itself && d.refused_to_wait);
        memset(list, 0xA5, sizeof *list); /* the list must not be accessed any more */
        free(list);
        for (int k = 0; k < 3; k++) {
            assert_true(cv_task_wait(&c[k].task));
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
        cmocka_unit_test(without_a_thread_no_task_is_accepted),
        cmocka_unit_test(tasks_begin_in_order_except_cancelled_ones),
        cmocka_unit_test(cancelling_stops_a_running_task),
        cmocka_unit_test(no_task_begins_while_the_list_is_suspended),
        cmocka_unit_test(draining_runs_waiting_tasks),
        cmocka_unit_test(closing_reports_all_and_refuses_more),
        cmocka_unit_test(a_chain_goes_to_several_lists),
        cmocka_unit_test(a_chain_is_added_whole_or_not_at_all),
        cmocka_unit_test(report_may_close_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
