/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client of hutchd that costs little: it makes sandboxes and throws them away, over connections
 * that are kept, and looks at the answers only as far as it takes to know that they are right.
 *
 *         control_bench cycle PORT CONNECTIONS SECONDS
 *                 how long it takes to create a sandbox and to delete it again
 *         control_bench fill PORT CONNECTIONS COUNT
 *                 makes so many, and leaves them
 *
 * The server is on 127.0.0.1, without keys. Every answer must be the one for success: anything else
 * ends the benchmark.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/latency.h"

#define CONNECTIONS_MAX 256
#define ANSWER_MAX      8192
#define ID_MAX          64

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
        va_list ap;

        fputs("control_bench: ", stderr);
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        exit(1);
}

struct connection {
        int fd;
        bool deleting;
        uint64_t begun;
        char id[ID_MAX];
        char answer[ANSWER_MAX];
        size_t n;
};

/* --- requests --- */

/* What an SDK sends when its user asks for nothing special. */
#define BODY                                                                             \
        "{\"image\":{\"uri\":\"bench\"},\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"]," \
        "\"resourceLimits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},\"env\":{},"              \
        "\"metadata\":{\"suite\":\"bench\"},\"extensions\":{},\"timeout\":3600}"

#define HOST "Host: 127.0.0.1\r\n"

static void send_text(struct connection *c, const char *text, size_t n)
{
        c->n = 0;
        if (write(c->fd, text, n) != (ssize_t) n)
                die("write: %s", strerror(errno));
}

static void ask_create(struct connection *c)
{
        static char text[1024];
        static int n;

        if (n == 0)
                n = snprintf(text, sizeof(text),
                             "POST /v1/sandboxes HTTP/1.1\r\n" HOST
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                             strlen(BODY), BODY);
        c->deleting = false;
        send_text(c, text, (size_t) n);
}

static void ask_delete(struct connection *c)
{
        char text[256];
        int n = snprintf(text, sizeof(text), "DELETE /v1/sandboxes/%s HTTP/1.1\r\n" HOST "\r\n",
                         c->id);

        c->deleting = true;
        send_text(c, text, (size_t) n);
}

/* --- answers --- */

/* Both answers come with their length, or have no body. */
static bool is_complete(const struct connection *c)
{
        const char *body = strstr(c->answer, "\r\n\r\n");
        const char *length = strstr(c->answer, "\r\nContent-Length: ");

        if (!body)
                return false;
        body += 4;
        return !length || length > body
               || c->n >= (size_t) (body - c->answer) + strtoull(length + 18, NULL, 10);
}

static void take_id(struct connection *c)
{
        static const char key[] = "\"id\":\"";
        const char *at = strstr(c->answer, key);
        size_t n;

        if (strncmp(c->answer, "HTTP/1.1 202 ", 13) != 0 || !at
            || !strstr(c->answer, "\"state\":\"Running\""))
                die("create: %s", c->answer);
        at += sizeof(key) - 1;
        n = strcspn(at, "\"");
        if (n >= sizeof(c->id))
                die("an id is too long");
        memcpy(c->id, at, n);
        c->id[n] = '\0';
}

/* True when a whole answer has come. */
static bool read_some(struct connection *c)
{
        ssize_t n = read(c->fd, c->answer + c->n, sizeof(c->answer) - 1 - c->n);

        if (n <= 0)
                die("read: %s", n < 0 ? strerror(errno) : "the connection ended");
        c->n += (size_t) n;
        c->answer[c->n] = '\0';
        if (c->n == sizeof(c->answer) - 1)
                die("an answer is too long");
        if (!is_complete(c))
                return false;
        if (!c->deleting)
                take_id(c);
        else if (strncmp(c->answer, "HTTP/1.1 204 ", 13) != 0)
                die("delete: %s", c->answer);
        return true;
}

/* --- what it does --- */

static struct connection connections[CONNECTIONS_MAX];
static struct pollfd fds[CONNECTIONS_MAX];

static void connect_all(const char *port, size_t n)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        for (size_t i = 0; i < n; i++) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

                if (fd < 0 || connect(fd, (struct sockaddr *) &to, sizeof(to)) < 0)
                        die("connect: %s", strerror(errno));
                (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                connections[i].fd = fd;
                fds[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
        }
}

static void wait_for_answers(size_t n)
{
        if (poll(fds, n, -1) < 0)
                die("poll: %s", strerror(errno));
}

static void cycle(size_t n, uint64_t seconds)
{
        struct latency latency = { 0 };
        uint64_t begin = latency_now(), now = begin, end = begin + seconds * 1000000000U;

        for (size_t i = 0; i < n; i++) {
                connections[i].begun = latency_now();
                ask_create(&connections[i]);
        }
        while (now < end) {
                wait_for_answers(n);
                for (size_t i = 0; i < n; i++) {
                        struct connection *c = &connections[i];

                        if (!fds[i].revents || !read_some(c))
                                continue;
                        if (!c->deleting) {
                                ask_delete(c);
                                continue;
                        }
                        now = latency_now();
                        latency_add(&latency, now - c->begun);
                        c->begun = now;
                        ask_create(c);
                }
        }
        latency_print(&latency, (double) (now - begin) / 1e9);
}

static void fill(size_t n, uint64_t count)
{
        struct latency latency = { 0 };
        uint64_t begin = latency_now(), asked = 0, done = 0;

        for (; asked < n && asked < count; asked++) {
                connections[asked].begun = latency_now();
                ask_create(&connections[asked]);
        }
        while (done < count) {
                wait_for_answers(n);
                for (size_t i = 0; i < n; i++) {
                        struct connection *c = &connections[i];

                        if (!fds[i].revents || !read_some(c))
                                continue;
                        done++;
                        latency_add(&latency, latency_now() - c->begun);
                        c->begun = latency_now();
                        if (asked++ < count)
                                ask_create(c);
                }
        }
        latency_print(&latency, (double) (latency_now() - begin) / 1e9);
        printf("%s\n", connections[0].id);
}

int main(int argc, char **argv)
{
        size_t n = argc == 5 ? strtoull(argv[3], NULL, 10) : 0;
        uint64_t number = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;

        if (n == 0 || n > CONNECTIONS_MAX || number == 0
            || (strcmp(argv[1], "cycle") != 0 && strcmp(argv[1], "fill") != 0)) {
                fprintf(stderr, "usage: control_bench cycle PORT CONNECTIONS SECONDS\n"
                                "       control_bench fill PORT CONNECTIONS COUNT\n");
                return 2;
        }
        connect_all(argv[2], n);
        if (strcmp(argv[1], "cycle") == 0)
                cycle(n, number);
        else
                fill(n, number);
        return 0;
}
