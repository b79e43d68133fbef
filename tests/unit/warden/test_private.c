/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes with the network 'private', made by the program hutch-warden, in a small world of its own:
 * the host is a network namespace of this test, and so is the outside. */

#include "warden/netns_process.h"

#include <linux/rtnetlink.h>

#include "os/ip_forward.h"
#include "os/nft.h"
#include "os/virtual_file.h"
#include "tests/lib/net_world.h"
#include "tests/lib/warden_client.h"

#define NEEDS "sandboxes and network namespaces need root"
#define UIDS  "268435456:6553600" /* 100 sandboxes */

struct scene {
        struct warden_client c;
        struct addr_plan addrs;
};

static struct net_world net;

/* A world for each test, out of that of the one before. */
static int setup(void **state)
{
        (void) state;
        net = (struct net_world){ 0 };
        if (geteuid() != 0)
                return 0;
        if (unshare(CLONE_NEWNET) < 0)
                return -1;
        return net_world_open(&net);
}

struct place {
        int netns, pidfd, socket;
        uint32_t index;
};

/* --- the host --- */

static int count_link(void *data, const char *name, int index)
{
        (void) name;
        (void) index;
        ++*(unsigned *) data;
        return 0;
}

static unsigned count_links(const struct scene *s)
{
        unsigned n;
        int r;

        do {
                n = 0;
                r = link_list(&net.route, &net.batch, s->addrs.prefix, count_link, &n);
        } while (r == -EAGAIN);
        check_i64_eq(r, 0);
        return n;
}

static bool has_rules(const struct scene *s)
{
        struct netlink nl;
        int r;

        check_i64_eq(netlink_open(NETLINK_NETFILTER, &nl), 0);
        r = netrules_are_only_ours(&nl, &net.batch, &s->addrs);
        netlink_close(&nl);
        return r >= 0;
}

/* The kernel takes links away on its own time, and tells of each. */
static void wait_until_links_are(const struct scene *s, unsigned n)
{
        struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
        scoped(fd_closep) int fd =
                socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        struct pollfd p = { .fd = fd, .events = POLLIN };
        char buffer[8192];

        check_i64_eq(bind(fd, (struct sockaddr *) &group, sizeof(group)), 0);
        while (count_links(s) != n) {
                if (poll(&p, 1, WARDEN_CLIENT_WAIT) != 1)
                        fail_msg("%u links, not %u", count_links(s), n);
                while (recv(fd, buffer, sizeof(buffer), 0) > 0 || errno == ENOBUFS)
                        ;
        }
}

/* --- a warden --- */

#define NEW_SCENE(s)                         \
        do {                                 \
                (void) state;                \
                if (geteuid() != 0)          \
                        skip_because(NEEDS); \
                open_scene(s);               \
        } while (0)

static void open_scene(struct scene *s)
{
        struct addr_plan_config names = { .v4 = STR_NULL };
        char subnet[32];
        ssize_t n;

        warden_client_open_private(&s->c, UIDS);
        warden_client_hello(&s->c);
        n = virtual_file_read(fake_root_path(&s->c.root, "/" DATA_SUBNET), subnet, sizeof(subnet));
        check_true(n > 1);
        names.installation = str_from(s->c.installation);
        names.v4 = str_of(subnet, (size_t) n - 1);
        check_i64_eq(addr_plan_init(&s->addrs, &names), 0);
}

/* It leaves nothing on the host. */
static void close_scene(struct scene *s)
{
        warden_client_close(&s->c);
        check_false(has_rules(s));
        check_i64_eq(ip_forward_is_on(AF_INET), 0);
        check_i64_eq(ip_forward_is_on(AF_INET6), 0);
        wait_until_links_are(s, 0);
}

static struct plan_spec private_spec(const char *id)
{
        struct plan_spec spec = warden_client_spec(id);

        spec.network = PLAN_NETWORK_PRIVATE;
        return spec;
}

static pid_t pid_of(int pidfd)
{
        char path[64], text[512];
        const char *at;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        n = virtual_file_read(path, text, sizeof(text));
        check_true(n > 0);
        at = strstr(text, "\nPid:");
        check_true(at != NULL);
        return (pid_t) strtol(at + 5, NULL, 10);
}

/* What the last reply is about. */
static struct place take_place(struct scene *s)
{
        struct place p = { .pidfd = TAKE_FD(s->c.fds[WARDEN_FD_PIDFD]),
                           .socket = TAKE_FD(s->c.fds[WARDEN_FD_SOCKET]) };
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) pid_of(p.pidfd));
        p.netns = open(path, O_RDONLY | O_CLOEXEC);
        check_true(p.netns >= 0);
        return p;
}

static void leave_place(struct place *p)
{
        p->netns = fd_close(p->netns);
        p->pidfd = fd_close(p->pidfd);
        p->socket = fd_close(p->socket);
}

static struct place create(struct scene *s, const char *id)
{
        const struct plan_spec spec = private_spec(id);

        warden_client_send_create(&s->c, &spec, "");
        if (warden_client_wait_reply(&s->c, s->c.request_id) != 0)
                fail_msg("%s", s->c.reply.text);
        return take_place(s);
}

static void destroy(struct scene *s, const char *id, struct place *p)
{
        leave_place(p);
        check_i64_eq(warden_client_request(&s->c, WARDEN_MSG_DESTROY, id), 0);
}

/* --- what gets through --- */

static const enum world_how ways[] = { WORLD_TCP, WORLD_UDP, WORLD_PING };

static void check_reaches_outside(const struct place *p)
{
        static const struct {
                const char *to, *seen;
        } cases[] = { { WORLD_OUTSIDE4, WORLD_HOST4 }, { WORLD_OUTSIDE6, WORLD_HOST6 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t j = 0; j < ARRAY_SIZE(ways); j++) {
                        const struct world_attempt a = { .how = ways[j],
                                                         .from = p->netns,
                                                         .to = net.outside,
                                                         .addr = cases[i].to,
                                                         .seen = cases[i].seen };

                        check_case(cases[i].to);
                        check_i64_eq(world_try(&a), 0);
                }
}

static void test_the_outside_is_reached(void **state)
{
        struct scene s;
        struct place a;

        NEW_SCENE(&s);
        a = create(&s, "a1");
        check_reaches_outside(&a);
        destroy(&s, "a1", &a);
        close_scene(&s);
}

/* --- what does not --- */

static const char *own_address(const struct place *p, int family, char *text)
{
        struct world_sockaddr to =
                world_sockaddr(family == AF_INET ? WORLD_OUTSIDE4 : WORLD_OUTSIDE6, 1);
        scoped(fd_closep) int fd = netns_socket(p->netns, family, SOCK_DGRAM, 0);
        struct world_sockaddr me = { .n = sizeof(me.v6) };

        check_i64_eq(connect(fd, &to.any, to.n), 0);
        check_i64_eq(getsockname(fd, &me.any, &me.n), 0);
        return inet_ntop(family,
                         family == AF_INET ? (void *) &me.v4.sin_addr : (void *) &me.v6.sin6_addr,
                         text, INET6_ADDRSTRLEN);
}

/* The host's end of the same link. */
static const char *gateway(const struct place *p, int family, char *text)
{
        struct link_addr a = world_addr(own_address(p, family, text));

        ((uint8_t *) &a.v6)[link_addr_size(&a) - 1] ^= 1;
        return world_text(&a, text);
}

static void check_closed(const struct place *from, int to, const char *addr)
{
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                const struct world_attempt a = {
                        .how = ways[i], .from = from->netns, .to = to, .addr = addr
                };
                int r = world_try(&a);

                check_case(addr);
                if (ways[i] == WORLD_TCP)
                        check_i64_eq(r, -ECONNREFUSED);
                else
                        check_true(r == -EHOSTUNREACH || r == -EACCES);
        }
}

static void test_sandboxes_machine_and_metadata_are_closed(void **state)
{
        static const int families[] = { AF_INET, AF_INET6 };
        char text[INET6_ADDRSTRLEN];
        struct scene s;
        struct place a, b;

        NEW_SCENE(&s);
        a = create(&s, "a1");
        b = create(&s, "b1");
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                check_closed(&a, b.netns, own_address(&b, families[i], text));
                check_closed(&a, net.host, gateway(&a, families[i], text));
                check_closed(&a, net.host, gateway(&b, families[i], text));
        }
        check_closed(&a, net.host, WORLD_HOST4);
        check_closed(&a, net.host, WORLD_HOST6);
        check_closed(&a, net.outside, WORLD_METADATA4);
        check_closed(&a, net.outside, WORLD_METADATA6);
        check_case("an address that another one could have");
        for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
                struct link_addr free_one;
                struct world_attempt t = { .from = a.netns };
                int fd;

                if (families[i] == AF_INET)
                        addr_plan_v4(&s.addrs, 31000, ADDR_PLAN_SANDBOX, &free_one);
                else
                        addr_plan_v6(&s.addrs, 31000, ADDR_PLAN_SANDBOX, &free_one);
                t.addr = world_text(&free_one, text);
                fd = world_client(&t, SOCK_STREAM, 0);
                check_i64_eq(fd < 0 ? fd : world_wait(fd, POLLOUT, 0), -ECONNREFUSED);
                (void) fd_close(fd);
        }
        check_reaches_outside(&a); /* they were tried from a network that works */
        destroy(&s, "a1", &a);
        destroy(&s, "b1", &b);
        close_scene(&s);
}

static void test_none_reaches_nothing(void **state)
{
        static const char *const places[] = { WORLD_OUTSIDE4, WORLD_OUTSIDE6, WORLD_HOST4,
                                              WORLD_HOST6 };
        struct scene s;
        struct place a;

        NEW_SCENE(&s);
        check_i64_eq(warden_client_create(&s.c, "a1", ""), 0);
        a = take_place(&s);
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                const struct world_attempt t = {
                        .how = WORLD_UDP, .from = a.netns, .to = net.outside, .addr = places[i]
                };
                int r;

                check_case(places[i]);
                r = world_client(&t, SOCK_DGRAM, 0);
                check_true(r == -ENETUNREACH || r == -EADDRNOTAVAIL);
        }
        destroy(&s, "a1", &a);
        close_scene(&s);
}

/* --- inside --- */

#define PYTHON(script) "python3 -c '" script "'; echo status=$?"

/* A command as the sandbox's root, and what is to be found in its output. */
static const struct {
        const char *name, *command, *want;
        enum plan_network network;
} insides[] = {
        { "an ordinary user's server on port 80",
          PYTHON("import os,socket;os.setuid(1000);s=socket.create_server((\"\",80));"
                 "c=socket.create_connection((\"127.0.0.1\",80));print(\"served\")"),
          "served", PLAN_NETWORK_PRIVATE },
        { "an ordinary user's echo request to its loopback",
          PYTHON("import os,socket;os.setuid(1000);"
                 "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM,socket.IPPROTO_ICMP);"
                 "s.connect((\"127.0.0.1\",0));s.send(b\"\\x08\"+bytes(7));"
                 "print(\"echo\",s.recv(64)[0])"),
          "echo 0", PLAN_NETWORK_PRIVATE },
        { "its own name", "getent hosts $(hostname); cat /etc/hostname", "127.0.1.1", 0 },
        { "its resolvers", "cat /etc/resolv.conf", "nameserver 192.0.2.53", PLAN_NETWORK_PRIVATE },
        { "no resolver without a network", "wc -c < /etc/resolv.conf", "\"0", 0 },
        { "its links in /sys", "echo =$(ls /sys/class/net)=", "=eth0 lo=", PLAN_NETWORK_PRIVATE },
        { "no link in /sys without a network", "echo =$(ls /sys/class/net)=", "=lo=", 0 },
        { "/sys is read-only", "echo 1 > /sys/class/net/lo/tx_queue_len; echo", "ead-only",
          PLAN_NETWORK_PRIVATE },
        { "settings are read-only", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo", "ead-only",
          PLAN_NETWORK_PRIVATE },
        { "no new link",
          PYTHON("import socket,struct as t;s=socket.socket(16,3,0);b=t.pack(\"=BxHiII\",0,0,0,0,0)"
                 "+t.pack(\"=HH8s\",12,3,b\"zz0\")+t.pack(\"=HHHH8s\",16,18,12,1,b\"dummy\");"
                 "s.send(t.pack(\"=IHHII\",16+len(b),16,0x605,1,0)+b);"
                 "print(\"reply\",t.unpack(\"=i\",s.recv(99)[16:20]))"),
          "reply (-1,)", PLAN_NETWORK_PRIVATE },
        { "no address taken away",
          PYTHON("import socket,struct as t;s=socket.socket(16,3,0);b=t.pack(\"=BBBBi\",2,8,0,0,1)"
                 "+t.pack(\"=HH4s\",8,2,b\"\\x7f\\x00\\x00\\x01\");"
                 "s.send(t.pack(\"=IHHII\",16+len(b),21,5,1,0)+b);"
                 "print(\"reply\",t.unpack(\"=i\",s.recv(99)[16:20]))"),
          "reply (-1,)", PLAN_NETWORK_PRIVATE },
        { "no packet rules", PYTHON("import socket;socket.socket(16,3,12)"), "status=1",
          PLAN_NETWORK_PRIVATE },
        { "no raw packets", PYTHON("import socket;socket.socket(17,3,0)"), "status=1",
          PLAN_NETWORK_PRIVATE },
};

static void test_inside(void **state)
{
        static const char *const ids[] = { "none1", "private1" };
        struct place places[2];
        struct scene s;

        NEW_SCENE(&s);
        check_i64_eq(warden_client_create(&s.c, ids[0], ""), 0);
        places[0] = take_place(&s);
        places[1] = create(&s, ids[1]);
        for (size_t i = 0; i < ARRAY_SIZE(insides); i++) {
                scoped(buf_done) struct buf reply;

                check_case(insides[i].name);
                buf_init(&reply, 64 * KiB);
                warden_client_run(places[insides[i].network].socket, insides[i].command, &reply);
                if (!memmem(buf_str(&reply).p, reply.n, insides[i].want, strlen(insides[i].want)))
                        fail_msg("%s: no '%s' in: %.*s", insides[i].name, insides[i].want,
                                 STR_ARG(buf_str(&reply)));
        }
        for (size_t i = 0; i < 2; i++)
                destroy(&s, ids[i], &places[i]);
        close_scene(&s);
}

/* --- coming and going --- */

static void test_networks_outlive_the_warden(void **state)
{
        static const int signals[] = { SIGKILL, SIGTERM };
        struct scene s;
        struct place a, b;

        NEW_SCENE(&s);
        a = create(&s, "a1");
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                (void) warden_client_stop(&s.c, signals[i]);
                check_reaches_outside(&a);
                warden_client_start(&s.c);
                warden_client_hello(&s.c);
                b = create(&s, "b1");
                check_reaches_outside(&a);
                check_reaches_outside(&b);
                destroy(&s, "b1", &b);
        }
        destroy(&s, "a1", &a);
        close_scene(&s);
}

static void test_networks_outlive_their_keeper(void **state)
{
        struct scene s;
        struct place a, b;

        NEW_SCENE(&s);
        a = create(&s, "a1");
        check_i64_eq(kill(warden_client_child(&s.c, "hutch-netns"), SIGKILL), 0);
        for (int i = 0; i < 6; i++) { /* more than were ready */
                b = create(&s, "b1");
                check_reaches_outside(&b);
                destroy(&s, "b1", &b);
        }
        check_reaches_outside(&a);
        destroy(&s, "a1", &a);
        close_scene(&s);
}

/* More at a time than are kept ready. */
static void test_many(void **state)
{
        enum { N = 12 };
        struct scene s;
        char id[16];

        NEW_SCENE(&s);
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < N; i++) {
                        struct plan_spec spec;

                        (void) snprintf(id, sizeof(id), "c%02d", i);
                        spec = private_spec(id);
                        warden_client_send_create(&s.c, &spec, id);
                }
                for (int i = 0; i < N; i++) {
                        struct warden_packet m;
                        struct place p;
                        struct err e;

                        warden_client_receive(&s.c);
                        m = warden_client_packet(&s.c);
                        check_i64_eq(warden_reply_decode(&m, &s.c.arena, &s.c.reply, &e), 0);
                        if (s.c.reply.result != 0)
                                fail_msg("%s", s.c.reply.text);
                        p = take_place(&s);
                        check_reaches_outside(&p);
                        leave_place(&p);
                }
                for (int i = 0; i < N; i++) {
                        (void) snprintf(id, sizeof(id), "c%02d", i);
                        check_i64_eq(warden_client_request(&s.c, WARDEN_MSG_DESTROY, id), 0);
                }
        }
        close_scene(&s);
}

/* At its start, not at the first create. */
static void test_a_configured_subnet_in_use_ends_the_warden(void **state)
{
        const struct link_addr taken = world_addr("10.209.44.1");
        struct netlink_batch *b = &net.batch;
        struct warden_client c;
        int status = 0;

        (void) state;
        if (geteuid() != 0)
                skip_because(NEEDS);
        netlink_reset(b);
        link_add_address(b, 1, &taken, 32);
        check_i64_eq(netlink_send(&net.route, b, NULL), 0);
        warden_client_open_subnet(&c, UIDS, "10.209.0.0/16");
        check_i64_eq(waitpid(c.pid, &status, 0), c.pid);
        c.pid = 0;
        check_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        warden_client_close(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_the_outside_is_reached, setup),
                cmocka_unit_test_setup(test_sandboxes_machine_and_metadata_are_closed, setup),
                cmocka_unit_test_setup(test_none_reaches_nothing, setup),
                cmocka_unit_test_setup(test_inside, setup),
                cmocka_unit_test_setup(test_networks_outlive_the_warden, setup),
                cmocka_unit_test_setup(test_networks_outlive_their_keeper, setup),
                cmocka_unit_test_setup(test_many, setup),
                cmocka_unit_test_setup(test_a_configured_subnet_in_use_ends_the_warden, setup),
        };

        return cmocka_run_group_tests_name("private", tests, NULL, NULL);
}
