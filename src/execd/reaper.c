/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/reaper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

static const int handled[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

/* Per turn: processes that create orphans faster than they are reaped must not block the loop. */
#define REAP_BATCH   256
#define SIGNAL_BATCH 16

static void reap(struct net_task *t)
{
        struct reaper *r = container_of(t, struct reaper, _reap);
        int status, i;
        pid_t pid;

        for (i = 0; i < REAP_BATCH; i++) {
                pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
                if (pid <= 0)
                        break;
                if (WIFSTOPPED(status)) {
                        r->stopped(r->children_data, pid);
                } else if (pid == r->awaited) {
                        r->awaited = 0;
                        r->ended(r->ended_data, status);
                }
        }
        if (i > 0)
                r->reaped(r->children_data);
        if (i == REAP_BATCH && r->_fd >= 0)
                net_task_queue(r->_loop, t);
}

/* PID 1 ignores signals from inside; see the header. A sender of pid 0 is trustworthy only if the kernel wrote
 * it: sigqueue(3) sends whatever it is given, and signals for F_SETOWN have no sender. Their codes differ,
 * and no process can forge the codes below. */
static bool must_obey(const struct reaper *r, const struct signalfd_siginfo *info)
{
        if (!r->_is_init)
                return true;
        return info->ssi_pid == 0
               && (info->ssi_code == SI_USER || info->ssi_code == SI_TKILL
                   || info->ssi_code == SI_KERNEL);
}

static void poll_cb(uv_poll_t *h, int status, int events)
{
        struct reaper *r = container_of(h, struct reaper, _poll);
        struct signalfd_siginfo infos[SIGNAL_BATCH];
        ssize_t n = read(r->_fd, infos, sizeof(infos));

        (void) status;
        (void) events;
        for (size_t i = 0; n > 0 && i < (size_t) n / sizeof(infos[0]); i++)
                if (infos[i].ssi_signo != SIGCHLD && r->signalled && must_obey(r, &infos[i]))
                        r->signalled(r->signalled_data, (int) infos[i].ssi_signo);
        /* One SIGCHLD may stand for many; another signal costs one needless waitpid. */
        reap(&r->_reap);
}

int reaper_start(struct reaper *r, struct net_loop *l, reaper_stopped_fn *stopped,
                 reaper_reaped_fn *reaped, void *data)
{
        sigset_t set;
        int e;

        *r = (struct reaper){ .stopped = stopped,
                              .reaped = reaped,
                              .children_data = data,
                              ._is_init = getpid() == 1,
                              ._loop = l };
        net_task_init(&r->_reap, reap);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        if (!r->_is_init && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return -errno;
        r->_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (r->_fd < 0)
                return -errno;
        e = uv_poll_init(&l->uv, &r->_poll, r->_fd);
        if (e == 0)
                e = uv_poll_start(&r->_poll, UV_READABLE, poll_cb);
        /* Waiting for signals does not keep the loop running. */
        uv_unref((uv_handle_t *) &r->_poll);
        return e;
}

void reaper_stop(struct reaper *r)
{
        net_task_cancel(&r->_reap);
        uv_close((uv_handle_t *) &r->_poll, NULL);
        r->_fd = fd_close(r->_fd);
}

void reaper_take_signals(struct reaper *r, reaper_signal_fn *signalled, void *data)
{
        sigset_t set;

        r->signalled = signalled;
        r->signalled_data = data;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        for (size_t i = 0; i < ARRAY_SIZE(handled); i++)
                (void) sigaddset(&set, handled[i]);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signalfd(r->_fd, &set, 0);
}

void reaper_await(struct reaper *r, pid_t pid, reaper_ended_fn *ended, void *data)
{
        r->awaited = pid;
        r->ended = ended;
        r->ended_data = data;
}
