#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutch-bridge between a real broker and a real hutchd: the life of a sandbox as PURISTA's applications see it.

usage: test_bridge_hutchd.py HUTCHD HUTCH_EXECD BRIDGE
"""

import contextlib
import os
import select
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import brokers  # noqa: E402
import purista_bus  # noqa: E402
from bridge import Bridge  # noqa: E402
from hutchd import Hutchd  # noqa: E402
from tap import eq, has, run, test  # noqa: E402
from tls_proxy import TlsProxy  # noqa: E402

program, agent, bridge_program = map(os.path.abspath, sys.argv[1:4])
KEY, OTHER = "bus-0123456789abcdef", "other-0123456789abcdef"
CONFIG = f"""
agent: {agent}
driver: direct
keys:
- {{key: {KEY}, name: bus, tenant: ops}}
- {{key: {OTHER}, name: other, tenant: ops}}
purista:
  image: scratch
  bridges:
  - {{uid: {os.getuid()}, tenants: ["*"]}}
  - {{key: bus, tenants: [org-1]}}
"""


class World:
    pass


world = World()


BY_KEY = "\n".join(line for line in CONFIG.splitlines() if "uid:" not in line)


def by_key():
    """A hutchd that knows bridges by their keys alone."""
    return Hutchd(program, config=BY_KEY, env={"HUTCH_TEST_DIRECT": "1", "HOME": world.directory.name})


def bridge(*arguments, hutchd=None, url=None):
    b = Bridge(bridge_program, world.broker, url or f"unix:{(hutchd or world.hutchd).socket}", *arguments)
    world.caller.announcements(b.instance)
    return b


def payload(target, create_request, **more):
    reply = world.caller.call(target, create_request, **more).body
    return reply.get("isHandledError"), reply["payload"]


@test
def a_complete_cycle():
    """created, used, and destroyed, over the bus"""
    with bridge() as b:
        failed, made = payload("createSandbox", {"projectId": "p"})
        eq((failed, made["status"]), (None, "starting"))
        sandbox = made["sandboxId"]
        event = world.caller.published(lambda m: m["messageType"] == "customMessage").body
        eq((event["eventName"], event["payload"]["sandboxId"]), ("SandboxStarted", sandbox))
        eq(payload("ensureSandbox", {"projectId": "p"})[1], {"sandboxId": sandbox, "status": "ready", "created": False})
        eq(payload("writeFiles", {"sandboxId": sandbox, "files": {"a.txt": "hutch\n"}})[1], {"updated": 1})
        eq(payload("readFile", {"sandboxId": sandbox, "path": "a.txt"})[1], "hutch\n")
        eq(payload("executeBash", {"sandboxId": sandbox, "command": "cat a.txt; exit 3"})[1],
           {"stdout": "hutch\n", "stderr": "", "exitCode": 3})
        failed, error = payload("executeBash", {"sandboxId": sandbox, "command": "true"}, tenantId="org-2")
        eq((failed, error["status"]), (True, 404))
        failed, error = payload("executeBash", {"sandboxId": sandbox, "command": "true"}, tenantId=None)
        eq((failed, error["status"]), (True, 401))
        eq(payload("destroySandbox", {"sandboxId": sandbox})[1], {"sandboxId": sandbox, "destroyed": True})
        counted = b.stop()
        eq((counted["succeeded"], counted["failed"], counted["events"]), (6, 2, 1))


def key_file(name, key):
    path = f"{world.directory.name}/{name}"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write(key + "\n")
    return path


CREATE_REQUEST = {"sandboxId": "x", "command": "true"}
NOT_THERE = "Sandbox x not found in registry"


REFUSED = (False, 500, "Internal Server Error")
AWAY = (True, 503, "The sandbox server is unreachable. Try again later.")


def refused(b, why, reported=REFUSED):
    """Callers get an error without details, and the operator the reason."""
    failed, error = payload("executeBash", CREATE_REQUEST)
    eq((failed, error["status"], error["message"]), reported)
    b.said('msg="command failed" command=executeBash')
    has(b.log(), why)
    assert OTHER not in b.log() and KEY not in b.log()
    b.stop()


@test
def keys():
    """a bridge's key is as good as its user; any other gets callers a 500, and the operator the reason"""
    with by_key() as hutchd:
        with bridge("--key-file", key_file("bus", KEY), hutchd=hutchd) as b:
            eq(payload("executeBash", CREATE_REQUEST)[1]["message"], NOT_THERE)
            eq(payload("executeBash", CREATE_REQUEST, tenantId="org-2")[1]["status"], 403)      # not one that it may act for
            b.stop()
        with bridge("--key-file", key_file("other", OTHER), hutchd=hutchd) as b:
            refused(b, "only bridges may act for others")


@test
def a_key_that_is_shown_counts():
    """a wrong key is not made up for by the user of the process"""
    with bridge("--key-file", key_file("other", OTHER)) as b:
        refused(b, "only bridges may act for others")
    with bridge("--key-file", key_file("none", "no-such-key-0123456789")) as b:
        refused(b, "the API key is not valid")
    with bridge("--key-file", key_file("bus", KEY)) as b:       # it is that bridge now, with its tenants
        eq(payload("executeBash", CREATE_REQUEST, tenantId="org-2")[1]["status"], 403)
        b.stop()


@test
def by_tls():
    """over https:// with the authority of its certificate and a bridge's key; else not"""
    good, strange = f"{world.directory.name}/good", f"{world.directory.name}/strange"
    for directory in (good, strange):
        os.mkdir(directory)
        brokers.certify(directory)
    right = ["--key-file", key_file("bus", KEY)]
    with by_key() as hutchd, TlsProxy(good, hutchd.socket) as listener:
        url = f"https://localhost:{listener.port}"
        with bridge(*right, "--hutchd-ca", f"{good}/ca.pem", url=url) as b:
            eq(payload("executeBash", CREATE_REQUEST)[1]["message"], NOT_THERE)
            b.stop()
        for ca in ["--hutchd-ca", f"{strange}/ca.pem"], []:     # another authority, and those of the system
            with bridge(*right, *ca, url=url) as b:
                refused(b, "SSL certificate problem", AWAY)
        with bridge(*right, "--hutchd-ca", f"{good}/ca.pem", url=f"https://127.0.0.1:{listener.port}") as b:
            refused(b, "matches target host name '127.0.0.1'", AWAY)     # the certificate is for another name
        with bridge("--key-file", key_file("other", OTHER), "--hutchd-ca", f"{good}/ca.pem", url=url) as b:
            refused(b, "only bridges may act for others")
        with bridge("--hutchd-ca", f"{good}/ca.pem", url=url) as b:
            refused(b, "an API key is needed")


@test
def many_at_once():
    """200 ensureSandbox of one owner at once make one sandbox"""
    with bridge() as b:
        sent = [world.caller.send("ensureSandbox", {"projectId": "crowd"}) for _ in range(200)]
        got = [world.caller.reply_of(s).body["payload"] for s in sent]
        eq(len({g.get("sandboxId") for g in got}), 1, got[0])
        eq(sum(g["created"] for g in got), 1)
        payload("destroySandbox", {"sandboxId": got[0]["sandboxId"]})
        b.stop()


@test
def given_up():
    """when a caller's timeout has passed, its processes are killed; the next command runs"""
    for remote in False, True:
        with contextlib.ExitStack() as stack:
            hutchd = stack.enter_context(by_key())
            url, ca = f"unix:{hutchd.socket}", []
            if remote:
                directory = tempfile.mkdtemp(dir=world.directory.name)
                brokers.certify(directory)
                proxy = stack.enter_context(TlsProxy(directory, hutchd.socket))
                url, ca = f"https://localhost:{proxy.port}", ["--hutchd-ca", f"{directory}/ca.pem"]
            b = stack.enter_context(bridge("--key-file", key_file("bus", KEY), "--caller-timeout", "5s", "--in-flight", "2",
                                           "--in-flight-per-tenant", "2", *ca, url=url))
            sandbox = payload("createSandbox", {"projectId": "p"})[1]["sandboxId"]
            eq(payload("executeBash", {"sandboxId": sandbox, "command": "mkfifo pid"})[1]["exitCode"], 0)
            sent = world.caller.send("executeBash", {"sandboxId": sandbox, "command": "sleep 300 & echo $! > pid; wait"})
            pid = payload("executeBash", {"sandboxId": sandbox, "command": "cat pid"})[1]["stdout"]
            process = os.pidfd_open(int(pid))
            try:
                error = world.caller.reply_of(sent).body["payload"]
                eq((error["status"], error["message"]),
                   (504, "The caller's timeout has passed, so the command was ended."))
                assert select.select([process], [], [], 30)[0], "it goes on"
            finally:
                os.close(process)
            eq(payload("executeBash", {"sandboxId": sandbox, "command": "echo on"})[1]["stdout"], "on\n")
            eq(payload("destroySandbox", {"sandboxId": sandbox})[0], None)
            eq(b.stop()["expired"], 1)


if __name__ == "__main__":
    world.directory = tempfile.TemporaryDirectory(prefix="hutch-bus-")
    try:
        world.broker = brokers.Nats(world.directory.name)
    except brokers.Missing as missing:
        print(f"1..0 # SKIP {missing}")
        sys.exit(0)
    with world.broker, Hutchd(program, config=CONFIG,
                              env={"HUTCH_TEST_DIRECT": "1", "HOME": world.directory.name}) as world.hutchd:
        world.caller = purista_bus.connect(world.broker)
        run()
