/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netns_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/fd_pass.h"
#include "warden/refill.h"

#define LOCK        "net.lock"
#define FLUSH_AFTER (3 * USEC_PER_SEC)  /* nothing came or went for so long */
#define SWEEP_AFTER (60 * USEC_PER_SEC) /* one came back */
#define RETRY_AFTER USEC_PER_SEC
#define QUEUE_BYTES \
        (8 * MiB) /* ten thousand messages: nobody is to wait for a busy netns_process */

/* --- messages --- */

int netns_process_send(int socket, const struct netns_msg *m, int fd, int flags)
{
        ssize_t n = fd_pass_send(socket, str_of((const char *) m, sizeof(*m)), &fd, fd >= 0, flags);

        return n < 0 ? (int) n : 0;
}

int netns_process_receive(int socket, struct netns_msg *ret, int *ret_fd, int flags)
{
        int fd = -EBADF;
        struct fd_pass_msg m = { .p = ret, .size = sizeof(*ret), .fds = &fd, .fds_max = 1 };
        ssize_t n = fd_pass_receive(socket, &m, flags);

        *ret_fd = -EBADF;
        if (n <= 0)
                return n == -ECONNRESET ? 0 : (int) n;
        if (n != sizeof(*ret)) {
                (void) fd_close(fd);
                return -EBADMSG;
        }
        *ret_fd = fd;
        return 1;
}

/* --- the netns_process --- */

struct netns_process {
        int socket;
        struct netns_pool *pool;
        unsigned depth[NETNS_KINDS]; /* as in netns_pool_config */
        unsigned shown[NETNS_KINDS]; /* of those that are ready: known to the warden */
        usec_t rests_until;
        usec_t quiet_since;
        usec_t returned_at; /* the first since the last sweep; 0: none */
        usec_t retry_at;    /* 0: no need */
};

/* Nobody is left to tell, or to work for. */
static void tell(const struct netns_process *k, const struct netns_msg *m, int fd)
{
        if (netns_process_send(k->socket, m, fd, 0) < 0)
                _exit(1);
}

static void send_failure(const struct netns_process *k, enum netns_kind kind, const struct err *e,
                         bool permanent)
{
        struct netns_msg m = {
                .what = NETNS_MSG_FAILED, .kind = kind, .permanent = permanent, .code = e->code
        };

        (void) snprintf(m.text, sizeof(m.text), "%.*s", (int) sizeof(m.text) - 1, e->message);
        tell(k, &m, -EBADF);
}

static void show_ready(struct netns_process *k)
{
        for (int kind = 0; kind < NETNS_KINDS; kind++) {
                struct pooled_netns item;

                while (netns_pool_peek(k->pool, (enum netns_kind) kind, k->shown[kind], &item)
                       == 0) {
                        const struct netns_msg m = { .what = NETNS_MSG_READY,
                                                     .kind = item.kind,
                                                     .index = item.index };

                        tell(k, &m, item.fd);
                        k->shown[kind]++;
                }
        }
}

/* The kind that lacks most decides. */
static usec_t rest(const struct netns_process *k)
{
        usec_t shortest = UINT64_MAX;

        for (size_t i = 0; i < NETNS_KINDS; i++)
                if (k->depth[i] > 0)
                        shortest = MIN_OF(shortest, refill_delay(k->shown[i], k->depth[i]));
        return shortest;
}

/* Both sides have the same queue, so that an order in it is an order of both. */
static void note_taken(struct netns_process *k, const struct netns_msg *m)
{
        struct pooled_netns item;

        if (netns_pool_take(k->pool, m->kind, &item) < 0 || item.index != m->index)
                _exit(1);
        k->shown[m->kind]--;
        k->rests_until = k->quiet_since + rest(k);
}

static void note_returned(struct netns_process *k, const struct netns_msg *m)
{
        netns_pool_return(k->pool, &(struct pooled_netns){ m->kind, m->index, -EBADF });
        if (k->returned_at == 0)
                k->returned_at = clock_mono(&clock_system);
}

static void hear(struct netns_process *k, const struct netns_msg *m)
{
        k->quiet_since = clock_mono(&clock_system);
        if (m->kind >= NETNS_KINDS)
                _exit(1);
        if (m->what == NETNS_MSG_TAKEN)
                note_taken(k, m);
        else if (m->what == NETNS_MSG_RETURNED)
                note_returned(k, m);
        else if (m->what == NETNS_MSG_SHUTDOWN)
                _exit(netns_pool_teardown(k->pool) < 0 ? 1 : 0);
}

/* Milliseconds until there is something to do without being told; -1: never. */
static int idle_timeout(const struct netns_process *k, usec_t now)
{
        usec_t next = UINT64_MAX;

        if (k->retry_at > 0)
                next = k->retry_at;
        if (netns_pool_n_returned(k->pool) > 0)
                next = MIN_OF(next, k->quiet_since + FLUSH_AFTER);
        if (k->returned_at > 0)
                next = MIN_OF(next, k->returned_at + SWEEP_AFTER);
        if (next == UINT64_MAX)
                return -1;
        return next <= now ? 0 : (int) ((next - now) / USEC_PER_MSEC) + 1;
}

/* How long to listen before there is work to do. */
static int listen_for(const struct netns_process *k, bool more)
{
        usec_t now = clock_mono(&clock_system);

        if (!more)
                return idle_timeout(k, now);
        if (now >= k->rests_until)
                return 0;
        return (int) ((k->rests_until - now) / USEC_PER_MSEC) + 1;
}

static void do_what_is_due(struct netns_process *k, usec_t now)
{
        if (netns_pool_n_returned(k->pool) > 0 && now >= k->quiet_since + FLUSH_AFTER)
                (void) !netns_pool_flush(k->pool);
        if (k->returned_at > 0 && now >= k->returned_at + SWEEP_AFTER) {
                k->returned_at = 0;
                (void) !netns_pool_sweep(k->pool);
        }
        if (k->retry_at > 0 && now >= k->retry_at) {
                k->retry_at = 0;
                netns_pool_retry(k->pool);
        }
}

static void send_failures(struct netns_process *k)
{
        for (int i = 0; i < NETNS_KINDS; i++) {
                const enum netns_kind kind = (enum netns_kind) i;
                int r = netns_pool_error(k->pool, kind);
                struct err e;

                if (r == 0)
                        continue;
                if (r == -EBUSY)
                        (void) err_set(&e, ERR_EXHAUSTED, "all of them are in use");
                else
                        (void) err_errno(&e, r, "make one");
                send_failure(k, kind, &e, false);
        }
}

/* Whether there may be more to do. */
static bool work(struct netns_process *k)
{
        int r = netns_pool_step(k->pool);

        if (r == -EBUSY && netns_pool_sweep(k->pool) > 0)
                return true;
        if (r < 0) {
                send_failures(k);
                k->retry_at = clock_mono(&clock_system) + RETRY_AFTER;
        }
        show_ready(k);
        return r > 0;
}

never_returns static void run(struct netns_process *k)
{
        bool more = true;

        for (;;) {
                struct pollfd p = { .fd = k->socket, .events = POLLIN };
                struct netns_msg m;
                int fd, r;

                if (poll(&p, 1, listen_for(k, more)) < 0 && errno != EINTR)
                        _exit(1);
                if (p.revents != 0) {
                        r = netns_process_receive(k->socket, &m, &fd, MSG_DONTWAIT);
                        if (r <= 0 && r != -EAGAIN)
                                _exit(r == 0 ? 0 : 1);
                        if (r > 0)
                                hear(k, &m);
                        more = true;
                        continue;
                }
                do_what_is_due(k, clock_mono(&clock_system));
                more = work(k);
        }
}

/* --- its start --- */

static void adopt(struct netns_process *k, const struct netns_msg *m, int fd)
{
        const struct pooled_netns item = { m->kind, m->index, fd };

        if (fd >= 0 && netns_pool_adopt(k->pool, &item) < 0)
                (void) fd_close(fd);
}

static void wait_for_start(struct netns_process *k)
{
        struct netns_msg m;
        int fd;

        do {
                if (netns_process_receive(k->socket, &m, &fd, 0) <= 0)
                        _exit(0);
                if (m.what == NETNS_MSG_ADOPT)
                        adopt(k, &m, fd);
        } while (m.what != NETNS_MSG_START);
}

/* The netns_process of a warden that was killed may not have noticed yet, and would take away rules that we put
 * in place. It is killed with its warden, so that this does not take long. */
static int lock(int data)
{
        int fd = openat(data, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 || flock(fd, LOCK_EX) < 0 ? -errno : 0;
}

never_returns static void become(const struct netns_pool_config *c, int socket, int data,
                                 pid_t warden)
{
        struct netns_process k = { .quiet_since = clock_mono(&clock_system) };
        int *const kept[] = { &socket, &data };
        struct err e;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != warden
            || fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(1);
        (void) prctl(PR_SET_NAME, "hutch-netkeeper");
        k.socket = socket;
        memcpy(k.depth, c->depth, sizeof(k.depth));
        if (netns_pool_open(c, &k.pool, &e) < 0) {
                for (int i = 0; i < NETNS_KINDS; i++)
                        send_failure(&k, (enum netns_kind) i, &e, false);
                _exit(1);
        }
        wait_for_start(&k);
        if (lock(data) < 0)
                _exit(1);
        if (netns_pool_start(k.pool, &e) < 0)
                send_failure(&k, NETNS_KIND_PRIVATE, &e, true);
        run(&k);
}

int netns_process_start(const struct netns_pool_config *c, int data, int *ret_socket,
                        int *ret_pidfd)
{
        scoped(fd_closep) int ours = -EBADF, theirs = -EBADF;
        pid_t pid, warden = getpid();
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        for (int i = 0; i < 2; i++)
                if (setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &(int){ QUEUE_BYTES },
                               sizeof(int))
                    < 0)
                        return -errno;
        pid = clone_child(&(struct clone_child){ 0, -EBADF }, ret_pidfd);
        if (pid == 0)
                become(c, theirs, data, warden);
        if (pid < 0)
                return pid;
        *ret_socket = TAKE_FD(ours);
        return 0;
}
