/* Rows of a benchmark. Two sides do the same work in turns, and the shortest turn of each counts. A
 * row may have a bar that its ratio must reach. Each program prints its rows as they are measured
 * and, with --json, writes them to a file; scripts/bench makes one table of the rows of all
 * programs. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench.h"

#include <math.h>
#include <regex.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { BENCH_MAX_ROWS = 256 };

typedef struct bench_row {
    char name[80];
    const char *rival;   /* NULL: C-Blosc2's b2nd                  */
    const char *unit;    /* NULL: microseconds for one operation   */
    double ours, theirs; /* less is better                         */
    double bar;          /* least theirs / ours; 0: none */
    int estimated;       /* theirs was extrapolated from a sample  */
    char note[32];       /* additional text, or "" */
} bench_row;

typedef struct bench_table {
    bench_row rows[BENCH_MAX_ROWS];
    int n;
    double budget; /* seconds for each side of a row */
    int min_turns, max_turns;
    regex_t filter;
    int has_filter;
    const char *json; /* path, or NULL */
} bench_table;

/* The work of a row. Each side returns the seconds of one operation, or INFINITY for no result. */
typedef struct bench_duel {
    void *context;
    void (*prepare)(void *context); /* prepares a turn, not timed; may be NULL */
    double (*ours)(void *context);
    double (*theirs)(void *context);
    void (*compare)(void *context); /* compares the results, not timed; may be NULL */
} bench_duel;

static inline int bench_wanted(const bench_table *table, const char *name)
{
    return !table->has_filter || regexec(&table->filter, name, 0, NULL, 0) == 0;
}

static inline double bench_ratio(const bench_row *row) { return row->theirs / row->ours; }

static inline int bench_reached(const bench_row *row) { return bench_ratio(row) >= row->bar; }

static inline void bench_add_row(bench_table *table, const bench_row *row)
{
    bench_need(table->n < BENCH_MAX_ROWS, "rows", "too many");
    table->rows[table->n++] = *row;
    printf("%-58s %12.1f %12.1f%c %7.2fx", row->name, row->ours, row->theirs,
           row->estimated ? '~' : ' ', bench_ratio(row));
    if (row->bar > 0)
        printf(" of %6.2fx%s", row->bar, bench_reached(row) ? "" : "  FALLS SHORT");
    printf("%s%s\n", row->note[0] ? "   " : "", row->note);
    fflush(stdout);
}

static inline void bench_add(bench_table *table, const char *name, double ours, double theirs,
                             double bar)
{
    bench_row row = {.ours = ours, .theirs = theirs, .bar = bar};
    snprintf(row.name, sizeof(row.name), "%s", name);
    bench_add_row(table, &row);
}

/* Runs the turns of one row and adds the row. The sides alternate in being first. `row` has its
 * name, its bar and its rival. */
static inline void bench_fight_row(bench_table *table, bench_row *row, const bench_duel *duel)
{
    double ours = INFINITY;
    double theirs = INFINITY;
    double begun = bench_now();
    for (int turn = 0; turn < table->max_turns; turn++) {
        if (turn >= table->min_turns && bench_now() - begun > 2 * table->budget) break;
        double t[2];
        if (duel->prepare != NULL) duel->prepare(duel->context);
        t[turn % 2] = (turn % 2 ? duel->theirs : duel->ours)(duel->context);
        t[1 - turn % 2] = (turn % 2 ? duel->ours : duel->theirs)(duel->context);
        if (duel->compare != NULL) duel->compare(duel->context);
        ours = fmin(ours, t[0]);
        theirs = fmin(theirs, t[1]);
    }
    row->ours = 1e6 * ours;
    row->theirs = 1e6 * theirs;
    bench_add_row(table, row);
}

static inline void bench_fight(bench_table *table, const char *name, double bar,
                               const bench_duel *duel)
{
    bench_row row = {.bar = bar};
    snprintf(row.name, sizeof(row.name), "%s", name);
    bench_fight_row(table, &row, duel);
}

static inline void bench_conclude(const bench_table *table)
{
    int bars = 0;
    int reached = 0;
    for (int i = 0; i < table->n; i++) {
        bars += table->rows[i].bar > 0;
        reached += table->rows[i].bar > 0 && bench_reached(&table->rows[i]);
    }
    printf("\n%d rows, %d of %d bars reached\n", table->n, reached, bars);
    for (int i = 0; i < table->n; i++) {
        const bench_row *row = &table->rows[i];
        if (row->bar > 0 && !bench_reached(row))
            printf("  %-58s %8.2fx of %5.2fx\n", row->name, bench_ratio(row), row->bar);
    }
}

/* Writes no file if `path` is NULL. */
static inline void bench_write_json(const bench_table *table, const char *path)
{
    if (path == NULL) return;
    FILE *file = fopen(path, "w");
    bench_need(file != NULL, path, "cannot be written");
    fprintf(file, "{\"schema\": 1, \"caterva\": \"%s\", \"blosc2\": \"%s\", \"rows\": [",
            caterva_version(), caterva_codec_version());
    for (int i = 0; i < table->n; i++) {
        const bench_row *row = &table->rows[i];
        fprintf(file,
                "%s\n {\"name\": \"%s\", \"rival\": \"%s\", \"unit\": \"%s\", "
                "\"ours\": %.3f, \"theirs\": %.3f, \"ratio\": %.3f, \"bar\": %.2f, "
                "\"estimated\": %s, \"note\": \"%s\"}",
                i > 0 ? "," : "", row->name, row->rival != NULL ? row->rival : "b2nd",
                row->unit != NULL ? row->unit : "us", row->ours, row->theirs,
                bench_ratio(row), row->bar, row->estimated ? "true" : "false", row->note);
    }
    fprintf(file, "\n]}\n");
    bench_need(fclose(file) == 0, path, "cannot be written");
}

/* Parses the options that every program takes: --rows REGEX, --json FILE and --clock wall|cpu.
 * Returns 0 for any other option. The processor time of the process suits busy machines; it is
 * meaningless for rows with several threads. */
static inline int bench_common_option(bench_table *table, const char *name, const char *value)
{
    if (strcmp(name, "--json") == 0) {
        table->json = value;
        return 1;
    }
    if (strcmp(name, "--clock") == 0) {
        bench_need(strcmp(value, "cpu") == 0 || strcmp(value, "wall") == 0, value,
                   "is not a clock: cpu or wall");
        bench_clock = value[0] == 'c' ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        return 1;
    }
    if (strcmp(name, "--rows") != 0) return 0;
    bench_need(regcomp(&table->filter, value, REG_EXTENDED | REG_NOSUB) == 0, value,
               "is not a regular expression");
    table->has_filter = 1;
    return 1;
}

/* Parses the arguments of a program that takes these options and --quick, which measures
 * smaller arrays for a fraction of the time. */
static inline void bench_parse(bench_table *table, int argc, char **argv, int *quick)
{
    *quick = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            *quick = 1;
        } else if (i + 1 < argc && bench_common_option(table, argv[i], argv[i + 1])) {
            i++;
        } else {
            fprintf(stderr,
                    "usage: %s [--quick] [--rows REGEX] [--json FILE] "
                    "[--clock wall|cpu]\n",
                    argv[0]);
            exit(2);
        }
    }
}

static inline void bench_print_title(const char *arrays)
{
    printf("caterva %s, C-Blosc2 %s; %s\n", caterva_version(), caterva_codec_version(),
           arrays);
    printf("%-58s %12s %12s  %8s\n", "microseconds, unless the row says what", "caterva",
           "rival", "ratio");
}

/* Returns the number of a line of /proc/self/status, in KiB; 0 if there is no such line. */
static inline long bench_memory(const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) kib = strtol(line + strlen(key), NULL, 10);
    if (file != NULL) fclose(file);
    return kib;
}

/* Runs one side of a duel in a forked child. Returns the KiB that it adds at most. */
static inline double bench_memory_of(double (*side)(void *context), void *context)
{
    int ends[2];
    double kib = 0;
    bench_need(pipe(ends) == 0, "pipe", "cannot be made");
    fflush(stdout);
#ifdef __GLIBC__
    malloc_trim(0); /* so that no freed memory is reused */
#endif
    pid_t child = fork();
    if (child == 0) {
        long before = bench_memory("VmRSS:");
        side(context);
        kib = (double)(bench_memory("VmHWM:") - before);
        _exit(write(ends[1], &kib, sizeof(kib)) != sizeof(kib));
    }
    int status = 1;
    waitpid(child, &status, 0);
    bench_need(status == 0 && read(ends[0], &kib, sizeof(kib)) == sizeof(kib), "memory",
               "a side failed");
    close(ends[0]);
    close(ends[1]);
    return kib;
}

#endif
