#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of hutchd at random points of everything it does, two hundred times.

Clients create, delete, pause, resume and renew sandboxes (real agents, driver "direct") as fast as they
can and write down what was acknowledged. hutchd is killed and started again; then

- what was acknowledged is so: sandboxes that were made are there, those that were deleted are not, states
  and expiries are the acknowledged ones;
- what was under way is done or not done, nothing in between;
- runtime and registry agree: each sandbox that is listed has its directory and its processes, and there are no
  others.

With the driver "native" either hutchd is killed, which its launcher starts again, or all that runs but the
sandboxes.

usage: test_crash.py HUTCHD_DIRECT HUTCH_EXECD [KILLS [SEED]]
       test_crash.py HUTCHD native [KILLS [SEED]]
"""

import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from acknowledged import Client, at_work, listed_by  # noqa: E402
from hutchd import Hutchd, processes_of, wait_gone  # noqa: E402
from native import NEEDS, Native, can_run  # noqa: E402
from tap import diag, eq, run, scaled, skip, test  # noqa: E402

native = sys.argv[2] == "native"
program, agent = map(os.path.abspath, sys.argv[1:3])
kills = int(sys.argv[3]) if len(sys.argv) > 3 else 200
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
CLIENTS = 4
EARLY = 0.15                # of the kills come before it is ready
ENOUGH = 8                  # acknowledged operations before a kill, on the average


def directories_of(data):
    """Of complete sandboxes: the driver removes what is half made when it opens."""
    root = f"{data}/drivers/direct"
    return {name for installation in os.listdir(root)
            for name in os.listdir(f"{root}/{installation}")
            if not name.startswith(("new-", "trash-"))}


def owners_of(data):
    """Sandboxes that have processes: pids by id."""
    found = {}
    for pid in processes_of(data):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        sandbox = where[len(f"{data}/drivers/direct/"):].split("/")[1].removeprefix("new-")
        found.setdefault(sandbox.removesuffix(" (deleted)"), set()).add(pid)
    return found


def check_native(h, ids):
    deadline = time.monotonic() + scaled(20)
    while h.sandboxes() != ids and time.monotonic() < deadline:
        time.sleep(0.01)        # what was undone is removed behind the back of who asks
    eq(h.sandboxes(), ids, "directories")
    runs = h.processes()
    for sandbox in ids:
        assert h.agent_of(sandbox) in runs, f"{sandbox} does not run"
    if not ids:
        eq(runs, {}, "processes")


def check_runtime(h, ids):
    """Runtime and registry agree. What was undone may take a moment to die."""
    if native:
        check_native(h, ids)
        return
    for sandbox, pids in owners_of(h.data).items():
        if sandbox not in ids:
            for pid in pids:
                wait_gone(pid, 5)
    eq(directories_of(h.data), ids, "directories")
    eq(set(owners_of(h.data)), ids, "sandboxes with processes")


def kill_soon(h, chance, within, one):
    time.sleep(chance.random() * within)    # a random point is what is wanted
    if one:
        h.drain_manager()
        h.kill_hutchd()
    else:
        h.kill()


def kill_early(h, chance):
    """Starts it and kills it on the way, at some point before or shortly after it is ready."""
    if native:
        h.start_and_kill(chance.random() * 0.04)
        return
    with open(h.log_path, "ab") as log:
        p = subprocess.Popen(h.command(), stdout=subprocess.DEVNULL, stderr=log, env=h.env)
    try:
        p.wait(timeout=chance.random() * 0.04)
    except subprocess.TimeoutExpired:
        p.kill()
    status = p.wait()
    assert status == -9, f"it ended by itself with {status}:\n{h.log()}"


def start():
    if not native:
        return Hutchd(program, config=f"agent: {agent}\ndriver: direct\n",
                      env={"HUTCH_TEST_DIRECT": "1"})
    if not can_run():
        skip(NEEDS)
    return Native(program)


@test
def nothing_is_lost_and_nothing_leaks():
    """200 kills at random points of create, delete, pause, resume, renew, and of the start"""
    chance = random.Random(seed)
    clients = [Client(i, seed, create_request={"image": {"uri": "host"}}) for i in range(CLIENTS)]
    hit = {}
    diag(f"seed {seed}")
    with start() as h:
        done, within = 0, 0.1
        while done < kills:
            before = sum(c.acknowledged for c in clients)
            one = native and chance.random() < 0.5
            try:
                at_work(clients, h.socket, lambda w=within, o=one: kill_soon(h, chance, w, o))
            except AssertionError:
                diag(h.log()[-3000:])
                raise
            done += 1
            # As fast as the host is now: with nothing acknowledged nothing could be lost.
            few = sum(c.acknowledged for c in clients) - before < ENOUGH
            within = min(within * 1.25, 1) if few else max(within / 1.25, 0.02)
            for c in clients:
                operation = c.doing[0] if c.doing else "nothing"
                hit[operation] = hit.get(operation, 0) + 1
            while done < kills and not one and chance.random() < EARLY:
                kill_early(h, chance)
                done += 1
                hit["start"] = hit.get("start", 0) + 1
            if one:
                h.wait_ready()
            else:
                h.drain_manager()
                h.start()
            check(h, clients, done)
        diag(f"{done} kills hit {hit}; {sum(c.acknowledged for c in clients)} acknowledged")
        for operation in "create", "delete", "pause", "resume", "renew", "start":
            assert hit.get(operation, 0) >= kills // (100 if native else 50), f"too few kills of {operation}: {hit}"
        for sandbox in listed_by(h):
            eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        check_runtime(h, set())


def check(h, clients, number):
    listed = listed_by(h)
    ids = set(listed)
    try:
        for c in clients:
            c.check(listed)
        eq(listed, {}, "sandboxes that no one knows")
        check_runtime(h, ids)
    except AssertionError as e:
        raise AssertionError(f"after kill {number}, seed {seed}: {e}\n{h.log()[-4000:]}") from e


run()
