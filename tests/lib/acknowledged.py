# SPDX-License-Identifier: Apache-2.0
"""Clients that use sandboxes as fast as they can, and know what was acknowledged to them. When hutchd, or
what is behind it, was killed and is back, they say whether all of that is so."""

import datetime
import http.client
import json
import random
import threading

from execd import Connection
from hutchd import create_request_of
from tap import eq


class Broken(Exception):
    """What the server relies on is away: no one knows what became of the operation."""


class Client:
    """What one client knows. Its sandboxes are its own, so it has one operation under way. `create_request` is what
    it asks for, beside its label; with `broken`, answers of this status end its work."""

    def __init__(self, number, seed, sandboxes_max=3, create_request=None, broken=None):
        self.number = number
        self.random = random.Random(seed * 1000 + number)
        self.sandboxes_max, self.create_request, self.broken = sandboxes_max, create_request or {}, broken
        self.count = 0
        self.sandboxes = {}         # id: (state, expiry), as acknowledged
        self.deleted = set()    # as acknowledged
        self.doing = None       # (operation, id or label, what it would lead to)
        self.acknowledged = 0
        self.stop = False
        self.keeps = None       # one of its sandboxes that it leaves alone

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Host": "localhost", "Content-Type": "application/json"})
        response = self.connection.getresponse()
        body = response.read()
        if response.status == self.broken:
            raise Broken(body)
        return response.status, body

    # --- operations: written down before and after ---

    def create(self):
        self.count += 1
        label = f"c{self.number}-{self.count}"
        self.doing = ("create", label, None)
        status, body = self.call("POST", "/v1/sandboxes", create_request_of(metadata={"label": label}, **self.create_request))
        eq(status, 202, body)
        made = json.loads(body)
        self.sandboxes[made["id"]] = (made["status"]["state"], made["expiresAt"])

    def delete(self, sandbox):
        self.doing = ("delete", sandbox, None)
        status, body = self.call("DELETE", f"/v1/sandboxes/{sandbox}")
        eq(status, 204, body)
        del self.sandboxes[sandbox]
        self.deleted.add(sandbox)

    def pause(self, sandbox):
        self.doing = ("pause", sandbox, "Paused")
        status, body = self.call("POST", f"/v1/sandboxes/{sandbox}/pause")
        eq(status, 202, body)
        self.sandboxes[sandbox] = ("Paused", self.sandboxes[sandbox][1])

    def resume(self, sandbox):
        self.doing = ("resume", sandbox, "Running")
        status, body = self.call("POST", f"/v1/sandboxes/{sandbox}/resume")
        eq(status, 202, body)
        self.sandboxes[sandbox] = ("Running", self.sandboxes[sandbox][1])

    def renew(self, sandbox):
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
            seconds=self.random.randint(1000, 100000))
        at = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.doing = ("renew", sandbox, at)
        status, body = self.call("POST", f"/v1/sandboxes/{sandbox}/renew-expiration",
                                 {"expiresAt": at})
        eq(status, 200, body)
        self.sandboxes[sandbox] = (self.sandboxes[sandbox][0], json.loads(body)["expiresAt"])

    def choose(self):
        if not self.sandboxes.keys() - {self.keeps} or (len(self.sandboxes) < self.sandboxes_max and self.random.random() < 0.5):
            return self.create, ()
        sandbox = self.random.choice(sorted(self.sandboxes.keys() - {self.keeps}))
        toggle = self.pause if self.sandboxes[sandbox][0] == "Running" else self.resume
        return self.random.choice([self.delete, toggle, toggle, self.renew]), (sandbox,)

    def work(self, socket_path):
        """Until hutchd is gone, or it is told to stop."""
        self.failure = None
        self.stop = False
        self.doing = None
        self.connection = Connection(socket_path)
        try:
            while not self.stop:
                operation, arguments = self.choose()
                operation(*arguments)
                self.doing = None
                self.acknowledged += 1
        except (OSError, http.client.HTTPException, Broken):
            pass
        except Exception as e:          # pylint: disable=broad-except
            self.failure = e
        finally:
            self.connection.close()

    # --- after the restart ---

    def check(self, listed):
        """Takes what is its own out of the list; fails if it is not as it should be."""
        operation, target, outcome = self.doing or (None, None, None)
        for sandbox, (state, expiry) in list(self.sandboxes.items()):
            found = listed.pop(sandbox, None)
            if found is None:
                assert (operation, target) == ("delete", sandbox), f"{sandbox} ({state}) is lost"
                del self.sandboxes[sandbox]
                self.deleted.add(sandbox)
                continue
            states, expiries = {state}, {expiry}
            if target == sandbox and operation in ("pause", "resume"):
                states.add(outcome)
            if target == sandbox and operation == "renew":
                expiries.add(outcome)
            assert found["status"]["state"] in states, f"{sandbox} is {found}, not {states}"
            assert same_time(found["expiresAt"], expiries), f"{sandbox} expires {found}, not {expiries}"
            self.sandboxes[sandbox] = (found["status"]["state"], found["expiresAt"])
        for sandbox in self.deleted:
            assert sandbox not in listed, f"{sandbox} was deleted and is back"
        if operation == "create":
            for sandbox, found in list(listed.items()):
                if found["metadata"].get("label") == target:
                    eq(found["status"]["state"], "Running", f"unacknowledged {sandbox}")
                    self.sandboxes[sandbox] = ("Running", found["expiresAt"])
                    del listed[sandbox]


def same_time(text, others):
    def parse(x):
        return datetime.datetime.fromisoformat(x.replace("Z", "+00:00"))
    return any(abs((parse(text) - parse(x)).total_seconds()) < 0.002 for x in others)


def listed_by(h):
    found, page = {}, 1
    while True:
        reply = h.call("GET", f"/v1/sandboxes?page={page}&pageSize=100")
        eq(reply.status, 200, reply.body)
        found.update((x["id"], x) for x in reply.json["items"])
        if not reply.json["pagination"]["hasNextPage"]:
            return found
        page += 1


def at_work(clients, socket_path, meanwhile):
    """All of them work while the function runs."""
    threads = [threading.Thread(target=c.work, args=[socket_path]) for c in clients]
    for t in threads:
        t.start()
    meanwhile()
    for c in clients:
        c.stop = True
    for t in threads:
        t.join()
    for c in clients:
        if c.failure:
            raise c.failure
