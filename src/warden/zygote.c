/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/userns.h"
#include "os/walk.h"
#include "warden/build.h"
#include "warden/data.h"

void zygote_cgroup_name(uint32_t uid_first, char ret[static ZYGOTE_CGROUP_MAX])
{
        static_assert(ZYGOTE_CGROUP_MAX == BUILD_NAME_MAX, "the same names");
        build_name(uid_first, ret);
}

/* --- in the zygote --- */

/* Prepares what can be, sends one byte when it is ready, or exits with the errno as exit code if it never will be.
 * Then waits for the order and carries it out. A message that is not one ends the process, and the sender sees an end
 * of file instead of a report. Inherited descriptors are closed: among them are the warden's ends of the sockets of
 * other zygotes, which would not see its exit otherwise. */
never_returns static void run(const struct build_context *ctx, int socket, uint32_t uid_first)
{
        static char message[PLAN_SPEC_MAX + 1];
        static struct plan plan;
        struct build_context g = *ctx;
        struct build_order order = { .plan = &plan };
        struct builder x = { 0 };
        int *const kept[] = {
                &socket,      &g.userns,    &x.ns_root,   &x.stage,     &x.data,
                &x.lowers,    &x.upper,     &g.agent,     &x.work,      &x.cgroup[0],
                &x.cgroup[1], &x.cgroup[2], &x.cgroup[3], &x.cgroup[4], &x.root,
        };
        int fds[ZYGOTE_FDS] = { 0 }, r;
        struct fd_pass_msg m = {
                .p = message, .size = sizeof(message), .fds = fds, .fds_max = ZYGOTE_FDS
        };
        struct plan_spec spec = { 0 };
        struct arena arena;
        struct err e;
        ssize_t n;

        static_assert(PLAN_FDS <= 3 + 7,
                      "confine_descriptors must not overwrite g.agent, the eighth");
        (void) prctl(PR_SET_NAME, "hutch-zygote"); /* until it executes the agent */
        r = build_prepare(&x, &g);
        if (r < 0)
                _exit(-r & 0x7f);
        if (fd_keep_only(kept, ARRAY_SIZE(kept) - (g.host ? 0 : 1)) < 0
            || send(socket, "", 1, MSG_NOSIGNAL) != 1)
                _exit(1);
        n = fd_pass_receive(socket, &m, 0);
        if (n <= 0 || m.cut || m.n_fds != ZYGOTE_FDS)
                _exit(n == 0 ? 0 : 1); /* 0: the warden has exited */
        arena_init(&arena, 4 * PLAN_SPEC_MAX);
        r = plan_spec_decode(str_of(message, (size_t) n), &arena, &spec, &e);
        spec.uid_first = uid_first;
        r = r < 0 ? -EBADMSG : plan_make(&spec, &arena, &plan);
        if (r < 0)
                build_give_up(fds[PLAN_FD_READY], r);
        memcpy(order.fds, fds, PLAN_FD_CGROUP * sizeof(*fds));
        memcpy(order.fds + PLAN_FD_CGROUP, x.cgroup, sizeof(x.cgroup));
        order.netns = fds[ZYGOTE_FD_NETNS];
        build_execute(&x, &order);
}

/* --- in the warden --- */

int zygote_make(const struct host_context *ctx, uint32_t uid_first, struct zygote *ret)
{
        const struct userns_range range = { uid_first, PLAN_UIDS };
        scoped(fd_closep) int userns = -EBADF, cgroupns = -EBADF, theirs = -EBADF;
        scoped(cgroup_close) struct cgroup agent = CGROUP_NULL;
        struct zygote s = ZYGOTE_NULL;
        struct build_context build = {
                .data = ctx->data_path,
                .tree = ctx->tree,
                .group = &s.group,
                .agent_group = &agent,
                .uid_first = uid_first,
                .host = ctx->host,
                .agent = ctx->agent,
                .resolv = ctx->resolv,
        };
        char name[ZYGOTE_CGROUP_MAX];
        int pair[2], r = 0, removed;

        s.uid_first = uid_first;
        zygote_cgroup_name(uid_first, name);
        if (ctx->tree)
                r = cgroup_make(ctx->tree, name, &s.group);
        if (r < 0)
                return r;
        r = userns_make_sandbox(&range, &s.group, &userns, &cgroupns);
        if (r == 0 && ctx->tree)
                r = cgroup_delegate(ctx->tree, &s.group, uid_first);
        if (r == 0 && ctx->tree)
                r = cgroup_open_agent(ctx->tree, name, &agent);
        if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                r = -errno;
        if (r == 0) {
                s.socket = pair[0];
                theirs = pair[1];
                build.userns = userns;
                build.cgroupns = cgroupns;
                s.pid = clone_child(&(struct clone_child){ BUILD_NAMESPACES,
                                                           agent.parts[CGROUP_UNIFIED],
                                                           ctx->for_parent },
                                    &s.pidfd);
                if (s.pid == 0)
                        run(&build, theirs, uid_first);
                r = MIN_OF(s.pid, 0);
        }
        if (r < 0) {
                removed = zygote_remove(ctx, &s);
                return removed < 0 ? removed : r;
        }
        *ret = s;
        return 0;
}

int zygote_wait(const struct zygote *s)
{
        char byte;
        ssize_t n = recv(s->socket, &byte, 1, 0);

        return n == 1 ? 0 : n < 0 ? -errno : -EPIPE;
}

/* Three directories: no sandbox has used it. */
int zygote_drop_dir(const struct host_context *ctx, uint32_t uid_first)
{
        scoped(fd_closep) int zygotes =
                openat(ctx->data, DATA_ZYGOTES, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char name[BUILD_NAME_MAX];

        build_name(uid_first, name);
        return zygotes < 0 ? -errno : walk_remove_all(zygotes, name);
}

/* The cgroup first: it also reaches processes whose init is not known any more. */
int zygote_remove(const struct host_context *ctx, struct zygote *s)
{
        char name[ZYGOTE_CGROUP_MAX];
        int status, r = 0;

        zygote_cgroup_name(s->uid_first, name);
        if (ctx->tree && s->group.parts[CGROUP_PIDS] < 0 && s->group.parts[CGROUP_UNIFIED] < 0)
                r = cgroup_open(ctx->tree, name, &s->group);
        if (r == 0 && ctx->tree)
                r = cgroup_kill(&s->group);
        /* For a process that is not our child: cgroup_kill returns before its processes are gone. */
        if (r == 0 && ctx->tree && s->pidfd < 0)
                r = cgroup_wait_empty(&s->group);
        if (r == -ENOENT)
                r = 0;
        if (r == 0 && s->pidfd >= 0) {
                r = pidfd_kill(s->pidfd, SIGKILL);
                if (r == 0 || r == -ESRCH)
                        r = pidfd_wait(s->pidfd, &status);
                if (r == -ECHILD) /* someone else's child, or reaped before */
                        r = 0;
        }
        zygote_close(s);
        if (r == 0)
                r = zygote_drop_dir(ctx, s->uid_first);
        return r == 0 && ctx->tree ? cgroup_remove(ctx->tree, name) : r;
}

void zygote_close(struct zygote *s)
{
        s->pidfd = fd_close(s->pidfd);
        s->socket = fd_close(s->socket);
        cgroup_close(&s->group);
}
