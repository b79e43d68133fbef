#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every route, asked by every caller: who may, who may not, and what the others can find out.

usage: test_access_matrix.py HUTCHD_DIRECT HUTCH_EXECD

The table of routes is compared with what hutchd says about itself (GET /openapi.json), so a new
route can't be forgotten here. An answer about another user's sandbox must be the answer about one
that does not exist, byte for byte.
"""

import base64
import os
import re
import sys
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deployment import AGENT_PORT, CREATE_REQUEST, Deployment  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

programs = sys.argv[1:3]
KEYS = {"own": ("acme", "user"), "read": ("acme", "read"), "foreign": ("rival", "user"),
        "admin": ("ops", "admin")}
LATER = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()

# --- who asks ---

ASKERS = ["nobody", "wrong key", "foreign", "read", "own", "admin", "foreign token", "own token"]

# What a rule gives to each of them, in that order. OK is the route's own status. A token opens a
# sandbox's port and nothing else; who may not see a sandbox hears 404, on whatever route.
OK = "ok"
RULES = {
    "public": [OK] * 8,
    "read": [401, 401, OK, OK, OK, OK, 401, 401],           # of no sandbox: every caller's own
    "write": [401, 401, OK, 403, OK, OK, 401, 401],
    "admin": [401, 401, 403, 403, 403, OK, 401, 401],
    "read one": [401, 401, 404, OK, OK, OK, 401, 401],
    "write one": [401, 401, 404, 403, OK, OK, 401, 401],
    "enter": [401, 401, 404, 403, OK, OK, 401, OK],
    "bridge": [401, 401, 403, 403, 403, 403, 401, 401],     # none is configured
}


class Route:
    """ok: its status when it may be used; use: who uses it up, so that each asker needs its own."""

    def __init__(self, method, path, rule, ok=200, body=None, used_up=False, stream=False,
                 query=""):
        self.method, self.path, self.rule, self.ok = method, path, rule, ok
        self.body, self.used_up, self.stream, self.query = body, used_up, stream, query

    def __str__(self):
        return f"{self.method} {self.path}"


def both(method, path, *rest, **named):
    """Bare and under /v1."""
    return [Route(method, at + path, *rest, **named) for at in ["", "/v1"]]


ONE = "/sandboxes/{sandboxId}"
ROUTES = [
    Route("GET", "/health", "public"),
    Route("GET", "/version", "public"),
    Route("GET", "/openapi.json", "public"),
    Route("GET", "/metrics", "admin"),

    *both("POST", "/sandboxes", "write", 202, body=CREATE_REQUEST),
    *both("GET", "/sandboxes", "read"),
    *both("GET", ONE, "read one"),
    *both("DELETE", ONE, "write one", 204, used_up=True),
    *both("PATCH", ONE + "/metadata", "write one", body={"seen": "yes"}),
    *both("POST", ONE + "/pause", "write one", 202, used_up=True),
    *both("POST", ONE + "/resume", "write one", 409),
    *both("POST", ONE + "/renew-expiration", "write one", body={"expiresAt": LATER}),
    *both("GET", ONE + "/endpoints/{port}", "read one"),
    *both("POST", ONE + "/snapshots", "write one", 501, body={}),
    *both("GET", "/snapshots", "read"),
    *both("GET", "/snapshots/{snapshotId}", "read", 404),
    *both("DELETE", "/snapshots/{snapshotId}", "write", 404),
    *both("GET", ONE + "/diagnostics/logs", "read one", query="?scope=container"),
    *both("GET", ONE + "/diagnostics/events", "read one", query="?scope=runtime"),
    *both("GET", ONE + "/diagnostics/inspect", "read one"),
    *both("GET", ONE + "/diagnostics/summary", "read one"),
    Route("POST", "/v1/metrics/events", "write", 204,
          body={"eventType": "sandbox.create", "createDurationMs": 1, "success": True}),
    *both("POST", "/pools", "write", 501, body={}),
    *both("GET", "/pools", "read", 501),
    *both("GET", "/pools/{poolName}", "read", 501),
    *both("PUT", "/pools/{poolName}", "write", 501, body={}),
    *both("DELETE", "/pools/{poolName}", "write", 501),

    # No image is configured for these.
    Route("POST", "/api/v1/sandbox", "write", 501, body={}),
    Route("POST", "/api/v1/sandbox/ensure", "write", 501, body={}),
    Route("DELETE", "/api/v1/sandbox/{sandboxId}", "write", 501),
    Route("POST", "/api/v1/sandbox/{sandboxId}/bash", "write", 501, body={}),
    Route("GET", "/api/v1/sandbox/{sandboxId}/file", "write", 501),
    Route("POST", "/api/v1/sandbox/{sandboxId}/files", "write", 501, body={}),
    Route("POST", "/api/v1/purista/command", "bridge", body={}),

    Route("GET", "/v1/events", "read", stream=True),
    Route("GET", "/v1/drivers", "admin"),
    Route("GET", "/v1/keys", "admin"),
    Route("POST", "/v1/keys", "admin", 201, body={"tenant": "acme", "role": "read"}),
    Route("DELETE", "/v1/keys/{keyId}", "admin", 204, used_up=True),
    Route("GET", "/v1/images", "read", 501),
    Route("POST", "/v1/images/pull", "admin", 501, body={}),
    Route("POST", "/v1/images/import", "admin", 501, body={}),
    Route("DELETE", "/v1/images/{imageId}", "admin", 501),
    Route("GET", "/v1/volumes", "read", 501),
    Route("POST", "/v1/volumes", "write", 501, body={}),
    Route("DELETE", "/v1/volumes/{volumeName}", "write", 501),
]

PROXIED = [Route(method, at + ONE + "/proxy/{port}" + rest, "enter", ok, body, stream=stream)
           for at in ["", "/v1"]
           for method, rest, ok, body, stream in [
               ("GET", "/ping", 200, None, False),
               ("POST", "/command", 200, {"command": "echo hi"}, False),
               ("GET", "/metrics/watch", 200, None, True),
               ("HEAD", "/ping", 200, None, False),
               ("DELETE", "/files?path=/nothing/here", 200, None, False),
               ("PUT", "/nothing", 404, None, False),
           ]]


class World:
    """One hutchd with keys, and what the askers ask about."""

    def __init__(self):
        self.hutchd = Deployment(programs, keys=KEYS)
        self.sandbox = self.hutchd.create(key="own")["id"]
        self.foreign_sandbox = self.hutchd.create(key="foreign")["id"]
        self.tokens = {"own token": self.token(self.sandbox, "own"),
                       "foreign token": self.token(self.foreign_sandbox, "foreign")}
        self.missing = re.sub("[0-9a-f]", "0", self.sandbox)

    def token(self, sandbox, key):
        return self.hutchd.endpoint(sandbox, key=key)["headers"]["X-EXECD-ACCESS-TOKEN"]

    def identity(self, caller):
        """How a caller presents itself: arguments of Hutchd.call."""
        if caller in self.tokens:
            return {"headers": {"X-EXECD-ACCESS-TOKEN": self.tokens[caller]}}
        return {"nobody": {}, "wrong key": {"key": "hutch_" + "0" * 32}}.get(caller, {"key": caller})

    def target(self, route, caller, want):
        """The path to ask for: what may be used up by this is made for it."""
        sandbox = self.sandbox
        if route.used_up and want == OK and "{sandboxId}" in route.path:
            sandbox = self.hutchd.create(key="own")["id"]
            if caller == "own token":
                self.tokens[caller] = self.token(sandbox, "own")
        names = {"sandboxId": sandbox, "port": AGENT_PORT, "snapshotId": "s", "poolName": "p",
                 "imageId": "i", "volumeName": "v", "keyId": "k-00000000"}
        if route.used_up and "{keyId}" in route.path and want == OK:
            names["keyId"] = self.hutchd.call("POST", "/v1/keys", {"tenant": "x", "role": "read"},
                                              key="admin").json["id"]
        return re.sub(r"\{(\w+)\}", lambda m: str(names[m[1]]), route.path) + route.query

    def send_request(self, route, path, caller):
        named = self.identity(caller)
        if route.stream:
            connection, response = self.hutchd.open(route.method, path, route.body, **named)
            with connection.sock or response:
                return response.status, b""
        reply = self.hutchd.call(route.method, path, route.body, **named)
        return reply.status, reply.body


world = World()


def check_routes(routes):
    wrong = []
    for route in routes:
        for caller, want in zip(ASKERS, RULES[route.rule]):
            path = world.target(route, caller, want)
            status, body = world.send_request(route, path, caller)
            if status != (route.ok if want == OK else want):
                wrong.append(f"{route} by {caller}: {status}, not "
                             f"{route.ok if want == OK else want} {body[:160]}")
    diag("\n".join(wrong))
    eq(len(wrong), 0, "wrong answers")


@test
def routes_are_known():
    """what hutchd says about itself and the table of this test agree"""
    paths = world.hutchd.call("GET", "/openapi.json").json["paths"]
    reported = {(m.upper(), re.sub(r"\{\w+\}", "{}", p)) for p, item in paths.items()
            for m in item if m in ("get", "put", "post", "delete", "patch", "head", "options")}
    known = {(r.method, re.sub(r"\{\w+\}", "{}", r.path)) for r in ROUTES}
    bare_too = {(m, p.removeprefix("/v1")) for m, p in reported}
    eq(sorted(reported - known), [], "routes that this test does not know")
    eq(sorted(known - reported - bare_too), [], "routes that hutchd does not tell of")


@test
def every_route_by_everybody():
    check_routes(ROUTES)


@test
def the_way_into_a_sandbox_by_everybody():
    check_routes(PROXIED)


# --- what one can find out ---

def bare(status, headers, body, sandbox):
    """An answer without what is new in each: its id, the time, the name that was asked for."""
    kept = sorted((k.lower(), v.replace(sandbox, "ID")) for k, v in headers.items()
                  if k.lower() not in ("x-request-id", "x-trace-id", "date"))
    return status, kept, body.replace(sandbox.encode(), b"ID").replace(
        headers["X-Request-ID"].encode(), b"REQUEST")


@test
def a_foreign_sandbox_is_a_missing_one():
    """a foreign sandbox is a missing one: same status, headers and bytes, on every route"""
    for route in ROUTES + PROXIED:
        if "{sandboxId}" not in route.path:
            continue
        for caller in ["nobody", "wrong key", "foreign", "foreign token"]:
            replies = []
            for sandbox in [world.sandbox, world.missing]:
                path = re.sub(r"\{(\w+)\}", lambda m: {"sandboxId": sandbox, "port": str(AGENT_PORT)}
                              [m[1]], route.path) + route.query      # pylint: disable=W0640
                a = world.hutchd.call(route.method, path, route.body, **world.identity(caller))
                replies.append(bare(a.status, a.headers, a.body, sandbox))
            eq(replies[0], replies[1], f"{route} by {caller}")


@test
def lists_show_ones_own():
    for caller, seen in [("own", {world.sandbox}), ("read", {world.sandbox}),
                        ("foreign", {world.foreign_sandbox}),
                        ("admin", {world.sandbox, world.foreign_sandbox})]:
        items = world.hutchd.call("GET", "/v1/sandboxes?pageSize=200", key=caller).json["items"]
        eq({i["id"] for i in items} & {world.sandbox, world.foreign_sandbox}, seen, caller)


@test
def event_streams_show_ones_own():
    connection, response = world.hutchd.open("GET", "/v1/events", key="foreign")
    with connection.sock or response:
        mine = world.hutchd.create(key="own")["id"]
        theirs = world.hutchd.create(key="foreign")["id"]
        said = b""
        while theirs.encode() not in said:
            piece = response.read1()
            assert piece, f"ended with {said!r}"
            said += piece
        assert mine.encode() not in said, "another user's sandbox"
    for sandbox in [mine, theirs]:
        world.hutchd.call("DELETE", f"/v1/sandboxes/{sandbox}", key="admin")


@test
def a_token_is_of_one_sandbox_and_one_port():
    end = world.hutchd.endpoint(world.sandbox, 9, key="own")
    token = end["headers"]["OpenSandbox-Secure-Access"]

    def send_request(sandbox, port, name, value):
        return world.hutchd.call("GET", f"/v1/sandboxes/{sandbox}/proxy/{port}/ping",
                                 headers={name: value}).status

    eq(send_request(world.sandbox, 9, "OpenSandbox-Secure-Access", token), 502, "no one listens there")
    eq(send_request(world.sandbox, AGENT_PORT, "X-EXECD-ACCESS-TOKEN", token), 401, "token of another port")
    eq(send_request(world.sandbox, 8081, "OpenSandbox-Secure-Access", token), 401, "token of another port")
    eq(send_request(world.foreign_sandbox, 9, "OpenSandbox-Secure-Access", token), 401, "of another sandbox")
    eq(send_request(world.sandbox, 9, "OpenSandbox-Secure-Access", token[:-1]), 401, "a cut token")
    flipped = token[:-1] + ("0" if token[-1] != "0" else "1")
    eq(send_request(world.sandbox, 9, "OpenSandbox-Secure-Access", flipped), 401, "a changed token")


@test
def a_key_opens_under_the_names_of_tokens():
    """a key opens under the names of tokens, which is how the Go SDK sends it"""
    for name, port in [("X-EXECD-ACCESS-TOKEN", AGENT_PORT), ("X-API-Key", AGENT_PORT)]:
        for caller, want in [("own", 200), ("admin", 200), ("foreign", 404), ("read", 403)]:
            a = world.hutchd.call("GET", f"/v1/sandboxes/{world.sandbox}/proxy/{port}/ping",
                                  headers={name: world.hutchd.keys[caller]})
            eq(a.status, want, f"{name} of {caller}")


# --- WebSocket, and what arrives inside ---

# Answers a WebSocket handshake, tells the head it got as the first message, and ends.
INSIDE = r"""
import base64, hashlib, re, socket
s = socket.create_server(("127.0.0.1", 0))
print("port", s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    head = b""
    while b"\r\n\r\n" not in head:
        head += c.recv(65536)
    key = re.search(rb"sec-websocket-key: (\S+)", head, re.I)
    if key:
        accept = base64.b64encode(hashlib.sha1(
            key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        c.sendall(b"\x81\x7e" + len(head).to_bytes(2, "big") + head + b"\x88\x02\x03\xe8")
    else:
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
    c.close()
"""
inside = None       # the port of it


def handshake(sandbox, port, caller):
    """Status of a WebSocket handshake, its headers, and what comes after it."""
    headers = {"Host": world.hutchd.domain, "Upgrade": "websocket", "Connection": "Upgrade",
               "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode()}
    named = world.identity(caller)
    headers.update(named.get("headers", {}))
    if "key" in named:
        headers["OPEN-SANDBOX-API-KEY"] = world.hutchd.keys.get(named["key"], named["key"])
    head = f"GET /v1/sandboxes/{sandbox}/proxy/{port}/chat HTTP/1.1\r\n" + "".join(
        f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
    with world.hutchd.connect() as s:
        s.sendall(head.encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
            if b"\x88\x02\x03\xe8" in data:
                break
            head, _, body = data.partition(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head, re.I)
            if found and len(body) >= int(found[1]):
                break
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(x.split(": ", 1) for x in lines[1:]), body


@test
def a_websocket_by_everybody():
    """a WebSocket by every caller: 101, or the same bytes about a foreign sandbox as about a missing one"""
    global inside
    command = f"exec python3 -c '{INSIDE}'"
    inside = int(world.hutchd.run_until(world.sandbox, command, r"port (\d+)", key="own")[0])
    end = world.hutchd.endpoint(world.sandbox, inside, key="own")
    tokens = dict(world.tokens)
    world.tokens["own token"] = end["headers"]["OpenSandbox-Secure-Access"]
    try:
        for caller, want in zip(ASKERS, RULES["enter"]):
            there = handshake(world.sandbox, inside, caller)
            eq(there[0], 101 if want == OK else want, caller)
            if want != OK:
                missing = handshake(world.missing, inside, caller)
                if caller != "read":
                    eq(bare(*there, world.sandbox), bare(*missing, world.missing), caller)
    finally:
        world.tokens = tokens


@test
def credentials_do_not_enter():
    """keys, tokens, cookies and authorization do not enter a sandbox"""
    secret = {"Cookie": "session=s3cret", "Authorization": "Basic s3cret",
              "OpenSandbox-Secure-Access": "s3cret", "OPENSANDBOX-EGRESS-AUTH": "s3cret",
              "X-API-Key": world.hutchd.keys["own"], "Proxy-Authorization": "Basic s3cret",
              "X-Forwarded-For": "6.6.6.6", "X-Passes": "through"}
    path = f"/v1/sandboxes/{world.sandbox}/proxy/{inside}/x"
    a = world.hutchd.call("GET", path, key="own", headers=secret)
    eq(a.status, 200)
    got = a.body.decode()
    assert "X-Passes: through" in got, got
    for word in ["s3cret", "6.6.6.6", *world.hutchd.keys.values()]:
        assert word not in got, got
    for name in ["cookie", "authorization", "open-sandbox-api-key", "x-api-key",
                 "opensandbox-secure-access", "x-execd-access-token", "opensandbox-egress-auth"]:
        assert not re.search(rf"^{name}:", got, re.I | re.M), got
    status, _, body = handshake(world.sandbox, inside, "own")
    eq(status, 101)
    assert world.hutchd.keys["own"].encode() not in body, body


@test
def pages_from_sandboxes_cannot_drive_the_api():
    a = world.hutchd.call("GET", f"/v1/sandboxes/{world.sandbox}/proxy/{inside}/x", key="own")
    eq(a.headers["Content-Security-Policy"], "sandbox allow-scripts allow-forms")
    for headers in [{"Origin": "null"}, {"Origin": "null", "OPEN-SANDBOX-API-KEY":
                                         world.hutchd.keys["own"]}]:
        eq(world.hutchd.call("GET", "/v1/sandboxes", headers=headers).status, 403)
        eq(world.hutchd.call("DELETE", f"/v1/sandboxes/{world.sandbox}", headers=headers).status, 403)


@test
def a_path_carries_a_token_for_those_without_headers():
    """a path carries a token for those without headers; the end of one that has an end can't be moved"""
    def send_request(url):
        return world.hutchd.call("GET", url.removeprefix(f"http://{world.hutchd.domain}")
                                 + "/ping").status

    eq(send_request(world.hutchd.endpoint(world.sandbox, key="own")["url"]), 200)
    foreign = world.hutchd.endpoint(world.foreign_sandbox, key="foreign")["url"]
    eq(send_request(foreign.replace(world.foreign_sandbox, world.sandbox)), 401, "a token of another sandbox")
    soon = int(datetime.now(timezone.utc).timestamp()) + 100
    url = world.hutchd.endpoint(world.sandbox, f"{AGENT_PORT}?expires={soon}", key="own")["url"]
    eq(send_request(url), 200, url)
    port, end, token = url.rsplit("/", 1)[1].split("~")
    for moved in [f"{port}~{end}0~{token}", f"{port}~{end[:-1]}~{token}", f"{port}~0{end}~{token}",
                  f"{port}~{token}"]:
        eq(send_request(url.rsplit("/", 1)[0] + "/" + moved), 401, moved)
    for past in ["0", "1", "-1", "x", ""]:
        eq(world.hutchd.call("GET", f"/v1/sandboxes/{world.sandbox}/endpoints/80?expires={past}",
                             key="own").status, 400, past)


@test
def a_reader_gets_no_token():
    """a caller that may only read gets no token: it would grant access"""
    end = world.hutchd.endpoint(world.sandbox, key="read")
    eq(end.get("headers", {}), {})
    assert "~" not in end["url"], end


# --- keys that admins make ---

@test
def a_key_opens_from_its_making_to_its_removal():
    made = world.hutchd.call("POST", "/v1/keys", {"tenant": "acme", "role": "user", "name": "ci"},
                             key="admin").json
    path = f"/v1/sandboxes/{world.sandbox}"
    eq(world.hutchd.call("GET", path, key=made["key"]).status, 200)
    listed = world.hutchd.call("GET", "/v1/keys", key="admin")
    assert made["id"] in listed.body.decode() and made["key"] not in listed.body.decode(), listed
    eq(world.hutchd.call("DELETE", f"/v1/keys/{made['id']}", key="admin").status, 204)
    eq(world.hutchd.call("GET", path, key=made["key"]).status, 401)
    eq(world.hutchd.call("DELETE", f"/v1/keys/{made['id']}", key="admin").status, 404)
    kept["a key that was made"] = made["key"]


kept = {}       # what must not be found anywhere


def files_of(directory):
    for at, _, names in os.walk(directory):
        for name in filter(lambda n: os.path.isfile(os.path.join(at, n)), names):
            with open(os.path.join(at, name), "rb") as f:
                yield os.path.join(at, name), f.read()


@test
def secrets_are_not_kept():
    """keys, tokens, environment values and image passwords: not in the data directory, not in the log"""
    world.hutchd.create(key="own", env={"PASSWORD": "value-of-a-variable"}, image={
        "uri": "python:3.11", "auth": {"username": "me", "password": "pass-of-an-image"}})
    world.hutchd.call("POST", "/v1/sandboxes", {"env": {"A": "value-of-a-refused-one"}}, key="own")
    kept.update({"variable": "value-of-a-variable", "password": "pass-of-an-image",
                 "refused": "value-of-a-refused-one", **world.tokens})
    found = [(name, what) for name, data in [*files_of(world.hutchd.data),
                                             ("log", world.hutchd.log().encode())]
             for what, text in kept.items() if text.encode() in data]
    eq(found, [])
    for name, key in world.hutchd.keys.items():     # those of its configuration are in that only
        assert not any(key.encode() in data for _, data in files_of(world.hutchd.data)), name
        assert key not in world.hutchd.log(), name


# --- the end ---

@test
def nothing_was_harmed():
    """the sandboxes that were asked about are as they were, and hutchd ends well"""
    for sandbox, key in [(world.sandbox, "own"), (world.foreign_sandbox, "foreign")]:
        eq(world.hutchd.call("GET", f"/v1/sandboxes/{sandbox}", key=key).json["status"]["state"],
           "Running")
    eq(world.hutchd.stop(), 0, "exit status")


# --- without keys ---

@test
def without_keys_everything_is_open_to_this_machine_only():
    with Deployment(programs) as h:
        sandbox = h.create()["id"]
        eq(h.call("GET", f"/v1/sandboxes/{sandbox}/proxy/{AGENT_PORT}/ping").status, 200)
        eq(h.call("GET", "/v1/sandboxes", key="whatever").status, 200, "a key no one asked for")
        for headers in [{"Host": "evil.example"}, {"Host": f"evil.example:{h.port}"},
                        {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://evil.example"},
                        {"Origin": "null"}]:
            for path in ["/v1/sandboxes", f"/v1/sandboxes/{sandbox}/proxy/{AGENT_PORT}/ping"]:
                eq(h.call("GET", path, headers=headers).status, 403, f"{path} {headers}")
        eq(h.call("GET", "/v1/sandboxes", headers={"Host": f"localhost:{h.port}"}).status, 200)


with world.hutchd:
    run()
