/* Memory lent to the store: its bound, its reuse, and when waiting ranges are resumed. */
#include "engine/read/wave.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { UNIT = 64 * 1024 };

static uint8_t *lend(cv_rooms *rooms, size_t size, size_t stuck)
{
    cv_error err;
    uint8_t *out;
    assert_int_equal(cv_rooms_lend(rooms, size, stuck, &out, &err), CV_OK);
    if (out) memset(out, 1, size);
    return out;
}

static void no_more_is_lent_than_was_agreed(void **state)
{
    cv_rooms rooms;
    uint8_t *all[4];
    (void)state;
    cv_rooms_init(&rooms);
    rooms.most = 3 * UNIT;
    for (int i = 0; i < 3; i++) assert_non_null(all[i] = lend(&rooms, UNIT - 5, 0));
    assert_null(lend(&rooms, 1, 0));
    assert_non_null(all[3] = lend(&rooms, 1, SIZE_MAX));
    for (int i = 0; i < 4; i++) (void)cv_rooms_give(&rooms, all[i]);
    assert_int_equal(rooms.lent, 0);
    cv_rooms_destroy(&rooms);
}

static void the_first_one_may_be_too_large(void **state)
{
    cv_rooms rooms;
    (void)state;
    cv_rooms_init(&rooms);
    rooms.most = UNIT;
    uint8_t *large = lend(&rooms, 5 * UNIT, 0);
    assert_non_null(large);
    assert_null(lend(&rooms, 1, 0));
    assert_true(cv_rooms_give(&rooms, large));
    uint8_t *small = lend(&rooms, 1, 0); /* the large one is freed for it */
    assert_non_null(small);
    assert_int_equal(rooms.kept, 0);
    assert_false(cv_rooms_give(&rooms, NULL));
    (void)cv_rooms_give(&rooms, small);
    cv_rooms_destroy(&rooms);
}

static void what_came_back_is_lent_again(void **state)
{
    cv_rooms rooms;
    (void)state;
    cv_rooms_init(&rooms);
    rooms.most = 16 * UNIT;
    uint8_t *a = lend(&rooms, 2 * UNIT, 0), *b = lend(&rooms, 4 * UNIT, 0);
    (void)cv_rooms_give(&rooms, a);
    (void)cv_rooms_give(&rooms, b);
    assert_ptr_equal(lend(&rooms, 3 * UNIT, 0), b);
    assert_ptr_equal(lend(&rooms, UNIT, 0), a);
    (void)cv_rooms_give(&rooms, a);
    (void)cv_rooms_give(&rooms, b);
    assert_int_equal(rooms.kept, 6 * UNIT);
    cv_rooms_destroy(&rooms);
}

static void a_waiter_is_notified_when_a_part_is_returned(void **state)
{
    cv_rooms rooms;
    uint8_t *all[32];
    int n_reported = 0;
    (void)state;
    cv_rooms_init(&rooms);
    rooms.most = 32 * UNIT;
    for (int i = 0; i < 32; i++) assert_non_null(all[i] = lend(&rooms, UNIT, 0));
    for (int i = 0; i < 32; i++) n_reported += cv_rooms_give(&rooms, all[i]);
    assert_int_equal(n_reported, 8);
    all[0] = lend(&rooms, UNIT, 0); /* less than TOLD_PART, but the last */
    assert_true(cv_rooms_give(&rooms, all[0]));
    cv_rooms_destroy(&rooms);
}

/* If a range waits while some of the lent rooms are incomplete, it gets no room before the
 * others have been returned, and then it is resumed. */
static void who_is_stuck_waits_for_what_comes_back(void **state)
{
    cv_rooms rooms;
    uint8_t *all[17];
    (void)state;
    cv_rooms_init(&rooms);
    rooms.most = 16 * UNIT;
    for (int i = 0; i < 16; i++) assert_non_null(all[i] = lend(&rooms, UNIT, 0));
    assert_null(lend(&rooms, UNIT, 15));
    assert_true(cv_rooms_give(&rooms, all[15]));
    assert_non_null(all[15] = lend(&rooms, 5 * UNIT, 15)); /* 15 are lent */
    (void)cv_rooms_give(&rooms, all[15]);
    assert_non_null(all[15] = lend(&rooms, UNIT, 0));
    rooms.given = 0;
    assert_null(lend(&rooms, UNIT, 14));
    assert_false(cv_rooms_give(&rooms, all[15]));
    assert_true(cv_rooms_give(&rooms, all[14])); /* no more can be returned */
    for (int i = 0; i < 14; i++) (void)cv_rooms_give(&rooms, all[i]);
    assert_int_equal(rooms.n_lent, 0);
    cv_rooms_destroy(&rooms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_is_lent_than_was_agreed),
        cmocka_unit_test(the_first_one_may_be_too_large),
        cmocka_unit_test(what_came_back_is_lent_again),
        cmocka_unit_test(a_waiter_is_notified_when_a_part_is_returned),
        cmocka_unit_test(who_is_stuck_waits_for_what_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
