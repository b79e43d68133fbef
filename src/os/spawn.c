/* SPDX-License-Identifier: Apache-2.0 */
#include "os/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/confine.h"

/*
 * The child runs in our memory, on its own stack, while we are suspended. So it must not return, must
 * not allocate, and we read afterwards what it writes into `struct child`. It changes ids by raw system
 * calls: glibc's functions would signal all threads.
 *
 * The stack is static: in our frame the compiler would touch each of its pages, and after a fork each of
 * them is a fault. This way only pages that are used cost anything.
 */

#define CHILD_STACK  (32 * KiB)
#define NO_SANITIZER __attribute__((no_sanitize("address", "undefined")))

#define OOM_SCORE "300" /* thousandths of all memory, added to the score of a process */

static char child_stack[CHILD_STACK] __attribute__((aligned(16)));

/* The soft limit of open files before fd_limit_raise. */
static rlim_t nofile_at_start;

struct child {
        const struct spawn *s;
        pid_t parent;
        sigset_t no_signals;
        int error; /* written by the child */
};

void spawn_save_limits(void)
{
        struct rlimit lim;

        if (getrlimit(RLIMIT_NOFILE, &lim) == 0)
                nofile_at_start = lim.rlim_cur;
}

/* --- searching programs --- */

const char *spawn_search_path(char *const *envp)
{
        for (; envp && *envp; envp++)
                if (str_starts_with(str_from(*envp), STR("PATH=")))
                        return *envp + 5;
        return SPAWN_PATH_DEFAULT;
}

/* The paths that execvp would try for a name without a slash. */
struct candidates {
        struct str name, dirs;
        char path[PATH_MAX];
};

static void candidates_init(struct candidates *c, const char *program, const char *dirs)
{
        c->name = str_from(program);
        c->dirs = str_from(dirs);
}

/* Paths that are too long cannot exist and are skipped. */
static const char *candidates_next(struct candidates *c)
{
        struct str dir;
        char *end;

        while (str_split(&c->dirs, ':', &dir)) {
                if (dir.n == 0)
                        dir = STR(".");
                if (dir.n + 1 + c->name.n >= sizeof(c->path))
                        continue;
                end = mempcpy(c->path, dir.p, dir.n);
                *end++ = '/';
                end = mempcpy(end, c->name.p, c->name.n);
                *end = '\0';
                return c->path;
        }
        return NULL;
}

/* --- in the child --- */

/* Handlers do not survive execve, but ignored signals stay ignored. glibc's sigaction refuses two of the
 * real-time signals, which our parent may have ignored. All zeros is SIG_DFL. */
NO_SANITIZER static void reset_signals(void)
{
        static const uint64_t
                dfl[4]; /* the kernel's struct sigaction: handler, flags, restorer, mask */

        for (int sig = 1; sig < NSIG; sig++)
                (void) syscall(SYS_rt_sigaction, sig, dfl, NULL, sizeof(uint64_t));
}

/* First all out of the way, because one may have the number of another. dup2 clears close-on-exec; execve
 * closes the originals. */
static int place_fds(const int fds[3])
{
        int high[3];

        for (int i = 0; i < 3; i++) {
                high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
                if (high[i] < 0)
                        return -errno;
        }
        for (int i = 0; i < 3; i++)
                if (dup2(high[i], i) < 0)
                        return -errno;
        return 0;
}

/* Requesting the user we are must work without privileges: "uid 0" in a sandbox whose root has lost
 * CAP_SETGID is the common case. */
static int become(const struct spawn_user *u)
{
        if (u->uid == geteuid() && u->gid == getegid() && geteuid() == getuid())
                return 0;
        if (syscall(SYS_setgroups, u->n_groups, u->groups) < 0
            || syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0
            || syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
                return -errno;
        return 0;
}

static int prepare(const struct child *c)
{
        const struct spawn *s = c->s;
        struct rlimit lim;
        int fd, r;

        for (size_t i = 0; i < s->n_join; i++)
                if (write(s->join[i], "0", 1) != 1)
                        return -errno;
        (void) setsid();
        reset_signals();
        if (nofile_at_start != 0 && getrlimit(RLIMIT_NOFILE, &lim) == 0) {
                lim.rlim_cur = MIN_OF(nofile_at_start, lim.rlim_max);
                (void) setrlimit(RLIMIT_NOFILE, &lim);
        }
        /* Raising it needs no privileges; a failure is ignored. While we are root: the file belongs to
         * root if our memory, which is still shared, is not dumpable. */
        fd = s->oom_first ? open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC) : -EBADF;
        if (fd >= 0) {
                (void) !write(fd, OOM_SCORE, strlen(OOM_SCORE));
                (void) close(fd);
        }
        r = place_fds(s->fds);
        if (r == 0 && s->deny_clone3)
                r = confine_clone3();
        if (r == 0 && s->user)
                r = become(s->user);
        if (r == 0 && s->cwd && chdir(s->cwd) < 0)
                r = -errno;
        /* After the change of ids, which resets it. If the parent died before, there is no signal. */
        if (r == 0 && s->die_with_parent) {
                if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                        r = -errno;
                else if (getppid() != c->parent)
                        r = -ESRCH;
        }
        return r;
}

/* Reports the most telling error: EACCES rather than ENOENT. */
NO_SANITIZER static int execute(const struct spawn *s)
{
        struct candidates all;
        const char *path;
        int worst = -ENOENT;

        if (strchr(s->argv[0], '/')) {
                (void) execve(s->argv[0], s->argv, s->envp);
                return -errno;
        }
        candidates_init(&all, s->argv[0], s->search ? s->search : spawn_search_path(s->envp));
        while ((path = candidates_next(&all))) {
                (void) execve(path, s->argv, s->envp);
                if (errno == EACCES)
                        worst = -EACCES;
                else if (errno != ENOENT && errno != ENOTDIR)
                        return -errno;
        }
        return worst;
}

NO_SANITIZER static int child_main(void *arg)
{
        struct child *c = arg;
        int r = prepare(c);

        if (r == 0) {
                (void) sigprocmask(SIG_SETMASK, &c->no_signals, NULL);
                r = execute(c->s);
        }
        c->error = r;
        _exit(127);
}

/* --- in the parent --- */

/* With signals blocked, so that no handler of ours runs in the child, in our memory. */
int spawn_program(const struct spawn *s, pid_t *ret_pid)
{
        struct child c = { .s = s, .parent = getpid() };
        sigset_t all, old;
        pid_t pid;

        if (!s->argv[0] || !*s->argv[0])
                return -ENOENT;
        if (strlen(s->argv[0]) >= PATH_MAX)
                return -ENAMETOOLONG;
        (void) sigemptyset(&c.no_signals);
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, &old);
        pid = clone(child_main, child_stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &c);
        if (pid < 0)
                c.error = -errno;
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
        if (c.error == 0)
                *ret_pid = pid;
        else if (pid > 0)
                (void) waitpid(pid, NULL, 0);
        return c.error;
}

bool spawn_exists(const char *program, char *const *envp)
{
        struct candidates all;
        const char *path;

        if (!*program)
                return false;
        if (strchr(program, '/'))
                return access(program, X_OK) == 0;
        candidates_init(&all, program, spawn_search_path(envp));
        while ((path = candidates_next(&all)))
                if (access(path, X_OK) == 0)
                        return true;
        return false;
}
