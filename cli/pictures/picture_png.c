/* Room: cli/pictures. Writes pictures as PNG files with libpng. libpng reports errors by longjmp,
 * so each call is in a function that catches the longjmp and returns a status. Bytes go through
 * output.c, so that the file appears by a rename. */
#include "pictures/picture.h"
#include "terminal/output.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

typedef struct png_file {
    output out;
    png_structp png;
    png_infop info;
    cli_exit code; /* status of the write that failed in libpng */
    const colormap *map;
    int64_t width;
    int channels; /* channels of the picture */
    uint8_t *row;
} png_file;

static void on_error(png_structp png, png_const_charp message)
{
    png_file *f = png_get_error_ptr(png);
    if (f->code == CLI_OK) f->code = cli_fail(CLI_IO, "%s: %s", f->out.path, message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_write(png_structp png, png_bytep bytes, png_size_t size)
{
    png_file *f = png_get_io_ptr(png);
    f->code = output_write(&f->out, bytes, size);
    if (f->code != CLI_OK) png_longjmp(png, 1);
}

static void on_flush(png_structp png) { (void)png; }

static int color_type(const png_file *f)
{
    if (f->channels == 4) return PNG_COLOR_TYPE_RGB_ALPHA;
    return f->channels == 1 && f->map->gray ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

static cli_exit begin(png_file *f, int64_t height)
{
    if (setjmp(png_jmpbuf(f->png))) return f->code;
    png_set_write_fn(f->png, f, on_write, on_flush);
    png_set_user_limits(f->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(f->png, f->info, (png_uint_32)f->width, (png_uint_32)height, 8,
                 color_type(f), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(f->png, f->info);
    return CLI_OK;
}

static void fill_channels(png_file *f, const double *values)
{
    for (int64_t i = 0; i < f->width * f->channels; i++)
        f->row[i] = isfinite(values[i]) ? (uint8_t)colormap_index(f->map, values[i]) : 0;
}

/* Colours a row. Values that are not finite are black. */
static void fill_colors(png_file *f, const double *values)
{
    int depth = f->map->gray ? 1 : 3;
    for (int64_t c = 0; c < f->width; c++) {
        color pixel = {0, 0, 0};
        if (isfinite(values[c])) pixel = f->map->colors[colormap_index(f->map, values[c])];
        uint8_t *at = f->row + c * depth;
        at[0] = pixel.r;
        if (depth == 1) continue;
        at[1] = pixel.g;
        at[2] = pixel.b;
    }
}

static cli_exit put_row(void *context, int64_t row, const double *values)
{
    png_file *f = context;
    (void)row;
    if (f->channels > 1)
        fill_channels(f, values);
    else
        fill_colors(f, values);
    if (setjmp(png_jmpbuf(f->png))) return f->code;
    png_write_row(f->png, f->row);
    return CLI_OK;
}

static cli_exit end(png_file *f)
{
    if (setjmp(png_jmpbuf(f->png))) return f->code;
    png_write_end(f->png, f->info);
    return CLI_OK;
}

static cli_exit write_png(png_file *f, const picture *p)
{
    f->row = cli_alloc((size_t)f->width * 4);
    f->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, f, on_error, on_warning);
    f->info = f->png ? png_create_info_struct(f->png) : NULL;
    if (!f->row || !f->info) return cli_fail(CLI_IO, "no memory for a picture");
    CLI_TRY(begin(f, p->height));
    CLI_TRY(picture_rows(p, put_row, f));
    return end(f);
}

cli_exit picture_to_png(const picture *p, const colormap *map, const char *path, bool force)
{
    if (p->width > (int64_t)PNG_UINT_31_MAX || p->height > (int64_t)PNG_UINT_31_MAX)
        return cli_fail(CLI_UNSUPPORTED, "a PNG has at most 2147483647 rows and columns");
    png_file f = {.map = map, .width = p->width, .channels = p->channels};
    CLI_TRY(output_open(&f.out, path, force));
    cli_exit code = write_png(&f, p);
    png_destroy_write_struct(&f.png, &f.info);
    free(f.row);
    if (code == CLI_OK) return output_finish(&f.out);
    output_abandon(&f.out);
    return code;
}
