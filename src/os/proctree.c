/* SPDX-License-Identifier: Apache-2.0 */
#include "os/proctree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/walk.h"

/* /proc/PID/task/TID/children would show the same in fewer steps, but needs a kernel built with
 * CONFIG_PROC_CHILDREN and one file for each thread. */

#define PROCS_MAX (1u << 20)

struct proc {
        pid_t pid;
        pid_t parent;
        bool zombie;
        bool below; /* of the root */
};

struct procs {
        struct proc *v;
        size_t n, size;
};

struct reading {
        struct procs *procs;
        int proc_fd;
};

/* A name in /proc that is a process; what has vanished meanwhile is passed over. */
static int add_proc(void *data, const char *name)
{
        const struct reading *r = data;
        struct procs *ps = r->procs;
        scoped(fd_closep) int fd = -EBADF;
        struct str rest, state, parent;
        char path[32], text[512];
        uint64_t pid, ppid;
        const char *end;
        ssize_t n;

        if (ps->n == PROCS_MAX || parse_u64_max(str_from(name), INT32_MAX, &pid) < 0)
                return 0;
        (void) snprintf(path, sizeof(path), "%d/stat", (int) pid);
        fd = openat(r->proc_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        /* "PID (name) S PPID …": the name may contain anything, so the last parenthesis counts. */
        end = n > 0 ? memrchr(text, ')', (size_t) n) : NULL;
        if (!end)
                return 0;
        rest = str_skip(str_of(text, (size_t) n), (size_t) (end - text) + 2);
        if (!str_split(&rest, ' ', &state) || !str_split(&rest, ' ', &parent)
            || parse_u64_max(parent, INT32_MAX, &ppid) < 0)
                return 0;
        if (ps->n == ps->size) {
                ps->size = ps->size ? 2 * ps->size : 128;
                ps->v = xrealloc(ps->v, ps->size, sizeof(struct proc));
        }
        ps->v[ps->n++] =
                (struct proc){ .pid = (pid_t) pid,
                               .parent = (pid_t) ppid,
                               .zombie = str_eq(state, STR("Z")) || str_eq(state, STR("X")) };
        return 0;
}

static int by_pid(const void *a, const void *b)
{
        const struct proc *pa = a, *pb = b;

        return (pa->pid > pb->pid) - (pa->pid < pb->pid);
}

/* Passes until nothing changes. A child nearly always has a higher pid than its parent, so that one
 * pass in the order of pids marks the complete tree. */
static void mark_below(struct procs *ps, pid_t root)
{
        if (ps->n == 0)
                return;
        qsort(ps->v, ps->n, sizeof(struct proc), by_pid);
        for (bool changed = true; changed;) {
                changed = false;
                for (size_t i = 0; i < ps->n; i++) {
                        struct proc *p = &ps->v[i], key = { .pid = p->parent };
                        const struct proc *parent;

                        if (p->below)
                                continue;
                        parent = bsearch(&key, ps->v, ps->n, sizeof(struct proc), by_pid);
                        p->below = p->parent == root || (parent && parent->below);
                        changed |= p->below;
                }
        }
}

int proctree_signal(pid_t root, int sig)
{
        scoped(fd_closep) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct procs ps = { 0 };
        int r, found = 0;

        if (proc < 0)
                return -errno;
        r = walk_names(proc, ".", add_proc, &(struct reading){ &ps, proc });
        if (r == 0 && ps.n == 0)
                r = -ENOENT;
        if (r == 0)
                mark_below(&ps, root);
        for (size_t i = 0; r == 0 && i < ps.n; i++) {
                if (!ps.v[i].below || ps.v[i].zombie)
                        continue;
                found += kill(ps.v[i].pid, sig) == 0 || errno != EPERM;
        }
        free(ps.v);
        return r < 0 ? r : found;
}

void proctree_kill_children(proctree_reaped_fn *reaped, void *data)
{
        int found, before, status;
        pid_t pid;

        for (;;) {
                /* A stopped tree cannot grow: once two rounds find the same number, all of it is
                 * stopped. */
                before = -1;
                found = proctree_signal(getpid(), SIGSTOP);
                for (int rounds = 0; found > 0 && found != before && rounds < 100; rounds++) {
                        before = found;
                        found = proctree_signal(getpid(), SIGSTOP);
                }
                found = proctree_signal(getpid(), SIGKILL);
                if (found < 0)
                        return; /* no /proc: the caller has killed those it knows */
                /* Waits for one, then reaps the others: children of a killed process become ours, and
                 * are found in the next round. If none was killed, there may be processes that we may
                 * not kill, and they may live long. */
                pid = waitpid(-1, &status, found > 0 ? 0 : WNOHANG);
                if (pid == 0 || (pid < 0 && errno != EINTR))
                        return;
                for (; pid > 0; pid = waitpid(-1, &status, WNOHANG))
                        reaped(data, pid, status);
        }
}
