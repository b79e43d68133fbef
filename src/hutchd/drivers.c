/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/drivers.h"

#include "base/base.h"

const struct hutchd_driver hutchd_drivers[] = {
        { "fake", "keeps sandboxes in memory and runs nothing", driver_fake_open },
        { 0 },
};
