/* Room: cli. Options: one table defines the spelling of each option, its value, its field in
 * cli_args and its help text. The parser and the help read this table. A command has a set of bits
 * for its options. */
#include "cli.h"
#include "formats/numbers.h"
#include "words.h"

#include <caterva_upkeep.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef enum value_kind {
    VALUE_FLAG,
    VALUE_TEXT,
    VALUE_TEXTS, /* an option that may be given several times */
    VALUE_INT,
    VALUE_SIZE,
    VALUE_TIME
} value_kind;

typedef struct option {
    uint64_t commands; /* CLI_OPT_* bit of commands that accept the option */
    char letter;
    const char *name;
    const char *value; /* placeholder of the value in the help */
    value_kind kind;
    size_t field; /* offset in cli_args */
    int64_t min, max;
    const char *help;
} option;

#define FIELD(name) offsetof(cli_args, name)

static const option options[] = {
    {CLI_OPT_OUTPUT, 'o', "output", "OUT", VALUE_TEXT, FIELD(output), 0, 0,
     "write to the file OUT instead of standard output"},
    {CLI_OPT_FROM, 0, "from", "FORMAT", VALUE_TEXT, FIELD(from), 0, 0,
     "format, if not detected: raw, npy, b2nd, csv or text"},
    {CLI_OPT_TO, 0, "to", "FORMAT", VALUE_TEXT, FIELD(to), 0, 0,
     "format of the output: raw, npy, b2nd, zarr, text or csv"},
    {CLI_OPT_TO_BINARY, 0, "to", "FORMAT", VALUE_TEXT, FIELD(to), 0, 0,
     "format of the output: raw, npy, b2nd or zarr"},
    {CLI_OPT_SELECT, 0, "select", "SEL", VALUE_TEXT, FIELD(select), 0, 0,
     "take only this selection of the input"},
    {CLI_OPT_SEL, 0, "sel", "NAME=VALUE,...", VALUE_TEXT, FIELD(sel), 0, 0,
     "select by coordinates: 'time=2020-01:2020-02,lat=45'"},
    {CLI_OPT_SEL, 0, "nearest", NULL, VALUE_FLAG, FIELD(nearest), 0, 0,
     "with --sel: take the nearest item to a single value"},
    {CLI_OPT_SHAPE, 0, "shape", "N,N,...", VALUE_TEXT, FIELD(shape), 0, 0,
     "shape of the array; '()' for no axes"},
    {CLI_OPT_DTYPE, 0, "dtype", "DTYPE", VALUE_TEXT, FIELD(dtype), 0, 0,
     "type of the items as in NumPy: '<f4', '|S8', '<M8[ns]'"},
    {CLI_OPT_FIELD, 0, "field", "NAME", VALUE_TEXT, FIELD(field), 0, 0,
     "take this field of structured items; 'a.b' if it is nested"},
    {CLI_OPT_ASTYPE, 0, "astype", "DTYPE", VALUE_TEXT, FIELD(astype), 0, 0,
     "convert the items to this type"},
    {CLI_OPT_ASTYPE, 0, "casting", "RULE", VALUE_TEXT, FIELD(casting), 0, 0,
     "allowed conversions: safe, same_kind, unsafe (same_kind)"},
    {CLI_OPT_CAST_INPUT, 0, "astype", "DTYPE", VALUE_TEXT, FIELD(astype), 0, 0,
     "convert the input to this type, which must be FILE's"},
    {CLI_OPT_CAST_INPUT, 0, "casting", "RULE", VALUE_TEXT, FIELD(casting), 0, 0,
     "convert the input to FILE's dtype: safe, same_kind or unsafe"},
    {CLI_OPT_VIEW_DTYPE, 0, "view-dtype", "DTYPE", VALUE_TEXT, FIELD(view_dtype), 0, 0,
     "reinterpret the items as this type of the same size"},
    {CLI_OPT_OFFSET, 0, "offset", "SIZE", VALUE_SIZE, FIELD(offset), 0, INT64_MAX,
     "bytes to skip at the start of a raw input"},
    {CLI_OPT_PARTITION, 0, "chunks", "N,N,...", VALUE_TEXT, FIELD(chunks), 0, 0,
     "chunk shape (chosen by default)"},
    {CLI_OPT_PARTITION, 0, "blocks", "N,N,...", VALUE_TEXT, FIELD(blocks), 0, 0,
     "block shape (chosen by default)"},
    {CLI_OPT_PARTITION, 0, "codec", "NAME[:META]", VALUE_TEXT, FIELD(codec), 0, 0,
     "blosclz, lz4, lz4hc, zlib, zstd, ... (zstd)"},
    {CLI_OPT_PARTITION, 0, "level", "N", VALUE_INT, FIELD(level), 0, 9,
     "compression level 0 to 9 (zstd 2, for bytes 3; others 5)"},
    {CLI_OPT_PARTITION, 0, "filters", "NAME[:META],...", VALUE_TEXT, FIELD(filters), 0, 0,
     "filters in this order, or none (shuffle, for bytes none)"},
    {CLI_OPT_PARTITION, 0, "sparse", NULL, VALUE_FLAG, FIELD(sparse), 0, 0,
     "write a directory with one file per chunk"},
    {CLI_OPT_CONTIGUOUS, 0, "contiguous", NULL, VALUE_FLAG, FIELD(contiguous), 0, 0,
     "write one file instead of a directory"},
    {CLI_OPT_FOR_REMOTE, 0, "for-remote", NULL, VALUE_FLAG, FIELD(for_remote), 0, 0,
     "store the chunk layouts together, for readers of URLs"},
    {CLI_OPT_ZARR, 0, "zarr", NULL, VALUE_FLAG, FIELD(zarr), 0, 0,
     "make a directory that Zarr v3 readers read, too"},
    {CLI_OPT_PARTITION, 0, "metalayer", "KIND", VALUE_TEXT, FIELD(metalayer), 0, 0,
     "b2nd, or caterva for old readers (no dtype)"},
    {CLI_OPT_AXIS, 0, "axis", "N", VALUE_INT, FIELD(axis), -CATERVA_MAX_DIMS,
     CATERVA_MAX_DIMS - 1, "axis to grow along (0)"},
    {CLI_OPT_FOLLOW, 0, "every", "N|TIME", VALUE_TEXTS, FIELD(every), 0, 0,
     "commit after N items, or 5s, 500ms, 2m; may be given twice"},
    {CLI_OPT_FOLLOW, 0, "follow", NULL, VALUE_FLAG, FIELD(follow), 0, 0,
     "read raw items until the end; commit every second (--every)"},
    {CLI_OPT_WAIT, 0, "wait", "TIME", VALUE_TIME, FIELD(wait), 0, INT64_MAX,
     "wait up to this long for a busy file: 30s, 500ms, 2m (0)"},
    {CLI_OPT_PART, 0, "part", "JOB", VALUE_TEXT, FIELD(part), 0, 0,
     "write a part of this job, for 'caterva jobs merge'"},
    {CLI_OPT_PART, 'o', "output", "TOKEN", VALUE_TEXT, FIELD(output), 0, 0,
     "with --part: write the token here, not to standard output"},
    {CLI_OPT_JOBS, 0, "last", NULL, VALUE_FLAG, FIELD(last), 0, 0,
     "if parts overlap, take the items of the last token"},
    {CLI_OPT_JOBS, 0, "live", NULL, VALUE_FLAG, FIELD(live), 0, 0,
     "delete a job even if its coordinator is running"},
    {CLI_OPT_PUBLISH, 0, "if-match", "ETAG", VALUE_TEXT, FIELD(if_match), 0, 0,
     "replace the object only if it has this ETag (with quotes)"},
    {CLI_OPT_PUBLISH, 0, "part-size", "SIZE", VALUE_SIZE, FIELD(part_size), 5 << 20,
     (int64_t)5 << 30, "s3://: size of upload parts for larger files (8MiB)"},
    {CLI_OPT_PUBLISH, 0, "resume", "STATE", VALUE_TEXT, FIELD(resume), 0, 0,
     "keep the state of an upload in this file, and resume it"},
    {CLI_OPT_PUBLISH, 0, "abandon", NULL, VALUE_FLAG, FIELD(abandon), 0, 0,
     "with --resume: abort that upload instead"},
    {CLI_OPT_PUBLISH, 0, "read-url", "URL", VALUE_TEXT, FIELD(read_url), 0, 0,
     "read the object from here, if URL is write-only"},
    {CLI_OPT_SKIP, 0, "skip-damaged", NULL, VALUE_FLAG, FIELD(skip_damaged), 0, 0,
     "replace unreadable chunks by the fill"},
    {CLI_OPT_FILL, 0, "fill", "V", VALUE_TEXT, FIELD(fill), 0, 0,
     "value of the items: a number, text, nan, uninit"},
    {CLI_OPT_MEMORY, 0, "memory", "SIZE", VALUE_SIZE, FIELD(memory), 4096, INT64_MAX,
     "memory limit for items in transfer (256MiB)"},
    {CLI_OPT_CSV, 0, "csv", NULL, VALUE_FLAG, FIELD(csv), 0, 0, "separate values by commas"},
    {CLI_OPT_PRECISION, 0, "precision", "N", VALUE_INT, FIELD(precision), 1, 40,
     "significant digits of floats (as many as needed)"},
    {CLI_OPT_TUNE, 0, "read", "SEL", VALUE_TEXTS, FIELD(reads), 0, 0,
     "a read to optimise; repeat the option for each kind of read"},
    {CLI_OPT_TUNE, 0, "time", "TIME", VALUE_TIME, FIELD(time), 1, INT64_MAX,
     "stop trying after this time: 30s, 500ms, 2m (10s)"},
    {CLI_OPT_TUNE, 0, "prefer", "WHAT", VALUE_TEXT, FIELD(prefer), 0, 0,
     "criterion: size, speed or balance of both (balance)"},
    {CLI_OPT_LIST_CHUNKS, 0, "chunks", NULL, VALUE_FLAG, FIELD(list_chunks), 0, 0,
     "list every chunk"},
    {CLI_OPT_GUESS, 0, "guess", NULL, VALUE_FLAG, FIELD(guess), 0, 0,
     "without an index, number the chunks by position"},
    {CLI_OPT_QUICK, 0, "quick", NULL, VALUE_FLAG, FIELD(quick), 0, 0,
     "check the structure only, decode nothing"},
    {CLI_OPT_PICTURE, 0, "png", "OUT", VALUE_TEXT, FIELD(png), 0, 0,
     "write a PNG file instead of showing the picture"},
    {CLI_OPT_PICTURE, 0, "cmap", "NAME", VALUE_TEXT, FIELD(cmap), 0, 0,
     "gray, viridis, magma, inferno, plasma, turbo, hot, coolwarm"},
    {CLI_OPT_PICTURE, 0, "range", "LO,HI", VALUE_TEXT, FIELD(range), 0, 0,
     "values of the first and last colour (smallest and largest)"},
    {CLI_OPT_RGB, 0, "rgb", "WHEN", VALUE_TEXT, FIELD(rgb), 0, 0,
     "a last axis of 3 or 4 is colours: auto (uint8), yes, no"},
    {CLI_OPT_RGB, 0, "transpose", NULL, VALUE_FLAG, FIELD(transpose), 0, 0,
     "exchange rows and columns: for images whose first axis is x"},
    {CLI_OPT_DIFF, 0, "atol", "X", VALUE_TEXT, FIELD(atol), 0, 0,
     "absolute tolerance of numbers (0)"},
    {CLI_OPT_DIFF, 0, "rtol", "X", VALUE_TEXT, FIELD(rtol), 0, 0,
     "relative tolerance, to the number in B (0)"},
    {CLI_OPT_DIFF, 0, "max", "N", VALUE_INT, FIELD(max), 0, INT64_MAX,
     "print at most N differences (10)"},
    {CLI_OPT_DIFF, 0, "no-attributes", NULL, VALUE_FLAG, FIELD(no_attributes), 0, 0,
     "do not compare attributes"},
    {CLI_OPT_DIFF, 'q', "quiet", NULL, VALUE_FLAG, FIELD(quiet), 0, 0,
     "print nothing, only set the exit status"},
    {CLI_OPT_BINS, 0, "bins", "N", VALUE_INT, FIELD(bins), 1, CATERVA_MAX_BINS,
     "a histogram of N bins"},
    {CLI_OPT_BINS, 0, "range", "LO,HI", VALUE_TEXT, FIELD(range), 0, 0,
     "bounds of the histogram (smallest and largest finite number)"},
    {CLI_OPT_LIST, 'l', "long", NULL, VALUE_FLAG, FIELD(long_lines), 0, 0,
     "print kind, shape, type and stored bytes of each"},
    {CLI_OPT_LIST, 'r', "recursive", NULL, VALUE_FLAG, FIELD(recursive), 0, 0,
     "list groups within groups too"},
    {CLI_OPT_CONVERT, 0, "strict", NULL, VALUE_FLAG, FIELD(strict), 0, 0,
     "fail if the output cannot hold everything of the input"},
    {CLI_OPT_CONVERT, 0, "verify", NULL, VALUE_FLAG, FIELD(verify), 0, 0,
     "read the output again and compare every item with the input"},
    {CLI_OPT_CONVERT, 0, "dry-run", NULL, VALUE_FLAG, FIELD(dry_run), 0, 0,
     "list what would be converted, and write nothing"},
    {CLI_OPT_CONVERT, 0, "resume", NULL, VALUE_FLAG, FIELD(go_on), 0, 0,
     "keep OUT.partial after an interruption, and go on with it"},
    {CLI_OPT_CONVERT, 0, "keep-chunks", NULL, VALUE_FLAG, FIELD(keep_chunks), 0, 0,
     "to HDF5: move the chunks; readers need the Blosc2 filter"},
    {CLI_OPT_SHORT, 0, "short", NULL, VALUE_FLAG, FIELD(short_lines), 0, 0,
     "one line per file, its name last"},
    {CLI_OPT_JSON, 0, "json", NULL, VALUE_FLAG, FIELD(json), 0, 0, "print one JSON object"},
    {CLI_OPT_FORCE, 'f', "force", NULL, VALUE_FLAG, FIELD(force), 0, 0,
     "replace an existing result"},
    {CLI_OPT_COMPACT_AT, 0, "compact-at", "PERCENT", VALUE_INT, FIELD(compact_at), 0, 100,
     "compact FILE if this share is dead space, 0: never (50)"},
    {CLI_OPT_REMOTE, 0, "trace", NULL, VALUE_FLAG, FIELD(trace), 0, 0,
     "list the requests for a URL on stderr"},
    {CLI_OPT_REMOTE, 0, "ca-file", "FILE", VALUE_TEXT, FIELD(ca_file), 0, 0,
     "CA certificates for https servers instead of the system's"},
    {CLI_OPT_SERVE, 0, "port", "N", VALUE_INT, FIELD(port), 0, 65535,
     "port, 0 for any free one (8080)"},
    {CLI_OPT_SERVE, 0, "bind", "ADDRESS", VALUE_TEXT, FIELD(bind), 0, 0,
     "listen at this address; 0.0.0.0 or :: for all (127.0.0.1)"},
    {CLI_OPT_THREADS, 'T', "threads", "N", VALUE_INT, FIELD(threads), 0, 1024,
     "threads, 0 for all cores (0)"},
    {CLI_OPT_NO_PROGRESS, 0, "no-progress", NULL, VALUE_FLAG, FIELD(no_progress), 0, 0,
     "no progress bar"},
    {~UINT64_C(0), 'h', "help", NULL, VALUE_FLAG, FIELD(help), 0, 0, "print this help"},
};
#define N_OPTIONS (sizeof options / sizeof options[0])

/* argv during parsing; `next` is the first argument that was not parsed yet. */
typedef struct argument_list {
    const cli_command *command;
    int argc;
    char **argv;
    int next;
} argument_list;

static const option *find_name(const cli_command *command, const char *name, size_t size)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (command->options & options[i].commands && strlen(options[i].name) == size &&
            memcmp(options[i].name, name, size) == 0)
            return &options[i];
    return NULL;
}

static const option *find_letter(const cli_command *command, char letter)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (command->options & options[i].commands && options[i].letter == letter)
            return &options[i];
    return NULL;
}

static cli_exit unknown_option(const argument_list *list, const char *text)
{
    words_hint hint = {""};
    if (text[1] == '-') hint = words_suggest_option(text + 2, list->command);
    if (list->command->options & CLI_OPT_PICTURE &&
        (strncmp(text, "-o", 2) == 0 || strncmp(text, "--output", 8) == 0))
        hint = (words_hint){"; --png OUT writes the picture to a file"};
    if (hint.text[0])
        return cli_fail(CLI_USAGE, "%s has no option '%s'%s", list->command->name, text,
                        hint.text);
    return cli_fail(CLI_USAGE, "%s has no option '%s'; see 'caterva %s --help'",
                    list->command->name, text, list->command->name);
}

static cli_exit add_text(const option *o, cli_texts *texts, const char *text)
{
    if (texts->n == CLI_MAX_READS)
        return cli_fail(CLI_USAGE, "--%s may be given at most %d times", o->name,
                        CLI_MAX_READS);
    texts->text[texts->n++] = text;
    return CLI_OK;
}

static cli_exit store_value(const option *o, const char *text, cli_args *out)
{
    void *field = (char *)out + o->field;
    int64_t value = 0;
    const char *end = text;
    switch (o->kind) {
    case VALUE_FLAG: *(bool *)field = true; return CLI_OK;
    case VALUE_TEXT: *(const char **)field = text; return CLI_OK;
    case VALUE_TEXTS: return add_text(o, field, text);
    case VALUE_INT:
        if (!number_scan(&end, &value) || *end)
            return cli_fail(CLI_USAGE, "--%s takes a number, not '%s'", o->name, text);
        break;
    case VALUE_SIZE:
        if (!number_size(text, &value))
            return cli_fail(CLI_USAGE, "--%s takes a size such as 64KiB or 1M, not '%s'",
                            o->name, text);
        break;
    case VALUE_TIME:
        if (!number_time(text, &value))
            return cli_fail(CLI_USAGE, "--%s takes a time such as 10s or 500ms, not '%s'",
                            o->name, text);
        break;
    }
    if (value < o->min || value > o->max)
        return cli_fail(CLI_USAGE, "--%s is %s, but must be between %lld and %lld", o->name,
                        text, (long long)o->min, (long long)o->max);
    *(int64_t *)field = value;
    return CLI_OK;
}

/* Takes the value of an option from the same argument or from the next one. */
static cli_exit take_value(argument_list *list, const option *o, const char *attached,
                           const char **value)
{
    *value = attached;
    if (o->kind == VALUE_FLAG || attached) return CLI_OK;
    if (list->next == list->argc)
        return cli_fail(CLI_USAGE, "--%s needs a value (%s)", o->name, o->value);
    *value = list->argv[list->next++];
    return CLI_OK;
}

static cli_exit parse_long(argument_list *list, const char *text, cli_args *out)
{
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : strlen(text);
    const option *o = find_name(list->command, text + 2, size - 2);
    if (!o) return unknown_option(list, text);
    if (equals && o->kind == VALUE_FLAG)
        return cli_fail(CLI_USAGE, "--%s takes no value", o->name);
    const char *value;
    CLI_TRY(take_value(list, o, equals ? equals + 1 : NULL, &value));
    return store_value(o, value, out);
}

/* Parses "-f", "-T4", "-T 4", and joined flags as in "-fT4". */
static cli_exit parse_letters(argument_list *list, const char *text, cli_args *out)
{
    for (const char *letter = text + 1; *letter; letter++) {
        const option *o = find_letter(list->command, *letter);
        if (!o) return unknown_option(list, text);
        const char *value;
        CLI_TRY(take_value(list, o, letter[1] ? letter + 1 : NULL, &value));
        CLI_TRY(store_value(o, value, out));
        if (o->kind != VALUE_FLAG) break;
    }
    return CLI_OK;
}

static cli_exit add_positional(const argument_list *list, const char *text, cli_args *out)
{
    if (out->n_positional == list->command->max_args)
        return cli_fail(CLI_USAGE, "%s: unexpected argument '%s'; usage: caterva %s %s",
                        list->command->name, text, list->command->name,
                        list->command->synopsis);
    if (out->n_positional < CLI_MAX_POSITIONAL) out->positional[out->n_positional] = text;
    list->argv[out->n_positional++] = (char *)text; /* this slot was parsed before */
    return CLI_OK;
}

/* Whether the argument is positional: "-1" and "-5:" begin a selection, "-" alone is a file. */
static bool is_positional(const char *text)
{
    return text[0] != '-' || !text[1] || isdigit((unsigned char)text[1]);
}

static cli_exit parse_one(argument_list *list, bool *options_ended, cli_args *out)
{
    const char *text = list->argv[list->next++];
    if (*options_ended || is_positional(text)) return add_positional(list, text, out);
    if (strcmp(text, "--") == 0) {
        *options_ended = true;
        return CLI_OK;
    }
    return text[1] == '-' ? parse_long(list, text, out) : parse_letters(list, text, out);
}

cli_exit cli_parse_args(const cli_command *command, int argc, char **argv, cli_args *out)
{
    *out = (cli_args){.precision = -1,
                      .level = -1,
                      .port = -1,
                      .memory = (int64_t)256 << 20,
                      .time = 10000,
                      .max = 10,
                      .compact_at = command->options & CLI_OPT_COMPACT_AT ? 50 : 0,
                      .files = argv};
    argument_list list = {command, argc, argv, 0};
    bool options_ended = false;
    while (list.next < argc && !out->help) CLI_TRY(parse_one(&list, &options_ended, out));
    if (!out->help && out->n_positional < command->min_args)
        return cli_fail(CLI_USAGE, "%s needs more arguments; usage: caterva %s %s",
                        command->name, command->name, command->synopsis);
    return CLI_OK;
}

bool cli_option_at(const cli_command *command, size_t i, cli_option_info *out)
{
    for (const option *o = options; o < options + N_OPTIONS; o++) {
        if (!(command->options & o->commands) || i-- > 0) continue;
        *out = (cli_option_info){o->letter, o->name, o->value, o->help};
        return true;
    }
    return false;
}

void cli_print_help(const cli_command *command)
{
    printf("usage: caterva %s [OPTION]... %s\n\n%s\n\noptions:\n", command->name,
           command->synopsis, command->details);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const option *o = &options[i];
        if (!(command->options & o->commands)) continue;
        char spelled[48];
        snprintf(spelled, sizeof spelled, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                 o->value ? " " : "", o->value ? o->value : "");
        printf("  %-31s %s\n", spelled, o->help);
    }
}
