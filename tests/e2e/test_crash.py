#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of hutchd at random points of everything it does, two hundred times.

Clients create, delete, pause, resume and renew sandboxes (real agents, driver "direct") as fast as they
can and write down what was acknowledged. hutchd is killed and started again; then

- what was acknowledged is so: sandboxes that were made are there, those that were deleted are not, states
  and expiries are the acknowledged ones;
- what was under way is done or not done, nothing in between;
- runtime and registry agree: each sandbox that is listed has its folder and its processes, and there are no
  others.

usage: test_crash.py HUTCHD_DIRECT HUTCH_EXECD [KILLS [SEED]]
"""

import datetime
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Connection  # noqa: E402
from hutchd import Hutchd, processes_of, wait_gone, wish_of  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

program, agent = map(os.path.abspath, sys.argv[1:3])
kills = int(sys.argv[3]) if len(sys.argv) > 3 else 200
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
CLIENTS, BOXES = 4, 3       # so many clients, and sandboxes of each
EARLY = 0.15                # of the kills come before it is ready
ENOUGH = 8                  # acknowledged operations before a kill, on the average


class Client:
    """What one client knows. Its sandboxes are its own, so it has one operation under way."""

    def __init__(self, number):
        self.number = number
        self.random = random.Random(seed * 1000 + number)
        self.count = 0
        self.boxes = {}         # id: (state, expiry), as acknowledged
        self.deleted = set()    # as acknowledged
        self.doing = None       # (operation, id or label, what it would lead to)
        self.acknowledged = 0

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Host": "localhost", "Content-Type": "application/json"})
        response = self.connection.getresponse()
        return response.status, response.read()

    # --- operations: written down before and after ---

    def create(self):
        self.count += 1
        label = f"c{self.number}-{self.count}"
        self.doing = ("create", label, None)
        status, body = self.call("POST", "/v1/sandboxes", wish_of(metadata={"label": label}))
        eq(status, 202, body)
        made = json.loads(body)
        self.boxes[made["id"]] = (made["status"]["state"], made["expiresAt"])

    def delete(self, box):
        self.doing = ("delete", box, None)
        status, body = self.call("DELETE", f"/v1/sandboxes/{box}")
        eq(status, 204, body)
        del self.boxes[box]
        self.deleted.add(box)

    def pause(self, box):
        self.doing = ("pause", box, "Paused")
        status, body = self.call("POST", f"/v1/sandboxes/{box}/pause")
        eq(status, 202, body)
        self.boxes[box] = ("Paused", self.boxes[box][1])

    def resume(self, box):
        self.doing = ("resume", box, "Running")
        status, body = self.call("POST", f"/v1/sandboxes/{box}/resume")
        eq(status, 202, body)
        self.boxes[box] = ("Running", self.boxes[box][1])

    def renew(self, box):
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
            seconds=self.random.randint(1000, 100000))
        at = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.doing = ("renew", box, at)
        status, body = self.call("POST", f"/v1/sandboxes/{box}/renew-expiration",
                                 {"expiresAt": at})
        eq(status, 200, body)
        self.boxes[box] = (self.boxes[box][0], json.loads(body)["expiresAt"])

    def choose(self):
        if not self.boxes or (len(self.boxes) < BOXES and self.random.random() < 0.5):
            return self.create, ()
        box = self.random.choice(sorted(self.boxes))
        toggle = self.pause if self.boxes[box][0] == "Running" else self.resume
        return self.random.choice([self.delete, toggle, toggle, self.renew]), (box,)

    def work(self, socket_path):
        """Until hutchd is gone."""
        self.failure = None
        self.doing = None
        self.connection = Connection(socket_path)
        try:
            while True:
                operation, arguments = self.choose()
                operation(*arguments)
                self.doing = None
                self.acknowledged += 1
        except (OSError, http.client.HTTPException):
            pass
        except Exception as e:          # pylint: disable=broad-except
            self.failure = e
        finally:
            self.connection.close()

    # --- after the restart ---

    def check(self, listed):
        """Takes what is its own out of the list; fails if it is not as it should be."""
        operation, target, outcome = self.doing or (None, None, None)
        for box, (state, expiry) in list(self.boxes.items()):
            found = listed.pop(box, None)
            if found is None:
                assert (operation, target) == ("delete", box), f"{box} ({state}) is lost"
                del self.boxes[box]
                self.deleted.add(box)
                continue
            states, expiries = {state}, {expiry}
            if target == box and operation in ("pause", "resume"):
                states.add(outcome)
            if target == box and operation == "renew":
                expiries.add(outcome)
            assert found["status"]["state"] in states, f"{box} is {found}, not {states}"
            assert same_time(found["expiresAt"], expiries), f"{box} expires {found}, not {expiries}"
            self.boxes[box] = (found["status"]["state"], found["expiresAt"])
        for box in self.deleted:
            assert box not in listed, f"{box} was deleted and is back"
        if operation == "create":
            for box, found in list(listed.items()):
                if found["metadata"].get("label") == target:
                    eq(found["status"]["state"], "Running", f"unacknowledged {box}")
                    self.boxes[box] = ("Running", found["expiresAt"])
                    del listed[box]


def same_time(text, others):
    def parse(x):
        return datetime.datetime.fromisoformat(x.replace("Z", "+00:00"))
    return any(abs((parse(text) - parse(x)).total_seconds()) < 0.002 for x in others)


def listed_by(h):
    found, page = {}, 1
    while True:
        answer = h.call("GET", f"/v1/sandboxes?page={page}&pageSize=100")
        eq(answer.status, 200, answer.body)
        found.update((x["id"], x) for x in answer.json["items"])
        if not answer.json["pagination"]["hasNextPage"]:
            return found
        page += 1


def folders_of(data):
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
        box = where[len(f"{data}/drivers/direct/"):].split("/")[1].removeprefix("new-")
        found.setdefault(box.removesuffix(" (deleted)"), set()).add(pid)
    return found


def check_runtime(h, ids):
    """Runtime and registry agree. What was undone may take a moment to die."""
    for box, pids in owners_of(h.data).items():
        if box not in ids:
            for pid in pids:
                wait_gone(pid, 5)
    eq(folders_of(h.data), ids, "folders")
    eq(set(owners_of(h.data)), ids, "sandboxes with processes")


def kill_early(h, chance):
    """Starts it and kills it on the way, at some point before or shortly after it is ready."""
    with open(h.log_path, "ab") as log:
        p = subprocess.Popen(h.command(), stdout=subprocess.DEVNULL, stderr=log, env=h.env)
    try:
        p.wait(timeout=chance.random() * 0.04)
    except subprocess.TimeoutExpired:
        p.kill()
    status = p.wait()
    assert status == -9, f"it ended by itself with {status}:\n{h.log()}"


@test
def nothing_is_lost_and_nothing_leaks():
    """200 kills at random points of create, delete, pause, resume, renew, and of the start"""
    chance = random.Random(seed)
    clients = [Client(i) for i in range(CLIENTS)]
    hit = {}
    diag(f"seed {seed}")
    with Hutchd(program, config=f"agent: {agent}\ndriver: direct\n",
                env={"HUTCH_TEST_DIRECT": "1"}) as h:
        done, within = 0, 0.1
        while done < kills:
            before = sum(c.acknowledged for c in clients)
            threads = [threading.Thread(target=c.work, args=[h.socket]) for c in clients]
            for t in threads:
                t.start()
            time.sleep(chance.random() * within)    # a random point is what is wanted
            h.kill()
            for t in threads:
                t.join()
            done += 1
            # As fast as the machine is now: with nothing acknowledged nothing could be lost.
            few = sum(c.acknowledged for c in clients) - before < ENOUGH
            within = min(within * 1.25, 1) if few else max(within / 1.25, 0.02)
            for c in clients:
                if c.failure:
                    diag(h.log()[-3000:])
                    raise c.failure
                operation = c.doing[0] if c.doing else "nothing"
                hit[operation] = hit.get(operation, 0) + 1
            while done < kills and chance.random() < EARLY:
                kill_early(h, chance)
                done += 1
                hit["start"] = hit.get("start", 0) + 1
            h.drain_manager()
            h.start()
            check(h, clients, done)
        diag(f"{done} kills hit {hit}; {sum(c.acknowledged for c in clients)} acknowledged")
        for operation in "create", "delete", "pause", "resume", "renew", "start":
            assert hit.get(operation, 0) >= kills // 50, f"too few kills of {operation}: {hit}"
        for box in listed_by(h):
            eq(h.call("DELETE", f"/v1/sandboxes/{box}").status, 204)
        check_runtime(h, set())


def check(h, clients, number):
    listed = listed_by(h)
    ids = set(listed)
    try:
        for c in clients:
            c.check(listed)
        eq(listed, {}, "sandboxes that nobody knows")
        check_runtime(h, ids)
    except AssertionError as e:
        raise AssertionError(f"after kill {number}, seed {seed}: {e}\n{h.log()[-4000:]}") from e


run()
