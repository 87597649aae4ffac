/* Room: cli/pictures. Colour maps. Each is stored as a few anchors of a well-known table
 * (matplotlib's, Google's turbo), and interpolated; the result looks the same as 256 rows. */
#include "pictures/colormap.h"

#include "words.h"

#include <string.h>

#define MAX_ANCHORS 15

typedef struct anchors {
    const char *name;
    int n;
    uint32_t rgb[MAX_ANCHORS];
} anchors;

static const anchors maps[] = {
    {"gray", 2, {0x000000, 0xffffff}},
    {"viridis",
     9,
     {0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c, 0x28ae80, 0x5ec962, 0xaddc30,
      0xfde725}},
    {"magma",
     9,
     {0x000004, 0x1d1147, 0x51127c, 0x832681, 0xb73779, 0xe75263, 0xfc8961, 0xfec488,
      0xfcfdbf}},
    {"inferno",
     9,
     {0x000004, 0x210c4a, 0x57106e, 0x8a226a, 0xbc3754, 0xe45a31, 0xf98e09, 0xf9cb35,
      0xfcffa4}},
    {"plasma",
     9,
     {0x0d0887, 0x4c02a1, 0x7e03a8, 0xaa2395, 0xcc4778, 0xe66c5c, 0xf89540, 0xfdc527,
      0xf0f921}},
    {"turbo",
     15,
     {0x30123b, 0x4145ab, 0x4675ed, 0x39a2fc, 0x1bcfd4, 0x24eca6, 0x61fc6c, 0xa4fc3b,
      0xd1e834, 0xf3c63a, 0xfe9b2d, 0xf36315, 0xd93806, 0xb11901, 0x7a0402}},
    {"hot", 4, {0x0b0000, 0xff0000, 0xffff00, 0xffffff}},
    {"coolwarm",
     11,
     {0x3b4cc0, 0x5977e3, 0x7b9ff9, 0x9ebeff, 0xc0d4f5, 0xdddcdc, 0xf2cbb7, 0xf7ac8e,
      0xee8468, 0xd65244, 0xb40426}},
};
#define N_MAPS (sizeof maps / sizeof maps[0])

static uint8_t mix(uint32_t a, uint32_t b, int shift, double part)
{
    double low = (double)(a >> shift & 255), high = (double)(b >> shift & 255);
    return (uint8_t)(low + (high - low) * part + 0.5);
}

static color color_at(const anchors *a, int index)
{
    double place = (double)index / 255 * (a->n - 1);
    int left = (int)place;
    if (left > a->n - 2) left = a->n - 2;
    uint32_t from = a->rgb[left], to = a->rgb[left + 1];
    double part = place - left;
    return (color){mix(from, to, 16, part), mix(from, to, 8, part), mix(from, to, 0, part)};
}

const char *colormap_name(size_t i) { return i < N_MAPS ? maps[i].name : NULL; }

cli_exit colormap_init(colormap *map, const char *name)
{
    const anchors *found = name ? NULL : &maps[0];
    for (size_t i = 0; name && i < N_MAPS; i++)
        if (strcmp(maps[i].name, name) == 0) found = &maps[i];
    if (!found) {
        words_hint hint = words_suggest(name, colormap_name);
        return cli_fail(CLI_USAGE, "--cmap: unknown '%s'%s", name,
                        hint.text[0] ? hint.text
                                     : "; choose from gray, viridis, magma, inferno, plasma, "
                                       "turbo, hot, coolwarm");
    }
    *map = (colormap){.gray = found == &maps[0], .lo = 0, .hi = 1};
    for (int i = 0; i < 256; i++) map->colors[i] = color_at(found, i);
    return CLI_OK;
}

int colormap_index(const colormap *map, double value)
{
    /* Operands are halved, so that the difference of two large doubles does not overflow. */
    double part = (value / 2 - map->lo / 2) / (map->hi / 2 - map->lo / 2);
    if (part <= 0) return 0;
    return part >= 1 ? 255 : (int)(part * 255 + 0.5);
}
