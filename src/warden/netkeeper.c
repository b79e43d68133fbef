/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netkeeper.h"

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
#include "warden/patience.h"

#define LOCK        "net.lock"
#define FLUSH_AFTER (3 * USEC_PER_SEC)  /* nothing came or went for so long */
#define SWEEP_AFTER (60 * USEC_PER_SEC) /* one came back */
#define RETRY_AFTER USEC_PER_SEC
#define QUEUE_BYTES (8 * MiB) /* ten thousand messages: nobody is to wait for a busy keeper */

/* --- messages --- */

int netkeeper_send(int socket, const struct netkeeper_message *m, int fd, int flags)
{
        ssize_t n = fd_pass_send(socket, str_of((const char *) m, sizeof(*m)), &fd, fd >= 0, flags);

        return n < 0 ? (int) n : 0;
}

int netkeeper_receive(int socket, struct netkeeper_message *ret, int *ret_fd, int flags)
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

/* --- the keeper --- */

struct keeper {
        int socket;
        struct netpool *pool;
        unsigned depth[NETPOOL_KINDS]; /* as in netpool_config */
        unsigned shown[NETPOOL_KINDS]; /* of those that are ready: known to the warden */
        usec_t rests_until;
        usec_t quiet_since;
        usec_t returned_at; /* the first since the last sweep; 0: none */
        usec_t retry_at;    /* 0: no need */
};

/* Nobody is left to tell, or to work for. */
static void tell(const struct keeper *k, const struct netkeeper_message *m, int fd)
{
        if (netkeeper_send(k->socket, m, fd, 0) < 0)
                _exit(1);
}

static void tell_trouble(const struct keeper *k, enum netpool_kind kind, const struct err *e,
                         bool for_good)
{
        struct netkeeper_message m = {
                .what = NETKEEPER_TROUBLE, .kind = kind, .for_good = for_good, .code = e->code
        };

        (void) snprintf(m.text, sizeof(m.text), "%.*s", (int) sizeof(m.text) - 1, e->message);
        tell(k, &m, -EBADF);
}

static void show_ready(struct keeper *k)
{
        for (int kind = 0; kind < NETPOOL_KINDS; kind++) {
                struct netpool_item item;

                while (netpool_look(k->pool, (enum netpool_kind) kind, k->shown[kind], &item)
                       == 0) {
                        const struct netkeeper_message m = { .what = NETKEEPER_READY,
                                                             .kind = item.kind,
                                                             .index = item.index };

                        tell(k, &m, item.fd);
                        k->shown[kind]++;
                }
        }
}

/* The kind that lacks most decides. */
static usec_t rest(const struct keeper *k)
{
        usec_t shortest = UINT64_MAX;

        for (size_t i = 0; i < NETPOOL_KINDS; i++)
                if (k->depth[i] > 0)
                        shortest = MIN_OF(shortest, patience_of_pool(k->shown[i], k->depth[i]));
        return shortest;
}

/* Both sides have the same queue, so that an order in it is an order of both. */
static void note_taken(struct keeper *k, const struct netkeeper_message *m)
{
        struct netpool_item item;

        if (netpool_take(k->pool, m->kind, &item) < 0 || item.index != m->index)
                _exit(1);
        k->shown[m->kind]--;
        k->rests_until = k->quiet_since + rest(k);
}

static void note_returned(struct keeper *k, const struct netkeeper_message *m)
{
        netpool_return(k->pool, &(struct netpool_item){ m->kind, m->index, -EBADF });
        if (k->returned_at == 0)
                k->returned_at = clock_mono(&clock_system);
}

static void hear(struct keeper *k, const struct netkeeper_message *m)
{
        k->quiet_since = clock_mono(&clock_system);
        if (m->kind >= NETPOOL_KINDS)
                _exit(1);
        if (m->what == NETKEEPER_TAKEN)
                note_taken(k, m);
        else if (m->what == NETKEEPER_RETURNED)
                note_returned(k, m);
        else if (m->what == NETKEEPER_END)
                _exit(netpool_withdraw(k->pool) < 0 ? 1 : 0);
}

/* Milliseconds until there is something to do without being told; -1: never. */
static int patience(const struct keeper *k, usec_t now)
{
        usec_t next = UINT64_MAX;

        if (k->retry_at > 0)
                next = k->retry_at;
        if (netpool_returned(k->pool) > 0)
                next = MIN_OF(next, k->quiet_since + FLUSH_AFTER);
        if (k->returned_at > 0)
                next = MIN_OF(next, k->returned_at + SWEEP_AFTER);
        if (next == UINT64_MAX)
                return -1;
        return next <= now ? 0 : (int) ((next - now) / USEC_PER_MSEC) + 1;
}

/* How long to listen before there is work to do. */
static int listen_for(const struct keeper *k, bool more)
{
        usec_t now = clock_mono(&clock_system);

        if (!more)
                return patience(k, now);
        if (now >= k->rests_until)
                return 0;
        return (int) ((k->rests_until - now) / USEC_PER_MSEC) + 1;
}

static void do_what_is_due(struct keeper *k, usec_t now)
{
        if (netpool_returned(k->pool) > 0 && now >= k->quiet_since + FLUSH_AFTER)
                (void) !netpool_flush(k->pool);
        if (k->returned_at > 0 && now >= k->returned_at + SWEEP_AFTER) {
                k->returned_at = 0;
                (void) !netpool_sweep(k->pool);
        }
        if (k->retry_at > 0 && now >= k->retry_at) {
                k->retry_at = 0;
                netpool_retry(k->pool);
        }
}

static void tell_troubles(struct keeper *k)
{
        for (int i = 0; i < NETPOOL_KINDS; i++) {
                const enum netpool_kind kind = (enum netpool_kind) i;
                int r = netpool_trouble(k->pool, kind);
                struct err e;

                if (r == 0)
                        continue;
                if (r == -EBUSY)
                        (void) err_set(&e, ERR_EXHAUSTED, "all of them are in use");
                else
                        (void) err_errno(&e, r, "make one");
                tell_trouble(k, kind, &e, false);
        }
}

/* Whether there may be more to do. */
static bool work(struct keeper *k)
{
        int r = netpool_step(k->pool);

        if (r == -EBUSY && netpool_sweep(k->pool) > 0)
                return true;
        if (r < 0) {
                tell_troubles(k);
                k->retry_at = clock_mono(&clock_system) + RETRY_AFTER;
        }
        show_ready(k);
        return r > 0;
}

never_returns static void run(struct keeper *k)
{
        bool more = true;

        for (;;) {
                struct pollfd p = { .fd = k->socket, .events = POLLIN };
                struct netkeeper_message m;
                int fd, r;

                if (poll(&p, 1, listen_for(k, more)) < 0 && errno != EINTR)
                        _exit(1);
                if (p.revents != 0) {
                        r = netkeeper_receive(k->socket, &m, &fd, MSG_DONTWAIT);
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

static void adopt(struct keeper *k, const struct netkeeper_message *m, int fd)
{
        const struct netpool_item item = { m->kind, m->index, fd };

        if (fd >= 0 && netpool_adopt(k->pool, &item) < 0)
                (void) fd_close(fd);
}

static void wait_for_start(struct keeper *k)
{
        struct netkeeper_message m;
        int fd;

        do {
                if (netkeeper_receive(k->socket, &m, &fd, 0) <= 0)
                        _exit(0);
                if (m.what == NETKEEPER_ADOPT)
                        adopt(k, &m, fd);
        } while (m.what != NETKEEPER_START);
}

/* The keeper of a warden that was killed may not have noticed yet, and would take away rules that we put
 * in place. It is killed with its warden, so that this does not take long. */
static int lock(int data)
{
        int fd = openat(data, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 || flock(fd, LOCK_EX) < 0 ? -errno : 0;
}

never_returns static void become(const struct netpool_config *c, int socket, int data, pid_t warden)
{
        struct keeper k = { .quiet_since = clock_mono(&clock_system) };
        int *const kept[] = { &socket, &data };
        struct err e;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != warden
            || fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(1);
        (void) prctl(PR_SET_NAME, "hutch-netkeeper");
        k.socket = socket;
        memcpy(k.depth, c->depth, sizeof(k.depth));
        if (netpool_open(c, &k.pool, &e) < 0) {
                for (int i = 0; i < NETPOOL_KINDS; i++)
                        tell_trouble(&k, (enum netpool_kind) i, &e, false);
                _exit(1);
        }
        wait_for_start(&k);
        if (lock(data) < 0)
                _exit(1);
        if (netpool_start(k.pool, &e) < 0)
                tell_trouble(&k, NETPOOL_PRIVATE, &e, true);
        run(&k);
}

int netkeeper_start(const struct netpool_config *c, int data, int *ret_socket, int *ret_pidfd)
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
