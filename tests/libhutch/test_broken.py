#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libhutch and servers that are broken: an error that says what happened, in time, and nothing leaks.

usage: test_broken.py PROBE HEADER_DIR

Each case is an answer, byte for byte, and the codes and words by which the library must tell it. It is
met by calls that collect an answer and by calls that stream one, blocking and on both kinds of loop. The
probe is one process for all of them, so what one case leaves behind is there for the next; it ends with
the number of descriptors it still has, and under AddressSanitizer with what has leaked.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from broken import (LAST_CHUNK, BrokenServer, Drip, Endless, Hold, KeepOpen, Reset, reply,  # noqa: E402
                    chunk, streaming)
from tap import eq, run, test  # noqa: E402

probe_path = sys.argv[1]
with open(f"{sys.argv[2]}/call.h", encoding="utf-8") as header:
    CODES = {int(n): name for name, n in re.findall(r"^\s+HUTCH_(\w+) = (-?\d+),", header.read(), re.M)}
MODES = ["block", "loop", "own"]
KEY = "operator-secret"         # the probe's
SOON = 400                      # milliseconds, for what never ends
MIB = 1 << 20

SANDBOX = {"id": "box-1", "status": {"state": "Running"}, "createdAt": "2026-01-02T03:04:05Z"}
INIT = b'{"type":"init","text":"c1","timestamp":1}\n\n'
LINE = b'{"type":"stdout","text":"line","timestamp":2}\n\n'
DONE = b'{"type":"execution_complete","execution_time":7,"timestamp":3}\n\n'
ERROR = b'{"type":"error","error":{"ename":"CommandExecError","evalue":"3","traceback":["exit status 3"]}}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

# Calls by what they do with the body of an answer.
COLLECT = ["create", "get", "list", "renew", "endpoint", "status", "session", "search", "info"]
STREAM = ["run", "stream", "background"]
BYTES = ["download", "download_to", "logs"]
EVERY = COLLECT + STREAM + BYTES + ["delete", "ping", "upload"]
# One of each kind, where the way to the body is the same.
KINDS = ["get", "stream", "download", "delete", "upload"]

BROKEN, PROTOCOL, TOO_LARGE, TIMEOUT, CONNECT = "BROKEN", "PROTOCOL", "TOO_LARGE", "TIMEOUT", "CONNECT"
EITHER = (BROKEN, PROTOCOL)


class Case:
    """calls meet the answer; codes are those it may be told by; said is in the message; soon: it would
    never end by itself."""

    def __init__(self, name, steps, calls, codes, said="", status=None, soon=False):
        self.name, self.steps, self.calls, self.said, self.status = name, steps, calls, said, status
        self.codes = codes if isinstance(codes, tuple) else (codes,)
        self.soon = soon


def body(data):
    return [reply(data), KeepOpen()]


# --- the connection and the head ---

CONNECTION = [
    Case("closed before the head", [], KINDS, BROKEN),
    Case("reset before the head", [Reset()], KINDS, BROKEN),
    Case("closed in the status line", [b"HTTP/1."], KINDS, EITHER),
    Case("closed in the head", [HEAD + b"Content-Le"], KINDS, EITHER),
    Case("reset in the head", [HEAD, Reset()], KINDS, EITHER),
    Case("silence", [Hold()], EVERY, TIMEOUT, soon=True),
    Case("silence in the head", [HEAD, Hold()], KINDS, TIMEOUT, soon=True),
    Case("head that drips", [Drip(HEAD * 1000)], KINDS, TIMEOUT, soon=True),
    Case("no HTTP", [b"SSH-2.0-OpenSSH_9.2\r\n"], KINDS, EITHER),
    Case("HTTP/0.9", [b'{"id":"box-1"}'], KINDS, EITHER),
    Case("NULs for a head", [bytes(5000)], KINDS, EITHER),
    Case("status that is no number", [b"HTTP/1.1 abc OK\r\n\r\n"], KINDS, EITHER),
    Case("status 999", [b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"], KINDS, PROTOCOL, "999"),
    Case("huge header", [HEAD + b"X-Large: " + b"a" * (3 * MIB) + b"\r\n\r\n"], KINDS,
         (BROKEN, PROTOCOL, TOO_LARGE)),
    Case("endless headers", [HEAD, Endless(b"X-More: again and again\r\n")], KINDS,
         (BROKEN, PROTOCOL, TOO_LARGE)),
    Case("endless 100 Continue", [Endless(b"HTTP/1.1 100 Continue\r\n\r\n")], KINDS,
         (TIMEOUT, PROTOCOL, TOO_LARGE, BROKEN), soon=True),
    Case("endless 103", [Endless(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")], KINDS,
         (TIMEOUT, PROTOCOL, TOO_LARGE, BROKEN), soon=True),
    Case("101 that no one asked for", [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                                       b"Connection: Upgrade\r\n\r\n", Hold()], KINDS,
         (TIMEOUT, PROTOCOL, BROKEN), soon=True),
]

# --- lengths and chunks ---

FRAMING = [
    Case("closed in the body", [reply(SANDBOX, length=1000)], EVERY, BROKEN),
    Case("reset in the body", [reply(b"[", length=1000), Reset()], EVERY, BROKEN),
    Case("silence in the body", [reply(b"[", length=1000), Hold()], EVERY, TIMEOUT, soon=True),
    Case("body that drips", [reply(b"", length=100000), Drip(b" " * 100000)], EVERY, TIMEOUT, soon=True),
    Case("negative length", [HEAD + b"Content-Length: -5\r\n\r\nhello"], KINDS, EITHER),
    Case("length that is no number", [HEAD + b"Content-Length: many\r\n\r\nhello"], KINDS, EITHER),
    Case("two lengths", [HEAD + b"Content-Length: 1\r\nContent-Length: 50\r\n\r\n{"], KINDS, EITHER),
    Case("length of 2^63", [HEAD + b"Content-Length: 9223372036854775807\r\n\r\n["], ["get", "list", "logs"],
         (BROKEN, TOO_LARGE)),
    Case("length of 2^70", [HEAD + b"Content-Length: 1180591620717411303424\r\n\r\n["], ["get", "list"],
         (BROKEN, PROTOCOL, TOO_LARGE)),
    Case("length below that of the body", [reply(SANDBOX, length=9)], ["get", "create"], PROTOCOL),
    Case("closed in a chunk", [streaming(INIT) + b"100\r\nabc"], EVERY, EITHER),
    Case("closed between chunks", [streaming(INIT)], EVERY, EITHER),
    Case("reset between chunks", [streaming(INIT), Reset()], EVERY, EITHER),
    Case("garbage for a chunk's length", [streaming() + b"zz\r\nabc\r\n0\r\n\r\n"], KINDS, EITHER),
    Case("chunk of 2^72", [streaming() + b"ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"], KINDS, EITHER),
    Case("chunk longer than it says", [streaming() + b"2\r\nabcdef\r\n0\r\n\r\n"], KINDS, EITHER),
    Case("gzip that no one asked for",
         [reply(gzip.compress(json.dumps(SANDBOX).encode()), headers=["Content-Encoding: gzip"])],
         ["get", "list", "stream"], PROTOCOL),
    Case("endless body", [HEAD + b"\r\n", Endless(b" ")], COLLECT + ["download", "logs"],
         (TOO_LARGE, TIMEOUT)),
    Case("endless error", [b"HTTP/1.1 500 Oops\r\nContent-Type: text/plain\r\n\r\n", Endless(b"oops ")],
         EVERY, ("SERVER", TOO_LARGE)),
]

# --- statuses ---

PROBLEM = {"code": "SANDBOX::SOME_CODE", "message": "some words of the server"}


def refusal(status, *more, data=None):
    return [reply(PROBLEM if data is None else data, status, headers=more), KeepOpen()]


STATUSES = [
    Case(f"status {status}", refusal(f"{status} Reason"), EVERY if status == 404 else KINDS, code,
         "some words of the server", status)
    for status, code in [
        (400, "REFUSED"), (401, "UNAUTHORIZED"), (403, "FORBIDDEN"), (404, "NOT_FOUND"), (405, "UNSUPPORTED"),
        (409, "CONFLICT"), (413, "REFUSED"), (429, "BUSY"), (500, "SERVER"), (501, "UNSUPPORTED"),
        (502, "SERVER"), (503, "BUSY"), (504, "SERVER")]
] + [
    Case("422 of a validator", refusal("422 U", data={"detail": [
        {"loc": ["body", "timeout"], "msg": "should be at least 60", "type": "greater_than_equal"}]}),
        KINDS, "REFUSED", "should be at least 60", 422),
    Case("detail that is a text", refusal("404 N", data={"detail": "Not Found Here"}), KINDS, "NOT_FOUND",
         "Not Found Here", 404),
    Case("error in one word", refusal("401 U", data={"error": "Unauthorized: no token"}), KINDS,
         "UNAUTHORIZED", "Unauthorized: no token", 401),
    Case("HTML for an error", [reply(b"<html>Bad Gateway</html>", "502 Bad Gateway", "text/html"),
                               KeepOpen()], KINDS, "SERVER", "502", 502),
    Case("error without a body", refusal("500 Oops", data=b""), KINDS, "SERVER", "500", 500),
    Case("error of wrong types", refusal("500 Oops", data={"code": 5, "message": ["a"]}), KINDS, "SERVER",
         "500", 500),
    Case("error in broken JSON", refusal("409 Oops", data=b'{"code":'), KINDS, "CONFLICT", "409", 409),
    Case("error with terminal controls", refusal("400 Bad", data={"code": "A\x1b[31m", "message":
         "red \x1b[31m and\nnew line \x07"}), KINDS, "REFUSED", "red", 400),
    Case("error that is long", refusal("400 Bad", data={"code": "C" * 30000, "message": "m" * 30000}),
         KINDS, "REFUSED", "mmmm", 400),
    Case("304", [b"HTTP/1.1 304 Not Modified\r\n\r\n", KeepOpen()], KINDS, PROTOCOL, "304", 304),
    Case("204 for an object", [b"HTTP/1.1 204 No Content\r\n\r\n", KeepOpen()],
         ["get", "list", "create", "endpoint", "run", "stream"], EITHER),
    Case("redirect without a place", [b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"], KINDS, PROTOCOL,
         "302", 302),
]

# --- what should be JSON ---

NO_JSON = [
    ("nothing", b""), ("blanks", b"   \n"), ("half an object", b'{"id":"box-1","sta'), ("nul", b"nul"),
    ("a word", b"hello"), ("HTML", b"<html></html>"), ("two values", b"{} {}"), ("a NUL", b"\0"),
    ("a NUL behind", json.dumps(SANDBOX).encode() + b"\0"), ("a NUL in a text", b'{"id":"b\0x"}'),
    ("broken UTF-8", b'{"id":"\xff\xfe"}'), ("half a surrogate", b'{"id":"\\ud800"}'),
    ("a byte order mark", b"\xef\xbb\xbf{}"), ("a huge number", b'{"id":1' + b"0" * 400 + b"}"),
    ("deep arrays", b"[" * 100000), ("deep objects", b'{"a":' * 40000),
    ("deep and closed", b"[" * 50000 + b"]" * 50000), ("bytes", bytes(range(256)) * 16),
]
WRONG_TYPES = {
    "get": [b"[]", b"5", b"null", b'"text"', b"true", b"{}", b'{"id":5}', b'{"id":null,"status":{}}',
            b'{"id":"","status":{"state":"Running"}}', b'{"id":"box-1"}', b'{"id":"box-1","status":"Running"}',
            b'{"id":"box-1","status":[]}', b'{"id":"box-1","status":{"state":7}}',
            b'{"id":"box-1\\u0000x","status":{"state":"Running"}}'],
    "list": [b"{}", b"5", b"null", b'"text"', b'{"items":{}}', b'{"items":"a"}', b'{"items":[5]}',
             b'{"items":[[]]}', b'{"items":[{"id":1}]}', b"[5]"],
    "endpoint": [b"[]", b"5", b"{}", b'{"endpoint":5}', b'{"endpoint":""}', b'{"url":[]}',
                 b'{"endpoint":"http://"}', b'{"endpoint":"file:///etc/passwd"}',
                 b'{"endpoint":"gopher://127.0.0.1:1"}', b'{"endpoint":"127.0.0.1:99999"}',
                 b'{"endpoint":"127.0.0.1:80","headers":{"X-A":5}}',
                 b'{"endpoint":"127.0.0.1:80","headers":["X"]}',
                 b'{"endpoint":"127.0.0.1:80","headers":{"X-A":"b\\r\\nX-C: d"}}',
                 b'{"endpoint":"127.0.0.1:80","headers":{"X-A\\r\\nB: c":"d"}}',
                 b'{"endpoint":"127.0.0.1:80\\r\\nX: y"}', b'{"endpoint":"a b"}',
                 b'{"endpoint":"127.0.0.1:80","headers":{"":"d"}}'],
    "renew": [b"[]", b"{}", b'{"expiresAt":5}', b'{"expiresAt":"soon"}'],
    "status": [b"[]", b"5", b"null"],
    "session": [b"[]", b"{}", b'{"session_id":5}', b'{"session_id":""}'],
    "search": [b"{}", b"5", b"[5]", b'[{"path":5}]', b"[{}]"],
    "info": [b"[]", b"5", b'{"/etc/passwd":5}', b"{}"],
}
JSON = [Case(f"{name} for JSON", body(data), COLLECT, PROTOCOL) for name, data in NO_JSON] + [
    Case(f"wrong types, {call}: {data.decode()[:60]}", body(data), [call], PROTOCOL)
    for call, rows in WRONG_TYPES.items() for data in rows
] + [
    Case("a list of a megabyte", body(b"[" + b" " * MIB + b"]"), COLLECT, TOO_LARGE),
    Case("a text of a megabyte", body(b'{"id":"' + b"x" * MIB + b'"}'), COLLECT, TOO_LARGE),
]

# --- streams of events ---


def stream(*events, end=True):
    return [streaming(*events) + (LAST_CHUNK if end else b""), KeepOpen() if end else b""]


FOREGROUND = ["run", "stream"]
STREAMS = [
    Case("stream that ends before the command", stream(INIT, LINE), FOREGROUND, BROKEN),
    Case("stream of nothing", stream(), STREAM, BROKEN),
    Case("stream that ends in an event", stream(INIT, LINE[:20]), FOREGROUND, EITHER),
    Case("closed in an event", stream(INIT, LINE[:20], end=False), FOREGROUND, BROKEN),
    Case("broken JSON in an event", stream(INIT, b"{oops}\n\n", DONE), FOREGROUND, PROTOCOL),
    Case("an event that is a list", stream(INIT, b"[]\n\n", DONE), FOREGROUND, PROTOCOL),
    Case("an event that is a number", stream(INIT, b"5\n\n", DONE), FOREGROUND, PROTOCOL),
    Case("output that is a number", stream(INIT, b'{"type":"stdout","text":5}\n\n', DONE), FOREGROUND,
         PROTOCOL),
    Case("a type that is a number", stream(INIT, b'{"type":5}\n\n', DONE), FOREGROUND, PROTOCOL),
    Case("deep nesting in an event", stream(INIT, b'{"type":' + b"[" * 30000 + b"\n\n"), FOREGROUND, PROTOCOL),
    Case("NULs in a stream", stream(INIT, bytes(1000) + b"\n\n", DONE), FOREGROUND, PROTOCOL),
    Case("bytes in a stream", stream(INIT, bytes(range(128, 256)) * 10 + b"\n\n", DONE), FOREGROUND, PROTOCOL),
    Case("a line of 32 MiB", [streaming(INIT), *([chunk(b"x" * MIB)] * 32)], STREAM[:2], TOO_LARGE),
    Case("an endless line", [streaming(INIT), Endless(chunk(b"x" * 16384))], FOREGROUND, TOO_LARGE),
    Case("an endless event of lines", [streaming(INIT), Endless(chunk(b"data: xxxxxxxxxxxxxxxxxxxxxxxx\n"))],
         FOREGROUND, (TOO_LARGE, PROTOCOL)),
    Case("endless output", [streaming(INIT), Endless(chunk(LINE))], FOREGROUND, TIMEOUT, soon=True),
    Case("endless pings", [streaming(INIT), Endless(chunk(b'{"type":"ping","text":"pong"}\n\n'))], FOREGROUND,
         TIMEOUT, soon=True),
    Case("endless blank lines", [streaming(INIT), Endless(chunk(b"\n"))], FOREGROUND, TIMEOUT, soon=True),
    Case("endless comments", [streaming(INIT), Endless(chunk(b": comment\n\n"))], FOREGROUND, TIMEOUT,
         soon=True),
    Case("stream that drips", [streaming() + b"fff\r\n", Drip(INIT + LINE * 200)], FOREGROUND, TIMEOUT,
         soon=True),
    Case("silence in a stream", [streaming(INIT, LINE), Hold()], FOREGROUND, TIMEOUT, soon=True),
    Case("untyped error in a stream", stream(INIT, json.dumps(PROBLEM).encode() + b"\n\n"), FOREGROUND,
         ("SERVER", "PROTOCOL", "REFUSED", "BROKEN"), "some words of the server"),
]

GROUPS = {"connections and heads": CONNECTION, "lengths and chunks": FRAMING, "statuses": STATUSES,
          "JSON": JSON, "streams": STREAMS}


# --- the probe ---

class Probe:
    """Many at once, since most of them wait."""

    AT_ONCE = 12

    def __init__(self):
        self.processes = [subprocess.Popen([probe_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           text=True, bufsize=1) for _ in range(self.AT_ONCE)]

    def send_request(self, jobs):
        """jobs: (mode, verb, timeout, url) each; what was said to each, in their order."""
        said, todo, lock = [None] * len(jobs), list(range(len(jobs))), threading.Lock()

        def work(process):
            while True:
                with lock:
                    if not todo:
                        return
                    i = todo.pop()
                process.stdin.write(" ".join(map(str, jobs[i])) + "\n")
                line = process.stdout.readline()
                said[i] = json.loads(line) if line else {"code": None}
                if not line:
                    return

        threads = [threading.Thread(target=work, args=[p]) for p in self.processes]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return said

    def end(self):
        """(status, descriptors left) of each."""
        ends = []
        for p in self.processes:
            p.stdin.close()
            last = p.stdout.read()
            ends.append((p.wait(timeout=60), json.loads(last)["descriptors"] if last else None))
        return ends


probe = Probe()


def code(said):
    return CODES.get(said["code"], "died")


def fault(case, said):
    """What is wrong with what was said, or None."""
    if code(said) not in case.codes:
        return f"{code(said)}, not {case.codes}"
    if not said["same_code"]:
        return "error.code is not what was returned"
    if case.said not in said["message"]:
        return f"the message lacks {case.said!r}"
    if not said["message"] or not said["message"].isprintable() or KEY in json.dumps(said):
        return "the message is not one clean line"
    if case.status is not None and said["status"] != case.status:
        return f"status {said['status']}, not {case.status}"
    return None


def slug(text):
    return re.sub(r"\W+", "-", text)[:60]


def meet(cases):
    names = [f"{i}-{slug(c.name)}" for i, c in enumerate(cases)]
    with BrokenServer({n: c.steps for n, c in zip(names, cases)}) as server:
        jobs = [(mode, call, SOON if case.soon else 0, server.url(name), case)
                for name, case in zip(names, cases) for i, call in enumerate(case.calls)
                for mode in (MODES if call in KINDS + FOREGROUND else [MODES[i % 3]])]
        said = probe.send_request([j[:4] for j in jobs])
    wrong = [f"{j[4].name}, {j[1]} ({j[0]}): {fault(j[4], s)}: {s}"
             for j, s in zip(jobs, said) if s is None or fault(j[4], s)]
    if wrong:
        raise AssertionError(f"{len(wrong)} of {len(jobs)} are wrong:\n" + "\n".join(wrong))


def group(title, cases):
    def body_of_test():
        meet(cases)
    body_of_test.__doc__ = title
    test(body_of_test)


for title_, cases_ in GROUPS.items():
    group(title_, cases_)


# --- what is unusual and in order ---

def data_lines(*events):
    return b"".join(b"event: e\ndata: " + e.strip() + b"\n\n" for e in events)


EXITS = [       # how a server may tell the end of a command, and what it means
    ("complete", [DONE], 0, None),
    ("evalue", [ERROR], 3, "exit status 3"),
    ("evalue, then complete", [ERROR, DONE], 3, "exit status 3"),
    ("exitCode", [b'{"type":"execution_complete","exitCode":9,"durationMs":5}\n\n'], 9, None),
    ("exit_code", [b'{"type":"execution_complete","exit_code":9}\n\n'], 9, None),
    ("evalue as a number", [b'{"type":"error","error":{"ename":"E","evalue":4}}\n\n'], 4, None),
    ("both", [b'{"type":"error","error":{"ename":"E","evalue":"3"},"exitCode":3}\n\n'], 3, None),
    ("evalue of words", [b'{"type":"error","error":{"ename":"E","evalue":"no such program"}}\n\n'], -1,
     "no such program"),
    ("error as a text", [b'{"type":"error","error":"no such directory"}\n\n'], -1, "no such directory"),
]


@test
def exit_codes_in_every_form():
    replies = {}
    for i, (_, end, _, _) in enumerate(EXITS):
        replies[f"bare{i}"] = stream(INIT, LINE, *end)
        replies[f"data{i}"] = stream(data_lines(INIT, LINE, *end))
        replies[f"crlf{i}"] = stream(data_lines(INIT, LINE, *end).replace(b"\n", b"\r\n"))
        replies[f"tiny{i}"] = stream(*(bytes([b]) for b in INIT + LINE + b"".join(end)))
        replies[f"close{i}"] = [b"HTTP/1.1 200 OK\r\n\r\n" + INIT + LINE + b"".join(end)]
    with BrokenServer(replies) as server:
        jobs = [(mode, call, 0, server.url(n)) for n in replies for call in FOREGROUND for mode in MODES]
        said = probe.send_request(jobs)
    wrong = []
    for job, s in zip(jobs, said):
        label, _, exit_code, words = EXITS[int(re.search(r"\d+$", job[3])[0])]
        r = s.get("result") or {}
        good = r.get("exit_code") == exit_code and (not words or words in (r.get("error") or ""))
        output = r.get("out") == "line\n" if job[1] == "run" else r.get("streamed") == 5
        if not good or not output or r.get("id") != "c1":
            wrong.append(f"{label} {job}: {s}")
    eq(wrong, [], "forms")


@test
def events_that_nobody_knows_are_passed_over():
    odd = [b'{"type":"from_the_future","x":[1,{}]}\n\n', b": comment\n\n", b"\n\n\n", b"id: 5\nretry: 7\n\n",
           b'{"type":"stdout","text":"a\\u0000b"}\n\n', b'{"type":"ping"}\n\n']
    with BrokenServer({"odd": stream(INIT, *odd, DONE)}) as server:
        for s in probe.send_request([(mode, "run", 0, server.url("odd")) for mode in MODES]):
            eq((code(s), s.get("result", {}).get("out")), ("OK", "a\0b\n"), s)


@test
def text_and_data_and_lists_of_old_servers():
    """other spellings: data for text, a bare list of sandboxes, snake_case, url for endpoint"""
    replies = {
        "v2": stream(INIT, b'{"type":"stdout","data":"old"}\n\n', b'{"type":"stderr","data":"bad"}\n\n', DONE),
        "list": body([SANDBOX, {**SANDBOX, "id": "box-2"}]),
        "snake": body({"id": "box-1", "status": {"state": "Running"}, "created_at": "2026-01-02T03:04:05Z",
                       "expires_at": "2026-01-02T04:04:05.5+01:00"}),
        "url": body({"url": "http://127.0.0.1:1234/agent/", "host": "127.0.0.1", "port": 1234}),
        "bare": body({"endpoint": "127.0.0.1:1234/proxy/44772"}),
    }
    with BrokenServer(replies) as server:
        said = probe.send_request([("block", call, 0, server.url(n)) for n, call in [
            ("v2", "run"), ("list", "list"), ("snake", "get"), ("url", "endpoint"), ("bare", "endpoint")]])
    ran, listed, got, url, bare = [s.get("result", s) for s in said]
    eq((ran.get("out"), ran.get("err"), ran.get("exit_code")), ("old", "bad", 0), ran)
    eq(listed.get("n"), 2, listed)
    eq((got.get("created_at"), got.get("expires_at")), (1767323045000, 1767323045500), got)
    eq(url.get("url"), "http://127.0.0.1:1234/agent", url)
    eq((bare.get("url"), bare.get("port")), ("http://127.0.0.1:1234/proxy/44772", 1234), bare)


LENIENT = [       # what no one depends on may be nonsense
    {"metadata": ["a"]}, {"metadata": {"a": 1}}, {"metadata": None}, {"createdAt": "yesterday"}, {"createdAt": 12},
    {"entrypoint": "sleep"}, {"entrypoint": [1]}, {"image": 7}, {"extensions": 5}, {"new": {"x": [1]}}]


@test
def what_a_result_can_do_without_may_be_of_any_type():
    replies = {f"l{i}": body({"id": "box-1", "status": {"state": "Running"}, **more})
               for i, more in enumerate(LENIENT)}
    with BrokenServer(replies) as server:
        for name, s in zip(replies, probe.send_request([("block", "get", 0, server.url(n)) for n in replies])):
            eq((code(s), s.get("result", {}).get("id")), ("OK", "box-1"), (name, s))


@test
def collected_output_is_cut_not_unbounded():
    """collected output is cut, and the end of the command told all the same"""
    with BrokenServer({"much": [streaming(INIT, *[LINE * 1000] * 200, DONE) + LAST_CHUNK]}) as server:
        for s in probe.send_request([(mode, "run", 0, server.url("much")) for mode in MODES]):
            r = s.get("result", {})
            eq((code(s), r.get("exit_code"), r.get("out_truncated"), len(r.get("out", "")) <= 256 * 1024),
               ("OK", 0, True, True), {**s, "result": {**r, "out": ""}})


# --- the key ---

@test
def redirects_are_not_followed():
    """redirects are not followed: the key is for one server, whatever that says"""
    with BrokenServer({"": None}) as other_host:
        replies = {f"r{status}": [reply(b"", f"{status} Elsewhere", headers=[
            f"Location: http://127.0.0.1:{other_host.port}/stolen"])] for status in [301, 302, 303, 307, 308]}
        with BrokenServer(replies) as server:
            jobs = [(MODES[i % 3], call, 0, server.url(n)) for n in replies for i, call in enumerate(EVERY)]
            said = probe.send_request(jobs)
        wrong = [f"{j}: {s}" for j, s in zip(jobs, said) if code(s) != "PROTOCOL" or
                 not re.search(r"\b30[12378]\b", s["message"])]
        eq(wrong, [], "wrong answers")
        eq(other_host.seen(), [], "who was redirected")


@test
def the_key_goes_to_the_server_and_not_to_agents():
    lifecycle = ["create", "get", "list", "delete", "renew", "endpoint"]
    agent = [c for c in EVERY if c not in lifecycle]
    with BrokenServer({"x": refusal("404 N")}) as server:
        probe.send_request([("block", call, 0, server.url("x")) for call in lifecycle])
        wrong = [r for r in server.seen() if r.headers.get("open-sandbox-api-key") != KEY
                 or "x-execd-access-token" in r.headers]
        eq(wrong, [], "lifecycle calls without the key")
        probe.send_request([(mode, call, 0, server.url("x")) for call in agent for mode in MODES])
        seen = server.seen()
        eq(len(seen) >= len(agent) * len(MODES), True, f"{len(seen)} requests to the agent")
        wrong = [(r, r.headers) for r in seen if KEY in str(r.headers) + str(r.body)
                 or r.headers.get("x-execd-access-token") != "box-token"]
        eq(wrong, [], "agent calls with the key, or without the endpoint's header")


# --- waiting ---

@test
def waiting_ends():
    """waiting ends when the sandbox will never be ready, and at the deadline when no one knows"""
    def of(state, **more):
        return body({"id": "box-1", "status": {"state": state, **more}})
    replies = {"failed": of("Failed", reason="IMAGE", message="no such image"), "ended": of("Terminated"),
               "pending": of("Pending"), "gone": refusal("404 N"), "broken": [], "odd": of("Weird")}
    wanted = {"failed": "FAILED", "ended": "FAILED", "pending": TIMEOUT, "gone": "NOT_FOUND",
              "broken": (BROKEN, TIMEOUT), "odd": TIMEOUT}
    with BrokenServer(replies) as server:
        jobs = [(mode, "wait", SOON, server.url(n)) for n in replies for mode in MODES]
        said = probe.send_request(jobs)
    wrong = [f"{j}: {s}" for j, s in zip(jobs, said)
             if code(s) not in (w if isinstance(w := wanted[j[3].rsplit("/", 1)[1]], tuple) else (w,))]
    eq(wrong, [], "wrong answers")
    eq([s["message"] for j, s in zip(jobs, said) if "failed" in j[3] and "no such image" not in s["message"]],
       [], "messages without the reason")


@test
def callbacks_can_give_up():
    with BrokenServer({"endless": [streaming(INIT), Endless(chunk(LINE))]}) as server:
        for s in probe.send_request([(mode, "cancel", 0, server.url("endless")) for mode in MODES]):
            eq(code(s), "CANCELED", s)


@test
def no_listener():
    with BrokenServer({}) as server:
        url = server.url("x")
    for s in probe.send_request([(mode, call, 0, url) for call in KINDS for mode in MODES]):
        eq(code(s), "CONNECT", s)


@test
def nothing_is_left():
    """nothing is left: no descriptor, and under AddressSanitizer no memory"""
    eq(probe.end(), [(0, 0)] * Probe.AT_ONCE)


run()
