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
        sandbox = w.sandbox()
        witnesses = [w.witness(sandbox.first), w.witness(sandbox.first + 1000)]
        before, neighbour = sandbox.picture(), w.neighbour.picture()
        with contextlib.suppress(AssertionError):       # what carries the answer may be killed as well
            sandbox.run([PROBES, "act", "kill-all"], uid)
        eq(sandbox.picture(), before, "the agent")
        eq(w.neighbour.picture(), neighbour, "the neighbour")
        eq([x.poll() for x in witnesses], [None, None], "processes of the host")
        sandbox.alive(uid)
        w.destroy(sandbox)


def daemons(w):
    for uid in 0, 1000:
        sandbox = w.sandbox()
        eq(sandbox.bomb("daemons", 12, uid), (12, "ok"))
        assert len(sandbox.pids()) >= 13, sandbox.pids()
        states = {read(f"/proc/{p}/stat").rsplit(")", 1)[1].split()[0] for p in sandbox.pids()}
        assert {"T", "S"} <= states, states             # some are stopped, some wait for good
        sandbox.alive(uid)
        w.destroy(sandbox)


def brothers(w):
    """A command's end is reported correctly, whatever else its supervisor was given."""
    for uid in 0, 1000:
        sandbox = w.sandbox()
        found = sandbox.probe(25, uid=uid)
        eq([x[2] for x in found], ["ok", "ok"], found)
        text, error = sandbox.run(["/bin/sh", "-c", "exit 7"], uid)
        eq((text, error), ("", "7"))
        w.destroy(sandbox)


def first_process_dies(w):
    sandbox = w.sandbox()
    sandbox.bomb("daemons", 6)
    pids = sandbox.pids()
    with Events(w.hutchd) as events:
        os.kill(sandbox.agent, 9)
        event = events.wait(sandbox.id, "Failed", "Terminated")
    for pid in pids:
        wait_gone(pid)
    eq(sandbox.of_its_uids(), [], "processes")
    eq(event["state"], "Failed")
    w.destroy(sandbox)


HELPER = """#!/bin/sh
echo "$1 $2" >> "$3"
cat > /dev/null
"""


@contextlib.contextmanager
def core_pattern(directory):
    """The host's core_pattern is a program that records which process it was run for. Another process puts the old
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
    supervisor = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.buffer.read(1); "
                               "open(sys.argv[1], 'w').write(sys.argv[2])", path, old], stdin=subprocess.PIPE,
                              pass_fds=[lock])
    os.close(lock)
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(f"|{helper} %P %u {log}")
        yield log
    finally:
        supervisor.stdin.close()
        supervisor.wait()


def core_dumps(w):
    with core_pattern(w.directory.name) as log:
        control = subprocess.Popen([w.probes(), "act", "crash"])
        control.wait()
        for uid in 0, 1000:
            sandbox = w.sandbox()
            for how in [], ["lower"]:
                text, error = sandbox.run([PROBES, "act", "crash", *how], uid)
                assert error, (text, error)
            w.destroy(sandbox)
            eq([x for x in map(str.split, read(log).splitlines()) if sandbox.first <= int(x[1]) < sandbox.first + 65536],
               [], "core dumps of sandboxes that the host's program was given")
        found = [int(x.split()[0]) for x in read(log).splitlines()]
    assert control.pid in found, f"the host's own dump was not written down: {found}"


SCENARIOS = [
    (19, "kill(-1) and kill(1..65535): agent, neighbour and the host's processes live on", kill_all),
    (22, "daemons by double fork and setsid end with the sandbox", daemons),
    (23, "deaf, stopped and waiting ones, too (in the same sandboxes)", daemons),
    (25, "commands end as they should beside siblings that the agent did not start", brothers),
    (24, "death of the first process ends the sandbox and is noticed", first_process_dies),
    (28, "the program of core_pattern is not run for a sandbox", core_dumps),
]
