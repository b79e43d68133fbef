/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/subnet.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>

#include "tests/lib/apart.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/net_world.h"
#include "warden/data.h"

/* Subnets of private networks, in a network namespace of the test's own with what a host may have. */

struct world {
        struct fake_root root;
        int data;
        struct net_world net;
        struct err e;
};

static struct world world;

static int choose(struct world *w, const char *installation, const char *v4, struct addr_plan *ret)
{
        const struct subnet_request q = {
                { str_from(installation), v4 ? str_from(v4) : STR_NULL, STR_NULL }, w->data, false
        };

        return subnet_choose(&q, ret, &w->e);
}

static int add_address(struct world *w, const char *text, unsigned bits)
{
        netlink_reset(&w->net.batch);
        world_address(&w->net.batch, link_index(&w->net.route, WORLD_LINK), text, bits);
        return netlink_send(&w->net.route, &w->net.batch, NULL);
}

/* A route that leads nowhere, as hosts have them for private ranges that they do not use. */
static int add_unreachable(struct world *w, int family, const char *text, unsigned bits)
{
        const struct netlink_head head = { RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, false };
        const struct rtmsg m = { .rtm_family = (uint8_t) family,
                                 .rtm_dst_len = (uint8_t) bits,
                                 .rtm_table = RT_TABLE_MAIN,
                                 .rtm_protocol = RTPROT_STATIC,
                                 .rtm_scope = RT_SCOPE_UNIVERSE,
                                 .rtm_type = RTN_UNREACHABLE };
        struct in6_addr to = { 0 };

        (void) inet_pton(family, text, &to);
        netlink_reset(&w->net.batch);
        netlink_begin(&w->net.batch, &head, &m, sizeof(m));
        netlink_add(&w->net.batch, RTA_DST, &to, family == AF_INET ? 4 : 16);
        return netlink_send(&w->net.route, &w->net.batch, NULL);
}

static const char *subnet_text(const struct addr_plan *p)
{
        static char text[32];
        char addr[INET_ADDRSTRLEN];

        (void) inet_ntop(AF_INET, &(struct in_addr){ htonl(p->v4) }, addr, sizeof(addr));
        (void) snprintf(text, sizeof(text), "%s/%u", addr, p->v4_bits);
        return text;
}

static void run(apart_fn *fn)
{
        if (!apart_possible())
                skip_because("network namespaces need root");
        memset(&world, 0, sizeof(world));
        fake_root_open(&world.root);
        world.data = open(world.root.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        apart_run(fn, &world, CLONE_NEWNET);
        (void) close(world.data);
        fake_root_close(&world.root);
}

static int free_one(void *data)
{
        struct world *w = data;
        struct addr_plan first, again, other;
        char text[32];

        apart_check((errno = -net_world_open(&w->net)) == 0);
        check_case("chosen, and the same at the next start");
        apart_check(choose(w, "one", NULL, &first) == 0);
        apart_check(first.v4_bits == 16);
        apart_check(choose(w, "one", NULL, &again) == 0);
        apart_check(again.v4 == first.v4);

        check_case("an interface has it: another one, which stays");
        (void) snprintf(text, sizeof(text), "%s", subnet_text(&first));
        *strchr(text, '/') = '\0';
        text[strlen(text) - 1] = '9';
        apart_check(add_address(w, text, 24) == 0);
        apart_check(choose(w, "one", NULL, &other) == 0);
        apart_check(other.v4 != first.v4);
        apart_check(choose(w, "one", NULL, &again) == 0);
        apart_check(again.v4 == other.v4);
        return 0;
}

static void test_a_free_subnet_is_chosen_and_stays(void **state)
{
        (void) state;
        run(free_one);
}

static int covered(void *data)
{
        struct world *w = data;
        struct addr_plan p;

        apart_check((errno = -net_world_open(&w->net)) == 0);
        check_case("a network that covers many candidates");
        apart_check(add_address(w, "10.0.0.5", 8) == 0);
        apart_check(choose(w, "one", NULL, &p) == 0);
        apart_check(p.v4 >> 24 != 10);
        check_case("all of them");
        apart_check(unlinkat(w->data, DATA_SUBNET, 0) == 0);
        apart_check(add_address(w, "172.16.0.5", 12) == 0);
        apart_check(add_address(w, "100.64.0.5", 10) == 0);
        apart_check(choose(w, "one", NULL, &p) == ERR_RETURN(ERR_CONFLICT));
        apart_check(strstr(w->e.message, "native.subnet4") != NULL);
        return 0;
}

static void test_no_candidate_is_free(void **state)
{
        (void) state;
        run(covered);
}

static int taken(void *data)
{
        static const struct {
                const char *name, *address;
                unsigned bits;
                const char *subnet;
        } cases[] = {
                { "an address in it", "10.77.44.1", 32, "10.77.0.0/16" },
                { "a network in it", "10.78.44.1", 24, "10.78.0.0/16" },
                { "a network around it", "10.96.44.1", 12, "10.97.0.0/16" },
        };
        struct world *w = data;
        struct addr_plan p;

        apart_check((errno = -net_world_open(&w->net)) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                apart_check(choose(w, "one", cases[i].subnet, &p) == 0);
                apart_check(add_address(w, cases[i].address, cases[i].bits) == 0);
                apart_check(choose(w, "one", cases[i].subnet, &p) == ERR_RETURN(ERR_CONFLICT));
                apart_check(strstr(w->e.message, cases[i].subnet) != NULL);
                apart_check(strstr(w->e.message, "interface " WORLD_LINK) != NULL);
        }
        check_case("IPv6");
        apart_check(add_address(w, "fd00:1:2:3::9", 64) == 0);
        apart_check(subnet_choose(&(struct subnet_request){ { STR("one"), STR("10.79.0.0/16"),
                                                              STR("fd00:1:2:3::/64") },
                                                            w->data,
                                                            false },
                                  &p, &w->e)
                    == ERR_RETURN(ERR_CONFLICT));
        apart_check(strstr(w->e.message, "fd00:1:2:3::/64") != NULL);
        check_case("nothing was recorded");
        apart_check(faccessat(w->data, DATA_SUBNET, F_OK, 0) < 0);
        return 0;
}

static void test_a_configured_subnet_that_is_taken_is_refused(void **state)
{
        (void) state;
        run(taken);
}

static int nowhere(void *data)
{
        struct world *w = data;
        struct addr_plan p;

        apart_check((errno = -net_world_open(&w->net)) == 0);
        apart_check((errno = -add_unreachable(w, AF_INET, "10.0.0.0", 8)) == 0);
        apart_check((errno = -add_unreachable(w, AF_INET6, "fd00::", 8)) == 0);
        check_case("a configured subnet in such a range is allowed");
        apart_check(choose(w, "one", "10.77.0.0/16", &p) == 0);
        check_case("one that is chosen avoids it in IPv4; in IPv6 there is nothing to choose");
        apart_check(choose(w, "one", NULL, &p) == 0);
        apart_check(p.v4 >> 24 != 10);
        return 0;
}

static void test_routes_that_lead_nowhere(void **state)
{
        (void) state;
        run(nowhere);
}

static int damaged(void *data)
{
        struct world *w = data;
        struct addr_plan first, p;

        apart_check((errno = -net_world_open(&w->net)) == 0);
        apart_check(choose(w, "one", NULL, &first) == 0);
        fake_root_put(&w->root, "/" DATA_SUBNET, "8.8.0.0/16 and more\n");
        apart_check(choose(w, "one", NULL, &p) == 0);
        apart_check(p.v4 == first.v4);
        return 0;
}

static void test_a_damaged_record_is_replaced(void **state)
{
        (void) state;
        run(damaged);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_free_subnet_is_chosen_and_stays),
                cmocka_unit_test(test_no_candidate_is_free),
                cmocka_unit_test(test_a_configured_subnet_that_is_taken_is_refused),
                cmocka_unit_test(test_routes_that_lead_nowhere),
                cmocka_unit_test(test_a_damaged_record_is_replaced),
        };

        return cmocka_run_group_tests_name("subnet", tests, NULL, NULL);
}
