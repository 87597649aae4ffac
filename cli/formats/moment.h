/* Moments in time, in the notations of users and of the CF conventions: ISO 8601, "days since
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

/* Time since 1970-01-01 in some calendar. */
typedef struct moment {
    int64_t seconds;
    int32_t nanoseconds; /* [0, 1e9) */
} moment;

/* Finds a calendar by its CF name ("standard", "noleap", "360_day", ...). */
bool calendar_find(const char *name, calendar *out);

/* Parses `size` bytes: "2000", "2000-02", "2000-02-29", "2000-02-29T12", "... 12:30", "...:59.25Z".
 * The text denotes a period (a year, a day, a second) from *from until *until. Returns false if the
 * text is invalid or not a date of the calendar. */
bool moment_parse(const char *text, size_t size, calendar of, moment *from, moment *until);

/* Converts a text like those of moment_parse to a datetime64 in `unit` ("D", "25s", "M"), as NumPy
 * does. Returns false if it is invalid, lies between two counts, or has no count of 64 bits. */
bool moment_count(const char *text, const char *unit, int64_t *out);

/* How numbers count time: in steps of `nanoseconds` from `origin`. */
typedef struct time_count {
    calendar calendar;
    moment origin;
    int64_t nanoseconds; /* in one count */
} time_count;

/* Parses "<unit> since <date>" with the words of UDUNITS. Returns false if the text is invalid or
 * the unit has no fixed length. */
bool time_count_parse(const char *units, calendar of, time_count *out);

/* Parses the unit of a datetime64 ("ns", "25s", "D"). Fails in the cases of time_count_parse. */
bool time_count_of_datetime(const char *unit, time_count *out);

/* Computes the time from the origin to `at` in counts: *whole, rounded down, and the fraction *rest
 * in [0, 1). Returns false if *whole does not fit in 64 bits. */
bool time_count_of(const time_count *count, moment at, int64_t *whole, double *rest);

#endif
