/* SPDX-License-Identifier: Apache-2.0 */

/* Worlds of one's own, and those of others: 29, 30, 52. */

#include "probe.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEWTIME 0x80

static const struct {
        const char *name;
        int flag;
} kinds[] = {
        { "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS },        { "pid", CLONE_NEWPID },
        { "net", CLONE_NEWNET },   { "ipc", CLONE_NEWIPC },       { "uts", CLONE_NEWUTS },
        { "time", NEWTIME },       { "cgroup", CLONE_NEWCGROUP },
};

static int expected; /* flag of the attempt; children have it too */

static long unshare_one(void)
{
        return outcome(unshare(expected));
}

static long unshare_each(void)
{
        long last = -EDOM;

        for (size_t i = 0; i < COUNT(kinds); i++) {
                expected = kinds[i].flag;
                last = in_child(unshare_one);
                if (last != -EPERM) {
                        note("%s ", kinds[i].name);
                        return last;
                }
        }
        return last;
}

/* Behind flags that are allowed. */
static long unshare_among_others(void)
{
        return outcome(unshare(CLONE_FILES | CLONE_SYSVSEM | CLONE_NEWUSER));
}

static long clone_with(unsigned long flags)
{
        const long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

        if (pid == 0)
                _exit(0);
        return outcome(pid);
}

static long clone_each(void)
{
        long last = -EDOM;

        for (size_t i = 0; i < COUNT(kinds); i++) {
                if (kinds[i].flag == NEWTIME)
                        continue; /* there it is part of the signal's number */
                last = clone_with((unsigned long) kinds[i].flag);
                if (last != -EPERM)
                        return last;
        }
        return last;
}

static long clone_user_and_mounts(void)
{
        return clone_with(CLONE_NEWUSER | CLONE_NEWNS);
}

/* A filter can't look at what a pointer leads to. */
static long clone_three(void)
{
        struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
        const long pid = syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                _exit(0);
        return outcome(pid);
}

static long clone_three_plain(void)
{
        struct clone_args args = { .exit_signal = SIGCHLD };
        const long pid = syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                _exit(0);
        return outcome(pid);
}

/* --- joining --- */

static long open_of_agent(const char *name)
{
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/1/ns/%s", name);
        return try_open(path, O_RDONLY);
}

static long open_those_of_agent(void)
{
        static const char *const names[] = { "user", "mnt", "pid",  "net",
                                             "ipc",  "uts", "time", "cgroup" };

        return try_each(names, COUNT(names), open_of_agent);
}

static long join_own(void)
{
        const int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

        return fd < 0 ? outcome(-1) : outcome(setns(fd, CLONE_NEWNET));
}

static long join_by_pidfd(void)
{
        const int fd = (int) syscall(SYS_pidfd_open, getppid(), 0);

        return fd < 0 ? outcome(-1) : outcome(setns(fd, CLONE_NEWNET | CLONE_NEWUTS));
}

/* Descriptors that were left open. */
static long join_any_descriptor(void)
{
        for (int fd = 0; fd < 1024; fd++)
                if (setns(fd, 0) == 0)
                        return fd;
                else if (errno != EPERM)
                        return outcome(-1);
        return -EPERM;
}

static const struct probe probes[] = {
        { 29, "unshare-each", unshare_each, OUTSIDE, { EPERM } },
        { 29, "unshare-among-others", unshare_among_others, OUTSIDE, { EPERM } },
        { 29, "clone-each", clone_each, OUTSIDE, { EPERM } },
        { 29, "clone-user-and-mounts", clone_user_and_mounts, OUTSIDE, { EPERM } },
        { 30, "open-ns-of-agent", open_those_of_agent, INSIDE, { EACCES } },
        { 30, "setns-own", join_own, OUTSIDE, { EPERM } },
        { 30, "setns-pidfd", join_by_pidfd, OUTSIDE, { EPERM } },
        { 30, "setns-leaked", join_any_descriptor, INSIDE, { EPERM } },
        { 52, "clone3-user", clone_three, OUTSIDE, { ENOSYS } },
        { 52, "clone3-plain", clone_three_plain, OUTSIDE, { ENOSYS } },
};

const struct probe_theme theme_namespaces = THEME(probes);
