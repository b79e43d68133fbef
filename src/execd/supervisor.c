/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor of a command.
 *
 * The problem. A timeout must end everything that a command has started, including processes that called
 * setsid or lost their parent, and nothing else. Orphans are adopted by the nearest subreaper above them.
 * So each command gets a subreaper of its own: while the command runs, all its descendants are below its
 * supervisor.
 *
 *         agent ── supervisor ── command ── …
 *                     └───────── orphans of the command
 *
 * (Rejected: the command itself as the subreaper. It would get children that it never made, and a program
 * that waits for all its children would hang.)
 *
 * The protocol. The two talk over a SOCK_SEQPACKET pair.
 *
 *         agent → supervisor   a signal number: send it to the process group of the command
 *                              end of file (shutdown, or the agent is gone): kill everything
 *         supervisor → agent   STARTED, if requested; then exactly one of FAILED and EXITED, and it exits
 *
 * Killing is a shutdown and not a message: the socket buffer may be full, a shutdown always gets through.
 *
 * Order of steps. The agent forks the supervisor. It blocks all signals, closes all descriptors but the
 * socket and the three of the command, becomes a subreaper, and spawns the command. Then it closes the command's
 * descriptors, so that the pipes end with the command, and waits for its socket and for SIGCHLD.
 *
 * When things end. If the command ends by itself, the supervisor reports the status and exits; what the
 * command left running (`server &`) continues below the agent. If the agent dies, its end of the socket
 * closes and the supervisor kills everything. If a process stops the supervisor, the agent continues it
 * (processes_continue). The supervisor cannot be traced, as it inherits the agent's undumpable state.
 *
 * Where there are cgroups for commands (execd/command_group.h), the agent kills, not the supervisor, which is in
 * the same cgroup and dies with the rest. If a process of the sandbox kills the supervisor, the agent kills the
 * rest of the cgroup. Without cgroups only the command itself dies then (die_with_parent); what it had started
 * goes to the agent, and no timeout applies to it any more.
 */

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
#include "os/clone.h"
#include "os/fd.h"
#include "os/proctree.h"

#define COMMAND_OOM_ADJ "500" /* counts as if it used half of all memory more */
#define JOIN_MAX        3     /* cgroups of v1 */

/* --- in the supervisor --- */

struct supervisor {
        int fd; /* to the agent */
        pid_t command;
        bool ended;
        int status;
};

/* Whether the agent still exists to read the report does not matter. */
static void send_report(const struct supervisor *sv, enum supervisor_report_kind kind, int value)
{
        struct supervisor_report r = { (int32_t) kind, value };

        (void) !send(sv->fd, &r, sizeof(r), MSG_NOSIGNAL);
}

/* Copies of the agent's descriptors would keep its connections open. */
static void close_all_but(int *keep, int n)
{
        for (int i = 1; i < n; i++) /* sort */
                for (int j = i; j > 0 && keep[j] < keep[j - 1]; j--) {
                        int t = keep[j];

                        keep[j] = keep[j - 1];
                        keep[j - 1] = t;
                }
        for (int i = 0, from = 0; i <= n; i++) {
                unsigned to = i < n ? (unsigned) keep[i] : ~0U;

                if (i == n || (unsigned) from < to)
                        (void) syscall(SYS_close_range, (unsigned) from, i < n ? to - 1 : to, 0U);
                from = i < n ? keep[i] + 1 : from;
        }
}

static void note_reaped(void *data, pid_t pid, int status)
{
        struct supervisor *sv = data;

        if (pid == sv->command) {
                sv->ended = true;
                sv->status = status;
        }
}

/* A signal, or the end of the socket: kill everything. Only the supervisor reaps the command, so the number of its
 * process group is still its own. */
static void take_order(struct supervisor *sv)
{
        int32_t sig;
        ssize_t n = recv(sv->fd, &sig, sizeof(sig), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        (void) kill(-sv->command, n == sizeof(sig) ? sig : SIGKILL);
        if (n == sizeof(sig))
                return;
        proctree_kill_children(note_reaped, sv);
        /* Without /proc only the process group is known. */
        if (!sv->ended && waitpid(sv->command, &sv->status, 0) == sv->command)
                sv->ended = true;
}

/* The memory of a pipe, a socket or a page table belongs to no process. When such memory exhausts the
 * sandbox's limit, the kernel would pick the agent as the largest of a few small processes. With a higher
 * score commands come first. Lowering the score below its least value ever needs a privilege; going back to
 * it does not. */
static void prefer_oom_kill(bool first)
{
        const char *value = first ? COMMAND_OOM_ADJ : "0";
        scoped(fd_closep) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char now[8] = "";

        /* A value that someone else has set stays. */
        if (fd < 0 || pread(fd, now, sizeof(now) - 1, 0) < 0
            || strcmp(now, first ? "0\n" : COMMAND_OOM_ADJ "\n") != 0)
                return;
        (void) !pwrite(fd, value, strlen(value), 0);
}

/* Returns a descriptor that is readable when a child has ended. */
static int become_supervisor(const struct spawn *s, int fd)
{
        int keep_fds[4 + JOIN_MAX] = { fd, s->fds[0], s->fds[1], s->fds[2] }, events;
        sigset_t set;

        ASSERT(s->n_join <= JOIN_MAX);
        for (size_t i = 0; i < s->n_join; i++)
                keep_fds[4 + i] = s->join[i];
        (void) sigfillset(&set);
        (void) sigprocmask(SIG_SETMASK, &set, NULL);
        close_all_but(keep_fds, 4 + (int) s->n_join);
        (void) prctl(PR_SET_NAME, "hutch-supervise");
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return -errno;
        events = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return events < 0 ? -errno : events;
}

/* Allocates nothing: after the fork every page that is written is copied. */
static never_returns void supervisor_main(const struct spawn *given, bool in_cgroup,
                                          bool notify_start, int fd)
{
        struct supervisor sv = { .fd = fd };
        struct spawn s = *given;
        int events = become_supervisor(given, fd), r = events, status;
        struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
                                { .fd = events, .events = POLLIN } };
        struct signalfd_siginfo info;

        s.die_with_parent = true;
        s.deny_clone3 = in_cgroup;
        if (!in_cgroup)
                prefer_oom_kill(true);
        if (r >= 0)
                r = spawn_program(&s, &sv.command);
        if (!in_cgroup)
                prefer_oom_kill(false);
        if (r < 0) {
                send_report(&sv, SUPERVISOR_FAILED, r);
                _exit(0);
        }
        if (notify_start)
                send_report(&sv, SUPERVISOR_STARTED, 0);
        for (int i = 0; i < 3; i++)
                if (s.fds[i] != fd)
                        (void) close(s.fds[i]);
        for (size_t i = 0; i < s.n_join; i++)
                (void) close(s.join[i]);
        while (!sv.ended) {
                (void) poll(fds, ARRAY_SIZE(fds), -1);
                if (fds[1].revents) {
                        (void) !read(events, &info, sizeof(info));
                        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
                                note_reaped(&sv, pid, status);
                }
                if (fds[0].revents && !sv.ended)
                        take_order(&sv);
        }
        send_report(&sv, SUPERVISOR_EXITED, sv.status);
        _exit(0);
}

/* --- in the agent --- */

int supervisor_start(const struct spawn *s, int cgroup, bool notify_start, int *ret_fd,
                     pid_t *ret_pid)
{
        scoped(fd_closep) int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        /* Containers of engines have no clone3. Not fork: the handlers that libuv has registered for it are of no
         * use here. */
        pid = cgroup >= 0 ? clone_child(&(struct clone_child){ .cgroup = cgroup }, &pidfd)
                          : _Fork();
        if (pid < 0)
                return cgroup >= 0 ? pid : -errno;
        if (pid == 0)
                supervisor_main(s, cgroup >= 0, notify_start, theirs);
        *ret_fd = TAKE_FD(ours);
        *ret_pid = pid;
        return 0;
}

void supervisor_signal(int fd, int sig)
{
        int32_t order = sig;

        (void) !send(fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void supervisor_kill(int fd)
{
        (void) shutdown(fd, SHUT_WR);
}

/* A supervisor that exits with an unread order resets the connection. The kernel reports the reset first,
 * once; the report is behind it. */
int supervisor_read(int fd, struct supervisor_report *ret)
{
        ssize_t n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);

        if (n < 0 && errno == ECONNRESET)
                n = recv(fd, ret, sizeof(*ret), MSG_DONTWAIT);
        if (n == sizeof(*ret))
                return 1;
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}
