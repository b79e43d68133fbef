/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SERVICE_WORLD_H
#define HUTCH_TESTS_SERVICE_WORLD_H

/*
 * A whole control plane without sockets: loop, store, registry, fake runtime, service, and a clock that
 * moves on demand.
 *
 *         struct service_world w;
 *         service_world_open(&w, NULL);
 *         struct made m = world_create(&w, &(struct create_options){ .timeout = 600 });
 *         check_i64_eq(m.result, 0);
 *         service_world_advance(&w, 600 * USEC_PER_SEC);
 *         service_world_until(&w, world_state(&w, m.id) == STATE_TERMINATED);
 *         service_world_close(&w);
 *
 * Store and driver can be made to fail (store_failing_plan(w.store, …), driver_failing_plan(w.driver,
 * …)), and everything but store and runtime can be thrown away as by a crash and opened again.
 */

#include "tests/lib/driver_failing.h"
#include "driver/driver_fake.h"
#include "service/service.h"
#include "tests/lib/clock_fake.h"
#include "tests/lib/store_failing.h"
#include "tests/lib/check.h"

struct service_world {
        struct net_loop loop;
        struct clock_fake clock;
        struct ids ids;
        struct store *store;               /* failing, over one in memory */
        struct driver_fake_world *runtime; /* what the driver plays with */
        struct driver *driver;             /* failing, over a fake one */
        struct registry *registry;
        struct agents *agents;
        struct service *service;
        struct service_config config;
        struct service_start started; /* results of the last start */
        uv_async_t awake;             /* without a handle that counts, libuv does not turn */
        char boot_id[40];
        unsigned scans_to_fail; /* 1: the first of the next driver that is opened */
};

/* What differs from service_defaults: only members that are not 0 count. NULL: nothing. */
void service_world_open(struct service_world *w, const struct service_config *config);
void service_world_close(struct service_world *w);

/* One turn of the loop, without waiting. */
void service_world_turn(struct service_world *w);

/* Turns until it is so; fails after 20 seconds. */
#define service_world_until(w, condition)                                                 \
        do {                                                                              \
                usec_t until_began_ = clock_mono(&clock_system);                          \
                while (!(condition)) {                                                    \
                        if (clock_mono(&clock_system) - until_began_ > 20 * USEC_PER_SEC) \
                                fail_msg("never: %s", #condition);                        \
                        service_world_turn(w);                                            \
                }                                                                         \
        } while (0)

/* Turns until no command is under way. */
void service_world_idle(struct service_world *w);

/* Moves both clocks, and lets what is due begin. */
void service_world_advance(struct service_world *w, usec_t by);

/* --- restart --- */

/* Stops the service, and closes all but store and runtime. */
void service_world_down(struct service_world *w);

/* The same at this instant: whatever is under way reaches neither store nor runtime any more. */
void service_world_crash(struct service_world *w);

/* Opens again. The result of service_start. */
int service_world_up(struct service_world *w);

/* The same without waiting for the end of the start. */
void service_world_begin(struct service_world *w);
bool service_world_has_started(int *ret_result);

/* A reboot: the monotonic clock starts again. While it is down. */
void service_world_reboot(struct service_world *w);

/* All records are lost; what the runtime has stays. While it is down. */
void service_world_lose_records(struct service_world *w);

/* --- commands that wait --- */

struct create_options {
        const char *tenant;    /* NULL: "t" */
        const char *key;       /* idempotency */
        const char *body;      /* as JSON; NULL: made from what follows */
        int timeout;           /* seconds; 0: never */
        const char *extension; /* "name=value" */
        const char *cpu, *memory;
        const struct owner *owner; /* bound; NULL: the caller, not bound */
};

struct made {
        int result;
        char id[64];
        int state; /* enum state, of the record that came back; -1 without one */
        bool replayed;
        char code[64]; /* of the problems, or "" */
        char other_id[64];
        struct err err;
        usec_t retry_after;
};

struct made world_create(struct service_world *w, const struct create_options *o);

/* The same in two parts: many may be under way. */
struct creating;
struct creating *world_create_start(struct service_world *w, const struct create_options *o);
bool world_create_is_done(const struct creating *c);
void world_create_cancel(struct creating *c);
struct made world_create_end(struct creating *c); /* must be done; frees it */

/* Any of service_delete, pause, resume. */
typedef void service_command_fn(struct service *s, struct service_command *c);
int world_command(struct service_world *w, service_command_fn *f, const char *id);
int world_renew(struct service_world *w, const char *id, usec_t wall);
int world_patch(struct service_world *w, const char *id, const char *key, const char *value);

/* What the last of these said. */
const struct err *world_service_err(void);

struct commanding;
struct commanding *world_command_start(struct service_world *w, service_command_fn *f,
                                       const char *id);
struct commanding *world_patch_start(struct service_world *w, const char *id, const char *key,
                                     const char *value);
bool world_command_is_done(const struct commanding *c);
void world_command_cancel(struct commanding *c);
int world_command_end(struct commanding *c);

/* --- looking --- */

const struct caller *world_caller(const char *tenant);                     /* a user */
const struct sandbox *world_find(struct service_world *w, const char *id); /* of tenant t */

/* enum state; -1 if there is none. */
int world_state(struct service_world *w, const char *id);

/* Sandboxes of the registry that are live. */
size_t world_live(const struct service_world *w);

#endif
