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
#include "warden/refill.h"

/*
 * Theory of operation.
 *
 * The problem. Making a network namespace takes milliseconds, and hundreds of them while the kernel
 * destroys others: too long for the warden's loop. So a child of the warden makes and closes them, and
 * the warden holds copies of the descriptors of those that are ready.
 *
 * The invariant: both sides have the same queue of ready namespaces per kind. The process announces each
 * (READY) in its order, the warden takes the oldest and says so (TAKEN). If the index does not match, the
 * process exits rather than to go on with a wrong idea of what is in use.
 *
 * While the warden is busy the process only listens; it refills the pool after a delay that gets shorter
 * the emptier the pool is (warden/refill.h).
 *
 * If the process dies, instances keep their networks, because their own processes are in the namespaces.
 * The warden drops its copies, starts another process, which adopts the namespaces in use and removes
 * everything else of ours. If the warden dies, the process is killed (PR_SET_PDEATHSIG); a lock file keeps
 * the process of the next warden from installing its rules before the old one is gone.
 */

#define LOCK        "net.lock"
#define FLUSH_AFTER (3 * USEC_PER_SEC)  /* of silence */
#define SWEEP_AFTER (60 * USEC_PER_SEC) /* after one was returned */
#define RETRY_AFTER USEC_PER_SEC
#define QUEUE_BYTES (8 * MiB) /* ten thousand messages: the warden does not wait for this process */

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

/* --- to the warden --- */

struct netns_process {
        int socket;
        struct netns_pool *pool;
        unsigned depth[NETNS_KINDS];     /* as in netns_pool_config */
        unsigned announced[NETNS_KINDS]; /* of those that are ready: the warden knows them */
        usec_t refill_at;
        usec_t quiet_since;
        usec_t returned_at; /* the first since the last sweep; 0: none */
        usec_t retry_at;    /* 0: no need */
};

/* Exits if the warden is gone. */
static void send_message(const struct netns_process *k, const struct netns_msg *m, int fd)
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
        send_message(k, &m, -EBADF);
}

/* --- from the warden --- */

static void take_message(struct netns_process *k, const struct netns_msg *m)
{
        usec_t delay = UINT64_MAX;
        struct pooled_netns item;

        k->quiet_since = clock_mono(&clock_system);
        if (m->kind >= NETNS_KINDS)
                _exit(1);
        if (m->what == NETNS_MSG_TAKEN) {
                if (netns_pool_take(k->pool, m->kind, &item) < 0 || item.index != m->index)
                        _exit(1);
                k->announced[m->kind]--;
                for (size_t i = 0; i < NETNS_KINDS; i++) /* the emptiest decides */
                        if (k->depth[i] > 0)
                                delay = MIN_OF(delay, refill_delay(k->announced[i], k->depth[i]));
                k->refill_at = k->quiet_since + delay;
        } else if (m->what == NETNS_MSG_RETURNED) {
                netns_pool_return(k->pool, &(struct pooled_netns){ m->kind, m->index, -EBADF });
                if (k->returned_at == 0)
                        k->returned_at = k->quiet_since;
        } else if (m->what == NETNS_MSG_SHUTDOWN) {
                _exit(netns_pool_teardown(k->pool) < 0 ? 1 : 0);
        }
}

/* --- work --- */

/* Milliseconds to listen before there is something to do; -1: until a message comes. */
static int listen_timeout(const struct netns_process *k, bool more)
{
        usec_t next = UINT64_MAX;

        if (more)
                return refill_timeout(k->refill_at);
        if (k->retry_at > 0)
                next = k->retry_at;
        if (netns_pool_n_returned(k->pool) > 0)
                next = MIN_OF(next, k->quiet_since + FLUSH_AFTER);
        if (k->returned_at > 0)
                next = MIN_OF(next, k->returned_at + SWEEP_AFTER);
        return next == UINT64_MAX ? -1 : refill_timeout(next);
}

/* Makes or closes some namespaces, and announces those that are ready or why there are none. Returns whether there may
 * be more to do. */
static bool step(struct netns_process *k)
{
        int r = netns_pool_step(k->pool);
        struct pooled_netns item;
        struct err e;

        if (r == -EBUSY && netns_pool_sweep(k->pool) > 0)
                return true;
        if (r < 0)
                k->retry_at = clock_mono(&clock_system) + RETRY_AFTER;
        for (int i = 0; i < NETNS_KINDS; i++) {
                const enum netns_kind kind = (enum netns_kind) i;
                const int error = r < 0 ? netns_pool_error(k->pool, kind) : 0;

                if (error == -EBUSY)
                        (void) err_set(&e, ERR_EXHAUSTED, "all of them are in use");
                else if (error < 0)
                        (void) err_errno(&e, error, "make one");
                if (error < 0)
                        send_failure(k, kind, &e, false);
        }
        for (int i = 0; i < NETNS_KINDS; i++)
                while (netns_pool_peek(k->pool, (enum netns_kind) i, k->announced[i], &item) == 0) {
                        const struct netns_msg m = { .what = NETNS_MSG_READY,
                                                     .kind = item.kind,
                                                     .index = item.index };

                        send_message(k, &m, item.fd);
                        k->announced[i]++;
                }
        return r > 0;
}

never_returns static void run(struct netns_process *k)
{
        bool more = true;

        for (;;) {
                struct pollfd p = { .fd = k->socket, .events = POLLIN };
                struct netns_msg m;
                usec_t now;
                int fd, r;

                if (poll(&p, 1, listen_timeout(k, more)) < 0 && errno != EINTR)
                        _exit(1);
                if (p.revents != 0) {
                        r = netns_process_receive(k->socket, &m, &fd, MSG_DONTWAIT);
                        if (r <= 0 && r != -EAGAIN)
                                _exit(r == 0 ? 0 : 1);
                        if (r > 0)
                                take_message(k, &m);
                        more = true;
                        continue;
                }
                now = clock_mono(&clock_system);
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
                more = step(k);
        }
}

/* --- start --- */

never_returns static void become(const struct netns_pool_config *c, int socket, int data,
                                 pid_t warden)
{
        struct netns_process k = { .quiet_since = clock_mono(&clock_system) };
        int *const kept[] = { &socket, &data };
        struct netns_msg m;
        struct err e;
        int fd, lock;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != warden
            || fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(1);
        (void) prctl(PR_SET_NAME, "hutch-netns");
        k.socket = socket;
        memcpy(k.depth, c->depth, sizeof(k.depth));
        if (netns_pool_open(c, &k.pool, &e) < 0) {
                for (int i = 0; i < NETNS_KINDS; i++)
                        send_failure(&k, (enum netns_kind) i, &e, false);
                _exit(1);
        }
        do {
                if (netns_process_receive(socket, &m, &fd, 0) <= 0)
                        _exit(0);
                if (m.what == NETNS_MSG_ADOPT && fd >= 0
                    && netns_pool_adopt(k.pool, &(struct pooled_netns){ m.kind, m.index, fd }) < 0)
                        (void) fd_close(fd);
        } while (m.what != NETNS_MSG_START);
        /* Held until it exits. The process of a killed warden dies with it, so this is short. */
        lock = openat(data, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (lock < 0 || flock(lock, LOCK_EX) < 0)
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
        pid = clone_child(&(struct clone_child){ .cgroup = -EBADF }, ret_pidfd);
        if (pid == 0)
                become(c, theirs, data, warden);
        if (pid < 0)
                return pid;
        *ret_socket = TAKE_FD(ours);
        return 0;
}
