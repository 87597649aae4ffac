/* Numbers in arguments and tables: integers, sizes, shapes, and byte counts in readable form. */
#ifndef CLI_NUMBERS_H
#define CLI_NUMBERS_H

#include "cli.h"

/* Parses an integer at *text and moves *text past it. Returns false, with *text unchanged, if there
 * is no integer or it does not fit in 64 bits. */
bool number_scan(const char **text, int64_t *out);

/* Parses bytes: "65536", "64KiB", "64K", "1M", "1GB". K, M, G, T, KiB, MiB, ... are powers of 1024.
 * kB, KB, MB, ... are powers of 1000. */
bool number_size(const char *text, int64_t *out);

/* Parses milliseconds: "500ms", "10s", "2m"; a number without a unit means seconds. */
bool number_time(const char *text, int64_t *out);

/* Parses all of `text` as a real number; "nan" and "inf" are allowed. */
bool number_real(const char *text, double *out);

/* Parses LO,HI of --range: both finite, LO < HI. */
cli_exit number_range(const char *text, double *lo, double *hi);

/* Parses "181,217,181", "181x217x181" or "(181, 217, 181)"; "" or "()" for no axes. Messages name
 * the option as `what`. */
cli_exit number_shape(const char *text, const char *what, int *ndim, int64_t *shape);

/* Writes "2.9 MiB", "32 KiB", "717 B" to `text`, and returns it. */
#define NUMBER_TEXT_SIZE 32
const char *number_bytes(int64_t bytes, char text[NUMBER_TEXT_SIZE]);

/* Writes "812 ns", "4.2 us", "17 ms", "1.3 s" to `text`, and returns it. */
const char *number_seconds(double seconds, char text[NUMBER_TEXT_SIZE]);

#endif
