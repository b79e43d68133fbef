# SPDX-License-Identifier: Apache-2.0
"""A real hutchd, and a client of it.

    with Deployment(programs, keys={"user": ("acme", "user")}) as d:
        sandbox = d.create(key="user")
        d.call("GET", f"/v1/sandboxes/{sandbox['id']}", key="user").status

Without keys it is open to everyone on this host. Unless the settings say otherwise its driver is
`direct`: the real agent as a plain process, not isolated at all, which no hutchd that is installed has.
It listens on TCP, for clients that know nothing else.
"""

import contextlib
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import sqlite3
import tempfile

from hutchd import Hutchd
from server import Server
from tap import scaled

AGENT_PORT = 44772
CREATE_REQUEST = {"image": {"uri": "python:3.11"}, "timeout": 300, "entrypoint": ["tail", "-f", "/dev/null"],
        "resourceLimits": {"cpu": "500m", "memory": "256Mi"}}


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Deployment(Hutchd):
    """programs: hutchd (for the driver `direct`: hutchd-direct), hutch-execd; keys: name -> (tenant,
    role); settings: as in a configuration file."""

    client = ()         # what programs that are to reach it are started by
    scenario = {}       # variables for these

    def __init__(self, programs, keys=None, settings=None):
        program, agent = programs
        self.keys = {name: "hutch_" + secrets.token_hex(16) for name in keys or {}}
        config = {"keys": [{"name": name, "key": self.keys[name], "tenant": tenant,
                            "principal": name, "role": role}
                           for name, (tenant, role) in (keys or {}).items()]} if keys else {}
        self.port = None
        config = {"agent": os.path.abspath(agent), "driver": "direct", **config, **(settings or {})}
        super().__init__(program, "--listen", "127.0.0.1:0",
                         config=json.dumps(config),     # which is YAML, too
                         env={"HUTCH_TEST_DIRECT": "1"})

    def start(self, **popen):
        super().start(**popen)
        line = self.process.stdout.readline()       # of the second address
        self.port = int(re.search(r"listening on http://127.0.0.1:(\d+)", line)[1])
        self.domain = f"127.0.0.1:{self.port}"
        self.pid = self.process.pid

    def connect(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout=scaled(timeout))

    def open(self, method, path, body=None, key=None, headers=None, timeout=60):
        """Sends a request; the connection and its response, whose body was not read."""
        sent = dict(headers or {})
        if key is not None:
            sent["OPEN-SANDBOX-API-KEY"] = self.keys.get(key, key)
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=scaled(timeout))
        connection.request(method, path, body, sent)
        return connection, connection.getresponse()

    def call(self, *arguments, **named):
        connection, response = self.open(*arguments, **named)
        try:
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    def create(self, key=None, **create_request):
        reply = self.call("POST", "/v1/sandboxes", {**CREATE_REQUEST, **create_request}, key=key)
        assert reply.status == 202, reply
        assert reply.json["status"]["state"] == "Running", reply
        return reply.json

    def endpoint(self, sandbox, port=AGENT_PORT, key=None):
        reply = self.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/{port}", key=key)
        assert reply.status == 200, reply
        return reply.json

    def run(self, sandbox, command, key=None, **options):
        """The events of a command in a sandbox."""
        reply = self.call("POST", f"/v1/sandboxes/{sandbox}/proxy/{AGENT_PORT}/command",
                           {"command": command, **options}, key=key)
        assert reply.status == 200, reply
        return [json.loads(e) for e in reply.body.decode().split("\n\n") if e]

    def run_until(self, sandbox, command, pattern, key=None):
        """Starts a command in the background; what its output matches first, and its id."""
        events = self.run(sandbox, command, key, background=True)
        name = next(e["text"] for e in events if e["type"] == "init")
        connection, response = self.open(
            "GET", f"/v1/sandboxes/{sandbox}/proxy/{AGENT_PORT}/command/{name}/logs?follow=true",
            key=key)
        said = ""
        with connection.sock or response:
            while piece := response.read1():
                said += piece.decode()
                if found := re.search(pattern, said):
                    return found[1], name
        raise AssertionError(f"ended with {said!r}")

    memory_is_ours = Server.memory_is_ours
    rss_kib = Server.rss_kib

    def stored(self):
        """All keys in the store. hutchd keeps it locked, so a copy is read."""
        names = [os.path.join(d, n) for d, _, ns in os.walk(self.data) for n in ns
                 if re.search(r"\.(db|sqlite3?)$", n)]
        assert len(names) == 1, names
        with tempfile.TemporaryDirectory() as directory:
            for suffix in ["", "-wal"]:
                if os.path.exists(names[0] + suffix):
                    shutil.copy(names[0] + suffix, f"{directory}/copy{suffix}")
            with contextlib.closing(sqlite3.connect(f"{directory}/copy")) as db:
                tables = [r[0] for r in
                          db.execute("select name from sqlite_master where type='table'")]
                return sorted((t, str(r[0])) for t in tables for r in
                              db.execute(f"select * from {t}"))
