#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of hutchd while it makes many sandboxes at once, with a real engine.

Afterwards there is no container without a record, and no record without a container; what was acknowledged is
there and works.

usage: test_engine_crash.py docker|podman HUTCHD HUTCH_EXECD BUILD_DIR
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from engine_hutchd import EngineHutchd, arguments, engine  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

kind, programs, build_dir = arguments()
MANY = 50
# An engine may go on with what a dead client has asked for: that is found by the regular look.
INSPECT = {"reconcile": "2s"}
SMALL = {"image": {"uri": "busybox:1"}, "resourceLimits": {"cpu": "1", "memory": "32Mi"}}


def kill_after(h, action, number, kill):
    """Starts MANY creates and kills when the engine has told of so many actions; states by id, as acknowledged."""
    events = e.events()
    replies = []
    clients = threading.Thread(target=lambda: replies.extend(h.create_many(MANY, **SMALL)))
    clients.start()
    seen = 0
    while seen < number:
        seen += next(events)["Action"] == action
    kill()
    clients.join()
    return {a.json["id"]: a.json["status"]["state"] for a in replies
            if getattr(a, "status", None) == 202}


def agree(h):
    """Until the engine has what the registry has: what was half made is removed as soon as it is noticed."""
    events = e.events()
    while True:
        listed, there = set(h.listed()), set(h.containers())
        if listed == there:
            return listed
        diag(f"{len(listed - there)} records without a container, {len(there - listed)} containers "
             "without a record")
        next(events)        # it ends with the test's timeout if nothing happens any more


def check(h, action, number, kill):
    acknowledged = kill_after(h, action, number, kill)
    h.drain_manager()
    h.start()
    found = agree(h)
    running = {sandbox for sandbox, state in acknowledged.items() if state == "Running"}
    diag(f"after {action} {number}: {len(acknowledged)} acknowledged, {len(running)} as running, "
         f"{len(found)} found")
    eq(running - found, set(), "lost")
    # What took too long was acknowledged before it ran: it is known, whatever became of it.
    eq([sandbox for sandbox in acknowledged if h.state(sandbox) == 404], [], "forgotten")
    eq({h.state(sandbox) for sandbox in found} - {"Running"}, set())
    for sandbox in sorted(found):
        eq(h.inside(sandbox, "GET", "/ping").status, 200, sandbox)
    for sandbox in found:
        h.delete(sandbox)
    eq((h.listed(), h.containers()), ({}, {}))
    directories = [n for where, names, _ in os.walk(f"{h.data}/drivers") for n in names
               if os.path.basename(where) == "run"]
    eq(directories, [], "directories of sandboxes")


@test
def hutchd_is_killed():
    """when the engine has started some of 50"""
    with EngineHutchd(programs, e, setting={"network": "none"}, config_more=INSPECT) as h:
        check(h, "start", MANY // 3, h.kill)


@test
def hutchd_and_its_worker_are_killed():
    """when the engine has made some of 50: no one is left who could undo anything"""
    with EngineHutchd(programs, e, setting={"network": "none"}, config_more=INSPECT) as h:
        check(h, "create", MANY // 3, h.kill_all)


def killed_during_snapshot(kill):
    """kill -9 when the engine has frozen the container: afterwards there is no image without a record, and the other
    way round, and nothing is being created for ever."""
    with EngineHutchd(programs, e, setting={"network": "none"}, config_more=INSPECT) as h:
        sandbox = h.create(**SMALL)
        h.output(sandbox, "head -c 30000000 /dev/urandom >/large")
        events = e.events()
        snapshot = h.keep(sandbox)
        # Podman does not tell; there it is killed as soon as the intent is written.
        while kind == "docker" and next(events)["Action"] != "pause":
            pass
        kill(h)
        h.drain_manager()
        h.start()
        state = h.kept(snapshot)
        diag(f"the snapshot is {state}")
        until = time.monotonic() + 60
        expected = [snapshot] if state == "Ready" else []
        while sorted(tag[-len(snapshot):] for tag in h.images()) != expected:
            assert time.monotonic() < until, f"{state}, and the engine has {h.images()}\n{h.log()[-3000:]}"
        while h.state(sandbox) != "Running":    # an engine that goes on alone thaws it when it is done
            assert time.monotonic() < until, f"{h.status(sandbox)}\n{h.log()[-3000:]}"
        again = h.keep(sandbox)
        eq(h.kept(again), "Ready")
        for one in snapshot, again:
            eq(h.call("DELETE", f"/v1/snapshots/{one}").status, 204)
        while h.images():       # what it has made alone came after the first look, and goes with a later one
            assert time.monotonic() < until, f"the engine has {h.images()}\n{h.log()[-3000:]}"


@test
def hutchd_is_killed_while_it_takes_a_snapshot():
    """its worker undoes what it has begun, or the next start does"""
    killed_during_snapshot(EngineHutchd.kill)


@test
def all_is_killed_while_a_snapshot_is_taken():
    """hutchd and its worker: the engine goes on alone"""
    killed_during_snapshot(EngineHutchd.kill_all)


with engine(kind, build_dir) as e:
    run()
