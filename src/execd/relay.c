/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/socket.h"

/* --- connecting --- */

/* Watches the directory of the socket. */
static int watch_dir(const char *path, int *ret)
{
        const char *slash = strrchr(path, '/');
        char dir[256];
        int fd;

        (void) snprintf(dir, sizeof(dir), "%.*s", slash ? (int) (slash - path) : 0, path);
        fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (inotify_add_watch(fd, dir[0] ? dir : "/", IN_CREATE | IN_ATTRIB | IN_MOVED_TO) < 0) {
                (void) fd_close(fd);
                return -errno;
        }
        *ret = fd;
        return 0;
}

static int connect_in_time(const char *path, int *ret)
{
        usec_t until = clock_mono(&clock_system) + RELAY_TIMEOUT_MS * USEC_PER_MSEC;
        scoped(fd_closep) int watch = -EBADF;
        char text[256], events[4096];
        struct sock_addr addr;
        int r = watch_dir(path, &watch);

        (void) snprintf(text, sizeof(text), "unix:%s", path);
        if (r == 0)
                r = sock_addr_from_string(str_from(text), &addr);
        while (r == 0) {
                struct pollfd p = { .fd = watch, .events = POLLIN };
                usec_t now = clock_mono(&clock_system);

                if (sock_connect(&addr, ret) == 0)
                        return 0;
                if (now >= until)
                        return -ETIMEDOUT;
                if (poll(&p, 1, (int) ((until - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                        return -errno;
                while (read(watch, events, sizeof(events)) > 0)
                        ;
        }
        return r;
}

/* --- copying --- */

struct direction {
        int from, to;
        size_t n, done; /* of `bytes`: read, written */
        bool ended;     /* `from` is at its end */
        bool closed;    /* and `to` was closed */
        char bytes[64 * KiB];
};

static int fill(struct direction *w)
{
        ssize_t n = read(w->from, w->bytes, sizeof(w->bytes));

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        w->n = (size_t) n;
        w->done = 0;
        w->ended = n == 0;
        return 0;
}

static int drain(struct direction *w)
{
        ssize_t n = write(w->to, w->bytes + w->done, w->n - w->done);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        w->done += (size_t) n;
        if (w->done == w->n)
                w->n = w->done = 0;
        return 0;
}

static void pass_on_eof(struct direction *w, int socket)
{
        if (!w->ended || w->n > 0 || w->closed)
                return;
        w->closed = true;
        if (w->to == socket)
                (void) shutdown(socket, SHUT_WR);
        else
                (void) close(w->to);
}

static void want(const struct direction *w, struct pollfd *from, struct pollfd *to)
{
        *from = (struct pollfd){ .fd = w->n == 0 && !w->ended ? w->from : -1, .events = POLLIN };
        *to = (struct pollfd){ .fd = w->n > 0 ? w->to : -1, .events = POLLOUT };
}

/* Ends with the output of the agent. */
static int copy_until_eof(struct direction *in, struct direction *out, int socket)
{
        while (!out->closed) {
                struct pollfd p[4];
                int r = 0;

                want(in, &p[0], &p[1]);
                want(out, &p[2], &p[3]);
                if (poll(p, 4, -1) < 0 && errno != EINTR)
                        return -errno;
                if (p[0].fd >= 0 && p[0].revents)
                        r = fill(in);
                if (r == 0 && p[1].fd >= 0 && p[1].revents)
                        r = drain(in);
                if (r == 0 && p[2].fd >= 0 && p[2].revents)
                        r = fill(out);
                if (r == 0 && p[3].fd >= 0 && p[3].revents)
                        r = drain(out);
                if (r < 0)
                        return r;
                pass_on_eof(in, socket);
                pass_on_eof(out, socket);
        }
        return 0;
}

int relay_run(const char *path)
{
        static struct direction in, out;
        scoped(fd_closep) int socket = -EBADF;
        int r = connect_in_time(path, &socket);

        if (r < 0) {
                (void) fprintf(stderr, "hutch-execd: %s: %s\n", path, err_text(r));
                return 1;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
                (void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        in = (struct direction){ .from = STDIN_FILENO, .to = socket };
        out = (struct direction){ .from = socket, .to = STDOUT_FILENO };
        (void) !copy_until_eof(&in, &out, socket);
        return 0;
}
