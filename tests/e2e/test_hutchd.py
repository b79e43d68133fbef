#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd as an operator meets it.

usage: test_hutchd.py HUTCHD
"""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import GET_CLOSE, Server  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

hutchd = sys.argv.pop(1)
_folder = tempfile.TemporaryDirectory()     # gone at exit
folder = _folder.name


def get(server, path):
    head, _, body = server.ask(GET_CLOSE % path.encode()).partition(b"\r\n\r\n")
    return head.decode(), body.decode()


def refused(*arguments):
    p = subprocess.run([hutchd, *arguments], capture_output=True, text=True, timeout=30)
    return p.returncode, p.stderr


@test
def says_the_one_line_and_serves():
    """/health, /version and /metrics"""
    with Server(hutchd, "--listen", "127.0.0.1:0") as s:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", s.address), s.address
        head, body = get(s, "/health")
        has(head, "HTTP/1.1 200 OK")
        has(head, "X-Request-ID: ")
        eq(json.loads(body), {"status": "healthy"})
        eq(list(json.loads(get(s, "/version")[1])), ["version"])
        head, body = get(s, "/metrics")
        has(head, "Content-Type: text/plain; version=0.0.4")
        found = re.search(r"^hutch_http_requests_total (\d+)$", body, re.M)
        eq(int(found[1]), 3, "requests counted")
        eq(s.stop(), 0, "exit status")


@test
def listens_on_several_addresses():
    """TCP and a unix socket, whose file goes with it"""
    path = f"{folder}/hutchd.sock"
    with Server(hutchd, "--listen", f"unix:{path}", "--listen=127.0.0.1:0") as s:
        eq(s.address, f"unix:{path}")
        has(get(s, "/health")[1], "healthy")
        has(s.process.stdout.readline(), "hutchd: listening on http://127.0.0.1:")
        eq(s.stop(), 0, "exit status")
    assert not os.path.exists(path), "the socket file is still there"


@test
def a_killed_one_leaves_a_socket_that_the_next_takes_over():
    path = f"{folder}/killed.sock"
    with Server(hutchd, "--listen", f"unix:{path}") as s:
        code, said = refused("--listen", f"unix:{path}")
        eq(code, 1, "exit status of the second")
        has(said, "can't listen")
        s.process.kill()
        s.process.wait()
        with Server(hutchd, "--listen", f"unix:{path}") as second:
            has(get(second, "/health")[1], "healthy")


@test
def errors_are_json_with_an_id():
    with Server(hutchd, "--listen", "127.0.0.1:0") as s:
        head, body = get(s, "/nothing/here")
        has(head, "404 Not Found")
        eq(json.loads(body)["code"], "NOT_FOUND")
        reply = s.ask(b"DELETE /health HTTP/1.1\r\nHost: h\r\nX-Request-ID: my-id\r\n"
                      b"Connection: close\r\n\r\n").decode()
        has(reply, "405 Method Not Allowed")
        has(reply, "Allow: GET, HEAD, OPTIONS")
        has(reply, "X-Request-ID: my-id")


@test
def logs_what_it_is_told_to():
    """--access-log and --log-format json, with foreign text escaped"""
    log = f"{folder}/log"
    with open(log, "wb") as f:
        p = subprocess.Popen([hutchd, "--listen", f"unix:{folder}/l.sock", "--access-log",
                              "--log-format=json"], stderr=f, stdout=subprocess.PIPE, text=True)
    with p.stdout:
        p.stdout.readline()
        subprocess.run(["curl", "-s", "--unix-socket", f"{folder}/l.sock",
                        "http://h/%22%0a-%1b31m"], check=True, timeout=30, capture_output=True)
        p.terminate()
        eq(p.wait(timeout=30), 0)
    with open(log, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    line = next(x for x in lines if x["msg"] == "request")
    eq((line["status"], line["method"], line["path"]), (404, "GET", "/%22%0a-%1b31m"))
    eq(len(line["request"]), 32)


@test
def a_second_signal_ends_it_at_once():
    with Server(hutchd, "--listen", "127.0.0.1:0", "--drain-timeout=1h") as s, s.connect() as c:
        c.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")
        while "hutch_http_connections 2" not in (metrics := get(s, "/metrics")[1]):
            has(metrics, "hutch_http_connections ")
        s.process.terminate()
        try:
            while s.connect():      # until it has heard and listens no more
                pass
        except ConnectionRefusedError:
            pass
        eq(s.process.poll(), None, "status while a request is unfinished")
        s.process.terminate()
        eq(s.process.wait(timeout=30), 0, "exit status")


@test
def wrong_options_are_explained():
    """every complaint names the argument and what to do; status 2"""
    for arguments, words in [
        (["--listen"], "needs a value"),
        (["--listen", "nowhere"], "try 127.0.0.1:8080"),
        (["--log-level=loud"], "try debug"),
        (["--drain-timeout=10"], "try 10s"),
        (["--max-connections", "0"], "from 1 to"),
        (["--access-log=yes"], "takes no value"),
        (["--frobnicate"], "unknown option"),
        (["stray"], "unexpected argument"),
    ]:
        code, said = refused(*arguments)
        eq(code, 2, f"exit status of {arguments}")
        has(said, words)
        has(said, "hutchd --help")


@test
def help_and_version():
    shown = subprocess.run([hutchd, "--help"], capture_output=True, text=True, timeout=30)
    eq(shown.returncode, 0)
    for option in ["--listen", "--log-level", "--log-format", "--access-log", "--max-connections",
                   "--drain-timeout"]:
        has(shown.stdout, option)
    has(subprocess.run([hutchd, "--version"], capture_output=True, text=True,
                       timeout=30).stdout, "hutchd ")


run()
