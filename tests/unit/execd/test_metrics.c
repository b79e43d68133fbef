/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/metrics.h"

#include "base/base.h"
#include "os/host.h"
#include "tests/lib/agent_world.h"
#include "tests/lib/clock_fake.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/wire.h"

#define S "/sys/fs/cgroup"

struct bench {
        struct clock_fake clock;
        struct net_loop loop;
        struct metrics m;
        struct fake_root tree;
};

static void bench_open(struct bench *b, const struct fake_root_file *files)
{
        fake_root_open(&b->tree);
        fake_root_put_all(&b->tree, files);
        clock_fake_init(&b->clock, 1000 * USEC_PER_SEC, 2000 * USEC_PER_SEC);
        check_i64_eq(net_loop_init(&b->loop, &b->clock.clock), 0);
        metrics_init(&b->m, &b->loop, b->tree.root);
}

static void bench_close(struct bench *b)
{
        metrics_close(&b->m);
        net_loop_done(&b->loop);
        fake_root_close(&b->tree);
}

static void group_used(struct bench *b, unsigned msec)
{
        char text[64];

        (void) snprintf(text, sizeof(text), "usage_usec %u\n", msec * 1000);
        fake_root_put(&b->tree, S "/cpu.stat", text);
}

static const struct fake_root_file group_files[] = {
        { "/proc/self/cgroup", "0::/\n" },
        { "/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n" },
        { "/proc/stat", "cpu 100 0 0 900\n" },
        { S "/cgroup.procs", "" },
        { S "/cpu.max", "50000 100000\n" },
        { S "/cpu.stat", "usage_usec 0\n" },
        { S "/memory.max", "2097152\n" },
        { S "/memory.current", "1048576\n" },
        { NULL, NULL },
};

static void test_usage_of_the_cgroup(void **state)
{
        struct metrics_values v;
        struct bench b;

        (void) state;
        bench_open(&b, group_files);
        check_case("since the start");
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        group_used(&b, 100); /* a fifth of what half a processor offers */
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_milli, 500);
        check_u64_eq(v.cpu_used_milli, 20000);
        check_u64_eq(v.memory_total, 2 * MiB);
        check_u64_eq(v.memory_used, 1 * MiB);
        check_u64_eq(v.timestamp, 2001 * USEC_PER_SEC);
        check_case("right after that: of the same span");
        clock_fake_advance(&b.clock, 1 * USEC_PER_MSEC);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 19980);
        check_case("since the one before");
        clock_fake_advance(&b.clock, 999 * USEC_PER_MSEC);
        group_used(&b, 350);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 50000);
        check_case("idle");
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 0);
        check_case("more than there is");
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        group_used(&b, 5000);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 100000);
        check_case("a counter that went back");
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        group_used(&b, 1);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 0);
        bench_close(&b);
}

static void test_cgroup_without_limits(void **state)
{
        struct metrics_values v;
        struct bench b;

        (void) state;
        bench_open(&b, group_files);
        fake_root_put(&b.tree, S "/cpu.max", "max 100000\n");
        fake_root_put(&b.tree, S "/memory.max", "max\n");
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_milli, host_cpus() * 1000ULL);
        check_u64_eq(v.memory_total, 4 * MiB);
        check_u64_eq(v.memory_used, 1 * MiB);
        check_case("more processors allowed than there are");
        fake_root_put(&b.tree, S "/cpu.max", "999999999 1000\n");
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_milli, host_cpus() * 1000ULL);
        bench_close(&b);
}

static void test_usage_of_the_host(void **state)
{
        static const struct fake_root_file files[] = {
                { "/proc/meminfo", "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n" },
                { "/proc/stat", "cpu 100 0 0 900\n" },
                { NULL, NULL },
        };
        struct metrics_values v;
        struct bench b;

        (void) state;
        bench_open(&b, files);
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        fake_root_put(&b.tree, "/proc/stat", "cpu 150 0 0 1050\n");
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 25000);
        check_u64_eq(v.memory_total, 4 * MiB);
        check_u64_eq(v.memory_used, 3 * MiB);
        check_case("a group appears: nothing to compare with yet");
        fake_root_put_all(&b.tree, group_files);
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        group_used(&b, 9);
        metrics_read(&b.m, &v);
        check_u64_eq(v.cpu_used_milli, 0);
        bench_close(&b);
}

static void test_usage_without_any_source(void **state)
{
        static const struct fake_root_file files[] = { { NULL, NULL } };
        struct metrics_values v;
        struct bench b;

        (void) state;
        bench_open(&b, files);
        clock_fake_advance(&b.clock, 1 * USEC_PER_SEC);
        metrics_read(&b.m, &v);
        check_true(v.cpu_milli >= 1000);
        check_u64_eq(v.cpu_used_milli, 0);
        check_true(v.memory_total > 0 && v.memory_used <= v.memory_total);
        bench_close(&b);
}

/* --- the routes --- */

static void use_tree(struct agent_world *w, struct fake_root *t)
{
        fake_root_open(t);
        fake_root_put_all(t, group_files);
        w->agent->metrics.root = t->root;
}

static bool has(struct str s, const char *text)
{
        return memmem(s.p, s.n, text, strlen(text)) != NULL;
}

static void test_get(void **state)
{
        struct agent_world w;
        struct reply r;
        struct fake_root t;

        (void) state;
        agent_world_open(&w);
        use_tree(&w, &t);
        r = call(&w, "GET", "/metrics", NULL);
        check_i64_eq(r.status, 200);
        check_str_eq(reply_header(&w, "Content-Type"), "application/json");
        check_true(str_starts_with(r.body, STR("{\"cpu_count\":0.5,\"cpu_used_pct\":")));
        check_true(has(r.body, ",\"mem_total_mib\":2,\"mem_used_mib\":1,\"timestamp\":1"));
        check_true(str_ends_with(r.body, STR("}")));
        fake_root_put(&t, S "/memory.current", "1073152\n");
        r = call(&w, "GET", "/metrics", NULL);
        check_true(has(r.body, "\"mem_used_mib\":1.023,"));
        fake_root_close(&t);
        agent_world_close(&w);
}

static void test_watch(void **state)
{
        struct sock_addr addr;
        struct agent_world w;
        struct wire_peer c;
        struct fake_root t;
        int fd = -EBADF;

        (void) state;
        agent_world_open(&w);
        use_tree(&w, &t);
        w.agent->metrics.watchers._pings.length = 1 * USEC_PER_MSEC;
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &addr), 0);
        check_i64_eq(http_server_listen(w.agent->server, fd), 0);
        wire_connect(&c, &addr);
        wire_send(&w.loop, &c, STR("GET /metrics/watch HTTP/1.0\r\nHost: h\r\n\r\n"));
        check_case("the first comes at once");
        wire_until(&w.loop, wire_has(&c, "\r\n\r\n{\"cpu_count\":0.5,"));
        check_true(wire_has(&c, "Content-Type: text/event-stream\r\n"));
        check_case("then more, a line each");
        wire_until(&w.loop, wire_has(&c, "}\n{\"cpu_count\":0.5,"));
        check_false(wire_has(&c, "}\n\n"));
        check_case("until the client goes");
        wire_done(&c);
        wire_until(&w.loop, http_server_stats(w.agent->server).connections == 0);
        check_true(list_empty(&w.agent->metrics.watchers._pings.queue));
        fake_root_close(&t);
        agent_world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_usage_of_the_cgroup),
                cmocka_unit_test(test_cgroup_without_limits),
                cmocka_unit_test(test_usage_of_the_host),
                cmocka_unit_test(test_usage_without_any_source),
                cmocka_unit_test(test_get),
                cmocka_unit_test(test_watch),
        };

        return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
