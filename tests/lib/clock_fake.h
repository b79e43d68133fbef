/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_CLOCK_FAKE_H
#define HUTCH_TESTS_LIB_CLOCK_FAKE_H

/* A clock that stands still until a test moves it. */

#include "base/clock.h"

struct clock_fake {
        struct clock clock;
        usec_t mono_now;
        usec_t wall_now;
};

static inline usec_t clock_fake_mono(const struct clock *c)
{
        return container_of(c, struct clock_fake, clock)->mono_now;
}

static inline usec_t clock_fake_wall(const struct clock *c)
{
        return container_of(c, struct clock_fake, clock)->wall_now;
}

static inline void clock_fake_init(struct clock_fake *c, usec_t mono, usec_t wall)
{
        *c = (struct clock_fake){
                .clock = { .mono = clock_fake_mono, .wall = clock_fake_wall },
                .mono_now = mono,
                .wall_now = wall,
        };
}

static inline void clock_fake_advance(struct clock_fake *c, usec_t by)
{
        c->mono_now = usec_add(c->mono_now, by);
        c->wall_now = usec_add(c->wall_now, by);
}

#endif
