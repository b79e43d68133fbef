/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"
#include "tests/lib/ids.h"

#include "base/base.h"
#include "base/id.h"

static void makes_names(void **state)
{
        char a[ID_HEX_LEN + 1], b[ID_HEX_LEN + 1], u[ID_UUID_LEN + 1];
        struct ids s;

        ids_init(&s);
        memset(b, 0, sizeof(b));
        for (int i = 0; i < 1000; i++) {
                ids_hex(&s, a);
                check_true(id_is_hex(str_from(a)));
                check_false(str_eq(str_from(a), str_from(b)));
                memcpy(b, a, sizeof(a));
                ids_uuid(&s, u);
                check_case(u);
                check_true(id_is_uuid(str_from(u)));
        }
}

static void counts_when_fake(void **state)
{
        char hex[ID_HEX_LEN + 1], uuid[ID_UUID_LEN + 1];
        struct ids s;

        ids_init_fake(&s);
        ids_hex(&s, hex);
        check_z_eq(hex, "00000000000000000000000000000001");
        ids_uuid(&s, uuid);
        check_z_eq(uuid, "00000000-0000-4000-8000-000000000002");
        ids_hex(&s, hex);
        check_z_eq(hex, "00000000000000000000000000000003");
}

static unsigned fills;

static void fill_with_ff(struct ids *s, void *p, size_t n)
{
        fills++;
        memset(p, 0xff, n);
}

static void asks_seldom_and_wipes(void **state)
{
        struct ids s;
        char hex[ID_HEX_LEN + 1], uuid[ID_UUID_LEN + 1];
        unsigned char large[600];

        ids_init(&s);
        s.fill = fill_with_ff;
        fills = 0;
        for (int i = 0; i < 32; i++)
                ids_hex(&s, hex);
        check_z_eq(hex, "ffffffffffffffffffffffffffffffff");
        check_u64_eq(fills, 1);
        for (size_t i = 0; i < sizeof(s.pool); i++)
                check_u64_eq(s.pool[i], 0);
        ids_uuid(&s, uuid);
        check_z_eq(uuid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        check_u64_eq(fills, 2);
        ids_random(&s, large, sizeof(large));
        check_u64_eq(large[599], 0xff);
        check_u64_eq(fills, 3);
        ids_random(&s, large, 0);
        check_u64_eq(fills, 3);
}

static void knows_its_forms(void **state)
{
        static const struct {
                const char *in;
                bool hex, uuid;
        } cases[] = {
                { "0123456789abcdef0123456789abcdef", true, false },
                { "0123456789abcdef0123456789abcdeF", false, false },
                { "0123456789abcdef0123456789abcde", false, false },
                { "0123456789abcdef0123456789abcdeg", false, false },
                { "6f1c0a52-0000-4abc-9def-0123456789ab", false, true },
                { "6f1c0a52-0000-4abc-bdef-0123456789ab", false, true },
                { "6f1c0a52-0000-4abc-cdef-0123456789ab", false, false },
                { "6f1c0a52-0000-1abc-9def-0123456789ab", false, false },
                { "6F1c0a52-0000-4abc-9def-0123456789ab", false, false },
                { "6f1c0a52x0000-4abc-9def-0123456789ab", false, false },
                { "6f1c0a52-0000-4abc-9def-0123456789a-", false, false },
                { "../../../../../../../../etc/passwd00", false, false },
                { "", false, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].in);
                check_i64_eq(id_is_hex(str_from(cases[i].in)), cases[i].hex);
                check_i64_eq(id_is_uuid(str_from(cases[i].in)), cases[i].uuid);
        }
        check_false(id_is_hex(STR_NULL));
        check_false(id_is_uuid(STR("6f1c0a52-0000-4abc-\0def-0123456789ab")));
}

static void makes_a_uuid_of_bytes(void **state)
{
        static const unsigned char bytes[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0xff, 0x77,
                                                 0xff, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x01 };
        char uuid[ID_UUID_LEN + 1];

        id_uuid_from(bytes, uuid);
        check_z_eq(uuid, "00112233-4455-4f77-bf99-aabbccddee01");
        check_true(id_is_uuid(str_from(uuid)));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(makes_names),      cmocka_unit_test(makes_a_uuid_of_bytes),
                cmocka_unit_test(counts_when_fake), cmocka_unit_test(asks_seldom_and_wipes),
                cmocka_unit_test(knows_its_forms),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
