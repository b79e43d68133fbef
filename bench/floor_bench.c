/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Complete create/destroy cycles of floor sandboxes (bench/instance_floor.h): each has a range of uids, a network
 * namespace, a cgroup, a directory and a first process. Needs root.
 *
 *         floor_bench rate TINY-INIT NETWORK WORKERS SECONDS
 *                 how many are created, run a command and are destroyed in that time
 *         floor_bench hold TINY-INIT NETWORK COUNT
 *                 creates so many, prints a line, and destroys them at the end of standard input
 *
 * NETWORK is none or private. Each prints one JSON object.
 */

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "bench/instance_floor.h"
#include "bench/bench_host.h"
#include "bench/latency.h"
#include "os/netns.h"
#include "os/userns.h"
#include "plan/spec.h"
#include "warden/data.h"
#include "warden/netns_pool.h"

#define FIRST       0x10000000U
#define WORKERS_MAX 16
#define COUNT_MAX   4096
#define SAID        "hutch-was-here\n"

static struct bench_host host;
static int init_program;
static enum netns_kind network;
static struct netns_pool *networks; /* of this process */

struct cycle {
        char name[16];
        struct instance_floor floor;
        struct cgroup group;
        struct pooled_netns net;
        int input, output; /* our ends */
        pid_t pid;
};

/* --- one cycle --- */

/* Each process has its own pool, with its own names and addresses. */
static void networks_open(unsigned worker)
{
        char id[32], v4[32];
        struct addr_plan_config names = { STR_NULL, STR_NULL, STR_NULL };
        struct netns_pool_config c = { .none_max = COUNT_MAX + 64, .close_batch = 32 };
        struct err e = { 0 };

        (void) snprintf(id, sizeof(id), "floor-%u", worker);
        (void) snprintf(v4, sizeof(v4), "10.%u.0.0/16", 211 + worker);
        names.installation = str_from(id);
        names.v4 = str_from(v4);
        c.depth[network] = 1;
        must(addr_plan_init(&c.addrs, &names), "names of networks");
        must(netns_pool_open(&c, &networks, &e), "pool of networks");
        if (netns_pool_start(networks, &e) < 0)
                must(-EIO, e.message);
}

static void make_dirs(const struct cycle *x, uint32_t uid)
{
        static const char *const parts[] = { "", "/upper", "/work" };
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                (void) snprintf(path, sizeof(path), DATA_SANDBOXES "/%s%s", x->name, parts[i]);
                must(sys(mkdirat(host.context.data, path, 0755)), "dir");
                if (i == 1)
                        must(sys(fchownat(host.context.data, path, uid, uid, 0)), "upper");
        }
}

static void make_resources(struct cycle *x, unsigned number)
{
        const struct userns_range range = { FIRST + number * PLAN_UIDS, PLAN_UIDS };
        const struct cgroup_limits limits = { .memory = 512 * MiB,
                                              .cpu_millis = 1000,
                                              .pids = 4096 };

        (void) snprintf(x->name, sizeof(x->name), "floor-%u", number);
        must(userns_make(&range, &x->floor.userns), "user namespace");
        if (netns_pool_take(networks, network, &x->net) == -EAGAIN) {
                must(netns_pool_make(networks, network), "network namespace");
                must(netns_pool_take(networks, network, &x->net), "network namespace");
        }
        must(cgroup_make(&host.tree, x->name, &x->group), "cgroup");
        /* v2 has the limits of a sandbox one level below the directory that the floor uses. */
        if (!host.tree.unified_controls)
                must(cgroup_set_limits(&host.tree, &x->group, &limits), "limits");
        make_dirs(x, range.first);
}

static void cycle_begin(struct cycle *x, unsigned number)
{
        int in[2], out[2];
        char byte;

        make_resources(x, number);
        must(sys(pipe2(in, O_CLOEXEC)), "pipe");
        must(sys(pipe2(out, O_CLOEXEC)), "pipe");
        x->floor.data = host.path;
        x->floor.name = x->name;
        x->floor.netns = x->net.fd;
        x->floor.program = init_program;
        x->floor.input = in[0];
        x->floor.output = out[1];
        x->floor.tree = &host.tree;
        x->floor.group = &x->group;
        x->pid = instance_floor_start(&x->floor);
        must(x->pid, "clone");
        (void) close(in[0]);
        (void) close(out[1]);
        x->input = in[1];
        x->output = out[0];
        must(read(x->output, &byte, 1) == 1 ? 0 : -EPIPE, "the first process");
}

static void cycle_command(const struct cycle *x)
{
        char text[sizeof(SAID)];
        size_t n = 0;

        must(write(x->input, "", 1) == 1 ? 0 : -errno, "ask for a command");
        while (n < strlen(SAID)) {
                ssize_t k = read(x->output, text + n, sizeof(text) - n);

                must(k > 0 ? 0 : -EPIPE, "the command");
                n += (size_t) k;
        }
}

static void cycle_end(struct cycle *x)
{
        char path[64];

        (void) kill(x->pid, SIGKILL);
        must(sys(waitpid(x->pid, NULL, 0)), "wait");
        (void) close(x->input);
        (void) close(x->output);
        (void) close(x->floor.userns);
        netns_pool_return(networks, &x->net);
        cgroup_close(&x->group);
        must(cgroup_remove(&host.tree, x->name), "cgroup");
        (void) snprintf(path, sizeof(path), DATA_SANDBOXES "/%s", x->name);
        bench_host_remove_tree(host.context.data, path);
}

/* --- many --- */

/* Returned namespaces are closed in batches, as the pool does when it is idle. */
static uint64_t work(unsigned worker, uint64_t seconds)
{
        uint64_t n = 0, end;

        networks_open(worker);
        end = latency_now() + seconds * 1000000000U;
        while (latency_now() < end) {
                struct cycle x = { 0 };

                cycle_begin(&x, worker);
                cycle_command(&x);
                cycle_end(&x);
                n++;
                if (netns_pool_n_returned(networks) >= 32)
                        must(netns_pool_step(networks), "close networks");
        }
        must(netns_pool_flush(networks), "close networks");
        return n;
}

static void rate(unsigned workers, uint64_t seconds)
{
        uint64_t *counts =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        uint64_t begin = latency_now(), n = 0;
        int status, failed = 0;

        must(counts == MAP_FAILED ? -ENOMEM : 0, "memory");
        for (unsigned i = 0; i < workers; i++) {
                pid_t pid = fork();

                must(sys(pid), "fork");
                if (pid == 0) {
                        counts[i] = work(i, seconds);
                        _exit(0);
                }
        }
        while (wait(&status) > 0)
                failed |= status;
        must(failed ? -EIO : 0, "a worker");
        for (unsigned i = 0; i < workers; i++)
                n += counts[i];
        (void) printf("{\"n\": %llu, \"seconds\": %.6f, \"rate\": %.3f}\n", (unsigned long long) n,
                      (double) (latency_now() - begin) / 1e9, (double) n / (double) seconds);
}

static void hold(unsigned count)
{
        static struct cycle all[COUNT_MAX];
        char byte;

        networks_open(0);
        for (unsigned i = 0; i < count; i++)
                cycle_begin(&all[i], i);
        (void) printf("{\"n\": %u}\n", count);
        (void) fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        for (unsigned i = 0; i < count; i++)
                cycle_end(&all[i]);
        must(netns_pool_flush(networks), "close networks");
}

static int usage(void)
{
        (void) fputs("usage: floor_bench rate TINY-INIT NETWORK WORKERS SECONDS\n"
                     "       floor_bench hold TINY-INIT NETWORK COUNT\n",
                     stderr);
        return 2;
}

int main(int argc, char **argv)
{
        uint64_t n, seconds = 0;
        bool is_rate = argc == 6 && strcmp(argv[1], "rate") == 0;

        if (!is_rate && (argc != 5 || strcmp(argv[1], "hold") != 0))
                return usage();
        if (parse_u64_max(str_from(argv[4]), is_rate ? WORKERS_MAX : COUNT_MAX, &n) < 0
            || (is_rate && parse_u64_max(str_from(argv[5]), 3600, &seconds) < 0))
                return usage();
        network = strcmp(argv[3], "private") == 0 ? NETNS_KIND_PRIVATE : NETNS_KIND_NONE;
        init_program = bench_host_seal(argv[2]);
        must(sys(unshare(CLONE_NEWNET)), "network namespace (needs root)");
        bench_host_open(&host, "hutch-bench-floor");
        if (is_rate)
                rate((unsigned) n, seconds);
        else
                hold((unsigned) n);
        bench_host_close(&host);
        return 0;
}
