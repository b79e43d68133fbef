/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A cheap client of hutch-execd: it sends POST /command repeatedly over persistent connections and parses the
 * responses only as far as it takes to know that they are right.
 *
 *         exec_bench load SOCKET BODY CONNECTIONS SECONDS
 *                 how long commands take from the request to the end of the response
 *         exec_bench stream SOCKET BODY
 *                 one command: how much text its events carry, in what time
 *
 * BODY is the JSON of the request. Every command must succeed: anything else ends the benchmark.
 */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/latency.h"

#define CONNECTIONS_MAX 64
#define REQUEST_MAX     8192
#define PIECE           (256 * 1024)
#define HEAD_MAX        2048

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
        va_list ap;

        fputs("exec_bench: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        exit(1);
}

/* --- events --- */

/* An event of output without its text. The time has 13 digits until the year 2286. */
#define STDOUT_BEGIN   "{\"type\":\"stdout\",\"text\":\""
#define STDOUT_END     "\",\"timestamp\":1234567890123}"
#define COMPLETE_BEGIN "{\"type\":\"execution_complete\""

struct events {
        char begin[64]; /* of the current event */
        size_t length;
        uint64_t lines, text_bytes; /* of standard output; escapes count as they are written */
        bool complete;
};

static bool begins_with(const struct events *e, const char *text)
{
        return strncmp(e->begin, text, strlen(text)) == 0;
}

static void event_ended(struct events *e)
{
        if (e->length >= sizeof(STDOUT_BEGIN STDOUT_END) - 1 && begins_with(e, STDOUT_BEGIN)) {
                e->lines++;
                e->text_bytes += e->length - (sizeof(STDOUT_BEGIN STDOUT_END) - 1);
        }
        e->complete |= begins_with(e, COMPLETE_BEGIN);
        e->length = 0;
}

static void events_add(struct events *e, const char *p, size_t n)
{
        while (n > 0) {
                const char *end = memchr(p, '\n', n);
                size_t part = end ? (size_t) (end - p) : n;

                if (e->length < sizeof(e->begin) - 1) {
                        size_t room = sizeof(e->begin) - 1 - e->length;
                        size_t copied = part < room ? part : room;

                        memcpy(e->begin + e->length, p, copied);
                        e->begin[e->length + copied] = '\0';
                }
                e->length += part;
                if (end && e->length > 0)
                        event_ended(e);
                part += end != NULL;
                p += part;
                n -= part;
        }
}

/* --- a response: a head, and chunks --- */

enum state { HEAD, SIZE, DATA, DATA_END, LAST_END, DONE };

struct response {
        enum state state;
        char line[HEAD_MAX]; /* the head, or a chunk's size */
        size_t n;
        size_t left; /* of the chunk */
        struct events events;
};

static bool ends_with(const struct response *a, const char *text)
{
        size_t n = strlen(text);

        return a->n >= n && memcmp(a->line + a->n - n, text, n) == 0;
}

static enum state after_line(struct response *a)
{
        a->line[a->n] = '\0';
        a->n = 0;
        if (a->state == SIZE) {
                a->left = strtoull(a->line, NULL, 16);
                return a->left ? DATA : LAST_END;
        }
        if (a->state == HEAD
            && (strncmp(a->line, "HTTP/1.1 200 ", 13) != 0
                || !strstr(a->line, "\r\nTransfer-Encoding: chunked\r\n")))
                die("not a chunked response: %s", a->line);
        return a->state == LAST_END ? DONE : SIZE;
}

/* One byte of a line, or of the head up to the empty line. */
static void add_to_line(struct response *a, char c)
{
        if (a->n == sizeof(a->line) - 1)
                die("a head or line is too long");
        a->line[a->n++] = c;
        if (ends_with(a, a->state == HEAD ? "\r\n\r\n" : "\r\n"))
                a->state = after_line(a);
}

/* True at the end of the response, which nothing may follow. */
static bool response_add(struct response *a, const char *p, size_t n)
{
        while (n > 0 && a->state != DONE) {
                size_t part = 1;

                if (a->state == DATA) {
                        part = n < a->left ? n : a->left;
                        events_add(&a->events, p, part);
                        a->left -= part;
                        if (a->left == 0)
                                a->state = DATA_END;
                } else {
                        add_to_line(a, *p);
                }
                p += part;
                n -= part;
        }
        if (a->state != DONE)
                return false;
        if (n > 0)
                die("there are bytes after the response");
        if (!a->events.complete)
                die("a command failed: %s", a->events.begin);
        return true;
}

/* --- connections --- */

struct connection {
        int fd;
        uint64_t sent;
        struct response response;
};

static char request[REQUEST_MAX], piece[PIECE];
static size_t request_n;

static void make_request(const char *body)
{
        int n = snprintf(
                request, sizeof(request),
                "POST /command HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                "Content-Length: %zu\r\n\r\n%s",
                strlen(body), body);

        if (n < 0 || (size_t) n >= sizeof(request))
                die("the body is too long");
        request_n = (size_t) n;
}

static void connect_to(struct connection *c, const char *path)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };

        if (strlen(path) >= sizeof(addr.sun_path))
                die("%s: too long", path);
        memcpy(addr.sun_path, path, strlen(path));
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *) &addr, sizeof(addr)) < 0)
                die("%s: %s", path, strerror(errno));
}

static void send_command(struct connection *c)
{
        c->response = (struct response){ 0 };
        c->sent = latency_now();
        if (write(c->fd, request, request_n) != (ssize_t) request_n)
                die("write: %s", strerror(errno));
}

/* True at the end of the response. */
static bool read_some(struct connection *c)
{
        ssize_t n = read(c->fd, piece, sizeof(piece));

        if (n <= 0)
                die("read: %s", n < 0 ? strerror(errno) : "the connection ended");
        return response_add(&c->response, piece, (size_t) n);
}

/* --- modes --- */

static void load(const char *path, size_t n, uint64_t seconds)
{
        static struct connection connections[CONNECTIONS_MAX];
        struct pollfd fds[CONNECTIONS_MAX];
        struct latency latency = { 0 };
        uint64_t begin, now, end;

        for (size_t i = 0; i < n; i++) {
                connect_to(&connections[i], path);
                fds[i] = (struct pollfd){ .fd = connections[i].fd, .events = POLLIN };
        }
        begin = now = latency_now();
        end = begin + seconds * 1000000000U;
        for (size_t i = 0; i < n; i++)
                send_command(&connections[i]);
        while (now < end) {
                if (n > 1 && poll(fds, n, -1) < 0)
                        die("poll: %s", strerror(errno));
                for (size_t i = 0; i < n; i++) {
                        if ((n > 1 && !fds[i].revents) || !read_some(&connections[i]))
                                continue;
                        now = latency_now();
                        latency_add(&latency, now - connections[i].sent);
                        send_command(&connections[i]);
                }
        }
        latency_print(&latency, (double) (now - begin) / 1e9);
}

static void stream(const char *path)
{
        struct connection c;
        struct events *e = &c.response.events;

        connect_to(&c, path);
        send_command(&c);
        while (!read_some(&c))
                ;
        printf("{\"seconds\": %.6f, \"lines\": %llu, \"text_bytes\": %llu}\n",
               (double) (latency_now() - c.sent) / 1e9, (unsigned long long) e->lines,
               (unsigned long long) e->text_bytes);
}

int main(int argc, char **argv)
{
        const char *mode = argc > 3 ? argv[1] : "";
        size_t n = argc == 6 ? strtoull(argv[4], NULL, 10) : 0;

        if (argc > 3)
                make_request(argv[3]);
        if (strcmp(mode, "stream") == 0 && argc == 4) {
                stream(argv[2]);
        } else if (strcmp(mode, "load") == 0 && n > 0 && n <= CONNECTIONS_MAX) {
                load(argv[2], n, strtoull(argv[5], NULL, 10));
        } else {
                fprintf(stderr, "usage: exec_bench load SOCKET BODY CONNECTIONS SECONDS\n"
                                "       exec_bench stream SOCKET BODY\n");
                return 2;
        }
        return 0;
}
