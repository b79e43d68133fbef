/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/host.h"

#include "base/base.h"
#include "tests/lib/check.h"

static void hosts(void **state)
{
        static const struct {
                const char *text;
                int r;
                const char *name;
                uint16_t port;
                bool loopback;
        } cases[] = {
                { "localhost", 0, "localhost", 0, true },
                { "LocalHost:8080", 0, "LocalHost", 8080, true },
                { "127.0.0.1:8080", 0, "127.0.0.1", 8080, true },
                { "127.255.255.254", 0, "127.255.255.254", 0, true },
                { "[::1]:8080", 0, "::1", 8080, true },
                { "[0:0::1]", 0, "0:0::1", 0, true },
                { "hutch.example.com", 0, "hutch.example.com", 0, false },
                { "10.0.0.1", 0, "10.0.0.1", 0, false },
                { "[::]", 0, "::", 0, false },
                { "[fe80::1]:1", 0, "fe80::1", 1, false },
                { "0.0.0.0:8080", 0, "0.0.0.0", 8080, false },
                /* What an attacker would have point to us. */
                { "localhost.evil.example", 0, "localhost.evil.example", 0, false },
                { "127.0.0.1.evil.example", 0, "127.0.0.1.evil.example", 0, false },
                { "127.0.0.1.nip.io:8080", 0, "127.0.0.1.nip.io", 8080, false },
                { "evil-localhost", 0, "evil-localhost", 0, false },
                { "0x7f.0.0.1", 0, "0x7f.0.0.1", 0, false },
                { "127.1", 0, "127.1", 0, false },
                { "2130706433", 0, "2130706433", 0, false },
                /* Must not be repeated in a response. */
                { "", -EINVAL, "", 0, false },
                { ":80", -EINVAL, "", 0, false },
                { "a:", -EINVAL, "", 0, false },
                { "a:0", -EINVAL, "", 0, false },
                { "a:080", -EINVAL, "", 0, false },
                { "a:65536", -EINVAL, "", 0, false },
                { "a:80:80", -EINVAL, "", 0, false },
                { "a b", -EINVAL, "", 0, false },
                { "a/b", -EINVAL, "", 0, false },
                { "user@a", -EINVAL, "", 0, false },
                { "a\"b", -EINVAL, "", 0, false },
                { "a%2eb", -EINVAL, "", 0, false },
                { "a'b", -EINVAL, "", 0, false },
                { "[::1", -EINVAL, "", 0, false },
                { "[]", -EINVAL, "", 0, false },
                { "[::1]x", -EINVAL, "", 0, false },
                { "[localhost]", -EINVAL, "", 0, false },
                { "h\xc3\xa9", -EINVAL, "", 0, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct host h;

                check_case(cases[i].text);
                check_i64_eq(host_parse(str_from(cases[i].text), &h), cases[i].r);
                if (cases[i].r < 0)
                        continue;
                check_str_eq(h.name, cases[i].name);
                check_u64_eq(h.port, cases[i].port);
                check_true(host_is_loopback(&h) == cases[i].loopback);
        }
}

static void origins(void **state)
{
        static const struct {
                const char *origin, *host;
                bool same;
        } cases[] = {
                { "http://localhost:8080", "localhost:8080", true },
                { "http://LOCALHOST:8080", "localhost:8080", true },
                { "http://a.example", "a.example", true },
                { "http://a.example", "a.example:80", true },
                { "http://a.example:80", "a.example", true },
                { "https://a.example", "a.example", true },
                { "https://a.example", "a.example:443", true },
                { "http://[::1]:8080", "[::1]:8080", true },
                { "https://a.example", "a.example:80", false },
                { "http://localhost:3000", "localhost:8080", false },
                { "http://localhost", "localhost:8080", false },
                { "http://127.0.0.1:8080", "localhost:8080", false },
                { "http://evil.example", "localhost:8080", false },
                { "null", "null", false },
                { "", "localhost", false },
                { "localhost:8080", "localhost:8080", false },
                { "file://localhost", "localhost", false },
                { "http://localhost:8080/", "localhost:8080", false },
                { "http://localhost:8080.evil.example", "localhost:8080", false },
                { "http://user@localhost:8080", "localhost:8080", false },
                { "http://localhost:8080 http://evil", "localhost:8080", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct host h;

                check_case(cases[i].origin);
                check_i64_eq(host_parse(str_from(cases[i].host), &h), 0);
                check_true(origin_is_of(str_from(cases[i].origin), &h) == cases[i].same);
        }
}

#define UUID "0b5f3f0e-7d0b-4a42-9a33-1c6a8b1f2e11"

static void previews(void **state)
{
        static const struct {
                const char *host;
                bool below;
                const char *id; /* NULL: it is none */
                uint16_t port;
        } cases[] = {
                { UUID "-8080.preview.example", true, UUID, 8080 },
                { UUID "-8080.PREVIEW.example:9000", true, UUID, 8080 },
                { "sb-1-65535.preview.example", true, "sb-1", 65535 },
                { UUID "-08080.preview.example", true, NULL, 0 },
                { UUID "-0.preview.example", true, NULL, 0 },
                { UUID "-65536.preview.example", true, NULL, 0 },
                { UUID ".preview.example", true, NULL, 0 },
                { UUID "-8080.more.preview.example", true, NULL, 0 },
                { "-8080.preview.example", true, NULL, 0 },
                { "a--8080.preview.example", true, NULL, 0 },
                { "a_b-8080.preview.example", true, NULL, 0 },
                { "..-80.preview.example", true, NULL, 0 },
                { "api.preview.example", true, NULL, 0 },
                { "preview.example", false, NULL, 0 },
                { ".preview.example", false, NULL, 0 },
                { UUID "-8080.evilpreview.example", false, NULL, 0 },
                { UUID "-8080.preview.example.evil", false, NULL, 0 },
                { UUID "-8080.preview.example.", true, UUID, 8080 },
                { UUID "-8080.preview.example.:9000", true, UUID, 8080 },
                { UUID "-8080.preview.example..", false, NULL, 0 },
                { "preview.example.", false, NULL, 0 },
                { "localhost", false, NULL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str id, domain = STR("preview.example");
                uint16_t port;
                struct host h;
                int r;

                check_case(cases[i].host);
                check_i64_eq(host_parse(str_from(cases[i].host), &h), 0);
                check_true(host_is_below(&h, domain) == cases[i].below);
                check_false(host_is_below(&h, STR_NULL));
                r = host_parse_preview(&h, domain, &id, &port);
                check_i64_eq(r, cases[i].id ? 0 : -EINVAL);
                if (r < 0)
                        continue;
                check_str_eq(id, cases[i].id);
                check_u64_eq(port, cases[i].port);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hosts),
                cmocka_unit_test(origins),
                cmocka_unit_test(previews),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
