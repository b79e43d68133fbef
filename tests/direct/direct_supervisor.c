/* SPDX-License-Identifier: Apache-2.0 */

/*
 * direct-supervisor AGENT [ARGUMENT]...: stands between hutchd and one agent of the driver "direct", in the
 * sandbox's directory, and outlives hutchd.
 *
 * It holds a lock on the file "lock" for as long as anything of the sandbox runs: who wants to know
 * whether it lives, and its pid, asks the kernel for the holder. No note of hutchd is needed, so none
 * can be missing after a crash. It is a subreaper: whatever the sandbox has started stays below it,
 * setsid and double forks or not.
 *
 * It ends everything below it and then itself when the agent ends (and leaves a note how, in "exit"),
 * on SIGTERM, and when someone has removed its directory: a test that fails leaves no processes behind.
 *
 * The lock comes first, and is given back by the kernel only. A hutchd that finds no one holding it
 * takes it, and either leaves a note "exit" or removes the directory: a supervisor that comes late finds one
 * of the two and goes.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/proctree.h"

/* Whole, or not at all. */
static void write_note(const char *name, const char *temp, const char *text)
{
        int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        size_t n = strlen(text);

        if (fd < 0 || write(fd, text, n) != (ssize_t) n || rename(temp, name) < 0)
                _exit(120);
        (void) close(fd);
}

/* Never closed: closing any descriptor of the file gives a record lock back. */
static int take_lock(void)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        int fd = open("lock", O_RDWR | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0 || fstat(fd, &st) < 0 || st.st_nlink == 0
            || access("exit", F_OK) == 0)
                _exit(121);
        return fd;
}

/* SIGIO comes when something happens to the file. */
static void watch_lock(void)
{
        int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

        if (fd < 0 || inotify_add_watch(fd, "lock", IN_ATTRIB | IN_DELETE_SELF) < 0
            || fcntl(fd, F_SETOWN, getpid()) < 0 || fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
                _exit(126);
}

static bool is_removed(int fd)
{
        struct stat st;

        return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

/* Its pid is written down before it can answer anybody. */
static pid_t start_agent(char **argv, const sigset_t *before)
{
        pid_t supervisor = getpid(), pid = fork();
        char text[32];

        if (pid != 0)
                return pid;
        (void) snprintf(text, sizeof(text), "%d\n", (int) getpid());
        write_note("agent", "agent.new", text);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != supervisor)
                _exit(122);
        (void) sigprocmask(SIG_SETMASK, before, NULL);
        (void) execve(argv[0], argv, environ);
        _exit(123);
}

struct watch {
        pid_t agent;
        bool ended;
        int status;
};

static void reaped(void *data, pid_t pid, int status)
{
        struct watch *w = data;

        if (pid != w->agent)
                return;
        w->ended = true;
        w->status = status;
}

static void reap(struct watch *w)
{
        int status;

        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
                reaped(w, pid, status);
}

static void note_exit(const struct watch *w)
{
        char text[48];

        if (WIFEXITED(w->status))
                (void) snprintf(text, sizeof(text), "exited %d\n", WEXITSTATUS(w->status));
        else
                (void) snprintf(text, sizeof(text), "signaled %d\n", WTERMSIG(w->status));
        write_note("exit", "exit.new", text);
}

int main(int argc, char **argv)
{
        sigset_t signals, before;
        struct watch w = { 0 };
        int sig = 0, lock;

        if (argc < 2)
                return 2;
        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGCHLD);
        (void) sigaddset(&signals, SIGIO);
        (void) sigprocmask(SIG_BLOCK, &signals, &before);
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return 124;
        lock = take_lock();
        watch_lock();
        w.agent = start_agent(argv + 1, &before);
        if (w.agent < 0)
                return 125;
        /* The agent's listening socket: once the agent is gone no one may connect. */
        (void) dup2(STDOUT_FILENO, STDIN_FILENO);

        while (!w.ended && sig != SIGTERM && !is_removed(lock)) {
                sig = sigwaitinfo(&signals, NULL);
                reap(&w);
        }
        proctree_kill_children(reaped, &w);
        if (w.ended && !is_removed(lock))
                note_exit(&w);
        return 0;
}
