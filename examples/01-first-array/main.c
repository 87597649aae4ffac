/* Compresses a volume into a file and reads one plane of it. */
#include <caterva.h>
#include <stdio.h>

static int16_t volume[64][128][128], plane[128][128];

int main(void)
{
    for (int z = 0; z < 64; z++)
        for (int y = 0; y < 128; y++)
            for (int x = 0; x < 128; x++) volume[z][y][x] = (int16_t)(100 * z + (x ^ y));

    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = CATERVA_CREATE_INIT;
    const int64_t shape[] = {64, 128, 128}, origin[] = {0, 0, 0};
    options.ndim = 3;
    options.shape = shape;
    options.dtype = "<i2";
    options.overwrite = 1;
    if (caterva_create("volume.b2nd", &options, &array, &err) != CATERVA_OK) goto failed;
    if (caterva_write(array, origin, shape, volume, sizeof volume, &err) != CATERVA_OK)
        goto failed;
    if (caterva_commit(array, &err) != CATERVA_OK) goto failed;

    const int64_t start[] = {40, 0, 0}, stop[] = {41, 128, 128};
    if (caterva_read(array, start, stop, plane, sizeof plane, &err) != CATERVA_OK) goto failed;

    const caterva_info *info;
    if (caterva_info_get(array, &info, &err) != CATERVA_OK) goto failed;
    printf("%zu bytes in a file of %lld; item (40, 3, 5) is %d\n", sizeof volume,
           (long long)info->frame_bytes, plane[3][5]);
    caterva_info_release(info);
    return caterva_close(array, NULL) == CATERVA_OK ? 0 : 1;

failed:
    fprintf(stderr, "%s\n", err.message);
    caterva_discard(array);
    return 1;
}
