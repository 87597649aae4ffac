/* Moments in time as written by people and in the CF conventions: ISO 8601, "days since
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

/* Time since 1970-01-01 of its calendar, or since another date of it. */
typedef struct moment {
    int64_t seconds;
    int32_t nanoseconds; /* [0, 1e9) */
} moment;

/* Finds a calendar by its CF name ("standard", "noleap", "360_day", ...). */
bool calendar_find(const char *name, calendar *out);

/* Parses "2000", "2000-02", "2000-02-29", "2000-02-29T12", "... 12:30", "...:59.25Z", `size` bytes.
 * It denotes the time from *from until *until: a year, a day, a second. False if it is invalid, or
 * not a date of the calendar. */
bool moment_parse(const char *text, size_t size, calendar of, moment *from, moment *until);

/* Converts such a text to a datetime64 in `unit` ("D", "25s", "M"), as NumPy does. False if it is
 * invalid, lies between two counts, or does not fit. */
bool moment_count(const char *text, const char *unit, int64_t *out);

/* A way to count time by numbers. */
typedef struct time_count {
    calendar calendar;
    moment origin;
    int64_t nanoseconds; /* of one count */
} time_count;

/* Parses "<unit> since <date>" with the words of UDUNITS. False if it is invalid, or the unit has
 * no fixed length. */
bool time_count_parse(const char *units, calendar of, time_count *out);

/* Parses the unit of a datetime64 ("ns", "25s", "D"); false as above. */
bool time_count_of_datetime(const char *unit, time_count *out);

/* Returns the counts between the origin and the moment: the whole ones, rounded down, and the rest
 * in [0, 1). False if that does not fit. */
bool time_count_of(const time_count *count, moment at, int64_t *whole, double *rest);

#endif
