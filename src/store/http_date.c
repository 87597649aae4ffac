/* Room: store. Dates as HTTP has them. */
#include "store/http_date.h"

#include <string.h>

typedef struct parts {
    int year, month, day, hour, minute, second;
} parts;

/* In patterns: '*' is any letters, '#' a month's name, and D Y h m s are digits of a number, of
 * which the first may be a blank. All else stands for itself. */
static const char *const forms[] = {
    "*, DD # YYYY hh:mm:ss GMT", /* the one that servers send */
    "*, DD-#-YY hh:mm:ss GMT",
    "* # DD hh:mm:ss YYYY",
};

static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

static int month_of(const char *name)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (memcmp(months + 3 * i, name, 3) == 0) return i + 1;
    return 0;
}

static int *number_of(parts *p, char letter)
{
    switch (letter) {
    case 'D': return &p->day;
    case 'Y': return &p->year;
    case 'h': return &p->hour;
    case 'm': return &p->minute;
    case 's': return &p->second;
    default: return NULL;
    }
}

static bool take_digit(char c, bool is_first, int *number)
{
    if (c == ' ' && is_first) return true;
    if (c < '0' || c > '9') return false;
    *number = 10 * *number + (c - '0');
    return true;
}

static bool match(const char *form, const char *at, const char *end, parts *out)
{
    *out = (parts){0};
    for (const char *f = form; *f; f++) {
        int *number = number_of(out, *f);
        bool is_first = f == form || f[-1] != *f;
        if (*f == '*') {
            while (at < end && is_letter(*at)) at++;
        } else if (*f == '#') {
            if (end - at < 3 || (out->month = month_of(at)) == 0) return false;
            at += 3;
        } else if (at == end || !(number ? take_digit(*at, is_first, number) : *at == *f)) {
            return false;
        } else {
            at++;
        }
    }
    return at == end;
}

/* Since 1970, by the calendar of Gregory. Years are counted from March. */
static int64_t days_of(const parts *p)
{
    int64_t year = p->month > 2 ? p->year : p->year - 1;
    int64_t month = (p->month + 9) % 12;
    return 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + p->day -
           1 - 719468;
}

bool cv_http_date(const char *text, size_t size, int64_t *out)
{
    parts p = {0};
    size_t i = 0, n = sizeof forms / sizeof forms[0];
    while (i < n && !match(forms[i], text, text + size, &p)) i++;
    if (i == n) return false;
    if (p.year < 100) p.year += p.year < 70 ? 2000 : 1900; /* two digits */
    bool is_good = p.year >= 1970 && p.day >= 1 && p.day <= 31 && p.hour < 24 &&
                   p.minute < 60 && p.second <= 60;
    if (!is_good) return false;
    *out = ((days_of(&p) * 24 + p.hour) * 60 + p.minute) * 60 + p.second;
    return true;
}
