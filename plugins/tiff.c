/* Plug-in: TIFF and BigTIFF, by libtiff 4.5. Pages that have the same shape, type and layout are one
 * array, /data, or one of the arrays /page<N>, where N is its first page. Its axes are those of
 * the pages, then y, x and sample; in planes apart, sample, y and x. The axis `page` has the
 * axes that tifffile's, ImageJ's or OME's description gives it. Strips and tiles are the chunks.
 * Attributes, of the first page:
 *
 *   description           the tag ImageDescription
 *   tiff                  other tags, by libtiff's names, or by their numbers
 *   palette               uint16, three rows of red, green and blue
 *   spacing, axis_units   from the resolution, if its unit is known
 *
 * Writes tiles that deflate packs; BigTIFF for .btf and .tf8, and where an array has more than 1 GiB. */
#include "foreign/foreign.h"
#include "foreign/values.h"
#include "formats/strided.h"
#include "terminal/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <tiffio.h>
#include <unistd.h>

#define LEVEL 4 /* of deflate; nearly as dense as 6, and much faster */
#define MAX_ARRAYS 10000
#define MAX_PREFIX (CATERVA_MAX_DIMS - 3)
/* A file that claims more is not read: no page of real pictures is packed as well as that. */
#define FREE_SIZE ((double)(64 << 20))
#define MAX_RATIO 1e5
#define MAX_PAGES 1000000
#define MAX_BAND (32 << 20)
#define SINGLE_ALLOCATION ((tmsize_t)1 << 30)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER "<"
#else
#define ORDER ">"
#endif

static uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* ---- Messages of libtiff ---------------------------------------------------------------- */

typedef struct message {
    char text[256]; /* the first one since it was cleared */
} message;

static int keep_message(TIFF *tif, void *own, const char *module, const char *fmt,
                        va_list args)
{
    message *m = own;
    (void)tif, (void)module;
    if (!*m->text) vsnprintf(m->text, sizeof m->text, fmt, args);
    return 1;
}

static int ignore_message(TIFF *tif, void *own, const char *module, const char *fmt,
                          va_list args)
{
    (void)tif, (void)own, (void)module, (void)fmt, (void)args;
    return 1;
}

static cli_exit damaged(const char *path, const message *m)
{
    return cli_fail(CLI_CORRUPT, "%s: %s", path,
                    *m->text ? m->text : "it is not a valid TIFF file");
}

static TIFFOpenOptions *make_options(message *m)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) {
        cli_fail(CLI_IO, "out of memory");
        return NULL;
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, SINGLE_ALLOCATION);
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, m);
    TIFFOpenOptionsSetWarningHandlerExtR(options, ignore_message, NULL);
    return options;
}

/* ---- Layouts ---------------------------------------------------------------------------- */

/* What pages of one array have in common. */
typedef struct layout {
    uint32_t width, height, chunk_width, chunk_height; /* chunks are strips or tiles */
    uint16_t bits, samples, format, photometric, compression;
    bool planes; /* samples are in planes apart */
    bool is_tiled;
} layout;

/* Returns why pages of the layout cannot be read, or NULL. */
static const char *fault_of(TIFF *tif, const layout *l)
{
    uint16_t h = 1, v = 1;
    uint32_t depth = 1;
    TIFFGetFieldDefaulted(tif, TIFFTAG_IMAGEDEPTH, &depth);
    if (l->photometric == PHOTOMETRIC_YCBCR && l->compression != COMPRESSION_JPEG)
        TIFFGetFieldDefaulted(tif, TIFFTAG_YCBCRSUBSAMPLING, &h, &v);
    if (!TIFFIsCODECConfigured(l->compression) || l->compression == COMPRESSION_OJPEG)
        return "is packed by a method that libtiff lacks here; Python's tifffile may read it";
    if (h != 1 || v != 1) return "has subsampled colours";
    if (depth != 1) return "has several planes in one page";
    if (l->photometric == PHOTOMETRIC_LOGL || l->photometric == PHOTOMETRIC_LOGLUV)
        return "has logarithmic colours";
    if (l->width == 0 || l->height == 0 || l->chunk_width == 0 || l->chunk_height == 0)
        return "has no pixels";
    return NULL;
}

/* Sets the dtype of items; false if NumPy has no such type. */
static bool dtype_of(const layout *l, char dtype[8])
{
    int bits = l->bits;
    char kind = 'u';
    bool whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
    if (l->format == SAMPLEFORMAT_INT) kind = 'i';
    if (l->format == SAMPLEFORMAT_IEEEFP) kind = 'f';
    if (l->format == SAMPLEFORMAT_COMPLEXIEEEFP) kind = 'c';
    if (l->format == SAMPLEFORMAT_COMPLEXINT || bits < 1) return false;
    if (kind == 'i' && !whole) return false;
    if (kind == 'f' && (!whole || bits == 8)) return false;
    if (kind == 'c' && bits != 64 && bits != 128) return false;
    if (kind == 'u' && !whole) {
        if (bits > 32) return false;
        bits = bits < 8 ? 8 : bits < 16 ? 16 : 32;
    }
    snprintf(dtype, 8, "%s%c%d", bits == 8 ? "|" : ORDER, kind, bits / 8);
    return true;
}

static bool is_packed(const layout *l)
{
    return l->bits < 8 || (l->bits & (l->bits - 1)) != 0;
}

static uint64_t samples_of(const layout *l) { return l->planes ? 1 : l->samples; }

/* Bytes of a row of a decoded chunk. */
static uint64_t row_size(const layout *l)
{
    return ceil_div(l->chunk_width * samples_of(l) * l->bits, 8);
}

/* Colours of JPEG files come as RGB. */
static void set_colours(TIFF *tif, const layout *l)
{
    if (l->compression == COMPRESSION_JPEG && l->photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
}

/* Describes the page that is current. */
static void describe(TIFF *tif, layout *l)
{
    uint16_t planar = PLANARCONFIG_CONTIG;
    memset(l, 0, sizeof *l);
    TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &l->width);
    TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &l->height);
    TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &l->bits);
    TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &l->samples);
    TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &l->format);
    TIFFGetFieldDefaulted(tif, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tif, TIFFTAG_PHOTOMETRIC, &l->photometric);
    TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &l->compression);
    l->planes = planar == PLANARCONFIG_SEPARATE && l->samples > 1;
    l->is_tiled = TIFFIsTiled(tif);
    set_colours(tif, l);
    if (l->is_tiled) {
        TIFFGetField(tif, TIFFTAG_TILEWIDTH, &l->chunk_width);
        TIFFGetField(tif, TIFFTAG_TILELENGTH, &l->chunk_height);
    } else {
        l->chunk_width = l->width;
        TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &l->chunk_height);
        if (l->chunk_height > l->height) l->chunk_height = l->height;
    }
}

/* ---- Series of pages -------------------------------------------------------------------- */

typedef struct series {
    layout layout;
    const char *fault;  /* why it is not read, or NULL */
    uint64_t *pages;    /* positions of their directories */
    size_t n, first;    /* first: number of the first page */
    size_t n_described; /* pages with a description of their own */
    int n_prefix;       /* axes before those of a page */
} series;

typedef struct tiff_file {
    TIFF *tif;
    message message;
    series *series;
    size_t n;
    uint8_t *chunk, *items; /* the chunk that was read last, as stored and as items */
    size_t chunk_size, items_size;
    const series *chunk_series;
    uint64_t chunk_page;
    uint32_t chunk_index;
} tiff_file;

static void close_file(foreign_file *self)
{
    tiff_file *own = self->own;
    for (size_t i = 0; i < own->n; i++) free(own->series[i].pages);
    free(own->series);
    free(own->chunk);
    free(own->items);
    if (own->tif) TIFFClose(own->tif);
    free(own);
}

/* Makes room for one more in an array of `n`, whose capacity is a power of two. */
static void *grow(void *entries, size_t n, size_t size)
{
    if (n & (n - 1)) return entries;
    void *larger = realloc(entries, (n ? 2 * n : 1) * size);
    if (!larger) cli_fail(CLI_IO, "out of memory");
    return larger;
}

static series *find_series(tiff_file *own, const layout *l)
{
    for (size_t i = own->n; i > 0; i--)
        if (memcmp(&own->series[i - 1].layout, l, sizeof *l) == 0) return &own->series[i - 1];
    return NULL;
}

static cli_exit add_page(foreign_file *file, size_t number)
{
    tiff_file *own = file->own;
    layout l;
    const char *text;
    char dtype[8];
    describe(own->tif, &l);
    series *s = find_series(own, &l);
    if (!s) {
        if (own->n == MAX_ARRAYS)
            return cli_fail(CLI_UNSUPPORTED, "%s has pages of more than %d shapes and types",
                            file->path, MAX_ARRAYS);
        void *larger = grow(own->series, own->n, sizeof *own->series);
        if (!larger) return CLI_IO;
        own->series = larger;
        s = &own->series[own->n++];
        *s = (series){.layout = l, .first = number, .fault = fault_of(own->tif, &l)};
        if (!s->fault && !dtype_of(&l, dtype))
            s->fault = "has items of a type that NumPy lacks";
        tmsize_t size = l.is_tiled ? TIFFTileSize(own->tif) : TIFFStripSize(own->tif);
        if (!s->fault && (size <= 0 || (uint64_t)size != row_size(&l) * l.chunk_height))
            s->fault = "has strips or tiles of an unexpected size";
    }
    void *larger = grow(s->pages, s->n, sizeof *s->pages);
    if (!larger) return CLI_IO;
    s->pages = larger;
    s->pages[s->n++] = TIFFCurrentDirOffset(own->tif);
    s->n_described +=
        s->n > 1 && TIFFGetField(own->tif, TIFFTAG_IMAGEDESCRIPTION, &text) == 1;
    return CLI_OK;
}

static cli_exit add_pages(foreign_file *file)
{
    tiff_file *own = file->own;
    size_t number = 0;
    do {
        if (cli_interrupted()) return CLI_INTERRUPTED;
        CLI_TRY(add_page(file, number++));
        *own->message.text = '\0';
    } while (TIFFReadDirectory(own->tif));
    if (!*own->message.text) return CLI_OK;
    return foreign_lose(file, "/: the pages after the first %zu, because %s", number,
                        own->message.text);
}

/* ---- Axes from descriptions ------------------------------------------------------------- */

typedef struct prefix {
    int n;
    int64_t size[MAX_PREFIX];
    const char *name[MAX_PREFIX]; /* NULL: no name */
} prefix;

static bool add_axis(prefix *p, const char *name, int64_t size)
{
    if (p->n == MAX_PREFIX || size < 1) return false;
    p->name[p->n] = name;
    p->size[p->n++] = size;
    return true;
}

static bool holds(const prefix *p, size_t n_pages)
{
    double product = 1;
    for (int i = 0; i < p->n; i++) product *= (double)p->size[i];
    return p->n > 0 && product == (double)n_pages;
}

/* tifffile's description, {"shape": [2, 3, 480, 640]}: the last axes are those of a page. */
static bool shape_of_tifffile(const char *text, const int64_t *page, int n_page, prefix *p)
{
    static const char begin[] = "{\"shape\": [";
    int64_t sizes[CATERVA_MAX_DIMS + 1];
    int n = 0;
    if (strncmp(text, begin, sizeof begin - 1) != 0) return false;
    text += sizeof begin - 1;
    for (char *end; n <= CATERVA_MAX_DIMS; text = end + strspn(end, ", ")) {
        sizes[n] = strtoll(text, &end, 10);
        if (end == text) break;
        n++;
    }
    if (n > n_page && sizes[n - 1] == 1 && page[n_page - 1] != 1)
        n--; /* has no place in a page */
    for (int i = 1; i <= n_page; i++)
        if (n < n_page || sizes[n - i] != page[n_page - i]) return false;
    for (int i = 0; i < n - n_page; i++)
        if (!add_axis(p, NULL, sizes[i])) return false;
    return true;
}

/* Returns the number behind `name`; 1 if there is none. */
static int64_t number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : 1;
}

static bool axes_of_imagej(const char *text, prefix *p)
{
    static const char *const names[] = {
        "\nframes=", "t", "\nslices=", "z", "\nchannels=", "c"};
    if (strncmp(text, "ImageJ=", 7) != 0) return false;
    for (int i = 0; i < 6; i += 2) {
        int64_t size = number_after(text, names[i]);
        if (size != 1 && !add_axis(p, names[i + 1], size)) return false;
    }
    return true;
}

/* OME: a single image whose pages are in the order of its dimensions. */
static bool axes_of_ome(const char *text, int64_t samples, prefix *p)
{
    const char *pixels = strstr(text, "<Pixels "),
               *order = strstr(text, " DimensionOrder=\"XY");
    const char *data = strstr(text, "<TiffData");
    if (!strstr(text, "<OME") || !pixels || !order || strstr(pixels + 1, "<Pixels "))
        return false;
    if (data && strstr(data + 1, "<TiffData")) return false;
    order += strlen(" DimensionOrder=\"XY");
    for (int i = 2; i >= 0; i--) {
        char name[] = " SizeZ=\"";
        name[5] = order[i];
        if (!strchr("ZCT", order[i]) || !order[i]) return false;
        int64_t size = number_after(pixels, name);
        if (order[i] == 'C' && samples > 1) size /= samples;
        if (size != 1 && !add_axis(p,
                                   order[i] == 'Z'   ? "z"
                                   : order[i] == 'C' ? "c"
                                                     : "t",
                                   size))
            return false;
    }
    return true;
}

static void find_prefix(const char *description, const series *s, const int64_t *page,
                        int n_page, prefix *p)
{
    int64_t samples = s->layout.samples;
    *p = (prefix){0};
    if (description && shape_of_tifffile(description, page, n_page, p) && holds(p, s->n))
        return;
    *p = (prefix){0};
    if (description && axes_of_imagej(description, p) && holds(p, s->n)) return;
    *p = (prefix){0};
    if (description && axes_of_ome(description, samples, p) && holds(p, s->n)) return;
    *p = (prefix){0};
    if (s->n > 1) add_axis(p, "page", (int64_t)s->n);
}

/* ---- Tags ------------------------------------------------------------------------------- */

/* Those of libtiff's own tags that are attributes; a writer sets them again. */
static const uint16_t kept_tags[] = {
    TIFFTAG_SUBFILETYPE, TIFFTAG_DOCUMENTNAME, TIFFTAG_MAKE,           TIFFTAG_MODEL,
    TIFFTAG_ORIENTATION, TIFFTAG_XRESOLUTION,  TIFFTAG_YRESOLUTION,    TIFFTAG_PAGENAME,
    TIFFTAG_XPOSITION,   TIFFTAG_YPOSITION,    TIFFTAG_RESOLUTIONUNIT, TIFFTAG_SOFTWARE,
    TIFFTAG_DATETIME,    TIFFTAG_ARTIST,       TIFFTAG_HOSTCOMPUTER,   TIFFTAG_COPYRIGHT,
    TIFFTAG_PHOTOMETRIC, TIFFTAG_EXTRASAMPLES, TIFFTAG_BITSPERSAMPLE,  TIFFTAG_ICCPROFILE,
    TIFFTAG_XMLPACKET,   TIFFTAG_PHOTOSHOP,    TIFFTAG_TARGETPRINTER,  TIFFTAG_THRESHHOLDING,
};
#define N_KEPT (sizeof kept_tags / sizeof kept_tags[0])

/* Those that have attributes of their own, or that say how pages are stored. */
static const uint16_t other_tags[] = {
    TIFFTAG_IMAGEDESCRIPTION, TIFFTAG_JPEGTABLES,          TIFFTAG_EXIFIFD,
    TIFFTAG_GPSIFD,           TIFFTAG_YCBCRCOEFFICIENTS,   TIFFTAG_YCBCRSUBSAMPLING,
    TIFFTAG_YCBCRPOSITIONING, TIFFTAG_REFERENCEBLACKWHITE, TIFFTAG_TRANSFERFUNCTION,
};
#define N_OTHER (sizeof other_tags / sizeof other_tags[0])

/* Types of the values of a tag, and how arrays of them are called. */
static const struct tag_type {
    TIFFDataType type;
    int size;
    const char *dtype;
} tag_types[] = {
    {TIFF_SBYTE, 1, "|i1"},       {TIFF_SHORT, 2, ORDER "u2"}, {TIFF_SSHORT, 2, ORDER "i2"},
    {TIFF_LONG, 4, ORDER "u4"},   {TIFF_SLONG, 4, ORDER "i4"}, {TIFF_FLOAT, 4, ORDER "f4"},
    {TIFF_DOUBLE, 8, ORDER "f8"}, {TIFF_LONG8, 8, ORDER "u8"}, {TIFF_SLONG8, 8, ORDER "i8"},
};
#define N_TAG_TYPES (sizeof tag_types / sizeof tag_types[0])

static const char *dtype_of_tag(TIFFDataType type)
{
    for (size_t i = 0; i < N_TAG_TYPES; i++)
        if (tag_types[i].type == type) return tag_types[i].dtype;
    return NULL;
}

/* Adds the value of a tag with a count. False if its type has no place. */
static bool add_counted(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    uint16_t small = 0;
    uint32_t n = 0;
    const void *bytes = NULL;
    TIFFDataType type = TIFFFieldDataType(f);
    const char *dtype = dtype_of_tag(type);
    if (TIFFFieldSetGetCountSize(f) == 4) {
        if (!TIFFGetField(tif, TIFFFieldTag(f), &n, &bytes)) return false;
    } else {
        if (!TIFFGetField(tif, TIFFFieldTag(f), &small, &bytes)) return false;
        n = small;
    }
    bool is_text = type == TIFF_ASCII, is_bytes = type == TIFF_BYTE || type == TIFF_UNDEFINED;
    if (!bytes || !(dtype || is_text || is_bytes)) return false;
    values_add_text(list, name, strlen(name));
    if (is_text)
        values_add_text(list, bytes, strnlen(bytes, n));
    else if (is_bytes)
        values_add_bytes(list, bytes, n);
    else
        values_add_array(list, dtype, n, bytes);
    return true;
}

/* Adds a tag with one value. */
static bool add_single(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    uint32_t tag = TIFFFieldTag(f), number = 0;
    uint16_t small = 0;
    float real = 0;
    const char *text = NULL;
    if (TIFFFieldReadCount(f) > 1 && TIFFFieldDataType(f) != TIFF_ASCII) return false;
    switch (TIFFFieldDataType(f)) {
    case TIFF_ASCII:
        if (!TIFFGetField(tif, tag, &text) || !text) return false;
        values_add_text(list, name, strlen(name));
        values_add_text(list, text, strlen(text));
        return true;
    case TIFF_SHORT:
        if (!TIFFGetField(tif, tag, &small)) return false;
        values_add_text(list, name, strlen(name));
        values_add_int(list, small);
        return true;
    case TIFF_LONG:
        if (!TIFFGetField(tif, tag, &number)) return false;
        values_add_text(list, name, strlen(name));
        values_add_int(list, number);
        return true;
    case TIFF_RATIONAL:
        if (TIFFFieldSetGetSize(f) != 4 || !TIFFGetField(tif, tag, &real)) return false;
        values_add_text(list, name, strlen(name));
        values_add_real(list, (double)real);
        return true;
    default: return false;
    }
}

/* Adds a tag with a fixed number of rational values. */
static bool add_rationals(value_list *list, TIFF *tif, const TIFFField *f, const char *name)
{
    const float *numbers = NULL;
    bool fits = TIFFFieldDataType(f) == TIFF_RATIONAL && TIFFFieldReadCount(f) > 1 &&
                TIFFFieldSetGetSize(f) == 4;
    if (!fits || !TIFFGetField(tif, TIFFFieldTag(f), &numbers) || !numbers) return false;
    values_add_text(list, name, strlen(name));
    values_add_array(list, ORDER "f4", (size_t)TIFFFieldReadCount(f), numbers);
    return true;
}

/* Adds the remaining tags, named by their numbers, and reports those whose values have no place. */
static cli_exit add_custom(foreign_file *file, const char *key, value_list *list, int64_t *n,
                           char (*names)[12])
{
    TIFF *tif = ((tiff_file *)file->own)->tif;
    for (int i = 0; i < TIFFGetTagListCount(tif); i++) {
        uint32_t tag = TIFFGetTagListEntry(tif, i);
        const TIFFField *f = TIFFFieldWithTag(tif, tag);
        bool is_kept = !f;
        for (size_t k = 0; k < N_KEPT; k++) is_kept |= kept_tags[k] == tag;
        for (size_t k = 0; k < N_OTHER; k++) is_kept |= other_tags[k] == tag;
        if (is_kept) continue;
        snprintf(names[i], sizeof names[i], "%u", tag);
        bool done = TIFFFieldPassCount(f) ? add_counted(list, tif, f, names[i])
                                          : add_single(list, tif, f, names[i]) ||
                                                add_rationals(list, tif, f, names[i]);
        *n += done;
        if (!done)
            CLI_TRY(foreign_lose(file, "%s: the tag %u, %s", key, tag, TIFFFieldName(f)));
    }
    return CLI_OK;
}

static cli_exit set_tags(foreign_file *file, foreign_node *node)
{
    TIFF *tif = ((tiff_file *)file->own)->tif;
    value_list list = {0};
    int64_t n = 0;
    size_t map = values_begin(&list, CATERVA_VALUE_MAP);
    for (size_t i = 0; i < N_KEPT; i++) {
        const TIFFField *f = TIFFFieldWithTag(tif, kept_tags[i]);
        if (!f) continue;
        bool counted = TIFFFieldPassCount(f);
        n += counted ? add_counted(&list, tif, f, TIFFFieldName(f))
                     : add_single(&list, tif, f, TIFFFieldName(f));
    }
    char(*names)[12] = cli_alloc((size_t)TIFFGetTagListCount(tif) * sizeof *names);
    cli_exit code = names ? add_custom(file, node->key, &list, &n, names) : CLI_IO;
    values_end(&list, map, n);
    if (code == CLI_OK) code = values_set(&list, node, "tiff");
    values_free(&list);
    free(names);
    return code;
}

static cli_exit set_palette(TIFF *tif, foreign_node *node, const layout *l)
{
    uint16_t *colours[3];
    if (l->bits > 16 ||
        !TIFFGetField(tif, TIFFTAG_COLORMAP, &colours[0], &colours[1], &colours[2]))
        return CLI_OK;
    const int64_t shape[] = {3, (int64_t)1 << l->bits};
    size_t row = (size_t)shape[1] * sizeof **colours;
    uint8_t *all = cli_alloc(3 * row);
    if (!all) return CLI_IO;
    for (int i = 0; i < 3; i++) memcpy(all + (size_t)i * row, colours[i], row);
    cli_exit code = foreign_set_numbers(node, "palette", ORDER "u2", 2, shape, all);
    free(all);
    return code;
}

static cli_exit set_spacing(TIFF *tif, foreign_node *node, const layout *l)
{
    uint16_t unit = RESUNIT_NONE;
    float resolution[2] = {0, 0};
    double spacing[CATERVA_MAX_DIMS];
    const char *units[CATERVA_MAX_DIMS];
    const int64_t n = node->ndim;
    TIFFGetFieldDefaulted(tif, TIFFTAG_RESOLUTIONUNIT, &unit);
    if (unit != RESUNIT_INCH && unit != RESUNIT_CENTIMETER) return CLI_OK;
    TIFFGetField(tif, TIFFTAG_YRESOLUTION, &resolution[0]);
    TIFFGetField(tif, TIFFTAG_XRESOLUTION, &resolution[1]);
    if (!(resolution[0] > 0 && resolution[1] > 0)) return CLI_OK;
    int y = node->ndim - 2 - (l->samples > 1 && !l->planes);
    for (int d = 0; d < node->ndim; d++) {
        bool is_pixel = d == y || d == y + 1;
        spacing[d] = is_pixel ? 1 / (double)resolution[d - y] : (double)NAN;
        units[d] = !is_pixel ? "" : unit == RESUNIT_INCH ? "inch" : "cm";
    }
    CLI_TRY(foreign_set_numbers(node, "spacing", "float64", 1, &n, spacing));
    return foreign_set_texts(node, "axis_units", units, (size_t)n);
}

/* ---- Reading ---------------------------------------------------------------------------- */

/* Converts one row of samples with other sizes than those of bytes: bits follow each other, the
 * highest first; 24 bits are three bytes in the order of the machine. */
static void unpack_row(const uint8_t *src, int bits, uint64_t n, uint8_t *dst, int item_size)
{
    uint64_t waiting = 0;
    int n_waiting = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t value;
        if (bits == 24) {
            bool little = *ORDER == '<';
            value = (uint32_t)src[little ? 2 : 0] << 16 | (uint32_t)src[1] << 8 |
                    src[little ? 0 : 2];
            src += 3;
        } else {
            for (; n_waiting < bits; n_waiting += 8) waiting = waiting << 8 | *src++;
            n_waiting -= bits;
            value = (uint32_t)(waiting >> n_waiting & ((UINT64_C(1) << bits) - 1));
        }
        uint16_t half = (uint16_t)value;
        uint8_t byte = (uint8_t)value;
        const void *from = item_size == 1   ? (void *)&byte
                           : item_size == 2 ? (void *)&half
                                            : &value;
        memcpy(dst, from, (size_t)item_size);
        dst += item_size;
    }
}

static cli_exit make_buffers(tiff_file *own, const series *s, int64_t item_size)
{
    const layout *l = &s->layout;
    size_t size = row_size(l) * l->chunk_height;
    size_t items = is_packed(l)
                       ? (size_t)item_size * l->chunk_width * samples_of(l) * l->chunk_height
                       : 0;
    if (size > own->chunk_size) {
        free(own->chunk);
        own->chunk_size = 0;
        own->chunk = cli_alloc(size);
        if (!own->chunk) return CLI_IO;
        own->chunk_size = size;
    }
    if (items > own->items_size) {
        free(own->items);
        own->items_size = 0;
        own->items = cli_alloc(items);
        if (!own->items) return CLI_IO;
        own->items_size = items;
    }
    return CLI_OK;
}

/* Makes a page current. */
static cli_exit seek(foreign_file *self, const series *s, uint64_t page)
{
    tiff_file *own = self->own;
    *own->message.text = '\0';
    if (TIFFCurrentDirOffset(own->tif) != page && !TIFFSetSubDirectory(own->tif, page))
        return damaged(self->path, &own->message);
    set_colours(own->tif, &s->layout);
    return CLI_OK;
}

/* Decodes a chunk, unless it is the last one that was decoded. Chunks that are not in the file are
 * zeros. */
static cli_exit read_chunk(foreign_file *self, const series *s, uint64_t page, uint32_t index,
                           int64_t item_size, const uint8_t **out)
{
    tiff_file *own = self->own;
    const layout *l = &s->layout;
    *out = is_packed(l) ? own->items : own->chunk;
    if (own->chunk_series == s && own->chunk_page == page && own->chunk_index == index)
        return CLI_OK;
    own->chunk_series = NULL;
    CLI_TRY(make_buffers(own, s, item_size));
    CLI_TRY(seek(self, s, page));
    tmsize_t size = (tmsize_t)(row_size(l) * l->chunk_height), got = 0;
    uint32_t row = index % (uint32_t)ceil_div(l->height, l->chunk_height),
             rows = l->chunk_height;
    if (!l->is_tiled && l->height - row * l->chunk_height < rows)
        rows = l->height - row * l->chunk_height;
    tmsize_t needed = (tmsize_t)(row_size(l) * rows);
    *own->message.text = '\0';
    if (TIFFGetStrileByteCount(own->tif, index) > 0)
        got = l->is_tiled ? TIFFReadEncodedTile(own->tif, index, own->chunk, size)
                          : TIFFReadEncodedStrip(own->tif, index, own->chunk, needed);
    else
        memset(own->chunk, 0, (size_t)(got = needed));
    if (got < needed) return damaged(self->path, &own->message);
    uint64_t n = l->chunk_width * samples_of(l);
    for (uint32_t y = 0; is_packed(l) && y < rows; y++)
        unpack_row(own->chunk + y * row_size(l), l->bits, n,
                   own->items + y * n * (size_t)item_size, (int)item_size);
    own->chunk_series = s;
    own->chunk_page = page;
    own->chunk_index = index;
    *out = is_packed(l) ? own->items : own->chunk;
    return CLI_OK;
}

/* A box within one page, and where it goes. Axes: y, x, and the samples that are joined. */
typedef struct page_box {
    int64_t start[3], stop[3];
    int64_t strides[3]; /* bytes, in dst */
    uint8_t *dst;
} page_box;

/* Copies what a chunk has of the box. */
static void copy_chunk(const layout *l, const uint8_t *chunk, int64_t y, int64_t x,
                       int64_t item_size, const page_box *b)
{
    const int64_t first[3] = {y, x, 0}, samples = (int64_t)samples_of(l);
    const int64_t size[3] = {l->chunk_height, l->chunk_width, samples};
    strided_copy copy = {.ndim = 3, .item_size = item_size};
    uint8_t *dst = b->dst;
    copy.src_strides[2] = item_size;
    copy.src_strides[1] = item_size * samples;
    copy.src_strides[0] = copy.src_strides[1] * l->chunk_width;
    for (int d = 0; d < 3; d++) {
        int64_t start = b->start[d] > first[d] ? b->start[d] : first[d];
        int64_t stop = b->stop[d] < first[d] + size[d] ? b->stop[d] : first[d] + size[d];
        copy.counts[d] = stop - start;
        copy.dst_strides[d] = b->strides[d];
        chunk += (start - first[d]) * copy.src_strides[d];
        dst += (start - b->start[d]) * b->strides[d];
    }
    strided_copy_run(&copy, chunk, dst);
}

/* Reads a box of one plane. */
static cli_exit read_plane(foreign_file *self, const series *s, uint64_t page, int64_t plane,
                           int64_t item_size, const page_box *b)
{
    const layout *l = &s->layout;
    int64_t height = l->chunk_height, width = l->chunk_width;
    int64_t across = (int64_t)ceil_div(l->width, l->chunk_width);
    int64_t down = (int64_t)ceil_div(l->height, l->chunk_height);
    const uint8_t *chunk;
    for (int64_t i = b->start[0] / height; i * height < b->stop[0]; i++)
        for (int64_t j = b->start[1] / width; j * width < b->stop[1]; j++) {
            if (cli_interrupted()) return CLI_INTERRUPTED;
            uint32_t index = (uint32_t)((plane * down + i) * across + j);
            CLI_TRY(read_chunk(self, s, page, index, item_size, &chunk));
            copy_chunk(l, chunk, i * height, j * width, item_size, b);
        }
    return CLI_OK;
}

/* Reads a box of one page. `start` and `stop` are those of the page's axes. */
static cli_exit read_page(foreign_file *self, const series *s, uint64_t page,
                          const int64_t *start, const int64_t *stop, int64_t item_size,
                          uint8_t *dst)
{
    const layout *l = &s->layout;
    int y = l->planes;
    page_box b = {.start = {start[y], start[y + 1], 0}, .stop = {stop[y], stop[y + 1], 1}};
    int64_t first = l->planes ? start[0] : 0, last = l->planes ? stop[0] : 1;
    if (l->samples > 1 && !l->planes) {
        b.start[2] = start[2];
        b.stop[2] = stop[2];
    }
    b.strides[2] = item_size;
    for (int d = 1; d >= 0; d--)
        b.strides[d] = b.strides[d + 1] * (b.stop[d + 1] - b.start[d + 1]);
    for (int64_t plane = first; plane < last; plane++) {
        b.dst = dst;
        CLI_TRY(read_plane(self, s, page, plane, item_size, &b));
        dst += b.strides[0] * (b.stop[0] - b.start[0]);
    }
    return CLI_OK;
}

static cli_exit read_box(foreign_file *self, const foreign_node *node, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    const series *s = node->own;
    int64_t index[CATERVA_MAX_DIMS], size = node->item_size;
    uint8_t *to = dst;
    int d = 0;
    memcpy(index, start, (size_t)node->ndim * sizeof *index);
    for (int i = s->n_prefix; i < node->ndim; i++) size *= stop[i] - start[i];
    while (d >= 0) {
        int64_t page = 0;
        for (int i = 0; i < s->n_prefix; i++) page = page * node->shape[i] + index[i];
        CLI_TRY(read_page(self, s, s->pages[page], start + s->n_prefix, stop + s->n_prefix,
                          node->item_size, to));
        to += size;
        for (d = s->n_prefix - 1; d >= 0; d--) {
            if (++index[d] < stop[d]) break;
            index[d] = start[d];
        }
    }
    return CLI_OK;
}

/* ---- Opening ---------------------------------------------------------------------------- */

/* Refuses a file whose pages have far more items than its bytes can hold. */
static cli_exit check_size(foreign_file *file, const foreign_node *node)
{
    struct stat st;
    double size = (double)node->item_size;
    if (stat(file->path, &st) != 0) return cli_fail_sys("cannot open %s", file->path);
    for (int d = 0; d < node->ndim; d++) size *= (double)node->shape[d];
    if (size <= FREE_SIZE || size <= (double)st.st_size * MAX_RATIO) return CLI_OK;
    return cli_fail(CLI_CORRUPT,
                    "%s: the items of %s need %.0f bytes, but the file has %lld packed ones",
                    file->path, node->key, size, (long long)st.st_size);
}

static cli_exit set_shape(foreign_file *file, foreign_node *node, series *s,
                          const char *description)
{
    const layout *l = &s->layout;
    static const char *const apart[] = {"sample", "y", "x"}, *const joined[] = {"y", "x",
                                                                                "sample"};
    const char *const *names = l->planes ? apart : joined;
    int64_t page[3], shape[CATERVA_MAX_DIMS], chunk[3] = {1, 1, 1};
    int n_page = l->samples > 1 ? 3 : 2, y = l->planes;
    char dtype[8];
    prefix p;
    page[y] = l->height;
    page[y + 1] = l->width;
    chunk[y] = l->chunk_height;
    chunk[y + 1] = l->chunk_width;
    if (l->samples > 1) page[l->planes ? 0 : 2] = l->samples;
    if (l->samples > 1 && !l->planes) chunk[2] = l->samples;
    find_prefix(description, s, page, n_page, &p);
    s->n_prefix = p.n;
    memcpy(shape, p.size, (size_t)p.n * sizeof *shape);
    memcpy(shape + p.n, page, (size_t)n_page * sizeof *shape);
    dtype_of(l, dtype);
    CLI_TRY(foreign_set_shape(file, node, dtype, p.n + n_page, shape));
    for (int d = 0; d < node->ndim; d++) {
        const char *name = d < p.n ? p.name[d] : names[d - p.n];
        node->chunk_shape[d] = d < p.n ? 1 : chunk[d - p.n];
        if (name) CLI_TRY(foreign_set_dim(node, d, name));
    }
    return check_size(file, node);
}

/* Reports what is in the file but in no attribute or array. */
static cli_exit lose_rest(foreign_file *file, const foreign_node *node, const series *s)
{
    TIFF *tif = ((tiff_file *)file->own)->tif;
    static const uint32_t directories[] = {TIFFTAG_EXIFIFD, TIFFTAG_GPSIFD};
    uint16_t n = 0;
    uint64_t *positions, position;
    if (TIFFGetField(tif, TIFFTAG_SUBIFD, &n, &positions) && n > 0)
        CLI_TRY(foreign_lose(file, "%s: %d smaller pictures of each page", node->key, n));
    for (int i = 0; i < 2; i++)
        if (TIFFGetField(tif, directories[i], &position))
            CLI_TRY(foreign_lose(file, "%s: the tags of %s", node->key, i ? "GPS" : "Exif"));
    if (s->n_described == 0) return CLI_OK;
    return foreign_lose(file, "%s: the descriptions of %zu pages after the first one",
                        node->key, s->n_described);
}

static cli_exit add_series(foreign_file *file, series *s)
{
    tiff_file *own = file->own;
    char key[32] = "/data";
    const char *description = NULL;
    if (own->n > 1) snprintf(key, sizeof key, "/page%zu", s->first);
    if (s->fault) return foreign_lose(file, "%s: it %s", key, s->fault);
    if (!TIFFSetSubDirectory(own->tif, s->pages[0]))
        return damaged(file->path, &own->message);
    TIFFGetField(own->tif, TIFFTAG_IMAGEDESCRIPTION, &description);
    foreign_node *node = foreign_add(file, key, false);
    if (!node) return CLI_IO;
    node->own = s;
    CLI_TRY(set_shape(file, node, s, description));
    if (description)
        CLI_TRY(values_set_text(node, "description", description, strlen(description)));
    CLI_TRY(set_palette(own->tif, node, &s->layout));
    CLI_TRY(set_spacing(own->tif, node, &s->layout));
    CLI_TRY(set_tags(file, node));
    CLI_TRY(lose_rest(file, node, s));
    bool is_stack = description && strncmp(description, "ImageJ=", 7) == 0;
    int64_t planes = is_stack ? number_after(description, "\nimages=") : 1;
    if (planes <= (int64_t)s->n) return CLI_OK;
    return foreign_lose(file, "%s: %lld planes of ImageJ that are in no page", key,
                        (long long)planes - (long long)s->n);
}

static cli_exit open_tiff(foreign_file *file)
{
    tiff_file *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (tiff_file){0};
    file->own = own;
    file->close = close_file;
    file->read = read_box;
    TIFFOpenOptions *options = make_options(&own->message);
    if (!options) return CLI_IO;
    own->tif = TIFFOpenExt(file->path, "r", options);
    TIFFOpenOptionsFree(options);
    if (!own->tif) return damaged(file->path, &own->message);
    if (!foreign_add(file, "/", true)) return CLI_IO;
    CLI_TRY(add_pages(file));
    for (size_t i = 0; i < own->n; i++) CLI_TRY(add_series(file, &own->series[i]));
    if (file->n > 1) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: its page %s", file->path, own->series[0].fault);
}

/* ---- Writing ---------------------------------------------------------------------------- */

/* Items arrive in C order. They are collected in a band: the rows of the page that are in one row of
 * tiles. */
typedef struct tiff_writer {
    output out;
    TIFF *tif;
    message message;
    layout layout;                     /* of the array that is written */
    int64_t n_pages, page, plane, row; /* row: the first one of the band */
    uint8_t *band, *tile;
    size_t band_size, used;
    foreign_node *first; /* what the first page of the array has as tags; NULL behind it */
    bool is_swapped;     /* items have the other byte order */
    bool has_page;       /* a page was begun and has no directory yet */
} tiff_writer;

static void release(tiff_writer *w)
{
    if (w->tif) TIFFCleanup(w->tif);
    output_abandon(&w->out);
    foreign_node_free(w->first);
    free(w->band);
    free(w->tile);
    free(w);
}

static void abandon(foreign_writer *self) { release(self->own); }

static cli_exit failed(const tiff_writer *w)
{
    return cli_fail(CLI_IO, "cannot write %s: %s", w->out.path,
                    *w->message.text ? w->message.text : "libtiff failed");
}

/* Tags of the map that the layout of the array decides. */
static bool is_of_layout(uint32_t tag)
{
    return tag == TIFFTAG_BITSPERSAMPLE || tag == TIFFTAG_PHOTOMETRIC ||
           tag == TIFFTAG_EXTRASAMPLES;
}

static void set_number(TIFF *tif, const TIFFField *f, double number)
{
    uint32_t tag = TIFFFieldTag(f);
    switch (TIFFFieldDataType(f)) {
    case TIFF_SHORT: TIFFSetField(tif, tag, (uint16_t)number); break;
    case TIFF_LONG: TIFFSetField(tif, tag, (uint32_t)number); break;
    case TIFF_RATIONAL: TIFFSetField(tif, tag, number); break;
    default: break;
    }
}

/* Makes a tag known to libtiff, with values of a type. */
static const TIFFField *register_tag(TIFF *tif, uint32_t tag, TIFFDataType type, char *name)
{
    const TIFFFieldInfo info = {tag, TIFF_VARIABLE2, TIFF_VARIABLE2, type, FIELD_CUSTOM, 1, 1,
                                name};
    const TIFFField *f = TIFFFieldWithTag(tif, tag);
    if (!f) TIFFMergeFieldInfo(tif, &info, 1);
    return TIFFFieldWithTag(tif, tag);
}

/* Sets a text, with the zero that ends it. */
static bool set_text(TIFF *tif, const TIFFField *f, const char *bytes, size_t size)
{
    char *text = cli_alloc(size + 1);
    if (!text) return false;
    memcpy(text, bytes, size);
    text[size] = '\0';
    bool done = TIFFFieldPassCount(f)
                    ? TIFFSetField(tif, TIFFFieldTag(f), (uint32_t)size + 1, text) == 1
                    : TIFFSetField(tif, TIFFFieldTag(f), text) == 1;
    free(text);
    return done;
}

/* Sets a tag to a value of the map; false if that is not possible. */
static bool set_value(TIFF *tif, const TIFFField *f, packed_value value,
                      const caterva_value *head)
{
    double number;
    bool is_text = TIFFFieldDataType(f) == TIFF_ASCII;
    if (is_text) return head->bytes && set_text(tif, f, head->bytes, head->size);
    if (TIFFFieldPassCount(f)) {
        size_t size = 1;
        for (size_t i = 0; i < N_TAG_TYPES; i++)
            if (tag_types[i].type == TIFFFieldDataType(f)) size = (size_t)tag_types[i].size;
        return head->bytes && TIFFSetField(tif, TIFFFieldTag(f),
                                           (uint32_t)(head->size / size), head->bytes) == 1;
    }
    if (TIFFFieldDataType(f) == TIFF_RATIONAL && TIFFFieldReadCount(f) > 1)
        return strcmp(head->dtype, ORDER "f4") == 0 &&
               head->size == 4 * (size_t)TIFFFieldReadCount(f) &&
               TIFFSetField(tif, TIFFFieldTag(f), head->bytes) == 1;
    if (values_numbers(value, &number, 1) != 1) return false;
    set_number(tif, f, number);
    return true;
}

/* Returns the type of a tag that has a value of the map; TIFF_NOTYPE if there is none. */
static TIFFDataType type_of_value(const caterva_value *head)
{
    if (head->kind == CATERVA_VALUE_TEXT) return TIFF_ASCII;
    if (head->kind == CATERVA_VALUE_BYTES) return TIFF_UNDEFINED;
    for (size_t i = 0; i < N_TAG_TYPES && head->kind == CATERVA_VALUE_ARRAY; i++)
        if (strcmp(tag_types[i].dtype, head->dtype) == 0) return tag_types[i].type;
    return TIFF_NOTYPE;
}

/* Returns the field of a tag that is named by its number. A tag that libtiff does not know gets the
 * type of its value. */
static const TIFFField *custom_field(TIFF *tif, const char *name, const caterva_value *head)
{
    char *end, copy[16];
    unsigned long tag = strtoul(name, &end, 10);
    TIFFDataType type = type_of_value(head);
    if (*end || tag < 256 || tag > 65535) return NULL;
    const TIFFField *f = TIFFFieldWithTag(tif, (uint32_t)tag);
    if (!f && type != TIFF_NOTYPE) {
        snprintf(copy, sizeof copy, "%lu", tag);
        f = register_tag(tif, (uint32_t)tag, type, copy);
    }
    bool counted = f && TIFFFieldPassCount(f);
    if (counted && type == TIFF_UNDEFINED && TIFFFieldDataType(f) == TIFF_BYTE) return f;
    return counted && TIFFFieldDataType(f) != type ? NULL : f;
}

/* Sets one tag of the map; false if that is not possible. */
static bool set_tag(TIFF *tif, const char *name, packed_value value)
{
    caterva_value head = CATERVA_VALUE_INIT;
    caterva_error err;
    size_t at = 0;
    const TIFFField *f = NULL;
    if (caterva_value_next(value.bytes, value.size, &at, &head, &err) != CATERVA_OK)
        return false;
    for (size_t i = 0; i < N_KEPT && !f; i++) {
        f = TIFFFieldWithTag(tif, kept_tags[i]);
        if (f && strcmp(TIFFFieldName(f), name) != 0) f = NULL;
    }
    if (!f) f = custom_field(tif, name, &head);
    if (!f) return false;
    return is_of_layout(TIFFFieldTag(f)) || set_value(tif, f, value, &head);
}

static cli_exit set_map(foreign_writer *self, const foreign_node *node)
{
    tiff_writer *w = self->own;
    packed_value map = values_of(node, "tiff"), key, value;
    size_t size;
    char name[64];
    for (size_t at = 0; values_next(map, &at, &key, &value);) {
        const char *text = values_text(key, &size);
        if (!text || size >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        if (!set_tag(w->tif, name, value))
            CLI_TRY(foreign_lose_writing(self, "%s: the tag %s", node->key, name));
    }
    return CLI_OK;
}

/* Sets the resolution from the spacing of the pixels, if no tag of the map says it. */
static void set_resolution(TIFF *tif, const foreign_node *node, const layout *l)
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

/* Sets the description: that of the array, or the shape as tifffile writes it. */
static void set_description(TIFF *tif, const foreign_node *node)
{
    size_t size;
    const char *text = values_text(values_of(node, "description"), &size);
    char shape[CATERVA_MAX_DIMS * 22 + 16] = "{\"shape\": [";
    size_t used = strlen(shape);
    if (text && (size < used || strncmp(text, shape, used) != 0)) {
        set_text(tif, TIFFFieldWithTag(tif, TIFFTAG_IMAGEDESCRIPTION), text, size);
        return;
    }
    for (int d = 0; d < node->ndim; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", d ? ", " : "",
                                 (long long)node->shape[d]);
    snprintf(shape + used, sizeof shape - used, "]}");
    TIFFSetField(tif, TIFFTAG_IMAGEDESCRIPTION, shape);
}

static void set_colour_map(TIFF *tif, const foreign_node *node, const layout *l)
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
static void set_meaning(TIFF *tif, const layout *l, const foreign_node *node)
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
    const layout *l = &w->layout;
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
    set_description(tif, w->first);
    CLI_TRY(set_map(self, w->first));
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
    const layout *l = &w->layout;
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
    const layout *l = &w->layout;
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

static bool set_type(layout *l, const char *dtype)
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
static uint16_t photometric_of(const foreign_node *node, const layout *l)
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
static cli_exit set_layout(foreign_writer *self, const foreign_node *node, layout *l)
{
    tiff_writer *w = self->own;
    int axis = samples_axis(node), y = node->ndim - 2 - (axis == 1);
    memset(l, 0, sizeof *l);
    if (node->ndim < 2)
        return cli_fail(CLI_UNSUPPORTED, "%s: a picture has at least 2 axes, but %s has %d",
                        self->path, node->key, node->ndim);
    if (!set_type(l, node->dtype))
        return cli_fail(CLI_UNSUPPORTED, "%s: TIFF has no type for items of the dtype %s",
                        self->path, node->dtype);
    int64_t samples = axis < 0 ? 1 : node->shape[axis == 1 ? node->ndim - 1 : node->ndim - 3];
    w->n_pages = 1;
    for (int d = 0; d < y - (axis == 0); d++) w->n_pages *= node->shape[d];
    for (int d = 0; d < node->ndim; d++)
        if (node->shape[d] < 1)
            return cli_fail(CLI_UNSUPPORTED, "%s: a picture has pixels, but %s has none",
                            self->path, node->key);
    if (node->shape[y] > INT32_MAX || node->shape[y + 1] > INT32_MAX || samples > 1000 ||
        w->n_pages > MAX_PAGES)
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
        CLI_TRY(foreign_lose_writing(self, "%s: the dtype bool, which becomes uint8", node->key));
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
    TIFFOpenOptions *options = make_options(&w->message);
    if (!options) return CLI_IO;
    w->tif = TIFFFdOpenExt(dup(w->out.fd), w->out.path, is_big ? "w8" : "w", options);
    TIFFOpenOptionsFree(options);
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
    layout *l = &w->layout;
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

static cli_exit create_tiff(foreign_writer *writer, bool force)
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

CLI_API extern const foreign_format caterva_format;
const foreign_format caterva_format = {FOREIGN_INTERFACE, "tiff", open_tiff, create_tiff};
