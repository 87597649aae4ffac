/* Reads a frame from standard input, and then some of its items, without a file. */
#include <caterva.h>
#include <caterva_store.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads all of standard input. Returns NULL if there is not enough memory. */
static unsigned char *read_all(size_t *size)
{
    size_t room = 1 << 16;
    unsigned char *bytes = malloc(room);
    *size = 0;
    while (bytes) {
        size_t n = fread(bytes + *size, 1, room - *size, stdin);
        *size += n;
        if (n == 0) return bytes;
        if (*size < room) continue;
        unsigned char *more = realloc(bytes, room *= 2);
        if (!more) free(bytes);
        bytes = more;
    }
    return NULL;
}

int main(void)
{
    caterva_error err;
    caterva_array *array = NULL;
    size_t size;
    unsigned char *frame = read_all(&size);
    if (!frame) return 1;

    int32_t row[4];
    const int64_t start[] = {123, 10}, stop[] = {124, 14};
    caterva_status status = caterva_frame_open(frame, size, 0, NULL, &array, &err);
    if (status == CATERVA_OK)
        status = caterva_read(array, start, stop, row, sizeof row, &err);
    if (status == CATERVA_OK)
        printf("items (123, 10) to (123, 13): %d %d %d %d\n", row[0], row[1], row[2], row[3]);
    else
        fprintf(stderr, "consume: %s\n", err.message);

    caterva_discard(array); /* before its bytes are freed */
    free(frame);
    return status == CATERVA_OK ? 0 : 1;
}
