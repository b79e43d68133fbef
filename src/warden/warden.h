/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_WARDEN_H
#define HUTCH_WARDEN_WARDEN_H

/*
 * The warden creates, watches and removes native sandboxes for the process at the other end of its
 * socket (plan/protocol.h).
 *
 * One process, one thread, one loop. Nothing in the loop takes a time that grows with a sandbox: a
 * sandbox is built by its own process, its directory is removed by a janitor process, zygotes are made by
 * the zygote server (warden/zygote_server.h), and network namespaces by the netns pool process
 * (warden/netns_process.h).
 *
 * When the warden exits its sandboxes keep running. The next warden finds them by what is recorded in
 * their directories (warden/state.h) and removes what is incomplete.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "base/log.h"
#include "plan/spec.h"
#include "warden/resolvers.h"

struct warden_config {
        const char *data;         /* path of the data directory; made if it is missing */
        const char *agent;        /* path of hutch-execd */
        const char *installation; /* in the name of our cgroup; see plan_spec_is_id */
        struct plan_uids uids;
        uint64_t memory_reserve; /* bytes that sandboxes leave to the host; 0: the default */
        unsigned zygotes;        /* to keep ready */
        unsigned networks;       /* namespaces of each kind to keep ready (warden/netns_pool.h) */
        bool no_private; /* refuse private networks, and leave the host's packet rules alone */
        struct str subnet4, subnet6; /* null: see warden/subnet.h */
        struct resolvers dns;        /* of sandboxes; empty: see warden/resolvers.h */
        int socket;
        const struct log_ctx *log;
};

/* Runs until SIGTERM or SIGINT, or until the other end of the socket is closed: 0. Changes the signal
 * handlers, the mount namespace and the limits of the calling process, and gives it the warden's seccomp filter. */
int warden_run(const struct warden_config *config, struct err *e) must_check;

#endif
