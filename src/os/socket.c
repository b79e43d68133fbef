/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* The kernel limits this to net.core.somaxconn. */
#define LISTEN_BACKLOG 4096

static int unix_from_string(struct str path, struct sock_addr *ret)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        if (path.n == 0 || memchr(path.p, 0, path.n))
                return -EINVAL;
        if (path.n >= sizeof(un.sun_path))
                return -ENAMETOOLONG;
        memcpy(un.sun_path, path.p, path.n);

        *ret = (struct sock_addr){ .len = sizeof(un) };
        if (path.p[0] == '@') {
                un.sun_path[0] = 0;
                ret->len = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + path.n);
        }
        memcpy(&ret->ss, &un, sizeof(un));
        return 0;
}

static int split_host_port(struct str s, char ret_host[static INET6_ADDRSTRLEN], uint16_t *ret_port,
                           bool *ret_v6)
{
        bool v6 = s.n > 0 && s.p[0] == '[';
        ssize_t colon = v6 ? str_find(s, ']') + 1 : str_find(s, ':');
        struct str host, port;
        uint64_t v;

        if (colon <= 0 || (size_t) colon >= s.n || s.p[colon] != ':')
                return -EINVAL;
        host = v6 ? str_of(s.p + 1, (size_t) colon - 2) : str_of(s.p, (size_t) colon);
        port = str_skip(s, (size_t) colon + 1);
        if (host.n >= INET6_ADDRSTRLEN || parse_u64_max(port, UINT16_MAX, &v) < 0)
                return -EINVAL;

        memcpy(ret_host, host.p, host.n);
        ret_host[host.n] = 0;
        *ret_port = (uint16_t) v;
        *ret_v6 = v6;
        return 0;
}

static int inet_from_string(struct str s, struct sock_addr *ret)
{
        struct sockaddr_in in = { .sin_family = AF_INET };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
        char host[INET6_ADDRSTRLEN];
        uint16_t port;
        bool v6;

        if (split_host_port(s, host, &port, &v6) < 0)
                return -EINVAL;

        *ret = (struct sock_addr){ 0 };
        if (v6) {
                if (inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
                        return -EINVAL;
                in6.sin6_port = htons(port);
                memcpy(&ret->ss, &in6, sizeof(in6));
                ret->len = sizeof(in6);
                return 0;
        }
        if (strcmp(host, "localhost") == 0)
                in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
                return -EINVAL;
        in.sin_port = htons(port);
        memcpy(&ret->ss, &in, sizeof(in));
        ret->len = sizeof(in);
        return 0;
}

int sock_addr_from_string(struct str s, struct sock_addr *ret)
{
        if (str_starts_with(s, STR("unix:")))
                return unix_from_string(str_skip(s, 5), ret);
        if (str_starts_with(s, STR("http://")))
                s = str_skip(s, 7);
        if (s.n > 0 && s.p[s.n - 1] == '/')
                s.n--;
        return inet_from_string(s, ret);
}

bool sock_addr_is_unix(const struct sock_addr *a)
{
        return a->ss.ss_family == AF_UNIX;
}

uint16_t sock_addr_port(const struct sock_addr *a)
{
        /* Both families have the port at the same offset. */
        return sock_addr_is_unix(a) ? 0 : ntohs(((const struct sockaddr_in *) &a->ss)->sin_port);
}

void sock_addr_host(const struct sock_addr *a, char ret[static SOCK_ADDR_TEXT_MAX])
{
        const void *addr =
                a->ss.ss_family == AF_INET6
                        ? (const void *) &((const struct sockaddr_in6 *) &a->ss)->sin6_addr
                        : (const void *) &((const struct sockaddr_in *) &a->ss)->sin_addr;

        if (sock_addr_is_unix(a) || !inet_ntop(a->ss.ss_family, addr, ret, SOCK_ADDR_TEXT_MAX))
                (void) snprintf(ret, SOCK_ADDR_TEXT_MAX, "unix");
}

void sock_addr_to_string(const struct sock_addr *a, char ret[static SOCK_ADDR_TEXT_MAX])
{
        const size_t head = offsetof(struct sockaddr_un, sun_path);
        bool v6 = a->ss.ss_family == AF_INET6;
        char host[SOCK_ADDR_TEXT_MAX];
        struct sockaddr_un un = { 0 };

        if (!sock_addr_is_unix(a)) {
                sock_addr_host(a, host);
                (void) snprintf(ret, SOCK_ADDR_TEXT_MAX, "http://%s%.46s%s:%u", v6 ? "[" : "", host,
                                v6 ? "]" : "", sock_addr_port(a));
                return;
        }
        memcpy(&un, &a->ss, MIN_OF((size_t) a->len, sizeof(un)));
        if (a->len > head && un.sun_path[0] == 0)
                (void) snprintf(ret, SOCK_ADDR_TEXT_MAX, "unix:@%.*s", (int) (a->len - head) - 1,
                                un.sun_path + 1);
        else
                (void) snprintf(ret, SOCK_ADDR_TEXT_MAX, "unix:%.*s",
                                (int) strnlen(un.sun_path, sizeof(un.sun_path)), un.sun_path);
}

static int new_socket(int family, int *ret_fd)
{
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* A socket file outlives the process that created it; without a listener it is replaced. */
static int remove_stale_socket(const struct sock_addr *a)
{
        struct sockaddr_un un;
        struct stat st;
        scoped(fd_closep) int fd = -EBADF;
        int r;

        memcpy(&un, &a->ss, sizeof(un));
        if (un.sun_path[0] == 0 || lstat(un.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
                return -EADDRINUSE;
        r = sock_connect(a, &fd);
        if (r != -ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(un.sun_path) < 0 ? -errno : 0;
}

int sock_bind(const struct sock_addr *a, int *ret_fd)
{
        scoped(fd_closep) int fd = -EBADF;
        int r, one = 1;

        r = new_socket(a->ss.ss_family, &fd);
        if (r < 0)
                return r;
        if (!sock_addr_is_unix(a)
            && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
                return -errno;
        if (bind(fd, (const struct sockaddr *) &a->ss, a->len) < 0) {
                if (errno != EADDRINUSE || !sock_addr_is_unix(a))
                        return -errno;
                r = remove_stale_socket(a);
                if (r < 0)
                        return r;
                if (bind(fd, (const struct sockaddr *) &a->ss, a->len) < 0)
                        return -errno;
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int sock_start(int fd)
{
        return listen(fd, LISTEN_BACKLOG) < 0 ? -errno : 0;
}

int sock_listen(const struct sock_addr *a, int *ret_fd)
{
        scoped(fd_closep) int fd = -EBADF;
        int r = sock_bind(a, &fd);

        if (r == 0)
                r = sock_start(fd);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

int sock_local_addr(int fd, struct sock_addr *ret)
{
        *ret = (struct sock_addr){ .len = sizeof(ret->ss) };
        return getsockname(fd, (struct sockaddr *) &ret->ss, &ret->len) < 0 ? -errno : 0;
}

bool sock_is_listening(int fd)
{
        int v = 0;
        socklen_t n = sizeof(v);

        return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &v, &n) == 0 && v != 0;
}

void sock_keep_alive(int fd)
{
        int one = 1, idle = 60, interval = 15, count = 4; /* seconds */

        /* Only TCP knows the last three, and only TCP uses the first. */
        (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

int sock_connect(const struct sock_addr *a, int *ret_fd)
{
        scoped(fd_closep) int fd = -EBADF;
        int r, one = 1;

        r = new_socket(a->ss.ss_family, &fd);
        if (r < 0)
                return r;
        if (!sock_addr_is_unix(a)) {
                (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                sock_keep_alive(fd);
        }
        if (connect(fd, (const struct sockaddr *) &a->ss, a->len) < 0) {
                if (errno != EINPROGRESS)
                        return -errno;
                r = -EINPROGRESS;
        }
        *ret_fd = TAKE_FD(fd);
        return r;
}

int sock_error(int fd)
{
        int v = 0;
        socklen_t n = sizeof(v);

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &n) < 0)
                return -errno;
        return -v;
}

int64_t sock_peer_uid(int fd)
{
        struct ucred cred;
        socklen_t n = sizeof(cred);
        int domain = -1;
        socklen_t size = sizeof(domain);

        /* Other families have no credentials and some return zeroes, which would be root. */
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain != AF_UNIX)
                return -1;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || n != sizeof(cred))
                return -1;
        return cred.uid == (uid_t) -1 ? -1 : (int64_t) cred.uid;
}
