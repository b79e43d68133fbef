/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hutch-launcher: supervises hutch-warden and hutchd, and restarts either when it is killed.
 *
 *         hutch-launcher WARDEN [ARGUMENT]... -- HUTCHD [ARGUMENT]...
 *
 * It stays root, so it does nothing else: no socket of its own, nothing to parse but the "--" of its
 * arguments. It makes the socket pair between the two (plan/protocol.h) and keeps both ends, so that a
 * restarted process finds what the other has sent meanwhile; each has its end as descriptor 3. Processes
 * that a killed warden leaves behind (zygotes, sandboxes) become children of the launcher, which reaps them.
 *
 * A process that was killed by a signal is restarted: at once, and if that happens again soon, after a delay
 * that grows. A process that exits with a status has logged why and is not restarted: the launcher ends the
 * other one and exits with that status. SIGTERM and SIGINT end hutchd, which completes running requests, and
 * then the warden; a second signal ends both at once. SIGHUP is passed on to hutchd.
 *
 * When the host runs out of memory the OOM killer takes others first: launcher and warden last of all, then hutchd,
 * which an outsider can make larger. Zygotes undo it for themselves, so that no sandbox has it (warden/build_prepare.c).
 */

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define CHILD_SOCKET 3
#define OURS_FROM    10 /* above the descriptor numbers that a child uses */

/* After that long a start counts as successful. */
#define LONG_ENOUGH (10 * USEC_PER_SEC)
#define PAUSE_MIN   (100 * USEC_PER_MSEC)
#define PAUSE_MAX   (5 * USEC_PER_SEC)

/* Open files of each: the warden needs one per sandbox. Linux allows no more by default (fs.nr_open). */
#define FILES_MAX ((rlim_t) 1 << 20)

/* oom_score_adj, in thousandths of the host's memory: so much less they seem to use. */
#define OOM_ADJ        (-900)
#define OOM_ADJ_HUTCHD (-800)

enum process {
        WARDEN,
        HUTCHD,
        BOTH,
};

struct child {
        const char *name;
        char **argv;
        char **envp;
        int socket;
        pid_t pid; /* 0: not running */
        usec_t began;
        usec_t pause; /* delay before the next start */
};

struct launcher {
        struct child children[BOTH];
        sigset_t signals, before;
        bool protected_from_oom;
        unsigned stop_signals; /* how many signals to end have come */
        bool ending;
        int status; /* to exit with */
};

/* --- the OOM killer --- */

/* The score of this process, and of those it forks; above `above` only. False if it stays. */
static bool set_oom_adj(int adj, int above)
{
        int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char text[16], now[16] = "";
        int n = snprintf(text, sizeof(text), "%d", adj);
        bool set = fd >= 0 && read(fd, now, sizeof(now) - 1) > 0 && strtol(now, NULL, 10) > above
                   && pwrite(fd, text, (size_t) n, 0) == n;

        if (fd >= 0)
                (void) close(fd);
        return set;
}

/* --- starting --- */

static void start(struct launcher *l, struct child *c)
{
        const pid_t self = getpid();
        pid_t pid = fork();

        if (pid == 0) {
                /* ^C on a terminal is for the launcher only. */
                (void) setpgid(0, 0);
                (void) sigprocmask(SIG_SETMASK, &l->before, NULL);
                (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
                if (l->protected_from_oom && c == &l->children[HUTCHD])
                        (void) set_oom_adj(OOM_ADJ_HUTCHD, OOM_ADJ - 1);
                if (getppid() == self && dup2(c->socket, CHILD_SOCKET) == CHILD_SOCKET
                    && close_range(CHILD_SOCKET + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0)
                        (void) execve(c->argv[0], c->argv, c->envp);
                (void) dprintf(STDERR_FILENO, "hutch-launcher: can't start %s: %s\n", c->argv[0],
                               strerror(errno));
                _exit(127);
        }
        if (pid < 0) {
                (void) dprintf(STDERR_FILENO, "hutch-launcher: can't start %s: %s\n", c->name,
                               strerror(errno));
                c->pause = MAX_OF(c->pause, PAUSE_MIN);
        }
        c->pid = MAX_OF(pid, 0);
        c->began = clock_mono(&clock_system);
}

/* --- ending --- */

static void send_signal(const struct child *c, int sig)
{
        if (c->pid > 0)
                (void) kill(c->pid, sig);
}

/* hutchd first: it may still need the warden. */
static void stop(struct launcher *l)
{
        l->ending = true;
        if (l->children[HUTCHD].pid > 0)
                send_signal(&l->children[HUTCHD], SIGTERM);
        else
                send_signal(&l->children[WARDEN], SIGTERM);
}

/* --- the end of one --- */

static void ended(struct launcher *l, struct child *c, int status)
{
        const bool hutchd = c == &l->children[HUTCHD];
        const bool had_time = clock_mono(&clock_system) - c->began >= LONG_ENOUGH;

        c->pid = 0;
        if (l->ending) {
                if (hutchd && WIFEXITED(status) && l->status == 0)
                        l->status = WEXITSTATUS(status);
                if (hutchd)
                        send_signal(&l->children[WARDEN], SIGTERM);
                else
                        send_signal(&l->children[HUTCHD], SIGTERM);
                return;
        }
        if (WIFEXITED(status) && (hutchd || WEXITSTATUS(status) != 0)) {
                l->status = WEXITSTATUS(status);
                stop(l);
                return;
        }
        if (had_time || c->pause == 0)
                c->pause = had_time ? 0 : 1;
        else
                c->pause = MIN_OF(MAX_OF(c->pause * 2, PAUSE_MIN), PAUSE_MAX);
        (void) dprintf(STDERR_FILENO, "hutch-launcher: %s has ended (%s %d) and is restarted\n",
                       c->name, WIFSIGNALED(status) ? "signal" : "status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void reap(struct launcher *l)
{
        pid_t pid;
        int status;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < BOTH; i++)
                        if (l->children[i].pid == pid)
                                ended(l, &l->children[i], status);
}

/* --- the loop --- */

/* Starts what is due. Returns how long to wait for the next one. */
static usec_t start_due(struct launcher *l)
{
        const usec_t now = clock_mono(&clock_system);
        usec_t wait = USEC_INFINITY;

        for (size_t i = 0; i < BOTH && !l->ending; i++) {
                struct child *c = &l->children[i];
                const usec_t due = c->began + c->pause;

                if (c->pid == 0 && (c->began == 0 || due <= now))
                        start(l, c);
                else if (c->pid == 0)
                        wait = MIN_OF(wait, due - now);
        }
        return wait;
}

static void run(struct launcher *l)
{
        while (!l->ending || l->children[WARDEN].pid > 0 || l->children[HUTCHD].pid > 0) {
                const usec_t wait = start_due(l);
                const struct timespec t = { (time_t) (wait / USEC_PER_SEC),
                                            (long) (wait % USEC_PER_SEC) * 1000 };
                int sig = wait == USEC_INFINITY ? sigwaitinfo(&l->signals, NULL)
                                                : sigtimedwait(&l->signals, NULL, &t);

                if (sig == SIGCHLD)
                        reap(l);
                else if (sig == SIGHUP)
                        send_signal(&l->children[HUTCHD], SIGHUP);
                else if (sig > 0 && l->stop_signals++ == 0)
                        stop(l);
                else if (sig > 0)
                        for (size_t i = 0; i < BOTH; i++)
                                send_signal(&l->children[i],
                                            l->stop_signals == 2 ? SIGTERM : SIGKILL);
        }
}

/* --- the beginning --- */

static int watch_signals(struct launcher *l)
{
        static const int numbers[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };

        (void) sigemptyset(&l->signals);
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                (void) sigaddset(&l->signals, numbers[i]);
        return sigprocmask(SIG_BLOCK, &l->signals, &l->before);
}

/* Needs CAP_SYS_RESOURCE; without it the limit stays. Only the hard limit: both raise the soft one themselves, and
 * programs that can't deal with many descriptors are not affected. */
static void raise_limits(void)
{
        struct rlimit has;

        if (getrlimit(RLIMIT_NOFILE, &has) < 0)
                return;
        for (rlim_t n = FILES_MAX; n > has.rlim_max; n /= 2)
                if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ has.rlim_cur, n }) == 0)
                        return;
}

static int make_pair(struct launcher *l)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -1;
        for (size_t i = 0; i < BOTH; i++) {
                l->children[i].socket = fcntl(pair[i], F_DUPFD_CLOEXEC, OURS_FROM);
                (void) close(pair[i]);
        }
        return l->children[WARDEN].socket < 0 || l->children[HUTCHD].socket < 0 ? -1 : 0;
}

/* The environment may contain secrets, and the warden needs none of it. */
static char **plain_environment(void)
{
        static const char *const names[] = { "PATH", "TZ", "ASAN_OPTIONS", "UBSAN_OPTIONS" };
        static char *plain[ARRAY_SIZE(names) + 1];
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char **v = environ;
                const size_t length = strlen(names[i]);

                while (*v && (strncmp(*v, names[i], length) != 0 || (*v)[length] != '='))
                        v++;
                if (*v)
                        plain[n++] = *v;
        }
        return plain;
}

/* Splits the arguments; false if one of the two is missing. */
static bool take_arguments(struct launcher *l, char **argv)
{
        char **v = argv[0] ? argv + 1 : argv;

        l->children[WARDEN].argv = v;
        while (*v && strcmp(*v, "--") != 0)
                v++;
        if (!*v || v == argv + 1 || !v[1])
                return false;
        *v = NULL;
        l->children[HUTCHD].argv = v + 1;
        return true;
}

int main(int argc, char **argv)
{
        static struct launcher l = { .children = { [WARDEN] = { .name = "hutch-warden" },
                                                   [HUTCHD] = { .name = "hutchd" } } };

        (void) argc;
        if (!take_arguments(&l, argv)) {
                (void) dprintf(STDERR_FILENO,
                               "hutch-launcher is started by hutchd; see hutch-launcher(8)\n");
                return 2;
        }
        l.children[WARDEN].envp = plain_environment();
        l.children[HUTCHD].envp = environ;
        raise_limits();
        /* Whoever started us may have set a lower score. Needs CAP_SYS_RESOURCE; without it the score stays. */
        l.protected_from_oom = set_oom_adj(OOM_ADJ, OOM_ADJ);
        if (watch_signals(&l) < 0 || make_pair(&l) < 0
            || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) {
                (void) dprintf(STDERR_FILENO, "hutch-launcher: can't start: %s\n", strerror(errno));
                return 1;
        }
        run(&l);
        return l.status;
}
