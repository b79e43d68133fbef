/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_self.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"

#define TREE      "/sys/fs/cgroup"
#define SELF_MAX  (8 * KiB)  /* of /proc/self/cgroup: a dozen lines */
#define STAT_MAX  (16 * KiB) /* of memory.stat */
#define DEPTH_MAX 64         /* levels that are looked at */

/* A group: the mount point of its hierarchy and the path below it, in one string. */
struct place {
        char path[PATH_MAX];
        size_t base;
        bool unified;
};

typedef int value_fn(const char *dir, uint64_t *ret);

/* --- where we are --- */

static bool names(struct str list, struct str controller)
{
        struct str name;

        while (str_split(&list, ',', &name))
                if (str_eq(name, controller))
                        return true;
        return false;
}

/* The line "ID:controllers:path" of a controller; that of the unified hierarchy has no names. */
static bool find_line(struct str text, struct str controller, struct str *ret_names,
                      struct str *ret_path)
{
        struct str line, id, list;

        while (str_split(&text, '\n', &line)) {
                if (!str_split(&line, ':', &id) || !str_split(&line, ':', &list) || !line.p)
                        continue;
                if (controller.n > 0 ? !names(list, controller) : list.n > 0)
                        continue;
                *ret_names = list;
                *ret_path = line;
                return true;
        }
        return false;
}

/* A group outside of our namespace is written as "/../x": not for us to see. */
static bool leads_out(struct str path)
{
        return !str_starts_with(path, STR("/")) || memmem(path.p, path.n, "/..", 3);
}

/* False if the hierarchy is not mounted there. */
static bool place_set(struct place *p, const char *root, struct str mount, struct str path)
{
        int n = snprintf(p->path, sizeof(p->path), "%s" TREE "%s%.*s", root, mount.n ? "/" : "",
                         STR_ARG(mount));

        if (n < 0 || (size_t) n >= sizeof(p->path) || access(p->path, X_OK) < 0)
                return false;
        p->base = (size_t) n;
        if (path.n <= 1 || leads_out(path) || path.n >= sizeof(p->path) - p->base)
                return true;
        memcpy(p->path + p->base, path.p, path.n);
        p->path[p->base + path.n] = '\0';
        if (access(p->path, X_OK) < 0)
                p->path[p->base] = '\0';
        return true;
}

/* In a hybrid the tree's top is an ordinary folder, and the unified hierarchy stands beside the
 * others; else it is the top itself. */
static bool place_set_unified(struct place *p, const char *root, struct str path)
{
        char probe[PATH_MAX];
        int n = snprintf(probe, sizeof(probe), "%s" TREE "/cgroup.procs", root);
        bool top = n > 0 && n < PATH_MAX && access(probe, F_OK) == 0;

        p->unified = true;
        return place_set(p, root, top ? STR("") : STR("unified"), path);
}

static int place_find(struct place *p, const char *root, struct str controller)
{
        char self[SELF_MAX];
        struct str list, path;
        ssize_t n = snprintf(p->path, sizeof(p->path), "%s/proc/self/cgroup", root);

        if (n < 0 || n >= PATH_MAX)
                return -ENODATA;
        n = virtual_file_read(p->path, self, sizeof(self));
        if (n < 0)
                return -ENODATA;
        p->unified = false;
        if (find_line(str_of(self, (size_t) n), controller, &list, &path)
            && (place_set(p, root, list, path) || place_set(p, root, controller, path)))
                return 0;
        if (find_line(str_of(self, (size_t) n), STR(""), &list, &path)
            && place_set_unified(p, root, path))
                return 0;
        return -ENODATA;
}

/* --- levels --- */

/* Cuts the last name off the path; false at the mount point. */
static bool go_up(struct place *p)
{
        char *slash = strrchr(p->path + p->base, '/');

        if (!slash)
                return false;
        *slash = '\0';
        return true;
}

/* Leaves p at the level with the smallest limit, or where it was if there is none. */
static uint64_t tightest(struct place *p, value_fn *limit)
{
        struct place at = *p;
        uint64_t least = CGROUP_UNLIMITED, v;

        for (int i = 0; i < DEPTH_MAX; i++) {
                if (limit(at.path, &v) == 0 && v < least) {
                        least = v;
                        p->path[strlen(at.path)] = '\0';
                }
                if (!go_up(&at))
                        break;
        }
        return least;
}

/* Of the first level, going up, that tells. */
static int nearest(struct place *p, value_fn *used, uint64_t *ret)
{
        for (int i = 0; i < DEPTH_MAX; i++) {
                if (used(p->path, ret) == 0)
                        return 0;
                if (!go_up(p))
                        break;
        }
        return -ENODATA;
}

static int read_at(const char *dir, const char *name, char *ret, size_t size, struct str *ret_text)
{
        char path[PATH_MAX];
        ssize_t n;

        if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        n = virtual_file_read(path, ret, size);
        if (n < 0)
                return (int) n;
        *ret_text = str_of(ret, (size_t) n);
        return 0;
}

static int number_at(const char *dir, const char *name, uint64_t *ret)
{
        char text[64];
        struct str s;
        int r = read_at(dir, name, text, sizeof(text), &s);

        if (r < 0)
                return r;
        if (str_ends_with(s, STR("\n")))
                s.n--;
        return parse_u64(s, ret);
}

static int stat_at(const char *dir, const char *name, struct str key, uint64_t *ret)
{
        char text[STAT_MAX];
        struct str s;
        int r = read_at(dir, name, text, sizeof(text), &s);

        return r < 0 ? r : virtual_file_value(s, key, ret);
}

/* --- processors --- */

static int share(uint64_t quota, uint64_t period, uint64_t *ret)
{
        if (quota == 0 || period == 0 || quota > UINT64_MAX / 1000)
                return -ENODATA;
        *ret = MAX_OF(quota * 1000 / period, (uint64_t) 1);
        return 0;
}

/* "max 100000" or "50000 100000" */
static int cpu_limit_v2(const char *dir, uint64_t *ret)
{
        char text[64];
        struct str rest, quota;
        uint64_t q, period;
        int r = read_at(dir, "cpu.max", text, sizeof(text), &rest);

        if (r < 0)
                return r;
        if (str_ends_with(rest, STR("\n")))
                rest.n--;
        if (!str_split(&rest, ' ', &quota) || parse_u64(quota, &q) < 0
            || parse_u64(rest, &period) < 0)
                return -ENODATA;
        return share(q, period, ret);
}

static int cpu_limit_v1(const char *dir, uint64_t *ret)
{
        uint64_t quota, period; /* a quota of -1 is no number to us, and none is set */

        if (number_at(dir, "cpu.cfs_quota_us", &quota) < 0
            || number_at(dir, "cpu.cfs_period_us", &period) < 0)
                return -ENODATA;
        return share(quota, period, ret);
}

static int cpu_used_v2(const char *dir, uint64_t *ret)
{
        return stat_at(dir, "cpu.stat", STR("usage_usec"), ret);
}

static int cpu_used_v1(const char *dir, uint64_t *ret)
{
        int r = number_at(dir, "cpuacct.usage", ret);

        if (r == 0)
                *ret /= 1000;
        return r;
}

int cgroup_self_cpu(const char *root, struct cgroup_self_usage *ret)
{
        struct place cpu, acct;
        struct cgroup_self_usage use;
        int r = place_find(&cpu, root, STR("cpu"));

        if (r < 0)
                return r;
        use.limit = tightest(&cpu, cpu.unified ? cpu_limit_v2 : cpu_limit_v1);
        if (cpu.unified) {
                r = nearest(&cpu, cpu_used_v2, &use.used);
        } else {
                /* Accounting may be mounted apart; the group has the same path there. */
                r = place_find(&acct, root, STR("cpuacct"));
                if (r == 0 && strlen(cpu.path) - cpu.base < strlen(acct.path) - acct.base)
                        acct.path[acct.base + strlen(cpu.path) - cpu.base] = '\0';
                if (r == 0)
                        r = nearest(&acct, acct.unified ? cpu_used_v2 : cpu_used_v1, &use.used);
        }
        if (r == 0)
                *ret = use;
        return r;
}

/* --- memory --- */

static int memory_limit_v2(const char *dir, uint64_t *ret)
{
        return number_at(dir, "memory.max", ret); /* "max" is no number */
}

static int memory_limit_v1(const char *dir, uint64_t *ret)
{
        return number_at(dir, "memory.limit_in_bytes", ret);
}

static int memory_used_v2(const char *dir, uint64_t *ret)
{
        uint64_t cached = 0;
        int r = number_at(dir, "memory.current", ret);

        if (r == 0 && stat_at(dir, "memory.stat", STR("inactive_file"), &cached) == 0)
                *ret -= MIN_OF(cached, *ret);
        return r;
}

static int memory_used_v1(const char *dir, uint64_t *ret)
{
        uint64_t cached = 0;
        int r = number_at(dir, "memory.usage_in_bytes", ret);

        if (r == 0 && stat_at(dir, "memory.stat", STR("total_inactive_file"), &cached) == 0)
                *ret -= MIN_OF(cached, *ret);
        return r;
}

int cgroup_self_memory(const char *root, struct cgroup_self_usage *ret)
{
        struct place p;
        struct cgroup_self_usage use;
        int r = place_find(&p, root, STR("memory"));

        if (r < 0)
                return r;
        use.limit = tightest(&p, p.unified ? memory_limit_v2 : memory_limit_v1);
        r = nearest(&p, p.unified ? memory_used_v2 : memory_used_v1, &use.used);
        if (r == 0)
                *ret = use;
        return r;
}
