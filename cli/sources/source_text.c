/* Room: cli/sources. CSV and text as a source. The file is parsed once into memory, because the
 * number of rows and the type are known only at its end. Reads the output of sink_text.c: rows are
 * lines, cells are separated by commas or blanks, empty lines and those that begin with '#' are
 * ignored, as is the byte order mark with which spreadsheets begin UTF-8. */
#include "formats/descr.h"
#include "formats/item.h"
#include "formats/numbers.h"
#include "sources/probe.h"
#include "sources/strides.h"
#include "terminal/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct text_source {
    source base;
    uint8_t *items;
} text_source;

/* A parser that reads a text cell by cell. Each new cell overwrites `cell`. */
typedef struct cells {
    const char *path;
    const char *at;
    bool csv;
    int64_t line, column; /* position of the next cell, from 1 */
    bool ends_row;
    char *cell;
    size_t room;
} cells;

/* ---- Cells ---------------------------------------------------------------- */

static cli_exit fail_memory(const cells *c)
{
    return cli_fail(CLI_IO, "%s: no memory for a text of this size", c->path);
}

/* Moves to the next line with cells; false at the end. */
static bool next_row(cells *c)
{
    for (;;) {
        const char *at = c->at + strspn(c->at, " \t\r");
        if (!*at) return false;
        if (*at != '\n' && *at != '#') break;
        c->at = strchr(at, '\n');
        if (!c->at) {
            c->at = at + strlen(at);
            return false;
        }
        c->at++;
        c->line++;
    }
    c->column = 0;
    return true;
}

static bool add_character(cells *c, size_t *size, char character)
{
    if (*size + 1 >= c->room) {
        size_t room = c->room ? 2 * c->room : 256;
        char *cell = realloc(c->cell, room);
        if (!cell) return false;
        c->cell = cell;
        c->room = room;
    }
    c->cell[(*size)++] = character;
    c->cell[*size] = '\0';
    return true;
}

/* Reads a quoted cell, from its opening to its closing quote. Two quotes inside it are one
 * quote. */
static cli_exit take_quoted(cells *c, size_t *size)
{
    int64_t line = c->line;
    for (c->at++;; c->at++) {
        if (!*c->at)
            return cli_fail(CLI_CORRUPT,
                            "%s: line %lld, column %lld: the quote is not closed", c->path,
                            (long long)line, (long long)c->column);
        c->line += *c->at == '\n';
        if (*c->at == '"' && *++c->at != '"') return CLI_OK;
        if (!add_character(c, size, *c->at)) return fail_memory(c);
    }
}

static cli_exit next_cell(cells *c)
{
    size_t size = 0;
    const char *ends = c->csv ? ",\n" : " \t\r\n";
    c->column++;
    c->at += strspn(c->at, " \t");
    if (c->room) c->cell[0] = '\0';
    if (!c->cell && !add_character(c, &size, '\0')) return fail_memory(c);
    size = 0;
    if (*c->at == '"') CLI_TRY(take_quoted(c, &size));
    while (*c->at && !strchr(ends, *c->at))
        if (!add_character(c, &size, *c->at++)) return fail_memory(c);
    while (size > 0 && strchr(" \t\r", c->cell[size - 1])) c->cell[--size] = '\0';
    if (!c->csv) c->at += strspn(c->at, " \t\r");
    c->ends_row = !*c->at || *c->at == '\n';
    c->line += *c->at == '\n';
    c->at += *c->at != '\0' && (c->csv || c->ends_row);
    return CLI_OK;
}

static void rewind_to(cells *c, const char *text)
{
    c->at = text;
    c->line = 1;
}

/* ---- Shape and type ------------------------------------------------------- */

typedef struct table {
    int64_t n_rows, n_columns;
    bool has_header; /* the first row has words and no number or item */
    bool integers;   /* all numbers are integers that fit int64 */
} table;

static bool is_integer(const char *text)
{
    int64_t value;
    const char *end = text;
    return number_scan(&end, &value) && !*end;
}

static bool is_number(const char *text)
{
    char *end;
    (void)strtod(text, &end);
    return end != text && !*end;
}

static cli_exit check_width(const cells *c, const table *t)
{
    if (c->column == t->n_columns) return CLI_OK;
    return cli_fail(CLI_CORRUPT, "%s: line %lld has %lld cells, but the first row has %lld",
                    c->path, (long long)(c->line - c->ends_row), (long long)c->column,
                    (long long)t->n_columns);
}

static cli_exit survey(cells *c, table *t)
{
    *t = (table){.integers = true};
    while (next_row(c)) {
        bool numbers = false, words = false, integers = true;
        do {
            CLI_TRY(next_cell(c));
            bool number = is_number(c->cell);
            numbers = numbers || number;
            words = words || (*c->cell && !number);
            integers = integers && is_integer(c->cell);
        } while (!c->ends_row);
        if (t->n_rows == 0) {
            t->n_columns = c->column;
            t->has_header = words && !numbers;
        }
        CLI_TRY(check_width(c, t));
        if (t->n_rows > 0 || !t->has_header) t->integers = t->integers && integers;
        t->n_rows++;
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    return CLI_OK;
}

/* ---- Items ------------------------------------------------------------------ */

static const char *text_of(const cells *c, const caterva_dtype *dtype)
{
    bool missing = !*c->cell && (dtype->kind == 'f' || dtype->kind == 'c');
    return missing ? "nan" : c->cell;
}

/* Decides again whether the first row is a header. The row is data if one of its cells is an item
 * of `dtype`, such as a date, or if the items are text. */
static cli_exit check_header(cells *c, const caterva_dtype *dtype, table *t)
{
    if (!strchr("biufcmM", dtype->kind)) t->has_header = false;
    if (!t->has_header || !next_row(c)) return CLI_OK;
    uint8_t *item = cli_alloc((size_t)dtype->item_size);
    cli_exit code = item ? CLI_OK : CLI_IO;
    if (code == CLI_OK) do {
            code = next_cell(c);
            if (code == CLI_OK && *c->cell && item_read(dtype, c->cell, item))
                t->has_header = false;
        } while (code == CLI_OK && !c->ends_row);
    free(item);
    return code;
}

static cli_exit parse_cell(const cells *c, const caterva_dtype *dtype, uint8_t *item)
{
    char where[400];
    snprintf(where, sizeof where, "%.300s: line %lld, column %lld", c->path,
             (long long)(c->line - c->ends_row), (long long)c->column);
    return item_parse(where, dtype, text_of(c, dtype), item);
}

static cli_exit parse_rows(cells *c, const table *t, const caterva_dtype *dtype,
                           uint8_t *items)
{
    for (int64_t row = 0; next_row(c); row++) {
        do {
            CLI_TRY(next_cell(c));
            if (row == 0 && t->has_header) continue;
            CLI_TRY(parse_cell(c, dtype, items));
            items += dtype->item_size;
        } while (!c->ends_row);
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    return CLI_OK;
}

static cli_exit read_box(source *self, const box *b, void *dst)
{
    const text_source *s = (const text_source *)self;
    const array_shape *shape = &self->shape;
    strided_copy copy = {.ndim = shape->ndim, .item_size = shape->item_size};
    int64_t first = 0, stride = shape->item_size;
    for (int d = shape->ndim - 1; d >= 0; d--) {
        copy.counts[d] = b->stop[d] - b->start[d];
        copy.src_strides[d] = stride;
        first += b->start[d] * stride;
        stride *= shape->shape[d];
    }
    strides_of_box(b, shape->ndim, shape->item_size, copy.dst_strides);
    strided_copy_run(&copy, s->items + first, dst);
    return CLI_OK;
}

static void close_text(source *self) { free(((text_source *)self)->items); }

static int64_t count_items(const array_shape *shape)
{
    int64_t n = shape->ndim > 0;
    for (int d = 0; d < shape->ndim; d++)
        if (__builtin_mul_overflow(n, shape->shape[d], &n)) return -1;
    return n;
}

/* Sets the shape: `wanted`, if it is not NULL and has as many items as the text; otherwise one axis
 * for one column, two axes for several. The number of axes does not depend on the rows. */
static void take_shape(text_source *s, const table *t, const array_shape *wanted)
{
    array_shape *shape = &s->base.shape;
    int64_t rows = t->n_rows - t->has_header;
    if (wanted && wanted->ndim > 0 && count_items(wanted) == rows * t->n_columns) {
        *shape = *wanted;
        return;
    }
    shape->ndim = t->n_columns <= 1 ? 1 : 2;
    shape->shape[0] = rows;
    shape->shape[1] = t->n_columns;
}

/* Parses all items. `described` is their dtype, or NULL if they are numbers. */
static cli_exit parse_text(text_source *s, cells *c, const char *text,
                           const array_shape *wanted, const char *described)
{
    table t;
    caterva_dtype *dtype;
    rewind_to(c, text);
    CLI_TRY(survey(c, &t));
    if (!described) described = t.integers ? "<i8" : "<f8";
    CLI_TRY(descr_parse(CLI_USAGE, "--dtype", described, &dtype));
    rewind_to(c, text);
    cli_exit code = check_header(c, dtype, &t);
    take_shape(s, &t, wanted);
    s->base.shape.item_size = dtype->item_size;
    s->base.dtype = cli_copy_text(described);
    size_t n = (size_t)(t.n_rows - t.has_header) * (size_t)t.n_columns;
    s->items = cli_alloc(n > 0 ? n * (size_t)dtype->item_size : 1);
    rewind_to(c, text);
    if (!s->items || !s->base.dtype) code = CLI_IO;
    if (code == CLI_OK) code = parse_rows(c, &t, dtype, s->items);
    caterva_dtype_free(dtype);
    return code;
}

/* ---- The file ---------------------------------------------------------------- */

static cli_exit read_whole(int fd, const char *path, const probe *opened, char **out)
{
    size_t size = opened->head_size, room = 1 << 16, got;
    char *text = malloc(room);
    if (text) memcpy(text, opened->head, size);
    do {
        if (text && size + 2 > room) {
            room *= 2;
            char *more = realloc(text, room);
            if (!more) free(text);
            text = more;
        }
        if (!text) return cli_fail(CLI_IO, "%s: no memory for a text of this size", path);
        cli_exit code = stream_read(fd, path, text + size, room - size - 1, &got);
        if (code != CLI_OK) {
            free(text);
            return code;
        }
        size += got;
    } while (got > 0);
    text[size] = '\0';
    if (strlen(text) == size) {
        *out = text;
        return CLI_OK;
    }
    free(text);
    return cli_fail(CLI_CORRUPT, "%s is not text: it contains a NUL", path);
}

cli_exit source_of_text(const char *path, probe *opened, bool csv, const array_shape *shape,
                        const char *dtype, source **out)
{
    bool standard = strcmp(path, "-") == 0;
    cells c = {.path = standard ? "standard input" : path, .csv = csv};
    char *text = NULL;
    const char *mark = "\xef\xbb\xbf"; /* U+FEFF in UTF-8 */
    if (opened->fd < 0 && standard) opened->fd = STDIN_FILENO;
    if (opened->fd < 0) opened->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (opened->fd < 0) return cli_fail_sys("cannot open %s", path);
    CLI_TRY(read_whole(opened->fd, c.path, opened, &text));
    text_source *s = cli_alloc(sizeof *s);
    cli_exit code = s ? CLI_OK : CLI_IO;
    if (s) {
        *s = (text_source){.base = {.read = read_box, .close = close_text}};
        transfer_neutral(s->base.align, s->base.stretch);
        bool marked = strncmp(text, mark, strlen(mark)) == 0;
        code = parse_text(s, &c, marked ? text + strlen(mark) : text, shape, dtype);
    }
    if (code == CLI_OK)
        *out = &s->base;
    else if (s)
        source_close(&s->base);
    free(c.cell);
    free(text);
    return code;
}
