/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_KIND_H
#define HUTCH_ENGINE_KIND_H

/* The few choices about an engine, by the names that they have in the configuration of hutchd and on the
 * command line of its worker. */

#include "base/enum.h"

enum engine_kind {
        ENGINE_DOCKER,
        ENGINE_PODMAN,
        ENGINE_KIND_MAX_,
        ENGINE_KIND_INVALID_ = -EINVAL,
};

/* How the agent in a container is reached. */
enum engine_reach {
        ENGINE_REACH_SOCKET, /* a unix socket in a folder that is mounted into the container */
        ENGINE_REACH_EXEC, /* a stream of the engine for each connection: it sees no folder of ours */
        ENGINE_REACH_MAX_,
        ENGINE_REACH_INVALID_ = -EINVAL,
};

enum engine_network {
        ENGINE_NETWORK_BRIDGE, /* to the outside, without traffic between sandboxes */
        ENGINE_NETWORK_NONE,
        ENGINE_NETWORK_MAX_,
        ENGINE_NETWORK_INVALID_ = -EINVAL,
};

ENUM_DECLARE(engine_kind);    /* docker, podman */
ENUM_DECLARE(engine_reach);   /* socket, exec */
ENUM_DECLARE(engine_network); /* bridge, none */

/* Where Debian's packages have the engine's socket. */
const char *engine_default_socket(enum engine_kind kind);

#endif
