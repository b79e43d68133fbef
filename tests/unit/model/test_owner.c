/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/owner.h"

static struct str key_of(struct buf *b, const struct owner *o)
{
        buf_reset(b);
        owner_add_key(b, o);
        return buf_str(b);
}

static void test_keys(void **state)
{
        static const struct {
                struct owner o;
                const char *key;
        } cases[] = {
                { { STR("o"), STR("p"), STR("u"), { 0 } }, "o:p:u:shared-project-user" },
                { { STR("o"), STR("p"), STR("u"), { SCOPE_AGENT_RUN, STR("r1") } },
                  "o:p:u:agent-run:r1" },
                { { STR("a:b"), STR("c"), STR("u"), { SCOPE_CUSTOM, STR("k") } },
                  "a%3Ab:c:u:custom:k" },
                { { STR("a"), STR("b:c"), STR("u"), { SCOPE_CUSTOM, STR("k") } },
                  "a:b%3Ac:u:custom:k" },
                { { STR("100%"), STR("%3A"), STR(":"), { SCOPE_CONVERSATION, STR("a:b%") } },
                  "100%25:%253A:%3A:conversation:a%3Ab%25" },
                { { STR("\xc3\xa4 b"),
                    STR("a/b"),
                    STR("a@b.c"),
                    { SCOPE_RUNTIME_INSTANCE, STR("*") } },
                  "\xc3\xa4 b:a/b:a@b.c:runtime-instance:*" },
        };
        scoped(buf_done) struct buf b;

        buf_init(&b, KiB);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].key);
                check_i64_eq(owner_check(&cases[i].o, NULL), 0);
                check_str_eq(key_of(&b, &cases[i].o), cases[i].key);
                for (size_t j = 0; j < ARRAY_SIZE(cases); j++)
                        check_i64_eq(owner_eq(&cases[i].o, &cases[j].o), i == j);
        }
}

static void test_incomplete_owners(void **state)
{
        static char longest[OWNER_PART_MAX + 1];
        const struct {
                struct owner o;
                const char *message;
        } cases[] = {
                { { STR_NULL, STR("p"), STR("u"), { 0 } }, "organizationId: must not be empty" },
                { { STR("o"), STR(""), STR("u"), { 0 } }, "projectId: must not be empty" },
                { { STR("o"), STR("p"), STR_NULL, { 0 } }, "userId: must not be empty" },
                { { STR("o"), STR("p"), STR("u"), { SCOPE_CUSTOM, STR_NULL } },
                  "scope.key: must not be empty" },
                { { STR("o"), STR("p"), STR("u"), { 0, STR("k") } },
                  "scope.key: not allowed for this scope" },
                { { STR("o"), STR("p"), STR("u"), { SCOPE_KIND_MAX_, STR("k") } },
                  "scope.kind: is unknown" },
                { { STR("o"), STR("p"), STR("u\x1b"), { 0 } },
                  "userId: must be text of at most 256 bytes without control characters" },
                { { str_of(longest, sizeof(longest)), STR("p"), STR("u"), { 0 } },
                  "organizationId: must be text of at most 256 bytes without control characters" },
        };

        memset(longest, 'a', sizeof(longest));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e;

                check_i64_eq(owner_check(&cases[i].o, &e), ERR_RETURN(ERR_INVALID));
                check_z_eq(e.message, cases[i].message);
        }
}

static void test_separators_in_parts_do_not_collide(void **state)
{
        struct owner ab_c = { STR("a:b"), STR("c"), STR("u"), { 0 } };
        struct owner a_bc = { STR("a"), STR("b:c"), STR("u"), { 0 } };
        scoped(buf_done) struct buf b, other;

        buf_init(&b, KiB);
        buf_init(&other, KiB);
        check_false(str_eq(key_of(&b, &ab_c), key_of(&other, &a_bc)));
}

/* The longest complete owner still has a key: every byte is escaped. */
static void test_the_longest_owner(void **state)
{
        static char colons[OWNER_PART_MAX];
        struct str part = str_of(colons, sizeof(colons));
        struct owner o = { part, part, part, { SCOPE_RUNTIME_INSTANCE, part } };
        scoped(buf_done) struct buf b;

        memset(colons, ':', sizeof(colons));
        buf_init(&b, 16 * KiB);
        check_i64_eq(owner_check(&o, NULL), 0);
        check_u64_eq(key_of(&b, &o).n, 4 * 3 * OWNER_PART_MAX + strlen(":::runtime-instance:"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_incomplete_owners),
                cmocka_unit_test(test_separators_in_parts_do_not_collide),
                cmocka_unit_test(test_the_longest_owner),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
