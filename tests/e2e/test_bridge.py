#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hutch-bridge on a real broker: what PURISTA's applications send and get, and what brokers and their clients do when
things go wrong.

usage: test_bridge.py nats|mqtt|amqp BRIDGE

hutchd is a stand-in (tests/lib/fake_hutchd.py), callers are our own (tests/lib/purista_bus.py).
"""

import contextlib
import json
import os
import signal
import subprocess
import queue
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import brokers  # noqa: E402
import captured  # noqa: E402
import purista_bus  # noqa: E402
from bridge import Bridge  # noqa: E402
from fake_hutchd import SANDBOX, NO_IDENTITY, FakeHutchd  # noqa: E402
from tap import eq, has, run, scaled, skip, test  # noqa: E402

kind, program = sys.argv[1], os.path.abspath(sys.argv[2])
TLS_SCHEMES = {"nats": "tls", "mqtt": "mqtts", "amqp": "amqps"}
MAKERS = {"nats": brokers.Nats, "mqtt": brokers.Mosquitto, "amqp": brokers.RabbitMq}


class World:
    """One broker and one hutchd for all of it, and the caller that is there from the beginning."""

    broker = hutchd = caller = None

    def start(self):
        self._directory = tempfile.TemporaryDirectory(prefix="hutch-bus-")
        self.directory = self._directory.name
        self.broker = MAKERS[kind](self.directory)
        self.hutchd = FakeHutchd(self.directory)
        self.caller = purista_bus.connect(self.broker)

    def stop(self):
        if self.caller:
            self.caller.close()
        if self.hutchd:
            self.hutchd.__exit__()
        if self.broker:
            self.broker.__exit__()
        self._directory.cleanup()


world = World()


def serving(*arguments):
    """A bridge that has announced its commands."""
    bridge = Bridge(program, world.broker, f"unix:{world.hutchd.path}", *arguments)
    try:
        bridge.announced = world.caller.announcements(bridge.instance)
    except BaseException:
        bridge.__exit__(True)
        raise
    return bridge


def eq_reply(sent, reply, bridge, payload, handled=None):
    """The whole of a reply, field by field."""
    got = dict(reply.body)
    trace, stamp, otp = got.pop("traceId"), got.pop("timestamp"), json.loads(got.pop("otp"))
    want = {
        "id": sent["id"], "correlationId": sent["correlationId"],
        "contentType": "application/json", "contentEncoding": "utf-8",
        "messageType": "commandSuccessResponse" if handled is None else "commandErrorResponse",
        "sender": {**sent["receiver"], "instanceId": bridge.instance},
        "receiver": sent["sender"],
        "payload": payload,
    }
    want.update({k: sent[k] for k in ("principalId", "tenantId") if k in sent})
    if handled is not None:
        want["isHandledError"] = handled
        want["payload"] = {**payload, "traceId": trace}
    eq(got, want, "reply")
    eq(len(trace), 32, "length of the trace id")
    assert abs(stamp - sent["timestamp"]) < 120_000, stamp
    eq(otp["traceparent"].split("-")[1], json.loads(sent["otp"])["traceparent"].split("-")[1], "trace")
    headers = {
        "messageType": want["messageType"],
        "senderServiceName": "Sandbox", "senderServiceVersion": "1",
        "senderServiceTarget": sent["receiver"]["serviceTarget"], "senderInstanceId": bridge.instance,
        "receiverServiceName": "BashToolAdapter", "receiverServiceVersion": "1",
        "receiverServiceTarget": "executeCommand",
        "receiverServiceInstanceId" if kind == "amqp" else "receiverInstanceId": sent["sender"]["instanceId"],
        "traceparent": otp["traceparent"],
        **{k: sent[k] for k in ("principalId", "tenantId") if k in sent},
    }
    if kind == "amqp":
        headers["replyTo"] = world.caller.reply_queue
    eq(reply.headers, headers, "headers")
    eq_place(sent, reply, want)


def eq_place(sent, reply, want):
    """Where a reply came to, and what the broker has beside it."""
    if kind == "nats":
        eq(reply.name, f"{world.caller.inbox}.{sent['correlationId']}")
        return
    expected = {"contentType": "application/json"}
    if kind == "mqtt":
        eq(reply.name, "/".join(["purista", *purista_bus.parts(want, "none")]))
        expected.update(correlationData=sent["correlationId"], expiry=30000)
    else:
        expected.update(contentEncoding="utf-8", deliveryMode=2, correlationId=sent["correlationId"],
                        messageId=sent["id"], type=want["messageType"], timestamp=reply.body["timestamp"])
    eq(reply.properties, expected, "properties")


# --- what is there ---

@test
def every_command_is_announced():
    """each command is announced once, as gateways want it"""
    with serving() as bridge:
        for target, m in bridge.announced.items():
            body = dict(m.body)
            eq(body["sender"], {"serviceName": "Sandbox", "serviceVersion": "1", "serviceTarget": target,
                                "instanceId": bridge.instance}, "sender")
            eq((len(body["id"]), len(body["traceId"]), body["contentType"], body["contentEncoding"]),
               (32, 32, "application/json", "utf-8"))
            expose = body["payload"]["expose"]
            eq(expose["http"]["openApi"]["operationId"], target)
            eq(m.headers["senderInstanceId"], bridge.instance)
        bash = bridge.announced["executeBash"].body["payload"]["expose"]
        eq((bash["http"]["method"], bash["http"]["path"]), ("POST", "sandbox/:sandboxId/bash"))
        eq(bash["inputPayload"]["required"], ["sandboxId", "command"])
        eq(bash["outputPayload"]["required"], ["stdout", "stderr", "exitCode"])
        bridge.process.send_signal(signal.SIGUSR1)
        bridge.said("msg=counters")
        counted = bridge.stop()
        eq((counted["connections"], counted["received"]), (1, 0))


@test
def manual():
    """each option of --help is in the manual, and the other way round"""
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/../../docs/man/hutch-bridge.8", encoding="utf-8") as f:
        page = f.read().replace("\\-", "-")
    eq(set(re.findall(r"\\fB(--[a-z-]+)\\fR", page.split(".SH OPTIONS")[1])) - {"--name"},
       set(re.findall(r"^  (--[a-z-]+)", shown, re.M)))


# --- every captured exchange, field by field ---

EXCHANGES = [
    # target, payload, changes of the message, reply, handled
    ("createSandbox", {"projectId": "project-1"}, {}, {"sandboxId": SANDBOX, "status": "starting"}, None),
    ("createSandbox", {"projectId": "project-1"}, {},
     {"status": 409, "message": f"Sandbox {SANDBOX} already exists for this owner. Use ensureSandbox to reuse it.",
      "data": {"sandboxId": SANDBOX}}, True),
    ("ensureSandbox", {"projectId": "project-1"}, {},
     {"sandboxId": SANDBOX, "status": "ready", "created": False}, None),
    ("executeBash", {"sandboxId": SANDBOX, "command": "echo hello"}, {},
     {"stdout": "hello", "stderr": "", "exitCode": 0}, None),
    ("executeBash", {"sandboxId": SANDBOX, "command": "echo hello"}, {"tenantId": "org-2"},
     {"status": 403, "message": "Caller is not allowed to access this sandbox.",
      "data": {"sandboxId": SANDBOX, "organizationId": "org-1", "userId": "user-1"}}, True),
    ("executeBash", {"sandboxId": SANDBOX, "command": "echo hello"}, {"tenantId": None, "principalId": None},
     {"status": 401, "message": NO_IDENTITY}, True),
    ("executeBash", {"sandboxId": "nope", "command": "x"}, {},
     {"status": 404, "message": "Sandbox nope not found in registry"}, True),
    ("executeBash", {"sandboxId": ""}, {},
     {"status": 400, "message": "input validation for payload failed:",
      "data": [{"message": "String must contain at least 1 character(s)", "path": ["sandboxId"]},
               {"message": "Required", "path": ["command"]}]}, True),
    ("executeBash", {"sandboxId": SANDBOX, "command": "boom"}, {},
     {"status": 500, "message": "Internal Server Error"}, False),
    ("executeBash", {"sandboxId": SANDBOX, "command": "echo \u0000 nul, \u2028, \U0001f407 \x7f \"'\\"}, {},
     {"stdout": "\u0000 nul, \u2028, \U0001f407 \x7f \"'\\", "stderr": "", "exitCode": 0}, None),
    ("readFile", {"sandboxId": SANDBOX, "path": "/tmp/a"}, {}, "file content\n", None),
    ("writeFiles", {"sandboxId": SANDBOX, "files": {"a": "b", "c": {"encoding": "base64", "content": "AA=="}}}, {},
     {"updated": 2}, None),
    # A gateway puts the parameters of a path, and of a query, beside the payload.
    ("readFile", None, {"payload": {"parameter": {"sandboxId": SANDBOX, "path": "/tmp/a"}}}, "file content\n", None),
    ("destroySandbox", {"sandboxId": SANDBOX}, {}, {"sandboxId": SANDBOX, "destroyed": True}, None),
]


@test
def exchanges():
    """each command and each failure is answered as PURISTA's own service answers, field by field"""
    with serving() as bridge:
        for target, payload, more, want, handled in EXCHANGES:
            sent = world.caller.send(target, payload, more)
            eq_reply(sent, world.caller.reply_of(sent), bridge, want, handled)
        counted = bridge.stop()
        eq((counted["received"], counted["started"]), (len(EXCHANGES), len(EXCHANGES)))
        eq((counted["succeeded"], counted["failed"]), (8, 6))


def same_words(got, want):
    """Another generation has other words for the same mistakes of a payload: both by where they are."""
    if "origin" in json.dumps(want["body"]["payload"]):
        for message in (got, want):
            payload = message["body"]["payload"]
            payload["data"] = [issue["path"] for issue in payload["data"]]


def replay(exchange, caller):
    """A captured command, and its answer against the captured one: of its own broker the whole message, of others the
    body, and the rest by what the command says."""
    sent, want = exchange["command"], exchange["response"]
    if kind == sent.kind and kind != "amqp":
        eq(("." if kind == "nats" else "/").join(["purista", *purista_bus.parts(sent.body, NONE[kind])]), sent.name)
    caller.send_body(sent.body)
    got = caller.reply_of(sent.body)
    ours, theirs = captured.shape(got, kind), captured.shape(want, want.kind)
    same_words(ours, theirs)
    for part in ours if kind == sent.kind else ["body"]:
        eq(ours[part], theirs[part], f"{sent.title}: {part}")
    return got


def is_part(small, large):
    """Whether all that a document says is in another one, which may say more."""
    if isinstance(small, dict):
        return all(k in large and is_part(v, large[k]) for k, v in small.items())
    return small == large


NONE = {"nats": "empty", "mqtt": "none", "amqp": ""}


def replay_events(bridge, found):
    event = world.caller.published(lambda b: b["messageType"] == "customMessage"
                                   and b["sender"]["instanceId"] == bridge.instance)
    for want in [m for m in found if m.body["messageType"] == "customMessage"]:
        ours, theirs = captured.shape(event, kind), captured.shape(want, want.kind)
        for part in ours if kind == want.kind else ["body"]:
            if part == "body":      # of another creation
                ours[part].pop("otp"), theirs[part].pop("otp")
            if part == "headers":
                ours[part].pop("traceparent"), theirs[part].pop("traceparent")
            eq(ours[part], theirs[part], f"{want.title}: {part}")


def replay_announcements(bridge, found):
    for want in [m for m in found if m.body["messageType"] == "infoServiceFunctionAdded"]:
        ours = captured.shape(bridge.announced[want.body["sender"]["serviceTarget"]], kind)
        theirs = captured.shape(want, want.kind)
        expose = theirs["body"]["payload"]["expose"]
        for schema in (expose["inputPayload"], expose["outputPayload"]):
            schema.pop("$schema", None), schema.pop("additionalProperties", None)     # of one generation
        expose["http"].pop("mode", None)
        for part in ours if kind == want.kind else ["body"]:
            assert is_part(theirs[part], ours[part]), f"{want.title}: {theirs[part]} is not all in {ours[part]}"


@test
def captured_messages():
    """every message that was recorded between PURISTA's own programs, on whatever broker, is answered or sent here, too"""
    path = os.environ.get("HUTCH_PURISTA_SAMPLES")
    if not path:
        skip("HUTCH_PURISTA_SAMPLES names no file of captured messages")
    found = captured.messages(path)
    exchanges_ = captured.exchanges(found)
    assert len(exchanges_) >= 3, len(exchanges_)
    callers = {instance: purista_bus.connect(world.broker, instance)
               for instance in {e["command"].body["sender"]["instanceId"] for e in exchanges_}}
    with serving() as bridge:
        replay_announcements(bridge, found)
        for e in exchanges_:
            sent = e["command"].body
            creates = sent["receiver"]["serviceTarget"] == "createSandbox" and "isHandledError" not in e["response"].body
            if creates:
                world.hutchd.service.owner = None
            replay(e, callers[sent["sender"]["instanceId"]])
            if creates:
                replay_events(bridge, found)
        counted = bridge.stop()
        eq((counted["received"], counted["started"]), (len(exchanges_), len(exchanges_)))
        print(f"# {len(exchanges_)} exchanges of {len(found)} captured messages")
    for caller in callers.values():
        caller.close()
    world.hutchd.service.owner = None


@test
def events():
    """SandboxStarted is published for its tenant and principal"""
    with serving() as bridge:
        sent = world.caller.send("createSandbox", {"projectId": "project-1"})
        world.caller.reply_of(sent)
        m = world.caller.published(lambda b: b["messageType"] == "customMessage"
                                   and b["sender"]["instanceId"] == bridge.instance)
        eq({k: m.body[k] for k in ("eventName", "payload", "principalId", "tenantId", "sender")},
           {"eventName": "SandboxStarted", "principalId": "user-1", "tenantId": "org-1",
            "payload": {"sandboxId": SANDBOX, "organizationId": "org-1", "projectId": "project-1", "userId": "user-1"},
            "sender": {"serviceName": "Sandbox", "serviceVersion": "1", "serviceTarget": "createSandbox",
                       "instanceId": bridge.instance}})
        eq({k: m.headers.get(k) for k in ("eventName", "messageType", "tenantId", "receiverServiceName")},
           {"eventName": "SandboxStarted", "messageType": "customMessage", "tenantId": "org-1",
            "receiverServiceName": None})
        if kind != "amqp":
            eq(m.name.replace("/", ".").split(".")[1:4], ["custom_message", "user_1", "org_1"])
            eq(m.name.replace("/", ".").split(".")[8], "sandbox_started")
        world.caller.call("destroySandbox", {"sandboxId": SANDBOX})
        bridge.stop()


# --- what is wrong ---

@test
def malformed():
    """what is no command is counted and dropped, and the next one is served"""
    bad = [b"", b"no json", b"{}", b"[]", b"\xff\xfe", b'{"messageType":"customMessage"}', b"[" * 100000,
           json.dumps({**purista_bus.command("executeBash", {}, "x"), "sender": 1}).encode(),
           json.dumps({**purista_bus.command("executeBash", {}, "x"), "tenantId": {"a": 1}}).encode(),
           json.dumps({**purista_bus.command("executeBash", {}, "x"), "id": "x" * 5000}).encode()]
    with serving() as bridge:
        for data in bad:
            world.caller.send_raw(world.caller.name_of("executeBash"), data)
        eq(world.caller.bash("echo still there").body["payload"]["stdout"], "still there")
        counted = bridge.stop()
        eq((counted["malformed"], counted["started"]), (len(bad), 1))
        has(bridge.log(), "message dropped: not a command")


@test
def unknown():
    """a command of another service, or an unknown one, is answered with 501"""
    with serving() as bridge:
        sent = purista_bus.command("executeBash", {}, world.caller.instance)
        sent["receiver"] = {**sent["receiver"], "serviceTarget": "formatDisk"}
        world.caller.send_body(sent, name=world.caller.name_of("executeBash"))
        eq_reply(sent, world.caller.reply_of(sent), bridge, {"status": 501, "message": "Not Implemented"}, False)
        eq(bridge.stop()["started"], 0)


@test
def unaddressed():
    """a command without a reply address runs and gets no reply"""
    with serving() as bridge:
        seen = len(world.hutchd.service.seen)
        sent = purista_bus.command("executeBash", {"sandboxId": SANDBOX, "command": "echo a"}, world.caller.instance)
        world.caller.send_unaddressed(sent)
        eq(world.caller.bash("echo b").body["payload"]["stdout"], "b")
        counted = bridge.stop()
        eq((counted["unaddressed"], counted["started"]), (1, 2))
        eq(len(world.hutchd.service.seen) - seen, 2)
        assert world.caller.expect(sent["correlationId"]).empty()


@test
def hutchd_is_away():
    """while hutchd is unreachable, callers get 503 at once"""
    with serving("--hutchd", f"unix:{world.directory}/nothing") as bridge:
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo"})
        eq_reply(sent, world.caller.reply_of(sent), bridge,
                 {"status": 503, "message": "The sandbox server is unreachable. Try again later."}, True)
        bridge.stop()


@test
def hutchd_ends():
    """hutchd ends before or while it replies: the command may have started, so the reply does not say \"try again\""""
    with serving() as bridge:
        for command in ("crash", "echo before", "crash in it", "echo after"):
            sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": command})
            reply = world.caller.reply_of(sent)
            if command.startswith("echo"):
                eq(reply.body["messageType"], "commandSuccessResponse")
            else:
                eq_reply(sent, reply, bridge, {"status": 500, "message": "Internal Server Error"}, False)
        eq(bridge.stop()["failed"], 2)


@test
def hutchd_takes_no_more():
    """a command that is larger than hutchd accepts gets 413, which names the limit"""
    with serving() as bridge:
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "too large"})
        eq_reply(sent, world.caller.reply_of(sent), bridge,
                 {"status": 413, "message": "The command is larger than the sandbox server accepts. Send files in parts, or "
                                            "raise purista.file_limit in hutchd.yaml."}, True)
        bridge.said("so large")
        bridge.stop()


# --- much ---

@test
def many():
    """1,000 commands at once, and never more in flight than allowed"""
    with serving("--in-flight", "32") as bridge:
        world.hutchd.service.most = 0
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(1000)]
        for i, s in enumerate(sent):
            eq(world.caller.reply_of(s).body["payload"]["stdout"], str(i))
        assert world.hutchd.service.most <= 32, world.hutchd.service.most
        counted = bridge.stop()
        eq((counted["succeeded"], counted["dropped"], counted["busy"]), (1000, 0, 0))


@test
def two_bridges():
    """two bridges share the load: each command is carried out once"""
    with serving() as one, serving() as two:
        seen = len(world.hutchd.service.seen)
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(200)]
        by = [world.caller.reply_of(s).body["sender"]["instanceId"] for s in sent]
        eq(set(by), {one.instance, two.instance})
        eq(len(world.hutchd.service.seen) - seen, 200)
        eq(one.stop()["started"] + two.stop()["started"], 200)


@test
def crowded():
    """more commands than may wait are refused, not forgotten"""
    with serving("--in-flight", "1", "--waiting", "2") as bridge:
        first = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "wait crowd"})
        world.hutchd.arrived("crowd")
        rest = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo x"}) for _ in range(5)]
        refused = [world.caller.reply_of(s) for s in rest[2:]]
        eq([r.body["payload"]["status"] for r in refused], [503] * 3)
        world.hutchd.release("crowd")
        for s in [first, *rest[:2]]:
            eq(world.caller.reply_of(s).body["messageType"], "commandSuccessResponse")
        eq(bridge.stop()["busy"], 3)


# --- tenants that share a bridge ---

@contextlib.contextmanager
def another_tenant():
    """One that may use the sandbox, too."""
    world.hutchd.service.users.add(("org-2", "user-1"))
    try:
        yield {"tenantId": "org-2"}
    finally:
        world.hutchd.service.users.discard(("org-2", "user-1"))


@test
def greedy():
    """300 commands of one tenant that do not end: another one's command, behind them in the same queue, is answered"""
    with another_tenant() as other, serving() as bridge:
        world.hutchd.service.most = 0
        name = f"greedy-{bridge.instance}"
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"wait {name}"}) for _ in range(300)]
        quick = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo quick"}, **other)
        eq(world.caller.reply_of(quick, wait=20).body["payload"]["stdout"], "quick")
        assert world.hutchd.service.most <= 65, world.hutchd.service.most     # a quarter of 256, and the other one
        world.hutchd.release(name)
        for s in sent:
            eq(world.caller.reply_of(s).body["messageType"], "commandSuccessResponse")
        counted = bridge.stop()
        eq((counted["started"], counted["succeeded"], counted["busy"]), (301, 301, 0))


def await_successes(sent, n):
    """Until n of them succeeded. Others are refused, or their refusals were dropped."""
    deadline = time.monotonic() + scaled(20)
    waiting = list(sent)
    while n > 0:
        assert time.monotonic() < deadline, f"{n} more should have succeeded"
        for s in list(waiting):
            with contextlib.suppress(queue.Empty):
                reply = world.caller.reply_of(s, wait=0.01)
                waiting.remove(s)
                n -= reply.body["messageType"] == "commandSuccessResponse"


@test
def flooded():
    """one tenant sends more than may run and wait: it alone is refused, and another one's command runs at once"""
    with another_tenant() as other, serving("--in-flight", "8", "--waiting", "10") as bridge:
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"wait {bridge.instance}"})
                for _ in range(200)]
        quick = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo quick"}, **other)
        eq(world.caller.reply_of(quick, wait=20).body["payload"]["stdout"], "quick")
        world.hutchd.release(bridge.instance)
        await_successes(sent, 12)   # two ran, ten waited; which ones depends on when the first two began
        counted = bridge.stop()     # so many refusals that some may be dropped, if the bridge reads them all at once
        eq((counted["succeeded"], counted["busy"] + counted["dropped"]), (13, 188))


@test
def taking_turns():
    """tenants that wait take turns; one that fills the queue loses its last place to another"""
    with another_tenant() as other, serving("--in-flight", "1", "--waiting", "4") as bridge:
        first = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"wait {bridge.instance}"})
        world.hutchd.arrived(bridge.instance)
        seen = len(world.hutchd.service.seen)
        rest = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(4)]
        quick = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo quick"}, **other)
        error = world.caller.reply_of(rest[3]).body["payload"]
        eq(error["status"], 503)
        has(error["message"], "commands of this tenant are waiting")
        has(error["message"], "4")
        world.hutchd.release(bridge.instance)
        for s in [first, quick, *rest[:3]]:
            eq(world.caller.reply_of(s).body["messageType"], "commandSuccessResponse")
        order = [r["payload"]["command"] for r in world.hutchd.service.seen[seen:]]
        eq((sorted(order), order.index("echo quick") < 2), (["echo 0", "echo 1", "echo 2", "echo quick"], True))
        eq(bridge.stop()["busy"], 1)


# --- callers that do not wait any longer ---

def impatient(*arguments):
    """A bridge, and what a caller of two seconds sends. A message on NATS does not carry it, so an option does."""
    return serving(*arguments, *(["--caller-timeout", "2s"] if kind == "nats" else [])), {"timeout": 2}


@test
def given_up():
    """a command is ended when its caller's timeout has passed, and the next one runs in its place"""
    bridge, soon = impatient("--in-flight", "1")
    with bridge:
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"hang {bridge.instance}"}, **soon)
        world.hutchd.arrived(bridge.instance)
        world.hutchd.ended(bridge.instance)
        eq_reply(sent, world.caller.reply_of(sent), bridge,
                 {"status": 504, "message": "The caller's timeout has passed, so the command was ended."}, True)
        eq(world.caller.bash("echo later").body["payload"]["stdout"], "later")
        counted = bridge.stop()
        eq((counted["started"], counted["expired"]), (2, 1))


@test
def never_started():
    """a command that waits is not started any more when its caller's timeout has passed; a creation that runs goes on"""
    bridge, soon = impatient("--in-flight", "1")
    with bridge:
        name = f"creation-{bridge.instance}"
        first = world.caller.send("ensureSandbox", {"projectId": f"wait {name}"}, **soon)
        world.hutchd.arrived(name)
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {bridge.instance}"}, **soon)
        eq_reply(sent, world.caller.reply_of(sent), bridge,
                 {"status": 504, "message": "The caller's timeout passed before the command could start."}, True)
        world.hutchd.release(name)
        eq(world.caller.reply_of(first).body["messageType"], "commandSuccessResponse")
        late = 0
        if kind == "amqp":      # RabbitMQ delivers it, because a consumer is there; other brokers have nothing like it
            sent, late = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "echo late"}, timeout=0), 1
            eq(world.caller.reply_of(sent).body["payload"]["status"], 504)
        counted = bridge.stop()
        eq((counted["started"], counted["expired"]), (1, 1 + late))


# --- the end ---

@test
def one_of_two_ends():
    """SIGTERM to one of two bridges, while commands come: each is answered, by whomever"""
    with serving() as one, serving() as two:
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(300)]
        one.process.send_signal(signal.SIGTERM)
        sent += [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(300)]
        replies = [world.caller.reply_of(s).body for s in sent]
        refused = [r for r in replies if r["messageType"] != "commandSuccessResponse"]
        eq({(r["payload"]["status"], r["sender"]["instanceId"]) for r in refused} - {(503, one.instance)}, set())
        eq(one.process.wait(timeout=60), 0)
        two.stop()


@test
def a_frozen_broker():
    """a broker that says nothing any more does not keep the bridge from ending"""
    for command in (None, "wait frozen"):
        with serving("--drain-timeout", "1s") as bridge:
            if command:
                world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": command})
                world.hutchd.arrived("frozen")
            os.killpg(world.broker.process.pid, signal.SIGSTOP)
            try:
                bridge.stop()
            finally:
                os.killpg(world.broker.process.pid, signal.SIGCONT)
    world.hutchd.release("frozen")


@test
def the_last_command_is_finished():
    """SIGTERM: what runs is finished and answered; what waits is refused or left to others"""
    with serving("--in-flight", "1") as bridge:
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": "wait term"})
        world.hutchd.arrived("term")
        bridge.process.send_signal(signal.SIGTERM)
        bridge.said("stopping")
        world.hutchd.release("term")
        eq(world.caller.reply_of(sent).body["payload"]["exitCode"], 0)
        eq(bridge.process.wait(timeout=60), 0)


# --- brokers that go and come ---

@test
def restart():
    """a broker restart in the middle of commands: replies come when all are back, in whatever order"""
    with serving() as bridge:
        early = [f"early-{i}-{bridge.instance}" for i in range(20)]
        late = f"late-{bridge.instance}"
        sent = [world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"wait {n}"}) for n in [late, *early]]
        for name in [late, *early]:
            world.hutchd.arrived(name)
        world.broker.stop()
        bridge.said("no connection")
        for name in early:                  # while no caller is connected
            world.hutchd.release(name)
        world.broker.start()
        # The bridge is back before its caller, and has something to say.
        bridge.said("no receiver")
        world.hutchd.release(late)
        world.caller.reconnect()
        for s in sent:
            eq(world.caller.reply_of(s).body["payload"], {"stdout": "", "stderr": "", "exitCode": 0})
        eq(world.caller.bash("echo again").body["payload"]["stdout"], "again")
        counted = bridge.stop()
        eq((counted["connections"], counted["started"], counted["undeliverable"]), (2, 22, 0))


@test
def too_large():
    """a reply over the broker's limit becomes a 413"""
    limit = world.caller.limit
    with serving() as bridge:
        sent = world.caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"big {limit + 100}"})
        reply = world.caller.reply_of(sent)
        eq((reply.body["isHandledError"], reply.body["payload"]["status"]), (True, 413))
        has(reply.body["payload"]["message"], "larger than the message broker accepts")
        fits = world.caller.bash(f"big {limit // 2}")
        eq(len(fits.body["payload"]["stdout"]), limit // 2)
        if kind == "nats":      # with its headers it does not fit
            eq(world.caller.bash(f"big {limit - 900}").body["payload"]["status"], 413)
        eq(bridge.stop()["too_large"], 2 if kind == "nats" else 1)


def password_file(broker, password):
    path = f"{broker.directory}/password"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as f:
        f.write(f"{password}\n")
    return path


def try_listener(broker, host, ca, password):
    """A bridge with TLS: what it logged when it was in, or was not."""
    path = password_file(broker, password)
    arguments = ["--user", broker.user, "--password-file", path, *(["--ca", f"{broker.directory}/ca.pem"] if ca else [])]
    with Bridge(program, broker, f"unix:{world.hutchd.path}", *arguments,
                url=f"{TLS_SCHEMES[kind]}://{host}:{broker.tls_port}") as bridge:
        bridge.said("connect")
        counted = bridge.stop()
        assert "wrong-guess" not in bridge.log(), bridge.log()
        return counted["connections"]


@test
def guarded():
    """TLS and a password from a file; a wrong password, a strange authority and a wrong name are refused"""
    with tempfile.TemporaryDirectory(prefix="hutch-bus-") as directory:
        brokers.certify(directory)
        broker = world.broker if kind == "amqp" else MAKERS[kind](directory, guarded=True)
        try:
            eq(try_listener(broker, "localhost", True, broker.password), 1)
            eq(try_listener(broker, "localhost", True, "wrong-guess"), 0)
            eq(try_listener(broker, "localhost", False, broker.password), 0)
            eq(try_listener(broker, "127.0.0.1", True, broker.password), 0)
        finally:
            if broker is not world.broker:
                broker.__exit__()


@contextlib.contextmanager
def both_listeners(directory):
    """A broker that has a door with TLS and one without, and a caller behind that one."""
    if kind == "amqp":
        yield world.broker, world.caller
        return
    brokers.certify(directory)
    makers = {"nats": brokers.NatsWithBothDoors, "mqtt": brokers.MosquittoWithBothDoors}
    with makers[kind](directory) as broker:
        caller = purista_bus.connect(broker)
        yield broker, caller
        caller.close()


@test
def over_tls():
    """commands over TLS: many at once, and large ones in both directions"""
    with tempfile.TemporaryDirectory(prefix="hutch-bus-") as directory, both_listeners(directory) as (broker, caller):
        with Bridge(program, broker, f"unix:{world.hutchd.path}", "--ca", f"{broker.directory}/ca.pem",
                    *(["--user", broker.user, "--password-file", password_file(broker, broker.password)]
                      if kind == "amqp" else []),
                    url=f"{TLS_SCHEMES[kind]}://localhost:{broker.tls_port}") as bridge:
            caller.announcements(bridge.instance)
            sent = [caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {i}"}) for i in range(200)]
            sent += [caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"big {400_000}"}) for _ in range(20)]
            sent += [caller.send("executeBash", {"sandboxId": SANDBOX, "command": f"echo {'x' * 400_000}"}) for _ in range(20)]
            for s in sent:
                eq(caller.reply_of(s).body["messageType"], "commandSuccessResponse")
            eq(bridge.stop()["succeeded"], len(sent))


@test
def rights():
    """the documented permissions of a NATS user are enough; with fewer the log names the missing one"""
    if kind != "nats":
        skip("other brokers confirm messages by themselves")
    with tempfile.TemporaryDirectory(prefix="hutch-bus-") as directory, brokers.NatsWithRights(directory) as broker:
        for user, words in (("bridge", "msg=connected"), ("narrow", "must be allowed to")):
            with Bridge(program, broker, f"unix:{world.hutchd.path}", "--user", user, "--password-file",
                        password_file(broker, broker.password)) as bridge:
                bridge.said(words)
                eq(bridge.stop()["connections"], int(user == "bridge"))
                has(bridge.log(), "Permissions Violation" if user == "narrow" else "")


if __name__ == "__main__":
    try:
        world.start()
        run()
    except brokers.Missing as missing:
        print(f"1..0 # SKIP {missing}")
    finally:
        world.stop()
