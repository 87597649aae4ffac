/* Room: cli/foreign. NRRD files, http://teem.sourceforge.net/nrrd/format.html: a header of lines
 * "field: value" and "key:=value", an empty line, and the items; or a header (.nhdr) that names
 * the file of the items. Encodings: raw and gzip. The array is /data, with the axes in the order
 * of the header, the fastest one first, as pynrrd has them by default. Attributes:
 *
 *   nrrd                  the fields, as texts, but for those that describe the items
 *   key                   the value of each pair key:=value
 *   affine                4 by 4 float64: from the first three axes to space, in the axes of NIfTI
 *   spacing, axis_units   for each axis
 *   units                 of the items
 *
 * dims are the labels. A writer takes the fields from `nrrd`, and the others where they differ. */
#include "foreign/formats.h"
#include "foreign/items.h"
#include "foreign/packer.h"
#include "foreign/values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_HEADER ((size_t)16 << 20)

/* ---- Fields ----------------------------------------------------------------------------- */

/* A line of the header. */
typedef struct line {
    char *name, *value; /* in the header's text */
    bool is_key;
} line;

typedef struct header {
    char *text;
    line *lines;
    size_t n;
    size_t size; /* bytes up to the items */
} header;

static void header_free(header *h)
{
    free(h->text);
    free(h->lines);
    *h = (header){0};
}

/* Returns the value of a field, whose name may be written with or without its blanks. */
static const char *field_of(const header *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++) {
        const char *a = name, *b = h->lines[i].name;
        while (*a && (*a == *b || *a == ' ')) {
            if (*a == *b) b++;
            a++;
        }
        if (!h->lines[i].is_key && !*a && !*b) return h->lines[i].value;
    }
    return NULL;
}

/* Whether the text is one of the words, which commas separate. */
static bool is_among(const char *text, const char *words)
{
    size_t size = strlen(text);
    for (; *words; words += strcspn(words, ","), words += *words == ',')
        if (strcspn(words, ",") == size && strncasecmp(words, text, size) == 0) return true;
    return false;
}

/* Reads up to `max` numbers that blanks separate; returns how many there are. */
static size_t scan_numbers(const char *text, double *out, size_t max)
{
    size_t n = 0;
    char *end;
    for (; text && n < max; text = end) {
        out[n] = strtod(text, &end);
        if (end == text) break;
        n++;
    }
    return n;
}

/* Reads the next text of a list in which texts with blanks stand in quotes. */
static bool scan_text(const char **at, char *out, size_t room)
{
    size_t n = 0;
    *at += strspn(*at, " \t");
    bool quoted = **at == '"';
    *at += quoted;
    if (!**at) return false;
    for (; **at && (quoted ? **at != '"' : !isspace((unsigned char)**at)); ++*at) {
        if (quoted && **at == '\\' && (*at)[1]) ++*at;
        if (n + 1 < room) out[n++] = **at;
    }
    *at += quoted && **at;
    out[n] = '\0';
    return true;
}

/* Reads the next vector, (a,b,c), of up to `max` numbers. *n is 0 for "none". */
static bool scan_vector(const char **at, double *out, size_t max, size_t *n)
{
    *n = 0;
    *at += strspn(*at, " \t");
    if (strncmp(*at, "none", 4) == 0) {
        *at += 4;
        return true;
    }
    if (**at != '(') return false;
    while (*n < max) {
        char *end;
        ++*at;
        out[*n] = strtod(*at, &end);
        if (end == *at) return false;
        ++*n;
        *at = end + strspn(end, " \t");
        if (**at == ')') {
            ++*at;
            return true;
        }
        if (**at != ',') return false;
    }
    return false;
}

/* ---- Space ------------------------------------------------------------------------------ */

/* The geometry of a header: what its fields say about each axis. */
typedef struct geometry {
    double spacing[CATERVA_MAX_DIMS]; /* NaN: unknown */
    bool has_spacing, has_units, has_affine, has_labels;
    char units[CATERVA_MAX_DIMS][32];
    char labels[CATERVA_MAX_DIMS][64];
    double affine[4][4];
} geometry;

/* Sets the signs that turn a space into the one of NIfTI: right, anterior, superior. */
static bool signs_of(const char *space, double sign[3])
{
    static const char *const spaces[] = {"right-anterior-superior,RAS",
                                         "left-anterior-superior,LAS",
                                         "left-posterior-superior,LPS"};
    for (int i = 0; i < 3; i++) {
        if (!space || !is_among(space, spaces[i])) continue;
        sign[0] = i > 0 ? -1 : 1;
        sign[1] = i > 1 ? -1 : 1;
        sign[2] = 1;
        return true;
    }
    return false;
}

static void read_directions(const header *h, int ndim, geometry *g)
{
    const char *at = field_of(h, "space directions"), *origin = field_of(h, "space origin");
    const char *units = field_of(h, "space units");
    double v[CATERVA_MAX_DIMS], sign[3];
    size_t n;
    bool is_spatial = signs_of(field_of(h, "space"), sign) && origin;
    for (int d = 0; at && d < ndim; d++) {
        double square = 0;
        if (!scan_vector(&at, v, CATERVA_MAX_DIMS, &n)) return;
        for (size_t i = 0; i < n; i++) square += v[i] * v[i];
        if (n > 0) {
            g->has_spacing = true;
            g->spacing[d] = sqrt(square);
            if (units && scan_text(&units, g->units[d], sizeof g->units[d]))
                g->has_units = true;
        }
        if (d < 3) is_spatial &= n == 3;
        for (int i = 0; i < 3 && d < 3 && is_spatial; i++) g->affine[i][d] = sign[i] * v[i];
    }
    g->has_affine = at && is_spatial && ndim >= 3 && scan_vector(&origin, v, 3, &n) && n == 3;
    for (int i = 0; i < 3 && g->has_affine; i++) g->affine[i][3] = sign[i] * v[i];
    g->affine[3][3] = 1;
}

static void read_geometry(const header *h, int ndim, geometry *g)
{
    const char *units = field_of(h, "units"), *labels = field_of(h, "labels");
    *g = (geometry){.has_spacing = false};
    for (int d = 0; d < ndim; d++) g->spacing[d] = (double)NAN;
    double spacing[CATERVA_MAX_DIMS];
    if (scan_numbers(field_of(h, "spacings"), spacing, CATERVA_MAX_DIMS) == (size_t)ndim) {
        memcpy(g->spacing, spacing, sizeof spacing);
        g->has_spacing = true;
    }
    read_directions(h, ndim, g);
    for (int d = 0; units && d < ndim; d++)
        g->has_units |= scan_text(&units, g->units[d], sizeof g->units[d]);
    for (int d = 0; labels && d < ndim; d++)
        g->has_labels |= scan_text(&labels, g->labels[d], sizeof g->labels[d]);
}

/* ---- Reading the header ----------------------------------------------------------------- */

/* Replaces \n and \\ of a key's value. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        bool escaped = *text == '\\' && (text[1] == 'n' || text[1] == '\\');
        text += escaped;
        *to++ = escaped && *text == 'n' ? '\n' : *text;
    }
    *to = '\0';
}

static void strip(char **begin, char *end)
{
    while (end > *begin && isspace((unsigned char)end[-1])) end--;
    *end = '\0';
    *begin += strspn(*begin, " \t");
}

static cli_exit parse_line(const char *path, header *h, char *text, char *end)
{
    *end = '\0';
    char *colon = strchr(text, ':');
    if (!colon)
        return cli_fail(CLI_CORRUPT, "%s: '%.40s' is no line of an NRRD header", path, text);
    bool is_key = colon[1] == '=';
    line *new = &h->lines[h->n++];
    *new = (line){.name = text, .value = colon + 1 + is_key, .is_key = is_key};
    strip(&new->name, colon);
    strip(&new->value, end);
    if (is_key) unescape(new->value);
    return CLI_OK;
}

/* Reads more and more of the file until the header is complete. Sets h->size to the position after
 * the empty line, or to the size of a file without one. */
static cli_exit load_header(const char *path, packed *file, header *h)
{
    size_t room = 65536, got = 0;
    for (;; room *= 4) {
        free(h->text);
        h->text = cli_alloc(room + 1);
        if (!h->text) return CLI_IO;
        CLI_TRY(packed_read_some(file, h->text, room, 0, &got));
        h->text[got] = '\0';
        if (got < 8 || memcmp(h->text, "NRRD000", 7) != 0)
            return cli_fail(CLI_CORRUPT, "%s does not begin like an NRRD file", path);
        const char *unix = strstr(h->text, "\n\n"), *other = strstr(h->text, "\n\r\n");
        h->size = got;
        if (unix) h->size = (size_t)(unix - h->text) + 2;
        if (other && (!unix || other < unix)) h->size = (size_t)(other - h->text) + 3;
        if (h->size < got || got < room) break;
        if (room > MAX_HEADER)
            return cli_fail(CLI_CORRUPT, "%s: the header has more than 16 MiB", path);
    }
    h->text[h->size] = '\0';
    return CLI_OK;
}

static cli_exit read_header(const char *path, packed *file, header *h)
{
    size_t n = 1;
    CLI_TRY(load_header(path, file, h));
    if (h->text[7] < '1' || h->text[7] > '5')
        return cli_fail(CLI_UNSUPPORTED, "%s: version %c of NRRD is not known", path,
                        h->text[7]);
    for (const char *c = h->text; *c; c++) n += *c == '\n';
    h->lines = cli_alloc(n * sizeof *h->lines);
    if (!h->lines) return CLI_IO;
    char *at = h->text, *next;
    for (; *at; at = next) {
        char *end = at + strcspn(at, "\n");
        next = end + (*end != '\0');
        if (end > at && end[-1] == '\r') end--;
        if (at > h->text && end > at && *at != '#') CLI_TRY(parse_line(path, h, at, end));
    }
    return CLI_OK;
}

/* ---- Reading ---------------------------------------------------------------------------- */

typedef struct nrrd_file {
    packed *items;
    char *items_path;
    int64_t position; /* of the first item */
} nrrd_file;

static void close_file(foreign_file *self)
{
    nrrd_file *own = self->own;
    packed_close(own->items);
    free(own->items_path);
    free(own);
}

static cli_exit read_box(foreign_file *self, const foreign_node *array, const int64_t *start,
                         const int64_t *stop, void *dst)
{
    const nrrd_file *own = self->own;
    return items_read(own->items, own->position, array, start, stop, dst);
}

static const struct type {
    const char *names; /* the first one is written */
    const char *dtype;
} types[] = {
    {"int8,signed char,int8_t", "|i1"},
    {"uint8,uchar,unsigned char,uint8_t", "|u1"},
    {"int16,short,short int,signed short,signed short int,int16_t", "i2"},
    {"uint16,ushort,unsigned short,unsigned short int,uint16_t", "u2"},
    {"int32,int,signed int,int32_t", "i4"},
    {"uint32,uint,unsigned int,uint32_t", "u4"},
    {"int64,longlong,long long,long long int,signed long long,signed long long int,int64_t",
     "i8"},
    {"uint64,ulonglong,unsigned long long,unsigned long long int,uint64_t", "u8"},
    {"float", "f4"},
    {"double", "f8"},
};
#define N_TYPES (sizeof types / sizeof types[0])

/* Sets `dtype` to that of the items, or to "" if the header has none. */
static void dtype_of(const header *h, char dtype[32])
{
    const char *type = field_of(h, "type"), *endian = field_of(h, "endian");
    const char *size = field_of(h, "block size");
    *dtype = '\0';
    if (type && size && is_among(type, "block") && atol(size) > 0 && atol(size) <= 1 << 20)
        snprintf(dtype, 32, "|V%ld", atol(size));
    for (size_t i = 0; type && i < N_TYPES; i++) {
        if (!is_among(type, types[i].names)) continue;
        const char *order = *types[i].dtype == '|'                 ? ""
                            : endian && is_among(endian, "little") ? "<"
                            : endian && is_among(endian, "big")    ? ">"
                                                                   : NULL;
        if (order) snprintf(dtype, 32, "%s%s", order, types[i].dtype);
    }
}

static cli_exit check_encoding(const foreign_file *file, const header *h)
{
    const char *encoding = field_of(h, "encoding");
    if (encoding && is_among(encoding, "raw,gzip,gz")) return CLI_OK;
    return cli_fail(CLI_UNSUPPORTED, "%s: the items are encoded as %.20s; raw and gzip are known",
                    file->path, encoding ? encoding : "nothing");
}

static cli_exit set_shape(foreign_file *file, foreign_node *node, const header *h)
{
    char dtype[32];
    double sizes[CATERVA_MAX_DIMS + 1], dimension = 0;
    int64_t shape[CATERVA_MAX_DIMS];
    size_t n = scan_numbers(field_of(h, "sizes"), sizes, CATERVA_MAX_DIMS + 1);
    scan_numbers(field_of(h, "dimension"), &dimension, 1);
    if (n == 0 || dimension != (double)n || n > CATERVA_MAX_DIMS)
        return cli_fail(CLI_CORRUPT,
                        "%s: the fields dimension and sizes of the header do not "
                        "describe an array of 1 to 16 axes",
                        file->path);
    for (size_t d = 0; d < n; d++) {
        if (!(sizes[d] >= 0 && sizes[d] < 9e15 && sizes[d] == floor(sizes[d])))
            return cli_fail(CLI_CORRUPT, "%s: axis %zu has the size %g", file->path, d,
                            sizes[d]);
        shape[d] = (int64_t)sizes[d];
    }
    CLI_TRY(check_encoding(file, h)); /* text has no byte order */
    dtype_of(h, dtype);
    if (!*dtype)
        return cli_fail(CLI_CORRUPT,
                        "%s: the header has no valid type of items, or no valid "
                        "byte order",
                        file->path);
    node->first_axis_fastest = n > 1;
    return foreign_set_shape(file, node, dtype, (int)n, shape);
}

/* Fields that describe how items are stored, which a writer makes anew. */
static bool is_of_storage(const char *name)
{
    return is_among(name,
                    "type,dimension,sizes,endian,block size,blocksize,data file,datafile,"
                    "line skip,lineskip,byte skip,byteskip");
}

/* Names of attributes that a key cannot have. */
static bool is_reserved(const char *name)
{
    return is_among(name, "nrrd,affine,spacing,axis_units,units,scale_factor,add_offset,dims,"
                          "_FillValue,coordinates,calendar,attrs,_caterva,"
                          "nifti,nifti_extensions,sform,qform");
}

/* Sets the attribute `nrrd`. Keys with reserved names are in it, as "name:=". */
static cli_exit set_fields(foreign_node *node, const header *h)
{
    value_list list = {0};
    int64_t n = 0;
    size_t map = values_begin(&list, CATERVA_VALUE_MAP);
    for (size_t i = 0; i < h->n; i++) {
        const line *l = &h->lines[i];
        size_t size = strlen(l->name);
        if (l->is_key ? !is_reserved(l->name) : is_of_storage(l->name)) continue;
        if (l->is_key) { /* the colon and the sign of equality are in the text, behind the name */
            l->name[size++] = ':';
            l->name[size++] = '=';
        }
        values_add_text(&list, l->name, size);
        values_add_text(&list, l->value, strlen(l->value));
        n++;
    }
    values_end(&list, map, n);
    return values_set(&list, node, "nrrd");
}

static cli_exit set_keys(foreign_file *file, foreign_node *node, const header *h)
{
    for (size_t i = 0; i < h->n; i++) {
        const line *l = &h->lines[i];
        if (!l->is_key || is_reserved(l->name)) continue;
        if (foreign_attribute_of(node, l->name) || !values_is_utf8(l->name, strlen(l->name)))
            CLI_TRY(foreign_lose(file,
                                 "/data: a key that is not UTF-8, or the second one of its "
                                 "name: %.40s",
                                 l->name));
        else
            CLI_TRY(values_set_text(node, l->name, l->value, strlen(l->value)));
    }
    return CLI_OK;
}

static cli_exit set_attributes(foreign_file *file, foreign_node *node, const header *h)
{
    static const int64_t matrix[] = {4, 4};
    geometry g;
    const int64_t n = node->ndim;
    const char *units[CATERVA_MAX_DIMS], *sample = field_of(h, "sample units");
    read_geometry(h, node->ndim, &g);
    for (int d = 0; d < node->ndim; d++) {
        units[d] = g.units[d];
        g.has_units &= values_is_utf8(units[d], strlen(units[d]));
        g.has_labels &= values_is_utf8(g.labels[d], strlen(g.labels[d]));
    }
    for (int d = 0; d < node->ndim && g.has_labels; d++)
        if (*g.labels[d]) CLI_TRY(foreign_set_dim(node, d, g.labels[d]));
    if (g.has_affine)
        CLI_TRY(foreign_set_numbers(node, "affine", "float64", 2, matrix, g.affine));
    if (g.has_spacing)
        CLI_TRY(foreign_set_numbers(node, "spacing", "float64", 1, &n, g.spacing));
    if (g.has_units) CLI_TRY(foreign_set_texts(node, "axis_units", units, (size_t)n));
    if (sample) {
        const char *at = sample;
        char text[64];
        if (*at != '"' || !scan_text(&at, text, sizeof text))
            snprintf(text, sizeof text, "%s", sample);
        CLI_TRY(values_set_text(node, "units", text, strlen(text)));
    }
    CLI_TRY(set_keys(file, node, h));
    return set_fields(node, h);
}

/* Sets the path of the file with the items; NULL: the one with the header. */
static cli_exit find_items(foreign_file *file, const header *h)
{
    nrrd_file *own = file->own;
    const char *name = field_of(h, "data file"), *slash = strrchr(file->path, '/');
    if (!name) return CLI_OK;
    if (strncmp(name, "LIST", 4) == 0 || (strchr(name, '%') && strchr(name, ' ')))
        return cli_fail(CLI_UNSUPPORTED,
                        "%s: the items are in several files, which pynrrd and "
                        "caterva do not read",
                        file->path);
    size_t folder = *name != '/' && slash ? (size_t)(slash - file->path) + 1 : 0;
    size_t size = folder + strlen(name) + 1;
    own->items_path = cli_alloc(size);
    if (!own->items_path) return CLI_IO;
    snprintf(own->items_path, size, "%.*s%s", (int)folder, file->path, name);
    return CLI_OK;
}

/* Moves *position over `n` lines. */
static cli_exit skip_lines(packed *file, const char *path, double n, int64_t *position)
{
    char piece[4096];
    size_t got = 1;
    for (; n > 0 && got > 0; *position += (int64_t)got) {
        CLI_TRY(packed_read_some(file, piece, sizeof piece, *position, &got));
        for (size_t i = 0; i < got && n > 0; i++)
            if (piece[i] == '\n' && --n < 1) got = i + 1;
    }
    if (n > 0) return cli_fail(CLI_CORRUPT, "%s ends within the lines to be skipped", path);
    return CLI_OK;
}

/* Opens the items: after lines that are skipped, they are packed, and then bytes are skipped. */
static cli_exit open_items(foreign_file *file, const foreign_node *node, const header *h)
{
    nrrd_file *own = file->own;
    const char *path = own->items_path ? own->items_path : file->path;
    const char *encoding = field_of(h, "encoding");
    double lines = 0, bytes = 0;
    int64_t start = own->items_path ? 0 : (int64_t)h->size, size, total;
    scan_numbers(field_of(h, "line skip"), &lines, 1);
    scan_numbers(field_of(h, "byte skip"), &bytes, 1);
    CLI_TRY(items_size(file->path, node, &size));
    bool is_gzip = is_among(encoding, "gzip,gz");
    CLI_TRY(packed_open(path, PACKING_NONE, 0, -1, &own->items));
    CLI_TRY(skip_lines(own->items, path, lines, &start));
    if (bytes < -1 || bytes > 9e15 || (is_gzip && bytes < 0))
        return cli_fail(CLI_CORRUPT, "%s: the header skips %g bytes", file->path, bytes);
    total = packed_stored(own->items);
    own->position = bytes >= 0 ? (int64_t)bytes : total - start - size;
    if (own->position < 0) own->position = 0;
    packed_close(own->items);
    own->items = NULL;
    CLI_TRY(packed_open(path, is_gzip ? PACKING_GZIP : PACKING_NONE, start, -1, &own->items));
    if (size > INT64_MAX - own->position) size = INT64_MAX - own->position;
    return packed_expect(own->items, own->position + size);
}

static cli_exit describe(foreign_file *file, const header *h)
{
    if (!foreign_add(file, "/", true)) return CLI_IO;
    foreign_node *node = foreign_add(file, "/data", false);
    if (!node) return CLI_IO;
    CLI_TRY(set_shape(file, node, h));
    CLI_TRY(find_items(file, h));
    CLI_TRY(open_items(file, node, h));
    return set_attributes(file, node, h);
}

static cli_exit open_nrrd(foreign_file *file)
{
    header h = {0};
    packed *bytes = NULL;
    nrrd_file *own = cli_alloc(sizeof *own);
    if (!own) return CLI_IO;
    *own = (nrrd_file){0};
    file->own = own;
    file->close = close_file;
    file->read = read_box;
    cli_exit code = packed_open(file->path, PACKING_NONE, 0, -1, &bytes);
    if (code == CLI_OK) code = read_header(file->path, bytes, &h);
    if (code == CLI_OK) code = describe(file, &h);
    packed_close(bytes);
    header_free(&h);
    return code;
}

/* ---- Writing ---------------------------------------------------------------------------- */

typedef struct nrrd_writer {
    output head, items; /* of a header apart; `items` alone is a single file */
    bool single, is_packed, begun;
    spool spool;
    char *text; /* the header */
    size_t text_size;
    int64_t size; /* of the items */
} nrrd_writer;

static void release(nrrd_writer *w)
{
    output_abandon(&w->head);
    output_abandon(&w->items);
    spool_close(&w->spool);
    free(w->text);
    free(w);
}

static void abandon(foreign_writer *self) { release(self->own); }

static cli_exit write_box(foreign_writer *self, const foreign_node *array,
                          const int64_t *start, const int64_t *stop, const void *src)
{
    nrrd_writer *w = self->own;
    return items_write(spool_put, &w->spool, 0, array, start, stop, src);
}

/* Prints a value on one line; in a key's value, \ and line ends are escaped. */
static void print_value(FILE *stream, const char *text, size_t size, bool escape)
{
    for (size_t i = 0; i < size; i++) {
        if (escape && text[i] == '\\')
            fputs("\\\\", stream);
        else if (text[i] == '\n')
            fputs(escape ? "\\n" : " ", stream);
        else
            fputc(text[i], stream);
    }
    fputc('\n', stream);
}

static void print_vector(FILE *stream, const double affine[4][4], int column)
{
    fprintf(stream, "(%.17g,%.17g,%.17g)", affine[0][column], affine[1][column],
            affine[2][column]);
}

/* The geometry that the array's attributes describe. */
static void geometry_of(const foreign_node *node, geometry *g)
{
    packed_value list = values_of(node, "axis_units"), key, value;
    size_t size, at = 0;
    *g = (geometry){.has_spacing = false};
    double affine[16], spacing[CATERVA_MAX_DIMS];
    g->has_spacing = values_numbers(values_of(node, "spacing"), spacing, CATERVA_MAX_DIMS) ==
                     (size_t)node->ndim;
    if (g->has_spacing) memcpy(g->spacing, spacing, sizeof spacing);
    g->has_affine =
        node->ndim >= 3 && values_numbers(values_of(node, "affine"), affine, 16) == 16;
    if (g->has_affine) memcpy(g->affine, affine, sizeof affine);
    for (int d = 0; d < node->ndim && values_next(list, &at, &key, &value); d++) {
        const char *text = values_text(value, &size);
        if (text) snprintf(g->units[d], sizeof g->units[d], "%.*s", (int)size, text);
        g->has_units = true;
    }
    for (int d = 0; node->dims && d < node->ndim; d++) {
        if (!node->dims[d]) continue;
        snprintf(g->labels[d], sizeof g->labels[d], "%s", node->dims[d]);
        g->has_labels = true;
    }
}

static bool equal(const double *a, const double *b, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-9 * fabs(a[i])) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Which fields of a map do not hold any more, because the array's attributes differ. */
typedef struct changes {
    bool space, spacing, units, labels, sample;
} changes;

static changes compare(const geometry *is, const geometry *was, int ndim, bool has_map)
{
    changes c = {.spacing = !has_map, .units = !has_map};
    c.space =
        is->has_affine && !(was->has_affine && equal(is->affine[0], was->affine[0], 16));
    c.spacing |=
        is->has_spacing && !(was->has_spacing && equal(is->spacing, was->spacing, ndim));
    for (int d = 0; d < ndim; d++) {
        c.units |= is->has_units && strcmp(is->units[d], was->units[d]) != 0;
        c.labels |= is->has_labels && strcmp(is->labels[d], was->labels[d]) != 0;
    }
    return c;
}

static void print_list(FILE *stream, const char *field, int n, const char *texts, size_t room)
{
    fprintf(stream, "%s:", field);
    for (int d = 0; d < n; d++) {
        fputs(" \"", stream);
        for (const char *c = texts + (size_t)d * room; *c; c++) {
            if (*c == '"' || *c == '\\') fputc('\\', stream);
            fputc(*c == '\n' ? ' ' : *c, stream);
        }
        fputc('"', stream);
    }
    fputc('\n', stream);
}

static void print_changes(FILE *stream, const foreign_node *node, const geometry *g,
                          changes c)
{
    if (c.space) {
        fputs("space: right-anterior-superior\nspace directions:", stream);
        for (int d = 0; d < node->ndim; d++) {
            fputc(' ', stream);
            if (d < 3)
                print_vector(stream, g->affine, d);
            else
                fputs("none", stream);
        }
        fputs("\nspace origin: ", stream);
        print_vector(stream, g->affine, 3);
        fputc('\n', stream);
    } else if (c.spacing && g->has_spacing) {
        fputs("spacings:", stream);
        for (int d = 0; d < node->ndim; d++) fprintf(stream, " %.17g", g->spacing[d]);
        fputc('\n', stream);
    }
    if (c.units && g->has_units)
        print_list(stream, "units", node->ndim, g->units[0], sizeof g->units[0]);
    if (c.labels && g->has_labels)
        print_list(stream, "labels", node->ndim, g->labels[0], sizeof g->labels[0]);
}

/* Makes the lines of a map's fields, as read_header does. */
static cli_exit header_of_map(packed_value map, header *h)
{
    packed_value key, value;
    size_t size, n = 1, text = 1;
    for (size_t at = 0; values_next(map, &at, &key, &value); n++)
        text += key.size + value.size + 2;
    h->lines = cli_alloc(n * sizeof *h->lines);
    h->text = cli_alloc(text);
    if (!h->lines || !h->text) return CLI_IO;
    char *to = h->text;
    for (size_t at = 0; values_next(map, &at, &key, &value);) {
        line *l = &h->lines[h->n];
        const char *name = values_text(key, &size);
        if (!name || size < 1 || memchr(name, '\n', size) || memchr(name, '\0', size))
            continue;
        l->is_key = name[size - 1] == '=';
        l->name = memcpy(to, name, size);
        to += size;
        *to++ = '\0';
        const char *bytes = values_text(value, &size);
        if (!bytes || memchr(bytes, '\0', size)) continue;
        l->value = memcpy(to, bytes, size);
        to += size;
        *to++ = '\0';
        h->n++;
    }
    return CLI_OK;
}

/* Whether a field of the map still holds. */
static bool holds(const line *l, changes c)
{
    if (l->is_key) return true;
    if (is_of_storage(l->name) || is_among(l->name, "encoding")) return false;
    if (c.space && is_among(l->name, "space,space dimension,space directions,space origin,"
                                     "spacings,measurement frame"))
        return false;
    if (c.spacing && is_among(l->name, "spacings,space directions")) return false;
    if (c.units && is_among(l->name, "units,space units")) return false;
    if (c.labels && is_among(l->name, "labels")) return false;
    return !(c.sample && is_among(l->name, "sample units,sampleunits"));
}

static void print_fields(FILE *stream, const foreign_node *node, const header *h)
{
    geometry is, was;
    size_t size;
    geometry_of(node, &is);
    read_geometry(h, node->ndim, &was);
    changes c = compare(&is, &was, node->ndim, h->n > 0);
    const char *units = values_text(values_of(node, "units"), &size);
    const char *sample = field_of(h, "sample units");
    c.sample =
        units && !(sample && (strlen(sample) == size && memcmp(sample, units, size) == 0));
    for (size_t i = 0; i < h->n; i++) {
        const line *l = &h->lines[i];
        if (!holds(l, c)) continue;
        fprintf(stream, "%s%s", l->name, l->is_key ? "" : ": ");
        print_value(stream, l->value, strlen(l->value), l->is_key);
    }
    print_changes(stream, node, &is, c);
    if (c.sample) {
        fputs("sample units: ", stream);
        print_value(stream, units, size, false);
    }
}

/* Whether readers find the text again behind "name:=". */
static bool is_pair(const foreign_attribute *a, const char *text, size_t size)
{
    static const char fields[] =
        "type,dimension,sizes,spacings,thicknesses,axis mins,axismins,axis maxs,axismaxs,centers,"
        "centerings,labels,units,kinds,endian,encoding,content,min,max,old min,oldmin,old max,"
        "oldmax,block size,blocksize,data file,datafile,line skip,lineskip,byte skip,byteskip,"
        "number,sample units,sampleunits,space,space dimension,space units,space origin,"
        "space directions,measurement frame";
    size_t name = strlen(a->name);
    bool is_trimmed = size == 0 || (!strchr(" \t\n", text[0]) && !strchr(" \t\n", text[size - 1]));
    return is_trimmed && values_is_utf8(text, size) && !memchr(text, '\0', size) &&
           !memchr(text, '\r', size) && !strpbrk(a->name, ":\n\r#") && a->name[0] != ' ' &&
           a->name[name - 1] != ' ' && !is_reserved(a->name) && !is_among(a->name, fields);
}

/* Prints a pair for each attribute that is a text, and reports the others. */
static cli_exit print_keys(FILE *stream, foreign_writer *self, const foreign_node *node)
{
    for (size_t i = 0; i < node->n_attributes; i++) {
        const foreign_attribute *a = &node->attributes[i];
        size_t size;
        const packed_value value = {a->value, a->size};
        const char *text = values_is_bytes(value) ? NULL : values_text(value, &size);
        if (!node->is_group && is_among(a->name, "nrrd,affine,spacing,axis_units,units"))
            continue;
        if (node->is_group || !text || !is_pair(a, text, size)) {
            CLI_TRY(foreign_lose_writing(self, "%s: the attribute %s", node->key, a->name));
            continue;
        }
        fprintf(stream, "%s:=", a->name);
        print_value(stream, text, size, true);
    }
    return CLI_OK;
}

/* Prints the fields that describe the items. */
static cli_exit print_storage(FILE *stream, const foreign_writer *self, const nrrd_writer *w,
                              const foreign_node *node)
{
    const char *dtype = node->dtype;
    const struct type *type = NULL;
    bool ordered = *dtype == '<' || *dtype == '>';
    for (size_t i = 0; i < N_TYPES && !type; i++)
        if (strcmp(types[i].dtype, dtype + ordered) == 0) type = &types[i];
    fputs("NRRD0005\n", stream);
    if (type)
        fprintf(stream, "type: %.*s\n", (int)strcspn(type->names, ","), type->names);
    else
        fprintf(stream, "type: block\nblock size: %lld\n", (long long)node->item_size);
    if (!type && strncmp(dtype, "|V", 2) != 0)
        return cli_fail(CLI_UNSUPPORTED, "%s: NRRD has no type for items of the dtype %s",
                        self->path, dtype);
    fprintf(stream, "dimension: %d\nsizes:", node->ndim);
    for (int d = 0; d < node->ndim; d++) fprintf(stream, " %lld", (long long)node->shape[d]);
    if (ordered) fprintf(stream, "\nendian: %s", *dtype == '>' ? "big" : "little");
    fprintf(stream, "\nencoding: %s\n", w->is_packed ? "gzip" : "raw");
    return CLI_OK;
}

static cli_exit print_header(FILE *stream, foreign_writer *self, const foreign_node *node)
{
    const nrrd_writer *w = self->own;
    header h = {0};
    cli_exit code = print_storage(stream, self, w, node);
    if (code == CLI_OK) code = header_of_map(values_of(node, "nrrd"), &h);
    if (code == CLI_OK) print_fields(stream, node, &h);
    if (code == CLI_OK) code = print_keys(stream, self, node);
    header_free(&h);
    if (code != CLI_OK) return code;
    const char *slash = w->single ? NULL : strrchr(w->items.path, '/');
    if (!w->single) fprintf(stream, "data file: %s\n", slash ? slash + 1 : w->items.path);
    fputc('\n', stream);
    return CLI_OK;
}

static cli_exit add(foreign_writer *self, foreign_node *node)
{
    nrrd_writer *w = self->own;
    if (node->is_group) return print_keys(NULL, self, node);
    if (w->begun)
        return cli_fail(CLI_UNSUPPORTED, "%s: an NRRD file is one array; %s is another one",
                        self->path, node->key);
    if (node->ndim < 1)
        return cli_fail(CLI_UNSUPPORTED, "%s: an NRRD file has 1 to 16 axes, but %s has none",
                        self->path, node->key);
    CLI_TRY(items_size(self->path, node, &w->size));
    FILE *stream = open_memstream(&w->text, &w->text_size);
    if (!stream) return cli_fail(CLI_IO, "out of memory");
    cli_exit code = print_header(stream, self, node);
    if (fclose(stream) != 0 && code == CLI_OK) code = cli_fail(CLI_IO, "out of memory");
    CLI_TRY(code);
    node->first_axis_fastest = node->ndim > 1;
    memset(node->chunk_shape, 0, sizeof node->chunk_shape);
    w->begun = true;
    return spool_open(&w->spool, self->path);
}

static cli_exit write_items(nrrd_writer *w)
{
    packer p;
    if (w->single) CLI_TRY(output_write(&w->items, w->text, w->text_size));
    cli_exit code = packer_begin(&p, &w->items, w->is_packed ? PACKING_GZIP : PACKING_NONE);
    if (code == CLI_OK) code = packer_write_spool(&p, &w->spool, 0, w->size);
    return packer_end(&p, code);
}

static cli_exit finish(foreign_writer *self)
{
    nrrd_writer *w = self->own;
    cli_exit code = CLI_OK;
    if (!w->begun)
        code = cli_fail(CLI_UNSUPPORTED, "%s: an NRRD file needs one array", self->path);
    if (code == CLI_OK) code = write_items(w);
    if (code == CLI_OK && !w->single) code = output_write(&w->head, w->text, w->text_size);
    if (code == CLI_OK) code = output_finish(&w->items);
    if (code == CLI_OK && !w->single) code = output_finish(&w->head);
    release(w);
    return code;
}

static cli_exit create_nrrd(foreign_writer *writer, bool force)
{
    nrrd_writer *w = cli_alloc(sizeof *w);
    if (!w) return CLI_IO;
    *w = (nrrd_writer){.head.fd = -1, .items.fd = -1, .spool.fd = -1, .is_packed = true};
    size_t size = strlen(writer->path);
    w->single = size < 5 || strcasecmp(writer->path + size - 5, ".nhdr") != 0;
    char *items = NULL;
    cli_exit code = CLI_OK;
    if (!w->single) {
        items = cli_alloc(size + 4);
        code = items ? output_open(&w->head, writer->path, force) : CLI_IO;
        if (items) snprintf(items, size + 4, "%.*sraw.gz", (int)size - 4, writer->path);
    }
    if (code == CLI_OK) code = output_open(&w->items, items ? items : writer->path, force);
    free(items);
    if (code != CLI_OK) {
        release(w);
        return code;
    }
    writer->own = w;
    writer->add = add;
    writer->write = write_box;
    writer->finish = finish;
    writer->abandon = abandon;
    return CLI_OK;
}

const foreign_format foreign_nrrd = {FOREIGN_INTERFACE, "nrrd", open_nrrd, create_nrrd};
