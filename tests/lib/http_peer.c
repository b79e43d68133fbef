/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/http_peer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define IN_MAX (64 * MiB)

/* --- the world --- */

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static struct sockaddr_un address_of(const struct world *w)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s", w->path);
        return un;
}

void world_open(struct world *w, const struct http_server_config *config,
                const struct http_api *api)
{
        struct sockaddr_un un;
        int fd;

        (void) signal(SIGPIPE, SIG_IGN); /* as every program on net/stream.h does */
        memset(w, 0, sizeof(*w));
        (void) snprintf(w->dir, sizeof(w->dir), "%s/hutchXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        (void) snprintf(w->path, sizeof(w->path), "%s/s", w->dir);
        check_i64_eq(net_loop_init(&w->loop, &clock_system), 0);
        w->server = http_server_new(&w->loop, config, NULL);
        check_i64_eq(http_server_add_api(w->server, api), 0);
        http_server_set_data(w->server, w);
        un = address_of(w);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check_i64_eq(bind(fd, (const struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(listen(fd, 128), 0);
        check_i64_eq(http_server_listen(w->server, fd), 0);
}

void world_close(struct world *w)
{
        http_server_free(w->server, set_flag, &w->freed);
        world_until(w, &w->freed);
        net_loop_done(&w->loop);
        (void) unlink(w->path);
        check_i64_eq(rmdir(w->dir), 0);
}

/* Turns once and fails after too long; *started is 0 at first. */
static void turn_patiently(struct world *w, usec_t *started)
{
        usec_t now = clock_mono(&clock_system);

        if (*started == 0)
                *started = now;
        check_true(now - *started < PEER_TIMEOUT);
        net_loop_run_once(&w->loop, /* wait= */ false);
}

void world_until(struct world *w, const bool *flag)
{
        for (usec_t started = 0; !*flag;)
                turn_patiently(w, &started);
}

void world_turn(struct world *w, int n)
{
        while (n-- > 0)
                net_loop_run_once(&w->loop, /* wait= */ false);
}

/* --- clients --- */

void peer_open(struct peer *p, struct world *w)
{
        struct sockaddr_un un = address_of(w);

        *p = (struct peer){ .world = w };
        buf_init(&p->in, IN_MAX);
        p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check_i64_eq(connect(p->fd, (const struct sockaddr *) &un, sizeof(un)), 0);
        world_turn(w, 2);
}

void peer_close(struct peer *p)
{
        p->fd = fd_close(p->fd);
        buf_done(&p->in);
}

void peer_send(struct peer *p, struct str bytes)
{
        usec_t started = 0;

        while (bytes.n > 0) {
                ssize_t n = send(p->fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n > 0)
                        bytes = str_skip(bytes, (size_t) n);
                else if (errno != EAGAIN)
                        return; /* the server has closed; what it said is to be read */
                turn_patiently(p->world, &started);
        }
}

void peer_sendz(struct peer *p, const char *text)
{
        peer_send(p, str_from(text));
}

void peer_finish(struct peer *p)
{
        check_i64_eq(shutdown(p->fd, SHUT_WR), 0);
}

void peer_read(struct peer *p)
{
        static char chunk[256 * KiB];
        ssize_t n;

        while (!p->eof && (n = recv(p->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) != 0) {
                if (n < 0 && errno == EAGAIN)
                        return;
                if (n < 0) {
                        p->error = -errno;
                        break;
                }
                buf_add(&p->in, chunk, (size_t) n);
        }
        check_false(buf_failed(&p->in));
        p->eof = true;
}

void peer_until_bytes(struct peer *p, size_t n)
{
        usec_t started = 0;

        for (peer_read(p); p->in.n < n; peer_read(p)) {
                if (p->eof)
                        fail_msg("the connection ended after %zu of %zu bytes", p->in.n, n);
                turn_patiently(p->world, &started);
        }
}

void peer_until_eof(struct peer *p)
{
        usec_t started = 0;

        for (peer_read(p); !p->eof; peer_read(p))
                turn_patiently(p->world, &started);
}

/* Behind the text, or 0. */
static size_t find_end(const struct peer *p, size_t from, const char *text)
{
        struct str in = str_skip(buf_str(&p->in), from);
        const char *at = memmem(in.p, in.n, text, strlen(text));

        return at ? from + (size_t) (at - in.p) + strlen(text) : 0;
}

static size_t until_text_from(struct peer *p, size_t from, const char *text)
{
        usec_t started = 0;
        size_t end;

        for (peer_read(p); (end = find_end(p, from, text)) == 0; peer_read(p)) {
                if (p->eof)
                        fail_msg("'%s' did not come, but: '%.*s'", text, STR_ARG(buf_str(&p->in)));
                turn_patiently(p->world, &started);
        }
        return end;
}

void peer_until_text(struct peer *p, const char *text)
{
        (void) until_text_from(p, 0, text);
}

/* --- answers --- */

struct str response_header(const struct peer_reply *a, const char *name)
{
        struct str rest = a->head, line;

        while (str_split(&rest, '\n', &line)) {
                ssize_t colon = str_find(line, ':');

                if (colon > 0 && str_caseeq(str_of(line.p, (size_t) colon), str_from(name))) {
                        line = str_trim(str_skip(line, (size_t) colon + 1));
                        return str_of(line.p, line.n - str_ends_with(line, STR("\r")));
                }
        }
        return STR_NULL;
}

static size_t body_end(struct peer *p, const struct peer_reply *a, size_t head_n)
{
        struct str length = response_header(a, "Content-Length");
        uint64_t n = 0;

        if (length.p) {
                check_i64_eq(parse_u64(length, &n), 0);
                peer_until_bytes(p, head_n + n);
                return head_n + n;
        }
        if (!response_header(a, "Transfer-Encoding").p)
                return head_n;
        /* The last chunk stands right behind the head or behind another chunk. */
        return until_text_from(p, head_n - 2, "\r\n0\r\n\r\n");
}

static struct peer_reply take(struct peer *p, bool head_only)
{
        static struct buf taken;
        struct peer_reply a;
        size_t head_n, n;

        head_n = until_text_from(p, 0, "\r\n\r\n");
        a.head = str_of(buf_str(&p->in).p, head_n);
        n = head_only ? head_n : body_end(p, &a, head_n);
        buf_done(&taken);
        buf_init(&taken, IN_MAX);
        buf_add(&taken, buf_str(&p->in).p, n);
        buf_consume(&p->in, n);
        a.head = str_of(buf_str(&taken).p, head_n);
        a.body = str_skip(buf_str(&taken), head_n);
        check_true(str_starts_with(a.head, STR("HTTP/1.1 ")) && a.head.n > 12);
        a.status = (a.head.p[9] - '0') * 100 + (a.head.p[10] - '0') * 10 + a.head.p[11] - '0';
        return a;
}

struct peer_reply peer_response(struct peer *p)
{
        return take(p, /* head_only= */ false);
}

struct peer_reply peer_answer_head_only(struct peer *p)
{
        return take(p, /* head_only= */ true);
}

struct peer_reply peer_request(struct peer *p, const char *text)
{
        peer_sendz(p, text);
        return peer_response(p);
}
