/* Plug-in tiff: reading. */
#include "plugin.h"

#include "foreign/values.h"
#include "formats/strided.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_ARRAYS 10000
#define MAX_PREFIX (CATERVA_MAX_DIMS - 3)
/* A file that claims more is not read: no page of real pictures is packed as well as that. */
#define FREE_SIZE ((double)(64 << 20))
#define MAX_RATIO 1e5

static uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static cli_exit damaged(const char *path, const tiff_message *m)
{
    return cli_fail(CLI_CORRUPT, "%s: %s", path,
                    *m->text ? m->text : "it is not a valid TIFF file");
}

/* ---- Layouts ---------------------------------------------------------------------------- */

/* Returns why pages of the layout cannot be read, or NULL. */
static const char *fault_of(TIFF *tif, const tiff_layout *l)
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
static bool dtype_of(const tiff_layout *l, char dtype[8])
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

static bool is_packed(const tiff_layout *l)
{
    return l->bits < 8 || (l->bits & (l->bits - 1)) != 0;
}

/* Bytes of a row of a decoded chunk. */
static uint64_t row_size(const tiff_layout *l)
{
    return ceil_div(l->chunk_width * samples_of(l) * l->bits, 8);
}

/* Colours of JPEG files come as RGB. */
static void set_colours(TIFF *tif, const tiff_layout *l)
{
    if (l->compression == COMPRESSION_JPEG && l->photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
}

/* Describes the page that is current. */
static void describe(TIFF *tif, tiff_layout *l)
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
    tiff_layout layout;
    const char *fault;  /* why it is not read, or NULL */
    uint64_t *pages;    /* positions of their directories */
    size_t n, first;    /* first: number of the first page */
    size_t n_described; /* pages with a description of their own */
    int n_prefix;       /* axes before those of a page */
} series;

typedef struct tiff_file {
    TIFF *tif;
    tiff_message message;
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

static series *find_series(tiff_file *own, const tiff_layout *l)
{
    for (size_t i = own->n; i > 0; i--)
        if (memcmp(&own->series[i - 1].layout, l, sizeof *l) == 0) return &own->series[i - 1];
    return NULL;
}

static cli_exit add_page(foreign_file *file, size_t number)
{
    tiff_file *own = file->own;
    tiff_layout l;
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

/* Names axes by the letters of tifffile, one for each of `n` sizes; Q is an axis without a name. */
static void name_by_letters(const char *text, int n, prefix *p)
{
    static const char key[] = "\"axes\": \"", names[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0"
                                                   "n\0o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    const char *letters = strstr(text, key);
    if (!letters || strcspn(letters + sizeof key - 1, "\"") != (size_t)n) return;
    letters += sizeof key - 1;
    for (int i = 0; i < p->n; i++)
        if (letters[i] >= 'A' && letters[i] <= 'Z' && letters[i] != 'Q')
            p->name[i] = names + 2 * (letters[i] - 'A');
}

/* tifffile's description, {"shape": [2, 3, 480, 640], "axes": "TZYX"}: the last axes are those of a
 * page. */
static bool shape_of_tifffile(const char *text, const int64_t *page, int n_page, prefix *p)
{
    int64_t sizes[TIFF_MAX_SIZES];
    int n = tiff_scan_shape(&text, sizes), n_letters = n;
    if (n > n_page && sizes[n - 1] == 1 && page[n_page - 1] != 1)
        n--; /* has no place in a page */
    for (int i = 1; i <= n_page; i++)
        if (n < n_page || sizes[n - i] != page[n_page - i]) return false;
    for (int i = 0; i < n - n_page; i++)
        if (!add_axis(p, NULL, sizes[i])) return false;
    name_by_letters(text, n_letters, p);
    return true;
}

/* Returns the number that follows `name`; 1 if no number follows. */
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

/* ---- Attributes -------------------------------------------------------------------------- */

static cli_exit set_palette(TIFF *tif, foreign_node *node, const tiff_layout *l)
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

static cli_exit set_spacing(TIFF *tif, foreign_node *node, const tiff_layout *l)
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
    const tiff_layout *l = &s->layout;
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
    const tiff_layout *l = &s->layout;
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
static void copy_chunk(const tiff_layout *l, const uint8_t *chunk, int64_t y, int64_t x,
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
    const tiff_layout *l = &s->layout;
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
    const tiff_layout *l = &s->layout;
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
    const tiff_layout *l = &s->layout;
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
    CLI_TRY(tiff_tags_to_map(file, own->tif, node));
    CLI_TRY(lose_rest(file, node, s));
    bool is_stack = description && strncmp(description, "ImageJ=", 7) == 0;
    int64_t planes = is_stack ? number_after(description, "\nimages=") : 1;
    if (planes <= (int64_t)s->n) return CLI_OK;
    return foreign_lose(file, "%s: %lld planes of ImageJ that are in no page", key,
                        (long long)planes - (long long)s->n);
}

cli_exit tiff_open(foreign_file *file)
{
    tiff_file *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (tiff_file){0};
    file->own = own;
    file->close = close_file;
    file->read = read_box;
    TIFFOpenOptions *options = tiff_options(&own->message);
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
