/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netns_pool.h"

#include "os/ip_forward.h"
#include "os/nft.h"
#include "os/userns.h"
#include "tests/lib/netns_pool_world.h"

/* --- what gets through --- */

static const enum world_how ways[] = { WORLD_TCP, WORLD_UDP, WORLD_PING };

static int reaches(const struct world_attempt *like, int want)
{
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                struct world_attempt a = *like;
                int r;

                a.how = ways[i];
                r = world_try(&a);
                errno = -r;
                if (want == 0)
                        apart_check(r == 0);
                else
                        apart_check(a.how == WORLD_TCP ? r == -ECONNREFUSED
                                                       : r == -EHOSTUNREACH || r == -EACCES);
        }
        return 0;
}

static int outside_is_reached(void *data)
{
        struct world *w = data;
        const struct world_attempt v4 = { .from = w->a.fd,
                                          .to = w->net.outside,
                                          .addr = WORLD_OUTSIDE4,
                                          .source = address(w, AF_INET, &w->a, ADDR_PLAN_SANDBOX),
                                          .seen = WORLD_HOST4 };
        const struct world_attempt v6 = { .from = w->a.fd,
                                          .to = w->net.outside,
                                          .addr = WORLD_OUTSIDE6,
                                          .source = address(w, AF_INET6, &w->a, ADDR_PLAN_SANDBOX),
                                          .seen = WORLD_HOST6 };

        check_case("v4");
        apart_check(reaches(&v4, 0) == 0);
        check_case("v6");
        apart_check(reaches(&v6, 0) == 0);
        return 0;
}

static int outside_in_new_world(void *data)
{
        struct world *w = data;

        apart_check((errno = -open_world(w)) == 0);
        return outside_is_reached(w);
}

static void test_outside_is_reached_under_the_machines_address(void **state)
{
        (void) state;
        run(outside_in_new_world);
}

static int closed_places(void *data)
{
        struct world *w = data;

        apart_check((errno = -open_world(w)) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                int f = families[i];
                const struct {
                        const char *what;
                        int to;
                        const char *addr;
                } closed[] = {
                        { "another sandbox", w->b.fd, address(w, f, &w->b, ADDR_PLAN_SANDBOX) },
                        { "the host", w->net.host, f == AF_INET ? WORLD_HOST4 : WORLD_HOST6 },
                        { "its own gateway", w->net.host, address(w, f, &w->a, ADDR_PLAN_HOST) },
                        { "another's gateway", w->net.host, address(w, f, &w->b, ADDR_PLAN_HOST) },
                        { "metadata", w->net.outside,
                          f == AF_INET ? WORLD_METADATA4 : WORLD_METADATA6 },
                };

                for (size_t j = 0; j < ARRAY_SIZE(closed); j++) {
                        const struct world_attempt a = { .from = w->a.fd,
                                                         .to = closed[j].to,
                                                         .addr = closed[j].addr };

                        check_case(closed[j].what);
                        apart_check(reaches(&a, 1) == 0);
                }
        }

        /* Only the rules were in the way. */
        apart_check(
                netrules_remove(&(struct netlink){ socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER),
                                                   1 },
                                &w->net.batch, &w->config.addrs)
                == 0);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                const struct world_attempt to_b = { .from = w->a.fd,
                                                    .to = w->b.fd,
                                                    .addr = address(w, families[i], &w->b,
                                                                    ADDR_PLAN_SANDBOX) };
                const struct world_attempt to_machine = { .from = w->a.fd,
                                                          .to = w->net.host,
                                                          .addr = families[i] == AF_INET
                                                                          ? WORLD_HOST4
                                                                          : WORLD_HOST6 };
                const struct world_attempt metadata = { .from = w->a.fd,
                                                        .to = w->net.outside,
                                                        .addr = families[i] == AF_INET
                                                                        ? WORLD_METADATA4
                                                                        : WORLD_METADATA6 };

                check_case("without rules");
                apart_check(reaches(&to_b, 0) == 0);
                apart_check(reaches(&to_machine, 0) == 0);
                apart_check(reaches(&metadata, 0) == 0);
        }
        return 0;
}

static void test_sandboxes_machine_and_metadata_are_closed(void **state)
{
        (void) state;
        run(closed_places);
}

static int from_outside(void *data)
{
        struct world *w = data;

        apart_check((errno = -open_world(w)) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                const struct world_attempt a = { .how = WORLD_TCP,
                                                 .from = w->net.outside,
                                                 .to = w->a.fd,
                                                 .timeout_ms = 100,
                                                 .addr = address(w, families[i], &w->a,
                                                                 ADDR_PLAN_SANDBOX) };

                apart_check(world_try(&a) == -ETIMEDOUT);
        }
        return 0;
}

static void test_outside_does_not_come_in(void **state)
{
        (void) state;
        run(from_outside);
}

/* Root of the namespace could; a sandbox's root is not, but two walls are better. */
static int other_source(void *data)
{
        struct world *w = data;
        struct netlink nl;
        struct netlink_batch *b = &w->net.batch;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(netlink_adopt(netns_socket(w->a.fd, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), &nl)
                    == 0);
        netlink_reset(b);
        world_address(b, 16, "10.209.77.77", 32);
        world_address(b, 16, "2001:db8:7::7", 128);
        apart_check((errno = -netlink_send(&nl, b, NULL)) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                bool v4 = families[i] == AF_INET;
                const struct world_attempt a = { .how = WORLD_UDP,
                                                 .from = w->a.fd,
                                                 .to = w->net.outside,
                                                 .timeout_ms = 100,
                                                 .addr = v4 ? WORLD_OUTSIDE4 : WORLD_OUTSIDE6,
                                                 .source = v4 ? "10.209.77.77" : "2001:db8:7::7" };

                apart_check(world_try(&a) == -ETIMEDOUT);
        }
        return outside_is_reached(w);
}

static void test_a_link_has_one_source(void **state)
{
        (void) state;
        run(other_source);
}

static int named_service(void *data)
{
        static const struct netrules_service services[] = { { IPPROTO_UDP, WORLD_PORT } };
        struct world *w = data;
        struct netns_pool_config c = sample_config("one", NULL);

        c.services = services;
        c.n_services = 1;
        apart_check((errno = -net_world_open(&w->net)) == 0);
        w->config = c;
        apart_check(netns_pool_open(&c, &w->pool, NULL) == 0);
        apart_check(netns_pool_start(w->pool, NULL) == 0);
        apart_check(netns_pool_make(w->pool, NETNS_KIND_PRIVATE) == 0);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                struct world_attempt a = { .how = WORLD_UDP,
                                           .from = w->a.fd,
                                           .to = w->net.host,
                                           .addr = address(w, families[i], &w->a, ADDR_PLAN_HOST) };

                check_case(a.addr);
                apart_check((errno = -world_try(&a)) == 0);
                a.how = WORLD_TCP;
                apart_check(world_try(&a) < 0);
        }
        return 0;
}

static void test_a_named_service_of_the_machine_is_reached(void **state)
{
        (void) state;
        run(named_service);
}

/* What container engines do for a published port: the host's address means another one. */
static void add_dnat(struct netlink_batch *b, const char *from, const char *to)
{
        static const struct nft_chain chain = { "c", "nat", NF_INET_PRE_ROUTING, -100, NF_ACCEPT };
        static const struct nft_payload_at destination = { NFT_PAYLOAD_NETWORK_HEADER, 16, 4 };
        const struct link_addr a = world_addr(from), c = world_addr(to);
        size_t rule, item, data, value;

        nft_begin(b);
        nft_add_table(b, "other");
        nft_add_chain(b, "other", &chain);
        rule = nft_rule_begin(b, "other", "c");
        nft_load_meta(b, NFT_META_NFPROTO, NFT_REG_1);
        nft_is(b, &(uint8_t){ NFPROTO_IPV4 }, 1);
        nft_load_payload(b, &destination, NFT_REG_1);
        nft_is(b, &a.v4, 4);
        item = netlink_nest(b, NFTA_LIST_ELEM);
        netlink_add_str(b, NFTA_EXPR_NAME, "immediate");
        data = netlink_nest(b, NFTA_EXPR_DATA);
        netlink_add_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
        value = netlink_nest(b, NFTA_IMMEDIATE_DATA);
        netlink_add(b, NFTA_DATA_VALUE, &c.v4, 4);
        netlink_nest_end(b, value);
        netlink_nest_end(b, data);
        netlink_nest_end(b, item);
        item = netlink_nest(b, NFTA_LIST_ELEM);
        netlink_add_str(b, NFTA_EXPR_NAME, "nat");
        data = netlink_nest(b, NFTA_EXPR_DATA);
        netlink_add_be32(b, NFTA_NAT_TYPE, NFT_NAT_DNAT);
        netlink_add_be32(b, NFTA_NAT_FAMILY, NFPROTO_IPV4);
        netlink_add_be32(b, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
        netlink_nest_end(b, data);
        netlink_nest_end(b, item);
        nft_rule_end(b, rule);
        nft_end(b);
}

static int other_rules(void *data)
{
        /* Of what is requested for, and what it is made to mean. */
        static const struct {
                const char *requested, *meant;
        } cases[] = { { WORLD_HOST4, WORLD_OUTSIDE4 },
                      { "203.0.113.1", WORLD_METADATA4 },
                      { "203.0.113.1", WORLD_HOST4 } };
        struct world *w = data;
        struct netlink filter;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(netlink_open(NETLINK_NETFILTER, &filter) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct world_attempt a = { .how = WORLD_PING,
                                                 .from = w->a.fd,
                                                 .addr = cases[i].requested };

                check_case(cases[i].meant);
                add_dnat(&w->net.batch, cases[i].requested, cases[i].meant);
                apart_check((errno = -netlink_send(&filter, &w->net.batch, NULL)) == 0);
                apart_check(world_try(&a) == -EHOSTUNREACH);
                nft_begin(&w->net.batch);
                nft_delete_table(&w->net.batch, "other");
                nft_end(&w->net.batch);
                apart_check(netlink_send(&filter, &w->net.batch, NULL) == 0);
        }

        /* They were in force. */
        add_dnat(&w->net.batch, "203.0.113.1", WORLD_OUTSIDE4);
        apart_check((errno = -netlink_send(&filter, &w->net.batch, NULL)) == 0);
        apart_check((errno = -world_try(&(struct world_attempt){
                             .how = WORLD_PING, .from = w->a.fd, .addr = "203.0.113.1" }))
                    == 0);
        return 0;
}

static void test_rules_of_others_open_nothing(void **state)
{
        (void) state;
        run(other_rules);
}

/* --- power --- */

/* With errno as it was. */
static bool is_none(int fd)
{
        return fd < 0;
}

static int powerless(void *data)
{
        static const struct userns_range range = { 7000000, 65536 };
        struct world *w = data;
        struct netlink_batch *b = &w->net.batch;
        struct netlink route, filter;
        int userns = -EBADF;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(userns_make(&range, &userns) == 0);
        apart_check(netns_enter(w->a.fd) == 0);
        apart_check(userns_enter(userns) == 0);
        apart_check(netlink_open(NETLINK_ROUTE, &route) == 0);
        apart_check(netlink_open(NETLINK_NETFILTER, &filter) == 0);
        nft_begin(b);
        nft_add_table(b, "mine");
        nft_end(b);
        apart_check(netlink_send(&filter, b, NULL) == -EPERM);
        world_delete_link(b, 16);
        apart_check(netlink_send(&route, b, NULL) == -EPERM);
        world_address(b, 16, "10.209.77.77", 32);
        apart_check(netlink_send(&route, b, NULL) == -EPERM);
        apart_check(is_none(open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC)));
        apart_check(is_none(socket(AF_INET, SOCK_RAW, IPPROTO_TCP)) && errno == EPERM);
        apart_check(is_none(socket(AF_PACKET, SOCK_RAW, 0)) && errno == EPERM);
        return 0;
}

static void test_a_user_namespace_has_no_power_over_it(void **state)
{
        (void) state;
        run(powerless);
}

/* --- coming and going --- */

static int count_link(void *data, const char *name, int index)
{
        (void) name;
        (void) index;
        ++*(unsigned *) data;
        return 0;
}

static int count_links(struct world *w)
{
        unsigned n = 0;
        int r;

        do {
                n = 0;
                r = link_list(&w->net.route, &w->net.batch, w->config.addrs.prefix, count_link, &n);
        } while (r == -EAGAIN);
        return r < 0 ? r : (int) n;
}

static int run_pool(void *data)
{
        struct world *w = data;
        struct pooled_netns c, none, more;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(netns_pool_n_ready(w->pool, NETNS_KIND_PRIVATE) == 1);
        apart_check(netns_pool_n_ready(w->pool, NETNS_KIND_NONE) == 2);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &c) == 0);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &more) == -EAGAIN);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_NONE, &none) == 0);
        apart_check(count_links(w) == 3);

        netns_pool_return(w->pool, &w->a);
        netns_pool_return(w->pool, &w->b);
        netns_pool_return(w->pool, &none);
        apart_check(netns_pool_n_returned(w->pool) == 3);
        apart_check(fcntl(w->a.fd, F_GETFD) >= 0); /* not enough of one kind */
        apart_check(netns_pool_step(w->pool) == 1);
        apart_check(netns_pool_n_returned(w->pool) == 3);
        netns_pool_return(w->pool, &c);
        apart_check(netns_pool_step(w->pool) == 1);
        apart_check(netns_pool_n_returned(w->pool) == 1);
        apart_check((errno = -fill(w->pool)) == 0);
        apart_check(netns_pool_n_ready(w->pool, NETNS_KIND_PRIVATE) == 3);
        apart_check(netns_pool_flush(w->pool) == 0);
        apart_check(netns_pool_n_returned(w->pool) == 0);

        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->b) == 0);
        apart_check(w->a.index != c.index && w->b.index != c.index);
        return outside_is_reached(w);
}

static void test_namespaces_are_taken_returned_and_closed_together(void **state)
{
        (void) state;
        run(run_pool);
}

/* A namespace that something holds on to keeps its link. */
static int held(void *data)
{
        struct world *w = data;
        struct netns_pool_config c = sample_config("one", "10.9.0.0/28");
        int holder;

        apart_check(c.addrs.capacity == 6);
        c.depth[NETNS_KIND_NONE] = 0;
        c.depth[NETNS_KIND_PRIVATE] = 6;
        w->config = c;
        apart_check((errno = -net_world_open(&w->net)) == 0);
        apart_check(netns_pool_open(&c, &w->pool, NULL) == 0);
        apart_check(netns_pool_start(w->pool, NULL) == 0);
        apart_check((errno = -fill(w->pool)) == 0);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        holder = netns_socket(w->a.fd, AF_INET, SOCK_DGRAM, 0);
        apart_check(holder >= 0);
        netns_pool_return(w->pool, &w->a);
        apart_check(netns_pool_flush(w->pool) == 0);
        apart_check(netns_pool_step(w->pool) == -EBUSY);
        apart_check(netns_pool_sweep(w->pool) == 1);
        apart_check(netns_pool_step(w->pool) == 1);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->b) == 0);
        return outside_is_reached(w);
}

static void test_an_index_is_used_again_when_its_link_is_gone(void **state)
{
        (void) state;
        run(held);
}

static int after_a_crash(void *data)
{
        struct world *w = data;
        struct pooled_netns a, b, left;
        int kept;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(ip_forward_is_on(AF_INET) == 1 && ip_forward_is_on(AF_INET6) == 1);
        a = w->a;
        b = w->b;
        a.fd = dup(w->a.fd);
        b.fd = dup(w->b.fd);
        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &left) == 0);
        kept = dup(left.fd);
        apart_check(kept >= 0);
        netns_pool_close(w->pool);

        apart_check(netns_pool_open(&w->config, &w->pool, NULL) == 0);
        apart_check(netns_pool_adopt(w->pool, &a) == 0);
        apart_check(netns_pool_adopt(w->pool, &b) == 0);
        apart_check(netns_pool_adopt(w->pool, &b) == -EEXIST);
        apart_check(
                netns_pool_adopt(w->pool, &(struct pooled_netns){ NETNS_KIND_PRIVATE, 40000, 0 })
                == -EINVAL);
        apart_check(netns_pool_start(w->pool, NULL) == 0);
        apart_check(count_links(w) == 2);
        w->a = a;
        w->b = b;
        apart_check(outside_is_reached(w) == 0);
        apart_check(netrules_are_only_ours(
                            &(struct netlink){ socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), 1 },
                            &w->net.batch, &w->config.addrs)
                    == 1);
        apart_check((errno = -fill(w->pool)) == 0);
        apart_check(count_links(w) == 5);
        return 0;
}

static void test_sandboxes_are_adopted_and_leftovers_removed(void **state)
{
        (void) state;
        run(after_a_crash);
}

/* Neither stands in the other's way, nor lets its sandboxes in. */
static int two_installations(void *data)
{
        struct world *w = data;
        struct netns_pool_config c = sample_config("two", "10.10.0.0/16");
        scoped(netns_pool_closep) struct netns_pool *second = NULL;
        struct pooled_netns other;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(netns_pool_open(&c, &second, NULL) == 0);
        apart_check(netns_pool_start(second, NULL) == 0);
        apart_check((errno = -fill(second)) == 0);
        apart_check(netns_pool_take(second, NETNS_KIND_PRIVATE, &other) == 0);
        apart_check(count_links(w) == 3);
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                struct world_attempt a = {
                        .from = w->a.fd, .to = other.fd, .how = WORLD_TCP, .timeout_ms = 100
                };
                struct link_addr addr;
                char text[INET6_ADDRSTRLEN];

                if (families[i] == AF_INET)
                        addr_plan_v4(&c.addrs, other.index, ADDR_PLAN_SANDBOX, &addr);
                else
                        addr_plan_v6(&c.addrs, other.index, ADDR_PLAN_SANDBOX, &addr);
                a.addr = world_text(&addr, text);
                apart_check(world_try(&a) < 0);
        }
        apart_check(outside_is_reached(w) == 0);
        w->a = other;
        w->config = c;
        return outside_is_reached(w);
}

static void test_two_installations_live_side_by_side(void **state)
{
        (void) state;
        run(two_installations);
}

static int same_subnet(void *data)
{
        struct world *w = data;
        struct netns_pool_config two = sample_config("two", NULL);
        struct netns_pool_config three = sample_config("three", "10.77.0.0/16");
        scoped(netns_pool_closep) struct netns_pool *second = NULL, *third = NULL;
        struct err e = { 0 };

        apart_check((errno = -open_world(w)) == 0);
        check_case("of another installation");
        apart_check(netns_pool_open(&two, &second, &e) == 0);
        apart_check(netns_pool_start(second, &e) == ERR_RETURN(ERR_CONFLICT));

        check_case("of the host");
        apart_check(netns_pool_open(&three, &third, &e) == 0);
        netlink_reset(&w->net.batch);
        world_address(&w->net.batch, 1, "10.77.44.1", 32);
        apart_check(netlink_send(&w->net.route, &w->net.batch, NULL) == 0);
        apart_check(netns_pool_start(third, &e) == ERR_RETURN(ERR_CONFLICT));
        return outside_is_reached(w);
}

static void test_a_subnet_in_use_is_refused(void **state)
{
        (void) state;
        run(same_subnet);
}

/* In this process, where the sanitizer looks. */
static void test_opening_and_closing_leaves_nothing(void **state)
{
        struct netns_pool_config c = sample_config("one", NULL);
        struct netns_pool *p = NULL;
        struct err e = { 0 };
        int first = dup(0);

        (void) state;
        check_i64_eq(netns_pool_open(&c, &p, &e), 0);
        netns_pool_close(p);
        c.n_services = NETRULES_SERVICES_MAX + 1;
        check_i64_eq(netns_pool_open(&c, &p, &e), ERR_RETURN(ERR_INVALID));
        (void) fd_close(first);
        check_i64_eq(dup(0), first);
        (void) fd_close(first);
}

/* Made a router for sandboxes, the host is none for others. */
static int no_router_for_others(void *data)
{
        struct world *w = data;
        const struct link_veth veth = { "lan0", 30, "lan0", -EBADF, NULL, NULL };
        struct link_veth v = veth;
        struct netlink_batch *b = &w->net.batch;
        struct world_attempt a = { .how = WORLD_TCP, .addr = WORLD_OUTSIDE4, .timeout_ms = 100 };
        struct netlink nl;
        int lan, link;

        apart_check((errno = -net_world_open(&w->net)) == 0);
        apart_check(ip_forward_enable(AF_INET) == 0); /* first: it was one */
        v.peer_netns = w->net.host;
        apart_check(netns_make(&lan) == 0);
        apart_check(netlink_adopt(netns_socket(lan, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), &nl)
                    == 0);
        netlink_reset(b);
        link_add_veth(b, &v);
        link_set_up(b, 30);
        world_address(b, 30, "198.51.100.2", 24);
        world_default(b, 30, "198.51.100.1");
        apart_check((errno = -netlink_send(&nl, b, NULL)) == 0);
        link = link_index(&w->net.route, "lan0");
        link_set_up(b, link);
        world_address(b, link, "198.51.100.1", 24);
        apart_check((errno = -netlink_send(&w->net.route, b, NULL)) == 0);
        a.from = lan;
        a.to = w->net.outside;

        for (int was = 1; was >= 0; was--) {
                struct netlink filter;

                w->config = sample_config("one", NULL);
                check_case(was ? "was a router" : "was none");
                apart_check(netns_pool_open(&w->config, &w->pool, NULL) == 0);
                apart_check(netns_pool_start(w->pool, NULL) == 0);
                apart_check(ip_forward_is_on(AF_INET) == 1 && ip_forward_is_on(AF_INET6) == 1);
                a.timeout_ms = was ? 0 : 100;
                apart_check(world_try(&a) == (was ? 0 : -ETIMEDOUT));
                a.timeout_ms = 0;
                netns_pool_close(w->pool);
                apart_check(netlink_open(NETLINK_NETFILTER, &filter) == 0);
                apart_check(netrules_remove(&filter, b, &w->config.addrs) == 0);
                netlink_close(&filter);
                apart_check(world_try(&a) == 0);
                for (size_t i = 0; i < 2; i++) {
                        int fd = open(i ? "/proc/sys/net/ipv6/conf/all/forwarding"
                                        : "/proc/sys/net/ipv4/ip_forward",
                                      O_WRONLY | O_CLOEXEC);

                        apart_check(write(fd, "0", 1) == 1);
                        (void) fd_close(fd);
                }
        }
        return 0;
}

static void test_the_machine_is_no_router_for_others(void **state)
{
        (void) state;
        run(no_router_for_others);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_outside_is_reached_under_the_machines_address),
                cmocka_unit_test(test_sandboxes_machine_and_metadata_are_closed),
                cmocka_unit_test(test_outside_does_not_come_in),
                cmocka_unit_test(test_a_link_has_one_source),
                cmocka_unit_test(test_a_named_service_of_the_machine_is_reached),
                cmocka_unit_test(test_rules_of_others_open_nothing),
                cmocka_unit_test(test_a_user_namespace_has_no_power_over_it),
                cmocka_unit_test(test_namespaces_are_taken_returned_and_closed_together),
                cmocka_unit_test(test_an_index_is_used_again_when_its_link_is_gone),
                cmocka_unit_test(test_sandboxes_are_adopted_and_leftovers_removed),
                cmocka_unit_test(test_two_installations_live_side_by_side),
                cmocka_unit_test(test_a_subnet_in_use_is_refused),
                cmocka_unit_test(test_opening_and_closing_leaves_nothing),
                cmocka_unit_test(test_the_machine_is_no_router_for_others),
        };

        return cmocka_run_group_tests_name("netns_pool", tests, NULL, NULL);
}
