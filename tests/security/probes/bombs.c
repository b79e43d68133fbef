/* SPDX-License-Identifier: Apache-2.0 */

/* Resources: 1 to 18, and processes that will not go away. Run as "bomb NAME NUMBER [ADDRESS]", where
 * the number is how much to try at most. */

#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bomb.h"
#include "meeting.h"

#define MIB (1024L * 1024)

struct bomb_progress *progress;

typedef void bomb_fn(long most);

void stop_at(int error)
{
        progress->error = error;
}

static int64_t now_ms(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until our input is closed; children of a bomb hold what they have. */
static void hold(void)
{
        char byte;

        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
}

/* --- processes --- */

static void bomb_fork(long most)
{
        while (progress->reached < most) {
                const pid_t pid = fork();

                if (pid < 0) {
                        stop_at(errno);
                        return;
                }
                if (pid == 0)
                        for (;;)
                                (void) pause();
                progress->reached++;
        }
}

/* Every process of it goes on forking: who wants to kill it must be faster. */
static void bomb_fork_on(long most)
{
        const pid_t leader = getpid();

        (void) most;
        for (int refused = 0; getpid() != leader || refused < 100;) {
                const pid_t pid = fork();

                if (pid < 0)
                        refused++;
                else if (pid > 0)
                        __atomic_add_fetch(&progress->reached, 1, __ATOMIC_RELAXED);
        }
        stop_at(errno);
}

static int thread_waits(void *unused)
{
        (void) unused;
        for (;;)
                (void) syscall(SYS_pause);
        return 0;
}

static void bomb_threads(long most)
{
        const size_t stack = 16384;

        while (progress->reached < most) {
                char *p = mmap(NULL, stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                               0);

                if (p == MAP_FAILED
                    || clone(thread_waits, p + stack,
                             CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD
                                     | CLONE_SYSVSEM,
                             NULL)
                               < 0) {
                        stop_at(errno);
                        return;
                }
                progress->reached++;
        }
}

/* Orphans that end at once: the first process has to reap them. */
static void bomb_zombies(long most)
{
        for (; progress->reached < most; progress->reached++) {
                const pid_t pid = fork();

                if (pid < 0) {
                        stop_at(errno);
                        return;
                }
                if (pid == 0) {
                        for (int i = 0; i < 20; i++)
                                if (fork() == 0)
                                        _exit(0);
                        _exit(0);
                }
                (void) waitpid(pid, NULL, 0);
        }
}

/* As many short ones as there can be, for some time. */
static void bomb_short(long ms)
{
        for (const int64_t end = now_ms() + ms; now_ms() < end; progress->reached++) {
                const long pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

                if (pid == 0)
                        _exit(0);
                if (pid < 0)
                        stop_at(errno);
                else
                        (void) waitpid((pid_t) pid, NULL, 0);
        }
}

static void bomb_spin(long ms)
{
        const long n = sysconf(_SC_NPROCESSORS_ONLN);

        for (long i = 1; i < 2 * n; i++)
                if (fork() == 0)
                        break;
        for (const int64_t end = now_ms() + ms; now_ms() < end;)
                progress->reached = 1;
}

/* Daemons of each kind that could outlive their sandbox. */
static void be_daemon(int kind)
{
        if (fork() != 0)
                _exit(0);
        (void) setsid();
        for (int sig = 1; sig < 32; sig++)
                (void) signal(sig, SIG_IGN);
        if (kind == 1)
                (void) raise(SIGSTOP);
        /* A process that waits for it can only be reached by SIGKILL. */
        if (kind == 2 && syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0)
                for (;;)
                        (void) pause();
        if (kind == 3)
                (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (kind == 4)
                (void) syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (kind == 5)
                (void) close_range(0, ~0U, 0);
        for (;;)
                (void) pause();
}

static void bomb_daemons(long most)
{
        for (; progress->reached < most; progress->reached++) {
                const pid_t pid = fork();

                if (pid == 0)
                        be_daemon((int) (progress->reached % 6));
                (void) waitpid(pid, NULL, 0);
        }
}

/* --- memory, in MiB --- */

static void bomb_memory(long most)
{
        for (; progress->reached < most; progress->reached++) {
                char *p =
                        mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (p == MAP_FAILED) {
                        stop_at(errno);
                        return;
                }
                memset(p, 1, MIB);
        }
}

static void fill_file(int fd, long most)
{
        static char block[MIB];

        memset(block, 1, sizeof(block));
        for (long bytes = 0; fd >= 0 && progress->reached < most; progress->reached = bytes / MIB) {
                const ssize_t n = write(fd, block, sizeof(block));

                if (n < 0)
                        break;
                bytes += n;
        }
        stop_at(progress->reached < most ? errno : 0);
}

static void bomb_tmpfs(long most)
{
        fill_file(open("/dev/shm/bomb", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), most);
}

static void bomb_memfd(long most)
{
        fill_file(memfd_create("bomb", MFD_CLOEXEC), most);
}

static void bomb_disk(long most)
{
        fill_file(open("/var/tmp/bomb", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), most);
}

static void bomb_sysv(long most)
{
        for (; progress->reached < most; progress->reached++) {
                const int id = shmget(IPC_PRIVATE, MIB, 0600);
                void *p = id < 0 ? (void *) -1 : shmat(id, NULL, 0);

                if (p == (void *) -1) {
                        stop_at(errno);
                        return;
                }
                memset(p, 1, MIB);
        }
}

static void bomb_pipes(long most)
{
        static char block[65536];
        int ends[2];

        for (long kib = 0; progress->reached < most; progress->reached = kib / 1024) {
                if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
                        stop_at(errno);
                        return;
                }
                for (ssize_t n; (n = write(ends[1], block, sizeof(block))) > 0;)
                        kib += n / 1024;
        }
}

static void bomb_sockets(long most)
{
        static char block[32768];
        int ends[2];

        for (long kib = 0; progress->reached < most; progress->reached = kib / 1024) {
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
                        stop_at(errno);
                        return;
                }
                for (ssize_t n; (n = write(ends[1], block, sizeof(block))) > 0;)
                        kib += n / 1024;
        }
}

/* One page of a table for each page that is read, at a distance of one table. */
static void bomb_page_tables(long most)
{
        const size_t step = 2UL * 1024 * 1024;

        for (; progress->reached < most; progress->reached++) {
                volatile char *p = mmap(NULL, 256 * step, PROT_READ,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

                if (p == MAP_FAILED) {
                        stop_at(errno);
                        return;
                }
                (void) madvise((void *) p, 256 * step, MADV_NOHUGEPAGE);
                for (size_t i = 0; i < 256; i++)
                        (void) p[i * step];
        }
}

/* --- tables of the kernel --- */

void raise_descriptors(void)
{
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
                l.rlim_cur = l.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &l);
        }
}

static void bomb_files(long most)
{
        raise_descriptors();
        for (; progress->reached < most; progress->reached++) {
                const int fd = open("/dev/null", O_RDONLY); /* and stays open */

                if (fd < 0) {
                        stop_at(errno);
                        return;
                }
        }
}

static void bomb_inotify(long most)
{
        for (; progress->reached < most; progress->reached++)
                if (inotify_init1(IN_CLOEXEC) < 0) {
                        stop_at(errno);
                        return;
                }
}

static void bomb_epoll(long most)
{
        while (progress->reached < most) {
                const int fd = epoll_create1(EPOLL_CLOEXEC);

                for (int i = 0; i < 3; i++) {
                        struct epoll_event e = { .events = EPOLLIN };

                        if (fd < 0 || (epoll_ctl(fd, EPOLL_CTL_ADD, i, &e) < 0 && errno != EPERM)) {
                                stop_at(errno);
                                return;
                        }
                }
                progress->reached++;
        }
}

static void bomb_timers(long most)
{
        struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        timer_t t;

        for (; progress->reached < most; progress->reached++)
                if (timer_create(CLOCK_MONOTONIC, &e, &t) < 0) {
                        stop_at(errno);
                        return;
                }
}

static void bomb_queues(long most)
{
        struct mq_attr a = { .mq_maxmsg = 10, .mq_msgsize = 8192 };

        for (; progress->reached < most; progress->reached++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "/bomb-%ld", progress->reached);
                if (mq_open(name, O_RDWR | O_CREAT, 0600, &a) < 0) {
                        stop_at(errno);
                        return;
                }
                (void) mq_unlink(name); /* it stays as long as it is open */
        }
}

static void bomb_dentries(long most)
{
        for (; progress->reached < most; progress->reached++) {
                char name[64];
                struct stat st;

                (void) snprintf(name, sizeof(name), "/var/tmp/there-is-no-such-file-as-%ld",
                                progress->reached);
                if (stat(name, &st) < 0 && errno != ENOENT) {
                        stop_at(errno);
                        return;
                }
        }
}

static void bomb_ports(long most)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        for (; progress->reached < most; progress->reached++) {
                const int fd = socket(AF_INET, SOCK_DGRAM, 0);

                to.sin_port = htons((uint16_t) (1 + progress->reached % 65535));
                if (fd < 0
                    || bind(fd, (struct sockaddr *) &(struct sockaddr_in){ .sin_family = AF_INET },
                            sizeof(to))
                               < 0
                    || sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *) &to, sizeof(to)) < 0) {
                        stop_at(errno);
                        return;
                }
        }
}

static const char *peer; /* an address, for those that need one */

/* Each datagram is the first of a flow that a host on the way may have to track. */
static void bomb_flows(long most)
{
        struct sockaddr_in to = { .sin_family = AF_INET };
        int fd = -1;

        if (!peer || inet_pton(AF_INET, peer, &to.sin_addr) != 1) {
                stop_at(EDESTADDRREQ);
                return;
        }
        for (; progress->reached < most; progress->reached++) {
                if (progress->reached % 60000 == 0)
                        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                to.sin_port = htons((uint16_t) (1024 + progress->reached % 60000));
                if (sendto(fd, "x", 1, 0, (struct sockaddr *) &to, sizeof(to)) < 0
                    && errno != ECONNREFUSED && errno != EPERM && errno != ENOBUFS
                    && errno != EHOSTUNREACH && errno != EACCES) {
                        stop_at(errno);
                        return;
                }
        }
}

/* --- files --- */

static void bomb_inodes(long most)
{
        (void) mkdir("/var/tmp/inodes", 0700);
        for (; progress->reached < most; progress->reached++) {
                char name[64];
                int fd;

                (void) snprintf(name, sizeof(name), "/var/tmp/inodes/%ld", progress->reached);
                fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0) {
                        stop_at(errno);
                        return;
                }
                (void) close(fd);
        }
}

static void bomb_deep(long most)
{
        char name[256];

        memset(name, 'd', 255);
        name[255] = '\0';
        if (chdir("/var/tmp") < 0)
                return;
        for (; progress->reached < most; progress->reached++)
                if (mkdir(name, 0700) < 0 || chdir(name) < 0) {
                        stop_at(errno);
                        return;
                }
}

/* The largest that the file system takes. */
static void bomb_sparse(long most)
{
        const int fd = open("/var/tmp/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        (void) most;
        for (int bits = 63; fd >= 0 && bits > 20; bits--)
                if (ftruncate(fd, (off_t) ((1UL << bits) - 4096)) == 0) {
                        progress->reached = (long) ((1UL << bits) - 4096);
                        return;
                }
        stop_at(errno);
}

static void bomb_fsync(long ms)
{
        char name[64];
        int fd;

        for (int i = 0; i < 3; i++)
                if (fork() == 0)
                        break;
        (void) snprintf(name, sizeof(name), "/var/tmp/sync-%d", getpid());
        fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        for (const int64_t end = now_ms() + ms; fd >= 0 && now_ms() < end;) {
                if (pwrite(fd, name, sizeof(name), 0) < 0 || fsync(fd) < 0) {
                        stop_at(errno);
                        return;
                }
                __atomic_add_fetch(&progress->reached, 1, __ATOMIC_RELAXED);
        }
}

/* --- for others to find --- */

static void bomb_meeting_places(long most)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        const int s = socket(AF_UNIX, SOCK_STREAM, 0);
        struct mq_attr a = { .mq_maxmsg = 1, .mq_msgsize = 64 };
        int shared;

        (void) most;
        shared = open("/dev/shm/" MEETING, O_RDWR | O_CREAT, 0666);
        memcpy(un.sun_path + 1, MEETING, sizeof(MEETING) - 1);
        if (bind(s, (struct sockaddr *) &un,
                 offsetof(struct sockaddr_un, sun_path) + sizeof(MEETING))
                    < 0
            || listen(s, 8) < 0 || mq_open("/" MEETING, O_RDWR | O_CREAT, 0666, &a) < 0
            || shmget(MEETING_KEY, 4096, IPC_CREAT | 0666) < 0
            || semget(MEETING_KEY, 1, IPC_CREAT | 0666) < 0
            || msgget(MEETING_KEY, IPC_CREAT | 0666) < 0 || shared < 0)
                stop_at(errno);
        else
                progress->reached = 6;
}

static const struct {
        const char *name;
        bomb_fn *fn;
} bombs[] = {
        { "fork", bomb_fork },
        { "fork-on", bomb_fork_on },
        { "threads", bomb_threads },
        { "zombies", bomb_zombies },
        { "short", bomb_short },
        { "spin", bomb_spin },
        { "daemons", bomb_daemons },
        { "memory", bomb_memory },
        { "tmpfs", bomb_tmpfs },
        { "memfd", bomb_memfd },
        { "disk", bomb_disk },
        { "sysv", bomb_sysv },
        { "pipes", bomb_pipes },
        { "sockets", bomb_sockets },
        { "page-tables", bomb_page_tables },
        { "tcp", bomb_tcp },
        { "udp", bomb_udp },
        { "orphans", bomb_orphans },
        { "replies", bomb_replies },
        { "neighbours", bomb_neighbours },
        { "files", bomb_files },
        { "inotify", bomb_inotify },
        { "epoll", bomb_epoll },
        { "timers", bomb_timers },
        { "queues", bomb_queues },
        { "dentries", bomb_dentries },
        { "ports", bomb_ports },
        { "flows", bomb_flows },
        { "inodes", bomb_inodes },
        { "deep", bomb_deep },
        { "sparse", bomb_sparse },
        { "fsync", bomb_fsync },
        { "meeting-places", bomb_meeting_places },
};

/* The bomb is a child, which is what a killer of processes takes first, and holds what it has. */
static int explode(const char *name, bomb_fn *fn, long most)
{
        int ends[2], status = 0;
        const char *end = "ok";
        char byte;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                return 1;
        if (pid == 0) {
                (void) close(ends[0]);
                fn(most);
                if (write(ends[1], "x", 1) != 1)
                        _exit(1);
                hold();
                _exit(0);
        }
        (void) close(ends[1]);
        if (read(ends[0], &byte, 1) != 1) {
                (void) waitpid(pid, &status, 0);
                end = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : "exit";
        } else if (progress->error != 0)
                end = strerrorname_np(progress->error);
        (void) printf("%s %ld %s\n", name, progress->reached, end);
        (void) fflush(stdout);
        hold();
        return 0;
}

int bomb_main(int argc, char **argv)
{
        const long most = argc >= 2 ? strtol(argv[1], NULL, 10) : 1000000;

        peer = argc >= 3 ? argv[2] : NULL;
        progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        if (progress == MAP_FAILED)
                return 1;
        for (size_t i = 0; i < COUNT(bombs); i++)
                if (strcmp(bombs[i].name, argv[0]) == 0)
                        return explode(bombs[i].name, bombs[i].fn, most);
        (void) fprintf(stderr, "there is no such bomb\n");
        return 2;
}
