# SPDX-License-Identifier: Apache-2.0
"""hutchd with sandboxes that are containers of an engine of the test's own.

    kind, programs, build_dir = arguments()
    with engine(kind, build_dir) as e, EngineHutchd(programs, e) as h:
        sandbox = h.create()
        h.output(sandbox, "id -u")              "0"
        h.containers()                      {id: the engine's summary}
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import sys
import time
from urllib.parse import quote

from engine import Engine, why_not
from execd import Response, Connection, events
from hutchd import Hutchd
from installed import CannotInstall, leave

CREATE_REQUEST = {"image": {"uri": "debian:12"}, "timeout": 600, "entrypoint": ["sleep", "100000"],
        "resourceLimits": {"cpu": "1", "memory": "128Mi"}}
TIMEOUT = 60


def arguments():
    """KIND HUTCHD HUTCH_EXECD BUILD_DIR, of the command line."""
    kind, program, agent, build_dir = sys.argv[1:5]
    del sys.argv[1:5]
    return kind, (os.path.abspath(program), os.path.abspath(agent)), os.path.abspath(build_dir)


@contextlib.contextmanager
def engine(kind, build_dir, *options):
    """One that runs; or the whole program is skipped, if there can be none here."""
    if reason := why_not(kind):
        leave(reason)
    try:
        e = Engine(kind, build_dir, *options)
    except CannotInstall as reason:
        leave(f"the image can't be made: {reason}")
    with e:
        yield e


def settings(e, **more):
    """The part of a configuration that makes hutchd use this engine."""
    return {"driver": e.kind, e.kind: {"socket": e.socket, **more}}


class EngineHutchd(Hutchd):
    def __init__(self, programs, e, *arguments_of, setting=None, config_more=None, **more):
        """setting: of the engine; config_more: of hutchd, None takes a key away."""
        program, agent = programs
        self.engine = e
        config = {"agent": agent, **settings(e, **(setting or {})), **(config_more or {})}
        config = {k: v for k, v in config.items() if v is not None}
        super().__init__(program, *arguments_of, config=json.dumps(config), **more)   # YAML, too

    def __exit__(self, *failure):
        try:
            super().__exit__(*failure)
        finally:
            with contextlib.suppress(OSError, AssertionError):
                for name in self.engine.containers(label="hutch.installation"):
                    self.engine.api("DELETE", f"/containers/{name}?force=1", good=range(600))
                for image in self.images().values():
                    self.engine.api("DELETE", f"/images/{image}?force=1", good=range(600))

    def workers(self):
        """The processes that talk to engines for it."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(child) for child in f.read().split()]

    def kill_all(self):
        """kill -9 of it and of its workers, at this instruction."""
        for pid in [self.process.pid, *self.workers()]:
            os.kill(pid, signal.SIGKILL)
        self.kill()

    def create_async(self, **create_request):
        """An answer, whatever it is; on a connection of its own, for many at once."""
        connection = Connection(self.socket, TIMEOUT)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/sandboxes", json.dumps({**CREATE_REQUEST, **create_request}),
                               {"Host": "localhost", "Content-Type": "application/json"})
            return Response(connection.getresponse())

    def create(self, **create_request):
        """The id of one that runs."""
        reply = self.create_async(**create_request)
        assert reply.status == 202, f"create: {reply.status} {reply.body!r}\n{self.log()[-4000:]}"
        return reply.json["id"]

    def create_many(self, number, **create_request):
        """Answers to as many creates at once; of one that got none, the exception."""
        def one(_):
            try:
                return self.create_async(**create_request)
            except (OSError, EOFError, ValueError) as e:
                return e
            except Exception as e:          # pylint: disable=broad-except
                return e                    # http.client's, when hutchd was killed
        with concurrent.futures.ThreadPoolExecutor(number) as pool:
            return list(pool.map(one, range(number)))

    def delete(self, sandbox):
        reply = self.call("DELETE", f"/v1/sandboxes/{sandbox}")
        assert reply.status == 204, reply.body

    def run(self, sandbox, command, **options):
        """The events of a command."""
        reply = self.inside(sandbox, "POST", "/command", {"command": command, **options})
        assert reply.status == 200, f"{command}: {reply.status} {reply.body!r}"
        return events(reply.body)

    def output(self, sandbox, command, **options):
        """What it printed on either stream."""
        found = self.run(sandbox, command, **options)
        return "\n".join(e["text"] for e in found if e["type"] in ("stdout", "stderr"))

    def status(self, sandbox):
        return self.call("GET", f"/v1/sandboxes/{sandbox}").json["status"]

    def listed(self):
        """States of all that are listed, by id."""
        found, page = {}, 1
        while True:
            reply = self.call("GET", f"/v1/sandboxes?page={page}&pageSize=100")
            assert reply.status == 200, reply.body
            found |= {i["id"]: i["status"]["state"] for i in reply.json["items"]}
            if not reply.json["pagination"]["hasNextPage"]:
                return found
            page += 1

    def keep(self, sandbox, **create_request):
        """The id of a snapshot that is being created."""
        reply = self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", create_request)
        assert reply.status == 202, reply.body
        assert reply.headers["Location"] == f"/v1/snapshots/{reply.json['id']}", reply.headers
        return reply.json["id"]

    def kept(self, snapshot):
        """Its state, when it is clear; how soon is the engine's business."""
        until = time.monotonic() + TIMEOUT
        while True:
            reply = self.call("GET", f"/v1/snapshots/{snapshot}")
            assert reply.status == 200, reply.body
            if reply.json["status"]["state"] != "Creating":
                return reply.json["status"]["state"]
            assert time.monotonic() < until, f"still: {reply.body!r}\n{self.log()[-3000:]}"

    def images(self):
        """Images of snapshots, of all installations, and what is on its way to be one: ids by tag."""
        query = quote(json.dumps({"label": ["hutch.snapshot.installation"]}))
        found = self.engine.api("GET", f"/images/json?filters={query}").json
        return {(i["RepoTags"] or ["-"])[0]: i["Id"] for i in found}

    def installation(self):
        """Its id, as it is in labels."""
        sandbox = self.create()
        found = self.container(sandbox)["Config"]["Labels"]["hutch.installation"]
        self.delete(sandbox)
        return found

    def containers(self):
        """Of all installations: the engine's summaries by the sandbox's id."""
        return {c["Labels"]["hutch.sandbox"]: c
                for c in self.engine.containers(label="hutch.installation").values()}

    def container(self, sandbox):
        """All that the engine knows about it."""
        return self.engine.api("GET", f"/containers/{self.containers()[sandbox]['Id']}/json").json
