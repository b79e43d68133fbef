/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/proctree.h"

#define COMMAND_OOM_ADJ "500" /* half of all memory more than it has */

/* --- the supervisor's side --- */

struct supervisor {
        int fd; /* to the agent */
        pid_t command;
        bool ended;
        int status;
};

static void tell(const struct supervisor *k, enum supervisor_report_kind kind, int value)
{
        struct supervisor_report r = { (int32_t) kind, value };

        (void) !send(k->fd, &r, sizeof(r), MSG_NOSIGNAL);
}

/* Ends the supervisor. Whether the agent is there to hear it does not matter any more. */
static never_returns void report(const struct supervisor *k, enum supervisor_report_kind kind,
                                 int value)
{
        tell(k, kind, value);
        _exit(0);
}

/* Our copies of the agent's descriptors would keep its connections open. */
static void close_all_but(int keep[4])
{
        for (int i = 1; i < 4; i++) /* sorted, few */
                for (int j = i; j > 0 && keep[j] < keep[j - 1]; j--) {
                        int t = keep[j];

                        keep[j] = keep[j - 1];
                        keep[j - 1] = t;
                }
        for (int i = 0, from = 0; i <= 4; i++) {
                unsigned to = i < 4 ? (unsigned) keep[i] : ~0U;

                if (i == 4 || (unsigned) from < to)
                        (void) syscall(SYS_close_range, (unsigned) from, i < 4 ? to - 1 : to, 0U);
                from = i < 4 ? keep[i] + 1 : from;
        }
}

static void note_reaped(void *data, pid_t pid, int status)
{
        struct supervisor *k = data;

        if (pid == k->command) {
                k->ended = true;
                k->status = status;
        }
}

static void reap(struct supervisor *k)
{
        int status;

        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
                note_reaped(k, pid, status);
}

static void kill_all(struct supervisor *k)
{
        if (!k->ended)
                (void) kill(-k->command, SIGKILL);
        proctree_kill_children(note_reaped, k);
        /* Without /proc the group is all we know. */
        if (!k->ended && waitpid(k->command, &k->status, 0) == k->command)
                k->ended = true;
}

/* The command can't have been reaped by anybody else, so its group's number is still its own. */
static void obey(struct supervisor *k)
{
        int32_t sig;
        ssize_t n = recv(k->fd, &sig, sizeof(sig), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n == sizeof(sig))
                (void) kill(-k->command, sig);
        else
                kill_all(k); /* the agent says so, or is gone */
}

static never_returns void keep(struct supervisor *k, int child_events)
{
        struct pollfd fds[] = {
                { .fd = k->fd, .events = POLLIN },
                { .fd = child_events, .events = POLLIN },
        };
        struct signalfd_siginfo info;

        while (!k->ended) {
                (void) poll(fds, ARRAY_SIZE(fds), -1);
                if (fds[1].revents) {
                        (void) !read(child_events, &info, sizeof(info));
                        reap(k);
                }
                if (fds[0].revents && !k->ended)
                        obey(k);
        }
        report(k, SUPERVISOR_EXITED, k->status);
}

/* Memory of a pipe, a socket or a table is nobody's: when the sandbox has used up its own, the kernel would
 * find the agent the largest of a few small processes. This way commands come first. It takes a
 * privilege to go below the least that was ever set, and none to go back to it. */
static void be_killed_first(bool first)
{
        const char *value = first ? COMMAND_OOM_ADJ : "0";
        scoped(fd_closep) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char now[8] = "";

        /* Somebody else's choice stays. */
        if (fd < 0 || pread(fd, now, sizeof(now) - 1, 0) < 0
            || strcmp(now, first ? "0\n" : COMMAND_OOM_ADJ "\n") != 0)
                return;
        (void) !pwrite(fd, value, strlen(value), 0);
}

/* All signals are blocked for good. The two that can't be are of little use to a hostile command: a
 * supervisor that is stopped is continued by the agent, and one that is killed takes the command along
 * (die_with_parent). */
static never_returns void supervisor_main(const struct spawn *given, bool notify_start, int fd)
{
        struct supervisor k = { .fd = fd };
        struct spawn s = *given;
        int keep_fds[4] = { fd, s.fds[0], s.fds[1], s.fds[2] }, events, r;
        sigset_t set;

        (void) sigfillset(&set);
        (void) sigprocmask(SIG_SETMASK, &set, NULL);
        close_all_but(keep_fds);
        (void) prctl(PR_SET_NAME, "hutch-supervisor");
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                report(&k, SUPERVISOR_FAILED, -errno);
        events = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (events < 0)
                report(&k, SUPERVISOR_FAILED, -errno);
        s.die_with_parent = true;
        be_killed_first(true);
        r = spawn_program(&s, &k.command);
        be_killed_first(false);
        if (r < 0)
                report(&k, SUPERVISOR_FAILED, r);
        if (notify_start)
                tell(&k, SUPERVISOR_STARTED, 0);
        /* The command's pipes must end with the command. */
        for (int i = 0; i < 3; i++)
                if (s.fds[i] != fd)
                        (void) close(s.fds[i]);
        keep(&k, events);
}

/* --- the agent's side --- */

int supervisor_start(const struct spawn *s, bool notify_start, int *ret_fd, pid_t *ret_pid)
{
        scoped(fd_closep) int ours = -EBADF;
        scoped(fd_closep) int theirs = -EBADF;
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        /* Not fork: the handlers libuv has registered for it are of no use to a supervisor. */
        pid = _Fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                supervisor_main(s, notify_start, theirs);
        *ret_fd = TAKE_FD(ours);
        *ret_pid = pid;
        return 0;
}

void supervisor_signal(int fd, int sig)
{
        int32_t order = sig;

        (void) !send(fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Not a message: for that there might be no room. */
void supervisor_kill(int fd)
{
        (void) shutdown(fd, SHUT_WR);
}

/* A supervisor that ends while an order is under way to it resets the connection, and the kernel tells
 * that first, once; its report is behind it. */
int supervisor_read(int fd, struct supervisor_report *ret)
{
        ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);

        if (n < 0 && errno == ECONNRESET)
                n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);
        if (n == sizeof(*ret))
                return 1;
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}
