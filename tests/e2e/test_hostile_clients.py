#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, or are merely slow: the server answers all others meanwhile.

usage: test_hostile_clients.py HTTP_DEMO
"""

import os
import re
import resource
import select
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import GET, GET_CLOSE, Server, read_all, read_reply  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

demo = sys.argv.pop(1)
_directory = tempfile.TemporaryDirectory()     # gone at exit
directory = _directory.name


def start(*settings):
    return Server(demo, "127.0.0.1:0", directory, "-", *settings)


def replies(server):
    """Whether an honest client is served, now."""
    reply = server.send_request(GET_CLOSE % b"/hello", timeout=10)
    has(reply.decode(), '{"hello":"world"}')


def closed(s, timeout=20):
    """What was sent until the server closed or reset the connection."""
    s.settimeout(timeout)
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


@test
def heads_that_trickle_end_with_408():
    """slowloris on heads: a trickling client wins no time and delays nobody"""
    with start("head=300ms") as s:
        slow = [s.connect() for _ in range(50)]
        for c in slow:
            c.sendall(b"GET /hello HTTP/1.1\r\nHost: h\r\n")
        replies(s)
        # Bytes keep coming until the server has had enough: no wait but the server's own.
        alive = set(slow)
        while alive:
            for c in list(alive):
                readable, _, _ = select.select([c], [], [], 0.02)
                if readable:
                    has(closed(c).decode(), "HTTP/1.1 408 ")
                    alive.discard(c)
                else:
                    c.sendall(b"X-A: b\r\n")
            replies(s)
        for c in slow:
            c.close()


@test
def bodies_that_stall_end_with_408():
    """slowloris on bodies"""
    with start("body=300ms") as s:
        slow = [s.connect() for _ in range(50)]
        for i, c in enumerate(slow):
            path = b"/echo" if i % 2 else b"/upload"
            c.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n"
                      b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b")
        replies(s)
        for c in slow:
            has(closed(c).decode(), "HTTP/1.1 408 ")
            c.close()
        replies(s)


@test
def ten_thousand_silent_connections():
    """10,000 connections opened and left: others are served, and all of them end"""
    count = 10000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count + 500:
        skip(f"needs {count + 500} open files, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with start("idle=60s") as s:
        before = s.rss_kib()
        left = []
        for i in range(count):
            left.append(s.connect())
            if i % 1000 == 999:
                replies(s)
        cost = (s.rss_kib() - before) * 1024 / count
        print(f"# {cost:.0f} bytes for each silent connection")
        if s.memory_is_ours():
            assert cost < 4096, f"{cost:.0f} bytes for each silent connection"
        replies(s)
        for c in left:
            c.close()
        replies(s)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test
def more_connections_than_allowed():
    """the longest idle connection makes room for a new one; busy ones stay"""
    with start("conns=50") as s:
        busy = s.connect()
        busy.sendall(GET % b"/events?idle=1")
        has(busy.recv(4096).decode(), "text/event-stream")
        idle = [s.connect() for _ in range(100)]
        replies(s)
        # The first ones were closed, the stream was not.
        eq(closed(idle[0]), b"")
        busy.setblocking(False)
        try:
            rest = busy.recv(4096)
            assert rest, "the busy connection was closed"
        except BlockingIOError:
            pass
        for c in [busy, *idle]:
            c.close()


@test
def no_room_at_all_is_503():
    """when all connections are busy, a newcomer is told so"""
    with start("conns=5") as s:
        busy = []
        for _ in range(5):
            c = s.connect()
            c.sendall(GET % b"/events?idle=1")
            has(c.recv(4096).decode(), "200 OK")
            busy.append(c)
        with s.connect() as c:
            has(closed(c).decode(), "HTTP/1.1 503 ")
        busy.pop().close()
        # Its place is free as soon as the server has seen the end.
        while b" 503 " in (reply := s.send_request(GET_CLOSE % b"/hello")):
            pass
        has(reply.decode(), "200 OK")
        for c in busy:
            c.close()


@test
def a_stream_that_nobody_reads():
    """a client that never reads an event stream costs bounded memory, then its connection"""
    with start("write=1s") as s:
        before = s.rss_kib()
        deaf = []
        for _ in range(20):
            c = socket.socket()
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.connect(("127.0.0.1", s.port))
            c.sendall(GET % b"/events?size=65536")
            deaf.append(c)
        for _ in range(20):
            replies(s)
        grown = s.rss_kib() - before
        assert grown < 20 * 1024 or not s.memory_is_ours(), f"grew by {grown} KiB for 20 streams that no one reads"
        # Each is cut off: what the kernel held can be read, then comes the end.
        for c in deaf:
            assert len(closed(c)) < 64 << 20
            c.close()
        replies(s)


@test
def pipelines_that_nobody_reads():
    """requests without end and no reading: the server stops reading, too"""
    with start("write=1s") as s:
        before = s.rss_kib()
        c = s.connect()
        c.settimeout(0.2)
        sent, flood = 0, (GET % b"/hello") * 1000
        try:
            while sent < 256 << 20:
                sent += c.send(flood)
        except (TimeoutError, ConnectionError):
            pass
        assert sent < 64 << 20, f"the server took {sent >> 20} MiB of requests"
        replies(s)
        grown = s.rss_kib() - before
        assert grown < 4096 or not s.memory_is_ours(), f"grew by {grown} KiB"
        c.close()


@test
def nonsense_is_refused_and_costs_nothing():
    """every kind of nonsense gets a 4xx or 5xx and a closed connection"""
    host = b"Host: h\r\n"
    cases = {
        "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        "endless line": b"GET /" + b"a" * (1 << 20),
        "endless header": b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * (1 << 20),
        "headers": b"GET / HTTP/1.1\r\n" + host + b"X: a\r\n" * 10000,
        "cl+te": b"POST /echo HTTP/1.1\r\n" + host
                 + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "cl twice": b"POST /echo HTTP/1.1\r\n" + host
                    + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "cl list": b"POST /echo HTTP/1.1\r\n" + host + b"Content-Length: 4, 4\r\n\r\nabcd",
        "cl sign": b"POST /echo HTTP/1.1\r\n" + host + b"Content-Length: +4\r\n\r\nabcd",
        "cl huge": b"POST /echo HTTP/1.1\r\n" + host + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\n",
        "te other": b"POST /echo HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip\r\n\r\n",
        "te list": b"POST /echo HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "te twice": b"POST /echo HTTP/1.1\r\n" + host
                    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "te on 1.0": b"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "bare lf": b"GET /hello HTTP/1.1\n" + host + b"\r\n",
        "bare lf end": b"GET /hello HTTP/1.1\r\n" + host + b"\n",
        "bare cr": b"GET /hello HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        "fold": b"GET /hello HTTP/1.1\r\n" + host + b"X: a\r\n b\r\n\r\n",
        "space before colon": b"GET /hello HTTP/1.1\r\nHost : h\r\n\r\n",
        "no name": b"GET /hello HTTP/1.1\r\n" + host + b": x\r\n\r\n",
        "nul": b"GET /hello HTTP/1.1\r\n" + host + b"X: a\0b\r\n\r\n",
        "no host": b"GET /hello HTTP/1.1\r\n\r\n",
        "two hosts": b"GET /hello HTTP/1.1\r\n" + host + host + b"\r\n",
        "bad host": b"GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n",
        "chunk size": b"POST /echo HTTP/1.1\r\n" + host
                      + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
        "chunk overflow": b"POST /echo HTTP/1.1\r\n" + host
                          + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\nabc",
        "chunk end": b"POST /echo HTTP/1.1\r\n" + host
                     + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n",
        "chunk lf": b"POST /echo HTTP/1.1\r\n" + host
                    + b"Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
        "version": b"GET /hello HTTP/2.0\r\n" + host + b"\r\n",
        "method": b"BREW /hello HTTP/1.1\r\n" + host + b"\r\n",
        "too large": b"POST /echo HTTP/1.1\r\n" + host + b"Content-Length: 99999999\r\n\r\n",
        "too large chunked": b"POST /echo HTTP/1.1\r\n" + host
                             + b"Transfer-Encoding: chunked\r\n\r\n"
                             + (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 64 + b"0\r\n\r\n",
    }
    with start() as s:
        before = s.rss_kib()
        for name, request in cases.items():
            with s.connect() as c:
                try:
                    c.sendall(request)
                except ConnectionError:
                    pass
                reply = closed(c)
            assert reply[9:10] in (b"4", b"5"), f"{name}: got {reply[:200]!r}"
            assert b"X-Request-ID: " in reply, f"{name}: no request id in {reply[:200]!r}"
            assert b'"code"' in reply, f"{name}: no error in our shape in {reply!r}"
            eq(len(re.findall(rb"^HTTP/1\.1 ", reply, re.M)), 1, f"{name}: answers")
        replies(s)
        grown = s.rss_kib() - before
        assert grown < 2048 or not s.memory_is_ours(), f"grew by {grown} KiB"


@test
def nothing_is_left_behind():
    """after many clients that broke off in the middle, no descriptor is left"""
    with start() as s:
        replies(s)
        before = s.descriptors()
        for i in range(200):
            with s.connect() as c:
                c.sendall([b"GET /he", b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\na",
                           GET % b"/events", GET % b"/hello"][i % 4])
        while s.descriptors() > before:
            replies(s)
        eq(s.stop(), 0, "exit status")


@test
def half_an_answer_without_length_does_not_look_whole():
    """an HTTP/1.0 client sees a reset when its stream is cut off, and an end when it ends"""
    with start("drain=300ms") as s:
        has(s.send_request(b"GET /events?count=3 HTTP/1.0\r\n\r\n").decode(), "data: xxxxx\n\n" * 3)
        with s.connect() as c:
            c.sendall(b"GET /events?idle=1 HTTP/1.0\r\n\r\n")
            has(c.recv(4096).decode(), "200 OK")
            s.process.terminate()
            try:
                read_all(c)
                raise AssertionError("an orderly end")
            except ConnectionResetError:
                pass
        eq(s.process.wait(timeout=30), 0, "exit status")


@test
def drain_lets_the_running_end():
    """SIGTERM: idle connections close at once, streams after the drain timeout, status 0"""
    with start("drain=500ms") as s:
        idle, stream = s.connect(), s.connect()
        idle.sendall(GET % b"/hello")
        read_reply(idle)
        stream.sendall(GET % b"/events?idle=1")
        has(stream.recv(4096).decode(), "200 OK")
        s.process.terminate()
        eq(closed(idle), b"")
        closed(stream)
        eq(s.process.wait(timeout=30), 0, "exit status")
        try:
            s.connect()
            raise AssertionError("still listening")
        except ConnectionRefusedError:
            pass


run()
