/* SPDX-License-Identifier: Apache-2.0 */

/* Memory of the kernel that sockets hold: what was sent and is not received. The kernel says how much
 * that is (SO_MEMINFO), with all that it takes around the bytes. */

#include "bomb.h"
#include "probe.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (1024L * 1024)

/* At a limit the kernel still gives every socket a few pages, so that it can go on: what counts sockets
 * ends the bomb then. */
#define SOCKETS_MAX 1000L

static char block[32768];

static long held_by(int fd)
{
        uint32_t info[SK_MEMINFO_VARS] = { 0 };
        socklen_t n = sizeof(info);

        if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n) < 0)
                return 0;
        return (long) info[SK_MEMINFO_RMEM_ALLOC] + (long) info[SK_MEMINFO_WMEM_QUEUED];
}

/* The largest buffers that the host allows. */
static void widen(int fd)
{
        const int most = 1 << 30;

        (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
}

static int loopback(int type, struct sockaddr_in *ret_addr)
{
        const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t n = sizeof(*ret_addr);

        *ret_addr = (struct sockaddr_in){ .sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        if (fd < 0 || bind(fd, (const struct sockaddr *) ret_addr, n) < 0
            || getsockname(fd, (struct sockaddr *) ret_addr, &n) < 0)
                return -errno;
        return fd;
}

/* --- TCP --- */

struct listener {
        int fd;
        struct sockaddr_in at;
        bool orphans; /* the end that sends is closed: no process has it any more */
};

/* One socket after the other; `fill` returns how many bytes it holds. */
static void fill_sockets(long (*fill)(const void *data), const void *data, long most)
{
        long bytes = 0;

        raise_descriptors();
        for (long i = 0; i < SOCKETS_MAX && progress->reached < most; i++) {
                const long n = fill(data);

                if (n < 0) {
                        stop_at((int) -n);
                        return;
                }
                bytes += n;
                progress->reached = bytes / MIB;
        }
        stop_at(progress->reached < most ? EAGAIN : 0);
}

/* A connection with as much in it as both ends take; how much that is. */
static long fill_connection(const void *listener)
{
        const struct listener *l = listener;
        const int reader = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int writer;
        long bytes;

        widen(reader);
        if (reader < 0 || connect(reader, (const struct sockaddr *) &l->at, sizeof(l->at)) < 0)
                return -errno;
        writer = accept(l->fd, NULL, NULL);
        if (writer < 0 || fcntl(writer, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        widen(writer);
        while (send(writer, block, sizeof(block), MSG_NOSIGNAL) > 0)
                ;
        bytes = held_by(reader) + held_by(writer);
        if (l->orphans)
                (void) close(writer);
        return bytes;
}

static void fill_connections(struct listener *l, long most)
{
        l->fd = loopback(SOCK_STREAM, &l->at);
        if (l->fd < 0 || listen(l->fd, 16) < 0)
                stop_at(errno);
        else
                fill_sockets(fill_connection, l, most);
}

void bomb_tcp(long most)
{
        fill_connections(&(struct listener){ .orphans = false }, most);
}

void bomb_orphans(long most)
{
        fill_connections(&(struct listener){ .orphans = true }, most);
}

/* --- sockets that send to themselves --- */

/* What does not fit is dropped, and the sender does not learn of it: it stops when a datagram changes nothing. */
static long fill_datagrams(const void *data)
{
        struct sockaddr_in at;
        const int fd = loopback(SOCK_DGRAM, &at);
        long before = -1, bytes = 0;

        (void) data;
        if (fd < 0)
                return fd;
        widen(fd);
        for (; bytes > before; bytes = held_by(fd)) {
                before = bytes;
                if (sendto(fd, block, sizeof(block), 0, (const struct sockaddr *) &at, sizeof(at))
                    < 0)
                        break;
        }
        return bytes;
}

/* Lists of links, requested and never read. */
static long fill_replies(const void *data)
{
        const struct {
                struct nlmsghdr head;
                struct rtgenmsg message;
        } request = { { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
                        .nlmsg_type = RTM_GETLINK,
                        .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
                      { AF_UNSPEC } };
        const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
        long before = -1, bytes = 0;

        (void) data;
        if (fd < 0)
                return -errno;
        widen(fd);
        for (; bytes > before; bytes = held_by(fd)) {
                before = bytes;
                if (send(fd, &request, request.head.nlmsg_len, 0) < 0)
                        break;
        }
        return bytes;
}

void bomb_udp(long most)
{
        fill_sockets(fill_datagrams, NULL, most);
}

void bomb_replies(long most)
{
        fill_sockets(fill_replies, NULL, most);
}
