#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must not be accepted: a documented error, and nothing happens.

usage: test_bad_input.py HUTCHD_DIRECT HUTCH_EXECD

After each group of bad requests there is no sandbox, the store has the keys it had, the driver's
directories are what they were, and memory has not grown.
"""

import json
import os
import select
import sys
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deployment import AGENT_PORT, CREATE_REQUEST, Deployment  # noqa: E402
from server import read_all  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

programs = sys.argv[1:3]
MIB = 1 << 20
hutchd = Deployment(programs, settings={"log": {"level": "warn"}})


def state():
    """Everything that a bad request must leave as it is."""
    directories = sorted(os.path.relpath(os.path.join(d, n), hutchd.data)
                     for d, ds, ns in os.walk(hutchd.data) for n in ds + ns
                     if not n.endswith(("-wal", "-shm", "-journal")))
    items = hutchd.call("GET", "/v1/sandboxes?pageSize=200").json["items"]
    return [i["id"] for i in items], hutchd.stored(), directories


def shaped(reply):
    """Whether an error looks like one: both shapes are documented."""
    if not 400 <= reply.status < 500 or reply.headers["Content-Type"] != "application/json":
        return False
    document = reply.json
    if reply.status == 422:
        return all(isinstance(d["loc"], list) and d["msg"] and d["type"]
                   for d in document["detail"]) and bool(document["detail"])
    return bool(document["code"]) and bool(document["message"])


def refused(requests):
    """Sends (method, path, body, statuses); all must be refused so, and nothing may happen."""
    before = state()
    wrong = []
    for method, path, body, want in requests:
        a = hutchd.call(method, path, body, headers={"Content-Type": "application/json"})
        if a.status not in want or not (shaped(a) or method == "HEAD") \
                or not a.headers["X-Request-ID"]:
            wrong.append(f"{method} {path[:100]} {(body or b'')[:100]!r}: {a}, not {want}")
    diag("\n".join(wrong))
    eq(len(wrong), 0, f"wrong answers of {len(requests)}")
    eq(state(), before, "what there is")


def create_request(**changed):
    """A create request with some members changed; those that are ... are left out."""
    return json.dumps({k: v for k, v in {**CREATE_REQUEST, **changed}.items() if v is not ...}).encode()


def create(bodies, want=(422,)):
    refused([("POST", "/v1/sandboxes", b, want) for b in bodies])


# --- bodies ---

@test
def no_json():
    create([b"", b" ", b"{", b"}", b"[", b'"', b"nul", b"{]", b"{'image':1}", b'{"image":}', b"{,}",
            b'{"image":{}}x', b'{"a":1}{"b":2}', b"\xef\xbb\xbf{}", b"\x00", b"{\x00}", b'{"a":NaN}',
            b'{"a":Infinity}', b'{"a":01}', b'{"a":1.}', b'{"a":+1}', b'{"a":.5}', b'{"a":0x1}',
            b'{"a":1e999}', b'{"a":"\n"}', b'{"a":"\\x"}', b'{"a":"\\u12"}', b'{"a":"\\ud800"}',
            b'{"a":"\xff"}', b'{"a":"\xc0\x80"}', b'{"a":"\xed\xa0\x80"}', b"/**/{}", b"{} //"])


@test
def no_object():
    create([b"[]", b"1", b'"x"', b"true", b"null", b"-0", b"[{}]"])


@test
def depth_bombs():
    for n in [100, 1000, 100_000, 500_000]:
        create([b"[" * n, b'{"a":' * n, b"[" * n + b"]" * n,
                b'{"env":' + b'{"a":' * n + b"1" + b"}" * n + b"}"], want=(422, 413))


@test
def duplicate_keys():
    good = create_request()[:-1]
    create([good + b',"timeout":60}', good + b',"image":{"uri":"a"}}',
            good + b',"metadata":{"a":"1","a":"2"}}', good + b',"env":{"A":"1","A":"2"}}',
            good + b',"\\u0074imeout":60}'])


@test
def two_spellings_of_one_member():
    create([create_request()[:-1] + b',"resource_limits":{"cpu":"1"}}'], want=(422, 400))


WRONG = {
    "image": [1, "python:3.11", [], {}, {"uri": 1}, {"uri": None}, {"uri": ["a"]},
              {"uri": "a", "auth": "x"}, {"uri": "a", "auth": {"username": 1}}],
    "timeout": ["60", 60.5, 59, 0, -1, 1e30, 2**63, -2**63 - 1, True, [], {}],
    "resourceLimits": [..., 1, "x", [], {"cpu": 1}, {"cpu": None}, {"cpu": {}}, None],
    "env": [1, "A=1", [], {"A": 1}, {"A": ["x"]}, {"A": {}}],
    "metadata": [1, "a=1", [], {"a": 1}, {"a": ["x"]}, {"a": {}}],
    "entrypoint": [..., 1, "sleep", {}, [], [1], [["a"]], [None]],
    "networkPolicy": [1, "deny", [], {"defaultAction": "perhaps"}, {"defaultAction": 1},
                      {"egress": {}}, {"egress": ["x"]}, {"egress": [{"action": "allow"}]},
                      {"egress": [{"action": "x", "target": "a"}]}],
    "secureAccess": ["yes", 1, [], {}],
    "volumes": [1, {}, ["x"], [1]],
    "extensions": [1, [], {"a": 1}],
    "snapshotId": [1, [], "s"],
}


@test
def wrong_types_and_values():
    create([create_request(**{k: v}) for k, vs in WRONG.items() for v in vs], want=(422, 400))


@test
def rules_of_values():
    long = "x" * 64
    create([create_request(metadata={k: v}) for k, v in [
        ("", "a"), ("a b", "a"), ("-a", "b"), (long, "a"), ("a", long), ("a", "b c"), ("a", "-"),
        ("ä", "a"), ("a", "ü"), ("a/b/c", "a"), ("/a", "a"), ("A_/x", "a"), ("opensandbox.io/x", "a"),
        ("a", "\n")]], want=(400,))
    create([create_request(metadata={"a\u0000": "b"}), create_request(metadata={"a": "\u0000"})])
    create([create_request(resourceLimits={k: v}) for k, v in [
        ("cpu", ""), ("cpu", "x"), ("cpu", "-1"), ("cpu", "1e9"), ("cpu", "0"), ("memory", "1Q"),
        ("memory", "-5"), ("memory", "99999999999Ti"), ("memory", " 1Gi"), ("memory", "1 Gi")]],
        want=(400, 422))
    create([create_request(env={k: v}) for k, v in [
        ("", "a"), ("A=B", "x"), ("A\u0000", "x"), ("A", "x\u0000y")]], want=(400, 422))
    create([create_request(entrypoint=e) for e in [[""], ["a\u0000b"], ["x" * 3_000_000]]],
           want=(400, 422, 413))
    create([create_request(image={"uri": u}) for u in ["", " ", "a\u0000b", "a\nb", "x" * 10_000]],
           want=(400, 422))
    create([create_request(volumes=[v]) for v in [
        {"name": "v"}, {"name": "v", "mountPath": "/x"}, {"name": "V!", "mountPath": "/x",
                                                          "host": {"path": "/"}},
        {"name": "v", "mountPath": "x", "host": {"path": "/tmp"}},
        {"name": "v", "mountPath": "/x", "host": {"path": "/tmp/../etc"}},
        {"name": "v", "mountPath": "/x", "host": {"path": "/etc"}},
        {"name": "v", "mountPath": "/x", "subPath": "../x", "pvc": {"claimName": "c"}},
        {"name": "v", "mountPath": "/x", "host": {"path": "/tmp"}, "pvc": {"claimName": "c"}}]],
        want=(400, 422))
    create([create_request(metadata={f"k{i}": "v" for i in range(100_000)}),
            create_request(env={f"K{i}": "v" * 20 for i in range(100_000)}),
            create_request(entrypoint=["x"] * 100_000)], want=(400, 422, 413))


@test
def idempotency_keys():
    before = state()
    for key in ["x" * 5000, "\x01", "ü"]:
        with hutchd.connect() as s:
            body = create_request()
            s.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      b"Idempotency-Key: " + key.encode("utf-8") + b"\r\nContent-Length: "
                      + str(len(body)).encode() + b"\r\n\r\n" + body)
            head = read_all(s).partition(b"\r\n")[0]
        assert head.split()[1] in (b"400", b"422"), head
    eq(state(), before)


# --- large bodies ---

def pour(head, piece, times):
    """Sends a head, and a body until there is an answer: its status, and how much was sent."""
    with hutchd.connect() as s:
        s.sendall(head)
        sent = 0
        while sent < times * len(piece) and not select.select([s], [], [], 0)[0]:
            s.sendall(piece)
            sent += len(piece)
        line = b""
        while b"\r\n" not in line and (more := s.recv(100)):
            line += more
        return int(line.split()[1]), sent


LARGE = [("POST", "/v1/sandboxes"), ("PATCH", "/v1/sandboxes/x/metadata"),
         ("POST", "/v1/sandboxes/x/renew-expiration"), ("POST", "/v1/metrics/events"),
         ("POST", "/v1/keys"), ("POST", "/v1/sandboxes/x/pause"), ("DELETE", "/v1/sandboxes/x"),
         ("GET", "/v1/sandboxes"), ("POST", "/v1/pools"), ("POST", "/v1/images/pull")]


@test
def a_hundred_megabytes():
    """100 MB, announced or in chunks: refused when it is known to be too large, and not kept"""
    before, rss = state(), hutchd.rss_kib()
    piece = b" " * 65536
    for method, path in LARGE:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        for way, line, each in [("announced", f"Content-Length: {100 * MIB}", piece),
                                ("chunked", "Transfer-Encoding: chunked",
                                 b"10000\r\n" + piece + b"\r\n")]:
            status, sent = pour(f"{head}{line}\r\n\r\n".encode(), each, 1600)
            eq((status, sent < 20 * MIB), (413, True), f"{method} {path}, {way}: {sent} bytes")
    eq(state(), before)
    if hutchd.memory_is_ours():
        grown = hutchd.rss_kib() - rss
        assert grown < 16 << 10, f"grown by {grown} KiB"


# --- names ---

NAMES = ["nobody", "..", ".", "%2e%2e", "%2e", "..%2f..%2fetc", "a%2fb", "%2f", "a%00b", "%00",
         "%ff", "%c0%80", "%", "%zz", "a%", "*", "%20", "x" * 200, "x" * 4000, "%0d%0aX:%20y", "~",
         "{id}", "%7bid%7d", "00000000-0000-0000-0000-000000000000", "sandbox/x", "'or'1'='1", "-",
         "%25", "%252e%252e", "\\..\\", ";", "a;b", "é".encode().hex()]
ONE = [("GET", ""), ("DELETE", ""), ("PATCH", "/metadata"), ("POST", "/pause"), ("POST", "/resume"),
       ("POST", "/renew-expiration"), ("GET", "/endpoints/80"), ("GET", "/diagnostics/logs"),
       ("GET", f"/proxy/{AGENT_PORT}/ping"), ("POST", f"/proxy/{AGENT_PORT}/command")]


@test
def unknown_and_evil_ids():
    later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()
    bodies = {"/metadata": b"{}", "/renew-expiration": json.dumps({"expiresAt": later}).encode()}
    refused([(method, f"{at}/sandboxes/{name}{rest}", bodies.get(rest), (400, 404, 405, 414, 431))
             for at in ["", "/v1"] for name in NAMES for method, rest in ONE])


@test
def evil_paths():
    refused([("GET", p, None, (400, 404, 405)) for p in [
        "//v1/sandboxes", "/v1//sandboxes", "/v1/../v1/sandboxes", "/v1/%73andboxes/%2e%2e",
        "/v2/sandboxes", "/V1/sandboxes", "/v1/sandboxes/", "/v1/sandboxes//", "/v1/sandboxes%00",
        "/v1/sandboxes/%2e%2e/keys", "/%2e%2e/%2e%2e/etc/passwd", "/v1", "/v1/", "/", "/v1/keys/..",
        "/v1/keys/%2f", "/v1/images/..%2f"]])


# --- what belongs to a sandbox that exists ---

@test
def ports_expirations_and_patches():
    """ports, expirations and patches of a sandbox that is there, which stays as it is"""
    sandbox = hutchd.create(metadata={"a": "1"})
    at = f"/v1/sandboxes/{sandbox['id']}"
    before = hutchd.call("GET", at).json
    refused([("GET", f"{at}/endpoints/{p}", None, (400, 404, 422)) for p in [
        "0", "65536", "-1", "+80", "080", "80x", "1e3", "0x50", "99999999999999999999", "%20", "",
        "80.0", "%00"]])
    refused([("GET", f"{at}/proxy/{p}/x", None, (400, 404)) for p in [
        "0", "65536", "-1", "+80", "080", "80x", "99999999999999999999", "%00"]])
    refused([("POST", f"{at}/renew-expiration", b, (400, 422)) for b in [
        b"", b"{}", b"[]", b'{"expiresAt":null}', b'{"expiresAt":1}', b'{"expiresAt":""}',
        b'{"expiresAt":"soon"}', b'{"expiresAt":"2020-01-01T00:00:00Z"}',
        b'{"expiresAt":"2026-13-01T00:00:00Z"}', b'{"expiresAt":"2099-02-30T00:00:00Z"}',
        b'{"expiresAt":"99999-01-01T00:00:00Z"}', b'{"expiresAt":"2099-01-01T25:00:00Z"}',
        b'{"expiresAt":"2099-01-01T00:00:00+99:00"}', b'{"expiresAt":"-1"}',
        b'{"expiresAt":"2099-01-01T00:00:00Z","expiresAt":"2098-01-01T00:00:00Z"}']])
    refused([("PATCH", f"{at}/metadata", b, (400, 413, 422)) for b in [
        b"", b"[]", b"1", b'{"a":1}', b'{"a":[]}', b'{"a":{}}', b'{"a b":"x"}', b'{"a":"x y"}',
        b'{"opensandbox.io/x":"1"}', b'{"opensandbox.io/x":null}', b'{"a":"1","a":"2"}', b'{"a":',
        json.dumps({f"k{i}": "v" for i in range(100_000)}).encode()]])
    after = hutchd.call("GET", at).json
    eq(after, before, "the sandbox")
    eq(hutchd.call("DELETE", at).status, 204)


@test
def queries_of_lists():
    refused([("GET", f"/v1/sandboxes?{q}", None, (422, 400)) for q in [
        "page=0", "page=-1", "page=x", "page=", "page=1.5", "page=99999999999999999999",
        "pageSize=0", "pageSize=201", "pageSize=-5", "pageSize=x", "metadata=x",
        "metadata=a%3Db%26c", "metadata=%00%3Da"]])


@test
def methods_that_are_not_there():
    refused([(m, p, None, (405, 404, 400)) for m, p in [
        ("PUT", "/v1/sandboxes"), ("PATCH", "/v1/sandboxes"), ("POST", "/v1/sandboxes/x"),
        ("GET", "/v1/sandboxes/x/pause"), ("DELETE", "/v1/sandboxes"), ("POST", "/health"),
        ("BREW", "/v1/sandboxes"), ("TRACE", "/v1/sandboxes")]])


# --- the end ---

@test
def it_is_well_and_works():
    """after all of that a sandbox is made, used and deleted"""
    sandbox = hutchd.create()["id"]
    out = [e.get("text") for e in hutchd.run(sandbox, "echo still here") if e["type"] == "stdout"]
    eq(out, ["still here"])
    eq(hutchd.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
    eq(hutchd.call("GET", "/health").status, 200)
    eq(hutchd.stop(), 0, "exit status")


with hutchd:
    run()
