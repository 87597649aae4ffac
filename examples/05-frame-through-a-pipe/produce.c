/* Creates an array in memory and writes it, compressed, to standard output. */
#include <caterva.h>
#include <caterva_store.h>
#include <stdio.h>

enum { ROWS = 500, COLUMNS = 400 };

/* Receives the frame in pieces, so that the whole frame is never in memory. */
static int send_piece(void *sent, const void *piece, size_t size, uint64_t total)
{
    (void)total; /* a protocol with a length prefix would send this number first */
    *(size_t *)sent += size;
    return fwrite(piece, 1, size, stdout) != size;
}

int main(void)
{
    static int32_t table[ROWS][COLUMNS];
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) table[y][x] = y * x;

    caterva_error err;
    caterva_array *array = NULL;
    size_t sent = 0;
    const int64_t shape[] = {ROWS, COLUMNS};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.dtype = "<i4";
    caterva_status status =
        caterva_create_from_memory("mem:", &options, table, sizeof table, &array, &err);
    if (status == CATERVA_OK) status = caterva_frame_pieces(array, send_piece, &sent, &err);
    if (status != CATERVA_OK) fprintf(stderr, "produce: %s\n", err.message);
    else fprintf(stderr, "produce: %zu bytes in a frame of %zu bytes\n", sizeof table, sent);
    caterva_discard(array);
    return status == CATERVA_OK && fflush(stdout) == 0 ? 0 : 1;
}
