/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/driver_failing.h"
#include "tests/contract/driver_contract.h"
#include "tests/lib/driver_fake_maker.h"

/* As long as it is not notified to fail, it is a driver like any other. */
static int open_failing(struct driver_world *w, const struct driver_setup *setup,
                        struct driver **ret, struct err *e)
{
        struct driver *inner;
        int r = driver_fake_open_in(w->runtime, setup, &inner, e);

        if (r == 0)
                *ret = driver_failing_open(inner);
        return r;
}

int main(void)
{
        static const struct driver_maker maker = DRIVER_FAKE_MAKER("failing", open_failing);

        return driver_contract_run(&maker);
}
