/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/api_client.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 2048

void api_connect(struct api_client *c, const char *port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) strtoul(port, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int on = 1;

        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *) &to, sizeof(to)) < 0)
                errx(1, "connect: %s", strerror(errno));
        (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void api_request(struct api_client *c, const char *method, const char *path, const char *body)
{
        char text[REQUEST_MAX];
        int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path);

        if (body)
                n += snprintf(text + n, sizeof(text) - (size_t) n,
                              "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                              strlen(body));
        n += snprintf(text + n, sizeof(text) - (size_t) n, "\r\n%s", body ? body : "");
        if ((size_t) n >= sizeof(text))
                errx(1, "a request is too long");
        c->n = 0;
        if (write(c->fd, text, (size_t) n) != n)
                errx(1, "write: %s", strerror(errno));
}

/* A response has a length, is chunked, or has no body. */
static bool is_complete(const struct api_client *c)
{
        const char *body = strstr(c->response, "\r\n\r\n");
        const char *length = strstr(c->response, "\r\nContent-Length: ");
        const char *chunked = strstr(c->response, "\r\nTransfer-Encoding: chunked");

        if (!body)
                return false;
        body += 4;
        if (chunked && chunked < body)
                return c->n >= 5 && strcmp(c->response + c->n - 5, "0\r\n\r\n") == 0;
        return !length || length > body
               || c->n >= (size_t) (body - c->response) + strtoull(length + 18, NULL, 10);
}

bool api_read(struct api_client *c)
{
        ssize_t n = read(c->fd, c->response + c->n, sizeof(c->response) - 1 - c->n);

        if (n <= 0)
                errx(1, "read: %s", n < 0 ? strerror(errno) : "the connection ended");
        c->n += (size_t) n;
        c->response[c->n] = '\0';
        if (c->n == sizeof(c->response) - 1)
                errx(1, "a response is too long");
        return is_complete(c);
}

void api_text(const struct api_client *c, const char *name, char *ret, size_t size)
{
        char key[64];
        const char *at;
        size_t n;

        (void) snprintf(key, sizeof(key), "\"%s\":\"", name);
        at = strstr(c->response, key);
        if (!at)
                errx(1, "there is no %s in: %s", name, c->response);
        at += strlen(key);
        n = strcspn(at, "\"");
        if (n >= size)
                errx(1, "%s is too long", name);
        memcpy(ret, at, n);
        ret[n] = '\0';
}

void api_expect(const struct api_client *c, int status, const char *what)
{
        if (strncmp(c->response, "HTTP/1.1 ", 9) != 0
            || strtol(c->response + 9, NULL, 10) != status)
                errx(1, "%s: %s", what, c->response);
}
