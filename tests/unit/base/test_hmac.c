/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "base/sha256.h"

#define TEN(x) x x x x x x x x x x

/* RFC 4231, but for case 5, which cuts the tag. */
static void test_rfc_4231(void **state)
{
        static const struct {
                struct str key, text;
                const char *out;
        } cases[] = {
                { STR(TEN("\x0b") TEN("\x0b")), STR("Hi There"),
                  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
                { STR("Jefe"), STR("what do ya want for nothing?"),
                  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
                { STR(TEN("\xaa") TEN("\xaa")),
                  STR(TEN("\xdd") TEN("\xdd") TEN("\xdd") TEN("\xdd") TEN("\xdd")),
                  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
                { STR("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13"
                      "\x14\x15\x16\x17\x18\x19"),
                  STR(TEN("\xcd") TEN("\xcd") TEN("\xcd") TEN("\xcd") TEN("\xcd")),
                  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
                /* A key longer than a block is replaced by its digest. */
                { STR(TEN(TEN("\xaa")) TEN("\xaa") TEN("\xaa") TEN("\xaa") "\xaa"),
                  STR("Test Using Larger Than Block-Size Key - Hash Key First"),
                  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
                { STR(TEN(TEN("\xaa")) TEN("\xaa") TEN("\xaa") TEN("\xaa") "\xaa"),
                  STR("This is a test using a larger than block-size key and a larger than "
                      "block-size data. The key needs to be hashed before being used by the HMAC "
                      "algorithm."),
                  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
                { STR(""), STR(""),
                  "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint8_t tag[HMAC_SHA256_SIZE];
                char text[2 * HMAC_SHA256_SIZE + 1] = { 0 };

                hmac_sha256(cases[i].key, cases[i].text, tag);
                hex_encode(text, tag, sizeof(tag));
                check_z_eq(text, cases[i].out);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rfc_4231),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
