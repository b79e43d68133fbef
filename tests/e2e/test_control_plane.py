#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutchd as a whole, with real agents: what clients do, restarts, deaths, reloads, full disks.

The driver is "direct", which is for tests: agents are plain processes below the data directory. With a third
argument it is "native", and what says something about the other driver only is left out.

usage: test_control_plane.py HUTCHD_DIRECT HUTCH_EXECD [native]
"""

import datetime
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from execd import can_unshare, events, short  # noqa: E402
from hutchd import Events, Hutchd, wait_gone, create_request_of  # noqa: E402
from native import NEEDS, Native, can_run  # noqa: E402
from tap import eq, has, run, scaled, skip, test  # noqa: E402

program, agent = map(os.path.abspath, sys.argv[1:3])
native = sys.argv[3:] == ["native"]
base = f"agent: {agent}\n" + ("" if native else "driver: direct\n")
ADMIN, USER, OTHER = "admin-0123456789abcdef", "user-0123456789abcdef", "other-0123456789abcdef"


def start(*arguments, config="", **more):
    if native and not can_run():
        skip(NEEDS)
    kind = Native if native else Hutchd
    return kind(program, *arguments, config=base + config, env={"HUTCH_TEST_DIRECT": "1"}, **more)


def of_direct(function):
    """A test that has nothing to say about native."""
    return function if native else test(function)


def keys(*names):
    """The part of a configuration that has these keys."""
    rows = {"admin": (ADMIN, "default", "admin"), "user": (USER, "acme", "user"),
            "other": (OTHER, "evil", "user")}
    return "keys:\n" + "".join(f"- {{key: {rows[n][0]}, tenant: {rows[n][1]}, role: {rows[n][2]}}}\n"
                               for n in names)


def command(h, sandbox, text):
    """Runs it through the proxy; its events."""
    reply = h.inside(sandbox, "POST", "/command", {"command": text})
    eq(reply.status, 200, reply.body)
    return short(events(reply.body))


def in_seconds(seconds):
    """A time from now, as renew takes it."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.isoformat().replace("+00:00", "Z")


def renew(h, sandbox, at):
    reply = h.call("POST", f"/v1/sandboxes/{sandbox}/renew-expiration", {"expiresAt": at})
    eq(reply.status, 200, reply.body)
    return reply.json["expiresAt"]


def live(h):
    """State and expiry of all that are listed, by id."""
    found, page = {}, 1
    while True:
        reply = h.call("GET", f"/v1/sandboxes?page={page}&pageSize=100")
        eq(reply.status, 200, reply.body)
        for item in reply.json["items"]:
            found[item["id"]] = (item["status"]["state"], item.get("expiresAt"))
        if not reply.json["pagination"]["hasNextPage"]:
            return found
        page += 1


def full_lifecycle(h):
    made = h.create(env={"GREETING": "xyzzy-hello"}, metadata={"team": "one"})
    sandbox = made["id"]
    eq(made["status"]["state"], "Running")
    eq(command(h, sandbox, 'echo "$GREETING" > note; cat note'),
       ["init", "ping", ("stdout", "xyzzy-hello"), "done"])
    reply = h.inside(sandbox, "GET", "/files/download?path=note")
    eq((reply.status, reply.body), (200, b"xyzzy-hello\n"))
    eq(h.inside(sandbox, "GET", "/files/download?path=nothing").status, 404)
    eq(h.call("PATCH", f"/v1/sandboxes/{sandbox}/metadata", {"team": "two"}).status, 200)
    listed = h.call("GET", "/v1/sandboxes?metadata=team%3Dtwo").json["items"]
    eq([x["id"] for x in listed], [sandbox])
    eq(h.call("POST", f"/v1/sandboxes/{sandbox}/pause").status, 202)
    eq(h.state(sandbox), "Paused")
    eq(h.inside(sandbox, "GET", "/ping").status, 409)
    eq(h.call("POST", f"/v1/sandboxes/{sandbox}/resume").status, 202)
    eq(command(h, sandbox, "cat note")[2], ("stdout", "xyzzy-hello"))
    assert h.processes(), "processes of the sandbox"
    eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
    eq(h.state(sandbox), 404)
    eq(h.inside(sandbox, "GET", "/ping").status, 404)
    eq(h.processes(), {}, "processes after the delete")
    eq(live(h), {})


# --- clients ---

@test
def a_sandbox_without_keys():
    """create, command, files, labels, pause, resume, delete with plain HTTP; nothing is left"""
    with start() as h:
        full_lifecycle(h)
        has(h.log(), "there is no API key")
        eq(h.stop(), 0, "exit status")


@test
def a_sandbox_with_keys():
    """the same with a key; without one, or with that of another tenant, nothing can be seen"""
    with start(config=keys("admin", "user", "other")) as h:
        h.key = USER
        full_lifecycle(h)
        sandbox = h.create()["id"]
        h.key = None
        eq(h.call("GET", f"/v1/sandboxes/{sandbox}").status, 401)
        eq(h.inside(sandbox, "GET", "/ping").status, 401)
        for path in "", "/proxy/44772/ping":
            eq(h.call("GET", f"/v1/sandboxes/{sandbox}{path}", key=OTHER).status, 404, path)
        eq(h.call("GET", "/v1/sandboxes", key=OTHER).json["items"], [])
        eq(h.call("GET", f"/v1/sandboxes/{sandbox}", key=ADMIN).status, 200)
        eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}", key=ADMIN).status, 204)


@test
def secrets_are_kept_nowhere():
    """neither values of variables nor keys, in no file and no log line"""
    with start("--log-level=debug", "--access-log", config=keys("admin")) as h:
        h.key = ADMIN
        sandbox = h.create(env={"PASSWORD": "hush-hush-hush"})["id"]
        eq(command(h, sandbox, "echo $PASSWORD")[2], ("stdout", "hush-hush-hush"))
        endpoint = h.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/44772").json
        token = endpoint["headers"]["X-EXECD-ACCESS-TOKEN"]
        eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        h.stop()
        files = [h.log_path] + [os.path.join(where, name) for where, _, names in os.walk(h.data)
                                for name in names]
        assert any(x.endswith("store.sqlite") for x in files), files
        assert any(x.endswith("audit.log") for x in files), files
        for path in filter(os.path.isfile, files):
            with open(path, "rb") as f:
                content = f.read()
            for secret in "hush-hush-hush", ADMIN, token:
                assert secret.encode() not in content, f"{secret} is in {path}"


@test
def the_audit_log_tells_who_did_what():
    with start(config=keys("user")) as h:
        h.key = USER
        sandbox = h.create()["id"]
        eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        eq(h.call("DELETE", "/v1/sandboxes/nothing").status, 404)
        h.stop()
        with open(f"{h.data}/audit.log", encoding="utf-8") as f:
            lines = [json.loads(x) for x in f]
        reported = [(x["method"], x.get("tenant"), x.get("sandbox"), x["status"]) for x in lines]
        eq(reported[1:], [("DELETE", "acme", sandbox, 204), ("DELETE", "acme", "nothing", 404)])
        eq((reported[0][:2], reported[0][3]), (("POST", "acme"), 202))


@of_direct
def without_a_driver_nothing_is_made():
    """it says so at the start, and to who asks"""
    h = Hutchd(program)
    with h:
        has(h.log(), "no driver is configured")
        reply = h.call("POST", "/v1/sandboxes", create_request_of())
        eq(reply.status, 503, reply.body)
        has(reply.json["message"], "--driver")
        eq(live(h), {})


@of_direct
def the_fake_driver_says_what_it_is():
    h = Hutchd(program, "--driver", "fake")
    with h:
        has(h.log(), "runs nothing")
        h.create()
        eq(h.processes(), {})


# --- restarts ---

def survive(gently):
    with start() as h:
        running, paused, renewed, deleted = (h.create()["id"] for _ in range(4))
        eq(command(h, running, "sleep 1000 & echo $! > pid; cat pid")[-1], "done")
        eq(h.call("POST", f"/v1/sandboxes/{paused}/pause").status, 202)
        at = renew(h, renewed, in_seconds(3000))
        eq(h.call("DELETE", f"/v1/sandboxes/{deleted}").status, 204)
        before, runs = live(h), h.processes()
        eq(before[renewed], ("Running", at))
        eq(before[paused][0], "Paused")
        eq(sorted(before), sorted([running, paused, renewed]))
        h.restart(gently)
        eq(live(h), before, "what is listed")       # by the very first answer
        eq(h.processes(), runs, "processes")
        has(h.log(), "3 adopted")
        eq(command(h, running, "kill -0 $(cat pid) && echo alive")[2], ("stdout", "alive"))
        eq(h.call("POST", f"/v1/sandboxes/{paused}/resume").status, 202)
        eq(command(h, paused, "echo back")[2], ("stdout", "back"))
        for sandbox in before:
            eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        eq(h.processes(), {}, "processes at the end")


@test
def sandboxes_survive_a_restart():
    """SIGTERM: all are there again, in their states, before the first answer"""
    survive(gently=True)


@test
def sandboxes_survive_a_crash():
    """kill -9: the same"""
    survive(gently=False)


@test
def what_died_meanwhile_is_known():
    """a sandbox that ended while no one looked has a final state and a reason"""
    with start() as h:
        sandbox, other = h.create()["id"], h.create()["id"]
        h.kill()
        pids = h.processes_of_sandbox(sandbox)
        os.kill(h.agent_of(sandbox), signal.SIGKILL)
        for pid in pids:
            wait_gone(pid)
        h.start()
        reply = h.call("GET", f"/v1/sandboxes/{sandbox}").json
        assert reply["status"]["state"] in ("Failed", "Terminated"), reply
        assert reply["status"]["reason"], reply
        eq(list(live(h)), [other])


@test
def a_signal_during_the_start():
    """SIGTERM at random points of it: an orderly end, and nothing is lost"""
    chance = random.Random(1)
    with start() as h:
        sandboxes = sorted(h.create()["id"] for _ in range(4))
        for i in range(30):
            h.stop() if i == 0 else None
            with open(h.log_path, "ab") as log:
                p = subprocess.Popen(h.command(), stdout=subprocess.DEVNULL, stderr=log, env=h.env)
            try:
                p.wait(timeout=chance.random() * 0.06)
            except subprocess.TimeoutExpired:
                p.terminate()
            status = p.wait(timeout=scaled(20))
            assert status in (0, -signal.SIGTERM), f"status {status}:\n{h.log()[-2000:]}"
        h.drain_manager()
        h.start()
        eq(sorted(live(h)), sandboxes)


@of_direct
def a_reload_during_the_start():
    """SIGHUP at random points of it: it is not lost"""
    chance = random.Random(2)
    with start() as h:
        for _ in range(20):
            h.create()
        h.stop()
        for _ in range(30):
            before = len(h.log())
            with open(h.log_path, "ab") as log, subprocess.Popen(
                    h.command(), stdout=subprocess.PIPE, stderr=log, env=h.env) as p:
                try:
                    p.wait(timeout=chance.random() * 0.15)
                except subprocess.TimeoutExpired:
                    p.send_signal(signal.SIGHUP)
                listens = b"listening on" in p.stdout.readline()
                p.terminate()
                status = p.wait(timeout=scaled(20))
            eq(status, 0 if listens else -signal.SIGHUP, h.log()[before:])   # none watched yet
            assert not listens or "reloaded" in h.log()[before:], h.log()[before:]
        h.drain_manager()
        h.start()


@of_direct
def a_driver_that_cant_open_says_why():
    said = ""
    try:
        Hutchd(program, "--driver", "direct", env={"HUTCH_TEST_DIRECT": ""})
    except RuntimeError as e:
        said = str(e)
    has(said, "hutchd: driver direct: ")


@test
def tokens_survive_a_restart():
    with start(config=keys("user")) as h:
        h.key = USER
        sandbox = h.create()["id"]
        headers = h.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/44772").json["headers"]
        h.restart(gently=False)
        h.key = None
        eq(h.inside(sandbox, "GET", "/ping", headers=headers).status, 200)
        eq(h.inside(sandbox, "GET", "/ping").status, 401)


# --- time ---

@test
def expiry_within_a_second():
    """by the clock of the client; also of a paused one"""
    with start() as h, Events(h) as reported:
        sandboxes = [h.create()["id"] for _ in range(3)]
        eq(h.call("POST", f"/v1/sandboxes/{sandboxes[0]}/pause").status, 202)
        due = time.time() + 1.5
        for sandbox in sandboxes:
            renew(h, sandbox, in_seconds(1.5))
        left = set(sandboxes)
        for event in reported:
            if event.get("state") in ("Terminated", "Failed"):
                left.discard(event["sandboxId"])
                late = time.time() - due
                assert -0.1 < late < scaled(1), f"{late} s late"
            if not left:
                break
        eq(live(h), {})
        for sandbox in sandboxes:
            status = h.call("GET", f"/v1/sandboxes/{sandbox}").json["status"]
            eq(status["state"], "Terminated", str(status))
        eq(h.processes(), {})


@test
def expiry_goes_on_over_a_restart():
    """what expired meanwhile goes at once, the rest in time"""
    with start() as h:
        soon, later = h.create()["id"], h.create()["id"]
        renew(h, soon, in_seconds(0.3))
        due = time.time() + scaled(3)
        renew(h, later, in_seconds(scaled(3)))
        h.kill()
        time.sleep(0.5)     # the clock is what is waited for
        h.start()
        with Events(h) as reported:
            if h.state(soon) != "Terminated":
                reported.wait(soon, "Terminated")
            assert time.time() < due - 1, "at once"
            eq(list(live(h)), [later])
            reported.wait(later, "Terminated")
        late = time.time() - due
        assert -0.1 < late < scaled(1), f"{late} s late"


@test
def a_dead_agent_is_noticed_within_a_second():
    with start() as h, Events(h) as reported:
        sandbox = h.create()["id"]
        pid = h.agent_of(sandbox)
        at = time.time()
        os.kill(pid, signal.SIGKILL)
        reported.wait(sandbox, "Failed", "Terminated")
        assert time.time() - at < scaled(1), f"{time.time() - at} s late"
        eq(h.inside(sandbox, "GET", "/ping").status, 404)
        eq(live(h), {})


# --- reload ---

@test
def a_reload_brings_keys_and_quotas():
    with start(config=keys("user")) as h:
        h.key = USER
        first = h.create()["id"]
        eq(h.call("GET", "/v1/sandboxes", key=OTHER).status, 401)
        h.configure(base + keys("other") + "quotas: {tenants: [{tenant: evil, sandboxes: 1}]}\n")
        has(h.reload(), "reloaded: 1 keys")
        eq(h.call("GET", "/v1/sandboxes").status, 401, "the old key")
        h.key = OTHER
        eq(h.call("GET", f"/v1/sandboxes/{first}").status, 404)
        sandbox = h.create()["id"]
        reply = h.call("POST", "/v1/sandboxes", h.create_request())
        eq(reply.status, 429, reply.body)
        assert reply.headers["Retry-After"], reply.headers
        eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)
        h.create()


@test
def a_wrong_file_changes_nothing():
    with start(config=keys("user")) as h:
        h.key = USER
        for text in "keys: [{key: short}]\n", "nonsense: 1\n", ": [":
            h.configure(text)
            said = h.reload()
            has(said, "reload failed, configuration unchanged")
            has(said, "hutchd.yaml")
            eq(h.call("GET", "/v1/sandboxes").status, 200)


@test
def a_reload_opens_the_audit_log_anew():
    """as log rotation wants it"""
    with start() as h:
        h.call("DELETE", "/v1/sandboxes/one")
        os.rename(f"{h.data}/audit.log", f"{h.data}/audit.log.1")
        h.call("DELETE", "/v1/sandboxes/two")
        h.reload()
        h.call("DELETE", "/v1/sandboxes/three")
        h.stop()
        for name, sandboxes in ("audit.log.1", ["one", "two"]), ("audit.log", ["three"]):
            with open(f"{h.data}/{name}", encoding="utf-8") as f:
                eq([json.loads(x)["sandbox"] for x in f], sandboxes, name)


@test
def a_refused_reload_leaves_the_audit_log_where_it_was():
    with start(config=keys("admin")) as h:
        h.key = ADMIN
        made = h.call("POST", "/v1/keys", {"tenant": "t", "principal": "p", "role": "user"}).json
        h.configure(f"{base}{keys('admin')}- key: {made['key']}\n"
                    f"audit: {{file: {h.directory}/other.log}}\n")
        has(h.reload(), "reload failed, configuration unchanged")
        h.call("DELETE", "/v1/sandboxes/one")
        h.stop()
        with open(f"{h.data}/audit.log", encoding="utf-8") as f:
            eq(json.loads(f.readlines()[-1])["sandbox"], "one")


@test
def removing_the_last_key_opens_nothing():
    """on an address that others can reach no one gets in then; neither by reload"""
    with start("--listen=0.0.0.0:0", config=keys("admin")) as h:
        h.key = ADMIN
        made = h.call("POST", "/v1/keys", {"tenant": "t", "principal": "p", "role": "admin"})
        assert made.status in (200, 201), made.body
        h.configure(base)
        has(h.reload(), "reloaded: 0 keys")
        h.key = made.json["key"]
        eq(h.call("GET", "/v1/sandboxes").status, 200)
        eq(h.call("DELETE", f"/v1/keys/{made.json['id']}").status, 204)
        eq(h.call("GET", "/v1/sandboxes").status, 401)
        h.key = None
        eq(h.call("GET", "/v1/sandboxes").status, 401)
        has(h.reload(), "reload failed")


@test
def nor_does_it_on_loopback():
    """which may be where a proxy lets the world in"""
    with start(config=keys("admin")) as h:
        h.configure(base)
        said = h.reload()
        has(said, "reloaded: 0 keys")
        has(said, "access is locked")
        h.key = None
        eq(h.call("GET", "/v1/sandboxes").status, 401)
        eq(h.call("GET", "/v1/sandboxes/x/proxy/44772/ping").status, 401)
        h.configure(base + keys("admin"))
        has(h.reload(), "reloaded: 1 keys")
        eq(h.call("GET", "/v1/sandboxes", key=ADMIN).status, 200)


# --- the end ---

@test
def it_drains():
    """what runs may end; event streams do not hold it up; sandboxes live on"""
    with start() as h, Events(h):
        sandbox = h.create()["id"]
        runs = h.processes()
        slow = h.begin("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command",
                       {"command": "echo started; sleep 1; echo ended"})
        line = slow.readline()
        while b"started" not in line:
            line = slow.readline()
        h.process.terminate()
        has(slow.read().decode(), "ended")
        eq(h.stop(), 0)
        eq(h.processes(), runs)
        h.start()
        eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)


# --- no room ---

@of_direct
def a_full_disk():
    """a clear answer, nothing half made, and a registry that opens, full or not"""
    if not can_unshare():
        skip("this user may not make mount namespaces")
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo up; exec sleep 1000"],
                          stdout=subprocess.PIPE, text=True) as holder:
        try:
            holder.stdout.readline()
            in_namespace = ["nsenter", "-t", str(holder.pid), "-m", "--wd=/"]
            with Directory(in_namespace, holder.pid) as directory:
                fill_the_disk(directory, in_namespace, f"/proc/{holder.pid}/root{directory}")
        finally:
            holder.kill()


class Directory:
    """A directory that is a small disk inside the namespace."""

    def __init__(self, in_namespace, _pid):
        self.path = subprocess.run(["mktemp", "-d"], text=True, capture_output=True,
                                   check=True).stdout.strip()
        os.mkdir(f"{self.path}/data", 0o700)
        subprocess.run([*in_namespace, "mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none",
                        f"{self.path}/data"], check=True)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        subprocess.run(["rm", "-rf", self.path], check=True)


def fill_the_disk(directory, in_namespace, seen):
    with start(directory=directory, wrap=in_namespace) as h:
        kept = h.create()["id"]
        with open(f"{seen}/data/filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        replies = [h.call("POST", "/v1/sandboxes", h.create_request()) for _ in range(5)]
        for reply in replies:              # of the registry, or of a driver that has no room
            assert reply.status in (429, 500), reply.body
            assert "disk" in reply.json["message"] or "space" in reply.json["message"], reply.body
        eq(list(live(h)), [kept])
        h.restart(gently=False)                 # still full
        eq(list(live(h)), [kept])
        eq(h.state(kept), "Running")
        os.unlink(f"{seen}/data/filler")
        more = h.create()["id"]
        eq(sorted(live(h)), sorted([kept, more]))
        h.restart(gently=False)
        eq(sorted(live(h)), sorted([kept, more]))
        for sandbox in kept, more:
            eq(h.call("DELETE", f"/v1/sandboxes/{sandbox}").status, 204)


run()
