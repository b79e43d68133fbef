/* SPDX-License-Identifier: Apache-2.0 */
#include "os/confine.h"

#include "tests/lib/apart.h"
#include "tests/lib/caps_get.h"

#define KEEP (CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_SETFCAP))

static int reduced(void *data)
{
        struct caps c;

        (void) data;
        apart_check(caps_get(&c) == 0);
        apart_check((c.permitted & KEEP) == KEEP && c.permitted != KEEP);
        apart_check(caps_reduce(KEEP) == 0);
        apart_check(caps_get(&c) == 0);
        apart_check(c.bounding == KEEP);
        apart_check(c.permitted == KEEP);
        apart_check(c.effective == KEEP);
        apart_check(c.inheritable == 0 && c.ambient == 0);
        apart_check(chroot("/") < 0 && errno == EPERM);

        /* There is no way back. */
        apart_check(caps_reduce(UINT64_MAX) == 0);
        apart_check(caps_get(&c) == 0);
        apart_check(c.permitted == KEEP && c.bounding == KEEP);
        apart_check(caps_reduce(0) == -EPERM); /* CAP_SETPCAP is not among them */
        return 0;
}

/* An exec as root gives the bounding set, and no more. */
static int after_exec(void *data)
{
        static char command[] = "test $(sed -n 's/^CapEff:.//p' /proc/self/status) = "
                                "0000000080000001";
        char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, command, NULL };

        (void) data;
        apart_check(caps_reduce(KEEP) == 0);
        (void) execv("/bin/sh", argv);
        return 2;
}

static void test_reduced(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("only root has capabilities to lose");
        apart_run(reduced, NULL, 0);
        apart_run(after_exec, NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reduced),
        };

        return cmocka_run_group_tests_name("caps", tests, NULL, NULL);
}
