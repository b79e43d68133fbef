/* SPDX-License-Identifier: Apache-2.0 */

/* One index, one owner after the other. */

#include "warden/netns_pool.h"

#include "os/conntrack.h"
#include "tests/lib/netns_pool_world.h"

static int udp_at(int netns, const char *addr, uint16_t port)
{
        struct world_sockaddr at = world_sockaddr(addr, port);
        scoped(fd_closep) int fd = netns_socket(netns, at.any.sa_family, SOCK_DGRAM, 0);

        if (fd < 0 || bind(fd, &at.any, at.n) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* What is said to the one who had an index before. */
static int next_owner(struct world *w, int family)
{
        const char *addr = family == AF_INET ? WORLD_OUTSIDE4 : WORLD_OUTSIDE6;
        struct world_sockaddr to = world_sockaddr(addr, WORLD_PORT),
                              from = { .n = sizeof(from.v6) };
        int server = udp_at(w->net.outside, addr, WORLD_PORT), client, r;
        char byte;

        apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        client = udp_at(w->a.fd, address(w, family, &w->a, ADDR_PLAN_SANDBOX), 5000);
        apart_check(server >= 0 && client >= 0);
        apart_check(sendto(client, "a", 1, 0, &to.any, to.n) == 1);
        apart_check((errno = -world_wait(server, POLLIN, 0)) == 0);
        apart_check(recvfrom(server, &byte, 1, 0, &from.any, &from.n) == 1);
        apart_check(sendto(server, "b", 1, 0, &from.any, from.n) == 1);
        apart_check((errno = -world_wait(client, POLLIN, 0)) == 0);
        (void) fd_close(client);

        netns_pool_return(w->pool, &w->a);
        apart_check(netns_pool_flush(w->pool) == 0);
        w->b = w->a;
        do {
                do
                        r = netns_pool_make(w->pool, NETNS_KIND_PRIVATE);
                while (r == -EBUSY && netns_pool_sweep(w->pool) >= 0);
                apart_check((errno = -r) == 0);
                apart_check(netns_pool_take(w->pool, NETNS_KIND_PRIVATE, &w->a) == 0);
        } while (w->a.index != w->b.index);
        client = udp_at(w->a.fd, address(w, family, &w->a, ADDR_PLAN_SANDBOX), 5000);
        apart_check(client >= 0);
        apart_check(sendto(server, "c", 1, 0, &from.any, from.n) == 1);
        apart_check(world_wait(client, POLLIN, 100) == -ETIMEDOUT);
        (void) fd_close(server);
        (void) fd_close(client);
        return 0;
}

static int next_owners(void *data)
{
        struct world *w = data;
        struct netns_pool_config c = sample_config("one", "10.9.0.0/28");

        c.depth[NETNS_KIND_PRIVATE] = 1;
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                apart_check(i > 0 || (errno = -net_world_open(&w->net)) == 0);
                w->config = c;
                check_case(families[i] == AF_INET ? "v4" : "v6");
                apart_check(netns_pool_open(&c, &w->pool, NULL) == 0);
                apart_check(netns_pool_start(w->pool, NULL) == 0);
                apart_check(netns_pool_make(w->pool, NETNS_KIND_PRIVATE) == 0);
                apart_check(next_owner(w, families[i]) == 0);
                netns_pool_close(w->pool);
        }
        return 0;
}

static void test_connections_of_a_former_owner_are_forgotten(void **state)
{
        (void) state;
        run(next_owners);
}

static bool count_from(void *data, const struct link_addr *source)
{
        struct world *w = data;

        w->from_a += addr_plan_index_of_addr(&w->config.addrs, source) == (int64_t) w->a.index;
        return false;
}

/* So many connections that they are not picked one by one. */
static int crowd(void *data)
{
        enum { N = 5000 };
        struct world *w = data;
        struct netlink filter;
        int fd;

        apart_check((errno = -open_world(w)) == 0);
        apart_check(netlink_open(NETLINK_NETFILTER, &filter) == 0);
        fd = netns_socket(w->a.fd, AF_INET, SOCK_DGRAM, 0);
        for (unsigned i = 0; i < N; i++) {
                struct world_sockaddr to = world_sockaddr(WORLD_OUTSIDE4, (uint16_t) (10000 + i));

                (void) !sendto(fd, "a", 1, 0, &to.any, to.n);
        }
        (void) fd_close(fd);
        apart_check((errno = -conntrack_delete(&filter, &w->net.batch, count_from, w)) == 0);
        apart_check(w->from_a > N / 2);
        netns_pool_return(w->pool, &w->a);
        apart_check(netns_pool_flush(w->pool) == 0);
        w->from_a = 0;
        apart_check((errno = -conntrack_delete(&filter, &w->net.batch, count_from, w)) == 0);
        apart_check(w->from_a == 0);
        return 0;
}

static void test_a_crowd_of_connections_is_forgotten(void **state)
{
        (void) state;
        run(crowd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_connections_of_a_former_owner_are_forgotten),
                cmocka_unit_test(test_a_crowd_of_connections_is_forgotten),
        };

        return cmocka_run_group_tests_name("netns_pool_owners", tests, NULL, NULL);
}
