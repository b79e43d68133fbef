/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/store_contract.h"

int main(void)
{
        static const struct store_maker maker = { .name = "sqlite", .open = world_sqlite };

        return store_contract_run(&maker);
}
