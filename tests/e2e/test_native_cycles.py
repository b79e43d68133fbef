#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many create and delete cycles of native sandboxes leave nothing behind.

Clients create sandboxes, run a command, write and read a file, and delete them, as fast as they can. There
are hardly more uids than sandboxes at a time, so one that is not given back shows as a create that fails.

usage: test_native_cycles.py HUTCHD [CYCLES]
"""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import Response, Connection  # noqa: E402
from hutchd import create_request_of  # noqa: E402
from native_apart import Apart, needs_native  # noqa: E402
from tap import diag, eq, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
cycles = int(sys.argv[2]) if len(sys.argv) > 2 else 120
CLIENTS, ZYGOTES = 4, 4


class Client(threading.Thread):
    """One sandbox after the other, on a connection of its own."""

    def __init__(self, hutchd, number, count):
        super().__init__()
        self.connection = Connection(hutchd.socket)
        self.number, self.count = number, count
        self.failure = None

    def call(self, method, path, body=None, status=200, **headers):
        sent = {"Host": "localhost", **headers}
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body), "application/json"
        self.connection.request(method, path, body, sent)
        reply = Response(self.connection.getresponse())
        eq(reply.status, status, f"{method} {path}: {reply.body!r}")
        return reply

    def live(self, i):
        network = ("none", "private")[i % 2]
        made = self.call("POST", "/v1/sandboxes",
                         create_request_of(image={"uri": "host"}, extensions={"hutch.network": network}), 202)
        inside = f"/v1/sandboxes/{made.json['id']}/proxy/44772"
        said = self.call("POST", f"{inside}/command", {"command": f"echo {i} > f; cat f; id -u"}).body
        assert f'"text":"{i}"'.encode() in said and b'"text":"0"' in said, said
        eq(self.call("GET", f"{inside}/files/download?path=/workspace/f").body, f"{i}\n".encode())
        self.call("DELETE", f"/v1/sandboxes/{made.json['id']}", status=204)

    def run(self):
        try:
            for i in range(self.count):
                self.live(i)
        except Exception as e:          # pylint: disable=broad-except
            self.failure = e
        finally:
            self.connection.close()


def run_clients(hutchd, count):
    clients = [Client(hutchd, n, count // CLIENTS) for n in range(CLIENTS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    for c in clients:
        if c.failure:
            raise c.failure


@test
@needs_native
def many_cycles_leave_nothing():
    # Those of the pool, of the living, and of those that are taken away at the same time.
    with Apart(program, zygotes=ZYGOTES, uids=ZYGOTES + 4 * CLIENTS, network="private") as h:
        run_clients(h, 3 * CLIENTS)         # what is made once is there
        before = h.leftovers()
        run_clients(h, cycles)
        before.wait_for_no_more()
        eq(h.list(), [])
        diag(f"{cycles} cycles, then {before.before}")


run()
