#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd on a store in NATS: what clients do, a NATS that goes and comes, one that comes late, TLS and passwords.

usage: test_nats_store.py HUTCHD
"""

import os
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from nats_store import Nats  # noqa: E402
from store_checks import Patient, check_configurations  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])


def create(h):
    return h.call("POST", "/v1/sandboxes", h.create_request())


def helpers(h):
    """Processes that hutchd has started."""
    with open(f"/proc/{h.process.pid}/task/{h.process.pid}/children", encoding="ascii") as f:
        return [int(pid) for pid in f.read().split()]


@test
def clients_see_no_difference():
    """create, list, get, delete; a hutchd that is killed finds everything again"""
    with Nats(guarded=True) as nats, Hutchd(program, config=nats.config()) as h:
        made = [create(h) for _ in range(3)]
        eq([m.status for m in made], [202] * 3, made[0].body)
        ids = sorted(m.json["id"] for m in made)
        eq(sorted(i["id"] for i in h.call("GET", "/v1/sandboxes").json["items"]), ids)
        eq(h.call("DELETE", f"/v1/sandboxes/{ids[0]}").status, 204)
        eq(h.state(ids[1]), "Running")
        [helper] = helpers(h)
        with open(f"/proc/{helper}/cmdline", encoding="ascii") as f:
            assert "=word" not in f.read(), "the password is on the command line"
        h.kill()
        h.drain_manager()
        h.start()
        # The driver has lost them with the process; the store knows that they were there.
        has(h.log(), "2 gone")
        assert not os.path.exists(f"{h.data}/store.sqlite")


@test
def a_nats_that_is_away_is_a_503():
    """nothing is lost when it comes back"""
    with Nats() as nats, Hutchd(program, config=nats.config("300ms")) as h:
        while (made := create(h)).status == 503:
            pass
        eq(made.status, 202, made.body)
        nats.kill()
        refused = create(h)
        eq(refused.status, 503, refused.body)
        has(str(refused.body), "NATS at nats://127.0.0.1")
        has(h.log(), "no store connection")
        nats.start()
        while (again := create(h)).status == 503:
            pass
        eq(again.status, 202, again.body)
        eq(h.call("GET", f"/v1/sandboxes/{made.json['id']}").status, 200)
        has(h.log(), "store connection restored")


@test
def a_process_that_is_killed_is_started_anew():
    """and hutchd's end is its end"""
    with Nats() as nats, Hutchd(program, config=nats.config()) as h:
        [helper] = helpers(h)
        os.kill(helper, signal.SIGKILL)
        while (made := create(h)).status == 503:
            pass
        eq(made.status, 202, made.body)
        [helper] = helpers(h)
        pidfd = os.pidfd_open(helper)
        h.kill()
        # Readable once the process has ended: who waits here for ever would be told by the test's time limit.
        select.select([pidfd], [], [])
        os.close(pidfd)
        h.drain_manager()
        h.start()


@test
def a_nats_that_comes_late_is_waited_for():
    with Nats(start=False) as nats:
        with Patient(program, nats.start, config=nats.config("200ms")) as h:
            has(h.log(), "store unreachable, waiting for it")
            while (made := create(h)).status == 503:
                pass
            eq(made.status, 202, made.body)


@test
def configurations_are_checked():
    url = "url: 'nats://127.0.0.1:4222'"
    rows = [
        ("store: {kind: nats, %s}" % url, None),
        ("store: {kind: nats, url: 'tls://a.example.org,tls://[::1]:4223', bucket: b-1, replicas: 3, "
         "ca_file: /ca, cert_file: /c, key_file: /k, credentials_file: /creds, wait: 10s}", None),
        ("store: {kind: nats}", "needs store.url"),
        ("store: {kind: nats, url: 'nats://u:word@a'}", "must not hold a name or password"),
        ("store: {kind: nats, url: 'http://a'}", "expected URLs such as"),
        ("store: {kind: nats, %s, bucket: a.b}" % url, "letters, digits"),
        ("store: {kind: nats, %s, replicas: 6}" % url, "1 to 5"),
        ("store: {kind: nats, %s, address: 127.0.0.1:1}" % url, "only a store of kind redis"),
        ("store: {kind: redis, address: 127.0.0.1:1, bucket: b}", "only a store of kind nats"),
        ("store: {wait: 5s}", "only stores of kind redis and nats"),
        ("store: {kind: nats, %s, user: u}" % url, "needs store.password_file"),
        ("store: {kind: nats, %s, password_file: /p}" % url, "needs store.user"),
        ("store: {kind: nats, %s, token_file: /t, credentials_file: /c}" % url, "exclude each other"),
        ("store: {kind: nats, %s, ca_file: /ca}" % url, "expected tls://"),
        ("store: {kind: nats, url: 'tls://a', cert_file: /c}", "need each other"),
        ("store: {kind: nats, %s, password: x}" % url, "unknown key"),
    ]
    check_configurations(program, rows)


@test
def secrets_that_others_may_read_are_refused():
    with Nats(start=False) as nats:
        os.chmod(f"{nats.directory}/password", 0o644)
        with open(f"{nats.directory}/c.yaml", "w", encoding="ascii") as f:
            f.write(f"store:\n  kind: nats\n  url: {nats.server.url}\n  user: u\n"
                    f"  password_file: {nats.directory}/password\n")
        p = subprocess.run([program, "--config", f"{nats.directory}/c.yaml", "--data", f"{nats.directory}/data"],
                           capture_output=True, text=True, timeout=30)
        eq(p.returncode, 1)
        has(p.stderr, "others may read it")


run()
