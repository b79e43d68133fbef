# SPDX-License-Identifier: Apache-2.0
"""What is tried, in numbers that stay: 1 to 69 and some more, and weaknesses that others have had.

ALL: in four sandboxes, as their root and as an ordinary user, without a network and with a private one.
USERS: as root and as an ordinary user; the network makes no difference to it.
NETS: with each network; who it is makes none.
ONCE: neither does; as an ordinary user where root could do no more, else as root.
"""

ALL, USERS, NETS, ONCE = "all four", "both users", "both networks", "once"

CASES = {
    1: (ONCE, "fork bomb", "stops at `pids`; neighbour, agent and destroy work"),
    2: (ONCE, "thread bomb", "stops at `pids`"),
    3: (ONCE, "memory bomb", "killed in its own group; never above the limit; neighbour works"),
    4: (ONCE, "memory by tmpfs, memfd, System V, pipes, sockets, page tables", "the same"),
    5: (ONCE, "full disk", "what is written counts for the data directory's file system only; create and destroy work afterwards"),
    6: (ONCE, "no inodes left", "the same"),
    7: (ONCE, "all descriptors", "its own limit or memory ends it; neighbour and host open files"),
    8: (ONCE, "inotify, epoll, timers, message queues", "counted for each sandbox: the neighbour still gets its own"),
    9: (ONCE, "all processors", "held to its share; neighbour works"),
    10: (ONCE, "fsync storm", "service and neighbour answer"),
    11: (ONCE, "150,000 names that are not there", "counted as its memory"),
    12: (ONCE, "10,000 levels of directories with 255 byte names", "destroy removes them"),
    13: (ONCE, "largest sparse file", "Content-Length and ranges are true, nothing is held in memory"),
    14: (ONCE, "System V objects left behind", "gone with the sandbox, never seen by the host"),
    15: (NETS, "ports and tracked connections", "neighbour and host still connect"),
    16: (USERS, "swap", "refused, and the limit counts swap"),
    17: (ONCE, "10,000 orphans that end", "reaped"),
    18: (ONCE, "as many short processes as possible", "the agent answers meanwhile; none left"),
    19: (USERS, "kill(-1), kill(1..65535)", "agent, neighbour and processes of the host with the same uid live on"),
    20: (ALL, "signals to the agent, its limits and priority", "refused, and its state unchanged"),
    21: (ALL, "ptrace and memory of the agent and of its fork", "refused"),
    22: (USERS, "daemon by double fork and setsid", "destroy ends it"),
    23: (USERS, "deaf, stopped and unreachable processes", "destroy ends them"),
    24: (ONCE, "death of the first process", "sandbox is marked, everything in it ended"),
    25: (ALL, "CLONE_PARENT, subreapers", "no confusion, none survives"),
    26: (ALL, "descriptors of the agent", "refused"),
    27: (ALL, "prctl tricks", "refused"),
    28: (USERS, "core dump into the host's core_pattern program", "not run; the limit can be neither raised nor lowered"),
    29: (ALL, "new namespaces by unshare and clone", "refused"),
    30: (ALL, "setns", "refused"),
    31: (ALL, "mount, umount, remount, bind, read-only places", "refused"),
    32: (ALL, "the newer mount calls", "refused"),
    33: (ALL, "pivot_root, chroot and climb", "refused, or ends at the sandbox's root"),
    34: (ALL, "new proc, sysfs, cgroup", "refused"),
    35: (ALL, "mount over the agent's program", "refused"),
    36: (ALL, "/proc/sys/kernel/core_pattern and its like", "not writable, the first four not readable"),
    37: (ALL, "/proc/sysrq-trigger", "not writable"),
    38: (ALL, "kcore, kernel addresses, keys, timers, firmware", "masked"),
    39: (ALL, "cgroup files, release_agent", "not there, not mountable"),
    40: (ALL, "leaving one's group, changing its limits", "refused"),
    41: (ALL, "uevent_helper, uevents, all of /sys", "not writable"),
    42: (ONCE, "hostile /etc/passwd and NSS libraries", "no process outside reads them, the agent loads nothing"),
    43: (ALL, "device files, whiteouts, by mknod and by archive", "refused"),
    44: (ALL, "devices of the host", "not there"),
    45: (ALL, "kernel log", "refused"),
    46: (ALL, "bpf, perf, io_uring, keys, modules, clocks, …", "refused"),
    47: (ALL, "open_by_handle_at", "refused"),
    48: (ALL, "name_to_handle_at", "refused"),
    49: (ALL, "system calls by the i386 and x32 interfaces", "do not exist"),
    50: (ALL, "TIOCSTI, TIOCLINUX with high bits", "refused"),
    51: (ALL, "seccomp listeners, a tracer that changes calls", "refused"),
    52: (ALL, "clone3", "does not exist"),
    53: (ALL, "set-user-ID programs, of the image and uploaded", "no effect"),
    54: (ALL, "file capabilities, set and uploaded", "no effect, stripped from archives"),
    55: (ALL, "binfmt_misc", "not mountable, not there"),
    56: (ALL, "socket families and protocols that load modules", "refused"),
    57: (ALL, "raw sockets, spoofed addresses, power over links", "refused"),
    58: (ALL, "vsock", "refused"),
    59: (ALL, "descriptors left open", "0, 1 and 2 only"),
    60: (ALL, "directories among descriptors, /proc/self/fd as working directory", "none leads out"),
    61: (ALL, "overwriting the agent's program", "sealed"),
    62: (ALL, "abstract sockets of the host and of a neighbour", "not there"),
    63: (ALL, "sockets of docker, dbus, systemd", "not there"),
    64: (ALL, "descriptors sent to the agent", "it has no socket that can be reached"),
    65: (ALL, "forged credentials", "refused beyond its own users"),
    66: (ALL, "POSIX queues and System V objects of others", "not there"),
    67: (ALL, "keyrings of the host", "refused"),
    68: (ALL, "the service's environment", "in no process of the sandbox"),
    69: (ALL, "/dev/shm of others", "not there"),
    70: (NETS, "credentials of clouds at link-local and other known addresses", "not reached"),
    71: (NETS, "the host's addresses and loopback, its end of the link, a neighbour", "not reached; outside is"),
    78: (NETS, "datagrams with another's address", "do not leave"),
    121: (ONCE, "buffers of TCP and UDP sockets, and of connections without a process",
          "end at a part of the memory limit; neighbour connects"),
    122: (ALL, "contexts of asynchronous I/O, programs on sockets, merged pages", "refused"),
    123: (USERS, "inotify on devices, masks and everything else that a neighbour opens", "nothing is seen"),
    124: (NETS, "a flood of addresses on the link that no one has", "the host's neighbour table never gets full; neighbour connects"),
}

# What each of them is shown by: attempts by name of the probe, or a point of its own below.
CVES = {
    "CVE-2019-5736": "the agent's program is overwritten through /proc: case 61",
    "CVE-2019-19921, CVE-2023-27561, CVE-2023-28642": "/proc or /sys of an image is a link: own point",
    "CVE-2021-30465": "mount target is exchanged for a link: own point (links in mount targets, layers that a sandbox can't change)",
    "CVE-2024-21626": "working directory /proc/self/fd/N: case 60",
    "CVE-2024-45310": "directories made outside of the root: own point",
    "CVE-2025-31133, CVE-2025-62161": "/dev/null replaced, so that a mask shows something else: own point, case 44",
    "CVE-2025-52565": "/dev/console and /dev/pts led astray by an image: own point",
    "CVE-2025-52881": "writes to /proc redirected: case 36, own point",
    "CVE-2026-41579": "/dev of an image is a link: own point",
    "CVE-2017-5226, CVE-2019-10063": "TIOCSTI, and by its high bits: case 50",
    "CVE-2020-5291": "no program of ours is set-user-ID: own point",
    "CVE-2022-0492": "cgroup version 1 with a release_agent: case 39",
    "CVE-2022-0847": "pages of read-only files through a pipe: case 31, dirty-pipe",
    "CVE-2022-0185, CVE-2023-0386, CVE-2024-1086": "fsopen, overlay, nf_tables for the unprivileged: cases 29, 31, 32, 56",
    "CVE-2026-39861": "a file tool that follows links out: own point",
}


def table():
    """The part of docs/internals/security-tests.md that is made from here."""
    lines = ["| | what is tried | what must come of it | where |", "|---|---|---|---|"]
    lines += [f"| {n} | {what} | {outcome} | {cells} |" for n, (cells, what, outcome) in CASES.items()]
    lines += ["", "| | what, and shown by |", "|---|---|"]
    lines += [f"| {name} | {what} |" for name, what in CVES.items()]
    return "\n".join(lines) + "\n"
