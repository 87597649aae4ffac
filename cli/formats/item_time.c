/* Room: cli/formats. Prints datetime64 and timedelta64: ISO 8601 in the proleptic Gregorian
 * calendar, as NumPy does. Accepts every 64-bit count without overflow. */
#include "formats/item.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A unit shorter than a day. Seconds are printed with `digits` decimals. */
typedef struct time_unit {
    const char *name;
    int64_t per_second; /* counts in a second; 0: a count is longer than a second */
    int64_t seconds;    /* seconds in a count; 1 if a count is shorter than a second */
    int digits;
} time_unit;

static const time_unit units[] = {
    {"h", 0, 3600, 0},
    {"m", 0, 60, 0},
    {"s", 1, 1, 0},
    {"ms", 1000, 1, 3},
    {"us", 1000000, 1, 6},
    {"ns", 1000000000, 1, 9},
    {"ps", 1000000000000, 1, 12},
    {"fs", 1000000000000000, 1, 15},
    {"as", 1000000000000000000, 1, 18},
};

typedef struct civil_date {
    int64_t year;
    int month, day;
} civil_date;

/* Returns a / b rounded down. Sets *rest to the remainder, in [0, b). Cannot overflow. */
static int64_t floor_div(int64_t a, int64_t b, int64_t *rest)
{
    *rest = a % b;
    if (*rest >= 0) return a / b;
    *rest += b;
    return a / b - 1;
}

/* Converts days since 1970-01-01 to a date. Counts in eras of 400 years from 1 March of year 0 (H.
 * Hinnant, "chrono-compatible low-level date algorithms"). */
static civil_date date_of_days(int64_t days)
{
    int64_t day_of_era;
    int64_t era = floor_div(days, 146097, &day_of_era) + 4;
    day_of_era += 719468 - 4 * 146097; /* from year 1970 to year 0 */
    if (day_of_era >= 146097) {
        day_of_era -= 146097;
        era++;
    }
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month_from_march = (int)((5 * day_of_year + 2) / 153);
    civil_date date = {
        .year = year_of_era + era * 400,
        .month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9,
        .day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1),
    };
    date.year += date.month <= 2;
    return date;
}

static void print_date(FILE *stream, int64_t days)
{
    civil_date date = date_of_days(days);
    fprintf(stream, "%04" PRId64 "-%02d-%02d", date.year, date.month, date.day);
}

/* Prints "T05" for unit "h", "T05:30" for "m", "T05:30:00" and fractions for others. */
static void print_clock(FILE *stream, int64_t value, const time_unit *unit)
{
    int64_t second = value, fraction = 0, rest;
    if (unit->per_second > 1) second = floor_div(value, unit->per_second, &fraction);
    int64_t day = floor_div(second, 86400 / unit->seconds, &rest);
    rest *= unit->seconds;
    print_date(stream, day);
    fprintf(stream, "T%02d", (int)(rest / 3600));
    if (unit->seconds < 3600) fprintf(stream, ":%02d", (int)(rest / 60 % 60));
    if (unit->seconds < 60) fprintf(stream, ":%02d", (int)(rest % 60));
    if (unit->digits) fprintf(stream, ".%0*" PRId64, unit->digits, fraction);
}

static void print_year(FILE *stream, int64_t since_1970)
{
    int64_t year;
    if (__builtin_add_overflow(since_1970, 1970, &year)) year = INT64_MAX;
    fprintf(stream, "%04" PRId64, year);
}

static void print_datetime(FILE *stream, const char *unit, int64_t value)
{
    int64_t month;
    if (strcmp(unit, "Y") == 0) {
        print_year(stream, value);
        return;
    }
    if (strcmp(unit, "M") == 0) {
        print_year(stream, floor_div(value, 12, &month));
        fprintf(stream, "-%02d", (int)month + 1);
        return;
    }
    if (strcmp(unit, "D") == 0) {
        print_date(stream, value);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            print_clock(stream, value, &units[i]);
            return;
        }
    }
    fprintf(stream, "%" PRId64, value); /* the generic unit */
}

void item_print_time(FILE *stream, char kind, const char *unit, int64_t value)
{
    if (value == INT64_MIN) {
        fputs("NaT", stream);
        return;
    }
    static char day[] = "D";
    char *name;
    long long multiple = strtoll(unit, &name, 10); /* 25 for "25s" */
    int64_t factor = name == unit ? 1 : multiple;
    if (strcmp(name, "W") == 0 && kind == 'M') { /* weeks are printed as days */
        factor *= 7;
        name = day;
    }
    if (__builtin_mul_overflow(value, factor, &value)) {
        fputs("out-of-range", stream);
    } else if (kind == 'm') {
        fprintf(stream, "%" PRId64 "%s", value, strcmp(name, "generic") == 0 ? "" : name);
    } else {
        print_datetime(stream, name, value);
    }
}
