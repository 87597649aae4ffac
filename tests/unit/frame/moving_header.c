/* A header that is rewritten while it is read: the store of another process's file shows a
 * mixture of the old and the new one for a while. */
#include "frame/frame.h"
#include "made.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Shows a mixture of `before` and `after` in the first `mixed` reads of the header; the
 * second size query returns a larger size. */
typedef struct moving_store {
    cv_store base;
    const uint8_t *before, *after;
    size_t size, first_size;
    int mixed;
    bool stands_still; /* the mixture does not change, as if the writer were waiting */
    bool is_written;   /* a writer has it open */
    int n_reads;
} moving_store;

static cv_status moving_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    (void)object, (void)err;
    moving_store *m = (moving_store *)store;
    *size = m->first_size;
    m->first_size = m->size;
    return CV_OK;
}

static cv_status moving_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    (void)object, (void)err;
    moving_store *m = (moving_store *)store;
    memcpy(dst, m->after + pos, size);
    if (pos == 0 && m->n_reads++ < m->mixed) {
        size_t part = m->n_reads % 2 || m->stands_still ? 24 : 40; /* frame size; decoded */
        memcpy(dst, m->before, part);
    }
    return CV_OK;
}

static void moving_close(cv_store *store) { free(store); }

static bool moving_has_writer(cv_store *store) { return ((moving_store *)store)->is_written; }

static const cv_store_ops moving_ops = {.name = "moving",
                                        .size = moving_size,
                                        .read = moving_read,
                                        .has_writer = moving_has_writer,
                                        .close = moving_close};

typedef struct two_states {
    uint8_t *before, *after;
    size_t old_size, size;
} two_states;

static two_states make_two(void)
{
    two_states two;
    geometry g = made_line(1000, 200, 50, 4);
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    assert_int_equal(made_write(array, 0, 1000, 5, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    two.before = made_bytes(array, &two.old_size);
    int64_t longer = 3000;
    assert_int_equal(caterva_resize(array, &longer, NULL), CATERVA_OK);
    assert_int_equal(made_write(array, 0, 3000, 9, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    two.after = made_bytes(array, &two.size);
    caterva_discard(array);
    return two;
}

/* The caller owns it. */
static moving_store *move(const two_states *two, int mixed)
{
    moving_store *m = check_alloc(sizeof *m);
    *m = (moving_store){.base = {.ops = &moving_ops, .published = true},
                        .before = two->before,
                        .after = two->after,
                        .size = two->size,
                        .first_size = two->old_size,
                        .mixed = mixed};
    return m;
}

static void expect_the_new_state(moving_store *m, int n_reads)
{
    caterva_error err;
    cv_frame *frame;
    CHECK_OK(cv_frame_open(&m->base, CATERVA_DURABILITY_FULL, false, &frame, &err), err);
    assert_memory_equal(frame->current->header_bytes.data, m->after,
                        frame->current->header_bytes.size);
    assert_int_equal(frame->current->grid.shape[0], 3000);
    assert_int_equal(m->n_reads, n_reads);
    cv_frame_close(frame);
}

static void a_mixture_is_not_believed(void **state)
{
    (void)state;
    two_states two = make_two();
    for (int mixed = 0; mixed < 8; mixed++)
        expect_the_new_state(move(&two, mixed), mixed + 2);
    free(two.before);
    free(two.after);
}

/* Two consecutive reads are equal and damaged: waits only if a writer has the file open. */
static void a_mixture_that_stands_still_is_waited_for(void **state)
{
    (void)state;
    two_states two = make_two();
    for (int mixed = 2; mixed < 12; mixed += 2) {
        moving_store *m = move(&two, mixed);
        m->stands_still = m->is_written = true;
        expect_the_new_state(m, mixed + 2);
    }
    for (int written = 0; written < 2; written++) {
        caterva_error err;
        cv_frame *frame;
        moving_store *m = move(&two, 100);
        m->stands_still = true;
        m->is_written = written;
        assert_int_equal(
            cv_frame_open(&m->base, CATERVA_DURABILITY_FULL, false, &frame, &err),
            CATERVA_ECORRUPT);
    }
    free(two.before);
    free(two.after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mixture_is_not_believed),
        cmocka_unit_test(a_mixture_that_stands_still_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
