/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_KIND_H
#define HUTCH_ENGINE_KIND_H

/* Choices about an engine, by their names in hutchd's configuration and on the worker's command line. */

#include "base/enum.h"

enum engine_kind {
        ENGINE_DOCKER,
        ENGINE_PODMAN,
        ENGINE_KIND_MAX_,
        ENGINE_KIND_INVALID_ = -EINVAL,
};

/* How the agent in a container is reached. */
enum engine_reach {
        ENGINE_REACH_SOCKET, /* a unix socket in a directory that is mounted into the container */
        ENGINE_REACH_EXEC,   /* a stream of the engine per connection: nothing of ours is mounted */
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

/* Where Debian's packages put the engine's socket. */
const char *engine_default_socket(enum engine_kind kind);

#endif
