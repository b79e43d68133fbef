/* SPDX-License-Identifier: Apache-2.0 */

/* The agent, and what stands between it and its commands: 20, 21, 25 to 27. */

#include "probe.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGENT 1

/* Who started the program that makes the attempts: a fork of the agent. */
static pid_t supervisor(void)
{
        char path[64], text[512];
        const char *after;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
        if (read_file(path, text, sizeof(text)) <= 0)
                return 0;
        after = strrchr(text, ')'); /* behind the name come a state, one letter, and the parent */
        return after ? (pid_t) strtol(after + strlen(") S "), NULL, 10) : 0;
}

/* --- 20 --- */

static long each_signal(long (*fn)(int sig))
{
        for (int sig = 1; sig <= 64; sig++) {
                const long r = fn(sig);

                if (r != -EPERM) {
                        note("signal %d ", sig);
                        return r;
                }
        }
        return -EPERM;
}

static long by_kill(int sig)
{
        return outcome(syscall(SYS_kill, AGENT, sig));
}

static long by_tkill(int sig)
{
        return outcome(syscall(SYS_tkill, AGENT, sig));
}

static long by_tgkill(int sig)
{
        return outcome(syscall(SYS_tgkill, AGENT, AGENT, sig));
}

static long by_queue(int sig)
{
        siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

        return outcome(syscall(SYS_rt_sigqueueinfo, AGENT, sig, &info));
}

static long by_thread_queue(int sig)
{
        siginfo_t info = { .si_signo = sig, .si_code = SI_QUEUE };

        return outcome(syscall(SYS_rt_tgsigqueueinfo, AGENT, AGENT, sig, &info));
}

static long signal_by_kill(void)
{
        return each_signal(by_kill);
}

static long signal_by_tkill(void)
{
        return each_signal(by_tkill);
}

static long signal_by_tgkill(void)
{
        return each_signal(by_tgkill);
}

static long signal_by_queue(void)
{
        return each_signal(by_queue);
}

static long signal_by_thread_queue(void)
{
        return each_signal(by_thread_queue);
}

/* The high half is not looked at by the kernel. */
static long signal_with_high_bits(void)
{
        return outcome(syscall(SYS_kill, (1UL << 32) | AGENT, SIGTERM));
}

static long agent_pidfd(void)
{
        return outcome(syscall(SYS_pidfd_open, AGENT, 0));
}

/* A directory of /proc is as good as a pidfd. What is sent may be dropped instead of refused: the first
 * process of a namespace hears nothing from inside. Outside they look whether it still lives. */
static long signal_by_dir(void)
{
        const int fd = open("/proc/1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return outcome(-1);
        for (int sig = 1; sig <= 64; sig++)
                (void) syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
        return 0;
}

/* As a signal that the kernel sends when a socket has something to read. */
static long signal_by_socket(void)
{
        int pair[2];

        for (int sig = 1; sig <= 64; sig++) {
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                        return outcome(-1);
                if (fcntl(pair[0], F_SETOWN, AGENT) < 0 || fcntl(pair[0], F_SETSIG, sig) < 0
                    || fcntl(pair[0], F_SETFL, O_ASYNC) < 0 || write(pair[1], "x", 1) != 1)
                        return 0; /* refused, which is as good */
                (void) close(pair[0]);
                (void) close(pair[1]);
        }
        return 0;
}

static long starve_descriptors(void)
{
        const struct rlimit none = { 0, 0 };

        return outcome(prlimit(AGENT, RLIMIT_NOFILE, &none, NULL));
}

static long starve_processor(void)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(0, &set);
        return outcome(sched_setaffinity(AGENT, sizeof(set), &set));
}

static long starve_by_idling(void)
{
        const struct sched_param p = { 0 };

        return outcome(sched_setscheduler(AGENT, SCHED_IDLE, &p));
}

static long starve_by_priority(void)
{
        return outcome(setpriority(PRIO_PROCESS, AGENT, 19));
}

static long starve_by_user(void)
{
        return outcome(setpriority(PRIO_USER, 0, 19));
}

static long starve_disk(void)
{
        return outcome(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, AGENT,
                               IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)));
}

static long offer_to_memory_killer(void)
{
        return try_write("/proc/1/oom_score_adj", "1000");
}

/* --- 21: its memory, and that of a fork of it --- */

static long with_both(long (*fn)(pid_t pid))
{
        const pid_t pids[] = { AGENT, supervisor() };
        long r = -ESRCH;

        for (size_t i = 0; i < COUNT(pids); i++) {
                r = pids[i] > 0 ? fn(pids[i]) : -ESRCH;
                if (r >= 0 || r == -ESRCH) {
                        note("process %d ", pids[i]);
                        return r;
                }
        }
        return r;
}

static long attach_to(pid_t pid)
{
        return outcome(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
}

static long seize(pid_t pid)
{
        return outcome(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static long open_of(pid_t pid, const char *name, int flags)
{
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        return try_open(path, flags);
}

static long open_memory(pid_t pid)
{
        const long r = open_of(pid, "mem", O_RDWR);

        return r < 0 ? open_of(pid, "mem", O_RDONLY) : r;
}

static long read_memory(pid_t pid)
{
        char byte;
        struct iovec to = { &byte, 1 }, from = { (void *) 0x400000, 1 };

        return outcome(process_vm_readv(pid, &to, 1, &from, 1, 0));
}

static long write_memory(pid_t pid)
{
        char byte = 0;
        struct iovec from = { &byte, 1 }, to = { (void *) 0x400000, 1 };

        return outcome(process_vm_writev(pid, &from, 1, &to, 1, 0));
}

/* Where its memory is, what is in its registers, what it waits for, where it is. */
static long read_memory_of(pid_t pid)
{
        static const char *const names[] = { "maps", "smaps",   "pagemap", "environ",
                                             "auxv", "syscall", "stack",   "io" };
        long r = -ENOENT;

        for (size_t i = 0; i < COUNT(names); i++) {
                char path[64], text[64];
                long one;

                (void) snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
                one = read_file(path, text, sizeof(text));
                if (one > 0) {
                        note("%s ", names[i]);
                        return one;
                }
                if (one < 0 && one != -ENOENT)
                        r = one;
        }
        return r;
}

static long attach_both(void)
{
        return with_both(attach_to);
}

static long seize_both(void)
{
        return with_both(seize);
}

static long open_memory_both(void)
{
        return with_both(open_memory);
}

static long read_memory_both(void)
{
        return with_both(read_memory);
}

static long write_memory_both(void)
{
        return with_both(write_memory);
}

static long read_both(void)
{
        return with_both(read_memory_of);
}

/* --- 25 --- */

/* A sibling of the caller instead of a child: the supervisor gets a child it knows nothing about. */
static long brother(void)
{
        const long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);

        if (pid == 0)
                _exit(0);
        return pid < 0 ? outcome(-1) : 0;
}

/* The first process of a namespace has none, and none of its own. */
static long brother_of_agent(void)
{
        const pid_t k = supervisor();

        (void) k;
        return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? outcome(-1) : brother();
}

/* --- 26 --- */

static long descriptor_of_supervisor(void)
{
        const int fd = (int) syscall(SYS_pidfd_open, supervisor(), 0);

        if (fd < 0)
                return outcome(-1);
        for (int i = 0; i < 64; i++)
                if (syscall(SYS_pidfd_getfd, fd, i, 0) >= 0)
                        return i;
        return outcome(-1);
}

/* Its own is as much the filter's business. */
static long descriptor_of_self(void)
{
        const int fd = (int) syscall(SYS_pidfd_open, getpid(), 0);

        return fd < 0 ? outcome(-1) : outcome(syscall(SYS_pidfd_getfd, fd, 0, 0));
}

static long open_descriptor(pid_t pid)
{
        long r = -ENOENT;

        for (int i = 0; i < 64; i++) {
                char name[16];
                long one;

                (void) snprintf(name, sizeof(name), "fd/%d", i);
                one = open_of(pid, name, O_RDONLY);
                if (one >= 0)
                        return i;
                if (one != -ENOENT)
                        r = one;
        }
        return r;
}

static long open_descriptors_both(void)
{
        return with_both(open_descriptor);
}

static long compare(void)
{
        return outcome(syscall(SYS_kcmp, getpid(), getppid(), 0 /* KCMP_FILE */, 0, 0));
}

/* --- 27 --- */

static long set_memory_map(void)
{
        return outcome(prctl(PR_SET_MM, PR_SET_MM_START_BRK, 0x400000, 0, 0));
}

static long set_program(void)
{
        return outcome(prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, 0, 0, 0));
}

static long dump_as_root(void)
{
        return outcome(prctl(PR_SET_DUMPABLE, 2, 0, 0, 0));
}

static long allow_new_privileges(void)
{
        return outcome(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

/* With capabilities that are kept, bits could be set that later give more: none of them here. */
static long keep_capabilities(void)
{
        return outcome(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21 /* CAP_SYS_ADMIN */, 0, 0));
}

static long io_flusher(void)
{
        return outcome(prctl(57 /* PR_SET_IO_FLUSHER */, 1, 0, 0, 0));
}

static long cookies(void)
{
        const long r = outcome(prctl(62 /* PR_SCHED_CORE */, 1 /* CREATE */, AGENT, 0, 0));

        return r == -EINVAL || r == -ENODEV ? -EPERM : r; /* without SMT there is no such thing */
}

static const struct probe probes[] = {
        { 20, "kill", signal_by_kill, INSIDE, { EPERM } },
        { 20, "tkill", signal_by_tkill, INSIDE, { EPERM } },
        { 20, "tgkill", signal_by_tgkill, INSIDE, { EPERM } },
        { 20, "rt_sigqueueinfo", signal_by_queue, INSIDE, { EPERM } },
        { 20, "rt_tgsigqueueinfo", signal_by_thread_queue, INSIDE, { EPERM } },
        { 20, "kill-high-bits", signal_with_high_bits, INSIDE, { EPERM } },
        { 20, "pidfd_open", agent_pidfd, INSIDE, { EPERM } },
        { 20, "pidfd_send_signal-directory", signal_by_dir, INSIDE, { 0 } },
        { 20, "F_SETSIG", signal_by_socket, INSIDE, { 0 } },
        { 20, "prlimit", starve_descriptors, INSIDE, { EPERM } },
        { 20, "sched_setaffinity", starve_processor, INSIDE, { EPERM } },
        { 20, "sched_setscheduler", starve_by_idling, INSIDE, { EPERM } },
        { 20, "setpriority", starve_by_priority, INSIDE, { EPERM } },
        { 20, "setpriority-user", starve_by_user, INSIDE, { EPERM } },
        { 20, "ioprio_set", starve_disk, INSIDE, { EPERM } },
        { 20, "oom_score_adj", offer_to_memory_killer, INSIDE, { EROFS, EACCES } },
        { 21, "ptrace-attach", attach_both, INSIDE, { EPERM } },
        { 21, "ptrace-seize", seize_both, INSIDE, { EPERM } },
        { 21, "open-mem", open_memory_both, INSIDE, { EACCES, EROFS } },
        { 21, "process_vm_readv", read_memory_both, INSIDE, { EPERM } },
        { 21, "process_vm_writev", write_memory_both, INSIDE, { EPERM } },
        { 21, "look-into", read_both, INSIDE, { EACCES, EPERM } },
        { 25, "clone-parent", brother, OUTSIDE, { 0 } },
        { 25, "subreaper-clone-parent", brother_of_agent, OUTSIDE, { 0 } },
        { 26, "pidfd_getfd-supervisor", descriptor_of_supervisor, INSIDE, { EPERM } },
        { 26, "pidfd_getfd-self", descriptor_of_self, OUTSIDE, { EPERM } },
        { 26, "open-descriptors", open_descriptors_both, INSIDE, { EACCES, EPERM } },
        { 26, "kcmp", compare, OUTSIDE, { EPERM } },
        { 27, "PR_SET_MM", set_memory_map, INSIDE, { EPERM } },
        { 27, "PR_SET_MM_EXE_FILE", set_program, INSIDE, { EPERM } },
        { 27, "PR_SET_DUMPABLE-2", dump_as_root, INSIDE, { EINVAL } },
        { 27, "PR_SET_NO_NEW_PRIVS-0", allow_new_privileges, INSIDE, { EINVAL } },
        { 27, "PR_CAP_AMBIENT", keep_capabilities, INSIDE, { EPERM } },
        { 27, "PR_SET_IO_FLUSHER", io_flusher, OUTSIDE, { EPERM } },
        { 27, "PR_SCHED_CORE-agent", cookies, INSIDE, { EPERM } },
};

const struct probe_theme theme_processes = THEME(probes);
