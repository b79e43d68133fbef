/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIVES_UP 20000 /* milliseconds; one attempt that hangs must not hide the others */

static const struct probe_theme *const themes[] = {
        &theme_mounts,    &theme_namespaces,  &theme_files,   &theme_devices,
        &theme_calls,     &theme_abi,         &theme_sockets, &theme_privileges,
        &theme_processes, &theme_descriptors, &theme_ipc,     &theme_tables,
};

struct report {
        long result;
        char note[256];
};

static struct report mine; /* of the attempt that this process makes */

/* --- helpers of attempts --- */

long outcome(long r)
{
        return r < 0 ? -(long) errno : r;
}

void note(const char *format, ...)
{
        const size_t n = strlen(mine.note);
        va_list args;

        va_start(args, format);
        (void) vsnprintf(mine.note + n, sizeof(mine.note) - n, format, args);
        va_end(args);
        for (char *c = mine.note; *c; c++)
                if (*c < ' ')
                        *c = ' ';
}

long lacks(const char *feature)
{
        note("%s", feature);
        return PROBE_LACKS;
}

long try_open(const char *path, int flags)
{
        const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

        if (fd < 0)
                return outcome(-1);
        (void) close(fd);
        return 0;
}

long try_write(const char *path, const char *text)
{
        const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        long r;

        if (fd < 0)
                return outcome(-1);
        r = outcome(write(fd, text, strlen(text)));
        (void) close(fd);
        return r;
}

long try_each(const char *const *paths, size_t n, long (*fn)(const char *path))
{
        long found = -ENOENT;

        for (size_t i = 0; i < n; i++) {
                const long r = fn(paths[i]);

                if (r >= 0) {
                        note("%s ", paths[i]);
                        return r;
                }
                if (r != -ENOENT)
                        found = r;
        }
        return found;
}

long read_file(const char *path, char *to, size_t n)
{
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        long r;

        *to = '\0';
        if (fd < 0)
                return outcome(-1);
        r = outcome(read(fd, to, n - 1));
        (void) close(fd);
        if (r >= 0)
                to[r] = '\0';
        return r;
}

/* --- one attempt --- */

/* The child's answer comes through a pipe: an attempt may take away whatever else they share. */
static bool wait_for(int fd, pid_t pid, struct report *ret)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        bool reported = false;
        int status = 0;

        if (poll(&p, 1, GIVES_UP) == 1)
                reported = read(fd, ret, sizeof(*ret)) == sizeof(*ret);
        if (reported || p.revents == 0)
                (void) kill(pid, SIGKILL); /* it may have been stopped, or fail to end */
        while (waitpid(pid, &status, __WALL) != pid)
                if (errno != EINTR)
                        return false;
        if (!reported)
                ret->result = WIFSIGNALED(status) ? -PROBE_SIGNAL(WTERMSIG(status)) : -EPROTO;
        return true;
}

static long run_apart(probe_fn *fn, void (*before)(void), struct report *ret)
{
        int ends[2];
        pid_t pid;

        *ret = (struct report){ 0 };
        if (pipe2(ends, O_CLOEXEC) < 0)
                return outcome(-1);
        pid = fork();
        if (pid < 0)
                return outcome(-1);
        if (pid == 0) {
                /* Not a number that attempts on descriptors look at. */
                const int out = fcntl(ends[1], F_DUPFD_CLOEXEC, 900);

                (void) close(ends[0]);
                (void) close(ends[1]);
                (void) setsid();
                mine = (struct report){ 0 };
                if (before)
                        before();
                mine.result = fn();
                _exit(write(out, &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
        }
        (void) close(ends[1]);
        if (!wait_for(ends[0], pid, ret))
                ret->result = -ECHILD;
        (void) close(ends[0]);
        return ret->result;
}

long in_child(probe_fn *fn)
{
        struct report r;
        const long result = run_apart(fn, NULL, &r);

        note("%s", r.note);
        return result;
}

static void go_to_work(void)
{
        char dir[] = "/tmp/probe-XXXXXX";

        if (!mkdtemp(dir) || chdir(dir) < 0)
                _exit(9);
}

/* On the host: everything that an attempt could spoil is a copy. */
static void leave_machine_alone(void)
{
        if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP) < 0
            || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
            || mount("probe", "/tmp", "tmpfs", 0, NULL) < 0
            || mount("probe", "/proc", "proc", 0, NULL) < 0)
                _exit(8);
        go_to_work();
}

/* --- the report --- */

static void say(const struct probe *p, const char *verdict, const struct report *r)
{
        const char *got = "worked";
        char text[32];

        if (r->result == PROBE_LACKS)
                got = "lacks";
        else if (r->result <= -1000 && r->result > PROBE_LACKS)
                got = sigabbrev_np((int) -r->result - 1000);
        else if (r->result < 0)
                got = strerrorname_np((int) -r->result);
        if (!got) {
                (void) snprintf(text, sizeof(text), "%ld", r->result);
                got = text;
        }
        (void) printf("%d %s %s %s %s\n", p->number, p->name, verdict, got, r->note);
        (void) fflush(stdout);
}

static const char *judge(const struct probe *p, long result)
{
        if (result == PROBE_LACKS)
                return "lacks";
        if (p->errors[0] == 0)
                return result >= 0 ? "ok" : "DEVIATION";
        for (size_t i = 0; i < COUNT(p->errors) && p->errors[i] != 0; i++)
                if (result == -(long) p->errors[i])
                        return "ok";
        return "DEVIATION";
}

static void try_inside(const struct probe *p)
{
        struct report r;

        (void) run_apart(p->run, go_to_work, &r);
        say(p, judge(p, r.result), &r);
}

static void try_outside(const struct probe *p)
{
        struct report r;

        if (p->where != OUTSIDE)
                return;
        (void) run_apart(p->run, leave_machine_alone, &r);
        say(p, r.result >= 0 ? "works" : "lacks", &r);
}

/* Without numbers all of them. */
static int for_each(void (*fn)(const struct probe *p), char **numbers)
{
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        for (size_t t = 0; t < COUNT(themes); t++)
                for (size_t i = 0; i < themes[t]->n; i++) {
                        const struct probe *p = &themes[t]->probes[i];
                        bool expected = !*numbers;

                        for (char **n = numbers; *n; n++)
                                expected |= strtol(*n, NULL, 10) == p->number
                                            || strcmp(*n, p->name) == 0;
                        if (expected)
                                fn(p);
                }
        return puts("done") < 0;
}

static void list(const struct probe *p)
{
        (void) printf("%d %s %s\n", p->number, p->name, p->where == OUTSIDE ? "outside" : "inside");
}

int main(int argc, char **argv)
{
        if (argc >= 2 && strcmp(argv[1], "inside") == 0)
                return for_each(try_inside, argv + 2);
        if (argc >= 2 && strcmp(argv[1], "outside") == 0)
                return for_each(try_outside, argv + 2);
        if (argc == 2 && strcmp(argv[1], "list") == 0)
                return for_each(list, argv + 2);
        if (argc >= 3 && strcmp(argv[1], "bomb") == 0)
                return bomb_main(argc - 2, argv + 2);
        if (argc >= 3 && strcmp(argv[1], "act") == 0)
                return act_main(argc - 2, argv + 2);
        (void) fprintf(stderr, "usage: probes inside|outside|list [NUMBER|NAME...]\n"
                               "       probes bomb|act NAME [ARGUMENT...]\n");
        return 2;
}
