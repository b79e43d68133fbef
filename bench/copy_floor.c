/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor of uploads: everything behind a request's head goes into a file as it comes, by a
 * blocking loop of recv(2) and write(2) with a buffer as large as our loop's. Nothing is parsed
 * but the length.
 *
 *         copy_floor FILE
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/floor.h"

#define PIECE 65536

static size_t body_length(const char *head)
{
        static const char field[] = "\r\nContent-Length: ";
        const char *at = strstr(head, field);

        return at ? strtoull(at + sizeof(field) - 1, NULL, 10) : 0;
}

static void receive(int fd, int file, size_t left)
{
        static char piece[PIECE];

        while (left > 0) {
                ssize_t n = recv(fd, piece, sizeof(piece), 0);

                if (n <= 0)
                        floor_die("recv");
                floor_write(file, piece, (size_t) n);
                left -= (size_t) n;
        }
}

static void serve(int fd, void *data)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        const char *path = data;
        char head[FLOOR_HEAD_MAX];
        size_t body, n = floor_read_head(fd, head, &body);
        int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (file < 0)
                floor_die(path);
        floor_write(file, head + body, n - body);
        receive(fd, file, body_length(head) - (n - body));
        (void) close(file);
        floor_write(fd, answer, sizeof(answer) - 1);
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: copy_floor FILE\n");
                return 2;
        }
        floor_run("copy_floor", serve, argv[1]);
}
