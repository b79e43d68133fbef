/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/command_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup_self.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define EVENTS_MAX   512
#define PROCS_MAX    (64 * KiB)
#define REUSE_TRIES  8 /* released groups that are looked at for each command */
#define VICTIM_MAX   USEC_PER_SEC
#define VICTIM_CHECK 50 /* milliseconds */

/* --- one group --- */

bool command_group_is_populated(const struct command_group *g)
{
        char text[EVENTS_MAX];
        ssize_t n = virtual_file_read_at(g->dir, "cgroup.events", text, sizeof(text));

        return n < 0 || strstr(text, "populated 1") != NULL;
}

/* 0 without a memory controller. */
static uint64_t oom_kills(const struct command_group *g)
{
        uint64_t kills = 0;

        return virtual_file_value_at(g->dir, "memory.events", STR("oom_kill"), &kills) == 0 ? kills
                                                                                            : 0;
}

void command_group_kill(struct command_group *g)
{
        g->_killed = true;
        (void) !virtual_file_write_at(g->dir, "cgroup.kill", "1");
}

bool command_group_out_of_memory(const struct command_group *g)
{
        return g->_out_of_memory || oom_kills(g) > g->_oom_kills;
}

/* NULL: see errno. */
static struct command_group *make(struct command_groups *all)
{
        struct command_group *g;
        char name[16];
        int fd;

        (void) snprintf(name, sizeof(name), "%u", ++all->_n);
        if (mkdirat(all->_dir, name, 0755) < 0)
                return NULL;
        fd = openat(all->_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return NULL;
        (void) !virtual_file_write_at(fd, "memory.oom.group", "1"); /* v2 */
        g = xnew(struct command_group);
        *g = (struct command_group){ ._all = all, .dir = fd, ._number = all->_n };
        list_init(&g->_node);
        return g;
}

static void remove_group(struct command_group *g)
{
        char name[16];

        (void) snprintf(name, sizeof(name), "%u", g->_number);
        (void) fd_close(g->dir);
        (void) unlinkat(g->_all->_dir, name, AT_REMOVEDIR);
        if (g->_all->_victim == g)
                g->_all->_victim = NULL;
        free(g);
}

/* The first of them that is empty: those of long commands move to the end. */
static struct command_group *reuse(struct command_groups *all)
{
        int tries = REUSE_TRIES;

        list_for_each (n, &all->_released) {
                struct command_group *g = container_of(n, struct command_group, _node);

                if (tries-- == 0)
                        break;
                list_remove(n);
                if (command_group_is_populated(g))
                        list_append(&all->_released, n);
                else if (g->_killed)
                        remove_group(g);
                else
                        return g;
        }
        return NULL;
}

int command_group_take(struct command_groups *all, struct command_group **ret)
{
        struct command_group *g = reuse(all);

        *ret = NULL;
        if (all->_dir < 0)
                return 0;
        if (!g)
                g = make(all);
        if (!g)
                return -errno;
        g->_out_of_memory = false;
        g->_oom_kills = oom_kills(g);
        list_append(&all->_taken, &g->_node);
        *ret = g;
        return 0;
}

void command_group_release(struct command_group *g)
{
        list_remove(&g->_node);
        list_append(&g->_all->_released, &g->_node);
}

/* --- out of memory, with cgroup v1 --- */

static uint64_t resident_pages(struct str pid)
{
        char path[64], text[128];
        struct str rest, field;
        uint64_t pages = 0;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%.*s/statm", STR_ARG(pid));
        n = virtual_file_read(path, text, sizeof(text));
        rest = str_of(text, (size_t) MAX_OF(n, 0));
        (void) str_split(&rest, ' ', &field); /* its whole size */
        return str_split(&rest, ' ', &field) && parse_u64(field, &pages) == 0 ? pages : 0;
}

/* Processes beyond the buffer are not counted: such a group is large anyway. */
static uint64_t group_pages(const struct command_group *g)
{
        static char text[PROCS_MAX];
        ssize_t n = virtual_file_read_at(g->dir, "cgroup.procs", text, sizeof(text));
        struct str rest = str_of(text, (size_t) MAX_OF(n, 0)), pid;
        uint64_t pages = 0;

        while (str_split(&rest, '\n', &pid))
                pages += 1 + resident_pages(pid);
        return pages;
}

static void find_largest(struct list *groups, struct command_group **largest, uint64_t *pages)
{
        list_for_each (n, groups) {
                struct command_group *g = container_of(n, struct command_group, _node);
                uint64_t p = group_pages(g);

                if (p > *pages) {
                        *largest = g;
                        *pages = p;
                }
        }
}

/* One at a time: memory comes back only when the processes are gone, and until then the kernel keeps calling. If they
 * do not go, another one has to. */
static void free_memory(struct command_groups *all)
{
        const usec_t now = clock_mono(all->loop->clock);
        uint64_t pages = 0;

        if (all->_victim && command_group_is_populated(all->_victim)
            && now - all->_victim_since < VICTIM_MAX)
                return;
        all->_victim = NULL;
        find_largest(&all->_taken, &all->_victim, &pages);
        find_largest(&all->_released, &all->_victim, &pages);
        if (!all->_victim)
                return;
        all->_victim->_out_of_memory = true;
        all->_victim_since = now;
        command_group_kill(all->_victim);
}

static void oom_timer_cb(uv_timer_t *t)
{
        struct command_groups *all = container_of(t, struct command_groups, _oom_timer);

        if (all->_victim && command_group_is_populated(all->_victim)) {
                free_memory(all);
                (void) uv_timer_start(t, oom_timer_cb, VICTIM_CHECK, 0);
        }
}

/* The kernel notifies every sandbox when their parent cgroup has no more memory, too, and kills a process itself then. */
static bool is_full(void)
{
        struct cgroup_self_usage u;

        return cgroup_self_memory("", &u) < 0 || u.used >= u.limit - u.limit / 16;
}

static void oom_cb(uv_poll_t *h, int status, int events)
{
        struct command_groups *all = container_of(h, struct command_groups, _oom_poll);
        uint64_t n;

        (void) status;
        (void) events;
        (void) !read(all->_oom, &n, sizeof(n));
        if (!is_full())
                return;
        free_memory(all);
        if (all->_victim)
                (void) uv_timer_start(&all->_oom_timer, oom_timer_cb, VICTIM_CHECK, 0);
}

/* --- all groups --- */

/* A descriptor of null is none. */
static int take_fd(int fd)
{
        struct stat st;

        if (fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
                return fd;
        return fd_close(fd);
}

void command_groups_init(struct command_groups *all, struct net_loop *l, int fds)
{
        *all = (struct command_groups){ .loop = l, ._dir = -EBADF, ._oom = -EBADF };
        list_init(&all->_taken);
        list_init(&all->_released);
        if (fds == 0)
                return;
        all->_dir = take_fd(fds + CGROUP_AGENT_DIR);
        for (int i = 0; i < 3; i++) {
                int fd = take_fd(fds + CGROUP_AGENT_TASKS + i);

                if (fd >= 0)
                        all->tasks[all->n_tasks++] = fd;
        }
        all->_oom = take_fd(fds + CGROUP_AGENT_OOM);
        if (all->_oom < 0 || uv_poll_init(&l->uv, &all->_oom_poll, all->_oom) < 0) {
                all->_oom = fd_close(all->_oom);
                return;
        }
        (void) uv_poll_start(&all->_oom_poll, UV_READABLE, oom_cb);
        (void) uv_timer_init(&l->uv, &all->_oom_timer);
        /* Neither keeps the loop running. */
        uv_unref((uv_handle_t *) &all->_oom_poll);
        uv_unref((uv_handle_t *) &all->_oom_timer);
}

static void free_list(struct list *groups)
{
        list_for_each (n, groups) {
                struct command_group *g = container_of(n, struct command_group, _node);

                list_remove(n);
                (void) fd_close(g->dir);
                free(g);
        }
}

void command_groups_close(struct command_groups *all)
{
        if (all->_oom >= 0) {
                uv_close((uv_handle_t *) &all->_oom_poll, NULL);
                uv_close((uv_handle_t *) &all->_oom_timer, NULL);
                all->_oom = fd_close(all->_oom);
        }
        free_list(&all->_taken);
        free_list(&all->_released);
        all->_dir = fd_close(all->_dir);
        while (all->n_tasks > 0)
                (void) fd_close(all->tasks[--all->n_tasks]);
}

void command_groups_prepare(struct command_groups *all)
{
        struct command_group *g;

        if (command_group_take(all, &g) == 0 && g)
                command_group_release(g);
}
