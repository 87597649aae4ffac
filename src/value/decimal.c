/* Room: value. Decimal numbers. The C library prints and reads them with the decimal point
 * of the program's locale; what leaves here has a point, and what comes in, too.
 *
 * Most numbers need no C library: a whole number of at most 53 bits, times or divided by a
 * power of ten that is a double itself, is rounded once, and so correctly. */
#include "value/decimal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_POWER = 22, DOUBLE_DIGITS = 15, SINGLE_DIGITS = 9 };

/* Are doubles rounded to doubles at once? */
static const bool rounds_once = FLT_EVAL_METHOD == 0;

/* A double next to which a decimal number may lie on either side is none to round to a
 * single: one that is half way between two of them, and one beyond their normal range. */
static bool rounds_to_single(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    double size = fabs(value);
    return (bits & 0x1fffffff) != 0x10000000 &&
           (value == 0 || (size >= (double)FLT_MIN && size < (double)FLT_MAX / 2));
}

/* ---- Printing ----------------------------------------------------------- */

size_t cv_decimal_print_whole(uint64_t value, bool negative, char text[CV_DECIMAL_SIZE])
{
    char digits[CV_DECIMAL_SIZE];
    size_t at = sizeof digits, n = 0;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (negative) text[n++] = '-';
    memcpy(text + n, digits + at, sizeof digits - at);
    n += sizeof digits - at;
    text[n] = '\0';
    return n;
}

static bool print_word(double value, char text[CV_DECIMAL_SIZE])
{
    if (isfinite(value)) return false;
    const char *word = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    (void)snprintf(text, CV_DECIMAL_SIZE, "\"%s\"", word);
    return true;
}

/* `whole` / 10^power, with as few digits behind the point as say it, and one at least. */
static void put_point(bool negative, uint64_t whole, int power, char text[CV_DECIMAL_SIZE])
{
    while (power > 1 && whole % 10 == 0) {
        whole /= 10;
        power--;
    }
    if (power == 0) {
        whole *= 10;
        power = 1;
    }
    char digits[CV_DECIMAL_SIZE];
    size_t n = cv_decimal_print_whole(whole, false, digits), behind = (size_t)power, at = 0;
    size_t zeros = n > behind ? 0 : behind + 1 - n, front = n + zeros - behind;
    if (negative) text[at++] = '-';
    for (size_t i = 0; i < n + zeros; i++) {
        if (i == front) text[at++] = '.';
        if (i < zeros)
            text[at++] = '0';
        else
            text[at++] = digits[i - zeros];
    }
    text[at] = '\0';
}

/* The power of ten with which `size` has `n_digits` digits in front of the point; -1: it is
 * not printed without an exponent, or not by powers that are doubles. */
static int power_for(double size, int n_digits)
{
    int power = 0;
    if (size == 0) return 0;
    if (!rounds_once || !(size >= 1e-4 && size < powers[n_digits])) return -1;
    while (power < MOST_POWER && size * powers[power + 1] < powers[n_digits]) power++;
    return power;
}

/* Where 15 digits say it: they are less than 2^53, and a quarter of one is more than what the
 * product is off. */
static bool print_short(double value, char text[CV_DECIMAL_SIZE])
{
    double size = fabs(value);
    int power = power_for(size, DOUBLE_DIGITS);
    if (power < 0) return false;
    uint64_t whole = (uint64_t)(size * powers[power] + 0.5);
    if ((double)whole / powers[power] != size) return false;
    put_point(signbit(value), whole, power, text);
    return true;
}

/* The locale's point becomes one, however many bytes it has. */
static void finish(char text[CV_DECIMAL_SIZE])
{
    size_t n = strspn(text, "-0123456789e+");
    size_t size = strlen(text), local = strcspn(text + n, "0123456789");
    if (n == size && !strchr(text, 'e')) {
        memcpy(text + size, ".0", 3);
    } else if (n < size) {
        text[n] = '.';
        memmove(text + n + 1, text + n + local, size - n - local + 1);
    }
}

void cv_decimal_print(double value, char text[CV_DECIMAL_SIZE])
{
    if (print_word(value, text) || print_short(value, text)) return;
    int digits =
        power_for(fabs(value), DOUBLE_DIGITS) < 0 ? DOUBLE_DIGITS : DOUBLE_DIGITS + 1;
    for (; digits <= 17; digits++) {
        (void)snprintf(text, CV_DECIMAL_SIZE, "%.*g", digits, value);
        if (digits == 17 || strtod(text, NULL) == value) break;
    }
    finish(text);
}

/* With so many digits; *fits: they say it. False where printf has to tell, as what lies
 * next to half a digit. */
static bool print_digits(double value, int n_digits, bool *fits, char text[CV_DECIMAL_SIZE])
{
    double size = fabs(value);
    int power = power_for(size, n_digits);
    if (power < 0) return false;
    double digits = size * powers[power], cut = floor(digits);
    if (fabs(digits - cut - 0.5) < 1e-6) return false;
    uint64_t whole = (uint64_t)(digits + 0.5);
    double said = (double)whole / powers[power];
    if (!rounds_to_single(said)) return false;
    *fits = (double)(float)said == size;
    if (*fits) put_point(signbit(value), whole, power, text);
    return true;
}

static bool print_short_single(double value, char text[CV_DECIMAL_SIZE])
{
    bool fits = false;
    for (int digits = 6; digits <= SINGLE_DIGITS && !fits; digits++)
        if (!print_digits(value, digits, &fits, text)) return false;
    return fits;
}

void cv_decimal_print_single(float value, char text[CV_DECIMAL_SIZE])
{
    if (print_word((double)value, text) || print_short_single((double)value, text)) return;
    for (int digits = 6; digits <= SINGLE_DIGITS; digits++) {
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

static bool is_one_of(const char *text, size_t size, size_t at, const char set[2])
{
    return at < size && (text[at] == set[0] || text[at] == set[1]);
}

size_t cv_decimal_span(const char *text, size_t size, bool *whole)
{
    size_t at = is_one_of(text, size, 0, "--");
    size_t n = is_one_of(text, size, at, "00") ? 1 : digits(text + at, size - at);
    at += n;
    *whole = true;
    if (n > 0 && is_one_of(text, size, at, "..")) {
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
enum { LONGEST = 1200, MOST_EXPONENT = 100000 };

/* A number taken apart: its digits, the first that count, as a whole one, times 10^exponent. */
typedef struct parts {
    bool negative;
    bool is_cut; /* there are more digits than `whole` has room for */
    uint64_t whole;
    int exponent;    /* of all digits that were read as a whole number */
    size_t n_digits; /* of them, behind one another, the point left out */
    char digits[LONGEST];
} parts;

static int read_exponent(const char *text, size_t size)
{
    int value = 0;
    size_t at = is_one_of(text, size, 0, "+-");
    for (size_t i = at; i < size; i++)
        if (value < MOST_EXPONENT) value = value * 10 + (text[i] - '0');
    return is_one_of(text, size, 0, "--") ? -value : value;
}

/* False: too long. */
static bool take_apart(const char *text, size_t size, parts *p)
{
    enum { ROOM_DIGITS = 19 };
    size_t at = is_one_of(text, size, 0, "--"), significant = 0, point = 0;
    if (size >= LONGEST) return false;
    p->negative = at > 0;
    p->whole = 0;
    p->n_digits = 0;
    for (; at < size && !is_one_of(text, size, at, "eE"); at++) {
        if (text[at] == '.') {
            point = at + 1;
            continue;
        }
        significant += significant > 0 || text[at] != '0';
        if (significant <= ROOM_DIGITS) p->whole = p->whole * 10 + (uint64_t)(text[at] - '0');
        p->digits[p->n_digits++] = text[at];
    }
    p->is_cut = significant > ROOM_DIGITS;
    p->exponent = at < size ? read_exponent(text + at + 1, size - at - 1) : 0;
    if (point > 0) p->exponent -= (int)(at - point);
    return true;
}

/* Where one rounding gives it. */
static bool is_simple(const parts *p, double *out)
{
    int e = p->exponent;
    if (!rounds_once || p->is_cut || p->whole > (uint64_t)1 << 53 || e < -MOST_POWER ||
        e > MOST_POWER)
        return false;
    double whole = (double)p->whole;
    double size = e < 0 ? whole / powers[-e] : whole * powers[e];
    *out = p->negative ? -size : size;
    return true;
}

/* For the C library: without a point there is no locale. */
static void put_together(const parts *p, char out[LONGEST + CV_DECIMAL_SIZE])
{
    size_t at = 0;
    uint64_t power = (uint64_t)(p->exponent < 0 ? -p->exponent : p->exponent);
    if (p->negative) out[at++] = '-';
    memcpy(out + at, p->digits, p->n_digits);
    at += p->n_digits;
    out[at++] = 'e';
    (void)cv_decimal_print_whole(power, p->exponent < 0, out + at);
}

bool cv_decimal_real(const char *text, size_t size, double *out)
{
    parts p;
    char plain[LONGEST + CV_DECIMAL_SIZE];
    if (!take_apart(text, size, &p)) return false;
    if (is_simple(&p, out)) return true;
    put_together(&p, plain);
    *out = strtod(plain, NULL);
    return isfinite(*out);
}

bool cv_decimal_single(const char *text, size_t size, float *out)
{
    parts p;
    double real;
    char plain[LONGEST + CV_DECIMAL_SIZE];
    if (!take_apart(text, size, &p)) return false;
    if (is_simple(&p, &real) && rounds_to_single(real)) {
        *out = (float)real;
        return true;
    }
    put_together(&p, plain);
    *out = strtof(plain, NULL);
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
