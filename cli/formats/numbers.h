/* Numbers in arguments and in tables: integers, sizes, shapes, and byte counts
 * as people read them. */
#ifndef CLI_NUMBERS_H
#define CLI_NUMBERS_H

#include "cli.h"

/* A whole decimal number at *text; moves *text behind it. False, and *text
 * unmoved, when there is none or it does not fit. */
bool number_scan(const char **text, int64_t *out);

/* Bytes: "65536", "64KiB", "64K", "1M", "1GB". K, M, G, T and KiB.. are powers of
 * 1024, kB/KB, MB.. powers of 1000. */
bool number_size(const char *text, int64_t *out);

/* Milliseconds: "500ms", "10s", "2m"; a bare number is seconds. */
bool number_time(const char *text, int64_t *out);

/* A real number that is the whole of `text`; "nan" and "inf" count. */
bool number_real(const char *text, double *out);

/* "LO,HI" of --range: both finite, LO < HI. */
cli_exit number_range(const char *text, double *lo, double *hi);

/* "181,217,181", "181x217x181", "(181, 217, 181)"; "" or "()" for no axes.
 * `what` names the option in the sentence. */
cli_exit number_shape(const char *text, const char *what, int *ndim, int64_t *shape);

/* "2.9 MiB", "32 KiB", "717 B" into `text`, which it returns. */
#define NUMBER_TEXT_SIZE 32
const char *number_bytes(int64_t bytes, char text[NUMBER_TEXT_SIZE]);

/* "812 ns", "4.2 us", "17 ms", "1.3 s" into `text`, which it returns. */
const char *number_seconds(double seconds, char text[NUMBER_TEXT_SIZE]);

#endif
