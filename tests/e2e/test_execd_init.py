#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutch-execd as PID 1 of a pid namespace, in foreign roots: Debian's, and busybox with musl.

usage: test_execd_init.py HUTCH_EXECD BUILD_DIR
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Agent, can_unshare, events, is_sanitized  # noqa: E402
from tap import diag, eq, has, run, scaled, skip, test  # noqa: E402

execd = os.path.abspath(sys.argv.pop(1))
build = os.path.abspath(sys.argv.pop(1))
_directory = tempfile.TemporaryDirectory(prefix="execd-root-")
directory = _directory.name

# The namespaces' first process becomes the agent: unshare's child executes the rest. Killing
# unshare (--kill-child) ends them.
IN_NAMESPACE = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--propagation", "private"]


def needs(root=False):
    if not can_unshare():
        skip("pid and mount namespaces need root here")
    if root and is_sanitized(execd):
        skip("a sanitized build is not static and does not run in a foreign root")


def as_init(*arguments, root=None, **kinds):
    """The agent as PID 1 with a /proc of its own, in this root or another."""
    place = root or ""
    script = f"mount -t proc proc {place}/proc && exec " + \
             (f"chroot {root} " if root else "") + '"$0" "$@"'
    program = "/hutch-execd" if root else execd
    return Agent(program, "--state-dir", "/tmp", *arguments,
                 wrap=[*IN_NAMESPACE, "sh", "-c", script], **kinds)


def processes(a):
    """(pid, state) of everything in the namespace."""
    found = a.run(command="cat /proc/[0-9]*/stat 2>/dev/null; true")
    lines = [t for kind, t in found[2:-1] if kind == "stdout"]
    return [(int(s.split()[0]), s.rpartition(")")[2].split()[0]) for s in lines]


@test
def is_pid_1():
    needs()
    with as_init() as a:
        eq(a.run(command="cat /proc/1/comm"), ["init", "ping", ("stdout", "hutch-execd"), "done"])


@test
def ten_thousand_orphans():
    """are reaped, none is left"""
    needs()
    script = "i=0; while [ $i -lt 10000 ]; do (true &); i=$((i+1)); done; echo made"
    with as_init("--stay", entrypoint=["sh", "-c", script]) as a:
        reply = a.call("GET", "/entrypoint/logs?follow=true", timeout=200)
        eq(reply.body, b"made\n")
        eq(a.call("GET", "/entrypoint").json["exit_code"], 0)
        left = processes(a)
        eq([p for p in left if p[1] == "Z"], [], "zombies")
        assert len(left) < 8, left


@test
def orphans_that_outlive_their_command():
    """become children of PID 1 and are reaped when they end"""
    needs()
    with as_init() as a:
        a.run(command="for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep 1000 & done")
        alive = processes(a)
        assert len([p for p in alive if p[1] != "Z" and p[0] != 1]) >= 10, alive
        a.run(command="for p in $(cat /proc/1/task/1/children); do kill -9 $p; done; true")
        # The killed are reaped before anything is answered after SIGCHLD came in: ask until so.
        for _ in range(200):
            left = [p for p in processes(a) if p[1] in "ZS" and p[0] != 1]
            if len(left) < 5:
                break
        eq([p for p in left if p[1] == "Z"], [])
        assert len(left) < 5, left


@test
def nothing_inside_can_stop_it():
    """no signal does, and its memory, descriptors and program are out of reach for users"""
    needs()
    signals = "TERM INT HUP QUIT USR1 USR2 KILL STOP PIPE"
    if not is_sanitized(execd):
        signals += " SEGV ABRT FPE BUS ILL"     # for these the sanitizer has handlers
    with as_init() as a:
        a.run(command=f"for s in {signals}; do kill -$s 1; done; true")
        a.run(command="kill -9 -1")
        eq(a.call("GET", "/ping").status, 200)
        found = a.run(command="cat /proc/1/environ /proc/1/mem; ls /proc/1/fd; readlink /proc/1/exe",
                      uid=1000, cwd="/")
        has(str(found), "Permission denied")
        eq([e for e in found if e[0] == "stdout"], [])


# Signals that seem to come from pid 0, which is how the kernel shows those from outside.
FORGE = """
import ctypes, fcntl, os, signal
number = ctypes.c_long(%d)
info = (ctypes.c_int * 32)(signal.SIGTERM, 0, -1)       # SI_QUEUE, from pid 0
assert ctypes.CDLL(None).syscall(number, 1, signal.SIGTERM, info) == 0
reader, writer = os.pipe()
fcntl.fcntl(reader, fcntl.F_SETOWN, 1)
fcntl.fcntl(reader, 10, signal.SIGTERM)                 # F_SETSIG
fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
os.write(writer, b"x")
"""


@test
def signals_cannot_be_forged():
    """from inside, neither by sigqueue nor by F_SETOWN"""
    needs()
    number = {"x86_64": 129, "aarch64": 138}.get(os.uname().machine)
    if not number:
        skip("the number of rt_sigqueueinfo is not known for this architecture")
    with as_init("--workspace", directory) as a:
        for _ in range(2):
            eq(a.run(argv=[sys.executable, "-c", FORGE % number]), ["init", "ping", "done"])
        eq(a.call("GET", "/ping").status, 200)


@test
def seals_itself_where_memory_is_not_for_execution():
    """vm.memfd_noexec=1"""
    needs()
    script = ("mount -t proc proc /proc; echo 1 2>/dev/null >/proc/sys/vm/memfd_noexec; "
              'exec "$0" "$@"')
    with Agent(execd, "--state-dir", "/tmp", "--seal", wrap=[*IN_NAMESPACE, "sh", "-c", script]) as a:
        has(str(a.run(command="readlink /proc/1/exe")), "memfd:hutch-execd")


@test
def no_descriptor_of_the_agent_leaks():
    needs()
    with as_init() as a:
        eq(a.run(argv=["sh", "-c", "for i in $(seq 0 500); do [ -e /proc/$$/fd/$i ] && echo $i; "
                                   "done; true"]),
           ["init", "ping", ("stdout", "0"), ("stdout", "1"), ("stdout", "2"), "done"])


@test
def ends_with_its_entrypoint():
    """and everything in the namespace with it"""
    needs()
    a = as_init(entrypoint=["sh", "-c", "setsid sleep 1000 & echo up; read x </dev/null; exit 6"])
    eq(a.process.wait(timeout=scaled(30)), 6)
    a.stop()


@test
def signals_from_outside_are_forwarded():
    needs()
    script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done"
    a = as_init(entrypoint=["sh", "-c", script])
    response = a.start("GET", "/entrypoint/logs?follow=true")
    eq(response.readline(), b"up\n")
    os.kill(a.pid(), signal.SIGTERM)
    eq(a.process.wait(timeout=scaled(30)), 9)
    a.stop()


@test
def timeout_ends_all_of_a_command():
    """double forks in sessions of their own included"""
    needs()
    with as_init() as a:
        eq(a.run(command="(setsid sh -c '(setsid sleep 1000 &); sleep 1000' &); sleep 1000",
                 timeout=300)[-1], ("error", "-1"))
        eq([p for p in processes(a) if p[1] == "S" and p[0] != 1 and p[0] < 3], [])
        names = a.run(command="cat /proc/[0-9]*/comm 2>/dev/null; true")
        assert ("stdout", "sleep") not in names, names


# --- other roots ---

def debian_root():
    """A minimal Debian, made once for a build directory."""
    root = f"{build}/roots/debian"
    if not os.path.exists(f"{root}/done"):
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(os.path.dirname(root), exist_ok=True)
        p = subprocess.run(["mmdebstrap", "--quiet", "--variant=essential", "--mode=root",
                            "bookworm", root], capture_output=True, text=True, check=False)
        if p.returncode != 0:
            diag(p.stderr[-2000:])
            shutil.rmtree(root, ignore_errors=True)
            skip("mmdebstrap can't make a Debian root here")
        with open(f"{root}/done", "w", encoding="ascii"):
            pass
    shutil.copy(execd, f"{root}/hutch-execd")
    return root


def musl_root():
    """busybox, and a program linked with musl as a shared library."""
    root = f"{directory}/musl"
    for d in ("bin", "lib", "proc", "tmp", "etc", "workspace"):
        os.makedirs(f"{root}/{d}")
    shutil.copy("/bin/busybox", f"{root}/bin/busybox")
    names = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        if name != "busybox":
            os.symlink("busybox", f"{root}/bin/{name}")
    with open(f"{directory}/hello.c", "w", encoding="ascii") as f:
        f.write('#include <stdio.h>\nint main(void) { puts("musl says hello"); return 3; }\n')
    subprocess.run(["musl-gcc", "-o", f"{root}/bin/hello", f"{directory}/hello.c"], check=True)
    host_info = os.uname().machine
    loader = f"ld-musl-{host_info}.so.1"
    shutil.copy(os.path.realpath(f"/lib/{loader}"), f"{root}/lib/{loader}")
    with open(f"{root}/etc/passwd", "w", encoding="ascii") as f:
        f.write("root:x:0:0:root:/:/bin/sh\napp:x:1000:1000::/tmp:/bin/sh\n")
    with open(f"{root}/etc/group", "w", encoding="ascii") as f:
        f.write("root:x:0:\napp:x:1000:\nextra:x:2000:app\n")
    os.mkdir(f"{root}/dev")
    os.mknod(f"{root}/dev/null", 0o20666, os.makedev(1, 3))
    os.chmod(f"{root}/dev/null", 0o666)
    os.chmod(f"{root}/tmp", 0o1777)
    shutil.copy(execd, f"{root}/hutch-execd")
    return root


def full_tour(a, shell):
    """What a client of any image relies on."""
    eq(a.call("GET", "/ping").status, 200)
    eq(a.run(command="echo $0"), ["init", "ping", ("stdout", shell), "done"])
    eq(a.run(command="echo a; echo b >&2; exit 4")[-1], ("error", "4"))
    reply = a.call("POST", "/command", {"command": "echo bg; exit 2", "background": True})
    ident = events(reply.body)[0]["text"]
    eq(a.call("GET", f"/command/{ident}/logs?follow=true").body, b"bg\n")
    eq(a.status(ident)["exit_code"], 2)
    eq(a.run(command="sleep 100", timeout=200)[-1], ("error", "-1"))
    eq(a.call("GET", "/metrics").status, 200)
    upload = (b'--b\r\nContent-Disposition: form-data; name="metadata"; filename="m"\r\n\r\n'
              b'{"path":"up.txt","mode":640}\r\n'
              b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
              b'hello\r\n--b--\r\n')
    eq(a.call("POST", "/files/upload", upload,
              {"Content-Type": "multipart/form-data; boundary=b"}).status, 200)
    eq(a.run(command="cat /workspace/up.txt"), ["init", "ping", ("stdout", "hello"), "done"])
    info = a.call("GET", "/files/info?path=up.txt").json["up.txt"]
    eq((info["mode"], info["owner"], info["size"]), (640, "root", 5))
    eq(a.call("GET", "/files/download?path=up.txt").body, b"hello")
    session = a.call("POST", "/session").json["session_id"]
    a.call("POST", f"/session/{session}/run", {"command": "x=1; f() { echo f$x; }"})
    has(a.call("POST", f"/session/{session}/run", {"command": "f"}).body.decode(), '"text":"f1"')
    eq(a.call("DELETE", f"/session/{session}").status, 200)


@test
def in_a_debian_root():
    """commands with bash, files, sessions"""
    needs(root=True)
    if not shutil.which("mmdebstrap"):
        skip("mmdebstrap is not installed")
    root = debian_root()
    os.makedirs(f"{root}/workspace", exist_ok=True)
    with as_init(root=root) as a:
        full_tour(a, "bash")
        eq(a.run(command="id -un; id -Gn", uid=65534, cwd="/"),
           ["init", "ping", ("stdout", "nobody"), ("stdout", "nogroup"), "done"])


@test
def in_a_busybox_and_musl_root():
    """commands with sh, a musl program, users of its own files"""
    needs(root=True)
    if not (os.path.exists("/bin/busybox") and shutil.which("musl-gcc")):
        skip("busybox-static and musl-tools are not installed")
    with as_init(root=musl_root()) as a:
        full_tour(a, "sh")
        eq(a.run(argv=["hello"]), ["init", "ping", ("stdout", "musl says hello"), ("error", "3")])
        eq(a.run(command="id -un; id -Gn", uid=1000, cwd="/"),
           ["init", "ping", ("stdout", "app"), ("stdout", "app extra"), "done"])


@test
def in_an_empty_root():
    """nothing but the agent: argv of what is there, clear errors for what is not"""
    needs(root=True)
    root = f"{directory}/empty"
    for d in ("proc", "tmp", "dev"):
        os.makedirs(f"{root}/{d}")
    shutil.copy(execd, f"{root}/hutch-execd")
    with as_init(root=root) as a:
        eq(a.call("GET", "/ping").status, 200)
        eq(a.run(command="true")[-1], ("error", "No such file or directory"))
        eq(a.call("GET", "/metrics").status, 200)
        found = a.run(argv=["/hutch-execd", "--version"])
        assert re.match(r"hutch-execd \d", found[2][1]), found


run()
