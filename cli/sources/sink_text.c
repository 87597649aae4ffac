/* Room: cli/sources. Text as a sink: items in C order, a line for each row, formatted by
 * item_print.c. Lines are collected in memory and passed to the output, so that a failed write is
 * detected. */
#include "formats/descr.h"
#include "sources/sink.h"
#include "terminal/output.h"

#include <stdio.h>
#include <stdlib.h>

#define FLUSH_SIZE 65536

typedef struct text_sink {
    sink base;
    output out;
    array_shape shape;
    caterva_dtype *dtype;
    item_style style;
    int64_t printed; /* number of printed items */
    FILE *stream;    /* writes into `text` */
    char *text;
    size_t text_size;
} text_sink;

static cli_exit flush_text(text_sink *s)
{
    if (fflush(s->stream) != 0) return cli_fail(CLI_IO, "no memory for text");
    CLI_TRY(output_write(&s->out, s->text, s->text_size));
    rewind(s->stream);
    return CLI_OK;
}

static int64_t row_length(const array_shape *shape)
{
    return shape->ndim ? shape->shape[shape->ndim - 1] : 1;
}

/* Prints "# [i,j,:,:]" before each page of rows, if there are more than two axes. */
static void print_page_title(text_sink *s)
{
    int last = s->shape.ndim - 2; /* the axes before it name the page */
    if (last <= 0) return;
    int64_t page = row_length(&s->shape) * s->shape.shape[last];
    if (s->printed % page != 0) return;
    int64_t index[CATERVA_MAX_DIMS], rest = s->printed / page;
    for (int d = last - 1; d >= 0; d--) {
        index[d] = rest % s->shape.shape[d];
        rest /= s->shape.shape[d];
    }
    fputs(s->printed ? "\n# [" : "# [", s->stream);
    for (int d = 0; d < last; d++) fprintf(s->stream, "%lld,", (long long)index[d]);
    fputs(":,:]\n", s->stream);
}

static cli_exit write_text(sink *self, const box *b, const void *src)
{
    text_sink *s = (text_sink *)self;
    const uint8_t *at = src;
    int64_t row = row_length(&s->shape);
    for (int64_t n = box_items(b, s->shape.ndim); n > 0; n--) {
        if (s->printed % row == 0) print_page_title(s);
        item_print(s->stream, s->dtype, at, &s->style);
        s->printed++;
        fputc(s->printed % row == 0 ? '\n' : s->style.csv ? ',' : ' ', s->stream);
        at += s->shape.item_size;
        if (ftell(s->stream) < FLUSH_SIZE) continue;
        CLI_TRY(flush_text(s));
        if (cli_interrupted()) return CLI_INTERRUPTED;
    }
    return CLI_OK;
}

static void release(text_sink *s)
{
    if (s->stream) fclose(s->stream);
    free(s->text);
    caterva_dtype_free(s->dtype);
    free(s);
}

static cli_exit finish_text(sink *self)
{
    text_sink *s = (text_sink *)self;
    cli_exit code = flush_text(s);
    if (code == CLI_OK)
        code = output_finish(&s->out);
    else
        output_abandon(&s->out);
    release(s);
    return code;
}

static void abandon_text(sink *self)
{
    text_sink *s = (text_sink *)self;
    output_abandon(&s->out);
    release(s);
}

cli_exit sink_of_text(const cli_args *args, const char *path, bool csv, const source *from,
                      sink **out)
{
    text_sink *s = cli_alloc(sizeof *s);
    if (!s) return CLI_IO;
    *s = (text_sink){.shape = from->shape, .out.fd = -1};
    s->style = (item_style){.precision = (int)args->precision, .csv = csv};
    s->base.in_order = true;
    s->base.write = write_text;
    s->base.finish = finish_text;
    s->base.abandon = abandon_text;
    transfer_neutral(s->base.align, s->base.stretch);
    cli_exit code = descr_parse(CLI_CORRUPT, "the array", from->dtype, &s->dtype);
    if (code == CLI_OK) code = output_open(&s->out, path, args->force);
    if (code == CLI_OK && !(s->stream = open_memstream(&s->text, &s->text_size)))
        code = cli_fail(CLI_IO, "no memory for text");
    *out = &s->base;
    if (code != CLI_OK) abandon_text(&s->base);
    return code;
}
