# SPDX-License-Identifier: Apache-2.0
"""What a hostile program in a sandbox tries, as a table: a name, a command, what it must print.

Commands are for bash; those that begin with "py:" are for Python, with tried(), call() and opens() of PRELUDE. The word
"denied" stands for every way of the kernel to say no; the end by a bad system call is one, too.
"""

PRELUDE = r'''
import ctypes, errno, fcntl, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NO = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EROFS, errno.EAFNOSUPPORT, errno.ENODEV, errno.ENXIO,
      errno.ENOENT, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT}
def said(number):
    return "denied" if number in NO else errno.errorcode.get(number, str(number))
def call(number, *args):
    """A system call: denied, or what happened."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return said(ctypes.get_errno()) if r < 0 else "done %d" % r
def tried(function):
    try:
        return "done %r" % (function(),)
    except OSError as e:
        return said(e.errno)
def opens(path, flags=os.O_RDONLY):
    return tried(lambda: os.close(os.open(path, flags)))
buffer = ctypes.create_string_buffer(8)
def vector():
    return struct.pack("QQ", ctypes.addressof(buffer), 8)
def all_denied(results):
    wrong = {k: v for k, v in results.items() if v != "denied"}
    print(wrong if wrong else "denied")
'''

# x86-64; name: number and arguments that would be fine for who may.
CALLS = """{
    "unshare user": (272, 0x10000000), "unshare mount": (272, 0x20000), "unshare net": (272, 0x40000000),
    "setns": (308, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0), "umount": (166, b"/proc", 2),
    "bind": (165, b"/etc", b"/tmp", 0, 4096, 0), "remount": (165, 0, b"/", 0, 32, 0),
    "pivot_root": (155, b"/tmp", b"/tmp"), "fsopen": (430, b"tmpfs", 0), "fsmount": (432, 0, 0, 0),
    "open_tree": (428, -100, b"/", 1), "move_mount": (429, -100, b"/tmp", -100, b"/mnt", 0),
    "mount_setattr": (442, -100, b"/", 0, 0, 0),
    "bpf": (321, 0, 0, 0), "perf_event_open": (298, 0, 0, -1, -1, 0), "userfaultfd": (323, 0),
    "io_uring_setup": (425, 1, 0), "keyctl": (250, 0, -3, 0), "add_key": (248, b"user", b"k", b"v", 1, -3),
    "request_key": (249, b"user", b"k", 0, 0), "kexec_load": (246, 0, 0, 0, 0),
    "init_module": (175, 0, 0, b""), "finit_module": (313, 0, b"", 0), "delete_module": (176, b"x", 0),
    "iopl": (172, 3), "ioperm": (173, 0, 1, 1), "quotactl": (179, 0, 0, 0, 0), "acct": (163, b"/tmp/a"),
    "swapon": (167, b"/tmp/a", 0), "reboot": (169, 0xfee1dead, 672274793, 0, 0),
    "settimeofday": (164, b"x" * 16, 0), "sethostname": (170, b"x", 1), "syslog": (103, 3, b"x" * 16, 16),
    "open_by_handle_at": (304, -100, b"x" * 32, 0), "clone3": (435, 0, 0),
    "vhangup": (153,), "nfsservctl": (180, 0, 0, 0), "lookup_dcookie": (212, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0), "clone with user namespace": (56, 0x10000000 | 17, 0, 0, 0, 0),
}"""

FILES = [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/panic",
    "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/devices/devices.allow",
    "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max",
    "/proc/sys/fs/binfmt_misc/register",
]

DEVICES = ["mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop-control", "net/tun", "vda", "sda", "loop0"]

CASES = [
    # --- the kernel's surface
    ("system calls that are not for tenants",
     f"py:all_denied({{k: call(*v) for k, v in {CALLS}.items()}})", "denied"),
    ("the calls of i386", "py:print(int80())", "denied"),
    ("the calls of x32", "py:print(call(0x40000000 | 39))", "denied"),
    ("TIOCSTI, with bits set above, too",
     "py:m, s = os.openpty(); all_denied({n: call(16, s, n, b'x') for n in "
     "(0x5412, 0x100005412, 0x541c, 0x10000541c)})", "denied"),
    ("sockets that load modules",
     "py:all_denied({n: tried(lambda: socket.socket(f, t, p)) for n, f, t, p in ["
     "('alg', 38, 5, 0), ('vsock', 40, 1, 0), ('packet', 17, 3, 0), ('nf_tables', 16, 3, 12), "
     "('bluetooth', 31, 3, 0), ('can', 29, 3, 1), ('tipc', 30, 1, 0), ('raw', 2, 3, 255), "
     "('raw icmp', 2, 3, 1)]})", "denied"),
    ("device nodes", "py:all_denied({n: tried(lambda: os.mknod('/tmp/dev', 0o20666 if c else 0o60666, d)) "
     "for n, c, d in [('mem', 1, os.makedev(1, 1)), ('disk', 0, os.makedev(254, 0)), "
     "('kmsg', 1, os.makedev(1, 11))]})", "denied"),
    ("devices of the host", f"py:all_denied({{d: opens('/dev/' + d, os.O_RDWR) for d in {DEVICES}}})",
     "denied"),
    ("files that change the host", f"py:all_denied({{f: opens(f, os.O_WRONLY) for f in {FILES}}})",
     "denied"),
    ("files that tell about the host",
     "py:print([f for f in ('/proc/kcore', '/proc/keys', '/proc/timer_list', '/sys/firmware') "
     "if os.path.isfile(f) and tried(lambda: len(open(f, 'rb').read(64))) not in ('done 0', 'denied') "
     "or os.path.isdir(f) and os.listdir(f)])", "[]"),
    ("addresses of the kernel",
     "head -n 1 /proc/kallsyms 2>/dev/null | cut -d' ' -f1 | tr -d 0", ""),
    # --- privileges
    ("no new privileges", "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '",
     "NoNewPrivs: 1\nSeccomp: 2"),
    ("capabilities beyond the list",
     "py:m = int(next(x for x in open('/proc/self/status') if x.startswith('CapBnd')).split()[1], 16); "
     "print([c for c in range(64) if m >> c & 1 and c not in (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31)])",
     "[]"),
    ("a setuid program gives nothing",
     "cp /usr/bin/id /tmp/sid && chmod 4755 /tmp/sid && setpriv --reuid 1000 --regid 1000 --clear-groups "
     "/tmp/sid -u", "1000"),
    # --- processes
    ("the agent can't be ended", "for s in KILL TERM STOP INT SEGV; do kill -$s 1; done 2>/dev/null; echo alive",
     "alive"),
    ("the agent's memory",
     "py:all_denied({'mem': opens('/proc/1/mem', os.O_RDWR), 'ptrace': call(101, 16, 1, 0, 0), "
     "'vm': call(311, 1, vector(), 1, vector(), 1, 0)})", "denied"),
    ("the agent's program", "py:print(opens('/proc/1/exe', os.O_WRONLY))", "denied"),
    ("the agent's file is not for writing", "chmod 777 /.hutch/execd 2>&1 | grep -o 'Read-only'", "Read-only"),
    ("only three descriptors",
     "for i in $(seq 0 500); do [ -e /proc/$$/fd/$i ] && echo -n \"$i \"; done; true", "0 1 2 "),
    ("no process of the host is seen",
     "py:print(len([p for p in os.listdir('/proc') if p.isdigit()]) < 20)", "True"),
    # --- what else there is
    ("no socket of an engine",
     "find / -xdev -type s 2>/dev/null | grep -v ^/.hutch/; ls /run/docker.sock /var/run/docker.sock "
     "/run/podman 2>/dev/null; true", ""),
    ("nothing of the host's environment",
     "tr '\\0' '\\n' < /proc/self/environ | grep -iE 'token|secret|HUTCH|NOTIFY|key'; true", ""),
    ("a system V segment of another is not there", "ipcs -m | grep -c ^0x; true", "0"),
    ("no network but the loopback", "py:print(sorted(n for _, n in socket.if_nameindex()))", "['lo']"),
    ("abstract sockets of the host",
     "grep -c @ /proc/net/unix; true", "0"),
]

# A call by the other gate: host code in a page of our own.
INT80 = r'''
def int80():
    import mmap
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")     # mov eax, 20 (getpid); int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    r = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return said(-r) if r < 0 else "done %d" % r
'''
