#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log and the access log of a real hutchd: floods of requests without a key, rotation by size and by others,
kill -9 and full disks.

usage: test_logs.py HUTCHD
"""

import glob
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import can_unshare  # noqa: E402
from hutchd import Hutchd  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
TENANT, ADMIN = "tenant-0123456789abcdef", "admin-0123456789abcdef"
KEYS = (f"keys: [{{key: {TENANT}, tenant: acme, role: user}}, "
        f"{{key: {ADMIN}, role: admin}}]\n")

BURST = 20                  # lines of unidentified callers per interval, and per log
FLOODED_MAX = 64 * 1024     # bytes of such lines after a flood that lasts a few intervals


def start(config="", **more):
    """With an audit log, and an access log on standard error unless the configuration has a file for it."""
    return Hutchd(program, "--access-log", "--log-format=json", config=KEYS + config, **more)


def send_many(path, requests):
    """Sends the requests over one connection, pipelined; returns the status of each reply."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        sender = threading.Thread(target=send_all, args=(s, b"".join(requests)))
        sender.start()
        statuses = []
        with s.makefile("rb") as replies:
            while len(statuses) < len(requests):
                statuses.append(read_reply(replies))
        sender.join()
        return statuses


def send_all(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass        # the reader of the replies notices


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


# --- rotation ---

ROTATE = "log: {{access_file: {0}/access.log, rotate: {{size: 64Ki, count: {1}}}}}\n"


def start_rotating(directory, count, **more):
    os.makedirs(f"{directory}/data", 0o700, exist_ok=True)
    return start(ROTATE.format(directory, count), directory=directory, **more)


def files_of(path):
    """The current file and those that were renamed."""
    return sorted(glob.glob(glob.escape(path) + "*"))


def ids_of(path):
    """Of all lines in all files: each is complete."""
    return [x["request"] for name in files_of(path) for x in lines_of(name)]


def load(h, name, count=1000):
    """The ids of requests that were replied to, over four connections."""
    batches = [[f"{name}-{c}-{i}" for i in range(count)] for c in range(4)]
    in_parallel(*(lambda b=b: eq(set(send_many(h.socket, [request("DELETE", "/v1/sandboxes/x", i,
                                                                  TENANT) for i in b])), {404})
                  for b in batches))
    return [i for b in batches for i in b]


@test
def rotation_under_load_loses_and_splits_nothing():
    with tempfile.TemporaryDirectory() as directory:
        with start_rotating(directory, count=100) as h:
            ids = load(h, "a")
            h.stop()
        for path in f"{directory}/data/audit.log", f"{directory}/access.log":
            eq(sorted(ids_of(path)), sorted(ids), path)
            sizes = [os.path.getsize(x) for x in files_of(path)]
            assert len(sizes) > 5 and max(sizes) <= 64 * 1024, sizes


@test
def only_so_many_files_are_kept():
    with tempfile.TemporaryDirectory() as directory:
        with start_rotating(directory, count=2) as h:
            ids = load(h, "a")
            h.stop()
        for path in f"{directory}/data/audit.log", f"{directory}/access.log":
            eq(files_of(path), [path, f"{path}.1", f"{path}.2"])
            kept = ids_of(path)
            assert set(kept) < set(ids) and len(set(kept)) == len(kept), path


@test
def kill_9_while_it_rotates():
    """at the next start every line is complete, and only those of the last replies may be missing"""
    with tempfile.TemporaryDirectory() as directory:
        with start_rotating(directory, count=100) as h:
            replied = set()
            for turn in range(5):       # killed at once, and later and later
                replied |= set(load(h, f"a{turn}", 200))
                eq(h.call("GET", "/health").status, 200)    # a line follows its reply: they are written now
                killer = threading.Timer(0.05 * turn, h.process.kill)
                killer.start()
                try:
                    in_parallel(*[lambda t=turn, c=c: send_until_killed(h, f"b{t}-{c}")
                                  for c in range(4)])
                finally:
                    killer.join()
                h.kill()
                h.start()
            h.stop()
        for path in f"{directory}/data/audit.log", f"{directory}/access.log":
            found = ids_of(path)
            eq(len(set(found)), len(found), "lines that are there twice")
            eq(replied - set(found), set(), f"lines missing in {path}")


def send_until_killed(h, name):
    try:
        send_many(h.socket, [request("DELETE", "/v1/sandboxes/x", f"{name}-{i}", TENANT)
                             for i in range(5000)])
    except (AssertionError, OSError, ValueError, IndexError):
        pass        # it was killed meanwhile


@test
def both_logs_are_opened_again_by_sighup():
    """as logrotate wants it; new limits apply, too"""
    with tempfile.TemporaryDirectory() as directory:
        with start_rotating(directory, count=100) as h:
            paths = f"{directory}/data/audit.log", f"{directory}/access.log"
            before = load(h, "before", 20)
            for path in paths:
                os.rename(path, f"{path}-old")
            meanwhile = load(h, "meanwhile", 20)
            h.configure(KEYS + f"log: {{access_file: {directory}/access.log, rotate: {{size: 0}}}}\n")
            has(h.reload(), "reloaded")
            after = load(h, "after", 200)
            h.stop()
        for path in paths:
            eq(sorted(x["request"] for x in lines_of(f"{path}-old")), sorted(before + meanwhile), path)
            eq(sorted(x["request"] for x in lines_of(path)), sorted(after), path)
            assert os.path.getsize(path) > 64 * 1024, "size 0: it is not rotated"


@test
def a_file_that_cannot_be_opened_is_reported():
    """at the start and by a reload, which then changes nothing"""
    with tempfile.TemporaryDirectory() as directory:
        with start_rotating(directory, count=1) as h:
            h.configure(KEYS + f"log: {{access_file: {directory}/no/access.log}}\n")
            has(h.reload(), f"open the log file {directory}/no/access.log")
            eq(h.call("DELETE", "/v1/sandboxes/x", key=TENANT).status, 404)
            h.stop()
            eq(len(lines_of(f"{directory}/access.log")), 1)
            try:
                h.start()
                raise AssertionError("it started")
            except RuntimeError as e:
                has(str(e), f"hutchd: open the log file {directory}/no/access.log")


# --- full disks ---

class SmallDisk:
    """A directory that is a disk of 1 MiB, in a mount namespace of its own."""

    def __enter__(self):
        self.path = tempfile.mkdtemp()
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo up; exec sleep 1000"],
                                       stdout=subprocess.PIPE, text=True)
        self.holder.stdout.readline()
        self.wrap = ["nsenter", "-t", str(self.holder.pid), "-m", "--wd=/"]
        self.seen = f"/proc/{self.holder.pid}/root{self.path}"
        subprocess.run([*self.wrap, "mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", self.path],
                       check=True)
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        os.rmdir(self.path)

    def fill(self):
        with open(f"{self.seen}/filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

    def free(self):
        os.unlink(f"{self.seen}/filler")


@test
def a_full_disk_stops_nothing():
    """lines that do not fit are counted, requests are replied to, and later lines are complete"""
    if not can_unshare():
        skip("this user may not make mount namespaces")
    with SmallDisk() as disk:
        config = (f"audit: {{file: {disk.path}/audit.log}}\n"
                  f"log: {{access_file: {disk.path}/access.log, rotate: {{size: 64Ki, count: 3}}}}\n")
        with start(config, wrap=disk.wrap) as h:
            before = load(h, "before", 50)
            disk.fill()
            load(h, "full", 500)
            has(h.log(), f"log file not written, lines are lost: {disk.path}/audit.log")
            lost = [int(line.split()[1]) for line in
                    h.call("GET", "/metrics", key=ADMIN).body.decode().splitlines()
                    if line.startswith(("hutch_audit_lost_total ", "hutch_log_lost_total "))]
            disk.free()
            after = load(h, "after", 50)
            h.stop()
        for path in f"{disk.seen}/audit.log", f"{disk.seen}/access.log":
            found = ids_of(path)        # all lines are complete
            eq(len(set(found)), len(found))
            eq(set(before + after) - set(found), set(), path)
        assert len(lost) == 2 and all(n > 1000 for n in lost), lost


run()
