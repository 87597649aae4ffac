/* Declarations that all parts of the command line share: exit statuses, the function that reports
 * failures, interruption, and the parsed arguments. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <caterva.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses. A function that can fail reports a failure on stderr, then returns its exit
 * status. Callers pass the status on and report nothing. */
typedef enum cli_exit {
    CLI_OK = 0,
    CLI_NO = 1, /* the command worked; its answer is no */
    CLI_USAGE = 2,
    CLI_IO = 3,
    CLI_CORRUPT = 4,
    CLI_UNSUPPORTED = 5,
    CLI_INTERRUPTED = 130 /* main ends the process by the signal */
} cli_exit;

#ifdef __MINGW_PRINTF_FORMAT /* its own printf, as in C11 */
#define CLI_PRINTF(fmt, args) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt, args)))
#elif defined(__GNUC__) || defined(__clang__)
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLI_PRINTF(fmt, args)
#endif

/* Functions that plug-ins may call, and what they offer; see foreign/foreign.h. */
#if defined(_WIN32)
#define CLI_API __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define CLI_API __attribute__((visibility("default")))
#else
#define CLI_API
#endif

/* Returns `expr` from the enclosing function unless it is CLI_OK. Only if nothing must be freed. */
#define CLI_TRY(expr)                                                                        \
    do {                                                                                     \
        cli_exit cli_try_code_ = (expr);                                                     \
        if (cli_try_code_ != CLI_OK) return cli_try_code_;                                   \
    } while (0)

/* ---- Reports (all on stderr) -------------------------------------------- */

/* Prints "caterva: <sentence>" and returns `code`. */
CLI_API cli_exit cli_fail(cli_exit code, const char *fmt, ...) CLI_PRINTF(2, 3);

/* Prints "caterva: warning: <sentence>". The command still succeeds. */
CLI_API void cli_warn(const char *fmt, ...) CLI_PRINTF(1, 2);

/* Reports a failed system call like cli_fail, with the text of errno appended. Returns CLI_IO, or
 * CLI_INTERRUPTED if a signal caused the failure. */
CLI_API cli_exit cli_fail_sys(const char *fmt, ...) CLI_PRINTF(1, 2);

/* Reports a failed library call on the array at `path`. Returns the exit status for err->code. */
CLI_API cli_exit cli_fail_array(const char *path, const caterva_error *err);
/* Whether the status means damaged data rather than a failure to read. */
bool cli_is_damage(caterva_status status);

/* Returns `text` in printable form: control characters and invalid UTF-8 become "\xNN". */
typedef struct cli_shown {
    char text[16384];
} cli_shown;
cli_shown cli_show(const char *text);

bool cli_is_url(const char *path);

/* cli_show_place returns a path in printable form. User and query of a URL are left out, because
 * they may be secret. Every printed path must pass through this function. cli_show_sentence returns
 * a sentence in printable form, and treats each URL in it like a path. */
cli_shown cli_show_place(const char *path);
cli_shown cli_show_sentence(const char *text);

/* Allocates `size` bytes, at least one byte. Reports a failure, and then returns NULL. */
CLI_API void *cli_alloc(size_t size);
CLI_API char *cli_copy_text(const char *text);

/* Flushes stdout. If any output was lost, reports that and returns CLI_IO. */
cli_exit cli_flush_stdout(void);

/* ---- Interruption ------------------------------------------------------- */

/* Catches SIGINT, SIGTERM and SIGHUP, except those that the parent process ignores. The first
 * signal sets a flag that loops check. A second signal ends the program immediately. */
void cli_catch_signals(void);
CLI_API bool cli_interrupted(void);

/* Ends the process with the received signal. main calls it last. */
int cli_end_interrupted(void);

/* Waits until a pipe or terminal can be read or written. Returns CLI_INTERRUPTED after a signal. */
cli_exit cli_wait(int fd, bool to_write);

/* After cli_mind_temporaries, a second signal deletes the library's temporary files before it ends
 * the process. After cli_mind_file, a second signal deletes the file or folder `path` too; the text
 * `path` must stay valid until cli_forget_file. */
void cli_mind_temporaries(void);
CLI_API void cli_mind_file(const char *path);
CLI_API void cli_forget_file(const char *path);

/* Between cli_guard and cli_unguard, a crash of `library`, which reads the file `path`, deletes the
 * temporary files and ends the process with CLI_CORRUPT and a sentence. So does a loop: the thread
 * computes for 30 seconds, and a second more for each 8 MiB of `size`. A signal that the library does
 * not notice for 3 seconds ends the process like a second one. Each cli_guard begins anew. */
CLI_API void cli_guard(const char *path, const char *library, int64_t size);
CLI_API void cli_unguard(void);

/* ---- Arguments ---------------------------------------------------------- */

#define CLI_MAX_POSITIONAL 4
#define CLI_MAX_READS 16

/* Values of an option that may be given several times. */
typedef struct cli_texts {
    const char *text[CLI_MAX_READS];
    int n;
} cli_texts;

/* One member for each option of any command. Text is borrowed from argv; NULL, false or -1 means
 * "not given" unless another default is stated. */
typedef struct cli_args {
    const char *positional[CLI_MAX_POSITIONAL];
    char **files; /* all positional arguments, for commands that take any number */
    int n_positional;
    bool help, json, force, no_progress, list_chunks, csv, sparse, contiguous, quick;
    bool quiet, guess, skip_damaged, nearest, no_attributes, for_remote, zarr, transpose;
    int64_t threads;    /* 0: all cores */
    int64_t compact_at; /* percent of dead space that causes compaction; 0: never */
    int64_t precision;
    int64_t level;
    int64_t axis;   /* default 0; a negative axis counts from the end */
    int64_t offset; /* default 0 */
    int64_t memory; /* default 256 MiB */
    int64_t time;   /* milliseconds, default 10 s */
    cli_texts reads;
    int64_t max;  /* default 10 */
    int64_t bins; /* default 0 */
    const char *output, *from, *to, *shape, *dtype, *chunks, *blocks, *codec, *filters;
    const char *fill, *metalayer, *select, *png, *cmap, *range, *atol, *rtol;
    const char *astype, *casting, *view_dtype, *rgb, *prefer, *sel;
    cli_texts every;
    bool follow, short_lines, long_lines, recursive, trace, strict, verify, dry_run;
    bool keep_chunks, go_on;
    int64_t wait; /* milliseconds, default 0 */
    const char *part;
    bool last, live;
    const char *field;
    const char *if_match, *resume, *read_url, *ca_file;
    int64_t part_size; /* bytes; 0: chosen by the library */
    bool abandon;
    const char *bind;
    int64_t port; /* -1: not given */
} cli_args;

/* Bits for cli_command.options. If a bit stands for several options, its comment lists them. */
#define CLI_OPT_JSON (1UL << 0)
#define CLI_OPT_THREADS (1UL << 1)
#define CLI_OPT_FORCE (1UL << 2)
#define CLI_OPT_NO_PROGRESS (1UL << 3)
#define CLI_OPT_LIST_CHUNKS (1UL << 4)
#define CLI_OPT_CSV (1UL << 5)
#define CLI_OPT_PRECISION (1UL << 6)
#define CLI_OPT_OUTPUT (1UL << 7)
#define CLI_OPT_FROM (1UL << 8)
#define CLI_OPT_TO (1UL << 9)
#define CLI_OPT_SHAPE (1UL << 10)
#define CLI_OPT_DTYPE (1UL << 11)
#define CLI_OPT_OFFSET (1UL << 12)
#define CLI_OPT_SELECT (1UL << 13)
#define CLI_OPT_MEMORY (1UL << 14)
#define CLI_OPT_FILL (1UL << 15)
#define CLI_OPT_PARTITION (1UL << 16) /* chunks, blocks, codec, ..., metalayer */
#define CLI_OPT_QUICK (1UL << 17)
#define CLI_OPT_PICTURE (1UL << 18) /* png, cmap, range */
#define CLI_OPT_AXIS (1UL << 19)
#define CLI_OPT_CONTIGUOUS (1UL << 20)
#define CLI_OPT_GUESS (1UL << 21)
#define CLI_OPT_SKIP (1UL << 22)
#define CLI_OPT_TUNE (1UL << 24) /* read, time, prefer */
#define CLI_OPT_DIFF (1UL << 25) /* atol, rtol, max, no-attributes, quiet */
#define CLI_OPT_BINS (1UL << 26)
#define CLI_OPT_WAIT (1UL << 23)
#define CLI_OPT_FOLLOW (1UL << 28) /* every, follow */
#define CLI_OPT_SHORT (1UL << 29)
#define CLI_OPT_COMPACT_AT (UINT64_C(1) << 44)
#define CLI_OPT_LIST (UINT64_C(1) << 45)       /* long, recursive */
#define CLI_OPT_ASTYPE (UINT64_C(1) << 40)     /* astype, casting */
#define CLI_OPT_CAST_INPUT (UINT64_C(1) << 47) /* astype and casting of the input */
#define CLI_OPT_VIEW_DTYPE (UINT64_C(1) << 41)
#define CLI_OPT_RGB (UINT64_C(1) << 42)       /* rgb, transpose */
#define CLI_OPT_SEL (UINT64_C(1) << 46)       /* sel, nearest */
#define CLI_OPT_TO_BINARY (UINT64_C(1) << 43) /* --to of a command without text output */
#define CLI_OPT_REMOTE (UINT64_C(1) << 54)    /* trace, ca-file */
#define CLI_OPT_FOR_REMOTE (UINT64_C(1) << 55)
#define CLI_OPT_ZARR (UINT64_C(1) << 60)
#define CLI_OPT_SERVE (UINT64_C(1) << 58) /* bind, port */
#define CLI_OPT_FIELD (UINT64_C(1) << 57)
#define CLI_OPT_JOBS (UINT64_C(1) << 52) /* last, live */
#define CLI_OPT_PUBLISH                                                                      \
    (UINT64_C(1) << 56)                  /* if-match, part-size, resume, abandon, read-url */
#define CLI_OPT_PART (UINT64_C(1) << 53) /* part; output for its token */
#define CLI_OPT_CONVERT (UINT64_C(1) << 61) /* strict, verify, dry-run, keep-chunks, resume */
#define CLI_OPT_NONE (1UL << 27)            /* a command with no option but --help */

#define CLI_ANY_NUMBER 1000000 /* max_args without a limit */

typedef struct cli_command {
    const char *name;
    const char *synopsis; /* the arguments, such as "FILE [SEL]" */
    const char *summary;  /* one line for the list of commands */
    const char *details;  /* text of the command's help */
    uint64_t options;
    int min_args, max_args;
    cli_exit (*run)(const cli_args *args);
} cli_command;

/* Parses argv without the names of program and command. Options may stand anywhere before "--".
 * "-1" and "-5:" are selections; "-" is a file. */
cli_exit cli_parse_args(const cli_command *command, int argc, char **argv, cli_args *out);

/* Prints the command's help to stdout. */
void cli_print_help(const cli_command *command);

/* ---- Tables for completion -------------------------------------------------------------- */

/* Returns the i-th command, or NULL after the last. */
const cli_command *cli_command_at(size_t i);

typedef struct cli_option_info {
    char letter; /* 0: the option has no letter */
    const char *name;
    const char *value; /* NULL: the option takes no value */
    const char *help;
} cli_option_info;

/* Sets *out to the i-th option that the command accepts. Returns false after the last one. */
bool cli_option_at(const cli_command *command, size_t i, cli_option_info *out);

/* ---- Arrays ------------------------------------------------------------- */

/* Opens the array at `path`. If the file is of another known kind, the error names that kind. */
cli_exit cli_open_array(const cli_args *args, const char *path, caterva_mode mode,
                        caterva_array **out);

/* The time that a command has waited for a busy array; initially zero. */
typedef struct cli_patience {
    int64_t waited; /* milliseconds */
} cli_patience;

/* Whether to repeat a call that returned `status`. If the array is busy and the time of --wait is
 * not over, waits for a moment (at most 250 ms) and returns true. */
bool cli_try_again(const cli_args *args, caterva_status status, cli_patience *patience);

/* Calls `run` for each of args->files. Continues after a failure, but stops at a signal. Returns
 * the worst status, which is the largest. */
cli_exit cli_each_file(const cli_args *args,
                       cli_exit (*run)(const cli_args *args, const char *path));

/* Commits and closes an array if `code` is CLI_OK and no signal arrived; otherwise discards it. */
cli_exit cli_finish_array(caterva_array *array, const char *path, cli_exit code);

extern const cli_command cli_command_info, cli_command_get, cli_command_put,
    cli_command_append, cli_command_create, cli_command_convert, cli_command_resize,
    cli_command_repack, cli_command_verify, cli_command_repair, cli_command_seal,
    cli_command_compact, cli_command_diff, cli_command_stats, cli_command_view,
    cli_command_attr, cli_command_jobs, cli_command_ls, cli_command_tree, cli_command_pack,
    cli_command_unpack, cli_command_publish, cli_command_serve, cli_command_bench,
    cli_command_tune, cli_command_completion;

#endif
