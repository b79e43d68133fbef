/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/sha1.h"

static void expect(const void *p, size_t n, const char *hex)
{
        uint8_t digest[SHA1_SIZE];
        char text[2 * SHA1_SIZE + 1] = { 0 };

        sha1(p, n, digest);
        hex_encode(text, digest, sizeof(digest));
        check_z_eq(text, hex);
}

/* FIPS 180 examples, and lengths around the end of a block, where padding takes one more. */
static void test_known_digests(void **state)
{
        static const struct {
                const char *in;
                const char *out;
        } cases[] = {
                { "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
                { "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
                { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
                { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
                  "klmnopqrlmnopqrsmnopqrstnopqrstu",
                  "a49b2446a02c645bf419f995b67091253a04a259" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(cases[i].in, strlen(cases[i].in), cases[i].out);
}

static void test_block_edges(void **state)
{
        char a[130];

        memset(a, 'a', sizeof(a));
        expect(a, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a");
        expect(a, 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699");
        expect(a, 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
        expect(a, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d");
        expect(a, 65, "11655326c708d70319be2610e8a57d9a5b959d3b");
        expect(a, 128, "ad5b3fdbcb526778c2839d2f151ea753995e26a0");
}

static void test_million(void **state)
{
        char *a = malloc(1000000);

        assert_non_null(a);
        memset(a, 'a', 1000000);
        expect(a, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
        free(a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_digests),
                cmocka_unit_test(test_block_edges),
                cmocka_unit_test(test_million),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
