/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "client/api.h"
#include "client/sandboxes.h"
#include "tests/lib/check.h"

struct old {
        size_t size;
        int a;
};

struct ours {
        size_t size;
        int a, b;
};

struct newer {
        size_t size;
        int a, b;
        int64_t c;
};

static void an_older_caller_lacks_members(void **state)
{
        struct old given = { sizeof(given), 7 };
        struct ours o = { 1, 2, 3 };

        given.size = offsetof(struct ours, b); /* without padding */
        check_i64_eq(options_copy(&o, sizeof(o), &given), 0);
        check_i64_eq(o.a, 7);
        check_i64_eq(o.b, 0);
}

static void a_newer_caller_may_not_use_what_we_lack(void **state)
{
        struct newer given = { sizeof(given), 7, 8, 0 };
        struct ours o;

        check_i64_eq(options_copy(&o, sizeof(o), &given), 0);
        check_i64_eq(o.b, 8);
        given.c = 1;
        check_i64_eq(options_copy(&o, sizeof(o), &given), HUTCH_UNSUPPORTED);
}

static void nobody_initialised_it(void **state)
{
        struct ours given = { 0 }, o;

        check_i64_eq(options_copy(&o, sizeof(o), &given), HUTCH_INVALID);
        check_i64_eq(options_copy(&o, sizeof(o), NULL), 0);
        check_u64_eq(o.size, sizeof(o));
        check_i64_eq(o.a, 0);
}

static void owners_never_meet(void **state)
{
        static const struct hutch_owner owners[] = {
                { "a", "b", "c", NULL, NULL },    { "ab", "", "c", NULL, NULL }, /* refused */
                { "a:b", "b", "c", NULL, NULL },  { "a", "b:b", "c", NULL, NULL },
                { "a", "b", "c1:", NULL, NULL },  { "a", "b", "c", "custom", "x" },
                { "a", "b", "c", "custom", "y" }, { "a", "b", "c", "customx", "" },
        };
        char digests[ARRAY_SIZE(owners)][OWNER_TEXT];

        for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
                check_i64_eq(owner_digest(&owners[i], digests[i]), i == 1 ? HUTCH_INVALID : 0);
                for (size_t k = 0; k < i && i != 1; k++)
                        check_true(k == 1 || strcmp(digests[i], digests[k]) != 0);
        }
        check_u64_eq(strlen(digests[0]), 40);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_older_caller_lacks_members),
                cmocka_unit_test(a_newer_caller_may_not_use_what_we_lack),
                cmocka_unit_test(nobody_initialised_it),
                cmocka_unit_test(owners_never_meet),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
