# SPDX-License-Identifier: Apache-2.0
"""A hutchd that makes real sandboxes: hutch-launcher, hutch-warden and hutchd, and what they leave behind.

    with Native(program) as h:
        sandbox = h.create()["id"]
        os.kill(h.warden, signal.SIGKILL)

Sandboxes are of the image "host" and have no network unless a test wants it otherwise. The parts of a test
that look behind the API's back are methods here and in hutchd.Hutchd alike.
"""

import contextlib
import glob
import json
import os
import signal
import struct
import subprocess
import tempfile

from execd import can_unshare
from hutchd import Hutchd, end, wait_gone

USER = 268435455        # the uid of hutchd on a host without the user hutch
NEEDS = "root is needed, and leave to make namespaces"
# Of those that wait to become a sandbox, from their first moment on.
ZYGOTE_NAMES = ("hutch-zygote", "hutch-zygoted", "hutch-warden")
# Fewer uids than by default: tests of several checkouts may run at once.
NATIVE = {"network": "none", "private": "off", "zygotes": 2, "networks": 4, "uids": 1000 * 65536}


def can_run():
    return can_unshare()


def open_way(path):
    """Lets others through to a directory of the test's, which hutchd has to reach as another user."""
    while path.startswith(tempfile.gettempdir()) and path.count("/") > 1:
        os.chmod(path, os.stat(path).st_mode | 0o011)
        path = os.path.dirname(path)


def parent_of(pid):
    """None if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])
    return None


def groups_of(data):
    """cgroups of the installation in this directory."""
    with open(f"{data}/installation", encoding="ascii") as f:
        name = f"hutch-{f.read().strip()}"
    return glob.glob(f"/sys/fs/cgroup/{name}") + glob.glob(f"/sys/fs/cgroup/*/{name}")


def remove_groups(data):
    """When nothing runs in them."""
    for group in groups_of(data):
        for where, _, _ in os.walk(group, topdown=False):
            os.rmdir(where)


class Native(Hutchd):
    image = "host"

    def __init__(self, program, *arguments, config="", native=None, user=USER, **more):
        """user None: the one that hutchd chooses."""
        self.native = {**NATIVE, **(native or {})}
        self.user = user
        if user is not None:
            arguments = (*arguments, "--user", str(user))
        super().__init__(program, *arguments, config=config, **more)

    def prepare(self):
        """hutchd is another user, and must be able to reach what is its own."""
        open_way(self.directory)
        os.chmod(f"{self.directory}/notify", 0o777)

    def configure(self, text):
        super().configure(f"driver: native\nnative: {json.dumps(self.native)}\n{text}")
        if self.user is None:
            os.chmod(f"{self.directory}/hutchd.yaml", 0o644)
        else:
            os.chown(f"{self.directory}/hutchd.yaml", self.user, self.user)

    # --- its processes ---

    def _started(self, *words):
        """Processes of ours, not the launcher, that have one of these words as argument."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    arguments = f.read().split(b"\0")
            except OSError:
                continue
            if b"--" not in arguments and any(x.startswith(self.data.encode()) for x in arguments) \
                    and any(word in arguments for word in words):
                yield int(pid)

    def _child(self, word):
        """Of the launcher, not a fork of its child that has the same arguments for a moment."""
        return next((pid for pid in self._started(word) if parent_of(pid) == self.process.pid), None)

    @property
    def warden(self):
        return self._child(b"--socket-fd")

    @property
    def hutchd(self):
        return self._child(b"--warden-fd")

    def wait_ready(self):
        """Until hutchd says that it is ready, once more."""
        while self.manager.recv(4096) != b"READY=1":
            pass
        self.disconnect()

    def kill_hutchd(self):
        """Which the launcher starts again: see wait_ready."""
        pid = self.hutchd
        end(pid)
        self.disconnect()
        return pid

    def kill(self):
        """All three at once, as when the host's plug is pulled, but for the sandboxes."""
        self.process.send_signal(signal.SIGSTOP)        # it would start it again
        for pid in self._started(b"--warden-fd"):
            end(pid)                                    # before it can tell that the warden is gone
        self.process.kill()
        while left := list(self._started(b"--socket-fd", b"--warden-fd")):
            for pid in left:
                end(pid)
                wait_gone(pid)
        super()._gone()
        self.drain_manager()

    def start_and_kill(self, after):
        """On the way, so many seconds after its start."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=self.env)
        try:
            status = self.process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        raise AssertionError(f"it ended by itself with {status}:\n{self.log()}")

    # --- its sandboxes ---

    def _members(self):
        """Groups that have no processes any more go when it is quiet, also while this looks at them."""
        for group in groups_of(self.data):
            for where, _, names in os.walk(group):
                if "cgroup.procs" in names:
                    with contextlib.suppress(OSError), \
                            open(f"{where}/cgroup.procs", encoding="ascii") as f:
                        yield from map(int, f.read().split())

    def processes(self):
        """Of all sandboxes, without those that wait to become one: names by pid."""
        found = {}
        for pid in set(self._members()):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                    found[pid] = f.read().strip()
            except OSError:
                pass        # it has ended
        return {pid: name for pid, name in found.items() if name not in ZYGOTE_NAMES}

    def directory_of(self, sandbox):
        return next(where for where, _, _ in os.walk(f"{self.data}/drivers/native/boxes")
                    if os.path.basename(where) == sandbox)

    def agent_of(self, sandbox):
        """Behind a magic number and the boot's id in the warden's note."""
        with open(f"{self.directory_of(sandbox)}/state", "rb") as f:
            return struct.unpack_from("<I", f.read(), 4 + 4 + 36)[0]

    def processes_of_sandbox(self, sandbox):
        return [self.agent_of(sandbox)]

    def sandboxes(self):
        """Ids of what is in the warden's directory."""
        return set(os.listdir(f"{self.data}/drivers/native/boxes"))

    def clean(self):
        for pid in self._members():
            end(pid)
        while any(True for _ in self._members()):
            pass
        remove_groups(self.data)

