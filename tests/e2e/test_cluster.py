#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several hutchd on one store: one owner has one sandbox, any node serves it, a node that dies is lost after its grace.

usage: test_cluster.py HUTCHD HUTCH_EXECD STORE
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Response, Connection  # noqa: E402
from hutchd import Events, Hutchd, wait_gone  # noqa: E402
from nats_store import Nats  # noqa: E402
from redis_server import Redis  # noqa: E402
from tap import eq, has, run, runnable_directory, test  # noqa: E402

program, agent = map(os.path.abspath, sys.argv[1:3])


STORES = {"redis": Redis, "nats": Nats}
Store = STORES[sys.argv[3]]


def with_helpers():
    """hutchd looks for the client of NATS beside itself, and this one is built elsewhere."""
    directory = runnable_directory()
    shutil.copy(program, directory.name)
    for helper in (f"{os.path.dirname(agent)}/hutch-store-nats", f"{os.path.dirname(program)}/direct-supervisor"):
        os.symlink(helper, f"{directory.name}/{os.path.basename(helper)}")
    return directory


_programs = with_helpers()
program = f"{_programs.name}/{os.path.basename(program)}"
ANN, BOB, EVE, ADMIN = (f"{n}-0123456789abcdef" for n in ("ann", "bob", "eve", "admin"))
KEY = "0123456789abcdef" * 4


class Node(Hutchd):
    """One of several; the store is the test's."""

    def __init__(self, store, name, lease="10s", grace="60s", directory=None):
        self._place = None if directory else tempfile.TemporaryDirectory(prefix="node-")
        directory = directory or self._place.name
        self.name, self.home = name, tempfile.TemporaryDirectory(prefix="home-")
        with open(os.open(f"{directory}/key", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(KEY + "\n")
        config = store.config().replace("driver: fake", "driver: direct") + f"""
agent: {agent}
node: {name}
cluster:
  advertise: unix:{directory}/socket
  key_file: {directory}/key
  lease: {lease}
  grace: {grace}
keys:
- {{key: {ANN}, tenant: org-1, principal: user-1}}
- {{key: {BOB}, tenant: org-1, principal: user-2}}
- {{key: {EVE}, tenant: org-2, principal: user-1}}
- {{key: {ADMIN}, role: admin}}
purista:
  image: scratch
  bridges:
  - {{uid: {os.getuid()}, tenants: ["*"]}}
"""
        super().__init__(program, config=config, directory=directory,
                         env={"HUTCH_TEST_DIRECT": "1", "HOME": self.home.name})
        self.key = ANN

    def __exit__(self, *failure):
        super().__exit__(*failure)
        self.home.cleanup()
        if self._place:
            self._place.cleanup()

    def apart(self, method, path, body=None, key=ANN):
        """On a connection of its own: for many at a time."""
        connection = Connection(self.socket)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Host": "localhost", "OPEN-SANDBOX-API-KEY": key})
            return Response(connection.getresponse())
        finally:
            connection.close()

    def ensure(self, project, key=ANN):
        return self.apart("POST", "/api/v1/sandbox/ensure", {"projectId": project}, key)


_all = []


def nodes():
    """Two that all test points share."""
    if not _all:
        with contextlib.ExitStack() as undo:
            store = undo.enter_context(Store())
            pair = [undo.enter_context(Node(store, name)) for name in ("one", "two")]
            _all.extend([*pair, store])
            undo.pop_all()
    return _all[:2]


def named(tag):
    return f"{tag}-{uuid.uuid4().hex[:8]}"


def ok(reply):
    eq(reply.status, 200, reply.body)
    return reply.json


_made = []


def sandbox():
    """A sandbox of the first node."""
    if not _made:
        _made.append(ok(nodes()[0].ensure("shared"))["sandboxId"])
    return _made[0]


# --- one owner, one sandbox ---

def ensure_many(projects, calls=200):
    one, two = nodes()
    with concurrent.futures.ThreadPoolExecutor(calls) as pool:
        return list(pool.map(lambda i: (projects[i % len(projects)],
                                        (one, two)[i // len(projects) % 2].ensure(projects[i % len(projects)])),
                             range(calls)))


@test
def two_hundred_calls_for_one_owner():
    """200 ensureSandbox at a time over two nodes: one sandbox, which all of them name"""
    replies = [ok(a) for _, a in ensure_many([named("one")])]
    eq(len({a["sandboxId"] for a in replies}), 1)
    eq(sum(a["created"] for a in replies), 1)


@test
def two_hundred_calls_for_twenty_owners():
    """the same for 20 owners: 20 sandboxes"""
    projects = [named("many") for _ in range(20)]
    by_owner = collections.defaultdict(set)
    created = 0
    for project, reply in ensure_many(projects):
        by_owner[project].add(ok(reply)["sandboxId"])
        created += reply.json["created"]
    eq([len(ids) for ids in by_owner.values()], [1] * 20)
    eq(created, 20)


@test
def creating_twice_is_refused_by_either():
    one, two = nodes()
    project = named("twice")
    made = ok(two.apart("POST", "/api/v1/sandbox", {"projectId": project}))
    for node in (one, two):
        again = node.apart("POST", "/api/v1/sandbox", {"projectId": project})
        eq(again.status, 409, again.body)
        eq(again.json["data"], {"sandboxId": made["sandboxId"]})


# --- any node serves it ---

@test
def commands_and_files_go_through_either_node():
    for node in nodes():
        at = f"/api/v1/sandbox/{sandbox()}"
        eq(ok(node.apart("POST", f"{at}/files", {"files": {"name": node.name}})), {"updated": 1})
        eq(ok(node.apart("POST", f"{at}/bash", {"command": "cat name"})),
           {"stdout": node.name, "stderr": "", "exitCode": 0})
        eq(node.apart("GET", f"{at}/file?path=name").json, node.name)


@test
def bridges_reach_it_through_either_node():
    def send(node, name, **payload):
        reply = node.call("POST", "/api/v1/purista/command",
                           {"command": name, "tenantId": "org-1", "principalId": "user-1", "payload": payload})
        eq(reply.status, 200, reply.body)
        return reply.json

    for node in nodes():
        node.key = None
        try:
            reply = send(node, "executeBash", sandboxId=sandbox(), command="echo here")
            eq(reply["payload"], {"stdout": "here\n", "stderr": "", "exitCode": 0})
            eq(send(node, "ensureSandbox", projectId="shared")["payload"]["sandboxId"], sandbox())
            big = "x" * 300000
            eq(send(node, "writeFiles", sandboxId=sandbox(), files={"big": big})["payload"], {"updated": 1})
            eq(send(node, "readFile", sandboxId=sandbox(), path="big")["payload"], big)
        finally:
            node.key = ANN


@test
def its_record_is_shown_and_changed_through_either_node():
    for node in nodes():
        record = ok(node.call("GET", f"/v1/sandboxes/{sandbox()}"))
        eq((record["id"], record["status"]["state"]), (sandbox(), "Running"))
        patched = node.call("PATCH", f"/v1/sandboxes/{sandbox()}/metadata", {"seen-by": node.name},
                            headers={"Content-Type": "application/json"})
        eq(ok(patched)["metadata"]["seen-by"], node.name)


@test
def streams_go_through():
    """the events of a command as it runs, and a file as it is"""
    for node in nodes():
        reply = node.inside(sandbox(), "POST", "/command", {"command": "echo a; echo b"})
        eq(reply.status, 200, reply.body)
        has(reply.body.decode(), "execution_complete")
        eq(node.inside(sandbox(), "GET", "/files/info?path=/nowhere").status, 404)


class Echo(threading.Thread):
    """A server that switches protocols and sends back what comes. "direct" has the host's network."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = []
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += peer.recv(4096)
                self.seen.append(head.decode())
                peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                while data := peer.recv(4096):
                    peer.sendall(data)


@test
def another_protocol_goes_through():
    """and nothing that nodes say to each other reaches the sandbox"""
    echo = Echo()
    for node in nodes():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(20)
            s.connect(node.socket)
            s.sendall(f"GET /v1/sandboxes/{sandbox()}/proxy/{echo.port}/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                      f"Upgrade: echo\r\nOPEN-SANDBOX-API-KEY: {ANN}\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += s.recv(4096)
            has(head.decode(), "101 ")
            s.sendall(b"hello")
            eq(s.recv(5, socket.MSG_WAITALL), b"hello")
    echo.listener.close()
    eq(len(echo.seen), 2)
    for head in echo.seen:
        assert "hutch-forwarded" not in head.lower() and ANN not in head, head


@test
def tokens_open_it_at_either_node():
    one, two = nodes()
    url = ok(two.call("GET", f"/v1/sandboxes/{sandbox()}/endpoints/44772"))
    (header, token), = url["headers"].items()
    for node in (one, two):
        at = f"/v1/sandboxes/{sandbox()}/proxy/44772/ping"
        node.key = None
        eq(node.call("GET", at, headers={header: token}).status, 200)
        eq(node.call("GET", at, headers={header: "0" * 32}).status, 401)
        eq(node.call("GET", at).status, 401)
        node.key = ANN


@test
def others_see_as_little_through_either_node():
    for node in nodes():
        for path in (f"/v1/sandboxes/{sandbox()}", f"/v1/sandboxes/{uuid.uuid4()}",
                     f"/v1/sandboxes/{sandbox()}/proxy/44772/ping"):
            eq(node.call("GET", path, key=EVE).status, 404, path)
        eq(node.apart("POST", f"/api/v1/sandbox/{sandbox()}/bash", {"command": "id"}, EVE).status, 404)
        eq(node.apart("POST", f"/api/v1/sandbox/{sandbox()}/bash", {"command": "id"}, BOB).status, 403)
        eq(node.call("GET", f"/v1/sandboxes/{sandbox()}", key="wrong-0123456789abcdef").status, 401)


@test
def what_no_node_has_signed_opens_nothing():
    for node in nodes():
        for forged in ("one e30= " + "0" * 64, "", "x", "one two three four"):
            got = node.call("GET", f"/v1/sandboxes/{sandbox()}", headers={"Hutch-Forwarded": forged})
            eq(got.status, 403, forged)


@test
def an_idempotency_key_means_the_same_at_either_node():
    one, two = nodes()
    key = named("key")
    ids = {n.call("POST", "/v1/sandboxes", n.create_request(), headers={"Idempotency-Key": key}).json["id"]
           for n in (one, two, one)}
    eq(len(ids), 1)


@test
def a_list_has_those_of_all_nodes():
    one, two = nodes()
    made = [n.create(metadata={"listed": "yes"})["id"] for n in (one, two, one)]
    for node in (one, two):
        page = ok(node.call("GET", "/v1/sandboxes?metadata=listed%3Dyes"))
        eq([b["id"] for b in page["items"]], made[::-1])
        eq(page["pagination"]["totalItems"], 3)
        page = ok(node.call("GET", "/v1/sandboxes?metadata=listed%3Dyes&page=2&pageSize=2"))
        eq([b["id"] for b in page["items"]], made[:1])
        eq(node.call("GET", "/v1/sandboxes?metadata=listed%3Dyes", key=EVE).json["items"], [])


# --- leases ---

@test
def a_node_id_is_for_one():
    one = nodes()[0]
    try:
        with Node(_all[2], one.name, lease="1s"):
            raise AssertionError("it started")
    except RuntimeError as e:
        has(str(e), "the node id 'one' is in use")
    eq(ok(one.ensure("shared"))["sandboxId"], sandbox())


@test
def a_node_that_dies_is_lost_after_its_grace():
    """503 until then; its owners get new ones; it removes what it has when it comes back"""
    lease = {"lease": "2s", "grace": "3s"}
    with Store() as store, Node(store, "a", **lease) as a, Node(store, "b", **lease) as b:
        lost = ok(a.ensure("p"))["sandboxId"]
        kept = ok(b.ensure("q"))["sandboxId"]
        eq(ok(b.ensure("p"))["sandboxId"], lost)
        supervisor = a.agent_of(lost)
        with Events(b) as events:
            a.kill()
            for reply in (b.ensure("p"), b.call("GET", f"/v1/sandboxes/{lost}")):
                eq(reply.status, 503, reply.body)
            assert b.processes() and a.processes(), "sandboxes live on"
            said = events.wait(lost, "Failed")
            eq(said["reason"], "NODE_LOST")
        record = ok(b.call("GET", f"/v1/sandboxes/{lost}"))
        eq((record["status"]["state"], record["status"]["reason"]), ("Failed", "NODE_LOST"))
        new = ok(b.ensure("p"))
        assert new["created"] and new["sandboxId"] != lost, new
        a.drain_manager()
        a.start()
        wait_gone(supervisor)
        has(a.log(), "destroying a sandbox that was given up")
        for node in (a, b):
            while (reply := node.ensure("p")).status == 503:
                pass        # the lease of the one is new to the other
            eq(ok(reply)["sandboxId"], new["sandboxId"])
            eq(ok(node.ensure("q"))["sandboxId"], kept)
        assert KEY not in a.log() + b.log(), "the key is in a log"


@test
def keys_are_for_all_nodes():
    """a key that is made opens the others soon, one that is removed closes them"""
    with Store() as store, Node(store, "a", lease="2s") as a, Node(store, "b", lease="2s") as b:
        made = a.call("POST", "/v1/keys", {"tenant": "org-9", "principal": "zoe", "role": "user"}, key=ADMIN)
        eq(made.status, 201, made.body)
        while (reply := b.call("GET", "/v1/sandboxes", key=made.json["key"])).status == 401:
            pass
        eq(reply.status, 200)
        eq(a.call("DELETE", f"/v1/keys/{made.json['id']}", key=ADMIN).status, 204)
        while (reply := b.call("GET", "/v1/sandboxes", key=made.json["key"])).status == 200:
            pass
        eq(reply.status, 401)
        eq(b.call("GET", "/v1/sandboxes").status, 200)


@test
def a_node_that_is_back_in_time_keeps_what_it_has():
    with Store() as store, Node(store, "a") as a, Node(store, "b") as b:
        made = ok(a.ensure("p"))["sandboxId"]
        a.restart(gently=False)
        while (reply := b.ensure("p")).status == 503:
            pass
        eq(ok(reply), {"sandboxId": made, "status": "ready", "created": False})


@test
def the_shared_ones_end_well():
    for part in _all[:2]:
        part.__exit__(None, None, None)
    if _all:
        _all[2].__exit__(None, None, None)


run()
