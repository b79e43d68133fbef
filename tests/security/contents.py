# SPDX-License-Identifier: Apache-2.0
"""Files that a tenant brings: 42, 43, 53, 54, 60, 61, 64, 66, 68, 123."""

import fcntl
import hashlib
import io
import os
import stat
import struct
import tarfile

from world import PROBES, read, read_or_none
from tap import eq, has

F_GET_SEALS, SEALS = 1034, 0xf          # shrink, grow, write, seal


def secrets_of(w, pid):
    """Names of secrets in a process' environment, as the host sees it."""
    found = read_or_none(f"/proc/{pid}/environ") or ""
    return [(pid, name) for name in (w.secret, "EXECD_ACCESS_TOKEN", "HUTCH_SECURITY") if name in found]


def upper(sandbox):
    return f"{sandbox.directory()}/upper"


def everything(directory):
    for where, directories, files in os.walk(directory):
        for name in directories + files:
            yield os.path.join(where, name)


# --- 42 ---

def hostile_accounts(w):
    sandbox = w.sandbox()
    lines = b"root:x:0:0::/root:/bin/sh\nmallory:x:1000:1000::/proc/1/root:/bin/evil\n" + b"x" * 70000 + b"\n"
    sandbox.upload("/etc/passwd", lines, 644)
    sandbox.upload("/etc/nsswitch.conf", b"passwd: evil\ngroup: evil\nhosts: evil\n", 644)
    sandbox.upload("/etc/ld.so.preload", b"/opt/evil.so\n", 644)
    with open(w.probes(), "rb") as f:
        sandbox.upload("/opt/evil.so", f.read())
        f.seek(0)
        sandbox.upload("/opt/libnss_evil.so.2", f.read())
    sandbox.upload("/opt/file", b"x", 644)
    watched = [sandbox.agent, *w.servers()]
    before = [mapped(pid) for pid in watched]
    reply = sandbox.call("POST", "/files/permissions", {"/opt/file": {"owner": "mallory", "mode": 600}})
    eq(reply.status, 200, reply.body)
    eq(os.stat(f"{upper(sandbox)}/opt/file").st_uid, sandbox.first + 1000, "owner on the host")
    reply = sandbox.call("POST", "/files/permissions", {"/opt/file": {"owner": "nobody-knows", "mode": 600}})
    assert reply.status >= 400, reply.body
    # Files that never end, or lead to another sandbox's or the host's.
    for how in "rm /etc/passwd; mkfifo /etc/passwd", "rm /etc/passwd; ln -s /proc/kmsg /etc/passwd", \
               "rm /etc/passwd; ln -s /dev/zero /etc/passwd", "rm /etc/passwd; ln -s /etc/passwd /etc/passwd":
        sandbox.upload("/etc/ld.so.preload", b"", 644)
        _, error = sandbox.run(["/bin/sh", "-c", how])
        eq(error, None, how)
        reply = sandbox.call("POST", "/files/permissions", {"/opt/file": {"owner": "mallory", "mode": 600}})
        assert reply.status >= 200, how
        eq(sandbox.call("GET", "/ping").status, 200, how)
    eq([mapped(pid) for pid in watched], before, "files that are mapped by agent, warden, hutchd")
    w.destroy(sandbox)


def mapped(pid):
    """Programs and libraries in its memory."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        lines = [line.split(None, 5) for line in f]
    return {words[5].strip() for words in lines if "x" in words[1] and len(words) > 5}


# --- 43, 53, 54: archives ---

def entry(name, kind=tarfile.REGTYPE, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    info.mode = more.pop("mode", 0o644)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def archive(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def hostile_archives(w):
    """Each is refused or harmless; what the host sees has no device, no capability, no foreign owner."""
    sandbox = w.sandbox()
    before = w.picture()
    capability = struct.pack("<5I", 0x02000001, 0xffffffff, 0, 0x1ff, 0).decode("latin-1")
    for what, entries in {
        "character device": [entry("mem", tarfile.CHRTYPE, devmajor=1, devminor=1)],
        "block device": [entry("disk", tarfile.BLKTYPE, devmajor=8, devminor=0)],
        "whiteout": [entry("gone", tarfile.CHRTYPE, devmajor=0, devminor=0)],
        "dots": [entry(f"../../../../../../var/tmp/{w.canary}", data=b"evil")],
        "absolute": [entry(f"/var/tmp/{w.canary}", data=b"evil")],
        "link and through it": [entry("out", tarfile.SYMTYPE, linkname="/../../../../var/tmp"),
                                entry(f"out/{w.canary}", data=b"evil")],
        "hard link": [entry("hard", tarfile.LNKTYPE, linkname=f"../../../../var/tmp/{w.canary}")],
        "capability": [entry("capable", data=b"x", mode=0o755,
                             pax_headers={"SCHILY.xattr.security.capability": capability})],
        "set-user-ID": [entry("suid", data=b"x", mode=0o6755, uid=0, gid=0)],
        "foreign owner": [entry("foreign", data=b"x", uid=70000, gid=70000)],
    }.items():
        reply = sandbox.call("POST", "/files/archive?path=/opt/into", archive(*entries),
                          headers={"Content-Type": "application/x-tar"})
        assert reply.status in range(200, 500), (what, reply.status, reply.body)
        eq(sandbox.call("GET", "/ping").status, 200, what)
    check_upper(sandbox)
    eq(w.picture(), before, "the host")
    w.destroy(sandbox)


def check_upper(sandbox):
    """As the host sees the sandbox's files."""
    for path in everything(upper(sandbox)):
        st = os.lstat(path)
        assert not stat.S_ISBLK(st.st_mode) and not (stat.S_ISCHR(st.st_mode) and st.st_rdev), path
        assert sandbox.first <= st.st_uid < sandbox.first + 65536 and sandbox.first <= st.st_gid < sandbox.first + 65536, \
            (path, st.st_uid, st.st_gid)
        if not stat.S_ISLNK(st.st_mode) and "security.capability" in os.listxattr(path):
            value = os.getxattr(path, "security.capability")
            revision, root = value[3], struct.unpack("<I", value[-4:])[0]
            assert revision == 3 and root == sandbox.first, (path, value)     # only its own root's


def privileged_programs(w):
    sandbox = w.sandbox()
    with open(w.probes(), "rb") as f:
        sandbox.upload("/opt/suid", f.read())
    reply = sandbox.call("POST", "/files/permissions", {"/opt/suid": {"mode": 4755}})
    eq(reply.status, 200, reply.body)
    assert os.stat(f"{upper(sandbox)}/opt/suid").st_mode & stat.S_ISUID, "the bit can be set"
    text, error = sandbox.run(["/opt/suid", "act", "whoami"], 1000)
    eq((text.split(), error), (["1000", "1000", "1000", "000000000", "1"], None))
    eq(sandbox.inspect("setcap", "/opt/suid"), "set")
    text, error = sandbox.run(["/opt/suid", "act", "whoami"], 1000)
    eq((text.split(), error), (["1000", "1000", "1000", "000000000", "1"], None))
    text, error = sandbox.run([PROBES, "act", "setcap", "/opt/suid"], 1000)
    eq((text, error), ("EPERM", None))
    check_upper(sandbox)
    w.destroy(sandbox)


# --- 60: CVE-2024-21626 ---

def working_directories(w):
    sandbox = w.sandbox()
    for number in range(64):
        for path in f"/proc/self/fd/{number}", f"/proc/1/fd/{number}":
            reply = sandbox.call("POST", "/command", {
                "argv": [PROBES, "act", "cat", f"../../../../etc/{w.canary}"], "cwd": path})
            assert w.secret.encode() not in reply.body, path
            assert reply.status >= 400 or b"ENOENT" in reply.body or b'"error"' in reply.body, \
                (path, reply.body)
    for path in "/proc/1/root", "/proc/1/cwd":
        reply = sandbox.call("POST", "/command", {"argv": [PROBES, "act", "cat", f"etc/{w.canary}"], "cwd": path})
        assert w.secret.encode() not in reply.body, path
    w.destroy(sandbox)


# --- 61: CVE-2019-5736 ---

def overwrite_agent(w):
    """The agent is made to run its own program as a command, while another one hunts for it."""
    with open(f"{w.programs}/hutch-execd", "rb") as f:
        program = hashlib.sha256(f.read()).hexdigest()
    for uid in 0, 1000:
        sandbox = w.sandbox()
        with sandbox.hold("act", "hunt", uid=uid):
            for _ in range(10):
                sandbox.run(["/proc/self/exe", "--version"], uid)
                sandbox.run(["/proc/1/exe", "--version"], uid)
            sandbox.upload("/opt/own", b"#!/proc/self/exe --version\n")
            sandbox.run(["/opt/own"], uid)
        eq(read(f"{upper(sandbox)}/tmp/hunt-{uid}").split()[2:], ["changed", "0"], "programs that were changed")
        for pid in sandbox.agent, w.neighbour.agent:
            fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY)
            try:
                eq(fcntl.fcntl(fd, F_GET_SEALS) & SEALS, SEALS, "seals")
                with open(fd, "rb", closefd=False) as f:
                    eq(hashlib.sha256(f.read()).hexdigest(), program, "the agent's program")
            finally:
                os.close(fd)
            check_sealed(f"/proc/{pid}/exe")
        sandbox.alive(uid)
        w.destroy(sandbox)


def check_sealed(path):
    """Not even the host's root can change it."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return
    try:
        os.pwrite(fd, b"evil", 0)
        raise AssertionError(f"{path} could be written to")
    except PermissionError:
        pass
    finally:
        os.close(fd)


# --- CVE-2026-39861: links ---

def links_in_files(w):
    """A link leads where it leads in the sandbox, for each of the agent's file tools."""
    sandbox, before = w.sandbox(), w.picture()
    for target in [f"/var/tmp/{w.canary}", f"/root/{w.canary}", f"../../../../../../etc/{w.canary}",
                   f"/proc/1/root/etc/{w.canary}", f"/proc/self/root/../etc/{w.canary}"]:
        _, error = sandbox.run(["/bin/sh", "-c", f"ln -sfn {target} /workspace/link"])
        eq(error, None)
        for method, path, body in [("GET", "/files/download?path=/workspace/link", None),
                                   ("GET", "/files/info?path=/workspace/link", None),
                                   ("GET", "/files/search?path=/workspace&pattern=**", None),
                                   ("GET", "/files/archive?path=/workspace/link", None),
                                   ("POST", "/files/replace", {"/workspace/link": {"old": "a", "new": "b"}}),
                                   ("POST", "/files/permissions", {"/workspace/link": {"mode": 777}})]:
            reply = sandbox.call(method, path, body)
            assert w.secret.encode() not in reply.body, (target, path)
        sandbox.send("/workspace/link", b"evil")
        sandbox.call("DELETE", "/files?path=/workspace/link")
        eq(w.picture(), before, f"the host, after {target}")
    w.destroy(sandbox)


# --- 66: the witnesses are real ---

def witnesses(w):
    found = {(number, name): verdict for number, name, verdict, _ in w.neighbour.probe(62, 66, 69)}
    eq({v for v in found.values()}, {"DEVIATION"}, "attempts in the sandbox that has made what they look for")


def environments(w):
    sandbox = w.sandbox(network="private")
    assert w.secret in "".join(read_or_none(f"/proc/{p}/environ") or "" for p in w.servers()), \
        "the service has a secret in its environment"
    eq([x for p in [*sandbox.pids(), *w.neighbour.pids()] for x in secrets_of(w, p)], [])
    text, _ = sandbox.run(["/bin/sh", "-c", "env; cat /proc/*/environ 2>/dev/null"])
    assert w.secret not in text, "secret"
    has(text, "PATH=")
    w.destroy(sandbox)


WATCHED = ["/dev", "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/shm",
           "/dev/mqueue", "/proc", "/proc/acpi", "/proc/keys", "/proc/interrupts", "/proc/meminfo", "/proc/sys/vm/overcommit_memory",
           "/sys", "/sys/firmware", "/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/class/net", "/", "/etc", "/etc/passwd",
           "/etc/resolv.conf", "/usr", "/usr/bin/env", "/proc/1/exe", "/proc/self/exe"]


def watched_by_others(w):
    """Files of all kinds, opened by one sandbox while another watches those of the same names."""
    for uid in 0, 1000:
        sandbox, other = w.sandbox(), w.sandbox()
        with sandbox.hold("act", "watch", *WATCHED, uid=uid):
            opened = other.inspect("open", *WATCHED, uid=uid).splitlines()
            assert "opened /dev/null" in opened and "opened /usr/bin/env" in opened, opened
        seen = sandbox.inspect("cat", "/tmp/watched").split("\n")
        eq([x for x in seen if x and not x.startswith("0 ")], [], "what the watcher has seen")
        eq(len([x for x in seen if x]), len(WATCHED))
        w.destroy(sandbox)
        with other.hold("act", "watch", *WATCHED, uid=uid):
            other.inspect("open", *WATCHED, uid=uid)
        seen = other.inspect("cat", "/tmp/watched")
        for path in "/dev/null", "/dev/zero", "/usr/bin/env":
            assert f"0 {path}\n" not in seen, (path, seen)      # it does watch: its own
        w.destroy(other)


SCENARIOS = [
    (42, "hostile accounts and NSS: the agent loads nothing, no other process reads them", hostile_accounts),
    (43, "devices, links, owners, capabilities in archives", hostile_archives),
    (53, "set-user-ID and capable programs that were uploaded have no effect", privileged_programs),
    (60, "working directories by descriptor lead nowhere (CVE-2024-21626)", working_directories),
    (61, "the agent's program can't be overwritten (CVE-2019-5736)", overwrite_agent),
    (66, "what neighbours must not find is there", witnesses),
    (68, "secrets of the service are in no process of a sandbox", environments),
    ("CVE-2026-39861", "file tools follow links inside of the sandbox only", links_in_files),
    (123, "files whose use others could watch", watched_by_others),
]
