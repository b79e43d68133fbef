#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The registry in Redis as PURISTA's own has it: it reads ours, and what it wrote keeps its place here.

One Redis and one hutchd serve all test points but the last.

usage: test_purista_store.py HUTCHD
"""

import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hutchd import Hutchd  # noqa: E402
from redis_server import Redis  # noqa: E402
from tap import eq, has, run, test  # noqa: E402

program = os.path.abspath(sys.argv[1])
ANN, BOB, ODD = (f"{n}-0123456789abcdef" for n in ("ann", "bob", "odd"))
CONFIG = f"""
keys:
- {{key: {ANN}, tenant: org-1, principal: user-1}}
- {{key: {BOB}, tenant: org-1, principal: user-2}}
- {{key: {ODD}, tenant: "a:b", principal: "ü %"}}
purista:
  image: scratch
"""
SHARED = "shared-project-user"
_open = contextlib.ExitStack()
_world = []


def world():
    if not _world:
        redis = _open.enter_context(Redis())
        _world.extend((redis, _open.enter_context(Hutchd(program, config=redis.config() + CONFIG))))
    return _world


def http(method, path, body=None, key=ANN):
    return world()[1].call(method, f"/api/v1/sandbox{path}", body, key=key)


def ok(reply):
    eq(reply.status, 200, reply.body)
    return reply.json


# --- PURISTA's registry, as far as it reads ---

def metadata(sandbox):
    """An entry that its schema lets pass: unknown members are stripped."""
    text = world()[0].cli("GET", f"sandbox:registry:{sandbox}")
    if text is None:
        return None
    entry = json.loads(text)
    for name in ("sandboxId", "organizationId", "projectId", "userId", "containerName"):
        assert isinstance(entry[name], str) and entry[name], entry
    assert isinstance(entry["createdAt"], int) and entry["createdAt"] > 1700000000000, entry
    assert isinstance(entry.get("gitConfigured", True), bool), entry
    return entry


def find_by_owner(*parts):
    """As findByOwner does: the index, a JSON text, and the entry it points to."""
    text = world()[0].cli("GET", "sandbox:owner:" + ":".join(parts))
    return metadata(json.loads(text)) if text else None


def plant(sandbox, index, more=None, user="user-1", project="theirs"):
    """As register does."""
    redis = world()[0]
    entry = {"sandboxId": sandbox, "organizationId": "org-1", "projectId": project, "userId": user,
             "containerName": f"purista-{sandbox}", "createdAt": 1794765783181, **(more or {})}
    entry = json.dumps(entry, separators=(",", ":"))
    redis.cli("SET", f"sandbox:registry:{sandbox}", entry)
    redis.cli("SET", f"sandbox:owner:{index}", f'"{sandbox}"')
    return entry


def unregister(sandbox, index):
    world()[0].cli("DEL", f"sandbox:registry:{sandbox}", f"sandbox:owner:{index}")


# --- what we write ---

@test
def purista_finds_what_is_made_here():
    redis = world()[0]
    for payload, scope in (({}, [SHARED]),
                           ({"scope": {"kind": "conversation", "key": "c-1"}}, ["conversation", "c-1"])):
        sandbox = ok(http("POST", "", {"projectId": "proj-1", **payload}))["sandboxId"]
        key = ":".join(["sandbox:owner:org-1:proj-1:user-1", *scope])
        eq(redis.cli("GET", key), f'"{sandbox}"')
        entry = find_by_owner("org-1", "proj-1", "user-1", *scope)
        eq({n: entry[n] for n in ("sandboxId", "organizationId", "projectId", "userId", "scope")},
           {"sandboxId": sandbox, "organizationId": "org-1", "projectId": "proj-1",
            "userId": "user-1", "scope": payload.get("scope", {"kind": SHARED})})
        for one in (key, f"sandbox:registry:{sandbox}"):
            eq((redis.cli("TYPE", one), redis.cli("TTL", one)), ("string", "-1"))
        ok(http("DELETE", f"/{sandbox}"))
        eq(metadata(sandbox), None)
        eq(redis.cli("EXISTS", key), "0")


@test
def odd_parts_are_escaped_and_all_else_has_a_prefix():
    redis = world()[0]
    sandbox = ok(http("POST", "", {"projectId": "100%"}, key=ODD))["sandboxId"]
    eq(redis.cli("GET", f"sandbox:owner:a%3Ab:100%25:ü %25:{SHARED}"), f'"{sandbox}"')
    eq(metadata(sandbox)["organizationId"], "a:b")
    begins = ("sandbox:registry:", "sandbox:owner:", "hutch:")
    eq([k for k in redis.cli("KEYS", "*").splitlines() if not k.startswith(begins)], [])
    ok(http("DELETE", f"/{sandbox}", key=ODD))


# --- what PURISTA wrote ---

THEIRS = [
    ("the second generation", "sb-2", "org-1:theirs:user-1", {}),
    ("the fourth", "sb-0123456789abcdef0123456789abcdef", f"org-1:theirs:user-1:{SHARED}",
     {"gitConfigured": True, "scope": {"kind": SHARED}}),
    ("a later one", "sb-9", f"org-1:theirs:user-1:{SHARED}",
     {"scope": {"kind": SHARED}, "unknown": {"a": [1]}}),
]


@test
def what_purista_wrote_keeps_its_place():
    redis = world()[0]
    for name, sandbox, index, more in THEIRS:
        entry = plant(sandbox, index, more)
        made = http("POST", "", {"projectId": "theirs"})
        eq(made.status, 409, f"{name}: {made.body}")
        eq(made.json["message"], f"Sandbox {sandbox} already exists for this owner. "
                                 "Use ensureSandbox to reuse it.")
        eq(made.json["data"], {"sandboxId": sandbox})
        ensured = http("POST", "/ensure", {"projectId": "theirs"})
        eq(ensured.status, 409, f"{name}: {ensured.body}")
        has(ensured.json["message"], f"'{sandbox}' of this owner was created by PURISTA's own service")
        for method, path, body in (("POST", "/bash", {"command": "true"}), ("DELETE", "", None)):
            eq(http(method, f"/{sandbox}{path}", body).status, 404, name)
        eq(redis.cli("GET", f"sandbox:registry:{sandbox}"), entry)
        eq(redis.cli("GET", f"sandbox:owner:{index}"), f'"{sandbox}"')
        # Someone else is not kept from anything.
        other = ok(http("POST", "", {"projectId": "theirs"}, key=BOB))["sandboxId"]
        ok(http("DELETE", f"/{other}", key=BOB))
        unregister(sandbox, index)
        ours = ok(http("POST", "", {"projectId": "theirs"}))["sandboxId"]
        ok(http("DELETE", f"/{ours}"))


@test
def an_index_of_purista_that_means_nothing_is_no_sandbox():
    redis = world()[0]
    for index in ("org-1:stale:user-1", f"org-1:stale:user-1:{SHARED}"):
        redis.cli("SET", f"sandbox:owner:{index}", '"gone"')
        made = ok(http("POST", "/ensure", {"projectId": "stale"}))
        eq(made["created"], True)
        eq(redis.cli("GET", f"sandbox:owner:org-1:stale:user-1:{SHARED}"), f'"{made["sandboxId"]}"')
        ok(http("DELETE", f"/{made['sandboxId']}"))


@test
def what_was_there_before_the_start_is_left_alone():
    redis, h = world()
    entry = plant("sb-early", "org-1:early:user-1", project="early")
    redis.cli("SET", "sandbox:registry:sb-odd", '{"sandboxId":"sb-odd","createdAt":1}')
    # A hutchd that was never here: what is in the index of keys is what it has brought there itself.
    redis.cli("DEL", "hutch:store:keys", "hutch:store:versions")
    h.restart()
    has(h.log(), "1 records belong to other nodes or to PURISTA")
    has(h.log(), "first=sandbox:registry:sb-odd")
    eq(http("POST", "", {"projectId": "early"}).status, 409)
    eq(redis.cli("GET", "sandbox:registry:sb-early"), entry)
    eq(redis.cli("GET", "sandbox:registry:sb-odd"), '{"sandboxId":"sb-odd","createdAt":1}')


try:
    run()
finally:
    _open.close()
