/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/seccomp_policy.h"

#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/banned.h"

/*
 * What ordinary programs need, and what affects only themselves, their files, their children and their
 * sockets. Everything else is refused; in particular:
 *
 *   the host       mount and its new forms, pivot_root, setns, swapon, quotactl, open_by_handle_at
 *                  (a handle reaches below a bind mount), sethostname, settimeofday, adjtimex
 *   the kernel     bpf, perf_event_open, io_uring, userfaultfd, keyctl and keys, modules, kexec,
 *                  syslog, iopl, modify_ldt, fanotify: large, privileged or both, and the source of most
 *                  escapes of the last ten years
 *   the agent      pidfd_getfd, kcmp, process_madvise, move_pages: work on other processes
 */
/* clang-format off */
static const char *const allowed[] = {
        /* files */
        "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat",
        "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir",
        "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "flock",
        "fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64",
        "lchown", "link", "linkat", "lseek", "lstat", "mkdir", "mkdirat", "newfstatat", "open",
        "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2",
        "read", "readahead", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2",
        "rmdir", "sendfile", "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync",
        "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat", "utime",
        "utimensat", "utimes", "vmsplice", "write", "writev", "cachestat",
        "fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr", "getxattrat",
        "lgetxattr", "listxattr", "listxattrat", "llistxattr", "lremovexattr", "lsetxattr",
        "removexattr", "removexattrat", "setxattr", "setxattrat",
        "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
        "chroot",       /* a capability of the sandbox's root; apt and build tools use it */

        /* waiting */
        "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
        "eventfd", "eventfd2", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4",
        "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday",
        "nanosleep", "pause", "setitimer", "time", "timer_create", "timer_delete",
        "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime",
        "timerfd_settime", "times",

        /* memory */
        "brk", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
        "mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync",
        "munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",

        /* processes */
        "arch_prctl", "execve", "execveat", "exit", "exit_group", "fork", "get_robust_list",
        "get_thread_area", "getcpu", "getpgid", "getpgrp", "getpid", "getppid", "getpriority",
        "getrlimit", "getrusage", "getsid", "gettid", "ioprio_get", "pidfd_send_signal",
        "process_mrelease", "process_vm_readv", "process_vm_writev", "ptrace",
        "restart_syscall", "riscv_flush_icache", "rseq", "rt_sigaction", "rt_sigpending",
        "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
        "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
        "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_yield",
        "set_robust_list", "set_thread_area", "set_tid_address", "setpgid", "setsid",
        "sigaltstack", "vfork", "wait4", "waitid",
        "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake",
        "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self",

        /* identity, time, system */
        "capget", "capset", "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid",
        "getuid", "setfsgid", "setfsuid", "setgid", "setgroups", "setregid", "setresgid",
        "setresuid", "setreuid", "setuid", "getrandom", "sysinfo", "uname",

        /* IPC and sockets */
        "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
        "listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "shutdown",
        "pipe", "pipe2",
        "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
        "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop",
        "shmat", "shmctl", "shmdt", "shmget",
};

/* clone3 has its flags in memory, where no filter can see them; every C library falls back to clone. The agent needs it
 * to start commands in their cgroups, and denies it to each of them (os/confine.h). It gets no namespace by it: inside
 * the sandbox's user namespace none can be made (os/userns.h). */
static const char *const agent_only[] = { "clone3" };

/* Contexts of asynchronous I/O come from one number for the whole host (fs.aio-max-nr), and any sandbox could take all of
 * them; kernels may be built without them, so databases fall back. Libraries fall back from the others as well. */
static const char *const absent[] = {
        "file_getattr", "file_setattr", "io_cancel", "io_destroy", "io_getevents",
        "io_pgetevents", "io_setup", "io_submit", "listmount", "lsm_get_self_attr",
        "lsm_list_modules", "lsm_set_self_attr", "statmount",
};

const struct seccomp_recent seccomp_recent[] = {
        { "set_mempolicy_home_node", 450 }, { "cachestat",          451 },
        { "fchmodat2",               452 }, { "map_shadow_stack",   453 },
        { "futex_wake",              454 }, { "futex_wait",         455 },
        { "futex_requeue",           456 }, { "statmount",          457 },
        { "listmount",               458 }, { "lsm_get_self_attr",  459 },
        { "lsm_set_self_attr",       460 }, { "lsm_list_modules",   461 },
        { "mseal",                   462 }, { "setxattrat",         463 },
        { "getxattrat",              464 }, { "listxattrat",        465 },
        { "removexattrat",           466 }, { "open_tree_attr",     467 },
        { "file_getattr",            468 }, { "file_setattr",       469 },
};

#define PASS    SECCOMP_PASS
#define NO(e)   SECCOMP_ERRNO(e)
#define ALL     0xffffffffU

/* One condition, or several that must all hold. */
#define IF(arg, mask, value, verdict) { { { (arg), (mask), (value) } }, 1, (verdict) }
#define IF2(arg, value, arg2, value2, verdict) \
        { { { (arg), ALL, (value) }, { (arg2), ALL, (value2) } }, 2, (verdict) }
/* `mask` of the argument is empty. */
#define UNSET(arg, mask, verdict) IF((arg), (mask), 0, (verdict))

/* Only the types stream, datagram and raw, which are 1 to 3 in the lowest four bits. With protocol 0 the type
 * alone makes an SCTP (5) or DCCP (6) socket, and loads the module of the latter; 10 is an old name for packet
 * sockets. */
#define INET_IF(family, protocol) \
        { { { 0, ALL, (family) }, { 1, 0xcU, 0 }, { 2, ALL, (protocol) } }, 3, PASS }

/* As a kernel without the module returns. */
#define INET(family)                                                              \
        INET_IF((family), 0),                                                     \
        INET_IF((family), 1 /* ICMP: ping without privilege */),                  \
        INET_IF((family), 6 /* TCP */),                                           \
        INET_IF((family), 17 /* UDP */),                                          \
        INET_IF((family), 58 /* ICMPv6 */),                                       \
        IF(0, ALL, (family), NO(EPROTONOSUPPORT))

#define NEW_NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC \
                        | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define NEW_TIME       0x80U /* for unshare only: in clone's flags it is part of the signal */

#define WHO_USER_IO    3 /* IOPRIO_WHO_USER */
#define NEW_LISTENER   8 /* SECCOMP_FILTER_FLAG_NEW_LISTENER */
#define AGENT          1 /* its process id, in a sandbox */

#define SET_MEMORY_MERGE 67 /* PR_SET_MEMORY_MERGE, since Linux 6.4 */

static const struct seccomp_rule rules[] = {
        /* The kernel loads modules by family and protocol. Of netlink only routes and links, which programs
         * read; for audit, the error that useradd takes for "this kernel has none". */
        { { "socket" },
          { IF(0, ALL, AF_UNIX, PASS), INET(AF_INET), INET(AF_INET6),
            IF2(0, AF_NETLINK, 2, NETLINK_ROUTE, PASS),
            IF2(0, AF_NETLINK, 2, NETLINK_AUDIT, NO(EINVAL)),
            IF(0, ALL, AF_NETLINK, NO(EPROTONOSUPPORT)) },
          16, NO(EAFNOSUPPORT) },
        { { "socketpair" }, { IF(0, ALL, AF_UNIX, PASS) }, 1, NO(EAFNOSUPPORT) },

        /* Each program on a socket takes from the memory for compiled BPF, one number for the whole host
         * (net.core.bpf_jit_limit): without any left no other process gets a seccomp filter. As for a socket whose
         * filter is locked. */
        { { "setsockopt" },
          { IF2(1, SOL_SOCKET, 2, SO_ATTACH_FILTER, NO(EPERM)),
            IF2(1, SOL_SOCKET, 2, SO_ATTACH_BPF, NO(EPERM)),
            IF2(1, SOL_SOCKET, 2, SO_ATTACH_REUSEPORT_CBPF, NO(EPERM)),
            IF2(1, SOL_SOCKET, 2, SO_ATTACH_REUSEPORT_EBPF, NO(EPERM)),
            IF2(1, SOL_SOCKET, 2, SO_LOCK_FILTER, NO(EPERM)) },
          5, PASS },

        /* Merged pages would be shared with other sandboxes, and the time of a write tells what they contain. As a
         * kernel without it returns. */
        { { "prctl" }, { IF(0, ALL, SET_MEMORY_MERGE, NO(EINVAL)) }, 1, PASS },
        { { "madvise" }, { IF(2, ALL, MADV_MERGEABLE, NO(EINVAL)) }, 1, PASS },

        { { "clone" }, { UNSET(0, NEW_NAMESPACES, PASS) }, 1, NO(EPERM) },
        { { "unshare" }, { UNSET(0, NEW_NAMESPACES | NEW_TIME, PASS) }, 1, NO(EPERM) },

        /* Input that other users of a terminal take for typed; line disciplines, which are modules; and ioctls of
         * sockets that load the modules of bridges and VLANs, for any caller. */
        { { "ioctl" },
          { IF(1, ALL, TIOCSTI, NO(EPERM)), IF(1, ALL, TIOCLINUX, NO(EPERM)),
            IF(1, ALL, TIOCSETD, NO(EPERM)),
            IF(1, ALL, SIOCGIFBR, NO(ENOPKG)), IF(1, ALL, SIOCSIFBR, NO(ENOPKG)),
            IF(1, ALL, SIOCBRADDBR, NO(ENOPKG)), IF(1, ALL, SIOCBRDELBR, NO(ENOPKG)),
            IF(1, ALL, SIOCGIFVLAN, NO(ENOPKG)), IF(1, ALL, SIOCSIFVLAN, NO(ENOPKG)) },
          9, PASS },

        /* The agent may have the uid of its commands, which could then take its descriptors or its CPU time. It is
         * not in their process groups. */
        { { "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler" },
          { IF(0, ALL, AGENT, NO(EPERM)) }, 1, PASS },

        /* The core limit stays as the plan sets it: with 0 the kernel would run the program in core_pattern as the
         * host's root. Setting 0 succeeds without effect, because some programs insist on it. */
        { { "setrlimit" }, { IF(0, ALL, RLIMIT_CORE, NO(0)) }, 1, PASS },
        { { "prlimit64" },
          { IF(0, ALL, AGENT, NO(EPERM)),
            { { { 1, ALL, RLIMIT_CORE }, { 2, ALL, 0 }, { SECCOMP_HIGH(2), ALL, 0 } }, 3, PASS },
            IF(1, ALL, RLIMIT_CORE, NO(0)) },
          3, PASS },
        { { "ioprio_set" },
          { IF(0, ALL, WHO_USER_IO, NO(EPERM)), IF(1, ALL, AGENT, NO(EPERM)) }, 2, PASS },
        { { "setpriority" },
          { IF(0, ALL, PRIO_USER, NO(EPERM)), IF(1, ALL, AGENT, NO(EPERM)) }, 2, PASS },
        { { "kill", "pidfd_open", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tgkill", "tkill" },
          { IF(0, ALL, AGENT, NO(EPERM)) }, 1, PASS },

        /* Includes the whiteout of overlayfs, character device 0:0, which needs no privilege. Pipes, sockets and
         * regular files are allowed. */
        { { "mknod" },
          { IF(1, S_IFMT, S_IFCHR, NO(EPERM)), IF(1, S_IFMT, S_IFBLK, NO(EPERM)) }, 2, PASS },
        { { "mknodat" },
          { IF(2, S_IFMT, S_IFCHR, NO(EPERM)), IF(2, S_IFMT, S_IFBLK, NO(EPERM)) }, 2, PASS },

        /* Linux, 32 bit, "2.6", both, and the query; not the personalities that weaken a program. */
        { { "personality" },
          { IF(0, ALL, 0x0, PASS), IF(0, ALL, 0x8, PASS), IF(0, ALL, 0x20000, PASS),
            IF(0, ALL, 0x20008, PASS), IF(0, ALL, 0xffffffff, PASS) },
          5, NO(EPERM) },

        /* Another filter can only restrict further, except one with a listener, which would be a tool against the
         * agent. */
        { { "seccomp" }, { IF(1, NEW_LISTENER, NEW_LISTENER, NO(EPERM)) }, 1, PASS },

        /* As a file system without handles returns. */
        { { "name_to_handle_at" }, { { { { 0 } }, 0, 0 } }, 0, NO(EOPNOTSUPP) },
};
/* clang-format on */

const struct seccomp_policy seccomp_sandbox_policy = {
        .allowed = allowed,
        .absent = absent,
        .agent_only = agent_only,
        .rules = rules,
        .n_allowed = ARRAY_SIZE(allowed),
        .n_absent = ARRAY_SIZE(absent),
        .n_agent_only = ARRAY_SIZE(agent_only),
        .n_rules = ARRAY_SIZE(rules),
};

const size_t seccomp_n_recent = ARRAY_SIZE(seccomp_recent);
