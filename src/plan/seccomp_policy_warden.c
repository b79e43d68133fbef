/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/banned.h"
#include "plan/seccomp_policy.h"

/*
 * hutch-warden is root and has to mount, to make namespaces and to write packet rules. It needs nothing else that only
 * root may do, so a fault in it does not lead to the rest of the kernel: no modules, kexec and reboot, no bpf,
 * perf_event_open, io_uring and userfaultfd, no clocks, swap and quotas, no raw I/O, no keys, no handles of files.
 *
 * A filter is inherited for ever: zygotes and sandboxes have it as well, below their own. So it allows whatever that of
 * sandboxes allows, which is why ptrace and process_vm_writev pass here: debuggers in sandboxes use them.
 */
static const char *const allowed[] = {
        /* children that are born in namespaces and cgroups of their own */
        "clone3",

        /* mounts: the new calls only, which work on descriptors */
        "fsconfig",
        "fsmount",
        "fsopen",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "pivot_root",
        "umount2",

        /* namespaces */
        "setdomainname",
        "sethostname",
        "setns",
};

#define ALL 0xffffffffU

static const struct seccomp_rule rules[] = {
        /* Links and routes; packet rules and connection tracking. */
        { { "socket" },
          { { { { 0, ALL, AF_UNIX } }, 1, SECCOMP_PASS },
            { { { 0, ALL, AF_INET } }, 1, SECCOMP_PASS },
            { { { 0, ALL, AF_INET6 } }, 1, SECCOMP_PASS },
            { { { 0, ALL, AF_NETLINK }, { 2, ALL, NETLINK_ROUTE } }, 2, SECCOMP_PASS },
            { { { 0, ALL, AF_NETLINK }, { 2, ALL, NETLINK_NETFILTER } }, 2, SECCOMP_PASS } },
          5,
          SECCOMP_ERRNO(EAFNOSUPPORT) },

        /* A zygote gets an empty keyring. */
        { { "keyctl" },
          { { { { 0, ALL, KEYCTL_JOIN_SESSION_KEYRING } }, 1, SECCOMP_PASS } },
          1,
          SECCOMP_ERRNO(EPERM) },
};

const struct seccomp_policy seccomp_warden_policy = {
        .base = &seccomp_sandbox_policy,
        .allowed = allowed,
        .rules = rules,
        .n_allowed = ARRAY_SIZE(allowed),
        .n_rules = ARRAY_SIZE(rules),
};
