/* SPDX-License-Identifier: Apache-2.0 */
#include "model/runtime_status.h"

#include "base/base.h"

static const char *const runtime_status_names[] = {
        [RUNTIME_RUNNING] = "running", [RUNTIME_PAUSED] = "paused", [RUNTIME_ENDED] = "ended",
        [RUNTIME_DEAD] = "dead",       [RUNTIME_GONE] = "gone",
};
ENUM_TABLE(runtime_status, runtime_status_names, RUNTIME_STATUS_MAX_);
