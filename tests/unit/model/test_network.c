/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/network.h"

#define TEN(x) x x x x x x x x x x
#define SIXTY  TEN("abcdef")

static void test_targets(void **state)
{
        static const struct {
                const char *in, *out;
                enum target_kind kind;
        } cases[] = {
                { "example.com", "example.com", TARGET_NAME },
                { "Example.COM", "example.com", TARGET_NAME },
                { "example.com.", "example.com", TARGET_NAME },
                { "localhost", "localhost", TARGET_NAME },
                { "_dmarc.example.com", "_dmarc.example.com", TARGET_NAME },
                { "xn--bcher-kva.example", "xn--bcher-kva.example", TARGET_NAME },
                { "1.2.3.x", "1.2.3.x", TARGET_NAME },
                { "*.Example.com.", "*.example.com", TARGET_BELOW },
                { "192.0.2.7", "192.0.2.7", TARGET_ADDRESS },
                { "2001:DB8:0:0::7", "2001:db8::7", TARGET_ADDRESS },
                { "::ffff:192.0.2.7", "192.0.2.7", TARGET_ADDRESS },
                { "::ffff:c000:207", "192.0.2.7", TARGET_ADDRESS },
                { "::1", "::1", TARGET_ADDRESS },
                { "192.0.2.7/24", "192.0.2.0/24", TARGET_NETWORK },
                { "10.255.0.1/9", "10.128.0.0/9", TARGET_NETWORK },
                { "1.2.3.4/0", "0.0.0.0/0", TARGET_NETWORK },
                { "1.2.3.4/32", "1.2.3.4/32", TARGET_NETWORK },
                { "2001:db8::7/32", "2001:db8::/32", TARGET_NETWORK },
                { "::/0", "::/0", TARGET_NETWORK },
                { "::ffff:192.0.2.7/120", "192.0.2.0/24", TARGET_NETWORK },
                { "::ffff:0:0/96", "0.0.0.0/0", TARGET_NETWORK },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct target t, again;

                check_case(cases[i].in);
                check_i64_eq(target_parse(str_from(cases[i].in), &t), 0);
                check_z_eq(t.text, cases[i].out);
                check_i64_eq(t.kind, cases[i].kind);
                check_i64_eq(target_parse(str_from(t.text), &again), 0);
                check_z_eq(again.text, t.text);
        }
}

static void test_invalid_targets(void **state)
{
        static const struct str cases[] = {
                STR(""),
                STR("."),
                STR("*"),
                STR("*."),
                STR("*.*.com"),
                STR("*example.com"),
                STR("a.*.com"),
                STR("a..b"),
                STR(".a"),
                STR("-a.com"),
                STR("a-.com"),
                STR("a b"),
                STR("a/b"),
                STR("http://a.com"),
                STR("a.com:443"),
                STR("b\xc3\xbc"
                    "cher.example"),
                STR("1.2.3"), /* mistyped addresses */
                STR("10.0.0.256"),
                STR("1.2.3.4.5"),
                STR("0x7f.1"),
                STR("2130706433"),
                STR("*.1"),
                STR("1.2.3.4/33"),
                STR("1.2.3.4/"),
                STR("1.2.3.4/-1"),
                STR("1.2.3.4/024"),
                STR("1.2.3.4/24/24"),
                STR("example.com/24"),
                STR("::1/129"),
                STR(":::1"),
                STR("fe80::1%eth0"),
                STR("[::1]"),
                STR("1.2.3.4\0"),
                STR("a\n.com"),
                STR(SIXTY "abcd.com"),
                STR(SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghij"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct target t = { .bits = 7 };

                check_case(cases[i].p);
                check_i64_eq(target_parse(cases[i], &t), -EINVAL);
                check_u64_eq(t.bits, 7);
        }
}

static void test_the_longest_name_fits(void **state)
{
        struct target t;

        check_i64_eq(target_parse(STR("*." SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghi."), &t),
                     0);
        check_u64_eq(strlen(t.text), TARGET_TEXT_MAX - 1);
}

static int decode(const char *text, struct arena *a, struct network_policy *ret,
                  struct json_error *e)
{
        *ret = (struct network_policy){ 0 };
        return json_decode(str_from(text), network_policy_fields, 0, a, ret, e);
}

static void test_policies(void **state)
{
        struct network_policy p;
        const struct egress_rule *rules;
        struct json_error je;
        struct arena a;
        struct err e;

        arena_init(&a, MiB);
        check_i64_eq(decode("{}", &a, &p, &je), 0);
        check_i64_eq(p.default_action, EGRESS_DENY);
        check_i64_eq(
                decode("{\"default_action\":\"allow\",\"egress\":[{\"action\":\"deny\",\"target\":"
                       "\"Example.com\"},{\"action\":\"allow\",\"target\":\"10.1.2.3/8\"}]}",
                       &a, &p, &je),
                0);
        check_i64_eq(p.default_action, EGRESS_ALLOW);
        check_true(network_policy_check(&p, &e) < 0);
        check_z_eq(e.message, "networkPolicy.egress[0].target: is not normalised");
        check_i64_eq(network_policy_normalise(&p, &a, &e), 0);
        rules = p.egress.items;
        check_str_eq(rules[0].target, "example.com");
        check_str_eq(rules[1].target, "10.0.0.0/8");
        check_i64_eq(network_policy_check(&p, &e), 0);
        arena_done(&a);
}

static void test_wrong_policies(void **state)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "{\"defaultAction\":\"ask\"}", "defaultAction: must be one of deny, allow" },
                { "{\"egress\":[{\"target\":\"a\"}]}", "egress[0].action: is required" },
                { "{\"egress\":[{\"action\":\"deny\"}]}", "egress[0].target: is required" },
                { "{\"egress\":[{\"action\":\"deny\",\"target\":\"\"}]}",
                  "egress[0].target: must not be empty" },
                { "{\"egress\":{}}", "egress: must be an array" },
                { "{\"egress\":[{\"action\":\"deny\",\"target\":\"a\"},{\"action\":\"deny\",\"target\":"
                  "\"*\"}]}",
                  "networkPolicy.egress[1].target: \"*\" is not a domain, *.domain, IP address or "
                  "network" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct network_policy p;
                struct json_error je;
                struct err e = { 0 };
                struct arena a;

                arena_init(&a, MiB);
                if (decode(cases[i].text, &a, &p, &je) == 0) {
                        check_i64_eq(network_policy_normalise(&p, &a, &e), ERR_RETURN(ERR_INVALID));
                        check_z_eq(e.message, cases[i].message);
                } else {
                        check_z_eq(je.message, cases[i].message);
                }
                arena_done(&a);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_targets),
                cmocka_unit_test(test_invalid_targets),
                cmocka_unit_test(test_the_longest_name_fits),
                cmocka_unit_test(test_policies),
                cmocka_unit_test(test_wrong_policies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
