# SPDX-License-Identifier: Apache-2.0
"""The official Python SDK: scenario.py DIRECTORY:DIRECTORY async|sync

The directories have the SDK and what it needs. The server is named by OPEN_SANDBOX_DOMAIN, a key by
OPEN_SANDBOX_API_KEY, as the SDK reads them. Speaks TAP, a point for each check.

The scenario is written once. For the blocking flavour of the SDK nothing in it ever waits, so its
coroutines are driven by hand.
"""

import asyncio
import inspect
import io
import logging
import os
import re
import sys
import time
import traceback
import urllib.request
from datetime import datetime, timedelta, timezone

directories, flavour = sys.argv[1:3]
sys.path[:0] = directories.split(":")

import opensandbox  # noqa: E402
from opensandbox.config import ConnectionConfig  # noqa: E402
from opensandbox.config.connection_sync import ConnectionConfigSync  # noqa: E402
from opensandbox.exceptions import SandboxApiException  # noqa: E402
from opensandbox.models.execd import ExecutionHandlers, RunCommandOpts  # noqa: E402
from opensandbox.models.execd_sync import ExecutionHandlersSync  # noqa: E402
from opensandbox.models.filesystem import (  # noqa: E402
    ContentReplaceEntry, DirectoryListEntry, MoveEntry, SearchEntry, SetPermissionEntry, WriteEntry)
from opensandbox.models.sandboxes import SandboxFilter, SnapshotFilter  # noqa: E402
from opensandbox.sync import SandboxManagerSync, SandboxSync  # noqa: E402

logging.disable(logging.CRITICAL)       # it tells of each refusal, and refusals are wanted here
BLOCKING = flavour == "sync"
SandboxType = SandboxSync if BLOCKING else opensandbox.Sandbox
Manager = SandboxManagerSync if BLOCKING else opensandbox.SandboxManager
Handlers = ExecutionHandlersSync if BLOCKING else ExecutionHandlers

checks = []
sandbox = None
manager = None
directory = None
BYTES = bytes((i * 31 ^ i >> 8) & 0xff for i in range(300_000))
NO_MS = timedelta(seconds=2)
IMAGE = os.environ.get("SCENARIO_IMAGE", "python:3.11")


def config():
    kind = ConnectionConfigSync if BLOCKING else ConnectionConfig
    return kind(use_server_proxy="SCENARIO_PROXY" in os.environ)


def check(function):
    checks.append(function)


async def do(call):
    """The result of a call of the SDK, of either flavour."""
    return await call if inspect.isawaitable(call) else call


def drive(coroutine):
    """Runs a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the blocking SDK was awaited")


def handlers(**named):
    """Handlers of events, written as coroutines."""
    def plain(function):
        return lambda event: drive(function(event))
    return Handlers(**{k: plain(f) if BLOCKING else f for k, f in named.items()})


async def pieces(stream):
    if hasattr(stream, "__aiter__"):
        return [piece async for piece in stream]
    return list(stream)


async def refused(call, status, code=None):
    try:
        await do(call())
    except SandboxApiException as e:
        assert e.status_code == status, f"{e.status_code}: {e}"
        assert code is None or e.error.code == code, e.error
        return e
    raise AssertionError("was not refused")


def at(name):
    return f"{directory}/{name}"


def out(execution):
    return "\n".join(m.text for m in execution.logs.stdout)


def err(execution):
    return "\n".join(m.text for m in execution.logs.stderr)


def eq(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


async def run(command, handlers=None, **options):
    return await do(sandbox.commands.run(command, opts=RunCommandOpts(**options), handlers=handlers))


async def send_request(port, path):
    """What a server on that port of the sandbox answers."""
    end = await do(sandbox.get_endpoint(port))
    assert "://" not in end.endpoint and not end.endpoint.endswith("/"), end.endpoint
    request = urllib.request.Request(f"http://{end.endpoint}{path}", headers=end.headers)
    with urllib.request.urlopen(request, timeout=30) as reply:
        return reply.read()


async def until_ended(execution):
    """The SDK can only ask again and again how a command is doing. The agent tells by itself."""
    await send_request(44772, f"/command/{execution.id}/logs?follow=true")
    status = await do(sandbox.commands.get_command_status(execution.id))
    eq(status.running, False)
    return status


# --- the sandbox ---

@check
async def create_waits_for_the_agent():
    global sandbox, manager, directory
    sandbox = await do(SandboxType.create(
        IMAGE, timeout=timedelta(minutes=5), env={"GIVEN": "at creation"},
        metadata={"project": "interop", "flavour": flavour},
        resource={"cpu": "500m", "memory": "256Mi"}, connection_config=config()))
    manager = Manager.create(config())
    manager = await do(manager)
    directory = out(await run("pwd")) + "/work"


@check
async def info_of_the_sandbox():
    info = await do(sandbox.get_info())
    eq(info.id, sandbox.id)
    eq(info.status.state, "Running")
    eq(info.entrypoint, ["tail", "-f", "/dev/null"])
    eq(info.metadata, {"project": "interop", "flavour": flavour})
    eq(info.image.image, IMAGE)
    eq(info.created_at.tzinfo is not None, True)
    assert info.created_at < info.expires_at
    left = info.expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=4) < left < timedelta(minutes=6), left


@check
async def health_and_connecting_by_id():
    eq(await do(sandbox.is_healthy()), True)
    other = await do(SandboxType.connect(sandbox.id, connection_config=config()))
    eq(other.id, sandbox.id)
    eq(out(await do(other.commands.run("echo connected"))), "connected")
    await do(other.close())


@check
async def metrics():
    m = await do(sandbox.get_metrics())
    assert m.cpu_count > 0 and 0 <= m.cpu_used_percentage <= 100, m
    assert 0 < m.memory_used_in_mib <= m.memory_total_in_mib, m
    assert abs(m.timestamp - time.time() * 1000) < 60_000, m


# --- commands ---

@check
async def run_output_and_success():
    e = await run("echo hello; echo world")
    eq(out(e), "hello\nworld")
    eq(err(e), "")
    eq(e.exit_code, 0)
    eq(e.error, None)
    assert e.id and e.complete


@check
async def run_failure():
    e = await run("echo before; echo why >&2; exit 3")
    eq((out(e), err(e), e.exit_code), ("before", "why", 3))
    eq((e.error.name, e.error.value, e.complete), ("CommandExecError", "3", None))


@check
async def run_what_does_not_exist():
    e = await run("no-such-command-here")
    eq(e.exit_code, 127)
    assert "not found" in err(e)


@check
async def run_a_list_of_arguments():
    if opensandbox.__version__.startswith("0."):
        return                  # it has only texts for a shell
    e = await do(sandbox.commands.run(["printf", "%s|", "a b", "$HOME", "'"]))
    eq(out(e), "a b|$HOME|'|")


@check
async def run_with_environment_and_directory():
    await do(sandbox.files.create_directories([WriteEntry(path=at("wd"), mode=755)]))
    e = await run('echo "$GREETING $GIVEN"; pwd', envs={"GREETING": "grüße $HOME"},
                  working_directory=at("wd"))
    eq(out(e), f"grüße $HOME at creation\n{at('wd')}")
    await refused(lambda: sandbox.commands.run(
        "pwd", opts=RunCommandOpts(working_directory=at("nowhere"))), 400)


@check
async def run_with_a_timeout():
    began = time.monotonic()
    e = await run("sleep 20", timeout=timedelta(milliseconds=300))
    assert time.monotonic() - began < 10
    assert e.error and e.exit_code != 0


@check
async def run_text_that_is_hard_to_carry():
    text = 'ä 漢 😀 \u2028 \u0085 "quotes" \\ back'
    eq(out(await run(f"printf '%s' '{text}'")), text)


@check
async def run_much_output():
    e = await run("seq 1 20000")
    eq([m.text for m in e.logs.stdout], [str(i) for i in range(1, 20001)])


@check
async def handlers_hear_of_output_before_the_end():
    heard = []

    async def on_init(i):
        heard.append(("init", bool(i.id)))

    async def on_stdout(m):
        heard.append(m.text)
        if m.text == "now":
            await run("echo go >held", working_directory=at("wd"))

    async def on_execution_complete(_):
        heard.append("complete")

    eq((await run("mkfifo held", working_directory=at("wd"))).exit_code, 0)
    await run('echo now; read x <held; echo "then $x"', working_directory=at("wd"),
              handlers=handlers(on_init=on_init, on_stdout=on_stdout,
                                on_execution_complete=on_execution_complete))
    eq(heard, [("init", True), "now", "then go", "complete"])


@check
async def background_state_and_logs():
    e = await run("echo one; echo two >&2; exit 4", background=True)
    assert e.id and e.exit_code is None
    s = await until_ended(e)
    eq((s.id, s.exit_code), (e.id, 4))
    assert s.started_at <= s.finished_at
    logs = await do(sandbox.commands.get_background_command_logs(e.id))
    eq((logs.content, logs.cursor), ("one\ntwo\n", 8))
    eq((await do(sandbox.commands.get_background_command_logs(e.id, 4))).content, "two\n")


@check
async def background_interrupt():
    e = await run("sleep 100", background=True)
    eq((await do(sandbox.commands.get_command_status(e.id))).running, True)
    await do(sandbox.commands.interrupt(e.id))
    assert (await until_ended(e)).exit_code != 0


@check
async def a_session_keeps_directory_and_variables():
    s = await do(sandbox.commands.create_session(working_directory=at("wd")))
    await do(sandbox.commands.run_in_session(s, 'mkdir -p deep && cd deep && export KEPT="a b"'))
    e = await do(sandbox.commands.run_in_session(s, 'echo "$KEPT"; pwd'))
    eq((out(e), e.exit_code), (f"a b\n{at('wd/deep')}", 0))
    e = await do(sandbox.commands.run_in_session(s, "exit 7"))
    eq((e.exit_code, e.error.value), (7, "7"))
    await do(sandbox.commands.delete_session(s))


# --- files ---

@check
async def files_write_and_read():
    await do(sandbox.files.write_files([
        WriteEntry(path=at("new/text"), data="grüße\n", mode=640),
        WriteEntry(path=at("new/bytes"), data=BYTES, mode=600),
        WriteEntry(path=at("new/stream"), data=io.BytesIO(BYTES)),
        WriteEntry(path=at('new/ü 漢 "x" %20'), data="")]))
    eq(await do(sandbox.files.read_file(at("new/text"))), "grüße\n")
    eq(await do(sandbox.files.read_bytes(at("new/bytes"))), BYTES)
    eq(await do(sandbox.files.read_file(at('new/ü 漢 "x" %20'))), "")
    stream = await pieces(await do(sandbox.files.read_bytes_stream(at("new/stream"))))
    eq(b"".join(stream), BYTES)


@check
async def files_a_part():
    eq(await do(sandbox.files.read_bytes(at("new/bytes"), range_header="bytes=100-199")),
       BYTES[100:200])
    await do(sandbox.files.write_file(at("lines"), "1\n2\n3\n4\n"))
    eq(await do(sandbox.files.read_file(at("lines"), offset=2, limit=2)), "2\n3")


@check
async def files_info_and_permissions():
    await do(sandbox.files.set_permissions([SetPermissionEntry(path=at("new/bytes"), mode=444)]))
    info = await do(sandbox.files.get_file_info([at("new/bytes"), at("new/text")]))
    b = info[at("new/bytes")]
    eq((b.path, b.size, b.mode, info[at("new/text")].mode), (at("new/bytes"), 300_000, 444, 640))
    assert abs(b.modified_at - datetime.now(timezone.utc)) < timedelta(minutes=1)
    await refused(lambda: sandbox.files.get_file_info([at("nobody")]), 404, "FILE_NOT_FOUND")


@check
async def files_move_replace_delete():
    await do(sandbox.files.move_files([MoveEntry(src=at("new/stream"), dest=at("moved/far"))]))
    eq(len(await do(sandbox.files.read_bytes(at("moved/far")))), 300_000)
    await do(sandbox.files.write_file(at("letter"), "a-b-a", mode=640))
    eq([(r.path, r.replaced_count) for r in await do(sandbox.files.replace_contents_detailed(
        [ContentReplaceEntry(path=at("letter"), old_content="a", new_content="漢")]))],
       [(at("letter"), 2)])
    eq(await do(sandbox.files.read_file(at("letter"))), "漢-b-漢")
    await do(sandbox.files.delete_files([at("letter"), at("never-was")]))
    await refused(lambda: sandbox.files.read_file(at("letter")), 404)


@check
async def files_search():
    await do(sandbox.files.write_files([WriteEntry(path=at(n), data=n)
                                    for n in ["s/one.txt", "s/deep/two.txt", "s/three.md"]]))
    found = await do(sandbox.files.search(SearchEntry(path=at("s"), pattern="*.txt")))
    eq(sorted(f.path for f in found), [at("s/deep/two.txt"), at("s/one.txt")])


@check
async def directories():
    await do(sandbox.files.create_directories([WriteEntry(path=at("d/e"), mode=750)]))
    found = await do(sandbox.files.list_directory(DirectoryListEntry(path=at("d"), depth=2)))
    eq([(f.path, f.entry_type, f.mode) for f in found], [(at("d/e"), "directory", 750)])
    await do(sandbox.files.delete_directories([at("d")]))
    await refused(lambda: sandbox.files.get_file_info([at("d")]), 404, "FILE_NOT_FOUND")


# --- a port of the user's own ---

@check
async def a_server_of_the_user():
    await do(sandbox.files.write_file(at("site/page.txt"), "from inside\n"))
    served = []

    async def on_stdout(m):
        if found := re.match(r"Serving HTTP on \S+ port (\d+)", m.text):
            served.append(await send_request(int(found[1]), "/page.txt"))
            await do(sandbox.commands.interrupt(started[0]))

    started = []

    async def on_init(i):
        started.append(i.id)

    await run("exec python3 -u -m http.server 0 --bind 127.0.0.1", working_directory=at("site"),
              handlers=handlers(on_init=on_init, on_stdout=on_stdout))
    eq(served, [b"from inside\n"])


# --- the life of it ---

@check
async def metadata():
    info = await do(sandbox.patch_metadata({"stage": "two", "project": None}))
    eq(info.metadata, {"stage": "two", "flavour": flavour})
    eq((await do(sandbox.get_info())).metadata, {"stage": "two", "flavour": flavour})


@check
async def lists():
    second = await do(SandboxType.create(IMAGE, metadata={"stage": "two"},
                                 connection_config=config()))
    try:
        page = await do(manager.list_sandbox_infos(SandboxFilter(
            states=["Running"], metadata={"stage": "two", "flavour": flavour})))
        eq([i.id for i in page.sandbox_infos], [sandbox.id])
        page = await do(manager.list_sandbox_infos(SandboxFilter(
            metadata={"stage": "two"}, page=1, page_size=1)))
        eq([i.id for i in page.sandbox_infos], [second.id])
        p = page.pagination
        eq((p.page, p.page_size, p.total_items, p.total_pages, p.has_next_page),
           (1, 1, 2, 2, True))
        eq((await do(manager.list_sandbox_infos(
            SandboxFilter(states=["Paused"])))).sandbox_infos, [])
    finally:
        await do(manager.kill_sandbox(second.id))
        await do(second.close())


@check
async def renewal():
    reply = await do(sandbox.renew(timedelta(minutes=20)))
    left = reply.expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=18) < left < timedelta(minutes=22), left
    info = await do(sandbox.get_info())
    assert abs(info.expires_at - reply.expires_at) < NO_MS


@check
async def without_an_end():
    endless = await do(SandboxType.create(IMAGE, timeout=None, connection_config=config()))
    try:
        eq((await do(endless.get_info())).expires_at, None)
    finally:
        await do(endless.kill())
        await do(endless.close())


@check
async def pause_and_resume():
    global sandbox
    await do(sandbox.files.write_file(at("kept"), "over the pause"))
    sleeper = await run("sleep 100", background=True)
    await do(sandbox.pause())
    eq((await do(sandbox.get_info())).status.state, "Paused")
    page = await do(manager.list_sandbox_infos(SandboxFilter(states=["Paused"])))
    eq([i.id for i in page.sandbox_infos], [sandbox.id])
    await refused(sandbox.pause, 409)
    await refused(lambda: sandbox.commands.run("true"), 409)
    old = sandbox
    sandbox = await do(SandboxType.resume(sandbox.id, connection_config=config()))
    await do(old.close())
    eq((await do(sandbox.get_info())).status.state, "Running")
    eq(out(await run(f"cat {at('kept')}")), "over the pause")
    eq((await do(sandbox.commands.get_command_status(sleeper.id))).running, True)
    await refused(lambda: manager.resume_sandbox(sandbox.id), 409)


@check
async def what_it_says_about_itself():
    if not hasattr(sandbox, "get_diagnostic_logs"):
        return
    logs = await do(sandbox.get_diagnostic_logs("container"))
    eq((logs.sandbox_id, logs.kind, logs.scope, logs.delivery), (sandbox.id, "logs", "container",
                                                                 "inline"))
    events = await do(sandbox.get_diagnostic_events("runtime"))
    assert "Paused" in events.content, events


@check
async def snapshots():
    if "SCENARIO_SNAPSHOTS" not in os.environ:
        await refused(lambda: sandbox.create_snapshot("s"), 501)
        return
    await do(sandbox.files.write_file("/srv/kept", "over the snapshot"))
    made = await do(sandbox.create_snapshot("before"))
    eq((made.sandbox_id, made.name, made.status.state), (sandbox.id, "before", "Creating"))
    while (info := await do(manager.get_snapshot(made.id))).status.state == "Creating":
        pass
    eq(info.status.state, "Ready")
    page = await do(manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id, states=["Ready"])))
    eq([i.id for i in page.snapshot_infos], [made.id])
    second = await do(SandboxType.create(snapshot_id=made.id, timeout=timedelta(minutes=5),
                                 connection_config=config()))
    try:
        eq(await do(second.files.read_file("/srv/kept")), "over the snapshot")
        await refused(lambda: manager.delete_snapshot(made.id), 409)
    finally:
        await do(second.kill())
        await do(second.close())
    await do(manager.delete_snapshot(made.id))
    await refused(lambda: manager.get_snapshot(made.id), 404)


@check
async def what_nobody_knows_has_a_request_id():
    e = await refused(lambda: manager.get_sandbox_info("no-such-sandbox"), 404)
    assert e.request_id


@check
async def kill():
    await do(sandbox.kill())
    await refused(sandbox.get_info, 404)
    await do(sandbox.close())
    await do(manager.close())


# --- running them ---

async def main():
    failed = 0
    print(f"1..{len(checks)}")
    for i, function in enumerate(checks, 1):
        name = f"{opensandbox.__version__} {flavour}, {os.environ['SCENARIO_MODE']}: " + \
            function.__name__.replace("_", " ")
        try:
            await function()
            print(f"ok {i} - {name}", flush=True)
        except Exception:       # pylint: disable=broad-except
            failed += 1
            print(f"not ok {i} - {name}")
            print(re.sub("^", "# ", traceback.format_exc().strip(), flags=re.M), flush=True)
    return failed


sys.exit(1 if (drive(main()) if BLOCKING else asyncio.run(main())) else 0)
