/* Room: cli/commands. `caterva diff`: compares attributes by name, in any order, and dimension
 * names, whichever attribute holds them. Two values are equal if they convert to the same JSON, so
 * the width of a MessagePack number does not matter. */
#include "commands/diff_attributes.h"

#include "formats/value.h"
#include "sources/described.h"
#include "sources/dims.h"

#include <caterva_value.h>
#include <stdlib.h>
#include <string.h>

/* A value of one side. A long value is never read as a whole, because a few bytes of a file can
 * decompress to gigabytes. Its size is kept, and its bytes are compared in pieces. */
typedef struct value {
    void *bytes; /* NULL: the value is long */
    size_t size;
    bool is_there;
} value;

enum { LONG_VALUE = 1 << 20, PIECE = 1 << 20 };

typedef struct comparison {
    const attribute_sides *sides;
    const char *const *dims[2]; /* dimension names of each side; NULL: none */
    bool is_listed;       /* a JSON list is open */
    int64_t n;
} comparison;

static bool enough(const comparison *c) { return c->sides->quiet && c->n > 0; }

/* ---- Reports ---------------------------------------------------------------- */

static void print_begin(const comparison *c)
{
    printf("%s and %s: ", cli_show_place(c->sides->side[0]->path).text,
           cli_show_place(c->sides->side[1]->path).text);
}

static void print_value(const value *v)
{
    enum { LONGEST = 60 };
    char *text = v->bytes ? value_text(v->bytes, v->size) : NULL;
    if (!text) {
        printf("%zu bytes", v->size);
        return;
    }
    if (strlen(text) > LONGEST) { /* cut at the start of a UTF-8 sequence */
        size_t size = LONGEST;
        while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80) size--;
        memcpy(text + size, "...", 4);
    }
    fputs(cli_show(text).text, stdout);
    free(text);
}

static void print_difference(const comparison *c, const char *name, const value v[2])
{
    cli_shown shown = cli_show(name);
    print_begin(c);
    if (!v[0].is_there || !v[1].is_there) {
        printf("only the %s has the attribute '%s'\n", v[0].is_there ? "first" : "second",
               shown.text);
        return;
    }
    printf("the attribute '%s' differs: ", shown.text);
    print_value(&v[0]);
    fputs(" and ", stdout);
    print_value(&v[1]);
    putchar('\n');
}

static cli_exit put_value(json *j, const char *key, const value *v)
{
    if (!v->is_there) return CLI_OK;
    if (v->bytes) return value_print(j, key, v->bytes, v->size);
    json_begin_object(j, key);
    json_put_int(j, "$bytes", (int64_t)v->size);
    json_end_object(j);
    return CLI_OK;
}

static cli_exit put_difference(comparison *c, const char *name, const value v[2])
{
    json *j = c->sides->j;
    if (!c->is_listed) json_begin_array(j, "attributes");
    c->is_listed = true;
    json_begin_object(j, NULL);
    json_put_text(j, "name", name);
    CLI_TRY(put_value(j, "a", &v[0]));
    CLI_TRY(put_value(j, "b", &v[1]));
    json_end_object(j);
    return CLI_OK;
}

static cli_exit report(comparison *c, const char *name, const value v[2])
{
    c->n++;
    if (c->sides->quiet) return CLI_OK;
    if (c->sides->j) return put_difference(c, name, v);
    print_difference(c, name, v);
    return CLI_OK;
}

/* ---- Values ----------------------------------------------------------------- */

/* Reads a value; a long one only if it cannot be read in pieces, in other formats. */
static cli_exit fetch(const comparison *c, int side, const char *name, value *out)
{
    attributes *all = c->sides->side[side];
    bool whole = c->sides->side[0]->node || c->sides->side[1]->node;
    caterva_error err;
    int64_t size = 0;
    *out = (value){.bytes = NULL};
    caterva_status status = attributes_measure(all, name, &size, &err);
    if (status == CATERVA_ENOTFOUND) return CLI_OK;
    out->is_there = status == CATERVA_OK;
    out->size = (size_t)size;
    if (status == CATERVA_OK && (whole || size <= LONG_VALUE))
        status = attributes_get(all, name, &out->bytes, &out->size, &err);
    return status == CATERVA_OK ? CLI_OK : cli_fail_array(all->path, &err);
}

/* Compares two long values byte by byte. */
static cli_exit same_pieces(const comparison *c, const char *name, size_t size, bool *same)
{
    caterva_error err;
    int64_t whole;
    char *pieces[2] = {malloc(PIECE), malloc(PIECE)};
    cli_exit code =
        pieces[0] && pieces[1] ? CLI_OK : cli_fail_sys("no memory for attributes");
    for (size_t at = 0; code == CLI_OK && *same && at < size; at += PIECE) {
        if (cli_interrupted()) code = CLI_INTERRUPTED;
        for (int i = 0; i < 2 && code == CLI_OK; i++)
            if (caterva_attr_read(c->sides->side[i]->array, name, (int64_t)at, pieces[i],
                                  PIECE, &whole, &err) != CATERVA_OK)
                code = cli_fail_array(c->sides->side[i]->path, &err);
        size_t n = size - at < PIECE ? size - at : PIECE;
        *same = code == CLI_OK && memcmp(pieces[0], pieces[1], n) == 0;
    }
    free(pieces[0]);
    free(pieces[1]);
    return code;
}

static bool same_values(const value *a, const value *b)
{
    if (!a->bytes || !b->bytes) return false; /* one is long, the other is not */
    if (a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0) return true;
    char *x = value_text(a->bytes, a->size), *y = value_text(b->bytes, b->size);
    bool same = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

static cli_exit compare_values(comparison *c, const char *name)
{
    value v[2] = {{.bytes = NULL}, {.bytes = NULL}};
    cli_exit code = fetch(c, 0, name, &v[0]);
    if (code == CLI_OK) code = fetch(c, 1, name, &v[1]);
    bool both = v[0].is_there && v[1].is_there;
    bool same = both && (v[0].bytes ? same_values(&v[0], &v[1]) : v[0].size == v[1].size);
    if (code == CLI_OK && same && !v[0].bytes) code = same_pieces(c, name, v[0].size, &same);
    if (code == CLI_OK && !same) code = report(c, name, v);
    caterva_free(v[0].bytes);
    caterva_free(v[1].bytes);
    return code;
}

/* ---- Dimensions ------------------------------------------------------------- */

/* True for an attribute that holds the dimension names of the array: same_dims compares names. */
static bool holds_dims(const comparison *c, int side, const char *name)
{
    static const char *const names[] = {"dims", "dimension_names", "_ARRAY_DIMENSIONS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && c->dims[side]; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static int axes_of(const comparison *c, int side)
{
    const attributes *all = c->sides->side[side];
    if (!c->dims[side]) return 0;
    return all->node ? all->node->ndim : info_of(all->array)->ndim;
}

static bool same_dims(const comparison *c)
{
    if (axes_of(c, 0) != axes_of(c, 1)) return false;
    for (int d = 0; d < axes_of(c, 0); d++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): axes imply names */
        const char *a = c->dims[0][d], *b = c->dims[1][d];
        if (!a != !b || (a && strcmp(a, b) != 0)) return false;
    }
    return true;
}

static void print_dims(const comparison *c, int side)
{
    putchar('(');
    for (int d = 0; d < axes_of(c, side); d++) {
        const char *name = c->dims[side][d];
        printf("%s%s", d ? ", " : "", name ? cli_show(name).text : "-");
    }
    putchar(')');
}

static void put_dims(const comparison *c, int side)
{
    json *j = c->sides->j;
    json_begin_array(j, side ? "b" : "a");
    for (int d = 0; d < axes_of(c, side); d++) json_put_text(j, NULL, c->dims[side][d]);
    json_end_array(j);
}

static void compare_dims(comparison *c)
{
    json *j = c->sides->j;
    if (same_dims(c)) return;
    c->n++;
    if (c->sides->quiet) return;
    if (j) {
        json_begin_object(j, "dims");
        put_dims(c, 0);
        put_dims(c, 1);
        json_end_object(j);
        return;
    }
    print_begin(c);
    fputs("the dims differ: ", stdout);
    print_dims(c, 0);
    fputs(" and ", stdout);
    print_dims(c, 1);
    putchar('\n');
}

/* ---- All attributes --------------------------------------------------------------------- */

static bool is_in(const attributes *all, const char *name)
{
    const char *other;
    for (size_t i = 0; (other = attributes_name(all, i)); i++)
        if (strcmp(name, other) == 0) return true;
    return false;
}

/* Compares the attributes of the first side, then the attributes that only the second side has. */
static cli_exit compare_all(comparison *c)
{
    const char *name;
    attributes *const *side = c->sides->side;
    for (size_t i = 0; (name = attributes_name(side[0], i)) && !enough(c); i++)
        if (!holds_dims(c, 0, name) && !(holds_dims(c, 1, name) && is_in(side[1], name)))
            CLI_TRY(compare_values(c, name));
    for (size_t i = 0; (name = attributes_name(side[1], i)) && !enough(c); i++)
        if (!holds_dims(c, 1, name) && !is_in(side[0], name))
            CLI_TRY(compare_values(c, name));
    return CLI_OK;
}

cli_exit diff_attributes(const attribute_sides *sides, int64_t *n_different)
{
    comparison c = {.sides = sides};
    const char **named[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const foreign_node *node = sides->side[i]->node;
        if (sides->side[i]->array) named[i] = dims_of(sides->side[i]->array);
        c.dims[i] = node ? (const char *const *)node->dims : named[i];
    }
    compare_dims(&c);
    cli_exit code = compare_all(&c);
    if (c.is_listed) json_end_array(sides->j);
    for (int i = 0; i < 2; i++) caterva_free(named[i]);
    *n_different = c.n;
    return code;
}
