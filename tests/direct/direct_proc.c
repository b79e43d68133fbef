/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/direct/direct_proc.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"

struct proc {
        pid_t pid, parent;
        char state;
        bool below;
        uint64_t ticks, pages;
};

struct procs {
        struct proc *v;
        size_t n, size;
};

/* Fields are counted from 1 in proc(5); the third follows the last parenthesis. */
#define FIELD_STATE  3
#define FIELD_PARENT 4
#define FIELD_UTIME  14
#define FIELD_STIME  15
#define FIELD_RSS    24

static bool parse(struct str text, struct proc *ret)
{
        const char *end = memrchr(text.p, ')', text.n);
        struct str rest = end ? str_skip(text, (size_t) (end - text.p) + 2) : STR_NULL, part;

        for (int field = FIELD_STATE; rest.p && str_split(&rest, ' ', &part); field++) {
                uint64_t v = 0;

                if (field == FIELD_STATE && part.n > 0)
                        ret->state = part.p[0];
                else if (parse_u64(part, &v) < 0)
                        continue; /* a negative one; none of ours is */
                if (field == FIELD_PARENT)
                        ret->parent = (pid_t) v;
                if (field == FIELD_UTIME || field == FIELD_STIME)
                        ret->ticks += v;
                if (field == FIELD_RSS)
                        ret->pages = v;
        }
        return ret->state != 0;
}

static bool read_proc(struct str name, struct proc *ret)
{
        char path[32], text[1024];
        uint64_t pid;
        ssize_t n;

        if (parse_u64_max(name, INT32_MAX, &pid) < 0)
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        n = virtual_file_read(path, text, sizeof(text));
        *ret = (struct proc){ .pid = (pid_t) pid };
        return n > 0 && parse(str_of(text, (size_t) n), ret);
}

static int read_all(struct procs *ps)
{
        DIR *dir = opendir("/proc");
        struct proc p;

        if (!dir)
                return -errno;
        for (struct dirent *entry; (entry = readdir(dir));) {
                if (!read_proc(str_from(entry->d_name), &p))
                        continue;
                if (ps->n == ps->size) {
                        ps->size = ps->size ? 2 * ps->size : 128;
                        ps->v = xrealloc(ps->v, ps->size, sizeof(struct proc));
                }
                ps->v[ps->n++] = p;
        }
        (void) closedir(dir);
        return 0;
}

static bool is_below(const struct procs *ps, pid_t parent, pid_t root)
{
        if (parent == root)
                return true;
        for (size_t i = 0; i < ps->n; i++)
                if (ps->v[i].pid == parent)
                        return ps->v[i].below;
        return false;
}

static void mark_below(struct procs *ps, pid_t root)
{
        for (bool changed = true; changed;) {
                changed = false;
                for (size_t i = 0; i < ps->n; i++) {
                        if (ps->v[i].below || !is_below(ps, ps->v[i].parent, root))
                                continue;
                        ps->v[i].below = changed = true;
                }
        }
}

static bool is_stopped(const struct proc *p)
{
        return p->state == 'T' || p->state == 't';
}

int direct_tree_scan(pid_t supervisor, int sig, struct direct_tree *ret)
{
        struct procs ps = { 0 };
        int r = read_all(&ps);
        uint64_t tick = USEC_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK);

        *ret = (struct direct_tree){ 0 };
        mark_below(&ps, supervisor);
        for (size_t i = 0; i < ps.n; i++) {
                struct proc *p = &ps.v[i];

                if (!p->below || p->state == 'Z' || p->state == 'X')
                        continue;
                ret->n++;
                ret->running += !is_stopped(p);
                ret->cpu_usec += p->ticks * tick;
                ret->memory_bytes += p->pages * (uint64_t) sysconf(_SC_PAGESIZE);
                if (sig && !(sig == SIGSTOP && is_stopped(p)))
                        (void) kill(p->pid, sig);
        }
        free(ps.v);
        return r;
}

bool direct_is_stopped(pid_t pid)
{
        char name[16];
        struct proc p;

        (void) snprintf(name, sizeof(name), "%d", (int) pid);
        return read_proc(str_from(name), &p) && is_stopped(&p);
}
