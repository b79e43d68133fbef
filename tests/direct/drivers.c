/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/drivers.h"

#include "base/base.h"
#include "tests/direct/driver_direct.h"

/* In place of src/hutchd/drivers.c, for a hutchd that is never installed. */
const struct hutchd_driver hutchd_drivers[] = {
        { "native", "real sandboxes, made by hutch-warden; needs root", driver_native_open },
        { "fake", "keeps sandboxes in memory and runs nothing", driver_fake_open },
        { "direct", "runs agents as plain processes, without isolation; for tests",
          driver_direct_open, .unconfined = true },
        { 0 },
};
