/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/driver_contract.h"
#include "tests/lib/driver_fake_maker.h"

/* Every call takes some turns, and there is little that it can do. */
static int open_slow(struct driver_world *w, const struct driver_setup *setup, struct driver **ret,
                     struct err *e)
{
        driver_fake_set_caps(w->runtime, 0);
        driver_fake_delay(w->runtime, 5);
        return driver_fake_open_in(w->runtime, setup, ret, e);
}

int main(void)
{
        static const struct driver_maker maker = DRIVER_FAKE_MAKER("fake, slow", open_slow);

        return driver_contract_run(&maker);
}
