/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_WARDEN_H
#define HUTCH_WARDEN_WARDEN_H

/*
 * The warden: makes, watches and removes native sandboxes for the one who holds the other end of its
 * socket (plan/protocol.h).
 *
 * One process, one thread, one loop. Nothing in the loop takes a time that grows with a sandbox: a
 * sandbox is built by its own process, and its directory is removed by a janitor, a child that does
 * nothing else. Network namespaces are made and closed by another child (warden/netns_process.h).
 *
 * When the warden ends, its sandboxes live on; the next one finds them again by what is written in
 * their directories (warden/state.h), and removes what was half made or half removed.
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
        unsigned seeds;    /* that are kept ready */
        unsigned networks; /* of each kind, that are kept ready (warden/netns_pool.h) */
        bool no_private; /* sandboxes with a network are refused, and the host's rules untouched */
        struct str subnet4, subnet6; /* warden/addr_plan.h; null: the defaults */
        struct resolvers dns;        /* of sandboxes; empty: found out (warden/resolvers.h) */
        int socket;
        const struct log_ctx *log;
};

/* Runs until it is told to end (SIGTERM, SIGINT), or the other end of the socket is closed: 0. The
 * calling process needs no more of its signals, its mount namespace and its limits. */
int warden_run(const struct warden_config *config, struct err *e) must_check;

#endif
