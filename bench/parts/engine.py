# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of container engines against the engine itself: what we add to a create, and what a command
costs. Engine, image, network and limits are the same for both, in the same run."""

import contextlib
import http.client
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from lib import Failure, Skip, median_ratio, result

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "lib"))
from engine import Engine, why_not  # noqa: E402
from installed import CannotInstall  # noqa: E402

IMAGE = "debian:12"
MEMORY = 128 << 20
COMMANDS = 20               # in a round
CREATE_MAX, COMMAND_MIN = 1.25, 10
names = itertools.count()


def start_engine(bench, kind):
    if reason := why_not(kind):
        raise Skip(reason)
    try:
        engine = Engine(kind, os.path.abspath(bench.build))
    except CannotInstall as e:
        raise Skip(f"the image can't be made: {e}") from e
    bench.at_end(engine.close)
    return engine


# --- ours ------------------------------------------------------------------------------------------


class Ours(http.client.HTTPConnection):
    """A client of hutchd, on one connection."""

    def __init__(self, server):
        super().__init__("localhost", timeout=60)
        self.path = server.address.removeprefix("unix:")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def send_request(self, method, path, body=None, good=(200, 202, 204)):
        self.request(method, path, json.dumps(body) if body else None,
                     {"Content-Type": "application/json"} if body else {})
        reply = self.getresponse()
        text = reply.read()
        if reply.status not in good:
            raise Failure(f"{method} {path}: {reply.status} {text!r}")
        return text

    def create(self):
        made = self.send_request("POST", "/v1/sandboxes", {
            "image": {"uri": IMAGE}, "timeout": 600, "entrypoint": ["sleep", "100000"],
            "resourceLimits": {"memory": str(MEMORY)}})
        return json.loads(made)["id"]

    def run(self, sandbox, argv, expected):
        text = self.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"argv": argv})
        if expected not in text:
            raise Failure(f"no output: {text!r}")

    def delete(self, sandbox):
        self.send_request("DELETE", f"/v1/sandboxes/{sandbox}")


def start_ours(bench, engine):
    """hutchd, and a client of it."""
    directory = tempfile.mkdtemp(dir=bench.directory)
    with open(os.open(f"{directory}/hutchd.yaml", os.O_WRONLY | os.O_CREAT, 0o600), "w",
              encoding="ascii") as f:
        json.dump({"driver": engine.kind, "agent": bench.program("../hutch-execd"),
                   engine.kind: {"socket": engine.socket, "network": "none"}}, f)      # YAML, too
    server = bench.start("../hutchd", "--data", f"{directory}/data", "--listen", f"unix:{directory}/socket",
                         "--config", f"{directory}/hutchd.yaml", "--log-level", "error",
                         cpus=bench.server_cpus | bench.load_cpus)
    client = Ours(server)
    bench.at_end(client.close)
    return client


# --- the engine's own ------------------------------------------------------------------------------


class Peer(http.client.HTTPConnection):
    """A client of the engine, on one connection, as ours has one."""

    def __init__(self, engine):
        super().__init__("engine", timeout=60)
        self.engine = engine

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.engine.socket)

    def send_request(self, method, path, body=None):
        self.request(method, f"/v1.41{path}", json.dumps(body) if body else None,
                     {"Content-Type": "application/json"} if body else {})
        reply = self.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise Failure(f"{method} {path}: {reply.status} {text!r}")
        return text

    def create(self):
        made = self.send_request("POST", "/containers/create", {
            "Image": IMAGE, "Cmd": ["sleep", "100000"],
            "HostConfig": {"NetworkMode": "none", "Memory": MEMORY, "MemorySwap": MEMORY,
                           "PidsLimit": 4096}})
        ident = json.loads(made)["Id"]
        self.send_request("POST", f"/containers/{ident}/start")
        return ident

    def delete(self, ident):
        self.send_request("DELETE", f"/containers/{ident}?force=1")


def cli(engine, *arguments):
    """What a user types, from the start of the program to its end; output must be there."""
    run = subprocess.run(engine.cli(*arguments), stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, check=False)
    if run.returncode != 0 or "hello" not in run.stdout:
        raise Failure(f"{engine.kind} {arguments[0]}: {run.stderr.strip()}")


def cli_run(engine):
    """Until the first output, and a container that goes on: what a sandbox is."""
    name = f"bench-{os.getpid()}-{next(names)}"
    run = subprocess.Popen(engine.cli("run", "--name", name, "--network=none", f"--memory={MEMORY}",
                                      "--pids-limit=4096", IMAGE, "sh", "-c",
                                      "echo hello; exec sleep 100000"),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    with run:
        if run.stdout.readline() != "hello\n":
            raise Failure(f"{engine.kind} run said nothing")
        yield
        engine.api("DELETE", f"/containers/{name}?force=1")


# --- what is measured ------------------------------------------------------------------------------


def seconds(function):
    began = time.perf_counter()
    value = function()
    return time.perf_counter() - began, value


def create_measures(engine, ours, peer):
    def of_ours():
        def make():
            sandbox = ours.create()
            ours.run(sandbox, ["/bin/echo", "hello"], b"hello")
            return sandbox
        took, sandbox = seconds(make)
        ours.delete(sandbox)
        return took

    def of_peer():
        took, ident = seconds(peer.create)
        peer.delete(ident)
        return took

    def of_cli():
        cycle = cli_run(engine)
        took, _ = seconds(lambda: next(cycle))
        with contextlib.suppress(StopIteration):
            next(cycle)
        return took

    return {"ours": of_ours, "peer": of_peer, "cli": of_cli}


def create(kind, bench):
    """From the create request to the first output, against the engine's create and start alone."""
    engine = start_engine(bench, kind)
    ours, peer = start_ours(bench, engine), Peer(engine)
    bench.at_end(peer.close)
    measures = create_measures(engine, ours, peer)
    for measure in measures.values():       # caches, and the network that is made once
        measure()
    r = bench.interleave(measures)
    title = kind.capitalize()
    for name, side, bound in ((f"{title}: create until first output (vs. create + start by its API)", "peer",
                               CREATE_MAX),
                              (f"  the same (vs. {kind} run)", "cli", None)):
        yield result(name, statistics.median(r["ours"]) * 1000, statistics.median(r[side]) * 1000, "ms",
                     median_ratio(r["ours"], r[side]), at_most=bound, rounds=r)


def command(kind, bench):
    """In a sandbox that runs, against the engine's exec in the same container."""
    engine = start_engine(bench, kind)
    ours = start_ours(bench, engine)
    sandbox = ours.create()
    container = next(iter(engine.containers(label=f"hutch.sandbox={sandbox}")))
    argv = ["/bin/echo", "hello"]

    def of_ours():
        took, _ = seconds(lambda: [ours.run(sandbox, argv, b"hello") for _ in range(COMMANDS)])
        return took / COMMANDS

    r = bench.interleave({
        "ours": of_ours, "cli": lambda: seconds(lambda: cli(engine, "exec", container, *argv))[0]})
    yield result(f"{kind.capitalize()}: command in a running sandbox, times faster (vs. {kind} exec)",
                 statistics.median(r["ours"]) * 1000,
                 statistics.median(r["cli"]) * 1000, "ms", median_ratio(r["cli"], r["ours"]),
                 at_least=COMMAND_MIN, rounds=r)
    ours.delete(sandbox)


def of(kind, function):
    def item(bench):
        yield from function(kind, bench)
    item.__doc__ = function.__doc__
    return item


ITEMS = {f"{kind}_{name}": of(kind, function) for kind in ("docker", "podman")
         for name, function in (("create", create), ("command", command))}
