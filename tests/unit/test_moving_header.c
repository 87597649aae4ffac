/* A header that is being rewritten while it is read: the store of another
 * process's file shows a mixture of the old and the new one for a while. */
#include "frame/frame.h"
#include "made.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Shows `before` and `after` mixed in the first `mixed` reads of the header, and
 * is found to be longer at the second look. */
typedef struct moving_store {
    cv_store base;
    const uint8_t *before, *after;
    size_t size, first_size;
    int mixed;
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
        size_t part = m->n_reads % 2 ? 24 : 40; /* frame size; and decoded size */
        memcpy(dst, m->before, part);
    }
    return CV_OK;
}

static void moving_close(cv_store *store) { free(store); }

static const cv_store_ops moving_ops = {
    .name = "moving", .size = moving_size, .read = moving_read, .close = moving_close};

static void a_mixture_is_not_believed(void **state)
{
    (void)state;
    caterva_error err;
    size_t old_size, size;
    geometry g = made_line(1000, 200, 50, 4);
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    assert_int_equal(made_write(array, 0, 1000, 5, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    uint8_t *before = made_bytes(array, &old_size);
    int64_t longer = 3000;
    assert_int_equal(caterva_resize(array, &longer, NULL), CATERVA_OK);
    assert_int_equal(made_write(array, 0, 3000, 9, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    uint8_t *after = made_bytes(array, &size);
    caterva_discard(array);

    for (int mixed = 0; mixed < 8; mixed++) {
        moving_store *m = check_alloc(sizeof *m);
        *m = (moving_store){.base = {.ops = &moving_ops, .published = true},
                            .before = before,
                            .after = after,
                            .size = size,
                            .first_size = old_size,
                            .mixed = mixed};
        cv_frame *frame;
        CHECK_OK(cv_frame_open(&m->base, CATERVA_DURABILITY_FULL, false, &frame, &err), err);
        assert_memory_equal(frame->current->header_bytes.data, after,
                            frame->current->header_bytes.size);
        assert_int_equal(frame->current->grid.shape[0], 3000);
        assert_int_equal(m->n_reads, mixed + 2);
        cv_frame_close(frame);
    }
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_mixture_is_not_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
