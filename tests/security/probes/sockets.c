/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets: 56 to 58, 62 to 65. */

#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static long open_socket(int family, int type, int protocol)
{
        return outcome(socket(family, type | SOCK_CLOEXEC, protocol));
}

/* --- 56: families are also names of modules --- */

static bool is_ordinary(int family)
{
        return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

static long other_families(void)
{
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };

        for (int family = 0; family < 64; family++)
                for (size_t i = 0; i < COUNT(types) && !is_ordinary(family); i++) {
                        const long r = open_socket(family, types[i], 0);

                        if (r != -EAFNOSUPPORT) {
                                note("family %d type %d ", family, types[i]);
                                return r;
                        }
                }
        return -EAFNOSUPPORT;
}

static long af_alg(void)
{
        const long r = open_socket(AF_ALG, SOCK_SEQPACKET, 0);

        return r;
}

static long af_packet(void)
{
        return open_socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
}

static long af_vsock(void)
{
        return open_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long af_key(void)
{
        return open_socket(AF_KEY, SOCK_RAW, 2);
}

static long netlink_firewall(void)
{
        return open_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static long netlink_others(void)
{
        for (int protocol = 1; protocol < 32; protocol++) {
                const long r = open_socket(AF_NETLINK, SOCK_RAW, protocol);

                if (r >= 0) {
                        note("netlink %d ", protocol);
                        return r;
                }
        }
        return outcome(-1);
}

static long protocols(void)
{
        static const int expected[] = { IPPROTO_SCTP, IPPROTO_DCCP, IPPROTO_UDPLITE,
                                        262 /* MPTCP */, 115 /* L2TP */ };

        for (size_t i = 0; i < COUNT(expected); i++)
                for (int type = 1; type < 11; type++)
                        if (open_socket(AF_INET, type, expected[i]) >= 0)
                                return expected[i];
        return outcome(-1);
}

/* Types alone choose a protocol, too. */
static long types_alone(void)
{
        static const int expected[] = { SOCK_SEQPACKET, SOCK_DCCP, SOCK_PACKET, SOCK_RDM };

        for (size_t i = 0; i < COUNT(expected); i++)
                if (open_socket(AF_INET, expected[i], 0) >= 0)
                        return expected[i];
        return outcome(-1);
}

/* An upper layer protocol is a module's name as well. */
static long upper_layer(void)
{
        const long fd = open_socket(AF_INET, SOCK_STREAM, 0);

        if (fd < 0)
                return fd;
        return outcome(setsockopt((int) fd, IPPROTO_TCP, 31 /* TCP_ULP */, "hutchprobe", 10))
                               == -ENOENT
                       ? -ENOENT
                       : outcome(-1);
}

/* --- power over links and addresses --- */

static long route_message(int type, int flags)
{
        struct {
                struct nlmsghdr head;
                struct ifinfomsg link;
        } q = { { sizeof(q), (unsigned short) type,
                  (unsigned short) (NLM_F_REQUEST | NLM_F_ACK | flags), 1, 0 },
                { .ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_flags = 0, .ifi_change = IFF_UP } };
        const long fd = open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
        struct {
                struct nlmsghdr head;
                struct nlmsgerr err;
                char more[512];
        } answer;

        if (fd < 0)
                return fd;
        if (send((int) fd, &q, sizeof(q), 0) < 0 || recv((int) fd, &answer, sizeof(answer), 0) < 0)
                return outcome(-1);
        return answer.head.nlmsg_type == NLMSG_ERROR ? answer.err.error : -EBADMSG;
}

static long link_down(void)
{
        return route_message(RTM_NEWLINK, 0);
}

static long link_delete(void)
{
        const long r = route_message(RTM_DELLINK, 0);

        return r == -EOPNOTSUPP ? 0 : r; /* it was allowed to ask */
}

static long link_down_old(void)
{
        const long fd = open_socket(AF_INET, SOCK_DGRAM, 0);
        struct ifreq req = { .ifr_name = "lo" };

        return fd < 0 ? fd : outcome(ioctl((int) fd, SIOCSIFFLAGS, &req));
}

/* --- 57 --- */

static long raw(int protocol)
{
        return open_socket(AF_INET, SOCK_RAW, protocol);
}

static long raw_icmp(void)
{
        return raw(IPPROTO_ICMP);
}

static long raw_tcp(void)
{
        return raw(IPPROTO_TCP);
}

static long raw_any(void)
{
        return raw(IPPROTO_RAW);
}

static long raw_six(void)
{
        return open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static long bind_foreign(int family, int type, int protocol)
{
        const long fd = open_socket(family, type, protocol);
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201) };
        struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

        if (fd < 0)
                return fd;
        (void) inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
        if (family == AF_INET)
                return outcome(bind((int) fd, (struct sockaddr *) &four, sizeof(four)));
        return outcome(bind((int) fd, (struct sockaddr *) &six, sizeof(six)));
}

static long spoof_ping(void)
{
        return bind_foreign(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}

static long spoof_udp(void)
{
        return bind_foreign(AF_INET, SOCK_DGRAM, 0);
}

static long spoof_udp_six(void)
{
        return bind_foreign(AF_INET6, SOCK_DGRAM, 0);
}

static long transparent(void)
{
        const long fd = open_socket(AF_INET, SOCK_STREAM, 0);
        const int on = 1;

        return fd < 0 ? fd
                      : outcome(setsockopt((int) fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)));
}

static long socket_mark(void)
{
        const long fd = open_socket(AF_INET, SOCK_DGRAM, 0);
        const int mark = 1;

        return fd < 0 ? fd
                      : outcome(setsockopt((int) fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)));
}

/* --- 58 --- */

static long vsock_host(void)
{
        const long fd = open_socket(AF_VSOCK, SOCK_STREAM, 0);
        struct sockaddr_vm to = { .svm_family = AF_VSOCK,
                                  .svm_cid = VMADDR_CID_HOST,
                                  .svm_port = 1024 };
        long r;

        if (fd < 0)
                return fd;
        r = outcome(connect((int) fd, (struct sockaddr *) &to, sizeof(to)));
        return r == -ECONNRESET || r == -ETIMEDOUT ? 0 : r; /* it was there to be asked */
}

/* --- 63, 64: sockets as files, and by the names that the kernel tells --- */

static long connect_to(const struct sockaddr_un *to, socklen_t n)
{
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const long r = fd < 0 ? outcome(-1) : outcome(connect(fd, (const struct sockaddr *) to, n));

        if (fd >= 0)
                (void) close(fd);
        return r;
}

static long connect_path(const char *path)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };

        (void) snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
        return connect_to(&to, sizeof(to));
}

static long sockets_of_services(void)
{
        static const char *const paths[] = {
                "/var/run/docker.sock",
                "/run/docker.sock",
                "/run/containerd/containerd.sock",
                "/run/podman/podman.sock",
                "/run/crio/crio.sock",
                "/run/dbus/system_bus_socket",
                "/run/systemd/private",
                "/run/systemd/notify",
                "/run/systemd/journal/socket",
                "/run/hutch/hutchd.sock",
                "/run/snapd.socket",
                "/var/run/dbus/system_bus_socket",
                "/run/user/0/bus",
                "/run/udev/control",
                "/tmp/.X11-unix/X0",
                "/dev/log",
        };

        return try_each(paths, COUNT(paths), connect_path);
}

/* Every socket that is a file. */
static long socket_below(const char *dir, int depth)
{
        DIR *d = opendir(dir);
        long r = -ENOENT;
        char path[1024];

        if (!d)
                return r;
        for (const struct dirent *e; r < 0 && (e = readdir(d));) {
                if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.'))
                        continue;
                (void) snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
                if (e->d_type == DT_SOCK) {
                        note("%s ", path);
                        r = 0;
                } else if (e->d_type == DT_DIR && depth > 0)
                        r = socket_below(path, depth - 1);
        }
        (void) closedir(d);
        return r;
}

static long any_socket_file(void)
{
        static const char *const roots[] = { "/run", "/var", "/etc", "/root", "/home",
                                             "/dev", "/opt", "/srv", "/mnt" };

        for (size_t i = 0; i < COUNT(roots); i++)
                if (socket_below(roots[i], 6) >= 0)
                        return 0;
        return -ENOENT;
}

/* /proc/net/unix has names of sockets that were made in this network namespace; that of the agent's
 * listener, too, if it was. A descriptor could be sent there. */
static long sockets_by_name(void)
{
        FILE *f = fopen("/proc/net/unix", "re");
        char line[512], name[256];
        long r = -ENOENT;

        if (!f)
                return outcome(-1);
        while (r < 0 && fgets(line, sizeof(line), f)) {
                struct sockaddr_un to = { .sun_family = AF_UNIX };
                size_t n;

                if (sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %107s", name) != 1)
                        continue;
                n = strlen(name);
                memcpy(to.sun_path, name, n);
                if (name[0] == '@')
                        to.sun_path[0] = '\0';
                r = connect_to(&to, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n));
                if (r >= 0)
                        note("%s ", name);
        }
        (void) fclose(f);
        return r;
}

/* --- 65 --- */

static long claim(pid_t pid, uid_t uid, gid_t gid)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(struct ucred))];
        } c = { .head = { CMSG_LEN(sizeof(struct ucred)), SOL_SOCKET, SCM_CREDENTIALS } };
        struct iovec iov = { (char[]){ "x" }, 1 };
        struct msghdr m = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
        };
        const struct ucred who = { pid, uid, gid };
        int pair[2];

        memcpy(CMSG_DATA(&c.head), &who, sizeof(who));
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
                return outcome(-1);
        return outcome(sendmsg(pair[0], &m, 0));
}

static long claim_agent(void)
{
        return claim(1, getuid(), getgid());
}

/* Not one of the sandbox's: it has no meaning in there, and none outside. */
static long claim_beyond(void)
{
        return claim(getpid(), 70000, getgid());
}

/* The sandbox's root may be any of its own users; another may not. */
static long claim_root(void)
{
        const long r = claim(getpid(), 0, 0);

        return geteuid() == 0 ? (r > 0 ? 0 : r) : r == -EPERM ? 0 : -EDOM;
}

static const struct probe probes[] = {
        { 56, "other-families", other_families, INSIDE, { EAFNOSUPPORT } },
        { 56, "AF_ALG", af_alg, OUTSIDE, { EAFNOSUPPORT } },
        { 56, "AF_PACKET", af_packet, OUTSIDE, { EAFNOSUPPORT } },
        { 56, "AF_KEY", af_key, OUTSIDE, { EAFNOSUPPORT } },
        { 56, "netlink-nf_tables", netlink_firewall, OUTSIDE, { EPROTONOSUPPORT } },
        { 56, "netlink-others", netlink_others, OUTSIDE, { EPROTONOSUPPORT, EINVAL } },
        { 56, "protocols", protocols, OUTSIDE, { EPROTONOSUPPORT } },
        { 56, "types-alone", types_alone, INSIDE, { EPROTONOSUPPORT } },
        { 56, "upper-layer", upper_layer, INSIDE, { ENOENT } },
        { 57, "raw-icmp", raw_icmp, OUTSIDE, { EPERM } },
        { 57, "raw-tcp", raw_tcp, OUTSIDE, { EPERM } },
        { 57, "raw-any", raw_any, OUTSIDE, { EPERM, EPROTONOSUPPORT } },
        { 57, "raw-icmpv6", raw_six, OUTSIDE, { EPERM } },
        { 57, "spoof-ping", spoof_ping, INSIDE, { EADDRNOTAVAIL } },
        { 57, "spoof-udp", spoof_udp, INSIDE, { EADDRNOTAVAIL } },
        { 57, "spoof-udp6", spoof_udp_six, INSIDE, { EADDRNOTAVAIL } },
        { 57, "transparent", transparent, OUTSIDE, { EPERM } },
        { 57, "mark", socket_mark, OUTSIDE, { EPERM } },
        { 57, "link-down", link_down, OUTSIDE, { EPERM } },
        { 57, "link-delete", link_delete, OUTSIDE, { EPERM } },
        { 57, "link-down-ioctl", link_down_old, OUTSIDE, { EPERM } },
        { 58, "vsock", af_vsock, OUTSIDE, { EAFNOSUPPORT } },
        { 58, "vsock-host", vsock_host, INSIDE, { EAFNOSUPPORT } },
        { 63, "sockets-of-services", sockets_of_services, INSIDE, { ENOENT } },
        { 63, "any-socket-file", any_socket_file, INSIDE, { ENOENT } },
        { 64, "sockets-by-name", sockets_by_name, INSIDE, { ENOENT, ECONNREFUSED } },
        { 65, "claim-agent", claim_agent, OUTSIDE, { EPERM } },
        { 65, "claim-beyond", claim_beyond, OUTSIDE, { EINVAL, EPERM } },
        { 65, "claim-root", claim_root, OUTSIDE, { 0 } },
};

const struct probe_theme theme_sockets = THEME(probes);
