/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_EXPIRY_H
#define HUTCH_MODEL_EXPIRY_H

/*
 * When a sandbox ends by itself: one end, on two clocks.
 *
 * The monotonic clock decides (CLOCK_BOOTTIME: it goes on while the machine sleeps and nobody can
 * set it), the wall clock is what clients are shown and what they say when they renew. Both are
 * fixed together, when the end is set, and do not follow each other afterwards: a wall clock that
 * is corrected by an hour neither kills a sandbox nor keeps it.
 *
 * A monotonic time means nothing after a reboot, so it is kept together with the boot's id
 * (/proc/sys/kernel/random/boot_id; read by the caller, this layer reads nothing):
 *
 *   - hutchd restarts, same boot:  the monotonic time is good as it is;
 *   - the machine was rebooted:    what is left by the wall clock counts, once; expiry_adopt fixes
 *                                  the end on the new boot's clock, and that is to be stored.
 *
 * After a reboot the wall clock may be wrong (no battery, no network yet). Behind, it would
 * lengthen a life, so never more is left than was once granted; ahead, it may end one early, which
 * is the safe side. "Never" is no expiry at all: a NULL pointer in the record.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"

/* Now, as pure functions are told it. */
struct timestamp {
        usec_t mono;
        usec_t wall;
        struct str boot_id;
};

struct expiry {
        int64_t wall_ms;    /* as shown */
        int64_t mono_usec;  /* as held, on the clock of that boot */
        int64_t granted_ms; /* how long it was when it was set */
        struct str boot_id; /* of the timestamp's; a record copies it (sandbox_set_expiry) */
};

extern const struct json_field expiry_fields[];

/* Ends ttl from now on. */
struct expiry expiry_after(const struct timestamp *now, usec_t ttl);

/* Ends at that wall time. ERR_INVALID if it is not in the future. */
int expiry_at(const struct timestamp *now, usec_t wall, struct expiry *ret, struct err *e)
        must_check;

/* A wall time as clients write it: RFC 3339, and the same without an offset, which is UTC. -EINVAL
 * for anything else. */
int expiry_parse_time(struct str s, usec_t *ret) must_check;

/* On the monotonic clock of now's boot. */
usec_t expiry_deadline(const struct expiry *x, const struct timestamp *now);

/* Fixes the end on this boot's clock; whether there was anything to change. The wall time as shown
 * stays. */
bool expiry_adopt(struct expiry *x, const struct timestamp *now);

static inline bool expiry_is_due(const struct expiry *x, const struct timestamp *now)
{
        return expiry_deadline(x, now) <= now->mono;
}

/* What is wrong with an expiry that was read, or NULL. */
const char *expiry_check(const struct expiry *x);

#endif
