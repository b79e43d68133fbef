/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/addr_plan.h"

#include <arpa/inet.h>

#include "tests/lib/check.h"

static int init(struct addr_plan *s, const char *id, const char *v4, const char *v6)
{
        const struct addr_plan_config c = { str_from(id), str_from(v4), str_from(v6) };

        return addr_plan_init(s, &c);
}

static void test_subnets_are_checked(void **state)
{
        static const struct {
                const char *v4, *v6;
                int r;
                uint32_t capacity;
        } cases[] = {
                { NULL, NULL, 0, 32000 },
                { "10.0.0.0/8", NULL, 0, 32000 },
                { "172.16.4.0/24", NULL, 0, 126 },
                { "192.168.0.0/16", NULL, 0, 32000 },
                { "100.64.0.0/20", "fd00:1:2:3::/64", 0, 2046 },
                { "10.1.0.0/28", NULL, 0, 6 },
                { "10.1.0.0/29", NULL, -EINVAL, 0 },
                { "10.1.0.1/16", NULL, -EINVAL, 0 },
                { "10.0.0.0/7", NULL, -EINVAL, 0 },
                { "10.0.0.0", NULL, -EINVAL, 0 },
                { "10.0.0/8", NULL, -EINVAL, 0 },
                { "/8", NULL, -EINVAL, 0 },
                { "", NULL, -EINVAL, 0 },
                { "10.0.0.0/16/16", NULL, -EINVAL, 0 },
                { "10.0.0.0/-8", NULL, -EINVAL, 0 },
                { "8.8.0.0/16", NULL, -ERANGE, 0 },
                { "172.0.0.0/8", NULL, -ERANGE, 0 },
                { "169.254.0.0/16", NULL, -ERANGE, 0 },
                { "127.0.0.0/8", NULL, -ERANGE, 0 },
                { NULL, "2001:db8::/64", -ERANGE, 0 },
                { NULL, "fe80::/64", -ERANGE, 0 },
                { NULL, "fd00::/48", -EINVAL, 0 },
                { NULL, "fd00::1/64", -EINVAL, 0 },
                { NULL, "fd00::", -EINVAL, 0 },
                { NULL, "10.0.0.0/64", -EINVAL, 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct addr_plan s;

                check_case(cases[i].v4 ? cases[i].v4 : cases[i].v6);
                check_i64_eq(init(&s, "id", cases[i].v4, cases[i].v6), cases[i].r);
                if (cases[i].r == 0)
                        check_u64_eq(s.capacity, cases[i].capacity);
        }
        check_i64_eq(init(&(struct addr_plan){ 0 }, "", NULL, NULL), -EINVAL);
}

static const char *text_of(const struct link_addr *a)
{
        static char text[INET6_ADDRSTRLEN];

        return inet_ntop(a->family, &a->v6, text, sizeof(text));
}

static void test_all_follows_from_installation_and_index(void **state)
{
        struct addr_plan s, other;
        struct link_addr a;
        char name[IFNAMSIZ];

        (void) state;
        check_i64_eq(init(&s, "one", "10.209.0.0/16", "fd00:1:2:3::/64"), 0);
        check_i64_eq(init(&other, "two", NULL, NULL), 0);
        check_true(strcmp(s.prefix, other.prefix) != 0);
        check_true(s.group != other.group);
        check_u64_eq(other.v6.s6_addr[0], 0xfd);
        check_u64_eq(strlen(s.prefix), 9);

        addr_plan_v4(&s, 0, ADDR_PLAN_HOST, &a);
        check_z_eq(text_of(&a), "10.209.0.2");
        addr_plan_v4(&s, 0, ADDR_PLAN_SANDBOX, &a);
        check_z_eq(text_of(&a), "10.209.0.3");
        addr_plan_v4(&s, s.capacity - 1, ADDR_PLAN_SANDBOX, &a);
        check_z_eq(text_of(&a), "10.209.250.1");
        addr_plan_v6(&s, 17, ADDR_PLAN_SANDBOX, &a);
        check_z_eq(text_of(&a), "fd00:1:2:3::25");

        addr_plan_link_name(&s, s.capacity - 1, name);
        check_u64_eq(strlen(name), 14);
        check_i64_eq(addr_plan_index(&s, name), s.capacity - 1);
        check_i64_eq(addr_plan_index(&other, name), -EINVAL);
}

static void test_addresses_lead_back_to_their_index(void **state)
{
        static const char *const others[] = { "10.209.0.0",    "10.209.0.1",        "10.209.250.2",
                                              "10.210.0.3",    "fd00:1:2:3::",      "fd00:1:2:3::1",
                                              "fd00:1:2:4::3", "fd00:1:2:3:0:1:0:3" };
        const uint32_t indices[] = { 0, 1, 17, 31999 };
        uint8_t mac[2][LINK_MAC_SIZE];
        struct addr_plan s;
        struct link_addr a;

        (void) state;
        check_i64_eq(init(&s, "one", "10.209.0.0/16", "fd00:1:2:3::/64"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(indices); i++)
                for (int side = ADDR_PLAN_HOST; side <= ADDR_PLAN_SANDBOX; side++) {
                        addr_plan_v4(&s, indices[i], (enum addr_plan_side) side, &a);
                        check_i64_eq(addr_plan_index_of_addr(&s, &a), indices[i]);
                        addr_plan_v6(&s, indices[i], (enum addr_plan_side) side, &a);
                        check_i64_eq(addr_plan_index_of_addr(&s, &a), indices[i]);
                        addr_plan_mac(indices[i], (enum addr_plan_side) side, mac[side]);
                        check_u64_eq(mac[side][0] & 3, 2); /* ours to give, and one's alone */
                }
        check_true(memcmp(mac[0], mac[1], LINK_MAC_SIZE) != 0);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                a.family = strchr(others[i], ':') ? AF_INET6 : AF_INET;
                check_case(others[i]);
                check_i64_eq(inet_pton(a.family, others[i], &a.v6), 1);
                check_i64_eq(addr_plan_index_of_addr(&s, &a), -EINVAL);
        }
}

static void test_names_of_others_are_not_ours(void **state)
{
        static const char *const tails[] = {
                "", "x", "-1", "007", "1 ", "32000", "99999999999999"
        };
        struct addr_plan s;

        (void) state;
        check_i64_eq(init(&s, "one", NULL, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
                char name[64];

                (void) snprintf(name, sizeof(name), "%s%s", s.prefix, tails[i]);
                check_case(name);
                check_i64_eq(addr_plan_index(&s, name), -EINVAL);
        }
        check_i64_eq(addr_plan_index(&s, "eth0"), -EINVAL);
        check_i64_eq(addr_plan_index(&s, ""), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_subnets_are_checked),
                cmocka_unit_test(test_all_follows_from_installation_and_index),
                cmocka_unit_test(test_addresses_lead_back_to_their_index),
                cmocka_unit_test(test_names_of_others_are_not_ours),
        };

        return cmocka_run_group_tests_name("addr_plan", tests, NULL, NULL);
}
