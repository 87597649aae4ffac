/* Makes an array in memory and writes it, compressed, to standard output. */
#include <caterva.h>
#include <caterva_store.h>
#include <stdio.h>

enum { ROWS = 500, COLUMNS = 400 };

int main(void)
{
    static int32_t table[ROWS][COLUMNS];
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) table[y][x] = y * x;

    caterva_error err;
    caterva_array *array = NULL;
    void *frame = NULL;
    size_t size = 0;
    const int64_t shape[] = {ROWS, COLUMNS};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.dtype = "<i4";
    caterva_status status =
        caterva_create_from_memory("mem:", &options, table, sizeof table, &array, &err);
    if (status == CATERVA_OK) status = caterva_frame_copy(array, &frame, &size, &err);
    if (status != CATERVA_OK) fprintf(stderr, "produce: %s\n", err.message);
    int good = status == CATERVA_OK && fwrite(frame, 1, size, stdout) == size;
    if (good)
        fprintf(stderr, "produce: %zu bytes in a frame of %zu bytes\n", sizeof table, size);
    caterva_free(frame);
    caterva_discard(array);
    return good && fflush(stdout) == 0 ? 0 : 1;
}
