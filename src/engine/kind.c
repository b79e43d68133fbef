/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kind.h"

#include "base/base.h"

static const char *const kind_names[] = {
        [ENGINE_DOCKER] = "docker",
        [ENGINE_PODMAN] = "podman",
};
ENUM_TABLE(engine_kind, kind_names, ENGINE_KIND_MAX_);

static const char *const reach_names[] = {
        [ENGINE_REACH_SOCKET] = "socket",
        [ENGINE_REACH_EXEC] = "exec",
};
ENUM_TABLE(engine_reach, reach_names, ENGINE_REACH_MAX_);

static const char *const network_names[] = {
        [ENGINE_NETWORK_BRIDGE] = "bridge",
        [ENGINE_NETWORK_NONE] = "none",
};
ENUM_TABLE(engine_network, network_names, ENGINE_NETWORK_MAX_);

const char *engine_default_socket(enum engine_kind kind)
{
        return kind == ENGINE_PODMAN ? "/run/podman/podman.sock" : "/run/docker.sock";
}
