/* Room: cli/pictures. Pictures in the terminal. Each character shows two pixels, one above the
 * other, as a half block in two colours. Without colours it shows one pixel, whose value determines
 * the character. A pixel is the mean of its items. */
#include "pictures/picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80

typedef enum color_depth { DEPTH_NONE, DEPTH_256, DEPTH_TRUE } color_depth;

typedef struct canvas {
    const colormap *map;
    color_depth depth;
    int64_t items_high, items_wide; /* size of the picture in items */
    int channels;
    int64_t height, width; /* size in pixels */
    double *sums;          /* sums of the finite items of each pixel, for each channel */
    int64_t *counts;
} canvas;

static color_depth find_depth(void)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM"),
               *deep = getenv("COLORTERM");
    if (!isatty(STDOUT_FILENO) || (none && *none)) return DEPTH_NONE;
    if (!term || !*term || strcmp(term, "dumb") == 0) return DEPTH_NONE;
    bool true_color = deep && (strstr(deep, "truecolor") || strstr(deep, "24bit"));
    return true_color ? DEPTH_TRUE : DEPTH_256;
}

/* Shrinks the picture so that it fits into the window, keeps its proportions, and never enlarges
 * it. A character is twice as high as wide. */
void picture_terminal_size(int64_t height, int64_t width, int64_t *rows, int64_t *columns)
{
    struct winsize window;
    double across = DEFAULT_COLUMNS, down = (double)INFINITY;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 &&
        window.ws_col > 0 && window.ws_row > 1) {
        across = window.ws_col;
        down = 2.0 * (window.ws_row - 1); /* the prompt needs a line */
    }
    double shrink = fmax((double)width / across, (double)height / down);
    if (shrink < 1) shrink = 1;
    double high = find_depth() == DEPTH_NONE ? 2 * shrink : shrink;
    *columns = (int64_t)fmax(1, floor((double)width / shrink + 1e-9));
    *rows = (int64_t)fmax(1, ceil((double)height / high - 1e-9));
}

/* Adds a row of items to the pixels. Leaves out items with a channel that is not finite. */
static cli_exit add_row(void *context, int64_t row, const double *values)
{
    canvas *c = context;
    int64_t first = row * c->height / c->items_high * c->width;
    for (int64_t i = 0; i < c->items_wide; i++, values += c->channels) {
        bool finite = true;
        for (int k = 0; k < c->channels; k++) finite = finite && isfinite(values[k]);
        if (!finite) continue;
        int64_t pixel = first + i * c->width / c->items_wide;
        for (int k = 0; k < c->channels; k++) c->sums[pixel * c->channels + k] += values[k];
        c->counts[pixel]++;
    }
    return CLI_OK;
}

/* Mixes red, green and blue with a black background, by opacity. */
static color mix_channels(const canvas *c, const double *sums, int64_t count)
{
    int level[4] = {0, 0, 0, 255};
    for (int k = 0; k < c->channels; k++)
        level[k] = colormap_index(c->map, sums[k] / (double)count);
    for (int k = 0; k < 3; k++) level[k] = (level[k] * level[3] + 127) / 255;
    return (color){(uint8_t)level[0], (uint8_t)level[1], (uint8_t)level[2]};
}

/* Returns false if the pixel has no finite items, or lies below the last row of pixels. */
static bool pixel_color(const canvas *c, int64_t y, int64_t x, color *out)
{
    int64_t pixel = y * c->width + x;
    if (y >= c->height || c->counts[pixel] == 0) return false;
    const double *sums = c->sums + pixel * c->channels;
    if (c->channels > 1)
        *out = mix_channels(c, sums, c->counts[pixel]);
    else
        *out = c->map->colors[colormap_index(c->map, sums[0] / (double)c->counts[pixel])];
    return true;
}

/* Returns the number of the nearest of the 256 terminal colours: for a gray, black, white or the
 * ramp from 232 to 255, whose levels go from 8 to 238 in steps of 10; for others, one of the
 * cube. */
static int nearest_of_256(color k)
{
    if (k.r == k.g && k.g == k.b) {
        if (k.r < 4) return 16;
        return k.r > 246 ? 231 : 232 + (k.r < 238 ? (k.r - 3) / 10 : 23);
    }
    return 16 + 36 * ((k.r * 5 + 127) / 255) + 6 * ((k.g * 5 + 127) / 255) +
           (k.b * 5 + 127) / 255;
}

static void print_color(const canvas *c, int ground, color k)
{
    if (c->depth == DEPTH_TRUE)
        printf("\033[%d;2;%d;%d;%dm", ground, k.r, k.g, k.b);
    else
        printf("\033[%d;5;%dm", ground, nearest_of_256(k));
}

static void print_half_blocks(const canvas *c, int64_t y, int64_t x)
{
    color upper, lower;
    bool above = pixel_color(c, y, x, &upper), below = pixel_color(c, y + 1, x, &lower);
    fputs("\033[0m", stdout);
    if (!above && !below) {
        putchar(' ');
    } else if (!above) {
        print_color(c, 38, lower);
        fputs("\u2584", stdout);
    } else {
        print_color(c, 38, upper);
        if (below) print_color(c, 48, lower);
        fputs("\u2580", stdout);
    }
}

/* Prints the character for a pixel without colours. The character represents the brightness of a
 * colour (ITU-R BT.601), or the position of a number in the range of the map. */
static void print_density(const canvas *c, int64_t y, int64_t x)
{
    static const char ramp[] = " .:-=+*#%@";
    color k;
    if (!pixel_color(c, y, x, &k)) {
        putchar('?');
        return;
    }
    int64_t pixel = y * c->width + x;
    int level = c->channels > 1
                    ? (299 * k.r + 587 * k.g + 114 * k.b + 500) / 1000
                    : colormap_index(c->map, c->sums[pixel] / (double)c->counts[pixel]);
    putchar(ramp[level * 10 / 256]);
}

static cli_exit print_canvas(const canvas *c)
{
    bool colors = c->depth != DEPTH_NONE;
    for (int64_t y = 0; y < c->height; y += colors ? 2 : 1) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        for (int64_t x = 0; x < c->width; x++) {
            if (colors)
                print_half_blocks(c, y, x);
            else
                print_density(c, y, x);
        }
        puts(colors ? "\033[0m" : "");
    }
    return CLI_OK;
}

cli_exit picture_to_terminal(const picture *p, const colormap *map)
{
    canvas c = {.map = map, .items_high = p->height, .items_wide = p->width};
    c.depth = find_depth();
    c.channels = p->channels;
    picture_terminal_size(p->full_height, p->full_width, &c.height, &c.width);
    size_t pixels = (size_t)(c.height * c.width);
    c.sums = calloc(pixels * (size_t)c.channels, sizeof *c.sums);
    c.counts = calloc(pixels, sizeof *c.counts);
    cli_exit code = CLI_OK;
    if (!c.sums || !c.counts) code = cli_fail(CLI_IO, "no memory for a picture");
    if (code == CLI_OK) code = picture_rows(p, add_row, &c);
    if (code == CLI_OK) code = print_canvas(&c);
    free(c.sums);
    free(c.counts);
    return code;
}
