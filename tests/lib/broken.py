# SPDX-License-Identifier: Apache-2.0
"""A server that answers with whatever it is told to, byte for byte.

    with BrokenServer({"half": [b"HTTP/1.1 200 OK\\r\\nConte"]}) as s:
        s.url("half")           # every request below it gets these bytes, then the connection is closed

An answer is a list of steps, each of them bytes to send or one of the objects below. The first segment of
the path chooses the answer, so one client can meet all of them. Every request is written down.

A path that begins with /via:NAME/ is that of a server whose lifecycle calls are in order, and whose
agents have the answer NAME.
"""

import json
import re
import select
import socket
import struct
import threading


class Hold:
    """Says nothing more until the client goes away."""


class Reset:
    """Ends the connection as a crash does."""


class KeepOpen:
    """The answer is complete; the connection stays for the next request."""


class Drip:
    """Sends one byte each so many seconds."""

    def __init__(self, data, seconds=0.05):
        self.data, self.seconds = data, seconds


class Endless:
    """Sends the same again and again until the client goes away."""

    def __init__(self, data):
        self.data = data * max(1, 65536 // len(data))


def reply(body=b"", status="200 OK", kind="application/json", headers=(), length=None):
    """A well-formed answer, as far as its arguments are."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}",
             f"Content-Length: {len(body) if length is None else length}", "X-Request-ID: req-broken",
             *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def streaming(*events, status="200 OK", kind="text/event-stream"):
    """A head, and one chunk for each piece; without the last chunk, so the stream goes on."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(map(chunk, events))


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


class Request:
    def __init__(self, head, body):
        line, *rest = head.decode("latin-1").split("\r\n")
        self.method, self.target = line.split(" ")[:2]
        self.headers = {k.lower(): v for k, v in (h.split(": ", 1) for h in rest if ": " in h)}
        self.body = body

    def __repr__(self):
        return f"{self.method} {self.target}"


class BrokenServer:
    def __init__(self, replies):
        self.replies, self.requests, self.lock = dict(replies), [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)    # which close alone does not, as long as one accepts
        self.thread.join()
        self.listener.close()

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def seen(self):
        """The requests since it was asked last."""
        with self.lock:
            seen, self.requests = self.requests, []
        return seen

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while self._serve_one(connection):
                    pass
            except OSError:
                pass            # the client went away, as it should

    def _serve_one(self, connection):
        request = read_request(connection)
        if not request:
            return False
        with self.lock:
            self.requests.append(request)
        steps = self._steps(request)
        for step in steps:
            if isinstance(step, KeepOpen):
                return True
            play(connection, step)
        # An answer without a length ends here; what the client still sends must not become a reset.
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
        return False

    def _steps(self, request):
        name = request.target.split("/")[1].partition("?")[0]
        if name.startswith("via:"):
            return self._orderly(request, name.removeprefix("via:"))
        steps = self.replies.get(name)
        if callable(steps):
            steps = steps(request)
        return steps if steps is not None else [reply({"code": "NO_SUCH_CASE", "message": name}, "404 N")]

    def _orderly(self, request, name):
        sandbox = {"id": "box-1", "status": {"state": "Running"}, "createdAt": "2026-01-02T03:04:05Z",
                   "metadata": {}, "entrypoint": ["sleep"], "image": {"uri": "i"}}
        if re.search(r"/endpoints/\d+", request.target):
            return [reply({"endpoint": f"127.0.0.1:{self.port}/{name}",
                            "headers": {"X-EXECD-ACCESS-TOKEN": "box-token"}}), KeepOpen()]
        if request.method == "DELETE":
            return [b"HTTP/1.1 204 No Content\r\n\r\n", KeepOpen()]
        if request.method == "POST":
            return [reply(sandbox, "202 Accepted"), KeepOpen()]
        return [reply(sandbox), KeepOpen()]


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    request = Request(head, body)
    if request.headers.get("expect") == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if request.headers.get("transfer-encoding") == "chunked":
        while not body.endswith(LAST_CHUNK):
            body += connection.recv(65536)
    length = int(request.headers.get("content-length", 0))
    while len(body) < length:
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    request.body = body
    return request


def play(connection, step):
    if isinstance(step, bytes):
        connection.sendall(step)
    elif isinstance(step, Drip):
        for byte in step.data:
            connection.sendall(bytes([byte]))
            if select.select([connection], [], [], step.seconds)[0]:
                raise ConnectionAbortedError
    elif isinstance(step, Endless):
        while True:
            connection.sendall(step.data)
    elif isinstance(step, Hold):
        connection.recv(1)
        raise ConnectionAbortedError
    elif isinstance(step, Reset):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        raise ConnectionAbortedError
    else:
        raise TypeError(step)
