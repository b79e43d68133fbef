# SPDX-License-Identifier: Apache-2.0
"""A real hutch-execd and a client of it.

    with Agent(program, "--workspace", directory) as a:
        a.run(command="echo hi")            ["init", "ping", ("stdout", "hi"), "done"]
        a.call("GET", "/ping").status

The agent inherits a listening unix socket, so it can be talked to wherever it runs: in another
root, another network, another pid namespace.
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile

from tap import scaled


class Response:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Connection(http.client.HTTPConnection):
    """To a unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=scaled(timeout))
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def events(data):
    """The events of a stream, checked for what each must have."""
    blocks = data.split(b"\n\n")
    assert blocks.pop() == b"", "the stream does not end with an event"
    found = [json.loads(b) for b in blocks]
    for e in found:
        assert isinstance(e["type"], str) and isinstance(e["timestamp"], int), e
    return found


def short(found):
    """Events as texts and pairs; pings but the first are left out."""
    out = []
    for e in found:
        if e["type"] in ("stdout", "stderr"):
            out.append((e["type"], e["text"]))
        elif e["type"] == "error":
            out.append(("error", e["error"]["evalue"]))
        elif e["type"] != "ping" or "ping" not in out:
            out.append({"execution_complete": "done"}.get(e["type"], e["type"]))
    return out


class Agent:
    def __init__(self, program, *arguments, wrap=(), env=None, token=None, entrypoint=()):
        self.directory = tempfile.TemporaryDirectory(prefix="execd-")
        self.path = f"{self.directory.name}/s"
        self.token = token
        self.wrapped = bool(wrap)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(self.path)
            listening.listen(1024)
            fd = listening.fileno()
            command = [*wrap, program, "--listen-fd", str(fd), *arguments]
            if entrypoint:
                command += ["--", *entrypoint]
            self.process = subprocess.Popen(command, pass_fds=[fd], env=env,
                                            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def pid(self):
        """Of the agent, seen from here: unshare's only child if it was wrapped in that."""
        if not self.wrapped:
            return self.process.pid
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = f.read().split()
        return int(children[0]) if children else None

    def stop(self, sig=signal.SIGTERM):
        """Ends it; returns its status. unshare itself does not listen to SIGTERM."""
        pid = self.pid() if self.process.poll() is None else None
        if pid:
            os.kill(pid, sig)
        try:
            status = self.process.wait(timeout=scaled(20))
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.directory.cleanup()
        return status

    def connection(self, timeout=60):
        return Connection(self.path, timeout)

    def start(self, method, target, body=None, headers=None, timeout=60):
        """The answer as it comes: http.client's response, its connection kept alive in it."""
        c = self.connection(timeout)
        headers = dict(headers or {})
        if self.token:
            headers["X-EXECD-ACCESS-TOKEN"] = self.token
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        c.request(method, target, body, headers)
        response = c.getresponse()
        response.kept = c
        return response

    def call(self, method, target, body=None, headers=None, timeout=60):
        return Response(self.start(method, target, body, headers, timeout))

    def run(self, timeout_seconds=60, **body):
        a = self.call("POST", "/command", body, timeout=timeout_seconds)
        assert a.status == 200, (a.status, a.body)
        return short(events(a.body))

    def status(self, ident):
        return self.call("GET", f"/command/status/{ident}").json

    def memory_kib(self, what="RssAnon"):
        with open(f"/proc/{self.pid()}/status", encoding="ascii") as f:
            return int(re.search(rf"^{what}:\s+(\d+)", f.read(), re.M)[1])


def is_sanitized(program):
    """Sanitized programs are not static and have no memory figures that mean anything."""
    with open(program, "rb") as f:
        return b"__asan_init" in f.read()


def can_unshare():
    """Whether this user may make pid and mount namespaces."""
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--pid", "--mount", "--fork", "true"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0
