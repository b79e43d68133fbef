# SPDX-License-Identifier: Apache-2.0
"""A real hutchd with a data directory, and a client of it.

    with Hutchd(program, "--driver", "direct") as h:
        made = h.call("POST", "/v1/sandboxes", {...}).json
        h.kill()
        h.start()

It listens on a unix socket in the data directory's parent, so its address survives a restart; what it logs
goes to a file.
"""

import errno
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import tempfile

from execd import Response, Connection
from tap import scaled


class Hutchd:
    image = "scratch"       # of sandboxes

    def __init__(self, program, *arguments, config=None, env=None, directory=None, wrap=()):
        self.program, self.arguments = [*wrap, program], list(arguments)
        self.env = {**os.environ, **(env or {})}
        self._own = None if directory else tempfile.TemporaryDirectory(prefix="hutchd-")
        self.directory = directory or self._own.name
        self.data, self.socket = f"{self.directory}/data", f"{self.directory}/socket"
        self.log_path = f"{self.directory}/log"
        self.key = None
        self.process = None
        self._connection = None
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)     # as systemd is
        self.manager.settimeout(scaled(20))
        self.manager.bind(f"{self.directory}/notify")
        self.env["NOTIFY_SOCKET"] = f"{self.directory}/notify"
        self.prepare()
        if config is not None:
            self.configure(config)
            self.arguments += ["--config", f"{self.directory}/hutchd.yaml"]
        try:
            self.start()
        except BaseException:
            self.manager.close()
            if self.process and self.process.poll() is None:
                self.stop()
            raise

    def prepare(self):
        """The directory is there, and nothing runs."""

    def configure(self, text):
        with open(os.open(f"{self.directory}/hutchd.yaml", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                  "w", encoding="utf-8") as f:
            f.write(text)

    # --- life ---

    def command(self):
        return [*self.program, "--data", self.data, "--listen", f"unix:{self.socket}",
                *self.arguments]

    def start(self):
        """Returns when it is ready."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=self.env)
        line = self.process.stdout.readline()
        if "listening on" not in line:
            self.process.wait()
            raise RuntimeError(f"hutchd did not start:\n{self.log()}")
        while self.manager.recv(4096) != b"READY=1":
            pass

    def kill(self):
        """kill -9, at this instruction."""
        self.process.kill()
        self._gone()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def _gone(self):
        status = self.process.wait(timeout=scaled(60))
        self.process.stdout.close()
        self.disconnect()
        return status

    def restart(self, gently=True):
        self.stop() if gently else self.kill()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        status = self.stop() if self.process.poll() is None else 0
        self.clean()        # sandboxes live on, but not longer than the test
        self.manager.close()
        log = self.log()
        if self._own:
            self._own.cleanup()
        assert failure or status == 0, f"it ended with status {status}:\n{log}"

    def reload(self):
        """SIGHUP; returns what it logged meanwhile."""
        before = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        while self.manager.recv(4096) != b"READY=1":
            pass
        return self.log()[before:]

    def drain_manager(self):
        """Forgets what was told by one that was started and killed meanwhile."""
        self.manager.setblocking(False)
        try:
            while True:
                self.manager.recv(4096)
        except BlockingIOError:
            pass
        self.manager.settimeout(scaled(20))

    # --- talking ---

    def disconnect(self):
        if self._connection:
            self._connection.close()
        self._connection = None

    def call(self, method, path, body=None, headers=None, key=None):
        """One request on a kept connection: its answer."""
        sent = {"Host": "localhost", **(headers or {})}
        if key or self.key:
            sent["OPEN-SANDBOX-API-KEY"] = key or self.key
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        if not self._connection:
            self._connection = Connection(self.socket)
        try:
            self._connection.request(method, path, body=body, headers=sent)
            return Response(self._connection.getresponse())
        except (OSError, http.client.HTTPException):
            self.disconnect()
            raise

    def begin(self, method, path, body=None):
        """One request on a connection of its own: http.client's response, as it comes."""
        connection = Connection(self.socket)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Host": "localhost", "Content-Type": "application/json"})
        response = connection.getresponse()
        response.kept = connection
        return response

    def create(self, **create_request):
        """A sandbox that runs: its record."""
        reply = self.call("POST", "/v1/sandboxes", self.create_request(**create_request))
        if reply.status != 202:
            raise AssertionError(f"create: {reply.status} {reply.body!r}\n{self.log()}")
        return reply.json

    def create_request(self, **more):
        return create_request_of(**{"image": {"uri": self.image}, **more})

    def state(self, sandbox):
        reply = self.call("GET", f"/v1/sandboxes/{sandbox}")
        return reply.json["status"]["state"] if reply.status == 200 else reply.status

    def inside(self, sandbox, method, path, body=None, port=44772, **more):
        """A request into a sandbox, through the proxy."""
        return self.call(method, f"/v1/sandboxes/{sandbox}/proxy/{port}{path}", body, **more)

    # --- looking, behind its back ---

    def processes(self):
        """Of all sandboxes: names by pid."""
        return processes_of(self.data)

    def directory_of(self, sandbox):
        return next(where for where, _, _ in os.walk(f"{self.data}/drivers/direct")
                    if os.path.basename(where) == sandbox)

    def processes_of_sandbox(self, sandbox):
        return processes_of(self.directory_of(sandbox))

    def agent_of(self, sandbox):
        with open(f"{self.directory_of(sandbox)}/agent", encoding="ascii") as f:
            return int(f.read())

    def clean(self):
        while left := self.processes():
            for pid in left:
                end(pid)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()


def create_request_of(**more):
    return {"image": {"uri": "scratch"}, "timeout": 600, "entrypoint": ["sleep", "1000"],
            "resourceLimits": {"cpu": "500m", "memory": "64Mi"}, **more}


class Events:
    """GET /v1/events: what happens, from now on."""

    def __init__(self, hutchd, timeout=20):
        self.connection = Connection(hutchd.socket, timeout)
        headers = {"Host": "localhost"}
        if hutchd.key:
            headers["OPEN-SANDBOX-API-KEY"] = hutchd.key
        self.connection.request("GET", "/v1/events", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def __iter__(self):
        for line in self.response:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])

    def wait(self, sandbox, *states):
        """Until the sandbox is in one of these states: the event that says so."""
        for event in self:
            if event.get("sandboxId") == sandbox and event.get("state") in states:
                return event
        raise EOFError(f"the stream ended before {sandbox} was {states}")


def processes_of(directory):
    """Processes that work in the data directory, or in that of a sandbox: names by pid."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{directory}/"):
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                    found[int(pid)] = f.read().strip()
        except OSError:
            pass        # it has ended, or is not ours
    return found


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_gone(pid, seconds=20):
    """Until a process that is not our child has ended."""
    try:
        fd = os.pidfd_open(pid)
    except OSError as e:
        # EINVAL is what older kernels say of one that is just being reaped.
        assert e.errno in (errno.ESRCH, errno.EINVAL), e
        return
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(scaled(seconds) * 1000), f"process {pid} is still there after {seconds} s"
    finally:
        os.close(fd)
