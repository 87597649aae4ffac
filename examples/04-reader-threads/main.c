/* Four threads read through one handle, while a fifth writes through it. The library
 * allocates through functions of this program, which count their calls. */
#include <caterva.h>
#include <caterva_store.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLANES = 64, SIDE = 128, READERS = 4, ROUNDS = 20 };

/* Readers check the planes from 1 on; the writer changes only plane 0. */
typedef struct reader {
    caterva_array *array;
    int first, wrong;
    caterva_status status;
    caterva_error err;
    pthread_t thread;
} reader;

/* Atomic, because all threads of the library change them at the same time. */
static atomic_long n_allocated, n_released;

static void *allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    atomic_fetch_add(&n_allocated, 1);
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *context, void *memory)
{
    (void)context;
    atomic_fetch_add(&n_released, 1);
    free(memory);
}

static int32_t item(int z, int y, int x) { return 10000 * z + 100 * y + x; }

static void fill_plane(int z, int32_t plane[SIDE][SIDE])
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) plane[y][x] = item(z, y, x);
}

static void *read_planes(void *argument)
{
    reader *me = argument;
    static _Thread_local int32_t plane[SIDE][SIDE];
    for (int round = 0; round < ROUNDS; round++)
        for (int z = me->first; z < PLANES; z += READERS) {
            const int64_t start[] = {z, 0, 0}, stop[] = {z + 1, SIDE, SIDE};
            me->status = caterva_read(me->array, start, stop, plane, sizeof plane, &me->err);
            if (me->status != CATERVA_OK) return NULL;
            me->wrong += plane[SIDE - 1][z] != item(z, SIDE - 1, z);
        }
    return NULL;
}

/* Readers of this handle see each change at once; other handles see it after the commit. */
static caterva_status write_first_plane(caterva_array *array, caterva_error *err)
{
    static int32_t plane[SIDE][SIDE];
    const int64_t start[] = {0, 0, 0}, stop[] = {1, SIDE, SIDE};
    for (int round = 0; round < ROUNDS; round++) {
        fill_plane(round, plane);
        caterva_status status = caterva_write(array, start, stop, plane, sizeof plane, err);
        if (status == CATERVA_OK) status = caterva_commit(array, err);
        if (status != CATERVA_OK) return status;
    }
    return CATERVA_OK;
}

static caterva_status create(caterva_array **out, caterva_error *err)
{
    static int32_t volume[PLANES][SIDE][SIDE];
    const int64_t shape[] = {PLANES, SIDE, SIDE};
    caterva_create_options options = CATERVA_CREATE_INIT;
    for (int z = 0; z < PLANES; z++) fill_plane(z, volume[z]);
    options.ndim = 3;
    options.shape = shape;
    options.dtype = "<i4";
    options.overwrite = 1;
    options.threads = 1; /* per request: the program has threads of its own */
    return caterva_create_from_memory("volume.b2nd", &options, volume, sizeof volume, out,
                                      err);
}

int main(void)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_allocator allocator = CATERVA_ALLOCATOR_INIT;
    allocator.allocate = allocate;
    allocator.release = release;
    caterva_status status = caterva_set_allocator(&allocator, &err); /* must be the first call */
    if (status == CATERVA_OK) status = create(&array, &err);
    if (status != CATERVA_OK) goto failed;

    reader readers[READERS] = {0};
    int started = 0;
    for (; started < READERS; started++) {
        readers[started].array = array;
        readers[started].first = started + 1;
        if (pthread_create(&readers[started].thread, NULL, read_planes, &readers[started]))
            break;
    }
    status = write_first_plane(array, &err);
    int wrong = 0;
    for (int i = 0; i < started; i++) {
        pthread_join(readers[i].thread, NULL);
        wrong += readers[i].wrong;
        if (readers[i].status == CATERVA_OK) continue;
        status = readers[i].status;
        err = readers[i].err;
    }
    if (status != CATERVA_OK) goto failed;
    printf("%d readers, %d planes each round, %d rounds: %d wrong\n", started, PLANES - 1,
           ROUNDS, wrong);
    status = caterva_close(array, &err);
    array = NULL;
    if (status != CATERVA_OK) goto failed;
    fprintf(stderr, "%ld allocations, %ld released\n", atomic_load(&n_allocated),
            atomic_load(&n_released));
    return wrong == 0 ? 0 : 1;

failed:
    fprintf(stderr, "reader-threads: %s\n", err.message);
    caterva_discard(array);
    return 1;
}
