# SPDX-License-Identifier: Apache-2.0
"""Processes: 19, 22 to 25, 28."""

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile

from world import PROBES, read
from hutchd import Events, wait_gone
from tap import eq


def kill_all(w):
    for uid in 0, 1000:
        box = w.box()
        witnesses = [w.witness(box.first), w.witness(box.first + 1000)]
        before, neighbour = box.picture(), w.neighbour.picture()
        with contextlib.suppress(AssertionError):       # what carries the answer may be killed as well
            box.run([PROBES, "look", "kill-all"], uid)
        eq(box.picture(), before, "the agent")
        eq(w.neighbour.picture(), neighbour, "the neighbour")
        eq([x.poll() for x in witnesses], [None, None], "processes of the machine")
        box.alive(uid)
        w.destroy(box)


def daemons(w):
    for uid in 0, 1000:
        box = w.box()
        eq(box.bomb("daemons", 12, uid), (12, "ok"))
        assert len(box.pids()) >= 13, box.pids()
        states = {read(f"/proc/{p}/stat").rsplit(")", 1)[1].split()[0] for p in box.pids()}
        assert {"T", "S"} <= states, states             # some are stopped, some wait for good
        box.alive(uid)
        w.destroy(box)


def brothers(w):
    """A command's end is told right, whatever else its keeper was given."""
    for uid in 0, 1000:
        box = w.box()
        found = box.probe(25, uid=uid)
        eq([x[2] for x in found], ["ok", "ok"], found)
        text, error = box.run(["/bin/sh", "-c", "exit 7"], uid)
        eq((text, error), ("", "7"))
        w.destroy(box)


def first_process_dies(w):
    box = w.box()
    box.bomb("daemons", 6)
    pids = box.pids()
    with Events(w.hutchd) as events:
        os.kill(box.agent, 9)
        event = events.wait(box.id, "Failed", "Terminated")
    for pid in pids:
        wait_gone(pid)
    eq(box.of_its_uids(), [], "processes")
    eq(event["state"], "Failed")
    w.destroy(box)


HELPER = """#!/bin/sh
echo "$1 $2" >> "$3"
cat > /dev/null
"""


@contextlib.contextmanager
def core_pattern(directory):
    """The machine's core_pattern is a program that writes down for whom it was run. Somebody else puts the old
    one back, even if this test is killed, and keeps the lock until then: another run would take ours for it."""
    path, helper, log = "/proc/sys/kernel/core_pattern", f"{directory}/helper", f"{directory}/cores"
    lock = os.open(f"{tempfile.gettempdir()}/hutch-security.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    old = read(path)
    with open(helper, "w", encoding="ascii") as f:
        f.write(HELPER)
    os.chmod(helper, 0o755)
    with open(log, "wb"):
        pass
    keeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.buffer.read(1); "
                               "open(sys.argv[1], 'w').write(sys.argv[2])", path, old], stdin=subprocess.PIPE,
                              pass_fds=[lock])
    os.close(lock)
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(f"|{helper} %P %u {log}")
        yield log
    finally:
        keeper.stdin.close()
        keeper.wait()


def core_dumps(w):
    with core_pattern(w.directory.name) as log:
        control = subprocess.Popen([w.probes(), "look", "crash"])
        control.wait()
        for uid in 0, 1000:
            box = w.box()
            for how in [], ["lower"]:
                text, error = box.run([PROBES, "look", "crash", *how], uid)
                assert error, (text, error)
            w.destroy(box)
            eq([x for x in map(str.split, read(log).splitlines()) if box.first <= int(x[1]) < box.first + 65536],
               [], "core dumps of sandboxes that the machine's program was given")
        found = [int(x.split()[0]) for x in read(log).splitlines()]
    assert control.pid in found, f"the machine's own dump was not written down: {found}"


SCENARIOS = [
    (19, "kill(-1) and kill(1..65535): agent, neighbour and the machine's processes live on", kill_all),
    (22, "daemons by double fork and setsid end with the sandbox", daemons),
    (23, "deaf, stopped and waiting ones, too (in the same sandboxes)", daemons),
    (25, "commands end as they should beside brothers that nobody asked for", brothers),
    (24, "death of the first process ends the sandbox and is noticed", first_process_dies),
    (28, "the program of core_pattern is not run for a sandbox", core_dumps),
]
