/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define OURS "/proc/thread-self/ns/net"

/* Sets the loopback device up. Files below sys/net are those of the namespace that the writer is in, not of the
 * one in which /proc was mounted. */
static int prepare(int proc, int *ret_fd)
{
        scoped(fd_closep) int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq req = { .ifr_name = "lo" };
        int fd, r;

        if (any < 0 || ioctl(any, SIOCGIFFLAGS, &req) < 0)
                return -errno;
        req.ifr_flags |= IFF_UP;
        if (ioctl(any, SIOCSIFFLAGS, &req) < 0)
                return -errno;
        r = virtual_file_write_at(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0");
        if (r == 0)
                r = virtual_file_write_at(proc, "sys/net/ipv4/ping_group_range", "0 2147483647");
        if (r < 0)
                return r;
        fd = open(OURS, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

int netns_make(int *ret_fd)
{
        scoped(fd_closep) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return proc < 0 ? -errno : netns_make_via(proc, ret_fd);
}

int netns_make_via(int proc, int *ret_fd)
{
        scoped(fd_closep) int ours = open(OURS, O_RDONLY | O_CLOEXEC);
        int r;

        if (ours < 0 || unshare(CLONE_NEWNET) < 0)
                return -errno;
        r = prepare(proc, ret_fd);
        ASSERT(setns(ours, CLONE_NEWNET)
               == 0); /* running on in the wrong one is worse than to abort */
        return r;
}

int netns_socket(int fd, int domain, int type, int protocol)
{
        scoped(fd_closep) int ours = open(OURS, O_RDONLY | O_CLOEXEC);
        int s;

        if (ours < 0 || setns(fd, CLONE_NEWNET) < 0)
                return -errno;
        s = socket(domain, type | SOCK_CLOEXEC, protocol);
        if (s < 0)
                s = -errno;
        ASSERT(setns(ours, CLONE_NEWNET) == 0);
        return s;
}

int netns_enter(int fd)
{
        return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}
