/* Rows of a benchmark: two sides take turns at the same work, the minimum over
 * the turns counts, and each row may have a bar that its ratio must reach. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "bench.h"

#include <math.h>
#include <regex.h>
#include <string.h>

enum { BENCH_MAX_ROWS = 128 };

typedef struct bench_row {
    char name[80];
    double ours, theirs; /* less is better              */
    double bar;          /* for theirs / ours; 0 is none */
} bench_row;

typedef struct bench_table {
    bench_row rows[BENCH_MAX_ROWS];
    int n;
    double budget; /* seconds for each side of a row */
    int min_turns, max_turns;
    regex_t filter;
    int has_filter;
} bench_table;

/* A row's work. Each side returns the seconds that one operation took, or
 * INFINITY when this turn says nothing. */
typedef struct bench_duel {
    void *context;
    void (*prepare)(void *context); /* the next turn, off the clock; may be NULL */
    double (*ours)(void *context);
    double (*theirs)(void *context);
    void (*compare)(void *context); /* what both did, off the clock; may be NULL */
} bench_duel;

static inline int bench_wanted(const bench_table *table, const char *name)
{
    return !table->has_filter || regexec(&table->filter, name, 0, NULL, 0) == 0;
}

static inline double bench_ratio(const bench_row *row) { return row->theirs / row->ours; }

static inline int bench_reached(const bench_row *row) { return bench_ratio(row) >= row->bar; }

static inline void bench_add(bench_table *table, const char *name, double ours, double theirs,
                             double bar)
{
    bench_need(table->n < BENCH_MAX_ROWS, "rows", "too many");
    bench_row *row = &table->rows[table->n++];
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->ours = ours;
    row->theirs = theirs;
    row->bar = bar;
    printf("%-58s %12.1f %12.1f %8.2fx", name, ours, theirs, bench_ratio(row));
    if (bar > 0) printf(" of %5.2fx%s", bar, bench_reached(row) ? "" : "  FALLS SHORT");
    printf("\n");
    fflush(stdout);
}

/* Runs the turns of one row, who begins alternating, and adds it. */
static inline void bench_fight(bench_table *table, const char *name, double bar,
                               const bench_duel *duel)
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
    bench_add(table, name, 1e6 * ours, 1e6 * theirs, bar);
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

static inline void bench_write_json(const bench_table *table, const char *path)
{
    FILE *file = fopen(path, "w");
    bench_need(file != NULL, path, "cannot be written");
    fprintf(file, "{\"schema\": 1, \"caterva\": \"%s\", \"blosc2\": \"%s\", \"rows\": [",
            caterva_version(), caterva_codec_version());
    for (int i = 0; i < table->n; i++) {
        const bench_row *row = &table->rows[i];
        fprintf(file,
                "%s\n {\"name\": \"%s\", \"ours_us\": %.2f, \"theirs_us\": %.2f, "
                "\"ratio\": %.3f, \"bar\": %.2f}",
                i > 0 ? "," : "", row->name, row->ours, row->theirs, bench_ratio(row),
                row->bar);
    }
    fprintf(file, "\n]}\n");
    bench_need(fclose(file) == 0, path, "cannot be written");
}

/* A line of /proc/self/status, in KiB; 0 where nothing tells. */
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

#endif
