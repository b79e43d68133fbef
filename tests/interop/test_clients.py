#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that people really use: curl, wrk, Node's fetch, and ws from npm.

usage: test_clients.py HTTP_DEMO BUILD_DIR
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from server import Server  # noqa: E402
from tap import diag, eq, has, run, skip, test  # noqa: E402

demo, build_dir = sys.argv[1:3]
_directory = tempfile.TemporaryDirectory()     # gone at exit
directory = _directory.name
BIG = os.urandom(1 << 20) * 8
with open(f"{directory}/big", "wb") as big:
    big.write(BIG)


def fnv(data):
    h = 2166136261
    for b in data:
        h = (h ^ b) * 16777619 & 0xffffffff
    return h


def need(program):
    if not shutil.which(program):
        skip(f"{program} is not installed")


class Pair:
    """Two demo servers: the second proxies to the first, which listens on a unix socket."""

    def __enter__(self):
        # The server takes the socket file away again, so that each pair finds the place free.
        self.back = Server(demo, f"unix:{directory}/s", directory, "-")
        self.front = Server(demo, "127.0.0.1:0", directory, self.back.address)
        return self.front.url

    def __exit__(self, *_):
        eq(self.front.stop(), 0, "status of the proxy")
        eq(self.back.stop(), 0, "status of the server behind it")


def curl(*arguments):
    need("curl")
    p = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], capture_output=True,
                       timeout=90)
    if p.returncode:
        raise AssertionError(f"curl {arguments}: {p.returncode} {p.stderr.decode()}")
    return p.stdout


@test
def curl_plain_and_through_the_proxy():
    """curl: GET, POST, HEAD, expectations, chunked uploads, DELETE with a body"""
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            eq(curl(f"{base}/hello"), b'{"hello":"world"}')
            has(curl("-I", f"{base}/hello").decode(), "Content-Length: 17")
            eq(curl("-d", "a=b", f"{base}/echo"), b"a=b")
            eq(curl("-X", "DELETE", "-d", "why not", f"{base}/echo-stream"), b"why not")
            eq(curl("-H", "Expect: 100-continue", "-T", f"{directory}/big",
                    f"{base}/echo-stream"), BIG)
            eq(curl("-H", "Transfer-Encoding: chunked", "-T", f"{directory}/big",
                    f"{base}/echo-stream"), BIG)
            eq(curl("-o", "/dev/null", "-w", "%{http_code}", f"{base}/nothing"), b"404")
            eq(curl("-d", '{"name":"x","times":11}', f"{base}/greet"),
               b'{"code":"INVALID_REQUEST_BODY","message":"times: must be at most 10"}')


@test
def curl_files_and_ranges():
    """curl: downloads, ranges, resumption, conditions"""
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            eq(curl(f"{base}/file/big"), BIG)
            eq(curl("-r", "100-199", f"{base}/file/big"), BIG[100:200])
            eq(curl("-r", "-5", f"{base}/file/big"), BIG[-5:])
            eq(curl("-C", str(len(BIG) - 1000), f"{base}/file/big"), BIG[-1000:])
            eq(curl("-r", "999999999-", "-o", "/dev/null", "-w", "%{http_code}",
                    f"{base}/file/big"), b"416")
            tag = re.search(r"ETag: (\S+)", curl("-I", f"{base}/file/big").decode())[1]
            eq(curl("-H", f"If-None-Match: {tag}", "-o", "/dev/null", "-w", "%{http_code}",
                    f"{base}/file/big"), b"304")


@test
def curl_forms():
    """curl: multipart uploads, with and without a file name"""
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            parts = json.loads(curl("-F", "metadata={}", "-F", f"file=@{directory}/big",
                                    "-F", 'odd=x;filename="a\\"b"', f"{base}/upload"))
            eq([(p["name"], p.get("filename"), p["size"]) for p in parts],
               [("metadata", None, 2), ("file", "big", len(BIG)), ("odd", 'a"b', 1)])
            eq(parts[0]["sum"], fnv(b"{}"), "checksum")


@test
def curl_events():
    """curl: an event stream, to its end"""
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            eq(curl("-N", f"{base}/events?count=1000"), b"data: xxxxx\n\n" * 1000)


@test
def curl_keeps_its_connection():
    """curl: many requests on one connection"""
    with Pair() as url:
        out = curl("-w", "%{num_connects}\n", *[f"{url}/hello"] * 20)
        eq(out.count(b"world"), 20)
        eq(re.findall(rb"\}(\d)\n", out), [b"1"] + [b"0"] * 19, "new connections")


@test
def wrk_has_no_errors():
    """wrk: 64 connections, plain and through the proxy, without a socket or status error"""
    need("wrk")
    with Pair() as url:
        for path in ["/hello", "/proxy/hello"]:
            # Slow is no error here: on a busy host an answer may take seconds.
            out = subprocess.run(["wrk", "-t1", "-c64", "-d1s", "--timeout", "30s", url + path],
                                 capture_output=True, text=True, timeout=60).stdout
            has(out, "requests in")
            if "errors" in out or "Non-2xx" in out:
                raise AssertionError(out)


def node(script, *arguments, modules=None):
    need("node")
    env = {**os.environ, "NODE_PATH": modules or ""}
    p = subprocess.run(["node", f"{here}/{script}", *arguments], capture_output=True, text=True,
                       timeout=120, env=env)
    diag(p.stdout)
    if p.returncode:
        raise AssertionError(p.stderr or p.stdout)


@test
def node_fetch():
    """Node's fetch: JSON, streams both ways, forms, aborts, keep-alive"""
    need("node")
    major = int(subprocess.run(["node", "-p", "process.versions.node"], capture_output=True,
                               text=True, timeout=30).stdout.split(".")[0])
    if major < 18:
        skip(f"Node {major} has no fetch; 18 or newer is needed")
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            node("fetch.mjs", base)


def ws_module():
    """The directory with npm's ws: as Debian ships it, or as npm has put it into the build directory."""
    for place in ["/usr/share/nodejs", f"{build_dir}/interop/node_modules"]:
        if os.path.exists(f"{place}/ws/package.json"):
            return place
    need("npm")
    missing = "the package node-ws is not installed, and npm could not fetch ws"
    # Without a network npm would try again for minutes.
    try:
        p = subprocess.run(["npm", "install", "--prefix", f"{build_dir}/interop", "--no-audit",
                            "--no-fund", "--no-save", "--no-update-notifier", "--fetch-retries=1",
                            "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000", "ws@8"],
                           capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        skip(f"{missing} within two minutes")
    if p.returncode:
        code = re.search(r"^npm \S+ code (\S+)", p.stderr, re.M)
        skip(f"{missing}: {code[1] if code else f'status {p.returncode}'}")
    return f"{build_dir}/interop/node_modules"


@test
def npm_ws():
    """ws from npm: text, binary, fragments, pings, subprotocols, closing, limits"""
    need("node")
    modules = ws_module()
    with Pair() as url:
        for base in [url, url + "/proxy"]:
            node("ws.cjs", base.replace("http", "ws"), modules=modules)


run()
