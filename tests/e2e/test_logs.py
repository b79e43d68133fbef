#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log and the access log of a real hutchd: floods of requests that no one vouches for.

usage: test_logs.py HUTCHD
"""

import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from tap import eq, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
TENANT = "tenant-0123456789abcdef"
KEYS = f"keys: [{{key: {TENANT}, tenant: acme, role: user}}]\n"

BURST = 20                  # lines of unidentified callers per interval, and per log
FLOODED_MAX = 64 * 1024     # bytes of such lines after a flood that lasts a few intervals


def start(config="", **more):
    return Hutchd(program, "--access-log", "--log-format=json", config=KEYS + config, **more)


def send_many(path, requests):
    """Sends the requests over one connection, pipelined; returns the status of each reply."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        sender = threading.Thread(target=s.sendall, args=(b"".join(requests),))
        sender.start()
        statuses = []
        with s.makefile("rb") as replies:
            while len(statuses) < len(requests):
                statuses.append(read_reply(replies))
        sender.join()
        return statuses


def read_reply(replies):
    line = replies.readline()
    assert line, "the connection ended before all replies"
    length = 0
    while (header := replies.readline().strip().lower()):
        if header.startswith(b"content-length:"):
            length = int(header.split(b":")[1])
    replies.read(length)
    return int(line.split()[1])


def request(method, path, request_id="x", key=None):
    secret = f"X-API-Key: {key}\r\n" if key else ""
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {request_id}\r\n{secret}"
            "\r\n").encode()


def in_parallel(*functions):
    """Runs each in a thread; their results."""
    results = [None] * len(functions)

    def keep(i):
        results[i] = functions[i]()
    threads = [threading.Thread(target=keep, args=(i,)) for i in range(len(functions))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


# --- floods ---

@test
def a_flood_without_a_key_is_summarised():
    """the logs stay small, every request is counted, and the lines of a tenant are all there"""
    flood, own = 5000, 500
    refused = [request("DELETE", f"/v1/sandboxes/{'s' * 200}", "r" * 100) for _ in range(flood)]
    wrong = [request("DELETE", "/v1/sandboxes/x", key="wrong-0123456789abcdef")
             for _ in range(flood)]
    tenant = [request("DELETE", f"/v1/sandboxes/own-{i}", f"own-{i}", TENANT) for i in range(own)]
    with start() as h:
        results = in_parallel(*(lambda r=r: send_many(h.socket, r)
                                for r in (refused, refused, wrong, wrong, tenant)))
        eq([set(x) for x in results], [{401}] * 4 + [{404}])
        h.stop()
        audit = lines_of(f"{h.data}/audit.log")
        access = [x for x in lines_of(h.log_path) if x["msg"] in ("request", "requests omitted")]
        size = os.path.getsize(f"{h.data}/audit.log"), os.path.getsize(h.log_path)

    for name, log, total in ("audit", audit, size[0]), ("access", access, size[1]):
        mine = [x for x in log if x.get("tenant") == "acme"]
        eq(sorted(x["request"] for x in mine), sorted(f"own-{i}" for i in range(own)), name)
        others = total - sum(len(json.dumps(x)) for x in mine)
        assert others < FLOODED_MAX, f"{others} bytes of the {name} log are of a flood"

    single = [x for x in audit if x.get("status") == 401]
    summaries = [x for x in audit if "omitted" in x]
    assert summaries and len(single) <= BURST * len(summaries) + BURST, (len(single), len(summaries))
    eq(len(single) + sum(x["omitted"] for x in summaries), 4 * flood, "requests of the flood")
    for by in "reasons", "peers":
        eq(sum(sum(x[by].values()) for x in summaries), sum(x["omitted"] for x in summaries), by)
    eq({reason for x in summaries for reason in x["reasons"]}, {"MISSING_API_KEY", "INVALID_API_KEY"})
    eq({peer for x in summaries for peer in x["peers"]}, {"unix"})

    single = [x for x in access if x["msg"] == "request" and "tenant" not in x]
    summaries = [x for x in access if x["msg"] == "requests omitted"]
    eq(len(single) + sum(x["omitted"] for x in summaries), 4 * flood, "requests of the flood")
    assert all("MISSING_API_KEY:" in x["reasons"] or "INVALID_API_KEY:" in x["reasons"]
               for x in summaries), summaries


@test
def what_is_malformed_or_public_is_summarised_too():
    """an outsider has other requests than those that a key is missing for"""
    count = 1000
    with start() as h:
        for target, status in ("/health", 200), ("/nothing/" + "a" * 8000, 404):
            eq(set(send_many(h.socket, [request("GET", target) for _ in range(count)])), {status})
        h.stop()
        access = [x for x in lines_of(h.log_path) if x["msg"] in ("request", "requests omitted")]
        size = os.path.getsize(h.log_path)
    assert size < FLOODED_MAX, f"{size} bytes"
    counts = sum(x.get("omitted", 1) for x in access)
    eq(counts, 2 * count, "requests")
    assert all(len(x["path"]) <= 1025 for x in access if "path" in x), "long paths are cut"


run()
