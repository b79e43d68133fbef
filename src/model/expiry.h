/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_EXPIRY_H
#define HUTCH_MODEL_EXPIRY_H

/*
 * When a sandbox expires: one deadline, on two clocks.
 *
 * The monotonic clock decides (CLOCK_BOOTTIME: it runs while the host sleeps, and can't be set); the wall clock is what
 * clients see and send. Both are fixed together, when the deadline is set, and do not follow each other afterwards: a wall
 * clock that is corrected by an hour neither kills a sandbox nor keeps it.
 *
 * A monotonic time means nothing after a reboot, so it is stored with the id of its boot
 * (/proc/sys/kernel/random/boot_id; the caller reads it, this layer does no I/O):
 *
 *   - hutchd restarts, same boot:  the monotonic time is valid as it is;
 *   - the host was rebooted:       the time left by the wall clock counts, once; expiry_adopt fixes the deadline on the new
 *                                  boot's clock, and the caller stores that.
 *
 * After a reboot the wall clock may be wrong (no battery, no network yet). If it is behind, it would lengthen a sandbox's
 * life, so the time left never exceeds what was once granted; if it is ahead, a sandbox may expire early, which is the safe
 * side. A sandbox that never expires has no expiry at all: a NULL pointer in the record.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"

/* The current time, for pure functions. */
struct timestamp {
        usec_t mono;
        usec_t wall;
        struct str boot_id;
};

struct expiry {
        int64_t wall_ms;    /* for clients */
        int64_t mono_usec;  /* on the clock of that boot */
        int64_t granted_ms; /* from the time it was set */
        struct str boot_id; /* a view; a record copies it (sandbox_set_expiry) */
};

extern const struct json_field expiry_fields[];

/* Expires ttl from now. */
struct expiry expiry_after(const struct timestamp *now, usec_t ttl);

/* Expires at that wall time. ERR_INVALID if it is not in the future. */
int expiry_at(const struct timestamp *now, usec_t wall, struct expiry *ret, struct err *e)
        must_check;

/* A wall time as clients write it: RFC 3339, or the same without an offset, which means UTC. Else -EINVAL. */
int expiry_parse_time(struct str s, usec_t *ret) must_check;

/* On the monotonic clock of now's boot. */
usec_t expiry_deadline(const struct expiry *x, const struct timestamp *now);

/* Fixes the deadline on this boot's clock; whether anything changed. The wall time stays. */
bool expiry_adopt(struct expiry *x, const struct timestamp *now);

static inline bool expiry_is_due(const struct expiry *x, const struct timestamp *now)
{
        return expiry_deadline(x, now) <= now->mono;
}

/* What is wrong with a stored expiry, or NULL. */
const char *expiry_check(const struct expiry *x);

#endif
