/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In place of hutch-engine: hutchd starts it as the worker of an engine, so it has the confinement of that hutchd. It
 * tries what an attacker in hutchd would, and writes one line for each attempt, "NAME: OUTCOME", to the FIFO
 * DATA/report, which the test reads.
 *
 * Paths are found by the data directory, the parent of --directory=DATA/drivers/ENGINE: DATA/.. has what the test
 * has prepared.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define TOP_MAX 4096

static char top[TOP_MAX];
static int out = -1;

static void report(const char *name, long result)
{
        (void) dprintf(out, "%s: %s\n", name, result < 0 ? strerror(errno) : "works");
}

static long try_open(const char *name, int flags)
{
        char path[TOP_MAX + 64];

        (void) snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : top,
                        *name == '/' ? "" : "/", name);
        return open(path, flags | O_CLOEXEC, 0600);
}

static long try_port(bool binds, uint16_t port)
{
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return binds ? bind(fd, (struct sockaddr *) &in, sizeof(in))
                     : connect(fd, (struct sockaddr *) &in, sizeof(in));
}

int main(int argc, char **argv)
{
        static const char option[] = "--directory=";

        for (int i = 1; i < argc; i++)
                if (strncmp(argv[i], option, sizeof(option) - 1) == 0)
                        (void) snprintf(top, sizeof(top), "%s/../../..",
                                        argv[i] + sizeof(option) - 1);
        out = (int) try_open("data/report", O_WRONLY);
        report("create in the data directory", try_open("data/drivers/made", O_WRONLY | O_CREAT));
        report("read the store", try_open("data/store.sqlite", O_RDONLY));
        report("read the configuration", try_open("hutchd.yaml", O_RDONLY));
        report("write the configuration", try_open("hutchd.yaml", O_WRONLY));
        report("create beside the configuration", try_open("made", O_WRONLY | O_CREAT));
        report("create in the directory of the audit log",
               try_open("logs/made", O_WRONLY | O_CREAT));
        report("read /etc/passwd", try_open("/etc/passwd", O_RDONLY));
        report("list /etc", try_open("/etc", O_RDONLY | O_DIRECTORY));
        report("create in /tmp", try_open("/tmp", O_WRONLY | O_TMPFILE));
        report("list the root directory", try_open("/", O_RDONLY | O_DIRECTORY));
        report("bind a port", try_port(true, 0));
        report("connect to a port", try_port(false, 1));
        report("signal to process 1", kill(1, 0));
        report("execute a program", execl("/bin/true", "true", NULL));
        return 1;
}
