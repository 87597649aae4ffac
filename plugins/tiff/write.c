/* Plug-in tiff: writing. */
#include "plugin.h"

#include "foreign/values.h"
#include "terminal/output.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LEVEL 4 /* of deflate; nearly as dense as 6, and much faster */
#define MAX_PAGES 1000000
#define MAX_BAND (32 << 20)

/* Items arrive in C order. They are collected in a band: the rows of the page that are in one row of
 * tiles. */
typedef struct tiff_writer {
    output out;
    TIFF *tif;
    tiff_message message;
    tiff_layout layout;       /* of the array that is written */
    int64_t page, plane, row; /* row: the first one of the band */
    uint8_t *band, *tile;
    size_t used;         /* bytes of the band */
    foreign_node *first; /* key, shape, names of axes and attributes of the array */
    bool is_swapped;     /* items have the other byte order */
    bool has_page;       /* a page was begun and has no directory yet */
} tiff_writer;

static void release(tiff_writer *w)
{
    if (w->tif) {
        int fd = TIFFFileno(w->tif);
        TIFFCleanup(w->tif);
        close(fd);
    }
    output_abandon(&w->out);
    foreign_node_free(w->first);
    free(w->band);
    free(w->tile);
    free(w);
}

static void abandon(foreign_writer *self) { release(self->own); }

static cli_exit failed(const tiff_writer *w)
{
    const int cause = w->message.cause;
    if (*w->message.text && (cause == ENOSPC || cause == EFBIG || cause == EDQUOT))
        return cli_fail(CLI_IO, "cannot write %s: %s", w->out.path, strerror(cause));
    return cli_fail(CLI_IO, "cannot write %s: %s", w->out.path,
                    *w->message.text ? w->message.text : "libtiff failed");
}

/* Sets the resolution from the spacing of the pixels, if no tag of the map says it. */
static void set_resolution(TIFF *tif, const foreign_node *node, const tiff_layout *l)
{
    static const struct {
        const char *name;
        double cm;
    } units[] = {{"cm", 1}, {"mm", 0.1}, {"um", 1e-4}, {"m", 100}, {"nm", 1e-7}};
    double spacing[CATERVA_MAX_DIMS];
    packed_value list = values_of(node, "axis_units"), key, unit = {0};
    int y = node->ndim - 2 - (l->samples > 1 && !l->planes);
    if (TIFFGetField(tif, TIFFTAG_XRESOLUTION, &(float){0})) return;
    if (values_numbers(values_of(node, "spacing"), spacing, CATERVA_MAX_DIMS) !=
        (size_t)node->ndim)
        return;
    size_t at = 0;
    for (int d = 0; d <= y; d++)
        if (!values_next(list, &at, &key, &unit)) return;
    if (!(spacing[y] > 0 && spacing[y + 1] > 0)) return;
    double cm = values_is(unit, "inch") ? 1 : 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (values_is(unit, units[i].name)) cm = units[i].cm;
    if (cm == 0) return;
    TIFFSetField(tif, TIFFTAG_RESOLUTIONUNIT,
                 values_is(unit, "inch") ? RESUNIT_INCH : RESUNIT_CENTIMETER);
    TIFFSetField(tif, TIFFTAG_YRESOLUTION, 1 / (spacing[y] * cm));
    TIFFSetField(tif, TIFFTAG_XRESOLUTION, 1 / (spacing[y + 1] * cm));
}

/* Sets `out` to the letters of tifffile for the names of axes, to "" if they are those that every page
 * has. Returns false if there are no such letters. */
static bool letters_of(const foreign_node *node, char *out)
{
    static const char known[] = "ACEFHILMPRTVXYZ";
    int n = node->ndim, y = n - 2 - (n > 2 && node->dims && node->dims[n - 1] &&
                                     strcmp(node->dims[n - 1], "sample") == 0);
    bool is_usual = true;
    *out = '\0';
    for (int d = 0; node->dims && d < n; d++) {
        const char *name = node->dims[d];
        bool is_letter = name && strlen(name) == 1 && strchr(known, toupper((unsigned char)*name));
        bool is_sample = name && strcmp(name, "sample") == 0;
        if (name && strcmp(name, "page") == 0) name = NULL; /* what a reader calls an axis without a name */
        if (name && !is_letter && !is_sample) return false;
        is_usual = is_usual && (!name || d >= y || is_sample);
        out[d] = is_letter ? (char)toupper((unsigned char)*name) : is_sample ? 'S' : 'Q';
        out[d + 1] = '\0';
    }
    bool has_page = !*out || (y >= 0 && strchr("YQ", out[y]) && strchr("XQ", out[y + 1])) ||
                    (n > 2 && out[n - 3] == 'S' && out[n - 2] == 'Y' && out[n - 1] == 'X');
    if (is_usual) *out = '\0';
    return has_page;
}

/* Returns the description, to be freed: that of the array, with its shape if it is tifffile's
 * ({"shape": [2, 3], ...}), or the shape alone and the letters of its axes. *drops: what is lost of the
 * names of axes, or of the array's description. NULL after a reported lack of memory. */
static char *make_description(const foreign_node *node, bool *drops)
{
    enum { BEGIN = sizeof TIFF_SHAPE - 1, AXES = 9 /* bytes of "axes": " */ };
    char shape[CATERVA_MAX_DIMS * 22 + 16] = "", letters[CATERVA_MAX_DIMS + 1];
    int64_t sizes[TIFF_MAX_SIZES];
    size_t size = 0, used = 0;
    const char *given = values_text(values_of(node, "description"), &size);
    if (!given) size = 0;
    char *text = cli_alloc(size + BEGIN + sizeof shape + sizeof letters + 16);
    const char *rest = text;
    *drops = given && memchr(given, '\0', size);
    if (!text) return NULL;
    memcpy(text, given ? given : "", size);
    text[size] = '\0';
    bool is_shape = strncmp(text, TIFF_SHAPE, BEGIN) == 0;
    if (given && !is_shape) return text;
    int n = tiff_scan_shape(&rest, sizes);
    for (int d = 0; d < node->ndim; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? ", " : "",
                                 (long long)node->shape[d]);
    if (n == node->ndim + 1 && sizes[n - 1] == 1) { /* tifffile's axis of pages without samples */
        used += (size_t)snprintf(shape + used, sizeof shape - used, ", 1");
        n--;
    }
    bool fits = is_shape && n == node->ndim && *rest == ']';
    bool has_letters = letters_of(node, letters);
    char *axes = fits ? strstr(text + (rest - text), "\"axes\": \"") : NULL;
    if (axes && strcspn(axes + AXES, "\"") < strlen(letters)) axes = NULL;
    for (int d = 0; axes && letters[d]; d++)
        if (letters[d] != 'Q') axes[AXES + d] = letters[d];
    *drops = *drops || !has_letters ||
             (fits ? *letters && !axes : is_shape && strcmp(rest, "]}") != 0);
    if (fits)
        memmove(text + BEGIN + used, rest, strlen(rest) + 1);
    else if (has_letters && *letters)
        sprintf(text + BEGIN + used, "], \"axes\": \"%s\"}", letters);
    else
        strcpy(text + BEGIN + used, "]}");
    memcpy(text, TIFF_SHAPE, BEGIN);
    memcpy(text + BEGIN, shape, used);
    return text;
}

static void set_colour_map(TIFF *tif, const foreign_node *node, const tiff_layout *l)
{
    double *numbers = cli_alloc(3 * 65536 * sizeof *numbers);
    uint16_t *map = cli_alloc(3 * 65536 * sizeof *map);
    size_t n = (size_t)1 << l->bits;
    if (numbers && map &&
        values_numbers(values_of(node, "palette"), numbers, 3 * n) == 3 * n) {
        for (size_t i = 0; i < 3 * n; i++) map[i] = (uint16_t)numbers[i];
        TIFFSetField(tif, TIFFTAG_COLORMAP, map, map + n, map + 2 * n);
    }
    free(numbers);
    free(map);
}

/* Sets what the map says about the meaning of samples, as far as the layout allows it. */
static void set_meaning(TIFF *tif, const tiff_layout *l, const foreign_node *node)
{
    uint16_t extra[65536 / 64];
    double kinds[8];
    packed_value map = values_of(node, "tiff");
    uint16_t photometric = l->photometric;
    int colours = photometric == PHOTOMETRIC_RGB         ? 3
                  : photometric == PHOTOMETRIC_SEPARATED ? 4
                                                         : 1;
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, photometric);
    int n = l->samples - colours;
    if (n <= 0 || n > (int)(sizeof extra / sizeof extra[0])) return;
    size_t known = values_numbers(values_find(map, "ExtraSamples"), kinds, 8);
    for (int i = 0; i < n; i++)
        extra[i] = known == (size_t)n                         ? (uint16_t)kinds[i]
                   : photometric == PHOTOMETRIC_RGB && n == 1 ? EXTRASAMPLE_UNASSALPHA
                                                              : EXTRASAMPLE_UNSPECIFIED;
    TIFFSetField(tif, TIFFTAG_EXTRASAMPLES, n, extra);
}

static cli_exit begin_page(foreign_writer *self)
{
    tiff_writer *w = self->own;
    const tiff_layout *l = &w->layout;
    TIFF *tif = w->tif;
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, l->width);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, l->height);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, l->samples);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, l->bits);
    TIFFSetField(tif, TIFFTAG_SAMPLEFORMAT, l->format);
    TIFFSetField(tif, TIFFTAG_PLANARCONFIG,
                 l->planes ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
    TIFFSetField(tif, TIFFTAG_TILEWIDTH, l->chunk_width);
    TIFFSetField(tif, TIFFTAG_TILELENGTH, l->chunk_height);
    TIFFSetField(tif, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    TIFFSetField(tif, TIFFTAG_ZIPQUALITY, LEVEL);
    bool differs = l->format == SAMPLEFORMAT_UINT || l->format == SAMPLEFORMAT_INT;
    if (differs && l->bits <= 32) TIFFSetField(tif, TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    set_meaning(tif, l, w->first);
    if (l->photometric == PHOTOMETRIC_PALETTE) set_colour_map(tif, w->first, l);
    w->has_page = true;
    if (w->page > 0) return CLI_OK;
    bool drops;
    char *description = make_description(w->first, &drops);
    if (!description) return CLI_IO;
    tiff_set_text(tif, TIFFTAG_IMAGEDESCRIPTION, description, strlen(description));
    free(description);
    CLI_TRY(tiff_tags_from_map(self, tif, w->first));
    set_resolution(tif, w->first, l);
    return CLI_OK;
}

/* Turns numbers of the other byte order around. */
static void swap_band(tiff_writer *w)
{
    int bits = w->layout.bits >> (w->layout.format == SAMPLEFORMAT_COMPLEXIEEEFP);
    tmsize_t n = (tmsize_t)w->used / (bits / 8);
    void *band = w->band;
    if (bits == 16) TIFFSwabArrayOfShort(band, n);
    if (bits == 32) TIFFSwabArrayOfLong(band, n);
    if (bits == 64) TIFFSwabArrayOfLong8(band, n);
}

/* Writes the tiles of a band. */
static cli_exit write_band(foreign_writer *self)
{
    tiff_writer *w = self->own;
    const tiff_layout *l = &w->layout;
    size_t pixel = (size_t)(l->bits / 8) * samples_of(l), rows = w->used / (pixel * l->width);
    if (!w->has_page) CLI_TRY(begin_page(self));
    if (w->is_swapped) swap_band(w);
    for (uint32_t x = 0; x < l->width; x += l->chunk_width) {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        size_t size = (size_t)l->chunk_width * l->chunk_height * pixel;
        size_t n = l->width - x < l->chunk_width ? l->width - x : l->chunk_width;
        memset(w->tile, 0, size);
        for (size_t y = 0; y < rows; y++)
            memcpy(w->tile + y * l->chunk_width * pixel, w->band + (y * l->width + x) * pixel,
                   n * pixel);
        uint32_t tile = TIFFComputeTile(w->tif, x, (uint32_t)w->row, 0, (uint16_t)w->plane);
        if (TIFFWriteEncodedTile(w->tif, tile, w->tile, (tmsize_t)size) < 0) return failed(w);
    }
    w->used = 0;
    w->row += (int64_t)rows;
    return CLI_OK;
}

/* Moves to the next plane or page behind the last row. */
static cli_exit end_rows(tiff_writer *w)
{
    w->row = 0;
    if (w->layout.planes && ++w->plane < w->layout.samples) return CLI_OK;
    w->plane = 0;
    w->page++;
    w->has_page = false;
    return TIFFWriteDirectory(w->tif) ? CLI_OK : failed(w);
}

static cli_exit write_box(foreign_writer *self, const foreign_node *array,
                          const int64_t *start, const int64_t *stop, const void *src)
{
    tiff_writer *w = self->own;
    const tiff_layout *l = &w->layout;
    const uint8_t *at = src;
    int64_t size = array->item_size;
    size_t row = (size_t)(l->bits / 8) * samples_of(l) * l->width;
    for (int d = 0; d < array->ndim; d++) size *= stop[d] - start[d];
    while (size > 0) {
        int64_t rows = l->height - w->row < (int64_t)l->chunk_height
                           ? l->height - w->row
                           : (int64_t)l->chunk_height;
        size_t left = (size_t)rows * row - w->used,
               n = (size_t)size < left ? (size_t)size : left;
        memcpy(w->band + w->used, at, n);
        w->used += n;
        at += n;
        size -= (int64_t)n;
        if (n < left) break;
        CLI_TRY(write_band(self));
        if (w->row == l->height) CLI_TRY(end_rows(w));
    }
    return CLI_OK;
}

/* Finds which axis of the array are the samples: 0 the one before y and x, 1 the last one, -1 none. */
static int samples_axis(const foreign_node *node)
{
    int n = node->ndim;
    char **dims = node->dims;
    if (dims && n >= 3 && dims[n - 1] && strcmp(dims[n - 1], "sample") == 0) return 1;
    if (dims && n >= 3 && dims[n - 3] && strcmp(dims[n - 3], "sample") == 0) return 0;
    bool colours = node->shape[n - 1] == 3 || node->shape[n - 1] == 4;
    bool is_small = strcmp(node->dtype, "|u1") == 0 || strcmp(node->dtype + 1, "u2") == 0;
    return !dims && n >= 3 && colours && is_small ? 1 : -1;
}

static bool set_type(tiff_layout *l, const char *dtype)
{
    static const char kinds[] = "uifc?";
    static const uint16_t formats[] = {SAMPLEFORMAT_UINT, SAMPLEFORMAT_INT,
                                       SAMPLEFORMAT_IEEEFP, SAMPLEFORMAT_COMPLEXIEEEFP};
    if (strcmp(dtype, "|b1") == 0) dtype = "|u1"; /* 0 and 1 */
    const char *kind = strchr(kinds, dtype[1]);
    char *end;
    long size = strtol(dtype + 2, &end, 10);
    if (!kind || !dtype[1] || *kind == '?' || *end || size < 1 || size > 16) return false;
    l->format = formats[kind - kinds];
    l->bits = (uint16_t)(8 * size);
    return true;
}

/* Chooses the photometric interpretation: that of the map, if it fits the samples. */
static uint16_t photometric_of(const foreign_node *node, const tiff_layout *l)
{
    double was = -1;
    values_numbers(values_find(values_of(node, "tiff"), "PhotometricInterpretation"), &was,
                   1);
    bool has_palette = values_of(node, "palette").bytes && l->samples == 1 && l->bits <= 16 &&
                       l->format == SAMPLEFORMAT_UINT;
    double bits = l->bits;
    values_numbers(values_find(values_of(node, "tiff"), "BitsPerSample"), &bits, 1);
    if (was == PHOTOMETRIC_PALETTE && has_palette && (int)bits == l->bits)
        return PHOTOMETRIC_PALETTE;
    if (was == PHOTOMETRIC_SEPARATED && l->samples >= 4) return PHOTOMETRIC_SEPARATED;
    if (was == PHOTOMETRIC_MINISWHITE) return PHOTOMETRIC_MINISWHITE;
    if (was == PHOTOMETRIC_MINISBLACK || l->samples < 3) return PHOTOMETRIC_MINISBLACK;
    bool is_colour = was == PHOTOMETRIC_RGB || was == PHOTOMETRIC_YCBCR || l->samples <= 4;
    return is_colour ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
}

/* Sets the layout of the pages of an array. */
static cli_exit set_layout(foreign_writer *self, const foreign_node *node, tiff_layout *l)
{
    int axis = samples_axis(node), y = node->ndim - 2 - (axis == 1);
    memset(l, 0, sizeof *l);
    if (node->ndim < 2)
        return cli_fail(CLI_UNSUPPORTED, "%s: a picture has at least 2 axes, but %s has %d",
                        self->path, node->key, node->ndim);
    if (!set_type(l, node->dtype))
        return cli_fail(CLI_UNSUPPORTED, "%s: TIFF has no type for items of the dtype %s",
                        self->path, node->dtype);
    int64_t samples = axis < 0 ? 1 : node->shape[axis == 1 ? node->ndim - 1 : node->ndim - 3];
    double n_pages = 1;
    for (int d = 0; d < y - (axis == 0); d++) n_pages *= (double)node->shape[d];
    for (int d = 0; d < node->ndim; d++)
        if (node->shape[d] < 1)
            return cli_fail(CLI_UNSUPPORTED, "%s: a picture has pixels, but %s has none",
                            self->path, node->key);
    if (node->shape[y] > INT32_MAX || node->shape[y + 1] > INT32_MAX || samples > 1000 ||
        n_pages > MAX_PAGES)
        return cli_fail(CLI_UNSUPPORTED, "%s: %s is too large for pages of a TIFF file",
                        self->path, node->key);
    l->height = (uint32_t)node->shape[y];
    l->width = (uint32_t)node->shape[y + 1];
    l->samples = (uint16_t)samples;
    l->planes = axis == 0 && samples > 1;
    l->photometric = photometric_of(node, l);
    l->chunk_width = l->width < 256 ? (l->width + 15) / 16 * 16 : 256;
    l->chunk_height = l->height < 256 ? (l->height + 15) / 16 * 16 : 256;
    while (l->chunk_height > 16 &&
           (uint64_t)l->chunk_height * l->width * samples_of(l) * (l->bits / 8) > MAX_BAND)
        l->chunk_height -= 16;
    return CLI_OK;
}

static cli_exit lose(foreign_writer *self, const foreign_node *node)
{
    static const char known[] = " description tiff palette spacing axis_units ";
    if (!node->is_group && strcmp(node->dtype, "|b1") == 0)
        CLI_TRY(
            foreign_lose_writing(self, "%s: the dtype bool, which becomes uint8", node->key));
    bool drops = false;
    if (!node->is_group) free(make_description(node, &drops));
    if (drops)
        CLI_TRY(foreign_lose_writing(self, "%s: names of axes, or what its description says of others",
                                     node->key));
    for (size_t i = 0; i < node->n_attributes; i++) {
        char name[72];
        snprintf(name, sizeof name, " %.64s ", node->attributes[i].name);
        if (node->is_group || !strstr(known, name))
            CLI_TRY(foreign_lose_writing(self, "%s: the attribute %s", node->key,
                                         node->attributes[i].name));
    }
    return CLI_OK;
}

/* Opens the file with the first array, because its size decides between TIFF and BigTIFF. */
static cli_exit open_output(foreign_writer *self, const foreign_node *node)
{
    tiff_writer *w = self->own;
    double size = (double)node->item_size;
    size_t length = strlen(self->path);
    for (int d = 0; d < node->ndim; d++) size *= (double)node->shape[d];
    const char *end = length > 4 ? self->path + length - 4 : "";
    bool is_big = size > (double)(1 << 30) || strcasecmp(end, ".btf") == 0 ||
                  strcasecmp(end, ".tf8") == 0;
    TIFFOpenOptions *options = tiff_options(&w->message);
    if (!options) return CLI_IO;
    int fd = dup(w->out.fd);
    w->tif = fd < 0 ? NULL : TIFFFdOpenExt(fd, w->out.path, is_big ? "w8" : "w", options);
    TIFFOpenOptionsFree(options);
    if (!w->tif && fd >= 0) close(fd);
    return w->tif ? CLI_OK : failed(w);
}

/* Copies the attributes, which the first page needs when the node is no more. */
static cli_exit keep_node(tiff_writer *w, const foreign_node *node)
{
    foreign_node_free(w->first);
    w->first = foreign_node_make(node->key, false);
    if (!w->first) return CLI_IO;
    w->first->ndim = node->ndim;
    memcpy(w->first->shape, node->shape, sizeof node->shape);
    for (int d = 0; node->dims && d < node->ndim; d++)
        if (node->dims[d]) CLI_TRY(foreign_set_dim(w->first, d, node->dims[d]));
    for (size_t i = 0; i < node->n_attributes; i++) {
        const foreign_attribute *a = &node->attributes[i];
        CLI_TRY(foreign_copy_packed(w->first, a->name, a->value, a->size));
    }
    return CLI_OK;
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    tiff_writer *w = self->own;
    CLI_TRY(lose(self, node));
    if (node->is_group) return CLI_OK;
    tiff_layout *l = &w->layout;
    CLI_TRY(set_layout(self, node, l));
    if (!w->tif) CLI_TRY(open_output(self, node));
    size_t pixel = (size_t)(l->bits / 8) * samples_of(l);
    free(w->band);
    free(w->tile);
    w->band = cli_alloc(l->chunk_height * pixel * l->width);
    w->tile = cli_alloc(l->chunk_height * pixel * l->chunk_width);
    if (!w->band || !w->tile) return CLI_IO;
    w->page = w->plane = w->row = 0;
    w->used = 0;
    w->is_swapped = *node->dtype == (*ORDER == '<' ? '>' : '<');
    int y = node->ndim - 2 - (l->samples > 1 && !l->planes);
    for (int d = 0; d < node->ndim; d++)
        node->chunk_shape[d] = d < y ? 1 : d == y ? l->chunk_height : node->shape[d];
    return keep_node(w, node);
}

static cli_exit finish(foreign_writer *self)
{
    tiff_writer *w = self->own;
    cli_exit code = CLI_OK;
    if (!w->tif)
        code = cli_fail(CLI_UNSUPPORTED, "%s: a TIFF file needs an array", self->path);
    *w->message.text = '\0';
    if (code == CLI_OK) {
        TIFFClose(w->tif);
        w->tif = NULL;
        if (*w->message.text) code = failed(w);
    }
    if (code == CLI_OK) code = output_finish(&w->out);
    release(w);
    return code;
}

cli_exit tiff_create(foreign_writer *writer, bool force)
{
    tiff_writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (tiff_writer){.out.fd = -1};
    cli_exit code = output_open(&w->out, writer->path, force);
    if (code == CLI_OK && !w->out.seekable)
        code = cli_fail(CLI_UNSUPPORTED, "%s: a TIFF file cannot be written to a pipe",
                        writer->path);
    if (code != CLI_OK) {
        release(w);
        return code;
    }
    writer->own = w;
    writer->in_order = true;
    writer->add = add;
    writer->write = write_box;
    writer->finish = finish;
    writer->abandon = abandon;
    return CLI_OK;
}
