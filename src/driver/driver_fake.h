/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_DRIVER_FAKE_H
#define HUTCH_DRIVER_DRIVER_FAKE_H

/*
 * The fake driver: sandboxes are entries of a table, and nothing runs.
 *
 * The table is a world, a runtime of its own that outlives the driver: a test closes the driver,
 * opens another in the same world, and finds what a restarted hutchd would find. Several drivers may
 * be open in one world, as several hutchds are on one host; they see their own installation only.
 * A world belongs to one loop.
 *
 * Its agents answer GET /version and GET /ping, or what a test has them serve. At first every call
 * takes effect at once; the knobs make it slow, and make sandboxes die.
 *
 *         w = driver_fake_world_new();
 *         r = driver_fake_open_in(w, &setup, &d, &e);
 *         driver_fake_hold(w, 1U << DRIVER_CALL_CREATE);
 *         driver_start(d, driver_create_req(&c, record, request));
 *         … what can be seen meanwhile …
 *         driver_fake_release(w);
 */

#include "driver/driver_impl.h"
#include "http/route.h"

struct driver_fake_world;

struct driver_fake_world *driver_fake_world_new(void) must_check;

/* No driver may be open in it. */
void driver_fake_world_free(struct driver_fake_world *w);

/* What drivers that are opened from now on can do. At first: all there is. */
void driver_fake_set_caps(struct driver_fake_world *w, unsigned caps);

int driver_fake_open_in(struct driver_fake_world *w, const struct driver_setup *setup,
                        struct driver **ret, struct err *e) must_check;

/* --- time --- */

/* Calls of these kinds (1U << enum driver_call) wait before they have any effect, until they are
 * released or canceled. Replaces what was held before; those that wait stay. */
void driver_fake_hold(struct driver_fake_world *w, unsigned calls);

/* Nothing is held any more, and what waits goes on. */
void driver_fake_release(struct driver_fake_world *w);

/* The one that has waited longest goes on, what comes is still held. False if none waits. */
bool driver_fake_release_one(struct driver_fake_world *w);

/* How many calls of a kind wait. */
size_t driver_fake_held(const struct driver_fake_world *w, enum driver_call call);

/* Every call takes so many turns of the loop before it has its effect. */
void driver_fake_delay(struct driver_fake_world *w, unsigned turns);

/* How many calls of a kind were given to drivers of this world. */
uint64_t driver_fake_calls(const struct driver_fake_world *w, enum driver_call call);

/* --- fate; false if there is no such sandbox --- */

/* Ends it (RUNTIME_ENDED, RUNTIME_DEAD); its driver tells the watcher. The reason is a constant. */
bool driver_fake_kill(struct driver_fake_world *w, struct str id, const struct driver_health *how);

/* Removes it behind the driver's back; no event. */
bool driver_fake_vanish(struct driver_fake_world *w, struct str id);

/* Its record can't be read back any more: scan skips it. */
bool driver_fake_spoil(struct driver_fake_world *w, struct str id);

/* --- looking --- */

/* enum runtime_status; RUNTIME_GONE if there is none. */
int driver_fake_status(const struct driver_fake_world *w, struct str id);

/* Of all installations. */
size_t driver_fake_count(const struct driver_fake_world *w);
size_t driver_fake_snapshots(const struct driver_fake_world *w);

/* Removes a snapshot behind the driver's back. False if there is none. */
bool driver_fake_lose_snapshot(struct driver_fake_world *w, struct str id);

/* --- its agents --- */

/* What agents serve that are connected to for the first time from now on; NULL: as at first. A
 * handler finds out whose agent it plays by driver_fake_agent_of. */
struct driver_fake_agent {
        struct str id;
        void *data;
};

void driver_fake_set_agent(struct driver_fake_world *w, const struct http_api *api, void *data);

const struct driver_fake_agent *driver_fake_agent_of(const struct http_req *req);

#endif
