/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "hutchd/config.h"

/* What is accepted makes sense; what is not says where and why. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct config *c = NULL;
        struct err e = { 0 };
        int r;

        r = config_parse(str_of((const char *) p, n), "f", &c, &e);
        if (r < 0) {
                ASSERT(!c && e.message[0] == 'f' && e.message[1] == ':');
                ASSERT(!strchr(e.message, '\n') && !strchr(e.message, '\x1b'));
                return 0;
        }
        ASSERT(c->n_listen >= 1 && c->n_listen <= LISTEN_MAX);
        ASSERT(c->n_drivers <= CONFIG_DRIVERS_MAX);
        ASSERT(c->data[0] == '/' && c->agent[0] == '/');
        for (size_t i = 0; i < c->n_keys; i++)
                ASSERT(c->keys[i].role >= 0 && c->keys[i].role < ROLE_MAX_
                       && c->keys[i].tenant.n > 0);
        for (size_t i = 0; i < c->quotas.n_tenants; i++)
                ASSERT(c->quotas.tenants[i].tenant.n > 0);
        config_free(c);
        return 0;
}
