/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_ENGINE_ENGINE_H
#define HUTCH_DRIVER_ENGINE_ENGINE_H

/*
 * The drivers `docker` and `podman`: sandboxes are containers of an engine that somebody else runs.
 *
 * Who holds the socket of a root engine is root. Therefore the engine is not asked by hutchd, which faces
 * the network, but by a worker process of its own, hutch-engine, which does a closed table of things
 * (engine/protocol.h) and decides itself what a container of ours looks like. This driver starts the worker,
 * puts the calls of the interface into words for it, and starts it anew when it ends.
 *
 *         hutchd ── driver/engine ══ a pair of sockets ══ hutch-engine ── HTTP ── engine's socket
 *
 * An engine that does not answer is no reason not to open: calls are ERR_UNAVAILABLE until it does.
 */

#include "base/json.h"
#include "driver/driver.h"
#include "engine/kind.h"

/* What is said about one engine; all of it zero is a good default. */
struct engine_config {
        const char *socket; /* path of the engine's socket; NULL: where Debian's packages have it */
        /* Path of hutch-engine, or "unix:PATH" of a socket behind which somebody else starts it, for each
         * connection, as another user. NULL: beside the agent. */
        const char *worker;
        int reach;                  /* enum engine_reach */
        int network;                /* enum engine_network */
        struct json_strs host_dirs; /* of which volumes may mount; none: host volumes are refused */
};

/* `config` may be NULL. Nothing is kept of it, or of the setup. */
int driver_engine_open(const struct driver_setup *setup, enum engine_kind kind,
                       const struct engine_config *config, struct driver **ret, struct err *e)
        must_check;

/* The same with what setup->engines says. For the table of hutchd. */
int driver_docker_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
        must_check;
int driver_podman_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
        must_check;

#endif
