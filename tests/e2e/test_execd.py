#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutch-execd as a process of its own: sockets, the token, memory, the end.

usage: test_execd.py HUTCH_EXECD
"""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Agent, events, is_sanitized  # noqa: E402
from server import GET_CLOSE, Server, read_all  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

execd = os.path.abspath(sys.argv.pop(1))
_directory = tempfile.TemporaryDirectory()
directory = _directory.name


def agent(*arguments, **kinds):
    return Agent(execd, "--workspace", directory, "--state-dir", directory, *arguments, **kinds)


# --- where it serves, and whose requests ---

@test
def serves_on_tcp_and_unix():
    """several addresses, each said on standard output"""
    path = f"{directory}/execd.sock"
    with Server(execd, "--listen", f"unix:{path}", "--listen", "127.0.0.1:0") as s:
        eq(s.address, f"unix:{path}")
        line = s.process.stdout.readline()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)", line)[1])
        has(s.send_request(GET_CLOSE % b"/ping").decode(), "Content-Length: 0\r\n")
        with socket.create_connection(("127.0.0.1", port)) as c:
            c.sendall(GET_CLOSE % b"/version")
            has(read_all(c).decode(), '"protocol":1')
        eq(s.stop(), 0, "exit status")
    assert not os.path.exists(path)


@test
def serves_on_an_inherited_socket():
    with agent() as a:
        eq(a.call("GET", "/ping").status, 200)
        eq(a.run(command="echo hi"), ["init", "ping", ("stdout", "hi"), "done"])


@test
def token_from_the_environment():
    """is asked for, and is nowhere in the environment of anybody"""
    with agent(env={**os.environ, "EXECD_ACCESS_TOKEN": "s3cret-token"}) as a:
        eq(a.call("GET", "/ping").status, 401)
        a.token = "s3cret-token"
        eq(a.call("GET", "/ping").status, 200)
        found = a.run(command="env; tr '\\0' '\\n' </proc/$PPID/environ; true")
        assert not any("s3cret" in str(e) for e in found), found
        with open(f"/proc/{a.process.pid}/environ", "rb") as f:
            assert b"s3cret" not in f.read()


@test
def token_from_a_descriptor():
    reader, writer = os.pipe()
    os.write(writer, b"from-fd\n")
    os.close(writer)
    path = f"{directory}/token.sock"
    p = subprocess.Popen([execd, "--access-token-fd", str(reader), "--listen", f"unix:{path}"],
                         pass_fds=[reader], stdout=subprocess.PIPE, text=True)
    os.close(reader)
    has(p.stdout.readline(), "listening")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b"GET /ping HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                  b"X-EXECD-ACCESS-TOKEN: from-fd\r\n\r\n")
        has(read_all(s).decode(), "200 OK")
    p.terminate()
    eq(p.wait(timeout=20), 0)
    p.stdout.close()


@test
def token_that_cannot_be_read():
    """closes the door instead of leaving it open"""
    for fd in ("/dev/null", None):
        f = os.open(fd, os.O_RDONLY) if fd else 77
        p = subprocess.run([execd, "--access-token-fd", str(f), "--listen", "127.0.0.1:0"],
                           pass_fds=[f] if fd else [], capture_output=True, text=True, timeout=20)
        assert p.returncode != 0
        has(p.stderr, "can't read the access token")
        eq(p.stdout, "")
        if fd:
            os.close(f)


@test
def wrong_command_lines():
    for arguments, diagnostic in ((["--nonsense"], "unknown option"),
                                 (["--workspace", "relative"], "not an absolute path"),
                                 (["--output-max", "1"], "not a size"),
                                 (["--listen-fd", "x"], "not a descriptor number"),
                                 (["--access-token", "x"], "unknown option")):
        p = subprocess.run([execd, *arguments], capture_output=True, text=True, timeout=20)
        eq(p.returncode, 2, arguments)
        has(p.stderr, diagnostic)


@test
def listen_fd_that_is_no_listener():
    """ends with a word about it"""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            p = subprocess.run([execd, "--listen-fd", str(s.fileno())], pass_fds=[s.fileno()],
                               capture_output=True, text=True, timeout=20)
        assert p.returncode != 0
        has(p.stderr, "not a listening socket")


@test
def ready_fd_gets_a_byte_once_it_serves():
    """--ready-fd gets a byte once the agent serves and its entrypoint has started, and none if that fails"""
    for entrypoint, said in (["sleep", "1000"], b"\0"), (["/no/such/program"], b""):
        with tempfile.TemporaryDirectory() as directory:
            ours, theirs = os.pipe()
            p = subprocess.Popen([execd, "--listen", f"unix:{directory}/s", "--ready-fd", str(theirs), "--", *entrypoint],
                                 pass_fds=[theirs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            os.close(theirs)
            with open(ours, "rb") as f:
                eq(f.read(), said)      # up to the end of file: no one else has it open
            if said:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(f"{directory}/s")
                p.terminate()
            p.wait(timeout=20)


# --- what others can do to it ---

def shielded(*arguments):
    with agent(*arguments) as a:
        pid = a.process.pid
        eq(a.call("GET", "/ping").status, 200)
        as_same_user = (f"cat /proc/{pid}/environ /proc/{pid}/mem >/dev/null 2>&1 && echo read; "
                        f"ls /proc/{pid}/fd >/dev/null 2>&1 && echo listed; true")
        if os.geteuid() != 0:
            eq(a.run(command=as_same_user), ["init", "ping", "done"])
        # Another user than root, and than the owner of the files in /proc.
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            has(f.read(), "hutch-execd")
        eq(os.stat(f"/proc/{pid}/environ").st_uid, 0, "owner of what is not dumpable")
        return a.run(command=f"readlink /proc/{pid}/exe")


@test
def is_not_dumpable():
    shielded()


@test
def runs_from_a_sealed_copy():
    has(str(shielded("--seal")), "memfd:hutch-execd")


# --- output ---

def read_some(response, n):
    got = b""
    while len(got) < n:
        piece = response.read1(65536)
        assert piece, "ended early"
        got += piece
    return got


@test
def slow_reader_slows_the_process():
    """and costs no memory"""
    with agent() as a:
        a.run(command="seq 100000")      # warm
        before = a.memory_kib("VmHWM")
        response = a.start("POST", "/command", {"command": "echo $$; exec yes"})
        first = read_some(response, 1000)
        pid = int(re.search(rb'"stdout","text":"(\d+)"', first)[1])
        # The kernel's buffers fill up, then ours, then the pipe: yes must stop by itself. Its
        # written bytes stand still when two looks, with work of ours between them, agree.
        def written():
            with open(f"/proc/{pid}/io", encoding="ascii") as f:
                return int(re.search(r"^wchar: (\d+)", f.read(), re.M)[1])
        last, same = -1, 0
        for _ in range(2000):
            eq(a.call("GET", "/ping").status, 200)
            now = written()
            same = same + 1 if now == last else 0
            last = now
            if same > 200:
                break
        assert same > 200, "the process was not held back"
        grown = a.memory_kib("VmHWM") - before
        if not is_sanitized(execd):
            assert grown < 8 * 1024, f"{grown} KiB more"
        read_some(response, 5_000_000)      # and goes on when read
        assert written() > last
        response.kept.close()
        a.call("POST", "/command", {"command": f"kill {pid}"})


@test
def all_bytes_arrive():
    """one-byte writes, a line without end, binary"""
    with agent() as a:
        found = a.run(command="for i in 1 2 3 4 5 6 7 8; do printf $i; done; printf '\\n'")
        eq(found, ["init", "ping", ("stdout", "12345678"), "done"])
        reply = a.call("POST", "/command",
                        {"command": "head -c 100000000 /dev/zero | tr '\\0' x"}, timeout=120)
        text = [e["text"] for e in events(reply.body) if e["type"] == "stdout"]
        eq(sum(len(t) for t in text), 100_000_000)
        assert max(len(t) for t in text) <= 32768
        raw = bytes(range(256)) * 10
        with open(f"{directory}/raw", "wb") as f:
            f.write(raw)
        reply = a.call("POST", "/command", {"command": "cat raw", "background": True})
        ident = events(reply.body)[0]["text"]
        eq(a.call("GET", f"/command/{ident}/logs?follow=true").body, raw)


@test
def order_of_the_streams():
    """as far as the pipes tell it: each write is seen before the next"""
    with agent() as a:
        script = "for i in 1 2 3; do echo o$i; sleep 0.1; echo e$i >&2; sleep 0.1; done"
        eq(a.run(command=script)[2:-1],
           [(s, t + n) for n in "123" for s, t in (("stdout", "o"), ("stderr", "e"))])


@test
def pings_while_nothing_happens():
    """every three seconds"""
    with agent() as a:
        reply = a.call("POST", "/command", {"command": "sleep 3.5"})
        eq([e["type"] for e in events(reply.body)],
           ["init", "ping", "ping", "execution_complete"])


# --- many ---

@test
def a_thousand_background_commands():
    """at once, each with its own output and end"""
    n = 100 if is_sanitized(execd) else 1000
    with agent() as a:
        gate = f"{directory}/gate"
        os.mkfifo(gate)
        idents = []
        for i in range(n):
            reply = a.call("POST", "/command", {
                "command": f"echo start {i}; read x <{gate}; echo end {i}; exit {i % 7}",
                "background": True})
            idents.append(events(reply.body)[0]["text"])
        assert all(a.status(i)["running"] for i in idents)
        fd = os.open(gate, os.O_RDWR)
        os.write(fd, b"x\n" * n)
        for i, ident in enumerate(idents):
            eq(a.call("GET", f"/command/{ident}/logs?follow=true").body,
               f"start {i}\nend {i}\n".encode())
        for i, ident in enumerate(idents):
            # The logs end with the command.
            eq(a.status(ident)["exit_code"], i % 7)
        os.close(fd)
        os.unlink(gate)


@test
def few_descriptors():
    """kept output does not use them up"""
    with agent(wrap=["prlimit", "--nofile=100:100"]) as a:
        a.wrapped = False       # prlimit became the agent
        for i in range(150):
            reply = a.call("POST", "/command", {"command": f"echo {i}", "background": True})
            ident = events(reply.body)[0]["text"]
            eq(a.call("GET", f"/command/{ident}/logs?follow=true").body, f"{i}\n".encode())


# --- the end ---

@test
def kill_9_leaves_nothing_running():
    """neither commands nor what they have started, setsid or not"""
    a = agent()
    reply = a.call("POST", "/command", {"background": True, "command":
                    "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait"})
    ident = events(reply.body)[0]["text"]
    response = a.start("GET", f"/command/{ident}/logs?follow=true")
    pids = [int(response.readline()), int(response.readline())]
    watched = [os.pidfd_open(p) for p in pids]
    response.kept.close()
    a.stop(signal.SIGKILL)
    for fd in watched:
        ready, _, _ = select.select([fd], [], [], 20)
        assert ready, "still running"
        os.close(fd)


@test
def sigterm_ends_it():
    a = agent()
    eq(a.call("GET", "/ping").status, 200)
    eq(a.stop(), 0)


@test
def entrypoint_decides():
    """its exit code is the agent's, its output is kept"""
    for entry, status in ((["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                          (["true"], 0), (["/no/such"], 127)):
        a = agent(entrypoint=entry)
        eq(a.process.wait(timeout=20), status, entry)
        a.stop()
    with agent("--stay", entrypoint=["sh", "-c", "echo out; echo err >&2; exit 3"]) as a:
        eq(a.call("GET", "/entrypoint/logs?follow=true").body, b"out\nerr\n")
        eq(a.call("GET", "/entrypoint").json["exit_code"], 3)
    with agent() as a:
        eq(a.call("GET", "/entrypoint").status, 404)


@test
def entrypoint_that_leaves_a_flood_behind():
    """does not drown the agent when it ends"""
    script = "yes & echo $! >flood; yes & echo $! >>flood; sleep 0.2"
    with agent("--stay", entrypoint=["sh", "-c", script]) as a:
        pid = a.call("GET", "/entrypoint").json["pid"]
        a.run(command=f"while [ -e /proc/{pid} ]; do sleep 0.01; done")
        eq(a.call("GET", "/entrypoint").json["exit_code"], 0)
        a.run(command="kill -9 $(cat flood)")


@test
def entrypoint_gets_signals():
    script = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    a = agent(entrypoint=["sh", "-c", script])
    response = a.start("GET", "/entrypoint/logs?follow=true")
    eq(response.readline(), b"ready\n")
    a.process.terminate()
    eq(response.readline(), b"got\n")
    eq(a.process.wait(timeout=20), 5)
    a.stop()


@test
def output_max_bounds_the_entrypoint():
    with agent("--stay", "--entrypoint-output-max", "4Ki",
               entrypoint=["sh", "-c", "seq 10000"]) as a:
        followed = a.call("GET", "/entrypoint/logs?follow=true").body       # ends with it
        has(followed.decode(), "\n10000\n")
        reply = a.call("GET", "/entrypoint/logs")
        eq(len(reply.body), 4096)
        has(reply.body.decode(), "\n10000\n")
        eq(int(reply.headers["EXECD-COMMANDS-DROPPED"]), 48894 - 4096)


@test
def idle_memory():
    """a quarter of a mebibyte of its own, also after work"""
    if is_sanitized(execd):
        skip("the sanitizer's memory is not the agent's")
    with agent() as a:
        eq(a.call("GET", "/ping").status, 200)
        idle = a.memory_kib("RssAnon")
        assert idle <= 256, f"{idle} KiB"
        for _ in range(20):
            a.run(command="seq 10000")
        a.call("GET", "/files/search?path=/usr/share&pattern=*", timeout=120)
        # Two seconds after the last request memory goes back; another agent tells the time.
        with agent() as clock:
            response = clock.start("GET", "/metrics/watch")
            for _ in range(4):
                response.readline()
            response.kept.close()
        after = a.memory_kib("RssAnon")
        assert after <= 512, f"{after} KiB after work"


@test
def size_and_form():
    """one static, position-independent file of at most 1.5 MB"""
    if is_sanitized(execd):
        skip("a sanitized build is not static")
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["strip", "-o", f"{d}/x", execd], check=True)
        size = os.stat(f"{d}/x").st_size
    assert size <= 1_500_000, size
    headers = subprocess.run(["readelf", "-hld", execd], capture_output=True, text=True, check=True)
    assert "INTERP" not in headers.stdout and "NEEDED" not in headers.stdout
    has(headers.stdout, "Type:                              DYN")


run()
