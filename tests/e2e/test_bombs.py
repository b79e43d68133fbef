#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that runs away in a native sandbox: its timeout, its interrupt and the deletion of its sandbox hold, a
neighbour's commands go on, and afterwards the sandbox works as before.

Each bomb is bounded by the limits of its sandbox and by its timeout. How long a command took is the agent's own
measurement (durationMs): requests of this test may wait for the processor.

usage: test_bombs.py HUTCHD
"""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Connection, Response, events  # noqa: E402
from hutchd import create_request_of  # noqa: E402
from native_apart import Apart, needs_native, until  # noqa: E402
from tap import eq, run, scaled, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
TIMEOUT = 2000                          # milliseconds
LATE = scaled(1000)                     # within which the stream ends

PYTHON = "exec python3 -c '%s'"
FORK_ON = PYTHON % "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
BOMBS = {
    "processes that fork on": FORK_ON,
    "a fork bomb of a shell": "f() { f | f & }; f; wait; sleep 1000",
    "processes of other sessions": PYTHON % ("import os\nwhile True:\n try:\n  if os.fork() == 0: os.setsid()\n"
                                              " except OSError: pass"),
    "stopped processes": PYTHON % ("import os, signal\nwhile True:\n try:\n"
                                    "  if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
                                    " except OSError: signal.pause()"),
    "threads": PYTHON % ("import threading, time\ndef spin():\n while True: pass\ntry:\n while True: "
                          "threading.Thread(target=spin, daemon=True).start()\nexcept RuntimeError: time.sleep(1000)"),
    "a command that kills its supervisor": "kill -9 $PPID; " + FORK_ON,
}


class Box:
    """A sandbox of one daemon."""

    def __init__(self, hutchd, **limits):
        self.hutchd = hutchd
        made = self.call("POST", "/v1/sandboxes", create_request_of(
            image={"uri": "host"}, resourceLimits={"cpu": "1", "memory": "256Mi", **limits}))
        eq(made.status, 202, made.body)
        self.id = made.json["id"]

    def call(self, method, path, body=None):
        connection = Connection(self.hutchd.socket, timeout=scaled(60))
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Host": "localhost", "Content-Type": "application/json"})
            return Response(connection.getresponse())
        finally:
            connection.close()

    def run(self, command, **more):
        """Its output and its last event."""
        reply = self.call("POST", f"/v1/sandboxes/{self.id}/proxy/44772/command", {"command": command, **more})
        eq(reply.status, 200, reply.body)
        found = events(reply.body)
        return "".join(e["text"] for e in found if e["type"] == "stdout"), found[-1]

    def check_well(self):
        """What the bomb has started dies, and gives back the memory that commands need."""
        def is_well():
            out, last = self.run("ls -d /proc/[0-9]* | wc -l")
            return last["type"] == "execution_complete" and int(out) < 10
        until("the processes of the bomb are gone", is_well)

    def start(self, command):
        """In the background: its first events."""
        reply = self.call("POST", f"/v1/sandboxes/{self.id}/proxy/44772/command",
                          {"command": command, "background": True})
        eq(reply.status, 200, reply.body)
        return events(reply.body)


class Neighbour(threading.Thread):
    """Runs commands until the test is over; each of them must succeed."""

    def __init__(self, box):
        super().__init__()
        self.box, self.stop, self.n, self.failure = box, threading.Event(), 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                out, last = self.box.run("echo here")
                assert out == "here" and last["type"] == "execution_complete", (out, last)
                self.n += 1
        except Exception as e:          # pylint: disable=broad-except
            self.failure = e

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()
        if self.failure:
            raise self.failure
        assert self.n > 0


def daemon():
    return Apart(program, zygotes=4)


def add_bomb(what, command):
    @needs_native
    def bomb():
        with daemon() as h:
            box = Box(h)
            with Neighbour(Box(h)):
                _, last = box.run(command, timeout=TIMEOUT)
                eq(last["type"], "error", last)
                assert last["durationMs"] <= TIMEOUT + LATE, last
            box.check_well()
    bomb.__doc__ = f"{what} end in time"
    test(bomb)


for bomb_name, bomb_command in BOMBS.items():
    add_bomb(bomb_name, bomb_command)


@test
@needs_native
def an_interrupt_ends_a_fork_bomb():
    with daemon() as h:
        box = Box(h)
        started = box.start("trap '' TERM; " + FORK_ON)
        ident = next(e["text"] for e in started if e["type"] == "init")
        eq(box.call("DELETE", f"/v1/sandboxes/{box.id}/proxy/44772/command?id={ident}").status, 200)
        box.check_well()


@test
@needs_native
def a_sandbox_with_a_fork_bomb_is_deleted():
    """with little CPU time to die in, too"""
    with daemon() as h:
        for cpu in "1", "100m":
            box = Box(h, cpu=cpu, pids="1024")
            box.start(FORK_ON)
            eq(box.call("DELETE", f"/v1/sandboxes/{box.id}").status, 204)


@test
@needs_native
def a_lack_of_memory_ends_one_command():
    """the largest, as a whole, and says so; the others of the sandbox go on"""
    with daemon() as h:
        box = Box(h, memory="128Mi")
        box.run("mkfifo up")
        box.start(PYTHON % "import time; open(\"up\", \"w\").write(\"up\"); open(\"up\").read()")
        eq(box.run("cat up")[0], "up")
        with Neighbour(Box(h)):
            for _ in range(3):
                out, last = box.run(PYTHON.removeprefix("exec ")
                                    % "x = []\nwhile True: x.append(bytearray(1 << 20))" + "; echo survived")
                eq((out, last["type"], last["exitCode"]), ("", "error", 137), last)
                assert last["error"]["evalue"] == "137" and "OOM_KILLED" in last["error"]["traceback"][0], last
        eq(box.run("cat /proc/[0-9]*/comm | grep -c ^python3")[0], "1")
        box.check_well()


run()
