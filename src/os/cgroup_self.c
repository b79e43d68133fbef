/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_self.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"

#define TREE      "/sys/fs/cgroup"
#define SELF_MAX  (8 * KiB) /* of /proc/self/cgroup: a dozen lines */
#define DEPTH_MAX 64        /* levels that are searched */

/* A cgroup: the mount point of its hierarchy and the path below it, in one string. */
struct group {
        char path[PATH_MAX];
        size_t base; /* length of the mount point */
        bool unified;
};

typedef int value_fn(const struct group *g, uint64_t *ret);

/* --- where we are --- */

static bool has_name(struct str list, struct str controller)
{
        struct str name;

        while (str_split(&list, ',', &name))
                if (str_eq(name, controller))
                        return true;
        return false;
}

/* The line "ID:controllers:path" of a controller; that of v2 has no controllers. */
static bool find_line(struct str text, struct str controller, struct str *ret_names,
                      struct str *ret_path)
{
        struct str line, id, list;

        while (str_split(&text, '\n', &line)) {
                if (!str_split(&line, ':', &id) || !str_split(&line, ':', &list) || !line.p)
                        continue;
                if (controller.n > 0 ? !has_name(list, controller) : list.n > 0)
                        continue;
                *ret_names = list;
                *ret_path = line;
                return true;
        }
        return false;
}

/* False if the hierarchy is not mounted there. */
static bool group_set(struct group *g, const char *root, struct str mount, struct str path)
{
        int n = snprintf(g->path, sizeof(g->path), "%s" TREE "%s%.*s", root, mount.n ? "/" : "",
                         STR_ARG(mount));

        if (n < 0 || (size_t) n >= sizeof(g->path) || access(g->path, X_OK) < 0)
                return false;
        g->base = (size_t) n;
        /* A cgroup outside of our namespace is shown as "/../x", which is not visible to us. */
        if (path.n <= 1 || path.n >= sizeof(g->path) - g->base || path.p[0] != '/'
            || memmem(path.p, path.n, "/..", 3))
                return true;
        memcpy(g->path + g->base, path.p, path.n);
        g->path[g->base + path.n] = '\0';
        if (access(g->path, X_OK) < 0)
                g->path[g->base] = '\0';
        return true;
}

static int group_find(struct group *g, const char *root, struct str controller)
{
        char self[SELF_MAX], probe[PATH_MAX];
        struct str list, path;
        ssize_t n = snprintf(g->path, sizeof(g->path), "%s/proc/self/cgroup", root);

        if (n < 0 || n >= PATH_MAX)
                return -ENODATA;
        n = virtual_file_read(g->path, self, sizeof(self));
        if (n < 0)
                return -ENODATA;
        g->unified = false;
        if (find_line(str_of(self, (size_t) n), controller, &list, &path)
            && (group_set(g, root, list, path) || group_set(g, root, controller, path)))
                return 0;
        if (!find_line(str_of(self, (size_t) n), STR(""), &list, &path))
                return -ENODATA;
        g->unified = true;
        /* On hybrid hosts the top is an ordinary directory, with v2 beside the others. */
        n = snprintf(probe, sizeof(probe), "%s" TREE "/cgroup.procs", root);
        if (n > 0 && n < PATH_MAX && access(probe, F_OK) == 0)
                return group_set(g, root, STR(""), path) ? 0 : -ENODATA;
        return group_set(g, root, STR("unified"), path) ? 0 : -ENODATA;
}

/* --- levels --- */

/* Cuts the last name off the path; false at the mount point. */
static bool go_up(struct group *g)
{
        char *slash = strrchr(g->path + g->base, '/');

        if (!slash)
                return false;
        *slash = '\0';
        return true;
}

/* Leaves g at the level with the smallest limit, or where it was if there is none. */
static uint64_t tightest(struct group *g, value_fn *limit)
{
        struct group at = *g;
        uint64_t least = CGROUP_UNLIMITED, v;

        for (int i = 0; i < DEPTH_MAX; i++) {
                if (limit(&at, &v) == 0 && v < least) {
                        least = v;
                        g->path[strlen(at.path)] = '\0';
                }
                if (!go_up(&at))
                        break;
        }
        return least;
}

/* The value of the first level, going up, that has one. */
static int nearest(struct group *g, value_fn *used, uint64_t *ret)
{
        for (int i = 0; i < DEPTH_MAX; i++) {
                if (used(g, ret) == 0)
                        return 0;
                if (!go_up(g))
                        break;
        }
        return -ENODATA;
}

/* --- values of one level --- */

static int join_path(const struct group *g, const char *file, char ret[static PATH_MAX])
{
        int n = snprintf(ret, PATH_MAX, "%s/%s", g->path, file);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* "max" and -1 are no numbers, and no limits. */
static int number(const struct group *g, const char *file, uint64_t *ret)
{
        char path[PATH_MAX];
        int r = join_path(g, file, path);

        return r < 0 ? r : virtual_file_number_at(AT_FDCWD, path, ret);
}

static int value(const struct group *g, const char *file, struct str key, uint64_t *ret)
{
        char path[PATH_MAX];
        int r = join_path(g, file, path);

        return r < 0 ? r : virtual_file_value_at(AT_FDCWD, path, key, ret);
}

/* In thousandths of a CPU. v2: "max 100000" or "50000 100000". */
static int cpu_limit(const struct group *g, uint64_t *ret)
{
        char path[PATH_MAX], text[64];
        uint64_t quota = 0, period = 0;
        struct str rest, first;
        ssize_t n;

        if (g->unified) {
                n = join_path(g, "cpu.max", path);
                if (n == 0)
                        n = virtual_file_read(path, text, sizeof(text));
                rest = str_of(text, (size_t) MAX_OF(n, 0));
                if (str_ends_with(rest, STR("\n")))
                        rest.n--;
                if (n < 0 || !str_split(&rest, ' ', &first) || parse_u64(first, &quota) < 0
                    || parse_u64(rest, &period) < 0)
                        return -ENODATA;
        } else if (number(g, "cpu.cfs_quota_us", &quota) < 0
                   || number(g, "cpu.cfs_period_us", &period) < 0) {
                return -ENODATA;
        }
        if (quota == 0 || period == 0 || quota > UINT64_MAX / 1000)
                return -ENODATA;
        *ret = MAX_OF(quota * 1000 / period, (uint64_t) 1);
        return 0;
}

static int cpu_used(const struct group *g, uint64_t *ret)
{
        int r;

        if (g->unified)
                return value(g, "cpu.stat", STR("usage_usec"), ret);
        r = number(g, "cpuacct.usage", ret);
        if (r == 0)
                *ret /= 1000;
        return r;
}

static int memory_limit(const struct group *g, uint64_t *ret)
{
        return number(g, g->unified ? "memory.max" : "memory.limit_in_bytes", ret);
}

static int memory_used(const struct group *g, uint64_t *ret)
{
        uint64_t cached = 0;
        int r = number(g, g->unified ? "memory.current" : "memory.usage_in_bytes", ret);

        if (r == 0
            && value(g, "memory.stat",
                     g->unified ? STR("inactive_file") : STR("total_inactive_file"), &cached)
                       == 0)
                *ret -= MIN_OF(cached, *ret);
        return r;
}

/* --- both resources --- */

int cgroup_self_cpu(const char *root, struct cgroup_self_usage *ret)
{
        struct group cpu, acct;
        struct cgroup_self_usage use;
        int r = group_find(&cpu, root, STR("cpu"));

        if (r < 0)
                return r;
        use.limit = tightest(&cpu, cpu_limit);
        if (cpu.unified) {
                r = nearest(&cpu, cpu_used, &use.used);
        } else {
                /* Accounting may be mounted separately; the cgroup has the same path there. */
                r = group_find(&acct, root, STR("cpuacct"));
                if (r == 0 && strlen(cpu.path) - cpu.base < strlen(acct.path) - acct.base)
                        acct.path[acct.base + strlen(cpu.path) - cpu.base] = '\0';
                if (r == 0)
                        r = nearest(&acct, cpu_used, &use.used);
        }
        if (r == 0)
                *ret = use;
        return r;
}

int cgroup_self_memory(const char *root, struct cgroup_self_usage *ret)
{
        struct group g;
        struct cgroup_self_usage use;
        int r = group_find(&g, root, STR("memory"));

        if (r < 0)
                return r;
        use.limit = tightest(&g, memory_limit);
        r = nearest(&g, memory_used, &use.used);
        if (r == 0)
                *ret = use;
        return r;
}
