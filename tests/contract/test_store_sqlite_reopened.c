/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/store_contract.h"

/* Whatever holds within a life of the process must hold over several. */
int main(void)
{
        static const struct store_maker maker = {
                .name = "sqlite, reopened",
                .open = world_sqlite,
                .reopen = true,
        };

        return store_contract_run(&maker);
}
