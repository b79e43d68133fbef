#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One tenant uses all that it can get of the server: the others are served meanwhile.

usage: test_fair_shares.py HUTCHD_DIRECT HUTCH_EXECD

Each test lets a greedy tenant, or someone without a key, take more than its share of one thing, shows what
happens at the cap, and that a neighbour notices nothing. The limits of the whole server are low, so that a few
hundred connections are more than enough; the caps of tenants and keys are derived from them.
"""

import json
import os
import re
import select
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from deployment import AGENT_PORT, Deployment  # noqa: E402
from tap import eq, has, run, scaled, test  # noqa: E402

programs = sys.argv[1:3]
del sys.argv[1:3]
KEYS = {"greedy": ("big", "user"), "greedy 2": ("big", "user"), "greedy 3": ("big", "user"),
        "neighbour": ("small", "user"), "ops": ("ops", "admin")}


def deploy(**limits):
    """A tenant has a quarter of what all share, and a key half of that."""
    requests, connections = limits.get("requests", 4096), limits.get("connections", 4096)
    caps = {"tenant_requests": requests // 4, "key_requests": requests // 8,
            "tenant_connections": connections // 4, "key_connections": connections // 8,
            "tenant_streams": connections // 8, "key_streams": connections // 16,
            "address_connections": connections // 16}
    return Deployment(programs, keys=KEYS, settings={"limits": caps | limits})


def connect(d, source="127.0.0.1"):
    """A connection, from an address of this host."""
    return socket.create_connection(("127.0.0.1", d.port), timeout=scaled(20), source_address=(source, 0))


def send(c, d, key, method, path, more=""):
    c.sendall((f"{method} {path} HTTP/1.1\r\nHost: {d.domain}\r\nOPEN-SANDBOX-API-KEY: {d.keys[key]}\r\n"
               f"{more}\r\n").encode())


def read_head(c):
    """Status and the text of what has come when there is a whole head."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = c.recv(65536)
        if not piece:
            break
        data += piece
    return int(data.split(b" ", 2)[1]) if data else None, data.decode(errors="replace")


def read_reply(c):
    """The same with its body, whose length is announced."""
    status, text = read_head(c)
    length = re.search(r"(?im)^content-length: (\d+)", text)
    while length and len(text.split("\r\n\r\n", 1)[1]) < int(length[1]):
        text += c.recv(65536).decode()
    return status, text


def is_closed(c):
    """Whether the server has closed a connection on which it owes nothing."""
    readable, _, _ = select.select([c], [], [], 0)
    try:
        return bool(readable) and c.recv(1) == b""
    except ConnectionResetError:
        return True


def check_neighbour(d):
    """A request of another tenant, on a new connection, is answered now."""
    reply = d.call("GET", "/v1/sandboxes", key="neighbour", timeout=10)
    eq(reply.status, 200, f"the neighbour's status ({reply!r})")


def check_refusal(text, setting):
    has(text, "429 Too Many Requests")
    has(text, "Retry-After: 1")
    has(text, setting)


def hits(d, setting):
    """How often that cap was hit, by the metrics."""
    text = d.call("GET", "/metrics", key="ops").body.decode()
    found = re.search(rf'hutch_http_cap_hits_total{{cap="{setting}"}} (\d+)', text)
    return int(found[1]) if found else 0


def close_all(connections):
    for c in connections:
        c.close()


@test
def bodies_that_drip_take_one_share_of_the_requests():
    """40 unfinished bodies of one tenant where 40 requests are allowed: 429 for it, the neighbour is served"""
    with deploy(requests=40) as d:
        slow, statuses = [], []
        for i in range(40):
            c = connect(d)
            send(c, d, ["greedy", "greedy 2", "greedy 3"][i * 3 // 40], "POST", "/v1/sandboxes",
                 "Content-Length: 1000\r\nExpect: 100-continue\r\n")
            status, text = read_head(c)
            statuses.append(status)
            if status == 429:
                check_refusal(text + read_rest(c), "limits.")
            c.sendall(b"{")
            slow.append(c)
        check_neighbour(d)
        eq(statuses.count(100), 10, f"requests that the tenant may have at once ({statuses})")
        assert hits(d, "limits.key_requests") > 0 and hits(d, "limits.tenant_requests") > 0
        close_all(slow)


def read_rest(c):
    """What follows a head, if it has not come with it."""
    readable, _, _ = select.select([c], [], [], 0)
    return c.recv(65536).decode() if readable else ""


@test
def event_streams_that_no_one_reads():
    """64 event streams of one tenant where 64 connections are allowed: 429 for it, the neighbour gets a stream"""
    with deploy(connections=64) as d:
        streams, statuses = [], []
        for i in range(64):
            c = connect(d)
            send(c, d, ["greedy", "greedy 2", "greedy 3"][i * 3 // 64], "GET", "/v1/events")
            status, text = read_reply(c) if i > 60 else read_head(c)
            statuses.append(status)
            if i > 60:
                check_refusal(text, "limits.tenant_streams")
            streams.append(c)
        check_neighbour(d)
        eq(statuses.count(200), 8, f"streams that the tenant may have at once ({statuses})")
        eq(statuses.count(429), 56)
        with connect(d) as c:
            send(c, d, "neighbour", "GET", "/v1/events")
            eq(read_head(c)[0], 200, "the neighbour's stream")
        # The tenant's own plain requests go on: streams have a share of their own.
        eq(d.call("GET", "/v1/sandboxes", key="greedy").status, 200)
        assert hits(d, "limits.key_streams") > 0 and hits(d, "limits.tenant_streams") > 0
        # A place is free when a stream has ended.
        while True:
            streams.pop(0).close()
            with connect(d) as c:
                send(c, d, "greedy 3", "GET", "/v1/events")
                if read_head(c)[0] == 200:
                    break
        close_all(streams)


@test
def commands_that_last():
    """streams into a sandbox count, too: the neighbour's command runs"""
    with deploy(connections=64) as d:
        greedy, neighbour = d.create(key="greedy")["id"], d.create(key="neighbour")["id"]
        body = json.dumps({"command": "sleep 300"})
        path = f"/v1/sandboxes/{greedy}/proxy/{AGENT_PORT}/command"
        streams, statuses = [], []
        for _ in range(64):
            c = connect(d)
            send(c, d, "greedy", "POST", path,
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n")
            c.sendall(body.encode())
            statuses.append(read_head(c)[0])
            streams.append(c)
        eq(d.run(neighbour, "echo served", key="neighbour")[-1]["type"], "execution_complete")
        eq(statuses, [200] * 4 + [429] * 60, "statuses")
        close_all(streams)


@test
def connections_that_were_used_and_left():
    """300 idle connections of one tenant: it loses its own oldest ones, the neighbour keeps its one"""
    with deploy(connections=64) as d, connect(d) as kept:
        send(kept, d, "neighbour", "GET", "/v1/sandboxes")
        eq(read_reply(kept)[0], 200)
        left = []
        for _ in range(300):
            c = connect(d)
            send(c, d, "greedy", "GET", "/v1/sandboxes")
            eq(read_reply(c)[0], 200, "the greedy tenant's own request")
            left.append(c)
        check_neighbour(d)
        send(kept, d, "neighbour", "GET", "/v1/sandboxes")
        eq(read_reply(kept)[0], 200, "on the neighbour's idle connection")
        eq([is_closed(c) for c in left].count(False), 8, "connections of a key")
        assert hits(d, "limits.key_connections") >= 292
        close_all(left)


@test
def connections_without_a_key():
    """300 silent connections of one address: they push out each other, and no one of another address"""
    with deploy(connections=64) as d, connect(d) as kept, connect(d, "127.0.0.2") as fresh:
        send(kept, d, "neighbour", "GET", "/v1/sandboxes")
        eq(read_reply(kept)[0], 200)
        left = []
        for i in range(300):
            c = connect(d)
            if i % 2:
                c.sendall(b"GET /v1/sandboxes HTTP/1.1\r\nX-Slow: ")     # drips of a head gain nothing
            left.append(c)
        check_neighbour(d)
        assert not is_closed(fresh), "a new connection of another address was closed"
        for c in [kept, fresh]:
            send(c, d, "neighbour", "GET", "/v1/sandboxes")
            eq(read_reply(c)[0], 200, "on the neighbour's connection")
        # That of check_neighbour was the last, and took a place for a moment.
        alive = [is_closed(c) for c in left].count(False)
        assert 1 <= alive <= 4, f"{alive} connections of one address before authentication"
        assert hits(d, "limits.address_connections") >= 290
        close_all(left)


@test
def a_body_has_a_deadline():
    """a body that drips ends with 408 after limits.body_deadline, whatever its sender does"""
    with deploy(body_deadline="1s") as d, connect(d) as c:
        send(c, d, "greedy", "POST", "/v1/sandboxes", "Content-Length: 100000\r\n")
        sent = 0
        while not select.select([c], [], [], 0.05)[0]:
            c.sendall(b" ")
            sent += 1
            assert sent < 1000, "it is still waited for"
        status, text = read_reply(c)
        eq(status, 408)
        has(text, "limits.body_deadline")
        check_neighbour(d)


run()
