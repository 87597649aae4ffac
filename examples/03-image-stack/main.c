/* A stack of images that is read by frame and by pixel.
 *
 *   image-stack pack STACK IMAGE...     plain PGM images (P2) into a new stack
 *   image-stack frame STACK N           frame N as PGM on standard output
 *   image-stack pixel STACK ROW COLUMN  one pixel in all frames
 */
#include <caterva.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a plain PGM with values up to 255; free *pixels. */
static int read_pgm(const char *path, int *rows, int *columns, uint8_t **pixels)
{
    int top, value, good = 0;
    *pixels = NULL;
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "P2 %d %d %d", columns, rows, &top) == 3 && top <= 255 &&
        *rows > 0 && *columns > 0 && *rows <= 32768 && *columns <= 32768)
        *pixels = malloc((size_t)*rows * (size_t)*columns);
    if (*pixels) {
        int n = *rows * *columns;
        for (int i = 0; i < n && fscanf(file, "%d", &value) == 1; i++, good = i == n)
            (*pixels)[i] = (uint8_t)value;
    }
    if (!good) fprintf(stderr, "image-stack: %s is not a plain PGM\n", path);
    if (file) fclose(file);
    return good;
}

static int32_t at_most(int32_t most, int n) { return n < most ? n : most; }

/* Blocks of 8 frames x 64 x 64 pixels are a compromise: flat blocks would favour frames, long ones
 * pixels. Reading a frame decodes 8 times as much as it returns, and reading one pixel in all
 * frames 4096 times as much. */
static caterva_status create(const char *path, int rows, int columns, caterva_array **out,
                             caterva_error *err)
{
    const int64_t shape[] = {0, rows, columns};
    const int32_t chunk_shape[] = {64, at_most(256, rows), at_most(256, columns)};
    const int32_t block_shape[] = {8, at_most(64, rows), at_most(64, columns)};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 3;
    options.shape = shape;
    options.chunk_shape = chunk_shape;
    options.block_shape = block_shape;
    options.dtype = "|u1";
    options.overwrite = 1;
    return caterva_create(path, &options, out, err);
}

/* Makes one commit, when the array is closed: the stack appears completely or not at all. */
static caterva_status pack(const char *path, int n, char **images, caterva_error *err)
{
    caterva_array *array = NULL;
    caterva_status status = CATERVA_OK;
    for (int i = 0; i < n && status == CATERVA_OK; i++) {
        int rows, columns;
        uint8_t *pixels;
        if (!read_pgm(images[i], &rows, &columns, &pixels)) exit(1);
        if (!array) status = create(path, rows, columns, &array, err);
        const int64_t shape[] = {1, rows, columns};
        caterva_buffer src = CATERVA_BUFFER_INIT;
        src.data = pixels;
        src.size = (size_t)rows * (size_t)columns;
        src.ndim = 3;
        src.shape = shape;
        if (status == CATERVA_OK) /* CATERVA_ESHAPE if an image has another size */
            status = caterva_append(array, 0, 1, &src, err);
        free(pixels);
    }
    if (status == CATERVA_OK) return caterva_close(array, err);
    caterva_discard(array);
    return status;
}

static caterva_status print_frame(caterva_array *stack, int64_t frame, caterva_error *err)
{
    const caterva_info *info;
    if (caterva_info_get(stack, &info, err) != CATERVA_OK) return err->code;
    const int64_t rows = info->shape[1], columns = info->shape[2];
    caterva_info_release(info);
    const int64_t start[] = {frame, 0, 0}, stop[] = {frame + 1, rows, columns};
    size_t size = (size_t)(rows * columns);
    uint8_t *pixels = malloc(size);
    if (!pixels) exit(1);
    caterva_status status = caterva_read(stack, start, stop, pixels, size, err);
    if (status == CATERVA_OK)
        printf("P2 %lld %lld 255\n", (long long)columns, (long long)rows);
    for (size_t i = 0; i < size && status == CATERVA_OK; i++)
        printf("%d%c", pixels[i], (int64_t)(i + 1) % columns ? ' ' : '\n');
    free(pixels);
    return status;
}

/* Prints stack[:, row, column], one item per frame; -1 is the last row or column. */
static caterva_status print_pixel(caterva_array *stack, int64_t row, int64_t column,
                                  caterva_error *err)
{
    const caterva_axis axes[] = {{.kind = CATERVA_AXIS_ALL},
                                 {.kind = CATERVA_AXIS_INDEX, .start = row},
                                 {.kind = CATERVA_AXIS_INDEX, .start = column}};
    caterva_selection pixel = CATERVA_SELECTION_INIT;
    pixel.kind = CATERVA_SELECTION_AXES;
    pixel.axes = axes;
    pixel.n_axes = 3;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS]; /* of the result: the frames */
    if (caterva_selection_shape(stack, &pixel, &ndim, shape, err) != CATERVA_OK)
        return err->code;
    caterva_buffer line = CATERVA_BUFFER_INIT;
    line.size = (size_t)shape[0];
    line.data = malloc(line.size + 1);
    if (!line.data) exit(1);
    caterva_status status = caterva_read_selection(stack, &pixel, &line, err);
    const uint8_t *items = line.data;
    for (int64_t i = 0; i < shape[0] && status == CATERVA_OK; i++)
        printf("%d%c", items[i], i + 1 < shape[0] ? ' ' : '\n');
    free(line.data);
    return status;
}

int main(int argc, char **argv)
{
    caterva_error err;
    caterva_array *stack = NULL;
    caterva_status status;
    if (argc > 3 && strcmp(argv[1], "pack") == 0) {
        status = pack(argv[2], argc - 3, argv + 3, &err);
    } else if (argc == 4 && strcmp(argv[1], "frame") == 0) {
        status = caterva_open(argv[2], NULL, &stack, &err);
        if (status == CATERVA_OK) status = print_frame(stack, atoll(argv[3]), &err);
    } else if (argc == 5 && strcmp(argv[1], "pixel") == 0) {
        status = caterva_open(argv[2], NULL, &stack, &err);
        if (status == CATERVA_OK)
            status = print_pixel(stack, atoll(argv[3]), atoll(argv[4]), &err);
    } else {
        fprintf(stderr, "usage: image-stack pack STACK IMAGE... | frame STACK N | "
                        "pixel STACK ROW COLUMN\n");
        return 2;
    }
    caterva_discard(stack);
    if (status != CATERVA_OK) fprintf(stderr, "image-stack: %s\n", err.message);
    return status == CATERVA_OK ? 0 : 1;
}
