/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Native sandboxes of the host's image, from the create request to the first reply, against their floor
 * (bench/instance_floor.h), in turn. Needs root.
 *
 *         instance_bench ROUNDS HUTCH-EXECD TINY-INIT
 *
 * Prints one JSON object: "floor" until the tiny init of the floor writes a byte; "init" the same with a sandbox
 * of the warden; "agent" until hutch-execd replies to a request; "zygote" the work that is done before a create
 * request. User and network namespaces are pre-created in all of them.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/instance_floor.h"
#include "bench/bench_host.h"
#include "bench/latency.h"
#include "os/netns.h"
#include "os/userns.h"
#include "warden/spawn.h"
#include "warden/data.h"

#define FIRST 0x10000000U
#define ID    "bench"
#define GROUP "hutch-bench"
#define REQUEST \
        "GET /ping HTTP/1.1\r\nHost: bench\r\nX-EXECD-ACCESS-TOKEN: t\r\nConnection: close\r\n\r\n"

struct bench {
        struct bench_host host;
        int agent, init;
        struct latency floor, by_init, by_agent, zygote;
};

/* --- the floor --- */

static void make_floor_dirs(const struct bench *b)
{
        must(sys(mkdirat(b->host.context.data, DATA_SANDBOXES "/floor", 0700)), "floor");
        must(sys(mkdirat(b->host.context.data, DATA_SANDBOXES "/floor/upper", 0755)), "upper");
        must(sys(mkdirat(b->host.context.data, DATA_SANDBOXES "/floor/work", 0700)), "work");
        must(sys(fchownat(b->host.context.data, DATA_SANDBOXES "/floor/upper", FIRST, FIRST, 0)),
             "upper");
}

static void run_floor(struct bench *b)
{
        const struct userns_range range = { FIRST, PLAN_UIDS };
        struct instance_floor f = {
                .data = b->host.path, .name = "floor", .input = -EBADF, .program = b->init
        };
        uint64_t begin;
        int pipes[2];
        pid_t pid;
        char byte;

        must(userns_make(&range, &f.userns), "user namespace");
        must(netns_make(&f.netns), "network namespace");
        must(sys(pipe2(pipes, O_CLOEXEC)), "pipe");
        f.output = pipes[1];
        begin = latency_now();
        make_floor_dirs(b);
        pid = instance_floor_start(&f);
        must(sys(pid), "clone");
        (void) close(pipes[1]);
        must(read(pipes[0], &byte, 1) == 1 ? 0 : -EPIPE, "floor");
        latency_add(&b->floor, latency_now() - begin);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(pipes[0]);
        (void) close(f.userns);
        (void) close(f.netns);
        bench_host_remove_tree(b->host.context.data, DATA_SANDBOXES "/floor");
}

/* --- Hutch --- */

static void request_agent(const struct bench *b)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char reply[4096];

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s/" DATA_SANDBOXES "/" ID "/agent.sock",
                        b->host.path);
        must(sys(connect(fd, (struct sockaddr *) &un, sizeof(un))), "connect");
        must(write(fd, REQUEST, strlen(REQUEST)) > 0 ? 0 : -errno, "request");
        must(read(fd, reply, sizeof(reply)) > 12 && memcmp(reply + 9, "200", 3) == 0 ? 0 : -EPROTO,
             "reply");
        (void) close(fd);
}

static void run_ours(struct bench *b, bool agent)
{
        struct plan_spec spec = {
                .id = ID, .hostname = ID, .workspace = "/workspace", .uid_first = FIRST
        };
        struct spawn_order order = { .spec = &spec, .record = -EBADF };
        struct buf bytes;
        struct zygote zygote = ZYGOTE_NULL;
        struct err e = { 0 };
        uint64_t begin = latency_now();
        int pipes[2], report;
        char byte;

        buf_init(&bytes, PLAN_SPEC_MAX);
        must(plan_spec_encode(&spec, &bytes, &e), e.message);
        order.zygote = &zygote;
        order.spec_bytes = buf_str(&bytes);
        b->host.context.agent = agent ? b->agent : b->init;
        must(zygote_make(&b->host.context, FIRST, &zygote), "zygote");
        must(zygote_wait(&zygote), "zygote");
        must(netns_make(&order.netns), "network namespace");
        latency_add(&b->zygote, latency_now() - begin);
        must(sys(pipe2(pipes, O_CLOEXEC)), "pipe");
        order.output = pipes[1];
        begin = latency_now();
        must(spawn_begin(&b->host.context, &order, &report, &e), e.message);
        must(spawn_finish(&spec, report, &e), e.message);
        if (agent)
                request_agent(b);
        else
                must(read(pipes[0], &byte, 1) == 1 ? 0 : -EPIPE, "init");
        latency_add(agent ? &b->by_agent : &b->by_init, latency_now() - begin);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
        (void) close(order.netns);
        buf_done(&bytes);
        must(spawn_destroy(&b->host.context, ID, &zygote, &e), e.message);
}

static void print(const char *name, struct latency *l, double seconds, const char *end)
{
        (void) printf("\"%s\": ", name);
        latency_print(l, seconds);
        (void) printf("%s\n", end);
}

int main(int argc, char **argv)
{
        static struct bench b;
        uint64_t rounds, begin;
        double seconds;

        if (argc != 4 || parse_u64_max(str_from(argv[1]), 100000, &rounds) < 0) {
                (void) fprintf(stderr, "usage: instance_bench ROUNDS HUTCH-EXECD TINY-INIT\n");
                return 2;
        }
        bench_host_open(&b.host, GROUP);
        b.agent = bench_host_seal(argv[2]);
        b.init = bench_host_seal(argv[3]);
        begin = latency_now();
        for (uint64_t i = 0; i < rounds; i++) {
                run_floor(&b);
                run_ours(&b, false);
                run_ours(&b, true);
        }
        seconds = (double) (latency_now() - begin) / 1e9;
        bench_host_close(&b.host);
        (void) printf("{");
        print("floor", &b.floor, seconds, ",");
        print("init", &b.by_init, seconds, ",");
        print("agent", &b.by_agent, seconds, ",");
        print("zygote", &b.zygote, seconds, "}");
        return 0;
}
