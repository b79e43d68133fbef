/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_CLOCK_H
#define HUTCH_BASE_CLOCK_H

/*
 * Time has one unit inside the code, the microsecond, and two clocks.
 *
 * clock_mono reads CLOCK_BOOTTIME: it never jumps and continues during suspend; deadlines and
 * time-to-live use it. clock_wall is for timestamps that people see. Both are reached through a
 * struct clock, so that tests can set the time.
 */

#include "base/buf.h"
#include "base/compiler.h"

typedef uint64_t usec_t;

#define USEC_PER_MSEC ((usec_t) 1000)
#define USEC_PER_SEC  ((usec_t) 1000000)
#define USEC_INFINITY UINT64_MAX

struct clock {
        usec_t (*mono)(const struct clock *c);
        usec_t (*wall)(const struct clock *c); /* since 1970, UTC */
};

/* The kernel's clocks. */
extern const struct clock clock_system;

static inline usec_t clock_mono(const struct clock *c)
{
        return c->mono(c);
}

static inline usec_t clock_wall(const struct clock *c)
{
        return c->wall(c);
}

/* a + b, saturating at USEC_INFINITY. */
static inline usec_t usec_add(usec_t a, usec_t b)
{
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}

/* --- wall time as text --- */

#define TIME_RFC3339_MAX 32 /* 2026-01-31T23:59:59.123456Z */
#define TIME_HTTP_MAX    32 /* Sat, 31 Jan 2026 23:59:59 GMT */

/* Both write a NUL-terminated text and return its length. RFC 3339 has milliseconds. Times after the
 * year 9999 (USEC_INFINITY, for example) are written as the last instant of that year. */
size_t time_to_rfc3339(usec_t wall, char ret[static TIME_RFC3339_MAX]);
size_t time_to_http(usec_t wall, char ret[static TIME_HTTP_MAX]);

/* -EINVAL for anything but the form above (RFC 3339: any fraction, cut to microseconds, any offset),
 * for days that do not exist, leap seconds, and times before 1970 or after 9999. */
int time_from_rfc3339(struct str s, usec_t *ret) must_check;
int time_from_http(struct str s, usec_t *ret) must_check;

#endif
