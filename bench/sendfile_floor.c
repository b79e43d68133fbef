/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor of downloads: accept, a fixed head, and sendfile(2) in a loop, all blocking.
 *
 *         sendfile_floor FILE
 *
 * Whatever is asked for, FILE is the answer. The whole rest is asked for in each call: the kernel
 * itself decides how much it takes.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "bench/floor.h"

struct served {
        int fd;
        size_t size;
};

static void serve(int fd, void *data)
{
        const struct served *f = data;
        char head[FLOOR_HEAD_MAX];
        size_t body;
        off_t pos = 0;
        int n;

        (void) floor_read_head(fd, head, &body);
        n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", f->size);
        floor_write(fd, head, (size_t) n);
        while ((size_t) pos < f->size)
                if (sendfile(fd, f->fd, &pos, f->size - (size_t) pos) <= 0)
                        floor_die("sendfile");
}

int main(int argc, char **argv)
{
        struct served f;
        struct stat st;

        if (argc != 2) {
                fprintf(stderr, "usage: sendfile_floor FILE\n");
                return 2;
        }
        f.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
        if (f.fd < 0 || fstat(f.fd, &st) < 0)
                floor_die(argv[1]);
        f.size = (size_t) st.st_size;
        floor_run("sendfile_floor", serve, &f);
}
