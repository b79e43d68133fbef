# SPDX-License-Identifier: Apache-2.0
"""The first process of the namespaces that a container engine of a test lives in.

usage: engine_inside.py docker|podman DIRECTORY [OPTION...]

Reads words from stdin and answers each with a line: "start" (the engine answers requests then), "stop"
(SIGTERM), "kill" (SIGKILL, its containers stay). When stdin ends this process ends, and as it is PID 1
everything else in the namespaces does, too: containers, shims, the engine.

What engines write outside of the directories they are given (keys in /etc, state in /run and /var/lib) goes to
a tmpfs that only these namespaces see.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys

kind, directory, *options = sys.argv[1:]
SOCKET = f"{directory}/engine.sock"
PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"     # Debian's engines, not those of a user

# No limit may be raised above ours, so podman's own defaults don't do.
CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=32768:32768"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "cni"
"""

REGISTRIES_CONF = """
unqualified-search-registries = ["docker.io"]
short-name-mode = "permissive"
[[registry]]
location = "127.0.0.1:5000"
insecure = true
"""


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def place(name, text):
    path = f"{directory}/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def hide_the_host():
    """Directories of the host that an engine would write to are copies from here on."""
    mount("-t", "proc", "proc", "/proc")
    mount("-t", "sysfs", "sysfs", "/sys")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ["etc", "var/lib"]:
        upper, work = f"/run/.over/{name}/upper", f"/run/.over/{name}/work"
        os.makedirs(upper)
        os.makedirs(work)
        mount("-t", "overlay", "-o", f"lowerdir=/{name},upperdir={upper},workdir={work}",
              "overlay", f"/{name}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def mount_cgroups():
    """The groups below ours, as if there were no others: the names of a cgroup namespace."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        lines = [line.strip().split(":", 2) for line in f]
    if [names for _, names, _ in lines] == [""]:
        mount("-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
        delegate("/sys/fs/cgroup")
        return
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/sys/fs/cgroup")
    for _, names, _ in lines:
        if not names:
            continue            # hybrid: engines look at the first version only
        at = f"/sys/fs/cgroup/{names.removeprefix('name=')}"
        os.mkdir(at)
        mount("-t", "cgroup", "-o", names, "cgroup", at)


def delegate(root):
    """Groups with processes can't have controllers for their children: we move down one."""
    os.mkdir(f"{root}/engine")
    with open(f"{root}/engine/cgroup.procs", "w", encoding="ascii") as f:
        f.write("0")
    with open(f"{root}/cgroup.controllers", encoding="ascii") as f:
        controllers = f.read().split()
    for name in controllers:
        try:
            with open(f"{root}/cgroup.subtree_control", "w", encoding="ascii") as f:
                f.write(f"+{name}")
        except OSError:
            pass                # not every one can be given on


def command_of():
    """The engine's command line and environment."""
    env = {"PATH": PATH, "HOME": directory, "TMPDIR": directory, "NOTIFY_SOCKET": f"{directory}/notify"}
    if kind == "docker":
        config = place("daemon.json", json.dumps({"features": {"buildkit": False}}))
        return ["dockerd", "-H", f"unix://{SOCKET}", "--config-file", config,
                "--data-root", f"{directory}/data", "--exec-root", f"{directory}/exec",
                "--pidfile", f"{directory}/pid", "--log-level", "error", *options], env
    env["CONTAINERS_CONF"] = place("containers.conf", CONTAINERS_CONF)
    env["CONTAINERS_REGISTRIES_CONF"] = place("registries.conf", REGISTRIES_CONF)
    return ["podman", "--root", f"{directory}/data", "--runroot", f"{directory}/exec",
            "--tmpdir", f"{directory}/exec/tmp", "--storage-driver", "overlay",
            "system", "service", "--time", "0", f"unix://{SOCKET}"], env


class Inside:
    def __init__(self):
        self.engine = None
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"{directory}/notify")
        self.notify.setblocking(False)
        # A signal of a child is a byte here, so that one select waits for everything.
        reader, writer = os.pipe()
        for fd in reader, writer:
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.children = reader
        self.select = selectors.DefaultSelector()
        for source in self.notify, self.children, sys.stdin:
            self.select.register(source, selectors.EVENT_READ)
        self.words = b""

    def start(self):
        command, env = command_of()
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)
        with open(f"{directory}/log", "ab") as log:
            self.engine = subprocess.Popen(command, env=env, cwd=directory, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, start_new_session=True).pid

    def end(self, sig):
        if self.engine:
            os.kill(self.engine, sig)
        else:
            say("ended")

    def reap(self):
        """Orphans of the namespace are ours as well."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.engine:
                self.engine = None
                say("ended")

    def turn(self):
        for key, _ in self.select.select():
            if key.fileobj is self.notify:
                if b"READY=1" in self.notify.recv(4096):
                    say("ready")
            elif key.fileobj == self.children:
                os.read(self.children, 4096)
                self.reap()
            elif not self.listen():
                return False
        return True

    def listen(self):
        got = os.read(0, 4096)
        self.words += got
        *lines, self.words = self.words.split(b"\n")
        for line in lines:
            {b"start": self.start, b"stop": lambda: self.end(signal.SIGTERM),
             b"kill": lambda: self.end(signal.SIGKILL)}[line]()
        return bool(got)


def say(text):
    print(text, flush=True)


outside = os.readlink("/proc/self")         # of the host's /proc: our pid there
hide_the_host()
mount_cgroups()
inside = Inside()
say(outside)
while inside.turn():
    pass
