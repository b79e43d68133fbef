/* SPDX-License-Identifier: Apache-2.0 */
#include "os/landlock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "os/confine.h"
#include "os/fd.h"
#include "os/socket.h"
#include "os/walk.h"
#include "tests/lib/apart.h"

#define ABI_NET   4
#define ABI_SCOPE 6

/* A directory with one file in each of two directories. */
#define ROOT_MAX 64

static char root[ROOT_MAX];

static int setup(void **state)
{
        char path[ROOT_MAX + 32];

        (void) state;
        (void) snprintf(root, sizeof(root), "/tmp/landlock-XXXXXX");
        if (!mkdtemp(root))
                return -1;
        for (int i = 0; i < 2; i++) {
                (void) snprintf(path, sizeof(path), "%s/%c", root, "ab"[i]);
                (void) mkdir(path, 0755);
                (void) snprintf(path, sizeof(path), "%s/%c/file", root, "ab"[i]);
                (void) fd_close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        }
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        return walk_remove_all(AT_FDCWD, root);
}

static int try_open(const char *name, int flags)
{
        char path[ROOT_MAX + 32];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s", root, name);
        fd = open(path, flags | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        return fd_close(fd) == -EBADF ? 0 : 1;
}

static int allow(struct landlock *l, const char *name, unsigned access)
{
        scoped(fd_closep) int fd = -EBADF;
        char path[ROOT_MAX + 32];

        (void) snprintf(path, sizeof(path), "%s/%s", root, name);
        fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : landlock_allow(l, fd, access);
}

static int enter(struct landlock *l)
{
        int r = confine_no_new_privs();

        if (r == 0)
                r = landlock_enter(l);
        landlock_close(l);
        return r;
}

/* --- files --- */

static int files(void *data)
{
        struct landlock l = LANDLOCK_NULL;
        char from[ROOT_MAX + 32], to[ROOT_MAX + 32];
        int outside;

        (void) data;
        apart_check(landlock_open(&l, 0) == 0 && l.abi == landlock_abi());
        apart_check(allow(&l, "a", LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_FILES) == 0);
        /* What a file cannot have is left out. */
        apart_check(allow(&l, "b/file", LANDLOCK_READ | LANDLOCK_LIST | LANDLOCK_DIRS) == 0);
        apart_check(enter(&l) == 0);

        apart_check(try_open("a/file", O_RDONLY) == 0);
        apart_check(try_open("a/file", O_WRONLY | O_TRUNC) == 0);
        apart_check(try_open("a/new", O_WRONLY | O_CREAT) == 0);
        apart_check(try_open("a", O_RDONLY | O_DIRECTORY) == -EACCES);
        apart_check(try_open("b/file", O_RDONLY) == 0);
        apart_check(try_open("b/file", O_WRONLY) == -EACCES);
        apart_check(try_open("b/new", O_WRONLY | O_CREAT) == -EACCES);
        outside = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        apart_check(outside < 0 && errno == EACCES);

        (void) snprintf(from, sizeof(from), "%s/a/new", root);
        (void) snprintf(to, sizeof(to), "%s/a/newer", root);
        apart_check(rename(from, to) == 0 && unlink(to) == 0);
        (void) snprintf(to, sizeof(to), "%s/a/directory", root);
        apart_check(mkdir(to, 0755) < 0 && errno == EACCES);
        return 0;
}

static int programs(void *data)
{
        struct landlock l = LANDLOCK_NULL;

        (void) data;
        apart_check(landlock_open(&l, 0) == 0);
        apart_check(enter(&l) == 0);
        (void) execl("/bin/true", "true", NULL);
        apart_check(errno == EACCES);
        return 0;
}

/* --- others --- */

static int bind_to(uint16_t port)
{
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        scoped(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return bind(fd, (const struct sockaddr *) &in, sizeof(in)) < 0 ? -errno : 0;
}

static int connect_to(uint16_t port)
{
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(port) };
        scoped(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return connect(fd, (const struct sockaddr *) &in, sizeof(in)) < 0 ? -errno : 0;
}

/* In a network namespace of its own, where the loopback device is down: an address cannot be reached. */
static int ports(void *data)
{
        struct landlock l = LANDLOCK_NULL;

        (void) data;
        apart_check(landlock_open(&l, LANDLOCK_BIND | LANDLOCK_CONNECT) == 0);
        apart_check(landlock_allow_bind(&l, 8080) == 0 && landlock_allow_connect(&l, 6379) == 0);
        apart_check(enter(&l) == 0);
        apart_check(bind_to(8080) == 0);
        apart_check(bind_to(8081) == -EACCES);
        apart_check(bind_to(0) == -EACCES);
        apart_check(connect_to(6379) == -ENETUNREACH || connect_to(6379) == -ECONNREFUSED);
        apart_check(connect_to(6380) == -EACCES);
        return 0;
}

static int no_scopes(void *data)
{
        struct landlock l = LANDLOCK_NULL;

        (void) data;
        apart_check(landlock_open(&l, 0) == 0);
        apart_check(landlock_allow_bind(&l, 8080) == 0); /* nothing to allow */
        apart_check(enter(&l) == 0);
        apart_check(bind_to(8081) == 0);
        apart_check(kill(getppid(), 0) == 0);
        return 0;
}

static int scopes(void *data)
{
        struct landlock l = LANDLOCK_NULL;
        struct sock_addr abstract = { 0 };
        struct sockaddr_un *un = (struct sockaddr_un *) &abstract.ss;
        int listener = -EBADF, fd = -EBADF, status;
        pid_t pid;

        (void) data;
        un->sun_family = AF_UNIX;
        (void) snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "hutch-test-%d", getpid());
        abstract.len =
                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(un->sun_path + 1));
        apart_check(sock_listen(&abstract, &listener) == 0);
        apart_check(landlock_open(&l, LANDLOCK_SIGNALS | LANDLOCK_ABSTRACT) == 0);
        apart_check(enter(&l) == 0);
        apart_check(kill(getppid(), 0) < 0 && errno == EPERM);
        apart_check(sock_connect(&abstract, &fd) == -EPERM);
        pid = fork(); /* a child is inside as well */
        if (pid == 0)
                (void) pause();
        apart_check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
        return 0;
}

/* --- with what this kernel has --- */

static void run(apart_fn *fn, unsigned abi, int namespaces)
{
        if (landlock_abi() < abi)
                skip_because("this kernel has no Landlock, or an older version");
        apart_run(fn, NULL, namespaces);
}

static void test_files(void **state)
{
        (void) state;
        run(files, 1, 0);
}

static void test_programs(void **state)
{
        (void) state;
        run(programs, 1, 0);
}

static void test_ports(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("needs root, for a network namespace");
        run(ports, ABI_NET, CLONE_NEWNET);
}

static void test_only_files(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("needs root, for a network namespace");
        run(no_scopes, 1, CLONE_NEWNET);
}

static void test_signals_and_abstract_sockets(void **state)
{
        (void) state;
        run(scopes, ABI_SCOPE, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_ports),
                cmocka_unit_test(test_only_files),
                cmocka_unit_test(test_signals_and_abstract_sockets),
        };

        return cmocka_run_group_tests_name("os/landlock", tests, setup, teardown);
}
