# SPDX-License-Identifier: Apache-2.0
"""A hutchd that makes real sandboxes, in a network namespace of its own: sandboxes may have networks, and their
links and rules are no one else's.

    with Apart(program, zygotes=4) as h:
        before = h.leftovers()
"""

import functools
import os
import signal
import time

from hutchd import wait_gone
from leaks import Leftovers
from native import NEEDS, Native, can_run
from tap import scaled, skip

TIMEOUT_SECONDS = 20
ENTER = ("unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def needs_native(function):
    """Around a test point."""
    @functools.wraps(function)
    def around():
        if not can_run():
            skip(NEEDS)
        function()
    return around


def until(what, condition, seconds=TIMEOUT_SECONDS):
    """What comes from other processes without an event for us."""
    deadline = time.monotonic() + scaled(seconds)
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return value


class Apart(Native):
    def __init__(self, program, *arguments, zygotes=2, uids=64, network="none", native=None, wrap=ENTER, **options):
        native = {"zygotes": zygotes, "networks": 8, "network": network, "private": "on",
                  "uids": uids * 65536, **(native or {})}
        super().__init__(program, *arguments, native=native, wrap=wrap, **options)

    def kill_part(self, name):
        """kill -9 of "warden" or "hutchd", which the launcher starts again."""
        pid = until(f"{name} runs", lambda: getattr(self, name))
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)
        self.disconnect()

    def wait_back(self):
        """Until it answers, and its warden is there."""
        def replies():
            try:
                return self.warden and self.call("GET", "/health").status == 200
            except OSError:
                return False
        until("hutchd answers", replies)

    def run(self, sandbox, command):
        """What the agent says of a command."""
        reply = self.inside(sandbox, "POST", "/command", {"command": command})
        assert reply.status == 200, reply.body
        return reply.body

    def list(self):
        return self.call("GET", "/v1/sandboxes?pageSize=200").json["items"]

    def remove_all(self):
        while found := self.list():
            for sandbox in found:
                self.call("DELETE", f"/v1/sandboxes/{sandbox['id']}")

    def leftovers(self):
        with open(f"{self.data}/installation", encoding="ascii") as f:
            group = f"hutch-{f.read().strip()}"
        return Leftovers({"launcher": self.process.pid, "warden": self.warden, "hutchd": self.hutchd},
                         f"{self.data}/drivers/native", group)

    def __exit__(self, failure, *rest):
        if self.process.poll() is None and not failure:
            self.remove_all()
        super().__exit__(failure, *rest)
