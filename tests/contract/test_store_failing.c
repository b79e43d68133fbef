/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/store_contract.h"
#include "tests/lib/store_failing.h"
#include "tests/lib/store_memory.h"

/* As long as it is not told to fail, it is a store like any other. */
static struct store *open_failing(struct store_world *w)
{
        return store_failing_open(store_memory_open(&w->loop, 256 * MiB));
}

int main(void)
{
        static const struct store_maker maker = { .name = "failing", .open = open_failing };

        return store_contract_run(&maker);
}
