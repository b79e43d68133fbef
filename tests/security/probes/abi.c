/* SPDX-License-Identifier: Apache-2.0 */

/* Ways around a seccomp filter: 49, 51. */

#include "probe.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <elf.h>
#include <unistd.h>

/* --- 49 --- */

#ifdef __x86_64__

#define X32 0x40000000L

/* System calls of the 32 bit interface, by their numbers there. */
static long call_32(long number, long argument)
{
        long r;

        __asm__ volatile("int $0x80"
                         : "=a"(r)
                         : "a"(number), "b"(argument)
                         : "memory", "r8", "r9", "r10", "r11");
        return r;
}

static long i386_getpid(void)
{
        return call_32(20, 0);
}

static long i386_unshare(void)
{
        return call_32(310, CLONE_NEWUSER);
}

static long i386_mount(void)
{
        const long r = call_32(22 /* oldumount */, 0);

        return r == -EFAULT ? 0 : r; /* it looked at the path */
}

static long x32_getpid(void)
{
        return outcome(syscall(X32 | SYS_getpid));
}

static long x32_unshare(void)
{
        return outcome(syscall(X32 | SYS_unshare, CLONE_NEWUSER));
}

static long x32_ptrace(void)
{
        return outcome(syscall(X32 | 521, PTRACE_ATTACH, 1, 0, 0));
}

#else

static long i386_getpid(void)
{
        return lacks("a processor with an older system call interface");
}

#define i386_unshare i386_getpid
#define i386_mount   i386_getpid
#define x32_getpid   i386_getpid
#define x32_unshare  i386_getpid
#define x32_ptrace   i386_getpid

#endif

/* Numbers beyond every table, and the one that means "none". */
static long numbers_beyond(void)
{
        static const long numbers[] = {
                600, 1000, 4096, 0x7fffffff, -2, 0x100000000L + SYS_unshare
        };

        for (size_t i = 0; i < COUNT(numbers); i++)
                if (syscall(numbers[i], CLONE_NEWUSER, 0, 0, 0, 0, 0) >= 0)
                        return (long) i;
        return outcome(-1);
}

/* --- 51 --- */

static long install(unsigned flags, uint32_t verdict, uint32_t number)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, verdict),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { COUNT(code), code };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return outcome(-1);
        return outcome(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

static long listener(void)
{
        return install(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF, SYS_getppid);
}

static long listener_among_others(void)
{
        return install(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC
                               | SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
                       SECCOMP_RET_USER_NOTIF, SYS_getppid);
}

/* A filter of its own can't allow what another one refuses. */
static long allow_more(void)
{
        const long r = install(0, SECCOMP_RET_ALLOW, SYS_unshare);

        return r < 0 ? r : outcome(unshare(CLONE_NEWUSER));
}

#ifdef __x86_64__

/* A traced process calls getppid, its tracer turns that into unshare(CLONE_NEWUSER). Answers what the
 * call answered. */
static long turn_into_unshare(pid_t pid)
{
        struct user_regs_struct regs;

        if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
                return outcome(-1);
        regs.orig_rax = SYS_unshare;
        regs.rdi = CLONE_NEWUSER;
        if (ptrace(PTRACE_SETREGS, pid, NULL, &regs) < 0
            || ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || waitpid(pid, NULL, 0) != pid
            || ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
                return outcome(-1);
        return (long) regs.rax;
}

static pid_t start_traced(bool with_filter)
{
        const pid_t pid = fork();

        if (pid != 0)
                return pid;
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                _exit(1);
        (void) raise(SIGSTOP);
        if (with_filter && install(0, SECCOMP_RET_TRACE, SYS_getppid) < 0)
                _exit(2);
        for (;;)
                (void) syscall(SYS_getppid);
}

static long change_after_stop(bool with_filter)
{
        const pid_t pid = start_traced(with_filter);
        struct user_regs_struct regs;
        int status;
        long r = -ECHILD;

        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)
            || ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) < 0)
                return outcome(-1);
        for (int i = 0; i < 100; i++) {
                if (ptrace(with_filter ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL, NULL) < 0
                    || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)
                    || ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
                        break;
                if (regs.orig_rax == SYS_getppid && (long) regs.rax == -ENOSYS) {
                        r = turn_into_unshare(pid);
                        break;
                }
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return r;
}

static long change_traced(void)
{
        return change_after_stop(false);
}

static long change_filtered(void)
{
        return change_after_stop(true);
}

#else

static long change_traced(void)
{
        return lacks("the registers that this attempt knows (x86-64)");
}

#define change_filtered change_traced

#endif

/* Calls through the page that the kernel maps for old programs go through the filter, or are not
 * there. */
static long vsyscall(void)
{
#ifdef __x86_64__
        static const uint32_t number = SYS_time;

        if (install(0, SECCOMP_RET_ERRNO | EPERM, number) < 0)
                return outcome(-1);
        return ((long (*)(long *)) 0xffffffffff600400)(NULL) > 0 ? 0 : -EPERM;
#else
        return lacks("vsyscall");
#endif
}

static const struct probe probes[] = {
        { 49, "i386-getpid", i386_getpid, OUTSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "i386-unshare", i386_unshare, OUTSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "i386-umount", i386_mount, OUTSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "x32-getpid", x32_getpid, OUTSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "x32-unshare", x32_unshare, OUTSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "x32-ptrace", x32_ptrace, INSIDE, { ENOSYS, PROBE_SIGNAL(SIGSYS) } },
        { 49, "numbers-beyond", numbers_beyond, INSIDE, { ENOSYS, EPERM } },
        { 51, "listener", listener, OUTSIDE, { EPERM } },
        { 51, "listener-tsync", listener_among_others, OUTSIDE, { EPERM } },
        { 51, "allow-more", allow_more, OUTSIDE, { EPERM } },
        { 51, "change-traced", change_traced, OUTSIDE, { EPERM } },
        { 51, "change-at-RET_TRACE", change_filtered, OUTSIDE, { EPERM } },
        { 51,
          "vsyscall",
          vsyscall,
          INSIDE,
          { EPERM, PROBE_SIGNAL(SIGSEGV), PROBE_SIGNAL(SIGSYS) } },
};

const struct probe_theme theme_abi = THEME(probes);
