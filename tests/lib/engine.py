# SPDX-License-Identifier: Apache-2.0
"""A real Docker Engine, or a real Podman, of the test's own.

    with Engine("docker", build_dir) as e:
        e.socket                                    the path for --docker-socket and the like
        e.api("GET", "/containers/json?all=1").json
        e.stop(), e.kill(), e.start()               the engine goes away and comes back
        e.enter(["podman", "ps"])                   a command line that runs beside the engine

It lives in namespaces and cgroups of its own (engine_supervisor.py), with an image of Debian and one
of busybox (engine_images.py). Nothing of it is left, also when the test is killed.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from urllib.parse import quote

from engine_images import Cache
from execd import Response, Connection, can_unshare

here = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {"docker": ["dockerd", "containerd", "runc", "iptables"],
            "podman": ["podman", "conmon", "runc"]}
NAMES = ["docker", "podman"]
# Where an engine keeps images, below its data directory: the layers, which overlayfs only ever reads, and what
# is written about them. Podman's notes elsewhere name that directory.
LAYERS = {"docker": ["overlay2"], "podman": ["overlay"]}
ABOUT = {"docker": ["image"], "podman": ["overlay-images", "overlay-layers"]}


def why_not(kind):
    """What is missing for an engine here; None if nothing is."""
    missing = [p for p in PROGRAMS[kind] if not shutil.which(p, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if missing:
        return f"{', '.join(missing)}: not installed"
    if not can_unshare():
        return "an engine in namespaces of its own needs root"
    return None


def copy_images(kind, source, target):
    """The files of layers become links, if both directories are in one file system: copies take seconds."""
    os.makedirs(target, exist_ok=True)
    links = os.stat(source).st_dev == os.stat(target).st_dev
    for names, how in [(LAYERS[kind], "-al" if links else "-a"), (ABOUT[kind], "-a")]:
        subprocess.run(["cp", how, "--", *[f"{source}/{n}" for n in names], f"{target}/"], check=True)


class Engine:
    def __init__(self, kind, build_dir, *options):
        """Options are the engine's own, for its command line."""
        self.kind = kind
        self.build_dir = build_dir
        self.directory = tempfile.mkdtemp(prefix=f"{kind}-")
        self.socket = f"{self.directory}/engine.sock"
        self.supervisor = subprocess.Popen(
            [sys.executable, f"{here}/engine_supervisor.py", kind, self.directory, *options], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            pid = self.supervisor.stdout.readline()
            assert pid, "the namespaces of the engine could not be made"
            self.pid = int(pid)
            self._start_with_images()
        except BaseException:
            self.close()
            raise

    # --- life ---

    def start(self):
        """Returns when it answers."""
        self._say("start", "ready")

    def _start_with_images(self):
        """As loaded by an engine before this one: that takes seconds."""
        data = f"{self.directory}/data"
        with Cache(self.build_dir) as c:
            kept = f"{c.path}-{self.kind}"
            if not os.path.exists(kept):
                self.start()
                self.load(c.archive())
                self.stop()
                copy_images(self.kind, data, f"{kept}.part")
                os.rename(f"{kept}.part", kept)
            else:
                copy_images(self.kind, kept, data)
        self.start()

    def stop(self):
        self._say("stop", "ended")

    def kill(self):
        self._say("kill", "ended")

    def _say(self, word, reply):
        self.supervisor.stdin.write(word + "\n")
        self.supervisor.stdin.flush()
        said = self.supervisor.stdout.readline().strip()
        if said != reply:
            raise RuntimeError(f"{self.kind}: {word}: {said or 'no reply'}\n{self.log()[-4000:]}")

    def close(self):
        """Ends all that is in the namespaces."""
        with contextlib.suppress(BrokenPipeError):
            self.supervisor.stdin.close()
        self.supervisor.wait(timeout=60)
        self.supervisor.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def replies(self):
        """Whether it is there."""
        try:
            return Response(self.begin("GET", "/_ping")).status == 200
        except OSError:
            return False

    def log(self):
        try:
            with open(f"{self.directory}/log", encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    # --- talking ---

    def begin(self, method, path, body=None, headers=None, timeout=120):
        """One request on a connection of its own: http.client's response, as it comes."""
        sent = {"Host": "engine", **(headers or {})}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent["Content-Type"] = "application/json"
        connection = Connection(self.socket, timeout)
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        response.kept = connection
        return response

    def api(self, method, path, body=None, good=(200, 201, 204, 304), **more):
        """A request of the Docker-compatible API: its answer, which must be good."""
        response = self.begin(method, f"/v1.41{path}", body, **more)
        reply = Response(response)
        response.kept.close()
        assert reply.status in good, f"{method} {path}: {reply.status} {reply.body!r}"
        return reply

    def load(self, path):
        with open(path, "rb") as f:
            self.api("POST", "/images/load?quiet=1", f, timeout=300,
                     headers={"Content-Type": "application/x-tar",
                              "Content-Length": str(os.path.getsize(path))})

    def containers(self, **filters):
        """All, running or not: engine's summaries, by name."""
        query = quote(json.dumps({k: [v] for k, v in filters.items()}))
        found = self.api("GET", f"/containers/json?all=1&filters={query}").json
        return {c["Names"][0].lstrip("/"): c for c in found}

    def events(self):
        """What happens to containers from now on, as dictionaries."""
        # The head of the answer comes only with the first event, so it is not waited for.
        query = quote(json.dumps({"type": ["container"]}))
        connection = Connection(self.socket, 60)
        connection.request("GET", f"/v1.41/events?filters={query}", headers={"Host": "engine"})
        return (json.loads(line) for line in connection.getresponse())

    def foreign(self, name, **config):
        """A running container that only the test knows."""
        made = self.api("POST", f"/containers/create?name={name}", {
            "Image": "busybox:1", "Cmd": ["sleep", "100000"], **config}).json
        self.api("POST", f"/containers/{made['Id']}/start")
        return made["Id"]

    # --- beside the engine ---

    def enter(self, command):
        """The command line that runs a command in the namespaces."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--ipc", "--cgroup",
                "--", *command]

    def cli(self, *arguments):
        """The command line of the engine's own client, as its users type it."""
        if self.kind == "docker":
            return self.enter(["/usr/bin/docker", "-H", f"unix://{self.socket}", *arguments])
        conf = [f"CONTAINERS_CONF={self.directory}/containers.conf",
                f"CONTAINERS_REGISTRIES_CONF={self.directory}/registries.conf"]
        return self.enter(["/usr/bin/env", *conf, "/usr/bin/podman", "--root", f"{self.directory}/data",
                           "--runroot", f"{self.directory}/exec", "--tmpdir",
                           f"{self.directory}/exec/tmp", "--storage-driver", "overlay", *arguments])


class Registry:
    """One that only this engine can reach, at 127.0.0.1:5000, with a small image of any name."""

    ADDRESS = "127.0.0.1:5000"

    def __init__(self, engine, password=None):
        """With a password, as "user:password", nothing is told without it."""
        with Cache(engine.build_dir) as c:
            path = c.archive()
        # Of the namespaces only the network: then nsenter is the process, and can be killed.
        self.process = subprocess.Popen(
            ["nsenter", f"--target={engine.pid}", "--net", "--", sys.executable,
             f"{here}/registry.py", path, "5000", *([password] if password else [])],
            stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "listening\n", "the registry did not start"

    def lines(self):
        """What was asked of it; it ends by this."""
        self.process.kill()
        return self.process.stdout.read().splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
