/* Moments in time as people and the CF conventions write them: ISO 8601, "days since
 * 2000-01-01", the calendars of climate models. */
#ifndef CLI_MOMENT_H
#define CLI_MOMENT_H

#include "cli.h"

typedef enum calendar {
    CALENDAR_STANDARD, /* Julian before 1582-10-15, Gregorian from then on */
    CALENDAR_GREGORIAN,
    CALENDAR_JULIAN,
    CALENDAR_NO_LEAP,
    CALENDAR_ALL_LEAP,
    CALENDAR_360_DAY
} calendar;

/* Since 1970-01-01 of its calendar, or another day of it. */
typedef struct moment {
    int64_t seconds;
    int32_t nanoseconds; /* [0, 1e9) */
} moment;

/* By the names of CF ("standard", "noleap", "360_day", ...). */
bool calendar_find(const char *name, calendar *out);

/* "2000", "2000-02", "2000-02-29", "2000-02-29T12", "... 12:30", "...:59.25Z": all of
 * `size` bytes. What it names lasts from *from until *until: a year, a day, a second. False
 * when it is none, or no date of the calendar. */
bool moment_parse(const char *text, size_t size, calendar of, moment *from, moment *until);

/* The datetime64 of such a text in `unit` ("D", "25s", "M"), as NumPy counts it; false when it is
 * none, falls between two counts, or does not fit. */
bool moment_count(const char *text, const char *unit, int64_t *out);

/* How a number counts time. */
typedef struct time_count {
    calendar calendar;
    moment origin;
    int64_t nanoseconds; /* of one */
} time_count;

/* "<unit> since <date>", in UDUNITS' words; false when it is not, or when the unit has no
 * fixed length. */
bool time_count_parse(const char *units, calendar of, time_count *out);

/* The unit of a datetime64 ("ns", "25s", "D"); false as above. */
bool time_count_of_datetime(const char *unit, time_count *out);

/* How many of them lie between the origin and the moment: whole ones, rounded down, and
 * what is left, [0, 1). False when that does not fit. */
bool time_count_of(const time_count *count, moment at, int64_t *whole, double *rest);

#endif
