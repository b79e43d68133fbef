#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd on a store in Redis: what clients do, a Redis that goes and comes, one that comes late.

usage: test_redis.py HUTCHD
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from tap import eq, has, run, skip, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
PASSWORD = "a-password-of-redis"


class Redis:
    """A redis-server on a unix socket, every write on disk before it is acknowledged."""

    def __init__(self, start=True):
        if not shutil.which("redis-server"):
            skip("there is no redis-server")
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self.folder = self._folder.name
        self.socket = f"{self.folder}/socket"
        with open(f"{self.folder}/redis.conf", "w", encoding="ascii") as f:
            f.write(f"port 0\nunixsocket {self.socket}\ndir {self.folder}\nsave \"\"\nappendonly yes\n"
                    f"appendfsync always\nrequirepass {PASSWORD}\n")
        with open(os.open(f"{self.folder}/password", os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as f:
            f.write(PASSWORD + "\n")
        self.process = None
        if start:
            self.start()

    def start(self):
        self.process = subprocess.Popen(["redis-server", f"{self.folder}/redis.conf"],
                                        stdout=subprocess.PIPE, text=True)
        while "eady to accept" not in (line := self.process.stdout.readline()):
            assert line, "redis-server did not start"

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._folder.cleanup()

    def config(self, wait="5s"):
        return (f"driver: fake\nstore:\n  kind: redis\n  address: unix:{self.socket}\n"
                f"  password_file: {self.folder}/password\n  database: 2\n  wait: {wait}\n")


def create(h):
    return h.call("POST", "/v1/sandboxes", h.wish())


@test
def clients_see_no_difference():
    """create, list, get, delete; a hutchd that is killed finds everything again"""
    with Redis() as redis, Hutchd(program, config=redis.config()) as h:
        made = [create(h) for _ in range(3)]
        eq([m.status for m in made], [202] * 3, made[0].body)
        ids = sorted(m.json["id"] for m in made)
        eq(sorted(i["id"] for i in h.call("GET", "/v1/sandboxes").json["items"]), ids)
        eq(h.call("DELETE", f"/v1/sandboxes/{ids[0]}").status, 204)
        eq(h.state(ids[1]), "Running")
        h.kill()
        h.drain_manager()
        h.start()
        # The driver has lost them with the process; the store knows that they were there.
        has(h.log(), "2 gone")
        assert not os.path.exists(f"{h.data}/store.sqlite")
        assert PASSWORD not in h.log(), "the password is in the log"


@test
def a_redis_that_is_away_is_a_503():
    """nothing is lost when it comes back"""
    with Redis() as redis, Hutchd(program, config=redis.config("200ms")) as h:
        made = create(h)
        eq(made.status, 202, made.body)
        redis.kill()
        refused = create(h)
        eq(refused.status, 503, refused.body)
        has(str(refused.body), "Redis at unix:")
        has(h.log(), "no connection to Redis")
        redis.start()
        while (again := create(h)).status == 503:
            pass
        eq(again.status, 202, again.body)
        eq(h.call("GET", f"/v1/sandboxes/{made.json['id']}").status, 200)
        has(h.log(), "connected to Redis again")


@test
def a_redis_that_comes_late_is_waited_for():
    with Redis(start=False) as redis:
        class Late(Hutchd):
            """Starts Redis once hutchd has said that it waits."""

            def start(self):
                thread = threading.Thread(target=self.watch)
                thread.start()
                super().start()
                thread.join()

            def watch(self):
                while b"waiting for the store" not in self.manager.recv(4096):
                    pass
                redis.start()

        with Late(program, config=redis.config("200ms")) as h:
            has(h.log(), "the start waits for it")
            eq(create(h).status, 202)


@test
def configurations_are_checked():
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            ("store: {kind: redis, address: 127.0.0.1:6379}", None),
            ("store: {kind: sqlite}", None),
            ("store: {kind: redis}", "needs store.address"),
            ("store: {kind: mongo}", "expected sqlite, redis or nats"),
            ("store: {address: 127.0.0.1:6379}", "only a store of kind redis"),
            ("store: {kind: redis, address: 'rediss://127.0.0.1:6379'}", "TLS to Redis is not supported"),
            ("store: {kind: redis, address: redis.example.org:6379}", "names are not looked up"),
            ("store: {kind: redis, address: 127.0.0.1:6379, database: 9999}", "0 to 1023"),
            ("store: {kind: redis, address: 127.0.0.1:6379, wait: 1ms}", "100ms to 1h"),
            ("store: {kind: redis, address: 127.0.0.1:6379, user: x}", "needs store.password_file"),
            ("store: {kind: redis, address: 127.0.0.1:6379, password: x}", "unknown key"),
        ]
        for text, wrong in rows:
            with open(f"{folder}/c.yaml", "w", encoding="ascii") as f:
                f.write(text + "\n")
            p = subprocess.run([program, "--config", f"{folder}/c.yaml", "--data", f"{folder}/data",
                                "--check-config"], capture_output=True, text=True, timeout=30)
            eq(p.returncode == 0, wrong is None, f"{text}: {p.stderr}")
            has(p.stderr, wrong or "")


run()
