/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver.h"

#include "base/base.h"

static const char *const driver_life_names[] = {
        [DRIVER_RUNNING] = "running", [DRIVER_PAUSED] = "paused", [DRIVER_ENDED] = "ended",
        [DRIVER_DEAD] = "dead",       [DRIVER_GONE] = "gone",
};
ENUM_TABLE(driver_life, driver_life_names, DRIVER_LIFE_MAX_);
