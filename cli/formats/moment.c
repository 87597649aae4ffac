/* Room: cli/formats. Calendars and moments, in integers. Years are bounded: nothing overflows. */
#include "formats/moment.h"

#include <stdlib.h>
#include <string.h>

enum { GIGA = 1000000000, DAY_SECONDS = 86400, LATEST_YEAR = 1000000 };

bool calendar_find(const char *name, calendar *out)
{
    static const struct {
        const char *name;
        calendar calendar;
    } names[] = {
        {"standard", CALENDAR_STANDARD},
        {"gregorian", CALENDAR_STANDARD},
        {"proleptic_gregorian", CALENDAR_GREGORIAN},
        {"julian", CALENDAR_JULIAN},
        {"noleap", CALENDAR_NO_LEAP},
        {"365_day", CALENDAR_NO_LEAP},
        {"all_leap", CALENDAR_ALL_LEAP},
        {"366_day", CALENDAR_ALL_LEAP},
        {"360_day", CALENDAR_360_DAY},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, name) != 0) continue;
        *out = names[i].calendar;
        return true;
    }
    return false;
}

/* ---- Days --------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool is_julian(calendar of, int64_t year, int64_t month, int64_t day)
{
    if (of != CALENDAR_STANDARD) return of == CALENDAR_JULIAN;
    return year < 1582 || (year == 1582 && (month < 10 || (month == 10 && day < 15)));
}

static bool is_leap(calendar of, int64_t year)
{
    switch (of) {
    case CALENDAR_NO_LEAP: return false;
    case CALENDAR_ALL_LEAP: return true;
    default: break;
    }
    if (is_julian(of, year, 1, 1)) return year % 4 == 0;
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int64_t month_length(calendar of, int64_t year, int64_t month)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (of == CALENDAR_360_DAY) return 30;
    return lengths[month - 1] + (month == 2 && is_leap(of, year));
}

/* Returns the days from year 0 to 1 January of the year. In year 0 the Julian calendar is two days
 * ahead of the Gregorian one. */
static int64_t days_before_year(calendar of, int64_t year, bool julian)
{
    switch (of) {
    case CALENDAR_360_DAY: return 360 * year;
    case CALENDAR_NO_LEAP: return 365 * year;
    case CALENDAR_ALL_LEAP: return 366 * year;
    default: break;
    }
    int64_t leaps = floor_div(year + 3, 4);
    if (julian) return 365 * year + leaps - 2;
    return 365 * year + leaps - floor_div(year + 99, 100) + floor_div(year + 399, 400);
}

/* Sets *out to the day's number, from year 0 of the calendar on. Returns false for an invalid
 * day. */
static bool day_number(calendar of, int64_t year, int64_t month, int64_t day, int64_t *out)
{
    bool skipped =
        of == CALENDAR_STANDARD && year == 1582 && month == 10 && day > 4 && day < 15;
    if (month < 1 || month > 12 || day < 1 || day > month_length(of, year, month) || skipped)
        return false;
    *out = days_before_year(of, year, is_julian(of, year, month, day)) + day - 1;
    for (int64_t m = 1; m < month; m++) *out += month_length(of, year, m);
    return true;
}

/* ---- Parsing ---------------------------------------------------------------------------- */

typedef struct scanner {
    const char *at, *end;
} scanner;

/* Reads a number of `least` to `most` digits. */
static bool take_digits(scanner *s, int least, int most, int64_t *out)
{
    int n = 0;
    *out = 0;
    for (; n < most && s->at < s->end && *s->at >= '0' && *s->at <= '9'; n++)
        *out = *out * 10 + (*s->at++ - '0');
    bool more = s->at < s->end && *s->at >= '0' && *s->at <= '9';
    return n >= least && !more;
}

static bool take(scanner *s, char c)
{
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

/* Reads the digits after the decimal point; ignores those after the ninth. */
static bool take_fraction(scanner *s, int32_t *nanoseconds, int64_t *unit)
{
    int n = 0;
    *nanoseconds = 0;
    *unit = GIGA;
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++, n++) {
        if (n >= 9) continue;
        *unit /= 10;
        *nanoseconds += (int32_t)((*s->at - '0') * *unit);
    }
    return n > 0;
}

typedef struct civil {
    int64_t year, month, day, hour, minute, second;
    int32_t nanoseconds;
    int64_t zone; /* seconds ahead of UTC */
    int parts;    /* number of parts given: 1 year, ..., 6 second, 7 its fraction */
    int64_t unit; /* nanoseconds of the last digit of a fraction */
} civil;

/* Reads a zone: "Z", "UTC", "+01:00", "-3" or "+0130", with or without blanks before it. The end of
 * the text is a valid zone too. */
static bool take_zone(scanner *s, civil *c)
{
    int64_t hours, minutes = 0;
    while (take(s, ' ')) continue;
    if (take(s, 'Z') || s->at == s->end) return s->at == s->end;
    if (s->end - s->at == 3 && memcmp(s->at, "UTC", 3) == 0) {
        s->at = s->end;
        return true;
    }
    bool behind = take(s, '-');
    if (!behind && !take(s, '+')) return false;
    if (s->end - s->at == 4) {
        if (!take_digits(s, 4, 4, &hours)) return false;
        minutes = hours % 100;
        hours /= 100;
    } else if (!take_digits(s, 1, 2, &hours) ||
               (take(s, ':') && !take_digits(s, 2, 2, &minutes))) {
        return false;
    }
    c->zone = (hours * 3600 + minutes * 60) * (behind ? -1 : 1);
    return s->at == s->end && hours < 24 && minutes < 60;
}

/* Reads the time after the date. Each number has `least` to two digits. */
static bool take_clock(scanner *s, int least, civil *c)
{
    c->parts = 4;
    if (!take_digits(s, least, 2, &c->hour)) return false;
    if (!take(s, ':')) return take_zone(s, c);
    c->parts = 5;
    if (!take_digits(s, least, 2, &c->minute)) return false;
    if (!take(s, ':')) return take_zone(s, c);
    c->parts = 6;
    if (!take_digits(s, least, 2, &c->second)) return false;
    if (take(s, '.')) {
        c->parts = 7;
        if (!take_fraction(s, &c->nanoseconds, &c->unit)) return false;
    }
    return take_zone(s, c);
}

/* Reads a date and time. Each number has `least` to two digits; the year has four or, if `least` is
 * 1, one to seven. */
static bool take_civil(const char *text, size_t size, int least, civil *c)
{
    scanner s = {text, text + size};
    bool negative = take(&s, '-');
    *c = (civil){.month = 1, .day = 1, .parts = 1};
    if (!take_digits(&s, least == 1 ? 1 : 4, least == 1 ? 7 : 4, &c->year) ||
        c->year > LATEST_YEAR)
        return false;
    if (negative) c->year = -c->year;
    if (s.at == s.end) return true;
    c->parts = 2;
    if (!take(&s, '-') || !take_digits(&s, least, 2, &c->month)) return false;
    if (s.at == s.end) return true;
    c->parts = 3;
    if (!take(&s, '-') || !take_digits(&s, least, 2, &c->day)) return false;
    if (s.at == s.end) return true;
    if (take(&s, 'T') || take(&s, 't')) return take_clock(&s, least, c);
    if (!take(&s, ' ')) return false;
    while (take(&s, ' ')) continue;
    if (s.at < s.end && (*s.at == 'Z' || *s.at == 'U')) return take_zone(&s, c);
    return s.at == s.end || take_clock(&s, least, c);
}

/* ---- Moments ------------------------------------------------------------ */

static bool to_moment(const civil *c, calendar of, moment *out)
{
    int64_t day;
    if (c->hour > 23 || c->minute > 59 || c->second > 59) return false;
    if (!day_number(of, c->year, c->month, c->day, &day)) return false;
    int64_t epoch = 0;
    (void)day_number(of, 1970, 1, 1, &epoch);
    out->seconds =
        (day - epoch) * DAY_SECONDS + c->hour * 3600 + c->minute * 60 + c->second - c->zone;
    out->nanoseconds = c->nanoseconds;
    return true;
}

static moment later(moment m, int64_t seconds, int64_t nanoseconds)
{
    int64_t sum = m.nanoseconds + nanoseconds;
    return (moment){m.seconds + seconds + sum / GIGA, (int32_t)(sum % GIGA)};
}

/* Sets *until to the end of the period that `c` denotes, which begins at `from`. A year or month
 * ends where the next one begins, because its length varies. */
static bool end_of(const civil *c, calendar of, moment from, moment *until)
{
    civil next = *c;
    switch (c->parts) {
    case 1: next.year++; return to_moment(&next, of, until);
    case 2:
        next.month = c->month % 12 + 1;
        next.year += c->month == 12;
        return to_moment(&next, of, until);
    case 3: *until = later(from, DAY_SECONDS, 0); return true;
    case 4: *until = later(from, 3600, 0); return true;
    case 5: *until = later(from, 60, 0); return true;
    case 6: *until = later(from, 1, 0); return true;
    default: *until = later(from, 0, c->unit); return true;
    }
}

bool moment_parse(const char *text, size_t size, calendar of, moment *from, moment *until)
{
    civil c;
    return take_civil(text, size, 2, &c) && to_moment(&c, of, from) &&
           end_of(&c, of, *from, until);
}

/* ---- Counts ------------------------------------------------------------- */

static const struct {
    const char *names; /* each followed by a blank */
    int64_t nanoseconds;
} units[] = {
    {"weeks week ", INT64_C(7) * DAY_SECONDS *GIGA},
    {"days day d ", INT64_C(86400) * GIGA},
    {"hours hour hrs hr h ", INT64_C(3600) * GIGA},
    {"minutes minute mins min ", INT64_C(60) * GIGA},
    {"seconds second secs sec s ", GIGA},
    {"milliseconds millisecond millisecs millisec msecs msec ms ", 1000000},
    {"microseconds microsecond us ", 1000},
    {"nanoseconds nanosecond ns ", 1},
};

static int64_t unit_length(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        for (const char *at = units[i].names, *end; (end = strchr(at, ' ')); at = end + 1)
            if ((size_t)(end - at) == size && memcmp(at, name, size) == 0)
                return units[i].nanoseconds;
    return 0;
}

bool time_count_parse(const char *text, calendar of, time_count *out)
{
    static const char since[] = " since ";
    const char *word = strstr(text, since);
    if (!word) return false;
    const char *date = word + sizeof since - 1;
    size_t size = strlen(date);
    civil c;
    *out = (time_count){.calendar = of};
    out->nanoseconds = unit_length(text, (size_t)(word - text));
    while (size > 0 && date[size - 1] == ' ') size--;
    return out->nanoseconds > 0 && take_civil(date, size, 1, &c) && c.parts >= 3 &&
           to_moment(&c, of, &out->origin);
}

bool time_count_of_datetime(const char *unit, time_count *out)
{
    static const struct {
        const char *name;
        int64_t nanoseconds;
    } names[] = {{"W", INT64_C(604800) * GIGA},
                 {"D", INT64_C(86400) * GIGA},
                 {"h", INT64_C(3600) * GIGA},
                 {"m", INT64_C(60) * GIGA},
                 {"s", GIGA},
                 {"ms", 1000000},
                 {"us", 1000},
                 {"ns", 1}};
    char *name;
    long many = strtol(unit, &name, 10);
    if (name == unit) many = 1;
    *out = (time_count){.calendar = CALENDAR_GREGORIAN};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0 && many > 0 &&
            many <= INT64_MAX / names[i].nanoseconds)
            out->nanoseconds = names[i].nanoseconds * many;
    return out->nanoseconds > 0;
}

bool time_count_of(const time_count *count, moment at, int64_t *whole, double *rest)
{
    int64_t seconds = at.seconds - count->origin.seconds; /* no overflow: years are bounded */
    int64_t nanoseconds = at.nanoseconds - count->origin.nanoseconds;
    if (nanoseconds < 0) {
        nanoseconds += GIGA;
        seconds--;
    }
    if (count->nanoseconds % GIGA == 0) {
        int64_t length = count->nanoseconds / GIGA;
        *whole = floor_div(seconds, length);
        int64_t left = seconds - *whole * length;
        *rest = ((double)left + (double)nanoseconds / (double)GIGA) / (double)length;
        return true;
    }
    if (GIGA % count->nanoseconds == 0) {
        int64_t per_second = GIGA / count->nanoseconds;
        if (seconds > INT64_MAX / per_second - 1 || seconds < INT64_MIN / per_second + 1)
            return false;
        *whole = seconds * per_second + nanoseconds / count->nanoseconds;
        *rest = (double)(nanoseconds % count->nanoseconds) / (double)count->nanoseconds;
        return true;
    }
    /* A count may not divide a second (30 ms), so this counts in nanoseconds. */
    if (seconds > INT64_MAX / GIGA - 1 || seconds < INT64_MIN / GIGA + 1) return false;
    int64_t all = seconds * GIGA + nanoseconds;
    *whole = floor_div(all, count->nanoseconds);
    *rest = (double)(all - *whole * count->nanoseconds) / (double)count->nanoseconds;
    return true;
}

/* Sets *out to the time since 1970 in counts of `many` years or months. Returns false if the time
 * is not a whole number of counts. */
static bool count_months(const civil *c, int64_t many, bool years, int64_t *out)
{
    int64_t months = (c->year - 1970) * 12 + c->month - 1, each = many * (years ? 12 : 1);
    bool whole = c->day == 1 && c->hour == 0 && c->minute == 0 && c->second == 0 &&
                 c->nanoseconds == 0 && c->zone == 0 && each > 0 && months % each == 0;
    if (whole) *out = months / each;
    return whole;
}

bool moment_count(const char *text, const char *unit, int64_t *out)
{
    civil c;
    moment at;
    time_count count;
    double rest;
    char *name;
    long many = strtol(unit, &name, 10);
    if (name == unit) many = 1;
    if (!take_civil(text, strlen(text), 2, &c) || !to_moment(&c, CALENDAR_GREGORIAN, &at))
        return false;
    if (strcmp(name, "Y") == 0 || strcmp(name, "M") == 0)
        return count_months(&c, many, name[0] == 'Y', out);
    return time_count_of_datetime(unit, &count) && time_count_of(&count, at, out, &rest) &&
           rest == 0;
}
