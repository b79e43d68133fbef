# SPDX-License-Identifier: Apache-2.0
"""Starts a program that says "NAME: listening on ADDRESS" and ends it again.

    with Server(program, "127.0.0.1:0", directory, "-") as s:
        s.port, s.url, s.pid
"""

import os
import re
import signal
import socket
import subprocess


class Server:
    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        line = self.process.stdout.readline()       # ready when it says so, or at its end
        found = re.search(r"listening on (\S+)", line)
        if not found:
            raise RuntimeError(f"{command[0]} did not start: {line!r}, status {self.process.wait()}")
        self.address = found[1]
        self.url = self.address if self.address.startswith("http") else None
        self.port = int(self.address.rsplit(":", 1)[1]) if self.url else None
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends it with SIGTERM; returns its status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        return status

    def connect(self, timeout=20):
        if self.url:
            return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(timeout)
        s.connect(self.address.removeprefix("unix:"))
        return s

    def send_request(self, request, timeout=20):
        """Sends raw bytes and returns all that comes until the server closes."""
        with self.connect(timeout) as s:
            s.sendall(request)
            return read_all(s)

    def memory_is_ours(self):
        """False under AddressSanitizer, which keeps what was freed: sizes mean nothing then."""
        with open(f"/proc/{self.pid}/exe", "rb") as f:
            return b"__asan_init" not in f.read()

    def rss_kib(self):
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as f:
            return int(re.search(r"^Rss:\s+(\d+)", f.read(), re.M)[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def read_all(s):
    data = b""
    while chunk := s.recv(65536):
        data += chunk
    return data


def read_reply(s):
    """One answer with Content-Length from a kept connection: (head, body)."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = s.recv(65536)
        if not chunk:
            raise EOFError(f"closed after {data!r}")
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.I)
    length = int(found[1]) if found else 0
    while len(body) < length:
        chunk = s.recv(65536)
        if not chunk:
            raise EOFError(f"closed within a body of {length}")
        body += chunk
    return head, body


GET = b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n"
GET_CLOSE = b"GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
