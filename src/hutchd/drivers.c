/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/drivers.h"

#include "base/base.h"
#include "driver/engine/engine.h"

const struct hutchd_driver hutchd_drivers[] = {
        { "native", "sandboxes of the host's kernel, by hutch-warden; needs root",
          driver_native_open },
        { "fake", "keeps sandboxes in memory and runs nothing", driver_fake_open },
        { "docker", "containers of Docker Engine", driver_docker_open },
        { "podman", "containers of Podman", driver_podman_open },
        { 0 },
};
