/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/spawn.h"

static void try_later(uv_timer_t *t);
static void too_slow(uv_timer_t *t);

/* --- its end --- */

static void note_failure(struct nats_link *l, const char *why)
{
        bool was_ready = l->state == NATS_READY;

        (void) err_set(&l->failure, ERR_UNAVAILABLE, "NATS at %s: %s", l->where, why);
        if (!l->_ending && (was_ready || l->_tries == 0))
                log_fields(l->log, LOG_WARN, "no connection to NATS, trying again",
                           LOG_F_STR("address", str_from(l->where)),
                           LOG_F_STR("reason", str_from(why)));
}

static void wait_and_retry(struct nats_link *l)
{
        usec_t wait = NATS_BACKOFF_MIN << MIN_OF(l->_tries, 10U);

        l->state = NATS_DOWN;
        l->_tries++;
        wait = MIN_OF(wait, NATS_BACKOFF_MAX);
        (void) uv_timer_start(&l->_timer, try_later, wait / USEC_PER_MSEC, 0);
}

static void timer_closed(uv_handle_t *h)
{
        struct nats_link *l = container_of((uv_timer_t *) (void *) h, struct nats_link, _timer);

        l->ended(l);
}

/* Of stream and process, when nothing more will come. */
static void one_closed(struct nats_link *l)
{
        if (--l->_open > 0 || l->state != NATS_CLOSING)
                return;
        if (l->_ending)
                uv_close((uv_handle_t *) &l->_timer, timer_closed);
        else
                wait_and_retry(l);
}

void nats_link_drop(struct nats_link *l, const char *why)
{
        if (l->state == NATS_DOWN || l->state == NATS_CLOSING)
                return;
        note_failure(l, why);
        l->state = NATS_CLOSING;
        (void) uv_timer_stop(&l->_timer);
        if (l->_pid > 0)
                (void) kill(l->_pid, SIGKILL);
        stream_close(&l->_stream);
        l->lost(l);
}

void nats_link_end(struct nats_link *l)
{
        l->_ending = true;
        if (l->state == NATS_DOWN)
                uv_close((uv_handle_t *) &l->_timer, timer_closed);
        else
                nats_link_drop(l, "closed");
}

/* --- the process --- */

static void exit_closed(uv_handle_t *h)
{
        struct nats_link *l = container_of((uv_poll_t *) (void *) h, struct nats_link, _exit);

        l->_pidfd = fd_close(l->_pidfd);
        one_closed(l);
}

/* Its last words may still be in the socket: what it means is told by the socket's end. */
static void process_ended(uv_poll_t *poll, int status, int events)
{
        struct nats_link *l = container_of(poll, struct nats_link, _exit);
        siginfo_t info = { 0 };

        (void) status, (void) events;
        if (waitid(P_PIDFD, (id_t) l->_pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return;
        l->_pid = 0;
        uv_close((uv_handle_t *) poll, exit_closed);
}

static int watch_process(struct nats_link *l)
{
        int r;

        l->_pidfd = pidfd_open(l->_pid, 0);
        if (l->_pidfd < 0)
                return -errno;
        r = uv_poll_init(&l->loop->uv, &l->_exit, l->_pidfd);
        if (r == 0)
                r = uv_poll_start(&l->_exit, UV_READABLE, process_ended);
        return r;
}

static int start_process(struct nats_link *l, int socket)
{
        char *envp[] = { NULL };
        int r = spawn_program(&(struct spawn){ .argv = l->argv,
                                               .envp = envp,
                                               .fds = { socket, STDERR_FILENO, STDERR_FILENO },
                                               .die_with_parent = true },
                              &l->_pid);

        if (r == 0)
                r = watch_process(l);
        if (r < 0 && l->_pid > 0) {
                (void) kill(l->_pid, SIGKILL);
                (void) waitpid(l->_pid, NULL, 0);
                l->_pid = 0;
                l->_pidfd = fd_close(l->_pidfd);
        }
        return r;
}

/* --- input --- */

static void told_of_connection(struct nats_link *l, const struct nats_frame *f)
{
        char why[ERR_MESSAGE_MAX];

        if (f->head.what != 0) {
                (void) snprintf(why, sizeof(why), "%.*s", STR_ARG(f->first));
                return nats_link_drop(l, why);
        }
        if (l->state != NATS_STARTING)
                return nats_link_drop(l, "its process talks nonsense");
        (void) uv_timer_stop(&l->_timer);
        if (l->_tries > 0)
                log_fields(l->log, LOG_INFO, "connected to NATS again",
                           LOG_F_STR("address", str_from(l->where)));
        l->_tries = 0;
        l->state = NATS_READY;
        l->ready(l);
}

static void link_data(struct net_stream *s, char *p, size_t n)
{
        struct nats_link *l = container_of(s, struct nats_link, _stream);
        struct nats_frame f;
        ssize_t r = 0;

        buf_add(&l->_in, p, n);
        if (buf_failed(&l->_in))
                return nats_link_drop(l, "no memory for its answer");
        while (l->state != NATS_CLOSING && (r = nats_frame_read(buf_str(&l->_in), &f)) > 0) {
                if (f.head.request_id == 0)
                        told_of_connection(l, &f);
                else
                        l->answer(l, f);
                buf_consume(&l->_in, (size_t) r);
        }
        if (r < 0)
                nats_link_drop(l, "its process talks nonsense");
        buf_release(&l->_in);
}

static void link_eof(struct net_stream *s)
{
        nats_link_drop(container_of(s, struct nats_link, _stream), "its process has ended");
}

static void link_error(struct net_stream *s, int r)
{
        nats_link_drop(container_of(s, struct nats_link, _stream),
                       r == -EPIPE || r == -ECONNRESET ? "its process has ended" : strerror(-r));
}

static void link_drained(struct net_stream *s)
{
        struct nats_link *l = container_of(s, struct nats_link, _stream);

        if (l->state == NATS_READY)
                l->ready(l);
}

static void link_closed(struct net_stream *s)
{
        struct nats_link *l = container_of(s, struct nats_link, _stream);

        buf_done(&l->_in);
        one_closed(l);
}

static const struct net_stream_ops stream_ops = {
        .data = link_data,
        .eof = link_eof,
        .drained = link_drained,
        .error = link_error,
        .closed = link_closed,
};

/* --- output --- */

bool nats_link_has_room(const struct nats_link *l, size_t bytes)
{
        return l->state == NATS_READY && bytes + 4 * KiB <= buf_room(&l->_stream.out);
}

void nats_link_send(struct nats_link *l, struct nats_frame f)
{
        ASSERT(l->state == NATS_READY);
        nats_frame_add(&l->_stream.out, f);
        stream_queue_flush(&l->_stream);
}

/* --- starting --- */

static int start(struct nats_link *l)
{
        scoped(fd_closep) int ours = -EBADF, its = -EBADF;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        its = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        r = start_process(l, its);
        if (r < 0)
                return r;
        l->_open = 1;
        /* From here on the process is ended by nats_link_drop, or by a socket that is closed. */
        l->state = NATS_STARTING;
        buf_init(&l->_in, NATS_FRAME_MAX + NET_READ_SIZE);
        r = stream_open(&l->_stream, l->loop, TAKE_FD(ours), NATS_OUT_MAX, &stream_ops);
        if (r < 0)
                return r;
        l->_open++;
        stream_resume_reading(&l->_stream);
        return 0;
}

static void try_now(struct nats_link *l)
{
        int r = start(l);

        if (r == 0) {
                (void) uv_timer_start(&l->_timer, too_slow, l->patience / USEC_PER_MSEC, 0);
                return;
        }
        note_failure(l, strerror(-r));
        if (l->state == NATS_STARTING)
                l->state = NATS_CLOSING; /* until the process, which sees no socket, is gone */
        else
                wait_and_retry(l);
}

static void try_later(uv_timer_t *t)
{
        try_now(container_of(t, struct nats_link, _timer));
}

static void too_slow(uv_timer_t *t)
{
        nats_link_drop(container_of(t, struct nats_link, _timer), "it does not answer");
}

void nats_link_open(struct nats_link *l)
{
        l->_pidfd = -EBADF;
        (void) uv_timer_init(&l->loop->uv, &l->_timer);
        (void) err_set(&l->failure, ERR_UNAVAILABLE, "NATS at %s: not connected yet", l->where);
        try_now(l);
}
