/* Room: cli/formats. Numbers in arguments and tables. Parsing does not depend on the locale. A
 * number that overflows is rejected like invalid text. */
#include "formats/numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool number_scan(const char **text, int64_t *out)
{
    const char *first = *text + (**text == '-' || **text == '+');
    if (!isdigit((unsigned char)*first)) return false;
    char *end;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    if (errno) return false;
    *text = end;
    *out = value;
    return true;
}

/* Returns the number of bytes that the suffix of a size stands for; 0 if the suffix is unknown. */
static int64_t size_factor(const char *suffix)
{
    static const char letters[] = "KMGT";
    if (!*suffix || strcmp(suffix, "B") == 0) return 1;
    const char *letter = strchr(letters, toupper((unsigned char)*suffix));
    if (!letter) return 0;
    bool decimal = strcasecmp(suffix + 1, "B") == 0;
    if (!decimal && suffix[1] && strcmp(suffix + 1, "iB") != 0) return 0;
    int64_t factor = 1;
    for (const char *l = letters; l <= letter; l++) factor *= decimal ? 1000 : 1024;
    return factor;
}

bool number_size(const char *text, int64_t *out)
{
    int64_t value;
    if (!number_scan(&text, &value) || value < 0) return false;
    int64_t factor = size_factor(text);
    return factor && !__builtin_mul_overflow(value, factor, out);
}

bool number_time(const char *text, int64_t *out)
{
    int64_t value;
    if (!number_scan(&text, &value) || value < 0) return false;
    int64_t factor = !*text || strcmp(text, "s") == 0 ? 1000
                     : strcmp(text, "ms") == 0        ? 1
                     : strcmp(text, "m") == 0         ? 60000
                                                      : 0;
    return factor && !__builtin_mul_overflow(value, factor, out);
}

bool number_real(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end;
}

cli_exit number_range(const char *text, double *lo, double *hi)
{
    char low[64];
    const char *comma = strchr(text, ',');
    size_t size = comma ? (size_t)(comma - text) : 0;
    bool good = comma && size < sizeof low;
    if (good) {
        memcpy(low, text, size);
        low[size] = '\0';
        good = number_real(low, lo) && number_real(comma + 1, hi);
    }
    if (good && isfinite(*lo) && isfinite(*hi) && *lo < *hi) return CLI_OK;
    return cli_fail(CLI_USAGE, "--range takes LO,HI with LO < HI, not '%s'", text);
}

static bool scan_axis(const char **text, int64_t *extent)
{
    while (**text == ' ') ++*text;
    if (!number_scan(text, extent)) return false;
    while (**text == ' ') ++*text;
    return true;
}

cli_exit number_shape(const char *text, const char *what, int *ndim, int64_t *shape)
{
    const char *at = text + (*text == '(');
    *ndim = 0;
    while (*at && *at != ')') {
        if (*ndim == CATERVA_MAX_DIMS)
            return cli_fail(CLI_USAGE, "%s '%s' has more than %d axes", what, text,
                            CATERVA_MAX_DIMS);
        if (!scan_axis(&at, &shape[*ndim]))
            return cli_fail(CLI_USAGE, "%s '%s': expected a count at '%s'", what, text, at);
        if (shape[*ndim] < 0)
            return cli_fail(CLI_USAGE, "%s '%s': axis %d is negative (%lld)", what, text,
                            *ndim, (long long)shape[*ndim]);
        ++*ndim;
        if (*at == ',' || *at == 'x') {
            at++;
        } else if (*at && *at != ')') {
            return cli_fail(CLI_USAGE, "%s '%s': expected ',' at '%s'", what, text, at);
        }
    }
    return CLI_OK;
}

const char *number_bytes(int64_t bytes, char text[NUMBER_TEXT_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1023.95 && unit < 6) { /* 1023.95 would print as 1024.0 */
        value /= 1024;
        unit++;
    }
    int64_t tenths = (int64_t)(value * 10 + 0.5);
    int digits = tenths % 10 == 0 ? 0 : 1;
    snprintf(text, NUMBER_TEXT_SIZE, "%.*f %s", digits, (double)tenths / 10, units[unit]);
    return text;
}

const char *number_seconds(double seconds, char text[NUMBER_TEXT_SIZE])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = seconds * 1e9;
    int unit = 0;
    while (value >= 999.5 && unit < 3) { /* 999.5 would print as 1000 */
        value /= 1000;
        unit++;
    }
    snprintf(text, NUMBER_TEXT_SIZE, "%.*f %s", value < 9.95 ? 1 : 0, value, units[unit]);
    return text;
}
