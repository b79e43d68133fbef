/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *program = "floor";

void floor_die(const char *what)
{
        fprintf(stderr, "%s: %s: %s\n", program, what, strerror(errno));
        exit(1);
}

static int listen_and_say(void)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof(addr);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *) &addr, len) < 0 || listen(fd, 16) < 0
            || getsockname(fd, (struct sockaddr *) &addr, &len) < 0)
                floor_die("listen");
        printf("%s: listening on http://127.0.0.1:%d\n", program, ntohs(addr.sin_port));
        (void) fflush(stdout);
        return fd;
}

void floor_run(const char *name, void (*serve)(int fd, void *data), void *data)
{
        int listener;

        program = name;
        listener = listen_and_say();
        for (;;) {
                int fd = accept(listener, NULL, NULL);

                if (fd < 0)
                        floor_die("accept");
                serve(fd, data);
                (void) close(fd);
        }
}

size_t floor_read_head(int fd, char head[static FLOOR_HEAD_MAX], size_t *ret_body)
{
        size_t n = 0;
        char *end;

        do {
                ssize_t r = read(fd, head + n, FLOOR_HEAD_MAX - 1 - n);

                if (r <= 0)
                        floor_die("read the head");
                n += (size_t) r;
                head[n] = '\0';
                end = strstr(head, "\r\n\r\n");
        } while (!end);
        *ret_body = (size_t) (end + 4 - head);
        return n;
}

void floor_write(int fd, const char *p, size_t n)
{
        while (n > 0) {
                ssize_t r = write(fd, p, n);

                if (r < 0)
                        floor_die("write");
                p += r;
                n -= (size_t) r;
        }
}
