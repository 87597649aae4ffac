/* The second trailer of a frame without chunks, which only C-Blosc2 reads: it exists after
 * each commit, with any durability; the next commit repeats a failed write of it. */
#include "frame/txn.h"

#include "made.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 400, CHUNK = 100, BLOCK = 25 };

static const int64_t NONE = 0;

static caterva_array *new_faulty(caterva_durability durability)
{
    size_t size;
    uint8_t *bytes = made_frame(N, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = made_faulty(made_memory(bytes, size), durability);
    free(bytes);
    return array;
}

static bool has_front(caterva_array *array)
{
    size_t size;
    const cv_snapshot *s = cv_frame_snapshot(array->frame);
    uint8_t *bytes = made_bytes(array, &size);
    assert_true(cv_second_trailer_is_apart(s)); /* else this tests nothing */
    bool same = memcmp(bytes + s->header.header_size, s->trailer_bytes.data,
                       s->trailer_bytes.size) == 0;
    cv_snapshot_release((cv_snapshot *)s);
    free(bytes);
    return same;
}

static void it_is_there_at_every_durability(void **state)
{
    (void)state;
    for (caterva_durability d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++) {
        caterva_array *array = new_faulty(d);
        assert_int_equal(caterva_resize(array, &NONE, NULL), CATERVA_OK);
        assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        assert_true(has_front(array));
        assert_int_equal(caterva_attr_set(array, "note", "\xa1x", 2, NULL), CATERVA_OK);
        assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        assert_true(has_front(array));
        caterva_discard(array);
    }
}

/* Each of the last operations of the commit fails in turn: those before the header write fail
 * the commit, later ones only leave the second trailer to be written. */
static void a_failure_is_made_good_later(void **state)
{
    (void)state;
    int owed = 0;
    for (int64_t n = 0;; n++) {
        caterva_array *array = new_faulty(CATERVA_DURABILITY_ORDERED);
        cv_store *store = array->frame->store;
        assert_int_equal(caterva_resize(array, &NONE, NULL), CATERVA_OK);
        cv_store_fault_arm(store, CV_FAULT_ONCE, n, EIO);
        caterva_status status = caterva_commit(array, NULL);
        bool hit = cv_store_fault_hits(store) > 0;
        if (status == CATERVA_OK && hit) {
            owed += !has_front(array);
            assert_int_equal(caterva_attr_set(array, "note", "\xa1x", 2, NULL), CATERVA_OK);
            assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
            assert_true(has_front(array));
        }
        caterva_discard(array);
        if (!hit) break;
    }
    assert_true(owed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_there_at_every_durability),
        cmocka_unit_test(a_failure_is_made_good_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
