#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of hutchd, of its warden and of agents, at random points while sandboxes are used.

Clients create, delete, pause, resume and renew native sandboxes and write down what was acknowledged. One of
the processes behind them is killed, and the launcher starts it again; then

- what was acknowledged is so, and what was under way is done or not done;
- sandboxes that were Running are Running, with the same first process; one whose agent was killed is Failed and
  says why;
- nothing is left of the others.

usage: test_native_crash.py HUTCHD [KILLS [SEED]]
"""

import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from acknowledged import Client, at_work, listed_by  # noqa: E402
from native_apart import Apart, needs_native, until  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
kills = int(sys.argv[2]) if len(sys.argv) > 2 else 24
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
CLIENTS, ZYGOTES = 3, 4
FINAL = {"Running", "Paused", "Failed"}
CREATE_REQUEST = {"image": {"uri": "host"}}


def settled(h):
    """All that are listed, when none is on its way."""
    def inspect():
        found = listed_by(h)
        return (True, found) if all(x["status"]["state"] in FINAL for x in found.values()) else None
    return until("sandboxes come to rest", inspect)[1]


def check(h, clients, what):
    try:
        listed = settled(h)
        ids = set(listed)
        for c in clients:
            c.check(listed)
        eq(listed, {}, "sandboxes that no one knows")
        until("directories are those of sandboxes", lambda: h.sandboxes() == ids)
        runs = h.processes()
        assert {h.agent_of(sandbox) for sandbox in ids} <= set(runs), f"{ids} run as {runs}"
    except AssertionError as e:
        raise AssertionError(f"after {what}, seed {seed}: {e}\n{h.log()[-4000:]}") from e


def kill_soon(h, chance, victim):
    time.sleep(chance.random() * 0.3)       # a random point is what is wanted
    h.kill_part(victim)
    h.wait_back()


@test
@needs_native
def sandboxes_live_on_whoever_dies():
    chance = random.Random(seed)
    clients = [Client(i, seed, create_request=CREATE_REQUEST, broken=503) for i in range(CLIENTS)]
    diag(f"seed {seed}")
    with Apart(program, zygotes=ZYGOTES, uids=64) as h:
        stays = h.create(metadata={"label": "stays"})["id"]
        first = h.agent_of(stays)
        clients[0].sandboxes[stays] = ("Running", h.call("GET", f"/v1/sandboxes/{stays}").json["expiresAt"])
        clients[0].keeps = stays
        for number in range(kills):
            victim = chance.choice(["hutchd", "warden"])
            at_work(clients, h.socket, lambda v=victim: kill_soon(h, chance, v))
            check(h, clients, f"kill {number} ({victim})")
            eq(h.agent_of(stays), first, "the first process of the sandbox that was left alone")
            eq(b"still here" in h.run(stays, "echo still here"), True)
        diag(f"{kills} kills, {sum(c.acknowledged for c in clients)} acknowledged")
        h.remove_all()
        until("all are gone", lambda: not h.processes() and not h.sandboxes())


@test
@needs_native
def who_kills_an_agent_fails_its_sandbox():
    with Apart(program) as h:
        one, other = (h.create()["id"] for _ in range(2))
        os.kill(h.agent_of(one), signal.SIGKILL)
        status = until("the sandbox is Failed", lambda: failed(h, one))
        assert status["reason"] and status["message"], status
        eq(h.state(other), "Running")


def failed(h, sandbox):
    status = h.call("GET", f"/v1/sandboxes/{sandbox}").json["status"]
    return status if status["state"] == "Failed" else None


run()
