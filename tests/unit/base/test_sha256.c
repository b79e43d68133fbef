/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/sha256.h"

static void expect(const void *p, size_t n, const char *hex)
{
        uint8_t digest[SHA256_SIZE];
        char text[2 * SHA256_SIZE + 1] = { 0 };

        sha256(p, n, digest);
        hex_encode(text, digest, sizeof(digest));
        check_z_eq(text, hex);
}

/* The examples of FIPS 180. */
static void test_known_digests(void **state)
{
        static const struct {
                const char *in;
                const char *out;
        } cases[] = {
                { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
                { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
                { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
                { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
                  "klmnopqrlmnopqrsmnopqrstnopqrstu",
                  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(cases[i].in, strlen(cases[i].in), cases[i].out);
}

static void test_million(void **state)
{
        char *a = malloc(1000000);

        assert_non_null(a);
        memset(a, 'a', 1000000);
        expect(a, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        free(a);
}

/* Lengths around the end of a block, where padding takes one more. */
static void test_block_edges(void **state)
{
        static const struct {
                size_t n;
                const char *out;
        } cases[] = {
                { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
                { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
                { 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
                { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
                { 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
                { 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
                { 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
                { 128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e" },
        };
        char a[130];

        memset(a, 'a', sizeof(a));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect(a, cases[i].n, cases[i].out);
}

static void test_pieces_give_the_same_digest(void **state)
{
        char text[200];
        uint8_t at_once[SHA256_SIZE], pieces[SHA256_SIZE];

        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char) i;
        sha256(text, sizeof(text), at_once);
        for (size_t step = 1; step < sizeof(text); step++) {
                struct sha256 s;

                sha256_init(&s);
                for (size_t at = 0; at < sizeof(text); at += step)
                        sha256_add(&s, text + at, MIN_OF(step, sizeof(text) - at));
                sha256_finish(&s, pieces);
                check_true(memcmp(at_once, pieces, sizeof(at_once)) == 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_digests),
                cmocka_unit_test(test_million),
                cmocka_unit_test(test_block_edges),
                cmocka_unit_test(test_pieces_give_the_same_digest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
