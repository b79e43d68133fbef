/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/zygote_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"

/*
 * Theory of operation.
 *
 * The problem. Making a zygote takes milliseconds, and a fork of the warden copies, and then closes, a
 * descriptor for every sandbox. Removing a cgroup takes as long on a busy host, because the kernel
 * visits every mounted file system under a lock that all cgroups share. In the warden's loop both would
 * delay every client.
 *
 * The server is forked before there are any sandboxes, so its own forks stay cheap. It does one thing at
 * a time, in the order of the requests, and keeps no state: which uid range is in use is the warden's
 * knowledge (zygote_pool.c), and the names of cgroups and directories follow from the uid range.
 *
 * The invariant: a zygote is a child of the warden (CLONE_PARENT), never of the server. So the warden
 * can reap it, and it survives a server that is killed.
 *
 * If the server dies, replies to pending requests are missing. A zygote whose descriptors did not arrive
 * sees the end of its socket and exits; the warden finds it by the name of its cgroup and removes it
 * (zygote_pool.c), and the next request starts another server. If the warden dies, the server is killed
 * (PR_SET_PDEATHSIG), and the next warden removes leftover cgroups and directories (adopt.c).
 *
 * Both ends are the same program, so messages are structs as they are in memory.
 */

#define FDS_MAX (2 + CGROUP_PART_MAX_) /* pidfd, socket, cgroups */

struct request {
        enum zygote_server_op op;
        uint32_t uid_first;
};

struct reply {
        struct request request;
        int result;
        pid_t pid;
        bool parts[CGROUP_PART_MAX_]; /* which cgroups have a descriptor, behind the first two */
};

/* --- in the server --- */

static int send_reply(int socket, struct reply *a, const struct zygote *s)
{
        int fds[FDS_MAX] = { s->pidfd, s->socket };
        size_t n = 2;
        ssize_t sent;

        for (size_t i = 0; i < CGROUP_PART_MAX_; i++) {
                a->parts[i] = s->group.parts[i] >= 0;
                if (a->parts[i])
                        fds[n++] = s->group.parts[i];
        }
        sent = fd_pass_send(socket, str_of((const char *) a, sizeof(*a)), fds,
                            s->pidfd >= 0 ? n : 0, 0);
        return sent < 0 ? (int) sent : 0;
}

/* Pages that can't be reclaimed now are left to the kernel. */
static int remove_cgroup(const struct cgroup_tree *tree, uint32_t uid_first)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        char name[ZYGOTE_CGROUP_MAX];

        zygote_cgroup_name(uid_first, name);
        if (cgroup_open(tree, name, &g) == 0)
                (void) !cgroup_reclaim(tree, &g);
        return cgroup_remove(tree, name);
}

/* fd_keep_only renumbers the descriptors that stay: those of the tree are copied for that. */
never_returns static void serve(const struct host_context *given, int socket, pid_t warden)
{
        struct cgroup_tree tree = given->tree ? *given->tree : CGROUP_TREE_NULL;
        struct host_context ctx = *given;
        int *kept[3 + CGROUP_PART_MAX_] = { &socket, &ctx.data, &ctx.agent };
        size_t n_kept = 3;

        for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                if (tree.dirs[i] >= 0)
                        kept[n_kept++] = &tree.dirs[i];
        ctx.tree = given->tree ? &tree : NULL;
        ctx.for_parent = true;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != warden
            || fd_keep_only(kept, n_kept) < 0)
                _exit(1);
        (void) prctl(PR_SET_NAME, "hutch-zygoted");
        for (;;) {
                struct zygote s = ZYGOTE_NULL;
                struct reply a = { 0 };
                ssize_t n = recv(socket, &a.request, sizeof(a.request), 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n != sizeof(a.request))
                        _exit(n == 0 ? 0 : 1);
                if (a.request.op == ZYGOTE_SERVER_MAKE)
                        a.result = zygote_make(&ctx, a.request.uid_first, &s);
                else
                        a.result = ctx.tree ? remove_cgroup(ctx.tree, a.request.uid_first) : 0;
                a.pid = s.pid;
                if (send_reply(socket, &a, &s) < 0)
                        _exit(1);
                zygote_close(&s);
        }
}

/* --- in the warden --- */

int zygote_server_start(const struct host_context *ctx, int *ret_socket, int *ret_pidfd)
{
        scoped(fd_closep) int ours = -EBADF, theirs = -EBADF;
        pid_t pid, warden = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        pid = clone_child(&(struct clone_child){ .cgroup = -EBADF }, ret_pidfd);
        if (pid == 0)
                serve(ctx, theirs, warden);
        if (pid < 0)
                return pid;
        *ret_socket = TAKE_FD(ours);
        return 0;
}

int zygote_server_request(int socket, enum zygote_server_op op, uint32_t uid_first)
{
        const struct request q = { op, uid_first };
        ssize_t n = send(socket, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL);

        return n < 0 ? -errno : 0;
}

int zygote_server_receive(int socket, struct zygote_server_reply *ret)
{
        int fds[FDS_MAX];
        const int *next = fds;
        struct reply a;
        struct fd_pass_msg m = { .p = &a, .size = sizeof(a), .fds = fds, .fds_max = FDS_MAX };
        ssize_t n = fd_pass_receive(socket, &m, MSG_DONTWAIT);
        size_t expected = 0;

        *ret = (struct zygote_server_reply){ .zygote = ZYGOTE_NULL };
        if (n <= 0)
                return n == -ECONNRESET ? 0 : (int) n;
        if (n == sizeof(a) && a.result >= 0 && a.request.op == ZYGOTE_SERVER_MAKE) {
                expected = 2;
                for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                        expected += a.parts[i];
        }
        if (n != sizeof(a) || m.cut || m.n_fds != expected) {
                for (size_t i = 0; i < m.n_fds; i++)
                        (void) fd_close(fds[i]);
                return -EBADMSG;
        }
        ret->op = a.request.op;
        ret->result = a.result;
        ret->zygote.uid_first = a.request.uid_first;
        ret->zygote.pid = a.pid;
        if (m.n_fds == 0)
                return 1;
        ret->zygote.pidfd = *next++;
        ret->zygote.socket = *next++;
        for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                if (a.parts[i])
                        ret->zygote.group.parts[i] = *next++;
        return 1;
}
