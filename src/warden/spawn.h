/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_SPAWN_H
#define HUTCH_WARDEN_SPAWN_H

/*
 * One sandbox on the warden's side: what a zygote (warden/zygote.h) becomes when it gets a folder, a
 * socket, limits and a spec.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "plan/spec.h"
#include "warden/zygote.h"

struct spawn_parts {
        int record; /* what is kept beside it (warden/state.h), or -EBADF: it won't be adopted */
        int output; /* of the agent itself: what it says about its own troubles */
        int netns;  /* its network namespace, of the kind that the spec says, */
        uint32_t net_index; /* and the number of it (warden/netns_pool.h) */
};

/*
 * A sandbox is made in two calls, so that one process can make many at a time:
 *
 *         r = spawn_begin(g, &zygote, &spec, &parts, &report, e);
 *         … `report` hangs up: whoever was building has ended, or is the agent now …
 *         r = spawn_finish(g, &spec, report, e);
 *
 * From the first on, its socket (agent.sock in the folder) takes connections; after the second the
 * agent runs, or does not any more. The spec is checked and names the zygote's uids. Descriptors of
 * `parts` stay the caller's; spawn_finish closes `report`, and waits if nobody has hung up. If one of
 * them fails the folder is gone, and the zygote is good for nothing but zygote_remove.
 */
int spawn_begin(const struct host_context *g, const struct zygote *zygote,
                const struct plan_spec *spec, const struct spawn_parts *parts, int *ret_report,
                struct err *e) must_check;
int spawn_finish(const struct host_context *g, const struct plan_spec *spec, int report,
                 struct err *e) must_check;

/* Ends all its processes, waits for them, and removes its group and its folder. Also for a sandbox of
 * which only a part is there; of the zygote only its uids are needed. */
int spawn_destroy(const struct host_context *g, const char *id, struct zygote *zygote,
                  struct err *e) must_check;

#endif
