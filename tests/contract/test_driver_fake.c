/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/driver_contract.h"
#include "tests/lib/driver_fake_maker.h"

int main(void)
{
        static const struct driver_maker maker = DRIVER_FAKE_MAKER("fake", fake_open);

        return driver_contract_run(&maker);
}
