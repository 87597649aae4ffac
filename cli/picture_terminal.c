/* Room: cli. Pictures in the terminal: each character shows two pixels, one above
 * the other, as a half block in two colours; without colours a character's density
 * stands for the value. A pixel is the mean of the items that fall on it. */
#include "picture.h"

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
    int64_t items_high, items_wide; /* of the picture */
    int64_t height, width;          /* in pixels */
    double *sums;
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

/* Shrinks, never enlarges, so that the picture fits the window and keeps its
 * proportions; a character is twice as high as wide. */
static void size_canvas(canvas *c)
{
    struct winsize window;
    double columns = DEFAULT_COLUMNS, rows = (double)INFINITY;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 &&
        window.ws_col > 0 && window.ws_row > 1) {
        columns = window.ws_col;
        rows = 2.0 * (window.ws_row - 1); /* the prompt needs a line */
    }
    double shrink = fmax((double)c->items_wide / columns, (double)c->items_high / rows);
    if (shrink < 1) shrink = 1;
    double high = c->depth == DEPTH_NONE ? 2 * shrink : shrink;
    c->width = (int64_t)fmax(1, floor((double)c->items_wide / shrink + 1e-9));
    c->height = (int64_t)fmax(1, ceil((double)c->items_high / high - 1e-9));
}

static cli_exit add_row(void *context, int64_t row, const double *values)
{
    canvas *c = context;
    int64_t first = row * c->height / c->items_high * c->width;
    for (int64_t i = 0; i < c->items_wide; i++) {
        if (!isfinite(values[i])) continue;
        int64_t pixel = first + i * c->width / c->items_wide;
        c->sums[pixel] += values[i];
        c->counts[pixel]++;
    }
    return CLI_OK;
}

/* Index of the pixel's colour; -1 where nothing finite fell, or below the edge. */
static int pixel_index(const canvas *c, int64_t y, int64_t x)
{
    if (y >= c->height) return -1;
    int64_t pixel = y * c->width + x;
    if (c->counts[pixel] == 0) return -1;
    return colormap_index(c->map, c->sums[pixel] / (double)c->counts[pixel]);
}

static void print_color(const canvas *c, int ground, int index)
{
    color k = c->map->colors[index];
    if (c->depth == DEPTH_TRUE) {
        printf("\033[%d;2;%d;%d;%dm", ground, k.r, k.g, k.b);
    } else { /* the 6 x 6 x 6 cube of the 256 colours */
        int cube = 36 * ((k.r * 5 + 127) / 255) + 6 * ((k.g * 5 + 127) / 255) +
                   (k.b * 5 + 127) / 255;
        printf("\033[%d;5;%dm", ground, 16 + cube);
    }
}

static void print_half_blocks(const canvas *c, int64_t y, int64_t x)
{
    int upper = pixel_index(c, y, x), lower = pixel_index(c, y + 1, x);
    fputs("\033[0m", stdout);
    if (upper < 0 && lower < 0) {
        putchar(' ');
    } else if (upper < 0) {
        print_color(c, 38, lower);
        fputs("\u2584", stdout);
    } else {
        print_color(c, 38, upper);
        if (lower >= 0) print_color(c, 48, lower);
        fputs("\u2580", stdout);
    }
}

static void print_density(const canvas *c, int64_t y, int64_t x)
{
    static const char ramp[] = " .:-=+*#%@";
    int index = pixel_index(c, y, x);
    putchar(index < 0 ? '?' : ramp[index * 10 / 256]);
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
    size_canvas(&c);
    size_t pixels = (size_t)(c.height * c.width);
    c.sums = calloc(pixels, sizeof *c.sums);
    c.counts = calloc(pixels, sizeof *c.counts);
    cli_exit code = CLI_OK;
    if (!c.sums || !c.counts) code = cli_fail(CLI_IO, "no memory for a picture");
    if (code == CLI_OK) code = picture_rows(p, add_row, &c);
    if (code == CLI_OK) code = print_canvas(&c);
    free(c.sums);
    free(c.counts);
    return code;
}
