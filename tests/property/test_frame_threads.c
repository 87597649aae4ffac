/* Frames and copies are made beside commits of another thread, which replace the state that
 * they begin with. */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { ROUNDS = 200, SIDE = 8 };

static caterva_array *array;
static atomic_bool is_over;

static void *write_and_commit(void *unused)
{
    const int64_t start[] = {0, 0}, stop[] = {SIDE, SIDE};
    uint8_t items[SIDE * SIDE];
    caterva_error err;
    for (uint8_t value = 0; !atomic_load(&is_over); value++) {
        for (int i = 0; i < SIDE * SIDE; i++) items[i] = (uint8_t)(value + (value ? 0 : i));
        CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
    }
    return unused;
}

static int take(void *n, const void *piece, size_t size, uint64_t total)
{
    (void)piece, (void)total;
    *(size_t *)n += size;
    return 0;
}

int main(void)
{
    const int64_t shape[] = {SIDE, SIDE};
    char path[SCRATCH_PATH];
    caterva_error err;
    pthread_t writer;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "|u1";
    o.durability = CATERVA_DURABILITY_NONE;
    scratch_path(path, "frames.b2nd");
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    CHECK(pthread_create(&writer, NULL, write_and_commit, NULL) == 0, "no thread");
    for (int i = 0; i < ROUNDS; i++) {
        void *frame;
        size_t size, n = 0;
        caterva_array *copy;
        CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
        caterva_free(frame);
        CHECK_OK(caterva_frame_pieces(array, take, &n, &err), err);
        CHECK(n > 0, "no pieces");
        CHECK_OK(caterva_copy(array, "mem:", NULL, &copy, &err), err);
        caterva_discard(copy);
    }
    atomic_store(&is_over, true);
    pthread_join(writer, NULL);
    caterva_discard(array);
    return 0;
}
