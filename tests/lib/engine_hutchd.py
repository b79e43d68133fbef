# SPDX-License-Identifier: Apache-2.0
"""hutchd with sandboxes that are containers of an engine of the test's own.

    kind, programs, build_dir = arguments()
    with engine(kind, build_dir) as e, EngineHutchd(programs, e) as h:
        box = h.create()
        h.output(box, "id -u")              "0"
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
from execd import Answer, Connection, events
from hutchd import Hutchd
from installed import CannotInstall, leave

CREATE_REQUEST = {"image": {"uri": "debian:12"}, "timeout": 600, "entrypoint": ["sleep", "100000"],
        "resourceLimits": {"cpu": "1", "memory": "128Mi"}}
PATIENCE = 60


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

    def ask_create(self, **create_request):
        """An answer, whatever it is; on a connection of its own, for many at once."""
        connection = Connection(self.socket, PATIENCE)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/sandboxes", json.dumps({**CREATE_REQUEST, **create_request}),
                               {"Host": "localhost", "Content-Type": "application/json"})
            return Answer(connection.getresponse())

    def create(self, **create_request):
        """The id of one that runs."""
        answer = self.ask_create(**create_request)
        assert answer.status == 202, f"create: {answer.status} {answer.body!r}\n{self.log()[-4000:]}"
        return answer.json["id"]

    def create_many(self, number, **create_request):
        """Answers to as many creates at once; of one that got none, the exception."""
        def one(_):
            try:
                return self.ask_create(**create_request)
            except (OSError, EOFError, ValueError) as e:
                return e
            except Exception as e:          # pylint: disable=broad-except
                return e                    # http.client's, when hutchd was killed
        with concurrent.futures.ThreadPoolExecutor(number) as pool:
            return list(pool.map(one, range(number)))

    def delete(self, box):
        answer = self.call("DELETE", f"/v1/sandboxes/{box}")
        assert answer.status == 204, answer.body

    def run(self, box, command, **options):
        """The events of a command."""
        answer = self.inside(box, "POST", "/command", {"command": command, **options})
        assert answer.status == 200, f"{command}: {answer.status} {answer.body!r}"
        return events(answer.body)

    def output(self, box, command, **options):
        """What it printed on either stream."""
        found = self.run(box, command, **options)
        return "\n".join(e["text"] for e in found if e["type"] in ("stdout", "stderr"))

    def status(self, box):
        return self.call("GET", f"/v1/sandboxes/{box}").json["status"]

    def listed(self):
        """States of all that are listed, by id."""
        found, page = {}, 1
        while True:
            answer = self.call("GET", f"/v1/sandboxes?page={page}&pageSize=100")
            assert answer.status == 200, answer.body
            found |= {i["id"]: i["status"]["state"] for i in answer.json["items"]}
            if not answer.json["pagination"]["hasNextPage"]:
                return found
            page += 1

    def keep(self, box, **create_request):
        """The id of a snapshot that is being created."""
        answer = self.call("POST", f"/v1/sandboxes/{box}/snapshots", create_request)
        assert answer.status == 202, answer.body
        assert answer.headers["Location"] == f"/v1/snapshots/{answer.json['id']}", answer.headers
        return answer.json["id"]

    def kept(self, snapshot):
        """Its state, when it is clear; how soon is the engine's business."""
        until = time.monotonic() + PATIENCE
        while True:
            answer = self.call("GET", f"/v1/snapshots/{snapshot}")
            assert answer.status == 200, answer.body
            if answer.json["status"]["state"] != "Creating":
                return answer.json["status"]["state"]
            assert time.monotonic() < until, f"still: {answer.body!r}\n{self.log()[-3000:]}"

    def images(self):
        """Images of snapshots, of all installations, and what is on its way to be one: ids by tag."""
        query = quote(json.dumps({"label": ["hutch.snapshot.installation"]}))
        found = self.engine.api("GET", f"/images/json?filters={query}").json
        return {(i["RepoTags"] or ["-"])[0]: i["Id"] for i in found}

    def installation(self):
        """Its id, as it is in labels."""
        box = self.create()
        found = self.container(box)["Config"]["Labels"]["hutch.installation"]
        self.delete(box)
        return found

    def containers(self):
        """Of all installations: the engine's summaries by the sandbox's id."""
        return {c["Labels"]["hutch.sandbox"]: c
                for c in self.engine.containers(label="hutch.installation").values()}

    def container(self, box):
        """All that the engine knows about it."""
        return self.engine.api("GET", f"/containers/{self.containers()[box]['Id']}/json").json
