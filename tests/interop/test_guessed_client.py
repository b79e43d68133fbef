#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that was written against a guess of the API, and is in use.

usage: test_guessed_client.py HUTCHD_DIRECT HUTCH_EXECD

An early Go client: snake_case around camelCase, times and addresses read under names of its own, no
headers for the agent, multipart parts without filenames, exit codes of commands under a name that
the published API does not have. Here are the bytes that it sends, and what it reads.
"""

import json
import os
import sys
from datetime import datetime
from urllib.parse import quote, urlsplit

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
import http.client  # noqa: E402

from deployment import Deployment  # noqa: E402
from tap import eq, run, test  # noqa: E402

programs = sys.argv[1:3]


class Client:
    """Go's JSON has no spaces, its headers are those below."""

    def __init__(self, hutchd, key):
        self.base = f"http://{hutchd.domain}/v1"
        self.key = key
        self.agent = None

    def send(self, method, url, want, body=None, headers=None):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, {"User-Agent": "Go-http-client/1.1",
                                                  "Accept-Encoding": "gzip", **(headers or {})})
        response = connection.getresponse()
        data = response.read()
        assert response.status in want, (method, url, response.status, data)
        return data

    def lifecycle(self, method, path, want, document=None):
        body = None if document is None else json.dumps(document, separators=(",", ":")).encode()
        data = self.send(method, self.base + path, [want], body, {
            "OPEN-SANDBOX-API-KEY": self.key or "", "Content-Type": "application/json"})
        return json.loads(data) if data else None

    def discover(self, sandbox):
        self.agent = self.lifecycle("GET", f"/sandboxes/{sandbox}/endpoints/44772", 200)["url"]

    def command(self, command, cwd="", timeout=0):
        body = json.dumps({"command": command, "cwd": cwd, "background": False,
                           "timeout": timeout}).encode()
        data = self.send("POST", f"{self.agent}/command", [200], body,
                         {"Content-Type": "application/json"})
        out, err, code, problem = "", "", 0, ""
        for block in data.decode().split("\n\n"):
            block = block.removeprefix("data:").strip()
            if not block:
                continue
            event = json.loads(block)
            # At first it knew only `data`, and so saw no output of any server; later `text`, too.
            if event["type"] == "stdout":
                out += event.get("data") or event["text"]
            elif event["type"] == "stderr":
                err += event.get("data") or event["text"]
            elif event["type"] == "execution_complete":
                code = event.get("exitCode", 0)
                assert isinstance(event.get("durationMs", 0), int)
            elif event["type"] == "error":
                problem = event["error"]["evalue"]
        return out, err, code, problem

    def upload(self, files):
        """Parts are plain form fields; modes are numbers, not digits: 0o644 is 420, taken as 0420."""
        boundary = "5d3a1f0c"
        body = b""
        for path, content, mode in files:
            metadata = json.dumps({"path": path, "mode": mode}, separators=(",", ":"))
            for name, value in [("metadata", metadata.encode()), ("file", content)]:
                body += (f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
                         ).encode() + value + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        self.send("POST", f"{self.agent}/files/upload", [200, 201, 204], body,
                  {"Content-Type": f"multipart/form-data; boundary={boundary}"})


def rfc3339(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def scenario(hutchd, key):
    c = Client(hutchd, key)
    made = c.lifecycle("POST", "/sandboxes", 202, {
        "image": {"uri": "python:3.11"}, "timeout": 120,
        "resource_limits": {"cpu": "500m", "memory": "256Mi"},
        "entrypoint": ["sleep", "3600"], "env": {"SKILL": "a b"},
        "metadata": {"tenant": "t1", "skill": "s1"}})
    sandbox = made["id"]
    eq(made["metadata"], {"tenant": "t1", "skill": "s1"})
    eq((rfc3339(made["expires_at"]) - rfc3339(made["created_at"])).total_seconds() // 1, 120)
    got = c.lifecycle("GET", f"/sandboxes/{sandbox}", 200)
    eq((got["id"], got["status"]["state"], got["expires_at"]),
       (sandbox, "Running", made["expires_at"]))

    # The filter: one parameter for each pair. What it wants back, a bare array, no official SDK
    # could read; so only the filter is shown.
    pairs = "&".join("metadata=" + quote(p) for p in ["tenant=t1", "skill=s1"])
    eq([i["id"] for i in c.lifecycle("GET", f"/sandboxes?{pairs}", 200)["items"]], [sandbox])
    eq(c.lifecycle("GET", f"/sandboxes?{pairs}2", 200)["items"], [])

    c.discover(sandbox)
    c.send("GET", f"{c.agent}/ping", [200])
    eq(c.command("echo one; echo two >&2; echo \"$SKILL\"")[:3], ("onea b", "two", 0))
    where = c.command("pwd")[0]
    c.upload([(f"{where}/in/script.sh", b"exit 5\n", 0o644), (f"{where}/in/empty", b"", 0o644)])
    found = json.loads(c.send("GET", f"{c.agent}/files/search?path={quote(where)}%2Fin&pattern=%2A",
                              [200]))
    eq(sorted((f["path"], f["size"]) for f in found),
       [(f"{where}/in/empty", 0), (f"{where}/in/script.sh", 7)])
    assert all(rfc3339(f["modified_at"]) for f in found)
    eq(c.send("GET", f"{c.agent}/files/download?path={quote(where)}%2Fin%2Fscript.sh", [200]),
       b"exit 5\n")
    eq(c.command("sh in/script.sh", where, 30000)[3], "5", "a failing command does not look like success")
    c.lifecycle("DELETE", f"/sandboxes/{sandbox}", 204)
    c.lifecycle("GET", f"/sandboxes/{sandbox}", 404)


@test
def without_keys():
    """the whole way, without keys"""
    with Deployment(programs) as h:
        scenario(h, None)


@test
def with_keys():
    """the whole way, with a key for the API and none for the agent"""
    with Deployment(programs, keys={"user": ("acme", "user"), "admin": ("ops", "admin")}) as h:
        scenario(h, h.keys["user"])


run()
