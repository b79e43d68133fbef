#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd on a store in Redis: what clients do, a Redis that goes and comes, one that comes late.

usage: test_redis.py HUTCHD
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from redis_server import PASSWORD, Redis  # noqa: E402
from store_checks import Patient, check_configurations  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])


def create(h):
    return h.call("POST", "/v1/sandboxes", h.create_request())


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
        has(h.log(), "no store connection")
        redis.start()
        while (again := create(h)).status == 503:
            pass
        eq(again.status, 202, again.body)
        eq(h.call("GET", f"/v1/sandboxes/{made.json['id']}").status, 200)
        has(h.log(), "store connection restored")


@test
def a_redis_that_comes_late_is_waited_for():
    with Redis(start=False) as redis:
        with Patient(program, redis.start, config=redis.config("200ms")) as h:
            has(h.log(), "store unreachable, waiting for it")
            eq(create(h).status, 202)


@test
def configurations_are_checked():
    rows = [
        ("store: {kind: redis, address: 127.0.0.1:6379}", None),
        ("store: {kind: sqlite}", None),
        ("store: {kind: redis}", "needs store.address"),
        ("store: {kind: mongo}", "expected sqlite, redis or nats"),
        ("store: {address: 127.0.0.1:6379}", "only a store of kind redis"),
        ("store: {kind: redis, address: 'rediss://127.0.0.1:6379'}", "TLS to Redis is not supported"),
        ("store: {kind: redis, address: redis.example.org:6379}", "host names are not resolved"),
        ("store: {kind: redis, address: 127.0.0.1:6379, database: 9999}", "0 to 1023"),
        ("store: {kind: redis, address: 127.0.0.1:6379, wait: 1ms}", "100ms to 1h"),
        ("store: {kind: redis, address: 127.0.0.1:6379, user: x}", "needs store.password_file"),
        ("store: {kind: redis, address: 127.0.0.1:6379, password: x}", "unknown key"),
    ]
    check_configurations(program, rows)


run()
