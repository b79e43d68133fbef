/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include "base/base.h"

const struct service_config service_defaults = {
        .create_wait = 10 * USEC_PER_SEC,
        .tombstone_for = 3600 * USEC_PER_SEC,
        .reconcile_every = 60 * USEC_PER_SEC,
        .tombstones_max = 1000,
        .snapshots_max = 10000,
        .snapshots_at_once = 4,
};
