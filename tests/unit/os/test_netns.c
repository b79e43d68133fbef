/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "os/fd.h"
#include "os/userns.h"
#include "tests/lib/apart.h"

static ino_t own_namespace(void)
{
        struct stat st;

        check_i64_eq(stat("/proc/thread-self/ns/net", &st), 0);
        return st.st_ino;
}

static int bind_to(int type, int protocol, uint16_t port)
{
        scoped(fd_closep) int fd = socket(AF_INET, type, protocol);
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr = { htonl(INADDR_LOOPBACK) } };

        return fd >= 0 && bind(fd, (struct sockaddr *) &in, sizeof(in)) == 0 ? 0 : -errno;
}

/* As root of a user namespace of its own, with all capabilities there. */
static int inside(void *data)
{
        const int *fds = data;
        struct ifreq req = { .ifr_name = "lo" };
        int fd;

        apart_check(netns_enter(fds[0]) == 0);
        apart_check(userns_enter(fds[1]) == 0);
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        apart_check(ioctl(fd, SIOCGIFFLAGS, &req) == 0);
        apart_check(req.ifr_flags & IFF_UP);
        apart_check(bind_to(SOCK_STREAM, 0, 80) == 0);
        apart_check(bind_to(SOCK_DGRAM, IPPROTO_ICMP, 0) == 0);

        /* Nothing of it can be changed. */
        req.ifr_flags &= ~IFF_UP;
        apart_check(ioctl(fd, SIOCSIFFLAGS, &req) < 0 && errno == EPERM);
        apart_check(access("/proc/sys/net/ipv4/ip_forward", W_OK) < 0 && errno == EACCES);
        apart_check(bind_to(SOCK_RAW, IPPROTO_ICMP, 0) == -EPERM);
        return 0;
}

static void test_loopback_without_power_over_it(void **state)
{
        const struct userns_range range = { 7000000, 65536 };
        int fds[2] = { -EBADF, -EBADF };
        ino_t before;

        (void) state;
        if (!apart_possible())
                skip_because("network namespaces need root");
        before = own_namespace();
        check_i64_eq(netns_make(&fds[0]), 0);
        check_u64_eq(own_namespace(), before);
        check_i64_eq(userns_make(&range, &fds[1]), 0);
        apart_run(inside, fds, 0);
        (void) fd_close(fds[0]);
        (void) fd_close(fds[1]);
}

static int without_privilege(void *data)
{
        int fd = -EBADF;

        (void) data;
        apart_check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
        apart_check(netns_make(&fd) == -EPERM);
        apart_check(fd == -EBADF);
        return 0;
}

static void test_needs_privilege(void **state)
{
        (void) state;
        apart_run(without_privilege, NULL, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_loopback_without_power_over_it),
                cmocka_unit_test(test_needs_privilege),
        };

        return cmocka_run_group_tests_name("netns", tests, NULL, NULL);
}
