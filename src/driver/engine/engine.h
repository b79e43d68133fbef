/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_ENGINE_ENGINE_H
#define HUTCH_DRIVER_ENGINE_ENGINE_H

/*
 * The drivers `docker` and `podman`: sandboxes are containers of an engine that the host's operator runs.
 *
 * Whoever holds the socket of a root engine is root. So not hutchd, which faces the network, talks to the engine, but
 * a worker process, hutch-engine, which carries out a closed table of requests (engine/protocol.h) and decides itself
 * what our containers look like. This driver starts the worker and translates the calls of the driver interface.
 *
 *         hutchd ── driver/engine ══ socket pair ══ hutch-engine ── HTTP ── engine's socket
 *
 * An engine that does not respond does not keep the driver from opening: calls are ERR_UNAVAILABLE until it does.
 */

#include "base/json.h"
#include "driver/driver.h"
#include "engine/kind.h"

/* The configuration of one engine; all zero is a good default. */
struct engine_config {
        const char *socket; /* path of the engine's socket; NULL: where Debian's packages put it */
        /* Path of hutch-engine, or "unix:PATH" of a socket behind which a service manager starts it, once per
         * connection, as another user. NULL: beside the agent. */
        const char *worker;
        int reach;                  /* enum engine_reach */
        int network;                /* enum engine_network */
        struct json_strs host_dirs; /* that volumes may mount; none: host volumes are refused */
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
