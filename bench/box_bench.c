/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Native sandboxes of the host's image, from the wish to the first answer, against their floor
 * (bench/box_floor.h), in turns. Needs root.
 *
 *         box_bench ROUNDS HUTCH-EXECD TINY-INIT
 *
 * Prints one JSON object: "floor" until the tiny init speaks; "init" the same made by our warden;
 * "agent" until hutch-execd answers a request; "seed" what is done before anybody waits. User and
 * network namespaces are made ahead in all of them.
 */

#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/box_floor.h"
#include "bench/latency.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/netns.h"
#include "os/sealed.h"
#include "os/userns.h"
#include "os/walk.h"
#include "warden/box.h"
#include "warden/data.h"
#include "warden/host_image.h"

#define FIRST 0x10000000U
#define ID    "bench"
#define GROUP "hutch-bench"
#define REQUEST \
        "GET /ping HTTP/1.1\r\nHost: box\r\nX-EXECD-ACCESS-TOKEN: t\r\nConnection: close\r\n\r\n"

struct bench {
        char data[64];
        struct cgroup_tree tree;
        struct seed_ground ground;
        int agent, init;
        struct latency floor, by_init, by_agent, seed;
};

never_returns static void fail(const char *what, int r)
{
        (void) fprintf(stderr, "box_bench: %s: %s\n", what, err_text(r));
        exit(1);
}

static void must(int r, const char *what)
{
        if (r < 0)
                fail(what, r);
}

/* For calls that set errno. */
static int sys(int r)
{
        return r < 0 ? -errno : r;
}

/* --- the world --- */

static int seal(const char *path)
{
        int from = open(path, O_RDONLY | O_CLOEXEC), fd = -EBADF;

        must(sys(from), path);
        must(sealed_copy(from, "bench", &fd), path);
        (void) close(from);
        return fd;
}

static void bench_open(struct bench *b, char **argv)
{
        int machine, host;

        (void) snprintf(b->data, sizeof(b->data), "/tmp/hutch-bench-XXXXXX");
        must(mkdtemp(b->data) ? 0 : -errno, "make a folder");
        must(sys(unshare(CLONE_NEWNS)), "mount namespace (needs root)");
        must(mount_isolate(), "isolate");
        (void) umask(022);
        must(data_open(b->data, &b->ground.data), "data folder");
        machine = open("/", O_PATH | O_CLOEXEC);
        host = openat(b->ground.data, DATA_HOST, O_PATH | O_CLOEXEC);
        must(host_image_fill(machine, host), "image");
        (void) close(machine);
        (void) close(host);
        must(cgroup_tree_open(&b->tree, "", GROUP, 0), "control groups");
        b->agent = seal(argv[2]);
        b->init = seal(argv[3]);
        b->ground.data_path = b->data;
        b->ground.tree = &b->tree;
}

static void remove_tree(int at, const char *name)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, at, name);
        do
                r = walk_remove_step(&rm);
        while (r > 0);
        walk_remove_done(&rm);
        must(r, name);
}

static void bench_close(struct bench *b)
{
        char path[128];

        must(cgroup_tree_remove(&b->tree, "", GROUP), "control groups");
        (void) snprintf(path, sizeof(path), "%s/" DATA_DEVICES, b->data);
        (void) umount2(path, MNT_DETACH);
        (void) snprintf(path, sizeof(path), "%s/" DATA_MASKS, b->data);
        (void) umount2(path, MNT_DETACH);
        remove_tree(AT_FDCWD, b->data);
}

/* --- the floor --- */

static void make_floor_folders(const struct bench *b)
{
        must(sys(mkdirat(b->ground.data, DATA_BOXES "/floor", 0700)), "floor");
        must(sys(mkdirat(b->ground.data, DATA_BOXES "/floor/upper", 0755)), "upper");
        must(sys(mkdirat(b->ground.data, DATA_BOXES "/floor/work", 0700)), "work");
        must(sys(fchownat(b->ground.data, DATA_BOXES "/floor/upper", FIRST, FIRST, 0)), "upper");
}

static void run_floor(struct bench *b)
{
        const struct userns_range range = { FIRST, PLAN_UIDS };
        struct box_floor f = { .data = b->data, .program = b->init };
        uint64_t begin;
        int pipes[2];
        pid_t pid;
        char byte;

        must(userns_make(&range, &f.userns), "user namespace");
        must(netns_make(&f.netns), "network namespace");
        must(sys(pipe2(pipes, O_CLOEXEC)), "pipe");
        f.output = pipes[1];
        begin = latency_now();
        make_floor_folders(b);
        pid = box_floor_start(&f);
        must(sys(pid), "clone");
        (void) close(pipes[1]);
        must(read(pipes[0], &byte, 1) == 1 ? 0 : -EPIPE, "floor");
        latency_add(&b->floor, latency_now() - begin);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(pipes[0]);
        (void) close(f.userns);
        (void) close(f.netns);
        remove_tree(b->ground.data, DATA_BOXES "/floor");
}

/* --- ours --- */

static void ask_agent(const struct bench *b)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char answer[4096];

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s/" DATA_BOXES "/" ID "/agent.sock",
                        b->data);
        must(sys(connect(fd, (struct sockaddr *) &un, sizeof(un))), "connect");
        must(write(fd, REQUEST, strlen(REQUEST)) > 0 ? 0 : -errno, "ask");
        must(read(fd, answer, sizeof(answer)) > 12 && memcmp(answer + 9, "200", 3) == 0 ? 0
                                                                                        : -EPROTO,
             "answer");
        (void) close(fd);
}

static int open_token(void)
{
        int pipes[2];

        must(sys(pipe2(pipes, O_CLOEXEC)), "pipe");
        must(write(pipes[1], "t", 1) == 1 ? 0 : -errno, "token");
        (void) close(pipes[1]);
        return pipes[0];
}

static void run_ours(struct bench *b, bool agent)
{
        struct plan_spec spec = {
                .id = ID, .hostname = ID, .workspace = "/workspace", .uid_first = FIRST
        };
        struct box_parts parts = { .token = open_token() };
        struct seed seed = SEED_NULL;
        struct err e = { 0 };
        uint64_t begin = latency_now();
        int pipes[2], report;
        char byte;

        b->ground.agent = agent ? b->agent : b->init;
        must(seed_make(&b->ground, FIRST, &seed), "seed");
        must(seed_wait(&seed), "seed");
        latency_add(&b->seed, latency_now() - begin);
        must(sys(pipe2(pipes, O_CLOEXEC)), "pipe");
        parts.output = pipes[1];
        begin = latency_now();
        must(box_begin(&b->ground, &seed, &spec, &parts, &report, &e), e.message);
        must(box_finish(&b->ground, &spec, report, &e), e.message);
        if (agent)
                ask_agent(b);
        else
                must(read(pipes[0], &byte, 1) == 1 ? 0 : -EPIPE, "init");
        latency_add(agent ? &b->by_agent : &b->by_init, latency_now() - begin);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
        (void) close(parts.token);
        must(box_destroy(&b->ground, ID, &seed, &e), e.message);
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
                (void) fprintf(stderr, "usage: box_bench ROUNDS HUTCH-EXECD TINY-INIT\n");
                return 2;
        }
        bench_open(&b, argv);
        begin = latency_now();
        for (uint64_t i = 0; i < rounds; i++) {
                run_floor(&b);
                run_ours(&b, false);
                run_ours(&b, true);
        }
        seconds = (double) (latency_now() - begin) / 1e9;
        bench_close(&b);
        (void) printf("{");
        print("floor", &b.floor, seconds, ",");
        print("init", &b.by_init, seconds, ",");
        print("agent", &b.by_agent, seconds, ",");
        print("seed", &b.seed, seconds, "}");
        return 0;
}
