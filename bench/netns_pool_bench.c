/* SPDX-License-Identifier: Apache-2.0 */

/*
 * netns_pool_bench [N]: the cost of namespaces from the pool, in a network namespace of its own.
 *
 * One JSON object a line, times in microseconds.
 */

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/base.h"
#include "os/link.h"
#include "warden/netns_pool.h"

#define N_DEFAULT 512
#define N_MAX     4096

static double samples[N_MAX];

static double now(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void print(const char *what, unsigned n)
{
        double sum = 0;

        for (unsigned i = 0; i < n; i++)
                sum += samples[i];
        qsort(samples, n, sizeof(samples[0]), ascending);
        printf("{\"what\": \"%s\", \"n\": %u, \"p50\": %.1f, \"p99\": %.1f, \"mean\": %.1f}\n",
               what, n, samples[n / 2], samples[n * 99 / 100], sum / n);
}

static void check(int r, const char *what)
{
        if (r < 0) {
                fprintf(stderr, "%s: %s\n", what, err_text(r));
                exit(1);
        }
}

static int count(void *data, const char *name, int index)
{
        (void) name;
        (void) index;
        ++*(unsigned *) data;
        return 0;
}

static unsigned links(const struct addr_plan *s)
{
        static struct netlink_batch b;
        struct netlink nl = NETLINK_NULL;
        unsigned n = 0;

        check(netlink_open(NETLINK_ROUTE, &nl), "netlink");
        (void) !link_list(&nl, &b, s->prefix, count, &n);
        netlink_close(&nl);
        return n;
}

static int make_until(struct netns_pool *p, enum netns_kind kind, unsigned n)
{
        int r = 0;

        while (r >= 0 && netns_pool_n_ready(p, kind) < n)
                r = netns_pool_step(p);
        return r;
}

static void print_creation(struct netns_pool *p, enum netns_kind kind, unsigned n, const char *what)
{
        const unsigned had = netns_pool_n_ready(p, kind);
        const double start = now();

        check(make_until(p, kind, n), "make");
        samples[0] = (now() - start) / (netns_pool_n_ready(p, kind) - had);
        print(what, 1);
}

static void run_kind(struct netns_pool *p, enum netns_kind kind, unsigned n,
                     const struct addr_plan *s)
{
        static struct pooled_netns items[N_MAX];
        const char *name = kind == NETNS_KIND_NONE ? "none" : "private";
        const unsigned part = n / 10 + 1;
        char what[64];
        double start;

        (void) snprintf(what, sizeof(what), "make %s, each of the first", name);
        print_creation(p, kind, part, what);
        check(make_until(p, kind, n - part), "make");
        (void) snprintf(what, sizeof(what), "make %s, each of the last", name);
        print_creation(p, kind, n, what);
        for (unsigned i = 0; i < n; i++) {
                start = now();
                check(netns_pool_take(p, kind, &items[i]), "take");
                samples[i] = now() - start;
        }
        (void) snprintf(what, sizeof(what), "take %s", name);
        print(what, n);

        /* Closing: the call, and what the kernel does after it. */
        start = now();
        for (unsigned i = 0; i < n; i++)
                netns_pool_return(p, &items[i]);
        check(netns_pool_flush(p), "flush");
        samples[0] = (now() - start) / n;
        (void) snprintf(what, sizeof(what), "close %s, of all, each", name);
        print(what, 1);
        for (unsigned i = 0; i < 16; i++) {
                double before = now();

                check(netns_pool_make(p, kind), "make");
                samples[i] = now() - before;
        }
        (void) snprintf(what, sizeof(what), "make %s while closing", name);
        print(what, 16);
        if (kind == NETNS_KIND_NONE)
                return;
        while (links(s) > 16)
                (void) sched_yield();
        samples[0] = (now() - start) / n;
        print("links gone, each", 1);
}

static void run(enum netns_kind kind, unsigned n)
{
        const struct addr_plan_config names = { STR("bench"), STR_NULL, STR_NULL };
        struct netns_pool_config c = { .none_max = N_MAX, .close_batch = 64 };
        struct netns_pool *p = NULL;
        struct err e = { 0 };
        double start;

        c.depth[kind] = n;
        check(addr_plan_init(&c.addrs, &names), "names");
        check(netns_pool_open(&c, &p, &e), "open");
        start = now();
        if (netns_pool_start(p, &e) < 0) {
                fprintf(stderr, "%s\n", e.message);
                exit(1);
        }
        samples[0] = now() - start;
        print("start", 1);
        run_kind(p, kind, n, &c.addrs);
        netns_pool_close(p);
}

int main(int argc, char **argv)
{
        uint64_t n = N_DEFAULT;

        if (argc > 1 && (parse_u64_max(str_from(argv[1]), N_MAX - 64, &n) < 0 || n < 16))
                return 2;
        check(unshare(CLONE_NEWNET) < 0 ? -errno : 0, "unshare");
        run(NETNS_KIND_NONE, (unsigned) n);
        run(NETNS_KIND_PRIVATE, (unsigned) n);
        return 0;
}
