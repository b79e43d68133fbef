/* SPDX-License-Identifier: Apache-2.0 */
#include "net/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/spawn.h"

/*
 * Theory of operation.
 *
 * The problem. hutchd is one thread and unprivileged; whatever blocks, needs a thread or a privilege
 * runs in a helper process. Such a process can hang, crash, send invalid data or be killed at any
 * time, while any number of operations wait for it.
 *
 * The invariant. A worker is two parts, a connection and (if spawned) a process, counted by _open.
 * Whichever ends first leads to lose(), which closes the connection and makes sure that the process
 * ends; when both parts are gone, gone() runs, once. Only there do requests fail, and only from
 * there is the next process started. So at most one process exists, and a request that failed is not
 * being carried out any more.
 *
 * Order of a start: socket pair, spawn, pidfd watched, channel opened, `connected`. Messages may be sent
 * before the process runs: the socket keeps the bytes.
 *
 * Order of an end, spawned:
 *   - The process exits. Its last messages are still in the socket: they are read first, then lose().
 *   - The connection ends (EOF, error, worker_fail, start timeout). lose() closes our end, which an
 *     orderly process takes as the order to exit; SIGKILL follows after exit_timeout, or at once if
 *     it broke the protocol.
 * The error that callers see is the owner's, if it set one (worker_fail), otherwise the exit status, which
 * is more specific than a closed connection.
 *
 * A crash of hutchd closes the connection; the process sees EOF and ends (die_with_parent: is killed).
 *
 * The inherited socket has no process to watch. The new process announces itself in the stream of
 * packets, after everything the old one has sent, so replies cannot be confused; output that was
 * queued for the old one is dropped before the hello.
 */

static void start(struct worker *w);
static void send_waiting(struct worker *w);

static void move_all(struct list *to, struct list *from)
{
        list_for_each (n, from) {
                list_remove(n);
                list_append(to, n);
        }
}

/* --- requests --- */

static struct worker_request *request_of(struct list *n)
{
        return container_of(n, struct worker_request, _node);
}

struct worker_request *worker_request_get(const struct worker *w, uint64_t id)
{
        struct map_node *n = map_get(&w->_by_id, str_of((const char *) &id, sizeof(id)));

        return n ? container_of(n, struct worker_request, _by_id) : NULL;
}

void worker_request_init(struct worker *w, struct worker_request *r,
                         void (*failed)(struct worker_request *r, const struct err *e))
{
        ASSERT(!r->_worker);
        *r = (struct worker_request){ .id = worker_next_id(w),
                                      .retry = r->retry,
                                      .failed = failed,
                                      ._worker = w,
                                      ._fd = -EBADF };
        list_init(&r->_node);
        timeout_init(&r->_timeout);
        buf_init(&r->_bytes, w->config.frame_max);
        buf_mark_secret(&r->_bytes);
}

void worker_request_end(struct worker_request *r)
{
        struct worker *w = r->_worker;

        if (!w)
                return;
        list_remove(&r->_node);
        map_remove(&w->_by_id, &r->_by_id);
        timeout_clear(&r->_timeout);
        buf_done(&r->_bytes);
        r->_worker = NULL;
}

static void request_fail(struct worker_request *r, const struct err *e)
{
        worker_request_end(r);
        r->failed(r, e);
}

static void request_timeout(struct timeout *t)
{
        struct worker_request *r = container_of(t, struct worker_request, _timeout);
        struct err e;

        (void) err_set(&e, ERR_UNAVAILABLE, "%s does not answer", r->_worker->config.name);
        r->timed_out = r->_sent;
        request_fail(r, &e);
}

static void refuse(struct worker_request *r)
{
        struct worker *w = r->_worker;

        list_remove(&r->_node);
        list_append(&w->_refused, &r->_node);
        net_task_queue(w->loop, &w->_refuse);
}

static void run_refuse(struct net_task *t)
{
        struct worker *w = container_of(t, struct worker, _refuse);
        struct err error = w->error, e; /* `failed` may start the next attempt */
        struct list todo;

        list_init(&todo);
        move_all(&todo, &w->_refused);
        for (struct list *n; (n = list_first(&todo));) {
                struct worker_request *r = request_of(n);

                e = error;
                if (r->_refusal == ERR_TOO_LARGE)
                        (void) err_set(&e, ERR_TOO_LARGE, "the request is too large");
                else if (r->_refusal == ERR_EXHAUSTED)
                        (void) err_set(&e, ERR_EXHAUSTED, "no file descriptor is free");
                request_fail(r, &e);
        }
}

/* The channel takes the descriptor; the caller keeps its own. */
static void hand_over(struct worker_request *r, struct str bytes)
{
        struct worker *w = r->_worker;
        int fd = r->_fd < 0 ? -EBADF : fcntl(r->_fd, F_DUPFD_CLOEXEC, 3);

        if (r->_fd >= 0 && fd < 0) {
                r->_refusal = ERR_EXHAUSTED;
                return refuse(r);
        }
        channel_send(&w->_channel, bytes, fd);
        r->_sent = true;
        list_remove(&r->_node);
        list_append(&w->_sent, &r->_node);
}

static void send_waiting(struct worker *w)
{
        struct list *first;

        while (w->state == WORKER_READY && (first = list_first(&w->_waiting))
               && channel_has_room(&w->_channel, request_of(first)->_bytes.n)) {
                struct worker_request *r = request_of(first);

                hand_over(r, buf_str(&r->_bytes));
                if (!r->retry)
                        buf_done(&r->_bytes);
        }
}

void worker_request_send(struct worker_request *r, struct str bytes, int fd)
{
        struct worker *w = r->_worker;

        r->_fd = fd;
        map_add(&w->_by_id, &r->_by_id, str_of((const char *) &r->id, sizeof(r->id)));
        if (w->config.request_timeout)
                timeout_set(&r->_timeout, &w->_timeouts);
        if (bytes.n == 0 || bytes.n > w->config.frame_max)
                r->_refusal = ERR_TOO_LARGE;
        if (r->_refusal || w->state == WORKER_DOWN || w->state == WORKER_ENDING)
                return refuse(r);
        if (!r->retry && list_empty(&w->_waiting) && worker_has_room(w, bytes.n))
                return hand_over(r, bytes);
        buf_add_str(&r->_bytes, bytes);
        list_append(&w->_waiting, &r->_node);
        send_waiting(w);
}

void worker_post(struct worker *w, struct str bytes)
{
        if (w->_channel_open)
                channel_send(&w->_channel, bytes, -EBADF);
}

bool worker_has_room(const struct worker *w, size_t n)
{
        return w->state == WORKER_READY && channel_has_room(&w->_channel, n);
}

/* --- the end of a process --- */

static void run_closed(struct net_task *t)
{
        struct worker *w = container_of(t, struct worker, _closed);

        map_done(&w->_by_id);
        w->ops->closed(w);
}

/* The timers close in this iteration of the loop, in whatever order; the memory goes in the next. */
static void timer_closed(uv_handle_t *h)
{
        struct worker *w = container_of((uv_timer_t *) (void *) h, struct worker, _timer);

        net_task_queue(w->loop, &w->_closed);
}

static void close_timers(struct worker *w)
{
        timeout_kind_close(&w->_timeouts);
        uv_close((uv_handle_t *) &w->_timer, timer_closed);
}

static void retry_now(uv_timer_t *t)
{
        start(container_of(t, struct worker, _timer));
}

static void gone(struct worker *w)
{
        bool inherited = !w->config.argv && !w->config.address;
        usec_t delay = backoff_next(&w->backoff);

        w->state = WORKER_DOWN;
        (void) uv_timer_stop(&w->_timer);
        if (w->_closing)
                return close_timers(w);
        if (!inherited)
                (void) uv_timer_start(&w->_timer, retry_now, delay / USEC_PER_MSEC, 0);
        move_all(&w->_refused, &w->_sent);
        move_all(&w->_refused, &w->_waiting);
        if (w->ops->lost)
                w->ops->lost(w);
        if (!w->_closing)
                run_refuse(&w->_refuse);
}

static void part_closed(struct worker *w)
{
        if (--w->_open == 0 && w->state == WORKER_ENDING)
                gone(w);
}

static void kill_now(uv_timer_t *t)
{
        struct worker *w = container_of(t, struct worker, _timer);

        if (w->_pid > 0)
                (void) kill(w->_pid, SIGKILL);
}

/* `error` is set. */
static void lose(struct worker *w, bool at_once)
{
        if (w->state == WORKER_DOWN || w->state == WORKER_ENDING)
                return;
        w->state = WORKER_ENDING;
        (void) uv_timer_stop(&w->_timer);
        if (w->_channel_open)
                channel_close(&w->_channel);
        if (w->_pid > 0 && (at_once || w->config.exit_timeout == 0))
                (void) kill(w->_pid, SIGKILL);
        else if (w->_pid > 0)
                (void) uv_timer_start(&w->_timer, kill_now, w->config.exit_timeout / USEC_PER_MSEC,
                                      0);
}

void worker_fail(struct worker *w, const char *fmt, ...)
{
        char reason[ERR_MESSAGE_MAX];
        va_list ap;

        if (w->state == WORKER_DOWN || w->state == WORKER_ENDING)
                return;
        va_start(ap, fmt);
        (void) vsnprintf(reason, sizeof(reason), fmt, ap);
        va_end(ap);
        (void) err_set(&w->error, ERR_UNAVAILABLE, "%s: %s", w->config.name, reason);
        w->_explained = true;
        lose(w, /* at_once= */ true);
}

static void start_timed_out(uv_timer_t *t)
{
        worker_fail(container_of(t, struct worker, _timer), "it does not answer");
}

/* --- the connection --- */

static void on_frame(struct channel *c, struct str bytes)
{
        struct worker *w = container_of(c, struct worker, _channel);

        w->ops->message(w, bytes);
}

static void on_drained(struct channel *c)
{
        struct worker *w = container_of(c, struct worker, _channel);

        send_waiting(w);
        if (w->state == WORKER_READY && w->ops->drained)
                w->ops->drained(w);
}

static void on_ended(struct channel *c, int r)
{
        struct worker *w = container_of(c, struct worker, _channel);

        (void) err_set(&w->error, ERR_UNAVAILABLE, "%s: %s", w->config.name,
                       r == -EPROTO ? "the process broke the protocol"
                       : r < 0      ? err_text(r)
                                    : "the connection was closed");
        w->_explained = r < 0;
        lose(w, /* at_once= */ r < 0);
}

static void on_closed(struct channel *c)
{
        struct worker *w = container_of(c, struct worker, _channel);

        w->_channel_open = false;
        part_closed(w);
}

static const struct channel_ops channel_ops = {
        .frame = on_frame,
        .drained = on_drained,
        .ended = on_ended,
        .closed = on_closed,
};

static int connect_channel(struct worker *w, int fd)
{
        int r;

        w->_channel.frame_max = w->config.frame_max;
        w->_channel.out_max = w->config.out_max;
        w->_channel.packets = !w->config.argv && !w->config.address;
        w->_channel.may_receive_fds = w->config.may_receive_fds;
        r = channel_open(&w->_channel, w->loop, fd, &channel_ops);
        if (r < 0)
                return r;
        w->_channel_open = true;
        w->_open++;
        return 0;
}

/* --- the process --- */

static void exit_closed(uv_handle_t *h)
{
        struct worker *w = container_of((uv_poll_t *) (void *) h, struct worker, _exit);

        w->_pidfd = fd_close(w->_pidfd);
        part_closed(w);
}

static void process_ended(uv_poll_t *poll, int status, int events)
{
        struct worker *w = container_of(poll, struct worker, _exit);
        siginfo_t info = { 0 };

        (void) status, (void) events;
        if (waitid(P_PIDFD, (id_t) w->_pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return;
        w->_pid = 0;
        uv_close((uv_handle_t *) poll, exit_closed);
        if (w->_channel_open)
                channel_drain(&w->_channel);
        if (!w->_explained)
                (void) err_set(&w->error, ERR_UNAVAILABLE, "%s: the process ended (%s %d)",
                               w->config.name, info.si_code == CLD_EXITED ? "status" : "signal",
                               info.si_status);
        lose(w, /* at_once= */ false);
}

static int spawn_process(struct worker *w, int socket)
{
        char *envp[] = { NULL };
        int r = spawn_program(&(struct spawn){ .argv = w->config.argv,
                                               .envp = envp,
                                               .fds = { socket, STDERR_FILENO, STDERR_FILENO },
                                               .die_with_parent = w->config.die_with_parent },
                              &w->_pid);

        if (r < 0)
                return r;
        w->_pidfd = pidfd_open(w->_pid, 0);
        r = w->_pidfd < 0 ? -errno : uv_poll_init(&w->loop->uv, &w->_exit, w->_pidfd);
        if (r < 0) {
                (void) kill(w->_pid, SIGKILL);
                (void) waitpid(w->_pid, NULL, 0);
                w->_pid = 0;
                w->_pidfd = fd_close(w->_pidfd);
                return r;
        }
        (void) uv_poll_start(&w->_exit, UV_READABLE, process_ended);
        w->_open++;
        return 0;
}

static void started(struct worker *w)
{
        w->state = WORKER_STARTING;
        if (w->config.start_timeout)
                (void) uv_timer_start(&w->_timer, start_timed_out,
                                      w->config.start_timeout / USEC_PER_MSEC, 0);
        w->ops->connected(w);
}

static void start(struct worker *w)
{
        scoped(fd_closep) int ours = -EBADF;
        int pair[2], r;

        w->_explained = false;
        if (!w->config.argv) {
                r = sock_connect(w->config.address, &ours);
        } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
                r = -errno;
        } else {
                ours = pair[0];
                r = spawn_process(w, pair[1]);
                (void) fd_close(pair[1]);
        }
        if (r == 0)
                r = connect_channel(w, TAKE_FD(ours));
        if (r == 0)
                return started(w);
        (void) err_set(&w->error, ERR_UNAVAILABLE, "%s: %s: %s", w->config.name,
                       w->config.argv ? "start the process" : "connect", err_text(r));
        if (w->_open == 0)
                return gone(w);
        /* A process without a connection. */
        w->_explained = true;
        w->state = WORKER_STARTING;
        lose(w, /* at_once= */ true);
}

void worker_ready(struct worker *w)
{
        if (w->state != WORKER_STARTING)
                return;
        (void) uv_timer_stop(&w->_timer);
        w->state = WORKER_READY;
        backoff_reset(&w->backoff);
        send_waiting(w);
}

void worker_restarted(struct worker *w)
{
        struct list old;

        ASSERT(!w->config.argv && !w->config.address);
        channel_drop_output(&w->_channel);
        list_init(&old);
        for (struct list *n; (n = list_last(&w->_sent));) {
                struct worker_request *r = request_of(n);

                list_remove(n);
                r->_sent = false;
                r->resent = true;
                list_prepend(r->retry ? &w->_waiting : &old, n);
        }
        started(w);
        (void) err_set(&w->error, ERR_UNAVAILABLE, "%s was restarted; try again", w->config.name);
        for (struct list *n; (n = list_first(&old));)
                request_fail(request_of(n), &w->error);
}

/* --- life cycle --- */

int worker_open(struct worker *w, struct net_loop *loop, const struct worker_ops *ops,
                const struct worker_config *config)
{
        int r;

        *w = (struct worker){ .config = *config,
                              .ops = ops,
                              .loop = loop,
                              .backoff = { WORKER_BACKOFF_MIN, config->backoff_max, 0 },
                              ._pidfd = -EBADF };
        map_init(&w->_by_id);
        list_init(&w->_waiting);
        list_init(&w->_sent);
        list_init(&w->_refused);
        net_task_init(&w->_refuse, run_refuse);
        net_task_init(&w->_closed, run_closed);
        (void) err_set(&w->error, ERR_UNAVAILABLE, "%s is not started yet", config->name);
        if (!config->argv && !config->address) {
                r = fcntl(config->fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
                r = r < 0 ? r : connect_channel(w, config->fd);
                if (r < 0)
                        return r;
        }
        timeout_kind_init(&w->_timeouts, loop, config->request_timeout, request_timeout);
        (void) uv_timer_init(&loop->uv, &w->_timer);
        if (w->_channel_open)
                started(w);
        else
                start(w);
        return 0;
}

void worker_close(struct worker *w)
{
        struct list *lists[] = { &w->_waiting, &w->_sent, &w->_refused };

        ASSERT(!w->_closing);
        w->_closing = true;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                for (struct list *n; (n = list_first(lists[i]));)
                        worker_request_end(request_of(n));
        net_task_cancel(&w->_refuse);
        if (w->state == WORKER_DOWN)
                close_timers(w);
        else
                lose(w, /* at_once= */ false);
}
