/* Four threads read through one handle, while a fifth writes through it. */
#include <caterva.h>
#include <pthread.h>
#include <stdio.h>

enum { PLANES = 64, SIDE = 128, READERS = 4, ROUNDS = 20 };

/* Readers own the planes from 1 on; the writer changes plane 0 only. */
typedef struct reader {
    caterva_array *array;
    int first, wrong;
    caterva_status status;
    caterva_error err;
    pthread_t thread;
} reader;

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

/* Readers see each change at once; other handles, after the commit. */
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
    options.threads = 1; /* for each request: the program has threads of its own */
    return caterva_create_from_memory("volume.b2nd", &options, volume, sizeof volume, out,
                                      err);
}

int main(void)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_status status = create(&array, &err);
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
    return caterva_close(array, NULL) == CATERVA_OK && wrong == 0 ? 0 : 1;

failed:
    fprintf(stderr, "reader-threads: %s\n", err.message);
    caterva_discard(array);
    return 1;
}
