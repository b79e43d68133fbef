/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_SPAWN_H
#define HUTCH_WARDEN_SPAWN_H

/*
 * Turns a zygote (warden/zygote.h) into a sandbox: gives it a directory, a socket, limits and its spec.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "plan/spec.h"
#include "warden/zygote.h"

struct spawn_order {
        const struct zygote *zygote;
        const struct plan_spec *spec; /* checked; its uid_first is the zygote's */
        struct str spec_bytes; /* the same as it was received; the zygote gets it unchanged */
        int record; /* stored beside the sandbox (warden/state.h); -EBADF: can't be adopted */
        int output; /* stdout and stderr of the agent itself */
        int netns;  /* its network namespace, of the kind that the spec names */
        uint32_t net_index; /* the index of that namespace (warden/netns_pool.h) */
};

/*
 * Two calls, so that one process can start many sandboxes at a time:
 *
 *         r = spawn_begin(ctx, &order, &report, e);
 *         … `report` hangs up: the agent serves, or has exited …
 *         r = spawn_finish(&spec, report, e);
 *
 * After spawn_begin the sandbox's socket (agent.sock in its directory) accepts connections; spawn_finish
 * tells whether the agent serves (BUILD_READY) or has ended before (BUILD_EXECUTED), when programs of the
 * sandbox may have run. Descriptors of the order stay the caller's. spawn_finish closes `report`, and
 * blocks if the other end is still open. If either fails, the zygote is only good for zygote_remove;
 * spawn_begin leaves no directory then, and after spawn_finish it is removed when the processes are gone.
 */
int spawn_begin(const struct host_context *ctx, const struct spawn_order *order, int *ret_report,
                struct err *e) must_check;
int spawn_finish(const struct plan_spec *spec, int report, struct err *e) must_check;
int spawn_remove_dir(const struct host_context *ctx, const char *id) must_check;

/* Kills all its processes, waits for them, and removes its cgroup and its directory. Also cleans up a
 * sandbox of which only a part exists. Only the uid range of the zygote is used. */
int spawn_destroy(const struct host_context *ctx, const char *id, struct zygote *zygote,
                  struct err *e) must_check;

#endif
