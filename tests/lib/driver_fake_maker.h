/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_DRIVER_FAKE_MAKER_H
#define HUTCH_TESTS_LIB_DRIVER_FAKE_MAKER_H

/* The fake driver, and what stands on it, as makers of a driver_world. */

#include "driver/driver_fake.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

static inline void fake_begin(struct driver_world *w)
{
        w->runtime = driver_fake_world_new();
}

static inline void fake_end(struct driver_world *w)
{
        driver_fake_world_free(w->runtime);
}

static inline int fake_open(struct driver_world *w, const struct driver_setup *setup,
                            struct driver **ret, struct err *e)
{
        return driver_fake_open_in(w->runtime, setup, ret, e);
}

static inline void fake_kill(struct driver_world *w, struct str id, int status)
{
        check_true(
                driver_fake_kill(w->runtime, id,
                                 &(struct driver_health){ status, "EXITED", STR("by the test") }));
}

static inline void fake_spoil(struct driver_world *w, struct str id)
{
        check_true(driver_fake_spoil(w->runtime, id));
}

#define DRIVER_FAKE_MAKER(n, o)                                                                    \
        {                                                                                          \
                .name = (n), .begin = fake_begin, .end = fake_end, .open = (o), .kill = fake_kill, \
                .spoil = fake_spoil, .many = 500                                                   \
        }

#endif
