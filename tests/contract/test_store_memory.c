/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/store_contract.h"
#include "tests/lib/store_memory.h"

static struct store *open_memory(struct store_world *w)
{
        return store_memory_open(&w->loop, 256 * MiB);
}

int main(void)
{
        static const struct store_maker maker = { .name = "memory", .open = open_memory };

        return store_contract_run(&maker);
}
