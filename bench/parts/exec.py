# SPDX-License-Identifier: Apache-2.0
"""Commands run by hutch-execd, against what the kernel alone takes for them."""

import contextlib
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import tempfile

import lib
from lib import MB, MIB, Failure, median_ratio, result

KIB = 1024


def start_agent(bench):
    """hutch-execd on a unix socket, in a directory of its own. Its commands inherit the processors it
    may use, so it may use all."""
    directory = tempfile.mkdtemp(dir=bench.directory)
    return bench.start("../hutch-execd", "--listen", f"unix:{directory}/socket", "--workspace", directory,
                       "--state-dir", directory, cpus=bench.server_cpus | bench.load_cpus)


def socket_of(server):
    return server.address.removeprefix("unix:")


def run_json(bench, program, *arguments):
    """The object that one of our programs prints."""
    argv = [bench.program(program), *map(str, arguments)]
    run = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Failure(run.stderr.strip() or f"{program} ended with {run.returncode}")
    return json.loads(run.stdout)


# --- short commands --------------------------------------------------------------------------------

CONNECTIONS = 8
RATE_MIN = 800


def compare_with_spawn(bench, name, body, argv, at_most):
    """Both may use all processors: a command in a sandbox may, too."""
    server = start_agent(bench)
    path = socket_of(server)
    body = json.dumps(body)
    run_json(bench, "exec_bench", "load", path, body, 1, 1)
    r = bench.interleave({
        "ours": lambda: run_json(bench, "exec_bench", "load", path, body, 1, bench.seconds),
        "floor": lambda: run_json(bench, "spawn_floor", bench.seconds, *argv)})
    for key, text, bound in (("p50_us", name, at_most), ("p10_us", "  10th percentile (vs. posix_spawn)", None),
                             ("p99_us", "  99th percentile (vs. posix_spawn)", None)):
        ours, floor = ([x[key] for x in r[side]] for side in ("ours", "floor"))
        yield result(text, statistics.median(ours), statistics.median(floor), "us",
                     median_ratio(ours, floor), at_most=bound, rounds=r)


def true(bench):
    yield from compare_with_spawn(bench, "run /bin/true, median (vs. posix_spawn)", {"argv": ["/bin/true"]},
                                  ["/bin/true"], 2.0)


def shell(bench):
    yield from compare_with_spawn(bench, "run bash -c true, median (vs. posix_spawn)", {"command": "true"},
                                  ["bash", "-c", "true"], 1.6)


def rate(bench):
    path = socket_of(start_agent(bench))
    body = json.dumps({"argv": ["/bin/true"]})
    r = bench.interleave({
        "ours": lambda: run_json(bench, "exec_bench", "load", path, body, CONNECTIONS, bench.seconds),
        "floor": lambda: run_json(bench, "spawn_floor", bench.seconds, "/bin/true")})
    ours, floor = ([x["rate"] for x in r[side]] for side in ("ours", "floor"))
    yield result(f"/bin/true over {CONNECTIONS} connections", statistics.median(ours), None, "/s",
                 at_least=RATE_MIN, rounds=r)
    yield result("  the same (vs. posix_spawn, one at a time)",
                 statistics.median(ours), statistics.median(floor),
                 "/s", median_ratio(ours, floor))


# --- much output -----------------------------------------------------------------------------------

SIZE = 1024 * MIB
GROWTH_MAX = 8 * MIB
STREAM_ROUNDS_MAX = 3


def stream_once(bench, server, argv, width):
    """MB/s of text, and MiB by which the peak of the agent's resident memory (VmHWM, reset before)
    is above what was resident before."""
    server.reset_peak()
    before = server.memory()["rss"]
    r = run_json(bench, "exec_bench", "stream", socket_of(server), json.dumps({"argv": argv}))
    after = server.memory()
    lines, rest = divmod(SIZE, width)
    if r["lines"] != lines + (rest > 0) or r["text_bytes"] != SIZE - lines:
        raise Failure(f"{r['lines']} lines and {r['text_bytes']} bytes of text are not what was written")
    return {"mbps": SIZE / MB / r["seconds"],
            "growth": (max(after["peak"], after["rss"]) - before) / MIB}


def stream(bench):
    server = start_agent(bench)
    growths = []
    for width, at_least in ((1024, 150), (80, 50)):
        argv = [bench.program("lines_source"), str(SIZE), str(width)]
        ours, floor = [], []
        for _ in range(min(bench.rounds, STREAM_ROUNDS_MAX)):
            ours.append(stream_once(bench, server, argv, width))
            floor.append(SIZE / MB / run_json(bench, "pipe_floor", *argv)["seconds"])
        speeds = [x["mbps"] for x in ours]
        growths += [x["growth"] for x in ours]
        yield result(f"stream {SIZE // MIB} MiB of output in {width}-byte lines",
                     statistics.median(speeds), None,
                     "MB/s", at_least=at_least, rounds={"ours": ours, "floor": floor})
        yield result("  the same (vs. copying from pipe to socket)",
                     statistics.median(speeds), statistics.median(floor),
                     "MB/s", median_ratio(speeds, floor))
    yield result("  growth of the agent's peak memory while streaming",
                 max(growths), None, "MiB", at_most=GROWTH_MAX / MIB,
                 growths=growths)


# --- memory ----------------------------------------------------------------------------------------

IDLE_MAX = 256 * KIB


class Client(http.client.HTTPConnection):
    """Over the agent's unix socket."""

    def __init__(self, server):
        super().__init__("bench", timeout=lib.TIMEOUT_SECONDS)
        self.path = socket_of(server)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def send_request(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body else None,
                     {"Content-Type": "application/json"} if body else {})
        r = self.getresponse()
        if r.status != 200:
            raise Failure(f"{method} {path}: {r.status} {r.read()!r}")
        return r

    def run(self, **body):
        """Returns the command's id."""
        text = self.send_request("POST", "/command", body).read()
        m = re.search(rb'"type":"init","text":"(\w+)"', text)
        if not m or b"execution_complete" not in text:
            raise Failure(f"no command: {text!r}")
        return m[1].decode()


def idle(bench):
    server = start_agent(bench)
    yield result("anonymous memory of an idle agent", server.memory()["anonymous"] / KIB, None, "KiB",
                 at_most=IDLE_MAX / KIB)
    with contextlib.closing(Client(server)) as c:
        c.run(argv=["/bin/true"])
    yield result("  after a command", server.memory()["anonymous"] / KIB, None, "KiB")


# --- many at once ----------------------------------------------------------------------------------

MANY = 1000
DESCRIPTORS = 4 * MANY


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()


def start_many(client, fifo):
    """Each says that it is ready, waits for the end of the FIFO, and exits with
    a number of its own."""
    script = 'exec 3< "$0"; echo ready; read x <&3; exit "$1"'
    ids = []
    for i in range(MANY):
        ids.append(client.run(argv=["/bin/sh", "-c", script, fifo, str(i % 256)], background=True))
    return ids


def wait_until_ready(client, ids):
    """Following a log needs no sleep: the response continues when there is output."""
    for i in ids:
        r = client.send_request("GET", f"/command/{i}/logs?follow=true")
        if r.read(6) != b"ready\n":
            raise Failure("a command did not start")
        client.close()


def check_all(client, ids, running):
    for i, command in enumerate(ids):
        status = json.loads(client.send_request("GET", f"/command/status/{command}").read())
        if status["running"] != running or (not running and status["exit_code"] != i % 256):
            raise Failure(f"of command {i}: {status}")


def wait_until_ended(client, ids):
    for i in ids:
        client.send_request("GET", f"/command/{i}/logs?follow=true").read()


def many(bench):
    lib.need_descriptors(DESCRIPTORS)
    server = start_agent(bench)
    fifo = os.path.join(bench.directory, "fifo")
    os.mkfifo(fifo)
    before = server.memory()["anonymous"]
    with contextlib.closing(Client(server)) as client, contextlib.ExitStack() as stack:
        writer = os.open(fifo, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, writer)
        ids = start_many(client, fifo)
        wait_until_ready(client, ids)
        check_all(client, ids, True)
        growth = server.memory()["anonymous"] - before
        supervisors = [lib.memory_of(pid)["private"] for pid in children(server.pid)]
        stack.close()
        wait_until_ended(client, ids)
        check_all(client, ids, False)
        left = children(server.pid)
    yield result(f"{MANY:,} background commands at once: running", len(supervisors), None, "", at_least=MANY)
    yield result("  processes left behind", len(left), None, "", at_most=0)
    yield result("  memory of the agent per command", growth / MANY / KIB, None, "KiB")
    if None not in supervisors:
        yield result("  memory of the supervisor per command",
                     statistics.mean(supervisors) / KIB, None, "KiB")


ITEMS = {"true": true, "shell": shell, "rate": rate, "stream": stream, "idle": idle, "many": many}
