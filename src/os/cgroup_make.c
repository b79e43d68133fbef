/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_make.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define TREE        "/sys/fs/cgroup"
#define CPU_PERIOD  100000U    /* microseconds; the kernel's default */
#define CPU_MIN     1000U      /* the least quota it takes */
#define LIST_MAX    (64 * KiB) /* bytes of a list of processes that are read at once */
#define KILL_ROUNDS 64

/* Where version 1 mounts a controller. Processors come alone or with their accounting. */
static const char *const v1_folders[CGROUP_PART_MAX_][2] = {
        [CGROUP_MEMORY] = { "memory" },
        [CGROUP_CPU] = { "cpu", "cpu,cpuacct" },
        [CGROUP_PIDS] = { "pids" },
        [CGROUP_FREEZER] = { "freezer" },
};

/* --- files --- */

static int put(int dir, const char *file, const char *text)
{
        scoped(fd_closep) int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return -errno;
        return 0;
}

static int put_u64(int dir, const char *file, uint64_t v)
{
        char text[32];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) v);
        return put(dir, file, text);
}

/* For a limit; no limit is written as `none`. */
static int put_limit(int dir, const char *file, uint64_t v, const char *none)
{
        return v == CGROUP_NO_LIMIT ? put(dir, file, none) : put_u64(dir, file, v);
}

static ssize_t get(int dir, const char *file, char *ret, size_t size)
{
        scoped(fd_closep) int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, ret, size - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        return n;
}

static int open_folder(int at, const char *name)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static bool is_name(const char *name)
{
        return *name && *name != '.' && !strchr(name, '/') && strlen(name) <= CGROUP_NAME_MAX;
}

/* --- the tree --- */

static int open_mount(const char *root, const char *name)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s" TREE "%s%s", root, *name ? "/" : "", name);

        return n < 0 || (size_t) n >= sizeof(path) ? -ENAMETOOLONG : open_folder(AT_FDCWD, path);
}

/* The top of each hierarchy that there is. */
static void open_mounts(struct cgroup_tree *t, const char *root)
{
        int fd = open_mount(root, "");

        *t = CGROUP_TREE_NULL;
        if (fd >= 0 && faccessat(fd, "cgroup.controllers", F_OK, 0) == 0) {
                t->ours[CGROUP_UNIFIED] = fd;
                t->unified_controls = true;
                return;
        }
        (void) fd_close(fd);
        t->ours[CGROUP_UNIFIED] = open_mount(root, "unified");
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                for (size_t j = 0; j < 2 && v1_folders[i][j] && t->ours[i] < 0; j++) {
                        t->folders[i] = v1_folders[i][j];
                        t->ours[i] = open_mount(root, v1_folders[i][j]);
                }
        /* What the unified tree does, too, and better, is not done twice. */
        if (t->ours[CGROUP_UNIFIED] >= 0)
                t->ours[CGROUP_FREEZER] = fd_close(t->ours[CGROUP_FREEZER]);
}

static bool is_complete(const struct cgroup_tree *t)
{
        if (t->unified_controls)
                return true;
        return t->ours[CGROUP_MEMORY] >= 0 && t->ours[CGROUP_CPU] >= 0 && t->ours[CGROUP_PIDS] >= 0
               && (t->ours[CGROUP_UNIFIED] >= 0 || t->ours[CGROUP_FREEZER] >= 0);
}

/* A controller that is not there is noticed when a limit is set; io is a bonus. */
static int hand_on_controllers(int dir, bool *ret_io)
{
        int r = put(dir, "cgroup.subtree_control", "+memory +cpu +pids");

        if (r == 0)
                *ret_io = put(dir, "cgroup.subtree_control", "+io") == 0;
        return r;
}

static int enter_ours(int *top, const char *ours)
{
        int fd;

        if (mkdirat(*top, ours, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = open_folder(*top, ours);
        if (fd < 0)
                return fd;
        (void) fd_close(*top);
        *top = fd;
        return 0;
}

int cgroup_tree_open(struct cgroup_tree *t, const char *root, const char *ours, uint64_t pids)
{
        int r = 0;

        if (!is_name(ours))
                return -EINVAL;
        open_mounts(t, root);
        (void) snprintf(t->name, sizeof(t->name), "%s", ours);
        if (!is_complete(t))
                r = -ENODATA;
        if (r == 0 && t->unified_controls)
                r = hand_on_controllers(t->ours[CGROUP_UNIFIED], &t->io);
        for (int i = 0; i < CGROUP_PART_MAX_ && r == 0; i++)
                if (t->ours[i] >= 0)
                        r = enter_ours(&t->ours[i], ours);
        if (r == 0 && t->unified_controls)
                r = hand_on_controllers(t->ours[CGROUP_UNIFIED], &t->io);
        if (r == 0 && pids != CGROUP_KEEP)
                r = put_limit(t->ours[t->unified_controls ? CGROUP_UNIFIED : CGROUP_PIDS],
                              "pids.max", pids, "max");
        if (r < 0)
                cgroup_tree_close(t);
        return r;
}

void cgroup_tree_close(struct cgroup_tree *t)
{
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                t->ours[i] = fd_close(t->ours[i]);
}

int cgroup_tree_remove(struct cgroup_tree *t, const char *root, const char *ours)
{
        struct cgroup_tree tops;
        int r = 0;

        open_mounts(&tops, root);
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                if (tops.ours[i] >= 0 && unlinkat(tops.ours[i], ours, AT_REMOVEDIR) < 0
                    && errno != ENOENT && r == 0)
                        r = -errno;
        cgroup_tree_close(&tops);
        cgroup_tree_close(t);
        return r;
}

/* --- limits --- */

static int limit_cpu(int dir, bool unified, uint64_t millis)
{
        uint64_t quota = MAX_OF(millis * (CPU_PERIOD / 1000), (uint64_t) CPU_MIN);
        char text[64];

        if (millis == CGROUP_NO_LIMIT)
                return unified ? put(dir, "cpu.max", "max") : put(dir, "cpu.cfs_quota_us", "-1");
        if (millis > UINT32_MAX)
                return -ERANGE;
        if (!unified)
                return put_u64(dir, "cpu.cfs_quota_us", quota);
        (void) snprintf(text, sizeof(text), "%llu %u", (unsigned long long) quota, CPU_PERIOD);
        return put(dir, "cpu.max", text);
}

/* A kernel without accounting of swap has no such file, and needs none where there is no swap. */
static int optional(int r)
{
        return r == -ENOENT ? 0 : r;
}

static int limit_memory_v2(int dir, uint64_t bytes)
{
        int r = put_limit(dir, "memory.max", bytes, "max");

        if (r == 0)
                r = optional(put(dir, "memory.swap.max", bytes == CGROUP_NO_LIMIT ? "max" : "0"));
        /* If one process must die, the sandbox is no longer what its user thinks, but the agent
         * still can tell; so not all of them. */
        return r == 0 ? optional(put(dir, "memory.oom.group", "0")) : r;
}

/* Memory and swap together may not be less than memory alone, at any time: so the joint limit is
 * taken away before the other is raised or lowered. */
static int limit_memory_v1(int dir, uint64_t bytes)
{
        int r = optional(put(dir, "memory.memsw.limit_in_bytes", "-1"));

        if (r == 0)
                r = put_limit(dir, "memory.limit_in_bytes", bytes, "-1");
        return r == 0 ? optional(put_limit(dir, "memory.memsw.limit_in_bytes", bytes, "-1")) : r;
}

static void add_rate(struct buf *b, const char *of, uint64_t v)
{
        if (v == CGROUP_NO_LIMIT)
                buf_addf(b, " r%s=max w%s=max", of, of);
        else if (v != CGROUP_KEEP)
                buf_addf(b, " r%s=%llu w%s=%llu", of, (unsigned long long) v, of,
                         (unsigned long long) v);
}

/* The keys that are not written stay as they are. */
static int limit_io(const struct cgroup_tree *t, int dir, const struct cgroup_limits *limits)
{
        scoped(buf_done) struct buf line;

        buf_init(&line, 256);
        if (limits->io_bytes == CGROUP_KEEP && limits->io_operations == CGROUP_KEEP)
                return 0;
        if (!t->unified_controls || !t->io)
                return -ENOTSUP;
        if (major(limits->disk) == 0)
                return -ENODEV;
        buf_addf(&line, "%u:%u", major(limits->disk), minor(limits->disk));
        add_rate(&line, "bps", limits->io_bytes);
        add_rate(&line, "iops", limits->io_operations);
        buf_add_char(&line, '\0');
        return buf_failed(&line) ? -ENOMEM : put(dir, "io.max", buf_str(&line).p);
}

/* What is kept is not written: the kernel does not see that nothing changes, and takes its time. */
int cgroup_set_limits(const struct cgroup_tree *t, const struct cgroup *g,
                      const struct cgroup_limits *limits)
{
        const bool v2 = t->unified_controls;
        const int all = g->parts[CGROUP_UNIFIED];
        int r = 0;

        if (limits->memory != CGROUP_KEEP)
                r = v2 ? limit_memory_v2(all, limits->memory)
                       : limit_memory_v1(g->parts[CGROUP_MEMORY], limits->memory);
        if (r == 0 && limits->cpu_millis != CGROUP_KEEP)
                r = limit_cpu(v2 ? all : g->parts[CGROUP_CPU], v2, limits->cpu_millis);
        if (r == 0 && limits->pids != CGROUP_KEEP)
                r = put_limit(v2 ? all : g->parts[CGROUP_PIDS], "pids.max", limits->pids, "max");
        return r == 0 ? limit_io(t, all, limits) : r;
}

/* --- a group --- */

void cgroup_close(struct cgroup *g)
{
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                g->parts[i] = fd_close(g->parts[i]);
}

int cgroup_open_v1(const struct cgroup_tree *t, enum cgroup_part part, const char *name)
{
        char path[PATH_MAX];
        int n, fd;

        if (t->ours[part] < 0 || !t->folders[part])
                return -ENOENT;
        if (!is_name(name))
                return -EINVAL;
        n = snprintf(path, sizeof(path), TREE "/%s/%s/%s", t->folders[part], t->name, name);
        if (n < 0 || (size_t) n >= sizeof(path))
                return -ENAMETOOLONG;
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int cgroup_open(const struct cgroup_tree *t, const char *name, struct cgroup *ret)
{
        struct cgroup g = CGROUP_NULL;

        if (!is_name(name))
                return -EINVAL;
        for (int i = 0; i < CGROUP_PART_MAX_; i++) {
                if (t->ours[i] < 0)
                        continue;
                g.parts[i] = open_folder(t->ours[i], name);
                if (g.parts[i] < 0) {
                        int r = g.parts[i];

                        cgroup_close(&g);
                        return r;
                }
        }
        *ret = g;
        return 0;
}

/* Of the first `n` parts, which are empty. */
static void remove_folders(const struct cgroup_tree *t, const char *name, int n)
{
        for (int i = 0; i < n; i++)
                if (t->ours[i] >= 0)
                        (void) unlinkat(t->ours[i], name, AT_REMOVEDIR);
}

/* Where it stops, what is there belongs to somebody else. */
static int make_folders(const struct cgroup_tree *t, const char *name)
{
        for (int i = 0; i < CGROUP_PART_MAX_; i++) {
                int r;

                if (t->ours[i] < 0 || mkdirat(t->ours[i], name, 0755) == 0)
                        continue;
                r = -errno;
                remove_folders(t, name, i);
                return r;
        }
        return 0;
}

int cgroup_make(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *limits,
                struct cgroup *ret)
{
        struct cgroup g = CGROUP_NULL;
        int r = is_name(name) ? make_folders(t, name) : -EINVAL;

        if (r < 0)
                return r;
        r = cgroup_open(t, name, &g);
        if (r == 0)
                r = cgroup_set_limits(t, &g, limits);
        if (r < 0) {
                cgroup_close(&g);
                remove_folders(t, name, CGROUP_PART_MAX_);
                return r;
        }
        *ret = g;
        return 0;
}

int cgroup_remove(const struct cgroup_tree *t, const char *name)
{
        if (!is_name(name))
                return -EINVAL;
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                if (t->ours[i] >= 0 && unlinkat(t->ours[i], name, AT_REMOVEDIR) < 0
                    && errno != ENOENT)
                        return -errno;
        return 0;
}

/* --- processes --- */

int cgroup_join(const struct cgroup_tree *t, const struct cgroup *g)
{
        int r = 0;

        for (int i = 0; i < CGROUP_PART_MAX_ && r == 0; i++)
                if (i != CGROUP_UNIFIED && t->ours[i] >= 0)
                        r = put(g->parts[i], "cgroup.procs", "0");
        return r;
}

int cgroup_freeze(const struct cgroup *g, bool frozen)
{
        if (g->parts[CGROUP_UNIFIED] >= 0)
                return put(g->parts[CGROUP_UNIFIED], "cgroup.freeze", frozen ? "1" : "0");
        return put(g->parts[CGROUP_FREEZER], "freezer.state", frozen ? "FROZEN" : "THAWED");
}

static int event(const struct cgroup *g, const char *line)
{
        char text[512];
        ssize_t n = get(g->parts[CGROUP_UNIFIED], "cgroup.events", text, sizeof(text));

        return n < 0 ? (int) n : strstr(text, line) != NULL;
}

int cgroup_is_frozen(const struct cgroup *g)
{
        char text[32];
        ssize_t n;

        if (g->parts[CGROUP_UNIFIED] >= 0)
                return event(g, "frozen 1");
        n = get(g->parts[CGROUP_FREEZER], "freezer.state", text, sizeof(text));
        return n < 0 ? (int) n : str_starts_with(str_of(text, (size_t) n), STR("FROZEN"));
}

/* Of version 1. Returns 1 if there may be more than fitted into one reading. */
static int kill_listed(int dir)
{
        char text[LIST_MAX];
        struct str rest, line;
        ssize_t n = get(dir, "cgroup.procs", text, sizeof(text));
        uint64_t pid;

        if (n < 0)
                return (int) n;
        rest = str_of(text, (size_t) n);
        while (str_split(&rest, '\n', &line))
                if (parse_u64_max(line, INT32_MAX, &pid) == 0 && pid > 1)
                        (void) kill((pid_t) pid, SIGKILL);
        return n == (ssize_t) sizeof(text) - 1;
}

/* Frozen while they are read, so that none is born meanwhile: children of the frozen are frozen. */
static int kill_v1(const struct cgroup *g)
{
        int r, thawed;

        for (int i = 0; i < KILL_ROUNDS; i++) {
                r = cgroup_freeze(g, true);
                if (r == 0)
                        r = kill_listed(g->parts[CGROUP_FREEZER]);
                thawed = cgroup_freeze(g, false);
                if (r <= 0)
                        return r < 0 ? r : thawed;
        }
        return -EBUSY;
}

int cgroup_kill(const struct cgroup *g)
{
        int r;

        if (g->parts[CGROUP_UNIFIED] < 0)
                return kill_v1(g);
        r = put(g->parts[CGROUP_UNIFIED], "cgroup.kill", "1");
        return r < 0 ? r : cgroup_freeze(g, false);
}

int cgroup_is_populated(const struct cgroup *g)
{
        char text[32];
        ssize_t n;

        if (g->parts[CGROUP_UNIFIED] >= 0)
                return event(g, "populated 1");
        n = get(g->parts[CGROUP_FREEZER], "cgroup.procs", text, sizeof(text));
        return n < 0 ? (int) n : n > 0;
}

int cgroup_pidfd(const struct cgroup *g)
{
        const bool v2 = g->parts[CGROUP_UNIFIED] >= 0;
        struct str rest, line;
        char text[32];
        uint64_t pid;
        ssize_t n = get(g->parts[v2 ? CGROUP_UNIFIED : CGROUP_FREEZER], "cgroup.procs", text,
                        sizeof(text));
        int fd;

        if (n < 0)
                return (int) n;
        rest = str_of(text, (size_t) n);
        if (!str_split(&rest, '\n', &line) || parse_u64_max(line, INT32_MAX, &pid) < 0 || pid == 0)
                return -ESRCH;
        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        return fd < 0 ? -errno : fd;
}
