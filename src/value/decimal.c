/* Room: value. Decimal numbers. The C library prints and reads them with the decimal point
 * of the program's locale; what leaves here has a point, and what comes in, too. */
#include "value/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char local_point(void)
{
    char half[8];
    (void)snprintf(half, sizeof half, "%.1f", 0.5);
    return half[1];
}

static void exchange(char *text, char from, char to)
{
    char *at = from != to ? strchr(text, from) : NULL;
    if (at) *at = to;
}

/* ---- Printing ----------------------------------------------------------- */

static bool print_word(double value, char text[CV_DECIMAL_SIZE])
{
    if (isfinite(value)) return false;
    const char *word = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    (void)snprintf(text, CV_DECIMAL_SIZE, "\"%s\"", word);
    return true;
}

static void finish(char text[CV_DECIMAL_SIZE])
{
    exchange(text, local_point(), '.');
    if (!strpbrk(text, ".e")) memcpy(text + strlen(text), ".0", 3);
}

void cv_decimal_print(double value, char text[CV_DECIMAL_SIZE])
{
    if (print_word(value, text)) return;
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, CV_DECIMAL_SIZE, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    finish(text);
}

void cv_decimal_print_single(float value, char text[CV_DECIMAL_SIZE])
{
    if (print_word((double)value, text)) return;
    for (int digits = 6; digits <= 9; digits++) {
        (void)snprintf(text, CV_DECIMAL_SIZE, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) break;
    }
    finish(text);
}

/* ---- Reading ------------------------------------------------------------ */

static size_t digits(const char *text, size_t size)
{
    size_t n = 0;
    while (n < size && text[n] >= '0' && text[n] <= '9') n++;
    return n;
}

static bool is_one_of(const char *text, size_t size, size_t at, const char *set)
{
    return at < size && text[at] && strchr(set, text[at]) != NULL;
}

size_t cv_decimal_span(const char *text, size_t size, bool *whole)
{
    size_t at = is_one_of(text, size, 0, "-");
    size_t n = is_one_of(text, size, at, "0") ? 1 : digits(text + at, size - at);
    at += n;
    *whole = true;
    if (n > 0 && is_one_of(text, size, at, ".")) {
        at++;
        n = digits(text + at, size - at);
        at += n;
        *whole = false;
    }
    if (n > 0 && is_one_of(text, size, at, "eE")) {
        at++;
        at += is_one_of(text, size, at, "+-");
        n = digits(text + at, size - at);
        at += n;
        *whole = false;
    }
    return n > 0 ? at : 0;
}

/* More digits than any double needs; a number of more is none. */
enum { LONGEST = 1200 };

static bool copy(const char *text, size_t size, char out[LONGEST])
{
    if (size >= LONGEST) return false;
    memcpy(out, text, size);
    out[size] = '\0';
    exchange(out, '.', local_point());
    return true;
}

bool cv_decimal_real(const char *text, size_t size, double *out)
{
    char terminated[LONGEST];
    if (!copy(text, size, terminated)) return false;
    *out = strtod(terminated, NULL);
    return isfinite(*out);
}

bool cv_decimal_single(const char *text, size_t size, float *out)
{
    char terminated[LONGEST];
    if (!copy(text, size, terminated)) return false;
    *out = strtof(terminated, NULL);
    return isfinite(*out);
}

bool cv_decimal_whole(const char *text, size_t size, bool *negative, uint64_t *out)
{
    size_t at = size > 0 && text[0] == '-';
    uint64_t value = 0;
    for (size_t i = at; i < size; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *negative = at > 0 && value > 0;
    *out = value;
    return !*negative || value <= (uint64_t)INT64_MAX + 1;
}
