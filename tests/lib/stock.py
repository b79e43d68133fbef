# SPDX-License-Identifier: Apache-2.0
"""A stock OpenSandbox server, with a Docker of its own.

    with StockServer(packages, agent) as s:
        s.url, s.key

The server is the package from PyPI, unchanged. Its runtime is a dockerd that is started here, in
directories and namespaces of its own, so that neither the host's Docker nor its network is touched.
There is no registry: both images are made here. IMAGE is busybox; the image that the server takes its
agent from holds ours, which speaks the same protocol.

Sandboxes have the network namespace of the server, so there is one at a time: behind its bridge the server
has agents called as /proxy/44772/..., through themselves, which ours refuses.

Must run inside of what apart() makes.
"""

import contextlib
import http.client
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading

IMAGE, AGENT_IMAGE = "hutch-test/busybox:1", "hutch-test/execd:1"
KEY = "stock-0123456789abcdef"
DOCKERD = "/usr/sbin/dockerd"
# The server replaces a sandbox's entrypoint by this script, with the entrypoint as its arguments.
BOOTSTRAP = """#!/bin/sh
mkdir -p /workspace /tmp
exec /opt/opensandbox/execd --workspace /workspace -- "$@"
"""


def missing():
    """Why it can't run here, or None."""
    if os.geteuid() != 0:
        return "Docker in namespaces of its own needs root"
    for program in [DOCKERD, "containerd", "runc", "unshare", "busybox", "ip"]:
        if not shutil.which(program):
            return f"{program} is not installed"
    return None


def apart(command):
    """Runs a command in namespaces of its own, with a cgroup's name in HUTCH_TEST_CGROUP. Whatever it
    has started ends with it."""
    group = f"hutch-stock-{os.getpid()}"
    try:
        return subprocess.run(
            ["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
             "--mount-proc", "--ipc", "--uts", *command],
            env={**os.environ, "HUTCH_TEST_CGROUP": group}, check=False).returncode
    finally:
        remove_cgroups(group)


def remove_cgroups(name):
    """Those that Docker has made, in each hierarchy there is."""
    top = "/sys/fs/cgroup"
    for place in [top, *(os.path.join(top, n) for n in os.listdir(top))]:
        for directory, _, _ in os.walk(os.path.join(place, name), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def image_of(files, links=()):
    """A root file system as a tar archive: files as (name, mode, bytes), links as (name, target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ["bin", "tmp", "workspace", "etc"]:
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(member)
        for name, mode, content in files:
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(content)
            tar.addfile(member, io.BytesIO(content))
        for name, target in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return out.getvalue()


def read(path):
    with open(path, "rb") as f:
        return f.read()


class UnixConnection:
    """HTTP to dockerd's socket, as far as it is needed: one request, one answer."""

    def __init__(self, path):
        self.path = path

    def call(self, method, target, body=b"", kind="application/x-tar"):
        connection = http.client.HTTPConnection("docker", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        with contextlib.closing(connection):
            connection.sock.connect(self.path)
            connection.request(method, target, body, {"Content-Type": kind})
            reply = connection.getresponse()
            return reply.status, reply.read()


class StockServer:
    """packages: a PYTHONPATH that has opensandbox_server; agent: a static hutch-execd."""

    def __init__(self, packages, agent, port=8090):
        self.packages, self.agent, self.port = packages, os.path.abspath(agent), port
        self.url, self.key = f"http://127.0.0.1:{port}", KEY
        self.directory = tempfile.mkdtemp(prefix="stock-")
        self.docker = self.server = None
        self.ready = False

    def __enter__(self):
        try:
            # dockerd and its plugins look there, whatever they are told.
            subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            self._start_docker()
            self._import_images()
            self._start_server()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for program in [self.server, self.docker]:
            if program and program.poll() is None:
                program.send_signal(signal.SIGTERM)
                program.wait(timeout=60)
        shutil.rmtree(self.directory, ignore_errors=True)

    def log(self):
        names = ["dockerd.log", "server.log"]
        return "".join(f"--- {n}\n{read(f'{self.directory}/{n}').decode(errors='replace')[-6000:]}\n"
                       for n in names if os.path.exists(f"{self.directory}/{n}"))

    # --- Docker ---

    def _start_docker(self):
        socket_path = f"{self.directory}/docker.sock"
        command = [DOCKERD, "-H", f"unix://{socket_path}", "--data-root", f"{self.directory}/data",
                   "--exec-root", f"{self.directory}/exec", "--pidfile", f"{self.directory}/docker.pid",
                   "--config-file", f"{self.directory}/daemon.json", "--storage-driver", "vfs",
                   "--iptables=false", "--ip6tables=false", "--ip-masq=false",
                   "--cgroup-parent", "/" + os.environ["HUTCH_TEST_CGROUP"]]
        with open(f"{self.directory}/daemon.json", "w", encoding="utf-8") as f:
            f.write("{}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:       # as systemd is
            manager.bind(f"{self.directory}/notify")
            manager.settimeout(60)
            with open(f"{self.directory}/dockerd.log", "wb") as log:
                self.docker = subprocess.Popen(command, stdout=log, stderr=log,
                                               env={**os.environ, "NOTIFY_SOCKET": f"{self.directory}/notify"})
            while b"READY=1" not in self._reported(manager):
                pass
        self.engine = UnixConnection(socket_path)

    def _reported(self, manager):
        try:
            return manager.recv(4096)
        except TimeoutError:
            raise RuntimeError(f"dockerd does not become ready\n{self.log()}") from None

    def _import_images(self):
        shell = [("bin/busybox", 0o755, read(shutil.which("busybox")))]
        tools = subprocess.run(["busybox", "--list"], check=True, capture_output=True, text=True).stdout
        links = [(f"bin/{t}", "busybox") for t in tools.split() if t != "busybox"]
        agent = [("execd", 0o755, read(self.agent)), ("bootstrap.sh", 0o755, BOOTSTRAP.encode())]
        for name, files in [(IMAGE, shell), (AGENT_IMAGE, shell + agent)]:
            repo, tag = name.split(":")
            status, said = self.engine.call("POST", f"/images/create?fromSrc=-&repo={repo}&tag={tag}",
                                            image_of(files, links))
            if status != 200 or b'"error"' in said:
                raise RuntimeError(f"image {name}: {status} {said!r}")

    # --- the server ---

    def _start_server(self):
        config = f"""
[server]
host = "127.0.0.1"
port = {self.port}
api_key = "{KEY}"
[log]
level = "INFO"
[runtime]
type = "docker"
execd_image = "{AGENT_IMAGE}"
[store]
type = "sqlite"
path = "{self.directory}/store.db"
[docker]
network_mode = "host"
"""
        with open(f"{self.directory}/config.toml", "w", encoding="utf-8") as f:
            f.write(config)
        env = {**os.environ, "PYTHONPATH": self.packages, "HOME": self.directory,
               "DOCKER_HOST": f"unix://{self.directory}/docker.sock"}
        self.server = subprocess.Popen(
            [sys.executable, "-c", "from opensandbox_server.cli import main; main()", "--config",
             f"{self.directory}/config.toml"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
            cwd=self.directory)
        ready = threading.Event()
        threading.Thread(target=self._keep_log, args=[ready], daemon=True).start()
        ready.wait(120)
        if not self.ready:
            raise RuntimeError(f"opensandbox-server does not become ready\n{self.log()}")

    def _keep_log(self, ready):
        with open(f"{self.directory}/server.log", "wb", buffering=0) as log:
            for line in self.server.stdout:
                log.write(line)
                if b"Uvicorn running on" in line:
                    self.ready = True
                    ready.set()
        ready.set()             # it has ended
