/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/zygote_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/fd_pass.h"

/* The process, its socket, and its groups where there are any. */
#define FDS_MAX (2 + CGROUP_PART_MAX_)

/* Between two processes of the same program: as they are in memory. */
struct question {
        enum zygote_server_op work;
        uint32_t uid_first;
};

struct answer {
        struct question of;
        int result;
        pid_t pid;
        bool parts[CGROUP_PART_MAX_]; /* that have a descriptor, behind the first two */
};

/* --- in the nursery --- */

static size_t descriptors(const struct zygote *s, struct answer *a, int fds[static FDS_MAX])
{
        size_t n = 0;

        fds[n++] = s->pidfd;
        fds[n++] = s->socket;
        for (size_t i = 0; i < CGROUP_PART_MAX_; i++) {
                a->parts[i] = s->group.parts[i] >= 0;
                if (a->parts[i])
                        fds[n++] = s->group.parts[i];
        }
        return n;
}

static int answer(int socket, struct answer *a, const struct zygote *s)
{
        int fds[FDS_MAX];
        size_t n = s->pidfd >= 0 ? descriptors(s, a, fds) : 0;
        ssize_t sent = fd_pass_send(socket, str_of((const char *) a, sizeof(*a)), fds, n, 0);

        return sent < 0 ? (int) sent : 0;
}

static int work(const struct host_context *g, const struct question *q, struct zygote *ret)
{
        char name[ZYGOTE_CGROUP_MAX];

        if (q->work == ZYGOTE_SERVER_MAKE)
                return zygote_make(g, q->uid_first, ret);
        zygote_cgroup_name(q->uid_first, name);
        return g->tree ? cgroup_remove(g->tree, name) : 0;
}

never_returns static void run(const struct host_context *g, int socket)
{
        for (;;) {
                struct zygote s = ZYGOTE_NULL;
                struct answer a = { 0 };
                ssize_t n = recv(socket, &a.of, sizeof(a.of), 0);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n != sizeof(a.of))
                        _exit(n == 0 ? 0 : 1);
                a.result = work(g, &a.of, &s);
                a.pid = s.pid;
                if (answer(socket, &a, &s) < 0)
                        _exit(1);
                zygote_close(&s);
        }
}

/* The tree's descriptors are the warden's own, and are kept under new numbers. */
never_returns static void become(const struct host_context *ctx, int socket, pid_t warden)
{
        struct cgroup_tree tree = ctx->tree ? *ctx->tree : CGROUP_TREE_NULL;
        struct host_context g = *ctx;
        int *kept[3 + CGROUP_PART_MAX_];
        size_t n = 0;

        kept[n++] = &socket;
        kept[n++] = &g.data;
        kept[n++] = &g.agent;
        for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                if (tree.dirs[i] >= 0)
                        kept[n++] = &tree.dirs[i];
        g.tree = ctx->tree ? &tree : NULL;
        g.nursery = true;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != warden
            || fd_keep_only(kept, n) < 0)
                _exit(1);
        (void) prctl(PR_SET_NAME, "hutch-nursery");
        run(&g, socket);
}

/* --- in the warden --- */

int zygote_server_start(const struct host_context *g, int *ret_socket, int *ret_pidfd)
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
                become(g, theirs, warden);
        if (pid < 0)
                return pid;
        *ret_socket = TAKE_FD(ours);
        return 0;
}

int zygote_server_request(int socket, enum zygote_server_op work, uint32_t uid_first)
{
        const struct question q = { work, uid_first };
        ssize_t n = send(socket, &q, sizeof(q), MSG_DONTWAIT | MSG_NOSIGNAL);

        return n < 0 ? -errno : 0;
}

static size_t count_of(const struct answer *a)
{
        size_t n = 2;

        if (a->result < 0 || a->of.work == ZYGOTE_SERVER_REMOVE)
                return 0;
        for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                n += a->parts[i];
        return n;
}

static void take(struct zygote *s, const struct answer *a, const int *fds)
{
        s->pidfd = *fds++;
        s->socket = *fds++;
        for (size_t i = 0; i < CGROUP_PART_MAX_; i++)
                if (a->parts[i])
                        s->group.parts[i] = *fds++;
}

/* Descriptors that do not fit what was said are closed. */
int zygote_server_receive(int socket, struct zygote_server_reply *ret)
{
        int fds[FDS_MAX];
        struct answer a;
        struct fd_pass_msg m = { .p = &a, .size = sizeof(a), .fds = fds, .fds_max = FDS_MAX };
        ssize_t n = fd_pass_receive(socket, &m, MSG_DONTWAIT);

        *ret = (struct zygote_server_reply){ .zygote = ZYGOTE_NULL };
        if (n <= 0)
                return n == -ECONNRESET ? 0 : (int) n;
        if (n != sizeof(a) || m.cut || m.n_fds != count_of(&a)) {
                for (size_t i = 0; i < m.n_fds; i++)
                        (void) fd_close(fds[i]);
                return -EBADMSG;
        }
        ret->work = a.of.work;
        ret->result = a.result;
        ret->zygote.uid_first = a.of.uid_first;
        ret->zygote.pid = a.pid;
        if (m.n_fds > 0)
                take(&ret->zygote, &a, fds);
        return 1;
}
