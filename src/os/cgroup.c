/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"
#include "os/walk.h"

#define TREE        "/sys/fs/cgroup"
#define CPU_PERIOD  100000U    /* microseconds; the kernel's default */
#define CPU_MIN     1000U      /* the smallest quota it accepts */
#define LIST_MAX    (64 * KiB) /* bytes of cgroup.procs that are read at once */
#define KILL_ROUNDS 64
#define AGENTS      "agents"   /* in v1: of all sandboxes */
#define AGENT       "agent"    /* in v2, below that of a sandbox, */
#define COMMANDS    "commands" /* and its commands */

/* For the cgroups of commands, which a sandbox could make without end: each costs the host memory. */
#define COMMANDS_MAX "1024"

/* In v1, where they share one cgroup, agents weigh as much as several sandboxes. */
#define AGENTS_SHARES 8192

/* Where v1 mounts a controller. CPU comes alone or with its accounting. */
static const char *const v1_mounts[CGROUP_PART_MAX_][2] = {
        [CGROUP_MEMORY] = { "memory" },
        [CGROUP_CPU] = { "cpu", "cpu,cpuacct" },
        [CGROUP_PIDS] = { "pids" },
        [CGROUP_FREEZER] = { "freezer" },
};

/* --- files --- */

static int put_u64(int dir, const char *file, uint64_t v)
{
        char text[32];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) v);
        return virtual_file_write_at(dir, file, text);
}

/* For a limit; no limit is written as `none`. */
static int put_limit(int dir, const char *file, uint64_t v, const char *none)
{
        return v == CGROUP_NO_LIMIT ? virtual_file_write_at(dir, file, none)
                                    : put_u64(dir, file, v);
}

/* A file that some kernels do not have. */
static int optional(int r)
{
        return r == -ENOENT ? 0 : r;
}

/* v1 counts the buffers of TCP and UDP sockets apart from memory, and only those of sockets that a process of
 * a cgroup with this limit has made: unlike other limits it must be set in each cgroup that has processes, even if
 * it is only "none". v2 counts them as memory. */
static int limit_sockets_v1(int dir, uint64_t bytes)
{
        const uint64_t part = bytes == CGROUP_NO_LIMIT ? bytes : bytes / CGROUP_V1_SOCKETS;

        return optional(put_limit(dir, "memory.kmem.tcp.limit_in_bytes", part, "-1"));
}

static int open_dir(int at, const char *name)
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

        return n < 0 || (size_t) n >= sizeof(path) ? -ENAMETOOLONG : open_dir(AT_FDCWD, path);
}

/* The top of each hierarchy of this host. */
static void open_mounts(struct cgroup_tree *t, const char *root)
{
        int fd = open_mount(root, "");

        *t = CGROUP_TREE_NULL;
        if (fd >= 0 && faccessat(fd, "cgroup.controllers", F_OK, 0) == 0) {
                t->dirs[CGROUP_UNIFIED] = fd;
                t->unified_controls = true;
                return;
        }
        (void) fd_close(fd);
        t->dirs[CGROUP_UNIFIED] = open_mount(root, "unified");
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                for (size_t j = 0; j < 2 && v1_mounts[i][j] && t->dirs[i] < 0; j++) {
                        t->v1_names[i] = v1_mounts[i][j];
                        t->dirs[i] = open_mount(root, v1_mounts[i][j]);
                }
        /* v2 freezes, too, and better. */
        if (t->dirs[CGROUP_UNIFIED] >= 0)
                t->dirs[CGROUP_FREEZER] = fd_close(t->dirs[CGROUP_FREEZER]);
}

/* A missing controller is noticed when a limit is set; io is optional. */
static int delegate_controllers(int dir, bool *ret_io)
{
        int r = virtual_file_write_at(dir, "cgroup.subtree_control", "+memory +cpu +pids");

        if (r == 0)
                *ret_io = virtual_file_write_at(dir, "cgroup.subtree_control", "+io") == 0;
        return r;
}

/* Agents of v1 have their cgroup there. */
static int make_agents(const struct cgroup_tree *t)
{
        int r = 0;

        for (int i = CGROUP_MEMORY; i <= CGROUP_PIDS && r == 0; i++)
                if (t->dirs[i] >= 0 && mkdirat(t->dirs[i], AGENTS, 0755) < 0 && errno != EEXIST)
                        r = -errno;
        if (r == 0 && t->dirs[CGROUP_CPU] >= 0)
                r = optional(put_u64(t->dirs[CGROUP_CPU], AGENTS "/cpu.shares", AGENTS_SHARES));
        return r;
}

static int enter_parent(int *top, const char *parent)
{
        int fd;

        if (mkdirat(*top, parent, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = open_dir(*top, parent);
        if (fd < 0)
                return fd;
        (void) fd_close(*top);
        *top = fd;
        return 0;
}

int cgroup_tree_open(struct cgroup_tree *t, const char *root, const char *parent, uint64_t pids)
{
        int r = 0;

        if (!is_name(parent))
                return -EINVAL;
        open_mounts(t, root);
        (void) snprintf(t->name, sizeof(t->name), "%s", parent);
        if (!t->unified_controls
            && (t->dirs[CGROUP_MEMORY] < 0 || t->dirs[CGROUP_CPU] < 0 || t->dirs[CGROUP_PIDS] < 0
                || (t->dirs[CGROUP_UNIFIED] < 0 && t->dirs[CGROUP_FREEZER] < 0)))
                r = -ENODATA;
        if (r == 0 && t->unified_controls)
                r = delegate_controllers(t->dirs[CGROUP_UNIFIED], &t->io);
        for (int i = 0; i < CGROUP_PART_MAX_ && r == 0; i++)
                if (t->dirs[i] >= 0)
                        r = enter_parent(&t->dirs[i], parent);
        if (r == 0 && t->unified_controls)
                r = delegate_controllers(t->dirs[CGROUP_UNIFIED], &t->io);
        if (r == 0)
                r = make_agents(t);
        if (r == 0 && pids != CGROUP_KEEP)
                r = put_limit(t->dirs[t->unified_controls ? CGROUP_UNIFIED : CGROUP_PIDS],
                              "pids.max", pids, "max");
        /* The first cgroup that has this limit and the last one that goes make the kernel change its own code, which
         * stops all CPUs: this one keeps it from being those of a sandbox. */
        if (r == 0 && !t->unified_controls)
                r = limit_sockets_v1(t->dirs[CGROUP_MEMORY], CGROUP_NO_LIMIT);
        if (r < 0)
                cgroup_tree_close(t);
        return r;
}

int cgroup_tree_limit_memory(const struct cgroup_tree *t, uint64_t bytes)
{
        if (t->unified_controls)
                return put_limit(t->dirs[CGROUP_UNIFIED], "memory.max", bytes, "max");
        return put_limit(t->dirs[CGROUP_MEMORY], "memory.limit_in_bytes", bytes, "-1");
}

void cgroup_tree_close(struct cgroup_tree *t)
{
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                t->dirs[i] = fd_close(t->dirs[i]);
}

int cgroup_tree_remove(struct cgroup_tree *t, const char *root, const char *parent)
{
        struct cgroup_tree tops;
        int r = 0;

        for (int i = CGROUP_MEMORY; i <= CGROUP_PIDS; i++)
                if (t->dirs[i] >= 0)
                        (void) unlinkat(t->dirs[i], AGENTS, AT_REMOVEDIR);
        open_mounts(&tops, root);
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                if (tops.dirs[i] >= 0 && unlinkat(tops.dirs[i], parent, AT_REMOVEDIR) < 0
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
                return unified ? virtual_file_write_at(dir, "cpu.max", "max")
                               : virtual_file_write_at(dir, "cpu.cfs_quota_us", "-1");
        if (millis > UINT32_MAX)
                return -ERANGE;
        if (!unified)
                return put_u64(dir, "cpu.cfs_quota_us", quota);
        (void) snprintf(text, sizeof(text), "%llu %u", (unsigned long long) quota, CPU_PERIOD);
        return virtual_file_write_at(dir, "cpu.max", text);
}

static int limit_memory(int dir, bool unified, uint64_t bytes)
{
        int r;

        if (unified) {
                r = put_limit(dir, "memory.max", bytes, "max");
                if (r == 0)
                        r = optional(virtual_file_write_at(dir, "memory.swap.max",
                                                           bytes == CGROUP_NO_LIMIT ? "max" : "0"));
                return r;
        }
        /* The limit of memory and swap together may never be below that of memory alone: so it is
         * lifted before the other is raised or lowered. */
        r = optional(virtual_file_write_at(dir, "memory.memsw.limit_in_bytes", "-1"));
        if (r == 0)
                r = put_limit(dir, "memory.limit_in_bytes", bytes, "-1");
        if (r == 0)
                r = optional(put_limit(dir, "memory.memsw.limit_in_bytes", bytes, "-1"));
        return r == 0 ? limit_sockets_v1(dir, bytes) : r;
}

static void add_rate(struct buf *b, const char *of, uint64_t v)
{
        if (v == CGROUP_NO_LIMIT)
                buf_addf(b, " r%s=max w%s=max", of, of);
        else if (v != CGROUP_KEEP)
                buf_addf(b, " r%s=%llu w%s=%llu", of, (unsigned long long) v, of,
                         (unsigned long long) v);
}

/* Keys that are not written keep their value. */
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
        return buf_failed(&line) ? -ENOMEM : virtual_file_write_at(dir, "io.max", buf_str(&line).p);
}

/* Limits that are kept are not written: the kernel would do all its work for the same value. */
int cgroup_set_limits(const struct cgroup_tree *t, const struct cgroup *g,
                      const struct cgroup_limits *limits)
{
        const bool v2 = t->unified_controls;
        const int all = g->parts[CGROUP_COMMANDS];
        int r = 0;

        if (limits->memory != CGROUP_KEEP)
                r = limit_memory(v2 ? all : g->parts[CGROUP_MEMORY], v2, limits->memory);
        if (r == 0 && limits->cpu_millis != CGROUP_KEEP)
                r = limit_cpu(v2 ? all : g->parts[CGROUP_CPU], v2, limits->cpu_millis);
        if (r == 0 && limits->pids != CGROUP_KEEP)
                r = put_limit(v2 ? all : g->parts[CGROUP_PIDS], "pids.max", limits->pids, "max");
        return r == 0 ? limit_io(t, all, limits) : r;
}

/* --- what the agent needs --- */

static int open_file(int dir, const char *name)
{
        int fd = dir < 0 ? -EBADF : openat(dir, name, O_WRONLY | O_CLOEXEC);

        return fd == -1 ? -errno : fd;
}

int cgroup_agent_fds(const struct cgroup_tree *t, const struct cgroup *g,
                     int ret[static CGROUP_AGENT_FDS])
{
        struct cgroup_oom oom = CGROUP_OOM_NULL;
        int r = 0;

        for (int i = 0; i < CGROUP_AGENT_FDS; i++)
                ret[i] = -EBADF;
        if (g->parts[CGROUP_COMMANDS] >= 0)
                r = ret[CGROUP_AGENT_DIR] = fcntl(g->parts[CGROUP_COMMANDS], F_DUPFD_CLOEXEC, 3);
        if (r < 0)
                return -errno;
        if (t->unified_controls)
                return 0;
        for (int i = 0; i < 3 && r >= 0; i++)
                r = ret[CGROUP_AGENT_TASKS + i] = open_file(g->parts[CGROUP_MEMORY + i], "tasks");
        if (r >= 0)
                r = cgroup_oom_open(t, g, &oom);
        ret[CGROUP_AGENT_OOM] = oom.fd;
        return r < 0 ? r
                     : virtual_file_write_at(g->parts[CGROUP_MEMORY], "memory.oom_control", "1");
}

/* --- a cgroup --- */

void cgroup_close(struct cgroup *g)
{
        for (int i = 0; i < CGROUP_PART_MAX_; i++)
                g->parts[i] = fd_close(g->parts[i]);
}

int cgroup_open_v1(const struct cgroup_tree *t, enum cgroup_part part, const char *name)
{
        char path[PATH_MAX];
        int n, fd;

        if (t->dirs[part] < 0 || !t->v1_names[part])
                return -ENOENT;
        if (!is_name(name))
                return -EINVAL;
        n = snprintf(path, sizeof(path), TREE "/%s/%s/%s", t->v1_names[part], t->name, name);
        if (n < 0 || (size_t) n >= sizeof(path))
                return -ENAMETOOLONG;
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Where a hierarchy has the processes of a sandbox, or of its agent. */
static int open_part(const struct cgroup_tree *t, enum cgroup_part part, const char *name,
                     bool agent)
{
        char path[CGROUP_NAME_MAX + sizeof("/" AGENT)];

        if (part == CGROUP_UNIFIED || part == CGROUP_FREEZER || !agent) {
                (void) snprintf(path, sizeof(path), "%s%s", name,
                                agent && part == CGROUP_UNIFIED ? "/" AGENT : "");
                return open_dir(t->dirs[part], path);
        }
        return open_dir(t->dirs[part], AGENTS);
}

static int open_parts(const struct cgroup_tree *t, const char *name, bool agent, struct cgroup *ret)
{
        struct cgroup g = CGROUP_NULL;
        int r = is_name(name) ? 0 : -EINVAL;

        for (int i = 0; i < CGROUP_PART_MAX_ && r >= 0; i++)
                if (t->dirs[i] >= 0)
                        r = g.parts[i] = open_part(t, i, name, agent);
        if (r >= 0 && !agent && g.parts[CGROUP_UNIFIED] >= 0)
                r = g.parts[CGROUP_COMMANDS] = open_dir(g.parts[CGROUP_UNIFIED], COMMANDS);
        if (r < 0) {
                cgroup_close(&g);
                return r;
        }
        *ret = g;
        return 0;
}

int cgroup_open(const struct cgroup_tree *t, const char *name, struct cgroup *ret)
{
        return open_parts(t, name, false, ret);
}

int cgroup_open_agent(const struct cgroup_tree *t, const char *name, struct cgroup *ret)
{
        return open_parts(t, name, true, ret);
}

/* Other names in the directory are files. */
static int remove_command(void *commands, const char *name)
{
        return unlinkat(*(const int *) commands, name, AT_REMOVEDIR) < 0 && errno == EBUSY ? -EBUSY
                                                                                           : 0;
}

/* With the cgroups of commands, which can't have any of their own. */
static int remove_commands(int dir)
{
        scoped(fd_closep) int commands = open_dir(dir, COMMANDS);
        int r = commands < 0 ? commands : walk_names(commands, ".", remove_command, &commands);

        if (r == 0 && unlinkat(dir, COMMANDS, AT_REMOVEDIR) < 0)
                r = -errno;
        return optional(r);
}

/* The directory of the sandbox itself last: as long as it exists, what is in it can be found again. */
static int remove_part(const struct cgroup_tree *t, enum cgroup_part part, const char *name)
{
        scoped(fd_closep) int dir = -EBADF;
        int r = 0;

        if (t->dirs[part] < 0)
                return 0;
        if (part == CGROUP_UNIFIED) {
                dir = open_dir(t->dirs[part], name);
                r = dir < 0 ? dir : remove_commands(dir);
                if (r == 0 && unlinkat(dir, AGENT, AT_REMOVEDIR) < 0)
                        r = optional(-errno);
        }
        if (r == 0 && unlinkat(t->dirs[part], name, AT_REMOVEDIR) < 0)
                r = -errno;
        return optional(r);
}

int cgroup_make(const struct cgroup_tree *t, const char *name, struct cgroup *ret)
{
        struct cgroup g = CGROUP_NULL;
        int made = 0, r = is_name(name) ? 0 : -EINVAL;

        for (; made < CGROUP_PART_MAX_ && r == 0; made += r == 0)
                if (t->dirs[made] >= 0 && mkdirat(t->dirs[made], name, 0755) < 0)
                        r = -errno;
        if (r == 0 && t->dirs[CGROUP_UNIFIED] >= 0) {
                scoped(fd_closep) int dir = open_dir(t->dirs[CGROUP_UNIFIED], name);

                if (dir < 0 || mkdirat(dir, AGENT, 0755) < 0 || mkdirat(dir, COMMANDS, 0755) < 0)
                        r = -errno;
        }
        if (r == 0)
                r = cgroup_open(t, name, &g);
        if (r < 0) {
                /* Not what exists already in the hierarchy that failed: that is not ours. */
                for (int i = 0; i < made; i++)
                        (void) !remove_part(t, i, name);
                return r;
        }
        *ret = g;
        return 0;
}

/* A process of NAME/agent that starts one in NAME/commands/N must be allowed to write both to cgroup.procs of the
 * latter, which it has made, and of their common ancestor. */
int cgroup_delegate(const struct cgroup_tree *t, const struct cgroup *g, uid_t owner)
{
        const int top = g->parts[CGROUP_UNIFIED], commands = g->parts[CGROUP_COMMANDS];
        bool io;
        int r = 0;

        if (commands < 0)
                return 0;
        if (t->unified_controls) {
                r = delegate_controllers(top, &io);
                if (r == 0)
                        r = virtual_file_write_at(commands, "cgroup.subtree_control", "+memory");
        }
        if (r == 0)
                r = virtual_file_write_at(commands, "cgroup.max.depth", "1");
        if (r == 0)
                r = virtual_file_write_at(commands, "cgroup.max.descendants", COMMANDS_MAX);
        if (r == 0
            && (fchownat(top, "cgroup.procs", owner, owner, AT_SYMLINK_NOFOLLOW) < 0
                || fchown(commands, owner, owner) < 0))
                r = -errno;
        return r;
}

int cgroup_remove(const struct cgroup_tree *t, const char *name)
{
        int r = is_name(name) ? 0 : -EINVAL;

        for (int i = 0; i < CGROUP_PART_MAX_ && r == 0; i++)
                r = remove_part(t, i, name);
        return r;
}

/* --- processes --- */

/* Through `tasks`, not `cgroup.procs`: for one thread that moves itself the kernel does not take the lock that
 * stops all forks of the host, for milliseconds at times. */
int cgroup_join(const struct cgroup *g)
{
        int r = 0;

        for (int i = CGROUP_MEMORY; i < CGROUP_PART_MAX_ && r == 0; i++)
                if (g->parts[i] >= 0)
                        r = virtual_file_write_at(g->parts[i], "tasks", "0");
        return r;
}

int cgroup_freeze(const struct cgroup *g, bool frozen)
{
        if (g->parts[CGROUP_UNIFIED] >= 0)
                return virtual_file_write_at(g->parts[CGROUP_UNIFIED], "cgroup.freeze",
                                             frozen ? "1" : "0");
        return virtual_file_write_at(g->parts[CGROUP_FREEZER], "freezer.state",
                                     frozen ? "FROZEN" : "THAWED");
}

static int event(const struct cgroup *g, const char *line)
{
        char text[512];
        ssize_t n =
                virtual_file_read_at(g->parts[CGROUP_UNIFIED], "cgroup.events", text, sizeof(text));

        return n < 0 ? (int) n : strstr(text, line) != NULL;
}

int cgroup_is_frozen(const struct cgroup *g)
{
        char text[32];
        ssize_t n;

        if (g->parts[CGROUP_UNIFIED] >= 0)
                return event(g, "frozen 1");
        n = virtual_file_read_at(g->parts[CGROUP_FREEZER], "freezer.state", text, sizeof(text));
        return n < 0 ? (int) n : str_starts_with(str_of(text, (size_t) n), STR("FROZEN"));
}

/* Frozen while they are listed, so that none forks meanwhile. A list that fills the buffer may have had more. */
static int kill_v1(const struct cgroup *g)
{
        char text[LIST_MAX];
        struct str rest, line;
        uint64_t pid;
        int thawed;

        for (int i = 0; i < KILL_ROUNDS; i++) {
                ssize_t n = cgroup_freeze(g, true);

                if (n == 0)
                        n = virtual_file_read_at(g->parts[CGROUP_FREEZER], "cgroup.procs", text,
                                                 sizeof(text));
                rest = str_of(text, (size_t) MAX_OF(n, 0));
                while (str_split(&rest, '\n', &line))
                        if (parse_u64_max(line, INT32_MAX, &pid) == 0 && pid > 1)
                                (void) kill((pid_t) pid, SIGKILL);
                thawed = cgroup_freeze(g, false);
                if (n < (ssize_t) sizeof(text) - 1)
                        return n < 0 ? (int) n : thawed;
        }
        return -EBUSY;
}

int cgroup_kill(const struct cgroup *g)
{
        int r;

        if (g->parts[CGROUP_UNIFIED] < 0)
                return kill_v1(g);
        r = virtual_file_write_at(g->parts[CGROUP_UNIFIED], "cgroup.kill", "1");
        return r < 0 ? r : cgroup_freeze(g, false);
}

int cgroup_is_populated(const struct cgroup *g)
{
        char text[32];
        ssize_t n;

        if (g->parts[CGROUP_UNIFIED] >= 0)
                return event(g, "populated 1");
        n = virtual_file_read_at(g->parts[CGROUP_FREEZER], "cgroup.procs", text, sizeof(text));
        return n < 0 ? (int) n : n > 0;
}

/* In v1 any process, which is the agent as long as that lives. */
int cgroup_pidfd(const struct cgroup *g)
{
        const bool v2 = g->parts[CGROUP_UNIFIED] >= 0;
        struct str rest, line;
        char text[32];
        uint64_t pid;
        ssize_t n = virtual_file_read_at(g->parts[v2 ? CGROUP_UNIFIED : CGROUP_FREEZER],
                                         v2 ? AGENT "/cgroup.procs" : "cgroup.procs", text,
                                         sizeof(text));
        int fd;

        if (n < 0)
                return (int) n;
        rest = str_of(text, (size_t) n);
        if (!str_split(&rest, '\n', &line) || parse_u64_max(line, INT32_MAX, &pid) < 0 || pid == 0)
                return -ESRCH;
        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (fd < 0)
                return errno == EINVAL ? -ESRCH : -errno; /* it is just being reaped */
        return fd;
}

/* v2 notifies those who poll cgroup.events; in v1 one process after the other is waited for. */
int cgroup_wait_empty(const struct cgroup *g)
{
        const bool v2 = g->parts[CGROUP_UNIFIED] >= 0;
        scoped(fd_closep) int events =
                v2 ? openat(g->parts[CGROUP_UNIFIED], "cgroup.events", O_RDONLY | O_CLOEXEC)
                   : -EBADF;
        char text[512];
        int r;

        if (v2 && events < 0)
                return -errno;
        while ((r = cgroup_is_populated(g)) > 0) {
                scoped(fd_closep) int pidfd = v2 ? -EBADF : cgroup_pidfd(g);
                struct pollfd p = { .fd = v2 ? events : pidfd, .events = v2 ? POLLPRI : POLLIN };

                if (!v2 && pidfd < 0 && pidfd != -ESRCH)
                        return pidfd;
                if (p.fd >= 0 && poll(&p, 1, -1) < 0 && errno != EINTR)
                        return -errno;
                if (v2)
                        (void) !pread(events, text, sizeof(text),
                                      0); /* waits for the next change */
        }
        return r;
}
