/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clocks, and wall times as text. The calendar is computed here and not by gmtime_r and strptime:
 * these depend on the locale, accept more than we want, and cost more than everything else in the head
 * of a response.
 */

#include "base/clock.h"

#include <time.h>

#include "base/banned.h"

/* --- clocks --- */

static usec_t read_clock(clockid_t id)
{
        struct timespec ts;
        int r = clock_gettime(id, &ts);

        ASSERT(r == 0);
        return (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
}

static usec_t system_mono(const struct clock *c)
{
        return read_clock(CLOCK_BOOTTIME);
}

static usec_t system_wall(const struct clock *c)
{
        return read_clock(CLOCK_REALTIME);
}

const struct clock clock_system = { .mono = system_mono, .wall = system_wall };

/* --- calendar --- */

#define SEC_PER_DAY  86400
#define DAYS_PER_ERA 146097 /* 400 years, after which the calendar repeats */
#define DAYS_TO_1970 719468 /* from 1 March of the year 0 */

/* 9999-12-31T23:59:59.999999Z, the last time that can be written. */
#define TIME_LAST (UINT64_C(253402300799) * USEC_PER_SEC + 999999)

struct date {
        unsigned year, month, day; /* month and day from 1 */
        unsigned hour, minute, second;
        unsigned weekday; /* 0 is Sunday */
        unsigned usec;
};

/* Years are counted from March here, so that the leap day is the last of its year: then month and
 * day follow from the day of the year by a straight line (153 days in each five months). */
static struct date date_from_usec(usec_t wall)
{
        uint64_t sec = MIN_OF(wall, TIME_LAST) / USEC_PER_SEC;
        unsigned in_day = (unsigned) (sec % SEC_PER_DAY);
        unsigned days = (unsigned) (sec / SEC_PER_DAY);
        unsigned since_0 = days + DAYS_TO_1970;
        unsigned doe = since_0 % DAYS_PER_ERA;
        unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
        unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        unsigned mp = (5 * doy + 2) / 153;
        unsigned month = mp < 10 ? mp + 3 : mp - 9;

        return (struct date){
                .year = since_0 / DAYS_PER_ERA * 400 + yoe + (month <= 2),
                .month = month,
                .day = doy - (153 * mp + 2) / 5 + 1,
                .hour = in_day / 3600,
                .minute = in_day / 60 % 60,
                .second = in_day % 60,
                .weekday = (days + 4) % 7, /* 1 January 1970 was a Thursday */
                .usec = (unsigned) (MIN_OF(wall, TIME_LAST) % USEC_PER_SEC),
        };
}

static unsigned days_in_month(unsigned year, unsigned month)
{
        static const unsigned char days[] = { 0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        return days[month] + (month == 2 && leap);
}

/* Seconds since 1970, negative before; false if there is no such time. */
static bool date_to_sec(const struct date *d, int64_t *ret)
{
        int64_t y = (int64_t) d->year - (d->month <= 2);
        unsigned mp = d->month > 2 ? d->month - 3 : d->month + 9;
        int64_t era, yoe, doe;

        if (d->month < 1 || d->month > 12 || d->day < 1 || d->day > days_in_month(d->year, d->month)
            || d->hour > 23 || d->minute > 59 || d->second > 59 || y < 0)
                return false;
        era = y / 400;
        yoe = y % 400;
        doe = yoe * 365 + yoe / 4 - yoe / 100 + (153 * mp + 2) / 5 + d->day - 1;
        *ret = (era * DAYS_PER_ERA + doe - DAYS_TO_1970) * SEC_PER_DAY + d->hour * 3600
               + d->minute * 60 + d->second;
        return true;
}

/* --- writing --- */

static const char weekday_names[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };

static char *put_number(char *p, unsigned v, unsigned digits)
{
        for (unsigned i = digits; i > 0; i--) {
                p[i - 1] = (char) ('0' + v % 10);
                v /= 10;
        }
        return p + digits;
}

static char *put_text(char *p, const char *z, size_t n)
{
        memcpy(p, z, n);
        return p + n;
}

static char *put_time_of_day(char *p, const struct date *d)
{
        p = put_number(p, d->hour, 2);
        *p++ = ':';
        p = put_number(p, d->minute, 2);
        *p++ = ':';
        return put_number(p, d->second, 2);
}

size_t time_to_rfc3339(usec_t wall, char ret[static TIME_RFC3339_MAX])
{
        struct date d = date_from_usec(wall);
        char *p = ret;

        p = put_number(p, d.year, 4);
        *p++ = '-';
        p = put_number(p, d.month, 2);
        *p++ = '-';
        p = put_number(p, d.day, 2);
        *p++ = 'T';
        p = put_time_of_day(p, &d);
        *p++ = '.';
        p = put_number(p, d.usec / 1000, 3);
        *p++ = 'Z';
        *p = '\0';
        return (size_t) (p - ret);
}

size_t time_to_http(usec_t wall, char ret[static TIME_HTTP_MAX])
{
        struct date d = date_from_usec(wall);
        char *p = ret;

        p = put_text(p, weekday_names[d.weekday], 3);
        p = put_text(p, ", ", 2);
        p = put_number(p, d.day, 2);
        *p++ = ' ';
        p = put_text(p, month_names[d.month - 1], 3);
        *p++ = ' ';
        p = put_number(p, d.year, 4);
        *p++ = ' ';
        p = put_time_of_day(p, &d);
        p = put_text(p, " GMT", 4);
        *p = '\0';
        return (size_t) (p - ret);
}

/* --- reading --- */

/* Each take_ function removes one item from the front of *s, or returns false. */
static bool take_number(struct str *s, size_t digits, unsigned *ret)
{
        unsigned v = 0;

        if (s->n < digits)
                return false;
        for (size_t i = 0; i < digits; i++) {
                if (s->p[i] < '0' || s->p[i] > '9')
                        return false;
                v = v * 10 + (unsigned) (s->p[i] - '0');
        }
        *s = str_skip(*s, digits);
        *ret = v;
        return true;
}

static bool take_text(struct str *s, struct str text)
{
        if (!str_starts_with(*s, text))
                return false;
        *s = str_skip(*s, text.n);
        return true;
}

static bool take_char(struct str *s, char upper)
{
        return take_text(s, str_of(&upper, 1))
               || take_text(s, str_of((char[]){ (char) (upper | 0x20) }, 1));
}

static bool take_name(struct str *s, const char (*names)[4], unsigned n, unsigned *ret)
{
        for (unsigned i = 0; i < n; i++) {
                if (take_text(s, str_of(names[i], 3))) {
                        *ret = i;
                        return true;
                }
        }
        return false;
}

static bool take_time_of_day(struct str *s, struct date *d)
{
        return take_number(s, 2, &d->hour) && take_text(s, STR(":"))
               && take_number(s, 2, &d->minute) && take_text(s, STR(":"))
               && take_number(s, 2, &d->second);
}

/* ".5", of any length; absent is fine. */
static bool take_fraction(struct str *s, unsigned *ret_usec)
{
        unsigned scale = 100000, digit, v = 0;

        *ret_usec = 0;
        if (!take_text(s, STR(".")))
                return true;
        if (!take_number(s, 1, &digit))
                return false;
        do {
                v += digit * scale;
                scale /= 10;
        } while (take_number(s, 1, &digit));
        *ret_usec = v;
        return true;
}

static bool take_offset(struct str *s, int64_t *ret_sec)
{
        bool behind = str_starts_with(*s, STR("-"));
        unsigned hour, minute;

        *ret_sec = 0;
        if (take_char(s, 'Z'))
                return true;
        if (!take_text(s, behind ? STR("-") : STR("+")) || !take_number(s, 2, &hour)
            || !take_text(s, STR(":")) || !take_number(s, 2, &minute) || hour > 23 || minute > 59)
                return false;
        *ret_sec = (int64_t) (hour * 3600 + minute * 60) * (behind ? -1 : 1);
        return true;
}

static int usec_from_sec(int64_t sec, unsigned usec, usec_t *ret)
{
        if (sec < 0 || (uint64_t) sec > TIME_LAST / USEC_PER_SEC)
                return -EINVAL;
        *ret = (usec_t) sec * USEC_PER_SEC + usec;
        return 0;
}

int time_from_rfc3339(struct str s, usec_t *ret)
{
        struct date d;
        int64_t sec, offset;

        if (!take_number(&s, 4, &d.year) || !take_text(&s, STR("-"))
            || !take_number(&s, 2, &d.month) || !take_text(&s, STR("-"))
            || !take_number(&s, 2, &d.day) || !take_char(&s, 'T') || !take_time_of_day(&s, &d)
            || !take_fraction(&s, &d.usec) || !take_offset(&s, &offset) || s.n > 0
            || !date_to_sec(&d, &sec))
                return -EINVAL;
        return usec_from_sec(sec - offset, d.usec, ret);
}

int time_from_http(struct str s, usec_t *ret)
{
        struct date d;
        usec_t wall;
        int64_t sec;

        if (!take_name(&s, weekday_names, 7, &d.weekday) || !take_text(&s, STR(", "))
            || !take_number(&s, 2, &d.day) || !take_text(&s, STR(" "))
            || !take_name(&s, month_names, 12, &d.month) || !take_text(&s, STR(" "))
            || !take_number(&s, 4, &d.year) || !take_text(&s, STR(" ")) || !take_time_of_day(&s, &d)
            || !take_text(&s, STR(" GMT")) || s.n > 0)
                return -EINVAL;
        d.month++;
        if (!date_to_sec(&d, &sec) || usec_from_sec(sec, 0, &wall) < 0
            || date_from_usec(wall).weekday != d.weekday)
                return -EINVAL;
        *ret = wall;
        return 0;
}
